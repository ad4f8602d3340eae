/* log_columns.c: the columns of a query log, tsv or csv: what each is, and the query that they make. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/json_text.h"
#include "query/log/log_reader.h"

/* ---- which column is what ---- */

static bool is_name(gx_log_cell cell, const char *const *names)
{
    while (cell.n && (*cell.p == ' ' || *cell.p == '#'))
        ++cell.p, --cell.n;
    while (cell.n && cell.p[cell.n - 1] == ' ')
        --cell.n;
    for (; *names; ++names)
        if (strlen(*names) == cell.n && gx_same_start(cell.p, *names, cell.n))
            return true;
    return false;
}

/* Is one of the columns of ids? Those that are usual have them. */
static bool has_ids(const gx_log *log)
{
    unsigned i = 0;
    while (i < log->n_columns && log->columns[i] != GX_LOG_COLUMN_ID)
        ++i;
    return log->n_columns == 0 || i < log->n_columns;
}

bool gx_log_names_columns(const gx_log *log, enum gx_log_column named[GX_LOG_MAX_COLUMNS], bool *half)
{
    static const char *const ids[] = {"id",       "_id",      "qid",     "query_id", "queryid",
                                      "query-id", "topic_id", "topicid", "topic-id", NULL};
    static const char *const texts[] = {"query", "text", "title", "query_text", "querytext", NULL};
    static const char *const filters[] = {"filter", NULL};
    const unsigned n = log->n_cells;
    unsigned n_ids = 0, n_texts = 0, n_filters = 0, text = 0;
    for (unsigned i = 0; i < n; ++i) {
        const bool is_id = !n_ids && is_name(log->cells[i], ids), is_text = !n_texts && is_name(log->cells[i], texts);
        const bool is_filter = !n_filters && is_name(log->cells[i], filters);
        named[i] = is_id       ? GX_LOG_COLUMN_ID
                   : is_text   ? GX_LOG_COLUMN_TEXT
                   : is_filter ? GX_LOG_COLUMN_FILTER
                               : GX_LOG_COLUMN_NONE;
        n_filters += is_filter;
        n_ids += is_id;
        n_texts += is_text;
        text = is_text ? i : text;
    }
    if (log->form == GX_LOG_CSV && n == 1 && n_texts)
        return true;
    /* "1<TAB>query" may be a query; it is none where the columns are given and have no ids. */
    const bool beside_id =
        log->form == GX_LOG_TSV && text == 1 && has_ids(log) && (n < 3 || !gx_is_letter(*log->cells[0].p));
    *half = n_texts && !n_ids && n > 1 && !beside_id;
    if (*half && log->n_columns) /* which are given: then the line is no query */
        return text < log->n_columns && log->columns[text] == GX_LOG_COLUMN_TEXT;
    return n_ids && n_texts;
}

bool gx_log_read_header(gx_log *log, bool *half)
{
    enum gx_log_column named[GX_LOG_MAX_COLUMNS];
    if (!gx_log_names_columns(log, named, half))
        return false;
    if (!log->n_columns) {
        memcpy(log->columns, named, log->n_cells * sizeof *named);
        log->n_columns = log->n_cells;
    }
    return true;
}

gx_status gx_log_refuse_half(const gx_log *log, gx_error *err)
{
    return gx_fail(err, GX_EUSAGE,
                   "%s:%" PRIu64 ": this line names a column of texts, but none of ids: the columns must be given",
                   log->path, log->line);
}

gx_status gx_log_parse_columns(gx_log *log, const char *columns, gx_error *err)
{
    static const char *const names[] = {[GX_LOG_COLUMN_NONE] = "-", "id", "text", "filter"};
    unsigned count[4] = {0};
    for (const char *p = columns; p;) {
        const size_t n = strcspn(p, ",");
        unsigned c = 0;
        while (c < 4 && (strlen(names[c]) != n || memcmp(p, names[c], n) != 0))
            ++c;
        if (log->n_columns == GX_LOG_MAX_COLUMNS || c == 4)
            return gx_fail(err, GX_EUSAGE, "columns: '%.*s' is none of id, text, filter and -", (int)(n < 80 ? n : 80),
                           p);
        log->columns[log->n_columns++] = (enum gx_log_column)c;
        ++count[c];
        p = p[n] ? p + n + 1 : NULL;
    }
    return columns && (count[GX_LOG_COLUMN_ID] > 1 || !count[GX_LOG_COLUMN_TEXT] || count[GX_LOG_COLUMN_FILTER] > 1)
               ? gx_fail(err, GX_EUSAGE, "columns: '%s' needs text, and has id and filter at most once", columns)
               : GX_OK;
}

/* ---- vectors ---- */

/* Does the text begin as a JSON object? No query of words begins so. */
static bool begins_object(const char *p)
{
    p = gx_log_skip_blanks(p);
    if (*p != '{')
        return false;
    p = gx_log_skip_blanks(p + 1);
    return *p == '"' || *p == '}';
}

