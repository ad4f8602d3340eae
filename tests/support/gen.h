/* gen.h: random collections for tests, from a seed; kept in memory as plain arrays and written as
 * index files.
 *
 * Term t is called "t0000000" + t, so that term ids are the order of names, and documents "d" +
 * docid. Whatever the shape, term 0 is in every document, term 1 and term 2 in one, and the lengths
 * of the next lists lie around the borders of blocks.
 */
#ifndef GX_TESTS_SUPPORT_GEN_H
#define GX_TESTS_SUPPORT_GEN_H

#include <stdbool.h>
#include <stdint.h>

#include "codecs/codec.h"

typedef struct gen_rng {
    uint64_t state;
} gen_rng;

uint64_t gen_u64(gen_rng *r);
uint32_t gen_below(gen_rng *r, uint32_t n); /* 0 .. n - 1; n >= 1 */

typedef enum gen_shape {
    GEN_UNIFORM,
    GEN_CLUSTERED, /* docids in runs */
    GEN_TIES,      /* few different documents, each many times */
    GEN_SKEWED,    /* a few documents are a thousand times as long */
    GEN_HUGE,      /* tfs of any width up to 32 bits; lengths are sums of tfs, at most 2^32 - 1 */
    GEN_N_SHAPES
} gen_shape;

typedef struct gen_list {
    uint32_t df;
    uint32_t *docids, *tfs;
} gen_list;

typedef struct gen_collection {
    uint64_t seed;
    gen_shape shape;
    uint32_t n_docs, n_terms;
    uint64_t n_tokens;
    gen_list *lists;
    uint32_t *doc_lens;
} gen_collection;

/* n_docs >= 1, n_terms >= 3. Out of memory aborts. */
gen_collection *gen_open(uint64_t seed, gen_shape shape, uint32_t n_docs, uint32_t n_terms);
void gen_close(gen_collection *c);

/* Write an index file with the whitespace analyzer. Empty lists are left out. */
gx_status gen_write(const gen_collection *c, const char *path, const gx_codec *docids, const gx_codec *tfs,
                    gx_error *err);

/* Write term t's name to name[16]. */
void gen_term_name(uint32_t t, char *name);

#endif
