#include "query/eval/query_log.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/status.h"
#include "index/corpus/input.h"

#define GUESS_BYTES (64u << 10)
#define GUESS_LINES 100
#define BINARY_NULS 16u    /* a file is binary if its first window holds at least this many NUL bytes, */
#define BINARY_SHARE 1000u /* and at least one NUL in this many bytes */

typedef struct text_buffer {
    char *p;
    size_t n, cap;
} text_buffer;

/* The state of an open topic. */
typedef struct topic {
    bool open, in_title, has_num, has_title;
    uint64_t begin; /* the number of the line with <top> */
} topic;

struct gx_log {
    gx_input in;
    char *path;
    gx_log_form form;
    gx_log_encoding encoding;
    gx_log_counts counts;
    uint64_t line;         /* the number of the current line */
    text_buffer utf8;      /* the current line, converted */
    text_buffer id, title; /* of the current topic or object */
    topic topic;
};

static const char *const form_names[] = {"guess", "efficiency", "tsv", "lines", "jsonl", "topics"};
static const char *const encoding_names[] = {"auto", "utf-8", "latin1"};

bool gx_log_form_find(const char *name, gx_log_form *out)
{
    for (unsigned i = 0; i < GX_LOG_N_FORMS; ++i)
        if (!strcmp(name, form_names[i])) {
            *out = (gx_log_form)i;
            return true;
        }
    return false;
}

const char *gx_log_form_name(gx_log_form form)
{
    return form_names[form];
}

bool gx_log_encoding_find(const char *name, gx_log_encoding *out)
{
    for (unsigned i = 0; i < 3; ++i)
        if (!strcmp(name, encoding_names[i])) {
            *out = (gx_log_encoding)i;
            return true;
        }
    return false;
}

static gx_status refuse(gx_log *log, uint64_t line, const char *why, gx_error *err)
{
    ++log->counts.bad;
    return gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": %s", log->path, line, why);
}

/* ---- growing text, which ends with a NUL ---- */

static gx_status append(text_buffer *b, const char *p, size_t n, gx_error *err)
{
    if (b->n + n + 1 > b->cap) {
        const size_t cap = 2 * (b->n + n + 1);
        char *grown = realloc(b->p, cap);
        if (!grown)
            return gx_fail(err, GX_ENOMEM, "no memory for a query of %zu bytes", b->n + n);
        b->p = grown;
        b->cap = cap;
    }
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = 0;
    return GX_OK;
}

static gx_status assign(text_buffer *b, const char *p, size_t n, gx_error *err)
{
    b->n = 0;
    return append(b, p, n, err);
}

/* ---- encodings ---- */

static size_t valid_prefix(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if ((unsigned char)p[i] < 0x80) {
            ++i;
            continue;
        }
        utf8proc_int32_t code;
        const utf8proc_ssize_t len =
            utf8proc_iterate((const utf8proc_uint8_t *)p + i, (utf8proc_ssize_t)(n - i), &code);
        if (len <= 0)
            break;
        i += (size_t)len;
    }
    return i;
}

/* Copy the line into b, with U+FFFD in the place of every byte that is not UTF-8. */
static gx_status replace_invalid(text_buffer *b, const char *p, size_t n, gx_error *err)
{
    gx_status st = assign(b, "", 0, err);
    while (n && st == GX_OK) {
        const size_t good = valid_prefix(p, n);
        st = append(b, p, good, err);
        p += good;
        n -= good;
        if (n && st == GX_OK) {
            st = append(b, "\xef\xbf\xbd", 3, err);
            ++p;
            --n;
        }
    }
    return st;
}

static gx_status from_latin1(text_buffer *b, const char *p, size_t n, gx_error *err)
{
    gx_status st = assign(b, "", 0, err);
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        utf8proc_uint8_t utf8[4];
        const utf8proc_ssize_t len = utf8proc_encode_char((utf8proc_int32_t)gx_latin1_code((unsigned char)p[i]), utf8);
        st = append(b, (const char *)utf8, (size_t)len, err);
    }
    return st;
}

