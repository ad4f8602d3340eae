/* The search of queries with phrases. Lists of codecs other than the usual one are read by any_codec. */
#include "query/gpu/kernels/phrases.cuh"
#include "query/gpu/kernels/plain_phrases.cuh"

namespace gx {

template <class P> static constexpr size_t shared_bytes()
{
    constexpr uint32_t V = P::template doc<true>::V;
    return SEARCH_WARPS * (HAS_PLAIN_PHRASES<P> ? sizeof(phrase_shared<V>) : sizeof(warp_shared<V>));
}

/* The kernel for an index of this coding. */
template <typename F> static inline void with_phrase_pair(uint32_t coding, bool plain, F f)
{
    if (coding == GX_CODEC_GPUBP128 && plain)
        f(with_plain_phrases<pair_gpubp128>());
    else if (coding == GX_CODEC_GPUBP128)
        f(with_phrases<pair_gpubp128>());
    else if (plain)
        f(with_plain_phrases<pair_any>());
    else
        f(with_phrases<pair_any>());
}

uint32_t phrases_grid(uint32_t coding, uint32_t multiprocessors)
{
    int most = 1;
    for (bool plain : {false, true}) {
        with_phrase_pair(coding, plain, [&](auto pair) {
            constexpr int bytes = (int)shared_bytes<decltype(pair)>();
            int each = 0;
            (void)cudaFuncSetAttribute(search<decltype(pair), true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       bytes);
            (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, search<decltype(pair), true>, SEARCH_WARPS * 32,
                                                                bytes);
            most = max(most, each);
        });
    }
    return multiprocessors * (uint32_t)most;
}

void search_phrases(const gpu_index &X, uint32_t coding, bool plain, const gpu_batch &R, uint32_t grid,
                    cudaStream_t stream)
{
    const uint32_t blocks = min(grid, (R.n_items + SEARCH_WARPS - 1) / SEARCH_WARPS);
    if (R.n_items == 0)
        return;
    with_phrase_pair(coding, plain, [&](auto pair) {
        search<decltype(pair), true><<<blocks, SEARCH_WARPS * 32, shared_bytes<decltype(pair)>(), stream>>>(X, R);
    });
}

} // namespace gx
