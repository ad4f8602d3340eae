/* Whole replays of logs over a random collection; and the run file. */
#include <math.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "engine/clock.h"
#include "query/engine/session.h"
#include "query/replay/replay.h"
#include "query/replay/run_file.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

#define N_TERMS 40u

static char dir[] = "/tmp/gpuidx-test-replay-XXXXXX";
static gx_index *ix, *other_ix;
static gx_engine *en, *other_en;
static gx_replay_report *report;

/* The path of a file in dir; it stays. */
static const char *in_dir(const char *name)
{
    static char paths[16][sizeof dir + 32];
    char path[sizeof paths[0]];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unsigned i = 0;
    while (paths[i][0] && strcmp(paths[i], path))
        ++i;
    return strcpy(paths[i], path);
}

static void open_collection(uint64_t seed, const char *name, gx_index **x, gx_engine **e)
{
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    opt.kind = GX_ENGINE_CPU;
    gen_collection *c = gen_open(seed, GEN_UNIFORM, 3000, N_TERMS);
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    if (gen_write(c, in_dir(name), codec, codec, &err) || gx_index_open(x, in_dir(name), NULL, &err) ||
        gx_engine_open(e, *x, &opt, &err))
        fail_msg("%s", err.text);
    gen_close(c);
}

static int open_all(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    open_collection(1, "a.gx", &ix, &en);
    open_collection(2, "b.gx", &other_ix, &other_en);
    report = malloc(sizeof *report);
    assert_non_null(report);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    gx_engine_close(en);
    gx_engine_close(other_en);
    gx_index_close(ix);
    gx_index_close(other_ix);
    free(report);
    static const char *const names[] = {"a.gx", "b.gx", "log", "one.run", "two.run"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        unlink(in_dir(names[i]));
    return rmdir(dir); /* fails when a replay left something behind */
}

/* ---- logs ---- */

static void random_query(gen_rng *rng, char *text)
{
    text[0] = 0;
    for (uint32_t n = gen_below(rng, 5); n; --n) {
        char term[16];
        gen_term_name(gen_below(rng, N_TERMS + 2), term);
        strcat(strcat(text, " "), term);
    }
}

static void write_log(uint64_t seed, uint32_t n)
{
    gen_rng rng = {seed};
    FILE *f = fopen(in_dir("log"), "wb");
    assert_non_null(f);
    for (uint32_t i = 0; i < n; ++i) {
        char text[128];
        random_query(&rng, text);
        fprintf(f, "%u:%s\n", i + 1, text);
    }
    assert_int_equal(fclose(f), 0);
}

static gx_replay_options options(void)
{
    gx_replay_options o = GX_REPLAY_OPTIONS;
    o.log = in_dir("log");
    o.tag = "t";
    o.force = true;
    return o;
}

static void replay(const gx_replay_options *o)
{
    gx_error err = {0};
    if (gx_replay(en, o, report, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(*n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *n, f), *n);
    text[*n] = 0;
    fclose(f);
    return text;
}

/* ---- tests ---- */

static void a_run_holds_what_searching_finds(void **state)
{
    (void)state;
    enum { N = 200, K = 7 };
    write_log(11, N);
    gx_replay_options o = options();
    o.query.k = K;
    o.run_path = in_dir("one.run");
    replay(&o);

    size_t n;
    char *run = slurp(o.run_path, &n), *line = run;
    gen_rng rng = {11};
    gx_session *s;
    gx_error err = {0};
    uint64_t n_results = 0, n_empty = 0;
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    for (uint32_t i = 0; i < N; ++i) {
        char text[128];
        uint32_t docids[K], n_hits;
        double scores[K];
        random_query(&rng, text);
        const gx_query q = GX_TEXT_QUERY(text, strlen(text));
        const gx_results results = {sizeof results, docids, NULL, &n_hits, NULL, scores};
        assert_int_equal(gx_search(s, &q, 1, &o.query, &results, &err), GX_OK);
        for (uint32_t h = 0; h < n_hits; ++h) {
            char *next = strchr(line, '\n'), docno[32], tag[8], want[32];
            uint32_t qid, rank;
            double score;
            assert_non_null(next);
            assert_int_equal(sscanf(line, "%u Q0 %31s %u %lf %7s", &qid, docno, &rank, &score, tag), 5);
            snprintf(want, sizeof want, "d%u", docids[h]);
            assert_string_equal(docno, want);
            assert_string_equal(tag, "t");
            assert_int_equal(qid, i + 1);
            assert_int_equal(rank, h + 1);
            assert_true(fabs(score - scores[h]) <= 1e-10 * scores[h]);
            line = next + 1;
        }
        n_results += n_hits;
        n_empty += n_hits == 0;
    }
    assert_int_equal(*line, 0);
    assert_int_equal(report->queries, N);
    assert_int_equal(report->results, n_results);
    assert_int_equal(report->without_results, n_empty);
    assert_int_equal(report->latency.n, N);
    assert_true(report->work.postings > 0);
    assert_true(report->seconds >= 0);
    assert_true(report->cpu_seconds >= 0);
    gx_session_close(s);
    free(run);
}

static void threads_and_batches_leave_the_run_as_it_is(void **state)
{
    (void)state;
    write_log(12, 3000);
    gx_replay_options o = options();
    o.run_path = in_dir("one.run");
    replay(&o);
    size_t n_one, n_two;
    char *one = slurp(in_dir("one.run"), &n_one);
    for (uint32_t threads = 1; threads <= 5; threads += 2)
        for (uint32_t batch = 1; batch <= 1000; batch = batch * 9 + 1) {
            o.threads = threads;
            o.batch = batch;
            o.run_path = in_dir("two.run");
            replay(&o);
            assert_int_equal(report->queries, 3000);
            char *two = slurp(in_dir("two.run"), &n_two);
            assert_int_equal(n_one, n_two);
            assert_memory_equal(one, two, n_one);
            free(two);
        }
    free(one);
}

static void runs_add_up_and_the_warm_up_does_not_count(void **state)
{
    (void)state;
    write_log(13, 500);
    gx_replay_options o = options();
    o.runs = 3;
    o.warmup = 100;
    o.batch = 16;
    replay(&o);
    assert_int_equal(report->queries, 1500);
    assert_int_equal(report->latency.n, 1500);
    assert_int_equal(report->log.queries, 500);
    const uint64_t postings = report->work.postings;
    o.runs = 1;
    o.warmup = 100000;
    replay(&o);
    assert_int_equal(report->queries, 500);
    assert_int_equal(report->work.postings * 3, postings);
}

static void verifying_finds_equal_answers_equal(void **state)
{
    (void)state;
    write_log(14, 1000);
    gx_replay_options o = options();
    o.verify_every = 3;
    o.threads = 2;
    o.batch = 10;
    for (o.query.op = GX_OP_OR; o.query.op <= GX_OP_AND_OR; ++o.query.op) {
        replay(&o);
        assert_int_equal(report->queries, 1000);
        assert_int_equal(report->verified, 334);
        assert_int_equal(report->other_differs, 0);
        assert_int_equal(report->exhaustive_differs, 0);
    }
}

static unsigned n_said;
static char last_said[1024];

static void listen(void *user, const char *text)
{
    (void)user;
    ++n_said;
    snprintf(last_said, sizeof last_said, "%s", text);
}

static void verifying_finds_differences(void **state)
{
    (void)state;
    write_log(15, 100);
    gx_replay_options o = options();
    o.verify_every = 1;
    o.other = other_en; /* an engine on another collection: what a wrong engine would look like */
    o.say = listen;
    n_said = 0;
    replay(&o);
    assert_int_equal(report->verified, 100);
    assert_in_range(report->other_differs, 50, 100);
    assert_int_equal(n_said, 5); /* the first five are shown */
    assert_non_null(strstr(last_said, "differs"));
}

static void masks_of_both_engines_are_verified(void **state)
{
    (void)state;
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    gx_engine *second;
    gx_mask *one, *same, *different;
    gx_error err = {0};
    const size_t n_words = ix->n_docs / 64 + 1;
    uint64_t *words = malloc(n_words * sizeof *words);
    assert_non_null(words);
    opt.kind = GX_ENGINE_CPU;
    assert_int_equal(gx_engine_open(&second, ix, &opt, &err), GX_OK);
    memset(words, 0x35, n_words * sizeof *words);
    assert_int_equal(gx_mask_open(&one, en, words, &err), GX_OK);
    assert_int_equal(gx_mask_open(&same, second, words, &err), GX_OK);
    memset(words, 0xca, n_words * sizeof *words); /* the other documents */
    assert_int_equal(gx_mask_open(&different, second, words, &err), GX_OK);
    write_log(21, 200);
    gx_replay_options o = options();
    o.verify_every = 1;
    o.other = second;
    o.query.mask = one;
    o.other_mask = same;
    o.threads = 2;
    for (o.query.op = GX_OP_OR; o.query.op <= GX_OP_AND_OR; ++o.query.op) {
        replay(&o);
        assert_true(report->results > 0);
        assert_int_equal(report->verified, 200);
        assert_int_equal(report->other_differs, 0);
        assert_int_equal(report->exhaustive_differs, 0);
    }
    o.query.op = GX_OP_OR;
    o.other_mask = different;
    replay(&o);
    assert_true(report->other_differs > 100);
    o.other_mask = NULL;
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "only one has a mask"));
    o.query.mask = same; /* of the other engine */
    o.other_mask = same;
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "another engine's"));
    gx_mask_close(one);
    gx_mask_close(same);
    gx_mask_close(different);
    gx_engine_close(second);
    free(words);
}

