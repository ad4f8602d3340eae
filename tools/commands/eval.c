/* eval.c: gpuidx eval: effectiveness of runs against judgements. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"

/* As trec_eval prints: name, query, value, parted by tabs. */
static void print_value(const gx_measure *m, const char *qid, double value)
{
    if (gx_measure_is_count(m))
        printf("%-22s\t%s\t%.0f\n", m->name, qid, value);
    else
        printf("%-22s\t%s\t%.4f\n", m->name, qid, value);
}

static void print_text(const gx_evaluation *ev, const gx_measure *measures, bool each)
{
    for (size_t q = 0; each && q < ev->n_queries; ++q)
        for (size_t m = 0; m < ev->n_measures; ++m)
            if (gx_measure_is_of_one_query(&measures[m]))
                print_value(&measures[m], ev->qids[q], ev->values[q * ev->n_measures + m]);
    for (size_t m = 0; m < ev->n_measures; ++m)
        print_value(&measures[m], "all", ev->all[m]);
}

/* The values[n] of one query, or over all. NULL: no memory. */
static json_t *values_json(const gx_measure *measures, size_t n, const double *values, bool one_query)
{
    json_t *object = json_object();
    for (size_t m = 0; object && m < n; ++m) {
        if (one_query && !gx_measure_is_of_one_query(&measures[m]) && !gx_measure_is_count(&measures[m]))
            continue;
        const bool count = gx_measure_is_count(&measures[m]);
        json_t *value = count ? json_integer((json_int_t)values[m]) : json_real(values[m]);
        if (json_object_set_new(object, measures[m].name, value)) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static int print_json(const gx_evaluation *ev, const gx_measure *measures, bool each)
{
    json_t *root = json_pack("{s:i, s:I, s:I, s:I, s:o}", "schema", 1, "queries_evaluated", (json_int_t)ev->n_queries,
                             "queries_missing_from_run", (json_int_t)ev->n_missing, "queries_not_judged",
                             (json_int_t)ev->n_unjudged, "all", values_json(measures, ev->n_measures, ev->all, false));
    if (!root)
        return cli_fail(GX_ENOMEM, "no memory for the report");
    json_t *queries = each ? json_object() : NULL;
    int code = 0;
    for (size_t q = 0; each && !code && q < ev->n_queries; ++q)
        if (json_object_set_new(queries, ev->qids[q],
                                values_json(measures, ev->n_measures, ev->values + q * ev->n_measures, true)))
            code = cli_fail(GX_EINPUT, "query %s: its id cannot be written as JSON: it is not UTF-8", ev->qids[q]);
    if (queries)
        json_object_set_new(root, "queries", queries);
    if (!code && json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)))
        code = cli_fail(GX_EIO, "cannot write the report");
    if (!code)
        putchar('\n');
    json_decref(root);
    return code;
}

/* Whether any judged document is among the answers to its query. The tables are sorted by qid and
 * docno. */
static bool have_document_in_common(const gx_trec_table *qrels, const gx_trec_table *run)
{
    size_t i = 0, j = 0;
    while (i < qrels->n_rows && j < run->n_rows) {
        int c = strcmp(qrels->rows[i].qid, run->rows[j].qid);
        if (!c)
            c = strcmp(qrels->rows[i].docno, run->rows[j].docno);
        if (!c)
            return true;
        i += c < 0;
        j += c > 0;
    }
    return false;
}

/* Warn where no id matches: the mean would be 0, as with bad answers. */
static void tell_strange_ids(const cli_args *a, const char *path, const gx_trec_table *qrels, const gx_trec_table *run,
                             const gx_evaluation *ev)
{
    if (ev->n_queries && run->n_rows && qrels->n_rows && !have_document_in_common(qrels, run))
        cli_warn("%s: not one of its documents is judged for its query in %s: do both write ids alike? "
                 "(%s in one, %s in the other)",
                 path, a->argv[0], run->rows[0].docno, qrels->rows[0].docno);
}

/* The run's first query without a judgement; there is one. Topics are sorted by qid. */
static const char *first_unjudged(const gx_trec_table *qrels, const gx_trec_table *run)
{
    size_t i = 0;
    for (size_t j = 0; i + 1 < run->n_topics; ++i, ++j) {
        while (j < qrels->n_topics && strcmp(qrels->topics[j].qid, run->topics[i].qid) < 0)
            ++j;
        if (j == qrels->n_topics || strcmp(qrels->topics[j].qid, run->topics[i].qid) > 0)
            break;
    }
    return run->topics[i].qid;
}

