#include "engine/sized.h"

#include "engine/status.h"

#include <string.h>

static size_t size_of(const void *sized)
{
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

gx_status gx_sized_check(size_t size, size_t least, const char *name, gx_error *err)
{
    if (size < least)
        return gx_fail(err, GX_EUSAGE, "%s.size is %zu, and the least is %zu; set it to sizeof(%s)", name, size, least,
                       name);
    if (size > GX_MAX_SIZE)
        return gx_fail(err, GX_EUSAGE, "%s.size is %zu, which was never set; set it to sizeof(%s)", name, size, name);
    return GX_OK;
}

gx_status gx_sized_read(void *own, size_t own_size, const void *given, size_t least, const char *name, gx_error *err)
{
    if (!given)
        return GX_OK;
    const size_t size = size_of(given);
    const gx_status st = gx_sized_check(size, least, name, err);
    if (st != GX_OK)
        return st;
    memcpy(own, given, smaller(size, own_size));
    memcpy(own, &own_size, sizeof own_size);
    return GX_OK;
}

gx_status gx_sized_write(void *to, const void *own, size_t own_size, size_t least)
{
    const size_t size = to ? size_of(to) : 0;
    if (gx_sized_check(size, least, "", NULL) != GX_OK)
        return GX_EUSAGE;
    memcpy(to, own, smaller(size, own_size));
    memcpy(to, &size, sizeof size);
    return GX_OK;
}

void gx_sized_init(void *to, size_t size, const void *defaults, size_t defaults_size)
{
    if (size < sizeof size)
        return;
    memset(to, 0, size);
    memcpy(to, defaults, smaller(size, defaults_size));
    memcpy(to, &size, sizeof size);
}