/* What never comes is told after this long. No machine needs as much. */
#define LONG_ENOUGH 600.0 /* s */

/* `cancel`: each batch is held up for a millisecond at least. */
static bool hold_up(void *user)
{
    (void)user;
    const struct timespec ms = {0, 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
    return false;
}

static void a_fixed_rate_is_kept_and_waiting_counts(void **state)
{
    (void)state;
    write_log(16, 100);
    gx_replay_options o = options();
    o.rate = 500;
    replay(&o);
    assert_int_equal(report->queries, 100);
    assert_true(report->seconds > 0.19); /* the last is due after 198 ms */
    o.rate = 1e9;                        /* all are due at once: each waits for those before it */
    o.batch = 1;
    o.query.cancel = hold_up;
    replay(&o);
    assert_true(report->latency.max > 90000000);
}

/* Cancels a replay once n_wanted queries are answered, or when they never are. */
typedef struct turn {
    atomic_uint n, n_wanted;
    double end;
} turn;

static void note_answered(void *user, const char *doing, uint64_t n)
{
    (void)doing;
    atomic_store(&((turn *)user)->n, (unsigned)n);
}

static bool are_answered(void *user)
{
    turn *t = user;
    return atomic_load(&t->n) >= t->n_wanted || gx_clock_seconds() > t->end;
}

/* Of the log's queries, n arrive at once, and the others never. Those are answered nevertheless, and written if there
 * is a run. */
static void check_first_are_answered(uint32_t n, uint32_t n_all, gx_replay_options o)
{
    gx_error err = {0};
    turn t = {.n_wanted = n, .end = gx_clock_seconds() + LONG_ENOUGH};
    FILE *f = fopen(in_dir("trace"), "w");
    assert_non_null(f);
    for (uint32_t i = 0; i < n_all; ++i)
        fprintf(f, "%g\n", i < n ? 7 : 1e8);
    assert_int_equal(fclose(f), 0);
    o.arrivals = GX_ARRIVALS_TRACE;
    o.trace = in_dir("trace");
    o.progress = note_answered;
    o.user = &t;
    o.query.cancel = are_answered;
    o.query.user = &t;
    assert_int_equal(gx_replay(en, &o, report, &err), GX_ECANCELLED);
    assert_int_equal(atomic_load(&t.n), n);
    unlink(in_dir("trace"));
}

static void a_thread_that_waits_for_its_time_holds_up_no_other(void **state)
{
    (void)state;
    write_log(23, 20);
    gx_replay_options o = options();
    o.threads = 2;
    o.batch = 1;
    o.run_path = in_dir("one.run");
    for (uint32_t n = 1; n < 6; ++n)
        check_first_are_answered(n, 20, o);
}

static void queries_arrive_at_the_times_of_a_trace_and_late_ones_are_counted(void **state)
{
    (void)state;
    gx_error err = {0};
    write_log(25, 20);
    gx_replay_options o = options();
    check_first_are_answered(10, 20, o); /* nobody waits for the second burst */
    FILE *f = fopen(in_dir("trace"), "w");
    assert_non_null(f);
    for (int i = 0; i < 20; ++i)
        fprintf(f, "%g\n", i < 10 ? 7 : 7.2); /* two bursts */
    assert_int_equal(fclose(f), 0);
    o.batch = 1;
    o.arrivals = GX_ARRIVALS_TRACE;
    o.trace = in_dir("trace");
    o.deadline = 1e-10; /* the least that is counted is 1 ns: less than any search takes */
    replay(&o);
    assert_int_equal(report->queries, 20);
    assert_true(report->seconds > 0.199);
    assert_int_equal(report->late, 20);
    o.deadline = 1e6;
    replay(&o);
    assert_int_equal(report->late, 0);
    o.deadline = 0;
    replay(&o);
    assert_int_equal(report->late, 0);
    write_log(25, 21);
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "the log has more"));
    unlink(in_dir("trace"));
}

