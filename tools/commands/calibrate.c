/* calibrate.c: `gpuidx calibrate`: what queries cost on this machine, as a profile for scheduling. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/profile.h"
#include "tools/cli/progress.h"
#include "tools/cli/search_flags.h"
#include "tools/cli/signals.h"

static const char *const kind_titles[GX_N_COST_KINDS] = {"CPU", "GPU, alone", "GPU, batches"};
static const char *const op_titles[3] = {"OR", "AND", "AND-then-OR"};

static void on_progress(void *user, const char *doing, uint64_t n)
{
    progress_rate(user, doing, n);
}

/* ---- the report ---- */

static void put_error(const char *title, const gx_cost_error *e)
{
    if (e->n)
        printf("  %-42s %9s %9.1f %% %9.1f %% %9.1f %%\n", title, show_count(e->n), 100 * e->mean, 100 * e->median,
               100 * e->p90);
}

static void put_report(const gx_calibration *r)
{
    printf("Measured %s and %s queries in %.1f s\n", show_count(r->n_fitted), show_count(r->n_held_out), r->seconds);
    printf("%sRelative errors of the model%s                      costs       mean     median        p90\n",
           cli_paint(stdout, CLI_BOLD), cli_paint(stdout, CLI_PLAIN));
    for (int kind = 0; kind < GX_N_COST_KINDS; ++kind) {
        char title[80];
        if (!r->fitted[kind].n)
            continue;
        printf("%s\n", kind_titles[kind]);
        put_error("fitted", &r->fitted[kind]);
        put_error("held out", &r->held_out[kind]);
        for (int op = 0; op < 3; ++op) {
            snprintf(title, sizeof title, "  %s", op_titles[op]);
            put_error(title, &r->by_op[kind][op]);
        }
        for (int s = 0; s < GX_N_BATCH_SIZES && kind == GX_COST_GPU_BATCH; ++s) {
            snprintf(title, sizeof title, "  of %d queries", 2 << s);
            put_error(title, &r->by_size[s]);
        }
        for (int f = 0; f < GX_N_COST_FEATURES; ++f) {
            snprintf(title, sizeof title, "without %s", gx_cost_feature_name((gx_cost_feature)f));
            put_error(title, &r->without[kind][f]);
        }
    }
}

static json_t *error_json(const gx_cost_error *e)
{
    return e->n ? json_pack("{s:I, s:f, s:f, s:f}", "costs", (json_int_t)e->n, "mean", e->mean, "median", e->median,
                            "p90", e->p90)
                : json_null();
}

static int write_report(const gx_calibration *r, const char *path, bool force)
{
    gx_error err;
    json_t *kinds = json_object();
    for (int kind = 0; kind < GX_N_COST_KINDS; ++kind) {
        json_t *without = json_object();
        for (int f = 0; f < GX_N_COST_FEATURES; ++f)
            if (r->without[kind][f].n)
                json_object_set_new(without, gx_cost_feature_name((gx_cost_feature)f),
                                    error_json(&r->without[kind][f]));
        json_t *sizes = json_object();
        for (int s = 0; s < GX_N_BATCH_SIZES && kind == GX_COST_GPU_BATCH; ++s) {
            char size[16];
            snprintf(size, sizeof size, "%d", 2 << s);
            json_object_set_new(sizes, size, error_json(&r->by_size[s]));
        }
        json_object_set_new(kinds, gx_cost_kind_name((gx_cost_kind)kind),
                            json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "fitted", error_json(&r->fitted[kind]),
                                      "held_out", error_json(&r->held_out[kind]), "or", error_json(&r->by_op[kind][0]),
                                      "and", error_json(&r->by_op[kind][1]), "and-or", error_json(&r->by_op[kind][2]),
                                      "sizes", sizes, "without", without));
    }
    json_t *root = json_pack("{s:i, s:s, s:I, s:I, s:f, s:o}", "schema", 1, "gpuidx", gx_version(), "fitted_queries",
                             (json_int_t)r->n_fitted, "held_out_queries", (json_int_t)r->n_held_out, "seconds",
                             r->seconds, "relative_errors", kinds);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (!text)
        return cli_fail(GX_ENOMEM, "no memory for the report");
    int code = 0;
    if (strcmp(path, "-") == 0)
        printf("%s\n", text);
    else if (gx_write_file(path, text, strlen(text), force, &err))
        code = cli_fail_error(&err);
    free(text);
    return code;
}

/* ---- where the profile goes ---- */

static bool is_folder_writable(const char *path)
{
    char *folder = strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash)
        slash[slash == folder] = 0;
    const bool writable = folder && access(slash ? folder : ".", W_OK) == 0;
    free(folder);
    return writable;
}

/* Make the folders of a path in the cache, of which the last two may be missing. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
}

/* A file that exists is found before the queries are timed. */
static int refuse_old(const cli_args *a, const char *path)
{
    if (!path || !strcmp(path, "-") || cli_switch(a, "force") || !cli_is_regular(path))
        return 0;
    return cli_fail(GX_EEXISTS, "%s exists: use --force to replace it, or give another name", path);
}