/* Tell how many queries of the run no judgement knows: their ids may be written in another way. */
static void tell_unjudged(const cli_args *a, const char *path, const gx_trec_table *qrels, const gx_trec_table *run,
                          const gx_evaluation *ev)
{
    if (ev->n_unjudged)
        cli_note("%zu of %zu queries of %s have no judgement in %s and are left out, such as %s%s", ev->n_unjudged,
                 run->n_topics, path, a->argv[0], first_unjudged(qrels, run),
                 ev->n_missing ? "; if the judgements number the queries, 'gpuidx replay --ids=number' does so, too"
                               : "");
}

static int report(const cli_args *a, const gx_trec_table *qrels, const gx_trec_table *run, const gx_measure *measures,
                  size_t n_measures)
{
    gx_evaluation ev;
    gx_error err = {0};
    const int32_t level = (int32_t)cli_count(a, "level");
    if (gx_evaluate(&ev, qrels, run, measures, n_measures, level, cli_switch(a, "complete"), &err))
        return cli_fail_error(&err);
    if (ev.n_queries == 0)
        cli_warn("%s and %s have no query in common", a->argv[0], a->argv[1]);
    else if (ev.n_missing && !cli_switch(a, "complete"))
        cli_note("%zu of %zu judged queries have no answer in %s and are left out; --complete counts them as 0",
                 ev.n_missing, qrels->n_topics, a->argv[1]);
    tell_unjudged(a, a->argv[1], qrels, run, &ev);
    tell_strange_ids(a, a->argv[1], qrels, run, &ev);
    int code = 0;
    if (cli_switch(a, "json"))
        code = print_json(&ev, measures, cli_switch(a, "per-query"));
    else
        print_text(&ev, measures, cli_switch(a, "per-query"));
    gx_evaluation_free(&ev);
    return code;
}

/* ---- several runs ---- */

typedef struct side_by_side {
    const cli_args *a;
    const gx_measure *measures;
    const gx_comparison *c;
    uint64_t seed, trials;
} side_by_side;

static const char *run_name(const side_by_side *s, size_t run)
{
    return s->a->argv[1 + run];
}

static void print_number(const gx_measure *m, double value, const char *before)
{
    if (gx_measure_is_count(m))
        printf("%s%.0f", before, value);
    else
        printf("%s%.4f", before, value);
}

/* "0.0312", or "-" where there is no test. */
static const char *p_text(char text[16], double p)
{
    if (isnan(p))
        return "-";
    snprintf(text, 16, p < 0.0001 ? "%.1e" : "%.4f", p);
    return text;
}

/* Print a difference with its sign, which a difference that is printed as 0 has, too. */
static const char *difference_text(char text[32], const gx_measure *m, double difference)
{
    snprintf(text, 32, gx_measure_is_count(m) ? "%+.0f" : "%+.4f", difference);
    return text;
}

static void print_queries_side_by_side(const side_by_side *s)
{
    const gx_comparison *c = s->c;
    for (size_t q = 0; q < c->n_queries; ++q)
        for (size_t m = 0; m < c->n_measures; ++m) {
            if (!gx_measure_is_of_one_query(&s->measures[m]))
                continue;
            printf("%-22s\t%s", s->measures[m].name, c->qids[q]);
            for (size_t r = 0; r < c->n_runs; ++r)
                print_number(&s->measures[m], c->values[(r * c->n_queries + q) * c->n_measures + m], "\t");
            putchar('\n');
        }
}

