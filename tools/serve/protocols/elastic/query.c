/* query.c: Query DSL to a query of ours.
 *
 * Each query becomes words and conditions that both must hold (elastic.h), so that the conditions of a bool's filter
 * stay apart from what scores. Words in a filter would score, and are refused; conditions score nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols/elastic/elastic.h"

/* No document has this id: ids hold no control characters. */
static const char NOTHING[] = "id:\"\x01\"";

typedef struct context {
    reader *r;
    exchange *x;
    bool scores; /* not below filter or must_not */
    dsl_fields *fields;
} context;

static bool read_any(context *c, const json_t *query, dsl_query *out);

void dsl_free(dsl_query *q)
{
    free(q->words.bytes);
    free(q->conditions.bytes);
    *q = (dsl_query){0};
}

bool elastic_is_text(const char *field)
{
    return gx_word_index("text|title|contents|_all", field, strlen(field)) >= 0;
}

uint32_t elastic_attribute(const gx_index *ix, const char *name, gx_attribute_info *info)
{
    const size_t len = strlen(name);
    for (uint32_t i = 0; i < gx_index_n_attributes(ix); ++i) {
        *info = (gx_attribute_info){.size = sizeof *info};
        if (gx_index_get_attribute(ix, i, info) == GX_OK && info->name_len == len && !memcmp(info->name, name, len))
            return i;
    }
    return UINT32_MAX;
}

static bool is_text(context *c, const char *name)
{
    return elastic_is_field(c->x->at->ix, name) || elastic_is_text(name);
}

static bool no_field(context *c, const char *name)
{
    return reader_fail(c->r, "the index has no field '%.80s'; /{index}/_mapping lists them", name);
}

/* ---- parts of expressions ---- */

static bool is_empty(const gx_text *t)
{
    return t->len == 0;
}

static void add_text(gx_text *t, const gx_text *more)
{
    gx_text_add(t, more->bytes, more->len);
}

/* Join `more` to an expression by a word that both must meet: "a AND b". */
static void join(gx_text *t, const char *by, const gx_text *more)
{
    if (!is_empty(t))
        gx_text_add_string(t, by);
    gx_text_add_string(t, "(");
    add_text(t, more);
    gx_text_add_string(t, ")");
}

/* A value in quotes, as conditions have them. */
static void add_quoted(gx_text *t, const char *text, size_t len)
{
    gx_text_add_string(t, "\"");
    for (size_t i = 0; i < len; ++i) {
        if (text[i] == '"' || text[i] == '\\' || text[i] == '@')
            gx_text_add_string(t, "\\");
        gx_text_add(t, &text[i], 1);
    }
    gx_text_add_string(t, "\"");
}

