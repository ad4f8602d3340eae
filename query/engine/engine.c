/* engine.c: engines: which executor answers, and the plan of a query on it. */
#include "query/engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/device.h"
#include "engine/status.h"
#include "query/engine/masks.h"
#include "query/engine/session.h"
#include "query/plan/boolean.h"

const gx_executor *const gx_executors[] = {
    &gx_executor_cpu,
#if GX_CUDA
    &gx_executor_cuda,
#endif
    NULL,
};

#define GPU_PAIR_SESSIONS 4u /* sessions that keep a GPU busy with pairs */

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
        return gx_fail(err, GX_ENOGPU, "%s", GX_BUILT_WITHOUT_CUDA);
    const bool several = en->opt.n_devices > 1;
    const gx_status st = several ? gx_replicas_open(&en->state, ops, en->ix, &en->opt, err)
                                 : ops->state_open(&en->state, en->ix, &en->opt, err);
    if (st == GX_OK)
        en->ops = several ? &gx_executor_replicas : ops;
    return st;
}

/* The list of GPUs; its first is opt->device from then on. */
static gx_status check_devices(gx_engine_options *opt, gx_error *err)
{
    if (opt->n_devices > GX_MAX_DEVICES)
        return gx_fail(err, GX_EUSAGE, "gx_engine_options.n_devices is %u; an engine takes at most %u GPUs",
                       opt->n_devices, GX_MAX_DEVICES);
    for (uint32_t i = 0; i < opt->n_devices; ++i) {
        for (uint32_t j = 0; j < i; ++j) {
            if (opt->devices[i] == opt->devices[j])
                return gx_fail(err, GX_EUSAGE, "GPU %d is listed twice in gx_engine_options.devices", opt->devices[i]);
        }
    }
    if ((unsigned)opt->spread > GX_SPREAD_PARTS)
        return gx_fail(err, GX_EUSAGE, "gx_engine_options.spread is %d, which is no gx_spread", (int)opt->spread);
    if (opt->n_devices)
        opt->device = opt->devices[0];
    return GX_OK;
}

/* Whether all GPUs of the list can be used, also those that a collection has no parts for yet. */
static gx_status try_devices(const gx_engine_options *given, gx_error *err)
{
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_status st =
        gx_sized_read(&o, sizeof o, given, GX_SIZE_THROUGH(gx_engine_options, linger_us), "gx_engine_options", err);
    const uint32_t n = o.kind == GX_ENGINE_GPU && o.n_devices <= GX_MAX_DEVICES ? o.n_devices : 0;
    for (uint32_t i = 0; st == GX_OK && i < n; ++i)
        st = gx_device_use(o.devices[i], err);
    return st;
}

static gx_status check_residency(const gx_engine_options *opt, gx_error *err)
{
    if (!(opt->resident_share >= 0 && opt->resident_share <= 1))
        return gx_fail(err, GX_EUSAGE, "gx_engine_options.resident_share is %g; it must be from 0 to 1",
                       opt->resident_share);
    if ((unsigned)opt->residency_policy >= GX_N_RESIDENCY_POLICIES)
        return gx_fail(err, GX_EUSAGE, "gx_engine_options.residency_policy is %d, which is no gx_residency_policy",
                       (int)opt->residency_policy);
    return GX_OK;
}

gx_status gx_engine_open(gx_engine **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err)
{
    *out = NULL;
    gx_clear_error(err);
    const gx_status st = ix && ix->parts ? try_devices(opt, err) : GX_OK;
    return st == GX_OK ? gx_engine_open_with(out, ix, opt, find_ops("gpu"), err) : st;
}

/* An engine without an executor. NULL: no memory. */
static gx_engine *new_engine(const gx_index *ix, const gx_engine_options *opt, const gx_executor *gpu)
{
    gx_engine *en = calloc(1, sizeof *en);
    if (!en)
        return NULL;
    pthread_mutex_init(&en->lock, NULL);
    pthread_mutex_init(&en->pairs_lock, NULL);
    en->ix = ix;
    en->opt = *opt;
    en->gpu = gpu;
    return en;
}

/* The engines of a collection's parts, those of old shared. */
static gx_status open_parts(gx_engine *en, const gx_engine *old, gx_error *err)
{
    gx_status st = gx_part_engines_open(&en->parts, en->ix, &en->opt, en->gpu, old ? old->parts : NULL, err);
    if (st == GX_OK && en->opt.result_cache &&
        gx_result_cache_open(&en->cache, en->opt.result_cache, gx_index_is_wide(en->ix), err) != GX_OK)
        return GX_ENOMEM;
    if (st == GX_OK && en->parts->joined)
        st = gx_filter_cache_open(&en->filters, en, en->opt.filter_memory, err);
    if (st == GX_OK)
        en->ops = gx_engine_get_kind(en->parts->engines[en->parts->range.begin]) == GX_ENGINE_CPU ? &gx_executor_cpu
                                                                                                  : en->gpu;
    return st;
}

