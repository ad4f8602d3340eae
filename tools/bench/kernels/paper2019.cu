/* The kernels of Mallia, Siedlaczek, Suel and Zahran (CIKM 2019), sections 3.1 and 3.2, as the
 * paper has them: a thread block decodes a block of the list, a thread an integer; what needs sums
 * over the block takes them from CUB's BlockScan. Our kernels, which the other files here hold, are
 * compared with them.
 */
#include <cub/block/block_scan.cuh>

#include "engine/status.h"
#include "tools/bench/kernels/list_kernels.cuh"

namespace {

using namespace gx;

/* Where the thread block's list block lies, read by one thread for all. */
struct block_location {
    uint32_t begin, n_words, n, head;
};

template <int BLOCK> __device__ __forceinline__ block_location locate_block(const list_view &l, bool docids)
{
    __shared__ block_location p;
    if (threadIdx.x == 0) {
        const uint32_t k = blockIdx.x, begin = k ? l.ends[k - 1] : 0;
        p = {begin, l.ends[k] - begin, (uint32_t)min((uint64_t)BLOCK, l.n - (uint64_t)k * BLOCK),
             docids ? l.heads[k] : 0};
    }
    __syncthreads();
    return p;
}

/* A thread's integer to memory; as a docid, when it is the sum of those before it. */
template <int BLOCK, bool DOCIDS>
__device__ __forceinline__ void store_value(const block_location &p, uint32_t value,
                                            typename cub::BlockScan<uint32_t, BLOCK>::TempStorage &space, uint32_t *out)
{
    if (DOCIDS) {
        cub::BlockScan<uint32_t, BLOCK>(space).InclusiveSum(value + 1, value);
        value += p.head - 1;
    }
    if (threadIdx.x < p.n)
        out[(uint64_t)blockIdx.x * BLOCK + threadIdx.x] = value;
}

/* GPU-BP: every integer of the block has the same number of bits. */
template <int BLOCK, bool DOCIDS> __global__ void __launch_bounds__(BLOCK) cikm2019_bp(list_view l, uint32_t *out)
{
    __shared__ typename cub::BlockScan<uint32_t, BLOCK>::TempStorage space;
    const block_location p = locate_block<BLOCK>(l, DOCIDS);
    const uint32_t value =
        threadIdx.x < p.n ? gpubp<BLOCK, 32, true>::at(l.words + p.begin, p.n_words, p.n, threadIdx.x) : 0;
    store_value<BLOCK, DOCIDS>(p, value, space, out);
}

/* GPU-VByte: where an integer's bytes begin is the sum of the lengths before it. */
template <int BLOCK, bool DOCIDS> __global__ void __launch_bounds__(BLOCK) cikm2019_vbyte(list_view l, uint32_t *out)
{
    __shared__ typename cub::BlockScan<uint32_t, BLOCK>::TempStorage space;
    const block_location p = locate_block<BLOCK>(l, DOCIDS);
    const uint32_t *const words = l.words + p.begin, i = threadIdx.x;
    const bool mine = i < p.n && p.n_words > 0;
    const uint32_t more = mine ? __ldg(words + min(i / 16, p.n_words - 1)) >> (2 * (i % 16)) & 3 : 0;
    uint32_t before;
    cub::BlockScan<uint32_t, BLOCK>(space).ExclusiveSum(mine ? more + 1 : 0, before);
    __syncthreads(); /* space is used again */
    const uint32_t at = gx_div_up(p.n, 16) * 4 + before;
    const uint32_t value =
        mine ? gpuvbyte<BLOCK, true>::bytes_at(words, p.n_words, at) & (0xffffffffu >> (24 - 8 * more)) : 0;
    store_value<BLOCK, DOCIDS>(p, value, space, out);
}

struct cikm2019_kernel {
    uint8_t codec;
    kernel_fn *kernels[2]; /* integers, docids */
};

const cikm2019_kernel cikm2019_kernels[] = {
    {GX_CODEC_GPUBP128, {cikm2019_bp<128, false>, cikm2019_bp<128, true>}},
    {GX_CODEC_GPUBP256, {cikm2019_bp<256, false>, cikm2019_bp<256, true>}},
    {GX_CODEC_GPUVBYTE128, {cikm2019_vbyte<128, false>, cikm2019_vbyte<128, true>}},
    {GX_CODEC_GPUVBYTE1024, {cikm2019_vbyte<1024, false>, cikm2019_vbyte<1024, true>}},
};

} // namespace

gx_status gx_decode_list_cikm2019_cuda(const gx_packed *list, gx_form form, uint32_t *out, void *stream, gx_error *err)
{
    for (const cikm2019_kernel &p : cikm2019_kernels) {
        if (p.codec != list->codec->id)
            continue;
        if (list->n == 0)
            return GX_OK;
        const uint32_t n_blocks = (uint32_t)gx_packed_blocks(list);
        const list_view view = {list->words, list->ends, list->heads, list->params, list->n, n_blocks, list->param, 0};
        p.kernels[form == GX_FORM_DOCIDS]<<<n_blocks, list->codec->block_len, 0, (cudaStream_t)stream>>>(view, out);
        const cudaError_t e = cudaGetLastError();
        return e == cudaSuccess ? GX_OK
                                : gx_fail(err, GX_ECUDA, "the GPU refused to decode a list: %s", cudaGetErrorString(e));
    }
    return gx_fail(err, GX_EUSAGE, "the paper has no kernel for codec %s", list->codec->name);
}
