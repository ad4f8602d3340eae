/* likely.cuh: with which threshold a search begins: one that its answers reach for certain, or one that they
 * are likely to reach. */
#ifndef GX_QUERY_GPU_LIKELY_CUH
#define GX_QUERY_GPU_LIKELY_CUH

#include "query/gpu/state.cuh"

namespace gx {

/* Returns the index of the stored impact that bounds the k-th best from below, or N_KTH. */
uint32_t find_kth(uint32_t k);

/* Returns an impact that at least k of the list's postings reach, or 1 if none better is known.
 * kth is find_kth(k). */
uint32_t kth_impact(const gpu_prepared_index *s, const bounds *b, const gx_plan_term *t, uint32_t k, uint32_t kth);

/* Returns a score that k documents are likely to reach of those that the query may return, or 1. share: of all
 * documents, those that it may return. guesses: searches whose likely threshold was too high. */
uint32_t likely_threshold(const gpu_prepared_index *s, const bounds *b, const gx_plan *plan, double share,
                          uint32_t guesses);

} // namespace gx

#endif
