#include "query/plan/plan.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/hash.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "index/read/collection.h"
#include "index/read/lexicon.h"
#include "query/plan/approximate.h"
#include "query/plan/part_plans.h"
#include "query/plan/phrases.h"
#include "query/plan/sdm.h"

/* The terms of a query as they are met: known ones by id, unknown ones by a hash of their bytes
 * with the top bit set. Repetitions are merged when the term_bag is full, so a query of any length
 * needs no more memory than this. */
#define BAG_MAX (2 * GX_MAX_TERMS + 2)
#define UNKNOWN_TERM (UINT64_C(1) << 63)
#define FEW_TERMS 16u    /* no more are sorted by insertion */
#define STAGED_TERMS 16u /* at most, and their bytes, that are looked up together */
#define STAGED_BYTES 512u

typedef struct bag_item {
    uint64_t key;
    double qtf;
} bag_item;

/* Terms of a text that are looked up together. */
typedef struct staged_terms {
    uint32_t n, n_bytes;
    gx_term_key keys[STAGED_TERMS];
    char bytes[STAGED_BYTES];
} staged_terms;

typedef struct term_bag {
    const gx_index *ix;
    const gx_index *whole; /* whose statistics count: ix, or a collection whose only part ix is */
    const gx_part *part;   /* that part; NULL: ix counts whole */
    uint32_t n;
    bag_item items[BAG_MAX];
    staged_terms staged;
} term_bag;

static int by_key(const void *a, const void *b)
{
    const uint64_t x = ((const bag_item *)a)->key, y = ((const bag_item *)b)->key;
    return (x > y) - (x < y);
}

static void sort_items(bag_item *items, uint32_t n)
{
    if (n > FEW_TERMS) {
        qsort(items, n, sizeof *items, by_key);
        return;
    }
    for (uint32_t i = 1; i < n; ++i) {
        const bag_item x = items[i];
        uint32_t j = i;
        for (; j && items[j - 1].key > x.key; --j)
            items[j] = items[j - 1];
        items[j] = x;
    }
}

/* Merge repetitions. */
static void bag_merge(term_bag *g)
{
    uint32_t kept = 0;
    sort_items(g->items, g->n);
    for (uint32_t i = 0; i < g->n; ++i) {
        if (kept && g->items[kept - 1].key == g->items[i].key) {
            g->items[kept - 1].qtf += g->items[i].qtf;
        } else {
            g->items[kept++] = g->items[i];
        }
    }
    g->n = kept;
}

/* False when there are more than GX_MAX_TERMS different terms already. */
static bool bag_add(term_bag *g, uint64_t key, double qtf)
{
    if (g->n == BAG_MAX) {
        bag_merge(g);
        if (g->n > GX_MAX_TERMS)
            return false;
    }
    g->items[g->n++] = (bag_item){key, qtf};
    return true;
}

static inline uint32_t live_df(const term_bag *g, uint32_t id)
{
    return g->part ? gx_part_df(g->part, id) : g->ix->lists[id].df;
}

/* Add a term with the hash of its bytes; id UINT32_MAX: it is unknown. */
static bool bag_add_term(term_bag *g, uint32_t id, uint64_t hash)
{
    const bool known = id != UINT32_MAX && live_df(g, id);
    return bag_add(g, known ? id : hash | UNKNOWN_TERM, 1);
}

/* Look up the staged terms, and add them. */
static bool bag_add_staged(term_bag *g)
{
    staged_terms *s = &g->staged;
    uint32_t ids[STAGED_TERMS];
    bool good = true;
    gx_index_find_all(g->ix, s->keys, s->n, ids);
    for (uint32_t i = 0; i < s->n && good; ++i)
        good = bag_add_term(g, ids[i], s->keys[i].hash);
    s->n = s->n_bytes = 0;
    return good;
}

static bool take_term(void *user, const gx_found_term *found)
{
    term_bag *g = user;
    staged_terms *s = &g->staged;
    const uint64_t hash = gx_hash(found->term, found->len);
    if (g->ix->parts || found->len > STAGED_BYTES)
        return bag_add_term(g, gx_index_find_term(g->ix, found->term, found->len), hash);
    if ((s->n == STAGED_TERMS || found->len > STAGED_BYTES - s->n_bytes) && !bag_add_staged(g))
        return false;
    memcpy(s->bytes + s->n_bytes, found->term, found->len);
    s->keys[s->n++] = (gx_term_key){s->bytes + s->n_bytes, (uint32_t)found->len, hash};
    s->n_bytes += (uint32_t)found->len;
    gx_index_expect_hashed(g->ix, hash);
    return true;
}

static int by_df(const void *a, const void *b)
{
    const gx_plan_term *x = a, *y = b;
    if (x->df != y->df)
        return x->df < y->df ? -1 : 1;
    return (x->list > y->list) - (x->list < y->list);
}

