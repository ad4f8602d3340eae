/* replay.c: `gpuidx replay`: a query log run through an engine, timed, written as a run, verified.
 * */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/gpuidx_advanced.h"
#include "tools/document_filter.h"
#include "tools/hybrid.h"
#include "tools/progress.h"
#include "tools/search_flags.h"
#include "tools/signals.h"

#define HYBRID_BATCH 256u /* queries that are submitted at once, unless --batch says how many */

static const double percentiles[] = {50, 90, 95, 99, 99.9};
enum { N_PERCENTILES = sizeof percentiles / sizeof *percentiles };

typedef struct session_facts {
    const cli_args *a;
    const gx_index *ix;
    const gx_engine *en, *other;
    const gx_replay_options *opt;
    const gx_replay_report *r;
    const document_filter *filter;
    bool cache;           /* there is a result cache */
    const hybrid *hybrid; /* NULL: one engine searches */
} session_facts;

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

/* ---- the report for people ---- */

/* "12.3 us", "4.56 ms", "7.89 s" */
static const char *duration(char text[32], double ns)
{
    const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    size_t i = 0;
    while (i < 2 && ns < units[i].unit)
        ++i;
    const double value = ns / units[i].unit;
    snprintf(text, 32, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[i].name);
    return text;
}

static void put_count(FILE *out, const char *name, uint64_t n, uint64_t queries)
{
    fprintf(out, "  %-22s %15s", name, show_count(n));
    const double each = queries ? (double)n / (double)queries : 0;
    if (queries && each >= 1000)
        fprintf(out, "   %s a query", show_count((uint64_t)(each + 0.5)));
    else if (queries)
        fprintf(out, "   %.4g a query", each);
    putc('\n', out);
}

static void put_stage(FILE *out, const char *name, double seconds, const gx_replay_report *r, uint32_t threads)
{
    char text[32];
    if (seconds > 0 && r->queries)
        fprintf(out, "  %-22s %15s   %.1f %%\n", name, duration(text, seconds * 1e9 / (double)r->queries),
                100 * seconds / (r->seconds * threads));
}

static void put_latency(FILE *out, const gx_replay_report *r)
{
    char text[32], name[16];
    fprintf(out, "  mean %s", duration(text, gx_histogram_mean(&r->latency)));
    for (size_t i = 0; i < N_PERCENTILES; ++i) {
        snprintf(name, sizeof name, "p%g", percentiles[i]);
        fprintf(out, ", %s %s", name, duration(text, (double)gx_histogram_quantile(&r->latency, percentiles[i] / 100)));
    }
    fprintf(out, ", max %s\n", duration(text, (double)r->latency.max));
}

static void put_log_facts(FILE *out, const gx_replay_report *r)
{
    const gx_log_counts *c = &r->log;
    fprintf(out, " (%s", gx_log_form_name(r->form));
    if (c->filtered)
        fprintf(out, "; %s with a filter", show_count(c->filtered));
    if (c->empty)
        fprintf(out, "; %" PRIu64 " empty", c->empty);
    if (c->blank)
        fprintf(out, "; %" PRIu64 " blank line%s passed over", c->blank, c->blank == 1 ? "" : "s");
    if (c->comments)
        fprintf(out, "; %" PRIu64 " comment%s passed over", c->comments, c->comments == 1 ? "" : "s");
    if (c->latin1)
        fprintf(out, "; %" PRIu64 " line%s converted from Latin-1", c->latin1, c->latin1 == 1 ? "" : "s");
    if (c->invalid)
        fprintf(out, "; %" PRIu64 " line%s with invalid UTF-8", c->invalid, c->invalid == 1 ? "" : "s");
    if (c->nuls)
        fprintf(out, "; %" PRIu64 " NUL byte%s read as blanks", c->nuls, c->nuls == 1 ? "" : "s");
    if (c->bad + r->impossible)
        fprintf(out, "; %" PRIu64 " refused", c->bad + r->impossible);
    fputs(")\n", out);
}

static void put_verified(FILE *out, const session_facts *f)
{
    const gx_replay_report *r = f->r;
    if (!f->opt->verify_every)
        return;
    fprintf(out, "Verified %s quer%s, docids and score bits\n", show_count(r->verified), plural_y(r->verified));
    if (f->other)
        fprintf(out, "  %-22s %15s differ\n",
                gx_engine_get_kind(f->other) == GX_ENGINE_GPU ? "on the GPU" : "on the CPU",
                show_count(r->other_differs));
    fprintf(out, "  %-22s %15s differ\n", "every posting scored", show_count(r->exhaustive_differs));
}

static const char *const step_names[GX_N_STEPS] = {"  initializing", "  decompressing", "  intersecting", "  scoring",
                                                   "  choosing the best"};

