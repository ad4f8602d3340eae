/* kernels.h: the loops in which the CPU engine spends its time, in several instruction sets with
 * the same results.
 *
 * A candidate is a document that may still be one of the k best. Candidates wait as columns and go
 * through the steps of search.c in batches; a step is a loop over the columns that closes the gaps
 * left by those it rules out:
 *
 *     doc    | 17 | 90 | 91 | ...     score[i] + remaining_ub[i] bounds the document's score; what
 *            falls below the threshold T
 *     tf     |  2 |  1 |  4 | ...     is dropped. score: first a bound of the posting's impact,
 *            then exact sums of
 *     score  | .. | .. | .. | ...     what is known; remaining_ub: the bounds of the lists that may
 *     hold it and are not yet
 *     remaining_ub   | .. | .. | .. | ...     known. list_mask: bit j set while list j may hold it.
 *
 * Exactness rests on two habits: impacts are those of bm25.h, operation by operation; and T only
 * grows.
 */
#ifndef GX_QUERY_CPU_KERNELS_H
#define GX_QUERY_CPU_KERNELS_H

#include "index/index.h"
#include "query/bm25.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define GX_X86 1
#endif

#define GX_CPU_BATCH 512u                                 /* candidates that make a batch due */
#define GX_CPU_COLUMN (GX_CPU_BATCH + GX_MAX_BLOCK + 16u) /* a batch not due, a block more, a vector's overhang */

typedef struct gx_cpu_columns {
    uint32_t n, n_docs;
    _Alignas(64) uint32_t doc[GX_CPU_COLUMN];
    _Alignas(64) uint32_t tf[GX_CPU_COLUMN];
    _Alignas(64) uint32_t score[GX_CPU_COLUMN];
    _Alignas(64) uint32_t remaining_ub[GX_CPU_COLUMN];
    _Alignas(64) uint32_t list_mask[GX_CPU_COLUMN];
    _Alignas(64) float K[GX_CPU_COLUMN];
} gx_cpu_columns;

/* What bounds the impacts of a block's postings: float(w) * tf / (tf + min_K), never above most.
 * */
typedef struct gx_cpu_bound {
    float w;     /* the weight and a little more */
    float min_K; /* of the block's documents */
    uint32_t most;
    uint32_t min_tf;       /* postings with less cannot reach T */
    uint32_t remaining_ub; /* what the later lists can contribute */
} gx_cpu_bound;

/* A dense list: all its documents as a bitmap, with the number of set bits before every 64 of them.
 * */
typedef struct gx_cpu_dense {
    const uint64_t *bits; /* [n_docs / 64 + 1] */
    const uint32_t *rank; /* [n_docs / 64 + 1] */
} gx_cpu_dense;

