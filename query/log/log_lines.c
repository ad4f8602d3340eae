/* log_lines.c: the forms of a query log with a query on each line. */
#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "engine/status.h"
#include "query/log/log_reader.h"

/* Parse a line of the form: id, colon, text. */
gx_status gx_log_parse_keyed(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err)
{
    const char *sep = memchr(line, ':', n);
    if (!sep)
        return gx_log_refuse(log, log->line, "no \":\" between the query's number and its text", err);
    const char *id = line, *end = sep;
    while (id < end && *id == ' ')
        ++id;
    while (end > id && end[-1] == ' ')
        --end;
    return gx_log_emit(log, q,
                       &(gx_log_query){id, sep + 1, (size_t)(end - id), (size_t)(line + n - sep - 1), log->line}, err);
}

/* Parse a line of the form: id, colon, priority, colon, text. */
gx_status gx_log_parse_prioritized(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err)
{
    const char *colon = memchr(line, ':', n), *end = line + n;
    const char *second = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
    if (!second)
        return gx_log_refuse(log, log->line, "the line is not number:priority:text", err);
    return gx_log_emit(
        log, q, &(gx_log_query){line, second + 1, (size_t)(colon - line), (size_t)(end - second - 1), log->line}, err);
}

/* ---- TSV ---- */

static bool is_name(const char *p, size_t n, const char *const *names)
{
    while (n && (*p == ' ' || *p == '#'))
        ++p, --n;
    while (n && p[n - 1] == ' ')
        --n;
    for (; *names; ++names)
        if (strlen(*names) == n && !strncasecmp(p, *names, n))
            return true;
    return false;
}

bool gx_log_read_header(gx_log *log, const char *line, size_t n, bool *half)
{
    static const char *const ids[] = {"id", "_id", "qid", "query_id", "queryid", "query-id", "topic_id", NULL};
    static const char *const texts[] = {"query", "text", "title", "query_text", "querytext", NULL};
    static const char *const filters[] = {"filter", NULL};
    enum gx_log_column named[GX_LOG_MAX_COLUMNS];
    unsigned n_named = 0, n_ids = 0, n_texts = 0, n_filters = 0, text = 0;
    for (const char *p = line, *end = line + n; p && n_named < GX_LOG_MAX_COLUMNS; ++n_named) {
        const char *tab = memchr(p, '\t', (size_t)(end - p));
        const size_t len = (size_t)((tab ? tab : end) - p);
        const bool is_id = !n_ids && is_name(p, len, ids), is_text = !n_texts && is_name(p, len, texts);
        const bool is_filter = !n_filters && is_name(p, len, filters);
        named[n_named] = is_id       ? GX_LOG_COLUMN_ID
                         : is_text   ? GX_LOG_COLUMN_TEXT
                         : is_filter ? GX_LOG_COLUMN_FILTER
                                     : GX_LOG_COLUMN_NONE;
        n_filters += is_filter;
        n_ids += is_id;
        n_texts += is_text;
        text = is_text ? n_named : text;
        p = tab ? tab + 1 : NULL;
    }
    *half = n_texts && !n_ids && n_named > 1 && (text != 1 || (n_named > 2 && isalpha((unsigned char)*line)));
    if (*half && log->n_columns) /* which are given: then the line is no query */
        return text < log->n_columns && log->columns[text] == GX_LOG_COLUMN_TEXT;
    if (!n_ids || !n_texts)
        return false;
    if (!log->n_columns) {
        memcpy(log->columns, named, sizeof named);
        log->n_columns = n_named;
    }
    return true;
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
    return columns && (count[GX_LOG_COLUMN_ID] != 1 || !count[GX_LOG_COLUMN_TEXT] || count[GX_LOG_COLUMN_FILTER] > 1)
               ? gx_fail(err, GX_EUSAGE, "columns: '%s' needs id once, text, and filter at most once", columns)
               : GX_OK;
}

