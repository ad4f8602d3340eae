/* session.c: sessions: the way of a batch of queries through an engine.
 *
 *   queries -> gx_engine_plan -> gx_plan [] -> gx_executor.run -> gx_hits [] -> the caller's docids
 *   and scores
 */
#include "query/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "engine/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "query/approximate.h"
#include "query/batch_buffer.h"
#include "query/collection.h"
#include "query/count.h"
#include "query/engine.h"
#include "query/fill.h"
#include "query/topk.h"
#include "query/wide_hits.h"

struct gx_session {
    gx_engine *en;
    gx_part_sessions *parts; /* of a collection; what follows up to work is NULL then */
    void *exec;              /* of en->ops; NULL once the GPU has failed */
    void *cpu_workspace;     /* stands in for it, or NULL */
    gx_counter *counter;
    gx_facet_engine facet_engine;
    uint64_t n_counted; /* queries whose matches the engine itself has counted */
    gx_search_stats work;
    uint64_t fell_when_planned; /* of work.and_fell_to_or, of a collection */
    gx_batch_buffer batch;      /* of a search */
    gx_batch_buffer missed;     /* the plans of a batch whose answers are not in the cache; has no keys of its own */
    uint32_t *missed_at;        /* [max_missed_at] their places in the batch */
    size_t max_missed_at;
    gx_batch_buffer passes;     /* first passes of a batch */
    uint64_t *candidates;       /* [max_candidates] of one plan: docid << 32 | score */
    uint32_t *candidate_docids; /* [max_candidates], */
    uint32_t *candidate_scores; /* and their scores */
    size_t max_candidates;
};

/* Batches are cut so that a part has no more keys than this, or one query. */
#define SLICE_KEYS ((size_t)4 << 20)
#define SLICE_QUERIES 65536u
#define PLANS_SLICE 4096u /* queries that gx_session_plan plans at a time */

/* ---- sessions ---- */

void gx_session_close(gx_session *s)
{
    if (!s)
        return;
    gx_part_sessions_close(s->parts);
    if (s->exec)
        gx_spares_give(s->en->spares, s->en->ops, s->en->opt.device, s->exec);
    if (s->cpu_workspace)
        gx_executor_cpu.workspace_close(s->cpu_workspace);
    gx_counter_close(s->counter);
    gx_batch_buffer_free(&s->batch);
    gx_batch_buffer_free(&s->missed);
    free(s->missed_at);
    gx_batch_buffer_free(&s->passes);
    free(s->candidates);
    free(s->candidate_docids);
    free(s->candidate_scores);
    free(s);
}

const gx_search_stats *gx_session_stats(const gx_session *session)
{
    gx_session *s =
        (gx_session *)session; /* of a collection the sum is made here; only the session's thread may call */
    if (s->parts) {
        const uint64_t cached = s->work.cached;
        gx_part_sessions_stats(s->parts, &s->work);
        s->work.and_fell_to_or += s->fell_when_planned;
        s->work.cached = cached;
    }
    return &s->work;
}

gx_status gx_session_get_memory(const gx_session *s, gx_session_memory *out)
{
    gx_session_memory m = {sizeof m, 0, 0};
    if (s->parts)
        gx_part_sessions_memory(s->parts, &m);
    if (s->exec && s->en->ops->memory)
        s->en->ops->memory(s->exec, &m.device, &m.pinned);
    return gx_sized_write(out, &m, sizeof m, GX_SIZE_THROUGH(gx_session_memory, pinned));
}

/* Give the session a CPU executor in place of a GPU that failed for the reason in gpu. */
static gx_status fall_back_to_cpu(gx_session *s, const gx_error *gpu, gx_error *err)
{
    gx_status st = gx_engine_fall_back(s->en, gpu, err);
    if (st == GX_OK && (st = gx_executor_cpu.workspace_open(&s->cpu_workspace, s->en->cpu_prepared_index, err)))
        s->cpu_workspace = NULL;
    return st;
}

