/* session_run.c: a session's plans are run: answers that are not in the cache of results come from the engine. And all
 * documents that match a plan, which no search for the best k finds. */
#include "query/engine/session_state.h"

#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/engine/masks.h"
#include "query/exec/fill.h"

gx_status gx_session_run_unfiltered(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
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
        if ((st = gx_session_fall_back(s, &gpu, err)) != GX_OK)
            return st;
    }
    if (n && plans[0].program) { /* who has made it asks again */
        for (uint32_t i = 0; i < n; ++i)
            hits[i].n = 0;
        return GX_OK;
    }
    return gx_executor_cpu.run(s->cpu_workspace, plans, n, hits, &s->work, err);
}

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
        st = gx_session_run_any(s, s->missed.plans, m, s->missed.hits, err);
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
        st = (s->en->cache ? run_missed : gx_session_run_any)(s, plans, n, hits, err);
    for (uint32_t i = 0; st == GX_OK && i < n && !s->parts; ++i) /* parts are filled by their own sessions */
        st = gx_fill(s->en->ix, &plans[i], &hits[i], err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i) {
        for (uint32_t j = 0; plans[i].base && j < hits[i].n; ++j)
            hits[i].keys[j] = gx_key_rebase(hits[i].keys[j], plans[i].base);
    }
    return st;
}

/* ---- all matches ---- */

/* In a collection; joined parts read the filter as a mask. words: the matches' bits, or NULL. */
static gx_status match_in_parts(gx_session *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    gx_plan masked = *plan;
    gx_filter_hold hold = {NULL, NULL, NULL};
    gx_mask *both = NULL;
    const bool by_mask = plan->filter && s->en->parts->joined;
    gx_status st = by_mask ? gx_filter_cache_get(s->en->filters, plan->filter, true, &hold, err) : GX_OK;
    if (st == GX_OK && by_mask && plan->mask)
        st = gx_mask_open_both(&both, s->en, plan->mask, hold.mask, err);
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
    if (st == GX_OK) {
        gx_counter_use_bits(s->counter, gx_session_bits, s);
        st = gx_count_any_and_all(s->counter, plan, plan->op != GX_OP_AND ? &any : NULL,
                                  plan->op != GX_OP_OR ? &all : NULL, err);
    }
    if (st != GX_OK)
        return st;
    const bool of_all = gx_count_is_of_all(plan, all);
    const size_t bytes = ((size_t)s->en->ix->n_docs + 63) / 64 * sizeof *words;
    *n = of_all ? all : any;
    if (words && (plan->n_terms || plan->n_phrases || plan->fill))
        memcpy(words, (of_all ? gx_counter_all : gx_counter_any)(s->counter), bytes);
    else if (words)
        memset(words, 0, bytes);
    return GX_OK;
}

gx_status gx_session_match(gx_session *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    return (s->parts ? match_in_parts : match_in_file)(s, plan, words, n, err);
}