gx_status gx_engine_reopen(gx_engine **out, const gx_engine *old, const gx_index *ix, gx_error *err)
{
    *out = NULL;
    gx_clear_error(err);
    if (!old->parts || !ix->parts)
        return gx_engine_open_with(out, ix, &old->opt, old->gpu, err);
    gx_engine *en = new_engine(ix, &old->opt, old->gpu);
    if (!en)
        return gx_fail(err, GX_ENOMEM, "no memory for an engine");
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
    gx_clear_error(err);
    gx_engine_options own = GX_ENGINE_OPTIONS;
    st = gx_sized_read(&own, sizeof own, opt, GX_SIZE_THROUGH(gx_engine_options, linger_us), "gx_engine_options", err);
    if (st != GX_OK)
        return st;
    if ((st = check_devices(&own, err)) != GX_OK)
        return st;
    if ((st = check_residency(&own, err)) != GX_OK)
        return st;
    if ((unsigned)own.join > GX_JOIN_ALWAYS)
        return gx_fail(err, GX_EUSAGE, "gx_engine_options.join is %d, which is no gx_join", (int)own.join);
    if (own.shard && !ix->parts)
        return gx_fail(err, GX_EUSAGE, "%s is one file, and shards are of a collection", ix->path);
    if (own.n_devices > 1 && own.spread == GX_SPREAD_PARTS && !ix->parts && own.kind != GX_ENGINE_CPU)
        return gx_fail(err, GX_EUSAGE,
                       "%s is one file, and only the parts of a collection can be spread over GPUs; let each GPU have "
                       "a copy",
                       ix->path);
    const bool of_fields = gx_view_of(ix), asked_gpu = own.kind != GX_ENGINE_CPU;
    if (of_fields) { /* its lists are made as they are asked for; for a GPU all are made at once */
        own.kind = own.kind == GX_ENGINE_GPU ? GX_ENGINE_GPU : GX_ENGINE_CPU;
        own.join = GX_JOIN_NEVER;
    }
    if (of_fields && own.kind == GX_ENGINE_GPU && !ix->parts) {
        const long cores = sysconf(_SC_NPROCESSORS_ONLN);
        if ((st = gx_view_make_image(ix, cores > 0 ? (uint32_t)cores : 1, err)) != GX_OK)
            return st;
    }
    gx_engine *en = new_engine(ix, &own, gpu);
    if (!en)
        return gx_fail(err, GX_ENOMEM, "no memory for an engine");
    if (of_fields && asked_gpu && own.kind == GX_ENGINE_CPU)
        gx_fail(&en->fallback, GX_ENOGPU, "fields are searched by the CPU, unless a GPU is asked for");
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
    if (own.result_cache && (st = gx_result_cache_open(&en->cache, own.result_cache, false, err)) != GX_OK)
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
    gx_spares_close(en->spares);
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
    for (uint32_t i = en->parts ? en->parts->range.begin : 0; en->parts && i < en->parts->range.end; ++i) {
        const gx_status of_part = gx_engine_get_fallback(en->parts->engines[i], why);
        if (of_part != GX_OK || i + 1 == en->parts->range.end)
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
    if (en->parts && en->parts->description)
        return en->parts->description;
    return en->parts ? gx_engine_describe(en->parts->engines[en->parts->range.begin]) : en->ops->describe(en->state);
}

gx_status gx_engine_precompute_pair_thresholds(gx_engine *en, const gx_query_options *opt, uint32_t n_lists,
                                               uint32_t n_threads, gx_error *err)
{
    gx_query_options o = GX_QUERY_OPTIONS;
    gx_clear_error(err);
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_QUERY_OPTIONS_LEAST, "gx_query_options", err);
    if (st != GX_OK || (st = gx_query_options_check(&o, en->ix, err)) != GX_OK)
        return st;
    if (en->parts)
        return gx_fail(err, GX_EUSAGE,
                       "%s is a collection, and thresholds of pairs are those of one index file, which `gpuidx recode` "
                       "makes of it",
                       en->ix->path);
    if (en->ops != &gx_executor_cpu && n_threads > GPU_PAIR_SESSIONS)
        n_threads = GPU_PAIR_SESSIONS;
    pthread_mutex_lock(&en->pairs_lock);
    const uint32_t n = en->n_pairs;
    bool known = false;
    for (uint32_t i = 0; i < n; ++i)
        known = known || gx_pair_thresholds_match(en->pairs[i], &o, n_lists);
    if (!known && n == GX_MAX_PAIR_TABLES)
        st = gx_fail(err, GX_EUSAGE, "the engine already has %u tables of pairs", GX_MAX_PAIR_TABLES);
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
    for (uint32_t i = 0; i < n && !gx_view_is_best(en->ix); ++i) /* they are of sums */
        gx_pair_thresholds_apply(en->pairs[i], plan);
}