/* A word in the boolean syntax: what could be a sign is escaped. */
static void add_word(gx_text *t, const char *text, size_t len)
{
    static const char *const operators[] = {"AND", "OR", "NOT", "TO"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; ++i)
        if (strlen(operators[i]) == len && memcmp(operators[i], text, len) == 0)
            gx_text_add_string(t, "\\");
    for (size_t i = 0; i < len; ++i) {
        const unsigned char c = (unsigned char)text[i];
        if (c > ' ' && c < 0x7f && !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", c))
            gx_text_add_string(t, "\\");
        gx_text_add(t, c < ' ' ? " " : &text[i], 1);
    }
}

/* The words of a text: "(a b)", or with all of them needed "(+a +b)". *n receives their number. */
static bool add_words(context *c, gx_text *t, const char *text, size_t len, gx_op op, size_t *n)
{
    gx_text_term *terms;
    gx_error err = {0};
    if (gx_index_analyze_query(c->x->at->ix, text, len, &terms, n, &err))
        return fault_set(&c->x->fault, 503, "%s", err.text);
    gx_text_add_string(t, "(");
    for (size_t i = 0; i < *n; ++i) {
        gx_text_add_string(t, i ? " " : "");
        gx_text_add_string(t, op == GX_OP_AND ? "+" : "");
        add_word(t, text + terms[i].begin, terms[i].end - terms[i].begin);
    }
    gx_text_add_string(t, ")");
    free(terms);
    return true;
}

static void set_nothing(dsl_query *q)
{
    const dsl_fields fields = q->fields;
    dsl_free(q);
    q->fields = fields; /* which are looked at all the same */
    gx_text_add_string(&q->conditions, NOTHING);
}

/* ---- conditions ---- */

/* Add "name:" of an attribute; false: there is none of this name. */
static bool add_name(context *c, gx_text *t, const char *name)
{
    gx_attribute_info info;
    if (elastic_attribute(c->x->at->ix, name, &info) == UINT32_MAX)
        return no_field(c, name);
    gx_text_add_format(t, "%s:", name);
    return true;
}

/* What the index says of a condition, which begins at a byte of t, is told where the reader stands. */
static bool check_condition(context *c, const gx_text *t, size_t begin)
{
    gx_filter *f = NULL;
    gx_error err = {0};
    if (t->failed)
        return fault_set(&c->x->fault, 503, "no memory for the query");
    const gx_status st = gx_filter_open(&f, c->x->at->ix, t->bytes + begin, t->len - begin, NULL, &err);
    gx_filter_close(f);
    return st == GX_OK || reader_fail_filter(c->r, err.text);
}

static bool add_equal(context *c, gx_text *t, const char *name, const json_t *value)
{
    char buf[64];
    size_t len;
    const size_t begin = t->len;
    const char *text = reader_scalar(c->r, value, buf, &len);
    if (!text)
        return false;
    if (strcmp(name, "_id") == 0)
        gx_text_add_string(t, "id:");
    else if (!add_name(c, t, name))
        return false;
    add_quoted(t, text, len);
    return check_condition(c, t, begin);
}

/* {"field": value} or {"field": {"value": value}}: the one member, and how its value is reached. */
static const char *only_member(context *c, const json_t *object, const json_t **value)
{
    if (!json_is_object(object) || json_object_size(object) != 1) {
        reader_fail(c->r, "an object with one field is expected");
        return NULL;
    }
    void *iter = json_object_iter((json_t *)object);
    *value = json_object_iter_value(iter);
    return json_object_iter_key(iter);
}

/* Take the options of a leaf that stand beside its value, of which none but those named is there. */
static bool check_options(context *c, const json_t *object, const char *names)
{
    for (void *i = json_object_iter((json_t *)object); i; i = json_object_iter_next((json_t *)object, i)) {
        const char *name = json_object_iter_key(i);
        reader_enter(c->r, name, 0);
        if (gx_word_index(names, name, strlen(name)) < 0)
            return reader_fail(c->r, "'%.60s' is not available here; there are %s", name, names);
        reader_leave(c->r);
    }
    return true;
}

static bool read_term(context *c, const json_t *query, dsl_query *out)
{
    const json_t *value = NULL;
    const char *name = only_member(c, query, &value);
    if (!name)
        return false;
    reader_enter(c->r, name, 0);
    if (is_text(c, name))
        return reader_fail(c->r, "'%s' is text, whose words 'match' finds; 'term' is for attributes", name);
    if (json_is_object(value)) {
        if (!check_options(c, value, "value"))
            return false;
        if (!(value = json_object_get(value, "value")))
            return reader_fail(c->r, "'value' is missing");
        reader_enter(c->r, "value", 0);
        if (!add_equal(c, &out->conditions, name, value))
            return false;
        reader_leave(c->r);
    } else if (!add_equal(c, &out->conditions, name, value)) {
        return false;
    }
    reader_leave(c->r);
    return true;
}

static bool add_values(context *c, gx_text *t, const char *name, const json_t *values)
{
    if (!json_is_array(values))
        return reader_fail(c->r, "an array of values is expected");
    for (size_t i = 0; i < json_array_size(values); ++i) {
        reader_enter(c->r, NULL, i);
        gx_text_add_string(t, i ? " OR " : "");
        if (!add_equal(c, t, name, json_array_get(values, i)))
            return false;
        reader_leave(c->r);
    }
    if (json_array_size(values) == 0)
        gx_text_add_string(t, NOTHING);
    return true;
}

static bool read_terms(context *c, const json_t *query, dsl_query *out)
{
    const json_t *value = NULL;
    const char *name = only_member(c, query, &value);
    if (!name)
        return false;
    reader_enter(c->r, name, 0);
    if (is_text(c, name))
        return reader_fail(c->r, "'%s' is text, whose words 'match' finds; 'terms' is for attributes", name);
    if (!add_values(c, &out->conditions, name, value))
        return false;
    reader_leave(c->r);
    return true;
}

static bool read_ids(context *c, const json_t *query, dsl_query *out)
{
    const json_t *values = json_object_get(query, "values");
    if (!json_is_object(query) || !values)
        return reader_fail(c->r, "'values' is missing");
    if (!check_options(c, query, "values"))
        return false;
    reader_enter(c->r, "values", 0);
    if (!add_values(c, &out->conditions, "_id", values))
        return false;
    reader_leave(c->r);
    return true;
}

static bool read_exists(context *c, const json_t *query, dsl_query *out)
{
    const char *name;
    size_t len;
    gx_attribute_info info;
    if (!json_is_object(query) || !check_options(c, query, "field"))
        return json_is_object(query) ? false : reader_fail(c->r, "an object with 'field' is expected");
    reader_enter(c->r, "field", 0);
    if (!reader_string(c->r, json_object_get(query, "field"), &name, &len))
        return false;
    if (elastic_attribute(c->x->at->ix, name, &info) == UINT32_MAX)
        return is_text(c, name) ? reader_fail(c->r, "'exists' is for attributes, not for the text") : no_field(c, name);
    gx_text_add_format(&out->conditions, "has:%s", name);
    reader_leave(c->r);
    return true;
}

/* One bound of a range; `other` is the same bound with or without the value itself. */
static bool read_bound(context *c, const char *name, const json_t *bounds, const char *with, const char *without,
                       gx_text *value, bool *open)
{
    const json_t *a = json_object_get(bounds, with), *b = json_object_get(bounds, without);
    const json_t *bound = a ? a : b;
    char buf[64];
    size_t len;
    *open = !a && b;
    if (a && b)
        return reader_fail(c->r, "'%s' and '%s': one of them", with, without);
    if (!bound || json_is_null(bound)) {
        gx_text_add_string(value, "*");
        return true;
    }
    reader_enter(c->r, a ? with : without, 0);
    const char *text = reader_scalar(c->r, bound, buf, &len);
    if (!text)
        return false;
    if (memchr(text, '|', len) || (len >= 3 && memcmp(text, "now", 3) == 0))
        return reader_fail(c->r, "date math is not available; write the date");
    add_quoted(value, text, len);
    gx_text alone = {0}; /* a condition with this bound */
    bool good = add_name(c, &alone, name);
    if (good) {
        add_quoted(&alone, text, len);
        good = check_condition(c, &alone, 0);
    }
    free(alone.bytes);
    if (good)
        reader_leave(c->r);
    return good;
}

static bool read_range(context *c, const json_t *query, dsl_query *out)
{
    const json_t *bounds = NULL;
    const char *name = only_member(c, query, &bounds);
    gx_text low = {0}, high = {0}, *t = &out->conditions;
    bool low_open, high_open;
    if (!name)
        return false;
    reader_enter(c->r, name, 0);
    if (!json_is_object(bounds))
        return reader_fail(c->r, "an object with gt, gte, lt or lte is expected");
    bool good = check_options(c, bounds, "gt|gte|lt|lte") &&
                read_bound(c, name, bounds, "gte", "gt", &low, &low_open) &&
                read_bound(c, name, bounds, "lte", "lt", &high, &high_open) && add_name(c, t, name);
    if (good) {
        gx_text_add_string(t, low_open ? "{" : "[");
        add_text(t, &low);
        gx_text_add_string(t, " TO ");
        add_text(t, &high);
        gx_text_add_string(t, high_open ? "}" : "]");
        reader_leave(c->r);
    }
    free(low.bytes);
    free(high.bytes);
    return good;
}

/* ---- words ---- */

static bool may_score(context *c, const char *name)
{
    return c->scores || reader_fail(c->r, "'%s' finds words, which score; it stands under must or should", name);
}

/* What stands beside the text of a match. */
typedef struct match_options {
    const json_t *text;
    gx_op op;
    double boost;
} match_options;

static bool read_match_text(reader *r, const json_t *value, void *to)
{
    ((match_options *)to)->text = value;
    return json_is_string(value) || json_is_number(value) || json_is_boolean(value) ||
           reader_fail(r, "a text is expected");
}

static bool read_match_operator(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    if (!reader_string(r, value, &text, &len))
        return false;
    const int i = gx_word_index("or|and|OR|AND", text, len);
    ((match_options *)to)->op = i % 2 ? GX_OP_AND : GX_OP_OR;
    return i >= 0 || reader_fail(r, "'%.40s' is neither or nor and", text);
}

static bool read_boost(reader *r, const json_t *value, void *to)
{
    double *boost = &((match_options *)to)->boost;
    return reader_number(r, value, boost) &&
           ((*boost > 0 && *boost <= 1e6) || reader_fail(r, "a boost is above 0 and at most 1e6"));
}

/* 1, or all of the words. */
static bool read_minimum(reader *r, const json_t *value, void *to)
{
    match_options *o = to;
    const char *text = json_string_value(value);
    if (text && strcmp(text, "100%") == 0)
        o->op = GX_OP_AND;
    else if (!(text && strcmp(text, "1") == 0) && !(json_is_integer(value) && json_integer_value(value) == 1))
        return reader_fail(r, "only 1 and \"100%%\" are available");
    return true;
}

static const member match_members[] = {
    {"query", read_match_text},
    {"operator", read_match_operator},
    {"boost", read_boost},
    {"minimum_should_match", read_minimum},
};

/* Words of the text by that name: of one field of the index, or of all text. */
static bool use_field(context *c, const char *name, const char **field)
{
    const bool one = elastic_is_field(c->x->at->ix, name);
    *field = one ? name : NULL;
    return one ? dsl_use_each(c->r, c->fields) : dsl_use_text(c->r, c->fields);
}

/* field: in which alone the words are sought, or NULL. */
static bool set_words(context *c, const match_options *o, const char *field, dsl_query *out)
{
    char buf[64];
    size_t len, n;
    const char *text = reader_scalar(c->r, o->text, buf, &len);
    if (field)
        gx_text_add_format(&out->words, "%s:", field);
    if (!text || !add_words(c, &out->words, text, len, o->op, &n))
        return false;
    if (n == 0) {
        set_nothing(out);
        return true;
    }
    if (o->boost != 1)
        gx_text_add_format(&out->words, "^%.9g", o->boost);
    else if (json_is_string(o->text) && !field) {
        out->plain = text;
        out->plain_len = len;
        out->op = o->op;
    }
    return true;
}

static bool read_match(context *c, const json_t *query, dsl_query *out)
{
    match_options o = {.op = GX_OP_OR, .boost = 1};
    const json_t *value = NULL;
    const char *name = only_member(c, query, &value);
    if (!name)
        return false;
    reader_enter(c->r, name, 0);
    if (json_is_object(value)) {
        if (!reader_object(c->r, value, match_members, sizeof match_members / sizeof *match_members, &o))
            return false;
        if (!o.text)
            return reader_fail(c->r, "'query' is missing");
    } else if (!read_match_text(c->r, value, &o)) {
        return false;
    }
    const char *field;
    if (!is_text(c, name)) { /* of an attribute: the value itself */
        if (!add_equal(c, &out->conditions, name, o.text))
            return false;
    } else if (!may_score(c, "match") || !use_field(c, name, &field) || !set_words(c, &o, field, out)) {
        return false;
    }
    reader_leave(c->r);
    return true;
}

/* ---- phrases ---- */

typedef struct phrase_options {
    const json_t *text;
    uint64_t slop;
    double boost;
    bool prefix; /* the last word is the beginning of one */
} phrase_options;

static bool read_phrase_text(reader *r, const json_t *value, void *to)
{
    ((phrase_options *)to)->text = value;
    return json_is_string(value) || reader_fail(r, "a text is expected");
}

static bool read_phrase_slop(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 0, 10000, &((phrase_options *)to)->slop);
}

