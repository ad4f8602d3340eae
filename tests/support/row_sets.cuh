/* row_sets.cuh: random queries over a source of columns (tools/bench/bitmaps/row_tile.cuh) on the GPU, against the
 * CPU's answers. */
#ifndef GX_TESTS_SUPPORT_ROW_SETS_CUH
#define GX_TESTS_SUPPORT_ROW_SETS_CUH

#include <cuda_runtime.h>
#include <time.h>

#include "tools/bench/bitmaps/row_tile.cuh"

extern "C" {
#include "engine/random.h"
#include "tests/support/test.h"
}

using namespace gx;

enum { MAX_LISTED = 300 };

static bool has_gpu()
{
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0;
}

static uint64_t new_seed()
{
    const char *const given = getenv("GX_TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* Random cases of a test: n, or GX_TEST_CASES where they are to be fewer. */
static uint32_t n_cases(uint32_t n)
{
    const char *const given = getenv("GX_TEST_CASES");
    const uint32_t most = given ? (uint32_t)strtoul(given, NULL, 10) : n;
    return most < n ? most : n;
}

static uint32_t below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)(gx_random_next(seed) % n);
}

/* from[n] in GPU memory; nothing lies behind it. */
template <class T> static T *copy_in(const T *from, size_t n)
{
    T *p = NULL;
    assert_int_equal(cudaMalloc((void **)&p, n ? n * sizeof *p : 1), cudaSuccess);
    if (n)
        assert_int_equal(cudaMemcpy(p, from, n * sizeof *p, cudaMemcpyHostToDevice), cudaSuccess);
    return p;
}

/* A query: steps whose columns lie on the host. */
struct row_query {
    row_steps steps;
    uint32_t listed[MAX_ROW_STEPS][MAX_LISTED];
    bool lists[MAX_ROW_STEPS];

    uint32_t column(uint32_t step, uint32_t i) const
    {
        return lists[step] ? listed[step][i] : steps.steps[step].first + i;
    }
};

static void draw_query(row_query *q, uint32_t n_columns, uint64_t *seed)
{
    *q = row_query{};
    q->steps.n = below(seed, 5);
    q->steps.all = below(seed, 2);
    for (uint32_t k = 0; k < q->steps.n; ++k) {
        row_step *const s = &q->steps.steps[k];
        s->operation = (row_operation)below(seed, 3);
        s->first = below(seed, n_columns);
        s->n = below(seed, below(seed, 4) && n_columns - s->first > 6 ? 7 : n_columns - s->first + 1);
        q->lists[k] = below(seed, 3) == 0;
        if (q->lists[k])
            s->n = below(seed, MAX_LISTED + 1);
        for (uint32_t i = 0; i < s->n && q->lists[k]; ++i)
            q->listed[k][i] = below(seed, n_columns);
    }
}

/* The query's words by the CPU, whole tiles; or_column(column, words) adds a column's rows. */
template <class OR> static uint32_t *expect_rows(const row_query *q, uint64_t n_rows, OR or_column)
{
    const size_t n_words = (n_rows + TILE_ROWS - 1) / TILE_ROWS * TILE_WORDS;
    uint32_t *const words = (uint32_t *)malloc(n_words * 4 + 4), *const own = (uint32_t *)malloc(n_words * 4 + 4);
    assert_true(words && own);
    memset(words, q->steps.all ? 0xff : 0, n_words * 4);
    for (uint32_t k = 0; k < q->steps.n; ++k) {
        memset(own, 0, n_words * 4);
        for (uint32_t i = 0; i < q->steps.steps[k].n; ++i)
            or_column(q->column(k, i), own);
        for (size_t w = 0; w < n_words; ++w)
            words[w] = q->steps.steps[k].operation == ROWS_OR    ? words[w] | own[w]
                       : q->steps.steps[k].operation == ROWS_AND ? words[w] & own[w]
                                                                 : words[w] & ~own[w];
    }
    for (uint64_t row = n_rows; row < n_words * 32; ++row)
        words[row / 32] &= ~(1u << row % 32);
    free(own);
    return words;
}

/* What the GPU gave. */
struct row_answer {
    uint32_t *mask, *rows; /* [ceil(n_rows / 32)], [max_rows] */
    unsigned long long count;
};

