/* reorder.c: `gpuidx reorder`: the same index, its documents in another order. */
#include "tools/commands/reorder.h"

#include <stdlib.h>

#include "tools/cli/cli.h"
#include "tools/cli/progress.h"
#include "tools/cli/signals.h"

static void show(void *bar, uint64_t done, uint64_t total)
{
    progress_share(bar, done, total);
}

gx_status reorder(const gx_index *ix, const char *path, reordering *r, gx_error *err)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_stats(ix, &stats);
    uint32_t *new_docids = malloc(((size_t)stats.n_docs + 1) * sizeof *new_docids);
    if (!new_docids) {
        err->status = GX_ENOMEM;
        snprintf(err->text, sizeof err->text, "%s: no memory for an order of %u documents", path, stats.n_docs);
        return GX_ENOMEM;
    }
    progress bar = progress_begin("ordering documents", 0);
    r->order.cancel = r->rewrite.cancel = r->cancel;
    r->order.progress = show;
    r->order.user = &bar;
    const double began = progress_clock();
    gx_status st = gx_order_make(ix, &r->order, new_docids, err);
    const double ordered = progress_clock();
    if (st == GX_OK) {
        progress_phase(&bar, "writing the index");
        r->rewrite.new_docids = r->order.kind == GX_ORDER_KEEP ? NULL : new_docids;
        st = gx_index_rewrite(ix, path, &r->rewrite, err);
    }
    progress_end(&bar);
    free(new_docids);
    r->order_seconds = ordered - began;
    r->write_seconds = progress_clock() - ordered;
    return st;
}

void reorder_report(const gx_index *before, const char *path, const reordering *r)
{
    gx_index *after;
    gx_index_stats old = {.size = sizeof old}, new = {.size = sizeof new};
    gx_index_sizes was, is;
    const gx_index_options light = {sizeof light, GX_CHECK_STRUCTURE, GX_LOAD_MAP};
    cli_json_memory_may_fail();
    if (gx_index_open(&after, path, &light, NULL))
        return;
    gx_index_measure(before, &was);
    gx_index_measure(after, &is);
    gx_index_get_stats(before, &old);
    gx_index_get_stats(after, &new);
    cli_note("%s: %s; bits a posting: docids %.2f, tfs %.2f; before: %s; %.2f, %.2f", path, show_bytes(new.file_bytes),
             is.docid_bits, is.tf_bits, show_bytes(old.file_bytes), was.docid_bits, was.tf_bits);
    cli_note("log2 of the gaps between docids %.2f; before: %.2f", gx_order_gap_bits(after), gx_order_gap_bits(before));
    cli_note("seconds: order %.2f, write %.2f", r->order_seconds, r->write_seconds);
    gx_index_close(after);
}

static int run(const cli_args *a)
{
    gx_error err = {0};
    gx_index *ix = NULL;
    reordering r = {.order = GX_ORDER_OPTIONS, .rewrite = GX_REWRITE_OPTIONS, .cancel = is_stopped};
    const char *path = cli_text(a, "output");
    if (!path)
        return cli_usage(a, "--output: where does the new index go?");
    r.order.kind =
        (const gx_order_kind[]){GX_ORDER_BP, GX_ORDER_RANDOM, GX_ORDER_ID, GX_ORDER_KEEP}[cli_choice(a, "order")];
    if (cli_given(a, "seed") && r.order.kind != GX_ORDER_RANDOM)
        return cli_usage(a, "--seed is of --order=random; --order=%s takes none", cli_text(a, "order"));
    r.order.seed = cli_count(a, "seed");
    r.order.threads = (uint32_t)cli_count(a, "threads");
    r.rewrite.force = cli_switch(a, "force");
    r.rewrite.docid_codec = cli_text(a, "codec");
    r.rewrite.tf_codec = cli_text(a, "tf-codec");
    if (gx_index_open(&ix, a->argv[0], NULL, &err))
        return cli_fail_error(&err);
    int code = 0;
    stop_on_signals();
    if (reorder(ix, path, &r, &err))
        code = stop_fail(&err);
    else
        reorder_report(ix, path, &r);
    gx_index_close(ix);
    return code ? code : stop_done(path);
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "FILE", NULL, "the new index's file"},
    {"order", 0, CLI_CHOICE, "bp|random|url|keep", "bp", "by what the documents are ordered: see Orders"},
    {"seed", 0, CLI_COUNT, "N", "1",
     "with `--order=random`: the seed of the random numbers. The same seed gives the same order"},
    {"codec", 0, CLI_TEXT, "NAME", NULL,
     "how document numbers are compressed, as `gpuidx help recode` says; without this flag, as in `INDEX`"},
    {"tf-codec", 0, CLI_TEXT, "NAME", NULL,
     "how term frequencies are compressed; without this flag, by `--codec`, or as in `INDEX` where that is not given"},
    {"threads", 'j', CLI_COUNT, "N", "1", "how many threads `--order=bp` uses; the order is the same for any number",
     .min = 1, .max = 256},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace `FILE` if it exists; without this flag that is an error"},
    {NULL},
};

static const cli_section sections[] = {
    {"Orders",
     "  bp      recursive graph bisection: documents that share terms come together,\n"
     "          which makes lists smaller and lets searches skip more of them\n"
     "  random  an order by chance, to compare the others with\n"
     "  url     by the documents' ids, byte by byte: where ids are URLs, the pages\n"
     "          of a site come together\n"
     "  keep    the order that the index has\n"
     "\n"
     "`bp` takes 8 bytes of memory for each posting and 25 for each document. A smaller index also needs a codec "
     "that profits: one that stores a few large gaps of a block apart (`--codec=gpupfd128`) becomes smaller "
     "than one whose largest gap sets the width of the whole block (`gpubp128`)."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx reorder corpus.gx -o small.gx --codec=gpupfd128 -j 8", "A smaller index, in which searches decode "
                                                                    "fewer blocks."},
    {NULL},
};

const cli_command cmd_reorder = {
    .name = "reorder",
    .summary = "write an index anew with its documents in another order",
    .synopsis = "[OPTIONS] INDEX -o FILE",
    .description = "Gives the documents of an index other numbers (docids), so that similar documents come together. "
                   "That makes an index smaller and searches faster. Queries find the same documents with the same "
                   "scores; only documents of equal scores, which are ordered by docid, may change places. A "
                   "collection is to be made one index by `gpuidx recode` before.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
