#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/memory/huge_pages.h"
#include "engine/status.h"
#include "query/cpu/search.h"
#include "query/filter/mask.h"
#include "query/score/topk.h"

#define CANCEL_EVERY 1024u /* blocks that are read between two calls of cancel */
#define STRIDE 64u         /* documents whose best score is compared first */

_Static_assert(STRIDE <= GX_CPU_SCORES_SLACK, "a stride that begins at a document can be read");

double gx_cpu_lap(gx_cpu_searcher *s, gx_step step, double since)
{
    const double now = gx_clock_seconds();
    s->work.steps[step] += now - since;
    return now;
}

uint32_t gx_cpu_decode_blocks(gx_cpu_searcher *s, const gx_list *l, uint32_t j, uint32_t *n)
{
    const uint32_t most = GX_MAX_BLOCK / l->block_len, left = l->n_blocks - j, n_blocks = left < most ? left : most;
    *n = 0;
    for (uint32_t i = 0; i < n_blocks; ++i) {
        gx_list_decode_tfs(l, j + i, s->scratch.tfs + *n);
        *n += gx_cpu_decode_docids(s->kernels, l, j + i, s->scratch.docids + *n);
    }
    return n_blocks;
}

/* OR needs the scores alone. An impact is at least 1, so that a score of 0 tells that no list holds
 * the document. */
gx_status gx_cpu_reserve_accumulators(gx_cpu_searcher *s, gx_op op, gx_error *err)
{
    const size_t n = (size_t)s->ix->n_docs + GX_CPU_SCORES_SLACK;
    if (!s->scores)
        s->scores = gx_huge_alloc(n * sizeof *s->scores);
    if (!s->match_counts && op == GX_OP_AND)
        s->match_counts = calloc(n, sizeof *s->match_counts);
    if (!s->scores || (!s->match_counts && op == GX_OP_AND))
        return gx_fail(err, GX_ENOMEM, "no memory for the accumulators of %u documents", s->ix->n_docs);
    return GX_OK;
}

/* Add the impact of every posting of one term. match_counts may be NULL. False if the search was
 * cancelled. */
static bool accumulate(gx_cpu_searcher *s, const gx_plan *plan, const gx_plan_term *t, uint16_t *match_counts)
{
    const gx_list l = gx_index_list(s->ix, t->list);
    uint32_t *docids = s->scratch.docids, *tfs = s->scratch.tfs;
    double at = gx_clock_seconds();
    for (uint32_t j = 0; j < l.n_blocks;) {
        uint32_t n;
        if (plan->cancel && j % CANCEL_EVERY == 0 && plan->cancel(plan->user))
            return false;
        j += gx_cpu_decode_blocks(s, &l, j, &n);
        at = gx_cpu_lap(s, GX_STEP_DECOMPRESS, at);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t d = docids[i];
            if (d >= s->ix->n_docs)
                continue;
            s->scores[d] += gx_bm25_impact(t->w, tfs[i], gx_bm25_K(plan->norm, s->ix->doc_lens[d]));
            if (match_counts)
                ++match_counts[d];
        }
        at = gx_cpu_lap(s, GX_STEP_SCORE, at);
    }
    s->work.blocks_decoded += l.n_blocks;
    return true;
}

static uint32_t max_score(const uint32_t *scores)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < STRIDE; ++i)
        most = scores[i] > most ? scores[i] : most;
    return most;
}

/* Offer every document to top that at least min_holders lists hold and that the mask allows (NULL:
 * all are allowed). Most strides have no score that is high enough, and are skipped. */
static void select_top_k(const gx_cpu_searcher *s, const uint16_t *match_counts, uint32_t min_holders,
                         const gx_mask *mask, gx_topk *top)
{
    const uint32_t n_docs = s->ix->n_docs;
    for (uint32_t first = 0; first < n_docs; first += STRIDE) {
        const uint32_t least = gx_key_score(gx_topk_threshold(top));
        const uint32_t n = n_docs - first < STRIDE ? n_docs - first : STRIDE;
        if (max_score(s->scores + first) < (least ? least : 1))
            continue;
        for (uint32_t d = first; d < first + n; ++d) {
            if (s->scores[d] && (!match_counts || match_counts[d] >= min_holders) && (!mask || gx_mask_has(mask, d)))
                gx_topk_push(top, gx_key(s->scores[d], d));
        }
        if (n_docs - first <= STRIDE)
            break;
    }
}

gx_status gx_cpu_exhaust(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, gx_hits *hits, gx_error *err)
{
    gx_topk top = {hits->keys, plan->k, 0};
    bool going = true;
    gx_status st = gx_cpu_reserve_accumulators(s, op, err);
    if (st != GX_OK)
        return st;
    uint16_t *match_counts = op == GX_OP_AND ? s->match_counts : NULL;
    for (uint32_t i = 0; i < plan->n_terms && going; ++i)
        going = accumulate(s, plan, &plan->terms[i], match_counts);
    double t = gx_clock_seconds();
    if (going)
        select_top_k(s, match_counts, plan->n_terms, plan->mask, &top);
    gx_topk_sort(&top);
    hits->n = top.n;
    t = gx_cpu_lap(s, GX_STEP_TOP_K, t);
    memset(s->scores, 0, (size_t)s->ix->n_docs * sizeof *s->scores);
    if (match_counts)
        memset(match_counts, 0, (size_t)s->ix->n_docs * sizeof *match_counts);
    gx_cpu_lap(s, GX_STEP_INITIALIZE, t);
    return going ? GX_OK : gx_fail(err, GX_ECANCELLED, "the search was cancelled");
}
