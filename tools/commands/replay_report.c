#include "tools/commands/replay_report.h"

#include <inttypes.h>
#include <math.h>

#include "tools/cli/progress.h"

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
    for (size_t i = 0; i < REPLAY_N_PERCENTILES; ++i) {
        snprintf(name, sizeof name, "p%g", replay_percentiles[i]);
        fprintf(out, ", %s %s", name,
                duration(text, (double)gx_histogram_quantile(&r->latency, replay_percentiles[i] / 100)));
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

static void put_verified(FILE *out, const replay_facts *f)
{
    const gx_replay_report *r = f->r;
    if (!f->opt->verify_every)
        return;
    fprintf(out, "Verified %s quer%s, docids and score bits\n", show_count(r->verified), plural_y(r->verified));
    if (f->other)
        fprintf(out, "  %-22s %15s differ\n",
                gx_engine_get_kind(f->other) == GX_ENGINE_GPU ? "on the GPU" : "on the CPU",
                show_count(r->other_differs));
    if (!cli_is_exact(&f->opt->query)) {
        const double recall = r->exact_results ? (double)r->found_results / (double)r->exact_results : 1;
        fprintf(out, "  recall@%-15u %15.4f\n", f->opt->query.k, recall);
        fprintf(out, "  %-22s %15s differ\n", "scores", show_count(r->exhaustive_differs));
        return;
    }
    fprintf(out, "  %-22s %15s differ\n", "every posting scored", show_count(r->exhaustive_differs));
}

static const char *const step_names[GX_N_STEPS] = {"  initializing", "  decompressing", "  intersecting", "  scoring",
                                                   "  choosing the best"};

static const char *const algorithm_words[GX_N_ALGORITHMS] = {"", ", by Parallel Merge Find", ", term at a time",
                                                             ", by bounds of ranges"};

/* Print which log was replayed on which index, and with which options. */
static void put_setup(FILE *out, const replay_facts *f)
{
    const gx_replay_report *r = f->r;
    const gx_replay_options *opt = f->opt;
    gx_index_stats st = {.size = sizeof st};
    gx_index_get_stats(f->ix, &st);
    fprintf(out, "%sIndex %s%s: %s document%s, ", cli_paint(out, CLI_BOLD), f->a->argv[0], cli_paint(out, CLI_PLAIN),
            show_count(st.n_documents), st.n_documents == 1 ? "" : "s");
    fprintf(out, "%s posting%s; engine %s\n", show_count(st.n_postings), plural(st.n_postings),
            gx_engine_describe(f->en));
    fprintf(out, "%sLog %s%s: %s quer%s", cli_paint(out, CLI_BOLD), f->a->argv[1], cli_paint(out, CLI_PLAIN),
            show_count(r->log.queries), r->log.queries == 1 ? "y" : "ies");
    put_log_facts(out, r);
    fprintf(out, "%s, %s, k %u%s; batches of %u, %u thread%s, %u run%s", cli_text(f->a, "op"),
            gx_preset_name(opt->query.preset), opt->query.k, algorithm_words[opt->query.algorithm], r->batch,
            opt->threads, opt->threads == 1 ? "" : "s", opt->runs, opt->runs == 1 ? "" : "s");
    if (!cli_is_exact(&opt->query)) {
        char text[GX_APPROXIMATE_BYTES];
        gx_approximate_write(&opt->query, text);
        fprintf(out, ", approximate %s", text);
    }
    if (opt->rate > 0)
        fprintf(out, opt->rate < 1000 ? ", %.6g queries/s offered" : ", %.0f queries/s offered", opt->rate);
    if (opt->arrivals == GX_ARRIVALS_POISSON)
        fprintf(out, " by a Poisson process of seed %" PRIu64, opt->seed);
    else if (opt->arrivals == GX_ARRIVALS_TRACE)
        fprintf(out, "%s at the times of %s", opt->rate > 0 ? "" : ", queries arrive", opt->trace);
    if (opt->rm3)
        fprintf(out, "; expanded by RM3 (%u document%s, %u term%s, weight %g)", opt->rm3->fb_docs,
                plural(opt->rm3->fb_docs), opt->rm3->fb_terms, plural(opt->rm3->fb_terms), opt->rm3->weight);
    if (opt->query.sdm.words > 0) {
        char text[GX_SDM_BYTES];
        gx_sdm_write(&opt->query.sdm, text);
        fprintf(out, "; pairs of words weigh, too (%s)", text);
    }
    putc('\n', out);
    if (opt->n_facets)
        fprintf(out, "Counted beside each answer: %s%s%s\n", cli_text(f->a, "facet") ? cli_text(f->a, "facet") : "",
                cli_text(f->a, "facet") && cli_text(f->a, "sums") ? "; " : "",
                cli_text(f->a, "sums") ? cli_text(f->a, "sums") : "");
    if (f->filter->words)
        fprintf(out, "Only %s document%s may be results\n", show_count(f->filter->n_allowed),
                plural(f->filter->n_allowed));
}

static void put_speed(FILE *out, const replay_facts *f)
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
            replay_is_open_loop(opt) ? ", from when a query was due"
            : r->batch > 1           ? ", of whole batches"
                                     : "");
    put_latency(out, r);
    if (opt->deadline > 0)
        fprintf(out, "  %s quer%s later than the deadline of %s (%.3g %%)\n", show_count(r->late),
                r->late == 1 ? "y" : "ies", duration(text, opt->deadline * 1e9),
                100 * (double)r->late / (double)r->queries);
}

