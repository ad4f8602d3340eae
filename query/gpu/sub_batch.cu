/* Describes plans as the kernels read them: lists ordered by their bounds, first thresholds,
 * items. */
#include "query/gpu/likely.cuh"
#include "query/gpu/sub_batch.cuh"

#include "engine/lower_bound.h"

extern "C" {
#include "query/filter/mask.h"
#include "query/plan/phrase_program.h"
}

#include <algorithm>

namespace gx {

/* A query's tiles that are searched at the same time accept k candidates each before the threshold has
 * risen. They are many if a run has few queries. */
constexpr uint64_t TILED_CANDIDATES = 2048, TILED_CANDIDATES_A_HIT = 6, TIMES_IF_FEW = 8;

/* Returns the room for a query's candidates: max_candidates, since many are accepted before the
 * threshold has risen; or for a retry the number accepted before; or for an exhaustive search the
 * number of documents that can match. */
static uint32_t candidates_of(const gx_index *ix, const gx_plan *plan, const request *rq)
{
    uint64_t room = rq->candidates ? rq->candidates : max_candidates(plan->k, rq->op == GX_OP_AND_OR);
    if (rq->tiled && !rq->candidates)
        room = (TILED_CANDIDATES + TILED_CANDIDATES_A_HIT * (uint64_t)plan->k) * (rq->few ? TIMES_IF_FEW : 1);
    if (!plan->prune) {
        room = 0;
        for (uint32_t i = 0; i < plan->n_terms; ++i)
            room += plan->terms[i].df;
        room = room > plan->k ? room : plan->k;
    }
    return room < ix->n_docs ? (uint32_t)room : ix->n_docs;
}

void describe_term(const gpu_prepared_index *s, const gx_plan_term *t, uint32_t query, gpu_term *out)
{
    const gx_index *ix = s->ix;
    const gx_list_entry *e = &ix->lists[t->list];
    const uint32_t n_blocks = count_blocks(ix, e->df), number = s->aux_of[t->list];
    out->at = {e->first_block, n_blocks, 0, NO_TABLE_SHIFT};
    out->payload = {find_list(&s->payload, e, t->list), 0, e->df};
    out->filter = {0, NO_MAP_SHIFT, 0, NO_CLASSES};
    out->weight = {t->w, 0, query, list_codecs(*e, ix->header->codings[e->coding])};
    if (number != UINT32_MAX) {
        const list_aux *l = &s->aux_lists[number];
        out->at.table = l->table;
        out->at.table_shift = l->table_shift;
        out->filter.map = l->map;
        out->filter.map_shift = l->map_shift;
        out->filter.classes = l->classes;
        out->payload.tf_begin = l->tf_begin;
    } else {
        out->payload.tf_begin = ix->docid_ends[e->first_block + n_blocks - 1];
    }
}

/* Returns an upper bound of the impacts of weight w, given the greatest tf / (tf + K). Both
 * factors are within 2^-21 of the exact values. */
static uint32_t list_bound(float w, float best)
{
    return (uint32_t)((double)w * best * (1 + 0x1p-20)) + 3;
}

/* ---- the lists of a query ---- */

/* A term of the plan, to be sorted into the order of the query's lists. */
struct ranked_term {
    uint32_t bound, df, list, term;
};

/* Orders by falling bound, then shorter lists first. */
static int by_bound(const void *a, const void *b)
{
    const ranked_term *x = (const ranked_term *)a, *y = (const ranked_term *)b;
    if (x->bound != y->bound)
        return x->bound > y->bound ? -1 : 1;
    if (x->df != y->df)
        return x->df < y->df ? -1 : 1;
    return (x->list > y->list) - (x->list < y->list);
}

/* Insertion sort for a few terms, qsort for many. */
static void sort_ranked_terms(ranked_term *t, uint32_t n)
{
    if (n > 64) {
        qsort(t, n, sizeof *t, by_bound);
        return;
    }
    for (uint32_t i = 1; i < n; ++i) {
        const ranked_term x = t[i];
        uint32_t j = i;
        for (; j > 0 && by_bound(&x, &t[j - 1]) < 0; --j)
            t[j] = t[j - 1];
        t[j] = x;
    }
}

/* Documents of a filter that are searched in the time in which one posting of a list is, about. If the postings
 * have an early mask, documents of one run are; those of several take more time for each run. */
constexpr double DOCUMENTS_A_POSTING = 0.2;

/* Lets the documents of the query's filter take the place of the lists from some position on, if that takes
 * less time. */
static void describe_documents(gpu_prepared_index *s, sub_batch *p, const filter_groups *G, uint32_t q)
{
    gpu_query *const Q = &p->queries[q];
    const gpu_term *const t = &p->terms[Q->first_term];
    /* of the postings, those in blocks that are read */
    const double part = p->end_doc[q] ? (double)(p->end_doc[q] - p->first_doc[q]) / s->ix->n_docs : 1;
    const double cost = G->n / DOCUMENTS_A_POSTING * (Q->flags & QUERY_EARLY_MASK ? G->end - G->first : 1);
    double postings = 0, before = 0;
    for (uint32_t i = 0; i < p->n_essential[q]; ++i)
        postings += part * t[i].payload.df;
    uint32_t position = UINT32_MAX;
    double least = postings;
    for (uint32_t i = 0; i < p->n_essential[q]; ++i) {
        if (before + cost < least) {
            least = before + cost;
            position = i;
        }
        before += part * t[i].payload.df;
    }
    selected_documents *const D = &p->documents[p->n_documents];
    if (position == UINT32_MAX || !find_documents(&s->columns, G, D))
        return;
    D->position = position;
    D->query = q;
    D->bound = t[position].filter.bound + t[position].weight.remaining_ub;
    p->n_documents += 1;
    p->n_essential[q] = position;
    Q->n_items = D->n_items;
}

/* A filter that leaves a part of the docids alone, at most so much of them, limits the blocks that are read:
 * to find them takes the host about a microsecond a list. */
constexpr double LIMITING_PART = 0.6;

static void describe_limits(gpu_prepared_index *s, sub_batch *p, const filter_groups *G, uint32_t q)
{
    if (G->end_doc - G->first_doc <= LIMITING_PART * s->ix->n_docs) {
        p->first_doc[q] = G->first_doc;
        p->end_doc[q] = G->end_doc > G->first_doc ? G->end_doc : G->first_doc + 1;
    }
}

/* An early mask leaves at most this part of the documents that the blocks to be read can have: else it is not worth
 * its reading. */
constexpr double MOST_OF_AN_EARLY_MASK = 0.3;

/* Gives the query a bin that has the documents of its filter, as an early mask. */
static void describe_bin(gpu_prepared_index *s, sub_batch *p, const filter_groups *G, uint32_t q)
{
    gpu_query *const Q = &p->queries[q];
    const uint32_t n_docs = s->ix->n_docs, read = p->end_doc[q] ? p->end_doc[q] - p->first_doc[q] : n_docs;
    document_map m;
    if (Q->mask || !find_bin(&s->columns, G, &m) || m.share * n_docs > MOST_OF_AN_EARLY_MASK * read)
        return;
    Q->mask = m.words;
    Q->flags |= QUERY_EARLY_MASK | m.shift << QUERY_MASK_SHIFT;
    p->n_early += 1;
}

/* A mask of few documents is read early, too. */
static void describe_mask(const gpu_prepared_index *s, sub_batch *p, const gx_mask *mask, gpu_query *Q)
{
    if (!mask || mask->n > MOST_OF_AN_EARLY_MASK * s->ix->n_docs)
        return;
    Q->flags |= QUERY_EARLY_MASK;
    p->any_tests = true; /* the kernels that read tests read early masks */
    p->n_early += 1;
}

/* Chooses how the query's filter spares postings. */
static void describe_filter(gpu_prepared_index *s, sub_batch *p, const gx_filter *f, uint32_t q)
{
    filter_groups groups;
    find_groups(&s->columns, f, &groups);
    describe_limits(s, p, &groups, q);
    describe_bin(s, p, &groups, q);
    if (p->queries[q].n_terms <= SHORT_QUERY_TERMS && !p->phrases)
        describe_documents(s, p, &groups, q);
}

/* Writes the tests of a plan's filter behind the query's terms. */
static gx_status describe_tests(gpu_prepared_index *s, sub_batch *p, const gx_plan *plan, gpu_query *Q, double *share,
                                gx_error *err)
{
    filter_tests tests;
    *share = plan->mask ? (double)plan->mask->n / s->ix->n_docs : 1;
    if (!plan->filter)
        return GX_OK;
    if (!make_tests(&s->columns, plan->filter, &tests))
        return gx_fail(err, GX_ECUDA, "GPU: the filter needs a mask");
    memcpy(&p->terms[Q->first_term + Q->n_terms], tests.of, tests.n * sizeof *tests.of);
    Q->flags |= tests.n << QUERY_TESTS;
    p->any_tests |= tests.n > 0;
    *share *= tests.share;
    return GX_OK;
}

/* Describes the lists of a plan that may be pruned: their order, bounds and first threshold. share: of
 * all documents, those that it may return, about. */
static void describe_lists(const gpu_prepared_index *s, sub_batch *p, const query_form &form, const bounds *b,
                           uint32_t q, double share)
{
    const gx_plan *const plan = form.plan;
    const bool conjunctive = form.conjunctive, tiled = form.rq->tiled && !conjunctive;
    gpu_query *const Q = &p->queries[q];
    gpu_term *const t = &p->terms[Q->first_term];
    ranked_term order[GX_MAX_TERMS];
    /* k-th impacts of all documents are no lower bound under a mask or a filter */
    const bool known = !plan->mask && !plan->filter;
    const uint32_t n = plan->n_terms;
    /* the k best of a list are answers */
    const bool any_k = !conjunctive || (n == 1 && form.rq->op != GX_OP_AND_OR && !plan->program);
    const uint32_t kth = known && any_k ? find_kth(plan->k) : N_KTH;
    uint32_t likely = known || !any_k ? 1 : likely_threshold(s, b, plan, share, form.rq->guesses);
    uint32_t total = 0, first = form.rq->threshold > 1 ? form.rq->threshold : 1;
    /* an AND that may become an OR needs all its documents counted */
    if ((!conjunctive || form.rq->op == GX_OP_AND) && plan->initial_threshold > first)
        first = plan->initial_threshold;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_plan_term *term = &plan->terms[i];
        order[i] = {list_bound(term->w, b->best[term->list]), term->df, term->list, i};
        total += order[i].bound;
        const uint32_t least = kth_impact(s, b, term, plan->k, kth);
        first = first > least ? first : least;
    }
    likely = likely < total ? likely : total; /* so that the first list is read */
    if (likely > first) {
        first = likely;
        Q->flags |= QUERY_GUESSED;
    }
    if (!conjunctive)
        sort_ranked_terms(order, n);
    uint32_t remaining_ub = total;
    for (uint32_t i = 0; i < n; ++i) {
        if (remaining_ub >= first && (!conjunctive || i == 0))
            p->n_essential[q] = i + 1;
        remaining_ub -= order[i].bound;
        describe_term(s, &plan->terms[order[i].term], q, &t[i]);
        if (tiled)
            t[i].filter = {s->row_of[order[i].list], NO_MAP_SHIFT, 0, NO_CLASSES};
        t[i].filter.bound = order[i].bound;
        t[i].weight.remaining_ub = remaining_ub;
    }
    Q->initial_threshold = first;
    /* float_bits rounds to nearest: at most one step above rounding down */
    Q->bin_base = float_bits((float)first) - 1;
    const uint32_t range = float_bits((float)total) + 1 - Q->bin_base;
    Q->bin_shift = range < BINS ? 0 : 32 - LOG2_BINS - (uint32_t)__builtin_clz(range);
}