static void print_side_by_side(const side_by_side *s)
{
    const gx_comparison *c = s->c;
    int width = 3;
    for (size_t r = 0; r < c->n_runs; ++r)
        width = (int)strlen(run_name(s, r)) > width ? (int)strlen(run_name(s, r)) : width;
    if (cli_switch(s->a, "per-query")) {
        print_queries_side_by_side(s);
        putchar('\n');
    }
    printf("%s quer%s; differences from %s; better and worse count queries\n", show_count(c->n_queries),
           plural_y(c->n_queries), run_name(s, 0));
    printf("randomisation test: at most %s trials, seed %llu\n", show_count(s->trials), (unsigned long long)s->seed);
    printf("%-22s  %-*s  %10s  %10s  %6s  %6s  %8s  %10s\n", "measure", width, "run", "value", "difference", "better",
           "worse", "p t-test", "p random.");
    for (size_t m = 0; m < c->n_measures; ++m)
        for (size_t r = 0; r < c->n_runs; ++r) {
            const size_t at = r * c->n_measures + m;
            const gx_paired_test *t = &c->tests[at];
            char text[3][32];
            printf("%-22s  %-*s  ", r ? "" : s->measures[m].name, width, run_name(s, r));
            printf(gx_measure_is_count(&s->measures[m]) ? "%10.0f" : "%10.4f", c->all[at]);
            if (r)
                printf("  %10s  %6zu  %6zu  %8s  %10s",
                       difference_text(text[0], &s->measures[m], c->all[at] - c->all[m]), t->better, t->worse,
                       p_text(text[1], t->t_p), p_text(text[2], t->random_p));
            putchar('\n');
        }
}

static json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* The tests of a run, by measure. NULL: no memory. */
static json_t *tests_json(const side_by_side *s, size_t run)
{
    json_t *object = json_object();
    for (size_t m = 0; object && m < s->c->n_measures; ++m) {
        const size_t at = run * s->c->n_measures + m;
        const gx_paired_test *t = &s->c->tests[at];
        json_t *test =
            json_pack("{s:o, s:I, s:I, s:o, s:o, s:f, s:b}", "difference", real_or_null(s->c->all[at] - s->c->all[m]),
                      "better", (json_int_t)t->better, "worse", (json_int_t)t->worse, "t", real_or_null(t->t), "t_p",
                      real_or_null(t->t_p), "random_p", t->random_p, "random_exact", t->exact);
        if (json_object_set_new(object, s->measures[m].name, test)) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *run_json(const side_by_side *s, size_t run)
{
    const gx_comparison *c = s->c;
    json_t *o = json_pack("{s:s, s:o}", "run", run_name(s, run), "all",
                          values_json(s->measures, c->n_measures, c->all + run * c->n_measures, false));
    json_t *queries = o && cli_switch(s->a, "per-query") ? json_object() : NULL;
    bool good = o;
    for (size_t q = 0; queries && good && q < c->n_queries; ++q)
        good = !json_object_set_new(
            queries, c->qids[q],
            values_json(s->measures, c->n_measures, c->values + (run * c->n_queries + q) * c->n_measures, true));
    if (queries)
        good = !json_object_set_new(o, "queries", queries) && good;
    if (good && run)
        good = !json_object_set_new(o, "against_first", tests_json(s, run));
    if (!good) {
        json_decref(o);
        return NULL;
    }
    return o;
}

static int print_side_by_side_json(const side_by_side *s)
{
    json_t *runs = json_array();
    bool good = runs;
    for (size_t r = 0; good && r < s->c->n_runs; ++r)
        good = !json_array_append_new(runs, run_json(s, r));
    json_t *root = json_pack("{s:i, s:I, s:I, s:I, s:o}", "schema", 1, "queries_compared", (json_int_t)s->c->n_queries,
                             "seed", (json_int_t)s->seed, "trials", (json_int_t)s->trials, "runs", runs);
    int code = 0;
    if (!good || !root)
        code = cli_fail(GX_EINPUT, "the comparison cannot be written as JSON: a path or a query's id is not UTF-8");
    else if (json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)))
        code = cli_fail(GX_EIO, "cannot write the report");
    else
        putchar('\n');
    json_decref(root);
    return code;
}

