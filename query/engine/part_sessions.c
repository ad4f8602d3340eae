/* part_sessions.c: the sessions of a collection's parts, and how a batch is run on them one after another. */
#include "query/engine/part_state.h"

#include <stdlib.h>

#include "engine/status.h"
#include "query/filter/filter.h"
#include "query/filter/mask.h"

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
    out->postings -= s->again.postings;       /* each list counts once, as in one index */
    out->blocks -= s->again.blocks;
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

/* Of a budget of blocks what part i may search: its share by documents, rounded up. */
static uint32_t share_of_budget(uint32_t budget, const gx_parts *parts, uint32_t i)
{
    uint64_t n_docs = 0;
    for (uint32_t j = 0; budget && j < parts->n; ++j)
        n_docs += parts->parts[j].ix->n_docs;
    return n_docs ? (uint32_t)(((uint64_t)budget * parts->parts[i].ix->n_docs + n_docs - 1) / n_docs) : budget;
}

/* The least score with which a document of the part is better than the i-th hit. */
static uint32_t least_score(const gx_hits *hits, uint32_t i, const gx_part *part)
{
    return gx_key_score(hits->keys[i]) + (gx_hits_docid(hits, i) < part->base);
}

void gx_part_sessions_give_documents(const gx_part_sessions *s, const gx_plan *plan, uint32_t i, gx_plan *here)
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
        gx_part_sessions_give_documents(s, &plans[i], p, plan);
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
        gx_part_hits_take(part, &hits[i], plans[i].k, &s->batch.hits[m++]);
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
            st = gx_part_sessions_exchange(s, plans, instead, n, hits, err);
    }
    return st == GX_OK && s->e->shard ? gx_part_sessions_exchange(s, plans, instead, n, hits, err) : st;
}

/* What an AND of the parts has counted, which its OR counts again. */
static void add_again(gx_part_sessions *s, const gx_part_plans *p)
{
    for (uint32_t i = s->e->range.begin; i < s->e->range.end; ++i) {
        const uint32_t block_len = s->e->ix->parts->parts[i].ix->block_len;
        for (uint32_t t = 0; t < p->plans[i].n_terms; ++t) {
            const uint32_t df = p->plans[i].terms[t].df;
            s->again.postings += df;
            s->again.blocks += df / block_len + (df % block_len != 0);
        }
    }
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
        add_again(s, plans[i].parts);
        st = gx_part_plans_rebind(&again[i], s->e->ix, &plans[i].parts->query, GX_OP_OR, err);
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
