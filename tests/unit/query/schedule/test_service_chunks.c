/* Submissions of many queries, which pass a service's scheduler by: the same answers as a search, whoever gives them;
 * cancelling, closing, failures of the GPU. A second CPU engine poses as the GPU. */
#include "query/schedule/service_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "query/engine/session.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

enum { N_TERMS = 40, N_DOCS = 3000, K = 10, N_QUESTIONS = 512, BATCH = 64, LARGEST = 600 };

static char path[] = "/tmp/gpuidx-test-chunks-XXXXXX";
static gx_index *ix;
static gx_engine *cpu, *gpu;
static gx_executor gated_gpu;
static atomic_bool gate;          /* closed: runs of the GPU wait, */
static atomic_bool cpu_gate;      /* and threads of the CPU, when they have answered, */
static _Thread_local bool passes; /* but not this one */
static atomic_uint n_faults;      /* of the GPU, to be injected */
static atomic_uint n_runs;        /* of the GPU */

typedef struct question {
    char text[64];
    uint32_t docids[K], n; /* the answer of a search */
    double scores[K];
} question;

static question questions[N_QUESTIONS];

/* Waiting in a test has a limit beyond what any machine needs, so that what never comes is told. */
#define LONG_ENOUGH 100.0 /* s */

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){0, 100000}, NULL);
}

/* ---- engines ---- */

static void wait_at(atomic_bool *closed)
{
    while (atomic_load(closed))
        pause_shortly();
}

static gx_status run_gpu(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                         gx_error *err)
{
    wait_at(&gate);
    unsigned left = atomic_load(&n_faults);
    const bool fails = atomic_fetch_add(&n_runs, 1) % 4 == 3;
    while (fails && left && !atomic_compare_exchange_weak(&n_faults, &left, left - 1))
        ;
    if (fails && left) {
        err->status = GX_ECUDA;
        return GX_ECUDA;
    }
    return gx_executor_cpu.run(exec, plans, n, hits, work, err);
}

static void ask_all(void)
{
    gen_rng rng = {3};
    gx_session *session;
    gx_error err = {0};
    assert_int_equal(gx_session_open(&session, cpu, NULL), GX_OK);
    for (uint32_t i = 0; i < N_QUESTIONS; ++i) {
        question *q = &questions[i];
        for (uint32_t n = gen_below(&rng, 5); n; --n) {
            char term[16];
            gen_term_name(gen_below(&rng, N_TERMS + 2), term);
            strcat(strcat(q->text, " "), term);
        }
        const gx_query query = GX_TEXT_QUERY(q->text, strlen(q->text));
        const gx_query_options options = GX_QUERY_OPTIONS;
        const gx_results results = {sizeof results, q->docids, NULL, &q->n, NULL, q->scores};
        if (gx_search(session, &query, 1, &options, &results, &err))
            fail_msg("%s", err.text);
    }
    gx_session_close(session);
}

static int open_all(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    gen_collection *c = gen_open(8, GEN_CLUSTERED, N_DOCS, N_TERMS);
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    assert_true(close(mkstemp(path)) == 0);
    unlink(path);
    gated_gpu = gx_executor_cpu;
    gated_gpu.name = "gpu";
    gated_gpu.run = run_gpu;
    opt.kind = GX_ENGINE_CPU;
    if (gen_write(c, path, codec, codec, &err) || gx_index_open(&ix, path, NULL, &err) ||
        gx_engine_open(&cpu, ix, &opt, &err))
        fail_msg("%s", err.text);
    opt.kind = GX_ENGINE_GPU;
    if (gx_engine_open_with(&gpu, ix, &opt, &gated_gpu, &err))
        fail_msg("%s", err.text);
    gen_close(c);
    ask_all();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    gx_engine_close(gpu);
    gx_engine_close(cpu);
    gx_index_close(ix);
    return unlink(path);
}

/* ---- submissions ---- */

/* What has come of all submissions. */
static struct {
    atomic_uint right, wrong, cancelled, by[2], fallen;
} got;

