/* openai.c: OpenAI's POST /v1/vector_stores/{id}/search: an index is a vector store, a document a file, and an
 * attribute an attribute. Scores are those of the index's formula, which have no upper bound. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols.h"

typedef struct asking {
    exchange *x;
    const json_t *query, *filters;
    gx_text text;   /* the queries, joined */
    gx_text filter; /* as an expression */
    uint64_t k;
    double threshold;
} asking;

void openai_fault(exchange *x)
{
    const fault *f = &x->fault;
    gx_text *t = &x->reply;
    gx_text_add_string(t, "{\"error\":{\"message\":");
    gx_text_add_json(t, f->text, strlen(f->text));
    gx_text_add_format(t, ",\"type\":\"%s\",\"param\":", f->status < 500 ? "invalid_request_error" : "server_error");
    if (f->member[0])
        gx_text_add_json(t, f->member, strlen(f->member));
    else
        gx_text_add_string(t, "null");
    gx_text_add_string(t, ",\"code\":null");
    if (f->line)
        gx_text_add_format(t, ",\"line\":%u,\"column\":%u", f->line, f->column);
    gx_text_add_string(t, "}}\n");
}

static void free_asking(void *extra)
{
    asking *a = extra;
    free(a->text.bytes);
    free(a->filter.bytes);
    free(a);
}

/* ---- filters ---- */

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

/* key:"value", or a range where there are brackets: key:["value" TO *] */
static bool add_condition(reader *r, gx_text *t, const char *key, const char *before, const json_t *value,
                          const char *after)
{
    char buf[64];
    size_t len;
    const char *text = reader_scalar(r, value, buf, &len);
    if (!text)
        return false;
    gx_text_add_format(t, "%s:%s", key, before);
    add_quoted(t, text, len);
    gx_text_add_string(t, after);
    return true;
}

static bool add_any(reader *r, gx_text *t, const char *key, const json_t *values)
{
    if (!json_is_array(values) || json_array_size(values) == 0)
        return reader_fail(r, "an array with a value is expected");
    for (size_t i = 0; i < json_array_size(values); ++i) {
        reader_enter(r, NULL, i);
        gx_text_add_string(t, i ? " OR " : "");
        if (!add_condition(r, t, key, "", json_array_get(values, i), ""))
            return false;
        reader_leave(r);
    }
    return true;
}

/* What the index says of a condition is told at its place. */
static bool check_condition(reader *r, const asking *a, const gx_text *t)
{
    gx_filter *f = NULL;
    gx_error err = {0};
    const gx_status st = gx_filter_open(&f, a->x->at->ix, t->bytes, t->len, NULL, &err);
    gx_filter_close(f);
    return st == GX_OK || reader_fail_filter(r, err.text);
}

static bool read_comparison(reader *r, asking *a, const json_t *filter, int kind)
{
    static const char *const forms[][3] = {{"", "", ""},        {"NOT ", "", ""},    {"", "{", " TO *]"},
                                           {"", "[", " TO *]"}, {"", "[* TO ", "}"}, {"", "[* TO ", "]"},
                                           {"", "", ""},        {"NOT ", "", ""}};
    const json_t *key = json_object_get(filter, "key"), *value = json_object_get(filter, "value");
    gx_text t = {0};
    uint32_t number;
    gx_error err = {0};
    if (!json_is_string(key) || !value)
        return reader_fail(r, "a comparison has 'type', 'key' and 'value'");
    if (gx_index_find_attribute(a->x->at->ix, json_string_value(key), json_string_length(key), &number, &err)) {
        reader_enter(r, "key", 0);
        return reader_fail(r, "%s", err.text);
    }
    reader_enter(r, "value", 0);
    gx_text_add_format(&t, "(%s(", forms[kind][0]);
    const bool good = (kind >= 6 ? add_any(r, &t, json_string_value(key), value)
                                 : add_condition(r, &t, json_string_value(key), forms[kind][1], value, forms[kind][2]));
    gx_text_add_string(&t, "))");
    const bool checked = good && check_condition(r, a, &t);
    if (checked) {
        gx_text_add(&a->filter, t.bytes, t.len);
        reader_leave(r);
    }
    free(t.bytes);
    return checked;
}