static const char *const algorithm_words[GX_N_ALGORITHMS] = {"", ", by Parallel Merge Find", ", term at a time",
                                                             ", by bounds of ranges"};

/* Whether queries arrive at times of their own. */
static bool is_open_loop(const gx_replay_options *opt)
{
    return opt->rate > 0 || opt->arrivals != GX_ARRIVALS_FIXED;
}

/* Print which log was replayed on which index, and with which options. */
static void put_setup(FILE *out, const session_facts *f)
{
    const gx_replay_report *r = f->r;
    const gx_replay_options *opt = f->opt;
    gx_index_stats st = {.size = sizeof st};
    gx_index_get_stats(f->ix, &st);
    fprintf(out, "%sIndex %s%s: %s document%s, ", cli_paint(out, CLI_BOLD), f->a->argv[0], cli_paint(out, CLI_PLAIN),
            show_count(st.n_docs), st.n_docs == 1 ? "" : "s");
    fprintf(out, "%s posting%s; engine %s\n", show_count(st.n_postings), plural(st.n_postings),
            gx_engine_describe(f->en));
    fprintf(out, "%sLog %s%s: %s quer%s", cli_paint(out, CLI_BOLD), f->a->argv[1], cli_paint(out, CLI_PLAIN),
            show_count(r->log.queries), r->log.queries == 1 ? "y" : "ies");
    put_log_facts(out, r);
    fprintf(out, "%s, %s, k %u%s; batches of %u, %u thread%s, %u run%s", cli_text(f->a, "op"),
            gx_preset_name(opt->query.preset), opt->query.k, algorithm_words[opt->query.algorithm], r->batch,
            opt->threads, opt->threads == 1 ? "" : "s", opt->runs, opt->runs == 1 ? "" : "s");
    if (opt->rate > 0)
        fprintf(out, opt->rate < 1000 ? ", %.6g queries/s offered" : ", %.0f queries/s offered", opt->rate);
    if (opt->arrivals == GX_ARRIVALS_POISSON)
        fprintf(out, " by a Poisson process of seed %" PRIu64, opt->seed);
    else if (opt->arrivals == GX_ARRIVALS_TRACE)
        fprintf(out, "%s at the times of %s", opt->rate > 0 ? "" : ", queries arrive", opt->trace);
    if (opt->rm3)
        fprintf(out, "; expanded by RM3 (%u document%s, %u term%s, weight %g)", opt->rm3->fb_docs,
                plural(opt->rm3->fb_docs), opt->rm3->fb_terms, plural(opt->rm3->fb_terms), opt->rm3->weight);
    putc('\n', out);
    if (f->filter->words)
        fprintf(out, "Only %s document%s may be results\n", show_count(f->filter->n_allowed),
                plural(f->filter->n_allowed));
}

static void put_speed(FILE *out, const session_facts *f)
{
    char text[32];
    const gx_replay_report *r = f->r;
    const gx_replay_options *opt = f->opt;
    fprintf(out, "%s%s queries/s%s", cli_paint(out, CLI_BOLD), show_count((uint64_t)((double)r->queries / r->seconds)),
            cli_paint(out, CLI_PLAIN));
    fprintf(out, " (%s quer%s in %.3f s, %.3f s of processor time", show_count(r->queries), plural_y(r->queries),
            r->seconds, r->cpu_seconds);
    if (opt->runs > 1)
        fprintf(out, "; fastest run %.3f s, slowest %.3f s", r->fastest, r->slowest);
    fprintf(out, ")\nLatency%s\n",
            is_open_loop(opt) ? ", from when a query was due"
            : r->batch > 1    ? ", of whole batches"
                              : "");
    put_latency(out, r);
    if (opt->deadline > 0)
        fprintf(out, "  %s quer%s later than the deadline of %s (%.3g %%)\n", show_count(r->late),
                r->late == 1 ? "y" : "ies", duration(text, opt->deadline * 1e9),
                100 * (double)r->late / (double)r->queries);
}

static void put_stages(FILE *out, const session_facts *f)
{
    const gx_replay_report *r = f->r;
    const gx_replay_options *opt = f->opt;
    const gx_search_stats *w = &r->work;
    fputs("Time a query, and share of the threads' time\n", out);
    put_stage(out, "reading the log", r->stages.read, r, opt->threads);
    put_stage(out, "planning", r->stages.plan, r, opt->threads);
    put_stage(out, "searching", r->stages.search, r, opt->threads);
    put_stage(out, "  copying in", w->seconds[GX_SEARCH_COPY_IN], r, opt->threads);
    put_stage(out, "  scoring", w->seconds[GX_SEARCH_SCORE], r, opt->threads);
    put_stage(out, "  selecting", w->seconds[GX_SEARCH_SELECT], r, opt->threads);
    put_stage(out, "  copying out", w->seconds[GX_SEARCH_COPY_OUT], r, opt->threads);
    if (opt->query.algorithm == GX_ALGORITHM_PMF || opt->query.algorithm == GX_ALGORITHM_TAAT) {
        for (int i = 0; i < GX_N_STEPS; ++i)
            put_stage(out, step_names[i], w->steps[i], r, opt->threads);
    }
    put_stage(out, "writing results", r->stages.write, r, opt->threads);
    put_stage(out, "waiting", r->stages.wait, r, opt->threads);
}

