/* session.c: engines and sessions: which executor answers, and the way of a batch through it.
 *
 *   queries -> gx_engine_plan -> gx_plan [] -> gx_executor.run -> gx_hits [] -> the caller's docids
 *   and scores
 */
#include "query/session.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "query/batch_buffer.h"
#include "query/boolean.h"
#include "query/collection.h"
#include "query/count.h"
#include "query/filter_cache.h"
#include "query/mask.h"
#include "query/pairs.h"
#include "query/result_cache.h"

const gx_executor *const gx_executors[] = {
    &gx_executor_cpu,
#if GX_CUDA
    &gx_executor_cuda,
#endif
    NULL,
};

#define MAX_PAIR_TABLES 64u  /* tables: a scorer, k1, b and k each */
#define GPU_PAIR_SESSIONS 4u /* sessions that keep a GPU busy with pairs */

struct gx_engine {
    const gx_index *ix;
    atomic_uint n_more;     /* holders but one; gx_engine_share */
    gx_part_engines *parts; /* of a collection: the engines of its parts; state is NULL then */
    const gx_executor *gpu; /* what gx_engine_reopen opens with */
    gx_engine_options opt;
    const gx_executor *ops;
    void *state;
    gx_pair_thresholds *pairs[MAX_PAIR_TABLES]; /* [n_pairs], by the order in which they were made */
    uint32_t n_pairs;                           /* atomic; what it counts stays until the engine is closed */
    gx_result_cache *cache;                     /* NULL: none */
    pthread_mutex_t pairs_lock;                 /* held while pairs are made */
    gx_filter_cache *filters;
    pthread_mutex_t lock;     /* of what follows */
    void *cpu_prepared_index; /* the CPU engine that stands in when a GPU chosen by AUTO fails; NULL until then */
    gx_error fallback;        /* why it does; GX_OK: it does not */
};

struct gx_session {
    gx_engine *en;
    gx_part_sessions *parts; /* of a collection; what follows up to work is NULL then */
    void *exec;              /* of en->ops; NULL once the GPU has failed */
    void *cpu_workspace;     /* stands in for it, or NULL */
    gx_counter *counter;
    gx_search_stats work;
    uint64_t fell_when_planned; /* of work.and_fell_to_or, of a collection */
    gx_batch_buffer batch;      /* of a search */
    gx_batch_buffer missed;     /* the plans of a batch whose answers are not in the cache; has no keys of its own */
    uint32_t *missed_at;        /* [max_missed_at] their places in the batch */
    size_t max_missed_at;
};

/* Batches are cut so that a part has no more keys than this, or one query. */
#define SLICE_KEYS ((size_t)4 << 20)
#define SLICE_QUERIES 65536u

#define QUERY_OPTIONS_LEAST GX_SIZE_THROUGH(gx_query_options, mask)

static void clear_error(gx_error *err)
{
    if (err) {
        err->status = GX_OK;
        err->text[0] = 0;
    }
}

/* ---- engines ---- */

static const gx_executor *find_ops(const char *name)
{
    for (const gx_executor *const *p = gx_executors; *p; ++p) {
        if (strcmp((*p)->name, name) == 0)
            return *p;
    }
    return NULL;
}

static gx_status open_gpu(gx_engine *en, const gx_executor *ops, gx_error *err)
{
    if (!ops)
        return gx_fail(err, GX_ENOGPU,
                       "this gpuidx was built without CUDA and cannot use a GPU; use the CPU engine, or "
                       "build it where nvcc is installed");
    const gx_status st = ops->state_open(&en->state, en->ix, &en->opt, err);
    if (st == GX_OK)
        en->ops = ops;
    return st;
}

gx_status gx_engine_open(gx_engine **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err)
{
    return gx_engine_open_with(out, ix, opt, find_ops("gpu"), err);
}

/* The engines of a collection's parts, those of old shared. */
static gx_status open_parts(gx_engine *en, const gx_engine *old, gx_error *err)
{
    gx_status st = gx_part_engines_open(&en->parts, en->ix, &en->opt, en->gpu, old ? old->parts : NULL, err);
    if (st == GX_OK && en->opt.result_cache && gx_result_cache_open(&en->cache, en->opt.result_cache, err) != GX_OK)
        return GX_ENOMEM;
    if (st == GX_OK)
        en->ops = gx_engine_get_kind(en->parts->engines[0]) == GX_ENGINE_CPU ? &gx_executor_cpu : en->gpu;
    return st;
}

