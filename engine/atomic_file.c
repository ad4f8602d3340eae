#include "engine/atomic_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/status.h"

gx_status gx_aside_open(gx_aside *o, const char *path, bool force, gx_error *err)
{
    *o = (gx_aside){.path = strdup(path)};
    if (!o->path)
        return gx_fail(err, GX_ENOMEM, "no memory");
    if (!force && access(path, F_OK) == 0)
        return gx_fail(err, GX_EEXISTS, "%s exists: use --force to replace it, or give another name", path);
    if (asprintf(&o->aside, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        o->aside = NULL;
        return gx_fail(err, GX_ENOMEM, "no memory");
    }
    if (!(o->file = fopen(o->aside, "wbxe"))) {
        const int e = errno;
        free(o->aside); /* not ours to remove */
        o->aside = NULL;
        return gx_fail(err, e == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot write %s: %s", path, strerror(e));
    }
    return GX_OK;
}

gx_status gx_aside_sync(gx_aside *o, gx_error *err)
{
    int bad = ferror(o->file) | fflush(o->file);
    bad = bad || fsync(fileno(o->file));
    const int e = errno;
    bad |= fclose(o->file);
    o->file = NULL;
    return bad ? gx_fail(err, GX_EIO, "cannot write %s: %s", o->path, strerror(e)) : GX_OK;
}

gx_status gx_aside_rename(gx_aside *o, gx_error *err)
{
    if (rename(o->aside, o->path))
        return gx_fail(err, GX_EIO, "cannot rename %s to %s: %s", o->aside, o->path, strerror(errno));
    free(o->aside);
    o->aside = NULL;
    return GX_OK;
}

void gx_aside_close(gx_aside *o)
{
    if (o->file)
        fclose(o->file);
    if (o->aside)
        unlink(o->aside);
    free(o->aside);
    free(o->path);
    *o = (gx_aside){0};
}
