/* The service: the same answers as a search, whoever gives them; full queues, cancelling, draining,
 * closing, failures of the GPU, decisions, and replays through it.
 *
 * Where there is a GPU, or an emulated one, it answers; else a second CPU engine poses as one. */
#include "query/schedule/service_state.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "engine/clock.h"
#include "query/engine/session.h"
#include "query/replay/replay.h"
#include "tests/support/faults.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

#define N_TERMS 40u
#define N_DOCS 3000u
#define MAX_K 20u

static char dir[] = "/tmp/gpuidx-test-service-XXXXXX";
static gx_index *ix;
static gx_engine *cpu, *gpu; /* gpu: a real one, or the faulty one without faults */
static gx_engine *faulty;    /* poses as a GPU */
static gx_executor faulty_executor;
static atomic_uint n_faults; /* that are to be injected, each into the run of a batch, */
static atomic_uint n_runs;   /* with a run that succeeds after each three of them */
static atomic_uint n_injected;
static atomic_bool gate; /* closed: runs on the faulty GPU wait */

static const char *in_dir(const char *name)
{
    static char paths[8][sizeof dir + 32];
    static unsigned n;
    char *path = paths[n++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static gx_status run_faulty(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                            gx_error *err)
{
    while (atomic_load(&gate)) {
        for (uint32_t i = 0; i < n; ++i)
            if (plans[i].cancel)
                plans[i].cancel(plans[i].user);
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    unsigned left = atomic_load(&n_faults);
    if (left > 1 && atomic_fetch_add(&n_runs, 1) % 4 == 3)
        left = 0;
    while (left && !atomic_compare_exchange_weak(&n_faults, &left, left - 1))
        ;
    if (left) {
        atomic_fetch_add(&n_injected, 1);
        for (uint32_t i = 0; i < n; ++i) /* what a failing GPU leaves */
            hits[i].n = 7, hits[i].keys[0] = 0x1234567;
        err->status = GX_ECUDA;
        strcpy(err->text, "an injected fault");
        return GX_ECUDA;
    }
    return gx_executor_cpu.run(exec, plans, n, hits, work, err);
}

/* The emulated GPU runs in one host thread at a time. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static gx_executor locked;
static const gx_executor *unlocked;

static gx_status run_locked(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                            gx_error *err)
{
    pthread_mutex_lock(&one_at_a_time);
    const gx_status st = unlocked->run(exec, plans, n, hits, work, err);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
}

static gx_status open_locked(void **exec, void *prepared, gx_error *err)
{
    pthread_mutex_lock(&one_at_a_time);
    const gx_status st = unlocked->workspace_open(exec, prepared, err);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
}

static void close_locked(void *exec)
{
    pthread_mutex_lock(&one_at_a_time);
    unlocked->workspace_close(exec);
    pthread_mutex_unlock(&one_at_a_time);
}

static void open_gpu(const gx_engine_options *opt)
{
    gx_error err;
    if (gx_engine_open(&gpu, ix, opt, &err))
        return;
    print_message("the GPU is %s\n", gx_engine_describe(gpu));
    if (!strstr(gx_engine_describe(gpu), "emulated"))
        return;
    gx_engine_close(gpu);
    unlocked = gx_executors[1];
    locked = *unlocked;
    locked.run = run_locked;
    locked.workspace_open = open_locked;
    locked.workspace_close = close_locked;
    assert_int_equal(gx_engine_open_with(&gpu, ix, opt, &locked, &err), GX_OK);
}

static int open_all(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    assert_non_null(mkdtemp(dir));
    gen_collection *c = gen_open(5, GEN_CLUSTERED, N_DOCS, N_TERMS);
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    opt.kind = GX_ENGINE_CPU;
    if (gen_write(c, in_dir("a.gx"), codec, codec, &err) || gx_index_open(&ix, in_dir("a.gx"), NULL, &err) ||
        gx_engine_open(&cpu, ix, &opt, &err))
        fail_msg("%s", err.text);
    gen_close(c);
    faulty_executor = gx_executor_cpu;
    faulty_executor.name = "gpu";
    faulty_executor.run = run_faulty;
    opt.kind = GX_ENGINE_GPU;
    if (gx_engine_open_with(&faulty, ix, &opt, &faulty_executor, &err))
        fail_msg("%s", err.text);
    open_gpu(&opt);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    gx_engine_close(gpu);
    gx_engine_close(faulty);
    gx_engine_close(cpu);
    gx_index_close(ix);
    static const char *const names[] = {"a.gx", "decisions", "log", "one.run", "two.run"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        unlink(in_dir(names[i]));
    return rmdir(dir);
}

/* ---- queries ---- */

typedef struct question {
    char text[128];
    gx_query query;
    gx_query_options options;
    uint32_t docids[MAX_K], n; /* the answer of a search */
    double scores[MAX_K];
} question;

static void ask_randomly(gen_rng *rng, question *q, gx_session *session)
{
    gx_error err = {0};
    q->text[0] = 0;
    for (uint32_t n = gen_below(rng, 6); n; --n) {
        char term[16];
        gen_term_name(gen_below(rng, N_TERMS + 2), term);
        strcat(strcat(q->text, " "), term);
    }
    q->query = (gx_query)GX_TEXT_QUERY(q->text, strlen(q->text));
    q->options = (gx_query_options)GX_QUERY_OPTIONS;
    q->options.op = (gx_op)gen_below(rng, 3);
    q->options.k = 1 + gen_below(rng, MAX_K);
    const gx_results results = {sizeof results, q->docids, NULL, &q->n, NULL, q->scores};
    if (gx_search(session, &q->query, 1, &q->options, &results, &err))
        fail_msg("%s", err.text);
}

static question *ask_many(uint64_t seed, uint32_t n)
{
    gen_rng rng = {seed};
    gx_session *session;
    question *all = calloc(n, sizeof *all);
    assert_non_null(all);
    assert_int_equal(gx_session_open(&session, cpu, NULL), GX_OK);
    for (uint32_t i = 0; i < n; ++i)
        ask_randomly(&rng, &all[i], session);
    gx_session_close(session);
    return all;
}

static bool is_right(const question *q, const gx_service_answer *a)
{
    return a->status == GX_OK && a->n_hits == q->n && memcmp(a->docids, q->docids, q->n * sizeof *q->docids) == 0 &&
           memcmp(a->scores, q->scores, q->n * sizeof *q->scores) == 0;
}

static gx_service_options usual(gx_engine *g)
{
    gx_service_options o = GX_SERVICE_OPTIONS;
    o.cpu = cpu;
    o.gpu = g;
    o.cpu_threads = 2;
    o.batch = 16;
    o.spin = 20e-6;
    o.retry = 1e-3;
    return o;
}

static gx_service *opened(const gx_service_options *o)
{
    gx_service *s;
    gx_error err = {0};
    if (gx_service_open(&s, o, &err))
        fail_msg("%s", err.text);
    return s;
}

static gx_ticket *submit(gx_service *s, const question *q, double deadline)
{
    gx_ticket *t = NULL;
    gx_error err = {0};
    gx_submission sub = GX_SUBMISSION(&q->query, 1, &q->options);
    sub.deadline = deadline;
    sub.tickets = &t;
    if (gx_service_submit(s, &sub, NULL, &err))
        fail_msg("%s", err.text);
    return t;
}

/* Waiting in a test has a limit beyond what any machine needs, so that what never comes is told. */
#define LONG_ENOUGH 100.0 /* s */

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){0, 100000}, NULL);
}

