/* wide_hits.h: answers of a wide collection, whose docids take 64 bits (index/index.h).
 *
 *   gx_hits.keys   score | ~(docid mod 2^32)      as of any index, so that scores are read in one way
 *   gx_hits.highs  docid / 2^32
 *
 * The order is that of one index of all documents: by falling score, equal scores by rising docid. Keys alone do not
 * tell it where documents of equal score lie on both sides of a multiple of 2^32.
 */
#ifndef GX_QUERY_EXEC_WIDE_HITS_H
#define GX_QUERY_EXEC_WIDE_HITS_H

#include "index/read/collection.h"
#include "query/exec/exec.h"

/* The docid of a key, with its upper half where it has one; highs may be NULL. */
static inline uint64_t gx_wide_docid(const uint64_t *keys, const uint32_t *highs, size_t i)
{
    return (highs ? (uint64_t)highs[i] << 32 : 0) | gx_key_docid(keys[i]);
}

static inline uint64_t gx_hits_docid(const gx_hits *h, uint32_t i)
{
    return gx_wide_docid(h->keys, h->highs, i);
}

static inline void gx_hits_set(gx_hits *h, uint32_t i, uint32_t score, uint64_t docid)
{
    h->keys[i] = gx_key(score, (uint32_t)docid);
    if (h->highs)
        h->highs[i] = (uint32_t)(docid >> 32);
}

/* Whether the i-th of a is a better result than the j-th of b. */
static inline bool gx_hits_better(const gx_hits *a, uint32_t i, const gx_hits *b, uint32_t j)
{
    const uint32_t x = gx_key_score(a->keys[i]), y = gx_key_score(b->keys[j]);
    return x != y ? x > y : gx_hits_docid(a, i) < gx_hits_docid(b, j);
}

/* The docids of a part's hits become those of the collection, which keeps their order. */
void gx_wide_rebase(const gx_part *part, gx_hits *hits);

/* Of hits and more, both in order, keep the k best in hits. */
void gx_wide_merge(gx_hits *hits, uint32_t k, const gx_hits *more);

/* The results of a first pass (approximate.h) while the scores of the terms left out are added. */
typedef struct gx_candidate {
    uint64_t docid;
    uint32_t score;
} gx_candidate;

void gx_candidates_take(gx_candidate *out /* [from->n] */, const gx_hits *from); /* by rising docid */
/* The best k become hits, and take their order from the scores. */
void gx_candidates_choose(gx_candidate *c, uint32_t n, uint32_t k, gx_hits *hits);

#endif
