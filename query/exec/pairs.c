#include "query/exec/pairs.h"

#include <math.h>
#include <stdlib.h>

#include "engine/parallel.h"
#include "engine/status.h"

#define MAX_PAIR_BATCH 4096u /* pairs searched for together, where that is fast, */
#define CPU_PAIR_BATCH 64u   /* and where one is as fast as many */
#define MAX_PAIR_KEYS (1u << 22)
#define MAX_PAIR_TERMS 16u /* of a query's terms */
#define SCORE_SLACK                                                                                                    \
    0x1p-18 /* more than what roundings of weights, impacts and thresholds make of a score, as a share of it */

struct gx_pair_thresholds {
    gx_query_options opt; /* the caller's options, and the number of lists */
    uint32_t n_asked;
    gx_scorer norm;
    uint32_t k, n;       /* as there are */
    uint16_t *number_of; /* [n_terms of the index]: 1 + the list's number here, or 0 */
    uint32_t *lists;     /* [n] */
    float *weights;      /* [n], as in a query's score */
    /* [n (n - 1) / 2], of numbers a > b at a (a - 1) / 2 + b: no greater than the k-th best score;
     * 0: there are fewer */
    float *least;
};

void gx_pair_thresholds_free(gx_pair_thresholds *p)
{
    if (!p)
        return;
    free(p->number_of);
    free(p->lists);
    free(p->weights);
    free(p->least);
    free(p);
}

/* ---- computing them ---- */

typedef struct by_length {
    uint32_t df, list;
} by_length;

static int longest_first(const void *a, const void *b)
{
    const by_length *x = a, *y = b;
    if (x->df != y->df)
        return x->df > y->df ? -1 : 1;
    return (x->list > y->list) - (x->list < y->list);
}

/* The longest lists, and their weights. */
static gx_status choose_lists(gx_pair_thresholds *p, const gx_index *ix, const gx_query_options *opt, gx_error *err)
{
    by_length *order = malloc((ix->n_terms + 1ull) * sizeof *order);
    gx_status st = GX_OK;
    if (!order)
        return gx_fail(err, GX_ENOMEM, "no memory for the order of %u lists", ix->n_terms);
    for (uint32_t t = 0; t < ix->n_terms; ++t)
        order[t] = (by_length){ix->lists[t].df, t};
    qsort(order, ix->n_terms, sizeof *order, longest_first);
    for (uint32_t i = 0; i < p->n && st == GX_OK; ++i) {
        gx_plan plan;
        p->lists[i] = order[i].list;
        p->number_of[order[i].list] = (uint16_t)(i + 1);
        if ((st = gx_plan_make_ids(&plan, ix, &p->lists[i], NULL, 1, opt, err)) != GX_OK)
            break;
        p->weights[i] = ldexpf(plan.terms[0].w, -plan.exponent);
        p->norm = plan.norm;
        gx_plan_free(&plan);
    }
    free(order);
    return st;
}

/* Threads that take pairs by turns. */
typedef struct pair_search {
    gx_pair_thresholds *p;
    const gx_index *ix;
    const gx_executor *ops;
    void *state;
    const gx_query_options *opt;
    uint64_t n_pairs, next; /* next: atomic */
    uint32_t batch_size;
    uint32_t n_sessions; /* that could be opened; atomic */
    gx_status st;        /* of a failure; atomic */
} pair_search;

typedef struct pair_worker {
    pair_search *m;
    gx_status refused; /* why it has no session */
    gx_error err;
} pair_worker;

/* What a query with both terms can rely on. */
static float least_score(const gx_plan *plan, const gx_hits *h, uint32_t k)
{
    if (h->n < k)
        return 0;
    const double score = gx_key_score(h->keys[k - 1]);
    return score > 2 ? (float)(ldexp(score - 2, -plan->exponent) * (1 - SCORE_SLACK)) : 0;
}