gx_status gx_session_open(gx_session **out, gx_engine *en, gx_error *err)
{
    gx_error gpu;
    *out = NULL;
    gx_clear_error(err);
    gx_session *s = calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a session");
    s->en = en;
    s->batch.wide = s->passes.wide = gx_index_is_wide(en->ix);
    gpu.text[0] = 0;
    gx_status st = en->parts ? gx_part_sessions_open(&s->parts, en->parts, err)
                             : gx_spares_take(en->spares, en->ops, en->opt.device, en->state, &s->exec, &gpu);
    if (st != GX_OK && !en->parts) {
        s->exec = NULL;
        st = gx_engine_can_fall_back(en, st) ? fall_back_to_cpu(s, &gpu, err) : gx_fail(err, st, "%s", gpu.text);
    }
    if (st != GX_OK) {
        gx_session_close(s);
        return st;
    }
    *out = s;
    return GX_OK;
}

/* Run plans that are good for this session on its engine, or on the CPU that stands in for it. A
 * GPU gets masks in the place of filters that it does not take. */
static gx_status run_plans(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    const gx_executor *ops = s->en->ops;
    if (s->parts) {
        return gx_part_sessions_run(s->parts, plans, n, hits, err);
    }
    if (!s->cpu_workspace) {
        gx_error gpu;
        gpu.text[0] = 0;
        gx_status st = ops->run(s->exec, plans, n, hits, &s->work, &gpu);
        if (st == GX_OK)
            return GX_OK;
        if (!gx_engine_can_fall_back(s->en, st))
            return gx_fail(err, st, "%s", gpu.text);
        if ((st = fall_back_to_cpu(s, &gpu, err)) != GX_OK)
            return st;
    }
    return gx_executor_cpu.run(s->cpu_workspace, plans, n, hits, &s->work, err);
}

/* ---- plans with filters ---- */

/* What a batch counts instead of searching (gx_session_count_matches). */
typedef struct counting {
    const gx_facet_ordinals *const *facets; /* [n_facets] */
    uint32_t n_facets;
    bool counted;
} counting;

/* A batch of which at least one plan has a filter. */
typedef struct filtered_batch {
    counting *counting;      /* NULL: it is searched */
    gx_match_counts *counts; /* [n] of copies, in the place of hits */
    gx_plan *plans;          /* [n] copies, in the order in which they run */
    gx_hits *hits;           /* [n] */
    gx_filter_hold *holds;   /* [n] */
    gx_mask **both;          /* [n] masks of a filter and of the plan's own mask, or NULL */
    uint32_t *order;         /* [n] the numbers of the plans */
} filtered_batch;

static void free_filtered(filtered_batch *b)
{
    free(b->plans);
    free(b->hits);
    free(b->counts);
    free(b->holds);
    free(b->both);
    free(b->order);
}

static bool reserve_filtered(filtered_batch *b, uint32_t n, counting *c)
{
    *b = (filtered_batch){c,
                          c ? malloc(n * sizeof *b->counts) : NULL,
                          malloc(n * sizeof *b->plans),
                          malloc(n * sizeof *b->hits),
                          calloc(n, sizeof *b->holds),
                          calloc(n, sizeof *b->both),
                          malloc(n * sizeof *b->order)};
    if (b->plans && b->hits && b->holds && b->both && b->order && (!c || b->counts))
        return true;
    free_filtered(b);
    return false;
}

static int compare_texts(const gx_filter *f, const gx_filter *g)
{
    if (f == g || !f || !g)
        return f == g ? 0 : f ? 1 : -1;
    const size_t common = f->text_len < g->text_len ? f->text_len : g->text_len;
    const int order = memcmp(f->text, g->text, common);
    return order ? order : (f->text_len > g->text_len) - (f->text_len < g->text_len);
}

/* By filter, so that plans of equal filters are neighbours; those without one come first. */
static int compare_filters(const void *a, const void *b, void *user)
{
    const gx_plan *plans = user;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const int order = compare_texts(plans[i].filter, plans[j].filter);
    return order ? order : (i > j) - (i < j);
}

