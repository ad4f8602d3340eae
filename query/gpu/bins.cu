/* The bins of a column (columns.cuh) and their maps, for which each document's value is read once. A filter's
 * range is answered by one bin that has all of it, as in an index of bitmaps with bins that overlap; what
 * the bin has besides, the filter's tests drop. */
#include "query/gpu/columns.cuh"
#include "query/gpu/state.cuh"

#include "engine/lower_bound.h"

#include <stdlib.h>

namespace gx {

constexpr uint32_t THREADS = 256;

/* ---- maps ---- */

/* The bins of one level that have maps, as the kernel sees them. */
struct bin_writer {
    gpu_test values, present; /* columns; present.values is 0 if every document has a value */
    uint32_t n_docs, n_groups, shift;
    const uint32_t *least;   /* [n_groups] each group's least value */
    const uint2 *maps_of;    /* [n_groups] the first map of a bin that has the group, and the first behind them */
    uint64_t words_of_a_map; /* a map begins at a multiple */
    uint32_t *maps;
};

/* Sets the document's bit in the map of each bin that has its group. A thread a document. */
static __global__ void __launch_bounds__(THREADS) set_bins(const __grid_constant__ bin_writer B)
{
    const uint32_t doc = blockIdx.x * THREADS + threadIdx.x;
    if (doc >= B.n_docs)
        return;
    if (B.present.values && !(__ldg(column_of(B.present).words + doc / 32) >> doc % 32 & 1))
        return;
    const test_column c = column_of(B.values);
    const uint32_t value = __ldg(c.words + (doc >> (5 - c.log_bits))) >> ((doc << c.log_bits) & 31) & c.mask;
    uint32_t group = 0, end = B.n_groups; /* least[group] <= value; least[end] > value */
    while (end - group > 1) {
        const uint32_t middle = group + (end - group) / 2;
        if (__ldg(B.least + middle) <= value)
            group = middle;
        else
            end = middle;
    }
    const uint2 of = __ldg(B.maps_of + group);
    for (uint32_t m = of.x; m < of.y; ++m)
        atomicOr(B.maps + m * B.words_of_a_map + (doc >> (5 + B.shift)), 1u << (doc >> B.shift & 31));
}

/* ---- bins ---- */

static uint32_t count_bins(uint32_t level)
{
    return BINS_A_SHARE << BIN_LEVELS[level].log_share;
}

/* Words of a map, whose bytes are a multiple of 16. */
static uint64_t map_words(uint32_t n_docs, uint32_t level)
{
    return ((uint64_t)(n_docs >> BIN_LEVELS[level].shift) / 32 + 4) / 4 * 4;
}

/* Chooses the groups of the level's bins. Those of more than twice the share of documents have no map. Returns
 * the number of maps. */
static uint32_t choose_bins(const device_column *d, uint32_t level, column_bin *bins)
{
    const uint32_t n = count_bins(level), n_docs = d->starts[d->n_groups];
    const uint64_t most = 2 * ((uint64_t)n_docs >> BIN_LEVELS[level].log_share) + 1;
    uint32_t n_maps = 0;
    for (uint32_t i = 0; i < n; ++i) {
        /* of the documents by group, those from `from` to `to` are in the bin */
        const uint32_t from = (uint32_t)((uint64_t)n_docs * i / n),
                       to = i + BINS_A_SHARE < n ? (uint32_t)((uint64_t)n_docs * (i + BINS_A_SHARE) / n) : n_docs;
        column_bin *b = &bins[i];
        b->first = gx_lower_bound(d->starts, 0, d->n_groups, from + 1);
        b->first -= b->first > 0;
        b->end = gx_lower_bound(d->starts, b->first, d->n_groups, to);
        b->map = d->starts[b->end] - d->starts[b->first] <= most ? n_maps++ : NO_BIN_MAP;
    }
    return n_maps;
}

/* Finds for each group the maps of bins that have it, which follow each other. */
static void find_maps_of_groups(const column_bin *bins, uint32_t n_bins, uint2 *maps_of, uint32_t n_groups)
{
    memset(maps_of, 0, n_groups * sizeof *maps_of);
    for (uint32_t i = 0; i < n_bins; ++i) {
        for (uint32_t g = bins[i].first; g < bins[i].end && bins[i].map != NO_BIN_MAP; ++g) {
            maps_of[g].x = maps_of[g].y ? maps_of[g].x : bins[i].map;
            maps_of[g].y = bins[i].map + 1;
        }
    }
}

/* Fills the maps. Returns whether that has succeeded. */
static bool fill_maps(const device_columns *all, const device_column *d, const uint2 *maps_of, uint64_t bytes,
                      bin_writer B)
{
    const int device = all->owner->device;
    uint2 *d_maps_of = NULL;
    uint32_t *d_least = NULL;
    cudaStream_t stream = NULL;
    gx_error ignored;
    bool ok = device_alloc(&d_maps_of, B.n_groups) == cudaSuccess &&
              device_alloc(&d_least, B.n_groups) == cudaSuccess &&
              cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
              gx_device_upload(device, d_maps_of, maps_of, B.n_groups * sizeof *maps_of, &ignored) == GX_OK &&
              gx_device_upload(device, d_least, d->least, B.n_groups * sizeof *d_least, &ignored) == GX_OK;
    if (ok) {
        B.maps_of = d_maps_of;
        B.least = d_least;
        ok = cudaMemsetAsync(B.maps, 0, bytes, stream) == cudaSuccess;
        set_bins<<<(B.n_docs + THREADS - 1) / THREADS, THREADS, 0, stream>>>(B);
        ok = ok && cudaGetLastError() == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess;
    }
    if (stream)
        (void)cudaStreamDestroy(stream);
    (void)cudaFree(d_maps_of);
    (void)cudaFree(d_least);
    (void)cudaGetLastError();
    return ok;
}

/* Makes the bins of one level. false: no memory. */
static bool make_level(const device_columns *all, const gx_column *c, device_column *d, uint32_t level)
{
    const uint32_t n_bins = count_bins(level), n_docs = all->ix->n_docs;
    const uint64_t words = map_words(n_docs, level);
    uint2 *maps_of = (uint2 *)malloc(d->n_groups * sizeof *maps_of);
    column_bin *bins = (column_bin *)malloc(n_bins * sizeof *bins);
    uint32_t *maps = NULL;
    uint64_t bytes = 0;
    bool ok = bins && maps_of;
    if (ok) {
        bytes = 4 * words * choose_bins(d, level, bins);
        find_maps_of_groups(bins, n_bins, maps_of, d->n_groups);
        maps = (uint32_t *)take_column_memory(all, bytes);
        const bin_writer B = {column_test(d->values, 8 * c->width),
                              d->present ? column_test(d->present, 1) : gpu_test{},
                              n_docs,
                              d->n_groups,
                              BIN_LEVELS[level].shift,
                              NULL,
                              NULL,
                              words,
                              maps};
        ok = maps && fill_maps(all, d, maps_of, bytes, B);
    }
    free(maps_of);
    if (ok) {
        d->bins[level] = bins;
        d->bin_maps[level] = maps;
    } else {
        give_column_memory(all, maps, bytes);
        free(bins);
    }
    return ok;
}

bool make_bins(const device_columns *all, const gx_column *c, device_column *d)
{
    bool any = false;
    for (uint32_t level = 0; level < N_BIN_LEVELS; ++level)
        any |= make_level(all, c, d, level);
    return any;
}

bool find_bin_of_groups(const device_column *d, uint32_t first, uint32_t end, uint32_t n_docs, document_map *out)
{
    const uint64_t n_valued = d->starts[d->n_groups];
    for (uint32_t level = 0; level < N_BIN_LEVELS && n_valued; ++level) {
        if (!d->bins[level])
            continue;
        const uint64_t n = count_bins(level), i = d->starts[first] * n / n_valued; /* begins at `first` or before */
        const column_bin b = d->bins[level][i < n ? i : n - 1];
        if (b.map == NO_BIN_MAP || b.first > first || b.end < end)
            continue;
        const uint32_t shift = BIN_LEVELS[level].shift;
        const double share = (double)(d->starts[b.end] - d->starts[b.first]) / n_docs;
        *out = {d->bin_maps[level] + b.map * map_words(n_docs, level), shift, share * (1u << shift)};
        return true;
    }
    return false;
}

} // namespace gx
