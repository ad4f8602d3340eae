/* manifest.h: the manifest of a collection: which files it has, as of its last commit. FORMAT.md
 * tells every byte of it, under "Collections".
 *
 *   COLLECTION/MANIFEST               names the files of one commit; replaced by a rename
 *   COLLECTION/part-000001.gx         an index file, which never changes
 *   COLLECTION/part-000001.000004.del which of its documents are deleted, as of commit 4
 *   COLLECTION/LOCK                   locked by the one writer
 */
#ifndef GX_INDEX_MANIFEST_H
#define GX_INDEX_MANIFEST_H

#include "engine/files/atomic_file.h"

#define GX_MANIFEST_NAME "MANIFEST"
#define GX_MAX_PART_NAME 63u /* bytes of a file's name */
#define GX_MAX_PARTS 4096u

/* A file of deletes; file is empty where no document of the part is deleted. */
typedef struct gx_manifest_deletes {
    char file[GX_MAX_PART_NAME + 1];
    uint64_t bytes, checksum; /* of the whole file */
    uint32_t n_docs;          /* deleted documents */
    uint64_t n_tokens;        /* the sum of their lengths */
} gx_manifest_deletes;

typedef struct gx_manifest_part {
    char file[GX_MAX_PART_NAME + 1];
    uint8_t uuid[16]; /* of the index file */
    uint64_t bytes;
    uint32_t n_docs; /* deleted ones included, as in the index file */
    uint64_t n_tokens;
    gx_manifest_deletes deletes;
} gx_manifest_part;

typedef struct gx_manifest {
    uint64_t commit; /* from 1 */
    uint64_t next;   /* the number of the next part's file */
    uint8_t uuid[16];
    uint64_t checksum;       /* of its text: two commits of one number differ by it, after a backup was put back */
    uint32_t n_parts;        /* at least 1 */
    gx_manifest_part *parts; /* [n_parts] in the order of their documents */
} gx_manifest;

/* Read the manifest in folder dir, which dir_fd is (AT_FDCWD: by its path). GX_ENOTFOUND (no manifest: the folder is no
 * collection), GX_EIO, GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_manifest_read(gx_manifest *out, int dir_fd, const char *dir, gx_error *err);

/* Sync the place's files, replace the manifest there, in folder dir, or, unless replace, make the first one, and set
 * m->checksum. It is on disk when this returns GX_OK. *placed: it is in its place, also where a later step fails.
 * GX_EEXISTS, GX_EIO, GX_ENOMEM. */
gx_status gx_manifest_write(gx_manifest *m, const gx_place *place, const char *dir, bool replace, bool *placed,
                            gx_error *err);

/* Whether the manifest in the folder is still the one that m was read from or written to. A look at its first line. */
bool gx_manifest_is_last(const gx_manifest *m, int dir_fd);

void gx_manifest_free(gx_manifest *m); /* accepts a zeroed one */

/* "DIR/NAME"; the caller frees. NULL: no memory. */
char *gx_path_in(const char *dir, const char *name);

#endif