static void on_answer(void *user, const gx_service_answer *a)
{
    const question *q = a->user;
    (void)user;
    const bool right = a->status == GX_OK && a->n_hits == q->n &&
                       memcmp(a->docids, q->docids, q->n * sizeof *q->docids) == 0 &&
                       memcmp(a->scores, q->scores, q->n * sizeof *q->scores) == 0;
    const bool cancelled = a->status == GX_ECANCELLED;
    atomic_fetch_add(right ? &got.right : cancelled ? &got.cancelled : &got.wrong, 1);
    if (!cancelled)
        atomic_fetch_add(&got.by[a->by], 1);
    atomic_fetch_add(&got.fallen, a->fell_back);
    if (!cancelled && a->by == GX_PROCESSOR_CPU && !passes)
        wait_at(&cpu_gate);
}

static gx_service *opened(uint32_t callers)
{
    gx_service_options o = GX_SERVICE_OPTIONS;
    gx_service *s;
    gx_error err = {0};
    memset(&got, 0, sizeof got);
    o.cpu = cpu;
    o.gpu = gpu;
    o.gpu_threads = 2;
    o.batch = BATCH;
    o.spin = 20e-6;
    o.retry = 1e-3;
    o.hang = 1e6; /* no one but the CPU's threads makes up for a GPU that waits at its gate */
    o.callers = callers;
    o.caller_seconds = 20e-6;
    o.answer = on_answer;
    if (gx_service_open(&s, &o, &err))
        fail_msg("%s", err.text);
    return s;
}

/* Submit n questions from number `at` on; returns the number of the first. */
static uint64_t submit(gx_service *s, uint32_t at, uint32_t n, double deadline)
{
    gx_query queries[LARGEST];
    void *users[LARGEST];
    uint64_t first = 0;
    gx_error err = {0};
    const gx_query_options options = GX_QUERY_OPTIONS;
    for (uint32_t i = 0; i < n; ++i) {
        question *q = &questions[(at + i) % N_QUESTIONS];
        queries[i] = (gx_query)GX_TEXT_QUERY(q->text, strlen(q->text));
        users[i] = q;
    }
    gx_submission sub = GX_SUBMISSION(queries, n, &options);
    sub.users = users;
    sub.deadline = deadline;
    while (gx_service_submit(s, &sub, &first, &err) == GX_EBUSY)
        pause_shortly();
    assert_int_equal(err.status, GX_OK);
    return first;
}

typedef struct submitter {
    gx_service *s;
    uint64_t seed;
    uint32_t n;
} submitter;

static void *submit_often(void *user)
{
    submitter *u = user;
    gen_rng rng = {u->seed};
    for (uint32_t i = 0; i < 40; ++i) {
        static const uint32_t most[] = {4, 12, 40, 300, LARGEST};
        const uint32_t n = 1 + gen_below(&rng, most[gen_below(&rng, 5)]);
        submit(u->s, gen_below(&rng, N_QUESTIONS), n, gen_below(&rng, 3) ? 0 : 1e-3);
        u->n += n;
    }
    return NULL;
}

