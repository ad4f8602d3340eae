/* atomic_file.h: a file that is written under a temporary name and gets its own name when it is
 * whole.
 *
 *   gx_atomic_file_open -> write to file -> gx_atomic_file_sync -> gx_atomic_file_commit
 *   -> gx_atomic_file_close: always
 *
 * Where several files belong together, sync all of them before the first commit.
 */
#ifndef GX_ENGINE_ATOMIC_FILE_H
#define GX_ENGINE_ATOMIC_FILE_H

#include <stdio.h>

#include "engine/gpuidx.h"

typedef struct gx_atomic_file {
    char *path, *temporary; /* its final name, and its present one; NULL: it has none */
    FILE *file;             /* write errors stay in the stream and are reported by sync */
} gx_atomic_file;

/* path is copied. GX_EEXISTS (unless force), GX_ENOTFOUND (no such directory), GX_EIO, GX_ENOMEM.
 * */
gx_status gx_atomic_file_open(gx_atomic_file *o, const char *path, bool force, gx_error *err);
/* write all to disk and close it. GX_EIO, also for earlier writes */
gx_status gx_atomic_file_sync(gx_atomic_file *o, gx_error *err);
gx_status gx_atomic_file_commit(gx_atomic_file *o, gx_error *err); /* rename it to its path. GX_EIO */
/* Free o, and remove the file unless it was committed. o may be all zero. */
void gx_atomic_file_close(gx_atomic_file *o);

#endif
