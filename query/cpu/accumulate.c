/* accumulate.c: the exact k best documents of an OR of many lists.
 *
 *   for each list, the shortest first
 *     before a long one: T = the k-th best score so far; stop if no document of this list and later ones alone
 *       reaches T, and few reach it with them
 *     for each few blocks of it
 *       unpack docids and tfs, compute the impacts                       SIMD
 *       add them to the documents' accumulators, and list the documents that are new
 *   of the documents that are listed, those that reach T with the lists that are left, and that the plan allows:
 *     look them up in these lists (search.c) -> the k best
 *   set the accumulators to 0
 *
 * A posting takes as long however many lists there are, whereas list at a time looks each candidate up in all later
 * ones. If more documents have postings than are worth a list, all accumulators are read. gx_cpu_exhaust does the same
 * without kernels and bounds, as a witness.
 */
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/memory/prefetch.h"
#include "engine/status.h"
#include "query/cpu/choice.h"
#include "query/cpu/first_threshold.h"
#include "query/cpu/search.h"
#include "query/filter/filter.h"
#include "query/filter/mask.h"

#define CANCEL_EVERY 1024u /* blocks that are read between two calls of cancel */
#define STRIDE 64u         /* documents whose best score is compared first */
#define LISTED_SHARE 6u /* to visit n documents that are listed takes as long as to read n times as many accumulators */
#define LITTLE 16u      /* times as many postings are left as there are documents to find the threshold of */
#define AHEAD 8u        /* lists that are found ahead of the one that is read */
#define TESTED 64u      /* documents that the filter is asked about at once */

_Static_assert(STRIDE <= GX_CPU_SCORES_SLACK, "a stride that begins at a document can be read");

/* The search under way. Lists [0, n_added) of the plan are in the accumulators. */
typedef struct accumulation {
    gx_cpu_searcher *s;
    const gx_plan *plan;
    uint32_t k, n_added;
    bool listed;     /* s->seen_docids has the documents whose accumulators are not 0 */
    bool may_switch; /* block-max may be tried */
    bool clears;     /* accumulators become 0 once they are read */
    bool looks_up;   /* documents that reach the threshold are looked up in the other lists, which can add `rest` */
    uint32_t rest;
    uint64_t rests[GX_MAX_TERMS + 1]; /* [i] the most that lists from i on can add; from n_bounded on they are known */
    uint32_t n_bounded;
    uint64_t n_left, n_offered; /* postings of the other lists; what it took to find the threshold last, in documents */
    uint32_t n_tested, docids[TESTED], scores[TESTED]; /* for the filter */
} accumulation;

/* ---- documents that reach the threshold ---- */

static void take(accumulation *a, uint32_t docid, uint32_t score)
{
    gx_cpu_columns *c = &a->s->columns;
    if (!a->looks_up) {
        gx_cpu_best_add(&a->s->best, score, docid);
        return;
    }
    c->doc[c->n] = docid;
    c->tf[c->n] = 0;
    c->score[c->n] = score;
    c->remaining_ub[c->n] = a->rest;
    c->list_mask[c->n++] = UINT32_MAX;
    if (c->n == GX_CPU_BATCH)
        gx_cpu_look_up_candidates(a->s, a->plan->n_terms - a->n_added);
}

/* Take those that the filter selects. */
static void take_tested(accumulation *a)
{
    uint8_t keep[TESTED];
    gx_filter_test(a->plan->filter, a->docids, a->n_tested, keep);
    for (uint32_t i = 0; i < a->n_tested; ++i) {
        if (keep[i] && a->scores[i] + a->rest >= a->s->best.threshold)
            take(a, a->docids[i], a->scores[i]);
    }
    a->n_tested = 0;
}

/* Take a document whose score reaches the threshold, if the plan allows it. */
static inline void offer(accumulation *a, uint32_t docid, uint32_t score)
{
    const gx_plan *plan = a->plan;
    if ((plan->mask && !gx_mask_has(plan->mask, docid)) ||
        (plan->filter_mask && !gx_mask_has(plan->filter_mask, docid)))
        return;
    if (!plan->filter || plan->filter_mask) {
        take(a, docid, score);
        return;
    }
    a->docids[a->n_tested] = docid;
    a->scores[a->n_tested++] = score;
    if (a->n_tested == TESTED)
        take_tested(a);
}