/* Ask again and again until the GPU answers, which the CPU may forestall, as busy as the machine is. */
static bool gpu_answers_at_last(gx_service *s, const question *all)
{
    enum { AT_ONCE = 32 };
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    gx_service_counts before, now;
    gx_service_get_counts(s, &before);
    do {
        gx_ticket *tickets[AT_ONCE];
        for (uint32_t i = 0; i < AT_ONCE; ++i)
            tickets[i] = submit(s, &all[i], 0);
        for (uint32_t i = 0; i < AT_ONCE; ++i) {
            gx_service_answer a;
            assert_int_equal(gx_ticket_wait(tickets[i], LONG_ENOUGH, &a), GX_OK);
            assert_true(is_right(&all[i], &a));
            gx_ticket_close(tickets[i]);
        }
        gx_service_get_counts(s, &now);
    } while (now.by[GX_PROCESSOR_GPU] == before.by[GX_PROCESSOR_GPU] && gx_clock_seconds() < end);
    return now.by[GX_PROCESSOR_GPU] > before.by[GX_PROCESSOR_GPU];
}

/* ---- answers ---- */

typedef struct submitter {
    gx_service *s;
    const question *all;
    uint32_t first, n;
    uint32_t n_wrong, n_by[2];
} submitter;

static void *submit_and_wait(void *user)
{
    submitter *u = user;
    enum { AT_ONCE = 32 };
    gx_ticket *tickets[AT_ONCE];
    for (uint32_t i = u->first; i < u->first + u->n; i += AT_ONCE) {
        for (uint32_t j = 0; j < AT_ONCE; ++j)
            tickets[j] = submit(u->s, &u->all[i + j], j % 3 ? 1e-3 * j : 0);
        for (uint32_t j = 0; j < AT_ONCE; ++j) {
            gx_service_answer a;
            if (gx_ticket_wait(tickets[j], -1, &a) != GX_OK || !is_right(&u->all[i + j], &a))
                ++u->n_wrong;
            else
                ++u->n_by[a.by];
            gx_ticket_close(tickets[j]);
        }
    }
    return NULL;
}

