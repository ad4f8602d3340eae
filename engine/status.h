/* status.h: how the library's own code fills a gx_error. */
#ifndef GX_ENGINE_STATUS_H
#define GX_ENGINE_STATUS_H

#include "engine/api/gpuidx.h"

#include <assert.h>

static_assert(sizeof(gx_error) == 1024, "the layout of gx_error is fixed");

#ifdef __cplusplus
extern "C" {
#endif

/* Write a message into err, which may be NULL, and return st. Each byte of a control character in
 * it becomes a question mark, so that names from files are safe to print. A function fails with
 * `return gx_fail(err, GX_EIO, "cannot open %s: %s", path, why);`. */
__attribute__((format(printf, 3, 4))) gx_status gx_fail(gx_error *err, gx_status st, const char *format, ...);

/* Make *err say that nothing has failed. err may be NULL. */
static inline void gx_clear_error(gx_error *err)
{
    if (err) {
        err->status = GX_OK;
        err->text[0] = 0;
    }
}

/* What an errno of a file operation means: GX_ENOMEM, GX_ENOTFOUND, GX_EEXISTS, else GX_EIO. */
gx_status gx_status_of_errno(int e);

#ifdef __cplusplus
}
#endif
#endif
