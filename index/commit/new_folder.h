/* new_folder.h: the folder of a collection that is being made: it gets its name when it is complete.
 *
 *   gx_new_folder_make   COLLECTION.RANDOM.tmp/ -- filled by the caller's function --> COLLECTION/
 */
#ifndef GX_INDEX_COMMIT_NEW_FOLDER_H
#define GX_INDEX_COMMIT_NEW_FOLDER_H

#include "engine/files/atomic_file.h"

typedef struct gx_new_folder {
    char *aside;      /* its path */
    const char *path; /* that which it gets */
    gx_place place;   /* the folder, open */
    gx_unsynced files;
} gx_new_folder;

/* Give a file of the folder dir_fd (AT_FDCWD: by its path) the name in the new folder, too, or copy it there.
 * GX_ENOTFOUND: there is none. GX_EIO, GX_ENOMEM. */
gx_status gx_new_folder_link(gx_new_folder *to, int dir_fd, const char *path, const char *name, gx_error *err);

/* Copy an open file, its mode too; path is for messages. */
gx_status gx_new_folder_copy(gx_new_folder *to, int from, const char *path, const char *name, gx_error *err);

/* Fill the folder: its files, which need no sync but for to->files, and last the manifest. */
typedef gx_status gx_folder_fill_fn(gx_new_folder *to, const void *user, gx_error *err);

/* Make the folder at path, whole, or not at all. GX_EEXISTS, GX_ENOTFOUND, GX_EIO, GX_ENOMEM, and statuses of fill. */
gx_status gx_new_folder_make(const char *path, gx_folder_fill_fn *fill, const void *user, gx_error *err);

#endif
