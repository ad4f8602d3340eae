/* The arrival times of an open loop. */
#include "query/replay/arrivals.h"

#include <math.h>
#include <unistd.h>

#include "tests/support/scratch.h"
#include "tests/support/test.h"

#define N_ARRIVALS 100000u
#define SEEDS 20u

static const char *path(void)
{
    return in_dir("trace");
}

static void write_trace(const char *text)
{
    FILE *f = fopen(path(), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static gx_replay_options options(gx_arrivals kind, double rate)
{
    gx_replay_options o = GX_REPLAY_OPTIONS;
    o.arrivals = kind;
    o.rate = rate;
    o.trace = kind == GX_ARRIVALS_TRACE ? path() : NULL;
    return o;
}

static gx_arrival_times opened(const gx_replay_options *o)
{
    gx_arrival_times a;
    gx_error err = {0};
    if (gx_arrivals_open(&a, o, &err) != GX_OK)
        fail_msg("%s", err.text);
    gx_arrivals_begin(&a, o->seed);
    return a;
}

static uint64_t take(gx_arrival_times *a)
{
    uint64_t ns = 0, again = 1;
    gx_error err = {0};
    assert_int_equal(gx_arrivals_next(a, &ns, &err), GX_OK);
    assert_int_equal(gx_arrivals_next(a, &again, &err), GX_OK); /* asking takes nothing */
    assert_int_equal(ns, again);
    gx_arrivals_advance(a);
    return ns;
}

static void a_fixed_rate_has_equal_distances(void **state)
{
    (void)state;
    gx_replay_options o = options(GX_ARRIVALS_FIXED, 1e6 / 3);
    gx_arrival_times a = opened(&o);
    for (uint64_t i = 0; i < N_ARRIVALS; ++i)
        assert_in_range(take(&a) + 1, 3000 * i, 3000 * i + 2); /* ns, rounded */
    gx_arrivals_close(&a);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: the greatest distance between the distribution of n samples and the
 * exponential one is above 1.95 / sqrt(n) once in a thousand sets of samples. The seeds are fixed,
 * so that the test's outcome is. */
static void gaps_of_a_poisson_process_are_exponential_and_independent(void **state)
{
    (void)state;
    static double gaps[N_ARRIVALS];
    const double rate = 250;
    for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
        gx_replay_options o = options(GX_ARRIVALS_POISSON, rate);
        o.seed = seed;
        gx_arrival_times a = opened(&o);
        double before = (double)take(&a), product = 0, mean = 1 / rate;
        assert_true(before == 0);
        for (uint32_t i = 0; i < N_ARRIVALS; ++i) {
            const double t = (double)take(&a);
            gaps[i] = (t - before) * 1e-9;
            before = t;
        }
        for (uint32_t i = 1; i < N_ARRIVALS; ++i)
            product += (gaps[i] - mean) * (gaps[i - 1] - mean);
        const double correlation = product / (N_ARRIVALS - 1) / (mean * mean);
        qsort(gaps, N_ARRIVALS, sizeof *gaps, by_value);
        double distance = 0;
        for (uint32_t i = 0; i < N_ARRIVALS; ++i) {
            const double f = 1 - exp(-rate * gaps[i]);
            distance = fmax(distance, fmax(fabs(f - (double)i / N_ARRIVALS), fabs(f - (i + 1.0) / N_ARRIVALS)));
        }
        if (distance > 1.95 / sqrt(N_ARRIVALS) || fabs(correlation) > 4 / sqrt(N_ARRIVALS))
            fail_msg("seed %llu: distance %g, correlation %g", (unsigned long long)seed, distance, correlation);
        gx_arrivals_close(&a);
    }
}

static void a_seed_gives_the_same_times_again(void **state)
{
    (void)state;
    gx_replay_options o = options(GX_ARRIVALS_POISSON, 1000);
    gx_arrival_times a = opened(&o), b = opened(&o), c = opened(&o);
    gx_arrivals_begin(&c, 99);
    uint32_t equal = 0;
    uint64_t first[1000];
    for (uint32_t i = 0; i < 1000; ++i) {
        first[i] = take(&a);
        assert_int_equal(take(&b), first[i]);
        equal += take(&c) == first[i];
    }
    assert_int_equal(equal, 1); /* the first, which arrives at once */
    gx_arrivals_begin(&a, o.seed);
    for (uint32_t i = 0; i < 1000; ++i)
        assert_int_equal(take(&a), first[i]);
    gx_arrivals_close(&a);
    gx_arrivals_close(&b);
    gx_arrivals_close(&c);
}

static void a_trace_gives_its_times_from_its_first(void **state)
{
    (void)state;
    gx_error err = {0};
    uint64_t ns;
    write_trace("# requests of a morning\n\n1700000000.5\n1700000000.5\n 1700000001.25 \n1700000004.5");
    gx_replay_options o = options(GX_ARRIVALS_TRACE, 0);
    gx_arrival_times a = opened(&o);
    static const uint64_t times[] = {0, 0, 750000000, 4000000000};
    for (size_t i = 0; i < 4; ++i)
        assert_int_equal(take(&a), times[i]);
    assert_int_equal(gx_arrivals_next(&a, &ns, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "has arrival times for 4 queries, and the log has more"));
    gx_arrivals_close(&a);
    o.rate = 1.5; /* 3 distances in 2 s, where the trace has 4 */
    a = opened(&o);
    for (size_t i = 0; i < 4; ++i)
        assert_int_equal(take(&a), times[i] / 2);
    gx_arrivals_close(&a);
}

static void bad_traces_and_options_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        double rate;
        gx_status st;
    } cases[] = {
        {"", "has no arrival time", 0, GX_EINPUT},
        {"# nothing\n", "has no arrival time", 0, GX_EINPUT},
        {"1\n2\nx\n", ":3: an arrival time is a number", 0, GX_EINPUT},
        {"1\n2 3\n", ":2: an arrival time is a number", 0, GX_EINPUT},
        {"nan\n", ":1: an arrival time is a number", 0, GX_EINPUT},
        {"1\ninf\n", ":2: an arrival time is a number", 0, GX_EINPUT},
        {"3\n\n2.5\n", ":3: the time 2.5 lies before that of the query before, 3", 0, GX_EINPUT},
        {"0\n1e300\n", ":2: the time 1e+300 lies more than", 0, GX_EINPUT},
        {"5\n5\n", "all queries arrive at the same time", 10, GX_EINPUT},
    };
    gx_arrival_times a;
    gx_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        write_trace(cases[i].text);
        gx_replay_options o = options(GX_ARRIVALS_TRACE, cases[i].rate);
        assert_int_equal(gx_arrivals_open(&a, &o, &err), cases[i].st);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, path()))
            fail_msg("case %zu: %s", i, err.text);
    }
    gx_replay_options o = options(GX_ARRIVALS_TRACE, 0);
    o.trace = "/nonexistent/trace";
    assert_int_equal(gx_arrivals_open(&a, &o, &err), GX_ENOTFOUND);
    o.trace = NULL;
    assert_int_equal(gx_arrivals_open(&a, &o, &err), GX_EUSAGE);
    o = options(GX_ARRIVALS_POISSON, 0);
    assert_int_equal(gx_arrivals_open(&a, &o, &err), GX_EUSAGE);
    o.rate = NAN;
    assert_int_equal(gx_arrivals_open(&a, &o, &err), GX_EUSAGE);
    o = options((gx_arrivals)3, 1);
    assert_int_equal(gx_arrivals_open(&a, &o, &err), GX_EUSAGE);
    o = options(GX_ARRIVALS_FIXED, 1);
    o.deadline = -1;
    assert_int_equal(gx_arrivals_open(&a, &o, &err), GX_EUSAGE);
    o.deadline = 0;
    o.trace = path();
    assert_int_equal(gx_arrivals_open(&a, &o, &err), GX_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_rate_has_equal_distances),
        cmocka_unit_test(gaps_of_a_poisson_process_are_exponential_and_independent),
        cmocka_unit_test(a_seed_gives_the_same_times_again),
        cmocka_unit_test(a_trace_gives_its_times_from_its_first),
        cmocka_unit_test(bad_traces_and_options_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
