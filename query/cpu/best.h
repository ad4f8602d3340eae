/* best.h: the k best keys of a search that wants to know, at every moment, what score is needed to
 * be one of them.
 *
 * Up to GX_CPU_SMALL_K results are kept in order. For more, keys are only logged, and a histogram
 * of their scores in bins of 1/256 octave (scores span many octaves when a query mixes rare and
 * common words) tells when the threshold may rise; when the log is full, keys below the threshold
 * leave it, and at the end its k best are selected and sorted.
 */
#ifndef GX_QUERY_CPU_BEST_H
#define GX_QUERY_CPU_BEST_H

#include "query/plan.h"

#define GX_CPU_SMALL_K 64u
#define GX_CPU_BINS (25u * 256u) /* enough for any 32-bit score */

typedef struct gx_cpu_best {
    uint32_t k, threshold;  /* a document with a lower score is not one of the k best; >= 1 */
    uint32_t n;             /* keys held */
    uint64_t *keys;         /* [max]: in order (few), or the log */
    uint64_t *sort_scratch; /* [max] for sorting */
    size_t max;
    uint32_t bin;   /* the bin that the threshold is the edge of */
    uint64_t above; /* keys in this bin and those above */
    uint32_t counts[GX_CPU_BINS + 1];
} gx_cpu_best;

/* Begin a search for k results, knowing that at least k documents have threshold or more. False: no
 * memory. */
bool gx_cpu_best_begin(gx_cpu_best *b, uint32_t k, uint32_t threshold);
void gx_cpu_best_free(gx_cpu_best *b);

/* A document's full score, each document once. */
void gx_cpu_best_add(gx_cpu_best *b, uint32_t score, uint32_t docid);

/* The best keys, falling, to out[k]; returns their number. */
uint32_t gx_cpu_best_finish(gx_cpu_best *b, uint64_t *out);

#endif