/* Compare the evaluations of all runs, evs[n]. */
static int compare(const cli_args *a, const gx_evaluation *evs, size_t n, const gx_measure *measures, size_t n_judged)
{
    gx_comparison c;
    gx_error err = {0};
    side_by_side s = {.a = a, .measures = measures, .c = &c};
    s.seed = cli_count(a, "seed");
    s.trials = cli_count(a, "trials");
    if (gx_compare(&c, evs, n, measures, s.seed, s.trials, &err))
        return cli_fail_error(&err);
    int code;
    if (c.n_queries == 0)
        code = cli_fail(GX_EINPUT, "no query of %s is answered by all %zu runs: there is nothing to compare",
                        a->argv[0], n);
    else
        code = cli_switch(a, "json") ? print_side_by_side_json(&s) : (print_side_by_side(&s), 0);
    if (c.n_queries && c.n_queries < n_judged)
        cli_note("%zu of %zu judged queries are not answered by every run and are left out; --complete counts them "
                 "as 0",
                 n_judged - c.n_queries, n_judged);
    gx_comparison_free(&c);
    return code;
}

static int report_several(const cli_args *a, const gx_trec_table *qrels, const gx_measure *measures, size_t n_measures)
{
    const size_t n = (size_t)a->argc - 1;
    const int32_t level = (int32_t)cli_count(a, "level");
    gx_evaluation *evs = calloc(n, sizeof *evs);
    int code = evs ? 0 : cli_fail(GX_ENOMEM, "no memory for %zu runs", n);
    for (size_t r = 0; code == 0 && r < n; ++r) { /* one run in memory at a time */
        gx_trec_table run = {0};
        gx_error err = {0};
        if (gx_trec_read(&run, a->argv[1 + r], GX_TREC_RUN, &err) ||
            gx_evaluate(&evs[r], qrels, &run, measures, n_measures, level, cli_switch(a, "complete"), &err))
            code = cli_fail_error(&err);
        else {
            tell_unjudged(a, a->argv[1 + r], qrels, &run, &evs[r]);
            tell_strange_ids(a, a->argv[1 + r], qrels, &run, &evs[r]);
        }
        gx_trec_free(&run);
    }
    if (code == 0)
        code = compare(a, evs, n, measures, qrels->n_topics);
    for (size_t r = 0; evs && r < n; ++r)
        gx_evaluation_free(&evs[r]);
    free(evs);
    return code;
}

/* ---- the command ---- */

static int run_eval(const cli_args *a)
{
    gx_measure *measures = NULL;
    size_t n_measures = 0;
    gx_trec_table qrels = {0}, run = {0};
    gx_error err = {0};
    int code = 0, from_stdin = 0;
    for (int i = 0; i < a->argc; ++i)
        from_stdin += strcmp(a->argv[i], "-") == 0;
    if (from_stdin > 1)
        return cli_usage(a, "- -: standard input can be only one of the files");
    if (gx_measures_parse(&measures, &n_measures, cli_text(a, "measures"), &err))
        return err.status == GX_EUSAGE ? cli_usage(a, "--measures: %s", err.text) : cli_fail_error(&err);
    if (gx_trec_read(&qrels, a->argv[0], GX_TREC_QRELS, &err))
        code = cli_fail_error(&err);
    else if (a->argc > 2)
        code = report_several(a, &qrels, measures, n_measures);
    else if (gx_trec_read(&run, a->argv[1], GX_TREC_RUN, &err))
        code = cli_fail_error(&err);
    else
        code = report(a, &qrels, &run, measures, n_measures);
    gx_trec_free(&qrels);
    gx_trec_free(&run);
    free(measures);
    return code;
}

static const cli_flag flags[] = {
    {"measures", 'm', CLI_TEXT, "LIST", "official",
     "what to compute, separated by commas: `map`, `map@K`, `P@K`, `recall@K`, `success@K`, `ndcg`, `ndcg@K`, `Rprec`, "
     "`recip_rank`, `bpref`, `gm_map`, `iprec@R`, `ERR@K`, `judged@K`, `num_q`, `num_ret`, `num_rel`, `num_rel_ret`, "
     "or `official`, which are those that trec_eval prints. `@K` looks at the first `K` answers alone. Use `bpref` and "
     "`judged@K` where many answers are not judged; see Definitions"},
    {"per-query", 'q', CLI_SWITCH, NULL, NULL, "print the values of every query before those of all"},
    {"complete", 'c', CLI_SWITCH, NULL, NULL,
     "average over all queries of `QRELS`: a query that the run does not answer counts as 0. Without this flag, such "
     "queries are left out, and a note says how many"},
    {"level", 'l', CLI_COUNT, "N", "1",
     "the least judgement of a relevant document: with 2, documents judged 1 are not relevant. Measures that use "
     "grades "
     "(`ndcg`, `ERR`) keep them",
     .min = 1, .max = 1 << 24},
    {"trials", 0, CLI_COUNT, "N", "100000",
     "with several runs: how many random samples the randomisation test draws. Small p values need many; the time "
     "grows "
     "in proportion",
     .min = 1, .max = 1e9},
    {"seed", 0, CLI_COUNT, "N", "1",
     "with several runs: the seed of the randomisation test. The same seed gives the same p values on every machine",
     .max = UINT32_MAX},
    {"json", 0, CLI_SWITCH, NULL, NULL, "print one JSON object instead, for programs; its \"schema\" is 1"},
    {NULL},
};

