/* log_lines.c: the forms of a query log with a query on each line. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/text/json_text.h"
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
    json_t *object = gx_json_load(line, n, JSON_ALLOW_NUL, &why);
    if (!object) {
        char text[JSON_ERROR_TEXT_LENGTH + 64];
        snprintf(text, sizeof text, "no JSON object: %s (byte %d)", why.text, why.position);
        return gx_log_refuse(log, log->line, text, err);
    }
    const gx_status st = emit_object(log, q, object, err);
    json_decref(object);
    return st;
}