/* Which processor answered what. */
static void put_service(FILE *out, const session_facts *f)
{
    const gx_service_counts *c = &f->r->service;
    const double n = c->answered ? (double)c->answered : 1;
    fprintf(out, "Answered\n  %-22s %15s   %.1f %%, by %u thread%s\n", "on the CPU",
            show_count(c->by[GX_PROCESSOR_CPU]), 100 * (double)c->by[GX_PROCESSOR_CPU] / n,
            f->hybrid->options.cpu_threads, plural(f->hybrid->options.cpu_threads));
    if (f->hybrid->gpu)
        fprintf(out, "  %-22s %15s   %.1f %%, in %s batches of %.1f on average\n", "on the GPU",
                show_count(c->by[GX_PROCESSOR_GPU]), 100 * (double)c->by[GX_PROCESSOR_GPU] / n, show_count(c->batches),
                c->batches ? (double)c->by[GX_PROCESSOR_GPU] / (double)c->batches : 0);
    fprintf(out, "  %-22s %15s\n  %-22s %15s\n", "stolen from the other", show_count(c->stolen), "near their deadline",
            show_count(c->urgent));
    if (c->gpu_failures)
        fprintf(out, "  %-22s %15s   %s quer%s answered by the CPU instead\n", "failures of the GPU",
                show_count(c->gpu_failures), show_count(c->fell_back), plural_y(c->fell_back));
}

static void put_work(FILE *out, const session_facts *f)
{
    const gx_replay_report *r = f->r;
    const gx_search_stats *w = &r->work;
    if (f->hybrid)
        put_service(out, f);
    fputs("Work\n", out);
    put_count(out, "results", r->results, r->queries);
    put_count(out, "without results", r->without_results, 0);
    if (!f->hybrid) {
        put_count(out, "postings of the terms", w->postings, r->queries);
        put_count(out, "blocks of the terms", w->blocks, r->queries);
    }
    if (w->blocks_decoded)
        put_count(out, "block decodings", w->blocks_decoded, r->queries);
    if (w->lookups)
        put_count(out, "look-ups", w->lookups, r->queries);
    if (f->cache)
        fprintf(out, "  %-22s %15s   %.1f %% of the queries\n", "from the result cache", show_count(w->cached),
                r->queries ? 100 * (double)w->cached / (double)r->queries : 0);
    if (w->driven)
        put_count(out, "filters looked up", w->driven, r->queries);
    if (w->masked)
        put_count(out, "filters by mask", w->masked, r->queries);
    if (w->tested)
        put_count(out, "filters by values", w->tested, r->queries);
    if (w->and_fell_to_or)
        put_count(out, "AND fell back to OR", w->and_fell_to_or, r->queries);
}

static void put_report(FILE *out, const session_facts *f)
{
    const gx_replay_report *r = f->r;
    put_setup(out, f);
    if (r->queries) {
        put_speed(out, f);
        put_stages(out, f);
    }
    put_work(out, f);
    if (r->memory.device + r->memory.pinned) {
        fprintf(out, "Memory of a session\n  %-22s %12.1f MB\n  %-22s %12.1f MB\n", "on the GPU",
                (double)r->memory.device / 1e6, "pinned on the host", (double)r->memory.pinned / 1e6);
    }
    put_verified(out, f);
}

/* ---- the report for programs ---- */

/* A value that JSON has: NaN becomes null. */
static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *text_or_null(const char *text)
{
    json_t *j = json_string(text);
    return j ? j : json_null(); /* a path that is no UTF-8 */
}

static json_t *latency_json(const gx_replay_report *r)
{
    char name[16];
    json_t *o = json_object();
    json_object_set_new(o, "of", json_string(r->batch > 1 ? "batch" : "query"));
    json_object_set_new(o, "mean", real(gx_histogram_mean(&r->latency) * 1e-3));
    json_object_set_new(o, "min", real((double)r->latency.min * 1e-3));
    for (size_t i = 0; i < N_PERCENTILES; ++i) {
        snprintf(name, sizeof name, "p%g", percentiles[i]);
        json_object_set_new(o, name, real((double)gx_histogram_quantile(&r->latency, percentiles[i] / 100) * 1e-3));
    }
    json_object_set_new(o, "max", real((double)r->latency.max * 1e-3));
    return o;
}

/* k1 or b: as asked for, or the scorer's own, without a float's further digits;
 * null where it has none. */
