/* collection.c: the engines of a collection's parts: shared with those of the commit before, spread over GPUs. */
#include "query/engine/collection.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/device.h"
#include "engine/status.h"

void gx_part_engines_close(gx_part_engines *e)
{
    if (!e)
        return;
    gx_part_masks_close(e->live, e->n);
    for (uint32_t i = 0; e->engines && i < e->n; ++i)
        gx_engine_close(e->engines[i]);
    free(e->engines);
    gx_spares_close(e->spares);
    free(e->description);
    gx_joined_parts_close(e->joined);
    free(e);
}

static uint64_t share_of(uint64_t memory, uint64_t none, uint64_t part_bytes, uint64_t bytes)
{
    if (memory == none || bytes == 0)
        return memory;
    const uint64_t share = (uint64_t)((double)memory * ((double)part_bytes / (double)bytes));
    return share == none ? share + 1 : share;
}

static const uint64_t *live_words(const gx_part *part)
{
    return part->deletes && part->deletes->n_deleted ? part->deletes->live : NULL;
}

/* The engine that old has on this part's file, one holder more. It may have been opened when fewer documents were
 * deleted, but not when others were. */
static gx_engine *find_engine(const gx_part_engines *old, const gx_part *part)
{
    for (uint32_t i = old ? old->range.begin : 0; old && i < old->range.end; ++i)
        if (gx_engine_index(old->engines[i]) == part->ix && gx_engine_has_kept(old->engines[i], live_words(part)))
            return gx_engine_share(old->engines[i]);
    return NULL;
}

static bool spreads(const gx_engine_options *opt)
{
    return opt->n_devices > 1 && opt->spread == GX_SPREAD_PARTS;
}

/* Where parts lie. */
typedef struct placement {
    uint32_t *at;                   /* [n parts] index into opt->devices */
    uint64_t bytes[GX_MAX_DEVICES]; /* of all parts there */
} placement;

static void place(placement *p, const gx_part_engines *e, uint32_t part, uint32_t device)
{
    p->at[part] = device;
    p->bytes[device] += e->ix->parts->parts[part].ix->file_bytes;
}

/* Parts that have engines stay; of the others the largest first, each where there is least. at of
 * parts outside the range is undefined. Returns false if memory lacks. */
static bool place_parts(placement *p, const gx_part_engines *e, const gx_engine_options *opt)
{
    const uint32_t nowhere = UINT32_MAX;
    *p = (placement){.at = malloc((e->n + 1ull) * sizeof *p->at)};
    if (!p->at)
        return false;
    for (uint32_t i = e->range.begin; i < e->range.end; ++i) {
        p->at[i] = nowhere;
        for (uint32_t d = 0; e->engines[i] && d < opt->n_devices; ++d) {
            if (opt->devices[d] == gx_engine_device(e->engines[i]))
                place(p, e, i, d);
        }
    }
    for (;;) {
        uint32_t largest = nowhere, least = 0;
        for (uint32_t i = e->range.begin; i < e->range.end; ++i) {
            const gx_part *parts = e->ix->parts->parts;
            if (p->at[i] == nowhere && (largest == nowhere || parts[i].ix->file_bytes > parts[largest].ix->file_bytes))
                largest = i;
        }
        if (largest == nowhere)
            return true;
        for (uint32_t d = 1; d < opt->n_devices; ++d)
            least = p->bytes[d] < p->bytes[least] ? d : least;
        place(p, e, largest, least);
    }
}

