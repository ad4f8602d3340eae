/* atomic_file.h: a file written aside, which gets its name when it is whole.
 *
 *   gx_aside_open -> write to file -> gx_aside_sync -> gx_aside_rename -> gx_aside_close: always
 *
 * Of several files that belong together all are synced before the first is renamed.
 */
#ifndef GX_ENGINE_ATOMIC_FILE_H
#define GX_ENGINE_ATOMIC_FILE_H

#include <stdio.h>

#include "engine/gpuidx.h"

typedef struct gx_aside {
    char *path, *aside; /* the name it will have, and the one it has; NULL: none */
    FILE *file;         /* errors of writing stay with it until it is synced */
} gx_aside;

/* path is copied. GX_EEXISTS (unless force), GX_ENOTFOUND (no such directory), GX_EIO, GX_ENOMEM.
 * */
gx_status gx_aside_open(gx_aside *o, const char *path, bool force, gx_error *err);
gx_status gx_aside_sync(gx_aside *o, gx_error *err);   /* to the disk, and closed. GX_EIO, also of earlier writes */
gx_status gx_aside_rename(gx_aside *o, gx_error *err); /* to its path. GX_EIO */
/* What has not been renamed is removed. o may be all zero. */
void gx_aside_close(gx_aside *o);

#endif