/* The least score, at least 1, with which a document may still be one of the k best. */
static inline uint32_t least_score(const accumulation *a)
{
    return a->s->best.threshold > a->rest ? a->s->best.threshold - a->rest : 1;
}

/* Whether one of STRIDE scores is `least` or more; none is 2^31. */
static bool any_reaches(const uint32_t *scores, uint32_t least)
{
    uint32_t any = 0;
    for (uint32_t i = 0; i < STRIDE; ++i)
        any |= (int32_t)scores[i] >= (int32_t)least;
    return any;
}

static void offer_all(accumulation *a)
{
    const uint32_t n_docs = a->s->ix->n_docs;
    uint32_t *const scores = a->s->scores;
    for (uint32_t first = 0; first < n_docs; first += STRIDE) {
        if (!any_reaches(scores + first, least_score(a)))
            continue;
        const uint32_t end = n_docs - first < STRIDE ? n_docs : first + STRIDE;
        for (uint32_t d = first; d < end; ++d) {
            if (scores[d] >= least_score(a))
                offer(a, d, scores[d]);
        }
        if (end == n_docs)
            break;
    }
    if (a->clears)
        memset(scores, 0, (size_t)n_docs * sizeof *scores);
}

static void offer_listed(accumulation *a)
{
    const gx_cpu_searcher *s = a->s;
    const uint32_t *const seen = s->seen_docids;
    uint32_t *const scores = s->scores;
    const size_t n_seen = s->n_seen;
    const bool clears = a->clears;
    for (size_t i = 0; i < n_seen; ++i) {
        const uint32_t d = seen[i], score = scores[d];
        if (clears)
            scores[d] = 0;
        if (score >= least_score(a))
            offer(a, d, score);
    }
}

/* Offer the documents that reach the threshold with `rest`. */
static void offer_documents(accumulation *a)
{
    (a->listed ? offer_listed : offer_all)(a);
    if (a->n_tested)
        take_tested(a);
    if (a->clears)
        a->s->n_seen = 0;
}

/* Of a search that ends otherwise. */
static void clear_scores(const accumulation *a)
{
    gx_cpu_searcher *s = a->s;
    for (size_t i = 0; a->listed && i < s->n_seen; ++i)
        s->scores[s->seen_docids[i]] = 0;
    if (!a->listed && s->scores)
        memset(s->scores, 0, (size_t)s->ix->n_docs * sizeof *s->scores);
    s->n_seen = 0;
}

static gx_status no_memory(const gx_plan *plan, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to search %u lists for %u results", plan->n_terms, plan->k);
}

/* ---- lists ---- */

/* Add n impacts. Documents whose accumulators were 0 are appended to seen_docids, which has room. */
static void add_listed(gx_cpu_searcher *s, const uint32_t *docids, const uint32_t *impacts, uint32_t n)
{
    const uint32_t n_docs = s->ix->n_docs;
    uint32_t *const scores = s->scores, *const seen = s->seen_docids;
    size_t n_seen = s->n_seen;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t d = docids[i];
        if (d >= n_docs)
            continue;
        const uint32_t score = scores[d];
        seen[n_seen] = d;
        n_seen += score == 0;
        scores[d] = score + impacts[i];
    }
    s->n_seen = n_seen;
}

static void add(gx_cpu_searcher *s, const uint32_t *docids, const uint32_t *impacts, uint32_t n)
{
    const uint32_t n_docs = s->ix->n_docs;
    uint32_t *const scores = s->scores;
    for (uint32_t i = 0; i < n; ++i) {
        if (docids[i] < n_docs)
            scores[docids[i]] += impacts[i];
    }
}

