#include "tools/cli/facet_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gx_status no_memory(gx_error *err)
{
    *err = (gx_error){.status = GX_ENOMEM};
    snprintf(err->text, sizeof err->text, "no memory for facets");
    return GX_ENOMEM;
}

static gx_status read_all(facet_list *l, gx_error *err)
{
    gx_status st = GX_OK;
    for (char *p = l->cut, *next; p && st == GX_OK; p = next) {
        if ((next = strchr(p, ',')))
            *next++ = 0;
        st = gx_facet_read(&l->facets[l->n], p, err);
        l->n += st == GX_OK;
    }
    return st;
}

gx_status facet_list_read(facet_list *out, const gx_index *ix, const char *text, gx_error *err)
{
    facet_list l = {0};
    size_t most = 1;
    *out = l;
    for (const char *p = text; p && (p = strchr(p, ',')); ++p)
        ++most;
    if (!text)
        return GX_OK;
    l.text = strdup(text);
    l.cut = strdup(text);
    l.facets = calloc(most, sizeof *l.facets);
    gx_status st = l.text && l.cut && l.facets ? read_all(&l, err) : no_memory(err);
    if (st == GX_OK)
        st = gx_facets_check(ix, l.facets, l.n, err);
    if (st == GX_OK)
        *out = l;
    else
        facet_list_free(&l);
    return st;
}

void facet_list_free(facet_list *l)
{
    free(l->text);
    free(l->cut);
    free(l->facets);
    *l = (facet_list){0};
}
