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

/* ---- fields ---- */

/* Read what stands behind a name: "w=3". */
static int read_weight(const cli_args *a, gx_field *f, const char *text)
{
    char *end;
    if (strncmp(text, "w=", 2) != 0)
        return cli_usage(a, "--field=%s:%s: behind the name may stand :w=N alone, a fixed weight", f->name, text);
    const unsigned long w = strspn(text + 2, "0123456789") ? strtoul(text + 2, &end, 10) : 0;
    if (w < 1 || w > 1000 || *end)
        return cli_usage(a, "--field=%s:%s: a fixed weight is a whole number from 1 to 1,000", f->name, text);
    f->weight = (uint32_t)w;
    return 0;
}

int field_list_read(field_list *out, const cli_args *a)
{
    const char *list = cli_text(a, "field");
    *out = (field_list){0};
    if (!list)
        return 0;
    if (!(out->text = strdup(list)))
        return cli_fail(GX_ENOMEM, "no memory for the names of fields");
    for (char *p = out->text, *next; p; p = next) {
        if ((next = strchr(p, ',')))
            *next++ = 0;
        if (out->n == GX_MAX_INDEX_FIELDS)
            return cli_usage(a, "--field: more than %u fields", GX_MAX_INDEX_FIELDS);
        gx_field *f = &out->fields[out->n];
        char *colon = strchr(p, ':');
        *f = (gx_field){p, 0};
        if (colon)
            *colon++ = 0;
        const int code = colon ? read_weight(a, f, colon) : 0;
        if (code)
            return code;
        if (out->n && (f->weight != 0) != out->fixed)
            return cli_usage(a, "--field=%s: all fields have a fixed weight (:w=N), or none has", p);
        out->fixed = f->weight != 0;
        out->names[out->n++] = p;
    }
    return 0;
}

void field_list_free(field_list *l)
{
    free(l->text);
    *l = (field_list){0};
}
