/* replay.c: `gpuidx replay`: run a query log through an engine, time it, verify it, write a run. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/document_filter.h"
#include "tools/cli/facet_list.h"
#include "tools/cli/hybrid.h"
#include "tools/cli/progress.h"
#include "tools/cli/search_flags.h"
#include "tools/cli/signals.h"
#include "tools/commands/replay_report.h"
#include "tools/commands/replay_url.h"

#define HYBRID_BATCH 256u /* queries that are submitted at once, unless --batch says how many */

/* ---- interrupts and progress ---- */

typedef struct talk {
    progress progress;
    const char *doing;
} talk;

static void on_progress(void *user, const char *doing, uint64_t n)
{
    talk *t = user;
    if (t->doing != doing) {
        progress_end(&t->progress);
        t->progress = progress_begin("queries", 0);
        t->doing = doing;
    }
    progress_rate(&t->progress, doing, n);
}

static void on_say(void *user, const char *text)
{
    talk *t = user;
    const bool off = t->progress.off;
    progress_end(&t->progress); /* the line goes away for the words; what follows draws it again */
    t->progress.off = off;
    cli_warn("%s", text);
}

/* ---- the command ---- */

/* The engine to verify with: the CPU for a GPU; a GPU, where one can be used, for the CPU, but not for answers of
 * which only the CPU engine leaves something out. */
static int open_other(gx_engine **out, const gx_engine *en, const gx_index *ix, gx_engine_options options,
                      const gx_query_options *query)
{
    gx_error err = {0};
    const bool gpu = gx_engine_get_kind(en) == GX_ENGINE_GPU;
    if (!gpu && cli_skips_blocks(query))
        return 0;
    const bool told = options.kind == GX_ENGINE_AUTO; /* why there is none */
    options.result_cache = 0;
    options.kind = gpu ? GX_ENGINE_CPU : GX_ENGINE_GPU;
    const gx_status st = gx_engine_open(out, ix, &options, &err);
    if (st && gpu)
        return cli_fail_error(&err);
    if (st && !told)
        cli_note("no GPU to verify with: %s", err.text);
    return 0;
}

/* The engine to verify a hybrid's answers with. */
static int open_cpu(gx_engine **out, const gx_index *ix, gx_engine_options options)
{
    gx_error err = {0};
    options.result_cache = 0;
    options.kind = GX_ENGINE_CPU;
    return gx_engine_open(out, ix, &options, &err) ? cli_fail_error(&err) : 0;
}

static gx_replay_options read_options(const cli_args *a)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    gx_replay_options o = {
        .size = sizeof o,
        .log = a->argv[a->argc - 1],
        .read = {.columns = cli_text(a, "columns"),
                 .number = cli_choice(a, "ids") == 1,
                 .topic_fields = cli_text(a, "topic-fields"),
                 .members = cli_text(a, "members")},
        .query = cli_query_options(a),
        .kind = cli_query_kind(cli_choice(a, "syntax")),
        .batch = (uint32_t)cli_count(a, "batch"),
        .threads = (uint32_t)cli_count(a, "threads"),
        .runs = (uint32_t)cli_count(a, "runs"),
        .warmup = cli_count(a, "warmup"),
        .rate = cli_given(a, "rate") ? cli_number(a, "rate") : 0,
        .arrivals = (gx_arrivals)cli_choice(a, "arrivals"), /* in the order of gx_arrivals */
        .trace = cli_text(a, "trace"),
        .seed = cli_count(a, "seed"),
        .deadline = cli_given(a, "deadline") ? 1e-3 * cli_number(a, "deadline") : 0,
        .in_memory = cli_switch(a, "in-memory"),
        .queries = cli_given(a, "queries") ? cli_count(a, "queries") : 0,
        .skip_bad = cli_choice(a, "on-error") == 1,
        .run_path = cli_text(a, "run"),
        .tag = cli_text(a, "run-tag"),
        .verify_every = cli_given(a, "verify") ? cli_count(a, "verify") : 0,
        .say = on_say,
        .progress = on_progress,
    };
    if (!cli_given(a, "quotes"))
        o.query.quotes = GX_QUOTES_WORDS;
    if (o.threads == 0)
        o.threads = cores > 0 ? (uint32_t)cores : 1;
    gx_log_form_find(cli_text(a, "format"), &o.read.form);
    gx_log_encoding_find(cli_text(a, "encoding"), &o.read.encoding);
    o.query.cancel = is_stopped;
    o.force = cli_switch(a, "force");
    return o;
}