static json_t *parameter(float asked, float own)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", isnan(asked) ? own : asked);
    return real(strtod(text, NULL));
}

static json_t *file_or_null(const char *path)
{
    return path ? text_or_null(path) : json_null();
}

static json_t *options_json(const session_facts *f)
{
    const gx_replay_options *opt = f->opt;
    float k1, b; /* the scorer's own */
    gx_preset_parameters(opt->query.preset, &k1, &b);
    const bool open = is_open_loop(opt), random = opt->arrivals == GX_ARRIVALS_POISSON;
    return json_pack("{s:s, s:s, s:I, s:o, s:o, s:b, s:s, s:i, s:I, s:I, s:I, s:i, s:i, s:i, s:I, s:o, s:o, s:o, s:o,"
                     " s:o}",
                     "op", cli_text(f->a, "op"), "scorer", gx_preset_name(opt->query.preset), "k",
                     (json_int_t)opt->query.k, "k1", parameter(opt->query.k1, k1), "b", parameter(opt->query.b, b),
                     "prune", opt->query.prune, "algorithm", cli_text(f->a, "algorithm"), "recursion",
                     (int)opt->query.recursion, "pair_thresholds", (json_int_t)cli_count(f->a, "pair-thresholds"),
                     "linger", (json_int_t)cli_count(f->a, "linger"), "result_cache",
                     (json_int_t)cli_count(f->a, "result-cache"), "batch", (int)f->r->batch, "threads",
                     (int)opt->threads, "runs", (int)opt->runs, "warmup", (json_int_t)opt->warmup, "rate",
                     real(opt->rate), "arrivals", open ? json_string(cli_text(f->a, "arrivals")) : json_null(), "trace",
                     file_or_null(opt->trace), "seed", random ? json_integer((json_int_t)opt->seed) : json_null(),
                     "deadline_us", opt->deadline > 0 ? real(opt->deadline * 1e6) : json_null());
}

static json_t *filter_json(const session_facts *f)
{
    if (!f->filter->words)
        return json_null();
    return json_pack("{s:o, s:o, s:s?, s:I}", "only", file_or_null(cli_text(f->a, "only")), "not",
                     file_or_null(cli_text(f->a, "not")), "expression", f->filter->expression, "documents",
                     (json_int_t)f->filter->n_allowed);
}

static json_t *stages_json(const gx_replay_report *r)
{
    const double *s = r->work.seconds;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "read", real(r->stages.read), "plan",
                     real(r->stages.plan), "search", real(r->stages.search), "search_copy_in",
                     real(s[GX_SEARCH_COPY_IN]), "search_score", real(s[GX_SEARCH_SCORE]), "search_select",
                     real(s[GX_SEARCH_SELECT]), "search_copy_out", real(s[GX_SEARCH_COPY_OUT]), "write",
                     real(r->stages.write), "wait", real(r->stages.wait));
}

static json_t *verify_json(const session_facts *f)
{
    if (!f->opt->verify_every)
        return json_null();
    return json_pack("{s:I, s:o, s:o, s:I}", "queries", (json_int_t)f->r->verified, "other_engine",
                     f->other ? text_or_null(gx_engine_describe(f->other)) : json_null(), "other_engine_differs",
                     f->other ? json_integer((json_int_t)f->r->other_differs) : json_null(), "exhaustive_differs",
                     (json_int_t)f->r->exhaustive_differs);
}

static json_t *date_json(void)
{
    char text[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_string(text);
}

/* The machine: its name, processor and number of processors. */
static json_t *host_json(void)
{
    char name[256] = "", line[512], cpu[256] = "";
    gethostname(name, sizeof name - 1);
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !*cpu && fgets(line, sizeof line, f))
        sscanf(line, "model name : %255[^\n]", cpu);
    if (f)
        fclose(f);
    return json_pack("{s:o, s:o, s:I}", "name", text_or_null(name), "cpu", *cpu ? text_or_null(cpu) : json_null(),
                     "processors", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN));
}

static json_t *uuid_json(const gx_index_stats *st)
{
    char text[37], *p = text;
    for (int i = 0; i < 16; ++i)
        p += sprintf(p, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", st->uuid[i]);
    return json_string(text);
}

/* The codecs of the index's lists. */
static json_t *codings_json(const gx_index *ix)
{
    static gx_index_sizes s; /* large for the stack; the report is made once, by one thread */
    json_t *list = json_array();
    gx_index_measure(ix, &s);
    for (uint32_t i = 0; i < s.n_codings; ++i)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "docids", s.codings[i].docid_codec, "tfs",
                                              s.codings[i].tf_codec, "lists", (json_int_t)s.codings[i].n_lists));
    return list;
}