/* The vector that the title is, as the terms of *q. */
static gx_status read_vector(gx_log *log, gx_log_query *q, gx_error *err)
{
    static const gx_weighted_term none;
    json_error_t why;
    const char *term;
    json_t *weight;
    json_decref(log->vector);
    log->vector = gx_json_load(log->title.n ? log->title.p : "{}", log->title.n ? log->title.n : 2,
                               JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!log->vector) {
        char text[JSON_ERROR_TEXT_LENGTH + 64];
        snprintf(text, sizeof text, "no JSON vector: %s (byte %d of it)", why.text, why.position);
        return gx_log_refuse(log, log->line, text, err);
    }
    const size_t n = json_object_size(log->vector);
    if (!gx_reserve(&log->terms, &log->max_terms, n + 1, sizeof *log->terms))
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %zu terms", n);
    q->n_terms = 0;
    json_object_foreach(log->vector, term, weight)
    {
        if (!json_is_number(weight))
            return gx_log_refuse(log, log->line, "a JSON vector with a weight that is no number", err);
        log->terms[q->n_terms++] = (gx_weighted_term){term, strlen(term), (float)json_number_value(weight)};
    }
    q->terms = n ? log->terms : &none;
    q->text = "";
    q->len = 0;
    return GX_OK;
}

/* Whether the query is a text or a vector, which is then read. All of a log are the same. */
static gx_status take_kind(gx_log *log, gx_log_query *q, gx_error *err)
{
    const bool empty = *gx_log_skip_blanks(q->text) == 0, weights = begins_object(q->text);
    if (empty && log->kind != GX_LOG_WEIGHTS)
        return GX_OK;
    if (log->kind == GX_LOG_UNKNOWN)
        log->kind = weights ? GX_LOG_WEIGHTS : GX_LOG_TEXTS;
    if (log->kind == GX_LOG_TEXTS)
        return weights ? gx_log_refuse(log, log->line, "a JSON vector, and earlier queries are texts", err) : GX_OK;
    return weights || empty ? read_vector(log, q, err)
                            : gx_log_refuse(log, log->line, "a text, and earlier queries are JSON vectors", err);
}

/* ---- from cells to a query ---- */

static gx_log_cell trimmed(gx_log_cell c)
{
    while (c.n && *c.p == ' ')
        ++c.p, --c.n;
    while (c.n && c.p[c.n - 1] == ' ')
        --c.n;
    return c;
}

gx_status gx_log_emit_columns(gx_log *log, gx_log_query *q, gx_error *err)
{
    static const enum gx_log_column usual[] = {GX_LOG_COLUMN_ID, GX_LOG_COLUMN_TEXT};
    const enum gx_log_column *columns = log->n_columns ? log->columns : usual;
    const unsigned n_columns = log->n_columns ? log->n_columns : 2;
    gx_log_cell id = {0};
    unsigned texts = 0;
    bool ids = false;
    gx_status st = gx_log_assign(&log->title, "", 0, err);
    log->filter.n = 0;
    for (unsigned c = 0; c < n_columns && st == GX_OK; ++c) {
        const gx_log_cell cell = c < log->n_cells ? log->cells[c] : (gx_log_cell){0};
        ids |= columns[c] == GX_LOG_COLUMN_ID;
        if (!cell.p)
            continue;
        if (columns[c] == GX_LOG_COLUMN_ID) {
            id = trimmed(cell);
        } else if (columns[c] == GX_LOG_COLUMN_TEXT) {
            st = texts++ ? gx_log_append(&log->title, " ", 1, err) : GX_OK;
            if (st == GX_OK)
                st = gx_log_append(&log->title, cell.p, cell.n, err);
        } else if (columns[c] == GX_LOG_COLUMN_FILTER) {
            st = gx_log_assign(&log->filter, cell.p, cell.n, err);
        }
    }
    if (st != GX_OK)
        return st;
    if ((ids && !id.p) || !texts)
        return gx_log_refuse(log, log->line,
                             log->n_cells == 1 && ids && log->form == GX_LOG_TSV
                                 ? "no tab between the query's id and its text"
                                 : "it has too few columns",
                             err);
    log->counts.more_columns += log->more_cells;
    gx_log_query parsed = {id.p, log->title.p, id.n, log->title.n, log->line};
    st = take_kind(log, &parsed, err);
    return st == GX_OK ? gx_log_emit(log, q, &parsed, err) : st;
}

/* ---- TSV ---- */

void gx_log_split_tabs(gx_log *log, char *line, size_t n)
{
    char *const end = line + n, *p = line;
    for (log->n_cells = 0; p && log->n_cells < GX_LOG_MAX_COLUMNS;) {
        char *const tab = memchr(p, '\t', (size_t)(end - p));
        log->cells[log->n_cells++] = (gx_log_cell){p, (size_t)((tab ? tab : end) - p)};
        p = tab ? tab + 1 : NULL;
    }
}

gx_status gx_log_parse_tabbed(gx_log *log, gx_log_query *q, gx_error *err)
{
    const unsigned n_columns = log->n_columns ? log->n_columns : 2;
    log->more_cells = log->n_cells > n_columns && (log->cells[n_columns].n || log->n_cells > n_columns + 1);
    return gx_log_emit_columns(log, q, err);
}