gx_engine *gx_engine_share(gx_engine *en)
{
    atomic_fetch_add(&en->n_more, 1);
    return en;
}

void gx_engine_keep(gx_engine *en, const uint64_t *words)
{
    if (en->ops == &gx_executor_cpu)
        gx_cpu_state_keep(en->state, words);
}

bool gx_engine_has_kept(const gx_engine *en, const uint64_t *words)
{
    return en->ops != &gx_executor_cpu || gx_cpu_state_has_kept(en->state, words);
}

void gx_engine_keep_spares(gx_engine *en, gx_spare_workspaces *spares)
{
    en->spares = gx_spares_share(spares);
}

const gx_index *gx_engine_index(const gx_engine *en)
{
    return en->ix;
}

int gx_engine_device(const gx_engine *en)
{
    return en->opt.device;
}

gx_engine *gx_engine_of_part(gx_engine *en, uint32_t i)
{
    if (!en->parts)
        return i == 0 ? en : NULL;
    const gx_part_range range = en->parts->range;
    return i < range.end - range.begin ? en->parts->engines[range.begin + i] : NULL;
}

uint32_t gx_engine_n_searched(const gx_engine *en)
{
    return en->parts ? en->parts->range.end - en->parts->range.begin : 1;
}

gx_status gx_engine_warm_lists(gx_engine *en, const uint32_t *counts, gx_error *err)
{
    return en->ops->warm ? en->ops->warm(en->state, counts, err) : GX_OK;
}

uint64_t gx_engine_missing_bytes(const gx_engine *en, const gx_plan *plan)
{
    if (!plan->parts && en->parts && plan->terms) /* a plan of the only part */
        en = en->parts->engines[en->parts->range.begin];
    if (!plan->parts)
        return en->ops->missing_bytes && en->state ? en->ops->missing_bytes(en->state, plan) : 0;
    uint64_t bytes = 0;
    if (en->parts) {
        for (uint32_t i = en->parts->range.begin; i < en->parts->range.end && i < plan->parts->n; ++i)
            bytes += gx_engine_missing_bytes(en->parts->engines[i], &plan->parts->plans[i]);
    }
    return bytes;
}

bool gx_engine_can_fall_back(const gx_engine *en, gx_status st)
{
    return st == GX_ECUDA && en->opt.kind == GX_ENGINE_AUTO && en->ops != &gx_executor_cpu;
}

gx_status gx_engine_fall_back(gx_engine *en, const gx_error *gpu, gx_error *err)
{
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
    return st;
}

gx_status gx_engine_check_mask(const gx_engine *en, const gx_mask *mask, gx_error *err)
{
    return !mask || mask->en == en
               ? GX_OK
               : gx_fail(err, GX_EUSAGE, "the mask is another engine's; open one on the engine that searches");
}

/* ---- plans ---- */

/* The documents that match, and that the options' mask allows, as the plan's mask. */
static gx_status mask_matches(gx_plan *plan, gx_engine *en, const gx_boolean *match, gx_error *err)
{
    const size_t n_words = ((size_t)en->ix->n_docs + 63) / 64;
    uint64_t *words = malloc((n_words + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for the documents of a boolean query");
    const gx_boolean_leaves leaves = {match, NULL, NULL};
    gx_status st = gx_boolean_match(match, plan, &leaves, words, err);
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
    gx_mask **matches;
    gx_status st = gx_engine_check_mask(en, opt->mask, err);
    if (st != GX_OK || (st = gx_part_plan(&plan, &matches, en->parts, en->ix, q, opt, err)) != GX_OK)
        return st;
    if (matches && (st = gx_mask_of_parts(&plan.own_mask, en, matches, err)) != GX_OK) {
        gx_plan_free(&plan);
        return st;
    }
    plan.filter = plan.own_filter ? plan.own_filter : q->filter;
    if (matches)
        plan.mask = plan.own_mask;
    *out = plan;
    return GX_OK;
}

gx_status gx_engine_plan(gx_plan *out, gx_engine *en, const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    gx_boolean *match;
    gx_plan plan;
    if (q->filter && q->filter->ix != en->ix && !gx_view_is_of(en->ix, q->filter->ix))
        return gx_fail(err, GX_EUSAGE, "the filter is of another index than the engine's");
    if (en->parts)
        return plan_parts(out, en, q, opt, err);
    gx_status st = gx_plan_query(&plan, &match, en->ix, q, opt, err);
    if (st != GX_OK)
        return st;
    plan.filter = plan.own_filter ? plan.own_filter : q->filter;
    if (match) {
        if ((st = gx_engine_check_mask(en, plan.mask, err)) == GX_OK)
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