static json_t *hybrid_json(const session_facts *f)
{
    const gx_service_counts *c = &f->r->service;
    const gx_service_options *o = &f->hybrid->options;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:f, s:o}", "by_cpu",
                     (json_int_t)c->by[GX_PROCESSOR_CPU], "by_gpu", (json_int_t)c->by[GX_PROCESSOR_GPU], "gpu_batches",
                     (json_int_t)c->batches, "stolen", (json_int_t)c->stolen, "urgent", (json_int_t)c->urgent,
                     "gpu_failures", (json_int_t)c->gpu_failures, "fell_back", (json_int_t)c->fell_back, "cpu_threads",
                     (int)o->cpu_threads, "gpu_threads", (int)o->gpu_threads, "gpu_batch", (int)o->batch,
                     "batch_time_us", o->batch_seconds * 1e6, "gpu",
                     f->hybrid->gpu ? text_or_null(gx_engine_describe(f->hybrid->gpu)) : json_null());
}

static json_t *report_json(const session_facts *f)
{
    const gx_replay_report *r = f->r;
    const gx_search_stats *w = &r->work;
    gx_index_stats st = {.size = sizeof st};
    gx_index_get_stats(f->ix, &st);
    json_t *root = json_pack("{s:i, s:s}", "schema", 1, "gpuidx", gx_version());
    json_object_set_new(root, "date", date_json());
    json_object_set_new(root, "host", host_json());
    json_object_set_new(root, "index",
                        json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "uuid", uuid_json(&st), "codings",
                                  codings_json(f->ix), "path", text_or_null(f->a->argv[0]), "documents",
                                  (json_int_t)st.n_docs, "terms", (json_int_t)st.n_terms, "postings",
                                  (json_int_t)st.n_postings, "bytes", (json_int_t)st.file_bytes));
    json_object_set_new(root, "engine",
                        json_pack("{s:s, s:o}", "kind",
                                  f->hybrid                                    ? "hybrid"
                                  : gx_engine_get_kind(f->en) == GX_ENGINE_GPU ? "gpu"
                                                                               : "cpu",
                                  "name", text_or_null(gx_engine_describe(f->en))));
    json_object_set_new(root, "log",
                        json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "path",
                                  text_or_null(f->a->argv[1]), "form", gx_log_form_name(r->form), "queries",
                                  (json_int_t)r->log.queries, "empty", (json_int_t)r->log.empty, "blank_lines",
                                  (json_int_t)r->log.blank, "refused", (json_int_t)(r->log.bad + r->impossible),
                                  "latin1_lines", (json_int_t)r->log.latin1, "invalid_utf8_lines",
                                  (json_int_t)r->log.invalid, "nul_bytes", (json_int_t)r->log.nuls, "repeated_ids",
                                  (json_int_t)r->log.repeated_ids, "filtered", (json_int_t)r->log.filtered));
    json_object_set_new(root, "options", options_json(f));
    json_object_set_new(root, "rm3",
                        f->opt->rm3 ? json_pack("{s:i, s:i, s:f}", "documents", (int)f->opt->rm3->fb_docs, "terms",
                                                (int)f->opt->rm3->fb_terms, "weight", f->opt->rm3->weight)
                                    : json_null());
    json_object_set_new(root, "filter", filter_json(f));
    json_object_set_new(root, "queries", json_integer((json_int_t)r->queries));
    json_object_set_new(root, "seconds", real(r->seconds));
    json_object_set_new(root, "cpu_seconds", real(r->cpu_seconds));
    json_object_set_new(root, "queries_per_second", real(r->seconds > 0 ? (double)r->queries / r->seconds : 0));
    json_object_set_new(root, "run_seconds",
                        json_pack("{s:o, s:o}", "fastest", real(r->fastest), "slowest", real(r->slowest)));
    json_object_set_new(root, "latency_us", latency_json(r));
    json_object_set_new(root, "late", f->opt->deadline > 0 ? json_integer((json_int_t)r->late) : json_null());
    json_object_set_new(root, "results", json_integer((json_int_t)r->results));
    json_object_set_new(root, "queries_without_results", json_integer((json_int_t)r->without_results));
    json_object_set_new(root, "work",
                        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "postings", (json_int_t)w->postings, "blocks",
                                  (json_int_t)w->blocks, "blocks_decoded", (json_int_t)w->blocks_decoded, "lookups",
                                  (json_int_t)w->lookups, "and_fell_to_or", (json_int_t)w->and_fell_to_or, "cached",
                                  (json_int_t)w->cached));
    json_object_set_new(root, "session_memory",
                        json_pack("{s:I, s:I}", "device_bytes", (json_int_t)r->memory.device, "pinned_bytes",
                                  (json_int_t)r->memory.pinned));
    json_object_set_new(root, "stage_seconds", stages_json(r));
    json_object_set_new(root, "hybrid", f->hybrid ? hybrid_json(f) : json_null());
    json_object_set_new(root, "verify", verify_json(f));
    return root;
}