static void check_answers(gx_engine *g, uint64_t seed, uint32_t callers)
{
    enum { THREADS = 3, EACH = 320 };
    question *all = ask_many(seed, THREADS * EACH);
    gx_service_options o = usual(g);
    o.decisions = in_dir("decisions");
    o.force = true; /* an earlier test's stand there */
    o.callers = callers;
    gx_service *s = opened(&o);
    submitter u[THREADS];
    pthread_t threads[THREADS];
    uint32_t n_by[2] = {0};
    for (uint32_t i = 0; i < THREADS; ++i) {
        u[i] = (submitter){s, all, i * EACH, EACH, 0, {0, 0}};
        assert_int_equal(pthread_create(&threads[i], NULL, submit_and_wait, &u[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
        if (u[i].n_wrong)
            fail_msg("seed %d: %u answers are wrong", (int)seed, u[i].n_wrong);
        n_by[0] += u[i].n_by[0];
        n_by[1] += u[i].n_by[1];
    }
    gx_service_counts c;
    gx_service_drain(s);
    gx_service_get_counts(s, &c);
    assert_int_equal(c.submitted, THREADS * EACH);
    assert_int_equal(c.answered, THREADS * EACH);
    assert_int_equal(c.by[0], n_by[0]);
    assert_int_equal(c.by[1], n_by[1]);
    if (g && !callers && !n_by[GX_PROCESSOR_GPU])
        assert_true(gpu_answers_at_last(s, all));
    gx_service_close(s);
    uint64_t n;
    gx_error err = {0};
    if (gx_decisions_repeat(in_dir("decisions"), &n, &err))
        fail_msg("%s", err.text);
    assert_true(n >= THREADS * EACH);
    free(all);
}

static void both_answer_as_a_search_does_and_decide_the_same_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; ++seed)
        check_answers(gpu ? gpu : faulty, seed, 0);
}

static void callers_answer_too_and_the_decisions_are_made_the_same_again(void **state)
{
    (void)state;
    check_answers(gpu ? gpu : faulty, 11, 2);
    check_answers(NULL, 12, 1);
}

static void the_cpu_alone_answers_as_a_search_does(void **state)
{
    (void)state;
    check_answers(NULL, 4, 0);
}

static void the_gpu_alone_answers_as_a_search_does(void **state)
{
    (void)state;
    question *all = ask_many(5, 64);
    gx_service_options o = usual(gpu ? gpu : faulty);
    o.cpu = NULL;
    gx_service *s = opened(&o);
    submitter u = {s, all, 0, 64, 0, {0, 0}};
    submit_and_wait(&u);
    assert_int_equal(u.n_wrong, 0);
    assert_int_equal(u.n_by[GX_PROCESSOR_GPU], 64);
    gx_service_close(s);
    free(all);
}

typedef struct collected {
    const question *all;
    atomic_uint n, n_wrong;
} collected;

static void on_answer(void *user, const gx_service_answer *a)
{
    collected *c = user;
    const uint32_t i = *(const uint32_t *)a->user;
    atomic_fetch_add(&c->n_wrong, !is_right(&c->all[i], a) || a->number != i || a->seconds < 0);
    atomic_fetch_add(&c->n, 1);
}

static void a_callback_gets_each_answer_once(void **state)
{
    (void)state;
    enum { N = 200 };
    question *all = ask_many(6, N);
    gx_service_options o = usual(faulty);
    collected c = {.all = all};
    static uint32_t numbers[N];
    o.answer = on_answer;
    o.user = &c;
    gx_service *s = opened(&o);
    for (uint32_t i = 0; i < N; i += 4) { /* of one submission all have the same options */
        gx_query queries[4];
        void *users[4];
        uint64_t first;
        for (uint32_t j = 0; j < 4; ++j) {
            all[i + j].options = all[i].options;
            queries[j] = all[i + j].query;
            numbers[i + j] = i + j;
            users[j] = &numbers[i + j];
        }
        gx_session *session;
        assert_int_equal(gx_session_open(&session, cpu, NULL), GX_OK);
        for (uint32_t j = 0; j < 4; ++j) {
            question *q = &all[i + j];
            const gx_results results = {sizeof results, q->docids, NULL, &q->n, NULL, q->scores};
            assert_int_equal(gx_search(session, &q->query, 1, &q->options, &results, NULL), GX_OK);
        }
        gx_session_close(session);
        gx_submission sub = GX_SUBMISSION(queries, 4, &all[i].options);
        sub.users = users;
        assert_int_equal(gx_service_submit(s, &sub, &first, NULL), GX_OK);
        assert_int_equal(first, i);
    }
    gx_service_drain(s);
    assert_int_equal(atomic_load(&c.n), N);
    assert_int_equal(atomic_load(&c.n_wrong), 0);
    gx_service_close(s);
    free(all);
}

/* ---- queues ---- */

/* A service whose only processor waits at the gate, with `n` queries behind the one under way. */
static gx_service *stopped(gx_service_options *o, const question *all, gx_ticket **tickets, uint32_t n)
{
    o->cpu = NULL;
    o->gpu = faulty;
    o->gpu_threads = 1;
    atomic_store(&gate, true);
    gx_service *s = opened(o);
    tickets[0] = submit(s, &all[0], 0);
    for (gx_service_counts c = {0}; !c.by[GX_PROCESSOR_GPU]; gx_service_get_counts(s, &c))
        pause_shortly();
    for (uint32_t i = 1; i <= n; ++i)
        tickets[i] = submit(s, &all[i], 0);
    return s;
}

static void a_full_queue_says_so_and_takes_more_when_it_is_not(void **state)
{
    (void)state;
    enum { BOUND = 8 };
    question *all = ask_many(7, BOUND + 2);
    gx_service_options o = usual(NULL);
    gx_ticket *tickets[BOUND + 2], *none = NULL;
    gx_service_answer a;
    gx_error err = {0};
    o.bound = BOUND;
    gx_service *s = stopped(&o, all, tickets, BOUND);
    gx_submission sub = GX_SUBMISSION(&all[BOUND + 1].query, 1, &all[BOUND + 1].options);
    sub.tickets = &none;
    assert_int_equal(gx_service_submit(s, &sub, NULL, &err), GX_EBUSY);
    assert_non_null(strstr(err.text, "8 queries wait"));
    assert_null(none);
    assert_int_equal(gx_ticket_wait(tickets[3], 1e-3, &a), GX_EDEADLINE);
    atomic_store(&gate, false);
    gx_service_drain(s);
    tickets[BOUND + 1] = submit(s, &all[BOUND + 1], 0);
    for (uint32_t i = 0; i < BOUND + 2; ++i) {
        assert_int_equal(gx_ticket_wait(tickets[i], -1, &a), GX_OK);
        assert_true(is_right(&all[i], &a));
        gx_ticket_close(tickets[i]);
    }
    gx_service_counts c;
    gx_service_get_counts(s, &c);
    assert_int_equal(c.refused, 1);
    gx_service_close(s);
    free(all);
}

static void what_waits_can_be_cancelled_and_what_is_under_way_cannot(void **state)
{
    (void)state;
    question *all = ask_many(8, 4);
    gx_service_options o = usual(NULL);
    gx_ticket *tickets[4];
    gx_service_answer a;
    gx_service *s = stopped(&o, all, tickets, 3);
    assert_false(gx_service_cancel(s, 0));
    assert_true(gx_service_cancel(s, 2));
    assert_false(gx_service_cancel(s, 2));
    assert_false(gx_service_cancel(s, 99));
    assert_int_equal(gx_ticket_wait(tickets[2], 0, &a), GX_OK);
    assert_int_equal(a.status, GX_ECANCELLED);
    assert_int_equal(a.n_hits, 0);
    gx_ticket_close(tickets[3]); /* its answer goes nowhere */
    atomic_store(&gate, false);
    for (uint32_t i = 0; i < 2; ++i) {
        assert_int_equal(gx_ticket_wait(tickets[i], -1, &a), GX_OK);
        assert_true(is_right(&all[i], &a));
    }
    gx_service_close(s);
    for (uint32_t i = 0; i < 3; ++i)
        gx_ticket_close(tickets[i]); /* tickets may outlive the service */
    free(all);
}

/* Open the gate once the service closes, which waits for what stands at the gate. */
static void *open_the_gate_for_closing(void *user)
{
    gx_service *s = user;
    while (!atomic_load(&s->closing))
        pause_shortly();
    atomic_store(&gate, false);
    return NULL;
}

static void closing_answers_what_waits_with_cancelled(void **state)
{
    (void)state;
    question *all = ask_many(9, 6);
    gx_service_options o = usual(NULL);
    gx_ticket *tickets[6];
    gx_service_answer a;
    pthread_t thread;
    gx_service *s = stopped(&o, all, tickets, 5);
    assert_int_equal(pthread_create(&thread, NULL, open_the_gate_for_closing, s), 0);
    gx_service_close(s);
    pthread_join(thread, NULL);
    for (uint32_t i = 0; i < 6; ++i) {
        assert_int_equal(gx_ticket_wait(tickets[i], 0, &a), GX_OK);
        if (i == 0)
            assert_true(is_right(&all[0], &a));
        else
            assert_int_equal(a.status, GX_ECANCELLED);
        gx_ticket_close(tickets[i]);
    }
    free(all);
}

/* ---- lists that are not in the GPU's memory ---- */

static atomic_uint n_missing; /* bytes of each query's lists */

static uint64_t missing_bytes(const void *state, const gx_plan *plan)
{
    (void)state;
    (void)plan;
    return atomic_load(&n_missing);
}

/* Ask n questions one after the other; returns how many the GPU answered. */
static uint64_t answered_by_gpu(gx_service *s, const question *all, uint32_t n)
{
    gx_service_counts before, after;
    gx_service_get_counts(s, &before);
    for (uint32_t i = 0; i < n; ++i) {
        gx_service_answer a;
        gx_ticket *t = submit(s, &all[i], 0);
        assert_int_equal(gx_ticket_wait(t, 60, &a), GX_OK);
        assert_true(is_right(&all[i], &a));
        gx_ticket_close(t);
    }
    gx_service_drain(s);
    gx_service_get_counts(s, &after);
    return after.by[GX_PROCESSOR_GPU] - before.by[GX_PROCESSOR_GPU];
}

static void queries_whose_lists_are_not_resident_go_to_the_cpu(void **state)
{
    (void)state;
    enum { N = 64 };
    static gx_executor posing;
    gx_error err = {0};
    gx_engine *half;
    gx_engine_options e = GX_ENGINE_OPTIONS;
    question *all = ask_many(19, N);
    gx_cost_profile *p = calloc(1, sizeof *p);
    uint32_t alone = 0, batch = 0; /* weights of the missing bytes */
    while (strcmp(gx_cost_term_name(GX_COST_GPU_ALONE, alone), "bytes not resident"))
        ++alone;
    while (strcmp(gx_cost_term_name(GX_COST_GPU_BATCH, batch), "all bytes not resident"))
        ++batch;
    for (uint32_t leaf = 0; leaf < GX_COST_LEAVES; ++leaf) { /* the first function of a query is 1 */
        p->weights[GX_COST_CPU][leaf][0] = 1e6;
        p->weights[GX_COST_GPU_ALONE][leaf][0] = 1e4;
        p->weights[GX_COST_GPU_ALONE][leaf][alone] = p->weights[GX_COST_GPU_BATCH][leaf][batch] = 1;
    }
    posing = gx_executor_cpu;
    posing.name = "gpu";
    posing.missing_bytes = missing_bytes;
    e.kind = GX_ENGINE_GPU;
    assert_int_equal(gx_engine_open_with(&half, ix, &e, &posing, &err), GX_OK);
    gx_service_options o = usual(half);
    o.profile = p;
    o.callers = 0;
    gx_service *s = opened(&o);
    atomic_store(&n_missing, 0);
    assert_int_equal(answered_by_gpu(s, all, N), N);
    atomic_store(&n_missing, 2000000000);
    assert_int_equal(answered_by_gpu(s, all, N), 0);
    gx_service_close(s);
    gx_engine_close(half);
    free(p);
    free(all);
}

/* ---- failures of the GPU ---- */

static void faults_of_the_gpu_lose_no_query_and_it_works_again(void **state)
{
    (void)state;
    enum { N = 2000000, AT_ONCE = 32, FAULTS = 1000 };
    question *all = ask_many(10, 512);
    gx_service_options o = usual(faulty);
    gx_cost_profile *dear = malloc(sizeof *dear); /* a CPU that leaves the work to the GPU */
    gx_cost_profile_init(dear);
    for (uint32_t leaf = 0; leaf < GX_COST_LEAVES; ++leaf)
        dear->weights[GX_COST_CPU][leaf][0] = 1e7;
    o.profile = dear;
    gx_ticket *tickets[AT_ONCE];
    gx_service_counts c;
    uint32_t n_fell_back = 0, asked = 0;
    o.retry = 20e-6;
    o.batch = 4;
    gx_service *s = opened(&o);
    atomic_store(&n_injected, 0);
    atomic_store(&n_faults, FAULTS);
    for (uint32_t i = 0; i < N && atomic_load(&n_injected) < FAULTS; i += AT_ONCE, asked += AT_ONCE) {
        for (uint32_t j = 0; j < AT_ONCE; ++j)
            tickets[j] = submit(s, &all[(i + j) % 512], 0);
        for (uint32_t j = 0; j < AT_ONCE; ++j) {
            gx_service_answer a;
            assert_int_equal(gx_ticket_wait(tickets[j], 60, &a), GX_OK);
            if (!is_right(&all[(i + j) % 512], &a))
                fail_msg("query %u after %u faults: %s", i + j, atomic_load(&n_injected), a.error);
            n_fell_back += a.fell_back;
            assert_true(!a.fell_back || a.by == GX_PROCESSOR_CPU);
            gx_ticket_close(tickets[j]);
        }
    }
    gx_service_drain(s);
    gx_service_get_counts(s, &c);
    print_message("%u faults over %u queries, %u of them fell back; the GPU came back %u times\n",
                  atomic_load(&n_injected), asked, n_fell_back, (unsigned)c.gpu_returns);
    assert_int_equal(c.gpu_failures, atomic_load(&n_injected));
    assert_int_equal(c.fell_back, n_fell_back);
    assert_int_equal(c.answered, asked);
    assert_int_equal(c.gpu_failures, FAULTS);
    /* It is in use again: sooner or later it answers. */
    assert_true(gpu_answers_at_last(s, all));
    gx_service_close(s);
    free(dear);
    free(all);
}

static atomic_bool is_late;
static atomic_uint n_asked_late;

/* A query's `cancel`, which nobody may ask once the query is answered. */
static bool is_cancelled(void *user)
{
    (void)user;
    atomic_fetch_add(&n_asked_late, atomic_load(&is_late));
    return false;
}

static void a_gpu_that_hangs_is_left_and_used_again_when_it_answers(void **state)
{
    (void)state;
    enum { N = 40 };
    question *all = ask_many(15, N + 1);
    gx_service_options o = usual(faulty);
    gx_service_answer a;
    gx_ticket *tickets[N];
    gx_service_counts c = {0};
    o.hang = 0.02;
    for (uint32_t i = 0; i <= N; ++i)
        all[i].options.cancel = is_cancelled;
    for (int by_cpu = 0; by_cpu < 2; ++by_cpu) {
        o.cpu = by_cpu ? cpu : NULL;
        gx_service *s = opened(&o);
        atomic_store(&gate, true);
        for (uint32_t i = 0; i < N; ++i)
            tickets[i] = submit(s, &all[i], 0);
        do {
            pause_shortly();
            gx_service_get_counts(s, &c);
        } while (!by_cpu && !c.gpu_hung);
        if (!by_cpu) /* those that still wait need the GPU */
            atomic_store(&gate, false);
        uint32_t n_told = 0, n_fell = 0;
        for (uint32_t i = 0; i < N; ++i) {
            assert_int_equal(gx_ticket_wait(tickets[i], LONG_ENOUGH, &a), GX_OK);
            if (!by_cpu && a.status == GX_ECUDA && strstr(a.error, "has not answered within 0.02 s"))
                ++n_told;
            else
                assert_true(is_right(&all[i], &a));
            n_fell += a.fell_back;
            gx_ticket_close(tickets[i]);
        }
        gx_service_drain(s); /* queries are counted after they are told */
        gx_service_get_counts(s, &c);
        assert_true(by_cpu ? n_told == 0 && n_fell == c.fell_back : n_told > 0);
        assert_true(by_cpu || c.gpu_hung > 0);
        atomic_store(&is_late, true);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        assert_int_equal(atomic_load(&n_asked_late), 0);
        atomic_store(&is_late, false);
        atomic_store(&gate, false);
        for (const uint64_t before = c.gpu_returns; by_cpu && c.gpu_hung && c.gpu_returns == before;) {
            pause_shortly();
            gx_service_get_counts(s, &c);
        }
        do { /* a thread that the system holds up for so long looks as a GPU does that hangs */
            gx_ticket *last = submit(s, &all[N], 0);
            assert_int_equal(gx_ticket_wait(last, LONG_ENOUGH, &a), GX_OK);
            gx_ticket_close(last);
        } while (!by_cpu && a.status == GX_ECUDA && strstr(a.error, "has not answered"));
        assert_true(is_right(&all[N], &a));
        gx_service_close(s);
    }
    free(all);
}

/* Threads of this process. */
static unsigned count_threads(void)
{
    char line[256];
    unsigned n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) && sscanf(line, "Threads: %u", &n) != 1)
        ;
    fclose(f);
    return n;
}

