/* The search of queries with phrases. Lists of codecs other than the usual one are read by any_codec. */
#include "query/gpu/kernels/phrases.cuh"

namespace gx {

template <class P> static constexpr size_t shared_bytes()
{
    return SEARCH_WARPS * sizeof(warp_shared<P::template doc<true>::V>);
}

template <typename F> static inline void with_phrase_pair(uint32_t coding, F f)
{
    if (coding == GX_CODEC_GPUBP128)
        f(with_phrases<pair_gpubp128>());
    else
        f(with_phrases<pair_any>());
}

uint32_t phrases_grid(uint32_t coding, uint32_t multiprocessors)
{
    int each = 0;
    with_phrase_pair(coding, [&](auto pair) {
        constexpr int bytes = (int)shared_bytes<decltype(pair)>();
        (void)cudaFuncSetAttribute(search<decltype(pair), true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, search<decltype(pair), true>, SEARCH_WARPS * 32,
                                                            bytes);
    });
    return multiprocessors * (uint32_t)(each > 0 ? each : 1);
}

void search_phrases(const gpu_index &X, uint32_t coding, const gpu_batch &R, uint32_t grid, cudaStream_t stream)
{
    const uint32_t blocks = min(grid, (R.n_items + SEARCH_WARPS - 1) / SEARCH_WARPS);
    if (R.n_items == 0)
        return;
    with_phrase_pair(coding, [&](auto pair) {
        search<decltype(pair), true><<<blocks, SEARCH_WARPS * 32, shared_bytes<decltype(pair)>(), stream>>>(X, R);
    });
}

} // namespace gx