static bool stop_after_a_while(void *user)
{
    return ++*(unsigned *)user > 3;
}

static void a_replay_is_cancelled_before_its_next_query_is_due(void **state)
{
    (void)state;
    unsigned asked = 0;
    gx_error err = {0};
    write_log(24, 10);
    gx_replay_options o = options();
    o.rate = 1e-8; /* the second is due after three years */
    o.threads = 2;
    o.query.cancel = stop_after_a_while;
    o.query.user = &asked;
    assert_int_equal(gx_replay(en, &o, report, &err), GX_ECANCELLED);
}

static void write_bytes(const char *bytes)
{
    FILE *f = fopen(in_dir("log"), "wb");
    assert_non_null(f);
    fputs(bytes, f);
    assert_int_equal(fclose(f), 0);
}

static void bad_lines_fail_by_name_or_are_passed_over(void **state)
{
    (void)state;
    gx_error err = {0};
    write_bytes("1:t0000000\nnothing\n3:t0000001\n");
    gx_replay_options o = options();
    o.read.form = GX_LOG_EFFICIENCY;
    o.run_path = in_dir("never.run");
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "log:2:"));
    assert_int_equal(access(o.run_path, F_OK), -1);
    o.run_path = NULL;
    o.skip_bad = true;
    o.say = listen;
    n_said = 0;
    replay(&o);
    assert_int_equal(report->queries, 2);
    assert_int_equal(report->log.bad, 1);
    assert_int_equal(n_said, 1);
    assert_non_null(strstr(last_said, "log:2:"));
}