/* Read the next line as UTF-8. It lives until the next call. */
static gx_status next_line(gx_log *log, char **line, size_t *n, bool *found, gx_error *err)
{
    log->line = log->in.line;
    gx_status st = gx_input_line(&log->in, line, n, found, err);
    log->counts.nuls = log->in.nul_bytes;
    if (st != GX_OK) {
        log->counts.bad += st == GX_EINPUT;
        return st;
    }
    if (!*found)
        return GX_OK;
    const bool valid = valid_prefix(*line, *n) == *n;
    if (log->encoding == GX_LOG_UTF8 ? valid : valid && log->encoding == GX_LOG_AUTO) {
        st = assign(&log->utf8, *line, *n, err);
    } else if (log->encoding == GX_LOG_UTF8) {
        ++log->counts.invalid;
        st = replace_invalid(&log->utf8, *line, *n, err);
    } else {
        st = from_latin1(&log->utf8, *line, *n, err);
        log->counts.latin1 += log->utf8.n != *n;
    }
    *line = log->utf8.p;
    *n = log->utf8.n;
    return st;
}

/* ---- forms ---- */

static gx_status emit_query(gx_log *log, gx_log_query *q, uint64_t line, const char *id, size_t id_len,
                            const char *text, size_t len, gx_error *err)
{
    if (id_len == 0)
        return refuse(log, line, "the query's id is empty", err);
    if (id_len > GX_LOG_MAX_ID)
        return refuse(log, line, "the query's id has more than 255 bytes", err);
    for (size_t i = 0; i < id_len; ++i)
        if (isspace((unsigned char)id[i]))
            return refuse(log, line, "white space in the query's id", err);
    if (id != log->id.p) {
        const gx_status st = assign(&log->id, id, id_len, err);
        if (st != GX_OK)
            return st;
    }
    ++log->counts.queries;
    log->counts.empty += strspn(text, " \t\r\n\f\v") == len;
    *q = (gx_log_query){log->id.p, text, id_len, len, line};
    return GX_OK;
}

static gx_status emit_numbered(gx_log *log, gx_log_query *q, const char *text, size_t len, gx_error *err)
{
    char id[24];
    const int n = snprintf(id, sizeof id, "%" PRIu64, log->line);
    return emit_query(log, q, log->line, id, (size_t)n, text, len, err);
}

/* Parse a line of the form: id, separator, text. */
static gx_status parse_keyed(gx_log *log, gx_log_query *q, const char *line, size_t n, char separator, gx_error *err)
{
    const char *sep = memchr(line, separator, n);
    if (!sep)
        return refuse(log, log->line,
                      separator == ':' ? "no \":\" between the query's number and its text"
                                       : "no tab between the query's id and its text",
                      err);
    const char *id = line, *end = sep;
    while (id < end && *id == ' ')
        ++id;
    while (end > id && end[-1] == ' ')
        --end;
    return emit_query(log, q, log->line, id, (size_t)(end - id), sep + 1, (size_t)(line + n - sep - 1), err);
}

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
    if (!json_is_string(text))
        return refuse(log, log->line, "no string under \"query\", \"text\" or \"title\"", err);
    const gx_status st = assign(&log->title, json_string_value(text), json_string_length(text), err);
    if (st != GX_OK)
        return st;
    for (size_t i = 0; i < log->title.n; ++i)
        if (!log->title.p[i]) {
            log->title.p[i] = ' ';
            ++log->counts.nuls;
        }
    if (!id)
        return emit_numbered(log, q, log->title.p, log->title.n, err);
    if (json_is_string(id))
        return emit_query(log, q, log->line, json_string_value(id), json_string_length(id), log->title.p, log->title.n,
                          err);
    if (!json_is_integer(id))
        return refuse(log, log->line, "the query's id is neither a string nor an integer", err);
    char number[32];
    const int n = snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    return emit_query(log, q, log->line, number, (size_t)n, log->title.p, log->title.n, err);
}

static gx_status parse_object(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err)
{
    json_error_t why;
    json_t *object = json_loadb(line, n, JSON_ALLOW_NUL, &why);
    if (!object) {
        char text[JSON_ERROR_TEXT_LENGTH + 64];
        snprintf(text, sizeof text, "no JSON object: %s (byte %d)", why.text, why.position);
        return refuse(log, log->line, text, err);
    }
    const gx_status st = emit_object(log, q, object, err);
    json_decref(object);
    return st;
}

