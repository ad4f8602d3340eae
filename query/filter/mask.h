/* mask.h: a mask as the engines read it: a bit a document.
 *
 * Under a mask a stored k-th impact, or a threshold of a pair of terms, says nothing about the k-th
 * best score of the documents that are left: a masked plan begins without a threshold. All other
 * bounds hold, since they are upper ones.
 */
#ifndef GX_QUERY_FILTER_MASK_H
#define GX_QUERY_FILTER_MASK_H

#include "engine/api/gpuidx.h"

#define GX_MASK_SLACK 32u  /* words of 0 behind the last, for kernels that load vectors (cpu/kernels/kernels.h) */
#define GX_MASK_GROUP 512u /* documents; a multiple of 64 */

struct gx_mask {
    const gx_engine *en;
    uint64_t serial; /* the number of this mask in the process, from 1; no other mask ever has it */
    uint32_t *words; /* [gx_mask_n_words(n_docs)], bits at n_docs and above 0, and GX_MASK_SLACK more */
    bool *groups;    /* [ceil(n_docs / GX_MASK_GROUP)]: whether any document of the group is allowed */
    bool gaps;       /* of some group none is */
    /* Of a collection's engine: a mask of each part's own documents, with those deleted left out;
     * words and groups are NULL then. */
    struct gx_mask **parts; /* [n_parts], NULL: the engine is of one file */
    uint32_t n_parts;
    uint32_t n;   /* documents that are allowed; not of a collection's engine */
    void *device; /* what the engine's mask_open made; NULL on the CPU, and where a GPU had failed */
};

/* An even number, so that there are whole words of 64 bits too. */
static inline size_t gx_mask_n_words(uint32_t n_docs)
{
    return ((size_t)n_docs + 63) / 64 * 2;
}

/* Bytes that the words and groups of a mask take. */
static inline uint64_t gx_mask_bytes(uint32_t n_docs)
{
    return (gx_mask_n_words(n_docs) + GX_MASK_SLACK) * sizeof(uint32_t) + n_docs / GX_MASK_GROUP + 1;
}

/* Documents 64 w to 64 w + 63. */
static inline uint64_t gx_mask_word(const gx_mask *m, size_t w)
{
    return m->words[2 * w] | (uint64_t)m->words[2 * w + 1] << 32;
}

static inline bool gx_mask_has(const gx_mask *m, uint32_t docid)
{
    return m->words[docid / 32] >> docid % 32 & 1;
}

#endif
