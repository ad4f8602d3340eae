#include "query/eval/query_log.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/grow.h"
#include "engine/hash.h"
#include "engine/status.h"
#include "index/corpus/source.h"

#define GUESS_BYTES (64u << 10)
#define GUESS_LINES 100
#define BINARY_NULS 16u    /* a file is binary if its first window holds at least this many NUL bytes, */
#define BINARY_SHARE 1000u /* and at least one NUL in this many bytes */

typedef gx_log_text text_buffer;

enum { MAX_COLUMNS = 64 };
enum column { COLUMN_NONE, COLUMN_ID, COLUMN_TEXT, COLUMN_FILTER };

/* Fields of a topic. */
enum field { TITLE, DESC, NARR, NUM, N_FIELDS, NO_FIELD = N_FIELDS };

/* The state of an open topic. */
typedef struct topic {
    bool open, has[N_FIELDS];
    enum field field; /* whose text is being read */
    uint64_t begin;   /* the number of the line with <top> */
} topic;

struct gx_log {
    gx_input in;
    char *path;
    gx_log_form form;
    gx_log_encoding encoding;
    gx_log_counts counts;
    uint64_t line;         /* the number of the current line */
    text_buffer utf8;      /* the current line, converted */
    text_buffer id, title; /* of the current topic, object or line of several columns */
    text_buffer filter;    /* of the current object or line of several columns; empty: none */
    topic topic;
    text_buffer fields[N_FIELDS]; /* of the topic */
    enum field wanted[NUM];       /* [n_wanted]: fields that make the text of a topic */
    unsigned n_wanted;
    enum column columns[MAX_COLUMNS]; /* [n_columns] of tsv */
    unsigned n_columns;
    bool began;        /* the first line that may name the columns has been read */
    gx_source *source; /* of docs and smart */
    bool unique;
    uint64_t *ids; /* [1 << id_bits]: hashes of the ids so far; 0: free */
    unsigned id_bits;
    bool has_zero_id; /* the id with the hash 0 has been */
};

static const char *const form_names[] = {"guess",  "efficiency", "million", "tsv",     "lines", "jsonl",
                                         "topics", "docs",       "smart",   "vectors", "csr"};
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
    if (!gx_reserve(&b->p, &b->cap, b->n + n + 1, 1))
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %zu bytes", b->n + n);
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

gx_status gx_log_convert(gx_log_text *b, const char *line, size_t n, gx_log_encoding encoding, gx_log_counts *counts,
                         gx_error *err)
{
    const bool valid = valid_prefix(line, n) == n;
    if (valid && encoding != GX_LOG_LATIN1)
        return assign(b, line, n, err);
    if (encoding == GX_LOG_UTF8) {
        ++counts->invalid;
        return replace_invalid(b, line, n, err);
    }
    const gx_status st = from_latin1(b, line, n, err);
    counts->latin1 += b->n != n;
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
    st = gx_log_convert(&log->utf8, *line, *n, log->encoding, &log->counts, err);
    *line = log->utf8.p;
    *n = log->utf8.n;
    return st;
}

/* ---- ids that have been ---- */

/* Put the hash where it belongs; true: it was there. */
static bool insert_hash(uint64_t *ids, unsigned bits, uint64_t hash)
{
    const size_t mask = ((size_t)1 << bits) - 1;
    size_t i = hash & mask;
    while (ids[i] && ids[i] != hash)
        i = (i + 1) & mask;
    const bool was_there = ids[i] != 0;
    ids[i] = hash;
    return was_there;
}

/* Count the query in repeated_ids if one of the first GX_LOG_KEPT_IDS had its id. */
static gx_status count_repeated_id(gx_log *log, const char *id, size_t n, gx_error *err)
{
    const unsigned bits = 17; /* at most half of the places are taken */
    if (log->form == GX_LOG_LINES)
        return GX_OK;
    if (!log->ids && !(log->ids = calloc((size_t)1 << bits, sizeof *log->ids)))
        return gx_fail(err, GX_ENOMEM, "no memory for the ids of queries");
    const uint64_t hash = gx_hash(id, n), mask = ((uint64_t)1 << bits) - 1;
    size_t i = hash & mask;
    while (log->ids[i] && log->ids[i] != hash)
        i = (i + 1) & mask;
    log->counts.repeated_ids += log->ids[i] != 0;
    if (log->counts.queries < GX_LOG_KEPT_IDS)
        log->ids[i] = hash;
    return GX_OK;
}