/* The documents of both masks. */
static gx_status open_both(gx_mask **out, gx_engine *en, const gx_mask *a, const gx_mask *b, gx_error *err)
{
    const size_t n_words = ((size_t)en->ix->n_docs + 63) / 64;
    if (en->parts) {
        gx_mask **parts;
        const gx_status st = gx_part_masks_both(&parts, en->parts, a->parts, b->parts, err);
        return st == GX_OK ? gx_mask_of_parts(out, en, parts, err) : st;
    }
    uint64_t *words = malloc((n_words + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for a mask");
    for (size_t w = 0; w < n_words; ++w)
        words[w] = gx_mask_word(a, w) & gx_mask_word(b, w);
    const gx_status st = gx_mask_open(out, en, words, err);
    free(words);
    return st;
}

/* Whether the engine reads a mask in the place of the plan's filter. */
static bool needs_mask(const gx_session *s, const gx_plan *plan)
{
    const gx_executor *ops = s->en->ops;
    if (!plan->filter || (!s->parts && (ops == &gx_executor_cpu || s->cpu_workspace)))
        return false;
    return s->parts || !ops->takes_filter || !ops->takes_filter(s->en->state, plan);
}

/* The mask of the i-th copy: its filter's, and its own. */
static gx_status give_mask(filtered_batch *b, gx_session *s, uint32_t i, gx_error *err)
{
    gx_plan *p = &b->plans[i];
    const gx_status st = gx_filter_cache_get(s->en->filters, p->filter, true, &b->holds[i], err);
    if (st != GX_OK || !p->mask) {
        p->mask = b->holds[i].mask;
        return st;
    }
    const gx_status both = open_both(&b->both[i], s->en, p->mask, b->holds[i].mask, err);
    p->mask = b->both[i];
    return both;
}

static void release_masks(filtered_batch *b, gx_session *s, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; ++i) {
        gx_mask_close(b->both[i]);
        b->both[i] = NULL;
        gx_filter_cache_release(s->en->filters, &b->holds[i]);
    }
}

/* Give masks to the copies from `begin` on, as many as the budget has room for, and to one in any
 * case. If GPU memory is short of that, to fewer. Returns where it stopped. */
static uint32_t give_masks(filtered_batch *b, gx_session *s, uint32_t begin, uint32_t n, gx_status *st, gx_error *err)
{
    const uint64_t room = s->en->opt.filter_memory / gx_mask_bytes(s->en->ix->n_docs);
    const gx_filter *last = NULL; /* of the plan before, and that plan's own mask */
    const gx_mask *last_own = NULL, *last_mask = NULL;
    uint64_t n_masks = 0;
    uint32_t i = begin;
    for (*st = GX_OK; i < n; ++i) {
        gx_plan *p = &b->plans[i];
        const gx_mask *own = p->mask;
        if (!needs_mask(s, p))
            continue;
        if (last && !p->filter->reads_files && compare_texts(last, p->filter) == 0 && own == last_own) {
            p->mask = last_mask;
            continue;
        }
        n_masks += 1 + (own != NULL);
        if (n_masks > room && last)
            break;
        *st = give_mask(b, s, i, err);
        if (*st == GX_ECUDA && !last) { /* make room of what is kept from earlier */
            release_masks(b, s, i, i + 1);
            gx_filter_cache_empty(s->en->filters);
            p->mask = own;
            *st = give_mask(b, s, i, err);
        }
        if (*st != GX_OK) {
            p->mask = own;
            release_masks(b, s, i, i + 1);
            break;
        }
        last = p->filter;
        last_own = own;
        last_mask = p->mask;
    }
    for (uint32_t m = begin; m < i; ++m) /* the mask says all */
        b->plans[m].filter = needs_mask(s, &b->plans[m]) ? NULL : b->plans[m].filter;
    if (*st == GX_ECUDA && i > begin)
        *st = GX_OK; /* first the others run and let go of their masks */
    return i;
}

static gx_status run_unmasked(filtered_batch *b, gx_session *s, uint32_t begin, uint32_t n, gx_error *err);

/* Count, on the engine's GPU. Not if it has failed, or has too little memory. */
static gx_status count_plans(gx_session *s, const gx_plan *plans, uint32_t n, gx_match_counts *counts, counting *c,
                             gx_error *err)
{
    gx_error gpu;
    gpu.text[0] = 0;
    const gx_status st =
        s->en->ops->count_matches(s->exec, plans, n, c->facets, c->n_facets, counts, &c->counted, &gpu);
    if (st == GX_OK)
        return GX_OK;
    c->counted = false;
    return gx_engine_can_fall_back(s->en, st) ? GX_OK : gx_fail(err, st, "%s", gpu.text);
}

/* Copies [begin, end), which need no mask that they do not have. */
static gx_status run_copies(filtered_batch *b, gx_session *s, uint32_t begin, uint32_t end, gx_error *err)
{
    if (b->counting)
        return count_plans(s, b->plans + begin, end - begin, b->counts + begin, b->counting, err);
    return run_plans(s, b->plans + begin, end - begin, b->hits + begin, err);
}

/* A GPU and joined parts read masks. The plans run in order of their filters, some at a time. */
static gx_status run_masked(filtered_batch *b, gx_session *s, uint32_t n, gx_error *err)
{
    for (uint32_t begin = 0, end; begin < n; begin = end) {
        gx_error why = {0};
        gx_status st;
        end = give_masks(b, s, begin, n, &st, &why);
        if (b->counting && gx_engine_can_fall_back(s->en, st)) {
            b->counting->counted = false;
            return GX_OK;
        }
        if (!s->parts && gx_engine_can_fall_back(s->en, st))
            return (st = fall_back_to_cpu(s, &why, err)) ? st : run_unmasked(b, s, begin, n, err);
        if (st == GX_OK)
            st = run_copies(b, s, begin, end, err);
        else
            gx_fail(err, st, "%s", why.text);
        release_masks(b, s, begin, end);
        if (st != GX_OK || (b->counting && !b->counting->counted))
            return st;
    }
    return GX_OK;
}

/* The CPU tests what has no mask by the filter itself. */
static gx_status run_unmasked(filtered_batch *b, gx_session *s, uint32_t begin, uint32_t n, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = begin; i < n && st == GX_OK; ++i) {
        if (b->plans[i].filter)
            st = gx_filter_cache_get(s->en->filters, b->plans[i].filter, false, &b->holds[i], err);
        b->plans[i].filter_mask = b->holds[i].mask;
    }
    if (st == GX_OK)
        st = run_plans(s, b->plans + begin, n - begin, b->hits + begin, err);
    release_masks(b, s, begin, n);
    return st;
}

