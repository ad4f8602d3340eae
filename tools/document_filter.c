#include "tools/document_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_ID 60 /* bytes of an id in a message */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* What has been read of a file of ids. */
typedef struct id_file {
    const char *path;
    const gx_index *ix;
    uint64_t *words;
    uint64_t line, n_ids, n_unknown, first_unknown; /* first_unknown: its line */
    char unknown[SHOWN_ID + 1];
} id_file;

static int take_line(id_file *f, const char *text, size_t len)
{
    while (len && is_blank(text[0]))
        ++text, --len;
    while (len && is_blank(text[len - 1]))
        --len;
    if (len == 0)
        return 0;
    for (size_t i = 0; i < len; ++i)
        if (is_blank(text[i]) || text[i] == 0)
            return cli_fail(GX_EINPUT,
                            "%s:%llu: '%.*s' is no document id: an id has no blanks; put one id on each line", f->path,
                            (unsigned long long)f->line, len < SHOWN_ID ? (int)len : SHOWN_ID, text);
    const uint32_t docid = gx_index_find_doc(f->ix, text, len);
    ++f->n_ids;
    if (docid != UINT32_MAX) {
        f->words[docid / 64] |= UINT64_C(1) << docid % 64;
    } else if (++f->n_unknown == 1) {
        f->first_unknown = f->line;
        snprintf(f->unknown, sizeof f->unknown, "%.*s", len < SHOWN_ID ? (int)len : SHOWN_ID, text);
    }
    return 0;
}

/* Set the bits of the documents whose ids the file has. */
static int read_ids(const char *path, const gx_index *ix, uint64_t *words)
{
    id_file f = {.path = path, .ix = ix, .words = words};
    char *line = NULL;
    size_t cap = 0;
    int code = 0;
    FILE *in = fopen(path, "rb");
    if (!in)
        return cli_fail(errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot open %s, a file of document ids: %s", path,
                        strerror(errno));
    for (ssize_t n; code == 0 && (errno = 0, n = getline(&line, &cap, in)) >= 0;) {
        const size_t mark = ++f.line == 1 && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        code = take_line(&f, line + mark, (size_t)n - mark);
    }
    if (code == 0 && errno == ENOMEM)
        code = cli_fail(GX_ENOMEM, "no memory to read %s", path);
    else if (code == 0 && ferror(in))
        code = cli_fail(GX_EIO, "cannot read %s, a file of document ids: %s", path, strerror(errno));
    if (code == 0 && f.n_unknown)
        cli_note("%s: %llu of %llu ids are not in the index, the first in line %llu: %s", path,
                 (unsigned long long)f.n_unknown, (unsigned long long)f.n_ids, (unsigned long long)f.first_unknown,
                 f.unknown);
    free(line);
    fclose(in);
    return code;
}

/* For gx_filter_open: what an expression's id:@FILE means. */
typedef struct expression_files {
    const gx_index *ix;
    int code; /* not 0: the message was printed */
} expression_files;

static gx_status read_expression_ids(void *user, const char *path, uint64_t *words, gx_error *err)
{
    expression_files *e = user;
    (void)err;
    e->code = read_ids(path, e->ix, words);
    return e->code ? GX_EINPUT : GX_OK;
}

/* The documents that the expression selects. */
static int evaluate(const char *expression, const gx_index *ix, uint64_t *words)
{
    expression_files files = {ix, 0};
    const gx_filter_options options = {sizeof options, read_expression_ids, &files};
    gx_filter *filter;
    gx_error err = {0};
    gx_status st = gx_filter_open(&filter, ix, expression, strlen(expression), &options, &err);
    if (st == GX_OK)
        st = gx_filter_evaluate(filter, words, NULL, &err);
    gx_filter_close(filter);
    return files.code ? files.code : st ? cli_fail_error(&err) : 0;
}

/* Set the bits of the documents that the files and the expression allow in f->words. `excluded` and
 * `selected` are scratch memory; all three are 0 before. */
static int combine(document_filter *f, const gx_index *ix, uint32_t n_docs, uint64_t *excluded, uint64_t *selected)
{
    int code = f->only ? read_ids(f->only, ix, f->words) : 0;
    if (code == 0 && f->except)
        code = read_ids(f->except, ix, excluded);
    if (code == 0 && f->expression)
        code = evaluate(f->expression, ix, selected);
    f->n_allowed = 0;
    for (uint32_t d = 0; code == 0 && d < n_docs; d += 64) {
        const uint64_t all = n_docs - d < 64 ? (UINT64_C(1) << (n_docs - d)) - 1 : UINT64_MAX;
        f->words[d / 64] = (f->only ? f->words[d / 64] : all) & ~excluded[d / 64];
        f->words[d / 64] &= f->expression ? selected[d / 64] : all;
        f->n_allowed += (uint32_t)__builtin_popcountll(f->words[d / 64]);
    }
    return code;
}

int document_filter_read(document_filter *out, const gx_index *ix, const char *only, const char *except,
                         const char *expression)
{
    gx_index_stats st = {.size = sizeof st};
    gx_index_get_quick_stats(ix, &st);
    *out = (document_filter){.n_allowed = st.n_docs};
    if (!only && !except && !expression)
        return 0;
    const size_t n_words = ((size_t)st.n_docs + 63) / 64;
    uint64_t *excluded = calloc(n_words + 1, sizeof *excluded), *selected = calloc(n_words + 1, sizeof *selected);
    document_filter f = {.only = only ? strdup(only) : NULL,
                         .except = except ? strdup(except) : NULL,
                         .expression = expression ? strdup(expression) : NULL,
                         .words = calloc(n_words + 1, sizeof *f.words)};
    const bool memory =
        excluded && selected && f.words && !only == !f.only && !except == !f.except && !expression == !f.expression;
    const int code = memory ? combine(&f, ix, st.n_docs, excluded, selected)
                            : cli_fail(GX_ENOMEM, "no memory for a filter of %u documents", st.n_docs);
    free(excluded);
    free(selected);
    if (code)
        document_filter_free(&f);
    else
        *out = f;
    return code;
}

void document_filter_free(document_filter *f)
{
    free(f->only);
    free(f->except);
    free(f->expression);
    free(f->words);
    *f = (document_filter){0};
}

int document_filter_open_mask(gx_mask **out, const document_filter *f, gx_engine *en)
{
    gx_error err = {0};
    *out = NULL;
    return f->words && gx_mask_open(out, en, f->words, &err) ? cli_fail_error(&err) : 0;
}