/* Add the impacts of a list's postings. False if the search was cancelled. */
static bool add_list(accumulation *a, const gx_list *l, float w)
{
    gx_cpu_searcher *s = a->s;
    const gx_cpu_lengths lengths = {gx_cpu_params_lens(s->params), s->ix->n_docs, s->norm};
    _Alignas(64) uint32_t impacts[GX_MAX_BLOCK + 16];
    for (uint32_t j = 0; j < l->n_blocks;) {
        uint32_t n;
        if (a->plan->cancel && j % CANCEL_EVERY == 0 && a->plan->cancel(a->plan->user))
            return false;
        j += gx_cpu_decode_blocks(s, l, j, &n);
        s->kernels->impacts(s->scratch.docids, s->scratch.tfs, n, &lengths, w, impacts);
        (a->listed ? add_listed : add)(s, s->scratch.docids, impacts, n);
    }
    s->work.blocks_decoded += l->n_blocks;
    return true;
}

/* Make sure that rests[i] and those behind it are known. False: no memory. */
static bool bound_rest(accumulation *a, uint32_t i)
{
    gx_cpu_searcher *s = a->s;
    while (a->n_bounded > i) {
        const gx_plan_term *t = &a->plan->terms[a->n_bounded - 1];
        const gx_cpu_bounds *b = gx_cpu_params_bounds(s->lists, s->params, t->list, &s->scratch);
        if (!b)
            return false;
        --a->n_bounded;
        a->rests[a->n_bounded] = a->rests[a->n_bounded + 1] + gx_cpu_greatest_impact(t->w, b->most);
    }
    return true;
}

/* Find the threshold, if that takes less time than to add list i, or little of the time that all lists from there on
 * take. False: no memory. */
static bool find_threshold(accumulation *a, uint32_t i, bool *found)
{
    gx_cpu_searcher *s = a->s;
    const uint64_t n = a->listed ? s->n_seen : s->ix->n_docs / LISTED_SHARE;
    *found =
        (!a->listed || n >= a->k) && (a->plan->terms[i].df >= n || (n >= 2 * a->n_offered && a->n_left >= LITTLE * n));
    if (!*found)
        return true;
    if (!bound_rest(a, i) || !gx_cpu_best_begin(&s->best, a->k, s->best.threshold))
        return false;
    offer_documents(a);
    a->n_offered = n;
    return true;
}

/* How many documents can reach the threshold with the lists from i on. */
static uint32_t count_candidates(accumulation *a, uint32_t i)
{
    const gx_cpu_searcher *s = a->s;
    const size_t n = a->listed ? s->n_seen : s->ix->n_docs;
    const uint32_t least = s->best.threshold - (uint32_t)a->rests[i];
    uint32_t n_candidates = 0;
    for (size_t x = 0; x < n; ++x)
        n_candidates += s->scores[a->listed ? s->seen_docids[x] : x] >= least;
    return n_candidates;
}

/* Whether documents are to be looked up in list i and later ones: if none of these lists alone reaches the threshold,
 * and that takes less time than to add list i. If not, block-max is tried: *done, if it gave the answer. */
static gx_status consider_stop(accumulation *a, uint32_t i, gx_hits *hits, bool *stop, bool *done, gx_error *err)
{
    gx_cpu_searcher *s = a->s;
    const uint32_t n = a->plan->n_terms;
    bool found;
    uint32_t end = i; /* about where it stops: documents of one list alone are not looked up then */
    *stop = *done = false;
    if (!find_threshold(a, i, &found))
        return no_memory(a->plan, err);
    if (!found)
        return GX_OK;
    while (end < n && a->rests[end] >= s->best.threshold / 2)
        ++end;
    *stop = a->rests[i] < s->best.threshold && gx_cpu_cost_of_look_ups(count_candidates(a, i), n - i) <
                                                   gx_cpu_cost_of_accumulation(a->plan, s->ix->n_docs, i, i + 1);
    if (*stop || !a->may_switch)
        return GX_OK;
    const uint32_t threshold = s->best.threshold;
    const double limit = gx_cpu_cost_of_accumulation(a->plan, s->ix->n_docs, i, end);
    if (!bound_rest(a, 0))
        return no_memory(a->plan, err);
    const gx_status st =
        gx_cpu_try_block_max(s, a->plan, threshold, a->rests[0], limit, hits, done, &a->may_switch, err);
    if (!*done)
        s->best.threshold = threshold;
    return st;
}

