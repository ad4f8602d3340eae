/* mcp.c: the Model Context Protocol: two tools, search and fetch, whose answers keep to a number of characters.
 *
 * A message of JSON-RPC is the body of a POST, or a line of standard input. Each is answered from itself alone: there
 * are no sessions. What a tool refuses is an answer that says so, with the argument's name, so that a model can mend
 * its call; what is no message of the protocol is an error of JSON-RPC. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/access.h"
#include "tools/serve/protocols.h"
#include "tools/serve/searches.h"

enum { PARSE_ERROR = -32700, NO_REQUEST = -32600, NO_METHOD = -32601, BAD_PARAMS = -32602, OTHER = -32000 };
enum { MOST_RESULTS = 100, DEFAULT_RESULTS = 10, LEAST_CHARS = 200, SNIPPET_WORDS = 60 };

typedef struct call {
    exchange *x;
    const json_t *id, *params, *arguments; /* NULL: absent */
    const char *method, *name;
    int code;       /* of an error of JSON-RPC */
    bool is_tool;   /* a fault is told as the tool's answer */
    bool is_answer; /* the message answers one that was never sent */
    const char *index, *query, *document, *filter, *fields;
    size_t index_len, query_len, document_len, filter_len, fields_len;
    uint64_t k, offset, max_chars;
} call;

static call *call_of(const exchange *x)
{
    return x->extra;
}

/* ---- replies ---- */

static void put_id(gx_text *t, const json_t *id)
{
    char *text = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;
    gx_text_add_string(t, text ? text : "null");
    free(text);
}

static void begin_result(exchange *x)
{
    gx_text_add_string(&x->reply, "{\"jsonrpc\":\"2.0\",\"id\":");
    put_id(&x->reply, call_of(x) ? call_of(x)->id : NULL);
    gx_text_add_string(&x->reply, ",\"result\":");
}

/* A tool's answer: one text. */
static void reply_text(exchange *x, const char *text, size_t len, bool is_error)
{
    begin_result(x);
    gx_text_add_string(&x->reply, "{\"content\":[{\"type\":\"text\",\"text\":");
    gx_text_add_json(&x->reply, text, len);
    gx_text_add_format(&x->reply, "}],\"isError\":%s}}", is_error ? "true" : "false");
    exchange_reply(x, 200);
}

