#include "query/collection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/device.h"
#include "engine/grow.h"
#include "engine/status.h"
#include "query/approximate.h"
#include "query/batch_buffer.h"
#include "query/count.h"
#include "query/filter.h"
#include "query/mask.h"
#include "query/wide_hits.h"

/* ---- engines ---- */

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

/* Whether the parts are to be joined: by AUTO where a GPU is to search them. */
static bool wants_joining(const gx_engine_options *opt, const gx_executor *gpu)
{
    gx_error why;
    if (opt->join != GX_JOIN_AUTO || opt->kind == GX_ENGINE_CPU || !gpu)
        return opt->join == GX_JOIN_ALWAYS;
    return gx_device_use(opt->device, &why) == GX_OK;
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
    if (st == GX_OK && !gx_index_is_wide(ix) && wants_joining(opt, gpu))
        st = gx_joined_parts_open(&e->joined, ix, e->range, spreads(opt) ? opt->n_devices : 1, old ? old->joined : NULL,
                                  opt->join == GX_JOIN_ALWAYS, err);
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

/* ---- masks ---- */

void gx_part_masks_close(gx_mask **masks, uint32_t n)
{
    for (uint32_t i = 0; masks && i < n; ++i)
        gx_mask_close(masks[i]);
    free(masks);
}

/* Words for the largest part. NULL: no memory. */
static uint64_t *alloc_words(const gx_part_engines *e)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < e->n; ++i) {
        const uint32_t n = e->ix->parts->parts[i].ix->n_docs;
        most = n > most ? n : most;
    }
    return malloc(((size_t)most / 64 + 1) * sizeof(uint64_t));
}

gx_status gx_part_masks_open(gx_mask ***out, const gx_part_engines *e, const uint64_t *words, gx_error *err)
{
    gx_mask **masks = calloc(e->n, sizeof *masks);
    uint64_t *local = alloc_words(e);
    *out = NULL;
    gx_status st = masks && local ? GX_OK
                                  : gx_fail(err, GX_ENOMEM, "no memory for a mask of %llu documents",
                                            (unsigned long long)gx_index_n_docs(e->ix));
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i) {
        gx_part_scatter(&e->ix->parts->parts[i], words, local);
        st = gx_mask_open(&masks[i], e->engines[i], local, err);
    }
    free(local);
    if (st == GX_OK)
        *out = masks;
    else
        gx_part_masks_close(masks, e->n);
    return st;
}

gx_status gx_part_masks_copy(gx_mask ***out, const gx_part_engines *e, gx_mask *const *masks, gx_error *err)
{
    gx_mask **copies = calloc(e->n, sizeof *copies);
    gx_status st = copies ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for a mask");
    *out = NULL;
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i)
        st = gx_mask_copy(&copies[i], e->engines[i], masks[i], err);
    if (st == GX_OK)
        *out = copies;
    else
        gx_part_masks_close(copies, e->n);
    return st;
}

gx_status gx_part_masks_both(gx_mask ***out, const gx_part_engines *e, gx_mask *const *a, gx_mask *const *b,
                             gx_error *err)
{
    gx_mask **both = calloc(e->n, sizeof *both);
    uint64_t *words = alloc_words(e);
    gx_status st = both && words ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for a mask");
    *out = NULL;
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i) {
        for (size_t w = 0; w * 64 < e->ix->parts->parts[i].ix->n_docs; ++w)
            words[w] = gx_mask_word(a[i], w) & gx_mask_word(b[i], w);
        st = gx_mask_open(&both[i], e->engines[i], words, err);
    }
    free(words);
    if (st == GX_OK)
        *out = both;
    else
        gx_part_masks_close(both, e->n);
    return st;
}

/* ---- plans ---- */

#define FEW_IDS GX_FEW_IDS

/* The numbers of a query's terms in the parts, by the order in which their dfs are asked for. */
typedef struct term_ids {
    const gx_parts *parts;
    double unit; /* of impacts, the same in all lists of a collection */
    uint32_t n, max;
    bool failed;    /* memory lacked */
    uint32_t *many; /* [max][parts->n]; NULL: they are in `few`, of which the first max * parts->n are used */
    uint32_t few[FEW_IDS];
} term_ids;