static bool read_filter(reader *r, asking *a, const json_t *filter);

static bool read_compound(reader *r, asking *a, const json_t *filter, bool any)
{
    const json_t *parts = json_object_get(filter, "filters");
    if (!json_is_array(parts) || json_array_size(parts) == 0)
        return reader_fail(r, "'%s' has an array 'filters'", any ? "or" : "and");
    reader_enter(r, "filters", 0);
    gx_text_add_string(&a->filter, "(");
    for (size_t i = 0; i < json_array_size(parts); ++i) {
        reader_enter(r, NULL, i);
        gx_text_add_string(&a->filter, i == 0 ? "" : any ? " OR " : " AND ");
        if (!read_filter(r, a, json_array_get(parts, i)))
            return false;
        reader_leave(r);
    }
    gx_text_add_string(&a->filter, ")");
    reader_leave(r);
    return true;
}

static bool check_names(reader *r, const json_t *object, const char *names)
{
    for (void *i = json_object_iter((json_t *)object); i; i = json_object_iter_next((json_t *)object, i)) {
        const char *name = json_object_iter_key(i);
        reader_enter(r, name, 0);
        if (gx_word_index(names, name, strlen(name)) < 0)
            return reader_fail(r, "there is no member '%.60s' here; there are %s", name, names);
        reader_leave(r);
    }
    return true;
}

static bool read_filter(reader *r, asking *a, const json_t *filter)
{
    const json_t *type = json_object_get(filter, "type");
    if (!json_is_object(filter) || !json_is_string(type))
        return reader_fail(r, "a filter is an object with a 'type'");
    const char *word = json_string_value(type);
    const int kind = gx_word_index("eq|ne|gt|gte|lt|lte|in|nin", word, strlen(word));
    const int both = gx_word_index("and|or", word, strlen(word));
    if (both >= 0)
        return check_names(r, filter, "type|filters") && read_compound(r, a, filter, both == 1);
    if (kind >= 0)
        return check_names(r, filter, "type|key|value") && read_comparison(r, a, filter, kind);
    reader_enter(r, "type", 0);
    return reader_fail(r, "'%.40s' is none of eq, ne, gt, gte, lt, lte, in, nin, and, or", word);
}

/* ---- the body ---- */

static bool add_query(reader *r, const json_t *value, void *to)
{
    asking *a = to;
    const char *text;
    size_t len;
    if (!reader_string(r, value, &text, &len))
        return false;
    gx_text_add_string(&a->text, a->text.len ? " " : "");
    gx_text_add(&a->text, text, len);
    return true;
}

static bool read_query(reader *r, const json_t *value, void *to)
{
    ((asking *)to)->query = value;
    if (!json_is_array(value))
        return add_query(r, value, to);
    return json_array_size(value) ? reader_array(r, value, add_query, to) : reader_fail(r, "there is no query in it");
}

static bool read_filters(reader *r, const json_t *value, void *to)
{
    asking *a = to;
    a->filters = json_is_null(value) ? NULL : value;
    return !a->filters || read_filter(r, a, value);
}

static bool read_k(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 1, 50, &((asking *)to)->k);
}

static bool read_rewrite(reader *r, const json_t *value, void *to)
{
    bool rewrite;
    (void)to;
    return reader_bool(r, value, &rewrite) && (!rewrite || reader_fail(r, "queries are not rewritten; leave it out"));
}

static bool read_threshold(reader *r, const json_t *value, void *to)
{
    return reader_number(r, value, &((asking *)to)->threshold);
}

static bool read_ranker(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    (void)to;
    return reader_string(r, value, &text, &len) &&
           (gx_word_index("auto|none", text, len) >= 0 || reader_fail(r, "'%.60s' is neither auto nor none", text));
}

static bool read_ranking(reader *r, const json_t *value, void *to)
{
    static const member members[] = {
        {"score_threshold", read_threshold}, {"ranker", read_ranker}, {"hybrid_search", NULL}};
    return json_is_null(value) || reader_object(r, value, members, 3, to);
}

