/* show.c: what a hit shows: _source, fields, highlight, _explanation. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols/elastic/elastic.h"
#include "tools/serve/searches.h"

/* ---- _source ---- */

static bool choose(source_options *o, const char *name)
{
    o->chosen = true;
    switch (gx_word_index("id|title|text|contents|*", name, strlen(name))) {
    case 0:
        o->id = true;
        return true;
    case 1:
        o->title = true;
        return true;
    case 2:
    case 3:
        o->text = true;
        return true;
    case 4:
        o->id = o->title = o->text = true;
        o->attributes = UINT64_MAX;
        return true;
    default:
        break;
    }
    uint32_t i;
    gx_error ignored;
    if (!o->ix || gx_index_find_attribute(o->ix, name, strlen(name), &i, &ignored))
        return false;
    o->attributes |= UINT64_C(1) << i;
    return true;
}

static bool read_field(reader *r, const json_t *value, void *to)
{
    const char *name;
    size_t len;
    return reader_string(r, value, &name, &len) &&
           (choose(to, name) ||
            reader_fail(r,
                        "'%.60s' is no field without a pattern; there are id, title, text and the index's attributes",
                        name));
}

static bool read_fields(reader *r, const json_t *value, void *to)
{
    return json_is_string(value) ? read_field(r, value, to) : reader_array(r, value, read_field, to);
}

static bool read_excluded(reader *r, const json_t *value, void *to)
{
    source_options *o = to, out = {.ix = o->ix};
    if (!read_fields(r, value, &out))
        return false;
    if (!o->chosen) {
        o->id = o->title = o->text = o->chosen = true;
        o->attributes = UINT64_MAX;
    }
    o->id &= !out.id;
    o->title &= !out.title;
    o->text &= !out.text;
    o->attributes &= ~out.attributes;
    return true;
}

bool source_read(reader *r, const json_t *value, void *to)
{
    static const member members[] = {
        {"includes", read_fields}, {"include", read_fields}, {"excludes", read_excluded}, {"exclude", read_excluded}};
    source_options *o = to;
    if (json_is_boolean(value)) {
        o->none = json_is_false(value);
        return true;
    }
    if (json_is_object(value))
        return reader_object(r, value, members, sizeof members / sizeof *members, o);
    o->chosen = true;
    return read_fields(r, value, o);
}

bool source_read_text(exchange *x, const char *text, source_options *out)
{
    char name[65];
    out->ix = x->at ? x->at->ix : NULL;
    if (!text || strcmp(text, "true") == 0)
        return true;
    if (strcmp(text, "false") == 0) {
        out->none = true;
        return true;
    }
    for (const char *at = text; at;) {
        const size_t len = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", len < sizeof name ? (int)len : 0, at);
        if (!choose(out, name))
            return fault_set(&x->fault, 400, "_source: '%.60s' is no field", at);
        at = at[len] ? at + len + 1 : NULL;
    }
    return true;
}

/* ,"year":2019,... of those that are chosen. */
static gx_status put_attributes(gx_text *t, const gx_index *ix, uint64_t docid, const source_options *o,
                                const char *comma, gx_error *err)
{
    uint32_t numbers[GX_MAX_ATTRIBUTES], n = 0;
    gx_values values = {0};
    gx_text object = {0};
    for (uint32_t i = 0; i < gx_index_n_attributes(ix); ++i)
        if (!o->chosen || o->attributes >> i & 1)
            numbers[n++] = i;
    if (n == 0)
        return GX_OK;
    const gx_status st = gx_text_add_attributes(&object, ix, docid, numbers, n, &values, err);
    if (st == GX_OK && object.len > 2) {
        gx_text_add_string(t, comma);
        gx_text_add(t, object.bytes + 1, object.len - 2);
    }
    t->failed = t->failed || object.failed;
    free(object.bytes);
    gx_values_free(&values);
    return st;
}

gx_status source_write(gx_text *t, const gx_index *ix, uint64_t docid, const source_options *o, gx_error *err)
{
    size_t len, cap = 0;
    const char *comma = "";
    char *text = NULL;
    gx_status st = GX_OK;
    if (o->none)
        return GX_OK;
    gx_text_add_string(t, ",\"_source\":{");
    const char *title = gx_index_doc_title(ix, docid, &len);
    if (len && (!o->chosen || o->title)) {
        gx_text_add_string(t, "\"title\":");
        gx_text_add_json(t, title, len);
        comma = ",";
    }
    if (!o->chosen || o->text)
        st = gx_index_doc_text(ix, docid, &text, &cap, &len, err);
    if (st == GX_OK && text) {
        gx_text_add_format(t, "%s\"text\":", comma);
        gx_text_add_json(t, text, len);
        comma = ",";
    }
    free(text);
    if (o->chosen && o->id) {
        const char *id = gx_index_doc_id(ix, docid, &len);
        gx_text_add_format(t, "%s\"id\":", comma);
        gx_text_add_json(t, id, len);
        comma = ",";
    }
    if (st == GX_OK || st == GX_ENOTFOUND) /* the index stores no texts */
        st = put_attributes(t, ix, docid, o, comma, err);
    gx_text_add_string(t, "}");
    return st;
}

