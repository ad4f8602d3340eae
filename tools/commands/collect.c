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
    if (gx_index_open(&ix, output, &options, &err)) {
        cli_warn("%s is in place, but its summary cannot be made: %s", output, err.text);
        return 0;
    }
    cli_note("%s: %llu documents in %u part%s, commit %llu", output, (unsigned long long)gx_index_n_docs(ix),
             gx_index_n_parts(ix), gx_index_n_parts(ix) == 1 ? "" : "s", (unsigned long long)gx_index_commit(ix));
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
     "without, all with positions or all without, and no external id may occur twice. The files get a second name in "
     "the folder, which takes no space, or are copied where it lies on another file system. Their documents keep the "
     "order of the command line.\n"
     "\n"
     "A file has at most 4,294,967,294 documents, a collection any number of them: 4,096 files. One of more documents "
     "than a file can have cannot become one file (`recode`, `merge --policy=all`, `query --join=always`, exports of "
     "lists)."},
    {"Backup and replacement",
     "`gpuidx collect COLLECTION -o COPY` copies one commit, also while another process changes the collection: by "
     "hard "
     "links, which take no space and no time, or byte by byte where COPY lies on another file system. COPY is a "
     "collection of its own, to be searched, changed and moved; what is changed in one of them does not show in the "
     "other. A plain copy (cp, rsync) of a collection in use can have parts of two commits, and then does not open.\n"
     "\n"
     "To put a copy back, or another collection in the place of one, move the old folder away and the new one to its "
     "path (`mv`), or let a symbolic link lead to the new one. Programs that search go on with the commit that they "
     "have open until they look for a newer one: `query` before each line of its input, which also goes on where the "
     "folder is away at that moment; C's `gx_index_reopen` and Python's `reopen` when they are called, which fail then "
     "and leave the old commit open. Programs that change the old folder end with an error at their next commit, and "
     "write nothing into the new one.\n"
     "\n"
     "Never write into the files of a collection, as rsync does when it is told to write in place: copies and programs "
     "that search share them."},
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
    {"gpuidx collect papers -o papers.backup", "A copy of the last commit, while others search and change papers."},
    {NULL},
};

const cli_command cmd_collect = {
    .name = "collect",
    .summary = "make one collection of several indexes, or copy one",
    .synopsis = "INDEX... -o FOLDER\nCOLLECTION -o COPY",
    .description = "Puts finished indexes side by side, to be searched as one. Nothing is merged: it takes as long as "
                   "verifying the files. Of one collection it makes a copy of the last commit.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