static gx_status remember_id(gx_log *log, const char *id, size_t n, bool *seen, gx_error *err)
{
    const uint64_t hash = gx_hash(id, n);
    if (!log->ids || log->counts.queries >= (uint64_t)1 << (log->id_bits - 1)) {
        const unsigned bits = log->ids ? log->id_bits + 1 : 10;
        uint64_t *grown = calloc((size_t)1 << bits, sizeof *grown);
        if (!grown)
            return gx_fail(err, GX_ENOMEM, "no memory for the ids of %" PRIu64 " queries", log->counts.queries);
        for (size_t i = 0; log->ids && i < (size_t)1 << log->id_bits; ++i)
            if (log->ids[i])
                insert_hash(grown, bits, log->ids[i]);
        free(log->ids);
        log->ids = grown;
        log->id_bits = bits;
    }
    *seen = hash ? insert_hash(log->ids, log->id_bits, hash) : log->has_zero_id;
    log->has_zero_id |= hash == 0;
    return GX_OK;
}

/* ---- forms ---- */

/* Check what was parsed, and give it as *q; its id is copied. */
static gx_status emit_query(gx_log *log, gx_log_query *q, const gx_log_query *parsed, gx_error *err)
{
    const char *const id = parsed->id;
    const size_t id_len = parsed->id_len;
    const uint64_t line = parsed->line;
    if (id_len == 0)
        return refuse(log, line, "the query's id is empty", err);
    if (id_len > GX_LOG_MAX_ID)
        return refuse(log, line, "the query's id has more than 255 bytes", err);
    for (size_t i = 0; i < id_len; ++i)
        if (isspace((unsigned char)id[i]))
            return refuse(log, line, "white space in the query's id", err);
    bool seen = false;
    gx_status st = id == log->id.p ? GX_OK : assign(&log->id, id, id_len, err);
    if (st == GX_OK)
        st = log->unique ? remember_id(log, id, id_len, &seen, err) : count_repeated_id(log, id, id_len, err);
    if (st != GX_OK)
        return st;
    if (seen)
        return refuse(log, line, "an earlier query has the same id", err);
    ++log->counts.queries;
    log->counts.empty +=
        parsed->terms ? parsed->n_terms == 0 : strspn(parsed->text, " \t\r\n\f\v") == parsed->len;
    *q = *parsed;
    q->id = log->id.p;
    if (log->filter.n && strspn(log->filter.p, " \t\r\n\f\v") < log->filter.n) {
        q->filter = log->filter.p;
        q->filter_len = log->filter.n;
        ++log->counts.filtered;
    }
    return GX_OK;
}

static gx_status emit_numbered(gx_log *log, gx_log_query *q, const char *text, size_t len, gx_error *err)
{
    char id[24];
    const int n = snprintf(id, sizeof id, "%" PRIu64, log->line);
    return emit_query(log, q, &(gx_log_query){id, text, (size_t)n, len, log->line}, err);
}

/* Parse a line of the form: id, colon, text. */
static gx_status parse_keyed(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err)
{
    const char *sep = memchr(line, ':', n);
    if (!sep)
        return refuse(log, log->line, "no \":\" between the query's number and its text", err);
    const char *id = line, *end = sep;
    while (id < end && *id == ' ')
        ++id;
    while (end > id && end[-1] == ' ')
        --end;
    return emit_query(log, q, &(gx_log_query){id, sep + 1, (size_t)(end - id), (size_t)(line + n - sep - 1), log->line},
                      err);
}