/* ---- topics ---- */

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t\r\n\f\v");
}

/* The text behind the first occurrence of the tag, in upper or lower case; NULL: line has no such
 * tag. */
static const char *after_tag(const char *line, const char *tag)
{
    const char *p = strcasestr(line, tag);
    return p ? p + strlen(tag) : NULL;
}

/* The place where the next tag begins, or the end of the string. A "<" alone is text. */
static const char *next_tag(const char *p)
{
    while (*p && !(*p == '<' && (isalpha((unsigned char)p[1]) || p[1] == '/')))
        ++p;
    return p;
}

/* Append the text up to the next tag, without the label ("Number:", "Topic:") with which it begins
 * in older topics. */
static gx_status take_field(text_buffer *b, const char *p, const char *label, gx_error *err)
{
    const char *end = next_tag(p);
    p = skip_blanks(p);
    if (label && !strncasecmp(p, label, strlen(label)))
        p = skip_blanks(p + strlen(label));
    while (end > p && isspace((unsigned char)end[-1]))
        --end;
    return append(b, p, end > p ? (size_t)(end - p) : 0, err);
}

/* Read a line of an open topic. A title may begin on the line behind its tag, and may have several
 * lines. */
static gx_status read_topic_line(gx_log *log, topic *t, const char *line, gx_error *err)
{
    const char *field;
    gx_status st = GX_OK;
    if ((field = after_tag(line, "<num>"))) {
        t->has_num = true;
        st = assign(&log->id, "", 0, err);
        if (st == GX_OK)
            st = take_field(&log->id, field, "Number:", err);
    }
    if (st == GX_OK && (field = after_tag(line, "<title>"))) {
        t->in_title = t->has_title = true;
        log->title.n = 0;
        st = take_field(&log->title, field, "Topic:", err);
    } else if (st == GX_OK && t->in_title) {
        field = line;
        if (log->title.n && skip_blanks(line) < next_tag(line))
            st = append(&log->title, " ", 1, err);
        if (st == GX_OK)
            st = take_field(&log->title, line, NULL, err);
    }
    if (t->in_title && *next_tag(field))
        t->in_title = false;
    return st;
}

static gx_status next_topic(gx_log *log, gx_log_query *q, bool *more, gx_error *err)
{
    static const char unclosed[] = "<top> without </top>";
    topic *t = &log->topic;
    for (;;) {
        char *line;
        size_t n;
        gx_status st = next_line(log, &line, &n, more, err);
        if (st != GX_OK)
            return st;
        if (!*more) {
            *more = t->open;
            t->open = false;
            return *more ? refuse(log, t->begin, unclosed, err) : GX_OK;
        }
        const char *behind = after_tag(line, "<top>");
        if (behind) {
            const topic before = *t;
            *t = (topic){.open = true, .begin = log->line};
            log->title.n = 0;
            if (before.open)
                return refuse(log, before.begin, unclosed, err);
        }
        if (!t->open)
            continue;
        if ((st = read_topic_line(log, t, behind ? behind : line, err)) != GX_OK)
            return st;
        if (log->title.n > GX_LOG_MAX_LINE)
            return refuse(log, t->begin, "the topic's title has more than 1048576 bytes", err);
        if (after_tag(line, "</top>")) {
            t->open = false;
            if (!t->has_num || !log->id.n)
                return refuse(log, t->begin, "the topic has no <num>", err);
            if (!t->has_title)
                return refuse(log, t->begin, "the topic has no <title>", err);
            return emit_query(log, q, t->begin, log->id.p, log->id.n, log->title.p, log->title.n, err);
        }
    }
}

/* ---- guessing ---- */

static bool begins_with_number(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && isdigit((unsigned char)p[i]))
        ++i;
    return i > 0 && i < n && p[i] == ':';
}

