/* reorder.c: `gpuidx reorder`: the same index, its documents in another order. */
#include "tools/reorder.h"

#include <stdlib.h>

#include "codecs/auto_codec.h"
#include "engine/status.h"
#include "index/check.h"
#include "tools/cli.h"
#include "tools/progress.h"
#include "tools/signals.h"

static void show(void *bar, uint64_t done, uint64_t total)
{
    progress_share(bar, done, total);
}

gx_status reorder(const gx_index *ix, const char *path, reordering *r, gx_error *err)
{
    uint32_t *new_docids = malloc(((size_t)ix->n_docs + 1) * sizeof *new_docids);
    if (!new_docids)
        return gx_fail(err, GX_ENOMEM, "%s: no memory for an order of %u documents", ix->path, ix->n_docs);
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
    gx_index_sizes was, is;
    const gx_index_options light = {sizeof light, GX_CHECK_STRUCTURE};
    if (gx_index_open(&after, path, &light, NULL))
        return;
    gx_index_measure(before, &was);
    gx_index_measure(after, &is);
    cli_note("%s: %s; bits a posting: docids %.2f, tfs %.2f; before: %s; %.2f, %.2f", path,
             show_bytes(after->file_bytes), is.docid_bits, is.tf_bits, show_bytes(before->file_bytes), was.docid_bits,
             was.tf_bits);
    cli_note("log2 of the gaps between docids %.2f; before: %.2f", gx_order_gap_bits(after), gx_order_gap_bits(before));
    cli_note("seconds: order %.2f, write %.2f", r->order_seconds, r->write_seconds);
    gx_index_close(after);
}

/* The codecs of ix's postings, where no others are asked for; chosen anew by list where lists
 * differ. */
static gx_status choose_codecs(const cli_args *a, const gx_index *ix, gx_rewrite_options *opt, gx_error *err)
{
    const char *docids = cli_text(a, "codec"), *tfs = cli_text(a, "tf-codec");
    gx_index_sizes sizes;
    uint64_t most = 0;
    opt->docids = gx_codec_by_name("gpubp128");
    gx_index_measure(ix, &sizes);
    for (uint32_t i = 0; i < sizes.n_codings; ++i)
        if (sizes.codings[i].n_postings > most) {
            most = sizes.codings[i].n_postings;
            opt->docids = sizes.codings[i].docids;
            opt->tfs = sizes.codings[i].tfs;
        }
    if (sizes.n_codings > 1 && ix->block_len == gx_codec_auto.block_len)
        opt->docids = opt->tfs = &gx_codec_auto;
    if (docids)
        opt->tfs = NULL;
    const gx_status st = docids ? gx_codec_find(&opt->docids, docids, err) : GX_OK;
    return st == GX_OK && tfs ? gx_codec_find(&opt->tfs, tfs, err) : st;
}

static int run(const cli_args *a)
{
    gx_error err = {0};
    gx_index *ix = NULL;
    reordering r = {.order = GX_ORDER_OPTIONS, .rewrite = GX_REWRITE_OPTIONS, .cancel = is_stopped};
    const char *path = cli_text(a, "output");
    if (!path)
        return cli_usage(a, "--output: where does the new index go?");
    if (cli_same_file(path, a->argv[0]))
        return cli_usage(a, "--output: %s is what is reordered; give another name", path);
    r.order.kind =
        (const gx_order_kind[]){GX_ORDER_BP, GX_ORDER_RANDOM, GX_ORDER_ID, GX_ORDER_KEEP}[cli_choice(a, "order")];
    if (cli_given(a, "seed") && r.order.kind != GX_ORDER_RANDOM)
        return cli_usage(a, "--seed is of --order=random; --order=%s takes none", cli_text(a, "order"));
    r.order.seed = cli_count(a, "seed");
    r.order.threads = (uint32_t)cli_count(a, "threads");
    r.rewrite.force = cli_switch(a, "force");
    if (gx_index_open(&ix, a->argv[0], NULL, &err))
        return cli_fail_error(&err);
    int code = 0;
    stop_on_signals();
    if (choose_codecs(a, ix, &r.rewrite, &err) || reorder(ix, path, &r, &err))
        code = stop_fail(&err);
    else
        reorder_report(ix, path, &r);
    gx_index_close(ix);
    return code;
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "FILE", NULL, "where the new index goes"},
    {"order", 0, CLI_CHOICE, "bp|random|url|keep", "bp", "the documents' new order, see Orders"},
    {"seed", 0, CLI_COUNT, "N", "1", "of `--order=random`: another seed, another order"},
    {"codec", 0, CLI_TEXT, "NAME", NULL, "how docids are packed; without it, as they are"},
    {"tf-codec", 0, CLI_TEXT, "NAME", NULL, "how term frequencies are packed; without it, as docids, or as they are"},
    {"threads", 'j', CLI_COUNT, "N", "1", "threads of `--order=bp`; the order is the same for any number", .min = 1,
     .max = 256},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace `FILE` if it exists"},
    {NULL},
};

static const cli_section sections[] = {
    {"Orders", "  bp      recursive graph bisection: documents that share terms come together,\n"
               "          which makes lists smaller and lets searches skip more of them\n"
               "  random  no order at all, to compare with\n"
               "  url     by external id, as bytes: if ids are URLs, sites come together\n"
               "  keep    as it is\n"
               "\n"
               "`bp` needs 8 bytes of memory a posting, and 25 a document. A codec whose blocks\n"
               "are as wide as their greatest gap (gpubp128) gains little in size; one with\n"
               "exceptions (gpupfd128) gains more."},
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
    .description = "Gives documents new docids. Queries find the same documents with the same scores; only documents "
                   "of equal scores, which stand by docid, may change places.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