static bool reserve_id(term_ids *t)
{
    if (t->n < t->max)
        return true;
    const uint32_t max = 2 * t->max + 8;
    const size_t bytes = (size_t)max * t->parts->n * sizeof *t->many;
    uint32_t *ids = realloc(t->many, bytes);
    if (!ids)
        return false;
    if (!t->many)
        memcpy(ids, t->few, (size_t)t->n * t->parts->n * sizeof *ids);
    t->many = ids;
    t->max = max;
    return true;
}

static uint64_t find_df(const void *user, const char *term, size_t len)
{
    term_ids *t = (term_ids *)user;
    t->failed = t->failed || !reserve_id(t);
    if (t->failed)
        return 0;
    return gx_parts_find_ids(t->parts, term, len, (t->many ? t->many : t->few) + (size_t)t->n++ * t->parts->n);
}

static uint32_t find_max_tf(const void *user, const char *term, size_t len)
{
    return gx_parts_max_tf(((const term_ids *)user)->parts, term, len);
}

static double find_unit(const void *user, const char *term, size_t len)
{
    (void)term, (void)len;
    return ((const term_ids *)user)->unit;
}

void gx_part_plans_free(gx_part_plans *p)
{
    if (!p)
        return;
    if (p->own_terms)
        gx_query_plan_free(&p->query);
    free(p);
}

/* Of a budget of blocks what part i may search: its share by documents, rounded up. */
static uint32_t share_of_budget(uint32_t budget, const gx_parts *parts, uint32_t i)
{
    uint64_t n_docs = 0;
    for (uint32_t j = 0; budget && j < parts->n; ++j)
        n_docs += parts->parts[j].ix->n_docs;
    return n_docs ? (uint32_t)(((uint64_t)budget * parts->parts[i].ix->n_docs + n_docs - 1) / n_docs) : budget;
}

/* Binds *query. Its terms are copied, or, with `takes`, become the result's, also where this fails.
 * ids as of gx_plan_bind_ids, p->n a term. */
static gx_status bind_parts(gx_part_plans **out, const gx_index *ix, gx_query_plan *query, bool takes, gx_op op,
                            const uint32_t *ids, gx_error *err)
{
    const uint32_t n = ix->parts->n;
    const size_t plans_bytes = sizeof(gx_part_plans) + n * sizeof(gx_plan);
    const size_t terms_bytes = (size_t)n * query->n_terms * sizeof(gx_plan_term);
    gx_part_plans *p = malloc(plans_bytes + terms_bytes + (takes ? 0 : query->n_terms * sizeof *query->terms));
    *out = NULL;
    if (!p) {
        if (takes)
            gx_query_plan_free(query);
        return gx_fail(err, GX_ENOMEM, "no memory for the plans of %u parts", n);
    }
    gx_plan_term *terms = (gx_plan_term *)(void *)((char *)p + plans_bytes);
    p->ix = ix;
    p->n = n;
    p->query = *query;
    p->query.op = op;
    p->own_terms = takes;
    if (!takes) {
        p->query.terms = (gx_query_term *)(void *)((char *)p + plans_bytes + terms_bytes);
        memcpy(p->query.terms, query->terms, query->n_terms * sizeof *query->terms);
    }
    for (uint32_t i = 0; i < n; ++i) {
        gx_plan_bind_ids(&p->plans[i], &p->query, ix->parts->parts[i].ix, ids + i, n,
                         terms + (size_t)i * query->n_terms);
        p->plans[i].mask = NULL;
        p->plans[i].coarse_bounds = true;
        p->plans[i].approximate = 0; /* passes are those of the whole */
    }
    *out = p;
    return GX_OK;
}

/* A part whose documents a filter of the collection selects. */
typedef struct part_leaf {
    const gx_part_engines *e;
    uint32_t part;
} part_leaf;

static gx_status evaluate_leaf(void *user, const gx_filter *f, uint64_t *words, gx_error *err)
{
    const part_leaf *l = user;
    const gx_part *part = &l->e->ix->parts->parts[l->part];
    if (!l->e->joined)
        return gx_filter_evaluate(f->parts[l->part], words, NULL, err);
    uint64_t *whole = malloc((gx_index_n_words(l->e->ix) + 1) * sizeof *whole);
    gx_status st = whole ? gx_filter_evaluate(f, whole, NULL, err)
                         : gx_fail(err, GX_ENOMEM, "no memory for the documents of a boolean query");
    if (st == GX_OK) {
        memset(words, 0, ((size_t)part->ix->n_docs + 63) / 64 * sizeof *words);
        gx_part_scatter(part, whole, words);
    }
    free(whole);
    return st;
}