/* Several threads submit at once; all answers are right. */
static void check_answers(uint64_t seed, uint32_t callers)
{
    enum { THREADS = 4 };
    gx_service *s = opened(callers);
    submitter u[THREADS];
    pthread_t threads[THREADS];
    gx_service_counts c;
    uint32_t n = 0;
    for (uint32_t i = 0; i < THREADS; ++i) {
        u[i] = (submitter){s, seed + i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, submit_often, &u[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
        n += u[i].n;
    }
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    do { /* on a busy machine the CPU may be first with all that came so far */
        submit(s, n, LARGEST, 0);
        n += LARGEST;
        gx_service_drain(s);
        gx_service_get_counts(s, &c);
    } while (!c.by[GX_PROCESSOR_GPU] && gx_clock_seconds() < end);
    if (atomic_load(&got.right) != n)
        fail_msg("seed %d: %u of %u answers are right", (int)seed, atomic_load(&got.right), n);
    assert_int_equal(c.submitted, n);
    assert_int_equal(c.answered, n);
    assert_int_equal(c.by[0], atomic_load(&got.by[0]));
    assert_int_equal(c.by[1], atomic_load(&got.by[1]));
    assert_int_equal(c.fell_back, atomic_load(&got.fallen));
    assert_true(c.by[1] > 0 && c.batches > 0);
    gx_service_close(s);
}

static void many_are_answered_as_a_search_does(void **state)
{
    (void)state;
    for (uint64_t seed = 10; seed < 40; seed += 10)
        check_answers(seed, 0);
}

static void callers_answer_some_of_many_as_a_search_does(void **state)
{
    (void)state;
    for (uint64_t seed = 50; seed < 80; seed += 10)
        check_answers(seed, 3);
}

static void faults_of_the_gpu_lose_none_of_many(void **state)
{
    (void)state;
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    atomic_store(&n_faults, 60);
    do {
        check_answers(100, 0);
        check_answers(200, 2);
    } while (atomic_load(&n_faults) == 60 && gx_clock_seconds() < end);
    assert_true(atomic_load(&n_faults) < 60);
    atomic_store(&n_faults, 0);
}

/* ---- what waits ---- */

static void set_gates(bool closed)
{
    atomic_store(&gate, closed);
    atomic_store(&cpu_gate, closed);
}

static void many_that_wait_can_be_cancelled(void **state)
{
    (void)state;
    enum { N = 100 };
    gen_rng rng = {5};
    for (uint32_t round = 0; round < 20; ++round) {
        set_gates(true);
        gx_service *s = opened(0);
        uint32_t n_cancelled = 0;
        uint64_t numbers[3 * N];
        for (uint32_t i = 0; i < 3; ++i) {
            const uint64_t first = submit(s, i * N, N, 0);
            for (uint32_t j = 0; j < N; ++j)
                numbers[i * N + j] = first + j;
        }
        for (uint32_t n = 3 * N; n > 3 * N / 2;) { /* half of them, in any order */
            const uint32_t i = gen_below(&rng, n);
            n_cancelled += gx_service_cancel(s, numbers[i]);
            assert_false(gx_service_cancel(s, numbers[i])); /* it waits no longer */
            numbers[i] = numbers[--n];
        }
        assert_int_equal(atomic_load(&got.cancelled), n_cancelled);
        assert_true(n_cancelled > 0);
        set_gates(false);
        gx_service_drain(s);
        assert_int_equal(atomic_load(&got.cancelled), n_cancelled);
        assert_int_equal(atomic_load(&got.right), 3 * N - n_cancelled);
        gx_service_close(s);
    }
}

/* Open the gates once the service closes, which waits for what stands at the gates. */
static void *open_the_gates_for_closing(void *user)
{
    gx_service *s = user;
    while (!atomic_load(&s->closing))
        pause_shortly();
    set_gates(false);
    return NULL;
}

static void closing_answers_many_that_wait_with_cancelled(void **state)
{
    (void)state;
    pthread_t opener;
    set_gates(true);
    gx_service *s = opened(0);
    for (uint32_t i = 0; i < 4; ++i)
        submit(s, i * 100, LARGEST, 0);
    assert_int_equal(pthread_create(&opener, NULL, open_the_gates_for_closing, s), 0);
    gx_service_close(s);
    pthread_join(opener, NULL);
    assert_int_equal(atomic_load(&got.wrong), 0);
    assert_int_equal(atomic_load(&got.right) + atomic_load(&got.cancelled), 4 * LARGEST);
    assert_true(atomic_load(&got.cancelled) > LARGEST);
}

/* While the GPU does not answer, the CPU's threads answer all but what fits into a few batches. */
static void the_cpu_helps_where_many_wait(void **state)
{
    (void)state;
    atomic_store(&gate, true);
    gx_service *s = opened(0);
    for (uint32_t i = 0; i < 4; ++i)
        submit(s, i, LARGEST, 0);
    const uint32_t held = 4 * BATCH; /* two threads of the GPU have a batch each, and fewer than a batch wait */
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    while (atomic_load(&got.right) < 4 * LARGEST - held && gx_clock_seconds() < end)
        pause_shortly();
    assert_in_range(atomic_load(&got.right), 4 * LARGEST - held, 4 * LARGEST);
    assert_int_equal(atomic_load(&got.by[GX_PROCESSOR_GPU]), 0);
    atomic_store(&gate, false);
    gx_service_drain(s);
    assert_int_equal(atomic_load(&got.right), 4 * LARGEST);
    gx_service_close(s);
}

static void wait_for_right(uint32_t n)
{
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    while (atomic_load(&got.right) < n && gx_clock_seconds() < end)
        pause_shortly();
    assert_int_equal(atomic_load(&got.right), n);
}

/* A few queries do not wait for a GPU that does not answer, though nothing comes after them. */
static void the_cpu_answers_a_few_that_wait_long(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 5; ++round) {
        set_gates(true);
        gx_service *s = opened(0);
        gx_service_counts c = {0};
        submit(s, 0, 3 * BATCH, 0);
        const double end = gx_clock_seconds() + LONG_ENOUGH;
        while (c.batches < 2 && gx_clock_seconds() < end) { /* both threads of the GPU have one */
            pause_shortly();
            gx_service_get_counts(s, &c);
        }
        assert_int_equal(c.batches, 2);
        const uint32_t stuck = (uint32_t)c.by[GX_PROCESSOR_GPU];
        atomic_store(&cpu_gate, false);
        wait_for_right(3 * BATCH - stuck);
        nanosleep(&(struct timespec){0, 5000000}, NULL); /* the CPU's thread sleeps by now */
        submit(s, 7, BATCH / 2, 0);
        wait_for_right(3 * BATCH - stuck + BATCH / 2);
        atomic_store(&gate, false);
        gx_service_drain(s);
        assert_int_equal(atomic_load(&got.right), 3 * BATCH + BATCH / 2);
        gx_service_close(s);
    }
}

static float cost_on(gx_processor p, const gx_service_job *job)
{
    return p == GX_PROCESSOR_CPU ? job->described.cpu : job->described.gpu;
}

/* Take queries as a thread of the processor does; the scheduler is told what they cost on that one. Answers them on
 * the CPU. */
static void take_and_check(gx_service *s, gx_processor p)
{
    double want = 0;
    uint32_t n = 0;
    gx_worker *w = gx_worker_open(s, p, 0);
    assert_non_null(w);
    assert_int_equal(gx_session_open(&w->session, cpu, NULL), GX_OK);
    do { /* the CPU takes a few when they are stale */
        pthread_mutex_lock(&s->lock);
        w->n = gx_worker_take(w, &w->ns);
        pthread_mutex_unlock(&s->lock);
    } while (!w->n);
    for (const gx_service_job *c = w->chunks; c; c = c->next_chunk) {
        for (const gx_service_job *job = c; job; job = job->next, ++n)
            want += cost_on(p, job);
    }
    assert_int_equal(w->n, n);
    assert_true(w->ns >= want * (1 - 1e-9) && w->ns <= want * (1 + 1e-9));
    gx_worker_answer(w);
    pthread_mutex_lock(&s->lock);
    gx_worker_end_work(w);
    pthread_mutex_unlock(&s->lock);
    gx_worker_close(w);
}

static void chunks_are_scheduled_by_their_costs_on_who_takes_them(void **state)
{
    (void)state;
    uint32_t n = 0, n_cancelled = 0;
    set_gates(true);
    passes = true;
    gx_service *s = opened(0);
    gx_service_counts c = {0};
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    while ((c.batches < 2 || c.by[GX_PROCESSOR_CPU] == 0) && gx_clock_seconds() < end) { /* all threads are busy */
        submit(s, n, BATCH, 0);
        n += BATCH;
        pause_shortly();
        gx_service_get_counts(s, &c);
    }
    assert_true(c.batches == 2 && c.by[GX_PROCESSOR_CPU] > 0);
    const uint64_t first = submit(s, 0, 60, 0);
    for (uint32_t i = 0; i < 60; i += 7)
        n_cancelled += gx_service_cancel(s, first + i);
    assert_true(n_cancelled > 0);
    for (uint32_t turn = 0; atomic_load(&s->n_chunked); ++turn)
        take_and_check(s, turn % 4 < 3 ? GX_PROCESSOR_CPU : GX_PROCESSOR_GPU);
    submit(s, 60, 21, 0);
    while (atomic_load(&s->n_chunked)) /* the last ones are all that is left of their chunk */
        take_and_check(s, GX_PROCESSOR_CPU);
    set_gates(false);
    gx_service_drain(s);
    assert_int_equal(atomic_load(&got.right) + n_cancelled, n + 60 + 21);
    passes = false;
    gx_service_close(s);
}

/* Pass some time without sleeping, so that threads are met at any step on their way to sleep. */
static void spin(gen_rng *rng, uint32_t most_ns)
{
    const uint64_t until = gx_service_now() + gen_below(rng, most_ns);
    while (gx_service_now() < until)
        ;
}

static void spin_until_right(uint32_t n)
{
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    while (atomic_load(&got.right) < n && gx_clock_seconds() < end)
        ;
    assert_int_equal(atomic_load(&got.right), n);
}

/* Where there is work for both threads of the GPU, both take it, though all of it was put while one of them polled. */
static void full_batches_are_taken_by_all_threads_of_the_gpu(void **state)
{
    (void)state;
    gen_rng rng = {7};
    gx_service *s = opened(0);
    gx_service_counts before, now;
    for (uint32_t round = 1; round <= 300; ++round) {
        gx_service_get_counts(s, &before);
        now = before;
        set_gates(true);
        submit(s, round, 3 * BATCH, 0);
        const double end = gx_clock_seconds() + LONG_ENOUGH;
        while (now.batches < before.batches + 2 && gx_clock_seconds() < end)
            gx_service_get_counts(s, &now);
        assert_int_equal(now.batches, before.batches + 2);
        set_gates(false);
        gx_service_drain(s);
        spin(&rng, 50000);
    }
    assert_int_equal(atomic_load(&got.right), 300 * 3 * BATCH);
    gx_service_close(s);
}

/* A few queries that are put while a thread of the CPU goes to sleep do not wait for a GPU that hangs. */
static void few_that_meet_a_cpu_on_its_way_to_sleep_are_answered(void **state)
{
    (void)state;
    gen_rng rng = {9};
    uint32_t n = 0;
    atomic_store(&gate, true);
    gx_service *s = opened(0);
    gx_service_counts c = {0};
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    while (c.batches < 2 && gx_clock_seconds() < end) { /* both threads of the GPU have one */
        submit(s, n, BATCH, 0);
        n += BATCH;
        pause_shortly();
        gx_service_get_counts(s, &c);
    }
    assert_int_equal(c.batches, 2);
    const uint32_t stuck = (uint32_t)c.by[GX_PROCESSOR_GPU];
    for (uint32_t round = 0; round < 2000; ++round) {
        wait_for_right(n - stuck);
        spin(&rng, 40000);
        submit(s, round, BATCH / 2, 0);
        n += BATCH / 2;
        spin_until_right(n - stuck);
    }
    atomic_store(&gate, false);
    gx_service_drain(s);
    assert_int_equal(atomic_load(&got.right), n);
    gx_service_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_are_answered_as_a_search_does),
        cmocka_unit_test(callers_answer_some_of_many_as_a_search_does),
        cmocka_unit_test(faults_of_the_gpu_lose_none_of_many),
        cmocka_unit_test(many_that_wait_can_be_cancelled),
        cmocka_unit_test(closing_answers_many_that_wait_with_cancelled),
        cmocka_unit_test(the_cpu_helps_where_many_wait),
        cmocka_unit_test(the_cpu_answers_a_few_that_wait_long),
        cmocka_unit_test(chunks_are_scheduled_by_their_costs_on_who_takes_them),
        cmocka_unit_test(full_batches_are_taken_by_all_threads_of_the_gpu),
        cmocka_unit_test(few_that_meet_a_cpu_on_its_way_to_sleep_are_answered),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