/* ---- highlight ---- */

enum { DEFAULT_WORDS = 18, LETTERS_A_WORD = 6 }; /* Elasticsearch's fragments have 100 characters */

static bool read_tag(reader *r, const json_t *value, const char **out)
{
    size_t len;
    if (json_is_array(value) && json_array_size(value) == 1)
        value = json_array_get(value, 0);
    return reader_string(r, value, out, &len);
}

static bool read_pre(reader *r, const json_t *value, void *to)
{
    return read_tag(r, value, &((highlight_options *)to)->pre);
}

static bool read_post(reader *r, const json_t *value, void *to)
{
    return read_tag(r, value, &((highlight_options *)to)->post);
}

static bool read_size(reader *r, const json_t *value, void *to)
{
    highlight_options *o = to;
    uint64_t n;
    if (!reader_count(r, value, 1, 100000, &n))
        return false;
    if (o->words != UINT32_MAX)
        o->words = (uint32_t)(n / LETTERS_A_WORD + 1);
    return true;
}

/* 0: the whole text; any other number: the best fragment alone. */
static bool read_number(reader *r, const json_t *value, void *to)
{
    uint64_t n;
    if (!reader_count(r, value, 0, 100, &n))
        return false;
    if (n == 0)
        ((highlight_options *)to)->words = UINT32_MAX;
    return true;
}

static bool read_encoder(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    if (!reader_string(r, value, &text, &len))
        return false;
    const int i = gx_word_index("default|html", text, len);
    ((highlight_options *)to)->escape = i == 1;
    return i >= 0 || reader_fail(r, "'%.40s' is neither default nor html", text);
}

static bool read_flag(reader *r, const json_t *value, void *to)
{
    bool ignored;
    (void)to;
    return reader_bool(r, value, &ignored);
}

static bool read_type(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    (void)to;
    return reader_string(r, value, &text, &len) &&
           (gx_word_index("unified|plain|fvh", text, len) >= 0 || reader_fail(r, "'%.40s' is no highlighter", text));
}

#define SHARED_MEMBERS                                                                                                 \
    {"pre_tags", read_pre}, {"post_tags", read_post}, {"fragment_size", read_size},                                    \
        {"number_of_fragments", read_number}, {"require_field_match", read_flag},                                      \
    {                                                                                                                  \
        "type", read_type                                                                                              \
    }

static bool read_one_field(reader *r, const char *name, const json_t *value, highlight_options *o)
{
    static const member members[] = {SHARED_MEMBERS};
    reader_enter(r, name, 0);
    if (!elastic_is_text(name))
        return reader_fail(r, "'%.60s' is not text; there are title and text", name);
    if (strcmp(name, "title") == 0)
        o->title = true;
    else
        o->text = true;
    if (!reader_object(r, value, members, sizeof members / sizeof *members, o))
        return false;
    reader_leave(r);
    return true;
}

static bool read_highlighted(reader *r, const json_t *value, void *to)
{
    if (!json_is_object(value))
        return reader_fail(r, "an object of fields is expected");
    for (void *i = json_object_iter((json_t *)value); i; i = json_object_iter_next((json_t *)value, i))
        if (!read_one_field(r, json_object_iter_key(i), json_object_iter_value(i), to))
            return false;
    return true;
}

bool highlight_read(reader *r, const json_t *value, void *to)
{
    static const member members[] = {SHARED_MEMBERS, {"encoder", read_encoder}, {"fields", read_highlighted}};
    highlight_options *o = to;
    *o = (highlight_options){.words = DEFAULT_WORDS, .pre = "<em>", .post = "</em>"};
    return reader_object(r, value, members, sizeof members / sizeof *members, o) &&
           (o->text || o->title || reader_fail(r, "'fields' is missing"));
}

/* Bytes, with what HTML would read as more than text escaped where that is asked for. */
static void add_escaped(gx_text *t, const char *text, size_t len, bool escape)
{
    for (size_t i = 0; i < len; ++i) {
        const char *p = escape ? memchr("&<>\"'", text[i], 5) : NULL;
        if (p)
            gx_text_add_format(t, "&#%d;", text[i]);
        else
            gx_text_add(t, &text[i], 1);
    }
}