/* Gets the bounds for norm. The current run releases them at its end. */
static gx_status find_bounds(gpu_session *x, gx_scorer norm, bounds **out, gx_error *err)
{
    for (uint32_t i = 0; i < x->n_bounds_used; ++i) {
        if (gx_scorer_is(x->bounds_used[i]->norm, norm)) {
            *out = x->bounds_used[i];
            return GX_OK;
        }
    }
    /* queries already described no longer need theirs, except those that are searched by tiles */
    if (x->n_bounds_used == MAX_BOUNDS)
        release_bounds(x->s, x->bounds_used[--x->n_bounds_used]);
    bounds *b = NULL;
    const gx_status st = acquire_bounds(x->s, norm, &x->calls, &b, err);
    if (st == GX_OK)
        *out = x->bounds_used[x->n_bounds_used++] = b;
    return st;
}

/* ---- tiles, or lists at a time ---- */

/* Prepare the search by tiles for a scorer. *out is NULL if its queries cannot be searched so in this run. */
static gx_status find_tiles(gpu_session *x, gx_scorer norm, const bounds **out, gx_error *err)
{
    bounds *b = NULL;
    bool there = false;
    *out = NULL;
    for (uint32_t i = 0; i < x->n_tiled_bounds && !*out; ++i)
        *out = gx_scorer_is(x->bounds_used[i]->norm, norm) ? x->bounds_used[i] : NULL;
    if (*out || x->s->rows.n_tiles == 0 || x->n_tiled_bounds == MAX_BOUNDS / 2)
        return GX_OK;
    TRY_STATUS(find_bounds(x, norm, &b, err));
    TRY_STATUS(make_tiles(x->s, b, &x->calls, &there, err));
    if (!there)
        return GX_OK;
    uint32_t at = 0; /* to the front */
    while (x->bounds_used[at] != b)
        ++at;
    x->bounds_used[at] = x->bounds_used[x->n_tiled_bounds];
    x->bounds_used[x->n_tiled_bounds++] = b;
    *out = b;
    return GX_OK;
}