/* What of a boolean query matches, as masks of the parts. */
static gx_status match_parts(gx_mask ***out, const gx_part_engines *e, const gx_boolean *whole, const gx_query *q,
                             const gx_query_options *opt, const gx_plan *plan, gx_error *err)
{
    gx_mask **masks = calloc(e->n, sizeof *masks);
    uint64_t *words = alloc_words(e);
    gx_status st = masks && words ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the documents of a boolean query");
    *out = NULL;
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i) {
        const gx_mask *allowed = opt->mask ? opt->mask->parts[i] : e->live[i];
        const gx_index *part = e->ix->parts->parts[i].ix;
        gx_boolean *b;
        part_leaf leaf = {e, i};
        const gx_boolean_leaves leaves = {whole, evaluate_leaf, &leaf};
        if ((st = gx_boolean_open(&b, part, NULL, q->text, q->len, opt->op, err)) != GX_OK)
            break;
        st = gx_boolean_match(b, plan, &leaves, words, err);
        gx_boolean_close(b);
        for (size_t w = 0; allowed && st == GX_OK && w * 64 < part->n_docs; ++w)
            words[w] &= gx_mask_word(allowed, w);
        if (st == GX_OK)
            st = gx_mask_open(&masks[i], e->engines[i], words, err);
    }
    free(words);
    if (st == GX_OK)
        *out = masks;
    else
        gx_part_masks_close(masks, e->n);
    return st;
}

/* The plan of a text, if its terms are few; else *few is false. */
static gx_status plan_few_terms(gx_plan *out, bool *few, const gx_index *ix, const gx_query *q,
                                const gx_query_options *opt, gx_error *err)
{
    const term_ids parts = {.parts = ix->parts};
    const gx_collection_stats stats = {
        .n_docs = gx_index_n_docs(ix), .avgdl = ix->avgdl, .max_tf = find_max_tf, .user = &parts};
    gx_text_terms t;
    gx_status st = gx_text_terms_find(&t, few, ix, q->text, q->len, err);
    if (st != GX_OK || !*few)
        return st;
    for (uint32_t i = 0; i < t.n; ++i)
        t.terms[i].unit = ix->impact_unit;
    gx_query_plan query = {.opt = *opt, .op = opt->op, .n_terms = t.n, .n_unknown = t.n_unknown, .terms = t.terms};
    if ((st = gx_query_plan_weigh(&query, &stats, err)) != GX_OK)
        return st;
    gx_plan plan = gx_query_plan_summary(&query, ix);
    st = bind_parts(&plan.parts, ix, &query, false, plan.op == GX_OP_AND_OR ? GX_OP_AND : plan.op, t.ids, err);
    if (st == GX_OK)
        *out = plan;
    return st;
}