/* Warn of lines of the log that were not read as queries but may have been meant as such. */
static void tell_log(const replay_facts *f)
{
    const gx_log_counts *c = &f->r->log;
    if (c->header)
        cli_note("%s: its first line names the columns", f->a->argv[1]);
    if (c->operators && f->opt->kind == GX_QUERY_TEXT && f->opt->query.quotes == GX_QUOTES_WORDS)
        cli_note("%s: %s quer%s signs that look like operators: " CLI_PLAIN_SIGNS, f->a->argv[1],
                 show_count(c->operators), c->operators == 1 ? "y has" : "ies have");
    if (c->more_columns)
        cli_note("%s: %s line%s more columns than are read; --columns says which are the text", f->a->argv[1],
                 show_count(c->more_columns), c->more_columns == 1 ? " has" : "s have");
    if (c->repeated_ids)
        cli_note("%s: %s quer%s an id that an earlier one has; --run would refuse this log", f->a->argv[1],
                 show_count(c->repeated_ids), c->repeated_ids == 1 ? "y has" : "ies have");
    if (cli_given(f->a, "members") && f->r->form != GX_LOG_VECTORS)
        cli_warn("--members means nothing to a log of the form %s", gx_log_form_name(f->r->form));
    if (cli_given(f->a, "topic-fields") && f->r->form != GX_LOG_TOPICS)
        cli_warn("--topic-fields means nothing to a log of the form %s", gx_log_form_name(f->r->form));
}

/* Replay, and report; the index and the engines are open. */
static int replay(replay_facts *f, gx_engine *en, gx_replay_options *opt, gx_replay_report *r)
{
    talk t = {0};
    gx_error err = {0};
    opt->user = &t;
    cli_settle_approximate(&opt->query, en);
    f->opt = opt;
    f->r = r;
    const gx_status st = gx_replay(en, opt, r, &err);
    progress_end(&t.progress);
    if (st) {
        const int code = cli_fail_error(&err);
        if (st == GX_EUSAGE && opt->read.form == GX_LOG_GUESS)
            cli_note("-f says the log's form, and --columns what the columns of a TSV or CSV log are");
        return code;
    }
    tell_log(f);
    if (cli_gpu_failed(en, &err))
        cli_warn("%s", err.text);
    const char *path = cli_text(f->a, "report");
    const bool run_on_stdout = opt->run_path && !strcmp(opt->run_path, "-");
    int code = 0;
    if (path)
        code = replay_write_report(f, path);
    if (!path || (strcmp(path, "-") && !cli_quiet()))
        replay_put_report(run_on_stdout ? stderr : stdout, f);
    if (code)
        return code;
    return r->other_differs || r->exhaustive_differs;
}

/* Whether two paths name one file, which need not be there yet. */
static bool is_same_output(const char *a, const char *b)
{
    return strcmp(a, "/dev/null") && (!strcmp(a, b) || cli_same_file(a, b));
}

/* Check that no output is a file that is read, and that it replaces a file only with --force. 0, or
 * the exit code. */
static int check_output(const cli_args *a, const char *flag)
{
    const char *path = cli_text(a, flag);
    struct stat st;
    if (!path || !strcmp(path, "-") || stat(path, &st))
        return 0;
    const char *const inputs[] = {a->argv[0], a->argv[a->argc - 1], cli_text(a, "only"), cli_text(a, "not"),
                                  cli_text(a, "trace")};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; ++i)
        if (inputs[i] && cli_same_file(path, inputs[i]))
            return cli_usage(a, "--%s: %s is read by this replay; give another name", flag, path);
    if (S_ISREG(st.st_mode) && !cli_switch(a, "force"))
        return cli_fail(GX_EEXISTS, "%s exists: use --force to replace it, or give another name", path);
    return 0;
}

