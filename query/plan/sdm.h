/* sdm.h: pairs of words in a text query (gx_sdm in gpuidx.h). */
#ifndef GX_QUERY_PLAN_SDM_H
#define GX_QUERY_PLAN_SDM_H

#include "query/plan/boolean_state.h"

static inline bool gx_sdm_is_on(const gx_sdm *s)
{
    return s->words != 0 || s->ordered != 0 || s->unordered != 0;
}

/* Add the pairs of words [first, n_scored), which stand in a row in the query, as phrases that only score. GX_EUSAGE
 * (they are too many), GX_ENOMEM. */
gx_status gx_sdm_add_pairs(gx_boolean *b, uint32_t first, const gx_sdm *sdm, gx_error *err);

#endif