/* Wait until the threads that were left have ended. Returns whether they have. */
static bool left_threads_end(unsigned n_before)
{
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    while (count_threads() > n_before && gx_clock_seconds() < end)
        pause_shortly();
    return count_threads() <= n_before;
}

static void closing_does_not_wait_for_a_gpu_that_hangs(void **state)
{
    (void)state;
    const unsigned n_before = count_threads();
    question *all = ask_many(16, 1);
    gx_service_options o = usual(faulty);
    gx_service_answer a;
    o.cpu = NULL;
    o.hang = 0.01;
    atomic_store(&gate, true);
    gx_service *s = opened(&o);
    gx_ticket *t = submit(s, &all[0], 0);
    gx_service_close(s);
    assert_int_equal(gx_ticket_wait(t, 0, &a), GX_OK);
    assert_true(a.status == GX_ECUDA || a.status == GX_ECANCELLED);
    gx_ticket_close(t);
    atomic_store(&gate, false);
    assert_true(left_threads_end(n_before));
    free(all);
}

/* Else it would be woken in place of a thread that takes queries. */
static void a_thread_that_waits_to_try_its_gpu_again_is_not_woken_for_queries(void **state)
{
    (void)state;
    question *all = ask_many(20, 1);
    gx_service_options o = usual(faulty);
    gx_service_answer a;
    o.cpu = NULL;
    o.gpu_threads = 1;
    o.retry = 1e5;
    gx_service *s = opened(&o);
    atomic_store(&n_faults, 1);
    gx_ticket *t = submit(s, &all[0], 0);
    assert_int_equal(gx_ticket_wait(t, -1, &a), GX_OK);
    assert_int_equal(a.status, GX_ECUDA);
    for (int turn = 0; turn < 200; ++turn) {
        assert_int_equal(atomic_load(&s->n_sleeping[GX_PROCESSOR_GPU]), 0);
        pause_shortly();
    }
    gx_ticket_close(t);
    gx_service_close(s);
    free(all);
}

