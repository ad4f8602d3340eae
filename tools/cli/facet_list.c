#include "tools/cli/facet_list.h"

#include <stdlib.h>
#include <string.h>

gx_status facet_list_read(facet_list *out, const gx_index *ix, const char *text, const char *sums, gx_error *err)
{
    facet_list l = {0};
    *out = l;
    if (!text && !sums)
        return GX_OK;
    gx_status st = gx_facet_list_read(&l.list, ix, text, sums, err);
    if (st != GX_OK)
        return st;
    l.text = text ? strdup(text) : NULL;
    l.sums = sums ? strdup(sums) : NULL;
    l.facets = gx_facet_list_get(l.list, &l.n);
    for (uint32_t i = 0; i < l.n; ++i)
        l.leaves_out = l.leaves_out || l.facets[i].exclude_own;
    if ((text && !l.text) || (sums && !l.sums)) {
        facet_list_free(&l);
        return err->status = GX_ENOMEM;
    }
    *out = l;
    return GX_OK;
}

void facet_list_free(facet_list *l)
{
    free(l->text);
    free(l->sums);
    gx_facet_list_close(l->list);
    *l = (facet_list){0};
}

/* The mask of the filter's files of ids, without its expression. *out is NULL where there are none. */
static gx_status open_mask_of_ids(gx_mask **out, gx_engine *en, const gx_index *ix, const document_filter *filter,
                                  gx_error *err)
{
    document_filter ids;
    *out = NULL;
    if (!filter->only && !filter->except)
        return GX_OK;
    if (document_filter_read(&ids, ix, filter->only, filter->except, NULL))
        return err->status = GX_EIO; /* which has been told */
    const gx_status st = ids.words ? gx_mask_open(out, en, ids.words, err) : GX_OK;
    document_filter_free(&ids);
    return st;
}

gx_status facet_list_count(gx_facets **out, const facet_list *l, gx_session *s, gx_engine *en, const gx_index *ix,
                           const gx_query *query, const gx_query_options *opt, const document_filter *filter,
                           gx_error *err)
{
    const gx_filter_options ids = {sizeof ids, document_filter_read_ids, (void *)&ix};
    gx_query under = *query;
    gx_query_options own = *opt;
    gx_filter *expression = NULL;
    gx_mask *mask = NULL;
    if (!l->leaves_out || !filter->expression)
        return gx_count_facets(out, s, query, opt, l->facets, l->n, err);
    gx_status st = gx_filter_open(&expression, ix, filter->expression, strlen(filter->expression), &ids, err);
    if (st == GX_OK)
        st = open_mask_of_ids(&mask, en, ix, filter, err);
    under.filter = expression;
    own.mask = mask;
    if (st == GX_OK)
        st = gx_count_facets(out, s, &under, &own, l->facets, l->n, err);
    gx_mask_close(mask);
    gx_filter_close(expression);
    return st;
}
