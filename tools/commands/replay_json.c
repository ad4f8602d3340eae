/* replay_json.c: the report of `gpuidx replay` for programs. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/commands/replay_report.h"

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
    for (size_t i = 0; i < REPLAY_N_PERCENTILES; ++i) {
        snprintf(name, sizeof name, "p%g", replay_percentiles[i]);
        json_object_set_new(o, name,
                            real((double)gx_histogram_quantile(&r->latency, replay_percentiles[i] / 100) * 1e-3));
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

static json_t *options_json(const replay_facts *f)
{
    const gx_replay_options *opt = f->opt;
    float k1, b; /* the scorer's own */
    gx_preset_parameters(opt->query.preset, &k1, &b);
    const bool open = replay_is_open_loop(opt), random = opt->arrivals == GX_ARRIVALS_POISSON;
    return json_pack(
        "{s:s, s:s, s:I, s:o, s:o, s:b, s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:I, s:o, s:o, s:o, s:o,"
        " s:o}",
        "op", cli_text(f->a, "op"), "scorer", gx_preset_name(opt->query.preset), "k", (json_int_t)opt->query.k, "k1",
        parameter(opt->query.k1, k1), "b", parameter(opt->query.b, b), "prune", opt->query.prune, "algorithm",
        cli_text(f->a, "algorithm"), "recursion", (int)opt->query.recursion, "approximate",
        parameter(opt->query.approximate, 0), "block_budget", (json_int_t)opt->query.block_budget, "pair_thresholds",
        (json_int_t)cli_count(f->a, "pair-thresholds"), "linger", (json_int_t)cli_count(f->a, "linger"), "result_cache",
        (json_int_t)cli_count(f->a, "result-cache"), "batch", (int)f->r->batch, "threads", (int)opt->threads, "runs",
        (int)opt->runs, "warmup", (json_int_t)opt->warmup, "rate", real(opt->rate), "arrivals",
        open ? json_string(cli_text(f->a, "arrivals")) : json_null(), "trace", file_or_null(opt->trace), "seed",
        random ? json_integer((json_int_t)opt->seed) : json_null(), "deadline_us",
        opt->deadline > 0 ? real(opt->deadline * 1e6) : json_null());
}

static json_t *filter_json(const replay_facts *f)
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

static json_t *verify_json(const replay_facts *f)
{
    if (!f->opt->verify_every)
        return json_null();
    const gx_replay_report *r = f->r;
    return json_pack("{s:I, s:o, s:o, s:I, s:o}", "queries", (json_int_t)f->r->verified, "other_engine",
                     f->other ? text_or_null(gx_engine_describe(f->other)) : json_null(), "other_engine_differs",
                     f->other ? json_integer((json_int_t)f->r->other_differs) : json_null(), "exhaustive_differs",
                     (json_int_t)r->exhaustive_differs, "recall",
                     !cli_is_exact(&f->opt->query) && r->exact_results
                         ? real((double)r->found_results / (double)r->exact_results)
                         : json_null());
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

static json_t *hybrid_json(const replay_facts *f)
{
    const gx_service_counts *c = &f->r->service;
    const gx_service_options *o = &f->hybrid->options;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:f, s:o}", "by_cpu",
                     (json_int_t)c->by[GX_PROCESSOR_CPU], "by_gpu", (json_int_t)c->by[GX_PROCESSOR_GPU], "gpu_batches",
                     (json_int_t)c->batches, "stolen", (json_int_t)c->stolen, "urgent", (json_int_t)c->urgent,
                     "gpu_failures", (json_int_t)c->gpu_failures, "gpu_hung", (json_int_t)c->gpu_hung, "fell_back",
                     (json_int_t)c->fell_back, "cpu_threads", (int)o->cpu_threads, "gpu_threads", (int)o->gpu_threads,
                     "gpu_batch", (int)o->batch, "batch_time_us", o->batch_seconds * 1e6, "gpu",
                     f->hybrid->gpu ? text_or_null(gx_engine_describe(f->hybrid->gpu)) : json_null());
}

static json_t *report_json(const replay_facts *f)
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
                                  (json_int_t)st.n_documents, "terms", (json_int_t)st.n_terms, "postings",
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
    const gx_sdm *sdm = &f->opt->query.sdm;
    json_object_set_new(root, "sdm",
                        sdm->words > 0
                            ? json_pack("[o, o, o]", real(sdm->words), real(sdm->ordered), real(sdm->unordered))
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
    json_object_set_new(root, "residency",
                        w->lists ? json_pack("{s:I, s:I, s:I, s:I, s:I}", "lists", (json_int_t)w->lists,
                                             "resident_lists", (json_int_t)w->resident_lists, "list_bytes",
                                             (json_int_t)w->list_bytes, "resident_bytes", (json_int_t)w->resident_bytes,
                                             "resident_queries", (json_int_t)w->resident_queries)
                                 : json_null());
    json_t *stages = stages_json(r);
    json_object_set_new(root, "stage_seconds", stages);
    if (f->opt->n_facets)
        json_object_set_new(stages, "count", real(r->stages.count));
    if (f->opt->n_facets)
        json_object_set_new(root, "matches", json_integer((json_int_t)r->matches));
    json_object_set_new(root, "hybrid", f->hybrid ? hybrid_json(f) : json_null());
    json_object_set_new(root, "verify", verify_json(f));
    return root;
}

int replay_write_report(const replay_facts *f, const char *path)
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
