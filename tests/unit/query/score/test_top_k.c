/* The k best keys of a stream: the heap of topk.h and the CPU engine's collector (cpu/best.h)
 * against sorting all. */
#include "engine/random.h"
#include "query/cpu/best.h"
#include "query/score/topk.h"
#include "tests/support/test.h"

enum { MOST = 5000 };

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* n keys of different documents. shape 0: scores of any size; 1: few different ones; 2: rising; 3:
 * falling; 4: one. */
static void draw(uint64_t *seed, uint32_t shape, uint32_t n, uint64_t *keys)
{
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t r = gx_random_next(seed);
        const uint32_t score = shape == 0   ? (uint32_t)(r >> 33 >> (r & 31))
                               : shape == 1 ? (uint32_t)(r >> 60)
                               : shape == 2 ? i
                               : shape == 3 ? n - i
                                            : 7;
        keys[i] = gx_key(score ? score : 1, i);
    }
}

static void expect_best(const uint64_t *keys, uint32_t n, const uint64_t *got, uint32_t n_got, uint32_t k)
{
    static uint64_t sorted[MOST];
    memcpy(sorted, keys, n * sizeof *keys);
    qsort(sorted, n, sizeof *sorted, falling);
    assert_int_equal(n_got, n < k ? n : k);
    for (uint32_t i = 0; i < n_got; ++i)
        assert_true(got[i] == sorted[i]);
}

static void each_case(void (*run)(const uint64_t *keys, uint32_t n, uint32_t k, uint32_t threshold))
{
    static const uint32_t ks[] = {1, 2, 10, 31, 32, 33, 63, 64, 65, 128, 1000, 4999, 5000, 6000};
    static const uint32_t ns[] = {0, 1, 2, 63, 64, 65, 130, 999, MOST};
    static uint64_t keys[MOST];
    uint64_t seed = 20191103;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t shape = 0; shape < 5; ++shape)
        for (size_t i = 0; i < sizeof ks / sizeof *ks; ++i)
            for (size_t j = 0; j < sizeof ns / sizeof *ns; ++j) {
                draw(&seed, shape, ns[j], keys);
                run(keys, ns[j], ks[i], 1);
            }
}

static void by_heap(const uint64_t *keys, uint32_t n, uint32_t k, uint32_t threshold)
{
    static uint64_t room[6000];
    gx_topk top = {room, k, 0};
    (void)threshold;
    for (uint32_t i = 0; i < n; ++i) {
        if (keys[i] < gx_topk_threshold(&top))
            assert_int_equal(top.n, k); /* only a full heap turns keys away */
        gx_topk_push(&top, keys[i]);
    }
    gx_topk_sort(&top);
    expect_best(keys, n, room, top.n, k);
}

static void the_heap_keeps_the_k_greatest(void **state)
{
    (void)state;
    each_case(by_heap);
}

static gx_cpu_best best; /* too large for a stack; used again, as a session uses it */

static void by_collector(const uint64_t *keys, uint32_t n, uint32_t k, uint32_t threshold)
{
    static uint64_t got[6000];
    assert_true(gx_cpu_best_begin(&best, k, threshold));
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t score = (uint32_t)(keys[i] >> 32);
        if (score >= best.threshold) /* as a search does: what is below the threshold is not offered */
            gx_cpu_best_add(&best, score, gx_key_docid(keys[i]));
    }
    const uint32_t n_got = gx_cpu_best_finish(&best, got);
    expect_best(keys, n, got, n_got, k);
}

static void the_collector_keeps_the_k_best(void **state)
{
    (void)state;
    each_case(by_collector);
    gx_cpu_best_free(&best);
    best = (gx_cpu_best){0};
}

static void a_threshold_that_k_documents_reach_changes_nothing(void **state)
{
    (void)state;
    static uint64_t keys[MOST], sorted[MOST];
    uint64_t seed = 4;
    for (uint32_t k = 1; k < 2000; k = k * 3 + 1) {
        draw(&seed, 0, MOST, keys);
        memcpy(sorted, keys, sizeof keys);
        qsort(sorted, MOST, sizeof *sorted, falling);
        const uint32_t kth = (uint32_t)(sorted[k - 1] >> 32);
        by_collector(keys, MOST, k, kth);
        by_collector(keys, MOST, k, kth > 1 ? kth / 2 : 1);
    }
    gx_cpu_best_free(&best);
    best = (gx_cpu_best){0};
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heap_keeps_the_k_greatest),
        cmocka_unit_test(the_collector_keeps_the_k_best),
        cmocka_unit_test(a_threshold_that_k_documents_reach_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