static void sort_terms(gx_plan_term *t, uint32_t n)
{
    if (n > FEW_TERMS) {
        qsort(t, n, sizeof *t, by_df);
        return;
    }
    for (uint32_t i = 1; i < n; ++i) {
        const gx_plan_term x = t[i];
        uint32_t j = i;
        for (; j && by_df(&t[j - 1], &x) > 0; --j)
            t[j] = t[j - 1];
        t[j] = x;
    }
}

/* The scale's exponent: the greatest e with total * 2^e <= 2^30. */
static int scale_exponent(double total)
{
    int x;
    if (!(total > 0))
        return 30;
    return frexp(total, &x) == 0.5 ? 31 - x : 30 - x;
}

typedef struct scorer {
    const gx_preset_info *preset;
    double k1, b;
    bool linear; /* the lists have impacts: of an index of impacts, or a view of fields */
    bool
        weighed; /* the lists' units have all but the query's weight in them: of a view that scores fields one by one */
} scorer;

static scorer scorer_of(const gx_query_options *opt, const gx_index *view)
{
    const gx_preset_info *preset = gx_preset_get(opt->preset);
    if (view)
        return (scorer){preset, gx_view_get_profile(view)->k1, gx_view_get_profile(view)->b, true,
                        gx_view_get_profile(view)->scoring != GX_FIELDS_BM25F};
    return (scorer){preset, isnan(opt->k1) ? preset->k1 : opt->k1, isnan(opt->b) ? preset->b : opt->b, preset->linear,
                    false};
}

/* A term's weight before it is scaled. */
static double weight_by(const scorer *s, double idf, double qtf)
{
    if (s->weighed)
        return qtf;
    return idf * (s->preset->times_k1 ? s->k1 + 1 : 1) * qtf;
}

static double weight_of(const scorer *s, uint64_t n_docs, uint64_t df, double qtf)
{
    return weight_by(s, s->weighed ? 0 : s->preset->idf((double)n_docs, (double)df), qtf);
}

/* What a term can add to a score, before it is scaled; max_tf: the greatest of its list. */
static double most_of(const scorer *s, double weight, uint32_t max_tf)
{
    return s->linear ? weight * max_tf : weight;
}

static float scaled(const scorer *s, double weight, int exponent)
{
    return (float)ldexp(weight, exponent + (s->linear ? GX_LINEAR_EXPONENT : 0));
}

static gx_scorer norm_of(const scorer *s, double avgdl)
{
    if (s->linear)
        return (gx_scorer){GX_LINEAR_K, 0, false};
    return (gx_scorer){(float)(s->k1 * (1 - s->b)), (float)(s->k1 * s->b / avgdl), s->preset->lossy};
}

/* The greatest tf of a list, of live documents. */
static uint32_t live_max_tf(const term_bag *g, uint32_t list)
{
    size_t len;
    if (!g->part)
        return gx_index_max_tf(g->ix, list);
    const char *term = gx_strings_get(&g->ix->terms, list, &len);
    return gx_parts_max_tf(g->whole->parts, term, len);
}

/* Weights of plan->terms, which are sorted, and everything that depends on them. */
static void compute_weights(gx_plan *plan, const term_bag *g, const gx_query_options *opt)
{
    const scorer s = scorer_of(opt, gx_view_of(g->ix));
    double weights[GX_MAX_TERMS], total = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const gx_plan_term *t = &plan->terms[i];
        weights[i] = weight_of(&s, gx_index_n_docs(g->whole), t->df, t->qtf) * gx_index_unit(g->ix, t->list);
        total += most_of(&s, weights[i], s.linear ? live_max_tf(g, t->list) : 1);
    }
    plan->exponent = scale_exponent(total);
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        plan->terms[i].w = scaled(&s, weights[i], plan->exponent);
    plan->norm = norm_of(&s, g->whole->avgdl);
}

/* A view has a k1 and b of its own. */
static gx_status check_view(const gx_query_options *opt, const gx_index *view, gx_error *err)
{
    const gx_view_profile *p = gx_view_get_profile(view);
    if ((!isnan(opt->k1) && opt->k1 != p->k1) || (!isnan(opt->b) && opt->b != (float)p->b))
        return gx_fail(err, GX_EUSAGE, "%s: k1 and b belong to the view of the fields, which was opened with others",
                       view->path);
    if (p->scoring != GX_FIELDS_BM25F && opt->preset != p->preset)
        return gx_fail(err, GX_EUSAGE, "%s: the scorer %s belongs to the view of the fields, not %s", view->path,
                       gx_preset_name(p->preset), gx_preset_name(opt->preset));
    return gx_view_status(view, err);
}

