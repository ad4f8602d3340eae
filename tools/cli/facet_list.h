/* facet_list.h: the values of --facet and --sums: a gx_facet_list, and the documents that it counts.
 */
#ifndef GX_TOOLS_CLI_FACET_LIST_H
#define GX_TOOLS_CLI_FACET_LIST_H

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/document_filter.h"

typedef struct facet_list {
    char *text, *sums; /* as they were given, or NULL */
    gx_facet_list *list;
    const gx_facet *facets; /* [n] */
    uint32_t n;
    bool leaves_out; /* one of them leaves out its own filter */
} facet_list;

/* Read the texts (NULL: no facets; no sums) and check them against the index. *out receives the list, which the
 * caller frees. GX_EUSAGE, GX_ENOMEM: *out is empty. */
gx_status facet_list_read(facet_list *out, const gx_index *ix, const char *text, const char *sums, gx_error *err);
void facet_list_free(facet_list *l);

/* Count the matches of a query under opt, whose mask is that of `filter`. As gx_count_facets. A facet that leaves out
 * its own filter leaves it out of the filter's expression. The engine is the session's. */
gx_status facet_list_count(gx_facets **out, const facet_list *l, gx_session *s, gx_engine *en, const gx_index *ix,
                           const gx_query *query, const gx_query_options *opt, const document_filter *filter,
                           gx_error *err);

#endif