gx_status gx_part_plan(gx_plan *out, gx_mask ***matches, const gx_part_engines *e, const gx_index *whole,
                       const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    const gx_index *ix = e->ix;
    if (e->single && q->kind != GX_QUERY_BOOLEAN) {
        gx_boolean *none;
        *matches = NULL;
        return gx_plan_query(out, &none, ix->parts->parts[0].ix, q, opt, err);
    }
    if (e->n == 1 && !e->shard && q->kind == GX_QUERY_TEXT && !(opt->approximate > 0)) {
        *matches = NULL;
        const gx_status of_text = gx_plan_make_live(out, ix, q->text, q->len, opt, err);
        if (of_text == GX_OK)
            out->coarse_bounds = true;
        return of_text;
    }
    if (q->kind == GX_QUERY_TEXT) {
        bool few;
        *matches = NULL;
        const gx_status of_text = plan_few_terms(out, &few, ix, q, opt, err);
        if (of_text != GX_OK || few)
            return of_text;
    }
    term_ids ids = {.parts = ix->parts, .unit = ix->impact_unit, .max = FEW_IDS / ix->parts->n};
    const gx_collection_stats stats = {.n_docs = gx_index_n_docs(ix),
                                       .avgdl = ix->avgdl,
                                       .df = find_df,
                                       .max_tf = find_max_tf,
                                       .unit = find_unit,
                                       .user = &ids};
    gx_query_plan query;
    gx_boolean *b;
    *matches = NULL;
    gx_status st = gx_query_plan_any(&query, &b, whole, &stats, q, opt, err);
    if (st == GX_OK && ids.failed) {
        gx_query_plan_free(&query);
        st = gx_fail(err, GX_ENOMEM, "no memory for the terms of a query");
    }
    if (st != GX_OK) {
        free(ids.many);
        gx_boolean_close(b);
        return st;
    }
    gx_plan plan = gx_query_plan_summary(&query, ix);
    st = bind_parts(&plan.parts, ix, &query, true, plan.op == GX_OP_AND_OR ? GX_OP_AND : plan.op,
                    ids.many ? ids.many : ids.few, err);
    free(ids.many);
    if (st == GX_OK && b)
        st = gx_boolean_make_filters(b, &plan, whole, q, err);
    if (st == GX_OK && b && !gx_boolean_is_flat(b))
        st = match_parts(matches, e, b, q, opt, &plan, err);
    gx_boolean_close(b);
    if (st != GX_OK) {
        gx_plan_free(&plan);
        return st;
    }
    *out = plan;
    return st;
}

/* ---- sessions ---- */

struct gx_part_sessions {
    const gx_part_engines *e;
    uint32_t first;        /* the part that is searched first, counted from the range's begin */
    gx_session **sessions; /* [e->n] */
    gx_counter **counters; /* [e->n], NULL until a search counts */
    uint64_t and_fell_to_or;
    gx_batch_buffer batch; /* of one part's plans */
    uint64_t *keys;        /* [max_keys] that shards exchange, */
    uint32_t *highs;       /* [max_highs] with their upper halves, of a wide collection */
    uint32_t *counts;      /* [max_counts] how many of each query, and its k */
    size_t max_keys, max_highs, max_counts;
    gx_candidate *candidates; /* [max_candidates] of one plan */
    size_t max_candidates;
};

gx_status gx_part_sessions_open(gx_part_sessions **out, gx_part_engines *e, gx_error *err)
{
    *out = NULL;
    gx_part_sessions *s = calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a session");
    s->e = e;
    s->batch.wide = gx_index_is_wide(e->ix);
    if (e->description)
        s->first = __atomic_fetch_add(&e->n_opened, 1, __ATOMIC_RELAXED) % (e->range.end - e->range.begin);
    s->sessions = calloc(e->n, sizeof *s->sessions);
    s->counters = calloc(e->n, sizeof *s->counters);
    gx_status st = s->sessions && s->counters ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %u sessions", e->n);
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i)
        st = gx_session_open(&s->sessions[i], e->engines[i], err);
    if (st == GX_OK)
        *out = s;
    else
        gx_part_sessions_close(s);
    return st;
}

void gx_part_sessions_close(gx_part_sessions *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->e->n; ++i) {
        if (s->sessions)
            gx_session_close(s->sessions[i]);
        if (s->counters)
            gx_counter_close(s->counters[i]);
    }
    free(s->sessions);
    free(s->counters);
    gx_batch_buffer_free(&s->batch);
    free(s->keys);
    free(s->highs);
    free(s->counts);
    free(s->candidates);
    free(s);
}

void gx_part_sessions_stats(const gx_part_sessions *s, gx_search_stats *out)
{
    *out = (gx_search_stats){0};
    for (uint32_t i = s->e->range.begin; i < s->e->range.end; ++i)
        gx_search_stats_add(out, gx_session_stats(s->sessions[i]));
    out->and_fell_to_or += s->and_fell_to_or; /* parts of several are searched by AND, and again by OR */
    out->cached = 0;
}

void gx_part_sessions_memory(const gx_part_sessions *s, gx_session_memory *out)
{
    out->device = out->pinned = 0;
    for (uint32_t i = s->e->range.begin; i < s->e->range.end; ++i) {
        gx_session_memory one = {.size = sizeof one};
        gx_session_get_memory(s->sessions[i], &one);
        out->device += one.device;
        out->pinned += one.pinned;
    }
}