static bool read_phrase_boost(reader *r, const json_t *value, void *to)
{
    double *boost = &((phrase_options *)to)->boost;
    return reader_number(r, value, boost) &&
           ((*boost > 0 && *boost <= 1e6) || reader_fail(r, "a boost is above 0 and at most 1e6"));
}

/* The phrase in the boolean syntax. */
static void add_phrase(gx_text *t, const char *text, size_t len, const phrase_options *o)
{
    gx_text_add_string(t, "\"");
    for (size_t i = 0; i < len; ++i) {
        if (strchr("\"\\*", text[i]) && text[i])
            gx_text_add_string(t, "\\");
        gx_text_add(t, &text[i], 1);
    }
    gx_text_add_string(t, o->prefix ? "*\"" : "\"");
    if (o->slop)
        gx_text_add_format(t, "~%llu", (unsigned long long)o->slop);
    if (o->boost != 1)
        gx_text_add_format(t, "^%.9g", o->boost);
}

static bool set_phrase(context *c, const phrase_options *o, dsl_query *out)
{
    const match_options as_words = {.text = o->text, .op = GX_OP_AND, .boost = o->boost};
    const char *text = json_string_value(o->text);
    const size_t len = json_string_length(o->text);
    gx_index_stats stats = {.size = sizeof stats};
    gx_text_term *terms;
    size_t n;
    gx_error err = {0};
    gx_index_get_quick_stats(c->x->at->ix, &stats);
    if (!stats.positions)
        return reader_fail(c->r, "phrases need positions, which this index lacks; build it with --positions");
    if (gx_index_analyze_query(c->x->at->ix, text, len, &terms, &n, &err))
        return fault_set(&c->x->fault, 503, "%s", err.text);
    free(terms);
    if (n < 2 || !strpbrk(text, " \t\r\n")) /* one word of a text */
        return dsl_use_text(c->r, c->fields) && set_words(c, &as_words, NULL, out);
    add_phrase(&out->words, text, len, o);
    return true;
}