/* From so many terms on an OR is searched by tiles if its lists have a posting for every fourth document.
 * BM25 weighs rare terms so much that the lists of common ones are left unread; learned weights do not, and
 * more than SHORT_QUERY_TERMS lists are read by a slower kernel. */
constexpr uint32_t TILED_TERMS_OF_WEIGHTS = SHORT_QUERY_TERMS + 1, TILED_TERMS_OF_BM25 = 16;

/* What the searches of a query of few learned weights, or of rare terms, take in a batch, in us of a GPU that
 * holds the lists, fitted to measurements on an H200 (MEASURED.md, "Which queries of few learned weights are
 * searched by tiles?"). A tile takes time by `evenness` of the index, which says how many tiles are left out. */
struct search_costs {
    double list_query, list_term, list_posting, list_posting_term; /* lists at a time */
    double coarse; /* lists at a time: a posting of a list without a good map, for each further list */
    double tile_query, tile, tile_term;
    double list_launch, tile_launch; /* a run takes so much more, */
};
constexpr double TIMES_IF_ALONE = 3;   /* and lists at a time so much longer, where a query has the GPU to itself */
constexpr uint32_t GOOD_MAP_SLOTS = 4; /* slots a posting (query/score/derived.h) */
constexpr search_costs COSTS[2] = {
    {.35, 0, 4.5e-6, 0, 12e-6, .08, 9e-3, 4.5e-3, 15, 62},  /* k <= SMALL_K */
    {.3, .3, 7e-6, .4e-6, 25e-6, .08, 40e-3, 2e-3, 65, 84}, /* greater k */
};