/* The file that the profile goes to: --output, beside the index, or in the cache folder. The caller
 * frees it. NULL: the message is printed. */
static char *choose_output(const cli_args *a, const gx_index *ix, int *code)
{
    char *path = cli_text(a, "output") ? strdup(cli_text(a, "output")) : profile_beside(a->argv[0]);
    if (path && !cli_text(a, "output") && !is_folder_writable(path)) {
        char *cached = profile_in_cache(ix);
        if (cached) {
            free(path);
            path = cached;
            make_folders(path);
        }
    }
    if (!path)
        *code = cli_fail(GX_ENOMEM, "no memory for a path");
    else
        *code = refuse_old(a, path);
    if (path && *code) {
        free(path);
        path = NULL;
    }
    return path;
}

/* ---- the command ---- */

static int open_engines(gx_engine *engines[2], const cli_args *a, const gx_index *ix)
{
    gx_engine_options options = cli_engine_options(a);
    const int refused = cli_add_residency(&options, a);
    if (refused)
        return refused;
    for (int e = 0; e < 2; ++e) {
        gx_engine_options o = options;
        gx_error err = {0};
        if (options.kind == (e ? GX_ENGINE_CPU : GX_ENGINE_GPU))
            continue;
        o.kind = e ? GX_ENGINE_GPU : GX_ENGINE_CPU;
        const gx_status st = gx_engine_open(&engines[e], ix, &o, &err);
        if (st && (e == 0 || options.kind == GX_ENGINE_GPU))
            return cli_fail_error(&err);
        if (st)
            cli_note("the GPU is not measured: %s", err.text);
    }
    cli_tell_ignored(a, engines[1]);
    return engines[1] ? cli_warm(engines[1], a) : 0;
}

static int calibrate(const cli_args *a, gx_engine *engines[2], const char *output)
{
    gx_calibrate_options opt = GX_CALIBRATE_OPTIONS;
    gx_error err = {0};
    progress p = progress_begin("queries", 0);
    opt.log = a->argv[1];
    opt.test = a->argc > 2 ? a->argv[2] : NULL;
    opt.read = (gx_log_options){.columns = cli_text(a, "columns"),
                                .number = cli_choice(a, "ids") == 1,
                                .topic_fields = cli_text(a, "topic-fields"),
                                .members = cli_text(a, "members")};
    gx_log_form_find(cli_text(a, "format"), &opt.read.form);
    gx_log_encoding_find(cli_text(a, "encoding"), &opt.read.encoding);
    opt.n_queries = (uint32_t)cli_count(a, "queries");
    opt.runs = (uint32_t)cli_count(a, "runs");
    opt.seed = cli_count(a, "seed");
    opt.ablate = cli_switch(a, "ablate");
    opt.costs = cli_text(a, "costs");
    opt.algorithm = (gx_algorithm)cli_choice(a, "algorithm");
    opt.only_op = cli_choice(a, "op") - 1;
    opt.force = cli_switch(a, "force");
    opt.cancel = is_stopped;
    opt.progress = on_progress;
    opt.user = &p;
    gx_cost_profile *profile = malloc(sizeof *profile);
    gx_calibration *report = malloc(sizeof *report);
    int code = profile && report ? 0 : cli_fail(GX_ENOMEM, "no memory for a profile");
    if (!code && gx_calibrate(profile, report, engines[0], engines[1], &opt, &err)) {
        progress_end(&p);
        code = stop_fail(&err);
    }
    progress_end(&p);
    const char *path = cli_text(a, "report");
    const bool profile_on_stdout = output && !strcmp(output, "-");
    if (!code && output && gx_cost_profile_write(profile, output, cli_switch(a, "force"), &err))
        code = cli_fail_error(&err);
    if (!code && path)
        code = write_report(report, path, cli_switch(a, "force"));
    else if (!code && !profile_on_stdout && !cli_quiet())
        put_report(report);
    if (!code && output && !profile_on_stdout)
        cli_note("the profile is in %s", output);
    free(report);
    free(profile);
    return code;
}