/* Impacts are parts of scores already: only a linear scorer sums them up as they are. */
static gx_status check_scorer(const gx_query_options *opt, const gx_index *ix, gx_error *err)
{
    const bool linear = gx_preset_get(opt->preset)->linear;
    const gx_index *view = gx_view_of(ix);
    if (view && linear)
        return gx_fail(err, GX_EUSAGE, "%s is searched by fields, which a BM25 scorer weighs, not %s", ix->path,
                       gx_preset_name(opt->preset));
    if (view)
        return check_view(opt, view, err);
    if (!ix->impacts || linear)
        return GX_OK;
    return gx_fail(err, GX_EUSAGE, "%s holds impacts instead of term frequencies, which the scorer %s needs", ix->path,
                   gx_preset_name(opt->preset));
}

/* What the options say; terms and weights are missing. */
static gx_plan empty_plan(const gx_index *ix, const gx_query_options *opt)
{
    const uint32_t max_k = ix->n_docs ? ix->n_docs : 1;
    const bool by_blocks = opt->op == GX_OP_OR && opt->prune &&
                           (opt->algorithm == GX_ALGORITHM_AUTO || opt->algorithm == GX_ALGORITHM_BLOCK_MAX);
    return (gx_plan){.op = opt->op,
                     .k = opt->k < max_k ? opt->k : max_k,
                     .prune = opt->prune,
                     .algorithm = opt->algorithm,
                     .recursion = opt->recursion,
                     .mask = opt->mask,
                     .approximate = opt->op == GX_OP_OR ? opt->approximate : 0,
                     .block_budget = by_blocks ? (uint32_t)opt->block_budget : 0,
                     .cancel = opt->cancel,
                     .user = opt->user};
}

static gx_status too_many_terms(gx_error *err)
{
    return gx_fail(err, GX_EUSAGE, "the query has more than %u different terms; shorten it or split it", GX_MAX_TERMS);
}

/* plan->n_terms and n_unknown are counted: the operator that gives the answer. */
static void settle_op(gx_plan *plan)
{
    if (plan->op == GX_OP_AND && plan->n_unknown)
        plan->n_terms = plan->n_phrases = 0;
    if (plan->op == GX_OP_AND_OR && (plan->n_unknown || plan->n_terms + plan->n_phrases == 1))
        plan->op = GX_OP_OR;
    if (plan->n_phrases) { /* they are answered exactly */
        plan->approximate = 0;
        plan->block_budget = 0;
    } else {
        free(plan->phrases);
        plan->phrases = NULL;
    }
}

/* Bounds are of all documents of a list, also of deleted ones, and the scale is that of the live ones. Where a linear
 * scorer's bounds do not fit into 32 bits therefore, all postings are scored. */
static void check_bounds(gx_plan *plan, const gx_index *ix)
{
    double most = 0;
    if (!gx_scorer_is_linear(plan->norm))
        return;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        most += (double)plan->terms[i].w / GX_LINEAR_K * gx_index_max_tf(ix, plan->terms[i].list);
    if (!(most < INT32_MAX))
        plan->prune = false;
}