static int write_report(const session_facts *f, const char *path)
{
    int code = 0;
    json_t *root = report_json(f);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (!text)
        return cli_fail(GX_ENOMEM, "no memory for the report");
    gx_error err;
    if (strcmp(path, "-") == 0)
        printf("%s\n", text);
    else if (gx_write_file(path, text, strlen(text), cli_switch(f->a, "force"), &err))
        code = cli_fail_error(&err);
    free(text);
    return code;
}

/* ---- the command ---- */

/* The kind of the engine to verify with: the CPU for a GPU, and a GPU, where one can be used, for
 * the CPU. */
static int open_other(gx_engine **out, const gx_engine *en, const gx_index *ix, gx_engine_options options)
{
    gx_error err = {0};
    const bool gpu = gx_engine_get_kind(en) == GX_ENGINE_GPU;
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
        .log = a->argv[1],
        .read = {.columns = cli_text(a, "columns"), .topic_fields = cli_text(a, "topic-fields")},
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
        .skip_bad = cli_choice(a, "on-error") == 1,
        .run_path = cli_text(a, "run"),
        .tag = cli_text(a, "run-tag"),
        .verify_every = cli_given(a, "verify") ? cli_count(a, "verify") : 0,
        .say = on_say,
        .progress = on_progress,
    };
    if (o.threads == 0)
        o.threads = cores > 0 ? (uint32_t)cores : 1;
    gx_log_form_find(cli_text(a, "format"), &o.read.form);
    gx_log_encoding_find(cli_text(a, "encoding"), &o.read.encoding);
    o.query.cancel = is_stopped;
    o.force = cli_switch(a, "force");
    return o;
}

/* Warn of lines of the log that were not read as queries but may have been meant as such. */
static void tell_log(const session_facts *f)
{
    const gx_log_counts *c = &f->r->log;
    if (c->header)
        cli_note("%s: its first line names the columns", f->a->argv[1]);
    if (c->more_columns)
        cli_note("%s: %s line%s more columns than are read; --columns says which are the text", f->a->argv[1],
                 show_count(c->more_columns), c->more_columns == 1 ? " has" : "s have");
    if (c->repeated_ids)
        cli_note("%s: %s quer%s an id that an earlier one has; --run would refuse this log", f->a->argv[1],
                 show_count(c->repeated_ids), c->repeated_ids == 1 ? "y has" : "ies have");
    if (cli_given(f->a, "columns") && f->r->form != GX_LOG_TSV)
        cli_warn("--columns means nothing to a log of the form %s", gx_log_form_name(f->r->form));
    if (cli_given(f->a, "topic-fields") && f->r->form != GX_LOG_TOPICS)
        cli_warn("--topic-fields means nothing to a log of the form %s", gx_log_form_name(f->r->form));
}

/* Replay, and report; the index and the engines are open. */
static int replay(session_facts *f, gx_engine *en, gx_replay_options *opt, gx_replay_report *r)
{
    talk t = {0};
    gx_error err = {0};
    opt->user = &t;
    f->opt = opt;
    f->r = r;
    const gx_status st = gx_replay(en, opt, r, &err);
    progress_end(&t.progress);
    if (st) {
        const int code = cli_fail_error(&err);
        if (st == GX_EUSAGE && opt->read.form == GX_LOG_GUESS)
            cli_note("-f says the log's form, and --columns what the columns of a TSV log are");
        return code;
    }
    tell_log(f);
    if (cli_gpu_failed(en, &err))
        cli_warn("%s", err.text);
    const char *path = cli_text(f->a, "report");
    const bool run_on_stdout = opt->run_path && !strcmp(opt->run_path, "-");
    int code = 0;
    if (path)
        code = write_report(f, path);
    if (!path || (strcmp(path, "-") && !cli_quiet()))
        put_report(run_on_stdout ? stderr : stdout, f);
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
    const char *const inputs[] = {a->argv[0], a->argv[1], cli_text(a, "only"), cli_text(a, "not"),
                                  cli_text(a, "trace")};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; ++i)
        if (inputs[i] && cli_same_file(path, inputs[i]))
            return cli_usage(a, "--%s: %s is read by this replay; give another name", flag, path);
    if (S_ISREG(st.st_mode) && !cli_switch(a, "force"))
        return cli_fail(GX_EEXISTS, "%s exists: use --force to replace it, or give another name", path);
    return 0;
}