static void without_a_cpu_a_failure_is_told(void **state)
{
    (void)state;
    question *all = ask_many(11, 2);
    gx_service_options o = usual(faulty);
    gx_service_answer a;
    o.cpu = NULL;
    gx_service *s = opened(&o);
    atomic_store(&n_faults, 1);
    gx_ticket *first = submit(s, &all[0], 0);
    assert_int_equal(gx_ticket_wait(first, -1, &a), GX_OK);
    assert_int_equal(a.status, GX_ECUDA);
    assert_string_equal(a.error, "an injected fault");
    gx_ticket *second = submit(s, &all[1], 0);
    assert_int_equal(gx_ticket_wait(second, -1, &a), GX_OK);
    assert_true(is_right(&all[1], &a));
    gx_ticket_close(first);
    gx_ticket_close(second);
    gx_service_close(s);
    free(all);
}

/* ---- bad calls ---- */

static void bad_options_and_queries_are_refused(void **state)
{
    (void)state;
    gx_service *s;
    gx_service_options bad[5];
    for (int i = 0; i < 5; ++i)
        bad[i] = usual(faulty);
    bad[0].cpu = bad[0].gpu = NULL;
    bad[1].cpu_threads = 0;
    bad[2].bound = 0;
    bad[3].threshold = 0.5;
    bad[4].size = 3;
    for (int i = 0; i < 5; ++i) {
        assert_int_equal(gx_service_open(&s, &bad[i], NULL), GX_EUSAGE);
        assert_null(s);
    }
    bad[0] = usual(faulty);
    bad[0].decisions = "/nonexistent/decisions";
    assert_int_equal(gx_service_open(&s, &bad[0], NULL), GX_ENOTFOUND);
    bad[0].decisions = NULL;
    s = opened(&bad[0]);
    gx_query_options options = GX_QUERY_OPTIONS;
    const gx_query query = GX_TEXT_QUERY("t0000003", 8);
    gx_submission sub = GX_SUBMISSION(&query, 0, &options);
    assert_int_equal(gx_service_submit(s, &sub, NULL, NULL), GX_EUSAGE);
    sub.n = 1;
    options.k = 0;
    assert_int_equal(gx_service_submit(s, &sub, NULL, NULL), GX_EUSAGE);
    options.k = 1;
    sub.deadline = -1;
    assert_int_equal(gx_service_submit(s, &sub, NULL, NULL), GX_EUSAGE);
    gx_service_close(s);
}

