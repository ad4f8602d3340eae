/* synthetic_lists.h: the lists on which papers compare codecs: rising integers, Uniform and
 * Clustered (Anh and Moffat 2010).
 *
 * Random numbers are the Mersenne Twister's (mt19937), drawn into ranges as GCC 4.8's library did,
 * so that lists, and with them the sizes of Mallia et al.'s Table 1 (seed 1, range 2^29), are the
 * same on every machine.
 */
#ifndef GX_TOOLS_BENCH_DATA_SYNTHETIC_LISTS_H
#define GX_TOOLS_BENCH_DATA_SYNTHETIC_LISTS_H

#include "engine/api/gpuidx.h"

typedef enum gx_model {
    GX_UNIFORM,  /* any n of the range */
    GX_CLUSTERED /* ranges split at random, so that stretches of the list are dense and others sparse */
} gx_model;

/* n different integers, rising, to out[n]; all below `range`, 2 <= range <= 2^31, n <= range / 2.
 * GX_ENOMEM. */
gx_status gx_synthetic_list(gx_model model, uint32_t seed, uint32_t n, uint32_t range, uint32_t *out, gx_error *err);

/* d-gaps in place, the first integer stays. */
void gx_to_gaps(uint32_t *list, uint64_t n);

#endif
