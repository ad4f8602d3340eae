/* doc.c: `gpuidx doc`: what an index stores of documents. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/lookup.h"
#include "tools/cli/output.h"

static int put_json(const gx_index *ix, uint64_t docid)
{
    gx_error err = {0};
    char *text = NULL;
    size_t cap = 0, len;
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_stats(ix, &stats);
    if (stats.texts && gx_index_doc_text(ix, docid, &text, &cap, &len, &err)) {
        free(text);
        return cli_fail_error(&err);
    }
    size_t id_len, title_len;
    const char *id = gx_index_doc_id(ix, docid, &id_len), *title = gx_index_doc_title(ix, docid, &title_len);
    printf("{\"schema\":1,\"docid\":%llu,\"id\":", (unsigned long long)docid);
    out_put_json(stdout, id, id_len);
    printf(",\"length\":%u", gx_index_doc_len(ix, docid));
    if (title) {
        fputs(",\"title\":", stdout);
        out_put_json(stdout, title, title_len);
    }
    if (stats.texts) {
        fputs(",\"text\":", stdout);
        out_put_json(stdout, text, len);
    }
    free(text);
    if (gx_index_n_attributes(ix)) {
        gx_text attributes = {0};
        gx_values values = {0};
        const gx_status st =
            gx_text_add_attributes(&attributes, ix, docid, NULL, gx_index_n_attributes(ix), &values, &err);
        if (st == GX_OK)
            printf(",\"attributes\":%.*s", (int)attributes.len, attributes.bytes);
        free(attributes.bytes);
        gx_values_free(&values);
        if (st)
            return cli_fail_error(&err);
    }
    puts("}");
    return 0;
}

/* The docid that a word names, or UINT64_MAX. An id comes first. */
static uint64_t find(const gx_index *ix, const char *word)
{
    const cli_flag number = {"", 0, CLI_COUNT, "", NULL, "", 0, 0x1p53};
    gx_index_stats stats = {.size = sizeof stats};
    uint64_t docid = 0;
    double unused;
    char why[96];
    gx_index_get_stats(ix, &stats);
    const uint64_t named = gx_index_find_doc64(ix, word, strlen(word));
    if (word[0] != '#')
        return named;
    const bool good = cli_read_number(&number, word + 1, &unused, &docid, why, sizeof why) && docid < stats.n_documents;
    if (named != UINT64_MAX && good && docid != named) {
        size_t len;
        const char *id = gx_index_doc_id(ix, docid, &len);
        cli_note("'%s' is an id; docid %llu is the document '%.*s'", word, (unsigned long long)docid,
                 (int)(len < 60 ? len : 60), id);
    }
    return named != UINT64_MAX ? named : good ? docid : UINT64_MAX;
}

static int run(const cli_args *a)
{
    gx_index *ix;
    gx_error err = {0};
    int code = lookup_open(&ix, a->argv[0]);
    for (int i = 1; i < a->argc && code == 0; ++i) {
        const uint64_t docid = find(ix, a->argv[i]);
        if (docid == UINT64_MAX)
            code = cli_fail(GX_ENOTFOUND, "%s has no document '%s' (#N names a document by its docid)", a->argv[0],
                            a->argv[i]);
        else if (lookup_json(a))
            code = put_json(ix, docid);
        else if (i > 1)
            putchar('\n');
        if (code == 0 && !lookup_json(a) && out_put_document(stdout, ix, docid, &err))
            code = cli_fail_error(&err);
    }
    gx_index_close(ix);
    return code;
}

static const cli_flag flags[] = {LOOKUP_FORMAT_FLAG, {NULL}};

static const cli_section examples[] = {
    {"gpuidx doc corpus.gx 13312471", "The document with that id."},
    {"gpuidx doc corpus.gx '#0' -f json", "The first document of the index, as JSON."},
    {NULL},
};

const cli_command cmd_doc = {
    .name = "doc",
    .summary = "print documents of an index",
    .synopsis = "[OPTIONS] INDEX ID...",
    .description =
        "Prints what the index stores of each document: its id, title, length in terms, values of attributes, and "
        "text. An `ID` is the id that the corpus gave the document, or `#N`, where no document has that id, for the "
        "one with the docid `N`, the index's own number, which counts from 0. Titles and texts are there if "
        "`gpuidx build --store` kept them. An id that the index lacks ends the program with exit code 5.\n"
        "\n"
        "With `--format=json` each document is a JSON object on a line of its own, with `schema` (1), `docid`, `id`, "
        "`length`, `title` and `text` where they are stored, and `attributes` where the index has some: whole numbers, "
        "floats and bools as they are, dates as filters write them. An attribute of which documents may have several "
        "values is always an array; one of which the document has none is left out.",
    .examples = examples,
    .flags = flags,
    .min_args = 2,
    .max_args = -1,
    .run = run,
};