/* Parse a line of several columns: as the header or the options say, else the id and the text. */
gx_status gx_log_parse_tabbed(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err)
{
    static const enum gx_log_column usual[] = {GX_LOG_COLUMN_ID, GX_LOG_COLUMN_TEXT};
    const enum gx_log_column *columns = log->n_columns ? log->columns : usual;
    const unsigned n_columns = log->n_columns ? log->n_columns : 2;
    const char *p = line, *const end = line + n, *id = NULL;
    size_t id_len = 0;
    unsigned texts = 0, c;
    gx_status st = gx_log_assign(&log->title, "", 0, err);
    log->filter.n = 0;
    for (c = 0; p && c < n_columns && st == GX_OK; ++c) {
        const char *tab = memchr(p, '\t', (size_t)(end - p));
        const size_t len = (size_t)((tab ? tab : end) - p);
        if (columns[c] == GX_LOG_COLUMN_ID) {
            for (id = p, id_len = len; id_len && *id == ' '; --id_len)
                ++id;
            while (id_len && id[id_len - 1] == ' ')
                --id_len;
        } else if (columns[c] == GX_LOG_COLUMN_TEXT) {
            st = texts++ ? gx_log_append(&log->title, " ", 1, err) : GX_OK;
            if (st == GX_OK)
                st = gx_log_append(&log->title, p, len, err);
        } else if (columns[c] == GX_LOG_COLUMN_FILTER) {
            st = gx_log_assign(&log->filter, p, len, err);
        }
        p = tab ? tab + 1 : NULL;
    }
    if (st != GX_OK)
        return st;
    if (!id || !texts)
        return gx_log_refuse(log, log->line,
                             c == 1 ? "no tab between the query's id and its text" : "it has too few columns", err);
    log->counts.more_columns += p && *p;
    return gx_log_emit(log, q, &(gx_log_query){id, log->title.p, id_len, log->title.n, log->line}, err);
}

/* ---- JSON ---- */

static const json_t *first_of(const json_t *object, const char *const *keys)
{
    for (; *keys; ++keys) {
        const json_t *value = json_object_get(object, *keys);
        if (value)
            return value;
    }
    return NULL;
}

static gx_status emit_object(gx_log *log, gx_log_query *q, const json_t *object, gx_error *err)
{
    static const char *const id_keys[] = {"id", "_id", "qid", "query_id", NULL};
    static const char *const text_keys[] = {"query", "text", "title", NULL};
    const json_t *text = first_of(object, text_keys), *id = first_of(object, id_keys);
    const json_t *filter = json_object_get(object, "filter");
    if (!json_is_string(text))
        return gx_log_refuse(log, log->line, "no string under \"query\", \"text\" or \"title\"", err);
    if (filter && !json_is_string(filter) && !json_is_null(filter))
        return gx_log_refuse(log, log->line, "the query's filter is no string", err);
    gx_status st = gx_log_assign(&log->title, json_string_value(text), json_string_length(text), err);
    if (st == GX_OK)
        st = gx_log_assign(&log->filter, json_string_value(filter), json_string_length(filter), err);
    if (st != GX_OK)
        return st;
    for (size_t i = 0; i < log->title.n; ++i)
        if (!log->title.p[i]) {
            log->title.p[i] = ' ';
            ++log->counts.nuls;
        }
    if (!id)
        return gx_log_emit_numbered(log, q, log->title.p, log->title.n, err);
    if (json_is_string(id))
        return gx_log_emit(
            log, q,
            &(gx_log_query){json_string_value(id), log->title.p, json_string_length(id), log->title.n, log->line}, err);
    if (!json_is_integer(id))
        return gx_log_refuse(log, log->line, "the query's id is neither a string nor an integer", err);
    char number[32];
    const int n = snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    return gx_log_emit(log, q, &(gx_log_query){number, log->title.p, (size_t)n, log->title.n, log->line}, err);
}

gx_status gx_log_parse_object(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err)
{
    json_error_t why;
    json_t *object = json_loadb(line, n, JSON_ALLOW_NUL, &why);
    if (!object) {
        char text[JSON_ERROR_TEXT_LENGTH + 64];
        snprintf(text, sizeof text, "no JSON object: %s (byte %d)", why.text, why.position);
        return gx_log_refuse(log, log->line, text, err);
    }
    const gx_status st = emit_object(log, q, object, err);
    json_decref(object);
    return st;
}
