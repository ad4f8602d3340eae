/* best.h: the k best keys so far, and the threshold: the score that a document needs to become one
 * of them.
 *
 * For k up to GX_CPU_SMALL_K the keys are kept in order. For a greater k they are appended to a
 * log, and a histogram of their scores tells when the threshold may rise. A bin is 1/256 of an
 * octave wide, since scores span many octaves when a query mixes rare and common words. When the
 * log is full, the keys below the threshold are dropped. At the end the k best keys are selected
 * and sorted.
 */
#ifndef GX_QUERY_CPU_BEST_H
#define GX_QUERY_CPU_BEST_H

#include "query/plan/plan.h"

#define GX_CPU_SMALL_K 64u
#define GX_CPU_BINS (25u * 256u) /* enough for any 32-bit score */

typedef struct gx_cpu_best {
    uint32_t k, threshold;  /* a document with a lower score is not one of the k best; >= 1 */
    uint32_t n;             /* keys held */
    uint64_t *keys;         /* [max] in order for a small k, else the log */
    uint64_t *sort_scratch; /* [max] */
    size_t max;
    uint32_t bin;   /* the bin whose edge is the threshold */
    uint64_t above; /* keys in this bin and in the bins above it */
    uint32_t counts[GX_CPU_BINS + 1];
} gx_cpu_best;

/* Begin a search for k results, of which the caller knows that at least k documents have a score of
 * threshold or more. threshold >= 1. False: no memory. */
bool gx_cpu_best_begin(gx_cpu_best *b, uint32_t k, uint32_t threshold);
void gx_cpu_best_free(gx_cpu_best *b);

/* Add a document with its full score. The caller adds each document once. */
void gx_cpu_best_add(gx_cpu_best *b, uint32_t score, uint32_t docid);

/* Write the best keys to out[k], greatest first. Returns their number. */
uint32_t gx_cpu_best_finish(gx_cpu_best *b, uint64_t *out);

#endif