static void a_query_of_too_many_terms_is_named(void **state)
{
    (void)state;
    gx_error err = {0};
    FILE *f = fopen(in_dir("log"), "wb");
    fputs("1:t0000000\n2:", f);
    for (unsigned i = 0; i <= GX_MAX_TERMS; ++i)
        fprintf(f, " w%u", i);
    fputs("\n3:t0000000\n", f);
    fclose(f);
    gx_replay_options o = options();
    o.batch = 4;
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "log:2:"));
    assert_non_null(strstr(err.text, "1024"));
    o.skip_bad = true;
    replay(&o);
    assert_int_equal(report->queries, 3);
    assert_int_equal(report->impossible, 1);
    assert_int_equal(report->without_results, 1);
}

static void odd_logs_are_replayed(void **state)
{
    (void)state;
    gx_replay_options o = options();
    gx_error err = {0};
    write_bytes("");
    o.run_path = in_dir("never.run");
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "log has no query"));
    assert_int_equal(access(o.run_path, F_OK), -1);
    o.run_path = NULL;
    write_bytes("\n\n");
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EINPUT);
    write_bytes("\n1:\n\n2:\n");
    replay(&o);
    assert_int_equal(report->queries, 2);
    assert_int_equal(report->without_results, 2);
    assert_int_equal(report->log.blank, 2);
    write_bytes("1:t0000000");
    o.query.k = UINT32_MAX;
    o.batch = 1u << 20;
    replay(&o);
    assert_int_equal(report->results, 3000);
    assert_in_range(report->batch, 1, 4u << 20);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    gx_error err = {0};
    write_log(17, 1);
    gx_replay_options o = options();
    o.threads = 0;
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EUSAGE);
    o = options();
    o.query.k = 0;
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EUSAGE);
    o = options();
    o.log = "-";
    o.runs = 2;
    assert_int_equal(gx_replay(en, &o, report, &err), GX_EUSAGE);
    o = options();
    o.log = in_dir("absent");
    assert_int_equal(gx_replay(en, &o, report, &err), GX_ENOTFOUND);
    o = options();
    o.run_path = in_dir("no/such/folder.run");
    assert_int_equal(gx_replay(en, &o, report, &err), GX_ENOTFOUND);
}

