/* The list cache: each rule against a plain simulation of its definition, places in the pool, readers,
 * plans, threads. GX_TEST_SEED chooses other sequences. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/random.h"
#include "tests/support/residency_rules.h"
#include "tests/support/test.h"

enum { N_LISTS = 300, SLACK = 64, POOL = 40 * GX_RESIDENCY_UNIT };

static uint64_t seed = 11;

static uint32_t below(uint64_t *random, uint32_t n)
{
    return (uint32_t)((gx_random_next(random) >> 33) % n);
}

/* Few lists often, many seldom. */
static uint32_t draw(uint64_t *random)
{
    uint32_t n = N_LISTS;
    while (n > 4 && below(random, 4))
        n /= 2;
    return below(random, n);
}

static uint64_t size_in(const void *user, uint32_t list)
{
    return ((const uint32_t *)user)[list];
}

static gx_residency *open_cache(int rule, uint64_t bytes, const uint32_t *sizes, uint64_t halve_after)
{
    const gx_residency_options opt = {residency_rule(rule), bytes, N_LISTS, SLACK, halve_after, size_in, sizes};
    gx_residency *r;
    gx_error err = {0};
    if (gx_residency_open(&r, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return r;
}

/* Use a list outside of a batch, and admit what was missed. */
static bool use(gx_residency *r, gx_residency_reader *reader, uint32_t list)
{
    gx_residency_copy copies[8];
    const bool there = gx_residency_use(r, reader, list, gx_residency_tick(r));
    assert_int_equal(there, gx_residency_find(r, list) != GX_NOT_RESIDENT);
    const uint32_t n = gx_residency_admit(r, reader, UINT64_MAX, copies, 8);
    for (uint32_t i = 0; i < n; ++i)
        gx_residency_arrive(r, &copies[i], true);
    return there;
}

/* ---- a plain simulation ---- */

typedef struct plain {
    int policy;
    const uint32_t *sizes;
    uint64_t capacity, used;
    uint32_t f[N_LISTS], time[N_LISTS], now;
    bool in[N_LISTS];
    double credit[N_LISTS], floor;
} plain;

static double plain_worth(const plain *p, uint32_t x)
{
    return p->floor + (p->policy == RESIDENCY_GDSF ? p->f[x] : 1.) / p->sizes[x];
}

static double plain_key(const plain *p, uint32_t x)
{
    return p->policy == RESIDENCY_LRU ? p->time[x] : p->policy == RESIDENCY_LFU ? p->f[x] : p->credit[x];
}

static uint32_t plain_victim(const plain *p)
{
    uint32_t v = N_LISTS;
    for (uint32_t i = 0; i < N_LISTS; ++i) {
        if (p->in[i] && (v == N_LISTS || plain_key(p, i) < plain_key(p, v) ||
                         (plain_key(p, i) == plain_key(p, v) && p->time[i] < p->time[v])))
            v = i;
    }
    return v;
}

/* bytes: what the list takes of the capacity. */
static bool plain_use(plain *p, uint32_t x, uint64_t bytes, const uint64_t *all_bytes)
{
    ++p->now;
    ++p->f[x];
    if (p->in[x]) {
        p->time[x] = p->now;
        p->credit[x] = plain_worth(p, x);
        return true;
    }
    while (p->used + bytes > p->capacity) {
        const uint32_t v = plain_victim(p);
        const double worth = plain_worth(p, x);
        if (p->policy == RESIDENCY_LFU && p->f[x] < p->f[v])
            return false;
        if (p->policy == RESIDENCY_GDSF || p->policy == RESIDENCY_LANDLORD) {
            const double least = worth < p->credit[v] ? worth : p->credit[v];
            if (least > p->floor)
                p->floor = p->policy == RESIDENCY_GDSF ? p->floor + (least - p->floor) / 4096 : least;
            if (worth < p->credit[v])
                return false;
        }
        p->in[v] = false;
        p->used -= all_bytes[v];
    }
    p->in[x] = true;
    p->used += bytes;
    p->time[x] = p->now;
    p->credit[x] = plain_worth(p, x);
    return false;
}

static void sizes_between(uint32_t *sizes, uint64_t *random, uint32_t least, uint32_t most)
{
    for (uint32_t i = 0; i < N_LISTS; ++i)
        sizes[i] = least + below(random, most - least + 1);
}

static uint64_t taken(uint32_t size)
{
    return (size + SLACK + GX_RESIDENCY_UNIT - 1ull) / GX_RESIDENCY_UNIT * GX_RESIDENCY_UNIT;
}

/* Lists of one unit each, so that any place suits any list: the same lists are there after each use. */
static void policies_do_what_a_plain_simulation_does(void **state)
{
    (void)state;
    for (int policy = 0; policy < RESIDENCY_STATIC; ++policy) {
        uint64_t random = seed + (uint64_t)policy, bytes[N_LISTS];
        uint32_t sizes[N_LISTS], n_hits = 0;
        static plain p;
        p = (plain){.policy = policy, .sizes = sizes, .capacity = POOL};
        sizes_between(sizes, &random, 1, GX_RESIDENCY_UNIT - SLACK);
        for (uint32_t i = 0; i < N_LISTS; ++i)
            bytes[i] = taken(sizes[i]);
        gx_residency *r = open_cache(p.policy, POOL + 100, sizes, 0);
        gx_residency_reader *reader = gx_residency_reader_open(r);
        for (uint32_t turn = 0; turn < 20000; ++turn) {
            /* what is used often changes midway */
            const uint32_t x = (draw(&random) + (turn > 10000 ? 150 : 0)) % N_LISTS;
            const bool want = plain_use(&p, x, bytes[x], bytes), got = use(r, reader, x);
            n_hits += got;
            if (got != want)
                fail_msg("seed %llu, policy %d, use %u: list %u is %sthere", (unsigned long long)seed, policy, turn, x,
                         got ? "" : "not ");
            for (uint32_t i = 0; turn % 100 == 0 && i < N_LISTS; ++i)
                assert_int_equal(p.in[i], gx_residency_find(r, i) != GX_NOT_RESIDENT);
        }
        assert_in_range(n_hits, 6000, 19000);
        assert_true(gx_residency_get_counts(r).evicted > 10);
        gx_residency_reader_close(r, reader);
        gx_residency_close(r);
    }
}

/* Lists of many sizes, where the pool is divided: nearly as many hits as if it were not. */
static void a_divided_pool_costs_few_hits(void **state)
{
    (void)state;
    for (int policy = 0; policy < RESIDENCY_STATIC; ++policy) {
        uint64_t random = seed + 50 + (uint64_t)policy, bytes[N_LISTS];
        uint32_t sizes[N_LISTS], n_hits = 0, n_plain = 0;
        static plain p;
        p = (plain){.policy = policy, .sizes = sizes, .capacity = 20 * POOL};
        for (uint32_t i = 0; i < N_LISTS; ++i) {
            sizes[i] = 1 + (below(&random, 16000) >> below(&random, 8));
            bytes[i] = taken(sizes[i]);
        }
        gx_residency *r = open_cache(p.policy, p.capacity, sizes, 0);
        gx_residency_reader *reader = gx_residency_reader_open(r);
        for (uint32_t turn = 0; turn < 20000; ++turn) {
            const uint32_t x = draw(&random);
            n_plain += plain_use(&p, x, bytes[x], bytes);
            n_hits += use(r, reader, x);
            assert_true(gx_residency_get_counts(r).bytes <= p.capacity);
        }
        if (n_hits < 0.8 * n_plain)
            fail_msg("seed %llu, policy %d: %u hits, not %u", (unsigned long long)seed, policy, n_hits, n_plain);
        gx_residency_reader_close(r, reader);
        gx_residency_close(r);
    }
}

/* ---- places ---- */

static void a_place_that_a_reader_may_read_is_not_given_away(void **state)
{
    (void)state;
    uint32_t sizes[N_LISTS];
    gx_residency_copy copies[8];
    for (uint32_t i = 0; i < N_LISTS; ++i)
        sizes[i] = GX_RESIDENCY_UNIT - SLACK;
    gx_residency *r = open_cache(RESIDENCY_LRU, 4 * GX_RESIDENCY_UNIT, sizes, 0);
    gx_residency_reader *in = gx_residency_reader_open(r), *out = gx_residency_reader_open(r);
    for (uint32_t i = 0; i < 4; ++i)
        assert_false(use(r, out, i));
    gx_residency_enter(r, in);
    const uint64_t first = gx_residency_find(r, 0);
    assert_true(first != GX_NOT_RESIDENT);
    for (uint32_t i = 4; i < 40; ++i) { /* list 0 and others leave; nothing comes in their place */
        assert_false(gx_residency_use(r, out, i, gx_residency_tick(r)));
        assert_int_equal(gx_residency_admit(r, out, UINT64_MAX, copies, 8), 0);
    }
    assert_int_equal(gx_residency_find(r, 0), GX_NOT_RESIDENT);
    gx_residency_leave(r, in);
    gx_residency_enter(r, in); /* it came back later, and cannot have found list 0 */
    assert_true(gx_residency_admit(r, out, UINT64_MAX, copies, 1) == 1);
    assert_int_equal(copies[0].list, 4); /* the first that waited */
    assert_int_equal(copies[0].at, first);
    assert_int_equal(gx_residency_find(r, 4), GX_NOT_RESIDENT); /* it is on its way */
    gx_residency_arrive(r, &copies[0], true);
    assert_int_equal(gx_residency_find(r, 4), first);
    gx_residency_reader_close(r, in);
    gx_residency_reader_close(r, out);
    gx_residency_close(r);
}

static void a_copy_that_failed_leaves_its_place_to_others(void **state)
{
    (void)state;
    uint32_t sizes[N_LISTS];
    gx_residency_copy copies[2];
    for (uint32_t i = 0; i < N_LISTS; ++i)
        sizes[i] = 900;
    gx_residency *r = open_cache(RESIDENCY_GDSF, 1024, sizes, 0);
    gx_residency_reader *reader = gx_residency_reader_open(r);
    for (int turn = 0; turn < 3; ++turn) {
        gx_residency_use(r, reader, 7, gx_residency_tick(r));
        assert_int_equal(gx_residency_admit(r, reader, UINT64_MAX, copies, 2), 1);
        gx_residency_use(r, reader, 7, gx_residency_tick(r));
        assert_int_equal(gx_residency_admit(r, reader, UINT64_MAX, copies + 1, 1), 0); /* it comes once */
        gx_residency_arrive(r, &copies[0], turn == 2);
    }
    assert_int_equal(gx_residency_find(r, 7), 0);
    assert_int_equal(gx_residency_get_counts(r).bytes, 900);
    sizes[8] = 1000; /* larger than the pool, with its slack */
    assert_false(use(r, reader, 8));
    assert_false(use(r, reader, 8));
    gx_residency_reader_close(r, reader);
    gx_residency_close(r);
}

static void halving_forgets_what_was_used_long_ago(void **state)
{
    (void)state;
    uint32_t sizes[N_LISTS];
    for (uint32_t i = 0; i < N_LISTS; ++i)
        sizes[i] = 100;
    for (int halves = 0; halves < 2; ++halves) {
        gx_residency *r = open_cache(RESIDENCY_GDSF, GX_RESIDENCY_UNIT, sizes, halves ? 50 : 0);
        gx_residency_reader *reader = gx_residency_reader_open(r);
        for (uint32_t i = 0; i < 301; ++i)
            use(r, reader, 1);
        for (uint32_t i = 0; i < 200; ++i)
            use(r, reader, 2);
        assert_int_equal(gx_residency_find(r, 2) != GX_NOT_RESIDENT, halves);
        gx_residency_reader_close(r, reader);
        gx_residency_close(r);
    }
}

/* ---- plans ---- */

static uint32_t copy_plan(gx_residency *r)
{
    gx_residency_copy copies[3];
    uint32_t n, all = 0;
    while ((n = gx_residency_next_planned(r, copies, 3)) > 0) {
        for (uint32_t i = 0; i < n; ++i)
            gx_residency_arrive(r, &copies[i], true);
        all += n;
    }
    return all;
}

static void a_plan_fills_the_pool_with_the_best_lists(void **state)
{
    (void)state;
    uint32_t sizes[N_LISTS], counts[N_LISTS] = {0};
    gx_error err;
    for (uint32_t i = 0; i < N_LISTS; ++i)
        sizes[i] = i < 10 ? 400 : 1900; /* two units; eight */
    counts[3] = 10;
    counts[5] = 9;
    counts[20] = 30; /* the most uses, but fewer a byte */
    counts[21] = 1;
    for (int policy = 0; policy < N_RESIDENCY_RULES; ++policy) {
        gx_residency *r = open_cache(policy, 11 * GX_RESIDENCY_UNIT, sizes, 0);
        assert_int_equal(gx_residency_plan(r, counts, &err), GX_OK);
        assert_true(copy_plan(r) > 0);
        assert_int_equal(gx_residency_find(r, 20), GX_NOT_RESIDENT);
        assert_true(gx_residency_find(r, 3) != GX_NOT_RESIDENT);
        assert_true(gx_residency_find(r, 5) != GX_NOT_RESIDENT);
        assert_int_equal(gx_residency_find(r, 4), GX_NOT_RESIDENT);
        gx_residency_close(r);
    }
}

static void a_static_choice_stays_until_the_next_plan(void **state)
{
    (void)state;
    uint32_t sizes[N_LISTS], counts[N_LISTS] = {0};
    gx_error err;
    for (uint32_t i = 0; i < N_LISTS; ++i)
        sizes[i] = 1000 - i;
    gx_residency *r = open_cache(RESIDENCY_STATIC, 8 * GX_RESIDENCY_UNIT, sizes, 0);
    gx_residency_reader *reader = gx_residency_reader_open(r);
    assert_int_equal(gx_residency_plan(r, NULL, &err), GX_OK);
    assert_int_equal(copy_plan(r), 2); /* four units each */
    for (int turn = 0; turn < 50; ++turn) {
        assert_false(use(r, reader, 1)); /* never comes */
        assert_true(use(r, reader, N_LISTS - 1));
        assert_true(use(r, reader, N_LISTS - 2)); /* the shortest are there */
    }
    counts[1] = 1000;
    assert_int_equal(gx_residency_plan(r, counts, &err), GX_OK);
    assert_int_equal(copy_plan(r), 2);
    assert_true(use(r, reader, 1));
    assert_true(use(r, reader, N_LISTS - 1));
    assert_false(use(r, reader, N_LISTS - 2));
    gx_residency_reader_close(r, reader);
    gx_residency_close(r);
}

/* ---- threads ---- */

enum { N_THREADS = 4, THREAD_POOL = 60 * GX_RESIDENCY_UNIT };

typedef struct shared {
    gx_residency *r;
    uint32_t sizes[N_LISTS];
    uint8_t pool[THREAD_POOL];
    uint32_t wrong, hits; /* atomic */
} shared;

typedef struct worker {
    pthread_t thread;
    shared *s;
    uint64_t random;
} worker;

/* A batch: what it finds must hold the list's bytes until it leaves. */
static void read_lists(shared *s, gx_residency_reader *reader, uint64_t *random)
{
    uint64_t at[20];
    uint32_t lists[20];
    gx_residency_enter(s->r, reader);
    for (uint32_t i = 0; i < 20; ++i) {
        lists[i] = draw(random);
        (void)gx_residency_use(s->r, reader, lists[i], gx_residency_tick(s->r));
        at[i] = gx_residency_find(s->r, lists[i]);
    }
    for (uint32_t i = 0; i < 20; ++i) {
        if (at[i] == GX_NOT_RESIDENT)
            continue;
        __atomic_fetch_add(&s->hits, 1, __ATOMIC_RELAXED);
        for (uint32_t b = 0; b < s->sizes[lists[i]]; ++b) {
            if (__atomic_load_n(&s->pool[at[i] + b], __ATOMIC_RELAXED) != (uint8_t)lists[i])
                __atomic_fetch_add(&s->wrong, 1, __ATOMIC_RELAXED);
        }
    }
    gx_residency_leave(s->r, reader);
}

static void *work(void *user)
{
    worker *w = user;
    shared *s = w->s;
    gx_residency_reader *reader = gx_residency_reader_open(s->r);
    gx_residency_copy copies[6];
    for (uint32_t turn = 0; turn < 4000; ++turn) {
        const uint32_t n = gx_residency_admit(s->r, reader, 3000, copies, 6);
        for (uint32_t i = 0; i < n; ++i) {
            for (uint32_t b = 0; b < copies[i].bytes; ++b)
                __atomic_store_n(&s->pool[copies[i].at + b], (uint8_t)copies[i].list, __ATOMIC_RELAXED);
            gx_residency_arrive(s->r, &copies[i], true);
        }
        read_lists(s, reader, &w->random);
    }
    gx_residency_reader_close(s->r, reader);
    return NULL;
}

static void threads_find_whole_lists(void **state)
{
    (void)state;
    for (int policy = 0; policy < RESIDENCY_STATIC; ++policy) {
        static shared s;
        worker workers[N_THREADS];
        memset(&s, 0, sizeof s);
        uint64_t random = seed + 90;
        sizes_between(s.sizes, &random, 1, 2000);
        s.r = open_cache(policy, THREAD_POOL, s.sizes, 0);
        for (uint32_t i = 0; i < N_THREADS; ++i) {
            workers[i] = (worker){.s = &s, .random = seed + 91 + i};
            assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (uint32_t i = 0; i < N_THREADS; ++i)
            pthread_join(workers[i].thread, NULL);
        assert_int_equal(s.wrong, 0);
        assert_true(s.hits > 10000);
        assert_true(gx_residency_get_counts(s.r).evicted > 10);
        gx_residency_close(s.r);
    }
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_do_what_a_plain_simulation_does),
        cmocka_unit_test(a_divided_pool_costs_few_hits),
        cmocka_unit_test(a_place_that_a_reader_may_read_is_not_given_away),
        cmocka_unit_test(a_copy_that_failed_leaves_its_place_to_others),
        cmocka_unit_test(halving_forgets_what_was_used_long_ago),
        cmocka_unit_test(a_plan_fills_the_pool_with_the_best_lists),
        cmocka_unit_test(a_static_choice_stays_until_the_next_plan),
        cmocka_unit_test(threads_find_whole_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
