/* brotli_none.c: there is no Brotli. */
#include "index/corpus/formats/brotli.h"

const bool gx_has_brotli = false;

gx_brotli *gx_brotli_open(void)
{
    return NULL;
}

void gx_brotli_close(gx_brotli *z)
{
    (void)z;
}

bool gx_brotli_read(gx_brotli *z, gx_span *in, char *to, size_t *n, bool *more)
{
    (void)z, (void)in, (void)to;
    *n = 0;
    *more = false;
    return false;
}
