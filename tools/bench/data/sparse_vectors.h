/* sparse_vectors.h: generated vectors of the shape of learned sparse retrieval, one after another.
 *
 *   terms      30,522, of 64 topics; the i-th most frequent is drawn with a probability that is
 *              proportional to 1 / (i + 40). A topic has a direction in a space of a few dimensions
 *   documents  a random point each: a topic's terms are the more frequent the nearer the point's
 *              direction is to the topic's, with a heavy tail, so that the documents of a query's
 *              terms overlap; numbers of terms and quantiles of weights as the table of shapes says
 *   queries    the same around one topic's direction, with weights by the quantiles of queries
 *
 * Terms near a document's direction get its greater weights. With 8.8 M documents of the shape
 * splade a query's terms have about 2 postings for each document of the collection and touch 53 to
 * 57 % of the documents, as those of SPLADE on MS MARCO do; both shares hold for any number of
 * documents. A vector is a function of the shape, the seed and its number alone.
 */
#ifndef GX_TOOLS_BENCH_DATA_SPARSE_VECTORS_H
#define GX_TOOLS_BENCH_DATA_SPARSE_VECTORS_H

#include <stdbool.h>
#include <stdint.h>

#define GX_SPARSE_N_TERMS 30522u
#define GX_SPARSE_MAX_VECTOR 320u /* most terms of a vector */

typedef enum gx_sparse_shape {
    GX_SPARSE_SPLADE,
    GX_SPARSE_UNICOIL,
    GX_SPARSE_INFERENCE_FREE,
    GX_N_SPARSE_SHAPES
} gx_sparse_shape;

typedef struct gx_sparse_vectors gx_sparse_vectors; /* belongs to one thread */

typedef struct gx_sparse_vector {
    uint32_t n;
    uint32_t terms[GX_SPARSE_MAX_VECTOR]; /* rising */
    float weights[GX_SPARSE_MAX_VECTOR];
} gx_sparse_vector;

gx_sparse_vectors *gx_sparse_vectors_open(gx_sparse_shape shape, uint64_t seed); /* NULL: no memory */
void gx_sparse_vectors_close(gx_sparse_vectors *g);

/* Documents whose places are near have terms of the same topics. */
uint32_t gx_sparse_place(gx_sparse_vectors *g, uint64_t number);

void gx_sparse_document(gx_sparse_vectors *g, uint64_t number, gx_sparse_vector *out);
void gx_sparse_query(gx_sparse_vectors *g, uint64_t number, gx_sparse_vector *out);

#endif
