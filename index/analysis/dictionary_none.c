#include <stddef.h>

#include "index/analysis/dictionary.h"

const char *gx_dictionary_version(void)
{
    return "";
}

gx_dictionary *gx_dictionary_open(void)
{
    return NULL;
}

void gx_dictionary_close(gx_dictionary *d)
{
    (void)d;
}

bool gx_dictionary_begin(gx_dictionary *d, const char *text, uint32_t len)
{
    (void)d, (void)text, (void)len;
    return false;
}

uint32_t gx_dictionary_next(gx_dictionary *d)
{
    (void)d;
    return 0;
}
