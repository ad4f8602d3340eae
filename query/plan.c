#include "query/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "index/index.h"

/* The terms of a query as they are met: known ones by id, unknown ones by a hash of their bytes
 * with the top bit set. Repetitions are merged when the bag is full, so a query of any length needs
 * no more memory than this. */
#define BAG_MAX (2 * GX_MAX_TERMS + 2)
#define UNKNOWN (UINT64_C(1) << 63)

typedef struct bag_item {
    uint64_t key;
    uint32_t qtf;
} bag_item;

typedef struct bag {
    const gx_index *ix;
    uint32_t n;
    bag_item items[BAG_MAX];
} bag;

static int by_key(const void *a, const void *b)
{
    const uint64_t x = ((const bag_item *)a)->key, y = ((const bag_item *)b)->key;
    return (x > y) - (x < y);
}

/* Merge repetitions. */
static void bag_merge(bag *g)
{
    uint32_t kept = 0;
    qsort(g->items, g->n, sizeof *g->items, by_key);
    for (uint32_t i = 0; i < g->n; ++i) {
        if (kept && g->items[kept - 1].key == g->items[i].key) {
            const uint32_t room = UINT32_MAX - g->items[kept - 1].qtf;
            g->items[kept - 1].qtf += g->items[i].qtf < room ? g->items[i].qtf : room;
        } else {
            g->items[kept++] = g->items[i];
        }
    }
    g->n = kept;
}

/* False when there are more than GX_MAX_TERMS different terms already. */
static bool bag_add(bag *g, uint64_t key, uint32_t qtf)
{
    if (g->n == BAG_MAX) {
        bag_merge(g);
        if (g->n > GX_MAX_TERMS)
            return false;
    }
    g->items[g->n++] = (bag_item){key, qtf};
    return true;
}

static bool take_term(void *user, const char *term, size_t len, size_t begin, size_t end)
{
    bag *g = user;
    (void)begin, (void)end;
    const uint32_t id = gx_index_find_term(g->ix, term, len);
    return bag_add(g, id != UINT32_MAX ? id : (XXH3_64bits(term, len) | UNKNOWN), 1);
}

static int by_df(const void *a, const void *b)
{
    const gx_plan_term *x = a, *y = b;
    if (x->df != y->df)
        return x->df < y->df ? -1 : 1;
    return (x->list > y->list) - (x->list < y->list);
}

/* The scale's exponent: the greatest e with total * 2^e <= 2^30. */
static int scale_exponent(double total)
{
    int x;
    if (!(total > 0))
        return 30;
    return frexp(total, &x) == 0.5 ? 31 - x : 30 - x;
}

/* Weights of plan->terms, which are sorted, and everything that depends on them. */
static void weigh(gx_plan *plan, const gx_index *ix, const gx_query_options *opt)
{
    const gx_preset_info *preset = gx_preset_get(opt->preset);
    const double k1 = isnan(opt->k1) ? preset->k1 : opt->k1, b = isnan(opt->b) ? preset->b : opt->b;
    double weights[GX_MAX_TERMS], total = 0;

    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const gx_plan_term *t = &plan->terms[i];
        weights[i] = preset->idf(ix->n_docs, t->df) * (preset->times_k1 ? k1 + 1 : 1) * t->qtf;
        total += weights[i];
    }
    plan->exponent = scale_exponent(total);
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        plan->terms[i].w = (float)ldexp(weights[i], plan->exponent);
    plan->norm = (gx_norm){(float)(k1 * (1 - b)), (float)(k1 * b / ix->avgdl), preset->lossy};
}

