#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/cpu_search.h"
#include "query/topk.h"

#define CANCEL_EVERY 1024u /* blocks */

static gx_status reserve(gx_cpu_searcher *s, gx_error *err)
{
    const size_t n = (size_t)s->ix->n_docs + 1;
    if (!s->scores)
        s->scores = calloc(n, sizeof *s->scores);
    if (!s->holders)
        s->holders = calloc(n, sizeof *s->holders);
    if (!s->scores || !s->holders)
        return gx_fail(err, GX_ENOMEM, "no memory for the accumulators of %u documents", s->ix->n_docs);
    return GX_OK;
}

/* Add every posting of one term. False: cancelled. */
static bool accumulate(gx_cpu_searcher *s, const gx_plan *plan, const gx_plan_term *t)
{
    const gx_list l = gx_index_list(s->ix, t->list);
    uint32_t *docids = s->scratch.docids, *tfs = s->scratch.tfs;
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        if (plan->cancel && j % CANCEL_EVERY == 0 && plan->cancel(plan->user))
            return false;
        const uint32_t n = gx_cpu_decode_docids(s->kernels, &l, j, docids);
        gx_list_decode_tfs(&l, j, tfs);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t d = docids[i];
            if (d >= s->ix->n_docs)
                continue;
            s->scores[d] += gx_bm25_impact(t->w, tfs[i], gx_bm25_K(plan->norm, s->ix->doc_lens[d]));
            ++s->holders[d];
        }
    }
    s->work.blocks_decoded += l.n_blocks;
    return true;
}

gx_status gx_cpu_exhaust(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, gx_hits *hits, gx_error *err)
{
    const uint32_t min_holders = op == GX_OP_AND ? plan->n_terms : 1, n_docs = s->ix->n_docs;
    gx_topk top = {hits->keys, plan->k, 0};
    bool going = true;
    gx_status st = reserve(s, err);
    if (st != GX_OK)
        return st;
    for (uint32_t i = 0; i < plan->n_terms && going; ++i)
        going = accumulate(s, plan, &plan->terms[i]);
    for (uint32_t d = 0; d < n_docs && going; ++d) {
        if (s->holders[d] >= min_holders)
            gx_topk_push(&top, gx_key(s->scores[d], d));
    }
    gx_topk_sort(&top);
    hits->n = top.n;
    memset(s->scores, 0, (size_t)n_docs * sizeof *s->scores);
    memset(s->holders, 0, (size_t)n_docs * sizeof *s->holders);
    return going ? GX_OK : gx_fail(err, GX_ECANCELLED, "the search was cancelled");
}