static int run(const cli_args *a)
{
    gx_index *ix = NULL;
    gx_engine *engines[2] = {NULL, NULL};
    char *output = NULL;
    if (cli_text(a, "report") && cli_text(a, "output") && !strcmp(cli_text(a, "report"), cli_text(a, "output")))
        return cli_usage(a, "--report and --output both go to %s; give another name", cli_text(a, "output"));
    int code = cli_open_index(&ix, a, a->argv[0]);
    stop_on_signals();
    const bool of_searches = cli_choice(a, "algorithm") == GX_ALGORITHM_AUTO && cli_choice(a, "op") == 0;
    if (!code && (of_searches || cli_text(a, "output")))
        output = choose_output(a, ix, &code);
    if (!code)
        code = refuse_old(a, cli_text(a, "report"));
    if (!code)
        code = open_engines(engines, a, ix);
    if (!code)
        code = calibrate(a, engines, output);
    free(output);
    gx_engine_close(engines[0]);
    gx_engine_close(engines[1]);
    gx_index_close(ix);
    stop_die(NULL);
    return code;
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "FILE", NULL,
     "where the profile goes; `-` is standard output. Without this flag it is `INDEX.profile`, or, where that folder "
     "cannot be written, a file named by the index's UUID in `$XDG_CACHE_HOME/gpuidx` or `~/.cache/gpuidx`. `query` "
     "and `replay` with `--engine=hybrid` look in these places"},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace a profile, a report or a table of costs that exists"},
    {"queries", 'n', CLI_COUNT, "N", "3000", "most queries that are taken of a log, from its beginning", .min = 1,
     .max = 1 << 20},
    {"runs", 0, CLI_COUNT, "N", "5", "times that each query and each batch is timed; the median counts", .min = 1,
     .max = 1000},
    {"algorithm", 0, CLI_CHOICE, CLI_ALGORITHMS, "auto",
     "measure queries answered in this way, as `gpuidx query --algorithm` has them; batches are measured with `auto` "
     "alone. `daat` measures the algorithms of Ding et al. (2009): document at a time on the CPU, Parallel Merge Find "
     "on the GPU; the simulation of `gpuidx bench schedule` makes their Figure 7 of its `--costs`. Unless it is "
     "`auto`, no profile is kept but by `--output`, since searches answer otherwise"},
    {"op", 0, CLI_CHOICE, "all|" CLI_OPS, "all",
     "measure this operator alone; then no profile is kept but by `--output`"},
    {"seed", 0, CLI_COUNT, "N", "1", "chooses the queries of the batches"},
    {"ablate", 0, CLI_SWITCH, NULL, NULL,
     "also tell the errors of models that lack one of the features, for each feature in turn"},
    {"report", 0, CLI_TEXT, "FILE", NULL, "write the errors as JSON instead; `-` is standard output"},
    {"costs", 0, CLI_TEXT, "FILE", NULL,
     "also write all measured costs, a line each, for other models and for `gpuidx bench schedule --costs`"},
    CLI_LOG_FLAGS,
    {"engine", 0, CLI_CHOICE, CLI_ENGINES, "auto",
     "what is measured; `auto`: the CPU, and the GPU where one can be used"},
    CLI_DEVICE_FLAGS,
    CLI_RESIDENCY_FLAGS,
    CLI_INDEX_FLAGS,
    {NULL},
};

static const cli_section sections[] = {
    {"The model",
     "A query's time on the CPU and its time alone on the GPU are predicted from the lengths of its shortest, second "
     "shortest and longest list, the sum of the lengths of all its lists, in full and with at most 128, 1,000 and "
     "10,000 postings of each, the postings of its essential lists, which are those that a search reads whole, the "
     "number of lists, k and the operator, and with `--resident` from the bytes of its lists that are not in GPU "
     "memory. The time of a batch is predicted from the times of its queries alone, their sums and greatest, and its "
     "size. A linear model is chosen by operator, k, number of lists and lengths, of batches by operator, k, size and "
     "whether a query has more than 6 lists. Its weights are fitted so that relative errors are small; those of "
     "batches are never negative. The queries of `LOG` are asked by every operator, with k of 10 and of 1,000, alone "
     "and in 256 batches of each of 2, 4, .. 64 queries and 16 of each of 128 to 1,024: a scheduler sends more than "
     "64 only when it is overloaded."},
    {"Accuracy",
     "The error of a prediction is its distance from the measured time, relative to that time. `held out` are the "
     "errors on `TEST`, or, without it, on every second query of `LOG`, to which the model is not fitted. Other "
     "programs that run meanwhile make times longer and errors greater."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx calibrate corpus.gx log.txt", "Measure, and keep the profile beside the index."},
    {"gpuidx calibrate corpus.gx log.txt --algorithm=daat --op=and --costs=costs.tsv",
     "Costs of the algorithms of Ding et al. (2009), for the simulation of `gpuidx bench schedule`."},
    {"gpuidx calibrate corpus.gx log.txt other.txt --ablate -o /dev/null",
     "How well does a model of one log predict another, and which features does it need?"},
    {NULL},
};

const cli_command cmd_calibrate = {
    .name = "calibrate",
    .summary = "measure what queries cost, for scheduling",
    .synopsis = "[OPTIONS] INDEX LOG [TEST]",
    .description = "Times the queries of a log on the CPU and on the GPU, fits a model that predicts such times, and "
                   "keeps it as a profile, by which searches with `--engine=hybrid` choose the engine of each query. "
                   "Without a profile they use one of an NVIDIA H200.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .common = "output force queries runs report format columns engine device resident",
    .min_args = 2,
    .max_args = 3,
    .run = run,
};