static gx_status make_from_bag(gx_plan *out, term_bag *g, const gx_query_options *opt, gx_error *err)
{
    const gx_index *ix = g->ix;
    gx_plan plan = empty_plan(g->whole, opt);
    const gx_status st = check_scorer(opt, ix, err);
    if (st != GX_OK)
        return st;

    bag_merge(g);
    if (g->n > GX_MAX_TERMS)
        return too_many_terms(err);
    while (plan.n_terms < g->n && !(g->items[plan.n_terms].key & UNKNOWN_TERM)) /* the unknown are sorted behind */
        ++plan.n_terms;
    plan.n_unknown = g->n - plan.n_terms;
    settle_op(&plan);

    plan.terms = malloc((plan.n_terms + 1) * sizeof *plan.terms);
    if (!plan.terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", plan.n_terms);
    for (uint32_t i = 0; i < plan.n_terms; ++i) {
        const uint32_t id = (uint32_t)g->items[i].key;
        assert(id < ix->n_terms);
        plan.terms[i] = (gx_plan_term){.list = id, .df = live_df(g, id), .qtf = g->items[i].qtf};
    }
    sort_terms(plan.terms, plan.n_terms);
    compute_weights(&plan, g, opt);
    if (g->part) { /* the engines read whole lists */
        for (uint32_t i = 0; i < plan.n_terms; ++i)
            plan.terms[i].df = ix->lists[plan.terms[i].list].df;
        sort_terms(plan.terms, plan.n_terms);
        check_bounds(&plan, ix);
    }
    *out = plan;
    return GX_OK;
}

bool gx_query_side_is_on(const gx_query_options *opt)
{
    return !isnan(opt->query_k1) || !isnan(opt->query_b);
}

gx_status gx_query_options_check(const gx_query_options *opt, const gx_index *ix, gx_error *err)
{
    if ((unsigned)opt->op > GX_OP_AND_OR)
        return gx_fail(err, GX_EUSAGE, "operator %d does not exist; use OR, AND or AND-then-OR", (int)opt->op);
    if (opt->k == 0)
        return gx_fail(err, GX_EUSAGE, "k is 0; ask for at least one result");
    if ((unsigned)opt->preset >= GX_N_PRESETS)
        return gx_fail(err, GX_EUSAGE, "scorer %d does not exist", (int)opt->preset);
    if (gx_preset_get(opt->preset)->linear && !(isnan(opt->k1) && isnan(opt->b)))
        return gx_fail(err, GX_EUSAGE, "the scorer %s has no k1 and no b; leave them out, or use a BM25 scorer",
                       gx_preset_name(opt->preset));
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
    if ((unsigned)opt->quotes > GX_QUOTES_WORDS)
        return gx_fail(err, GX_EUSAGE, "quotes %d do not exist", (int)opt->quotes);
    if (!isnan(opt->query_k1) && !(isfinite(opt->query_k1) && opt->query_k1 >= 0))
        return gx_fail(err, GX_EUSAGE, "query_k1 is %g; it must be a finite number of at least 0", opt->query_k1);
    if (!isnan(opt->query_b) && !(opt->query_b >= 0 && opt->query_b <= 1))
        return gx_fail(err, GX_EUSAGE, "query_b is %g; it must lie between 0 and 1", opt->query_b);
    if (gx_query_side_is_on(opt) && opt->synonyms)
        return gx_fail(
            err, GX_EUSAGE,
            "query-side weights are of a query's own words; leave out the synonyms, or query_k1 and query_b");
    if (opt->prior.weight != 0) /* gx_search has taken it */
        return gx_fail(err, GX_EUSAGE,
                       "a prior is for searches of one engine: not for services and what is verified");
    gx_status st = gx_approximate_check(opt, err);
    if (st == GX_OK)
        st = gx_sdm_check(opt, ix, err);
    return st == GX_OK ? check_scorer(opt, ix, err) : st;
}

static gx_status make_from_text(gx_plan *out, term_bag *g, const char *text, size_t len, const gx_query_options *opt,
                                gx_error *err)
{
    const gx_status st = gx_analyze_query(g->ix->analyzer, text, len, take_term, g);
    if (st != GX_OK)
        return gx_fail(err, st, "cannot analyse a query of %zu bytes: %s", len, gx_status_name(st));
    bag_add_staged(g); /* make_from_bag refuses too many terms */
    return make_from_bag(out, g, opt, err);
}

static gx_status bind_text(gx_plan *out, const gx_index *ix, const char *text, size_t len, const gx_query_options *opt,
                           gx_error *err)
{
    const gx_collection_stats stats = gx_collection_stats_of(ix);
    gx_query_plan plan;
    gx_status st = gx_query_plan_text(&plan, ix, text, len, &stats, opt, err);
    if (st != GX_OK)
        return st;
    st = gx_plan_bind(out, &plan, ix, err);
    gx_query_plan_free(&plan);
    return st;
}

gx_status gx_plan_make(gx_plan *out, const gx_index *ix, const char *text, size_t len, const gx_query_options *opt,
                       gx_error *err)
{
    term_bag g;
    if (gx_query_side_is_on(opt))
        return bind_text(out, ix, text, len, opt, err);
    g.ix = g.whole = ix;
    g.part = NULL;
    g.n = g.staged.n = g.staged.n_bytes = 0;
    return make_from_text(out, &g, text, len, opt, err);
}

gx_status gx_plan_make_live(gx_plan *out, const gx_index *collection, const char *text, size_t len,
                            const gx_query_options *opt, gx_error *err)
{
    term_bag g;
    assert(collection->parts && collection->parts->n == 1);
    g.part = collection->parts->parts;
    g.ix = g.part->ix;
    g.whole = collection;
    g.n = g.staged.n = g.staged.n_bytes = 0;
    return make_from_text(out, &g, text, len, opt, err);
}

gx_status gx_plan_make_ids(gx_plan *out, const gx_index *ix, const uint32_t *ids, const uint32_t *qtf, uint32_t n,
                           const gx_query_options *opt, gx_error *err)
{
    term_bag g;
    g.ix = g.whole = ix;
    g.part = NULL;
    g.n = 0;
    for (uint32_t i = 0; i < n && bag_add(&g, ids[i], qtf ? qtf[i] : 1); ++i)
        ;
    return make_from_bag(out, &g, opt, err);
}

void gx_plan_free(gx_plan *plan)
{
    gx_mask_close(plan->own_mask);
    gx_filter_close(plan->own_filter);
    gx_part_plans_free(plan->parts);
    plan->parts = NULL;
    plan->own_mask = NULL;
    plan->own_filter = NULL;
    free(plan->terms);
    free(plan->phrases);
    plan->terms = NULL;
    plan->phrases = NULL;
    plan->n_terms = plan->n_phrases = 0;
}

/* ---- over several indexes ---- */

static uint64_t index_df(const void *user, const char *term, size_t len)
{
    return gx_index_df_of(user, term, len);
}

static uint32_t index_max_tf(const void *user, const char *term, size_t len)
{
    const gx_index *ix = user;
    if (ix->parts)
        return gx_parts_max_tf(ix->parts, term, len);
    const uint32_t id = gx_index_find_term(ix, term, len);
    return id == UINT32_MAX ? 1 : gx_index_max_tf(ix, id);
}

static double index_unit(const void *user, const char *term, size_t len)
{
    const gx_index *ix = user;
    if (gx_view_of(ix))
        return gx_view_unit(ix, term, len);
    const uint32_t id = ix->units ? gx_index_find_term(ix, term, len) : UINT32_MAX;
    return id == UINT32_MAX ? ix->impact_unit : ix->units[id];
}

gx_collection_stats gx_collection_stats_of(const gx_index *ix)
{
    return (gx_collection_stats){gx_index_n_docs(ix), ix->avgdl, index_df,      index_max_tf,
                                 index_unit,          ix,        gx_view_of(ix)};
}

static int by_bytes(const void *a, const void *b)
{
    const gx_query_term *x = a, *y = b;
    const size_t len = x->len < y->len ? x->len : y->len;
    const int order = len ? memcmp(x->term, y->term, len) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Equal terms are told apart by their weights, so that the order of a sum depends on nothing else.
 * */
static int by_bytes_and_weight(const void *a, const void *b)
{
    const gx_query_term *x = a, *y = b;
    const int order = by_bytes(a, b);
    return order ? order : (x->qtf > y->qtf) - (x->qtf < y->qtf);
}

static int by_collection_df(const void *a, const void *b)
{
    const gx_query_term *x = a, *y = b;
    return x->df != y->df ? (x->df < y->df ? -1 : 1) : by_bytes(a, b);
}

/* Terms that are equal by the order are alike, so that any way of sorting gives the same. */
static inline void sort_query_terms(gx_query_term *t, uint32_t n, int (*compare)(const void *, const void *))
{
    if (n > FEW_TERMS) {
        qsort(t, n, sizeof *t, compare);
        return;
    }
    for (uint32_t i = 1; i < n; ++i) {
        const gx_query_term x = t[i];
        uint32_t j = i;
        for (; j && compare(&t[j - 1], &x) > 0; --j)
            t[j] = t[j - 1];
        t[j] = x;
    }
}

static gx_status check_weights(const gx_weighted_term *terms, uint32_t n, gx_error *err)
{
    for (uint32_t i = 0; i < n; ++i) {
        if (!(isfinite(terms[i].weight) && terms[i].weight > 0))
            return gx_fail(err, GX_EUSAGE, "the weight of '%.*s' is %g; it must be a finite number above 0",
                           terms[i].len < 80 ? (int)terms[i].len : 80, terms[i].term, terms[i].weight);
    }
    return GX_OK;
}

/* Whether the term is a phrase of a view of fields, which has an idf of its own. */
static bool is_phrase(const gx_query_term *t, const gx_collection_stats *stats)
{
    return stats->view && t->len && t->term[0] == GX_PHRASE_MARK;
}

/* Of terms whose dfs are asked for one after the other. */
typedef struct asking {
    const gx_collection_stats *stats;
    uint32_t n;
} asking;

static uint64_t ask_df(void *user, const char *term, size_t len)
{
    asking *a = user;
    ++a->n;
    return a->stats->df(a->stats->user, term, len);
}

/* q->terms[n] by bytes: equal ones become one, and those that the collection lacks go. */
static void merge_terms(gx_query_plan *q, uint32_t n, const gx_collection_stats *stats)
{
    asking a = {stats, 0};
    uint32_t kept = 0;
    sort_query_terms(q->terms, n, by_bytes_and_weight);
    for (uint32_t i = 0; i < n; ++i) {
        if (kept && by_bytes(&q->terms[kept - 1], &q->terms[i]) == 0)
            q->terms[kept - 1].qtf += q->terms[i].qtf;
        else
            q->terms[kept++] = q->terms[i];
    }
    for (uint32_t i = 0; i < kept; ++i) {
        gx_query_term t = q->terms[i];
        t.number = a.n;
        t.df = ask_df(&a, t.term, t.len);
        if (is_phrase(&t, stats) && t.df)
            t.idf = gx_view_phrase_idf(t.term, t.len, gx_preset_get(q->opt.preset)->idf, (double)stats->n_docs, ask_df,
                                       &a);
        t.unit = stats->unit(stats->user, t.term, t.len);
        if (t.df)
            q->terms[q->n_terms++] = t;
        else
            ++q->n_unknown;
    }
    sort_query_terms(q->terms, q->n_terms, by_collection_df);
}

/* Query-side BM25: what becomes of the qtf of q->terms, which are known. Unknown terms count in the query's length. */
static void weigh_query_side(gx_query_plan *q, double qlen, const gx_collection_stats *stats)
{
    const gx_preset_info *preset = gx_preset_get(q->opt.preset);
    const double k1 = isnan(q->opt.query_k1) ? 0.9 : q->opt.query_k1, b = isnan(q->opt.query_b) ? 0.4 : q->opt.query_b;
    const double K = k1 * (1 - b + b * qlen / stats->avgdl);
    for (uint32_t i = 0; i < q->n_terms; ++i) {
        gx_query_term *t = &q->terms[i];
        t->qtf = preset->idf((double)stats->n_docs, (double)t->df) * (t->qtf / (t->qtf + K));
    }
}

static double phrase_weight(const scorer *s, const gx_query_phrase *p)
{
    return p->idf * (s->preset->times_k1 && p->kind != GX_PHRASE_CONSTANT ? s->k1 + 1 : 1) * p->qtf;
}

/* Find the phrase's idf. Returns its weight. */
static double weigh_phrase(const scorer *s, uint64_t n_docs, gx_query_phrase *p)
{
    p->idf = p->kind == GX_PHRASE_CONSTANT ? 1 : 0;
    for (uint32_t w = 0, end; w < p->n && p->kind != GX_PHRASE_CONSTANT; w = end) {
        uint64_t df = p->words[w].df; /* of a place with several words, the greatest */
        for (end = w + 1; end < p->n && (p->words[end].other || p->kind == GX_PHRASE_ANY); ++end)
            df = p->words[end].df > df ? p->words[end].df : df;
        p->idf += s->preset->idf((double)n_docs, (double)df);
    }
    return phrase_weight(s, p);
}

/* The same sums in the same order as compute_weights's, so that equal queries have equal scores. */
gx_status gx_query_plan_weigh(gx_query_plan *q, const gx_collection_stats *stats, gx_error *err)
{
    const scorer s = scorer_of(&q->opt, stats->view);
    const uint32_t n_phrases = q->phrases ? q->phrases->n : 0;
    double weights[GX_MAX_TERMS], total = 0;
    for (uint32_t i = 0; i < q->n_terms; ++i) {
        const gx_query_term *t = &q->terms[i];
        weights[i] = is_phrase(t, stats) ? weight_by(&s, t->idf, t->qtf)
                                         : weight_of(&s, stats->n_docs, t->df, t->qtf);
        weights[i] *= t->unit;
        total += most_of(&s, weights[i], s.linear ? stats->max_tf(stats->user, t->term, t->len) : 1);
    }
    for (uint32_t i = 0; i < n_phrases; ++i)
        total += weigh_phrase(&s, stats->n_docs, &q->phrases->phrases[i]);
    if (total > FLT_MAX)
        return gx_fail(err, GX_EUSAGE,
                       "the sum of the terms' weights, each times its idf, is %g; it must be at most %g", total,
                       (double)FLT_MAX);
    q->exponent = scale_exponent(total);
    for (uint32_t i = 0; i < q->n_terms; ++i)
        q->terms[i].w = scaled(&s, weights[i], q->exponent);
    for (uint32_t i = 0; i < n_phrases; ++i)
        q->phrases->phrases[i].w = scaled(&s, phrase_weight(&s, &q->phrases->phrases[i]), q->exponent);
    q->norm = norm_of(&s, stats->avgdl);
    return GX_OK;
}

gx_status gx_query_plan_make(gx_query_plan *out, const gx_weighted_term *terms, uint32_t n,
                             const gx_collection_stats *stats, const gx_query_options *opt, gx_error *err)
{
    return gx_query_plan_make_phrases(out, terms, n, NULL, 0, stats, opt, err);
}

/* Add the phrases to a query that has its terms. */
static gx_status add_phrases(gx_query_plan *q, const gx_phrase_text *phrases, uint32_t n,
                             const gx_collection_stats *stats, gx_error *err)
{
    uint32_t n_unknown;
    const bool linear = gx_preset_get(q->opt.preset)->linear;
    for (uint32_t i = 0; i < n && (linear || stats->view); ++i)
        if (gx_phrase_is_group(phrases[i].kind))
            return gx_fail(err, GX_EUSAGE,
                           "words that count as one, or a constant, need term frequencies, %s; let each have its own "
                           "score (each), and leave synonyms out",
                           linear ? "which an index of impacts lacks" : "and are not weighed by fields");
    if (linear)
        return gx_fail(err, GX_EUSAGE, "the scorer %s has no score for phrases; use a BM25 scorer",
                       gx_preset_name(q->opt.preset));
    const gx_status st =
        gx_query_phrases_make(&q->phrases, &n_unknown, phrases, n, stats, q->n_terms + q->n_unknown, err);
    q->n_unknown += st == GX_OK ? n_unknown : 0;
    return st;
}

gx_status gx_query_plan_make_phrases(gx_query_plan *out, const gx_weighted_term *terms, uint32_t n,
                                     const gx_phrase_text *phrases, uint32_t n_phrases,
                                     const gx_collection_stats *stats, const gx_query_options *opt, gx_error *err)
{
    gx_query_plan q = {.opt = *opt, .op = opt->op};
    size_t n_bytes = 0;
    gx_status st = check_weights(terms, n, err);
    if (st != GX_OK)
        return st;
    for (uint32_t i = 0; i < n; ++i)
        n_bytes += terms[i].len;
    q.terms = malloc((n + 1ull) * sizeof *q.terms + n_bytes);
    if (!q.terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", n);
    char *bytes = (char *)(q.terms + n + 1);
    for (uint32_t i = 0; i < n; ++i) {
        if (terms[i].len)
            memcpy(bytes, terms[i].term, terms[i].len);
        q.terms[i] = (gx_query_term){.term = bytes, .len = terms[i].len, .qtf = terms[i].weight};
        bytes += terms[i].len;
    }
    merge_terms(&q, n, stats);
    if (n_phrases)
        st = add_phrases(&q, phrases, n_phrases, stats, err);
    if (st == GX_OK)
        st = q.n_terms + q.n_unknown + (q.phrases ? q.phrases->n : 0) > GX_MAX_TERMS
                 ? too_many_terms(err)
                 : gx_query_plan_weigh(&q, stats, err);
    if (st != GX_OK)
        gx_query_plan_free(&q);
    else
        *out = q;
    return st;
}

gx_status gx_query_plan_copy(gx_query_plan *out, const gx_query_plan *q, gx_error *err)
{
    size_t n_bytes = 0;
    for (uint32_t i = 0; i < q->n_terms; ++i)
        n_bytes += q->terms[i].len;
    *out = *q;
    out->phrases = NULL;
    out->terms = malloc((q->n_terms + 1ull) * sizeof *out->terms + n_bytes);
    if (!out->terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", q->n_terms);
    char *bytes = (char *)(out->terms + q->n_terms + 1);
    for (uint32_t i = 0; i < q->n_terms; ++i) {
        out->terms[i] = q->terms[i];
        out->terms[i].term = bytes;
        if (q->terms[i].len)
            memcpy(bytes, q->terms[i].term, q->terms[i].len);
        bytes += q->terms[i].len;
    }
    out->phrases = gx_query_phrases_share(q->phrases);
    return GX_OK;
}

/* The terms of a text, where they are few. */
typedef struct few_terms {
    uint32_t n, n_bytes;
    bool too_many;
    gx_weighted_term terms[32];
    char bytes[512];
} few_terms;

static bool take_few(void *user, const gx_found_term *found)
{
    few_terms *f = user;
    f->too_many = f->n == sizeof f->terms / sizeof *f->terms || found->len > sizeof f->bytes - f->n_bytes;
    if (f->too_many)
        return false;
    memcpy(f->bytes + f->n_bytes, found->term, found->len);
    f->terms[f->n++] = (gx_weighted_term){f->bytes + f->n_bytes, found->len, 1};
    f->n_bytes += (uint32_t)found->len;
    return true;
}

/* A plan of the terms of a text. */
static gx_status make_of_text(gx_query_plan *out, const gx_weighted_term *terms, uint32_t n,
                              const gx_collection_stats *stats, const gx_query_options *opt, gx_error *err)
{
    const gx_status st = gx_query_plan_make(out, terms, n, stats, opt, err);
    if (st != GX_OK || !gx_query_side_is_on(opt))
        return st;
    weigh_query_side(out, n, stats);
    const gx_status weighed = gx_query_plan_weigh(out, stats, err);
    if (weighed != GX_OK)
        gx_query_plan_free(out);
    return weighed;
}

static gx_status plan_long_text(gx_query_plan *out, const gx_index *ix, const char *text, size_t len,
                                const gx_collection_stats *stats, const gx_query_options *opt, gx_error *err)
{
    gx_text_term *found;
    size_t n;
    gx_status st = gx_index_analyze_query(ix, text, len, &found, &n, err);
    if (st != GX_OK)
        return st;
    gx_weighted_term *terms = malloc((n + 1) * sizeof *terms);
    if (!terms || n > UINT32_MAX)
        st = gx_fail(err, GX_ENOMEM, "no memory for a query of %zu terms", n);
    for (size_t i = 0; st == GX_OK && i < n; ++i)
        terms[i] = (gx_weighted_term){found[i].term, found[i].len, 1};
    if (st == GX_OK)
        st = make_of_text(out, terms, (uint32_t)n, stats, opt, err);
    free(terms);
    free(found);
    return st;
}

gx_status gx_query_plan_text(gx_query_plan *out, const gx_index *ix, const char *text, size_t len,
                             const gx_collection_stats *stats, const gx_query_options *opt, gx_error *err)
{
    few_terms few;
    few.n = few.n_bytes = 0;
    few.too_many = false;
    const gx_status st = gx_analyze_query(ix->analyzer, text, len, take_few, &few);
    if (st != GX_OK)
        return gx_fail(err, st, "cannot analyse a query of %zu bytes: %s", len, gx_status_name(st));
    return few.too_many ? plan_long_text(out, ix, text, len, stats, opt, err)
                        : make_of_text(out, few.terms, few.n, stats, opt, err);
}

gx_plan gx_query_plan_summary(const gx_query_plan *q, const gx_index *ix)
{
    gx_plan plan = empty_plan(ix, &q->opt);
    plan.op = q->op;
    plan.exponent = q->exponent;
    plan.norm = q->norm;
    plan.n_unknown = q->n_unknown;
    plan.n_terms = q->n_terms;
    plan.n_phrases = q->phrases ? q->phrases->n : 0;
    settle_op(&plan);
    return plan;
}

void gx_query_plan_free(gx_query_plan *q)
{
    gx_query_phrases_close(q->phrases);
    free(q->terms);
    q->phrases = NULL;
    q->terms = NULL;
    q->n_terms = 0;
}

/* Give the plan the query's phrases, as far as the index has them. */
static gx_status bind_phrases(gx_plan *plan, const gx_query_plan *q, const gx_index *ix, const uint32_t *ids,
                              size_t stride, gx_error *err)
{
    const gx_status st = gx_plan_phrases_make(&plan->phrases, &plan->n_unknown, q->phrases, ix, ids, stride, err);
    plan->n_phrases = st == GX_OK && plan->phrases ? plan->phrases->n : 0;
    return st;
}

gx_status gx_plan_bind_ids(gx_plan *out, const gx_query_plan *q, const gx_index *ix, const uint32_t *ids, size_t stride,
                           gx_plan_term *terms, gx_error *err)
{
    gx_plan plan = empty_plan(ix, &q->opt);
    plan.op = q->op;
    plan.exponent = q->exponent;
    plan.norm = q->norm;
    plan.n_unknown = q->n_unknown;
    plan.terms = terms;
    for (uint32_t i = 0; i < q->n_terms; ++i) {
        const gx_query_term *t = &q->terms[i];
        const uint32_t id = ids[t->number * stride];
        if (id == UINT32_MAX)
            ++plan.n_unknown;
        else
            terms[plan.n_terms++] = (gx_plan_term){.list = id, .df = ix->lists[id].df, .w = t->w, .qtf = t->qtf};
    }
    const gx_status st = bind_phrases(&plan, q, ix, ids, stride, err);
    settle_op(&plan);
    sort_terms(terms, plan.n_terms);
    check_bounds(&plan, ix);
    *out = plan;
    return st;
}

gx_status gx_plan_bind(gx_plan *out, const gx_query_plan *q, const gx_index *ix, gx_error *err)
{
    gx_plan plan = empty_plan(ix, &q->opt);
    gx_status st = check_scorer(&q->opt, ix, err);
    if (st != GX_OK)
        return st;
    plan.op = q->op;
    plan.exponent = q->exponent;
    plan.norm = q->norm;
    plan.n_unknown = q->n_unknown;
    plan.terms = malloc((q->n_terms + 1) * sizeof *plan.terms);
    if (!plan.terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", q->n_terms);
    for (uint32_t i = 0; i < q->n_terms; ++i) {
        const gx_query_term *t = &q->terms[i];
        const uint32_t id = gx_index_find_term(ix, t->term, t->len);
        if (id != UINT32_MAX && gx_index_unit(ix, id) != t->unit) {
            gx_plan_free(&plan);
            return gx_fail(err, GX_EUSAGE, "%s: the impacts of '%.*s' have the unit %g, and those of the collection %g",
                           ix->path, t->len < 80 ? (int)t->len : 80, t->term, gx_index_unit(ix, id), t->unit);
        }
        if (id == UINT32_MAX)
            ++plan.n_unknown;
        else
            plan.terms[plan.n_terms++] = (gx_plan_term){.list = id, .df = ix->lists[id].df, .w = t->w, .qtf = t->qtf};
    }
    if ((st = bind_phrases(&plan, q, ix, NULL, 0, err)) != GX_OK) {
        gx_plan_free(&plan);
        return st;
    }
    settle_op(&plan);
    sort_terms(plan.terms, plan.n_terms);
    check_bounds(&plan, ix);
    *out = plan;
    return GX_OK;
}