/* 0, or the exit code of flags that cannot stand together and of outputs that cannot be written. */
static int check_flags(const cli_args *a, gx_replay_options *opt)
{
    static const char *const of_hybrid[] = {"cpu-threads", "gpu-threads", "gpu-batch", "batch-time", "gpu-timeout"};
    if (cli_text(a, "report") && opt->run_path && !strcmp(cli_text(a, "report"), "-") && !strcmp(opt->run_path, "-"))
        return cli_usage(a, "--run and --report cannot both go to standard output");
    if (opt->run_path && cli_text(a, "report") && is_same_output(opt->run_path, cli_text(a, "report")))
        return cli_usage(a, "--run and --report are both %s, and one would replace the other; give another name",
                         opt->run_path);
    if (cli_text(a, "run-tag")[strcspn(cli_text(a, "run-tag"), " \t\r\n")] || !*cli_text(a, "run-tag"))
        return cli_usage(a, "--run-tag: a run's last column is neither empty nor has white space in it");
    if (opt->arrivals == GX_ARRIVALS_POISSON && !(opt->rate > 0))
        return cli_usage(a, "--arrivals=poisson needs --rate");
    if ((opt->arrivals == GX_ARRIVALS_TRACE) != (opt->trace != NULL))
        return cli_usage(a, "--arrivals=trace and --trace=FILE go together");
    if (cli_given(a, "seed") && opt->arrivals != GX_ARRIVALS_POISSON)
        return cli_usage(a, "--seed means something with --arrivals=poisson alone");
    const int refused = check_output(a, "run"), bad_report = refused ? 0 : check_output(a, "report");
    if (refused || bad_report)
        return refused ? refused : bad_report;
    if (!hybrid_is_asked(a) && (cli_given(a, "decisions") || cli_given(a, "profile")))
        return cli_usage(a, "--%s is of --engine=hybrid", cli_given(a, "profile") ? "profile" : "decisions");
    for (size_t i = 0; !hybrid_is_asked(a) && i < sizeof of_hybrid / sizeof *of_hybrid; ++i)
        if (cli_given(a, of_hybrid[i]))
            cli_note("--%s means something to --engine=hybrid alone", of_hybrid[i]);
    const int code = cli_add_sdm(&opt->query, a);
    return code ? code : cli_add_approximate(&opt->query, a);
}

/* Queries a batch, and the service that answers them if both engines do. both: NULL, or opened. */
static void choose_batch(gx_replay_options *opt, hybrid *both, const gx_engine *en)
{
    if (!opt->batch)
        opt->batch = both ? HYBRID_BATCH : gx_engine_get_kind(en) == GX_ENGINE_GPU ? 1024 : 1;
    if (!both)
        return;
    both->options.callers = opt->threads;
    both->options.bound = both->options.bound > opt->batch ? both->options.bound : opt->batch;
    opt->service = &both->options;
}

/* What a replay opens. */
typedef struct opened {
    gx_index *ix;
    gx_engine *en, *other;
    gx_mask *mask, *other_mask, *gpu_mask;
    document_filter filter;
    facet_list facets;
    id_files files;
    gx_rm3_options rm3;
    hybrid both;
    gx_replay_report *r;
} opened;

/* What is counted beside each answer. */
static int read_facets(opened *o, gx_replay_options *opt, const cli_args *a)
{
    gx_error err = {0};
    if (facet_list_read(&o->facets, o->ix, cli_text(a, "facet"), cli_text(a, "sums"), &err))
        return cli_fail_error(&err);
    if (o->facets.leaves_out && cli_given(a, "filter"))
        return cli_usage(a, "--facet: exclude-own is of the filters in the log; leave out --filter");
    if (o->facets.n && (hybrid_is_asked(a) || cli_given(a, "rm3")))
        return cli_usage(a, "--%s: leave out %s", o->facets.text ? "facet" : "sums",
                         cli_given(a, "rm3") ? "--rm3" : "--engine=hybrid");
    opt->facets = o->facets.facets;
    opt->n_facets = o->facets.n;
    return 0;
}

