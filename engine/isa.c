#include "engine/isa.h"

#include <stdlib.h>

#include "engine/status.h"

const char *gx_isa_override(void)
{
    const char *const name = getenv("GX_CPU");
    return name && *name ? name : NULL;
}

gx_status gx_isa_fail_override(gx_error *err)
{
    return gx_fail(err, GX_EUSAGE,
                   "the environment's GX_CPU, '%s', names no instruction set of this processor; "
                   "unset it",
                   gx_isa_override());
}
