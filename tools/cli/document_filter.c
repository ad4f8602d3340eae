#include "tools/cli/document_filter.h"

#include <errno.h>
#include <stdarg.h>
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

__attribute__((format(printf, 3, 4))) static gx_status fail(gx_error *err, gx_status st, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->status = st;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return st;
}

static gx_status take_line(id_file *f, const char *text, size_t len, gx_error *err)
{
    while (len && is_blank(text[0]))
        ++text, --len;
    while (len && is_blank(text[len - 1]))
        --len;
    if (len == 0)
        return GX_OK;
    for (size_t i = 0; i < len; ++i)
        if (is_blank(text[i]) || text[i] == 0)
            return fail(err, GX_EINPUT,
                        "%s:%llu: '%.*s' is no document id: an id has no blanks; put one id on each line", f->path,
                        (unsigned long long)f->line, len < SHOWN_ID ? (int)len : SHOWN_ID, text);
    const uint64_t docid = gx_index_find_doc64(f->ix, text, len);
    ++f->n_ids;
    if (docid != UINT64_MAX) {
        f->words[docid / 64] |= UINT64_C(1) << docid % 64;
    } else if (++f->n_unknown == 1) {
        f->first_unknown = f->line;
        snprintf(f->unknown, sizeof f->unknown, "%.*s", len < SHOWN_ID ? (int)len : SHOWN_ID, text);
    }
    return GX_OK;
}

#define MOST_OF_A_LINE (1u << 20) /* bytes; a longer line is read in pieces, none of which is an id */

/* As getline, but reads no more than a piece of a long line: a file without line ends must not fill the memory. */
static ssize_t read_line(char **line, size_t *cap, FILE *in)
{
    size_t n = 0;
    for (int c; n < MOST_OF_A_LINE && (c = getc_unlocked(in)) != EOF;) {
        if (n + 2 > *cap) {
            const size_t more = *cap ? 2 * *cap : 128;
            char *longer = realloc(*line, more);
            if (!longer) {
                errno = ENOMEM;
                return -1;
            }
            *line = longer;
            *cap = more;
        }
        (*line)[n++] = (char)c;
        if (c == '\n')
            break;
    }
    return n ? (ssize_t)n : -1;
}

/* The bytes of a byte order mark that the first line begins with, unless they belong to its id: older builds took such
 * ids. With a mark or without, the line must be one document. */
static gx_status find_mark(const id_file *f, const char *line, size_t n, size_t *mark, gx_error *err)
{
    *mark = 0;
    if (n < 3 || memcmp(line, "\xef\xbb\xbf", 3) != 0)
        return GX_OK;
    while (n && is_blank(line[n - 1]))
        --n;
    const bool with = gx_index_find_doc64(f->ix, line, n) != UINT64_MAX;
    if (with && gx_index_find_doc64(f->ix, line + 3, n - 3) != UINT64_MAX)
        return fail(
            err, GX_EINPUT,
            "%s:1: documents have this id with a byte order mark and without one: which is meant? Begin the file "
            "with an empty line for the one with the mark, or remove the mark",
            f->path);
    *mark = with ? 0 : 3;
    return GX_OK;
}

/* Set the bits of the documents whose ids the file has. */
static gx_status read_ids(const char *path, const gx_index *ix, uint64_t *words, gx_error *err)
{
    id_file f = {.path = path, .ix = ix, .words = words};
    char *line = NULL;
    size_t cap = 0;
    gx_status st = GX_OK;
    FILE *in = fopen(path, "rb");
    if (!in)
        return fail(err, errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot open %s, a file of document ids: %s", path,
                    strerror(errno));
    for (ssize_t n; st == GX_OK && (errno = 0, n = read_line(&line, &cap, in)) >= 0;) {
        size_t mark = 0;
        if (++f.line == 1)
            st = find_mark(&f, line, (size_t)n, &mark, err);
        if (st == GX_OK)
            st = take_line(&f, line + mark, (size_t)n - mark, err);
    }
    if (st == GX_OK && errno == ENOMEM)
        st = fail(err, GX_ENOMEM, "no memory to read %s", path);
    else if (st == GX_OK && ferror(in))
        st = fail(err, GX_EIO, "cannot read %s, a file of document ids: %s", path, strerror(errno));
    if (st == GX_OK && f.n_unknown)
        cli_note("%s: %llu of %llu ids are not in the index, the first in line %llu: %s", path,
                 (unsigned long long)f.n_unknown, (unsigned long long)f.n_ids, (unsigned long long)f.first_unknown,
                 f.unknown);
    free(line);
    fclose(in);
    return st;
}

gx_status document_filter_read_ids(void *user, const char *path, uint64_t *words, gx_error *err)
{
    return read_ids(path, *(gx_index *const *)user, words, err);
}

gx_status document_filter_refuse_ids(void *user, const char *path, uint64_t *words, gx_error *err)
{
    (void)user, (void)words;
    return fail(err, GX_EUSAGE,
                "id:@%.100s names a file, which a query that is read from standard input or a log may not; "
                "--allow-id-files lets such queries read any file of yours",
                path);
}

