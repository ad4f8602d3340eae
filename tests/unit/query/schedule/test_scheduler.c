/* The scheduler: queues, their order, batches, and that the same calls give the same decisions. */
#include "query/schedule/scheduler.h"

#include <unistd.h>

#include "query/schedule/decisions.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

#define US 1000u

static gx_scheduler_options usual(void)
{
    return (gx_scheduler_options){.bound = 64,
                                  .cpu_threads = 1,
                                  .gpu_threads = 2,
                                  .batch = 8,
                                  .batch_ns = 25 * US,
                                  .threshold = 2,
                                  .adapt = true,
                                  .urgent = 0.5,
                                  .patience_ns = 50000 * US};
}

static gx_scheduler *opened(const gx_scheduler_options *o)
{
    gx_scheduler *s;
    gx_error err = {0};
    if (gx_scheduler_open(&s, o, &err) != GX_OK)
        fail_msg("%s", err.text);
    return s;
}

/* A query that costs the CPU and the GPU so many us. */
static gx_schedule_job job(uint64_t number, uint64_t arrived, float cpu, float gpu_alone, float gpu)
{
    return (gx_schedule_job){number, arrived, 0, cpu * US, gpu_alone * US, gpu * US, -1};
}

static gx_schedule_group put(gx_scheduler *s, uint64_t now, const gx_schedule_job *j, uint32_t *slot)
{
    gx_schedule_group group;
    uint32_t at;
    assert_true(gx_scheduler_put(s, now, j, slot ? slot : &at, &group));
    return group;
}

/* What a processor takes next: its slot, or UINT32_MAX. */
static uint32_t taken(gx_scheduler *s, uint64_t now, gx_processor p, double *ns)
{
    uint32_t slot;
    return gx_scheduler_take(s, now, p, &slot, 1, ns) ? slot : UINT32_MAX;
}

static void a_query_goes_where_it_is_answered_much_sooner(void **state)
{
    (void)state;
    const gx_scheduler_options o = usual();
    gx_scheduler *s = opened(&o);
    const gx_schedule_job rare = job(0, 0, 3, 20, 1), common = job(1, 0, 900, 20, 1), between = job(2, 0, 20, 20, 10);
    assert_int_equal(put(s, 0, &rare, NULL), GX_GROUP_CPU);
    assert_int_equal(put(s, 0, &common, NULL), GX_GROUP_GPU);
    assert_int_equal(put(s, 0, &between, NULL), GX_GROUP_EITHER); /* both have something to do by now */
    gx_scheduler_close(s);
}

static void the_threshold_moves_towards_who_has_less_to_do(void **state)
{
    (void)state;
    gx_scheduler_options o = usual();
    for (int adapt = 0; adapt < 2; ++adapt) {
        uint64_t n[GX_N_GROUPS] = {0};
        o.adapt = adapt;
        gx_scheduler *s = opened(&o);
        for (uint32_t i = 0; i < 60; ++i) {
            const gx_schedule_job j = job(i, 0, 40, 30, 10);
            ++n[put(s, 0, &j, NULL)];
        }
        if (adapt) /* the GPU has much to do, and the CPU may have some of it */
            assert_true(n[GX_GROUP_GPU] > 5 && n[GX_GROUP_CPU] + n[GX_GROUP_EITHER] > 20);
        else
            assert_int_equal(n[GX_GROUP_GPU], 60);
        gx_scheduler_close(s);
    }
}

static void short_ones_go_first_then_deadline_then_affinity(void **state)
{
    (void)state;
    gx_scheduler_options o = usual();
    o.gpu_threads = 0;
    gx_scheduler *s = opened(&o);
    gx_schedule_job j[5] = {job(0, 0, 100, 1, 1), job(1, 0, 3, 1, 1), job(2, 0, 3, 1, 1), job(3, 0, 3, 1, 4),
                            job(4, 0, 20, 1, 1)};
    const uint32_t order[5] = {2, 3, 1, 4, 0};
    uint32_t slots[5];
    double ns;
    j[2].deadline = 10000 * US;
    for (int i = 0; i < 5; ++i)
        put(s, 0, &j[i], &slots[i]);
    for (int i = 0; i < 5; ++i)
        assert_int_equal(taken(s, 0, GX_PROCESSOR_CPU, &ns), slots[order[i]]);
    assert_int_equal(taken(s, 0, GX_PROCESSOR_CPU, &ns), UINT32_MAX);
    gx_scheduler_close(s);
}