/* The options of part i's engine. at: where it lies among the GPUs; NULL: parts are not spread. */
static gx_engine_options options_of_part(const gx_part_engines *e, uint32_t i, const gx_engine_options *opt,
                                         const placement *spread)
{
    const uint64_t part_bytes = e->ix->parts->parts[i].ix->file_bytes, all = e->ix->file_bytes;
    const uint64_t bytes = spread ? spread->bytes[spread->at[i]] : all;
    gx_engine_options own = *opt;
    own.result_cache = 0; /* the collection's engine has one */
    own.shard = NULL;
    own.device_memory = share_of(opt->device_memory, 0, part_bytes, bytes);
    own.filter_memory = share_of(opt->filter_memory, UINT64_MAX, part_bytes, all);
    own.map_memory = share_of(opt->map_memory, UINT64_MAX, part_bytes, bytes);
    own.resident_memory = share_of(opt->resident_memory, UINT64_MAX, part_bytes, bytes);
    if (spread) {
        own.device = opt->devices[spread->at[i]];
        own.n_devices = 0;
    }
    own.spread = GX_SPREAD_COPIES;
    return own;
}

/* "GPU 0: ..., GPU 1: ...": those that have parts. NULL: no memory. */
static char *describe_devices(const gx_part_engines *e, const gx_engine_options *opt, const placement *spread)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    for (uint32_t d = 0; f && d < opt->n_devices; ++d) {
        uint32_t i = e->range.begin;
        while (i < e->range.end && spread->at[i] != d)
            ++i;
        if (i < e->range.end)
            fprintf(f, "%s%s", ftell(f) ? ", " : "", gx_engine_describe(e->engines[i]));
    }
    if (!f || fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static gx_status open_engines(gx_part_engines *e, const gx_engine_options *opt, const gx_executor *gpu,
                              const gx_part_engines *old, gx_error *err)
{
    const bool spread = gpu && spreads(opt);
    placement p = {0};
    gx_status st = GX_OK;
    for (uint32_t i = e->range.begin; i < e->range.end; ++i)
        e->engines[i] = find_engine(old, &e->ix->parts->parts[i]);
    if (spread && !place_parts(&p, e, opt))
        return gx_fail(err, GX_ENOMEM, "no memory for the engines of %u parts", e->n);
    for (uint32_t i = e->range.begin; i < e->range.end && st == GX_OK; ++i) {
        const gx_engine_options own = options_of_part(e, i, opt, spread ? &p : NULL);
        if (e->engines[i])
            continue;
        const gx_part *part = &e->ix->parts->parts[i];
        st = gx_engine_open_with(&e->engines[i], part->ix, &own, gpu, err);
        if (st == GX_OK)
            gx_engine_keep_spares(e->engines[i], e->spares);
        if (st == GX_OK && live_words(part))
            gx_engine_keep(e->engines[i], part->deletes->live);
    }
    if (st == GX_OK && spread && !(e->description = describe_devices(e, opt, &p)))
        st = gx_fail(err, GX_ENOMEM, "no memory for the engines of %u parts", e->n);
    free(p.at);
    return st;
}

static bool are_mixed(const gx_part_engines *e)
{
    bool mixed = false;
    for (uint32_t i = e->range.begin; i < e->range.end; ++i)
        mixed = mixed || gx_engine_get_kind(e->engines[i]) != gx_engine_get_kind(e->engines[e->range.begin]);
    return mixed;
}

static gx_status open_live(gx_part_engines *e, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = e->range.begin; i < e->range.end && st == GX_OK; ++i) {
        const uint64_t *live = live_words(&e->ix->parts->parts[i]);
        if (live)
            st = gx_mask_open(&e->live[i], e->engines[i], live, err);
    }
    return st;
}

/* Join the parts as the options say. AUTO joins all of them for a GPU. For the CPU it joins small ones, and only when
 * an engine is opened again: the first engine is to answer at once. */
static gx_status join_parts(gx_part_engines *e, const gx_engine_options *opt, const gx_executor *gpu,
                            const gx_part_engines *old, gx_error *err)
{
    gx_error why;
    gx_joined_which which = GX_JOINED_NEEDED;
    if (opt->join == GX_JOIN_NEVER || gx_index_is_wide(e->ix))
        return GX_OK;
    if (opt->join == GX_JOIN_AUTO) {
        const bool on_gpu = opt->kind != GX_ENGINE_CPU && gpu && gx_device_use(opt->device, &why) == GX_OK;
        which = on_gpu ? GX_JOINED_ALL : GX_JOINED_SMALL;
    }
    return which == GX_JOINED_SMALL && (!old || e->ix->parts->n < 2)
               ? GX_OK
               : gx_joined_parts_open(&e->joined, e->ix, e->range, spreads(opt) ? opt->n_devices : 1,
                                      old ? old->joined : NULL, which, err);
}