static void reply_tool_fault(exchange *x)
{
    static const char prefix[] = "params.arguments.";
    const fault *f = &x->fault;
    const char *place = f->member + (strncmp(f->member, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0);
    char text[900];
    if (strcmp(place, "params.arguments") == 0)
        place = "arguments";
    snprintf(text, sizeof text, "%s%s%s", place, *place ? ": " : "", f->text);
    reply_text(x, text, strlen(text), true);
}

void mcp_fault(exchange *x)
{
    const fault *f = &x->fault;
    const call *c = call_of(x);
    gx_text *t = &x->reply;
    if (c && c->is_tool) {
        reply_tool_fault(x);
        return;
    }
    gx_text_add_string(t, "{\"jsonrpc\":\"2.0\",\"id\":");
    put_id(t, c ? c->id : NULL);
    gx_text_add_format(t, ",\"error\":{\"code\":%d,\"message\":", c && c->code ? c->code : OTHER);
    gx_text_add_json(t, f->text, strlen(f->text));
    if (f->line) {
        gx_text_add_format(t, ",\"data\":{\"line\":%u,\"column\":%u,\"member\":", f->line, f->column);
        gx_text_add_json(t, f->member, strlen(f->member));
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "}}");
    if (c && c->code && c->code != PARSE_ERROR && c->code != NO_REQUEST)
        exchange_reply(x, 200);
}

/* ---- characters ---- */

/* The characters of UTF-8. */
static size_t n_chars(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; ++i)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* Where character number n begins; len: there are not so many. */
static size_t find_char(const char *text, size_t len, uint64_t n)
{
    size_t i = 0;
    for (uint64_t k = 0; i < len; ++i)
        if (((unsigned char)text[i] & 0xc0) != 0x80 && k++ == n)
            break;
    return i;
}

/* Add the longest beginning of a text whose JSON has at most `budget` characters; its bytes. */
static size_t add_beginning(gx_text *t, const char *text, size_t len, size_t budget)
{
    gx_text one = {0};
    size_t used = 0, i = 0;
    while (i < len) {
        size_t n = 1;
        while (i + n < len && ((unsigned char)text[i + n] & 0xc0) == 0x80)
            ++n;
        one.len = 0;
        gx_text_add_json(&one, text + i, n);
        const size_t cost = one.failed ? budget + 1 : n_chars(one.bytes, one.len) - 2;
        if (used + cost > budget)
            break;
        gx_text_add(t, one.bytes + 1, one.len - 2);
        used += cost;
        i += n;
    }
    t->failed = t->failed || one.failed;
    free(one.bytes);
    return i;
}

/* ,"name":"..." with at most that many characters of the value. */
static void add_member(gx_text *t, const char *name, const char *text, size_t len, size_t budget)
{
    gx_text_add_format(t, ",\"%s\":\"", name);
    if (add_beginning(t, text, len, budget) < len)
        gx_text_add_string(t, "\xe2\x80\xa6");
    gx_text_add_string(t, "\"");
}

/* ---- search ---- */

/* One result, whose snippet is left out where `bare`. */
static gx_status put_result(gx_text *t, exchange *x, const search *s, uint32_t i, gx_highlighter *marks, bool bare,
                            gx_error *err)
{
    const gx_index *ix = x->at->ix;
    size_t len, cap = 0;
    char *text = NULL;
    gx_snippet snippet = {0};
    const char *id = gx_index_doc_id(ix, s->docids[i], &len);
    gx_text_add_string(t, "{\"id\":");
    gx_text_add_json(t, id, len);
    const char *title = gx_index_doc_title(ix, s->docids[i], &len);
    if (len)
        add_member(t, "title", title, len, bare ? 40 : 200);
    gx_text_add_string(t, ",\"score\":");
    gx_text_add_score(t, s->scores[i]);
    gx_status st = bare ? GX_ENOTFOUND : gx_index_doc_text(ix, s->docids[i], &text, &cap, &len, err);
    if (st == GX_OK)
        st = gx_highlighter_snippet(marks, text, len, SNIPPET_WORDS, &snippet, err);
    if (st == GX_OK) {
        gx_text_add_string(t, ",\"text\":");
        gx_text_add_json(t, text + snippet.begin, snippet.end - snippet.begin);
    }
    gx_text_add_string(t, "}");
    free(text);
    return st == GX_ENOTFOUND ? GX_OK : st;
}

/* {"results":[...],"next_offset":N} in at most that many characters. */
static gx_status put_results(gx_text *t, exchange *x, const search *s, size_t budget, gx_error *err)
{
    enum { TAIL = 40 }; /* characters of what follows the results */
    gx_highlighter *marks = NULL;
    gx_text one = {0};
    uint32_t n = 0;
    bool room = true;
    gx_text_add_string(t, "{\"results\":[");
    size_t used = t->len;
    gx_status st = searches_open_marks(s, &marks, err);
    for (; n < s->n_hits && st == GX_OK && room; n += room) {
        size_t cost = budget;
        for (int bare = 0; bare <= (n == 0) && st == GX_OK && used + cost + TAIL > budget; ++bare) {
            one.len = 0;
            st = put_result(&one, x, s, n, marks, bare, err);
            cost = n_chars(one.bytes, one.len) + (n > 0);
        }
        room = used + cost + TAIL <= budget;
        if (!room)
            break;
        gx_text_add_string(t, n ? "," : "");
        gx_text_add(t, one.bytes, one.len);
        used += cost;
    }
    gx_highlighter_close(marks);
    t->failed = t->failed || one.failed;
    free(one.bytes);
    gx_text_add_string(t, "]");
    if (n < s->n_hits || (n && n == s->plan->wanted))
        gx_text_add_format(t, ",\"next_offset\":%llu", (unsigned long long)s->plan->offset + n);
    gx_text_add_string(t, "}");
    if (st == GX_OK && n == 0 && s->n_hits) {
        *err = (gx_error){GX_EUSAGE, "no result is that short; ask for more characters"};
        st = GX_EUSAGE;
    }
    return st;
}

void mcp_answer(exchange *x)
{
    gx_text t = {0};
    gx_error err = {0};
    const gx_status st = put_results(&t, x, &x->searches[0], call_of(x)->max_chars, &err);
    if (st != GX_OK)
        fault_set(&x->fault, http_status(st), "%s%s", st == GX_EUSAGE ? "max_chars: " : "", err.text);
    else if (t.failed)
        fault_set(&x->fault, 503, "no memory for the answer");
    else
        reply_text(x, t.bytes, t.len, false);
    free(t.bytes);
}

/* ---- fetch ---- */

static gx_status put_attributes(gx_text *t, const gx_index *ix, uint64_t docid, size_t budget, gx_error *err)
{
    gx_values values = {0};
    gx_text one = {0};
    const uint32_t n = gx_index_n_attributes(ix);
    const gx_status st = n ? gx_text_add_attributes(&one, ix, docid, NULL, n, &values, err) : GX_OK;
    if (st == GX_OK && one.len > 2 && n_chars(one.bytes, one.len) <= budget) {
        gx_text_add_string(t, ",\"metadata\":");
        gx_text_add(t, one.bytes, one.len);
    }
    t->failed = t->failed || one.failed;
    free(one.bytes);
    gx_values_free(&values);
    return st;
}

/* {"id","title","metadata","length","offset","text","next_offset"} in at most the budget's characters. */
static gx_status put_document(gx_text *t, exchange *x, uint64_t docid, gx_error *err)
{
    enum { TAIL = 50 };
    const call *c = call_of(x);
    const gx_index *ix = x->at->ix;
    size_t len = 0, cap = 0;
    char *text = NULL;
    gx_status st = gx_index_doc_text(ix, docid, &text, &cap, &len, err);
    const bool stored = st == GX_OK;
    const size_t all = stored ? n_chars(text, len) : 0;
    st = st == GX_ENOTFOUND ? GX_OK : st;
    size_t title_len;
    const char *title = gx_index_doc_title(ix, docid, &title_len);
    gx_text_add_string(t, "{\"id\":");
    gx_text_add_json(t, c->document, c->document_len);
    if (title_len)
        add_member(t, "title", title, title_len, c->max_chars / 8);
    if (st == GX_OK && c->offset == 0)
        st = put_attributes(t, ix, docid, c->max_chars / 4, err);
    if (stored) {
        gx_text_add_format(t, ",\"length\":%zu,\"offset\":%llu,\"text\":\"", all, (unsigned long long)c->offset);
        const size_t used = n_chars(t->bytes, t->len) + TAIL, from = find_char(text, len, c->offset);
        const size_t n = used < c->max_chars ? add_beginning(t, text + from, len - from, c->max_chars - used) : 0;
        const uint64_t next = c->offset + n_chars(text + from, n);
        gx_text_add_string(t, "\"");
        if (from + n < len)
            gx_text_add_format(t, ",\"next_offset\":%llu", (unsigned long long)next);
        if (used > c->max_chars || (n == 0 && from < len)) {
            *err = (gx_error){GX_EUSAGE, "that is not enough for a part of the document; ask for more characters"};
            st = GX_EUSAGE;
        }
    }
    gx_text_add_string(t, "}");
    free(text);
    return st;
}

static void fetch(exchange *x)
{
    const call *c = call_of(x);
    uint64_t docid;
    gx_text t = {0};
    gx_error err = {0};
    if (!native_find_document(x, c->document, c->document_len, &docid)) {
        fault_set(&x->fault, 404, "id: there is no document '%.200s' in '%s'", c->document, x->index);
        return;
    }
    const gx_status st = put_document(&t, x, docid, &err);
    if (st != GX_OK)
        fault_set(&x->fault, http_status(st), "%s%s", st == GX_EUSAGE ? "max_chars: " : "", err.text);
    else if (t.failed)
        fault_set(&x->fault, 503, "no memory for the answer");
    else
        reply_text(x, t.bytes, t.len, false);
    free(t.bytes);
}

/* ---- arguments of the tools ---- */

static bool read_query(reader *r, const json_t *value, void *to)
{
    return reader_string(r, value, &((call *)to)->query, &((call *)to)->query_len);
}

static bool read_document(reader *r, const json_t *value, void *to)
{
    return reader_string(r, value, &((call *)to)->document, &((call *)to)->document_len);
}

static bool read_index(reader *r, const json_t *value, void *to)
{
    return json_is_null(value) || reader_string(r, value, &((call *)to)->index, &((call *)to)->index_len);
}

static bool read_filter(reader *r, const json_t *value, void *to)
{
    return json_is_null(value) || reader_string(r, value, &((call *)to)->filter, &((call *)to)->filter_len);
}

static bool read_k(reader *r, const json_t *value, void *to)
{
    return json_is_null(value) || reader_count(r, value, 1, MOST_RESULTS, &((call *)to)->k);
}

static bool read_fields(reader *r, const json_t *value, void *to)
{
    call *c = to;
    return json_is_null(value) || reader_string(r, value, &c->fields, &c->fields_len);
}

static bool read_offset(reader *r, const json_t *value, void *to)
{
    return json_is_null(value) || reader_count(r, value, 0, UINT32_MAX, &((call *)to)->offset);
}

static bool read_max_chars(reader *r, const json_t *value, void *to)
{
    call *c = to;
    return json_is_null(value) || reader_count(r, value, LEAST_CHARS, c->x->sv->limits.chars, &c->max_chars);
}

/* The index that is named, or the first that who asks may read. */
static bool open_index(exchange *x, const call *c)
{
    const char *name;
    if (x->at && !c->index)
        return true;
    if (c->index && *x->index && strcmp(c->index, x->index))
        return fault_set(&x->fault, 404, "index: it is always '%s' here", x->index);
    if (c->index)
        x->index = c->index;
    for (uint32_t i = 0; !*x->index && (name = catalog_name(x->sv->catalog, i)); ++i)
        if (access_to(x->who, name))
            x->index = name;
    return x->at || exchange_open_index(x, x->index);
}

/* The filter, with that of the token. */
static bool set_filter(reader *r, exchange *x, plan *p)
{
    const call *c = call_of(x);
    gx_error err = {0};
    const gx_status st = native_open_filter(x, c->filter, c->filter_len, &p->filter, &err);
    if (st == GX_EUSAGE) {
        reader_enter(r, "filter", 0);
        return reader_fail(r, "%s", err.text);
    }
    return st == GX_OK || fault_set(&x->fault, http_status(st), "%s", err.text);
}

/* Search by fields, where they are named. */
static bool set_fields(reader *r, exchange *x, plan *p)
{
    const call *c = call_of(x);
    gx_error err = {0};
    if (!c->fields)
        return true;
    const gx_status st = native_view(x, p, c->fields, GX_FIELDS_BM25F, &err);
    if (st == GX_EUSAGE) {
        reader_enter(r, "fields", 0);
        return reader_fail(r, "%s", err.text);
    }
    return st == GX_OK || fault_set(&x->fault, http_status(st), "%s", err.text);
}

static void begin_search(reader *r, exchange *x)
{
    static const member members[] = {{"query", read_query},   {"k", read_k},         {"offset", read_offset},
                                     {"filter", read_filter}, {"index", read_index}, {"max_chars", read_max_chars},
                                     {"fields", read_fields}};
    call *c = call_of(x);
    c->k = DEFAULT_RESULTS;
    if (!c->arguments || !reader_object(r, c->arguments, members, sizeof members / sizeof *members, c))
        return;
    if (!c->query) {
        reader_fail(r, "'query' is missing");
        return;
    }
    plan *p = open_index(x, c) ? native_new_plan(x) : NULL;
    if (!p || !set_filter(r, x, p) || !set_fields(r, x, p))
        return;
    p->offset = (uint32_t)c->offset;
    search *s = native_settle(x, p, c->k) ? exchange_add_search(x, 0) : NULL;
    if (s) {
        s->text = c->query;
        s->len = c->query_len;
        s->all = true;
    }
}

static void begin_fetch(reader *r, exchange *x)
{
    static const member members[] = {
        {"id", read_document}, {"offset", read_offset}, {"index", read_index}, {"max_chars", read_max_chars}};
    call *c = call_of(x);
    if (!c->arguments || !reader_object(r, c->arguments, members, sizeof members / sizeof *members, c))
        return;
    if (!c->document)
        reader_fail(r, "'id' is missing");
    else if (open_index(x, c))
        fetch(x);
}

/* ---- what there is ---- */

static void put_indexes(gx_text *t, exchange *x)
{
    const char *name;
    uint32_t n = 0;
    gx_text_add_string(t, ",\"index\":{\"type\":\"string\",\"enum\":[");
    for (uint32_t i = 0; (name = catalog_name(x->sv->catalog, i)); ++i)
        if (access_to(x->who, name) && (!*x->index || strcmp(name, x->index) == 0))
            gx_text_add_format(t, "%s\"%s\"", n++ ? "," : "", name);
    gx_text_add_string(t, "],\"description\":\"which index; without it the first one\"}");
}

/* Which fields there are to be searched one by one. */
static void put_fields_of(gx_text *t, exchange *x)
{
    const char *name = x->at ? gx_index_field(x->at->ix, 0, NULL) : NULL;
    if (!name)
        return;
    gx_text_add_string(t, ",\"fields\":{\"type\":\"string\",\"description\":\"search these fields, each with a weight, "
                          "as in title^3,text; there are");
    for (uint32_t i = 0; (name = gx_index_field(x->at->ix, i, NULL)); ++i)
        gx_text_add_format(t, "%s %s", i ? "," : "", name);
    gx_text_add_string(t, "\"}");
}

/* "year (int), kind (keyword)" of the index that is searched without a name. */
static void put_attributes_of(gx_text *t, exchange *x)
{
    const call none = {0};
    gx_text names = {0};
    if (!open_index(x, &none)) {
        x->fault = (fault){0};
        return;
    }
    for (uint32_t i = 0; i < gx_index_n_attributes(x->at->ix); ++i) {
        gx_attribute_info info = {.size = sizeof info};
        if (gx_index_get_attribute(x->at->ix, i, &info))
            break;
        gx_text_add_format(&names, "%s%.*s (%s)", i ? ", " : "", (int)info.name_len, info.name,
                           gx_attribute_type_name(info.type));
    }
    if (names.len)
        gx_text_add_format(t,
                           ",\"filter\":{\"type\":\"string\",\"description\":\"only documents that meet it, such as "
                           "year:2019..2021 AND NOT kind:draft; attributes: %.*s\"}",
                           (int)names.len, names.bytes);
    free(names.bytes);
}

static void put_max_chars(gx_text *t, const exchange *x)
{
    gx_text_add_format(t,
                       ",\"max_chars\":{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%u,\"default\":%u,"
                       "\"description\":\"most characters of the answer\"}",
                       LEAST_CHARS, x->sv->limits.chars, x->sv->limits.chars);
}

static void list_tools(exchange *x)
{
    gx_text tail = {0};
    gx_text *t = &x->reply;
    put_indexes(&tail, x); /* before the first index is opened */
    begin_result(x);
    gx_text_add_string(
        t, "{\"tools\":[{\"name\":\"search\",\"description\":\"Search documents by words (BM25). Answers "
           "JSON: results, best first, each with id, title, score and the part of its text that matches "
           "best; next_offset where more may follow. Read a whole document by fetch.\",\"annotations\":{"
           "\"readOnlyHint\":true},\"inputSchema\":{\"type\":\"object\",\"required\":[\"query\"],"
           "\"properties\":{\"query\":{\"type\":\"string\",\"description\":\"words to search for; none: all documents "
           "that the filter leaves\"}");
    gx_text_add_format(t,
                       ",\"k\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":%d,\"default\":%d,\"description\":"
                       "\"most results\"},\"offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0,"
                       "\"description\":\"results to pass over: next_offset of the answer before\"}",
                       MOST_RESULTS, DEFAULT_RESULTS);
    put_attributes_of(t, x);
    put_fields_of(t, x);
    gx_text_add(t, tail.bytes, tail.len);
    put_max_chars(t, x);
    gx_text_add_string(t,
                       "}}},{\"name\":\"fetch\",\"description\":\"Read a document by its id. Answers JSON: id, title, "
                       "metadata, length in characters, offset, text, and next_offset where the text goes on.\","
                       "\"annotations\":{\"readOnlyHint\":true},\"inputSchema\":{\"type\":\"object\",\"required\":["
                       "\"id\"],\"properties\":{\"id\":{\"type\":\"string\",\"description\":\"the id of a result\"},"
                       "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0,\"description\":\"characters of "
                       "the text to pass over: next_offset of the answer before\"}");
    gx_text_add(t, tail.bytes, tail.len);
    put_max_chars(t, x);
    gx_text_add_string(t, "}}}]}}");
    t->failed = t->failed || tail.failed;
    free(tail.bytes);
    exchange_reply(x, 200);
}

static void initialize(exchange *x)
{
    static const char versions[] = "2024-11-05|2025-03-26|2025-06-18|2025-11-25";
    const json_t *wanted = json_object_get(call_of(x)->params, "protocolVersion");
    const char *version = json_is_string(wanted) ? json_string_value(wanted) : "";
    if (gx_word_index(versions, version, strlen(version)) < 0)
        version = "2025-11-25";
    begin_result(x);
    gx_text_add_format(
        &x->reply,
        "{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"gpuidx\","
        "\"version\":\"%s\"},\"instructions\":\"Search first, then fetch the documents that you "
        "need.\"}}",
        version, gx_version());
    exchange_reply(x, 200);
}

/* ---- messages ---- */

static bool read_any_id(reader *r, const json_t *value, void *to)
{
    ((call *)to)->id = value;
    return json_is_string(value) || json_is_integer(value) || reader_fail(r, "an id is a string or a whole number");
}

static bool read_version(reader *r, const json_t *value, void *to)
{
    (void)to;
    return (json_is_string(value) && strcmp(json_string_value(value), "2.0") == 0) ||
           reader_fail(r, "it is not \"2.0\"");
}

static bool read_method(reader *r, const json_t *value, void *to)
{
    size_t len;
    return reader_string(r, value, &((call *)to)->method, &len);
}

static bool read_params(reader *r, const json_t *value, void *to)
{
    ((call *)to)->params = value;
    return json_is_object(value) || reader_fail(r, "this is not an object");
}

static bool read_answer(reader *r, const json_t *value, void *to)
{
    (void)r;
    (void)value;
    ((call *)to)->is_answer = true;
    return true;
}

static void fail_call(exchange *x, int code, const char *text, const char *what)
{
    call_of(x)->code = code;
    fault_set(&x->fault, 400, text, what);
}

static void call_tool(reader *r, exchange *x)
{
    call *c = call_of(x);
    const json_t *name = json_object_get(c->params, "name");
    c->arguments = json_object_get(c->params, "arguments");
    const int i =
        json_is_string(name) ? gx_word_index("search|fetch", json_string_value(name), json_string_length(name)) : -1;
    if (i < 0) {
        fail_call(x, BAD_PARAMS, "there is no tool '%.80s'; there are search and fetch",
                  json_is_string(name) ? json_string_value(name) : "");
        return;
    }
    c->is_tool = true;
    c->max_chars = x->sv->limits.chars;
    reader_enter(r, "params", 0);
    if (!c->arguments) {
        reader_fail(r, "'arguments' is missing");
        return;
    }
    reader_enter(r, "arguments", 0);
    (i == 0 ? begin_search : begin_fetch)(r, x);
}

static void call_method(reader *r, exchange *x)
{
    const call *c = call_of(x);
    const int i = gx_word_index("initialize|ping|tools/list|tools/call", c->method, strlen(c->method));
    if (i == 0)
        initialize(x);
    else if (i == 2)
        list_tools(x);
    else if (i == 3)
        call_tool(r, x);
    else if (i == 1) {
        begin_result(x);
        gx_text_add_string(&x->reply, "{}}");
        exchange_reply(x, 200);
    } else
        fail_call(x, NO_METHOD, "there is no method '%.80s' here", c->method);
}

void mcp_message(exchange *x)
{
    static const member members[] = {{"jsonrpc", read_version}, {"id", read_any_id},     {"method", read_method},
                                     {"params", read_params},   {"result", read_answer}, {"error", read_answer}};
    reader r = {0};
    call *c = calloc(1, sizeof *c);
    if (!c) {
        fault_set(&x->fault, 503, "no memory for the request");
        return;
    }
    c->x = x;
    c->code = PARSE_ERROR;
    x->extra = c;
    x->free_extra = free;
    if (*x->index && !exchange_open_index(x, x->index))
        return;
    if (exchange_read_json(x, &r)) {
        c->code = NO_REQUEST;
        if (!reader_object(&r, r.root, members, sizeof members / sizeof *members, c))
            c->id = json_is_string(c->id) || json_is_integer(c->id) ? c->id : NULL;
        else if (!json_object_get(r.root, "jsonrpc") || (!c->method && !c->is_answer))
            reader_fail(&r, "'%s' is missing", c->method ? "jsonrpc" : "method");
        else if (c->is_answer || !c->id)
            exchange_reply(x, 202); /* a notification, or an answer to nothing */
        else {
            c->code = 0;
            call_method(&r, x);
        }
    }
    reader_close(&r);
}

void mcp_no_stream(exchange *x)
{
    exchange_add_header(x, "Allow", "POST");
    fault_set(&x->fault, 405, "the server sends no messages of its own; a message is sent by POST");
}