static gx_status finish(gx_plan *out, bag *g, const gx_query_options *opt, gx_error *err)
{
    const gx_index *ix = g->ix;
    const uint32_t max_k = ix->n_docs ? ix->n_docs : 1;
    gx_plan plan = {.op = opt->op,
                    .k = opt->k < max_k ? opt->k : max_k,
                    .prune = opt->prune,
                    .algorithm = opt->algorithm,
                    .recursion = opt->recursion,
                    .mask = opt->mask,
                    .cancel = opt->cancel,
                    .user = opt->user};

    bag_merge(g);
    if (g->n > GX_MAX_TERMS)
        return gx_fail(err, GX_EUSAGE, "the query has more than %u different terms; shorten it or split it",
                       GX_MAX_TERMS);
    while (plan.n_terms < g->n && !(g->items[plan.n_terms].key & UNKNOWN)) /* the unknown are sorted behind */
        ++plan.n_terms;
    plan.n_unknown = g->n - plan.n_terms;
    if (plan.op == GX_OP_AND && plan.n_unknown)
        plan.n_terms = 0;
    if (plan.op == GX_OP_AND_OR && (plan.n_unknown || plan.n_terms == 1))
        plan.op = GX_OP_OR;

    plan.terms = malloc((plan.n_terms + 1) * sizeof *plan.terms);
    if (!plan.terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", plan.n_terms);
    for (uint32_t i = 0; i < plan.n_terms; ++i) {
        const uint32_t id = (uint32_t)g->items[i].key;
        assert(id < ix->n_terms);
        plan.terms[i] = (gx_plan_term){id, ix->lists[id].df, g->items[i].qtf, 0};
    }
    qsort(plan.terms, plan.n_terms, sizeof *plan.terms, by_df);
    weigh(&plan, ix, opt);
    *out = plan;
    return GX_OK;
}

gx_status gx_query_options_check(const gx_query_options *opt, gx_error *err)
{
    if ((unsigned)opt->op > GX_OP_AND_OR)
        return gx_fail(err, GX_EUSAGE, "operator %d does not exist; use OR, AND or AND-then-OR", (int)opt->op);
    if (opt->k == 0)
        return gx_fail(err, GX_EUSAGE, "k is 0; ask for at least one result");
    if ((unsigned)opt->preset >= GX_N_PRESETS)
        return gx_fail(err, GX_EUSAGE, "scorer %d does not exist", (int)opt->preset);
    if (!isnan(opt->k1) && !(isfinite(opt->k1) && opt->k1 >= 0))
        return gx_fail(err, GX_EUSAGE, "k1 is %g; it must be a finite number of at least 0", opt->k1);
    if (!isnan(opt->b) && !(opt->b >= 0 && opt->b <= 1))
        return gx_fail(err, GX_EUSAGE, "b is %g; it must lie between 0 and 1", opt->b);
    if ((unsigned)opt->algorithm >= GX_N_ALGORITHMS)
        return gx_fail(err, GX_EUSAGE, "algorithm %d does not exist", (int)opt->algorithm);
    if (opt->recursion > GX_MAX_RECURSION)
        return gx_fail(err, GX_EUSAGE, "recursion is %u; it must be at most %u", opt->recursion, GX_MAX_RECURSION);
    if (!(opt->seconds >= 0))
        return gx_fail(err, GX_EUSAGE, "the time limit is %g s; it must be at least 0", opt->seconds);
    return GX_OK;
}

gx_status gx_plan_make(gx_plan *out, const gx_index *ix, const char *text, size_t len, const gx_query_options *opt,
                       gx_error *err)
{
    bag g;
    g.ix = ix;
    g.n = 0;
    const gx_status st = gx_analyze(ix->analyzer, text, len, take_term, &g);
    if (st != GX_OK)
        return gx_fail(err, st, "cannot analyse a query of %zu bytes: %s", len, gx_status_name(st));
    return finish(out, &g, opt, err);
}

gx_status gx_plan_make_ids(gx_plan *out, const gx_index *ix, const uint32_t *ids, const uint32_t *qtf, uint32_t n,
                           const gx_query_options *opt, gx_error *err)
{
    bag g;
    g.ix = ix;
    g.n = 0;
    for (uint32_t i = 0; i < n && bag_add(&g, ids[i], qtf ? qtf[i] : 1); ++i)
        ;
    return finish(out, &g, opt, err);
}

void gx_plan_free(gx_plan *plan)
{
    free(plan->terms);
    plan->terms = NULL;
    plan->n_terms = 0;
}
