/* fuse.c: gpuidx fuse: several runs as one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"

#define METHODS "rrf|sum"
#define NORMS "none|minmax|zscore"

/* One weight a run, with commas between. 0, or the exit code with the message printed. */
static int read_weights(const cli_args *a, double *weights, int n)
{
    const char *text = cli_text(a, "weights");
    int found = 0;
    for (const char *p = text; *p || found == 0; ++p) {
        char number[40], *end;
        const size_t len = strcspn(p, ",");
        snprintf(number, sizeof number, "%.*s", len < 39 ? (int)len : 39, p);
        const double w = strtod(number, &end);
        if (end == number || *end || !isfinite(w) || strspn(number, "0123456789.eE+-") != strlen(number))
            return cli_usage(a, "--weights=%s: '%s' is not a number", text, number);
        if (found < n)
            weights[found] = w;
        ++found;
        p += len;
        if (!*p)
            break;
    }
    if (found != n)
        return cli_usage(a, "--weights=%s: %d weight%s for %d run%s; one a run is expected, with commas between", text,
                         found, found == 1 ? "" : "s", n, n == 1 ? "" : "s");
    return 0;
}

static void print_rows(FILE *out, const gx_fused *f, const char *tag)
{
    size_t rank = 0;
    for (size_t i = 0; i < f->n_rows; ++i) {
        const gx_fused_row *r = &f->rows[i];
        gx_text line = {0};
        rank = i && strcmp(f->rows[i - 1].qid, r->qid) == 0 ? rank + 1 : 1;
        gx_text_add_format(&line, "%s Q0 %s %zu %.17g %s\n", r->qid, r->docno, rank, r->score, tag);
        fwrite(line.bytes, 1, line.len, out);
        free(line.bytes);
    }
}

static int write_rows(const cli_args *a, const gx_fused *f)
{
    const char *path = cli_text(a, "output");
    FILE *out = path && strcmp(path, "-") != 0 ? fopen(path, cli_switch(a, "force") ? "w" : "wx") : stdout;
    if (!out)
        return cli_fail(GX_EIO, "cannot write %s: it exists, or its folder does not; --force replaces a file", path);
    print_rows(out, f, cli_text(a, "tag"));
    const bool good = !ferror(out) && (out == stdout ? fflush(out) == 0 : fclose(out) == 0);
    return good ? 0 : cli_fail(GX_EIO, "cannot write %s", path ? path : "standard output");
}

static int run_fuse(const cli_args *a)
{
    gx_error err = {0};
    gx_fusion_options opt = GX_FUSION_OPTIONS;
    gx_trec_table *runs = calloc((size_t)a->argc, sizeof *runs);
    double *weights = calloc((size_t)a->argc, sizeof *weights);
    gx_fused fused = {0};
    int code = runs && weights ? 0 : cli_fail(GX_ENOMEM, "no memory for %d runs", a->argc);
    const char *tag = cli_text(a, "tag");
    if (!code && (!*tag || strpbrk(tag, " \t\r\n")))
        code = cli_usage(a, "--tag=%s: a word without blanks is expected", tag);
    if (!code && cli_given(a, "weights"))
        code = read_weights(a, weights, a->argc);
    opt.method = (gx_fusion_method)cli_choice(a, "method");
    opt.norm = (gx_fusion_norm)cli_choice(a, "norm");
    opt.k = cli_number(a, "rrf-k");
    opt.most = (uint32_t)cli_count(a, "top");
    opt.weights = cli_given(a, "weights") ? weights : NULL;
    for (int i = 0; i < a->argc && !code; ++i)
        code = gx_trec_read(&runs[i], a->argv[i], GX_TREC_RUN, &err) ? cli_fail_error(&err) : 0;
    if (!code && gx_fuse(&fused, runs, (size_t)a->argc, &opt, &err))
        code = cli_fail_error(&err);
    if (!code)
        code = write_rows(a, &fused);
    gx_fused_free(&fused);
    for (int i = 0; runs && i < a->argc; ++i)
        gx_trec_free(&runs[i]);
    free(runs);
    free(weights);
    return code;
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "OUTPUT", NULL, "the file that is written; without it, or with `-`, standard output"},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace `OUTPUT` if it exists"},
    {"method", 'm', CLI_CHOICE, METHODS, "rrf",
     "`rrf`: by ranks alone, reciprocal rank fusion; `sum`: the sum of the runs' scores"},
    {"norm", 0, CLI_CHOICE, NORMS, "minmax",
     "with `--method=sum`, what becomes of the scores that a run gives to a query's documents before they are added: "
     "`minmax`: (s - least) / (greatest - least); `zscore`: (s - mean) / standard deviation; 0 where all are equal; "
     "`none`: they stay"},
    {"weights", 'w', CLI_TEXT, "W,...", NULL, "a weight for each run, by which what it adds is multiplied (1 each)"},
    {"rrf-k", 0, CLI_NUMBER, "K", "60", "the k of `rrf`", .min = 0, .max = 1e9},
    {"top", 'n', CLI_COUNT, "N", "1000", "write at most `N` documents a query", .min = 1, .max = UINT32_MAX},
    {"tag", 0, CLI_TEXT, "WORD", "gpuidx-fuse", "the last word of each line"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx fuse bm25.run dense.run -o both.run", "Reciprocal rank fusion of two runs."},
    {"gpuidx fuse -m sum --norm=minmax -w 0.7,0.3 bm25.run dense.run", "A weighted sum of scores between 0 and 1."},
    {NULL},
};

const cli_command cmd_fuse = {
    .name = "fuse",
    .summary = "fuse several runs into one",
    .synopsis = "[OPTIONS] RUN...",
    .description =
        "Reads runs, lines of query, `Q0`, document, rank, score and tag, and writes one run of all their documents. "
        "The score of a document is the sum over the runs that have it of\n"
        "\n"
        "  rrf   w / (K + rank)     rank 1 is the best\n"
        "  sum   w * norm(score)\n"
        "\n"
        "Runs are ranked by falling score, of equal scores as their lines stand; the ranks that they state are "
        "ignored. The fused documents are ordered by falling score, equal ones by id in byte order. Sums are in double "
        "precision, in the order of the runs.",
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = -1,
    .run = run_fuse,
};
