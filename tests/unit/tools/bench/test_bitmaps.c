#include <stdatomic.h>
#include <time.h>

#include "engine/parallel.h"
#include "engine/random.h"
#include "tests/support/test.h"
#include "tools/bench/bitmaps/bitmap_cpu.h"
#include "tools/bench/bitmaps/bitmap_gpu.h"
#include "tools/bench/bitmaps/bitmap_index.h"
#include "tools/bench/bitmaps/bitmap_pool.h"

static uint64_t new_seed(void)
{
    const uint64_t seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

static bitmap_index *open_index(const bitmap_shape *shape, uint64_t seed)
{
    bitmap_index *ix;
    gx_error err = {0};
    if (bitmap_index_open(&ix, shape, seed, 2, &err))
        fail_msg("%s", err.text);
    return ix;
}

static void a_row_has_one_bin_of_each_attribute(void **state)
{
    (void)state;
    const bitmap_shape shape = {"test", "test", 100003, 3, 40, 1, 7};
    bitmap_index *const ix = open_index(&shape, new_seed());
    uint64_t *const chunks = calloc(ix->n_chunks, 8), *const all = calloc(ix->n_chunks, 8);
    assert_true(chunks && all);
    uint32_t first, n, next = 0;
    for (uint32_t a = 0; a < 3; ++a) {
        uint64_t count = 0;
        bitmap_attribute(&shape, a, &first, &n);
        assert_true(first == next && n >= 13 && n <= 14);
        next = first + n;
        memset(all, 0, ix->n_chunks * 8);
        for (uint32_t i = first; i < first + n; ++i) {
            const gx_wah c = bitmap_column(ix, i);
            gx_wah_decode(&c, chunks);
            for (uint64_t j = 0; j < ix->n_chunks; ++j) {
                assert_true((all[j] & chunks[j]) == 0);
                all[j] |= chunks[j];
            }
            for (uint64_t row = 0; a == 0 && row < shape.n_rows; ++row)
                assert_int_equal(chunks[row / 63] >> row % 63 & 1, ix->values[row] == i);
            count += gx_wah_count(&c);
        }
        assert_int_equal(count, shape.n_rows);
        for (uint64_t j = 0; j + 1 < ix->n_chunks; ++j)
            assert_true(all[j] == GX_WAH_ONES);
    }
    assert_int_equal(next, 40);
    free(all);
    free(chunks);
    bitmap_index_close(ix);
}

/* The sizes that the stand-ins are made for, on fewer rows; and Zipf's bins as they are drawn. */
static void shapes_compress_as_the_papers_data(void **state)
{
    (void)state;
    static const double ratios[] = {36, 21, 36, 1.166, 38.6, 1.593};
    for (uint32_t k = 0; bitmap_shapes[k].name; ++k) {
        bitmap_shape shape = bitmap_shapes[k];
        shape.n_rows /= shape.run > 1 ? 4 : 64;
        bitmap_index *const ix = open_index(&shape, 5);
        const double ratio = (double)ix->n_chunks * ix->n_columns / (double)ix->begins[ix->n_columns];
        if (ratio < 0.95 * ratios[k] || ratio > 1.05 * ratios[k])
            fail_msg("%s: a decompressed column is %.3f times the compressed one, not %.3f", shape.name, ratio,
                     ratios[k]);
        bitmap_index_close(ix);
    }
    bitmap_shape zipf = {"zipf", "Zipf", 1000000, 1, 10, 2, 1};
    bitmap_index *const ix = open_index(&zipf, 5);
    for (uint32_t i = 0; i < 10; ++i) {
        const gx_wah c = bitmap_column(ix, i);
        const double share = (double)gx_wah_count(&c) / 1e6, want = 1 / (1.549767731 * (i + 1) * (i + 1));
        assert_true(share > want - 0.003 && share < want + 0.003);
    }
    bitmap_index_close(ix);
}

static void every_way_of_a_cpu_gives_the_same_rows(void **state)
{
    (void)state;
    const bitmap_shape shapes[] = {{"a", "a", 300007, 2, 40, 1, 1},
                                   {"b", "b", 300000, 2, 40, 2, 700},
                                   {"c", "c", 62, 1, 5, 0, 1},
                                   {"d", "d", 63, 1, 5, 0, 1},
                                   {"e", "e", 200000, 1, 2, 3, 90000}};
    uint64_t seed = new_seed();
    for (uint32_t k = 0; k < sizeof shapes / sizeof *shapes; ++k) {
        bitmap_index *const ix = open_index(&shapes[k], seed++);
        const uint32_t n = shapes[k].n_columns - 1;
        uint64_t *const want = calloc(ix->n_chunks, 8), *const got = calloc(ix->n_chunks, 8);
        bitmap_cpu *cpu;
        gx_error err = {0};
        assert_true(want && got);
        for (uint64_t row = 0; row < shapes[k].n_rows && shapes[k].n_attributes == 1; ++row)
            if (ix->values[row] >= 1)
                want[row / 63] |= (uint64_t)1 << row % 63;
        if (shapes[k].n_attributes > 1) { /* the second attribute's are all there */
            memset(want, 0xff, ix->n_chunks * 8);
            for (uint64_t j = 0; j < ix->n_chunks; ++j)
                want[j] &= GX_WAH_ONES;
            want[ix->n_chunks - 1] = gx_wah_last_chunk(shapes[k].n_rows);
        }
        if (bitmap_cpu_open(&cpu, ix, 1, n, 3, &err))
            fail_msg("%s", err.text);
        for (int way = 0; way < BITMAP_N_WAYS; ++way) {
            for (uint32_t threads = 1; threads <= 3; threads += 2) {
                double seconds;
                if (!bitmap_cpu_can((bitmap_way)way, threads))
                    continue;
                memset(got, 0xa5, ix->n_chunks * 8);
                if (bitmap_cpu_or(cpu, (bitmap_way)way, threads, 2, got, &seconds, &err))
                    fail_msg("%s", err.text);
                assert_memory_equal(got, want, ix->n_chunks * 8);
            }
        }
        bitmap_cpu_close(cpu);
        free(want);
        free(got);
        bitmap_index_close(ix);
    }
}

/* ---- the pool ---- */

enum { SLOTS = 7, CLIENTS = 64, TURNS = 50 };

typedef struct clients {
    bitmap_pool *pool;
    atomic_uint owners[SLOTS];
    atomic_uint clashes, answered, started;
} clients;

static void be_client(void *user, uint32_t number)
{
    clients *const c = user;
    uint64_t seed = number;
    atomic_fetch_add(&c->started, 1);
    for (uint32_t turn = 0; turn < TURNS; ++turn) {
        const uint32_t n = (uint32_t)(gx_random_next(&seed) % SLOTS) + 1, first = bitmap_pool_take(c->pool, n);
        for (uint32_t i = first; i < first + n; ++i)
            if (i >= SLOTS || atomic_fetch_add(&c->owners[i], 1))
                atomic_fetch_add(&c->clashes, 1);
        for (uint32_t i = first; i < first + n; ++i)
            atomic_fetch_sub(&c->owners[i], 1);
        bitmap_pool_give(c->pool, first, n);
        atomic_fetch_add(&c->answered, 1);
    }
}

/* Of the pool as the paper has it: slots are locked once, wherever a client is hashed to, and a query without room
 * fails at once. */
static void a_hashed_pool_locks_or_fails(void **state)
{
    bitmap_pool *pool;
    (void)state;
    for (uint64_t key = 0; key < 1000; ++key) {
        bool taken[SLOTS] = {false};
        uint32_t first, total = 0;
        assert_int_equal(bitmap_pool_open(&pool, SLOTS, NULL), GX_OK);
        const uint32_t n = 1 + (uint32_t)(key % SLOTS);
        for (uint64_t client = key; bitmap_pool_try(pool, client, n, &first); client += 7) {
            assert_true(first + n <= SLOTS);
            for (uint32_t i = first; i < first + n; ++i) {
                assert_false(taken[i]);
                taken[i] = true;
            }
            total += n;
        }
        uint32_t run = 0; /* there is no room left */
        for (uint32_t i = 0; i < SLOTS; ++i) {
            run = taken[i] ? 0 : run + 1;
            assert_true(run < n);
        }
        assert_true(total >= n);
        assert_false(bitmap_pool_try(pool, key, SLOTS + 1, &first));
        assert_int_equal(bitmap_pool_waits(pool), 0);
        bitmap_pool_close(pool);
    }
}

static void a_pool_too_small_serves_every_client(void **state)
{
    (void)state;
    clients c = {0};
    assert_int_equal(bitmap_pool_open(&c.pool, SLOTS, NULL), GX_OK);
    assert_int_equal(bitmap_pool_take(c.pool, SLOTS), 0);
    gx_threads *const threads = gx_threads_start(CLIENTS, 0, be_client, &c);
    assert_int_equal(gx_threads_count(threads), CLIENTS);
    while (atomic_load(&c.started) < CLIENTS)
        ;
    bitmap_pool_give(c.pool, 0, SLOTS); /* for which the clients wait */
    gx_threads_join(threads);
    assert_int_equal(c.answered, CLIENTS * TURNS);
    assert_int_equal(c.clashes, 0);
    assert_true(bitmap_pool_waits(c.pool) > 0);
    bitmap_pool_close(c.pool);
}

/* ---- the GPU ---- */

#if GX_CUDA

/* The columns' OR by the CPU. */
static uint64_t *expect(const bitmap_index *ix, uint32_t first, uint32_t n)
{
    uint64_t *const chunks = calloc(ix->n_chunks, 8);
    assert_non_null(chunks);
    for (uint32_t i = first; i < first + n; ++i) {
        const gx_wah c = bitmap_column(ix, i);
        gx_wah_or_chunks(&c, chunks);
    }
    return chunks;
}

/* Columns in GPU memory; skips the test where there is no GPU. */
static bitmap_gpu *open_gpu(const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t n_slots)
{
    bitmap_gpu *g;
    gx_error err = {0};
    const gx_status st = bitmap_gpu_open(&g, ix, first, n, n_slots, &err);
    if (st == GX_ENOGPU)
        skip();
    if (st)
        fail_msg("%s", err.text);
    return g;
}

static bitmap_client *open_client(bitmap_gpu *g, bool all_reductions)
{
    bitmap_client *c;
    gx_error err = {0};
    if (bitmap_client_open(&c, g, all_reductions, &err))
        fail_msg("%s", err.text);
    return c;
}

static void check_plan(bitmap_client *c, const bitmap_plan *plan, uint32_t n, const uint64_t *want, uint64_t n_chunks)
{
    uint64_t *const got = malloc(n_chunks * 8);
    bitmap_steps steps;
    double seconds;
    gx_error err = {0};
    assert_non_null(got);
    if (bitmap_gpu_query(c, plan, n, 1, got, &seconds, NULL, &steps, &err))
        fail_msg("%s: %s", plan->config->name, err.text);
    for (uint64_t i = 0; i < n_chunks; ++i)
        if (got[i] != want[i])
            fail_msg("%s, %s, %u columns%s%s: chunk %llu of %llu is wrong", plan->config->name,
                     bitmap_reduction_name(plan->reduction), n, plan->a_column ? ", a column at a time" : "",
                     plan->no_calls ? ", no calls" : "", (unsigned long long)i, (unsigned long long)n_chunks);
    assert_true(seconds >= 0);
    if (plan->config->pool || plan->no_calls || plan->config->metadata == BITMAP_DECOMPRESSED)
        assert_int_equal(steps.memory_calls, 0);
    else /* the paper's numbers */
        assert_int_equal(steps.memory_calls,
                         (plan->a_column ? n : 1) * (!plan->config->reuse                           ? 10
                                                     : plan->config->metadata == BITMAP_NO_METADATA ? 4
                                                                                                    : 2));
    free(got);
}

static void check_all_plans(const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t n_slots)
{
    bitmap_gpu *const g = open_gpu(ix, first, n, n_slots);
    bitmap_client *const c = open_client(g, true);
    const uint32_t counts[] = {n, n / 3 + 1, 1};
    for (uint32_t i = 0; i < 3; ++i) {
        uint64_t *const want = expect(ix, first, counts[i]);
        for (int k = 0; k < BITMAP_N_CONFIGS; ++k) {
            for (int r = 0; r < BITMAP_N_REDUCTIONS; ++r) {
                const bitmap_plan plan = {&bitmap_configs[k], (bitmap_reduction)r};
                check_plan(c, &plan, counts[i], want, ix->n_chunks);
            }
            for (int way = 1; way < 8; ++way) {
                const bitmap_plan plan = {&bitmap_configs[k], BITMAP_IDEAL_HYBRID, way & 1, way & 2, way & 4};
                check_plan(c, &plan, counts[i], want, ix->n_chunks);
            }
        }
        free(want);
    }
    bitmap_client_close(c);
    bitmap_gpu_close(g);
}

static void every_configuration_gives_the_rows_of_the_cpu(void **state)
{
    (void)state;
    const bitmap_shape shapes[] = {{"a", "a", 100003, 3, 70, 1, 1},
                                   {"b", "b", 63 * 700, 2, 40, 2, 300},
                                   {"c", "c", 62, 1, 5, 0, 1},
                                   {"d", "d", 200000, 1, 3, 3, 90000}};
    uint64_t seed = new_seed();
    for (uint32_t k = 0; k < sizeof shapes / sizeof *shapes; ++k) {
        bitmap_index *const ix = open_index(&shapes[k], seed++);
        check_all_plans(ix, 1, shapes[k].n_columns - 1, 0);
        check_all_plans(ix, 0, shapes[k].n_columns, 7); /* a pool for a few columns at a time */
        bitmap_index_close(ix);
    }
}

static void our_kernel_gives_the_rows_of_the_cpu(void **state)
{
    (void)state;
    uint64_t seed = new_seed();
    for (uint32_t turn = 0; turn < 6; ++turn) {
        const bitmap_shape shape = {
            "test", "test", 1 + gx_random_next(&seed) % 300000, 2, 80, turn % 3, turn % 2 ? 1 : 500};
        bitmap_index *const ix = open_index(&shape, seed);
        bitmap_gpu *const g = open_gpu(ix, 3, 70, 0);
        bitmap_client *const c = open_client(g, false);
        const uint64_t n_words = (shape.n_rows + 31) / 32;
        uint64_t *const chunks = malloc(ix->n_chunks * 8), count, *const want = expect(ix, 3, 64);
        uint32_t *const mask = malloc(n_words * 4);
        double seconds;
        gx_error err = {0};
        assert_true(chunks && mask);
        for (uint32_t v = 0; bitmap_variants[v].tile; ++v) {
            const bitmap_answer answer = {chunks, mask, &count};
            if (bitmap_gpu_ours(c, v, 64, 2, true, &answer, &seconds, &err))
                fail_msg("%s", err.text);
            assert_memory_equal(chunks, want, ix->n_chunks * 8);
            for (uint64_t row = 0; row < shape.n_rows; ++row) {
                assert_int_equal(mask[row / 32] >> row % 32 & 1, want[row / 63] >> row % 63 & 1);
                count -= want[row / 63] >> row % 63 & 1;
            }
            assert_int_equal(count, 0);
        }
        bitmap_client_close(c);
        bitmap_gpu_close(g);
        bitmap_index_close(ix);
        free(chunks);
        free(mask);
        free(want);
    }
}

static void every_encoding_answers_ranges(void **state)
{
    (void)state;
    uint64_t seed = new_seed();
    for (uint32_t turn = 0; turn < 12; ++turn) {
        bitmap_shape shape = {"test", "test", 1 + gx_random_next(&seed) % 5000, 1, 0, turn % 2, 2};
        shape.n_columns = 1 + (uint32_t)(gx_random_next(&seed) % 256);
        const uint32_t low = (uint32_t)(gx_random_next(&seed) % shape.n_columns);
        const uint32_t high = low + (uint32_t)(gx_random_next(&seed) % (shape.n_columns - low));
        bitmap_index *const ix = open_index(&shape, seed);
        uint32_t *const mask = malloc((shape.n_rows + 31) / 32 * 4);
        double seconds;
        gx_error err = {0};
        assert_non_null(mask);
        for (int e = 0; e < BITMAP_N_ENCODINGS; ++e) {
            const gx_status st = bitmap_gpu_range(ix, (bitmap_encoding)e, low, high, 2, false, mask, &seconds, &err);
            if (st == GX_ENOGPU)
                skip();
            if (st)
                fail_msg("%s", err.text);
            for (uint64_t row = 0; row < (shape.n_rows + 31) / 32 * 32; ++row)
                assert_int_equal(mask[row / 32] >> row % 32 & 1,
                                 row < shape.n_rows && ix->values[row] >= low && ix->values[row] <= high);
        }
        free(mask);
        bitmap_index_close(ix);
    }
}

typedef struct gpu_clients {
    bitmap_gpu *g;
    const bitmap_index *ix;
    const uint64_t *want;
    uint32_t n;
    atomic_uint answered, wrong;
} gpu_clients;

static void ask_gpu(void *user, uint32_t number)
{
    gpu_clients *const cs = user;
    uint64_t *const got = malloc(cs->ix->n_chunks * 8), seed = number;
    bitmap_client *c = NULL;
    gx_error err = {0};
    double seconds;
    if (got && bitmap_client_open(&c, cs->g, false, &err) == GX_OK)
        for (uint32_t turn = 0; turn < 8; ++turn) {
            const int pooled[] = {5, 6, 7, 8};
            const bitmap_plan plan = {&bitmap_configs[pooled[gx_random_next(&seed) % 4]], BITMAP_IDEAL_HYBRID,
                                      gx_random_next(&seed) % 4 == 0};
            if (bitmap_gpu_query(c, &plan, cs->n, 1, got, &seconds, NULL, NULL, &err) == GX_OK)
                atomic_fetch_add(&cs->answered, 1);
            if (memcmp(got, cs->want, cs->ix->n_chunks * 8) != 0)
                atomic_fetch_add(&cs->wrong, 1);
        }
    bitmap_client_close(c);
    free(got);
}

static void queries_of_many_clients_share_a_pool_too_small_for_one(void **state)
{
    (void)state;
    const bitmap_shape shape = {"test", "test", 500000, 4, 70, 1, 100};
    bitmap_index *const ix = open_index(&shape, new_seed());
    gpu_clients cs = {.ix = ix, .n = 60};
    cs.g = open_gpu(ix, 0, 60, 40);
    uint64_t *const want = expect(ix, 0, 60);
    cs.want = want;
    assert_int_equal(gx_parallel_run(64, ask_gpu, &cs), 64);
    assert_int_equal(cs.answered, 64 * 8);
    assert_int_equal(cs.wrong, 0);
    print_message("%llu waited\n", (unsigned long long)bitmap_gpu_waits(cs.g));
    bitmap_gpu_close(cs.g);
    free(want);
    bitmap_index_close(ix);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if GX_CUDA
        cmocka_unit_test(every_configuration_gives_the_rows_of_the_cpu),
        cmocka_unit_test(our_kernel_gives_the_rows_of_the_cpu),
        cmocka_unit_test(every_encoding_answers_ranges),
        cmocka_unit_test(queries_of_many_clients_share_a_pool_too_small_for_one),
#endif
        cmocka_unit_test(a_row_has_one_bin_of_each_attribute),
        cmocka_unit_test(shapes_compress_as_the_papers_data),
        cmocka_unit_test(every_way_of_a_cpu_gives_the_same_rows),
        cmocka_unit_test(a_hashed_pool_locks_or_fails),
        cmocka_unit_test(a_pool_too_small_serves_every_client),
    };
    if (getenv("GX_TEST_FILTER"))
        cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
