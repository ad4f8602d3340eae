/* collect.c: `gpuidx collect`: several indexes as one, a collection. */
#include <stdio.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

static int run(const cli_args *a)
{
    gx_error err = {0};
    const char *output = cli_text(a, "output");
    if (!output)
        return cli_usage(a, "--output: where does the collection go?");
    if (gx_collect(output, (const char *const *)a->argv, (size_t)a->argc, &err))
        return cli_fail_error(&err);
    gx_index *ix;
    const gx_index_options options = {sizeof options, GX_CHECK_STRUCTURE};
    if (gx_index_open(&ix, output, &options, &err))
        return cli_fail_error(&err);
    cli_note("%s: %llu documents in %d part%s", output, (unsigned long long)gx_index_n_docs(ix), a->argc,
             a->argc == 1 ? "" : "s");
    gx_index_close(ix);
    return 0;
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "FOLDER", NULL, "where the collection goes; it must not exist"},
    {NULL},
};

static const cli_section sections[] = {
    {"A collection",
     "is a folder of index files with a manifest. Every command that reads an index takes one, but for `reorder`: "
     "query, replay, info, check, export, recode, `bench query` and others. Its answers, docids and statistics are "
     "those of one index of all its documents, to the bit; `gpuidx recode COLLECTION -o FILE` makes that index. The "
     "flag `--pair-thresholds` takes that index alone. So does `query --engine=hybrid`, but not `replay`.\n"
     "\n"
     "The parts must have been built with the same analysis, attributes and block length, all with texts or all "
     "without, and no external id may occur twice. The files get a second name in the folder, which takes no space, "
     "or are copied where it lies on another file system. Their documents keep the order of the command line.\n"
     "\n"
     "A file has at most 4,294,967,294 documents, a collection any number of them: 4,096 files. One of more documents "
     "than a file can have cannot become one file (`recode`, `merge --policy=all`, `query --join=always`, exports of "
     "lists)."},
    {"With Slurm",
     "Each task of an array builds an index of its share of the files; a job that waits for the array collects them:\n"
     "\n"
     "  #!/bin/sh\n"
     "  #SBATCH --array=0-31 --cpus-per-task=4 --mem=8G\n"
     "  N=$SLURM_ARRAY_TASK_ID\n"
     "  mkdir -p parts\n"
     "  ls corpus/*.jsonl.gz | awk \"NR % 32 == $N\" >files.$N\n"
     "  xargs gpuidx build -j 4 -o $(printf parts/%02d.gx $N) <files.$N\n"
     "\n"
     "  job=$(sbatch --parsable build.sh)\n"
     "  sbatch --dependency=afterok:$job \\\n"
     "    --wrap 'gpuidx collect parts/*.gx -o corpus.collection'\n"
     "\n"
     "A task that failed leaves no file; run it again alone: `sbatch --array=7 build.sh`."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx collect 2019.gx 2020.gx 2021.gx -o papers", "Three years as one collection."},
    {"gpuidx query papers 'inverted index'", "The best of all three, with scores as of one index."},
    {NULL},
};

const cli_command cmd_collect = {
    .name = "collect",
    .summary = "make one collection of several indexes",
    .synopsis = "INDEX... -o FOLDER",
    .description = "Puts finished indexes side by side, to be searched as one. Nothing is merged: it takes as long as "
                   "verifying the files.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
