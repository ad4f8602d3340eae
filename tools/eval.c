/* eval.c: gpuidx eval: effectiveness of a run against judgements. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "query/eval/measures.h"
#include "tools/cli.h"

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
            if (strcmp(measures[m].name, "num_q") != 0)
                print_value(&measures[m], ev->qids[q], ev->values[q * ev->n_measures + m]);
    for (size_t m = 0; m < ev->n_measures; ++m)
        print_value(&measures[m], "all", ev->all[m]);
}

/* NULL: no memory. */
static json_t *values_json(const gx_evaluation *ev, const gx_measure *measures, const double *values)
{
    json_t *object = json_object();
    for (size_t m = 0; object && m < ev->n_measures; ++m) {
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
                             (json_int_t)ev->n_unjudged, "all", values_json(ev, measures, ev->all));
    if (!root)
        return cli_fail(GX_ENOMEM, "no memory for the report");
    json_t *queries = each ? json_object() : NULL;
    int code = 0;
    for (size_t q = 0; each && !code && q < ev->n_queries; ++q)
        if (json_object_set_new(queries, ev->qids[q], values_json(ev, measures, ev->values + q * ev->n_measures)))
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
    int code = 0;
    if (cli_switch(a, "json"))
        code = print_json(&ev, measures, cli_switch(a, "per-query"));
    else
        print_text(&ev, measures, cli_switch(a, "per-query"));
    gx_evaluation_free(&ev);
    return code;
}

static int run_eval(const cli_args *a)
{
    gx_measure *measures = NULL;
    size_t n_measures = 0;
    gx_trec_table qrels = {0}, run = {0};
    gx_error err = {0};
    int code = 0;
    if (strcmp(a->argv[0], "-") == 0 && strcmp(a->argv[1], "-") == 0)
        return cli_usage(a, "- -: standard input cannot be both the judgements and the run");
    if (gx_measures_parse(&measures, &n_measures, cli_text(a, "measures"), &err))
        return cli_usage(a, "--measures: %s", err.text);
    if (gx_trec_read(&qrels, a->argv[0], GX_TREC_QRELS, &err) || gx_trec_read(&run, a->argv[1], GX_TREC_RUN, &err))
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
     "what to compute, with commas: `map`, `map@K`, `P@K`, `recall@K`, `success@K`, `ndcg`, `ndcg@K`, `Rprec`, "
     "`recip_rank`, `num_q`, `num_ret`, `num_rel`, `num_rel_ret`, or `official`, the usual few"},
    {"per-query", 'q', CLI_SWITCH, NULL, NULL, "print every query's values before the means"},
    {"complete", 'c', CLI_SWITCH, NULL, NULL, "average over all queries of `QRELS`; those without answers count as 0"},
    {"level", 'l', CLI_COUNT, "N", "1", "the least relevance that counts as relevant", .min = 1, .max = 1 << 24},
    {"json", 0, CLI_SWITCH, NULL, NULL, "print a JSON object, with \"schema\": 1, instead"},
    {NULL},
};

static const cli_section sections[] = {
    {"Definitions",
     "They are those of trec_eval. Answers are ranked by falling score, and equal scores by falling document id; "
     "the ranks that a run states are ignored. Scores are compared in single precision. Documents that are not "
     "judged are not relevant. Counts are summed over queries, the other measures averaged.\n"
     "\n"
     "`QRELS` has lines of four fields, query, iteration, document and relevance; `RUN` of six, query, `Q0`, "
     "document, rank, score and tag. `-` is standard input."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx eval qrels.txt bm25.run", "The usual measures."},
    {"gpuidx eval -q -m ndcg@10,recall@100 qrels.txt bm25.run", "Two measures, for every query and over all."},
    {NULL},
};

const cli_command cmd_eval = {
    .name = "eval",
    .summary = "measure the effectiveness of a run",
    .synopsis = "[OPTIONS] QRELS RUN",
    .description = "Compares a run with relevance judgements and prints effectiveness measures by trec_eval's "
                   "definitions, in its form of output.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 2,
    .max_args = 2,
    .run = run_eval,
};
