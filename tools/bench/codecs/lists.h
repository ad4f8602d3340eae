/* lists.h: an index's own lists, docids and term frequencies, for `gpuidx bench codecs --index`; of a collection those
 * of all parts, as they are stored. */
#ifndef GX_TOOLS_BENCH_CODECS_LISTS_H
#define GX_TOOLS_BENCH_CODECS_LISTS_H

#include "tools/bench/codecs/codec_timing.h"

typedef struct bench_lists {
    gx_bench_lists docids, tfs; /* the same lists in the same order; tf - 1, as an index stores it */
    uint32_t *docid_values, *tf_values, *order;
    uint64_t *begins;
    uint32_t n_queries; /* those whose terms' lists they are; 0: all lists */
} bench_lists;

/* The lists of the terms of n_queries queries of the log, drawn at random (0, or more than there
 * are: of all), each as often as queries have the term. log NULL: all lists of at least min_df
 * postings, each once. GX_EUSAGE: none, or too many; GX_EINPUT: the log has no query. */
gx_status bench_lists_read(bench_lists *out, const char *index, const char *log, uint32_t n_queries, uint32_t seed,
                           uint32_t min_df, gx_error *err);
/* The same of a generated collection of GOV2's shape and n_docs documents, and of n_queries queries of its own; 0: all
 * lists of at least min_df postings. */
gx_status bench_lists_make(bench_lists *out, uint32_t n_docs, uint32_t n_queries, uint64_t seed, uint32_t min_df,
                           gx_error *err);
void bench_lists_free(bench_lists *l);

#endif
