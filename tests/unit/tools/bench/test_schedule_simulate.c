/* The simulation of queues: against what queueing theory says, and in the order that it must have. */
#include "tools/bench/schedule/schedule_simulate.h"

#include <math.h>

#include "tests/support/gen.h"
#include "tests/support/test.h"

enum { N_COSTS = 400 };

/* Costs of which neither processor is better for all. */
static void draw_costs(sim_cost *costs)
{
    gen_rng rng = {3};
    for (int i = 0; i < N_COSTS; ++i) {
        const double work = gen_below(&rng, 1000) * 1e4;
        costs[i] = (sim_cost){0.3e6 + 2 * work, 3e6 + 0.3 * work, 0.2e6};
    }
}

static sim_options usual(const sim_cost *costs, size_t n, double rate)
{
    return (sim_options){.costs = costs,
                         .n_costs = n,
                         .rate = rate,
                         .n_queries = 200000,
                         .seed = 5,
                         .cpu_threads = 1,
                         .batch = 64,
                         .fixed = 3e6,
                         .batch_wait = 1e5,
                         .deadline = 1e18,
                         .error = 0.2};
}

static sim_result ran(sim_system system, const sim_options *o)
{
    sim_result r;
    assert_int_equal(sim_run(&r, system, o, NULL), GX_OK);
    return r;
}

static void assert_near(double a, double b, double most)
{
    if (!(fabs(a / b - 1) <= most))
        fail_msg("%g is not %g", a, b);
}

/* Pollaczek and Khinchine: with constant service time s and load p the mean delay is
 * s + p s / (2 (1 - p)). */
static void mean_delays_are_those_of_theory(void **state)
{
    (void)state;
    const sim_cost cost = {1e6, 2e6, 1e6};
    for (int i = 1; i <= 8; ++i) {
        const double load = 0.1 * i;
        const sim_options cpu = usual(&cost, 1, 1000 * load), gpu = usual(&cost, 1, 500 * load);
        assert_near(ran(SIM_CPU, &cpu).mean, 1e6 * (1 + load / (2 * (1 - load))), 0.03);
        assert_near(ran(SIM_GPU, &gpu).mean, 2e6 * (1 + load / (2 * (1 - load))), 0.03);
        assert_near(ran(SIM_SERIAL, &cpu).mean, 1e6 * (1 + load / (2 * (1 - load))), 0.03);
    }
}

/* At a low rate every query finds all idle, and is answered by the better processor. */
static void without_load_a_delay_is_the_lesser_cost(void **state)
{
    (void)state;
    sim_cost costs[N_COSTS];
    draw_costs(costs);
    sim_options o = usual(costs, N_COSTS, 0.01);
    o.n_queries = 20000;
    o.error = 0;
    double least = 0;
    for (int i = 0; i < N_COSTS; ++i)
        least += fmin(costs[i].cpu, costs[i].alone) / N_COSTS;
    assert_near(ran(SIM_SERIAL, &o).mean, least, 0.02);
    assert_near(ran(SIM_PARALLEL, &o).mean, least, 0.02);
    assert_near(ran(SIM_HYBRID, &o).mean, least, 0.02);
}

static void both_in_parallel_carry_most(void **state)
{
    (void)state;
    sim_cost costs[N_COSTS];
    double rates[N_SIM_SYSTEMS];
    draw_costs(costs);
    sim_options o = usual(costs, N_COSTS, 0);
    o.n_queries = 5000;
    o.deadline = 500e6;
    for (int s = 0; s < N_SIM_SYSTEMS; ++s) {
        o.cpu_threads = s == SIM_HYBRID ? 16 : 1;
        assert_int_equal(sim_find_rate(&rates[s], (sim_system)s, &o, 1, NULL), GX_OK);
    }
    assert_true(rates[SIM_SERIAL] > rates[SIM_CPU] && rates[SIM_SERIAL] > rates[SIM_GPU]);
    assert_true(rates[SIM_PARALLEL] > 1.2 * rates[SIM_SERIAL]);
    assert_true(rates[SIM_PARALLEL] > 2 * rates[SIM_CPU]);
    assert_true(rates[SIM_BATCHES] > 2 * rates[SIM_GPU]);
    assert_true(rates[SIM_HYBRID] > rates[SIM_BATCHES]);
}

static void more_threads_carry_more(void **state)
{
    (void)state;
    const sim_cost cost = {4e6, 1e12, 1e12};
    sim_options o = usual(&cost, 1, 0);
    double one, four;
    o.n_queries = 5000;
    o.deadline = 200e6;
    assert_int_equal(sim_find_rate(&one, SIM_CPU, &o, 1, NULL), GX_OK);
    o.cpu_threads = 4;
    assert_int_equal(sim_find_rate(&four, SIM_CPU, &o, 1, NULL), GX_OK);
    assert_near(four / one, 4, 0.15);
}

/* So fast that 500 queries take less than the deadline together. */
static void queries_that_are_fast_are_not_carried_at_any_rate(void **state)
{
    (void)state;
    sim_cost costs[N_COSTS];
    double rate, cpu = 0, gpu = 0, least = 0;
    for (int i = 0; i < N_COSTS; ++i) {
        costs[i] = (sim_cost){i % 2 ? 5e3 : 1e5, i % 2 ? 1e5 : 2e4, 1e4};
        cpu += costs[i].cpu / N_COSTS;
        gpu += costs[i].alone / N_COSTS;
        least += fmin(costs[i].cpu, costs[i].alone) / N_COSTS;
    }
    sim_options o = usual(costs, N_COSTS, 0);
    o.n_queries = 500;
    o.deadline = 12e6;
    const double most[] = {1e9 / cpu, 1e9 / gpu, 1e9 / least, 2e9 / least};
    for (int s = SIM_CPU; s <= SIM_PARALLEL; ++s) {
        assert_int_equal(sim_find_rate(&rate, (sim_system)s, &o, 1000, NULL), GX_OK);
        if (!(rate > 0.5 * most[s] && rate < 1.08 * most[s]))
            fail_msg("%s carries %g queries a second of %g", sim_system_name((sim_system)s), rate, most[s]);
    }
}

static void a_run_ends_at_its_first_late_query_and_repeats(void **state)
{
    (void)state;
    sim_cost costs[N_COSTS];
    draw_costs(costs);
    sim_options o = usual(costs, N_COSTS, 5000);
    o.deadline = 100e6;
    for (int s = 0; s < N_SIM_SYSTEMS; ++s) {
        const sim_result a = ran((sim_system)s, &o), b = ran((sim_system)s, &o);
        assert_memory_equal(&a, &b, sizeof a);
        if (s == SIM_CPU || s == SIM_GPU || s == SIM_SERIAL)
            assert_true(a.late && a.n_answered < o.n_queries && a.most > o.deadline);
    }
    o.rate = 1;
    const sim_result r = ran(SIM_PARALLEL, &o);
    assert_true(!r.late && r.n_answered == o.n_queries && r.most <= o.deadline && r.p99 <= r.most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_delays_are_those_of_theory),
        cmocka_unit_test(without_load_a_delay_is_the_lesser_cost),
        cmocka_unit_test(both_in_parallel_carry_most),
        cmocka_unit_test(more_threads_carry_more),
        cmocka_unit_test(queries_that_are_fast_are_not_carried_at_any_rate),
        cmocka_unit_test(a_run_ends_at_its_first_late_query_and_repeats),
    };
    return cmocka_run_group_tests_name("schedule_simulate", tests, NULL, NULL);
}
