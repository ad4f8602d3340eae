/* generate.c: `gpuidx-bench generate`: a collection of GOV2's shape, or vectors of learned sparse
 * retrieval's, at any size, for this engine and for others. */
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/files/atomic_file.h"
#include "index/convert/ds2i.h"
#include "tools/bench/data/collection.h"
#include "tools/bench/data/vector_files.h"
#include "tools/cli/cli.h"
#include "tools/cli/signals.h"

/* A query a line, terms by the names that export gives them. */
static gx_status write_queries(const gx_synth *s, gx_atomic_file *out, gx_error *err)
{
    const int digits = snprintf(NULL, 0, "%u", s->ix.n_terms - 1);
    const gx_status st = gx_atomic_file_stream(out, err);
    if (st)
        return st;
    FILE *f = out->file;
    for (uint32_t q = 0; q < s->n_queries; ++q) {
        for (uint32_t i = 0; i < s->queries[q].n; ++i)
            fprintf(f, "%s%0*u", i ? " " : "", digits, s->queries[q].terms[i]);
        putc('\n', f);
    }
    return gx_atomic_file_sync(out, err);
}

static void report(const gx_synth *s)
{
    uint64_t touched = 0;
    for (uint32_t q = 0; q < s->n_queries; ++q) {
        for (uint32_t i = 0; i < s->queries[q].n; ++i)
            touched += s->ix.lists[s->queries[q].terms[i]].df;
    }
    cli_note("%u documents, %u lists, %llu postings; %u queries touch %.0f postings each", s->ix.n_docs, s->ix.n_terms,
             (unsigned long long)s->ix.n_postings, s->n_queries, s->n_queries ? (double)touched / s->n_queries : 0);
}

static int run_vectors(const cli_args *a)
{
    gx_error err = {0};
    gx_vector_files_options opt = {.base = cli_text(a, "output"),
                                   .shape = (gx_sparse_shape)(cli_choice(a, "shape") - 1),
                                   .seed = cli_count(a, "seed"),
                                   .n_documents = cli_given(a, "documents") ? cli_count(a, "documents") : 8841823,
                                   .n_queries = cli_count(a, "queries"),
                                   .csr = cli_choice(a, "format") == 0,
                                   .force = cli_switch(a, "force"),
                                   .threads = (uint32_t)cli_count(a, "threads"),
                                   .cancel = is_stopped};
    gx_vector_files_counts counts;
    if (cli_given(a, "lists") || cli_given(a, "density"))
        return cli_usage(a, "--lists and --density are of --shape=gov2");
    stop_on_signals();
    if (gx_vector_files_write(&opt, &counts, &err))
        return stop_fail(&err);
    cli_note("%llu documents of %.1f terms on average; %llu queries of %.1f", (unsigned long long)opt.n_documents,
             counts.document_mean, (unsigned long long)opt.n_queries, counts.query_mean);
    return stop_done(opt.base);
}