/* Parse a line of the form: id, colon, priority, colon, text. */
static gx_status parse_prioritized(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err)
{
    const char *colon = memchr(line, ':', n), *end = line + n;
    const char *second = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
    if (!second)
        return refuse(log, log->line, "the line is not number:priority:text", err);
    return emit_query(
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

/* Do the line's fields name the columns? One is an id's name, and another a text's. Where columns
 * are not given they are taken from it. *half: only a text is named, where no query of the usual
 * columns has its text, or beside an id that is a word. */
static bool read_header(gx_log *log, const char *line, size_t n, bool *half)
{
    static const char *const ids[] = {"id", "_id", "qid", "query_id", "queryid", "query-id", "topic_id", NULL};
    static const char *const texts[] = {"query", "text", "title", "query_text", "querytext", NULL};
    static const char *const filters[] = {"filter", NULL};
    enum column named[MAX_COLUMNS];
    unsigned n_named = 0, n_ids = 0, n_texts = 0, n_filters = 0, text = 0;
    for (const char *p = line, *end = line + n; p && n_named < MAX_COLUMNS; ++n_named) {
        const char *tab = memchr(p, '\t', (size_t)(end - p));
        const size_t len = (size_t)((tab ? tab : end) - p);
        const bool is_id = !n_ids && is_name(p, len, ids), is_text = !n_texts && is_name(p, len, texts);
        const bool is_filter = !n_filters && is_name(p, len, filters);
        named[n_named] = is_id ? COLUMN_ID : is_text ? COLUMN_TEXT : is_filter ? COLUMN_FILTER : COLUMN_NONE;
        n_filters += is_filter;
        n_ids += is_id;
        n_texts += is_text;
        text = is_text ? n_named : text;
        p = tab ? tab + 1 : NULL;
    }
    *half = n_texts && !n_ids && n_named > 1 && (text != 1 || (n_named > 2 && isalpha((unsigned char)*line)));
    if (*half && log->n_columns) /* which are given: then the line is no query */
        return text < log->n_columns && log->columns[text] == COLUMN_TEXT;
    if (!n_ids || !n_texts)
        return false;
    if (!log->n_columns) {
        memcpy(log->columns, named, sizeof named);
        log->n_columns = n_named;
    }
    return true;
}

static gx_status parse_columns(gx_log *log, const char *columns, gx_error *err)
{
    static const char *const names[] = {[COLUMN_NONE] = "-", "id", "text", "filter"};
    unsigned count[4] = {0};
    for (const char *p = columns; p;) {
        const size_t n = strcspn(p, ",");
        unsigned c = 0;
        while (c < 4 && (strlen(names[c]) != n || memcmp(p, names[c], n) != 0))
            ++c;
        if (log->n_columns == MAX_COLUMNS || c == 4)
            return gx_fail(err, GX_EUSAGE, "columns: '%.*s' is none of id, text, filter and -", (int)(n < 80 ? n : 80),
                           p);
        log->columns[log->n_columns++] = (enum column)c;
        ++count[c];
        p = p[n] ? p + n + 1 : NULL;
    }
    return columns && (count[COLUMN_ID] != 1 || !count[COLUMN_TEXT] || count[COLUMN_FILTER] > 1)
               ? gx_fail(err, GX_EUSAGE, "columns: '%s' needs id once, text, and filter at most once", columns)
               : GX_OK;
}

/* Parse a line of several columns: as the header or the options say, else the id and the text. */
static gx_status parse_tabbed(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err)
{
    static const enum column usual[] = {COLUMN_ID, COLUMN_TEXT};
    const enum column *columns = log->n_columns ? log->columns : usual;
    const unsigned n_columns = log->n_columns ? log->n_columns : 2;
    const char *p = line, *const end = line + n, *id = NULL;
    size_t id_len = 0;
    unsigned texts = 0, c;
    gx_status st = assign(&log->title, "", 0, err);
    log->filter.n = 0;
    for (c = 0; p && c < n_columns && st == GX_OK; ++c) {
        const char *tab = memchr(p, '\t', (size_t)(end - p));
        const size_t len = (size_t)((tab ? tab : end) - p);
        if (columns[c] == COLUMN_ID) {
            for (id = p, id_len = len; id_len && *id == ' '; --id_len)
                ++id;
            while (id_len && id[id_len - 1] == ' ')
                --id_len;
        } else if (columns[c] == COLUMN_TEXT) {
            st = texts++ ? append(&log->title, " ", 1, err) : GX_OK;
            if (st == GX_OK)
                st = append(&log->title, p, len, err);
        } else if (columns[c] == COLUMN_FILTER) {
            st = assign(&log->filter, p, len, err);
        }
        p = tab ? tab + 1 : NULL;
    }
    if (st != GX_OK)
        return st;
    if (!id || !texts)
        return refuse(log, log->line, c == 1 ? "no tab between the query's id and its text" : "it has too few columns",
                      err);
    log->counts.more_columns += p && *p;
    return emit_query(log, q, &(gx_log_query){id, log->title.p, id_len, log->title.n, log->line}, err);
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
    const json_t *filter = json_object_get(object, "filter");
    if (!json_is_string(text))
        return refuse(log, log->line, "no string under \"query\", \"text\" or \"title\"", err);
    if (filter && !json_is_string(filter) && !json_is_null(filter))
        return refuse(log, log->line, "the query's filter is no string", err);
    gx_status st = assign(&log->title, json_string_value(text), json_string_length(text), err);
    if (st == GX_OK)
        st = assign(&log->filter, json_string_value(filter), json_string_length(filter), err);
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
        return emit_query(
            log, q,
            &(gx_log_query){json_string_value(id), log->title.p, json_string_length(id), log->title.n, log->line}, err);
    if (!json_is_integer(id))
        return refuse(log, log->line, "the query's id is neither a string nor an integer", err);
    char number[32];
    const int n = snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    return emit_query(log, q, &(gx_log_query){number, log->title.p, (size_t)n, log->title.n, log->line}, err);
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

/* The fields' names, and the labels with which their texts begin in older topics. */
static const struct topic_field {
    const char *name, *label;
} topic_fields[N_FIELDS] = {
    [TITLE] = {"title", "Topic:"},
    [DESC] = {"desc", "Description:"},
    [NARR] = {"narr", "Narrative:"},
    [NUM] = {"num", "Number:"},
};

static gx_status parse_topic_fields(gx_log *log, const char *list, gx_error *err)
{
    for (const char *p = list ? list : "title"; p;) {
        const size_t n = strcspn(p, ",");
        unsigned f = 0;
        while (f < NUM && (strlen(topic_fields[f].name) != n || memcmp(topic_fields[f].name, p, n)))
            ++f;
        for (unsigned i = 0; i < log->n_wanted; ++i)
            f = f == log->wanted[i] ? NUM : f;
        if (f == NUM)
            return gx_fail(err, GX_EUSAGE, "topic fields: '%.*s' is none of title, desc and narr, or is said twice",
                           (int)(n < 80 ? n : 80), p);
        log->wanted[log->n_wanted++] = (enum field)f;
        p = p[n] ? p + n + 1 : NULL;
    }
    return GX_OK;
}

/* Add the bytes from p to end to the open field,
 * with a blank between lines and without its label. */
static gx_status add_to_field(gx_log *log, enum field f, const char *p, const char *end, gx_error *err)
{
    text_buffer *b = &log->fields[f];
    const char *label = topic_fields[f].label;
    p = skip_blanks(p);
    if (!b->n && !strncasecmp(p, label, strlen(label)))
        p = skip_blanks(p + strlen(label));
    while (end > p && isspace((unsigned char)end[-1]))
        --end;
    if (end <= p)
        return GX_OK;
    const gx_status st = b->n ? append(b, " ", 1, err) : GX_OK;
    return st == GX_OK ? append(b, p, (size_t)(end - p), err) : st;
}

/* Read a line of an open topic. A field goes from its tag to the next one, over any number of
 * lines. */
static gx_status read_topic_line(gx_log *log, topic *t, const char *line, gx_error *err)
{
    for (const char *p = line;;) {
        const char *tag = next_tag(p);
        gx_status st = t->field == NO_FIELD ? GX_OK : add_to_field(log, t->field, p, tag, err);
        if (st != GX_OK || !*tag)
            return st;
        t->field = NO_FIELD;
        for (unsigned f = 0; f < N_FIELDS; ++f) {
            const size_t n = strlen(topic_fields[f].name);
            if (!strncasecmp(tag + 1, topic_fields[f].name, n) && tag[1 + n] == '>') {
                t->field = (enum field)f;
                t->has[f] = true;
                if ((st = assign(&log->fields[f], "", 0, err)) != GX_OK)
                    return st;
            }
        }
        p = strchr(tag, '>');
        if (!p)
            return GX_OK;
        ++p;
    }
}

static gx_status emit_topic(gx_log *log, gx_log_query *q, gx_error *err)
{
    const topic *t = &log->topic;
    bool any = false;
    gx_status st = assign(&log->title, "", 0, err);
    if (!t->has[NUM] || !log->fields[NUM].n)
        return refuse(log, t->begin, "the topic has no <num>", err);
    for (unsigned i = 0; i < log->n_wanted && st == GX_OK; ++i) {
        const enum field f = log->wanted[i];
        if (!t->has[f])
            continue;
        any = true;
        st = log->title.n ? append(&log->title, " ", 1, err) : GX_OK;
        if (st == GX_OK)
            st = append(&log->title, log->fields[f].p, log->fields[f].n, err);
    }
    if (st != GX_OK)
        return st;
    if (!any) {
        char why[40];
        snprintf(why, sizeof why, "the topic has no <%s>", topic_fields[log->wanted[0]].name);
        return refuse(log, t->begin, why, err);
    }
    return emit_query(
        log, q, &(gx_log_query){log->fields[NUM].p, log->title.p, log->fields[NUM].n, log->title.n, t->begin}, err);
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
            *t = (topic){.open = true, .begin = log->line, .field = NO_FIELD};
            if (before.open)
                return refuse(log, before.begin, unclosed, err);
        }
        if (!t->open)
            continue;
        if ((st = read_topic_line(log, t, behind ? behind : line, err)) != GX_OK)
            return st;
        for (unsigned f = 0; f < N_FIELDS; ++f)
            if (log->fields[f].n > GX_LOG_MAX_LINE) {
                t->field = NO_FIELD;
                log->fields[f].n = 0;
                return refuse(log, t->begin, "a field of the topic has more than 1048576 bytes", err);
            }
        if (after_tag(line, "</top>")) {
            t->open = false;
            return emit_topic(log, q, err);
        }
    }
}

/* ---- docs, smart, vectors and csr: the corpora's readers ---- */

static gx_status open_documents(gx_log *log, gx_error *err)
{
    const gx_source_options opt = {.size = sizeof opt,
                                   .format = log->form == GX_LOG_DOCS      ? GX_SOURCE_TRECTEXT
                                             : log->form == GX_LOG_SMART   ? GX_SOURCE_SMART
                                             : log->form == GX_LOG_VECTORS ? GX_SOURCE_VECTORS
                                                                           : GX_SOURCE_CSR,
                                   .else_latin1 = log->encoding != GX_LOG_UTF8};
    const char *const *paths = (const char *const *)&log->path; /* the source keeps the array */
    return log->form == GX_LOG_CSR ? gx_source_open(&log->source, paths, 1, &opt, err)
                                   : gx_source_open_input(&log->source, &log->in, &opt, err);
}

/* A document's vector as a query. */
static gx_status emit_vector(gx_log *log, gx_log_query *q, const gx_source_document *d, gx_error *err)
{
    static const gx_weighted_term none;
    const gx_log_query parsed = {.id = d->doc.id,
                                 .text = "",
                                 .id_len = d->doc.id_len,
                                 .line = d->line,
                                 .terms = d->doc.vector ? d->doc.vector : &none,
                                 .n_terms = d->doc.n_vector};
    return emit_query(log, q, &parsed, err);
}

static gx_status next_document(gx_log *log, gx_log_query *q, bool *more, gx_error *err)
{
    const gx_source_document *d;
    gx_status st = gx_source_next(log->source, &d, err);
    const gx_source_counts in = gx_source_get_counts(log->source);
    log->counts.latin1 = in.latin1;
    log->counts.invalid = in.replaced;
    log->counts.nuls = in.nul_bytes;
    log->counts.bad += st == GX_EINPUT;
    *more = st != GX_OK || d;
    if (st != GX_OK || !d)
        return st;
    if (log->form == GX_LOG_VECTORS || log->form == GX_LOG_CSR)
        return emit_vector(log, q, d, err);
    st = assign(&log->title, d->doc.title, d->doc.title_len, err);
    if (st == GX_OK && log->title.n)
        st = append(&log->title, " ", 1, err);
    if (st == GX_OK)
        st = append(&log->title, d->doc.text, d->doc.text_len, err);
    char *p = log->title.p;
    for (size_t i = 0; st == GX_OK && i < log->title.n; ++i)
        if (p[i] == '\n' || p[i] == '\r' || p[i] == '\t')
            p[i] = ' ';
    return st ? st : emit_query(log, q, &(gx_log_query){d->doc.id, p, d->doc.id_len, log->title.n, d->line}, err);
}

/* ---- guessing ---- */

/* How many numbers with a colon behind, one after another, does the line begin with? */
static unsigned count_numbers(const char *p, size_t n)
{
    unsigned numbers = 0;
    for (size_t i = 0;; ++i) {
        const size_t from = i;
        while (i < n && isdigit((unsigned char)p[i]))
            ++i;
        if (i == from || i == n || p[i] != ':')
            return numbers;
        ++numbers;
    }
}

static bool is_comment(gx_log_form form, const char *p)
{
    const bool keyed = form == GX_LOG_EFFICIENCY || form == GX_LOG_MILLION || form == GX_LOG_TSV;
    return *p == '#' && (keyed || !p[1] || isspace((unsigned char)p[1]));
}

/* The first lines, counted by what they look like. */
typedef struct first_lines {
    unsigned lines, numbered, prioritized, tabbed;
    uint64_t not_numbered, not_tabbed; /* the first such line's number */
} first_lines;

static void count_line(first_lines *c, uint64_t number, const char *p, size_t len)
{
    const unsigned numbers = count_numbers(p, len);
    const bool tab = memchr(p, '\t', len) != NULL;
    ++c->lines;
    c->numbered += numbers > 0;
    c->prioritized += numbers > 1;
    c->tabbed += tab;
    if (!numbers && !c->not_numbered)
        c->not_numbered = number;
    if (!tab && !c->not_tabbed)
        c->not_tabbed = number;
}

/* Whether the JSON object has a member "vector" that is an object; a string with these characters
 * has backslashes before its quotes. */
static bool names_vector(const char *p, size_t n)
{
    static const char name[] = "\"vector\"";
    const char *const end = p + n, *at = memmem(p, n, name, sizeof name - 1);
    if (!at)
        return false;
    at += sizeof name - 1;
    while (at < end && isspace((unsigned char)*at))
        ++at;
    if (at == end || *at++ != ':')
        return false;
    while (at < end && isspace((unsigned char)*at))
        ++at;
    return at < end && *at == '{';
}

/* The form that the first line tells alone, or GX_LOG_GUESS. */
static gx_log_form guess_by_first(const char *p, size_t n)
{
    return *p == '{' && names_vector(p, n)                                 ? GX_LOG_VECTORS
           : *p == '{'                                                     ? GX_LOG_JSONL
           : n >= 5 && !strncasecmp(p, "<top>", 5)                         ? GX_LOG_TOPICS
           : n >= 5 && !strncasecmp(p, "<DOC>", 5)                         ? GX_LOG_DOCS
           : n >= 3 && !memcmp(p, ".I", 2) && isspace((unsigned char)p[2]) ? GX_LOG_SMART
                                                                           : GX_LOG_GUESS;
}

/* Most lines speak for a form, and one does not: that is refused. */
static gx_status unsure(const gx_log *log, uint64_t line, const char *what, gx_error *err)
{
    return gx_fail(err, GX_EUSAGE,
                   "%s:%" PRIu64 ": this line has no %s, as most of the first lines have: the form of "
                   "the log cannot be told",
                   log->path, line, what);
}

static gx_status choose_form(gx_log *log, const first_lines *c, gx_error *err)
{
    log->form = GX_LOG_LINES;
    if (c->lines && c->tabbed == c->lines)
        log->form = GX_LOG_TSV;
    else if (c->tabbed > c->lines / 2)
        return unsure(log, c->not_tabbed, "tab", err);
    else if (c->lines && c->numbered == c->lines)
        log->form = c->prioritized == c->lines ? GX_LOG_MILLION : GX_LOG_EFFICIENCY;
    else if (c->numbered > c->lines / 2)
        return unsure(log, c->not_numbered, "number and colon before it", err);
    return GX_OK;
}

/* Guess the form from the first lines of the window, by what all of them have in common. */
static gx_status guess(gx_log *log, const char *p, size_t n, bool whole, gx_error *err)
{
    first_lines c = {0};
    uint64_t number = 0;
    bool opened = false;
    const char *const end = p + n;
    while (p < end && c.lines < GUESS_LINES) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol && !whole && c.lines)
            break;
        const size_t len = (size_t)((eol ? eol : end) - p);
        size_t blank = 0;
        ++number;
        while (blank < len && isspace((unsigned char)p[blank]))
            ++blank;
        if (blank < len && p[0] != '#') {
            const gx_log_form told = guess_by_first(p + blank, len - blank);
            if (told == GX_LOG_TOPICS || (!opened && told != GX_LOG_GUESS)) {
                log->form = told;
                return GX_OK;
            }
            if (!opened && (p[blank] == '<' || p[blank] == '['))
                return gx_fail(err, GX_EUSAGE, "%s:%" PRIu64 ": it begins with %s: the form of the log cannot be told",
                               log->path, number, p[blank] == '<' ? "a tag that no form begins with" : "a bracket");
            opened = true;
            count_line(&c, number, p, len);
        }
        p = eol ? eol + 1 : end;
    }
    return choose_form(log, &c, err);
}

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