gx_status gx_engine_reopen(gx_engine **out, const gx_engine *old, const gx_index *ix, gx_error *err)
{
    *out = NULL;
    clear_error(err);
    if (!old->parts || !ix->parts)
        return gx_engine_open_with(out, ix, &old->opt, old->gpu, err);
    gx_engine *en = calloc(1, sizeof *en);
    if (!en)
        return gx_fail(err, GX_ENOMEM, "no memory for an engine");
    pthread_mutex_init(&en->lock, NULL);
    pthread_mutex_init(&en->pairs_lock, NULL);
    en->ix = ix;
    en->opt = old->opt;
    en->gpu = old->gpu;
    const gx_status st = open_parts(en, old, err);
    if (st == GX_OK)
        *out = en;
    else
        gx_engine_close(en);
    return st;
}

gx_status gx_engine_open_with(gx_engine **out, const gx_index *ix, const gx_engine_options *opt, const gx_executor *gpu,
                              gx_error *err)
{
    gx_status st;
    *out = NULL;
    clear_error(err);
    gx_engine_options own = GX_ENGINE_OPTIONS;
    st = gx_sized_read(&own, sizeof own, opt, GX_SIZE_THROUGH(gx_engine_options, linger_us), "gx_engine_options", err);
    if (st != GX_OK)
        return st;
    gx_engine *en = calloc(1, sizeof *en);
    if (!en)
        return gx_fail(err, GX_ENOMEM, "no memory for an engine");
    pthread_mutex_init(&en->lock, NULL);
    pthread_mutex_init(&en->pairs_lock, NULL);
    en->ix = ix;
    en->opt = own;
    en->gpu = gpu;
    if (ix->parts) {
        if ((st = open_parts(en, NULL, err)) != GX_OK)
            goto fail;
        *out = en;
        return GX_OK;
    }
    if ((st = gx_filter_cache_open(&en->filters, en, own.filter_memory, err)) != GX_OK)
        goto fail;
    gx_index_share((gx_index *)ix); /* engines of a part may live longer than the collection that it was opened for */

    if (en->opt.kind != GX_ENGINE_CPU) {
        gx_error why = {0};
        st = open_gpu(en, gpu, &why);
        if (st != GX_OK && en->opt.kind == GX_ENGINE_GPU) {
            gx_fail(err, st, "%s", why.text);
            goto fail;
        }
        if (st != GX_OK)
            gx_fail(&en->fallback, st, "%s", why.text);
    }
    if (!en->ops) {
        if ((st = gx_executor_cpu.state_open(&en->state, ix, &en->opt, err)) != GX_OK)
            goto fail;
        en->ops = &gx_executor_cpu;
    }
    if (own.result_cache && (st = gx_result_cache_open(&en->cache, own.result_cache, err)) != GX_OK)
        goto fail;
    *out = en;
    return GX_OK;

fail:
    gx_engine_close(en);
    return st;
}

void gx_engine_close(gx_engine *en)
{
    if (!en || atomic_fetch_sub(&en->n_more, 1) != 0)
        return;
    gx_filter_cache_close(en->filters);
    gx_part_engines_close(en->parts);
    if (en->ops && !en->parts)
        en->ops->release_index(en->state);
    if (en->cpu_prepared_index)
        gx_executor_cpu.release_index(en->cpu_prepared_index);
    for (uint32_t i = 0; i < en->n_pairs; ++i)
        gx_pair_thresholds_free(en->pairs[i]);
    gx_result_cache_close(en->cache);
    if (!en->ix->parts)
        gx_index_close((gx_index *)en->ix);
    pthread_mutex_destroy(&en->lock);
    pthread_mutex_destroy(&en->pairs_lock);
    free(en);
}

gx_engine_kind gx_engine_get_kind(const gx_engine *en)
{
    return en->ops == &gx_executor_cpu ? GX_ENGINE_CPU : GX_ENGINE_GPU;
}