/* What lists at a time take for the plan in a batch. */
static double list_cost(const gpu_prepared_index *s, const gx_plan *plan, const search_costs &c)
{
    const uint32_t n = plan->n_terms;
    uint64_t postings = 0, coarse = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t number = s->aux_of[plan->terms[i].list], df = plan->terms[i].df,
                       shift = number != UINT32_MAX ? s->aux_lists[number].map_shift : 0;
        postings += df;
        if (shift && s->ix->n_docs >> shift < (uint64_t)df * GOOD_MAP_SLOTS)
            coarse += df;
    }
    return c.list_query + c.list_term * n + (c.list_posting + c.list_posting_term * n) * (double)postings +
           c.coarse * (n - 1) * (double)coarse;
}

static bool is_long(const gx_plan *plan, uint32_t n_docs)
{
    uint64_t n_postings = 0;
    if (plan->n_terms < (gx_scorer_is_linear(plan->norm) ? TILED_TERMS_OF_WEIGHTS : TILED_TERMS_OF_BM25))
        return false;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        n_postings += plan->terms[i].df;
    return n_postings >= n_docs / 4;
}

/* Whether it is reckoned which search is faster. Lists at a time have means of their own for masks and filters. */
static bool is_compared(const gx_plan *plan, uint32_t n_docs)
{
    return gx_scorer_is_linear(plan->norm) && plan->n_terms >= 2 && plan->op == GX_OP_OR && !plan->mask &&
           !plan->filter && !is_long(plan, n_docs);
}

bool tiles_are_faster(const gpu_prepared_index *s, const gx_plan *plan, uint32_t n_queries, float evenness)
{
    const search_costs &c = COSTS[plan->k > SMALL_K];
    const double times = n_queries > TIMES_IF_ALONE ? n_queries : TIMES_IF_ALONE,
                 by_lists = c.list_launch + times * list_cost(s, plan, c),
                 tiles = s->rows.n_tiles * evenness * (c.tile + c.tile_term * plan->n_terms);
    return c.tile_launch + n_queries * (c.tile_query + tiles) < by_lists;
}

