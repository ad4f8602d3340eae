/* warm.c: gx_engine_warm: the lists that the queries of a log use are counted for an engine. */
#include <stdlib.h>

#include "engine/status.h"
#include "query/engine/engine.h"
#include "query/log/query_log.h"

/* Count the lists of a query. A query that cannot be planned has none. */
static gx_status count_query(const gx_index *ix, const gx_log_query *q, uint32_t *counts, gx_error *err)
{
    const gx_query query = {.size = sizeof query,
                            .kind = q->terms ? GX_QUERY_TERMS : GX_QUERY_TEXT,
                            .text = q->text,
                            .len = q->len,
                            .terms = q->terms,
                            .n_terms = q->n_terms};
    const gx_query_options opt = GX_QUERY_OPTIONS;
    gx_plan plan;
    gx_boolean *match;
    const gx_status st = gx_plan_query(&plan, &match, ix, &query, &opt, err);
    if (st != GX_OK)
        return st == GX_EUSAGE || st == GX_EINPUT ? GX_OK : st;
    for (uint32_t i = 0; i < plan.n_terms; ++i)
        counts[plan.terms[i].list] += counts[plan.terms[i].list] < UINT32_MAX;
    gx_boolean_close(match);
    gx_plan_free(&plan);
    return GX_OK;
}

/* Count the lists of a log's queries. */
static gx_status count_log(const gx_index *ix, const char *path, const gx_log_options *opt, uint32_t *counts,
                           uint64_t *n_queries, gx_error *err)
{
    gx_log *log;
    gx_log_query q;
    bool more = true;
    gx_status st = gx_log_open(&log, path, opt, err);
    if (st != GX_OK)
        return st;
    for (;;) {
        st = gx_log_next(log, &q, &more, err);
        if (st == GX_EINPUT)
            continue;
        if (st != GX_OK || !more)
            break;
        if ((st = count_query(ix, &q, counts, err)) != GX_OK)
            break;
    }
    *n_queries = gx_log_get_counts(log).queries;
    gx_log_close(log);
    return st;
}

gx_status gx_engine_warm(gx_engine *en, const char *log, const gx_log_options *opt, uint64_t *n_queries, gx_error *err)
{
    gx_status st = GX_OK;
    uint64_t n = 0;
    gx_engine *part;
    gx_clear_error(err);
    for (uint32_t i = 0; st == GX_OK && (part = gx_engine_of_part(en, i)); ++i) {
        const gx_index *ix = gx_engine_index(part);
        uint32_t *counts = calloc(ix->n_terms + 1ull, sizeof *counts);
        st = counts ? count_log(ix, log, opt, counts, &n, err)
                    : gx_fail(err, GX_ENOMEM, "no memory to count the uses of %u lists", ix->n_terms);
        if (st == GX_OK)
            st = gx_engine_warm_lists(part, counts, err);
        free(counts);
    }
    if (st == GX_OK && n_queries)
        *n_queries = n;
    return st;
}
