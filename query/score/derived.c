#include "query/score/derived.h"

#include <stdlib.h>

#include "engine/status.h"

const gx_map_policy gx_maps_cpu = {.coarsest_slots = 4, .fine_slots = 0};
const gx_map_policy gx_maps_gpu = {.coarsest_slots = 1, .fine_slots = 16};

/* A list to be sorted: falling df in the high half, so that keys rise as the order does; the id in
 * the low half. */
static uint64_t key_of(uint32_t df, uint32_t list)
{
    return (uint64_t)~df << 32 | list;
}

static int rising(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All lists that may have a map to plan->lists, longest first. */
static bool order_lists(gx_map_plan *plan, const gx_index *ix)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < ix->n_terms; ++i)
        n += ix->lists[i].df >= GX_MAP_MIN_DF;
    uint64_t *keys = malloc((n + (size_t)1) * sizeof *keys);
    plan->lists = malloc((n + (size_t)1) * sizeof *plan->lists);
    if (!keys || !plan->lists) {
        free(keys);
        return false;
    }
    for (uint32_t i = 0; i < ix->n_terms; ++i) {
        if (ix->lists[i].df >= GX_MAP_MIN_DF)
            keys[plan->n_lists++] = key_of(ix->lists[i].df, i);
    }
    qsort(keys, n, sizeof *keys, rising);
    for (uint32_t i = 0; i < n; ++i)
        plan->lists[i] = (uint32_t)keys[i];
    free(keys);
    return true;
}

static uint64_t map_words(const gx_map_plan *plan, const gx_index *ix, const gx_map_sizes *sizes, uint32_t i,
                          uint32_t slots)
{
    return sizes->map_words(ix->n_docs, gx_map_shift(ix->n_docs, ix->lists[plan->lists[i]].df, slots));
}

/* Rule 2. Returns the words that the maps take. */
static uint64_t plan_maps(gx_map_plan *plan, const gx_index *ix, const gx_map_policy *policy, const gx_map_sizes *sizes,
                          uint64_t words)
{
    for (plan->slots = GX_MAP_SLOTS;; plan->slots /= 2) {
        uint64_t used = 0;
        for (plan->n_maps = 0; plan->n_maps < plan->n_lists; ++plan->n_maps) {
            const uint64_t more = map_words(plan, ix, sizes, plan->n_maps, plan->slots);
            if (more > words - used)
                break;
            used += more;
        }
        if (plan->n_maps == plan->n_lists || plan->slots <= policy->coarsest_slots)
            return used;
    }
}

/* Rule 3. */
static void plan_fine_maps(gx_map_plan *plan, const gx_index *ix, const gx_map_policy *policy,
                           const gx_map_sizes *sizes, uint64_t words)
{
    for (; plan->n_fine < plan->n_maps; ++plan->n_fine) {
        const uint32_t df = ix->lists[plan->lists[plan->n_fine]].df;
        const uint64_t more = map_words(plan, ix, sizes, plan->n_fine, policy->fine_slots) +
                              sizes->class_words(ix->n_docs, gx_map_shift(ix->n_docs, df, policy->fine_slots)) -
                              map_words(plan, ix, sizes, plan->n_fine, plan->slots);
        if (more > words)
            break;
        words -= more;
    }
}

gx_status gx_map_plan_make(gx_map_plan *plan, const gx_index *ix, const gx_map_policy *policy,
                           const gx_map_sizes *sizes, uint64_t words, gx_error *err)
{
    *plan = (gx_map_plan){0};
    if (!order_lists(plan, ix)) {
        gx_map_plan_free(plan);
        return gx_fail(err, GX_ENOMEM, "no memory for the order of %u lists", ix->n_terms);
    }
    const uint64_t used = plan_maps(plan, ix, policy, sizes, words);
    if (policy->fine_slots)
        plan_fine_maps(plan, ix, policy, sizes, words - used);
    return GX_OK;
}

void gx_map_plan_free(gx_map_plan *plan)
{
    free(plan->lists);
    *plan = (gx_map_plan){0};
}
