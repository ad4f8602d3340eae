/* Whole lists on the GPU, by codec: tools/bench/kernels/list_kernels.cuh tells how. */
#include <algorithm>

#include "engine/status.h"
#include "tools/bench/kernels/list_kernels.cuh"
#include "tools/bench/kernels/list_kernels.h"

namespace {

using namespace gx;

bool find_kernels(uint8_t id, codec_kernels *out)
{
    switch (id) {
#define GX_CASE(ID, NUMBER, NAME)                                                                                      \
    case NUMBER:                                                                                                       \
        *out = list_kernels_##NAME();                                                                                  \
        return true;
        GX_CODECS(GX_CASE)
#undef GX_CASE
    }
    return false;
}

gx_status launch_kernel(kernel_fn *kernel, const gx_packed *list, uint64_t threads, uint32_t block, uint32_t *out,
                        void *stream, gx_error *err)
{
    if (!kernel)
        return gx_fail(err, GX_EUSAGE, "codec %s cannot be decoded on the GPU", list->codec->name);
    if (list->n == 0)
        return GX_OK;
    const list_view view = {list->words, list->ends,
                            list->heads, list->params,
                            list->n,     (uint32_t)gx_packed_blocks(list),
                            list->param, (uint32_t)(threads / 32)};
    kernel<<<(uint32_t)((threads + block - 1) / block), block, 0, (cudaStream_t)stream>>>(view, out);
    const cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess)
        return gx_fail(err, GX_ECUDA, "the GPU refused to decode a list of %llu integers: %s",
                       (unsigned long long)list->n, cudaGetErrorString(e));
    return GX_OK;
}

/* How many warps of the kernel the current GPU runs at once. */
uint64_t max_resident_warps(const launch_config &l)
{
    int device = 0, processors = 0, blocks = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, l.kernel, (int)l.threads, 0) != cudaSuccess)
        return 0;
    return (uint64_t)processors * (uint64_t)blocks * (l.threads / 32);
}

template <bool FUSED>
gx_status decode_list(const gx_packed *list, gx_form form, uint32_t *out, void *stream, gx_error *err)
{
    codec_kernels codec = {};
    find_kernels(list->codec->id, &codec);
    const launch_config l = (FUSED ? codec.kept : codec.to_memory)[form == GX_FORM_DOCIDS];
    if (l.group == 0)
        return launch_kernel(l.kernel, list, gx_packed_blocks(list) * 32, l.threads, out, stream, err);
    const uint64_t groups = (list->n + l.group - 1) / l.group;
    const uint64_t warps = l.persistent ? std::min(groups, std::max<uint64_t>(max_resident_warps(l), 1)) : groups;
    return launch_kernel(l.kernel, list, warps * 32, l.threads, out, stream, err);
}

} // namespace

gx_status gx_decode_list_cuda(const gx_packed *list, gx_form form, uint32_t *out, void *stream, gx_error *err)
{
    return decode_list<false>(list, form, out, stream, err);
}

gx_status gx_sum_list_cuda(const gx_packed *list, gx_form form, uint32_t *sums, void *stream, gx_error *err)
{
    return decode_list<true>(list, form, sums, stream, err);
}

gx_status gx_at_list_cuda(const gx_packed *list, uint32_t *out, void *stream, gx_error *err)
{
    codec_kernels codec = {};
    find_kernels(list->codec->id, &codec);
    return launch_kernel(codec.at, list, list->n, BLOCK_WARPS * 32, out, stream, err);
}

bool gx_codec_on_gpu(const gx_codec *codec)
{
    codec_kernels found;
    return find_kernels(codec->id, &found);
}