static gx_status guess_form(gx_log *log, gx_error *err)
{
    gx_input *in = &log->in;
    while (in->end - in->begin < GUESS_BYTES && !in->eof) {
        const gx_status st = gx_input_fill(in, err);
        if (st != GX_OK)
            return st;
    }
    const gx_status st = refuse_binary(log, err);
    return st ? st : guess(log, in->buf + in->begin, in->end - in->begin, in->eof, err);
}

/* ---- the log ---- */

/* All that is done before the first query is read. */
static gx_status begin_log(gx_log *log, const gx_log_options *opt, gx_error *err)
{
    gx_status st = parse_columns(log, opt->columns, err);
    if (st == GX_OK)
        st = parse_topic_fields(log, opt->topic_fields, err);
    if (st == GX_OK && log->form == GX_LOG_CSR) /* binary, and not read by lines */
        return open_documents(log, err);
    if (st == GX_OK)
        st = gx_input_open(&log->in, log->path, err);
    if (st == GX_OK && log->form == GX_LOG_GUESS)
        st = guess_form(log, err);
    if (st == GX_OK)
        st = refuse_binary(log, err);
    if (st == GX_OK && (log->form == GX_LOG_DOCS || log->form == GX_LOG_SMART || log->form == GX_LOG_VECTORS))
        st = open_documents(log, err);
    return st;
}

