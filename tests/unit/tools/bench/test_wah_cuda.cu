/* The OR of WAH columns on the GPU, against the OR of their chunks on the CPU. Skipped where there
 * is no GPU. */
#include <cuda_runtime.h>

#include "tools/bench/bitmaps/wah.cuh"

extern "C" {
#include "engine/device.h"
#include "engine/random.h"
#include "tests/support/test.h"
#include "tools/bench/bitmaps/bitmap_index.h"
}

#include <time.h>

using namespace gx;

static bool has_gpu()
{
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0;
}

static void *copy_in(const void *from, size_t bytes)
{
    void *p = NULL;
    assert_int_equal(cudaMalloc(&p, bytes + 8), cudaSuccess);
    if (bytes)
        assert_int_equal(cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    return p;
}

/* What the kernel has to write, and what it wrote. */
struct answer {
    uint64_t *chunks;
    uint32_t *mask;
    unsigned long long count;
};

static answer expect(const bitmap_index *ix, uint32_t first, uint32_t n)
{
    const uint64_t n_rows = ix->shape.n_rows;
    answer a = {(uint64_t *)calloc(ix->n_chunks, 8), (uint32_t *)calloc(n_rows / 32 + 1, 4), 0};
    assert_true(a.chunks && a.mask);
    for (uint32_t i = first; i < first + n; ++i) {
        const gx_wah c = bitmap_column(ix, i);
        gx_wah_or_chunks(&c, a.chunks);
    }
    for (uint64_t row = 0; row < n_rows; ++row) {
        const uint32_t bit = a.chunks[row / 63] >> row % 63 & 1;
        a.mask[row / 32] |= bit << row % 32;
        a.count += bit;
    }
    return a;
}

template <int TILE, int WARPS, int ROWS, int STEP>
static void check_or(const bitmap_index *ix, uint32_t first, uint32_t n, const answer *want)
{
    const uint32_t n_tiles = bitmap_n_tiles(ix, TILE), bytes = TILE * WARPS * 8;
    const uint64_t n_rows = ix->shape.n_rows, mask_words = (n_rows + 31) / 32;
    bitmap_sample *const samples = bitmap_make_samples(ix, 0, ix->n_columns, TILE);
    uint64_t *const chunks = (uint64_t *)malloc(ix->n_chunks * 8 + 8);
    uint32_t *const mask = (uint32_t *)malloc(mask_words * 4 + 4);
    unsigned long long count = 0;
    cudaStream_t stream = NULL;
    assert_true(samples && chunks && mask);
    memset(chunks, 0xa5, ix->n_chunks * 8 + 8);
    memset(mask, 0xa5, mask_words * 4 + 4);
    void *const d_atoms = copy_in(ix->atoms, ix->begins[ix->n_columns] * 8);
    void *const d_begins = copy_in(ix->begins, (ix->n_columns + 1) * 8);
    void *const d_samples = copy_in(samples, (n_tiles + 1ull) * ix->n_columns * sizeof *samples);
    void *const d_chunks = copy_in(chunks, ix->n_chunks * 8 + 8), *const d_mask = copy_in(mask, mask_words * 4 + 4);
    void *const d_count = copy_in(&count, 8);
    const wah_columns columns = {(const uint64_t *)d_atoms,
                                 (const uint64_t *)d_begins,
                                 (const wah_sample *)d_samples,
                                 ix->n_columns,
                                 n_tiles,
                                 ix->n_chunks};
    const wah_result out = {(uint64_t *)d_chunks, (uint32_t *)d_mask, (unsigned long long *)d_count, n_rows};
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    /* a copy from pageable memory may return before it has arrived, and this stream would not wait for it */
    assert_int_equal(cudaStreamSynchronize(0), cudaSuccess);
    assert_int_equal(
        cudaFuncSetAttribute(wah_or<TILE, WARPS, ROWS, STEP>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
        cudaSuccess);
    wah_or<TILE, WARPS, ROWS, STEP><<<n_tiles, WARPS * 32, bytes, stream>>>(columns, first, n, out);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    cudaMemcpy(chunks, d_chunks, ix->n_chunks * 8 + 8, cudaMemcpyDeviceToHost);
    cudaMemcpy(mask, d_mask, mask_words * 4 + 4, cudaMemcpyDeviceToHost);
    cudaMemcpy(&count, d_count, 8, cudaMemcpyDeviceToHost);
    for (uint64_t i = 0; i < ix->n_chunks; ++i)
        if (chunks[i] != want->chunks[i])
            fail_msg("tile %d, %d warps, %d rows: chunk %llu of %llu, columns %u to %u", TILE, WARPS, ROWS,
                     (unsigned long long)i, (unsigned long long)ix->n_chunks, first, first + n);
    assert_memory_equal(mask, want->mask, mask_words * 4);
    assert_true(count == want->count);
    assert_true(chunks[ix->n_chunks] == 0xa5a5a5a5a5a5a5a5u && mask[mask_words] == 0xa5a5a5a5u);
    for (void *p : {d_atoms, d_begins, d_samples, d_chunks, d_mask, d_count})
        cudaFree(p);
    cudaStreamDestroy(stream);
    free(samples);
    free(chunks);
    free(mask);
}

static void check_index(const bitmap_shape *shape, uint32_t first, uint32_t n, uint64_t seed)
{
    bitmap_index *ix;
    gx_error err = {};
    if (bitmap_index_open(&ix, shape, seed, 1, &err))
        fail_msg("%s", err.text);
    answer want = expect(ix, first, n);
    check_or<32, 2, 2, 0>(ix, first, n, &want);
    check_or<512, 4, 2, 0>(ix, first, n, &want);
    check_or<1024, 4, 4, 0>(ix, first, n, &want);
    check_or<64, 4, 2, 4>(ix, first, n, &want);
    check_or<1024, 8, 2, 16>(ix, first, n, &want);
    free(want.chunks);
    free(want.mask);
    bitmap_index_close(ix);
}

static void columns_of_any_density_and_runs(void **)
{
    if (!has_gpu())
        skip();
    static const double runs[] = {1, 3, 40, 700, 100000}, skews[] = {0, 1, 3};
    const char *const given = getenv("GX_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < 24; ++i) {
        bitmap_shape shape = {"test", "test", gx_random_next(&seed) % (i % 2 ? 3000 : 150000) + 1};
        shape.n_attributes = (uint32_t)(gx_random_next(&seed) % 3) + 1;
        shape.n_columns = shape.n_attributes + (uint32_t)(gx_random_next(&seed) % 70);
        shape.skew = skews[gx_random_next(&seed) % 3];
        shape.run = runs[gx_random_next(&seed) % 5];
        const uint32_t first = (uint32_t)(gx_random_next(&seed) % shape.n_columns);
        const uint32_t n = (uint32_t)(gx_random_next(&seed) % (shape.n_columns - first)) + 1;
        check_index(&shape, first, n, seed);
    }
}

static void rows_that_end_with_a_tile_or_a_chunk(void **)
{
    if (!has_gpu())
        skip();
    static const uint64_t n_rows[] = {1, 31, 32, 33, 62, 63, 64, 63 * 32 - 1, 63 * 32, 63 * 32 + 1, 63 * 1024, 64513};
    for (uint32_t i = 0; i < sizeof n_rows / sizeof *n_rows; ++i) {
        bitmap_shape shape = {"test", "test", n_rows[i], 1, 3, 0, 50};
        check_index(&shape, 0, 2, i);
        check_index(&shape, 0, 3, i); /* all rows */
        shape.run = 1e9;
        check_index(&shape, 0, 3, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_any_density_and_runs),
        cmocka_unit_test(rows_that_end_with_a_tile_or_a_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
