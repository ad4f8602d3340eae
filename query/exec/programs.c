#include "query/exec/programs.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/fields/fields.h"
#include "query/plan/phrase_program.h"
#include "query/plan/phrases.h"

/* Plans that are run together, and whose they are. */
typedef struct group {
    gx_plan *plans;
    gx_hits *hits;
    uint32_t *of;
    uint32_t n;
} group;

typedef struct programs {
    group words, sought;
    gx_hits *by_words; /* [n] of ORs of words and a phrase: what the words find, in keys of its own */
} programs;

static bool is_alone(const gx_plan *plan)
{
    return plan->n_terms + plan->n_phrases == 1;
}

/* An engine tells two stretches of positions apart: title and text, or two fields. */
static bool is_taken(const gx_index *ix, const gx_plan *plan)
{
    if (plan->n_phrases == 0)
        return true;
    return (!ix->fields || ix->fields->n <= 2) && gx_plan_suits_program(plan) &&
           (plan->op != GX_OP_OR || plan->n_phrases == 1);
}

static bool open_group(group *g, uint32_t n)
{
    *g = (group){calloc(n, sizeof *g->plans), malloc(n * sizeof *g->hits), malloc(n * sizeof *g->of), 0};
    return g->plans && g->hits && g->of;
}

static void close_group(group *g)
{
    free(g->plans);
    free(g->hits);
    free(g->of);
}

static void add_to(group *g, const gx_plan *plan, gx_hits hits, uint32_t of)
{
    g->plans[g->n] = *plan;
    g->hits[g->n] = hits;
    g->of[g->n++] = of;
}

static gx_status add_plan(programs *p, const gx_index *ix, const gx_plan *plan, gx_hits hits, uint32_t i, gx_error *err)
{
    const bool both = plan->op == GX_OP_OR && plan->n_phrases && !is_alone(plan);
    if (plan->n_phrases) {
        gx_plan sought;
        const gx_status st = gx_program_plan_make(&sought, ix, plan, both, err);
        if (st != GX_OK)
            return st;
        add_to(&p->sought, &sought, hits, i);
    } else {
        add_to(&p->words, plan, hits, i);
    }
    if (both) {
        gx_plan words = *plan;
        p->by_words[i] = (gx_hits){.keys = malloc(plan->k * sizeof *hits.keys)};
        if (!p->by_words[i].keys)
            return gx_fail(err, GX_ENOMEM, "no memory for %u results", plan->k);
        words.n_phrases = 0;
        words.phrases = NULL;
        words.fill = false;
        add_to(&p->words, &words, p->by_words[i], i);
    }
    return GX_OK;
}

static int by_falling_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static int by_docid(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* To the matches, with all they score, add those found by words alone that are not among them. */
static gx_status join(gx_hits *matches, const gx_hits *by_words, uint32_t k, gx_error *err)
{
    const uint32_t n = matches->n;
    uint32_t *docids = malloc((n + 1ull) * sizeof *docids);
    uint64_t *keys = malloc((n + by_words->n + 1ull) * sizeof *keys);
    uint32_t all = n;
    if (docids && keys) {
        for (uint32_t i = 0; i < n; ++i)
            docids[i] = gx_key_docid(keys[i] = matches->keys[i]);
        qsort(docids, n, sizeof *docids, by_docid);
        for (uint32_t i = 0; i < by_words->n; ++i) {
            const uint32_t docid = gx_key_docid(by_words->keys[i]);
            if (n == 0 || !bsearch(&docid, docids, n, sizeof *docids, by_docid))
                keys[all++] = by_words->keys[i];
        }
        qsort(keys, all, sizeof *keys, by_falling_key);
        matches->n = all < k ? all : k;
        memcpy(matches->keys, keys, matches->n * sizeof *keys);
    }
    const bool good = docids && keys;
    free(docids);
    free(keys);
    return good ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %u results", k);
}

/* The k best by words bound those of the answer from below. */
static void raise_thresholds(programs *p)
{
    uint32_t at = 0;
    for (uint32_t j = 0; j < p->sought.n; ++j) {
        const uint32_t i = p->sought.of[j];
        gx_plan *plan = &p->sought.plans[j];
        if (!p->by_words[i].keys)
            continue;
        while (p->words.of[at] != i)
            ++at;
        const gx_hits *h = &p->words.hits[at];
        if (h->n == plan->k && gx_key_score(h->keys[h->n - 1]) > plan->initial_threshold)
            plan->initial_threshold = gx_key_score(h->keys[h->n - 1]);
    }
}

/* Both groups have run. */
static gx_status collect(programs *p, const gx_plan *plans, gx_hits *hits, bool *answered, uint32_t *n_fell,
                         gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t j = 0; j < p->words.n; ++j) {
        const uint32_t i = p->words.of[j];
        gx_hits *to = p->by_words[i].keys ? &p->by_words[i] : &hits[i];
        to->n = p->words.hits[j].n;
        answered[i] = true;
    }
    for (uint32_t j = 0; j < p->sought.n && st == GX_OK; ++j) {
        const uint32_t i = p->sought.of[j];
        hits[i].n = p->sought.hits[j].n;
        if (p->by_words[i].keys)
            st = join(&hits[i], &p->by_words[i], plans[i].k, err);
        answered[i] = plans[i].op != GX_OP_AND_OR || hits[i].n == plans[i].k;
        *n_fell += !answered[i];
    }
    return st;
}