gx_status gx_engine_get_fallback(gx_engine *en, gx_error *why)
{
    for (uint32_t i = 0; en->parts && i < en->parts->n; ++i) {
        const gx_status of_part = gx_engine_get_fallback(en->parts->engines[i], why);
        if (of_part != GX_OK || i + 1 == en->parts->n)
            return of_part;
    }
    pthread_mutex_lock(&en->lock);
    const gx_status st = en->fallback.status;
    if (why)
        *why = en->fallback;
    pthread_mutex_unlock(&en->lock);
    return st;
}

const char *gx_engine_describe(const gx_engine *en)
{
    return en->parts ? gx_engine_describe(en->parts->engines[0]) : en->ops->describe(en->state);
}

gx_status gx_engine_precompute_pair_thresholds(gx_engine *en, const gx_query_options *opt, uint32_t n_lists,
                                               uint32_t n_threads, gx_error *err)
{
    gx_query_options o = GX_QUERY_OPTIONS;
    clear_error(err);
    gx_status st = gx_sized_read(&o, sizeof o, opt, QUERY_OPTIONS_LEAST, "gx_query_options", err);
    if (st != GX_OK || (st = gx_query_options_check(&o, en->ix, err)) != GX_OK)
        return st;
    if (en->parts)
        return gx_fail(err, GX_EUSAGE,
                       "%s is a collection, and thresholds of pairs are those of one index: merge it into one",
                       en->ix->path);
    if (en->ops != &gx_executor_cpu && n_threads > GPU_PAIR_SESSIONS)
        n_threads = GPU_PAIR_SESSIONS;
    pthread_mutex_lock(&en->pairs_lock);
    const uint32_t n = en->n_pairs;
    bool known = false;
    for (uint32_t i = 0; i < n; ++i)
        known = known || gx_pair_thresholds_match(en->pairs[i], &o, n_lists);
    if (!known && n == MAX_PAIR_TABLES)
        st = gx_fail(err, GX_EUSAGE, "the engine already has %u tables of pairs", MAX_PAIR_TABLES);
    else if (!known)
        st = gx_pair_thresholds_make(&en->pairs[n], &(gx_pair_engine){en->ix, en->ops, en->state}, &o, n_lists,
                                     n_threads, err);
    if (!known && st == GX_OK)
        __atomic_store_n(&en->n_pairs, n + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&en->pairs_lock);
    return st;
}

void gx_engine_apply_known_threshold(const gx_engine *en, gx_plan *plan)
{
    const uint32_t n = __atomic_load_n(&en->n_pairs, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; ++i)
        gx_pair_thresholds_apply(en->pairs[i], plan);
}

gx_engine *gx_engine_share(gx_engine *en)
{
    atomic_fetch_add(&en->n_more, 1);
    return en;
}

const gx_index *gx_engine_index(const gx_engine *en)
{
    return en->ix;
}

/* ---- sessions ---- */

void gx_session_close(gx_session *s)
{
    if (!s)
        return;
    gx_part_sessions_close(s->parts);
    if (s->exec)
        s->en->ops->workspace_close(s->exec);
    if (s->cpu_workspace)
        gx_executor_cpu.workspace_close(s->cpu_workspace);
    gx_counter_close(s->counter);
    gx_batch_buffer_free(&s->batch);
    gx_batch_buffer_free(&s->missed);
    free(s->missed_at);
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
    gx_engine *en = s->en;
    gx_status st = GX_OK;
    pthread_mutex_lock(&en->lock);
    if (!en->cpu_prepared_index) {
        st = gx_executor_cpu.state_open(&en->cpu_prepared_index, en->ix, &en->opt, err);
        if (st != GX_OK)
            en->cpu_prepared_index = NULL;
        else
            gx_fail(&en->fallback, GX_ECUDA, "the CPU answers from here on, because the GPU failed: %.900s", gpu->text);
    }
    pthread_mutex_unlock(&en->lock);
    if (st == GX_OK && (st = gx_executor_cpu.workspace_open(&s->cpu_workspace, en->cpu_prepared_index, err)) != GX_OK)
        s->cpu_workspace = NULL;
    return st;
}