static int run(const cli_args *a)
{
    gx_index *ix = NULL;
    gx_engine *en = NULL, *other = NULL;
    gx_mask *mask = NULL, *other_mask = NULL;
    document_filter filter = {0};
    gx_rm3_options rm3 = {0};
    hybrid both = {0};
    gx_mask *gpu_mask = NULL;
    gx_engine_options engine = cli_engine_options(a);
    engine.result_cache = cli_count(a, "result-cache");
    gx_replay_options opt = read_options(a);
    if (cli_text(a, "report") && opt.run_path && !strcmp(cli_text(a, "report"), "-") && !strcmp(opt.run_path, "-"))
        return cli_usage(a, "--run and --report cannot both go to standard output");
    if (opt.run_path && cli_text(a, "report") && is_same_output(opt.run_path, cli_text(a, "report")))
        return cli_usage(a, "--run and --report are both %s, and one would replace the other; give another name",
                         opt.run_path);
    if (cli_text(a, "run-tag")[strcspn(cli_text(a, "run-tag"), " \t\r\n")] || !*cli_text(a, "run-tag"))
        return cli_usage(a, "--run-tag: a run's last column is neither empty nor has white space in it");
    if (opt.arrivals == GX_ARRIVALS_POISSON && !(opt.rate > 0))
        return cli_usage(a, "--arrivals=poisson needs --rate");
    if ((opt.arrivals == GX_ARRIVALS_TRACE) != (opt.trace != NULL))
        return cli_usage(a, "--arrivals=trace and --trace=FILE go together");
    if (cli_given(a, "seed") && opt.arrivals != GX_ARRIVALS_POISSON)
        return cli_usage(a, "--seed means something with --arrivals=poisson alone");
    const int refused = check_output(a, "run"), bad_report = refused ? 0 : check_output(a, "report");
    if (refused || bad_report)
        return refused ? refused : bad_report;
    if (!hybrid_is_asked(a) && (cli_given(a, "decisions") || cli_given(a, "profile")))
        return cli_usage(a, "--%s is of --engine=hybrid", cli_given(a, "profile") ? "profile" : "decisions");
    gx_replay_report *r = calloc(1, sizeof *r);
    int code = r ? 0 : cli_fail(GX_ENOMEM, "no memory for the report");
    stop_on_signals();
    if (!code)
        code = cli_open_index(&ix, a, a->argv[0]);
    if (!code)
        code = document_filter_read(&filter, ix, cli_text(a, "only"), cli_text(a, "not"), cli_text(a, "filter"));
    if (!code)
        code = cli_open_engine(&en, ix, &engine);
    if (!code)
        code = document_filter_open_mask(&mask, &filter, en);
    if (!code)
        cli_default_scorer(&opt.query, a, ix);
    if (!code)
        code = cli_rm3(&rm3, a, ix);
    if (rm3.fb_docs)
        opt.rm3 = &rm3;
    if (!code)
        code = cli_precompute_pair_thresholds(en, a, &opt.query);
    if (!code && hybrid_is_asked(a))
        code = hybrid_open(&both, a, a->argv[0], ix, en);
    if (!code && both.gpu)
        code = document_filter_open_mask(&gpu_mask, &filter, both.gpu);
    if (!code && opt.verify_every)
        code = hybrid_is_asked(a) ? open_cpu(&other, ix, engine) : open_other(&other, en, ix, engine);
    if (!code && other)
        code = document_filter_open_mask(&other_mask, &filter, other);
    if (!code) {
        if (!opt.batch)
            opt.batch = hybrid_is_asked(a) ? HYBRID_BATCH : gx_engine_get_kind(en) == GX_ENGINE_GPU ? 1024 : 1;
        if (hybrid_is_asked(a)) {
            both.options.bound = both.options.bound > opt.batch ? both.options.bound : opt.batch;
            opt.service = &both.options;
            opt.service_mask = gpu_mask;
        }
        opt.query.mask = mask;
        opt.other = other;
        opt.other_mask = other_mask;
        session_facts f = {.a = a,
                           .ix = ix,
                           .en = en,
                           .other = other,
                           .filter = &filter,
                           .cache = engine.result_cache > 0,
                           .hybrid = opt.service ? &both : NULL};
        code = replay(&f, en, &opt, r);
    }
    gx_mask_close(other_mask);
    gx_engine_close(other);
    gx_mask_close(gpu_mask);
    hybrid_close(&both);
    gx_mask_close(mask);
    gx_engine_close(en);
    gx_index_close(ix);
    document_filter_free(&filter);
    free(r);
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
    {"rate", 0, CLI_NUMBER, "Q/S", NULL,
     "send queries at this rate, whether or not earlier ones are answered; latency counts from when each was due",
     .min = 1e-3, .max = 1e9},
    {"arrivals", 0, CLI_CHOICE, "fixed|poisson|trace", "fixed",
     "how the queries of `--rate` follow each other: at equal distances, at random as those of many independent users "
     "do, or at the times of `--trace`"},
    {"trace", 0, CLI_TEXT, "FILE", NULL,
     "for `--arrivals=trace`, when each query arrives: a time in seconds a line, none below the line before; with "
     "`--rate` the times are stretched to this rate"},
    {"seed", 0, CLI_COUNT, "N", "1", "the seed of `--arrivals=poisson`; the same seed gives the same times"},
    {"deadline", 0, CLI_NUMBER, "MS", NULL,
     "count the queries whose latency is more than `MS` milliseconds. They are answered all the same", .min = 1e-3,
     .max = 1e9},
    {"run", 'o', CLI_TEXT, "FILE", NULL, "write the answers as a TREC run; `-` is standard output"},
    {"run-tag", 0, CLI_TEXT, "NAME", "gpuidx", "the run's last column"},
    {"report", 0, CLI_TEXT, "FILE", NULL,
     "write the report as JSON, with the host, the date and the index's UUID; `-` is standard output. With `-q` there "
     "is no other report"},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace a run or a report that exists"},
    {"verify", 0, CLI_COUNT, "N", NULL,
     "answer every query (every `N`th) again, on the other engine where there is one and with every posting scored, "
     "and count the answers that differ; exit with 1 if any does",
     .min = 1, .bare = "1"},
    {"result-cache", 0, CLI_BYTES, "SIZE", "0",
     "keep the results of recent queries in at most this many bytes of host memory, such as `64M`. A query that comes "
     "again is then answered from there, with the same results. 0: keep none"},
    CLI_SEARCH_FLAGS,
    CLI_RM3_FLAG,
    CLI_PAIR_THRESHOLDS_FLAG,
    CLI_HYBRID_FLAGS,
    {NULL},
};