/* Copy the plans. With masks they run in the order of their filters. */
static gx_status open_filtered(filtered_batch *b, const gx_plan *plans, uint32_t n, bool masked, counting *c,
                               gx_error *err)
{
    if (!reserve_filtered(b, n, c))
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries with filters", n);
    for (uint32_t i = 0; i < n; ++i)
        b->order[i] = i;
    if (masked)
        qsort_r(b->order, n, sizeof *b->order, compare_filters, (void *)plans);
    for (uint32_t i = 0; i < n; ++i)
        b->plans[i] = plans[b->order[i]];
    return GX_OK;
}

static gx_status run_filtered(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    const bool masked = s->parts || (s->en->ops != &gx_executor_cpu && !s->cpu_workspace);
    filtered_batch b;
    gx_status st = open_filtered(&b, plans, n, masked, NULL, err);
    if (st != GX_OK)
        return st;
    for (uint32_t i = 0; i < n; ++i)
        b.hits[i] = hits[b.order[i]];
    st = masked ? run_masked(&b, s, n, err) : run_unmasked(&b, s, 0, n, err);
    for (uint32_t i = 0; i < n; ++i)
        hits[b.order[i]].n = b.hits[i].n;
    free_filtered(&b);
    return st;
}

gx_status gx_session_count_matches(gx_session *s, const gx_plan *plans, uint32_t n,
                                   const gx_facet_ordinals *const *facets, uint32_t n_facets, gx_match_counts *counts,
                                   bool *counted, gx_error *err)
{
    counting c = {facets, n_facets, true};
    filtered_batch b;
    bool filtered = false;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n; ++i)
        filtered = filtered || needs_mask(s, &plans[i]);
    if (!filtered) {
        st = count_plans(s, plans, n, counts, &c, err);
    } else if ((st = open_filtered(&b, plans, n, true, &c, err)) == GX_OK) {
        for (uint32_t i = 0; i < n; ++i)
            b.counts[i] = counts[b.order[i]];
        st = run_masked(&b, s, n, err);
        for (uint32_t i = 0; i < n; ++i)
            counts[b.order[i]].n_matches = b.counts[i].n_matches;
        free_filtered(&b);
    }
    *counted = c.counted;
    s->n_counted += st == GX_OK && c.counted ? n : 0;
    return st;
}

