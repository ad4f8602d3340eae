/* atomic_file.h: a file that is written under a temporary name and renamed when it is complete.
 *
 *   gx_atomic_file_open     creates the temporary file
 *   (the caller)            writes to `file`
 *   gx_atomic_file_sync     writes everything to disk and closes it
 *   gx_atomic_file_commit   renames it
 *   gx_atomic_file_close    frees the object; to be called in every case
 *
 * A caller that writes several files which belong together syncs all of them before it commits the
 * first.
 */
#ifndef GX_ENGINE_ATOMIC_FILE_H
#define GX_ENGINE_ATOMIC_FILE_H

#include <stdio.h>

#include "engine/gpuidx.h"

typedef struct gx_atomic_file {
    char *path, *temporary; /* the final name, and the present one; temporary NULL: no file exists */
    FILE *file;             /* for the caller to write to; sync reports the stream's write errors */
} gx_atomic_file;

/* Create the temporary file next to path, which is copied. GX_EEXISTS: path exists and force is
 * false. GX_ENOTFOUND: the directory does not exist. GX_EIO, GX_ENOMEM. */
gx_status gx_atomic_file_open(gx_atomic_file *o, const char *path, bool force, gx_error *err);

/* Write the file to disk and close it. GX_EIO: this or an earlier write failed. */
gx_status gx_atomic_file_sync(gx_atomic_file *o, gx_error *err);

/* Rename the file to its path. GX_EIO. */
gx_status gx_atomic_file_commit(gx_atomic_file *o, gx_error *err);

/* Free what o holds, and remove the temporary file unless it was committed. o may be all zero. */
void gx_atomic_file_close(gx_atomic_file *o);

#endif