static const cli_section sections[] = {
    {"Logs",
     "  efficiency  17:land rover                   TREC efficiency topics\n"
     "  million     17:2:land rover                 Million Query: 2 is a priority\n"
     "  tsv         17<TAB>land rover\n"
     "  lines       land rover                      the id is the line number\n"
     "  jsonl       {\"id\": \"17\", \"query\": \"land rover\"}\n"
     "  topics      <top> <num> 17 <title> land rover </top>\n"
     "  docs        <DOC> <DOCNO>17</DOCNO> land rover </DOC>\n"
     "  smart       .I 17, then .W, then land rover\n"
     "  vectors     {\"id\": \"17\", \"vector\": {\"land\": 1.5, \"rover\": 0.25}}: terms\n"
     "              with weights, which are not analysed\n"
     "  csr         a row of a sparse matrix, see `gpuidx help build`\n"
     "\n"
     "The form is guessed from the first lines; where these do not agree, the log is refused, and -f says its form. So "
     "is a TSV log whose first line names a column `query` but none of ids; `--columns` says what its columns are. "
     "The first line of a TSV log may name its columns; without this and without --columns, the first is the id, the "
     "second the text, and what further ones hold is left out, which is told. Comments, which begin with `#` and a "
     "blank, or, where lines begin with an id, with `#`, are passed over. With `--run`, a query whose id an earlier "
     "query has is malformed, because no run can tell them apart; without it, a note counts such queries, as far as "
     "one of the first 65,536 has the id. Compressed logs are read as they are; `-` is standard input. A log "
     "without any query is bad input, and so is a file with many NUL bytes, which is no text; single ones are "
     "blanks. Blank lines are passed over, and counted; a query with an id and no text has no results."},
    {"Filters of queries",
     "A query of a TSV or JSONL log may have a filter of its own, as `gpuidx help query` describes them:\n"
     "\n"
     "  qid<TAB>query<TAB>filter                        the first line\n"
     "  17<TAB>land rover<TAB>year:[2015 TO 2019]\n"
     "  {\"id\": \"17\", \"query\": \"land rover\", \"filter\": \"year:2019\"}\n"
     "\n"
     "Without such a first line, `--columns=id,text,filter` names the column. A blank filter is none. `--only`, "
     "`--not` "
     "and `--filter` hold for all queries besides. Files of ids (id:@FILE) are read for `--filter` alone."},
    {"Measurements",
     "Throughput is all queries of all runs over the time that they took, reading the log and writing the run "
     "included. A query's latency goes from the moment that its batch was read until the batch's answers are there; "
     "with `--rate` or `--trace`, from the moment that it was due, so that time spent waiting for a free thread "
     "counts. Percentiles are right to three digits; mean and maximum are exact. Memory does not grow with the log, "
     "but for 16 to 32 bytes a query with `--run`. With `-` as `--run`, the report goes to standard error."},
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
     "its time to `--deadline` a query has waited, the sooner it is answered. Answers are the same, to the bit. "
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
    {"gpuidx replay corpus.gx log.txt --engine=gpu --verify", "Does the GPU give the same answers as the CPU?"},
    {NULL},
};

const cli_command cmd_replay = {
    .name = "replay",
    .summary = "run a query log and measure it",
    .synopsis = "[OPTIONS] INDEX LOG",
    .description = "Answers every query of a log and reports throughput, latency and work; writes the answers as a "
                   "TREC run; verifies that other ways of searching give the same answers.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
