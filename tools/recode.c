/* recode.c: `gpuidx recode`: the same index, packed otherwise. */
#include "engine/gpuidx_advanced.h"
#include "tools/cli.h"
#include "tools/signals.h"

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
    cli_note("%s: %llu bytes, %.2f bits a posting of docids and tfs; before: %llu and %.2f", path,
             (unsigned long long)is.file_bytes, new.docid_bits + new.tf_bits, (unsigned long long)was.file_bytes,
             old.docid_bits + old.tf_bits);
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
    opt.drop_titles = cli_choice(a, "drop") >= 2;
    opt.drop_texts = cli_choice(a, "drop") >= 1;
    opt.cancel = is_stopped;
    if (gx_index_open(&ix, a->argv[0], NULL, &err))
        return cli_fail_error(&err);
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
    {"drop", 0, CLI_CHOICE, "nothing|text|title", "nothing",
     "what the new index shall not hold: `text`: stored texts; `title`: texts and titles. Searches stay the same, and "
     "results have no snippets or titles then"},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace `FILE` if it exists; without this flag that is an error"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx recode corpus.gx -o vbyte.gx --codec=gpuvbyte128", "Compare codecs without building the corpus again."},
    {"gpuidx recode corpus.gx -o small.gx --codec=auto", "Each list by the codec that costs it the least size and "
                                                         "time. `gpuidx info` tells which codecs these are."},
    {"gpuidx recode corpus.gx -o small.gx --drop=title", "Postings and ids alone, to carry to another machine."},
    {NULL},
};

const cli_command cmd_recode = {
    .name = "recode",
    .summary = "write an index anew with other codecs",
    .synopsis = "[OPTIONS] INDEX -o FILE",
    .description =
        "Decompresses every list of an index and compresses it again with other codecs, which trade size "
        "for speed. Queries have the same answers, to the bit. The new index appears when it is complete; "
        "with `--force` it may take the old one's place. An index that is damaged is refused with exit code 4.",
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