/* Pairs [first, first + n): plans and hits are scratch. */
static gx_status search_pairs(pair_search *m, void *exec, uint64_t first, uint32_t n, gx_plan *plans, gx_hits *hits,
                              gx_error *err)
{
    gx_pair_thresholds *p = m->p;
    gx_status st = GX_OK;
    uint32_t planned = 0, a = (uint32_t)((1 + sqrt(1 + 8.0 * (double)first)) / 2), b;
    while ((uint64_t)a * (a - 1) / 2 > first)
        --a;
    while ((uint64_t)(a + 1) * a / 2 <= first)
        ++a;
    b = (uint32_t)(first - (uint64_t)a * (a - 1) / 2);
    for (; planned < n && st == GX_OK; ++planned) {
        const uint32_t ids[] = {p->lists[a], p->lists[b]};
        if ((st = gx_plan_make_ids(&plans[planned], m->ix, ids, NULL, 2, m->opt, err)) != GX_OK)
            break;
        if (++b == a) {
            ++a;
            b = 0;
        }
    }
    if (st == GX_OK)
        st = m->ops->run(exec, plans, n, hits, NULL, err);
    for (uint32_t i = 0; i < planned; ++i) {
        if (st == GX_OK)
            p->least[first + i] = least_score(&plans[i], &hits[i], p->k);
        gx_plan_free(&plans[i]);
    }
    return st;
}