typedef struct told {
    pthread_t by, submitter;
    atomic_bool by_others; /* than the submitter */
    atomic_uint n;
} told;

static void on_told(void *user, const gx_service_answer *a)
{
    told *t = user;
    assert_int_equal(a->status, GX_OK);
    t->by = pthread_self();
    if (!pthread_equal(t->by, t->submitter))
        atomic_store(&t->by_others, true);
    atomic_fetch_add(&t->n, 1);
}

static void a_caller_answers_a_short_query_before_submit_returns(void **state)
{
    (void)state;
    told t = {.submitter = pthread_self()};
    gx_query_options options = GX_QUERY_OPTIONS;
    const gx_query queries[5] = {GX_TEXT_QUERY("t0000003", 8), GX_TEXT_QUERY("t0000004", 8),
                                 GX_TEXT_QUERY("t0000005", 8), GX_TEXT_QUERY("t0000006", 8),
                                 GX_TEXT_QUERY("t0000007", 8)};
    gx_service_options o = usual(NULL);
    o.callers = 1;
    o.caller_seconds = 1;
    o.answer = on_told;
    o.user = &t;
    gx_service *s = opened(&o);
    const gx_submission one = GX_SUBMISSION(queries, 1, &options), two = GX_SUBMISSION(queries, 2, &options),
                        many = GX_SUBMISSION(queries, 5, &options);
    for (uint32_t i = 1; i <= 100; ++i) {
        assert_int_equal(gx_service_submit(s, &one, NULL, NULL), GX_OK);
        gx_service_drain(s); /* a thread of the service that looks for work just then holds the lock */
        assert_int_equal(atomic_load(&t.n), i);
    }
    assert_true(pthread_equal(t.by, pthread_self()));
    for (uint32_t i = 1; i <= 100; ++i) {
        atomic_store(&t.by_others, false);
        assert_int_equal(gx_service_submit(s, &two, NULL, NULL), GX_OK);
        gx_service_drain(s);
        assert_int_equal(atomic_load(&t.n), 100 + 2 * i);
        assert_false(atomic_load(&t.by_others));
    }
    assert_int_equal(gx_service_submit(s, &many, NULL, NULL), GX_OK);
    gx_service_drain(s);
    assert_int_equal(atomic_load(&t.n), 305); /* by a thread of the service, or, without a GPU, with its help */
    gx_service_close(s);
    o.caller_seconds = 0; /* no query is as short */
    s = opened(&o);
    assert_int_equal(gx_service_submit(s, &one, NULL, NULL), GX_OK);
    gx_service_drain(s);
    assert_false(pthread_equal(t.by, pthread_self()));
    gx_service_close(s);
    o.callers = 2000;
    assert_int_equal(gx_service_open(&s, &o, NULL), GX_EUSAGE);
}

/* Threads that submit at once, each one query or several, more than the service's thread can answer. */
typedef struct repeater {
    gx_service *s;
    uint32_t n; /* of a submission */
    told *t;
} repeater;

static void *submit_often(void *arg)
{
    const repeater *a = arg;
    gx_query_options options = GX_QUERY_OPTIONS;
    gx_query queries[40];
    for (uint32_t i = 0; i < a->n; ++i)
        queries[i] = (gx_query)GX_TEXT_QUERY(i % 2 ? "t0000003 t0000001 t0000009" : "t0000004", i % 2 ? 26 : 8);
    const gx_submission sub = GX_SUBMISSION(queries, a->n, &options);
    for (uint32_t i = 0; i < 200; ++i) {
        gx_status st;
        while ((st = gx_service_submit(a->s, &sub, NULL, NULL)) == GX_EBUSY)
            sched_yield();
        assert_int_equal(st, GX_OK);
    }
    return NULL;
}