/* The docids of a part's keys become those of the collection, which is not wide. That keeps their order. */
static void rebase(const gx_part *part, uint64_t *keys, uint32_t n)
{
    const uint32_t base = (uint32_t)part->base;
    for (uint32_t i = 0; i < n; ++i)
        keys[i] = gx_key(gx_key_score(keys[i]), base + gx_deletes_rank(part->deletes, gx_key_docid(keys[i])));
}

/* Of hits->keys and more[n], both falling, keep the k greatest in hits->keys[k]. */
static void merge(gx_hits *hits, uint32_t k, const uint64_t *more, uint32_t n)
{
    uint32_t a = 0, b = 0;
    while (a + b < k && (a < hits->n || b < n)) { /* how many of each are kept */
        if (b == n || (a < hits->n && hits->keys[a] > more[b]))
            ++a;
        else
            ++b;
    }
    hits->n = a + b;
    while (b) { /* from the end, where nothing is overwritten that is still needed */
        const uint32_t at = a + b - 1;
        if (a && hits->keys[a - 1] < more[b - 1])
            hits->keys[at] = hits->keys[--a];
        else
            hits->keys[at] = more[--b];
    }
}

/* The least score with which a document of the part is better than the i-th hit. */
static uint32_t least_score(const gx_hits *hits, uint32_t i, const gx_part *part)
{
    return gx_key_score(hits->keys[i]) + (gx_hits_docid(hits, i) < part->base);
}

/* Add what a part has found to the hits of the parts before. `found` may lie in their place. */
static void take_found(const gx_part *part, gx_hits *hits, uint32_t k, gx_hits *found)
{
    if (hits->highs)
        gx_wide_rebase(part, found);
    else
        rebase(part, found->keys, found->n);
    if (found->keys == hits->keys)
        hits->n = found->n;
    else if (hits->highs)
        gx_wide_merge(hits, k, found);
    else
        merge(hits, k, found->keys, found->n);
}

/* Part i's mask and filter of a plan, and whether it is to be filled. */
static void give_documents(const gx_part_sessions *s, const gx_plan *plan, uint32_t i, gx_plan *here)
{
    here->mask = plan->mask ? plan->mask->parts[i] : s->e->live[i];
    here->filter = plan->filter && !s->e->joined ? plan->filter->parts[i] : NULL; /* joined: in the mask */
    here->fill = plan->fill;
}

/* Plan i as part p runs it; NULL: it finds nothing there. */
static const gx_plan *plan_of_part(const gx_plan *plans, gx_part_plans *const *instead, uint32_t i, uint32_t p)
{
    const gx_part_plans *of = instead ? instead[i] : plans[i].parts;
    if (of)
        return &of->plans[p];
    return !instead && plans[i].terms ? &plans[i] : NULL; /* a plan of the only part */
}

/* How the plan of the whole is searched may have been changed since its parts' plans were made. */
static void search_as(gx_plan *plan, const gx_plan *whole, const gx_parts *parts, uint32_t p)
{
    plan->prune = plan->prune && whole->prune; /* bounds may not suit a part: gx_plan_bind */
    plan->algorithm = whole->algorithm;
    plan->recursion = whole->recursion;
    plan->threshold_factor = whole->threshold_factor;
    plan->block_budget = share_of_budget(whole->block_budget, parts, p);
}

/* Search part p for the plans, or for those of `instead`, from what earlier parts have found. */
static gx_status run_part(gx_part_sessions *s, uint32_t p, const gx_plan *plans, gx_part_plans *const *instead,
                          uint32_t n, gx_hits *hits, gx_error *err)
{
    const gx_part *part = &s->e->ix->parts->parts[p];
    uint64_t *keys = s->batch.keys;
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_plan *of = plan_of_part(plans, instead, i, p);
        if (!of)
            continue;
        gx_plan *plan = &s->batch.plans[m];
        *plan = *of;
        plan->base = 0; /* it is added to the docids of the whole */
        plan->approximate = 0;
        search_as(plan, &plans[i], s->e->ix->parts, p);
        if (plan->k > plans[i].k) /* the part has more documents, deleted ones, than the collection has live ones */
            plan->k = plans[i].k;
        give_documents(s, &plans[i], p, plan);
        plan->initial_threshold = hits[i].n == plans[i].k ? least_score(&hits[i], plans[i].k - 1, part) : 0;
        s->batch.hits[m] = (gx_hits){keys, 0};
        if (hits[i].n == 0) /* the first keys lie where they stay */
            s->batch.hits[m].keys = hits[i].keys;
        if (hits[i].highs)
            s->batch.hits[m].highs = hits[i].n ? s->batch.highs + (keys - s->batch.keys) : hits[i].highs;
        ++m;
        keys += plan->k;
    }
    gx_status st = gx_session_run(s->sessions[p], s->batch.plans, m, s->batch.hits, err);
    m = 0;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if (!plan_of_part(plans, instead, i, p))
            continue;
        take_found(part, &hits[i], plans[i].k, &s->batch.hits[m++]);
    }
    return st;
}