static void add_pattern(gx_text *t, const char *text, size_t len, const char *kept);

/* A phrase whose last word is a prefix; of one word that prefix. */
static bool set_phrase_prefix(context *c, const phrase_options *o, dsl_query *out)
{
    const char *text = json_string_value(o->text);
    size_t len = json_string_length(o->text);
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(c->x->at->ix, &stats);
    while (len && strchr(" \t\r\n", text[len - 1]))
        --len;
    if (len == 0)
        return reader_fail(c->r, "a word is expected");
    if (o->slop)
        return reader_fail(c->r, "'slop' is not available beside a prefix in this version of gpuidx");
    if (memchr(text, ' ', len)) {
        if (!stats.positions)
            return reader_fail(c->r, "phrases need positions, which this index lacks; build it with --positions");
        add_phrase(&out->words, text, len, o);
        return true;
    }
    add_pattern(&out->words, text, len, "");
    gx_text_add_string(&out->words, "*");
    if (o->boost != 1)
        gx_text_add_format(&out->words, "^%.9g", o->boost);
    return true;
}

static bool read_phrase_limit(reader *r, const json_t *value, void *to)
{
    uint64_t n; /* the server's own is 50, as Elasticsearch's */
    (void)to;
    return reader_count(r, value, 50, 50, &n);
}

static bool read_match_phrase_of(context *c, const json_t *query, bool prefix, dsl_query *out)
{
    static const member members[] = {
        {"query", read_phrase_text},
        {"slop", read_phrase_slop},
        {"boost", read_phrase_boost},
        {"max_expansions", read_phrase_limit}};
    phrase_options o = {.boost = 1, .prefix = prefix};
    const json_t *value = NULL;
    const char *name = only_member(c, query, &value);
    if (!name)
        return false;
    reader_enter(c->r, name, 0);
    if (!is_text(c, name))
        return no_field(c, name);
    if (elastic_is_field(c->x->at->ix, name))
        return reader_fail(c->r, "a phrase of one field is not available");
    if (json_is_object(value)) {
        if (!reader_object(c->r, value, members, prefix ? 4 : 3, &o))
            return false;
        if (!o.text)
            return reader_fail(c->r, "'query' is missing");
    } else if (!read_phrase_text(c->r, value, &o)) {
        return false;
    }
    if (!may_score(c, prefix ? "match_phrase_prefix" : "match_phrase") ||
        !(prefix ? set_phrase_prefix(c, &o, out) : set_phrase(c, &o, out)))
        return false;
    reader_leave(c->r);
    return true;
}

static bool read_match_phrase(context *c, const json_t *query, dsl_query *out)
{
    return read_match_phrase_of(c, query, false, out);
}

static bool read_match_phrase_prefix(context *c, const json_t *query, dsl_query *out)
{
    return read_match_phrase_of(c, query, true, out);
}

/* ---- words of several fields ---- */

/* The fields of query_string: one or several names of the text. */
static bool read_text_field(reader *r, const json_t *value, void *to)
{
    const char *name;
    size_t len;
    (void)to;
    return reader_string(r, value, &name, &len) &&
           (elastic_is_text(name) || strcmp(name, "*") == 0 ||
            reader_fail(r,
                        "'%.60s' is no name of all text, which is text, title, contents or _all without a weight; "
                        "write field:word in the query",
                        name));
}

static bool read_text_fields(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_text_field, to);
}

/* What stands in a multi_match: match_options first, which its members are read into. */
typedef struct multi_options {
    match_options match;
    multi_fields fields;
} multi_options;

static bool read_multi_fields(reader *r, const json_t *value, void *to)
{
    return multi_read_fields(r, value, &((multi_options *)to)->fields);
}

static bool read_multi_type(reader *r, const json_t *value, void *to)
{
    return multi_read_type(r, value, &((multi_options *)to)->fields);
}

static bool read_multi_breaker(reader *r, const json_t *value, void *to)
{
    return multi_read_breaker(r, value, &((multi_options *)to)->fields);
}