static int run(const cli_args *a)
{
    gx_error err = {0};
    gx_synth *s = NULL;
    gx_synth_options opt = GX_SYNTH_OPTIONS;
    gx_export_options to = GX_EXPORT_OPTIONS;
    const char *base = cli_text(a, "output");
    char path[4096];
    if (!base)
        return cli_usage(a, "--output: where do the files go?");
    if (cli_choice(a, "shape"))
        return run_vectors(a);
    if (cli_given(a, "format"))
        return cli_usage(a, "--format is of vectors: give --shape=splade, unicoil or inference-free");
    if (cli_count(a, "documents") < 1000)
        return cli_usage(a, "--documents: at least 1,000 of --shape=gov2");
    if (snprintf(path, sizeof path, "%s.queries", base) >= (int)sizeof path)
        return cli_usage(a, "--output: the name is too long");
    opt.n_docs = (uint32_t)cli_count(a, "documents");
    opt.n_terms = (uint32_t)cli_count(a, "lists");
    opt.n_queries = (uint32_t)cli_count(a, "queries");
    opt.seed = cli_count(a, "seed");
    opt.density = cli_number(a, "density");
    opt.threads = (uint32_t)cli_count(a, "threads");
    opt.codec = gx_codec_by_name("gpubp128");
    to.force = cli_switch(a, "force");
    to.cancel = is_stopped;
    stop_on_signals();
    gx_atomic_file queries;
    gx_status st = gx_atomic_file_open(&queries, path, to.force ? GX_ATOMIC_FILE_FORCE : 0, &err);
    if (st == GX_OK)
        st = gx_synth_open(&s, &opt, &err);
    if (st == GX_OK)
        st = write_queries(s, &queries, &err);
    if (st == GX_OK)
        st = gx_ds2i_export_with(&s->ix, base, &to, &queries, &err);
    gx_atomic_file_close(&queries);
    if (st == GX_OK)
        report(s);
    gx_synth_close(s);
    return st ? stop_fail(&err) : stop_done(base);
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "BASE", NULL,
     "how the names of the files begin: `BASE.docs`, `BASE.freqs`, `BASE.sizes`, `BASE.terms`, `BASE.documents` and "
     "`BASE.queries`"},
    {"shape", 0, CLI_CHOICE, "gov2|splade|unicoil|inference-free", "gov2",
     "what the collection is like: `gov2`, lists of term frequencies; or vectors with weights, as models of learned "
     "sparse retrieval make them, see Shape"},
    {"format", 0, CLI_CHOICE, "csr|vectors", "csr",
     "of vectors: `csr`, matrices `BASE.csr` and `BASE.queries.csr`; `vectors`, JSON lines `BASE.jsonl` and "
     "`BASE.queries.jsonl`, which are twice as large"},
    {"documents", 'n', CLI_COUNT, "N", "25205179",
     "make `N` documents, from 1,000 to 4,000,000,000; of vectors from 1, and 8,841,823 without this flag", .min = 1,
     .max = 4e9},
    {"lists", 0, CLI_COUNT, "N", "800", "number of terms, 64 to 1,000,000, each of which has a list of postings",
     .min = 64, .max = 1e6},
    {"queries", 0, CLI_COUNT, "N", "1024", "number of queries", .max = 1e8},
    {"density", 0, CLI_NUMBER, "X", "1", "make the lists `X` times as long as Shape says, from 0.001 to 3", .min = 1e-3,
     .max = 3},
    {"seed", 0, CLI_COUNT, "N", "1",
     "the seed of the random numbers: the same seed gives the same files on every machine"},
    {"threads", 'j', CLI_COUNT, "N", "0",
     "threads to use; 0: one for each processor. The files are the same for any number. Vectors take up to 15 MB of "
     "memory a thread",
     .max = 256},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace files that exist; without this flag that is an error"},
    {NULL},
};

static const cli_section sections[] = {
    {"Shape",
     "Lengths of documents are lognormal, 910 words on average; documents come in sites of about 620, and a site "
     "has one of 16 topics. Lengths of lists are log-uniform: with 25,205,179 documents from 2,000 to 8 million, "
     "with others in proportion. A term's docids cluster in the sites of its topic. Queries have 2 to 5 terms, half "
     "of them on one topic.\n"
     "\n"
     "The names of terms and documents are their numbers, with leading zeros. `BASE.queries` has one query on each "
     "line; "
     "the other files are those that `gpuidx export -f ds2i` writes, so that `gpuidx import` and PISA read the same "
     "postings. The files get their names when all are complete, and `BASE.docs`, without which nothing reads "
     "them, gets its name last.\n"
     "\n"
     "Vectors are over 30,522 terms of 64 topics. Numbers of terms, on average:\n"
     "\n"
     "  shape           a document (least, most)  a query (least, most)\n"
     "  splade          120 (102, 215)            44 (12, 107)\n"
     "  unicoil         68 (50, 130)              6 (2, 24)\n"
     "  inference-free  180 (150, 315)            7 (2, 28)\n"
     "\n"
     "Weights have the quantiles of SPLADE's on MS MARCO: a tenth of those of documents is below 0.044, a quarter "
     "below 0.111, half below 0.278, three quarters below 0.629, nine tenths below 1.08 and 99 in a hundred below "
     "2.00; of those of queries 0.046, 0.119, 0.293, 0.661, 1.62 and 2.46. The terms of a query of splade have about "
     "2 postings for each document of the collection, and 53 to 57 % of the documents have one of them."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx-bench generate -o small --documents=1500000", "A sixteenth of the size."},
    {"gpuidx-bench generate -o s --shape=splade -n 100000; gpuidx build -f csr s.csr -o s.gx; gpuidx replay -f csr "
     "s.gx s.queries.csr",
     "Vectors, their index, and their queries."},
    {"gpuidx import small -o small.gx", "An index of it."},
    {"gpuidx replay small.gx small.queries", "Its queries, answered and measured."},
    {NULL},
};

const cli_command cmd_generate = {
    .name = "generate",
    .summary = "make a collection and queries for benchmarks",
    .synopsis = "[OPTIONS] -o BASE",
    .description =
        "Writes a collection of postings, without texts, and queries for it, both made by random numbers. "
        "Its size is free, and its lists are like those of GOV2, a crawl of 25 million web pages, or, with --shape, "
        "its vectors like those of learned sparse retrieval. Use it for "
        "measurements that anyone can repeat, with this engine and with others.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 0,
    .max_args = 0,
    .run = run,
};