static void one_near_its_deadline_goes_before_shorter_ones(void **state)
{
    (void)state;
    gx_scheduler_options o = usual();
    o.gpu_threads = 0;
    gx_scheduler *s = opened(&o);
    gx_schedule_job slow = job(0, 0, 1000, 1, 1), fast = job(1, 0, 1, 1, 1);
    uint32_t slow_slot, fast_slot;
    double ns;
    slow.deadline = fast.deadline = 5000 * US;
    for (int late = 0; late < 2; ++late) {
        put(s, 0, &slow, &slow_slot);
        if (late) /* half of its time has gone */
            fast.arrived = 2500 * US;
        put(s, fast.arrived, &fast, &fast_slot);
        assert_int_equal(taken(s, fast.arrived, GX_PROCESSOR_CPU, &ns), late ? slow_slot : fast_slot);
        assert_int_equal(taken(s, fast.arrived, GX_PROCESSOR_CPU, &ns), late ? fast_slot : slow_slot);
    }
    assert_int_equal(gx_scheduler_counts(s).urgent, 1);
    gx_scheduler_close(s);
}

static void a_free_processor_takes_the_oldest_of_the_third_queue_then_steals(void **state)
{
    (void)state;
    gx_scheduler_options o = usual();
    o.adapt = false;
    gx_scheduler *s = opened(&o);
    const gx_schedule_job first = job(0, 0, 900, 20, 1), second = job(1, 1, 900, 20, 1);
    gx_schedule_job either[3];
    uint32_t slot, slots[3], other;
    double ns;
    put(s, 0, &first, &slot);
    assert_int_equal(taken(s, 0, GX_PROCESSOR_GPU, &ns), slot); /* a batch of one is under way */
    put(s, 1, &second, &other);
    either[0] = job(5, 2, 1, 2, 0.1f); /* keeps the CPU from being free */
    put(s, 2, &either[0], &slot);
    for (int i = 0; i < 3; ++i) {
        either[i] = job(2 + (uint64_t)i, 2 + (uint64_t)i, 12, 20, 8);
        assert_int_equal(put(s, 2 + (uint64_t)i, &either[i], &slots[i]), GX_GROUP_EITHER);
    }
    assert_int_equal(taken(s, 10, GX_PROCESSOR_CPU, &ns), slot);
    for (int i = 0; i < 3; ++i)
        assert_int_equal(taken(s, 10, GX_PROCESSOR_CPU, &ns), slots[i]);
    /* The GPU is sooner through than the CPU with that one; without a GPU nobody is. */
    assert_int_equal(taken(s, 10, GX_PROCESSOR_CPU, &ns), UINT32_MAX);
    gx_scheduler_set_gpu(s, false);
    assert_int_equal(taken(s, 10, GX_PROCESSOR_CPU, &ns), other);
    assert_int_equal(gx_scheduler_counts(s).stolen, 1);
    gx_scheduler_close(s);
}