void gx_session_set_facet_engine(gx_session *s, gx_facet_engine engine)
{
    s->facet_engine = engine;
}

gx_facet_engine gx_session_facet_engine(const gx_session *s)
{
    return s->facet_engine;
}

uint64_t gx_session_n_counted(const gx_session *s)
{
    return s->n_counted;
}

gx_status gx_session_facet_ordinals(gx_session *s, uint32_t column, const gx_facet *facet,
                                    const gx_facet_ordinals **out, gx_error *err)
{
    const gx_executor *ops = s->en->ops;
    *out = NULL;
    return s->exec && !s->cpu_workspace && ops->facet_ordinals ? ops->facet_ordinals(s->exec, column, facet, out, err)
                                                               : GX_OK;
}

/* As run_plans, for plans with filters too. */
static gx_status run_all_plans(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    const bool gpu = !s->parts && s->en->ops != &gx_executor_cpu && !s->cpu_workspace;
    bool filtered = false;
    for (uint32_t i = 0; i < n && !filtered; ++i)
        filtered = gpu ? needs_mask(s, &plans[i]) : plans[i].filter != NULL;
    const bool parts_filter = s->parts && !s->en->parts->joined;
    return (filtered && !parts_filter ? run_filtered : run_plans)(s, plans, n, hits, err);
}

/* ---- answers that need not be exact ---- */

void gx_session_add_scores(gx_session *s, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n)
{
    s->work.lookups += (uint64_t)n * rest->n_terms;
    if (s->cpu_workspace)
        gx_executor_cpu.add_scores(s->cpu_workspace, rest, docids, scores, n);
    else if (s->en->ops->add_scores)
        s->en->ops->add_scores(s->exec, rest, docids, scores, n);
    else
        gx_add_scores(s->en->ix, rest, docids, scores, n);
}

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
    const gx_status st = m ? run_all_plans(s, b->plans, m, b->hits, err) : GX_OK;
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
        st = run_all_plans(s, b->plans, n, b->hits, err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if (passes[i].first.k == 0)
            hits[i].n = b->hits[i].n;
        else if (b->hits[i].n >= plans[i].k)
            st = choose_best(s, &plans[i], &passes[i].rest, &b->hits[i], &hits[i], err);
    }
    return st == GX_OK ? run_again(s, plans, n, hits, passes, err) : st;
}