/* Room for what shards exchange of n queries of up to n_keys keys together. */
static bool reserve_exchange(gx_part_sessions *s, uint32_t n, size_t n_keys)
{
    return gx_reserve(&s->keys, &s->max_keys, n_keys + 1, sizeof *s->keys) &&
           gx_reserve(&s->counts, &s->max_counts, 2ull * n + 1, sizeof *s->counts) &&
           (!s->batch.wide || gx_reserve(&s->highs, &s->max_highs, n_keys + 1, sizeof *s->highs));
}

static void copy_hits(gx_hits *to, const gx_hits *from)
{
    to->n = from->n;
    memcpy(to->keys, from->keys, from->n * sizeof *to->keys);
    if (to->highs)
        memcpy(to->highs, from->highs, from->n * sizeof *to->highs);
}

/* The hits of the plans that are run become those of all shards. */
static gx_status exchange(gx_part_sessions *s, const gx_plan *plans, gx_part_plans *const *instead, uint32_t n,
                          gx_hits *hits, gx_error *err)
{
    uint32_t m = 0;
    size_t n_keys = 0;
    for (uint32_t i = 0; i < n; ++i)
        n_keys += plans[i].k;
    if (!reserve_exchange(s, n, n_keys))
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    uint32_t *const n_of = s->counts, *const ks = s->counts + n, *const highs = s->batch.wide ? s->highs : NULL;
    n_keys = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (!(instead ? instead[i] : plans[i].parts))
            continue;
        gx_hits own = {s->keys + n_keys, 0, highs ? highs + n_keys : NULL};
        copy_hits(&own, &hits[i]);
        n_of[m] = own.n;
        ks[m++] = plans[i].k;
        n_keys += plans[i].k;
    }
    const gx_status st = s->e->shard->exchange(s->e->shard->user, s->keys, highs, n_of, ks, m, err);
    m = 0;
    n_keys = 0;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if (!(instead ? instead[i] : plans[i].parts))
            continue;
        const gx_hits all = {s->keys + n_keys, n_of[m++], highs ? highs + n_keys : NULL};
        copy_hits(&hits[i], &all);
        n_keys += plans[i].k;
    }
    return st;
}

/* Plan 0 will be run on part p soon; see gx_executor.expect. */
static void expect_part(const gx_part_sessions *s, uint32_t p, const gx_plan *plans, gx_part_plans *const *instead,
                        bool known)
{
    const gx_plan *plan = plan_of_part(plans, instead, 0, p);
    if (plan)
        gx_session_expect(s->sessions[p], plan, known);
}

static gx_status run_all_parts(gx_part_sessions *s, const gx_plan *plans, gx_part_plans *const *instead, uint32_t n,
                               gx_hits *hits, gx_error *err)
{
    const gx_part_range range = s->e->range;
    const uint32_t n_parts = range.end - range.begin;
    gx_status st = GX_OK;
    /* of a single query the parts are searched in so little time that what is read of them first is most of it */
    for (uint32_t i = 0; i < n_parts && n == 1; ++i)
        expect_part(s, range.begin + (s->first + i) % n_parts, plans, instead, false);
    for (uint32_t i = 0; i < n_parts && st == GX_OK; ++i) {
        if (i + 1 < n_parts && n == 1)
            expect_part(s, range.begin + (s->first + i + 1) % n_parts, plans, instead, true);
        st = run_part(s, range.begin + (s->first + i) % n_parts, plans, instead, n, hits, err);
        if (st == GX_OK && s->e->shard && i == 0)
            st = exchange(s, plans, instead, n, hits, err);
    }
    return st == GX_OK && s->e->shard ? exchange(s, plans, instead, n, hits, err) : st;
}

