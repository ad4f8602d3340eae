/* recode.c: `gpuidx recode`: the same index, packed otherwise. */
#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"
#include "tools/cli/signals.h"

static void report(const gx_index *before, const char *path)
{
    gx_index *after;
    gx_index_stats was = {.size = sizeof was}, is = {.size = sizeof is};
    gx_index_sizes old, new;
    cli_json_memory_may_fail();
    if (gx_index_open(&after, path, NULL, NULL))
        return;
    gx_index_get_stats(before, &was);
    gx_index_get_stats(after, &is);
    gx_index_measure(before, &old);
    gx_index_measure(after, &new);
    cli_note("%s: %s, %.2f bits a posting of docids and tfs; before: %s and %.2f", path, show_bytes(is.file_bytes),
             new.docid_bits + new.tf_bits, show_bytes(was.file_bytes), old.docid_bits + old.tf_bits);
    gx_index_close(after);
}

static int run(const cli_args *a)
{
    gx_error err = {0};
    gx_index *ix = NULL;
    gx_rewrite_options opt = GX_REWRITE_OPTIONS;
    const char *path = cli_text(a, "output");
    if (!path)
        return cli_usage(a, "--output: where does the new index go?");
    opt.force = cli_switch(a, "force");
    opt.docid_codec = cli_text(a, "codec");
    opt.tf_codec = cli_text(a, "tf-codec");
    opt.drop_titles = cli_choice(a, "drop") == 2;
    opt.drop_texts = cli_choice(a, "drop") == 1 || opt.drop_titles;
    opt.drop_positions = cli_choice(a, "drop") == 3;
    opt.cancel = is_stopped;
    opt.impacts.bits = (uint32_t)cli_count(a, "bits");
    opt.impacts.list_units = cli_choice(a, "scale") == 1;
    if (cli_given(a, "impacts") && gx_impact_options_parse(&opt.impacts, cli_text(a, "impacts"), &err))
        return cli_usage(a, "--%s", err.text);
    if (!cli_given(a, "impacts") && (cli_given(a, "bits") || cli_given(a, "scale")))
        return cli_usage(a, "--%s is of --impacts", cli_given(a, "bits") ? "bits" : "scale");
    if (gx_index_open(&ix, a->argv[0], NULL, &err))
        return cli_fail_error(&err);
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(ix, &stats);
    if (stats.positions && opt.impacts.model != GX_IMPACTS_KEEP)
        cli_note("%s: positions are left out: an index of impacts has none", path);
    stop_on_signals();
    int code = 0;
    if (gx_index_rewrite(ix, path, &opt, &err))
        code = stop_fail(&err);
    else
        report(ix, path);
    gx_index_close(ix);
    return code ? code : stop_done(path);
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "FILE", NULL, "the new index's file"},
    CLI_CODEC_FLAGS,
    {"impacts", 0, CLI_TEXT, "MODEL", NULL,
     "score every posting by `MODEL` and keep the scores, as whole numbers, in the place of term frequencies: `bm25`, "
     "`bm25l`, `dph`, `ql` or `pl2`, with parameters as in `ql:mu=2000`, see Impacts"},
    {"bits", 0, CLI_COUNT, "N", "8", "of `--impacts`: scores are kept as whole numbers of `N` bits, 4 to 16", .min = 4,
     .max = 16},
    {"scale", 0, CLI_CHOICE, "collection|list", "collection",
     "of `--impacts`: what the greatest whole number stands for. `collection`: the greatest score of all; `list`: for "
     "each term its own greatest score, which is finer for frequent terms"},
    {"drop", 0, CLI_CHOICE, "nothing|text|title|positions", "nothing",
     "what the new index shall not hold: `text`: stored texts; `title`: texts and titles; `positions`: the places of "
     "words in documents. Searches stay the same, but for phrases, and results have no snippets or titles then. "
     "Impacts have no positions"},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace `FILE` if it exists; without this flag that is an error"},
    {NULL},
};

static const cli_section sections[] = {
    {"Impacts",
     "The new index is searched with `--scorer=impact`, its default: a document's score is the sum over the query's "
     "terms of the posting's score by the model, rounded to a multiple of a unit, (greatest score) / (2^bits - 1), "
     "and at least one unit. So these are scorers too:\n"
     "\n"
     "  bm25   k1=0.9,b=0.4: as --scorer=bm25\n"
     "  bm25l  k1=1.2,b=0.75,delta=0.5: Lv and Zhai (SIGIR 2011):\n"
     "         ln((N + 1) / (df + 0.5)) * (k1 + 1) * (c + delta) / (k1 + c + delta),\n"
     "         c = tf / (1 - b + b * dl / avgdl)\n"
     "  dph    Amati et al. (TREC 2007), as Terrier has it:\n"
     "         (1 - f)^2 / (tf + 1) * (tf * lg(tf * avgdl / dl * N / cf)\n"
     "         + 0.5 * lg(2 * pi * tf * (1 - f))), f = tf / dl, 0.99999 if that is 1\n"
     "  ql     mu=1000: query likelihood with Dirichlet smoothing (Zhai and\n"
     "         Lafferty, SIGIR 2001), as Lucene and PISA have it:\n"
     "         max(0, ln(1 + tf / (mu * cf / C)) + ln(mu / (dl + mu)))\n"
     "  pl2    c=1: Amati and van Rijsbergen (TOIS 2002), as Terrier has it:\n"
     "         (t * lg(t / l) + (l - t) * lg(e) + 0.5 * lg(2 * pi * t)) / (t + 1),\n"
     "         t = tf * lg(1 + c * avgdl / dl), l = cf / N\n"
     "\n"
     "N documents, df of them with the term, cf occurrences of it, C of all terms; dl is a document's length, avgdl "
     "the mean. A score below 0 counts as 0. Terms that a query says n times count n times. The new index has no term "
     "frequencies: keep the old one."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx recode corpus.gx -o vbyte.gx --codec=gpuvbyte128", "Compare codecs without building the corpus again."},
    {"gpuidx recode corpus.gx -o small.gx --codec=auto", "Each list by the codec that costs it the least size and "
                                                         "time. `gpuidx info` tells which codecs these are."},
    {"gpuidx recode corpus.gx -o dph.gx --impacts=dph", "DPH as a scorer, at 8 bits a score."},
    {"gpuidx recode corpus.gx -o small.gx --drop=title", "Postings and ids alone, to carry to another machine."},
    {NULL},
};

const cli_command cmd_recode = {
    .name = "recode",
    .summary = "write an index anew with other codecs, or with impacts",
    .synopsis = "[OPTIONS] INDEX -o FILE",
    .description =
        "Decompresses every list of an index and compresses it again with other codecs, which trade size "
        "for speed. Queries have the same answers, to the bit. With --impacts the lists hold scores instead of "
        "term frequencies. The new index appears when it is complete; "
        "with `--force` it may take the old one's place. An index that is damaged is refused with exit code 4.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