typedef struct gx_cpu_kernels {
    const char *name, *title; /* "avx512", "AVX-512" */

    /* A block of GPU-BP packing: the docids' words and width, the tfs', n postings from docid
     * first. Those with tf >= min_tf and docid < n_docs are appended to the columns. False: none
     * reached min_tf, and the docids were left alone. Reads up to GX_READ_SLACK bytes past the
     * words; n <= 128. Where it is NULL, or a width is above max_docid_bits or max_tf_bits: decode,
     * then append_decoded_block. */
    bool (*scan_packed_block)(gx_cpu_columns *c, const uint32_t *docids, uint32_t docid_bits, const uint32_t *tfs,
                              uint32_t tf_bits, uint32_t n, uint32_t first, const gx_cpu_bound *b);
    uint32_t max_docid_bits, max_tf_bits;

    /* Docids of a packed block, n <= 128, to docids[128] aligned to 64 bytes; for look-ups. NULL as
     * above. */
    void (*unpack_docids)(const uint32_t *words, uint32_t bits, uint32_t n, uint32_t first, uint32_t *docids);

    /* Whether any of n tfs is at least min_tf. */
    bool (*any_tf_reaches)(const uint32_t *tfs, uint32_t n, uint32_t min_tf);

    /* The same as scan_packed_block for decoded arrays, which are readable up to a multiple of 16.
     * */
    void (*append_decoded_block)(gx_cpu_columns *c, const uint32_t *docids, const uint32_t *tfs, uint32_t n,
                                 const gx_cpu_bound *b);

    /* Ask a map of documents, a bit a slot of 2^shift documents, readable 32 words past its last:
     * who is absent loses ub from remaining_ub and bit from list_mask, or is dropped (all). docs do
     * not fall. mask: of the map's words, 2^n - 1 where they serve the slots in turn, UINT32_MAX
     * where there is one for each. */
    void (*apply_presence_map)(gx_cpu_columns *c, const uint32_t *map, uint32_t shift, uint32_t mask, uint32_t ub,
                               uint32_t bit, uint32_t T, bool all);

    /* K from the documents' lengths, and score from the bound to the impact itself. */
    void (*score_own)(gx_cpu_columns *c, const uint32_t *lens, gx_scorer norm, float w, uint32_t T);

    /* Positions in a dense list of those documents whose list_mask has bit: pos[i] < df, or
     * UINT32_MAX where absent or not asked. Returns how many were asked. */
    uint32_t (*dense_positions)(const gx_cpu_columns *c, gx_cpu_dense d, uint32_t bit, uint32_t *pos);

    /* Look-ups' outcome: tfs[i] 0 absent. Where list_mask has bit, ub leaves remaining_ub and the
     * impact joins score; all: absent ones are dropped. */
    void (*add_list_score)(gx_cpu_columns *c, const uint32_t *tfs, float w, uint32_t ub, uint32_t bit, uint32_t T,
                           bool all);

    /* How many of n rising docids, readable up to a multiple of 16, are below doc. */
    uint32_t (*count_below)(const uint32_t *docids, uint32_t n, uint32_t doc);

    /* parts[i] = tf / (tf + K) of n postings, K by lens; the least K to *min_K, returns the
     * greatest part. Docids >= n_docs count as part 0. */
    float (*parts)(const uint32_t *docids, const uint32_t *tfs, uint32_t n, uint32_t n_docs, const uint32_t *lens,
                   gx_scorer norm, float *parts, float *min_K);
} gx_cpu_kernels;

extern const gx_cpu_kernels gx_cpu_portable;
extern const gx_cpu_kernels gx_cpu_avx2;   /* where GX_X86 */
extern const gx_cpu_kernels gx_cpu_avx512; /* where GX_X86; wants F, BW, DQ, VL, VBMI, VPOPCNTDQ */

/* The best that this processor runs, or the one that the environment's GX_CPU names (isa.h); NULL
 * if that cannot run here. */
const gx_cpu_kernels *gx_cpu_choose(void);

/* An upper bound of the impact of a posting, as all kernels compute it. */
static inline uint32_t gx_cpu_bound_of(const gx_cpu_bound *b, uint32_t tf)
{
    const float f = (float)tf, product = b->w * f, sum = f + b->min_K;
    const uint32_t i = (uint32_t)lrintf(product / sum) + 2;
    return i < b->most ? i : b->most;
}

/* dense_positions, for those that have nothing better. */
static inline uint32_t gx_cpu_dense_positions_scalar(const gx_cpu_columns *c, gx_cpu_dense d, uint32_t bit,
                                                     uint32_t *pos)
{
    uint32_t asked = 0;
    for (uint32_t i = 0; i < c->n; ++i) {
        pos[i] = UINT32_MAX;
        if (!(c->list_mask[i] & bit))
            continue;
        const uint64_t word = d.bits[c->doc[i] / 64], mask = UINT64_C(1) << c->doc[i] % 64;
        if (word & mask)
            pos[i] = d.rank[c->doc[i] / 64] + (uint32_t)__builtin_popcountll(word & (mask - 1));
        ++asked;
    }
    return asked;
}

#endif
