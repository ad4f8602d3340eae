/* The kernel that selects the best of many candidates, against sorting all of them. Skipped where
 * there is no GPU. */
#include "query/gpu/kernels/kernels.cuh"

extern "C" {
#include "query/plan/plan.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"
}

using namespace gx;

enum { MOST_QUERIES = 16, UNTOUCHED = 0x5a };

/* A batch in device memory, and copies of its answers and results. */
struct fixture {
    gpu_query *queries;
    gpu_query_state *states, *results;
    unsigned long long *candidates, *answers;
    cudaStream_t stream;
};

/* A query's side of the test: what it has, and what it is to answer. */
struct expectation {
    uint32_t first, n, k, count, threshold, flags; /* keys [first, first + n); count: accepted, lost ones too */
    uint32_t answer;                               /* where it begins among all answers */
};

static void *copy_in(const void *from, size_t bytes)
{
    void *p = NULL;
    assert_int_equal(cudaMalloc(&p, bytes + 8), cudaSuccess);
    if (bytes)
        assert_int_equal(cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    return p;
}

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Keys of different documents. shape 0: scores of any size; 1: few different ones; 2: rising; 3:
 * one score. */
static void draw(gen_rng *r, uint32_t shape, uint32_t n, uint64_t *keys)
{
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t x = gen_u64(r);
        const uint32_t score = shape == 0   ? (uint32_t)(x >> 33 >> (x & 31))
                               : shape == 1 ? (uint32_t)(x >> 62)
                               : shape == 2 ? i
                                            : 7;
        keys[i] = gx_key(score + 1, i * 3);
    }
}

static bool is_selected(const expectation *e)
{
    return e->k > SMALL_K || e->flags & QUERY_EXHAUSTIVE;
}

/* Answers of one query, compared with its keys sorted. */
static void check_answer(const expectation *e, const uint64_t *keys, const uint64_t *answer,
                         const gpu_query_state *result)
{
    const uint32_t k = e->k < e->n ? e->k : e->n;
    uint64_t *const want = (uint64_t *)malloc((e->n + 1) * sizeof *want), *got = (uint64_t *)malloc(e->k * sizeof *got);
    memcpy(want, keys + e->first, e->n * sizeof *want);
    qsort(want, e->n, sizeof *want, falling);
    memcpy(got, answer, e->k * sizeof *got);
    if (e->k > SORTED_K) /* these are sorted by sort_keys */
        qsort(got, e->k, sizeof *got, falling);
    for (uint32_t i = 0; i < e->k; ++i)
        if (got[i] != (i < k ? want[i] : 0))
            fail_msg("key %u of the best %u of %u is %llx, not %llx", i, e->k, e->n, (unsigned long long)got[i],
                     (unsigned long long)(i < k ? want[i] : 0));
    assert_int_equal(result->n_hits, k);
    assert_int_equal(result->count, e->count);
    assert_int_equal(result->threshold, e->threshold);
    free(want);
    free(got);
}

/* The best of all queries' candidates at once; then those that are not to be selected must be as
 * they were. */
