#include "engine/memory/grow.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"

bool gx_resize(void *array, size_t n, size_t size)
{
    void *p;
    memcpy(&p, array, sizeof p); /* the pointer may be of any type */
    p = reallocarray(p, n, size);
    if (p)
        memcpy(array, &p, sizeof p);
    return p != NULL;
}

bool gx_reserve(void *array, size_t *max, size_t n, size_t size)
{
    if (n <= *max)
        return true;
    const size_t more = n + n / 2 + 16;
    if (!gx_resize(array, more, size))
        return false;
    *max = more;
    return true;
}

gx_status gx_grow(void *array, size_t *max, size_t n, size_t size, gx_error *err)
{
    return gx_reserve(array, max, n, size) ? GX_OK
                                           : gx_fail(err, GX_ENOMEM, "out of memory: %zu items of %zu bytes", n, size);
}