static void put_stages(FILE *out, const replay_facts *f)
{
    const gx_replay_report *r = f->r;
    const gx_replay_options *opt = f->opt;
    const gx_search_stats *w = &r->work;
    fputs("Time a query, and share of the threads' time\n", out);
    put_stage(out, "reading the log", r->stages.read, r, opt->threads);
    put_stage(out, "planning", r->stages.plan, r, opt->threads);
    put_stage(out, "searching", r->stages.search, r, opt->threads);
    put_stage(out, "counting", r->stages.count, r, opt->threads);
    put_stage(out, "  copying in", w->seconds[GX_SEARCH_COPY_IN], r, opt->threads);
    put_stage(out, "  scoring", w->seconds[GX_SEARCH_SCORE], r, opt->threads);
    put_stage(out, "  selecting", w->seconds[GX_SEARCH_SELECT], r, opt->threads);
    put_stage(out, "  copying out", w->seconds[GX_SEARCH_COPY_OUT], r, opt->threads);
    if (opt->query.algorithm == GX_ALGORITHM_PMF || opt->query.algorithm == GX_ALGORITHM_TAAT ||
        opt->query.algorithm == GX_ALGORITHM_DAAT) {
        for (int i = 0; i < GX_N_STEPS; ++i)
            put_stage(out, step_names[i], w->steps[i], r, opt->threads);
    }
    put_stage(out, "writing results", r->stages.write, r, opt->threads);
    put_stage(out, "waiting", r->stages.wait, r, opt->threads);
}

/* Which processor answered what. */
static void put_service(FILE *out, const replay_facts *f)
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
        fprintf(out, "  %-22s %15s   in %s it hung; %s quer%s answered by the CPU instead\n", "failures of the GPU",
                show_count(c->gpu_failures), show_count(c->gpu_hung), show_count(c->fell_back), plural_y(c->fell_back));
}

static void put_share(FILE *out, const char *name, uint64_t n, uint64_t of, const char *what)
{
    fprintf(out, "  %-22s %15s   %.1f %% %s\n", name, show_count(n), of ? 100 * (double)n / (double)of : 0, what);
}

/* Of an engine whose lists are not all in GPU memory. */
static void put_residency(FILE *out, const gx_replay_report *r)
{
    const gx_search_stats *w = &r->work;
    if (!w->lists)
        return;
    put_share(out, "lists in GPU memory", w->resident_lists, w->lists, "of the lists used");
    put_share(out, "bytes in GPU memory", w->resident_bytes, w->list_bytes, "of the lists' bytes");
    put_share(out, "queries in GPU memory", w->resident_queries, r->queries, "of the queries");
}

static void put_work(FILE *out, const replay_facts *f)
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
    put_residency(out, r);
    if (w->driven)
        put_count(out, "filters looked up", w->driven, r->queries);
    if (w->masked)
        put_count(out, "filters by mask", w->masked, r->queries);
    if (w->tested)
        put_count(out, "filters by values", w->tested, r->queries);
    if (w->binned)
        put_count(out, "  with maps of values", w->binned, r->queries);
    if (w->and_fell_to_or)
        put_count(out, "AND fell back to OR", w->and_fell_to_or, r->queries);
}

void replay_put_report(FILE *out, const replay_facts *f)
{
    const gx_replay_report *r = f->r;
    put_setup(out, f);
    if (r->queries) {
        put_speed(out, f);
        put_stages(out, f);
    }
    put_work(out, f);
    if (r->memory.device + r->memory.pinned) {
        fprintf(out, "Memory of a session\n  %-22s %15s\n  %-22s %15s\n", "on the GPU", show_bytes(r->memory.device),
                "pinned on the host", show_bytes(r->memory.pinned));
    }
    put_verified(out, f);
}