/* The words by the fields that were read: of one alone as match has them. */
static bool set_multi(context *c, multi_options *o, dsl_query *out)
{
    multi_fields *m = &o->fields;
    if (!multi_settle(c->r, m, o->match.op))
        return false;
    if (!elastic_has_fields(m->ix))
        return dsl_use_text(c->r, c->fields) && set_words(c, &o->match, NULL, out);
    return dsl_use_set(c->r, c->fields, m->set.bytes, m->scoring) && set_words(c, &o->match, NULL, out);
}

static bool read_multi(context *c, const char *kind, const json_t *query, const member *members, size_t n,
                       gx_field_scoring scoring, dsl_query *out)
{
    multi_options o = {{.op = GX_OP_OR, .boost = 1}, {.ix = c->x->at->ix, .scoring = scoring, .breaker = -1}};
    bool good = may_score(c, kind) && reader_object(c->r, query, members, n, &o);
    if (good && !o.match.text)
        good = reader_fail(c->r, "'query' is missing");
    good = good && set_multi(c, &o, out);
    free(o.fields.set.bytes);
    return good;
}

static bool read_multi_match(context *c, const json_t *query, dsl_query *out)
{
    static const member members[] = {{"query", read_match_text},
                                     {"fields", read_multi_fields},
                                     {"type", read_multi_type},
                                     {"tie_breaker", read_multi_breaker},
                                     {"operator", read_match_operator},
                                     {"boost", read_boost},
                                     {"minimum_should_match", read_minimum}};
    return read_multi(c, "multi_match", query, members, sizeof members / sizeof *members, GX_FIELDS_BEST, out);
}

static bool read_combined_fields(context *c, const json_t *query, dsl_query *out)
{
    static const member members[] = {{"query", read_match_text},
                                     {"fields", read_multi_fields},
                                     {"operator", read_match_operator},
                                     {"boost", read_boost},
                                     {"minimum_should_match", read_minimum}};
    return read_multi(c, "combined_fields", query, members, sizeof members / sizeof *members, GX_FIELDS_BM25F, out);
}

/* Whether the expression is one of the index; *fields: only where its fields may be named. */
static gx_status try_expression(context *c, const gx_query *q, gx_highlighter **h, bool *fields, gx_error *err)
{
    gx_error why = {0};
    gx_index *by_fields = NULL;
    *fields = false;
    const gx_status st = gx_highlighter_open(h, c->x->at->ix, q, err);
    if (st != GX_EUSAGE || !elastic_has_fields(c->x->at->ix))
        return st;
    const gx_view_options all = GX_VIEW_OPTIONS;
    *fields = gx_index_open_view(&by_fields, c->x->at->ix, &all, &why) == GX_OK;
    const gx_status again = *fields ? gx_highlighter_open(h, by_fields, q, err) : st;
    gx_index_close(by_fields);
    return again;
}

/* A query in our boolean syntax, checked by itself so that it is one expression wherever it is put. */
static bool set_expression(context *c, const char *text, size_t len, gx_op op, dsl_query *out)
{
    gx_highlighter *h = NULL;
    gx_error err = {0};
    const gx_query q = {.size = sizeof q, .kind = GX_QUERY_BOOLEAN, .text = text, .len = len};
    if (op == GX_OP_AND)
        return reader_fail(c->r, "a query_string's words are joined by or; write + before those that must be there");
    bool fields;
    if (try_expression(c, &q, &h, &fields, &err))
        return reader_fail(c->r, "%s", err.text);
    if (fields && !dsl_use_each(c->r, c->fields)) {
        gx_highlighter_close(h);
        return false;
    }
    const bool nothing = gx_highlighter_n_terms(h) == 0 && !memchr(text, ':', len);
    gx_highlighter_close(h);
    if (!dsl_use_text(c->r, c->fields))
        return false;
    if (nothing) {
        set_nothing(out);
        return true;
    }
    gx_text_add_string(&out->words, "(");
    gx_text_add(&out->words, text, len);
    gx_text_add_string(&out->words, ")");
    return true;
}

/* ---- words that stand for several ---- */

typedef struct pattern_options {
    match_options match; /* first: read_boost takes it */
    int distance;        /* of fuzzy; 3: by the word's length */
} pattern_options;

static bool read_fuzziness(reader *r, const json_t *value, void *to)
{
    char buf[64];
    size_t len;
    const char *text = reader_scalar(r, value, buf, &len);
    ((pattern_options *)to)->distance = text ? gx_word_index("0|1|2|AUTO|auto", text, len) : -1;
    return text && (((pattern_options *)to)->distance >= 0 || reader_fail(r, "0, 1, 2 or \"AUTO\" is expected"));
}

static bool read_prefix_length(reader *r, const json_t *value, void *to)
{
    (void)to;
    return (json_is_integer(value) && json_integer_value(value) == 0) || reader_fail(r, "only 0 is available");
}

static bool read_true(reader *r, const json_t *value, void *to)
{
    (void)to;
    return json_is_true(value) || reader_fail(r, "only true is available");
}

static const member pattern_members[] = {
    {"value", read_match_text},    {"boost", read_boost},         {"case_insensitive", read_true},
    {"fuzziness", read_fuzziness}, {"transpositions", read_true}, {"prefix_length", read_prefix_length},
    {"wildcard", read_match_text},
};

/* Letters and digits stay; what else there is stands behind a backslash, but for the signs that `kept` has and what
 * a backslash stands before already. */
static void add_pattern(gx_text *t, const char *text, size_t len, const char *kept)
{
    for (size_t i = 0; i < len; ++i) {
        const char c = text[i];
        const bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (unsigned char)c >= 0x80;
        if (c == '\\' && *kept && i + 1 < len)
            gx_text_add(t, &text[i++], 1);
        else if (!plain && !strchr(kept, c))
            gx_text_add_string(t, "\\");
        gx_text_add(t, &text[i], 1);
    }
}