gx_status choose_tiles(gpu_session *x, const gx_plan *plan, uint32_t n_queries, bool *tiled, gx_error *err)
{
    const bool is_auto = plan->algorithm == GX_ALGORITHM_AUTO;
    const bounds *b;
    *tiled = false;
    if (!plan->prune || plan->op == GX_OP_AND || (!is_auto && plan->algorithm != GX_ALGORITHM_BLOCK_MAX))
        return GX_OK;
    if ((gx_scorer_is_linear(plan->norm) ? x->s->tiled.linear : x->s->tiled.other) == 0)
        return GX_OK;
    const bool compares = is_auto && is_compared(plan, x->s->ix->n_docs) && !x->s->payload.pinned;
    if (is_auto && !(compares ? tiles_are_faster(x->s, plan, n_queries, 0) : is_long(plan, x->s->ix->n_docs)))
        return GX_OK;
    TRY_STATUS(find_tiles(x, plan->norm, &b, err));
    *tiled = b && (!compares || tiles_are_faster(x->s, plan, n_queries, b->evenness));
    return GX_OK;
}

static void describe_program(sub_batch *p, const gx_phrase_program *program, gpu_query *Q)
{
    if (!program)
        return;
    Q->program = p->n_program_words;
    memcpy(p->programs + p->n_program_words, program->words, program->n_words * sizeof *program->words);
    p->n_program_words += program->n_words;
    p->phrases = true;
}

/* A query that is searched by tiles has no items. Its lists have rows in the place of maps. */
static void describe_tiles(sub_batch *p, const gx_plan *plan, const bounds *b, uint32_t q)
{
    gpu_query *const Q = &p->queries[q];
    Q->flags |= QUERY_TILES;
    p->any_select = true;
    p->n_essential[q] = 0;
    p->tiled[p->n_tiled++] = {b->maxima, q, gx_scorer_is_linear(plan->norm)};
}

static gx_status describe_query(gpu_prepared_index *s, sub_batch *p, const query_form &form, const bounds *b,
                                gx_error *err)
{
    const gx_plan *const plan = form.plan;
    const uint32_t q = p->n_queries, n = plan->n_terms;
    double share;
    gpu_query *Q = &p->queries[q];
    gpu_term *t = &p->terms[p->n_terms];
    memset(Q, 0, sizeof *Q);
    Q->n_terms = n;
    Q->first_term = p->n_terms;
    Q->flags = (form.conjunctive ? QUERY_AND : 0) | (plan->prune ? 0 : QUERY_EXHAUSTIVE) |
               (plan->mask ? QUERY_MASKED : 0) | (plan->norm.lossy ? QUERY_LOSSY : 0);
    Q->mask = plan->mask ? (const uint32_t *)plan->mask->device : NULL;
    Q->k = plan->k;
    Q->initial_threshold = 1;
    Q->after = form.after;
    Q->c0 = plan->norm.c0;
    Q->c1 = plan->norm.c1;
    Q->min_K = gx_bm25_K(plan->norm, s->ix->min_doc_len);
    describe_program(p, plan->program, Q);
    TRY_STATUS(describe_tests(s, p, plan, Q, &share, err));
    p->n_queries += 1;
    Q->capacity = candidates_of(s->ix, plan, form.rq);
    Q->candidates = p->n_candidates;
    Q->answer = p->n_answers;
    p->n_candidates += Q->capacity;
    p->n_answers += plan->k;
    p->n_terms += count_room(n, Q->flags);
    p->n_essential[q] = 0;
    p->first_doc[q] = p->end_doc[q] = 0;
    p->heads = s->ix->heads;
    if (plan->prune) {
        p->any_select |= plan->k > SMALL_K;
        describe_lists(s, p, form, b, q, share);
        if (form.rq->tiled && !form.conjunctive)
            describe_tiles(p, plan, b, q);
        else if (p->takes_documents && plan->filter)
            describe_filter(s, p, plan->filter, q);
        else if (p->takes_documents)
            describe_mask(s, p, plan->mask, Q);
    } else {
        p->any_exhaustive = true;
        for (uint32_t i = 0; i < n; ++i)
            describe_term(s, &plan->terms[i], q, &t[i]);
    }
    return GX_OK;
}