/* A prior, and what cannot stand beside it. */
static int read_prior(const opened *o, gx_replay_options *opt, const cli_args *a)
{
    static const char *const others[] = {"sort", "rm3", "verify"};
    gx_error err = {0};
    const int code = cli_add_prior(&opt->query, a);
    if (code || opt->query.prior.weight == 0)
        return code;
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        if (cli_given(a, others[i]))
            return cli_usage(a, "--prior: leave out --%s", others[i]);
    if (hybrid_is_asked(a))
        return cli_usage(a, "--prior: a service of both engines has none; leave out --engine=hybrid");
    return gx_prior_check(&opt->query.prior, o->ix, &err) ? cli_fail_error(&err) : 0;
}

/* Open all that the flags ask for; opt gets what replays read of it. 0, or the exit code. */
static int open_all(opened *o, const cli_args *a, const gx_engine_options *engine, gx_replay_options *opt)
{
    gx_error err = {0};
    o->r = calloc(1, sizeof *o->r);
    int code = o->r ? 0 : cli_fail(GX_ENOMEM, "no memory for the report");
    stop_on_signals();
    if (!code)
        code = cli_open_index(&o->ix, a, a->argv[0]);
    if (!code)
        id_files_open(&o->files, o->ix);
    opt->filter_options = &o->files.options;
    if (!cli_switch(a, "allow-id-files"))
        o->files.options.read_ids = document_filter_refuse_ids;
    if (!code)
        code = document_filter_read(&o->filter, o->ix, cli_text(a, "only"), cli_text(a, "not"), cli_text(a, "filter"));
    if (!code)
        code = cli_open_engine(&o->en, o->ix, engine);
    if (!code)
        code = cli_warm(o->en, a);
    if (!code)
        code = document_filter_open_mask(&o->mask, &o->filter, o->en);
    if (!code)
        cli_default_scorer(&opt->query, a, o->ix);
    if (!code)
        code = cli_add_synonyms(&opt->query, a, o->ix);
    if (!code)
        code = cli_rm3(&o->rm3, a, o->ix);
    if (!code)
        code = gx_sdm_check(&opt->query, o->ix, &err) ? cli_fail_error(&err) : 0;
    if (o->rm3.fb_docs)
        opt->rm3 = &o->rm3;
    opt->sort = cli_text(a, "sort");
    if (!code)
        code = read_facets(o, opt, a);
    if (!code)
        code = read_prior(o, opt, a);
    if (!code)
        code = cli_precompute_pair_thresholds(o->en, a, &opt->query);
    if (!code && hybrid_is_asked(a))
        code = hybrid_open(&o->both, a, a->argv[0], o->ix, o->en);
    if (!code)
        cli_tell_ignored(a, o->both.gpu || gx_engine_get_kind(o->en) == GX_ENGINE_GPU);
    if (!code && o->both.gpu)
        code = document_filter_open_mask(&o->gpu_mask, &o->filter, o->both.gpu);
    if (!code && opt->verify_every)
        code = hybrid_is_asked(a) ? open_cpu(&o->other, o->ix, *engine)
                                  : open_other(&o->other, o->en, o->ix, *engine, &opt->query);
    if (!code && o->other)
        code = document_filter_open_mask(&o->other_mask, &o->filter, o->other);
    return code;
}

static void close_all(opened *o)
{
    gx_mask_close(o->other_mask);
    gx_engine_close(o->other);
    gx_mask_close(o->gpu_mask);
    hybrid_close(&o->both);
    gx_mask_close(o->mask);
    gx_engine_close(o->en);
    gx_index_close(o->ix);
    document_filter_free(&o->filter);
    facet_list_free(&o->facets);
    id_files_close(&o->files);
    free(o->r);
}

/* Replay through a server. */
static int replay_server(const cli_args *a, gx_replay_options *opt)
{
    talk t = {0};
    gx_error err = {0};
    url_clients *clients = NULL;
    gx_replay_report *r = calloc(1, sizeof *r);
    int code = r ? url_clients_open(&clients, a, opt) : cli_fail(GX_ENOMEM, "no memory for the report");
    if (code == 0) {
        opt->user = &t;
        stop_on_signals();
        const gx_status st = gx_replay(NULL, opt, r, &err);
        progress_end(&t.progress);
        code = st ? cli_fail_error(&err) : url_report(clients, opt, r);
    }
    url_clients_close(clients);
    free(r);
    stop_die(NULL);
    return code;
}