static void add_regex(gx_text *t, const char *text, size_t len)
{
    gx_text_add_string(t, "/");
    for (size_t i = 0; i < len; ++i) {
        if (text[i] == '/')
            gx_text_add_string(t, "\\");
        else if (text[i] == '\\' && i + 1 < len)
            gx_text_add(t, &text[i++], 1);
        gx_text_add(t, &text[i], 1);
    }
    gx_text_add_string(t, "/");
}

/* {"brand": "son"} or {"brand": {"value": "son"}}: keywords that begin so. */
static bool read_keyword_prefix(context *c, const char *name, const json_t *value, dsl_query *out)
{
    static const member members[] = {{"value", read_match_text}};
    match_options o = {0};
    gx_attribute_info info = {.size = sizeof info};
    const uint32_t number = elastic_attribute(c->x->at->ix, name, &info);
    reader_enter(c->r, name, 0);
    if (number == UINT32_MAX)
        return no_field(c, name);
    if (info.type != GX_ATTRIBUTE_KEYWORD && info.type != GX_ATTRIBUTE_KEYWORDS)
        return reader_fail(c->r, "'%s' is of type %s; 'prefix' is for keywords and the text", name,
                           gx_attribute_type_name(info.type));
    if (!json_is_object(value))
        o.text = value;
    else if (!reader_object(c->r, value, members, 1, &o))
        return false;
    if (!json_is_string(o.text))
        return reader_fail(c->r, "'value' is missing: a text is expected");
    if (json_string_length(o.text) == 0)
        gx_text_add_string(&out->conditions, "has:");
    if (!add_name(c, &out->conditions, name))
        return false;
    if (json_string_length(o.text) == 0)
        --out->conditions.len; /* the colon */
    add_pattern(&out->conditions, json_string_value(o.text), json_string_length(o.text), "");
    gx_text_add_string(&out->conditions, json_string_length(o.text) ? "*" : "");
    reader_leave(c->r);
    return true;
}

/* {"text": "neutr"} or {"text": {"value": "neutr", ...}} */
static bool read_pattern(context *c, const json_t *query, const char *kind, dsl_query *out)
{
    pattern_options o = {.match = {.boost = 1}, .distance = 3};
    const json_t *value = NULL;
    const char *name = only_member(c, query, &value);
    gx_text t = {0};
    if (!name)
        return false;
    if (*kind == 'p' && !elastic_is_text(name))
        return read_keyword_prefix(c, name, value, out);
    if (!may_score(c, kind))
        return false;
    reader_enter(c->r, name, 0);
    if (!is_text(c, name))
        return reader_fail(c->r, "'%s' is no text; '%s' finds words of the text", name, kind);
    if (elastic_is_field(c->x->at->ix, name))
        return reader_fail(c->r, "'%s' is of all text, _all, and not of one field", kind);
    if (!json_is_object(value))
        o.match.text = value;
    else if (!reader_object(c->r, value, pattern_members, sizeof pattern_members / sizeof *pattern_members, &o))
        return false;
    if (!json_is_string(o.match.text) || json_string_length(o.match.text) == 0)
        return reader_fail(c->r, "'value' is missing: a text is expected");
    const char *text = json_string_value(o.match.text);
    const size_t len = json_string_length(o.match.text);
    if (*kind == 'r')
        add_regex(&t, text, len);
    else
        add_pattern(&t, text, len, *kind == 'w' ? "*?" : "");
    gx_text_add_string(&t, *kind == 'p'   ? "*"
                           : *kind != 'f' ? ""
                                          : (const char *[]){"~0", "~1", "~2", "~", "~"}[o.distance]);
    if (o.match.boost != 1)
        gx_text_add_format(&t, "^%.9g", o.match.boost);
    const bool good = t.failed ? reader_fail(c->r, "no memory") : set_expression(c, t.bytes, t.len, GX_OP_OR, out);
    free(t.bytes);
    if (good)
        reader_leave(c->r);
    return good;
}

static bool read_prefix(context *c, const json_t *query, dsl_query *out)
{
    return read_pattern(c, query, "prefix", out);
}

static bool read_wildcard(context *c, const json_t *query, dsl_query *out)
{
    return read_pattern(c, query, "wildcard", out);
}

static bool read_regexp(context *c, const json_t *query, dsl_query *out)
{
    return read_pattern(c, query, "regexp", out);
}

static bool read_fuzzy(context *c, const json_t *query, dsl_query *out)
{
    return read_pattern(c, query, "fuzzy", out);
}

static bool read_query_string(context *c, const json_t *query, dsl_query *out)
{
    static const member members[] = {{"query", read_match_text},
                                     {"fields", read_text_fields},
                                     {"default_field", read_text_field},
                                     {"default_operator", read_match_operator}};
    match_options o = {.op = GX_OP_OR};
    if (!may_score(c, "query_string") || !reader_object(c->r, query, members, sizeof members / sizeof *members, &o))
        return false;
    if (!json_is_string(o.text))
        return reader_fail(c->r, "'query' is missing");
    reader_enter(c->r, "query", 0);
    if (!set_expression(c, json_string_value(o.text), json_string_length(o.text), o.op, out))
        return false;
    reader_leave(c->r);
    return true;
}

bool dsl_read_string(exchange *x, const char *text, gx_op op, dsl_query *out)
{
    reader r = {.fault = &x->fault, .body = "", .first_line = 0};
    *out = (dsl_query){0};
    context c = {&r, x, true, &out->fields};
    reader_enter(&r, "q", 0);
    const bool good = set_expression(&c, text, strlen(text), op, out);
    x->fault.line = x->fault.column = 0;
    return good;
}