gx_status add_query(gpu_session *x, sub_batch *p, const query_form &form, uint32_t *number, gx_error *err)
{
    bounds *b = NULL;
    const gx_status st = form.plan->prune ? find_bounds(x, form.plan->norm, &b, err) : GX_OK;
    if (st != GX_OK)
        return st;
    *number = p->n_queries;
    return describe_query(x->s, p, form, b, err);
}

void add_list_stats(const gpu_session *x, const gx_plan *plan, gx_search_stats *work)
{
    for (uint32_t t = 0; work && t < plan->n_terms; ++t) {
        work->postings += plan->terms[t].df;
        work->blocks += count_blocks(x->s->ix, plan->terms[t].df);
    }
}

void begin_description(sub_batch *p)
{
    p->n_requests = p->n_queries = p->n_first = p->n_terms = p->n_ranges = p->n_items = 0;
    p->n_tiled = p->n_first_tiled = 0;
    p->n_documents = p->n_first_documents = 0;
    p->document_items[0] = p->document_items[1] = p->n_early = 0;
    p->takes_documents = p->any_tests = false;
    p->n_candidates = p->n_answers = 0;
    p->any_exhaustive = p->any_select = p->in_turn = p->phrases = false;
    p->n_program_words = 0;
}

/* ---- items ---- */

/* Sets which of the list's blocks become items: those that can hold a document to which the query's filter
 * limits it, at least one. */
static void limit_blocks(const sub_batch *p, uint32_t q, pending_list *l)
{
    const term_blocks at = p->terms[l->term].at;
    l->first_block = 0;
    l->n_blocks = at.n_blocks;
    if (p->end_doc[q] == 0)
        return;
    const uint32_t *heads = p->heads + at.first_block;
    const uint32_t from = gx_lower_bound(heads, 0, at.n_blocks, p->first_doc[q] + 1), first = from ? from - 1 : 0;
    const uint32_t end = gx_lower_bound(heads, first, at.n_blocks, p->end_doc[q]);
    l->first_block = first;
    l->n_blocks = end > first ? end - first : 1;
}

/* Returns how many blocks the items of a list's round have that begins with block `from`, or SHARED_BLOCK. */
static uint32_t choose_blocks(const sub_batch *p, const pending_list *l, uint32_t from, uint32_t item_blocks)
{
    const bool few = p->in_turn && p->shared;
    if (few && l->n_blocks <= p->shared)
        return SHARED_BLOCK;
    if (!l->opens_query || from > 4 * FIRST_ROUND_BLOCKS || item_blocks == 1)
        return item_blocks;
    if (from == 4 * FIRST_ROUND_BLOCKS)
        return few ? item_blocks / 2 : item_blocks;
    return from == 0 || item_blocks < 4 ? 1 : item_blocks / 4;
}

/* Adds the ranges of n of the queries. */
static void add_items(sub_batch *p, uint32_t *active, uint32_t n, bool are_multi_term, uint32_t item_blocks, bool fine,
                      pending_list *lists)
{
    const uint32_t *const n_essential = p->n_essential;
    for (uint32_t r = 0, n_active = n; n_active; ++r) {
        uint32_t kept = 0, n_lists = n_active;
        for (uint32_t i = 0; i < n_active; ++i) {
            const uint32_t begin = p->queries[active[i]].first_term, term = begin + r;
            bool opens_query = fine && !are_multi_term;
            for (uint32_t t = begin; t < term && opens_query; ++t)
                opens_query = p->terms[t].at.n_blocks < FIRST_ROUND_BLOCKS;
            lists[i] = {term, 0, 0, opens_query};
            limit_blocks(p, active[i], &lists[i]);
            if (n_essential[active[i]] > r + 1)
                active[kept++] = active[i];
        }
        n_active = p->in_turn ? 0 : kept;
        for (uint32_t from = 0, to = FIRST_ROUND_BLOCKS; n_lists; from = to, to *= 4) {
            uint32_t left = 0;
            for (uint32_t i = 0; i < n_lists; ++i) {
                const pending_list l = lists[i];
                const uint32_t end = l.n_blocks < to ? l.n_blocks : to, each = choose_blocks(p, &l, from, item_blocks);
                const uint32_t n_items =
                    each == SHARED_BLOCK ? (end - from) * MAX_SHARES : count_items(end - from, each);
                p->ranges[p->n_ranges++] = {l.term, l.first_block + from, p->n_items, each};
                p->n_items += n_items;
                p->queries[p->terms[l.term].weight.query].n_items += n_items;
                if (l.n_blocks > to)
                    lists[left++] = l;
            }
            n_lists = left;
        }
    }
}