static bool stop_soon(void *user)
{
    return ++*(unsigned *)user > 50;
}

static void a_cancelled_replay_leaves_no_run(void **state)
{
    (void)state;
    unsigned asked = 0;
    gx_error err = {0};
    write_log(18, 1000);
    gx_replay_options o = options();
    o.query.cancel = stop_soon;
    o.query.user = &asked;
    o.run_path = in_dir("never.run");
    assert_int_equal(gx_replay(en, &o, report, &err), GX_ECANCELLED);
    assert_int_equal(access(o.run_path, F_OK), -1);
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void memory_does_not_grow_with_the_log(void **state)
{
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    print_message("a sanitizer takes memory of its own: it is not measured\n");
    skip();
#endif
    gx_replay_options o = options();
    o.batch = 64;
    o.threads = 2;
    o.run_path = "/dev/null";
    write_log(19, 10000);
    replay(&o);
    const long before = peak_kib();
    write_log(19, 300000);
    replay(&o);
    assert_int_equal(report->queries, 300000);
    /* The table of ids has 2^20 slots of 8 bytes, and half as many while it grew: 12 MiB. Answers
     * that were kept would take 23 MiB. */
    assert_in_range(peak_kib() - before, 0, 17 * 1024);
}

static void scores_that_differ_are_printed_differently(void **state)
{
    (void)state;
    gen_rng rng = {5};
    char text[32], next[32];
    for (uint32_t i = 0; i < 200000; ++i) {
        const uint32_t bits = gen_below(&rng, 31);
        const uint32_t sum = gen_below(&rng, (1u << bits) - (bits > 0)) + (1u << bits) - 1; /* 0 .. 2^31 - 2 */
        const int exponent = (int)gen_below(&rng, 180) - 90;
        const size_t n = gx_run_score(text, sum, exponent), m = gx_run_score(next, sum + 1, exponent);
        assert_in_range(n, 1, 24);
        assert_in_range(m, 1, 24);
        text[n] = next[m] = 0;
        const double score = ldexp(sum, -exponent), read = strtod(text, NULL);
        assert_true(fabs(read - score) <= 1e-10 * score);
        assert_true(read < strtod(next, NULL));
    }
    text[gx_run_score(text, 25, 1)] = 0;
    assert_string_equal(text, "12.5");
    text[gx_run_score(text, 0, 30)] = 0;
    assert_string_equal(text, "0");
}

static void a_run_stands_in_its_place_only_when_committed(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_run *run;
    gx_run_text text = {"x\n", 2, 2};
    size_t n;
    const char *path = in_dir("one.run");
    unlink(path);
    assert_int_equal(gx_run_open(&run, path, true, &err), GX_OK);
    assert_int_equal(gx_run_write(run, &text, &err), GX_OK);
    gx_run_close(run);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(gx_run_open(&run, path, true, &err), GX_OK);
    assert_int_equal(gx_run_write(run, &text, &err), GX_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(gx_run_commit(run, &err), GX_OK);
    gx_run_close(run);
    char *bytes = slurp(path, &n);
    assert_string_equal(bytes, "x\n");
    free(bytes);
    char many[1000] = "";
    const gx_run_text long_text = {memset(many, 'y', sizeof many), sizeof many, sizeof many};
    assert_int_equal(gx_run_open(&run, path, true, &err), GX_OK);
    for (unsigned i = 0; i < 1000; ++i)
        assert_int_equal(gx_run_write(run, i % 7 ? &long_text : &text, &err), GX_OK);
    assert_int_equal(gx_run_commit(run, &err), GX_OK);
    gx_run_close(run);
    bytes = slurp(path, &n);
    assert_int_equal(n, 857 * sizeof many + 143 * 2);
    assert_memory_equal(bytes + n - 5 * sizeof many - 3, "yx\nyy", 5);
    free(bytes);
    assert_int_equal(gx_run_open(&run, "/dev/full", false, &err), GX_OK);
    assert_int_equal(gx_run_write(run, &text, &err), GX_OK);
    assert_int_equal(gx_run_commit(run, &err), GX_EIO);
    gx_run_close(run);
}

static void blanks_in_ids_do_not_part_fields(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_run_text text = {0};
    const uint64_t key = gx_key(3, 5);
    assert_int_equal(gx_run_append(&text, ix, &(gx_run_answer){"a b", 3, &key, 1, 1}, "my tag", &err), GX_OK);
    assert_int_equal(text.n, strlen("a_b Q0 d5 1 1.5 my_tag\n"));
    assert_memory_equal(text.bytes, "a_b Q0 d5 1 1.5 my_tag\n", text.n);
    free(text.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_holds_what_searching_finds),
        cmocka_unit_test(threads_and_batches_leave_the_run_as_it_is),
        cmocka_unit_test(runs_add_up_and_the_warm_up_does_not_count),
        cmocka_unit_test(verifying_finds_equal_answers_equal),
        cmocka_unit_test(verifying_finds_differences),
        cmocka_unit_test(masks_of_both_engines_are_verified),
        cmocka_unit_test(a_fixed_rate_is_kept_and_waiting_counts),
        cmocka_unit_test(queries_arrive_at_the_times_of_a_trace_and_late_ones_are_counted),
        cmocka_unit_test(a_thread_that_waits_for_its_time_holds_up_no_other),
        cmocka_unit_test(a_replay_is_cancelled_before_its_next_query_is_due),
        cmocka_unit_test(bad_lines_fail_by_name_or_are_passed_over),
        cmocka_unit_test(a_query_of_too_many_terms_is_named),
        cmocka_unit_test(odd_logs_are_replayed),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(a_cancelled_replay_leaves_no_run),
        cmocka_unit_test(memory_does_not_grow_with_the_log),
        cmocka_unit_test(scores_that_differ_are_printed_differently),
        cmocka_unit_test(a_run_stands_in_its_place_only_when_committed),
        cmocka_unit_test(blanks_in_ids_do_not_part_fields),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