/* Find list i, if the plan has one, and ask for the first lines of it. */
static void expect_list(gx_cpu_searcher *s, const gx_plan *plan, uint32_t i, gx_list lists[AHEAD])
{
    if (i >= plan->n_terms)
        return;
    gx_list *l = &lists[i % AHEAD];
    gx_cpu_lists_list(s->lists, plan->terms[i].list, &s->scratch, l);
    gx_prefetch(l->heads);
    gx_prefetch(l->docid_ends);
    gx_prefetch(l->tf_ends);
    gx_prefetch(l->payload);
}

/* Add lists, the shortest first, until the others can be looked up. */
static gx_status add_lists(accumulation *a, gx_hits *hits, bool *done, gx_error *err)
{
    const gx_plan *plan = a->plan;
    gx_cpu_searcher *s = a->s;
    const uint32_t max_listed = s->ix->n_docs / LISTED_SHARE;
    gx_list lists[AHEAD];
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        gx_cpu_lists_prefetch(s->lists, s->params, plan->terms[i].list);
    for (uint32_t i = 0; i < AHEAD; ++i)
        expect_list(s, plan, i, lists);
    for (; a->n_added < plan->n_terms; ++a->n_added) {
        const gx_plan_term *t = &plan->terms[a->n_added];
        bool stop;
        const gx_status st = consider_stop(a, a->n_added, hits, &stop, done, err);
        if (st != GX_OK || *done || stop)
            return st;
        const gx_list l = lists[a->n_added % AHEAD]; /* its length may not be t->df: replays verify foreign indexes */
        a->listed = a->listed && s->n_seen + l.df <= max_listed;
        if (a->listed && !gx_reserve(&s->seen_docids, &s->max_seen, s->n_seen + l.df + 1, sizeof *s->seen_docids))
            return no_memory(plan, err);
        expect_list(s, plan, a->n_added + AHEAD, lists);
        a->n_left -= t->df;
        if (!add_list(a, &l, t->w))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
    }
    return GX_OK;
}

/* Look the documents up in the lists that are left. */
static gx_status select_best(accumulation *a, gx_error *err)
{
    gx_cpu_searcher *s = a->s;
    gx_plan rest = *a->plan;
    rest.terms += a->n_added;
    rest.n_terms -= a->n_added;
    a->clears = true;
    a->looks_up = rest.n_terms > 0;
    a->rest = (uint32_t)a->rests[a->n_added];
    if (!gx_cpu_best_begin(&s->best, a->k, s->best.threshold) || (a->looks_up && !gx_cpu_open_lists(s, &rest)))
        return no_memory(a->plan, err);
    offer_documents(a);
    if (s->columns.n)
        gx_cpu_look_up_candidates(s, rest.n_terms);
    return GX_OK;
}

/* All but k, and large arrays that need no values. */
static void begin(accumulation *a, gx_cpu_searcher *s, const gx_plan *plan, uint64_t n_postings)
{
    a->s = s;
    a->plan = plan;
    a->listed = true;
    a->clears = a->looks_up = false;
    a->n_added = a->rest = a->n_tested = 0;
    a->n_bounded = plan->n_terms;
    a->rests[plan->n_terms] = 0;
    a->n_left = n_postings;
    a->n_offered = 0;
}

gx_status gx_cpu_accumulate(gx_cpu_searcher *s, const gx_plan *plan, bool may_switch, gx_hits *hits, gx_error *err)
{
    accumulation a;
    uint64_t n_postings = 0;
    bool done = false;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        n_postings += plan->terms[i].df;
    begin(&a, s, plan, n_postings);
    a.may_switch = may_switch;
    a.k = plan->k < n_postings ? plan->k : (uint32_t)n_postings;
    gx_cpu_choose_params(s, plan);
    gx_status st = gx_cpu_reserve_accumulators(s, GX_OP_OR, err);
    if (st == GX_OK && (!s->params || !gx_cpu_best_begin(&s->best, a.k, gx_cpu_known_threshold(plan, false))))
        st = no_memory(plan, err);
    s->columns.n = 0;
    if (st == GX_OK)
        st = add_lists(&a, hits, &done, err);
    if (st == GX_OK && !done)
        st = select_best(&a, err);
    if (st != GX_OK || done)
        clear_scores(&a);
    if (done)
        return GX_OK;
    hits->n = st == GX_OK ? gx_cpu_best_finish(&s->best, hits->keys) : 0;
    return st;
}