static const cli_section sections[] = {
    {"Definitions",
     "  map           average precision: the mean, over the relevant documents, of the\n"
     "                precision at the rank of each\n"
     "  P@K           precision: the share of the first K answers that is relevant\n"
     "  recall@K      the share of the relevant documents that is in the first K\n"
     "  success@K     1 if any of the first K answers is relevant, else 0\n"
     "  ndcg, ndcg@K  the gain of the answers, each divided by the logarithm of its\n"
     "                rank, over that of the best order; grades count\n"
     "  Rprec         the precision at the rank R, where R documents are relevant\n"
     "  recip_rank    1 over the rank of the first relevant answer\n"
     "  num_q, num_ret, num_rel, num_rel_ret\n"
     "                counts: of queries, answers, relevant documents, and those of\n"
     "                them that are answers\n"
     "\n"
     "Measures that trec_eval has are computed as it does. Answers are ranked by falling score, and equal scores by "
     "falling document id; the ranks that a run states are ignored. Scores are compared in single precision. Documents "
     "that are not judged are not relevant. Counts are summed over queries, the other measures averaged."},
    {"Files",
     "`QRELS` holds the judgements: lines of query, iteration, document and relevance, or, as BEIR has them, of query, "
     "document and relevance behind the head `query-id corpus-id score`. A `RUN` holds answers: lines of query, `Q0`, "
     "document, rank, score and tag, as `gpuidx replay --run` writes them. `-` is standard input."},
    {"Further measures", "  bpref      how often judged relevant answers rank above judged others;\n"
                         "             answers without a judgement do not count\n"
                         "  gm_map     the geometric mean of average precision, each at least\n"
                         "             0.00001; it shows what happens to hard queries\n"
                         "  iprec@R    the best precision at a recall of R or more, R from 0 to 1 in\n"
                         "             hundredths; iprec alone: the eleven of trec_eval\n"
                         "  ERR@K      expected reciprocal rank, as gdeval.pl computes it: an answer of\n"
                         "             grade g satisfies the reader with probability (2^g-1)/2^G, where\n"
                         "             G is 4, or the greatest judgement in QRELS if that is more\n"
                         "  judged@K   the share of the first K answers that have a judgement"},
    {"Several runs",
     "With two runs or more, each measure is printed for each run, with the difference from the first run, the number "
     "of queries on which the run is better and worse, and the p values of two paired two-sided tests: Student's "
     "t-test, and a randomisation test that changes the signs of the differences. A p value below 0.05 is usually "
     "called significant; with many runs or measures some are below it by chance. Values are over the judged queries "
     "that every run answers, or over all judged queries with `--complete`. gm_map is tested by its logarithms. Of "
     "few queries every assignment of signs is tried, and the p value is exact."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx eval qrels.txt bm25.run", "The usual measures."},
    {"gpuidx eval -q -m ndcg@10,recall@100 qrels.txt bm25.run", "Two measures, for every query and over all."},
    {"gpuidx eval -m map,ndcg@10 qrels.txt bm25.run rm3.run",
     "Is the second run better than the first, and could that be chance?"},
    {NULL},
};

const cli_command cmd_eval = {
    .name = "eval",
    .summary = "measure the effectiveness of runs",
    .synopsis = "[OPTIONS] QRELS RUN...",
    .description =
        "Says how good the answers of a run are: compares them with relevance judgements and prints "
        "measures as trec_eval does, a line each: the measure, `all` or the query's id, and the value. Several "
        "runs are printed side by side, with tests of whether their differences are due to chance.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 2,
    .max_args = -1,
    .run = run_eval,
};