/* As run_all_plans, for plans that need not be answered exactly too. */
static gx_status run_any_plans(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_status st = GX_OK;
    bool approximate = false;
    for (uint32_t i = 0; i < n; ++i)
        approximate = approximate || gx_plan_is_approximate(&plans[i]);
    if (!approximate)
        return run_all_plans(s, plans, n, hits, err);
    for (uint32_t begin = 0, end; begin < n && st == GX_OK; begin = end) {
        size_t n_keys = 0;
        for (end = begin; end < n && (end == begin || n_keys < SLICE_KEYS); ++end)
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

/* ---- the cache of results ---- */

static gx_status reserve_missed(gx_session *s, uint32_t n, gx_error *err)
{
    const gx_status st = gx_batch_buffer_reserve(&s->missed, n, 0, err);
    return st != GX_OK || gx_reserve(&s->missed_at, &s->max_missed_at, n, sizeof *s->missed_at)
               ? st
               : gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
}

/* Run the plans whose answers the cache does not have, and keep their answers there. */
static gx_status run_missed(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_result_cache *cache = s->en->cache;
    uint32_t m = 0;
    gx_status st = reserve_missed(s, n, err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i) {
        if (gx_result_cache_find(cache, &plans[i], &hits[i])) {
            ++s->work.cached;
            continue;
        }
        s->missed.plans[m] = plans[i];
        s->missed.hits[m] = hits[i];
        s->missed_at[m++] = i;
    }
    if (st == GX_OK && m)
        st = run_any_plans(s, s->missed.plans, m, s->missed.hits, err);
    for (uint32_t j = 0; st == GX_OK && j < m; ++j) {
        hits[s->missed_at[j]] = s->missed.hits[j];
        gx_result_cache_add(cache, &s->missed.plans[j], &s->missed.hits[j]);
    }
    return st;
}

gx_status gx_session_run(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; st == GX_OK && i < n; ++i)
        st = gx_engine_check_mask(s->en, plans[i].mask, err);
    for (uint32_t i = 0; st == GX_OK && i < n && s->batch.wide; ++i)
        if (!hits[i].highs)
            st = gx_fail(err, GX_EUSAGE, "%s has more than 2^32 - 2 documents: docids take 64 bits", s->en->ix->path);
    if (st == GX_OK)
        st = (s->en->cache ? run_missed : run_any_plans)(s, plans, n, hits, err);
    for (uint32_t i = 0; st == GX_OK && i < n && !s->parts; ++i) /* parts are filled by their own sessions */
        st = gx_fill(s->en->ix, &plans[i], &hits[i], err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i) {
        for (uint32_t j = 0; plans[i].base && j < hits[i].n; ++j)
            hits[i].keys[j] = gx_key_rebase(hits[i].keys[j], plans[i].base);
    }
    return st;
}

void gx_session_expect(const gx_session *s, const gx_plan *plan, bool known)
{
    if (s->exec && s->en->ops->expect && !s->cpu_workspace)
        s->en->ops->expect(s->exec, plan, known);
}

/* ---- a batch ---- */

/* The i-th of the caller's queries, each as large as the first says. */
static gx_query query_at(const gx_query *queries, size_t i)
{
    const size_t size = queries->size;
    gx_query q = {0};
    memcpy(&q, (const char *)queries + i * size, size < sizeof q ? size : sizeof q);
    return q;
}

/* Every query of a batch has the first one's size. */
static gx_status check_queries(const gx_query *queries, uint32_t n, gx_error *err)
{
    if (n && !queries)
        return gx_fail(err, GX_EUSAGE, "there are no queries: the array is NULL, and n is %u", n);
    gx_status st = n ? gx_sized_check(queries->size, GX_SIZE_THROUGH(gx_query, n_terms), "gx_query", err) : GX_OK;
    for (uint32_t i = 1; i < n && st == GX_OK; ++i) {
        const size_t size = query_at(queries, i).size;
        if (size != queries->size)
            st = gx_fail(err, GX_EUSAGE,
                         "query %u of the batch has size %zu, and the first has %zu; set both to sizeof(gx_query)", i,
                         size, queries->size);
    }
    return st;
}

/* In a collection; joined parts read the filter as a mask. words: the matches' bits, or NULL. */
static gx_status match_in_parts(gx_session *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    gx_plan masked = *plan;
    gx_filter_hold hold = {NULL, NULL, NULL};
    gx_mask *both = NULL;
    const bool by_mask = plan->filter && s->en->parts->joined;
    gx_status st = by_mask ? gx_filter_cache_get(s->en->filters, plan->filter, true, &hold, err) : GX_OK;
    if (st == GX_OK && by_mask && plan->mask)
        st = open_both(&both, s->en, plan->mask, hold.mask, err);
    if (by_mask)
        masked.mask = both ? both : hold.mask;
    if (st == GX_OK)
        st = gx_part_sessions_match(s->parts, &masked, words, n, err);
    gx_mask_close(both);
    if (by_mask)
        gx_filter_cache_release(s->en->filters, &hold);
    return st;
}

static gx_status match_in_file(gx_session *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    uint64_t any = 0, all = 0;
    gx_status st = s->counter ? GX_OK : gx_counter_open(&s->counter, s->en->ix, err);
    if (st == GX_OK)
        st = gx_count_any_and_all(s->counter, plan, plan->op != GX_OP_AND ? &any : NULL,
                                  plan->op != GX_OP_OR ? &all : NULL, err);
    if (st != GX_OK)
        return st;
    const bool of_all = gx_count_is_of_all(plan, all);
    const size_t bytes = ((size_t)s->en->ix->n_docs + 63) / 64 * sizeof *words;
    *n = of_all ? all : any;
    if (words && (plan->n_terms || plan->fill))
        memcpy(words, (of_all ? gx_counter_all : gx_counter_any)(s->counter), bytes);
    else if (words)
        memset(words, 0, bytes);
    return GX_OK;
}

static gx_status match(gx_session *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    return (s->parts ? match_in_parts : match_in_file)(s, plan, words, n, err);
}

static gx_status count(gx_session *s, uint32_t n, uint64_t *n_matches, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = match(s, &s->batch.plans[i], NULL, &n_matches[i], err);
    return st;
}

/* A batch of the caller's: its queries, what is asked of them, and where the answers go. */
typedef struct search_batch {
    const gx_query *queries;
    const gx_query_options *opt;
    const gx_results *out;
    uint32_t max_hits; /* of one query */
} search_batch;

/* From index `at` on. */
static void write_docids(const gx_results *out, size_t at, const gx_hits *h)
{
    for (uint32_t j = 0; out->docids && j < h->n; ++j)
        out->docids[at + j] = gx_key_docid(h->keys[j]);
    for (uint32_t j = 0; out->docids64 && j < h->n; ++j)
        out->docids64[at + j] = gx_hits_docid(h, j);
}

/* Queries [first, first + n) of the batch: plan, run, write the answers. */
static gx_status search_slice(gx_session *s, const search_batch *b, uint32_t first, uint32_t n, gx_error *err)
{
    const gx_query_options *const opt = b->opt;
    const gx_results *const out = b->out;
    const uint32_t max_hits = b->max_hits;
    uint32_t planned = 0;
    gx_status st = gx_batch_buffer_reserve(&s->batch, n, (size_t)n * max_hits, err);
    for (; st == GX_OK && planned < n; ++planned) {
        const gx_query q = query_at(b->queries, (size_t)first + planned);
        if ((st = gx_engine_plan(&s->batch.plans[planned], s->en, &q, opt, err)) != GX_OK)
            break;
        const size_t at = (size_t)planned * max_hits;
        s->batch.hits[planned] = (gx_hits){s->batch.keys + at, 0, s->batch.highs ? s->batch.highs + at : NULL};
    }
    if (st == GX_OK)
        st = gx_session_run(s, s->batch.plans, n, s->batch.hits, err);
    if (st == GX_OK && opt->count && out->n_matches)
        st = count(s, n, out->n_matches + first, err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i) {
        const gx_hits *h = &s->batch.hits[i];
        const size_t at = ((size_t)first + i) * opt->k;
        if (opt->op == GX_OP_AND_OR && s->batch.plans[i].op == GX_OP_OR && s->batch.plans[i].n_unknown) {
            s->work.and_fell_to_or += 1; /* known when it was planned */
            s->fell_when_planned += s->parts != NULL;
        }
        write_docids(out, at, h);
        for (uint32_t j = 0; j < h->n; ++j) {
            if (out->scores)
                out->scores[at + j] = ldexpf((float)gx_key_score(h->keys[j]), -s->batch.plans[i].exponent);
            if (out->exact_scores)
                out->exact_scores[at + j] = ldexp(gx_key_score(h->keys[j]), -s->batch.plans[i].exponent);
        }
        out->n_hits[first + i] = h->n;
    }
    for (uint32_t i = 0; i < planned; ++i)
        gx_plan_free(&s->batch.plans[i]);
    return st;
}

/* What a search's plans ask: the caller's cancel function, and the time. */
typedef struct time_limit {
    const gx_query_options *opt;
    double until; /* of the monotonic clock */
    bool late;
} time_limit;

static bool is_cancelled_or_late(void *user)
{
    time_limit *l = user;
    if (l->opt->cancel && l->opt->cancel(l->opt->user))
        return true;
    l->late = l->late || gx_clock_seconds() >= l->until;
    return l->late;
}

/* opt, a copy of asked, gets a cancel function that also looks at the time, where that is limited. */
static void begin_time(time_limit *limit, const gx_query_options *asked, gx_query_options *opt)
{
    *limit = (time_limit){asked, 0, false};
    if (asked->seconds > 0) {
        limit->until = gx_clock_seconds() + asked->seconds;
        opt->cancel = is_cancelled_or_late;
        opt->user = limit;
    }
}

static gx_status end_time(const time_limit *limit, gx_status st, gx_error *err)
{
    if (st == GX_ECANCELLED && limit->late)
        return gx_fail(err, GX_EDEADLINE, "the search took longer than the %g s that it was given",
                       limit->opt->seconds);
    return st;
}

gx_status gx_search(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *options,
                    const gx_results *results, gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_results out = {0};
    gx_clear_error(err);
    gx_status st = gx_sized_read(&opt, sizeof opt, options, GX_QUERY_OPTIONS_LEAST, "gx_query_options", err);
    if (st == GX_OK)
        st = gx_sized_read(&out, sizeof out, results, GX_SIZE_THROUGH(gx_results, n_matches), "gx_results", err);
    if (st != GX_OK)
        return st;
    if (n && (!out.n_hits || (!out.docids && !out.docids64 && s->en->ix->n_docs))) /* without documents no results */
        return gx_fail(err, GX_EUSAGE, "there is no place for the results: docids and n_hits are needed");
    if (n && out.docids && gx_index_is_wide(s->en->ix))
        return gx_fail(
            err, GX_EUSAGE,
            "%s has more than 2^32 - 2 documents: gx_results.docids64 takes their docids, and docids is NULL",
            s->en->ix->path);
    if ((st = check_queries(queries, n, err)) != GX_OK || (st = gx_query_options_check(&opt, s->en->ix, err)) != GX_OK)
        return st;

    const gx_query_options asked = opt;
    time_limit limit;
    begin_time(&limit, &asked, &opt);
    const uint32_t n_docs = s->en->ix->n_docs, max_hits = opt.k < n_docs ? opt.k : n_docs ? n_docs : 1;
    const search_batch batch = {queries, &opt, &out, max_hits};
    size_t part = SLICE_KEYS / max_hits;
    part = part < 1 ? 1 : part > SLICE_QUERIES ? SLICE_QUERIES : part;
    for (uint32_t first = 0; first < n && st == GX_OK;) {
        const uint32_t m = n - first < part ? n - first : (uint32_t)part;
        st = search_slice(s, &batch, first, m, err);
        first += m;
    }
    return end_time(&limit, st, err);
}

const gx_engine *gx_session_engine(const gx_session *s)
{
    return s->en;
}

bool gx_engine_is_shard(const gx_engine *en)
{
    return en->parts && en->parts->shard;
}

gx_status gx_session_plan(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *asked,
                          gx_plans_use *use, void *user, gx_error *err)
{
    gx_query_options opt = *asked;
    time_limit limit;
    gx_status st = check_queries(queries, n, err);
    if (st != GX_OK || (st = gx_query_options_check(&opt, s->en->ix, err)) != GX_OK)
        return st;
    begin_time(&limit, asked, &opt);
    for (uint32_t first = 0, m; first < n && st == GX_OK; first += m) {
        uint32_t planned = 0;
        m = n - first < PLANS_SLICE ? n - first : PLANS_SLICE;
        st = gx_batch_buffer_reserve(&s->batch, m, 0, err);
        for (; planned < m && st == GX_OK; planned += st == GX_OK) {
            const gx_query q = query_at(queries, (size_t)first + planned);
            st = gx_engine_plan(&s->batch.plans[planned], s->en, &q, &opt, err);
        }
        for (uint32_t i = 0; i < m && st == GX_OK; ++i)
            st = gx_engine_check_mask(s->en, s->batch.plans[i].mask, err);
        if (st == GX_OK)
            st = use(user, s->batch.plans, first, m, err);
        for (uint32_t i = 0; i < planned; ++i)
            gx_plan_free(&s->batch.plans[i]);
    }
    return end_time(&limit, st, err);
}

gx_status gx_session_match(gx_session *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    return match(s, plan, words, n, err);
}