static void a_batch_closes_at_once_by_count_and_by_time(void **state)
{
    (void)state;
    const gx_scheduler_options o = usual();
    gx_scheduler *s = opened(&o);
    uint32_t slots[16];
    double ns, first;
    for (uint32_t i = 0; i < 3; ++i) {
        const gx_schedule_job j = job(i, 100, 900, 20, 1);
        put(s, 100, &j, NULL);
    }
    assert_int_equal(gx_scheduler_take(s, 100, GX_PROCESSOR_GPU, slots, 8, &first), 3); /* the GPU had nothing */
    assert_int_equal(gx_scheduler_next(s), UINT64_MAX);
    for (uint32_t i = 0; i < 7; ++i) {
        const gx_schedule_job j = job(i, 200 + i, 90000, 20, 1);
        put(s, 200 + i, &j, NULL);
    }
    assert_int_equal(gx_scheduler_next(s), 200 + 25 * US);
    assert_int_equal(gx_scheduler_take(s, 199 + 25 * US, GX_PROCESSOR_GPU, slots, 8, &ns), 0);
    const gx_schedule_job j = job(7, 300, 90000, 20, 1);
    put(s, 300, &j, NULL);
    assert_int_equal(gx_scheduler_take(s, 300, GX_PROCESSOR_GPU, slots, 8, &ns), 8); /* it is full */
    put(s, 400, &j, NULL);
    assert_int_equal(gx_scheduler_take(s, 90000 * US, GX_PROCESSOR_GPU, slots, 8, &ns), 0); /* two are under way */
    gx_scheduler_done(s, GX_PROCESSOR_GPU, first);
    assert_int_equal(gx_scheduler_take(s, 400 + 25 * US, GX_PROCESSOR_GPU, slots, 8, &ns), 1); /* it is old */
    assert_int_equal(gx_scheduler_counts(s).batches, 3);
    gx_scheduler_close(s);
}

static void a_full_queue_refuses_and_a_cancelled_query_makes_room(void **state)
{
    (void)state;
    gx_scheduler_options o = usual();
    o.bound = 4;
    gx_scheduler *s = opened(&o);
    gx_schedule_group group;
    uint32_t slots[4], slot;
    for (int round = 0; round < 50; ++round) { /* stale entries are dropped */
        for (uint32_t i = 0; i < 4; ++i) {
            const gx_schedule_job j = job(10 + i, 0, 900, 20, 1);
            put(s, 0, &j, &slots[i]);
        }
        const gx_schedule_job j = job(99, 0, 900, 20, 1);
        assert_false(gx_scheduler_put(s, 0, &j, &slot, &group));
        assert_int_equal(gx_scheduler_waiting(s), 4);
        assert_false(gx_scheduler_cancel(s, slots[2], 11));
        for (uint32_t i = 0; i < 4; ++i) {
            assert_true(gx_scheduler_cancel(s, slots[i], 10 + i));
            assert_false(gx_scheduler_cancel(s, slots[i], 10 + i));
        }
        assert_int_equal(gx_scheduler_waiting(s), 0);
    }
    gx_scheduler_close(s);
}

static void a_query_for_one_processor_is_taken_by_no_other(void **state)
{
    (void)state;
    const gx_scheduler_options o = usual();
    gx_scheduler *s = opened(&o);
    gx_schedule_job j = job(0, 0, 900000, 20, 1);
    double ns;
    uint32_t slot;
    j.only = GX_PROCESSOR_CPU;
    assert_int_equal(put(s, 0, &j, &slot), GX_GROUP_CPU);
    assert_int_equal(taken(s, 90000 * US, GX_PROCESSOR_GPU, &ns), UINT32_MAX);
    assert_int_equal(taken(s, 90000 * US, GX_PROCESSOR_CPU, &ns), slot);
    j.only = GX_PROCESSOR_GPU;
    j.cpu = 1;
    assert_int_equal(put(s, 90000 * US, &j, &slot), GX_GROUP_GPU);
    assert_int_equal(taken(s, 180000 * US, GX_PROCESSOR_CPU, &ns), UINT32_MAX);
    assert_int_equal(taken(s, 180000 * US, GX_PROCESSOR_GPU, &ns), slot);
    gx_scheduler_close(s);
}

static void impossible_options_are_refused(void **state)
{
    (void)state;
    gx_scheduler_options bad[5];
    for (int i = 0; i < 5; ++i)
        bad[i] = usual();
    bad[0].cpu_threads = bad[0].gpu_threads = 0;
    bad[1].bound = 0;
    bad[2].batch = 0;
    bad[3].threshold = 1;
    bad[4].urgent = 1.5;
    for (int i = 0; i < 5; ++i) {
        gx_scheduler *s;
        assert_int_equal(gx_scheduler_open(&s, &bad[i], NULL), GX_EUSAGE);
        assert_null(s);
    }
}