/* The same query with another operator. */
static gx_status rebind(gx_part_plans **out, const gx_index *ix, const gx_query_plan *query, gx_op op, gx_error *err)
{
    gx_query_plan copy;
    uint32_t *ids = malloc(((size_t)query->n_terms * ix->parts->n + 1) * sizeof *ids);
    gx_status st =
        ids ? gx_query_plan_copy(&copy, query, err) : gx_fail(err, GX_ENOMEM, "no memory for the terms of a query");
    *out = NULL;
    for (uint32_t i = 0; st == GX_OK && i < copy.n_terms; ++i) {
        copy.terms[i].number = i;
        gx_parts_find_ids(ix->parts, copy.terms[i].term, copy.terms[i].len, ids + (size_t)i * ix->parts->n);
    }
    if (st == GX_OK)
        st = bind_parts(out, ix, &copy, true, op, ids, err);
    free(ids);
    return st;
}

gx_status gx_part_plans_take(gx_part_plans **out, const gx_part_plans *p, const bool *taken, bool with, uint32_t k,
                             gx_error *err)
{
    gx_query_plan some = p->query;
    *out = NULL;
    some.terms = malloc((p->query.n_terms + 1ull) * sizeof *some.terms);
    if (!some.terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", p->query.n_terms);
    some.n_terms = 0;
    some.opt.k = k;
    for (uint32_t i = 0; i < p->query.n_terms; ++i) {
        if (taken[i] == with)
            some.terms[some.n_terms++] = p->query.terms[i];
    }
    const gx_status st = rebind(out, p->ix, &some, p->query.op, err);
    for (uint32_t i = 0; st == GX_OK && i < (*out)->n; ++i)
        (*out)->plans[i].n_left_out = p->query.n_terms - some.n_terms;
    free(some.terms);
    return st;
}

/* The plans of GX_OP_AND_OR whose AND has given too few results, answered by OR. */
static gx_status run_or(gx_part_sessions *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_status st = GX_OK;
    uint32_t n_again = 0;
    gx_part_plans **again = calloc(n + 1, sizeof *again);
    if (!again)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if (plans[i].op != GX_OP_AND_OR || !plans[i].parts || hits[i].n >= plans[i].k)
            continue;
        hits[i].n = 0;
        ++n_again;
        st = rebind(&again[i], s->e->ix, &plans[i].parts->query, GX_OP_OR, err);
    }
    s->and_fell_to_or += n_again;
    if (st == GX_OK && n_again)
        st = run_all_parts(s, plans, again, n, hits, err);
    for (uint32_t i = 0; i < n; ++i)
        gx_part_plans_free(again[i]);
    free(again);
    return st;
}

/* Whether the only part can run the plans as they are. */
static bool are_of_only_part(const gx_part_sessions *s, const gx_plan *plans, uint32_t n)
{
    bool all = s->e->single;
    for (uint32_t i = 0; all && i < n; ++i)
        all = plans[i].terms && !plans[i].mask && !plans[i].filter && plans[i].base == 0;
    return all;
}

gx_status gx_part_sessions_run(gx_part_sessions *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    if (are_of_only_part(s, plans, n))
        return gx_session_run(s->sessions[0], plans, n, hits, err);
    size_t n_keys = 0;
    bool two_passes = false;
    for (uint32_t i = 0; i < n; ++i) {
        hits[i].n = 0;
        n_keys += plans[i].k;
        two_passes = two_passes || plans[i].op == GX_OP_AND_OR;
    }
    gx_status st = gx_batch_buffer_reserve(&s->batch, n, n_keys, err);
    if (st == GX_OK)
        st = run_all_parts(s, plans, NULL, n, hits, err);
    if (st == GX_OK && two_passes)
        st = run_or(s, plans, n, hits, err);
    return st;
}