/* Whether a failure of the engine is one that a CPU makes good. */
static bool can_fall_back_to_cpu(const gx_engine *en, gx_status st)
{
    return st == GX_ECUDA && en->opt.kind == GX_ENGINE_AUTO && en->ops != &gx_executor_cpu;
}

gx_status gx_session_open(gx_session **out, gx_engine *en, gx_error *err)
{
    gx_error gpu;
    *out = NULL;
    clear_error(err);
    gx_session *s = calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a session");
    s->en = en;
    gpu.text[0] = 0;
    gx_status st = en->parts ? gx_part_sessions_open(&s->parts, en->parts, err)
                             : en->ops->workspace_open(&s->exec, en->state, &gpu);
    if (st != GX_OK && !en->parts) {
        s->exec = NULL;
        st = can_fall_back_to_cpu(en, st) ? fall_back_to_cpu(s, &gpu, err) : gx_fail(err, st, "%s", gpu.text);
    }
    if (st != GX_OK) {
        gx_session_close(s);
        return st;
    }
    *out = s;
    return GX_OK;
}

static gx_status foreign_mask(gx_error *err)
{
    return gx_fail(err, GX_EUSAGE, "the mask is another engine's; open one on the engine that searches");
}

/* A mask is read by docid: another engine's may be of another index, or on another GPU. */
static gx_status check_masks(const gx_session *s, const gx_plan *plans, uint32_t n, gx_error *err)
{
    for (uint32_t i = 0; i < n; ++i) {
        if (plans[i].mask && plans[i].mask->en != s->en)
            return foreign_mask(err);
    }
    return GX_OK;
}

/* Run plans that are good for this session on its engine, or on the CPU that stands in for it. A
 * GPU gets no filters, but masks. */
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
        if (!can_fall_back_to_cpu(s->en, st))
            return gx_fail(err, st, "%s", gpu.text);
        if ((st = fall_back_to_cpu(s, &gpu, err)) != GX_OK)
            return st;
    }
    return gx_executor_cpu.run(s->cpu_workspace, plans, n, hits, &s->work, err);
}

/* ---- plans with filters ---- */

/* A batch of which at least one plan has a filter. */
typedef struct filtered_batch {
    gx_plan *plans;        /* [n] copies, in the order in which they run */
    gx_hits *hits;         /* [n] */
    gx_filter_hold *holds; /* [n] */
    gx_mask **both;        /* [n] masks of a filter and of the plan's own mask, or NULL */
    uint32_t *order;       /* [n] the numbers of the plans */
} filtered_batch;

static void free_filtered(filtered_batch *b)
{
    free(b->plans);
    free(b->hits);
    free(b->holds);
    free(b->both);
    free(b->order);
}