/* Guess the form from the first lines of the window, by what all of them have in common. */
static gx_log_form guess(const char *p, size_t n, bool whole)
{
    unsigned lines = 0, numbered = 0, tabbed = 0;
    bool opened = false;
    const char *const end = p + n;
    while (p < end && lines < GUESS_LINES) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol && !whole && lines)
            break;
        const size_t len = (size_t)((eol ? eol : end) - p);
        size_t blank = 0;
        while (blank < len && isspace((unsigned char)p[blank]))
            ++blank;
        if (blank < len) {
            if (!opened && p[blank] == '{')
                return GX_LOG_JSONL;
            if (len - blank >= 5 && !strncasecmp(p + blank, "<top>", 5))
                return GX_LOG_TOPICS;
            opened = true;
            ++lines;
            numbered += begins_with_number(p, len);
            tabbed += memchr(p + blank, '\t', len - blank) != NULL;
        }
        p = eol ? eol + 1 : end;
    }
    if (lines && tabbed == lines)
        return GX_LOG_TSV;
    return lines && numbered == lines ? GX_LOG_EFFICIENCY : GX_LOG_LINES;
}

static gx_status guess_form(gx_log *log, gx_error *err)
{
    gx_input *in = &log->in;
    while (in->end - in->begin < GUESS_BYTES && !in->eof) {
        const gx_status st = gx_input_fill(in, err);
        if (st != GX_OK)
            return st;
    }
    log->form = guess(in->buf + in->begin, in->end - in->begin, in->eof);
    return GX_OK;
}

/* ---- the log ---- */

/* Refuse a file with many NUL bytes in what has been read so far. A text may have a few by
 * damage. */
static gx_status refuse_binary(const gx_log *log, gx_error *err)
{
    const gx_input *in = &log->in;
    if (in->nul_bytes < BINARY_NULS || in->nul_bytes < in->bytes / BINARY_SHARE)
        return GX_OK;
    return gx_fail(err, GX_EINPUT,
                   "%s: byte %" PRIu64 " is NUL, the first of %" PRIu64 " in the first %" PRIu64
                   ": this is no query log but a binary file",
                   log->path, in->first_nul, in->nul_bytes, in->bytes);
}

gx_status gx_log_open(gx_log **out, const char *path, gx_log_form form, gx_log_encoding encoding, gx_error *err)
{
    *out = NULL;
    gx_log *log = calloc(1, sizeof *log);
    if (!log || !(log->path = strdup(path))) {
        free(log);
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", path);
    }
    log->in = GX_INPUT_INIT;
    log->in.max_record = GX_LOG_MAX_LINE;
    log->form = form;
    log->encoding = encoding;
    gx_status st = gx_input_open(&log->in, log->path, err);
    if (st == GX_OK && form == GX_LOG_GUESS)
        st = guess_form(log, err);
    if (st == GX_OK)
        st = refuse_binary(log, err);
    if (st != GX_OK) {
        gx_log_close(log);
        return st;
    }
    *out = log;
    return GX_OK;
}

void gx_log_close(gx_log *log)
{
    if (!log)
        return;
    gx_input_free(&log->in);
    free(log->utf8.p);
    free(log->id.p);
    free(log->title.p);
    free(log->path);
    free(log);
}

gx_status gx_log_next(gx_log *log, gx_log_query *q, bool *more, gx_error *err)
{
    char *line;
    size_t n;
    *more = true;
    if (log->form == GX_LOG_TOPICS)
        return next_topic(log, q, more, err);
    for (;; ++log->counts.blank) {
        const gx_status st = next_line(log, &line, &n, more, err);
        if (st != GX_OK || !*more)
            return st;
        if (*skip_blanks(line))
            break;
    }
    switch (log->form) {
    case GX_LOG_EFFICIENCY:
        return parse_keyed(log, q, line, n, ':', err);
    case GX_LOG_TSV:
        return parse_keyed(log, q, line, n, '\t', err);
    case GX_LOG_JSONL:
        return parse_object(log, q, line, n, err);
    default:
        return emit_numbered(log, q, line, n, err);
    }
}

gx_log_form gx_log_get_form(const gx_log *log)
{
    return log->form;
}

gx_log_counts gx_log_get_counts(const gx_log *log)
{
    return log->counts;
}