/* Add "name":["... <em>word</em> ..."], unless no word is marked. */
static gx_status write_field(gx_text *t, const char *name, const char *text, size_t len, gx_highlighter *marks,
                             const highlight_options *o, uint32_t words, bool *any, gx_error *err)
{
    gx_snippet s = {0};
    gx_text marked = {0};
    const gx_status st = gx_highlighter_snippet(marks, text, len, words, &s, err);
    if (st || s.n_marks == 0)
        return st;
    size_t at = s.begin;
    for (uint32_t i = 0; i < s.n_marks; ++i) {
        add_escaped(&marked, text + at, s.marks[i].begin - at, o->escape);
        gx_text_add_string(&marked, o->pre);
        add_escaped(&marked, text + s.marks[i].begin, s.marks[i].end - s.marks[i].begin, o->escape);
        gx_text_add_string(&marked, o->post);
        at = s.marks[i].end;
    }
    add_escaped(&marked, text + at, s.end - at, o->escape);
    gx_text_add_format(t, "%s\"%s\":[", *any ? "," : ",\"highlight\":{", name);
    gx_text_add_json(t, marked.bytes, marked.len);
    gx_text_add_string(t, "]");
    free(marked.bytes);
    *any = true;
    return GX_OK;
}

gx_status highlight_write(gx_text *t, const gx_index *ix, uint64_t docid, gx_highlighter *marks,
                          const highlight_options *o, gx_error *err)
{
    bool any = false;
    size_t len, cap = 0;
    char *text = NULL;
    gx_status st = GX_OK;
    if (o->text && (st = gx_index_doc_text(ix, docid, &text, &cap, &len, err)) == GX_OK)
        st = write_field(t, "text", text, len, marks, o, o->words, &any, err);
    free(text);
    if (st == GX_ENOTFOUND)
        st = GX_OK;
    const char *title = gx_index_doc_title(ix, docid, &len);
    if (st == GX_OK && o->title && len)
        st = write_field(t, "title", title, len, marks, o, UINT32_MAX, &any, err);
    gx_text_add_string(t, any ? "}" : "");
    return st;
}

/* ---- fields and _explanation ---- */

/* ,"fields":{"year":[2019]}: values of attributes, in arrays. */
gx_status fields_write(gx_text *t, const gx_index *ix, uint64_t docid, uint64_t fields, gx_error *err)
{
    gx_values values = {0};
    gx_status st = GX_OK;
    bool any = false;
    gx_text_add_string(t, ",\"fields\":{");
    for (uint32_t i = 0; i < gx_index_n_attributes(ix) && st == GX_OK; ++i) {
        gx_attribute_info info = {.size = sizeof info};
        if (!(fields >> i & 1) || gx_index_get_attribute(ix, i, &info) != GX_OK)
            continue;
        st = gx_index_values(ix, i, &docid, 1, &values, err);
        const uint64_t n = st == GX_OK ? values.starts[1] : 0;
        if (n == 0)
            continue;
        gx_text_add_string(t, any ? "," : "");
        any = true;
        gx_text_add_json(t, info.name, info.name_len);
        for (uint64_t k = 0; k < n; ++k) {
            gx_text_add_string(t, k ? "," : ":[");
            gx_text_add_json_value(t, values.type, &values.values[k]);
        }
        gx_text_add_string(t, "]");
    }
    gx_text_add_string(t, "}");
    gx_values_free(&values);
    return st;
}

static void put_detail(gx_text *t, double value, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_detail(gx_text *t, double value, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gx_text_add_string(t, "{\"value\":");
    gx_text_add_score(t, value);
    gx_text_add_string(t, ",\"description\":");
    gx_text_add_json(t, text, strlen(text));
    gx_text_add_string(t, ",\"details\":[");
}

/* ,"_explanation":{...}: the terms that the score is the sum of. */
gx_status explanation_write(gx_text *t, const gx_index *ix, const search *s, uint32_t hit, gx_error *err)
{
    gx_explanation e = {0};
    const gx_query q = searches_query(s);
    bool any = false;
    gx_text_add_string(t, ",\"_explanation\":");
    if (s->all && s->len == 0) {
        put_detail(t, 1, "a query without words gives each document the score 1");
        gx_text_add_string(t, "]}");
        return GX_OK;
    }
    const gx_status st = gx_explain(&e, ix, &q, &s->plan->setup.options, s->docids[hit], err);
    if (st == GX_OK)
        put_detail(t, s->scores[hit], "sum of: (%s, k1 %g, b %g)", e.preset, e.k1, e.b);
    for (uint32_t i = 0; i < e.n_terms; ++i) {
        const gx_explain_term *term = &e.terms[i];
        if (!term->tf)
            continue;
        gx_text_add_string(t, any ? "," : "");
        any = true;
        put_detail(t, (double)term->score,
                   "weight of '%.*s': tf %u, df %llu of %llu documents, length %u of %.9g on average",
                   (int)(term->term_len < 80 ? term->term_len : 80), term->term, term->tf, (unsigned long long)term->df,
                   (unsigned long long)e.n_docs, e.dl, e.avgdl);
        gx_text_add_string(t, "]}");
    }
    gx_text_add_string(t, st == GX_OK ? "]}" : "");
    gx_explanation_free(&e);
    return st;
}