static int run(const cli_args *a)
{
    opened o = {0};
    gx_engine_options engine = cli_engine_options(a);
    engine.result_cache = cli_count(a, "result-cache");
    gx_replay_options opt = read_options(a);
    int refused = check_flags(a, &opt);
    if (!refused && cli_given(a, "url")) {
        opt.batch = opt.batch ? opt.batch : 1;
        return replay_server(a, &opt);
    }
    if (!refused && a->argc != 2)
        refused = cli_usage(a, "an index and a log are needed, or --url and a log");
    if (refused || (refused = cli_add_devices(&engine, a)) || (refused = cli_add_residency(&engine, a)))
        return refused;
    int code = open_all(&o, a, &engine, &opt);
    if (!code) {
        choose_batch(&opt, hybrid_is_asked(a) ? &o.both : NULL, o.en);
        opt.service_mask = opt.service ? o.gpu_mask : NULL;
        opt.query.mask = o.mask;
        opt.other = o.other;
        opt.other_mask = o.other_mask;
        replay_facts f = {.a = a,
                          .ix = o.ix,
                          .en = o.en,
                          .other = o.other,
                          .filter = &o.filter,
                          .cache = engine.result_cache > 0,
                          .hybrid = opt.service ? &o.both : NULL};
        code = replay(&f, o.en, &opt, o.r);
    }
    close_all(&o);
    stop_die(NULL);
    return code;
}

static const cli_flag flags[] = {
    CLI_LOG_FLAGS,
    {"on-error", 0, CLI_CHOICE, "fail|skip", "fail", "what a malformed line or an impossible query does"},
    {"batch", 0, CLI_COUNT, "N", "0",
     "queries handed to the engine at once; 0: 1 on the CPU, 1,024 on a GPU, 256 to both", .max = 1 << 20},
    {"threads", 'j', CLI_COUNT, "N", "1", "threads, each with a session of its own; 0: one a processor", .max = 1024},
    {"runs", 0, CLI_COUNT, "N", "1",
     "replay the log `N` times; the report covers all of them. More runs give steadier figures", .min = 1,
     .max = UINT32_MAX},
    {"warmup", 0, CLI_COUNT, "N", "0",
     "answer the log's first `N` queries before measuring, so that files are in memory and the GPU is awake"},
    {"in-memory", 0, CLI_SWITCH, NULL, NULL,
     "read the log into memory first, so that reading it is no part of the measurement. Where queries are due at times "
     "of their own, this is done without the flag too. A log with vectors or a malformed line, one of more than 1 GiB, "
     "and standard input are read as queries are answered in any case"},
    {"queries", 'n', CLI_COUNT, "N", NULL,
     "queries of a run, from a log in memory, which begins again where it has fewer; for long runs of short logs",
     .min = 1},
    {"rate", 0, CLI_NUMBER, "Q/S", NULL,
     "send queries at this rate, whether or not earlier ones are answered; latency counts from when each was due",
     .min = 1e-6, .max = 1e9},
    {"arrivals", 0, CLI_CHOICE, "fixed|poisson|trace", "fixed",
     "how the queries of `--rate` follow each other: at equal distances, at random as those of many independent users "
     "do, or at the times of `--trace`"},
    {"trace", 0, CLI_TEXT, "FILE", NULL,
     "for `--arrivals=trace`, when each query arrives: a time in seconds a line, none below the line before; with "
     "`--rate` the times are stretched to this rate"},
    {"seed", 0, CLI_COUNT, "N", "1", "the seed of `--arrivals=poisson`; the same seed gives the same times"},
    {"deadline", 0, CLI_NUMBER, "MS", NULL,
     "count the queries whose latency is more than `MS` milliseconds. They are answered all the same", .min = 1e-6,
     .max = 1e9},
    {"url", 0, CLI_TEXT, "URL", NULL,
     "replay through the server of `gpuidx serve` at `http://HOST:PORT/NAME` in place of an index: each thread is a "
     "client with a connection, and `--batch` queries a request. GPUIDX_TOKEN of the environment is the token"},
    {"run", 'o', CLI_TEXT, "FILE", NULL, "write the answers as a TREC run; `-` is standard output"},
    {"run-tag", 0, CLI_TEXT, "NAME", "gpuidx", "the run's last column"},
    {"report", 0, CLI_TEXT, "FILE", NULL,
     "write the report as JSON, with the host, the date and the index's UUID; `-` is standard output. With `-q` there "
     "is no other report"},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace a run, a report or a log of decisions that exists"},
    {"verify", 0, CLI_COUNT, "N", NULL,
     "answer every query (every `N`th) again, on the other engine where there is one and with every posting scored, "
     "and count the answers that differ; exit with 1 if any does. With `--approximate`, tell the recall instead: the "
     "share of the exact answers' results that are found, or others of equal score",
     .min = 1, .bare = "1"},
    {"result-cache", 0, CLI_BYTES, "SIZE", "0",
     "keep the results of recent queries in at most this many bytes of host memory, such as `64M`. A query that comes "
     "again is then answered from there, with the same results. 0: keep none"},
    CLI_SEARCH_FLAGS,
    CLI_ID_FILES_FLAG,
    CLI_RM3_FLAG,
    {"sort", 0, CLI_LIST, "NAME,...", NULL,
     "order each query's results by the values of attributes, not by score, as `gpuidx help query` says; on the CPU"},
    {"facet", 0, CLI_LIST, "NAME[:N]", NULL,
     "also count all matches of each query by the attribute `NAME`, as `gpuidx help query` says; the report tells the "
     "time, and latencies have it, too"},
    {"sums", 0, CLI_LIST, "NAME[:FIGURE]...", NULL,
     "also find figures of the attribute `NAME` over all matches of each query, as `gpuidx help query` says"},
    {"prior", 0, CLI_TEXT, "NAME:w=X,form=F", NULL,
     "add a number of each document to its score, such as its pagerank, as `gpuidx help query` says; a run has these "
     "scores. Not with `--sort`, `--rm3` and `--verify`"},
    CLI_PAIR_THRESHOLDS_FLAG,
    CLI_HYBRID_FLAGS,
    {NULL},
};

