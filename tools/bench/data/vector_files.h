/* vector_files.h: generated vectors (sparse_vectors.h) as files, which appear whole or not at all. */
#ifndef GX_TOOLS_BENCH_DATA_VECTOR_FILES_H
#define GX_TOOLS_BENCH_DATA_VECTOR_FILES_H

#include "engine/api/gpuidx.h"
#include "tools/bench/data/sparse_vectors.h"

typedef struct gx_vector_files_options {
    const char *base;
    gx_sparse_shape shape;
    uint64_t seed, n_documents, n_queries;
    bool csr; /* BASE.csr and BASE.queries.csr; false: BASE.jsonl and BASE.queries.jsonl */
    bool force;
    uint32_t threads;           /* 0: one for each processor; the files are the same for any number */
    bool (*cancel)(void *user); /* called now and then with NULL; true: stop */
} gx_vector_files_options;

typedef struct gx_vector_files_counts {
    double document_mean, query_mean; /* terms */
} gx_vector_files_counts;

/* GX_EEXISTS, GX_ENOTFOUND, GX_EIO, GX_ENOMEM, GX_ECANCELLED. */
gx_status gx_vector_files_write(const gx_vector_files_options *opt, gx_vector_files_counts *counts, gx_error *err);

#endif
