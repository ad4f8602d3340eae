#include "tools/cli/shown_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gx_status refuse(gx_error *err, const char *text)
{
    *err = (gx_error){.status = GX_EUSAGE};
    snprintf(err->text, sizeof err->text, "%s", text);
    return GX_EUSAGE;
}

static gx_status add_name(shown_list *l, const gx_index *ix, const char *name, size_t len, gx_error *err)
{
    uint32_t number;
    const gx_status st = gx_index_find_attribute(ix, name, len, &number, err);
    if (st)
        return st;
    for (uint32_t i = 0; i < l->n; ++i) {
        if (l->numbers[i] == number)
            return refuse(err, "an attribute is named twice");
    }
    l->numbers[l->n++] = number;
    return GX_OK;
}

gx_status shown_list_read(shown_list *out, const gx_index *ix, const char *text, gx_error *err)
{
    shown_list l = {.text = text ? strdup(text) : NULL};
    gx_status st = GX_OK;
    *out = (shown_list){0};
    if (!text)
        return GX_OK;
    if (!l.text) {
        *err = (gx_error){.status = GX_ENOMEM};
        snprintf(err->text, sizeof err->text, "no memory for names of attributes");
        return GX_ENOMEM;
    }
    if (gx_index_n_attributes(ix) == 0) {
        st = refuse(err, "the index has no attributes; gpuidx build --attr keeps them");
    } else if (strcmp(text, "all") == 0) {
        for (uint32_t i = 0; i < gx_index_n_attributes(ix); ++i)
            l.numbers[l.n++] = i;
    } else {
        for (const char *p = text; st == GX_OK;) {
            const size_t len = strcspn(p, ",");
            st = add_name(&l, ix, p, len, err);
            if (!p[len])
                break;
            p += len + 1;
        }
    }
    if (st)
        shown_list_free(&l);
    else
        *out = l;
    return st;
}

void shown_list_free(shown_list *l)
{
    free(l->text);
    *l = (shown_list){0};
}
