/* atomic_file.h: an output file that appears when it is complete, or not at all.
 *
 *   gx_atomic_file_open     creates the file, without a name where the file system can
 *   (the caller)            writes to `fd`, or to `file` after gx_atomic_file_stream
 *   gx_atomic_file_sync     writes everything to disk
 *   gx_atomic_file_commit   gives the file its name
 *   gx_atomic_file_close    frees the object; to be called in every case
 *
 * A caller that writes several files which belong together syncs all of them before it commits the
 * first.
 *
 * What stands at the path decides what happens:
 *
 *   nothing           the file gets the name, but never the name of a file that appears meanwhile
 *   a regular file    GX_EEXISTS; with force it is replaced, and its owner and mode are kept
 *   a link to one     the same; the link stays and leads to the new file
 *   a device, FIFO    bytes are written through, with and without force; GX_ATOMIC_FILE_SEEK
 *                     refuses
 *
 * The rule for errors: until commit begins, an error leaves the path as it was. If the file has its
 * name and something fails after that, the message says "PATH is in place, but ...".
 */
#ifndef GX_ENGINE_FILES_ATOMIC_FILE_H
#define GX_ENGINE_FILES_ATOMIC_FILE_H

#include <fcntl.h>
#include <stdio.h>

#include "engine/api/gpuidx.h"

typedef struct gx_atomic_file {
    char *path;                   /* as the caller named it; for messages */
    char *target;                 /* the path after its links have been followed; NULL: written through */
    char *dir;                    /* target's directory */
    char *temporary;              /* a name that the file has before its own; NULL: none */
    const struct gx_place *place; /* NULL: the path alone says where it goes */
    FILE *file;                   /* NULL until gx_atomic_file_stream; sync reports the stream's write errors */
    char *buffer;                 /* the stream's */
    int fd, dir_fd;               /* -1: not open */
    int at;                       /* what the file's names are looked up in: place's folder, or AT_FDCWD */
    bool force, committed;
} gx_atomic_file;
#define GX_ATOMIC_FILE_INIT ((gx_atomic_file){.fd = -1, .dir_fd = -1, .at = AT_FDCWD})

enum {
    GX_ATOMIC_FILE_FORCE = 1,   /* replace a file */
    GX_ATOMIC_FILE_SEEK = 2,    /* a regular file only */
    GX_ATOMIC_FILE_UNNAMED = 4, /* the file never gets a name: of path the directory alone counts, and
                                 * what stands at path is not looked at. No commit */
};

/* Files that are written, but not yet synced. Their owner syncs all of them at once, which takes
 * about as long as to sync one. */
typedef struct gx_unsynced {
    uint32_t n;
    int fds[16]; /* [n] */
} gx_unsynced;

/* Sync all that have a name still, and forget them. Returns 0 or the errno of the first failure. */
int gx_unsynced_sync(gx_unsynced *u);
void gx_unsynced_forget(gx_unsynced *u);

/* A folder that the caller has open. A file goes there even where the folder has been moved since,
 * or another one stands at its path. The struct must outlive the files. */
typedef struct gx_place {
    int dir_fd;
    /* The name of a file there: a new file gets its owner, group and mode, as far as the process may
     * give them. NULL: those of any new file of the process. */
    const char *like;
    /* Where files go that gx_atomic_file_sync has not synced and gx_atomic_file_commit has named; the
     * directory is not synced either. NULL: both are. */
    gx_unsynced *unsynced;
} gx_place;

/* Create the file next to path, which is copied; "-" is standard output. GX_EEXISTS, GX_ENOTFOUND
 * (no such directory, or a link to nothing), GX_EIO, GX_ENOMEM. */
gx_status gx_atomic_file_open(gx_atomic_file *o, const char *path, unsigned flags, gx_error *err);

/* The same for a file in a place, "FOLDER/NAME" in messages; a link of that name is not followed.
 * place NULL: as gx_atomic_file_open. */
gx_status gx_atomic_file_open_in(gx_atomic_file *o, const gx_place *place, const char *path, unsigned flags,
                                 gx_error *err);

/* Open the stream. GX_ENOMEM. */
gx_status gx_atomic_file_stream(gx_atomic_file *o, gx_error *err);

/* Write the file to disk. GX_EIO: this or an earlier write failed. */
gx_status gx_atomic_file_sync(gx_atomic_file *o, gx_error *err);

/* Remove the file that this one is to replace, if there is one, so that nothing has its name until
 * commit. For sets of files of which no reader may see some old and some new. GX_EIO. */
gx_status gx_atomic_file_withdraw(gx_atomic_file *o, gx_error *err);

/* Give the file its name. GX_EEXISTS: another file got it since open, and force was not given.
 * GX_EIO; if o->committed is set then, the file is in place, and the message says so. */
gx_status gx_atomic_file_commit(gx_atomic_file *o, gx_error *err);

/* Free what o holds; a file that was not committed is gone. o may be GX_ATOMIC_FILE_INIT. */
void gx_atomic_file_close(gx_atomic_file *o);

#endif