static void select_and_check(const expectation *es, uint32_t n_queries, const uint64_t *keys, uint32_t n_keys,
                             uint32_t n_answers)
{
    gpu_query queries[MOST_QUERIES];
    gpu_query_state states[MOST_QUERIES], results[MOST_QUERIES];
    uint64_t *const answers = (uint64_t *)malloc((n_answers + 1) * sizeof *answers);
    fixture f;
    memset(queries, 0, sizeof queries);
    memset(states, 0, sizeof states);
    memset(results, UNTOUCHED, sizeof results);
    memset(answers, UNTOUCHED, n_answers * sizeof *answers);
    for (uint32_t q = 0; q < n_queries; ++q) {
        queries[q].k = es[q].k;
        queries[q].flags = es[q].flags;
        queries[q].candidates = es[q].first;
        queries[q].capacity = es[q].n;
        queries[q].answer = es[q].answer;
        states[q].count = es[q].count;
        states[q].threshold = es[q].threshold;
    }
    f.queries = (gpu_query *)copy_in(queries, sizeof queries);
    f.states = (gpu_query_state *)copy_in(states, sizeof states);
    f.results = (gpu_query_state *)copy_in(results, sizeof results);
    f.candidates = (unsigned long long *)copy_in(keys, n_keys * sizeof *keys);
    f.answers = (unsigned long long *)copy_in(answers, n_answers * sizeof *answers);
    assert_int_equal(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking), cudaSuccess);
    /* a copy from pageable memory may return before it has arrived, and this stream would not wait for it */
    assert_int_equal(cudaStreamSynchronize(0), cudaSuccess);

    gpu_batch R = {};
    R.queries = f.queries;
    R.states = f.states;
    R.results = f.results;
    R.candidates = f.candidates;
    R.answers = f.answers;
    select_best(R, 0, 0, f.stream); /* nothing to do is no error */
    select_best(R, 0, n_queries, f.stream);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(f.stream), cudaSuccess);
    assert_int_equal(cudaMemcpy(answers, f.answers, n_answers * sizeof *answers, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(cudaMemcpy(results, f.results, sizeof results, cudaMemcpyDeviceToHost), cudaSuccess);

    for (uint32_t q = 0; q < n_queries; ++q) {
        const uint8_t *const bytes = (const uint8_t *)(answers + es[q].answer);
        if (is_selected(&es[q]))
            check_answer(&es[q], keys, answers + es[q].answer, &results[q]);
        for (uint32_t i = 0; !is_selected(&es[q]) && i < es[q].k * sizeof *answers; ++i)
            assert_int_equal(bytes[i], UNTOUCHED);
    }
    assert_int_equal(cudaStreamDestroy(f.stream), cudaSuccess);
    cudaFree(f.queries);
    cudaFree(f.states);
    cudaFree(f.results);
    cudaFree(f.candidates);
    cudaFree(f.answers);
    free(answers);
}

static bool has_gpu()
{
    gx_error err = {};
    return gx_device_use(0, &err) == GX_OK;
}

/* One query. slack: by how much its threshold lies below the k-th best score,
 * UINT32_MAX: it is 1. */
static void select_one(gen_rng *r, uint32_t shape, uint32_t n, uint32_t k, uint32_t slack, uint32_t lost)
{
    uint64_t *const keys = (uint64_t *)malloc((n + 1) * sizeof *keys),
                    *sorted = (uint64_t *)malloc((n + 1) * sizeof *keys);
    draw(r, shape, n, keys);
    memcpy(sorted, keys, n * sizeof *keys);
    qsort(sorted, n, sizeof *sorted, falling);
    const uint32_t kth = k <= n ? gx_key_score(sorted[k - 1]) : 1;
    expectation e = {0, n, k, n + lost, kth > slack ? kth - slack : 1, k > SMALL_K ? 0u : (uint32_t)QUERY_EXHAUSTIVE,
                     0};
    select_and_check(&e, 1, keys, n, k);
    free(keys);
    free(sorted);
}

static void the_best_k_are_selected_from_any_number_of_candidates(void **)
{
    static const uint32_t ns[] = {0, 1, 33, 511, 512, 513, 1000, 4095, 4096, 4097, 9000};
    static const uint32_t ks[] = {1, 10, 33, 64, 100, 511, 1000, 4096, 4097, 6000};
    gen_rng r = {20191103};
    if (!has_gpu())
        skip();
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (uint32_t n : ns)
        for (uint32_t k : ks)
            select_one(&r, (n + k) % 4, n, k, UINT32_MAX, 0);
}

/* With a good threshold the candidates that reach it are few and are sorted at once; with none
 * the radix select runs. Both must give the same. */
static void any_threshold_up_to_the_kth_score_gives_the_same_answer(void **)
{
    static const uint32_t slacks[] = {0, 1, 1000, 100000000, UINT32_MAX};
    gen_rng r = {7};
    if (!has_gpu())
        skip();
    for (uint32_t shape = 0; shape < 4; ++shape)
        for (uint32_t slack : slacks) {
            select_one(&r, shape, 8000, 100, slack, 0);
            select_one(&r, shape, 8000, 4096, slack, 0);
            select_one(&r, shape, 300, 1000, slack, 0); /* fewer candidates than k */
        }
}

/* A query whose candidates did not all fit answers from those that did; the host sees the count. */
static void candidates_that_were_lost_are_counted(void **)
{
    gen_rng r = {11};
    if (!has_gpu())
        skip();
    select_one(&r, 0, 2000, 100, UINT32_MAX, 1);
    select_one(&r, 0, 2000, 100, UINT32_MAX, 123456);
}

static void queries_of_a_batch_do_not_disturb_each_other(void **)
{
    gen_rng r = {2024};
    if (!has_gpu())
        skip();
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (uint32_t run = 0; run < 12; ++run) {
        expectation es[MOST_QUERIES];
        uint32_t n_keys = 0, n_answers = 0;
        const uint32_t n = 1 + gen_below(&r, MOST_QUERIES);
        uint64_t *const keys = (uint64_t *)malloc(MOST_QUERIES * 6000 * sizeof *keys);
        for (uint32_t q = 0; q < n; ++q) { /* some of k <= SMALL_K, which another kernel has answered */
            const uint32_t n_here = gen_below(&r, 6000), k = 1 + gen_below(&r, gen_below(&r, 2) ? 64 : 5000);
            const uint32_t flags = gen_below(&r, 3) ? 0 : (uint32_t)QUERY_EXHAUSTIVE;
            draw(&r, gen_below(&r, 4), n_here, keys + n_keys);
            es[q] = {n_keys, n_here, k, n_here, 1, flags, n_answers};
            n_keys += n_here;
            n_answers += k;
        }
        select_and_check(es, n, keys, n_keys, n_answers);
        free(keys);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_k_are_selected_from_any_number_of_candidates),
        cmocka_unit_test(any_threshold_up_to_the_kth_score_gives_the_same_answer),
        cmocka_unit_test(candidates_that_were_lost_are_counted),
        cmocka_unit_test(queries_of_a_batch_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