/* So many queries whose early masks are neighbours are searched before others: their masks fit into the L2
 * cache together. */
constexpr uint32_t MASKED_TOGETHER = 256;

void describe_items(sub_batch *p, uint32_t first, uint32_t n, bool are_multi_term, uint32_t item_blocks, bool fine,
                    const item_scratch &scratch)
{
    uint32_t *const active = scratch.active;
    uint32_t n_active = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gpu_query *Q = &p->queries[first + i];
        if (p->n_essential[first + i] && (count_room(Q->n_terms, Q->flags) > SHORT_QUERY_TERMS) == are_multi_term)
            active[n_active++] = first + i;
    }
    if (p->n_early)
        std::sort(active, active + n_active, [p](uint32_t a, uint32_t b) {
            const uint32_t *x = p->queries[a].mask, *y = p->queries[b].mask;
            return x != y ? x < y : a < b;
        });
    const uint32_t together = p->n_early ? MASKED_TOGETHER : n_active;
    for (uint32_t i = 0; i < n_active; i += together)
        add_items(p, active + i, n_active - i < together ? n_active - i : together, are_multi_term, item_blocks, fine,
                  scratch.lists);
}

/* Returns the most item ranges that a list of n blocks can have. */
static uint32_t max_ranges(uint32_t n_blocks)
{
    return 2 + (31 - (uint32_t)__builtin_clz(n_blocks)) / 2;
}

request_footprint count_request(const gx_index *ix, const gx_plan *plan, const request *rq, bool fine)
{
    const uint32_t times = rq->op == GX_OP_AND_OR ? 2 : 1;
    uint64_t blocks = 0, ranges = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const uint32_t n = count_blocks(ix, plan->terms[i].df);
        blocks += n;
        ranges += max_ranges(n);
    }
    const uint64_t items = blocks / max_item_blocks(ix) + plan->n_terms * (fine ? 1 + FINE_ITEMS : 1);
    const uint32_t filtered = plan->filter ? times : 0, tests = filtered * (MAX_TESTS / TESTS_A_TERM);
    return {times,
            times * plan->n_terms + tests,
            times * ranges,
            plan->prune ? times * items : 0,
            times * (uint64_t)candidates_of(ix, plan, rq),
            times * (uint64_t)plan->k,
            rq->tiled,
            filtered,
            plan->program ? plan->program->n_words : 0};
}

/* ---- answers ---- */

gx_status push_retry(gpu_session *x, request j, gx_error *err)
{
    if (x->n_retries == x->max_retries) {
        const uint32_t max = x->max_retries ? 2 * x->max_retries : 64;
        request *more = (request *)realloc(x->retries, max * sizeof *more);
        if (!more)
            return gx_fail(err, GX_ENOMEM, "no memory for %u queries to be run again", max);
        x->retries = more;
        x->max_retries = max;
    }
    x->retries[x->n_retries++] = j;
    return GX_OK;
}

gx_status collect_query(gpu_session *x, sub_batch *p, const described_request *dr, uint32_t q, gx_op op, gx_hits *hits,
                        gx_error *err)
{
    const gpu_query *Q = &p->queries[q];
    const gpu_query_state st = p->results[q];
    const uint32_t n_docs = x->s->ix->n_docs;
    if (st.count > Q->capacity && Q->capacity < n_docs && !(Q->flags & QUERY_EXHAUSTIVE))
        return push_retry(x,
                          {dr->of.plan, op, st.count < n_docs ? st.count : n_docs, st.threshold, dr->of.tiled,
                           dr->of.few, dr->of.guesses},
                          err);
    if (Q->flags & QUERY_GUESSED && st.n_hits < Q->k)
        return push_retry(x, {dr->of.plan, op, 0, 0, dr->of.tiled, dr->of.few, dr->of.guesses + 1}, err);
    gx_hits *h = &hits[dr->of.plan];
    h->n = st.n_hits < Q->k ? st.n_hits : Q->k;
    if (p->answers)
        memcpy(h->keys, p->answers + Q->answer, (size_t)h->n * 8);
    else
        TRY("copying results", wait_and_copy(&x->calls, h->keys, p->d_answers + Q->answer, (size_t)h->n * 8));
    return GX_OK;
}

} // namespace gx
