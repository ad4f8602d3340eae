/* impacts.h: scores as impacts: what gx_index_rewrite makes of tfs (gpuidx_advanced.h has the
 * formulas).
 *
 * The posting stays whatever its score: one that is not above half a unit has the impact 1, so that
 * a document still matches the terms that it contains.
 */
#ifndef GX_INDEX_CONVERT_IMPACTS_H
#define GX_INDEX_CONVERT_IMPACTS_H

#include "engine/api/gpuidx_advanced.h"
#include "index/index.h"

/* The options with every default put in. GX_EUSAGE: a number is out of its range, or the index
 * holds impacts. */
gx_status gx_impact_options_complete(gx_impact_options *out, const gx_impact_options *given, const gx_index *ix,
                                     gx_error *err);

/* The score of each posting of a list; 0 where the formula's is below. cf: the sum of its tfs. */
void gx_impact_scores(const gx_impact_options *o, const gx_index *ix, uint64_t cf, uint32_t df, const uint32_t *docids,
                      const uint32_t *tfs, double *scores /* [df] */);

/* The META section of ix with what its impacts are made of. The caller frees. NULL: no memory. */
char *gx_impact_meta(const gx_impact_options *o, const gx_index *ix);

#endif
