/* Threads: every number and every item is worked on once, whatever the number of threads. */
#include "engine/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "engine/thread_number.h"
#include "tests/support/test.h"

enum { N = 1000 };

typedef struct counts {
    atomic_uint of[N];
    atomic_uint unblocked; /* threads other than the caller's in which a signal is not blocked */
    pthread_t caller;
} counts;

static void count(void *user, uint32_t number)
{
    counts *c = user;
    sigset_t set;
    assert_true(number < N);
    atomic_fetch_add(&c->of[number], 1);
    if (!pthread_equal(pthread_self(), c->caller)) {
        pthread_sigmask(SIG_SETMASK, NULL, &set);
        atomic_fetch_add(&c->unblocked, !sigismember(&set, SIGINT) || !sigismember(&set, SIGTERM));
    }
}

static void check(const counts *c, uint32_t begin, uint32_t end)
{
    for (uint32_t i = 0; i < N; ++i)
        assert_int_equal(c->of[i], i >= begin && i < end);
    assert_int_equal(c->unblocked, 0);
}

static void works_on_every_item_once(void **state)
{
    (void)state;
    static const uint32_t threads[] = {0, 1, 2, 7, 64}, items[] = {0, 1, 2, 63, N};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; ++i)
        for (size_t j = 0; j < sizeof items / sizeof *items; ++j) {
            counts c = {.caller = pthread_self()};
            gx_parallel_for(threads[i], items[j], count, &c);
            check(&c, 0, items[j]);
        }
}

static void runs_every_number_once(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 40; ++n) {
        counts c = {.caller = pthread_self()};
        const uint32_t ran = gx_parallel_run(n, count, &c);
        assert_int_equal(ran, n ? n : 1); /* this test's system gives 40 threads */
        check(&c, 0, ran);
    }
}

static void starts_threads_from_the_number_given(void **state)
{
    (void)state;
    counts c = {.caller = pthread_self()};
    gx_threads *t = gx_threads_start(5, 3, count, &c);
    assert_non_null(t);
    assert_int_equal(gx_threads_count(t), 5);
    gx_threads_join(t);
    check(&c, 3, 8);
}

enum { N_NUMBERED = 100 };

static void note_number(void *user, uint32_t number)
{
    ((uint32_t *)user)[number] = gx_thread_number();
    if (gx_thread_number() != ((uint32_t *)user)[number])
        ((uint32_t *)user)[number] = UINT32_MAX; /* it has changed */
}

static void every_thread_has_a_number_of_its_own(void **state)
{
    (void)state;
    uint32_t numbers[N_NUMBERED];
    assert_int_equal(gx_parallel_run(N_NUMBERED, note_number, numbers), N_NUMBERED);
    assert_int_equal(gx_thread_number(), numbers[0]); /* the caller's own */
    for (uint32_t i = 0; i < N_NUMBERED; ++i) {
        assert_int_not_equal(numbers[i], UINT32_MAX);
        for (uint32_t j = 0; j < i; ++j)
            assert_int_not_equal(numbers[i], numbers[j]);
    }
}

static void starting_no_thread_is_nothing(void **state)
{
    (void)state;
    counts c = {.caller = pthread_self()};
    assert_null(gx_threads_start(0, 0, count, &c));
    assert_int_equal(gx_threads_count(NULL), 0);
    gx_threads_join(NULL);
    check(&c, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(works_on_every_item_once),
        cmocka_unit_test(runs_every_number_once),
        cmocka_unit_test(starts_threads_from_the_number_given),
        cmocka_unit_test(starting_no_thread_is_nothing),
        cmocka_unit_test(every_thread_has_a_number_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