template <class SOURCE>
static void ask(const SOURCE &source, const row_query *q, uint64_t n_rows, uint64_t max_rows, row_answer *a)
{
    const size_t n_words = (n_rows + 31) / 32;
    const uint32_t n_tiles = (uint32_t)((n_rows + TILE_ROWS - 1) / TILE_ROWS);
    row_query on_gpu = *q;
    for (uint32_t k = 0; k < q->steps.n; ++k)
        on_gpu.steps.steps[k].columns = q->lists[k] ? copy_in(q->listed[k], MAX_LISTED) : NULL;
    *a = row_answer{(uint32_t *)malloc(n_words * 4 + 4), (uint32_t *)malloc(max_rows * 4 + 4), 0};
    assert_true(a->mask && a->rows);
    memset(a->mask, 0xa5, n_words * 4 + 4);
    memset(a->rows, 0xa5, max_rows * 4 + 4);
    uint32_t *const d_mask = copy_in(a->mask, n_words + 1), *const d_rows = copy_in(a->rows, max_rows + 1);
    unsigned long long *const d_count = copy_in(&a->count, 1);
    uint32_t *d_tile_counts = NULL;
    assert_int_equal(cudaMalloc((void **)&d_tile_counts, n_tiles * 4 + 4), cudaSuccess);
    cudaStream_t stream = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    /* a copy from pageable memory may return before it has arrived, and this stream would not wait for it */
    assert_int_equal(cudaStreamSynchronize(0), cudaSuccess);
    const row_result out = {d_mask, d_count, d_tile_counts};
    select_rows<SOURCE><<<n_tiles, TILE_THREADS, 0, stream>>>(source, on_gpu.steps, n_rows, out);
    list_rows<<<n_tiles * LIST_PARTS, LIST_THREADS, 0, stream>>>(d_mask, d_tile_counts, n_rows, max_rows, d_rows);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    cudaMemcpy(a->mask, d_mask, n_words * 4 + 4, cudaMemcpyDeviceToHost);
    cudaMemcpy(a->rows, d_rows, max_rows * 4 + 4, cudaMemcpyDeviceToHost);
    cudaMemcpy(&a->count, d_count, 8, cudaMemcpyDeviceToHost);
    for (void *p : {(void *)d_mask, (void *)d_rows, (void *)d_count, (void *)d_tile_counts})
        cudaFree(p);
    for (uint32_t k = 0; k < q->steps.n; ++k)
        cudaFree((void *)on_gpu.steps.steps[k].columns);
    cudaStreamDestroy(stream);
    assert_true(a->mask[n_words] == 0xa5a5a5a5 && a->rows[max_rows] == 0xa5a5a5a5);
}

static void close_answer(row_answer *a)
{
    free(a->mask);
    free(a->rows);
}

template <class SOURCE>
static void check_query(const SOURCE &source, const row_query *q, uint64_t n_rows, const uint32_t *want, uint64_t *seed)
{
    const size_t n_words = (n_rows + 31) / 32;
    uint64_t n = 0;
    row_answer a;
    for (size_t i = 0; i < n_words; ++i)
        n += (uint32_t)__builtin_popcount(want[i]);
    const uint64_t max_rows = below(seed, 4) ? n : n / 2; /* also too few */
    ask(source, q, n_rows, max_rows, &a);
    assert_memory_equal(a.mask, want, n_words * 4);
    assert_true(a.count == n);
    for (uint64_t row = 0, i = 0; row < n_rows && i < max_rows; ++row)
        if (want[row / 32] >> row % 32 & 1)
            assert_int_equal(a.rows[i++], row);
    close_answer(&a);
}

/* A query over damaged columns: whatever the rows are, there are no others than n_rows. */
template <class SOURCE> static void check_damaged(const SOURCE &source, const row_query *q, uint64_t n_rows)
{
    row_answer a;
    uint64_t n = 0;
    ask(source, q, n_rows, 1000, &a);
    for (uint64_t i = 0; i < (n_rows + 31) / 32; ++i)
        n += (uint32_t)__builtin_popcount(a.mask[i]);
    assert_true(a.count == n && n <= n_rows);
    if (n_rows % 32)
        assert_int_equal(a.mask[n_rows / 32] >> n_rows % 32, 0);
    close_answer(&a);
}

#endif
