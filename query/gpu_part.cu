/* Plans as the kernels read them: lists in order of their bounds, first thresholds, items. */
#include "query/gpu_part.cuh"

namespace gx {

static void describe_term(const gpu_state *s, const gx_plan_term *t, uint32_t query, gpu_term *out)
{
    const gx_index *ix = s->ix;
    const gx_list_entry *e = &ix->lists[t->list];
    const uint32_t n_blocks = (e->df - 1) / ix->block_len + 1, number = s->long_of[t->list];
    const gx_coding c = ix->header->codings[e->coding];
    out->at = {e->first_block, n_blocks, 0, NO_TABLE_SHIFT};
    out->payload = {(uint64_t)e->payload_hi << 32 | e->payload_lo, ix->docid_ends[e->first_block + n_blocks - 1], e->df};
    out->filter = {0, NO_MAP_SHIFT, 0, NO_CLASSES};
    out->weight = {t->w, 0, query, c.docids | (uint32_t)e->docid_param << 8 | (uint32_t)c.tfs << 16 | (uint32_t)e->tf_param << 24};
    if (number != UINT32_MAX) {
        const long_list *l = &s->longs[number];
        out->at.table = l->table;
        out->at.table_shift = l->table_shift;
        out->filter.map = l->map;
        out->filter.map_shift = l->map_shift;
        out->filter.classes = l->classes;
    }
}

/* No impact of weight w is greater, given the greatest tf / (tf + K): both sides are within 2^-21 of the exact values. */
static uint32_t list_bound(float w, float best)
{
    return (uint32_t)ceil((double)w * best * (1 + 0x1p-20)) + 2;
}

/* At least k of the list's postings have this impact or more; 1 if nothing better is known. */
static uint32_t kth_impact(const gpu_state *s, const bounds *b, const gx_plan_term *t, uint32_t k)
{
    const uint32_t number = s->long_of[t->list];
    if (number == UINT32_MAX || t->df < k)
        return 1;
    for (uint32_t i = 0; i < N_KTH; ++i) {
        if (kth_at[i] >= k) {
            const double x = (double)t->w * b->kth[(size_t)number * N_KTH + i] / 256 * (1 - 0x1p-20) - 2;
            return x > 1 ? (uint32_t)x : 1;
        }
    }
    return 1;
}

/* Lists by falling bound, the longer later: an insertion sort for the few, qsort for the many. */
static int by_bound(const void *a, const void *b)
{
    const gpu_term *x = (const gpu_term *)a, *y = (const gpu_term *)b;
    if (x->filter.bound != y->filter.bound)
        return x->filter.bound > y->filter.bound ? -1 : 1;
    if (x->payload.df != y->payload.df)
        return x->payload.df < y->payload.df ? -1 : 1;
    return (x->at.first_block > y->at.first_block) - (x->at.first_block < y->at.first_block);
}

static void sort_terms(gpu_term *t, uint32_t n)
{
    if (n > 16) {
        qsort(t, n, sizeof *t, by_bound);
        return;
    }
    for (uint32_t i = 1; i < n; ++i) {
        const gpu_term x = t[i];
        uint32_t j = i;
        for (; j > 0 && by_bound(&x, &t[j - 1]) < 0; --j)
            t[j] = t[j - 1];
        t[j] = x;
    }
}

/* Fill in one query of the part. drivers: lists that make items. */
void describe_query(const gpu_state *s, part *p, const gx_plan *plan, const bounds *b, const job *j, bool all, uint32_t after,
                    uint32_t *drivers)
{
    const uint32_t q = p->n_queries++, n = plan->n_terms;
    gpu_query *Q = &p->queries[q];
    gpu_term *t = &p->terms[p->n_terms];
    memset(Q, 0, sizeof *Q);
    Q->n_terms = n;
    Q->first_term = p->n_terms;
    Q->flags = (all ? QUERY_AND : 0) | (plan->prune ? 0 : QUERY_EXHAUSTIVE);
    Q->k = plan->k;
    Q->after = after;
    Q->c0 = plan->norm.c0;
    Q->c1 = plan->norm.c1;
    Q->lossy = plan->norm.lossy;
    Q->least_K = gx_bm25_K(plan->norm, s->ix->min_doc_len);
    Q->step = plan->k / 8 > 1 ? plan->k / 8 : 1;
    uint64_t room = j->roomy || !plan->prune ? s->ix->n_docs : 4096 + 4ull * plan->k;
    room = room < s->ix->n_docs ? room : s->ix->n_docs;
    Q->capacity = (uint32_t)room;
    Q->candidates = p->n_candidates;
    Q->answer = p->n_answers;
    p->n_candidates += room;
    p->n_answers += plan->k;
    p->n_terms += n;
    for (uint32_t i = 0; i < n; ++i)
        describe_term(s, &plan->terms[i], q, &t[i]);
    *drivers = 0;
    Q->first_threshold = 1;
    if (!plan->prune) {
        p->any_exhaustive = true;
        return;
    }
    p->any_select |= plan->k > QUICK_K;
    uint32_t total = 0, first = j->threshold > 1 ? j->threshold : 1;
    for (uint32_t i = 0; i < n; ++i) {
        t[i].filter.bound = list_bound(plan->terms[i].w, b->best[plan->terms[i].list]);
        total += t[i].filter.bound;
        const uint32_t kth = all && n > 1 ? 1 : kth_impact(s, b, &plan->terms[i], plan->k);
        first = first > kth ? first : kth;
    }
    if (!all)
        sort_terms(t, n);
    uint32_t rest = total;
    for (uint32_t i = 0; i < n; ++i) {
        if (rest >= first && (!all || i == 0))
            *drivers = i + 1;
        rest -= t[i].filter.bound;
        t[i].weight.rest = rest;
    }
    Q->first_threshold = first;
    Q->bin_base = float_bits((float)first) - 1; /* at most one step above what rounding down gives */
    const uint32_t range = float_bits((float)total) + 1 - Q->bin_base;
    while (range >> Q->bin_shift >= BINS)
        ++Q->bin_shift;
}

void describe_items(part *p, uint32_t first, uint32_t n, bool are_long, const uint32_t *drivers, uint32_t item_blocks,
                    uint32_t *active)
{
    uint32_t n_active = 0, deepest = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (drivers[first + i] && (p->queries[first + i].n_terms > NEAR_TERMS) == are_long) {
            active[n_active++] = first + i;
            deepest = deepest > drivers[first + i] ? deepest : drivers[first + i];
        }
    }
    for (uint32_t r = 0; r < deepest; ++r) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < n_active; ++i) {
            if (drivers[active[i]] > r)
                active[kept++] = active[i];
        }
        n_active = kept;
        bool more = true;
        for (uint32_t from = 0, size = 1; more; from += size, size = from > 1 ? from : 1) {
            more = false;
            for (uint32_t i = 0; i < n_active; ++i) {
                gpu_query *Q = &p->queries[active[i]];
                const uint32_t term = Q->first_term + r;
                const uint32_t chunks = (p->terms[term].at.n_blocks + item_blocks - 1) / item_blocks;
                if (from >= chunks)
                    continue;
                const uint32_t step = from > 1 ? from : 1, count = chunks - from < step ? chunks - from : step;
                p->runs[p->n_runs++] = {term, from, p->n_items};
                p->n_items += count;
                Q->n_items += count;
                more |= from + count < chunks;
            }
        }
    }
}

/* Most runs that a list of n blocks can make: 2 + log2 of its chunks. */
static uint32_t runs_of(uint32_t n_blocks)
{
    return 34 - (uint32_t)__builtin_clz(n_blocks);
}

need job_need(const gx_index *ix, const gx_plan *plan, const job *j)
{
    const uint32_t times = j->op == GX_OP_AND_OR ? 2 : 1, blocks = most_item_blocks(ix);
    uint64_t room = j->roomy || !plan->prune ? ix->n_docs : 4096 + 4ull * plan->k;
    room = room < ix->n_docs ? room : ix->n_docs;
    need n = {times, times * plan->n_terms, 0, 0, times * room, times * (uint64_t)plan->k};
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const uint32_t b = (plan->terms[i].df - 1) / ix->block_len + 1;
        n.runs += times * runs_of(b);
        n.items += times * ((b + blocks - 1) / blocks);
    }
    return n;
}

} // namespace gx