/* ---- random calls ---- */

typedef struct world {
    gx_scheduler *s;
    gx_scheduler_options opt;
    gen_rng rng;
    FILE *log;
    uint64_t now, n_put, n_left;
    uint64_t number_in[64]; /* by slot; 0: none */
    double underway[2][256];
    uint32_t n_underway[2];
} world;

static void leave(world *w, uint32_t slot)
{
    assert_true(slot < w->opt.bound && w->number_in[slot]); /* taken once */
    w->number_in[slot] = 0;
    ++w->n_left;
}

static void put_random(world *w)
{
    gx_schedule_job j = job(w->n_put + 1, w->now, 1 + (float)gen_below(&w->rng, 300), 5 + (float)gen_below(&w->rng, 60),
                            0.1f + (float)gen_below(&w->rng, 5));
    gx_schedule_group group;
    uint32_t slot;
    if (gen_below(&w->rng, 2))
        j.deadline = w->now + gen_below(&w->rng, 500) * US;
    j.only = gen_below(&w->rng, 10) ? -1 : (int8_t)gen_below(&w->rng, 2);
    if (!gx_scheduler_put(w->s, w->now, &j, &slot, &group)) {
        assert_int_equal(gx_scheduler_waiting(w->s), w->opt.bound);
        return;
    }
    gx_decisions_put(w->log, w->now, &j, slot, group);
    assert_int_equal(w->number_in[slot], 0);
    w->number_in[slot] = j.number;
    ++w->n_put;
}

static void take_random(world *w, gx_processor p)
{
    uint32_t slots[64];
    double ns;
    const uint32_t max = p == GX_PROCESSOR_GPU ? w->opt.batch : 1;
    const uint32_t n = gx_scheduler_take(w->s, w->now, p, slots, max, &ns);
    assert_true(n <= max);
    if (!n)
        return;
    gx_decisions_take(w->log, w->now, p, max, slots, n, ns);
    for (uint32_t i = 0; i < n; ++i)
        leave(w, slots[i]);
    w->underway[p][w->n_underway[p]++] = ns;
}

static void do_random(world *w)
{
    const gx_processor p = (gx_processor)gen_below(&w->rng, 2);
    const uint32_t slot = gen_below(&w->rng, w->opt.bound);
    w->now += gen_below(&w->rng, 20) * US;
    switch (gen_below(&w->rng, 8)) {
    case 0:
        if (w->n_underway[p]) {
            gx_scheduler_done(w->s, p, w->underway[p][--w->n_underway[p]]);
            gx_decisions_done(w->log, p, w->underway[p][w->n_underway[p]]);
        }
        break;
    case 1:
        if (gen_below(&w->rng, 5) == 0 && w->number_in[slot]) {
            assert_true(gx_scheduler_cancel(w->s, slot, w->number_in[slot]));
            gx_decisions_cancel(w->log, slot, w->number_in[slot]);
            leave(w, slot);
        }
        break;
    case 2:
        if (gen_below(&w->rng, 20) == 0) {
            const bool usable = gen_below(&w->rng, 2);
            gx_scheduler_set_gpu(w->s, usable);
            gx_decisions_gpu(w->log, usable);
        }
        break;
    case 3:
    case 4:
        if (w->n_underway[p] < (p == GX_PROCESSOR_CPU ? 200u : w->opt.gpu_threads))
            take_random(w, p);
        break;
    default:
        put_random(w);
    }
}