/* Which of the collection's parts a shard has: about as many bytes as the others, and one at least,
 * since there are no fewer parts than shards. */
static gx_status find_range(gx_part_range *out, const gx_index *ix, const gx_shard *shard, gx_error *err)
{
    const gx_parts *p = ix->parts;
    uint64_t bytes = 0;
    *out = (gx_part_range){0, p->n};
    if (!shard)
        return GX_OK;
    if (shard->number >= shard->n || !shard->exchange)
        return gx_fail(err, GX_EUSAGE, "shard %u of %u does not exist, or cannot exchange results", shard->number,
                       shard->n);
    if (p->n < shard->n)
        return gx_fail(err, GX_EUSAGE, "%s has %u parts, too few for %u processes", ix->path, p->n, shard->n);
    for (uint32_t i = 0, now = 0, first = 0; i < p->n; ++i) { /* now: the shard that is being filled from `first` on */
        const bool full = (double)bytes * shard->n >= (double)ix->file_bytes * (now + 1);
        if (i > first && now + 1 < shard->n && (full || p->n - i < shard->n - now)) {
            if (now == shard->number)
                out->end = i;
            first = i;
            if (++now == shard->number)
                out->begin = i;
        }
        bytes += p->parts[i].ix->file_bytes;
    }
    return GX_OK;
}

gx_status gx_part_engines_open(gx_part_engines **out, const gx_index *ix, const gx_engine_options *opt,
                               const gx_executor *gpu, const gx_part_engines *old, gx_error *err)
{
    *out = NULL;
    gx_part_engines *e = calloc(1, sizeof *e);
    if (!e)
        return gx_fail(err, GX_ENOMEM, "no memory for an engine");
    gx_status st = find_range(&e->range, ix, opt->shard, err);
    if (st == GX_OK && opt->join == GX_JOIN_ALWAYS && gx_index_is_wide(ix))
        st = gx_fail(err, GX_EUSAGE,
                     "%s has %llu documents, too many for one index: its parts are searched one by one and cannot be "
                     "joined",
                     ix->path, (unsigned long long)gx_index_n_docs(ix));
    e->ix = ix;
    if (st == GX_OK)
        st = join_parts(e, opt, gpu, old, err);
    if (st != GX_OK) {
        free(e);
        return st;
    }
    e->ix = e->joined ? gx_joined_parts_index(e->joined) : ix;
    if (e->joined)
        e->range = gx_joined_parts_range(e->joined);
    e->shard = opt->shard;
    e->spares = old ? gx_spares_share(old->spares) : gx_spares_open();
    gx_spares_begin_commit(e->spares);
    e->n = e->ix->parts->n;
    e->engines = calloc(e->n, sizeof *e->engines);
    e->live = calloc(e->n, sizeof *e->live);
    st = e->engines && e->live ? open_engines(e, opt, gpu, old, err)
                               : gx_fail(err, GX_ENOMEM, "no memory for the engines of %u parts", e->n);
    if (st == GX_OK && are_mixed(e)) { /* a GPU has no room for its parts */
        gx_engine_options cpu = *opt;
        cpu.kind = GX_ENGINE_CPU;
        for (uint32_t i = 0; i < e->n; ++i) {
            gx_engine_close(e->engines[i]);
            e->engines[i] = NULL;
        }
        free(e->description);
        e->description = NULL;
        st = open_engines(e, &cpu, NULL, NULL, err);
    }
    if (st == GX_OK)
        st = open_live(e, err);
    if (st == GX_OK) {
        e->single = e->n == 1 && !e->live[0] && !e->shard;
        *out = e;
    } else {
        gx_part_engines_close(e);
    }
    return st;
}
