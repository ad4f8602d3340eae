/* session_passes.c: plans that need not be answered exactly: by a first pass of some terms, whose candidates get the
 * scores of all (approximate.h). */
#include "query/engine/session_state.h"

#include <stdlib.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/plan/approximate.h"
#include "query/score/topk.h"

static bool reserve_candidates(gx_session *s, size_t n)
{
    size_t max = s->max_candidates;
    if (n <= max)
        return true;
    if (!gx_reserve(&s->candidates, &max, n, sizeof *s->candidates) ||
        !gx_resize(&s->candidate_docids, max, sizeof *s->candidate_docids) ||
        !gx_resize(&s->candidate_scores, max, sizeof *s->candidate_scores))
        return false;
    s->max_candidates = max;
    return true;
}

static int by_docid(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Of the candidates the plan's k best, by the scores of all its terms. */
static gx_status choose_best(gx_session *s, const gx_plan *plan, const gx_plan *rest, const gx_hits *candidates,
                             gx_hits *hits, gx_error *err)
{
    const uint32_t n = candidates->n;
    gx_topk best = {hits->keys, plan->k, 0};
    if (s->parts)
        return gx_part_sessions_choose_best(s->parts, plan, rest, candidates, hits, err);
    if (!reserve_candidates(s, n))
        return gx_fail(err, GX_ENOMEM, "no memory for %u candidates", n);
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t key = candidates->keys[i];
        s->candidates[i] = (uint64_t)gx_key_docid(key) << 32 | gx_key_score(key);
    }
    qsort(s->candidates, n, sizeof *s->candidates, by_docid);
    for (uint32_t i = 0; i < n; ++i) {
        s->candidate_docids[i] = (uint32_t)(s->candidates[i] >> 32);
        s->candidate_scores[i] = (uint32_t)s->candidates[i];
    }
    gx_session_add_scores(s, rest, s->candidate_docids, s->candidate_scores, n);
    for (uint32_t i = 0; i < n; ++i)
        gx_topk_push(&best, gx_key(s->candidate_scores[i], s->candidate_docids[i]));
    gx_topk_sort(&best);
    hits->n = n < plan->k ? n : plan->k;
    return GX_OK;
}

/* The plans of which a first pass has found too little, by all terms. */
static gx_status run_again(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, const gx_two_passes *passes,
                           gx_error *err)
{
    gx_batch_buffer *b = &s->passes;
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (passes[i].first.k == 0 || b->hits[i].n >= plans[i].k)
            continue;
        b->plans[m] = plans[i];
        b->plans[m].approximate = 0;
        b->hits[m] = (gx_hits){hits[i].keys, 0, hits[i].highs};
        s->candidate_docids[m++] = i;
    }
    const gx_status st = m ? gx_session_run_exact(s, b->plans, m, b->hits, err) : GX_OK;
    for (uint32_t j = 0; j < m && st == GX_OK; ++j)
        hits[s->candidate_docids[j]].n = b->hits[j].n;
    return st;
}

/* First passes, and beside them the plans that have none; passes[n] are all zero. */
static gx_status run_passes(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_two_passes *passes,
                            gx_error *err)
{
    const uint32_t n_docs = s->en->ix->n_docs;
    gx_batch_buffer *b = &s->passes;
    size_t n_keys = 0;
    for (uint32_t i = 0; i < n; ++i)
        n_keys += plans[i].approximate > 0 ? gx_first_pass_k(&plans[i], n_docs) : 0;
    gx_status st = gx_batch_buffer_reserve(b, n, n_keys, err);
    if (st == GX_OK && !reserve_candidates(s, n))
        st = gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    uint64_t *keys = b->keys;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        b->plans[i] = plans[i];
        b->hits[i] = hits[i];
        if (!gx_plan_is_approximate(&plans[i]))
            continue;
        if ((st = gx_two_passes_make(&passes[i], &plans[i], n_docs, err)) != GX_OK)
            break;
        b->plans[i] = passes[i].first;
        b->hits[i] = (gx_hits){keys, 0, b->highs ? b->highs + (keys - b->keys) : NULL};
        keys += passes[i].first.k;
    }
    if (st == GX_OK)
        st = gx_session_run_exact(s, b->plans, n, b->hits, err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if (passes[i].first.k == 0)
            hits[i].n = b->hits[i].n;
        else if (b->hits[i].n >= plans[i].k)
            st = choose_best(s, &plans[i], &passes[i].rest, &b->hits[i], &hits[i], err);
    }
    return st == GX_OK ? run_again(s, plans, n, hits, passes, err) : st;
}

gx_status gx_session_run_any(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_status st = GX_OK;
    bool approximate = false;
    for (uint32_t i = 0; i < n; ++i)
        approximate = approximate || gx_plan_is_approximate(&plans[i]);
    if (!approximate)
        return gx_session_run_exact(s, plans, n, hits, err);
    for (uint32_t begin = 0, end; begin < n && st == GX_OK; begin = end) {
        size_t n_keys = 0;
        for (end = begin; end < n && (end == begin || n_keys < GX_SLICE_KEYS); ++end)
            n_keys += gx_first_pass_k(&plans[end], s->en->ix->n_docs);
        gx_two_passes *passes = calloc(end - begin, sizeof *passes);
        st = passes ? run_passes(s, plans + begin, end - begin, hits + begin, passes, err)
                    : gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
        for (uint32_t i = 0; passes && i < end - begin; ++i)
            gx_two_passes_free(&passes[i]);
        free(passes);
    }
    return st;
}