static void every_query_leaves_once_and_decisions_can_be_repeated(void **state)
{
    (void)state;
    char path[] = "/tmp/gpuidx-test-decisions-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (uint64_t seed = 1; seed <= 30; ++seed) {
        world w = {.opt = usual(), .rng = {seed}, .now = 1};
        gx_error err = {0};
        uint64_t n = 0;
        w.opt.adapt = seed % 2;
        w.opt.cpu_threads = 1 + seed % 3;
        w.s = opened(&w.opt);
        w.log = fopen(path, "w");
        gx_decisions_begin(w.log, &w.opt);
        for (int i = 0; i < 3000; ++i)
            do_random(&w);
        assert_int_equal(w.n_put, w.n_left + gx_scheduler_waiting(w.s));
        gx_scheduler_set_gpu(w.s, true);
        gx_decisions_gpu(w.log, true);
        for (int i = 0; i < 1000 && gx_scheduler_waiting(w.s); ++i) { /* nothing stays for ever */
            w.now += 100000 * US;
            for (int p = 0; p < 2; ++p) {
                while (w.n_underway[p]) {
                    gx_scheduler_done(w.s, (gx_processor)p, w.underway[p][--w.n_underway[p]]);
                    gx_decisions_done(w.log, (gx_processor)p, w.underway[p][w.n_underway[p]]);
                }
                take_random(&w, (gx_processor)p);
            }
        }
        if (gx_scheduler_waiting(w.s) || w.n_put != w.n_left)
            fail_msg("seed %d: %u queries wait for ever", (int)seed, gx_scheduler_waiting(w.s));
        fclose(w.log);
        gx_scheduler_close(w.s);
        if (gx_decisions_repeat(path, &n, &err) != GX_OK)
            fail_msg("seed %d: %s", (int)seed, err.text);
        assert_true(n > w.n_put);
    }
    unlink(path);
}

static void another_decision_in_a_log_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        gx_status st;
    } logs[] = {
        {"", GX_EINPUT},
        {"p 1\n", GX_EINPUT},
        {"o 4 1 1 8 25000 2 1 0.5 1000\n", GX_OK},
        {"o 4 1 1 8 25000 0.5 1 0.5 1000\n", GX_EINPUT},
        {"o 4 1 1 8 25000 2 1 0.5 1000\np 1 0 1 0 3000 20000 1000 -1 : 0 0\nt 1 0 1 : 3000 0\nd 0 3000\n", GX_OK},
        {"o 4 1 1 8 25000 2 1 0.5 1000\np 1 0 1 0 3000 20000 1000 -1 : 0 1\n", GX_EINTERNAL},
        {"o 4 1 1 8 25000 2 1 0.5 1000\np 1 0 1 0 3000 20000 1000 -1 : 0 0\nt 1 0 1 : 3000 1\n", GX_EINTERNAL},
        {"o 4 1 1 8 25000 2 1 0.5 1000\nt 1 0 1 : 3000 1\n", GX_EINTERNAL},
        {"o 4 1 1 8 25000 2 1 0.5 1000\nx\n", GX_EINPUT},
        {"o 4 1 1 8 25000 2 1 0.5 1000\nd 7 1\n", GX_EINPUT},
    };
    char path[] = "/tmp/gpuidx-test-decisions-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof logs / sizeof *logs; ++i) {
        uint64_t n;
        gx_error err = {0};
        FILE *f = fopen(path, "w");
        fputs(logs[i].text, f);
        fclose(f);
        const gx_status st = gx_decisions_repeat(path, &n, &err);
        if (st != logs[i].st)
            fail_msg("log %zu: status %d, %s", i, (int)st, err.text);
        assert_true(st == GX_OK || strstr(err.text, path));
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_goes_where_it_is_answered_much_sooner),
        cmocka_unit_test(the_threshold_moves_towards_who_has_less_to_do),
        cmocka_unit_test(short_ones_go_first_then_deadline_then_affinity),
        cmocka_unit_test(one_near_its_deadline_goes_before_shorter_ones),
        cmocka_unit_test(a_free_processor_takes_the_oldest_of_the_third_queue_then_steals),
        cmocka_unit_test(a_batch_closes_at_once_by_count_and_by_time),
        cmocka_unit_test(a_full_queue_refuses_and_a_cancelled_query_makes_room),
        cmocka_unit_test(a_query_for_one_processor_is_taken_by_no_other),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(every_query_leaves_once_and_decisions_can_be_repeated),
        cmocka_unit_test(another_decision_in_a_log_is_found),
    };
    return cmocka_run_group_tests_name("scheduler", tests, NULL, NULL);
}