static bool read_match_all(context *c, const json_t *query, dsl_query *out)
{
    (void)out;
    if (!json_is_object(query))
        return reader_fail(c->r, "an object is expected");
    return check_options(c, query, "");
}

static bool read_match_none(context *c, const json_t *query, dsl_query *out)
{
    set_nothing(out);
    return read_match_all(c, query, out);
}

/* ---- bool ---- */

/* What the clauses of a bool have come to. */
typedef struct clauses {
    gx_text words;             /* "+(a) -(b) (c)", in the boolean syntax */
    gx_text conditions;        /* "(a) AND NOT (b)" */
    gx_text either;            /* "(a) (b)": of should, words among them */
    gx_text either_conditions; /* "(a) OR (b)": of should, where none has words */
    size_t n_words, n_must, n_should, n_either_words;
    bool required;   /* a word of `words` must be there */
    bool everything; /* a clause of should matches every document */
    const char *plain;
    size_t plain_len;
    gx_op op;
} clauses;

/* The query as one expression of the boolean syntax: "+(words) +(conditions)". */
static void add_whole(gx_text *t, const dsl_query *q)
{
    const bool both = !is_empty(&q->words) && !is_empty(&q->conditions);
    if (both)
        gx_text_add_string(t, "+");
    if (!is_empty(&q->words)) {
        gx_text_add_string(t, "(");
        add_text(t, &q->words);
        gx_text_add_string(t, both ? ") +" : ")");
    }
    if (!is_empty(&q->conditions)) {
        gx_text_add_string(t, "(");
        add_text(t, &q->conditions);
        gx_text_add_string(t, ")");
    }
}

static void add_must(clauses *b, const dsl_query *q)
{
    ++b->n_must;
    if (!is_empty(&q->conditions))
        join(&b->conditions, " AND ", &q->conditions);
    if (is_empty(&q->words))
        return;
    gx_text_add_string(&b->words, is_empty(&b->words) ? "+(" : " +(");
    add_text(&b->words, &q->words);
    gx_text_add_string(&b->words, ")");
    b->required = true;
    b->plain = b->n_words++ ? NULL : q->plain;
    b->plain_len = q->plain_len;
    b->op = q->op;
}

static void add_must_not(clauses *b, const dsl_query *q)
{
    if (is_empty(&q->words) && is_empty(&q->conditions)) { /* not everything: nothing */
        gx_text nothing = {0};
        gx_text_add_string(&nothing, NOTHING);
        join(&b->conditions, " AND ", &nothing);
        free(nothing.bytes);
    } else if (is_empty(&q->words)) {
        gx_text_add_string(&b->conditions, is_empty(&b->conditions) ? "NOT (" : " AND NOT (");
        add_text(&b->conditions, &q->conditions);
        gx_text_add_string(&b->conditions, ")");
    } else {
        gx_text_add_string(&b->words, is_empty(&b->words) ? "-(" : " -(");
        add_whole(&b->words, q);
        gx_text_add_string(&b->words, ")");
        b->plain = NULL;
        b->n_words += 2; /* more than a plain text */
    }
}

static void add_should(clauses *b, const dsl_query *q)
{
    ++b->n_should;
    if (is_empty(&q->words) && is_empty(&q->conditions)) {
        b->everything = true;
        return;
    }
    gx_text_add_string(&b->either, is_empty(&b->either) ? "(" : " (");
    add_whole(&b->either, q);
    gx_text_add_string(&b->either, ")");
    if (!is_empty(&q->words))
        ++b->n_either_words;
    else if (!is_empty(&q->conditions))
        join(&b->either_conditions, " OR ", &q->conditions);
}

typedef void add_clause(clauses *b, const dsl_query *q);

/* The clauses under one member of a bool: an object, or an array of them. */
static bool read_clauses(context *c, const json_t *bool_query, const char *name, bool scores, add_clause *add,
                         clauses *to)
{
    const json_t *value = json_object_get(bool_query, name);
    const bool many = json_is_array(value), before = c->scores;
    if (!value)
        return true;
    reader_enter(c->r, name, 0);
    c->scores = c->scores && scores;
    for (size_t i = 0; i < (many ? json_array_size(value) : 1); ++i) {
        dsl_query q = {0};
        if (many)
            reader_enter(c->r, NULL, i);
        const bool good = read_any(c, many ? json_array_get(value, i) : value, &q);
        if (good)
            add(to, &q);
        dsl_free(&q);
        if (!good)
            return false;
        if (many)
            reader_leave(c->r);
    }
    c->scores = before;
    reader_leave(c->r);
    return true;
}

/* How many of should must match: 0 or 1. */
static bool read_should_minimum(context *c, const json_t *query, const clauses *b, bool *needed)
{
    const json_t *value = json_object_get(query, "minimum_should_match");
    *needed = b->n_must == 0 && b->n_should > 0;
    if (!value)
        return true;
    const char *text = json_string_value(value);
    const long n = text ? (strcmp(text, "1") == 0   ? 1
                           : strcmp(text, "0") == 0 ? 0
                                                    : -1)
                        : (json_is_integer(value) ? (long)json_integer_value(value) : -1);
    reader_enter(c->r, "minimum_should_match", 0);
    if (n < 0 || n > 1)
        return reader_fail(c->r, "only 0 and 1 are available");
    reader_leave(c->r);
    *needed = n == 1;
    return true;
}

/* Words none of which must be there select nothing by themselves: conditions that must be met stand beside them, or one
 * that every document meets. */