void openai_search(exchange *x)
{
    static const member members[] = {{"query", read_query},
                                     {"filters", read_filters},
                                     {"max_num_results", read_k},
                                     {"rewrite_query", read_rewrite},
                                     {"ranking_options", read_ranking}};
    reader r = {0};
    gx_error err = {0};
    asking *a = exchange_open_index(x, x->index) ? calloc(1, sizeof *a) : NULL;
    if (!a) {
        fault_set(&x->fault, 503, "no memory for the request");
        return;
    }
    *a = (asking){.x = x, .k = 10, .threshold = -INFINITY};
    x->extra = a;
    x->free_extra = free_asking;
    plan *p = native_new_plan(x);
    if (p && exchange_read_json(x, &r) && reader_object(&r, r.root, members, sizeof members / sizeof *members, a)) {
        if (!a->query)
            reader_fail(&r, "'query' is missing");
        else if (a->text.failed || a->filter.failed)
            fault_set(&x->fault, 503, "no memory for the request");
        else if (native_open_filter(x, a->filters ? a->filter.bytes : NULL, a->filter.len, &p->filter, &err))
            fault_set(&x->fault, 500, "the filter: %s", err.text);
        search *s = !x->fault.status && native_settle(x, p, a->k) ? exchange_add_search(x, 0) : NULL;
        if (s) {
            s->text = a->text.bytes ? a->text.bytes : "";
            s->len = a->text.len;
        }
    }
    reader_close(&r);
}

/* ---- the answer ---- */

static gx_status put_result(exchange *x, uint64_t docid, double score, gx_values *values, char **text, size_t *cap,
                            gx_error *err)
{
    const gx_index *ix = x->at->ix;
    gx_text *t = &x->reply;
    size_t len, id_len;
    const char *id = gx_index_doc_id(ix, docid, &id_len), *title = gx_index_doc_title(ix, docid, &len);
    gx_text_add_string(t, "{\"file_id\":");
    gx_text_add_json(t, id, id_len);
    gx_text_add_string(t, ",\"filename\":");
    gx_text_add_json(t, len ? title : id, len ? len : id_len);
    gx_text_add_string(t, ",\"score\":");
    gx_text_add_score(t, score);
    gx_text_add_string(t, ",\"attributes\":");
    gx_status st = gx_text_add_attributes(t, ix, docid, NULL, gx_index_n_attributes(ix), values, err);
    gx_text_add_string(t, ",\"content\":[");
    if (st == GX_OK)
        st = gx_index_doc_text(ix, docid, text, cap, &len, err);
    if (st == GX_OK) {
        gx_text_add_string(t, "{\"type\":\"text\",\"text\":");
        gx_text_add_json(t, *text, len);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "]}");
    return st == GX_ENOTFOUND ? GX_OK : st;
}

void openai_answer(exchange *x)
{
    const asking *a = x->extra;
    const search *s = &x->searches[0];
    gx_text *t = &x->reply;
    gx_values values = {0};
    gx_error err = {0};
    char *text = NULL, *query = json_dumps(a->query, JSON_ENCODE_ANY);
    size_t cap = 0;
    gx_status st = query ? GX_OK : GX_ENOMEM;
    const bool many = json_is_array(a->query);
    gx_text_add_format(t, "{\"object\":\"vector_store.search_results.page\",\"search_query\":%s%s%s,\"data\":[",
                       many ? "" : "[", query ? query : "", many ? "" : "]");
    for (uint32_t i = 0; i < s->n_hits && st == GX_OK && s->scores[i] >= a->threshold; ++i) {
        gx_text_add_string(t, i ? "," : "");
        st = put_result(x, s->docids[i], s->scores[i], &values, &text, &cap, &err);
    }
    gx_text_add_string(t, "],\"has_more\":false,\"next_page\":null}\n");
    free(query);
    free(text);
    gx_values_free(&values);
    if (st != GX_OK)
        fault_set(&x->fault, http_status(st), "%s", err.text);
    else
        exchange_reply(x, 200);
}