static const cli_section sections[] = {
    {"Logs",
     "  efficiency  17:land rover                   TREC efficiency topics\n"
     "  million     17:2:land rover                 Million Query: 2 is a priority\n"
     "  tsv         17<TAB>land rover\n"
     "  csv         17,\"land, rover\"                or with ; | or a tab for the comma\n"
     "  lines       land rover                      the id is the line number\n"
     "  jsonl       {\"id\": \"17\", \"query\": \"land rover\"}\n"
     "  topics      <top> <num> 17 <title> land rover </top>\n"
     "  docs        <DOC> <DOCNO>17</DOCNO> land rover </DOC>\n"
     "  smart       .I 17, then .W, then land rover\n"
     "  vectors     {\"id\": \"17\", \"vector\": {\"land\": 1.5, \"rover\": 0.25}}: terms\n"
     "              with weights, which are not analysed; other members: --members\n"
     "  csr         a row of a sparse matrix, see `gpuidx help build`\n"
     "\n"
     "A line, or a topic, has at most 1 MiB, an id at most 255 bytes, and a query at most 1,024 different terms; a row "
     "of csr has no other limit than that.\n"
     "\n"
     "The form is guessed from the name, if it ends in .csv, or from the first lines; where these do not agree, or may "
     "be those of CSV or plain text, the log is refused, and -f says its form. So is a log whose first line names a "
     "column `query` but none of ids; `--columns` says what its columns are. The first line of a TSV or CSV log may "
     "name its columns; without this and without --columns, the first is the id and the second the text. What further "
     "columns of TSV hold is left out, which is told; of CSV they are refused. A line `sep=;`, which Excel writes, "
     "names the separator. Texts of TSV or CSV that are JSON objects of weights, `{\"land\": 1.5}`, are vectors. "
     "In topics, tags within a field are left out, and references such as `&amp;` stand for characters. "
     "Comments, which begin with `#` and a "
     "blank, or, where lines begin with an id, with `#`, are passed over. With `--run`, a query whose id an earlier "
     "query has is malformed, because no run can tell them apart; without it, a note counts such queries, as far as "
     "one of the first 65,536 has the id. Compressed logs are read as they are; `-` is standard input. A log "
     "without any query is bad input, and so is a file with many NUL bytes, which is no text; single ones are "
     "blanks. Blank lines are passed over, and counted; a query with an id and no text has no results."},
    {"Filters of queries",
     "A query of a TSV, CSV or JSONL log may have a filter of its own, as `gpuidx help query` describes them:\n"
     "\n"
     "  qid<TAB>query<TAB>filter                        the first line\n"
     "  17<TAB>land rover<TAB>year:[2015 TO 2019]\n"
     "  {\"id\": \"17\", \"query\": \"land rover\", \"filter\": \"year:2019\"}\n"
     "\n"
     "Without such a first line, `--columns=id,text,filter` names the column. A blank filter is none. `--only`, "
     "`--not` and `--filter` hold for all queries besides. With `--syntax=boolean` conditions may also stand in the "
     "query itself: `+rover +year:2019`. A file of ids (id:@FILE) is refused, unless `--allow-id-files` is given; it "
     "is read once for all queries."},
    {"Measurements",
     "Throughput is all queries of all runs over the time that they took, reading the log (unless it is in memory) and "
     "writing the run included. A query's latency goes from the moment that its batch was read until the batch's "
     "answers are there; with `--rate` or `--trace`, from the moment that it was due, so that time spent waiting for a "
     "free thread counts. Percentiles are right to three digits; mean and maximum are exact. Memory does not grow with "
     "the log, but for 16 to 32 bytes a query with `--run`, and for a log in memory. With `-` as `--run`, the report "
     "goes to standard error."},
    {"Work",
     "The report ends with what the engine did, in all and for each query. `postings of the terms` and `blocks of the "
     "terms` are the sums of the sizes of the queries' lists, which an exhaustive search reads. `block decodings` "
     "says how often the docids of a block were decoded: fewer than the blocks where the engine skips, and more where "
     "it comes back to a block whose docids it no longer keeps. `look-ups` are documents that were looked up in a "
     "list one by one. On a GPU, batches of a few queries are not counted."},
    {"Both engines",
     "With `--engine=hybrid` the `--threads` read, plan and submit queries, and further threads answer them on the CPU "
     "and, in batches, on the GPU. A query goes to the processor that is predicted to answer it much sooner; one that "
     "either can answer waits for the first that is free; a processor without work takes from the other. The more of "
     "its time to `--deadline` a query has waited, the sooner it is answered. Where nothing waits, the thread that "
     "submits a few short queries answers them itself. Batches of eight queries and more are not scheduled query by "
     "query, unless the GPU lacks lists of theirs or `--decisions` is given: the GPU gets the dearest queries, in the "
     "order in which batches come, and the thread that submits answers the cheapest, and more of them where the GPU "
     "does not keep up. Answers are the same, to the bit. "
     "Latency counts until each query's own answer. The work of the searches is not counted."},
    {"Expansion",
     "With `--rm3`, which `gpuidx help query` describes, the time of planning includes the first search and the "
     "expansion. `--verify` lets the other engine find its own feedback documents."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx replay corpus.gx queries.tsv --run bm25.run -k 1000", "A run for `gpuidx eval`, and its speed."},
    {"gpuidx replay corpus.gx log.txt --threads 0 --runs 3 --report report.json", "All processors, three times."},
    {"gpuidx replay corpus.gx log.txt --rate 500 --arrivals=poisson --deadline 5",
     "Latency under a load of 500 queries a second that arrive at random, and how many take more than 5 ms."},
    {"gpuidx replay --url=http://127.0.0.1:7700/papers log.txt --threads=64 --rate=20000",
     "Load a server, with latencies from when each query was due."},
    {"gpuidx replay corpus.gx log.txt --engine=gpu --verify", "Does the GPU give the same answers as the CPU?"},
    {NULL},
};

const cli_command cmd_replay = {
    .name = "replay",
    .summary = "run a query log and measure it",
    .synopsis = "[OPTIONS] INDEX LOG\n[OPTIONS] --url=URL LOG",
    .description = "Answers every query of a log and reports throughput, latency and work; writes the answers as a "
                   "TREC run; verifies that other ways of searching give the same answers.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .common = "format columns batch threads runs run report verify top op filter scorer engine url",
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
