/* session_filters.c: plans with filters: a GPU and joined parts read masks in their place. */
#include "query/engine/session_state.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/engine/masks.h"
#include "query/plan/field_way.h"

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
    const gx_status both = gx_mask_open_both(&b->both[i], s->en, p->mask, b->holds[i].mask, err);
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
    return gx_session_run_unfiltered(s, b->plans + begin, end - begin, b->hits + begin, err);
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
            return (st = gx_session_fall_back(s, &why, err)) ? st : run_unmasked(b, s, begin, n, err);
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
        st = gx_session_run_unfiltered(s, b->plans + begin, n - begin, b->hits + begin, err);
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
    *counted = false;
    for (uint32_t i = 0; i < n; ++i) {
        filtered = filtered || needs_mask(s, &plans[i]);
        if (plans[i].n_phrases) /* a GPU does not find them */
            return GX_OK;
    }
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

gx_status gx_session_run_exact(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    const bool gpu = !s->parts && s->en->ops != &gx_executor_cpu && !s->cpu_workspace;
    bool filtered = false, phrases = false;
    if (n && !s->parts && gx_plan_has_ways(&plans[0], s->en->ix))
        return gx_session_run_best_field(s, plans, n, hits, err);
    for (uint32_t i = 0; i < n && !phrases && !s->parts; ++i)
        phrases = plans[i].n_phrases != 0;
    if (phrases)
        return gx_session_run_phrases(s, plans, n, hits, err);
    for (uint32_t i = 0; i < n && !filtered; ++i)
        filtered = gpu ? needs_mask(s, &plans[i]) : plans[i].filter != NULL;
    const bool parts_filter = s->parts && !s->en->parts->joined;
    return (filtered && !parts_filter ? run_filtered : gx_session_run_unfiltered)(s, plans, n, hits, err);
}