/* The documents that the expression selects. */
static gx_status evaluate(const char *expression, const gx_index *ix, uint64_t *words, gx_error *err)
{
    const gx_filter_options options = {sizeof options, document_filter_read_ids, (void *)&ix};
    gx_filter *filter;
    gx_status st = gx_filter_open(&filter, ix, expression, strlen(expression), &options, err);
    if (st == GX_OK)
        st = gx_filter_evaluate(filter, words, NULL, err);
    gx_filter_close(filter);
    return st;
}

/* ---- filters of the queries of a log ---- */

/* A file of ids, as bits of documents. */
struct id_words {
    struct id_words *next;
    char *path;
    uint64_t words[]; /* [ceil(n_docs / 64)] */
};

static size_t n_words_of(const gx_index *ix)
{
    return (size_t)((gx_index_n_docs(ix) + 63) / 64);
}

/* The words of a file, which is read if it was not; the lock is held. */
static gx_status find_words(id_files *f, const char *path, const struct id_words **out, gx_error *err)
{
    struct id_words *w = f->first;
    while (w && strcmp(w->path, path) != 0)
        w = w->next;
    *out = w;
    if (w)
        return GX_OK;
    w = calloc(1, sizeof *w + n_words_of(f->ix) * sizeof *w->words);
    if (!w || !(w->path = strdup(path))) {
        free(w);
        return fail(err, GX_ENOMEM, "no memory for the ids of %s", path);
    }
    const gx_status st = read_ids(path, f->ix, w->words, err);
    if (st != GX_OK) {
        free(w->path);
        free(w);
        return st;
    }
    w->next = f->first;
    *out = f->first = w;
    return GX_OK;
}

static gx_status read_ids_once(void *user, const char *path, uint64_t *words, gx_error *err)
{
    id_files *f = user;
    const struct id_words *w;
    gx_error why = {0};
    pthread_mutex_lock(&f->lock);
    const gx_status st = find_words(f, path, &w, &why);
    pthread_mutex_unlock(&f->lock);
    if (st == GX_OK)
        memcpy(words, w->words, n_words_of(f->ix) * sizeof *words);
    else if (err)
        *err = why;
    return st;
}

void id_files_open(id_files *f, const gx_index *ix)
{
    *f = (id_files){.ix = ix, .options = GX_FILTER_OPTIONS};
    f->options.read_ids = read_ids_once;
    f->options.user = f;
    pthread_mutex_init(&f->lock, NULL);
}

void id_files_close(id_files *f)
{
    if (!f->ix)
        return;
    for (struct id_words *w = f->first, *next; w; w = next) {
        next = w->next;
        free(w->path);
        free(w);
    }
    pthread_mutex_destroy(&f->lock);
    *f = (id_files){0};
}

/* ---- --only, --not and --filter ---- */

/* Set the bits of the documents that the files and the expression allow in f->words. `excluded` and
 * `selected` are scratch memory; all three are 0 before. */
static int combine(document_filter *f, const gx_index *ix, uint64_t n_docs, uint64_t *excluded, uint64_t *selected)
{
    gx_error err = {0};
    gx_status st = f->only ? read_ids(f->only, ix, f->words, &err) : GX_OK;
    if (st == GX_OK && f->except)
        st = read_ids(f->except, ix, excluded, &err);
    if (st == GX_OK && f->expression)
        st = evaluate(f->expression, ix, selected, &err);
    f->n_allowed = 0;
    for (uint64_t d = 0; st == GX_OK && d < n_docs; d += 64) {
        const uint64_t all = n_docs - d < 64 ? (UINT64_C(1) << (n_docs - d)) - 1 : UINT64_MAX;
        f->words[d / 64] = (f->only ? f->words[d / 64] : all) & ~excluded[d / 64];
        f->words[d / 64] &= f->expression ? selected[d / 64] : all;
        f->n_allowed += (uint64_t)__builtin_popcountll(f->words[d / 64]);
    }
    return st ? cli_fail_error(&err) : 0;
}

int document_filter_read(document_filter *out, const gx_index *ix, const char *only, const char *except,
                         const char *expression)
{
    const uint64_t n_docs = gx_index_n_docs(ix);
    *out = (document_filter){.n_allowed = n_docs};
    if (!only && !except && !expression)
        return 0;
    const size_t n_words = n_words_of(ix);
    uint64_t *excluded = calloc(n_words + 1, sizeof *excluded), *selected = calloc(n_words + 1, sizeof *selected);
    document_filter f = {.only = only ? strdup(only) : NULL,
                         .except = except ? strdup(except) : NULL,
                         .expression = expression ? strdup(expression) : NULL,
                         .words = calloc(n_words + 1, sizeof *f.words)};
    const bool memory =
        excluded && selected && f.words && !only == !f.only && !except == !f.except && !expression == !f.expression;
    const int code = memory
                         ? combine(&f, ix, n_docs, excluded, selected)
                         : cli_fail(GX_ENOMEM, "no memory for a filter of %llu documents", (unsigned long long)n_docs);
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