static bool add_required(context *c, clauses *b)
{
    gx_attribute_info info = {.size = sizeof info};
    gx_text_add_string(&b->words, " +(");
    if (!is_empty(&b->conditions))
        add_text(&b->words, &b->conditions);
    else if (gx_index_get_attribute(c->x->at->ix, 0, &info))
        return reader_fail(c->r, "a bool none of whose words must be there needs an index with attributes");
    else
        gx_text_add_format(&b->words, "has:%.*s OR NOT has:%.*s", (int)info.name_len, info.name, (int)info.name_len,
                           info.name);
    gx_text_add_string(&b->words, ")");
    return true;
}

/* Add what stands under should. */
static void finish_should(clauses *b, bool needed)
{
    needed = needed && !b->everything;
    if (b->n_either_words == 0) { /* conditions: where they are not needed they change nothing */
        if (needed && !is_empty(&b->either_conditions))
            join(&b->conditions, " AND ", &b->either_conditions);
        return;
    }
    gx_text_add_string(&b->words, is_empty(&b->words) ? "" : " ");
    gx_text_add_string(&b->words, needed ? "+(" : "");
    add_text(&b->words, &b->either);
    gx_text_add_string(&b->words, needed ? ")" : "");
    b->required = b->required || needed;
    b->n_words += 2; /* more than a plain text */
}

static bool finish_bool(context *c, clauses *b, bool needed, dsl_query *out)
{
    finish_should(b, needed);
    if (!is_empty(&b->words) && !b->required && !add_required(c, b))
        return false;
    add_text(&out->words, &b->words);
    add_text(&out->conditions, &b->conditions);
    if (b->n_words == 1) {
        out->plain = b->plain;
        out->plain_len = b->plain_len;
        out->op = b->op;
    }
    return true;
}

static bool read_bool(context *c, const json_t *query, dsl_query *out)
{
    clauses b = {0};
    bool needed, good = false;
    if (!json_is_object(query))
        return reader_fail(c->r, "an object is expected");
    good = check_options(c, query, "must|filter|should|must_not|minimum_should_match") &&
           read_clauses(c, query, "must", true, add_must, &b) &&
           read_clauses(c, query, "filter", false, add_must, &b) &&
           read_clauses(c, query, "should", true, add_should, &b) &&
           read_clauses(c, query, "must_not", true, add_must_not, &b) && read_should_minimum(c, query, &b, &needed) &&
           finish_bool(c, &b, needed, out);
    free(b.words.bytes);
    free(b.conditions.bytes);
    free(b.either.bytes);
    free(b.either_conditions.bytes);
    return good;
}

/* Conditions only; their constant score is no part of ours. */
static bool read_constant_score(context *c, const json_t *query, dsl_query *out)
{
    const bool before = c->scores;
    if (!json_is_object(query) || !json_object_get(query, "filter"))
        return reader_fail(c->r, "an object with 'filter' is expected");
    if (!check_options(c, query, "filter"))
        return false;
    reader_enter(c->r, "filter", 0);
    c->scores = false;
    if (!read_any(c, json_object_get(query, "filter"), out))
        return false;
    c->scores = before;
    reader_leave(c->r);
    return true;
}

/* ---- all of them ---- */

typedef bool read_query_fn(context *c, const json_t *query, dsl_query *out);
static const struct {
    const char *name;
    read_query_fn *read; /* NULL: refused by name */
} kinds[] = {
    {"match", read_match},
    {"match_all", read_match_all},
    {"match_none", read_match_none},
    {"match_phrase", read_match_phrase},
    {"multi_match", read_multi_match},
    {"combined_fields", read_combined_fields},
    {"query_string", read_query_string},
    {"bool", read_bool},
    {"constant_score", read_constant_score},
    {"term", read_term},
    {"terms", read_terms},
    {"range", read_range},
    {"exists", read_exists},
    {"ids", read_ids},
    {"match_phrase_prefix", read_match_phrase_prefix},
    {"match_bool_prefix", NULL},
    {"simple_query_string", NULL},
    {"prefix", read_prefix},
    {"wildcard", read_wildcard},
    {"regexp", read_regexp},
    {"fuzzy", read_fuzzy},
    {"dis_max", NULL},
    {"boosting", NULL},
    {"function_score", NULL},
    {"script_score", NULL},
    {"nested", NULL},
    {"more_like_this", NULL},
    {"knn", NULL},
    {"geo_distance", NULL},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static bool read_any(context *c, const json_t *query, dsl_query *out)
{
    const json_t *value = NULL;
    const char *name = only_member(c, query, &value);
    size_t i = 0;
    if (!name)
        return false;
    while (i < N_KINDS && strcmp(kinds[i].name, name))
        ++i;
    reader_enter(c->r, name, 0);
    if (i == N_KINDS)
        return reader_fail(c->r, "unknown query [%.60s]", name);
    if (!kinds[i].read)
        return reader_fail(c->r, "the query [%.60s] is not available in this version of gpuidx", name);
    if (!kinds[i].read(c, value, out))
        return false;
    reader_leave(c->r);
    return true;
}

static bool read_whole(context *c, const json_t *query, dsl_query *out)
{
    *out = (dsl_query){0};
    if (!read_any(c, query, out))
        return false;
    return !(out->words.failed || out->conditions.failed) || fault_set(c->r->fault, 503, "no memory for the query");
}

bool dsl_read(reader *r, exchange *x, const json_t *query, dsl_query *out)
{
    return read_whole(&(context){r, x, true, &out->fields}, query, out);
}

bool dsl_read_filter(reader *r, exchange *x, const json_t *query, dsl_query *out)
{
    return read_whole(&(context){r, x, false, &out->fields}, query, out);
}