static void callers_help_where_queries_wait(void **state)
{
    enum { N = 6 };
    static const uint32_t sizes[N] = {1, 2, 5, 8, 40, 1};
    (void)state;
    for (int round = 0; round < 4; ++round) {
        told t = {.submitter = pthread_self()};
        gx_service_options o = usual(NULL);
        o.gpu = NULL;
        o.cpu_threads = 1;
        o.callers = round == 1 ? 2 : N; /* fewer than there are threads */
        o.caller_seconds = round == 2 ? 1e-9 : 1;
        o.bound = round == 3 ? 64 : 65536;
        o.answer = on_told;
        o.user = &t;
        gx_service *s = opened(&o);
        pthread_t threads[N];
        repeater all[N];
        uint32_t n = 0;
        for (int i = 0; i < N; ++i) {
            all[i] = (repeater){s, sizes[i], &t};
            n += 200 * sizes[i];
            assert_int_equal(pthread_create(&threads[i], NULL, submit_often, &all[i]), 0);
        }
        for (int i = 0; i < N; ++i)
            pthread_join(threads[i], NULL);
        gx_service_drain(s);
        assert_int_equal(atomic_load(&t.n), n);
        gx_service_close(s);
    }
}

/* ---- masks ---- */

static void masks_hold_on_both(void **state)
{
    (void)state;
    enum { N = 200 };
    question *all = ask_many(12, N);
    uint64_t words[(N_DOCS + 63) / 64];
    gen_rng rng = {13};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        words[i] = gen_u64(&rng);
    gx_mask *mask, *gpu_mask;
    gx_session *session;
    gx_engine *g = gpu ? gpu : faulty;
    assert_int_equal(gx_mask_open(&mask, cpu, words, NULL), GX_OK);
    assert_int_equal(gx_mask_open(&gpu_mask, g, words, NULL), GX_OK);
    assert_int_equal(gx_session_open(&session, cpu, NULL), GX_OK);
    const gx_service_options o = usual(g);
    gx_service *s = opened(&o);
    gx_ticket *tickets[N];
    for (uint32_t i = 0; i < N; ++i) {
        question *q = &all[i];
        q->options.mask = mask;
        const gx_results results = {sizeof results, q->docids, NULL, &q->n, NULL, q->scores};
        assert_int_equal(gx_search(session, &q->query, 1, &q->options, &results, NULL), GX_OK);
    }
    for (uint32_t i = 0; i < N; ++i) {
        gx_submission sub = GX_SUBMISSION(&all[i].query, 1, &all[i].options);
        sub.gpu_mask = i % 4 ? gpu_mask : NULL;
        sub.tickets = &tickets[i];
        assert_int_equal(gx_service_submit(s, &sub, NULL, NULL), GX_OK);
    }
    for (uint32_t i = 0; i < N; ++i) {
        gx_service_answer a;
        assert_int_equal(gx_ticket_wait(tickets[i], -1, &a), GX_OK);
        assert_true(is_right(&all[i], &a));
        assert_true(i % 4 || a.by == GX_PROCESSOR_CPU);
        gx_ticket_close(tickets[i]);
    }
    gx_service_close(s);
    gx_session_close(session);
    gx_mask_close(mask);
    gx_mask_close(gpu_mask);
    free(all);
}

/* ---- replay ---- */

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *text = malloc((size_t)n + 1);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    text[n] = 0;
    fclose(f);
    return text;
}

static void a_replay_through_it_writes_the_same_run(void **state)
{
    (void)state;
    enum { N = 1500 };
    question *all = ask_many(14, N);
    gx_replay_report *r = malloc(sizeof *r);
    gx_error err = {0};
    FILE *f = fopen(in_dir("log"), "wb");
    for (uint32_t i = 0; i < N; ++i)
        fprintf(f, "%u:%s\n", i + 1, all[i].text);
    fclose(f);
    gx_replay_options opt = GX_REPLAY_OPTIONS;
    opt.log = in_dir("log");
    opt.tag = "t";
    opt.force = true;
    opt.run_path = in_dir("one.run");
    if (gx_replay(cpu, &opt, r, &err))
        fail_msg("%s", err.text);
    char *one = slurp(opt.run_path);
    for (int open_loop = 0; open_loop < 2; ++open_loop) {
        const gx_service_options service = usual(gpu ? gpu : faulty);
        opt.run_path = in_dir("two.run");
        opt.service = &service;
        opt.threads = 2;
        opt.batch = open_loop ? 8 : 64;
        opt.rate = open_loop ? 20000 : 0;
        opt.arrivals = open_loop ? GX_ARRIVALS_POISSON : GX_ARRIVALS_FIXED;
        opt.deadline = 1e-9;
        opt.warmup = 100;
        opt.runs = 2;
        opt.verify_every = 3;
        opt.other = cpu;
        if (gx_replay(cpu, &opt, r, &err))
            fail_msg("%s", err.text);
        char *two = slurp(opt.run_path);
        assert_string_equal(one, two);
        free(two);
        assert_int_equal(r->queries, 2 * N);
        assert_int_equal(r->latency.n, 2 * N);
        assert_int_equal(r->late, 2 * N);
        assert_int_equal(r->service.answered, 2 * N);
        assert_int_equal(r->service.by[0] + r->service.by[1], 2 * N);
        assert_int_equal(r->verified, N / 3);
        assert_int_equal(r->other_differs + r->exhaustive_differs, 0);
    }
    free(one);
    free(r);
    free(all);
}

/* A log of n queries, some of which return nothing. */
static void write_log(uint64_t seed, uint32_t n)
{
    question *all = ask_many(seed, n);
    FILE *f = fopen(in_dir("log"), "wb");
    for (uint32_t i = 0; i < n; ++i)
        fprintf(f, "%u:%s\n", i + 1, all[i].text);
    fclose(f);
    free(all);
}

/* Replay the log through a service whose GPU has the faults. */
/* Engines whose GPU has hung. A thread that was left may still use one after the service is closed. To
 * close a real GPU's engine waits for that; a CPU engine in its place does not. */
static gx_engine *hung_engines[100];
static size_t n_hung_engines;

static void close_hung_engines(unsigned n_before)
{
    assert_true(left_threads_end(n_before));
    while (n_hung_engines)
        gx_engine_close(hung_engines[--n_hung_engines]);
}