gx_status gx_log_open(gx_log **out, const char *path, const gx_log_options *opt, gx_error *err)
{
    const gx_log_options usual = {0};
    *out = NULL;
    gx_log *log = calloc(1, sizeof *log);
    if (!log || !(log->path = strdup(path))) {
        free(log);
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", path);
    }
    opt = opt ? opt : &usual;
    log->in = GX_INPUT_INIT;
    log->in.max_record = GX_LOG_MAX_LINE;
    log->form = opt->form;
    log->encoding = opt->encoding;
    log->unique = opt->unique;
    const gx_status st = begin_log(log, opt, err);
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
    gx_source_close(log->source);
    gx_input_free(&log->in);
    for (unsigned f = 0; f < N_FIELDS; ++f)
        free(log->fields[f].p);
    free(log->ids);
    free(log->utf8.p);
    free(log->id.p);
    free(log->title.p);
    free(log->filter.p);
    free(log->path);
    free(log);
}

gx_status gx_log_next(gx_log *log, gx_log_query *q, bool *more, gx_error *err)
{
    char *line;
    size_t n;
    bool half = false;
    *more = true;
    if (log->source)
        return next_document(log, q, more, err);
    if (log->form == GX_LOG_TOPICS)
        return next_topic(log, q, more, err);
    for (;;) {
        const gx_status st = next_line(log, &line, &n, more, err);
        if (st != GX_OK || !*more)
            return st;
        if (!*skip_blanks(line)) {
            ++log->counts.blank;
        } else if (log->form == GX_LOG_TSV && !log->began && read_header(log, line, n, &half)) {
            log->began = true;
            log->counts.header = 1;
        } else if (half && !log->n_columns) {
            return gx_fail(err, GX_EUSAGE,
                           "%s:%" PRIu64
                           ": this line names a column of texts, but none of ids: the columns must be given",
                           log->path, log->line);
        } else if (is_comment(log->form, line)) {
            ++log->counts.comments;
        } else {
            break;
        }
    }
    log->began = true;
    switch (log->form) {
    case GX_LOG_EFFICIENCY:
        return parse_keyed(log, q, line, n, err);
    case GX_LOG_MILLION:
        return parse_prioritized(log, q, line, n, err);
    case GX_LOG_TSV:
        return parse_tabbed(log, q, line, n, err);
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
