/* taat.cuh: Ding, He, Yan and Suel's algorithms (WWW 2009) on a GPU: what the host side (taat.cu)
 * and the kernels (pmf.cu) share. The queries of a group go through the steps together. Each step
 * is one kernel or a few, and each query is one row (blockIdx.y) of a kernel's grid.
 *
 *   GX_ALGORITHM_PMF, AND    decode and score the shortest list -> candidates
 *                            for each next list t:
 *                                find the candidates in its heads   -> needed blocks
 *                                decode those blocks                -> decoded
 *                                find the candidates in decoded     -> kept candidates, scored
 *   GX_ALGORITHM_TAAT, OR    for each list t: decode it, add its impacts to the accumulators
 *   both                     maxima of each 512 scores, of each 512 of those, and of each 512 of
 *                            those; k times: take out the greatest and renew the maxima above it
 *
 * Array lengths stay on the device (taat_state). The host knows upper bounds of them. */
#ifndef GX_QUERY_DING2009_TAAT_CUH
#define GX_QUERY_DING2009_TAAT_CUH

#include "query/gpu/state.cuh"

namespace gx {

constexpr uint32_t MAXIMA_FANOUT = 512; /* scores, or maxima, under one maximum */
/* levels of maxima: enough for 2^32 scores, with at most 32 maxima at the top */
constexpr uint32_t N_MAXIMA = 3;
/* up to this k the best are taken out one by one; above it all keys are sorted */
constexpr uint32_t EXTRACT_K = 4096;
constexpr uint32_t COMPACT_TILE = 1024;

/* A list of a query. */
struct taat_term {
    whole_list list;
    float w;
};

/* A query and its arrays. An array [2] is used alternately: list t reads [(t - 1) & 1] and writes
 * [t & 1]. */
struct taat_query {
    uint32_t n_terms, first_term, k;
    uint32_t conjunctive; /* with accumulators: return only documents that all lists hold */
    gx_scorer norm;
    uint32_t n_scores; /* length of scores: the most candidates, or the number of documents */
    uint32_t max_needed;
    uint64_t answer;      /* index of its first key in taat_group.answers */
    const uint32_t *mask; /* a bit a document, set if it may be returned; NULL: all may */
    uint32_t *docids[2];  /* candidates; NULL with accumulators */
    uint32_t *scores[2];  /* the candidates' scores, 0: dropped; or the accumulators in [0] */
    uint32_t *positions;  /* of the candidates, in heads or in decoded */
    /* for each COMPACT_TILE candidates: how many are kept, then how many are kept before them */
    uint32_t *tiles;
    uint32_t *needed;                     /* numbers of the blocks to decode */
    uint32_t *decoded, *tfs;              /* docids of the needed blocks; or docids and tfs of a list */
    uint16_t *holders;                    /* number of lists that hold each document, or NULL */
    unsigned long long *maxima[N_MAXIMA]; /* keys of score and position */
};

struct taat_state {
    uint32_t n_candidates[2];
    uint32_t n_needed, n_decoded;
    uint32_t n_hits;
    uint32_t blocks; /* blocks decoded so far */
    unsigned long long lookups;
};

struct taat_group {
    const taat_query *queries;
    const taat_term *terms;
    taat_state *states;
    unsigned long long *answers;
    uint32_t n, block_len;
};

/* ---- kernels (pmf.cu); most: the greatest length of the array in the group ---- */

/* Decode list t's docids and tfs. With PMF, t = 0, they go to docids[0] and scores[1]. */
void taat_decode(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most_blocks,
                 cudaStream_t stream);
/* Make the first list's postings candidates. */
void taat_begin(const gpu_index &X, const taat_group &G, uint32_t most, cudaStream_t stream);
/* Add list t's impacts to the accumulators. */
void taat_accumulate(const gpu_index &X, const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream);
/* Find the candidates in list t's heads or in decoded, by Parallel Merge Find. */
void taat_find(const taat_group &G, uint32_t t, bool in_heads, uint32_t levels, uint32_t most, cudaStream_t stream);
/* Find the blocks of list t that may hold candidates; decode their docids. */
void taat_choose_blocks(const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream);
void taat_decode_needed(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most_needed,
                        cudaStream_t stream);
/* Count the candidates that were found in decoded; then keep those and add list t's impacts. */
void taat_count_kept(const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream);
void taat_score_kept(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most,
                     cudaStream_t stream);
/* Take out the best k, in descending order, for queries with k <= EXTRACT_K. */
void taat_choose_best(const taat_group &G, uint32_t most, cudaStream_t stream);
/* Write all keys of query q to keys[n_scores], zeros where there is no document. */
void taat_gather(const taat_group &G, uint32_t q, uint32_t n_scores, unsigned long long *keys, cudaStream_t stream);
/* Copy the first k sorted keys to the query's answer. */
void taat_answer(const taat_group &G, uint32_t q, uint32_t k, const unsigned long long *sorted, cudaStream_t stream);

/* ---- the host side (taat.cu) ---- */

/* A session's memory for these algorithms, allocated at their first use. */
struct taat_space;
void taat_close(session_memory *m, taat_space *space);

/* Answer those of the batch's n plans that name one of these algorithms. The status is as in
 * gx_executor.run. */
struct plan_batch; /* query/gpu/sub_batch.cuh */
gx_status taat_run(taat_space **space, const gpu_prepared_index *s, session_memory *m, const plan_batch *pb, uint32_t n,
                   gx_error *err);

static inline bool is_ding2009(const gx_plan *plan)
{
    return plan->prune && (plan->algorithm == GX_ALGORITHM_PMF || plan->algorithm == GX_ALGORITHM_TAAT ||
                           plan->algorithm == GX_ALGORITHM_DAAT);
}

} // namespace gx

#endif
