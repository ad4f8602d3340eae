/* gpuidx.c: the program gpuidx: its texts, and the list of all its commands. */
#include "tools/cli/cli.h"

/* What measures is a program of its own, gpuidx-bench; these words start it. */
static const cli_command cmd_bench = {
    .name = "bench",
    .summary = "measure, print the papers' tables (starts gpuidx-bench)",
    .synopsis = "BENCHMARK [OPTIONS]",
    .program = "gpuidx-bench",
};
static const cli_command cmd_generate = {
    .name = "generate",
    .summary = "make a collection and queries (starts gpuidx-bench)",
    .synopsis = "[OPTIONS] -o BASE",
    .program = "gpuidx-bench",
    .command = "generate",
};

static const cli_command *const commands[] = {
    &cmd_build,    &cmd_query, &cmd_replay,  &cmd_eval,       &cmd_fuse,  &cmd_sweep,  &cmd_calibrate,
    &cmd_info,     &cmd_doc,   &cmd_term,    &cmd_analyze,    &cmd_check, &cmd_recode, &cmd_reorder,
    &cmd_collect,  &cmd_add,   &cmd_update,  &cmd_delete,     &cmd_merge, &cmd_import, &cmd_export,
    &cmd_generate, &cmd_bench, &cmd_devices, &cmd_completion, &cmd_help,
#ifdef GX_SERVE
    &cmd_mcp,      &cmd_serve,
#endif
    NULL,
};

/* What other engines' programs call them. */
static const cli_section others[] = {
    {"search", "query"},     {"retrieve", "query"}, {"ask", "query"},
    {"index", "build"},      {"create", "build"},   {"stats", "info"},
    {"stat", "info"},        {"inspect", "info"},   {"evaluate", "eval"},
    {"trec_eval", "eval"},   {"convert", "recode"}, {"compress", "recode"},
    {"verify", "check"},     {"run", "replay"},     {"batch", "replay"},
    {"benchmark", "replay"}, {"dump", "export"},    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx build corpus.jsonl.gz -o corpus.gx", "Index a collection."},
    {"gpuidx query corpus.gx 'inverted index compression'", "Ask it something."},
    {"gpuidx replay corpus.gx queries.txt --run run.txt", "Run a query log, and write its results for `gpuidx eval`."},
    {NULL},
};

const cli_program cli_this = {
    .name = "gpuidx",
    .summary = "index text and search it by BM25, on the GPU or the CPU",
    .description =
        "`gpuidx` builds inverted indexes of text collections and answers ranked queries from them. An index is one "
        "file, which holds all that a query needs: terms, compressed postings, document lengths, ids and titles, and "
        "how text was made into terms. Searching runs on a GPU where there is one and else on the CPU, with the same "
        "answers to the bit. Replace an index that is in use with `build --force` or by `mv`; a program that reads an "
        "index which is overwritten in place ends with exit code 4.",
    .examples = examples,
    .commands = commands,
    .others = others,
};
