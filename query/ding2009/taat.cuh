/* taat.cuh: Ding, He, Yan and Suel's algorithms (WWW 2009) on a GPU: what its host side (taat.cu)
 * and its kernels (pmf.cu) share. A group of queries goes through the steps together; each step is
 * a kernel or a few, and a query is one row (blockIdx.y) of its grid.
 *
 *   GX_ALGORITHM_PMF, AND    shortest list decoded, scored -> candidates
 *                            for each next list t: find in heads -> needed blocks -> decoded ->
 *                            find in decoded -> kept, scored
 *   GX_ALGORITHM_TAAT, OR    for each list t: decoded; added to the accumulators
 *   either                   the greatest of each 512 scores, of each 512 of those, and of those
 *                            again; k times the greatest of all is taken out and its way up renewed
 *
 * Lengths stay on the device (taat_state); the host knows bounds.
 */
#ifndef GX_QUERY_DING2009_TAAT_CUH
#define GX_QUERY_DING2009_TAAT_CUH

#include "query/gpu/state.cuh"

namespace gx {

constexpr uint32_t MAXIMA_FANOUT = 512; /* scores, or greatest ones, that one greatest stands for */
constexpr uint32_t N_MAXIMA = 3;        /* levels of those: enough for 2^32 scores, with at most 32 on top */
constexpr uint32_t EXTRACT_K = 4096;    /* up to this k the best are taken out one by one; else all are sorted */
constexpr uint32_t COMPACT_TILE = 1024;

/* A query's list. */
struct taat_term {
    whole_list list;
    float w;
};

/* A query and its arrays. Of those with a parity, list t reads t - 1's and writes t's. */
struct taat_query {
    uint32_t n_terms, first_term, k;
    uint32_t all; /* by accumulators: only documents that all lists hold */
    gx_scorer norm;
    uint32_t n_scores; /* of which the best are chosen: most candidates, or documents */
    uint32_t max_needed;
    uint64_t answer;                      /* where its k keys are in taat_group.answers */
    const uint32_t *mask;                 /* a bit a document, set where it may be answered; NULL: all may */
    uint32_t *docids[2];                  /* candidates; NULL: by accumulators */
    uint32_t *scores[2];                  /* theirs, 0: none; or the accumulators in [0] */
    uint32_t *positions;                  /* of candidates in heads or in decoded */
    uint32_t *tiles;                      /* how many of COMPACT_TILE candidates are kept, and then how many before */
    uint32_t *needed;                     /* blocks that are decoded */
    uint32_t *decoded, *tfs;              /* docids (and tfs, by accumulators) of those, or of the list */
    uint16_t *holders;                    /* lists that hold the document, or NULL */
    unsigned long long *maxima[N_MAXIMA]; /* score, and the complement of its place */
};

struct taat_state {
    uint32_t n_candidates[2];
    uint32_t n_needed, n_decoded;
    uint32_t n_hits;
    uint32_t blocks; /* decoded in all */
    unsigned long long lookups;
};

struct taat_group {
    const taat_query *queries;
    const taat_term *terms;
    taat_state *states;
    unsigned long long *answers;
    uint32_t n, block_len;
};

/* ---- kernels (pmf.cu); most: the greatest length in the group of what is gone through ---- */

/* List t's docids and tfs; of PMF, t = 0, to the candidates and to scores[1]. */
void taat_decode(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most_blocks,
                 cudaStream_t stream);
/* The first list's postings as candidates. */
void taat_begin(const gpu_index &X, const taat_group &G, uint32_t most, cudaStream_t stream);
/* List t's postings to the accumulators. */
void taat_accumulate(const gpu_index &X, const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream);
/* Parallel Merge Find of the candidates in list t's heads or in decoded. */
void taat_find(const taat_group &G, uint32_t t, bool in_heads, uint32_t levels, uint32_t most, cudaStream_t stream);
/* The blocks of list t that candidates fall into, and their docids. */
void taat_choose_blocks(const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream);
void taat_decode_needed(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most_needed,
                        cudaStream_t stream);
/* Who is kept of the candidates, once they were looked for in decoded; and these, with list t's
 * impacts added. */
void taat_count_kept(const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream);
void taat_score_kept(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most,
                     cudaStream_t stream);
/* The k best, falling, of those with k <= EXTRACT_K. */
void taat_choose_best(const taat_group &G, uint32_t most, cudaStream_t stream);
/* All keys of query q, zeros where there is no document, to keys[n_scores]. */
void taat_gather(const taat_group &G, uint32_t q, uint32_t n_scores, unsigned long long *keys, cudaStream_t stream);
/* The first k of sorted keys as the query's answer. */
void taat_answer(const taat_group &G, uint32_t q, uint32_t k, const unsigned long long *sorted, cudaStream_t stream);

/* ---- the host side (taat.cu) ---- */

/* A session's memory for named algorithms, made at their first use. */
struct taat_space;
void taat_close(session_memory *m, taat_space *space);

/* Answer those of plans[n] that name an algorithm; hits, work and failures as in gx_executor.run.
 * */
gx_status taat_run(taat_space **space, const gpu_prepared_index *s, session_memory *m, const gx_plan *plans, uint32_t n,
                   gx_hits *hits, gx_search_stats *work, gx_error *err);

static inline bool is_ding2009(const gx_plan *plan)
{
    return plan->prune && plan->algorithm != GX_ALGORITHM_AUTO;
}

} // namespace gx

#endif