/* Add to the candidates, which come by rising docid, what rest's terms add to their scores. */
static void add_scores(gx_part_sessions *s, const gx_plan *rest, gx_candidate *c, uint32_t n)
{
    const gx_parts *parts = s->e->ix->parts;
    uint32_t local[256], scores[256];
    for (uint32_t i = 0, m; i < n; i += m) {
        const gx_part *part = gx_parts_find(parts, c[i].docid, &local[0]);
        const uint32_t number = (uint32_t)(part - parts->parts);
        scores[0] = c[i].score;
        for (m = 1; i + m < n && m < sizeof local / sizeof *local; ++m) {
            if (gx_parts_find(parts, c[i + m].docid, &local[m]) != part)
                break;
            scores[m] = c[i + m].score;
        }
        gx_session *session = s->sessions[number]; /* NULL: another process searches the part */
        const gx_plan *plan = rest->parts ? &rest->parts->plans[number] : rest;
        if (session)
            gx_session_add_scores(session, plan, local, scores, m);
        else
            gx_add_scores(part->ix, plan, local, scores, m);
        for (uint32_t j = 0; j < m; ++j)
            c[i + j].score = scores[j];
    }
}

gx_status gx_part_sessions_choose_best(gx_part_sessions *s, const gx_plan *plan, const gx_plan *rest,
                                       const gx_hits *candidates, gx_hits *hits, gx_error *err)
{
    const uint32_t n = candidates->n;
    if (!gx_reserve(&s->candidates, &s->max_candidates, n, sizeof *s->candidates))
        return gx_fail(err, GX_ENOMEM, "no memory for %u candidates", n);
    gx_candidates_take(s->candidates, candidates);
    add_scores(s, rest, s->candidates, n);
    gx_candidates_choose(s->candidates, n, plan->k, hits);
    return GX_OK;
}

/* The matches of a collection: how many, and their bits, where these are asked for. `words` are those of
 * documents that hold any term, all_words of those that hold all. */
typedef struct part_matches {
    gx_op op;
    uint64_t any, all;
    uint64_t *words, *all_words;
} part_matches;

static gx_status match_part(gx_part_sessions *s, uint32_t i, const gx_plan *here, part_matches *m, gx_error *err)
{
    const gx_part *part = &s->e->ix->parts->parts[i];
    uint64_t any = 0, all = 0;
    gx_status st = s->counters[i] ? GX_OK : gx_counter_open(&s->counters[i], part->ix, err);
    if (st == GX_OK)
        st = gx_count_any_and_all(s->counters[i], here, m->op != GX_OP_AND ? &any : NULL,
                                  m->op != GX_OP_OR ? &all : NULL, err);
    if (st != GX_OK)
        return st;
    all = here->n_unknown ? 0 : all;
    m->any += any;
    m->all += all;
    if (m->words && any)
        gx_part_gather(part, gx_counter_any(s->counters[i]), m->words);
    if (m->all_words && all)
        gx_part_gather(part, gx_counter_all(s->counters[i]), m->all_words);
    return GX_OK;
}

gx_status gx_part_sessions_match(gx_part_sessions *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    const size_t n_words = gx_index_n_words(s->e->ix);
    part_matches m = {.op = plan->op, .words = words};
    gx_part_plans *p = NULL;
    gx_status st = GX_OK;
    *n = 0;
    if (words)
        memset(words, 0, n_words * sizeof *words);
    if (!plan->parts && !plan->terms)
        return GX_OK;
    if (words && plan->op != GX_OP_OR && !(m.all_words = calloc(n_words + 1, sizeof *m.all_words)))
        return gx_fail(err, GX_ENOMEM, "no memory to count matches among %llu documents",
                       (unsigned long long)gx_index_n_docs(s->e->ix));
    if (plan->parts) {
        st = rebind(&p, s->e->ix, &plan->parts->query, GX_OP_OR, err);
    } else { /* a plan of the only part */
        gx_plan here = *plan;
        give_documents(s, plan, 0, &here);
        st = match_part(s, 0, &here, &m, err);
    }
    for (uint32_t i = s->e->range.begin; p && i < s->e->range.end && st == GX_OK; ++i) {
        gx_plan *here = &p->plans[i];
        give_documents(s, plan, i, here);
        st = match_part(s, i, here, &m, err);
    }
    gx_part_plans_free(p);
    const bool of_all = gx_count_is_of_all(plan, m.all);
    *n = of_all ? m.all : m.any;
    if (words && of_all)
        memcpy(words, m.all_words, n_words * sizeof *words);
    free(m.all_words);
    return st;
}