/* Failing to open a session is no failure of all: there may be memory for a few. */
static gx_status search_turns(pair_search *m, gx_status *refused, gx_error *err)
{
    void *exec = NULL;
    const uint32_t k = m->p->k, n = m->batch_size;
    gx_plan *plans = malloc(n * sizeof *plans);
    gx_hits *hits = malloc(n * sizeof *hits);
    uint64_t *keys = malloc((size_t)n * k * sizeof *keys);
    gx_status st = plans && hits && keys ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for thresholds of pairs");
    if (st == GX_OK && (*refused = m->ops->workspace_open(&exec, m->state, err)) != GX_OK)
        exec = NULL;
    if (exec)
        __atomic_fetch_add(&m->n_sessions, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        hits[i] = (gx_hits){keys + (size_t)i * k, 0};
    while (exec && st == GX_OK && __atomic_load_n(&m->st, __ATOMIC_RELAXED) == GX_OK) {
        const uint64_t first = __atomic_fetch_add(&m->next, n, __ATOMIC_RELAXED);
        if (first >= m->n_pairs)
            break;
        st =
            search_pairs(m, exec, first, m->n_pairs - first < n ? (uint32_t)(m->n_pairs - first) : n, plans, hits, err);
    }
    if (exec)
        m->ops->workspace_close(exec);
    free(plans);
    free(hits);
    free(keys);
    return st;
}

static void run_pair_worker(void *user, uint32_t number)
{
    pair_worker *w = (pair_worker *)user + number;
    const gx_status st = search_turns(w->m, &w->refused, &w->err);
    if (st != GX_OK)
        __atomic_store_n(&w->m->st, st, __ATOMIC_RELAXED);
    w->err.status = st; /* the text may say why there is no session */
}

static gx_status search_all_pairs(pair_search *m, uint32_t n_threads, gx_error *err)
{
    const uint64_t turns = (m->n_pairs + m->batch_size - 1) / m->batch_size;
    n_threads = n_threads < turns ? n_threads : (uint32_t)turns;
    pair_worker *pair_workers = calloc(n_threads, sizeof *pair_workers);
    gx_status st = GX_OK;
    if (!pair_workers)
        return gx_fail(err, GX_ENOMEM, "no memory for %u threads", n_threads);
    for (uint32_t i = 0; i < n_threads; ++i)
        pair_workers[i].m = m;
    const uint32_t ran = gx_parallel_run(n_threads, run_pair_worker, pair_workers);
    for (uint32_t i = 0; i < ran; ++i) {
        if (st == GX_OK && pair_workers[i].err.status != GX_OK)
            st = gx_fail(err, pair_workers[i].err.status, "%s", pair_workers[i].err.text);
    }
    if (st == GX_OK && m->n_sessions == 0)
        st = gx_fail(err, pair_workers[0].refused, "no session for thresholds of pairs: %s", pair_workers[0].err.text);
    free(pair_workers);
    return st;
}

gx_status gx_pair_thresholds_make(gx_pair_thresholds **out, const gx_pair_engine *engine, const gx_query_options *opt,
                                  uint32_t n_lists, uint32_t n_threads, gx_error *err)
{
    const gx_index *const ix = engine->ix;
    const gx_executor *const ops = engine->ops;
    gx_query_options o = *opt;
    *out = NULL;
    if (n_lists > GX_MAX_PAIRED)
        return gx_fail(err, GX_EUSAGE, "pairs of %u lists are too many; ask for at most %u", n_lists, GX_MAX_PAIRED);
    gx_pair_thresholds *p = calloc(1, sizeof *p);
    if (!p)
        return gx_fail(err, GX_ENOMEM, "no memory for thresholds of pairs");
    p->opt = o;
    p->n_asked = n_lists;
    o.op = GX_OP_OR;
    o.algorithm = GX_ALGORITHM_AUTO;
    o.prune = true;
    o.mask = NULL;
    o.k = o.k < ix->n_docs ? o.k : ix->n_docs ? ix->n_docs : 1; /* as in a plan */
    p->k = o.k;
    p->n = n_lists < ix->n_terms ? n_lists : ix->n_terms;
    const uint64_t n_pairs = (uint64_t)p->n * (p->n ? p->n - 1 : 0) / 2;
    p->number_of = calloc(ix->n_terms + 1ull, sizeof *p->number_of);
    p->lists = malloc((p->n + 1ull) * sizeof *p->lists);
    p->weights = malloc((p->n + 1ull) * sizeof *p->weights);
    p->least = malloc((n_pairs + 1) * sizeof *p->least);
    gx_status st = p->number_of && p->lists && p->weights && p->least ? choose_lists(p, ix, &o, err)
                                                                      : gx_fail(err, GX_ENOMEM,
                                                                                "no memory for "
                                                                                "thresholds of %u "
                                                                                "lists' pairs",
                                                                                p->n);
    const uint32_t fitting = MAX_PAIR_KEYS / p->k, most = ops == &gx_executor_cpu ? CPU_PAIR_BATCH : MAX_PAIR_BATCH;
    pair_search m = {.p = p,
                     .ix = ix,
                     .ops = ops,
                     .state = engine->state,
                     .opt = &o,
                     .n_pairs = n_pairs,
                     .batch_size = fitting < 1      ? 1
                                   : fitting < most ? fitting
                                                    : most};
    if (st == GX_OK && n_pairs)
        st = search_all_pairs(&m, n_threads ? n_threads : 1, err);
    if (st != GX_OK) {
        gx_pair_thresholds_free(p);
        return st;
    }
    *out = p;
    return GX_OK;
}

/* ---- using them ---- */

/* What a caller may leave out is NaN. */
static bool same_number(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

bool gx_pair_thresholds_match(const gx_pair_thresholds *p, const gx_query_options *opt, uint32_t n_lists)
{
    return p->opt.preset == opt->preset && same_number(p->opt.k1, opt->k1) && same_number(p->opt.b, opt->b) &&
           p->opt.k == opt->k && p->n_asked == n_lists;
}

void gx_pair_thresholds_apply(const gx_pair_thresholds *p, gx_plan *plan)
{
    uint32_t known[MAX_PAIR_TERMS], n = 0;
    float best = 0;
    if (plan->k > p->k || plan->n_terms < 2 || plan->op == GX_OP_AND || plan->mask || plan->filter ||
        !gx_scorer_is(p->norm, plan->norm))
        return;
    for (uint32_t i = 0; i < plan->n_terms && n < MAX_PAIR_TERMS; ++i) {
        const uint32_t number = p->number_of[plan->terms[i].list];
        if (number && ldexpf(plan->terms[i].w, -plan->exponent) >= p->weights[number - 1] * (1 - 0x1p-20f))
            known[n++] = number - 1;
    }
    for (uint32_t i = 1; i < n; ++i) {
        for (uint32_t j = 0; j < i; ++j) {
            const size_t a = known[i] > known[j] ? known[i] : known[j], b = known[i] + known[j] - a;
            const float least = p->least[a * (a - 1) / 2 + b];
            best = least > best ? least : best;
        }
    }
    const double floor = ldexp(best, plan->exponent) - 2;
    if (floor > plan->initial_threshold)
        plan->initial_threshold = (uint32_t)floor;
}