static gx_status run_once(const gx_index *ix, const gx_plan *plans, uint32_t n, gx_hits *hits, bool *answered,
                          uint32_t *n_fell, gx_programs_run_fn *run, void *user, gx_error *err)
{
    programs p = {.by_words = calloc(n, sizeof *p.by_words)};
    const bool open = open_group(&p.words, n) & open_group(&p.sought, n);
    gx_status st = open && p.by_words ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %u queries", n);
    memset(answered, 0, n * sizeof *answered);
    *n_fell = 0;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        if (is_taken(ix, &plans[i]))
            st = add_plan(&p, ix, &plans[i], hits[i], i, err);
    if (st == GX_OK && p.words.n)
        st = run(user, p.words.plans, p.words.n, p.words.hits, err);
    if (st == GX_OK && p.sought.n) {
        raise_thresholds(&p);
        st = run(user, p.sought.plans, p.sought.n, p.sought.hits, err);
    }
    if (st == GX_OK)
        st = collect(&p, plans, hits, answered, n_fell, err);
    if (st != GX_OK)
        memset(answered, 0, n * sizeof *answered);
    for (uint32_t j = 0; j < p.sought.n; ++j)
        gx_program_plan_free(&p.sought.plans[j]);
    for (uint32_t i = 0; p.by_words && i < n; ++i)
        free(p.by_words[i].keys);
    free(p.by_words);
    close_group(&p.words);
    close_group(&p.sought);
    return st;
}

/* The ANDs that had too few results, as ORs. */
static gx_status run_fallen(const gx_index *ix, const gx_plan *plans, uint32_t n, gx_hits *hits, bool *answered,
                            uint32_t *n_fell, gx_programs_run_fn *run, void *user, gx_error *err)
{
    group g;
    const uint32_t most = *n_fell;
    bool *done = malloc(most * sizeof *done);
    gx_status st = open_group(&g, most) && done ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %u queries", most);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        gx_plan any = plans[i];
        any.op = GX_OP_OR;
        if (!answered[i] && plans[i].op == GX_OP_AND_OR && is_taken(ix, &plans[i]))
            add_to(&g, &any, hits[i], i);
    }
    if (st == GX_OK)
        st = run_once(ix, g.plans, g.n, g.hits, done, n_fell, run, user, err);
    *n_fell = 0;
    for (uint32_t j = 0; j < g.n && st == GX_OK; ++j) {
        hits[g.of[j]].n = g.hits[j].n;
        answered[g.of[j]] = done[j];
        *n_fell += done[j];
    }
    close_group(&g);
    free(done);
    return st;
}

gx_status gx_programs_run(const gx_index *ix, const gx_plan *plans, uint32_t n, gx_hits *hits, bool *answered,
                          uint32_t *n_fell, gx_programs_run_fn *run, void *user, gx_error *err)
{
    gx_status st = run_once(ix, plans, n, hits, answered, n_fell, run, user, err);
    if (st == GX_OK && *n_fell)
        st = run_fallen(ix, plans, n, hits, answered, n_fell, run, user, err);
    return st;
}