static void replay_with(const char *faults, gx_replay_options *opt, gx_replay_report *r)
{
    gx_error err = {0};
    const gx_executor *executor;
    gx_engine *failing;
    gx_engine_options e = GX_ENGINE_OPTIONS;
    static gx_executor posing;
    posing = gx_executor_cpu;
    posing.name = "gpu";
    e.kind = GX_ENGINE_GPU;
    if (gx_faults_wrap(&executor, &posing, faults, &err) || gx_engine_open_with(&failing, ix, &e, executor, &err))
        fail_msg("%s", err.text);
    gx_service_options service = usual(failing);
    service.hang = strstr(faults, "hung") ? 2e-3 : 10; /* a host with other work to do is slow at times */
    service.retry = 1e-4;
    service.batch = 4;
    opt->log = in_dir("log");
    opt->force = true;
    opt->service = &service;
    opt->batch = 64;
    if (gx_replay(cpu, opt, r, &err))
        fail_msg("%s", err.text);
    if (!r->service.gpu_hung)
        gx_engine_close(failing);
    else if (n_hung_engines < sizeof hung_engines / sizeof *hung_engines)
        hung_engines[n_hung_engines++] = failing;
    else
        fail_msg("more than %zu engines have hung", n_hung_engines);
}

static void a_thousand_faults_change_no_answer_and_lose_none(void **state)
{
    (void)state;
    enum { N = 1500 };
    gx_replay_report *r = malloc(sizeof *r);
    gx_error err = {0};
    gx_replay_options opt = GX_REPLAY_OPTIONS;
    write_log(17, N);
    opt.tag = "t";
    opt.force = true;
    opt.log = in_dir("log");
    opt.run_path = in_dir("one.run");
    if (gx_replay(cpu, &opt, r, &err))
        fail_msg("%s", err.text);
    char *one = slurp(opt.run_path);
    uint64_t n = 0, n_hung = 0;
    const unsigned n_before = count_threads();
    for (int pass = 0; pass < 1000 && (n < 1000 || !n_hung); ++pass) {
        opt.run_path = in_dir("two.run");
        opt.runs = 10;
        replay_with("lost,memory,lost,hung,every=2,most=1000,seconds=0.005", &opt, r);
        char *two = slurp(opt.run_path);
        assert_string_equal(one, two);
        free(two);
        assert_int_equal(r->service.answered, 10 * N);
        n += gx_faults_injected();
        n_hung += r->service.gpu_hung;
    }
    print_message("%d faults, %d times hung\n", (int)n, (int)n_hung);
    assert_true(n >= 1000 && n_hung > 0);
    close_hung_engines(n_before);
    free(one);
    free(r);
}

static void wrong_answers_are_found_by_verifying(void **state)
{
    (void)state;
    gx_replay_report *r = malloc(sizeof *r);
    gx_replay_options opt = GX_REPLAY_OPTIONS;
    write_log(18, 300);
    opt.verify_every = 1;
    opt.other = cpu;
    const double end = gx_clock_seconds() + LONG_ENOUGH;
    do /* on a busy host the CPU may be first with all queries */
        replay_with("wrong,every=1,most=1", &opt, r);
    while (!gx_faults_injected() && gx_clock_seconds() < end);
    assert_int_equal(gx_faults_injected(), 1);
    assert_true(r->other_differs <= 1);
    while (!r->other_differs && gx_clock_seconds() < end)
        replay_with("wrong,every=1", &opt, r);
    assert_true(r->other_differs > 0 && r->other_differs <= gx_faults_injected());
    free(r);
}

static void a_malformed_list_of_faults_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"slow", "hung,every=0", "hung,every=", "lost,,", "every=3", "hung,seconds=x"};
    const gx_executor *out;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        assert_int_equal(gx_faults_wrap(&out, &gx_executor_cpu, bad[i], NULL), GX_EUSAGE);
    assert_int_equal(gx_faults_wrap(&out, &gx_executor_cpu, "", NULL), GX_OK);
    assert_ptr_equal(out, &gx_executor_cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_answer_as_a_search_does_and_decide_the_same_again),
        cmocka_unit_test(callers_answer_too_and_the_decisions_are_made_the_same_again),
        cmocka_unit_test(a_caller_answers_a_short_query_before_submit_returns),
        cmocka_unit_test(callers_help_where_queries_wait),
        cmocka_unit_test(the_cpu_alone_answers_as_a_search_does),
        cmocka_unit_test(the_gpu_alone_answers_as_a_search_does),
        cmocka_unit_test(a_callback_gets_each_answer_once),
        cmocka_unit_test(a_full_queue_says_so_and_takes_more_when_it_is_not),
        cmocka_unit_test(what_waits_can_be_cancelled_and_what_is_under_way_cannot),
        cmocka_unit_test(closing_answers_what_waits_with_cancelled),
        cmocka_unit_test(queries_whose_lists_are_not_resident_go_to_the_cpu),
        cmocka_unit_test(faults_of_the_gpu_lose_no_query_and_it_works_again),
        cmocka_unit_test(a_gpu_that_hangs_is_left_and_used_again_when_it_answers),
        cmocka_unit_test(closing_does_not_wait_for_a_gpu_that_hangs),
        cmocka_unit_test(a_thread_that_waits_to_try_its_gpu_again_is_not_woken_for_queries),
        cmocka_unit_test(without_a_cpu_a_failure_is_told),
        cmocka_unit_test(bad_options_and_queries_are_refused),
        cmocka_unit_test(masks_hold_on_both),
        cmocka_unit_test(a_replay_through_it_writes_the_same_run),
        cmocka_unit_test(a_thousand_faults_change_no_answer_and_lose_none),
        cmocka_unit_test(wrong_answers_are_found_by_verifying),
        cmocka_unit_test(a_malformed_list_of_faults_is_refused),
    };
    return cmocka_run_group_tests_name("service", tests, open_all, close_all);
}
