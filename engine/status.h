/* status.h: making gx_error texts, inside the library. */
#ifndef GX_ENGINE_STATUS_H
#define GX_ENGINE_STATUS_H

#include "engine/gpuidx.h"

#include <assert.h>

static_assert(sizeof(gx_error) == 1024, "the layout of gx_error is fixed");

#ifdef __cplusplus
extern "C" {
#endif

/* Fill err (may be NULL) and return st, so that `return gx_fail(err, GX_EIO, "cannot open %s: %s",
 * ...)` reads well. */
__attribute__((format(printf, 3, 4))) gx_status gx_fail(gx_error *err, gx_status st, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
