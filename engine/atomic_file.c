#include "engine/atomic_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/status.h"

gx_status gx_atomic_file_open(gx_atomic_file *o, const char *path, bool force, gx_error *err)
{
    *o = (gx_atomic_file){.path = strdup(path)};
    if (!o->path)
        return gx_fail(err, GX_ENOMEM, "no memory");
    if (!force && access(path, F_OK) == 0)
        return gx_fail(err, GX_EEXISTS, "%s exists: use --force to replace it, or give another name", path);
    if (asprintf(&o->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        o->temporary = NULL;
        return gx_fail(err, GX_ENOMEM, "no memory");
    }
    if (!(o->file = fopen(o->temporary, "wbxe"))) {
        const int e = errno;
        free(o->temporary); /* so that close does not remove a file that is not ours */
        o->temporary = NULL;
        return gx_fail(err, e == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot write %s: %s", path, strerror(e));
    }
    return GX_OK;
}

gx_status gx_atomic_file_sync(gx_atomic_file *o, gx_error *err)
{
    int bad = ferror(o->file) | fflush(o->file);
    bad = bad || fsync(fileno(o->file));
    const int e = errno;
    bad |= fclose(o->file);
    o->file = NULL;
    return bad ? gx_fail(err, GX_EIO, "cannot write %s: %s", o->path, strerror(e)) : GX_OK;
}

gx_status gx_atomic_file_commit(gx_atomic_file *o, gx_error *err)
{
    if (rename(o->temporary, o->path))
        return gx_fail(err, GX_EIO, "cannot rename %s to %s: %s", o->temporary, o->path, strerror(errno));
    free(o->temporary);
    o->temporary = NULL;
    return GX_OK;
}

void gx_atomic_file_close(gx_atomic_file *o)
{
    if (o->file)
        fclose(o->file);
    if (o->temporary)
        unlink(o->temporary);
    free(o->temporary);
    free(o->path);
    *o = (gx_atomic_file){0};
}
