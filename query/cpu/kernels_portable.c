/* The kernels in plain C: the reference of the others, and what other processors run. */
#include "query/cpu/kernels.h"

static bool any_tf_reaches(const uint32_t *tfs, uint32_t n, uint32_t min_tf)
{
    for (uint32_t i = 0; i < n; ++i) {
        if (tfs[i] >= min_tf)
            return true;
    }
    return false;
}

static void append_decoded_block(gx_cpu_columns *c, const uint32_t *docids, const uint32_t *tfs, uint32_t n,
                                 const gx_cpu_bound *b)
{
    uint32_t to = c->n;
    for (uint32_t i = 0; i < n; ++i) {
        if (tfs[i] < b->min_tf || docids[i] >= c->n_docs)
            continue;
        c->doc[to] = docids[i];
        c->tf[to] = tfs[i];
        c->score[to] = gx_cpu_bound_of(b, tfs[i]);
        c->remaining_ub[to] = b->remaining_ub;
        c->list_mask[to++] = UINT32_MAX;
    }
    c->n = to;
}

static void apply_presence_map(gx_cpu_columns *c, const uint32_t *map, uint32_t shift, uint32_t mask, uint32_t ub,
                               uint32_t bit, uint32_t T, bool all)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < c->n; ++i) {
        const uint32_t doc = c->doc[i], slot = doc >> shift, there = map[slot / 32 & mask] >> slot % 32 & 1;
        const uint32_t remaining_ub = c->remaining_ub[i] - (there ? 0 : ub), score = c->score[i];
        c->doc[to] = doc;
        c->tf[to] = c->tf[i];
        c->score[to] = score;
        c->remaining_ub[to] = remaining_ub;
        c->list_mask[to] = c->list_mask[i] & ~(there ? 0 : bit);
        to += (all ? there : 1) & (score + remaining_ub >= T);
    }
    c->n = to;
}

static void score_own(gx_cpu_columns *c, const uint32_t *lens, gx_scorer norm, float w, uint32_t T)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < c->n; ++i) {
        const uint32_t doc = c->doc[i], remaining_ub = c->remaining_ub[i];
        const float product = norm.c1 * (float)lens[doc], K = norm.c0 + product;
        const uint32_t score = gx_bm25_impact(w, c->tf[i], K);
        c->doc[to] = doc;
        c->score[to] = score;
        c->remaining_ub[to] = remaining_ub;
        c->list_mask[to] = c->list_mask[i];
        c->K[to] = K;
        to += score + remaining_ub >= T;
    }
    c->n = to;
}

static uint32_t dense_positions(const gx_cpu_columns *c, gx_cpu_dense d, uint32_t bit, uint32_t *pos)
{
    return gx_cpu_dense_positions_scalar(c, d, bit, pos);
}

static void add_list_score(gx_cpu_columns *c, const uint32_t *tfs, float w, uint32_t ub, uint32_t bit, uint32_t T,
                           bool all)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < c->n; ++i) {
        const float K = c->K[i];
        const uint32_t score = c->score[i] + (tfs[i] ? gx_bm25_impact(w, tfs[i], K) : 0);
        const uint32_t remaining_ub = c->remaining_ub[i] - (c->list_mask[i] & bit ? ub : 0);
        c->doc[to] = c->doc[i];
        c->score[to] = score;
        c->remaining_ub[to] = remaining_ub;
        c->list_mask[to] = c->list_mask[i];
        c->K[to] = K;
        to += (!all || tfs[i]) & (score + remaining_ub >= T);
    }
    c->n = to;
}

static uint32_t count_below(const uint32_t *docids, uint32_t n, uint32_t doc)
{
    uint32_t lo = 0;
    while (n) {
        const uint32_t half = n / 2;
        if (docids[lo + half] < doc) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

static float saturate_tfs(const uint32_t *docids, const uint32_t *tfs, uint32_t n, uint32_t n_docs,
                          const uint32_t *lens, gx_scorer norm, float *parts, float *min_K)
{
    float most = 0, least = INFINITY;
    for (uint32_t i = 0; i < n; ++i) {
        if (docids[i] >= n_docs) {
            parts[i] = 0;
            continue;
        }
        const float product = norm.c1 * (float)lens[docids[i]], K = norm.c0 + product, f = (float)tfs[i];
        parts[i] = f / (f + K);
        most = parts[i] > most ? parts[i] : most;
        least = K < least ? K : least;
    }
    *min_K = least;
    return most;
}

const gx_cpu_kernels gx_cpu_portable = {
    "portable",
    "portable",
    NULL,
    0,
    0,
    NULL,
    any_tf_reaches,
    append_decoded_block,
    apply_presence_map,
    score_own,
    dense_positions,
    add_list_score,
    count_below,
    saturate_tfs,
};
