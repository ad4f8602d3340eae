#include "tools/cli/attribute_list.h"

#include <stdlib.h>
#include <string.h>

int attribute_list_read(attribute_list *out, const cli_args *a)
{
    const char *list = cli_text(a, "attr");
    gx_attribute_type type;
    *out = (attribute_list){0};
    if (!list)
        return 0;
    if (!(out->names = strdup(list)))
        return cli_fail(GX_ENOMEM, "no memory for the names of attributes");
    for (char *p = out->names, *next; p; p = next) {
        if ((next = strchr(p, ',')))
            *next++ = 0;
        char *colon = strchr(p, ':'), *more = colon ? strchr(colon + 1, ':') : NULL;
        if (!colon)
            return cli_usage(a, "--attr=%s: no type: write NAME:TYPE, as in year:int", p);
        *colon = 0;
        if (more)
            *more++ = 0;
        if (!gx_attribute_type_find(colon + 1, &type))
            return cli_usage(a,
                             "--attr=%s:%s: there is no such type; it is one of int, float, date, keyword, "
                             "keywords, bool",
                             p, colon + 1);
        if (out->n == GX_MAX_ATTRIBUTES)
            return cli_usage(a, "--attr: more than %u attributes", GX_MAX_ATTRIBUTES);
        gx_error err = {0};
        if (more && gx_bitmap_options_read(&out->bitmaps[out->n], more, &err))
            return cli_usage(a, "--attr=%s:%s: %s", p, colon + 1, err.text);
        out->attributes[out->n++] = (gx_attribute){p, type};
    }
    return 0;
}

void attribute_list_free(attribute_list *l)
{
    free(l->names);
    *l = (attribute_list){0};
}
