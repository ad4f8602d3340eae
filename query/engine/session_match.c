/* session_match.c: all documents that match a plan, which no search for the best k finds. */
#include "query/engine/session_state.h"

#include <string.h>

#include "engine/status.h"
#include "query/engine/masks.h"

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

gx_status gx_session_match(gx_session *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    return (s->parts ? match_in_parts : match_in_file)(s, plan, words, n, err);
}
