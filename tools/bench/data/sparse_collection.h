/* sparse_collection.h: generated vectors (sparse_vectors.h) as an index in memory, with its queries,
 * for benchmarks. The weights are impacts of 8 bits.
 */
#ifndef GX_TOOLS_BENCH_DATA_SPARSE_COLLECTION_H
#define GX_TOOLS_BENCH_DATA_SPARSE_COLLECTION_H

#include "tools/bench/data/collection.h"
#include "tools/bench/data/sparse_vectors.h"

typedef struct gx_sparse_options {
    gx_sparse_shape shape;
    uint32_t n_docs; /* >= 1 */
    uint64_t seed;
    bool by_place; /* documents of the same topics have neighbouring docids; else by their numbers */
    const gx_codec *codec;
    uint32_t threads; /* 0: one a core */
} gx_sparse_options;

/* Terms that no document has have a list of one posting. GX_EUSAGE, GX_ENOMEM. */
gx_status gx_sparse_collection_open(gx_synth **out, const gx_sparse_options *opt, gx_error *err);

/* The terms of query `number`, each with its weight in hundredths, at least 1. Returns their number.
 * GX_SPARSE_MAX_VECTOR is room enough. */
uint32_t gx_sparse_collection_query(gx_sparse_vectors *g, uint64_t number, uint32_t *terms, uint32_t *weights);

#endif