static bool reserve_filtered(filtered_batch *b, uint32_t n)
{
    *b = (filtered_batch){malloc(n * sizeof *b->plans), malloc(n * sizeof *b->hits), calloc(n, sizeof *b->holds),
                          calloc(n, sizeof *b->both), malloc(n * sizeof *b->order)};
    if (b->plans && b->hits && b->holds && b->both && b->order)
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
    uint64_t *words = malloc((n_words + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for a mask");
    for (size_t w = 0; w < n_words; ++w)
        words[w] = gx_mask_word(a, w) & gx_mask_word(b, w);
    const gx_status st = gx_mask_open(out, en, words, err);
    free(words);
    return st;
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
    const gx_mask *last_own = NULL;
    uint64_t n_masks = 0;
    uint32_t i = begin;
    for (*st = GX_OK; i < n; ++i) {
        gx_plan *p = &b->plans[i];
        const gx_mask *own = p->mask;
        if (!p->filter)
            continue;
        if (last && !p->filter->reads_files && compare_texts(last, p->filter) == 0 && own == last_own) {
            p->mask = b->plans[i - 1].mask;
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
    }
    if (*st == GX_ECUDA && i > begin)
        *st = GX_OK; /* first the others run and let go of their masks */
    return i;
}

static gx_status run_unmasked(filtered_batch *b, gx_session *s, uint32_t begin, uint32_t n, gx_error *err);

/* A GPU reads masks. The plans run in order of their filters, some at a time. */
static gx_status run_masked(filtered_batch *b, gx_session *s, uint32_t n, gx_error *err)
{
    for (uint32_t begin = 0, end; begin < n; begin = end) {
        gx_error why = {0};
        gx_status st;
        end = give_masks(b, s, begin, n, &st, &why);
        if (can_fall_back_to_cpu(s->en, st))
            return (st = fall_back_to_cpu(s, &why, err)) ? st : run_unmasked(b, s, begin, n, err);
        if (st == GX_OK)
            st = run_plans(s, b->plans + begin, end - begin, b->hits + begin, err);
        else
            gx_fail(err, st, "%s", why.text);
        release_masks(b, s, begin, end);
        if (st != GX_OK)
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

static gx_status run_filtered(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    const bool masked = s->en->ops != &gx_executor_cpu && !s->cpu_workspace;
    filtered_batch b;
    if (!reserve_filtered(&b, n))
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries with filters", n);
    for (uint32_t i = 0; i < n; ++i)
        b.order[i] = i;
    if (masked)
        qsort_r(b.order, n, sizeof *b.order, compare_filters, (void *)plans);
    for (uint32_t i = 0; i < n; ++i) {
        b.plans[i] = plans[b.order[i]];
        b.hits[i] = hits[b.order[i]];
    }
    const gx_status st = masked ? run_masked(&b, s, n, err) : run_unmasked(&b, s, 0, n, err);
    for (uint32_t i = 0; i < n; ++i)
        hits[b.order[i]].n = b.hits[i].n;
    free_filtered(&b);
    return st;
}

/* As run_plans, for plans with filters too. */
static gx_status run_all_plans(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    bool filtered = false;
    for (uint32_t i = 0; i < n; ++i)
        filtered = filtered || plans[i].filter;
    return (filtered && !s->parts ? run_filtered : run_plans)(s, plans, n, hits, err); /* parts see to their own */
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
        st = run_all_plans(s, s->missed.plans, m, s->missed.hits, err);
    for (uint32_t j = 0; st == GX_OK && j < m; ++j) {
        hits[s->missed_at[j]] = s->missed.hits[j];
        gx_result_cache_add(cache, &s->missed.plans[j], &s->missed.hits[j]);
    }
    return st;
}

gx_status gx_session_run(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_status st = check_masks(s, plans, n, err);
    if (st == GX_OK)
        st = (s->en->cache ? run_missed : run_all_plans)(s, plans, n, hits, err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i) {
        for (uint32_t j = 0; plans[i].base && j < hits[i].n; ++j)
            hits[i].keys[j] = gx_key_rebase(hits[i].keys[j], plans[i].base);
    }
    return st;
}

/* ---- masks ---- */

static uint64_t n_masks; /* atomic */

/* Makes m the mask of a collection's engine; takes m and the masks of the parts. */
static gx_status mask_of_parts(gx_mask **out, gx_mask *m, const gx_engine *en, gx_mask **parts, gx_status st)
{
    m->en = en;
    m->serial = __atomic_add_fetch(&n_masks, 1, __ATOMIC_RELAXED);
    m->parts = parts;
    m->n_parts = parts ? en->parts->n : 0;
    if (st == GX_OK)
        *out = m;
    else
        gx_mask_close(m);
    return st;
}

gx_status gx_mask_open(gx_mask **out, gx_engine *en, const uint64_t *words, gx_error *err)
{
    const uint32_t n_docs = en->ix->n_docs;
    const size_t n_words = gx_mask_n_words(n_docs);
    *out = NULL;
    clear_error(err);
    if (!words && n_docs)
        return gx_fail(err, GX_EUSAGE, "a mask of %u documents has no words", n_docs);
    gx_mask *m = calloc(1, sizeof *m);
    if (m && en->parts) {
        gx_mask **parts;
        const gx_status st = gx_part_masks_open(&parts, en->parts, words, err);
        return mask_of_parts(out, m, en, st == GX_OK ? parts : NULL, st);
    }
    if (m)
        m->words = calloc(n_words + GX_MASK_SLACK, sizeof *m->words);
    if (m)
        m->groups = calloc(n_docs / GX_MASK_GROUP + 1, sizeof *m->groups);
    if (!m || !m->words || !m->groups) {
        gx_mask_close(m);
        return gx_fail(err, GX_ENOMEM, "no memory for a mask of %u documents", n_docs);
    }
    m->en = en;
    m->serial = __atomic_add_fetch(&n_masks, 1, __ATOMIC_RELAXED);
    for (size_t w = 0; w < n_words / 2; ++w) {
        const size_t left = n_docs - 64 * w;
        const uint64_t bits = left < 64 ? words[w] & ((UINT64_C(1) << left) - 1) : words[w];
        m->words[2 * w] = (uint32_t)bits;
        m->words[2 * w + 1] = (uint32_t)(bits >> 32);
        m->groups[w * 64 / GX_MASK_GROUP] = m->groups[w * 64 / GX_MASK_GROUP] || bits;
        m->n += (uint32_t)__builtin_popcountll(bits);
    }
    if (en->ops->mask_open) {
        gx_error gpu;
        const gx_status st = en->ops->mask_open(&m->device, en->state, m->words, &gpu);
        if (st != GX_OK)
            m->device = NULL;
        if (st != GX_OK &&
            !can_fall_back_to_cpu(en, st)) { /* else the search fails on the GPU, and the CPU stands in */
            gx_mask_close(m);
            return gx_fail(err, st, "%s", gpu.text);
        }
    }
    *out = m;
    return GX_OK;
}

bool gx_mask_is_ready(const gx_mask *m)
{
    return m->device || !m->en->ops->mask_open;
}

void gx_mask_close(gx_mask *m)
{
    if (!m)
        return;
    gx_part_masks_close(m->parts, m->n_parts);
    if (m->device)
        m->en->ops->mask_close(m->en->state, m->device);
    free(m->words);
    free(m->groups);
    free(m);
}

/* ---- plans ---- */

/* The documents that match, and that the options' mask allows, as the plan's mask. */
static gx_status mask_matches(gx_plan *plan, gx_engine *en, const gx_boolean *match, gx_error *err)
{
    const size_t n_words = ((size_t)en->ix->n_docs + 63) / 64;
    uint64_t *words = malloc((n_words + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for the documents of a boolean query");
    gx_status st = gx_boolean_match(match, plan, words, err);
    for (size_t w = 0; st == GX_OK && plan->mask && w < n_words; ++w)
        words[w] &= gx_mask_word(plan->mask, w);
    if (st == GX_OK && (st = gx_mask_open(&plan->own_mask, en, words, err)) == GX_OK)
        plan->mask = plan->own_mask;
    free(words);
    return st;
}

static gx_status plan_parts(gx_plan *out, gx_engine *en, const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    gx_plan plan;
    gx_mask **matches, *m = NULL;
    if (opt->mask && opt->mask->en != en)
        return foreign_mask(err);
    gx_status st = gx_part_plan(&plan, &matches, en->parts, q, opt, err);
    if (st != GX_OK)
        return st;
    if (matches && !(m = calloc(1, sizeof *m))) {
        gx_part_masks_close(matches, en->parts->n);
        gx_plan_free(&plan);
        return gx_fail(err, GX_ENOMEM, "no memory for the documents of a boolean query");
    }
    plan.filter = q->filter;
    if (matches) {
        mask_of_parts(&plan.own_mask, m, en, matches, GX_OK);
        plan.mask = plan.own_mask;
    }
    *out = plan;
    return GX_OK;
}

gx_status gx_engine_plan(gx_plan *out, gx_engine *en, const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    gx_boolean *match;
    gx_plan plan;
    if (q->filter && q->filter->ix != en->ix)
        return gx_fail(err, GX_EUSAGE, "the filter is of another index than the engine's");
    if (en->parts)
        return plan_parts(out, en, q, opt, err);
    gx_status st = gx_plan_query(&plan, &match, en->ix, q, opt, err);
    if (st != GX_OK)
        return st;
    plan.filter = q->filter;
    if (match) {
        if (plan.mask && plan.mask->en != en)
            st = gx_fail(err, GX_EUSAGE, "the mask is another engine's; open one on the engine that searches");
        else
            st = mask_matches(&plan, en, match, err);
        gx_boolean_close(match);
    }
    if (st != GX_OK) {
        gx_plan_free(&plan);
        return st;
    }
    gx_engine_apply_known_threshold(en, &plan);
    *out = plan;
    return GX_OK;
}

gx_status gx_mask_copy(gx_mask **out, gx_engine *en, const gx_mask *mask, gx_error *err)
{
    const size_t n_words = ((size_t)en->ix->n_docs + 63) / 64;
    *out = NULL;
    if (en->parts) {
        gx_mask **parts, *m = calloc(1, sizeof *m);
        if (!m)
            return gx_fail(err, GX_ENOMEM, "no memory for a mask");
        const gx_status st = gx_part_masks_copy(&parts, en->parts, mask->parts, err);
        return mask_of_parts(out, m, en, st == GX_OK ? parts : NULL, st);
    }
    uint64_t *words = malloc((n_words + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for a mask");
    for (size_t w = 0; w < n_words; ++w)
        words[w] = gx_mask_word(mask, w);
    const gx_status st = gx_mask_open(out, en, words, err);
    free(words);
    return st;
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

static gx_status count(gx_session *s, uint32_t n, uint64_t *n_matches, gx_error *err)
{
    if (s->parts) {
        gx_status counted = GX_OK;
        for (uint32_t i = 0; i < n && counted == GX_OK; ++i)
            counted = gx_part_sessions_count(s->parts, &s->batch.plans[i], &n_matches[i], err);
        return counted;
    }
    gx_status st = s->counter ? GX_OK : gx_counter_open(&s->counter, s->en->ix, err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = gx_count_matches(s->counter, &s->batch.plans[i], &n_matches[i], err);
    return st;
}

/* A batch of the caller's: its queries, what is asked of them, and where the answers go. */
typedef struct search_batch {
    const gx_query *queries;
    const gx_query_options *opt;
    const gx_results *out;
    uint32_t max_hits; /* of one query */
} search_batch;

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
        s->batch.hits[planned] = (gx_hits){s->batch.keys + (size_t)planned * max_hits, 0};
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
        for (uint32_t j = 0; j < h->n; ++j) {
            out->docids[at + j] = gx_key_docid(h->keys[j]);
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

gx_status gx_search(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *options,
                    const gx_results *results, gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_results out = {0};
    clear_error(err);
    gx_status st = gx_sized_read(&opt, sizeof opt, options, QUERY_OPTIONS_LEAST, "gx_query_options", err);
    if (st == GX_OK)
        st = gx_sized_read(&out, sizeof out, results, GX_SIZE_THROUGH(gx_results, n_matches), "gx_results", err);
    if (st != GX_OK)
        return st;
    if (n && (!out.n_hits || (!out.docids && s->en->ix->n_docs))) /* of no documents there are no results */
        return gx_fail(err, GX_EUSAGE, "there is no place for the results: docids and n_hits are needed");
    if ((st = check_queries(queries, n, err)) != GX_OK || (st = gx_query_options_check(&opt, s->en->ix, err)) != GX_OK)
        return st;

    const gx_query_options asked = opt;
    time_limit limit = {&asked, 0, false};
    if (opt.seconds > 0) {
        limit.until = gx_clock_seconds() + opt.seconds;
        opt.cancel = is_cancelled_or_late;
        opt.user = &limit;
    }
    const uint32_t n_docs = s->en->ix->n_docs, max_hits = opt.k < n_docs ? opt.k : n_docs ? n_docs : 1;
    const search_batch batch = {queries, &opt, &out, max_hits};
    size_t part = SLICE_KEYS / max_hits;
    part = part < 1 ? 1 : part > SLICE_QUERIES ? SLICE_QUERIES : part;
    for (uint32_t first = 0; first < n && st == GX_OK;) {
        const uint32_t m = n - first < part ? n - first : (uint32_t)part;
        st = search_slice(s, &batch, first, m, err);
        first += m;
    }
    if (st == GX_ECANCELLED && limit.late)
        return gx_fail(err, GX_EDEADLINE, "the search took longer than the %g s that it was given", asked.seconds);
    return st;
}
