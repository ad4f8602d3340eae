/* search.c: _search, _msearch and _count.
 *
 * Pages by search_after: the last hit's "sort" ends with a cursor of gx_search_page behind the values, so that a client
 * that sends this array back gets the next page. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols/elastic/elastic.h"
#include "tools/serve/searches.h"

/* One search of a request. */
typedef struct item {
    fault fault;
    const json_t *query, *post_filter, *suggest;
    dsl_query dsl, post;
    uint64_t from, size;
    source_options source;
    highlight_options highlight;
    aggs aggs;
    gx_text order; /* of gx_page.sort; empty: by score */
    struct {
        uint32_t number; /* of an attribute */
        bool desc;
    } keys[GX_MAX_SORT_KEYS];
    uint32_t n_keys;
    bool by_score, by_docid; /* these keys stand behind them, as they do in any case */
    const char *after;       /* [after_len] a cursor, of search_after; or NULL */
    size_t after_len, n_after;
    const json_t *after_at;
    uint64_t fields; /* bit i: attribute i, of docvalue_fields and fields */
    bool explain, version, seq_no;
    gx_text collapse; /* of gx_page.collapse; empty: none */
    const char *collapse_field, *inner_name;
    bool inner;
    uint64_t inner_size;
    bool total;              /* the number of matches is told */
    bool is_searched;        /* by the exchange's search of this number: */
    size_t search;
} item;

typedef struct elastic {
    exchange *x;
    item *items; /* [n] */
    size_t n, max;
    double timeout;
} elastic;

static void free_elastic(void *extra)
{
    elastic *e = extra;
    for (size_t i = 0; i < e->n; ++i) {
        dsl_free(&e->items[i].dsl);
        dsl_free(&e->items[i].post);
        aggs_free(&e->items[i].aggs);
        free(e->items[i].collapse.bytes);
        free(e->items[i].order.bytes);
    }
    free(e->items);
    free(e);
}

static elastic *open_elastic(exchange *x)
{
    elastic *e = calloc(1, sizeof *e);
    if (!e) {
        fault_set(&x->fault, 503, "no memory for the request");
        return NULL;
    }
    e->x = x;
    x->extra = e;
    x->free_extra = free_elastic;
    return e;
}

static item *add_item(elastic *e)
{
    if (e->n == e->max) {
        const size_t max = e->max ? 2 * e->max : 1;
        item *items = realloc(e->items, max * sizeof *items);
        if (!items) {
            fault_set(&e->x->fault, 503, "no memory for the request");
            return NULL;
        }
        e->items = items;
        e->max = max;
    }
    item *it = &e->items[e->n++];
    *it = (item){.size = 10, .total = true, .inner_size = 3};
    it->aggs.x = e->x;
    it->source.ix = e->x->at ? e->x->at->ix : NULL;
    return it;
}

/* ---- replies ---- */

bool elastic_check_arguments(exchange *x, const char *const *more)
{
    static const char *const harmless[] = {"pretty",
                                           "human",
                                           "error_trace",
                                           "preference",
                                           "request_cache",
                                           "search_type",
                                           "ignore_unavailable",
                                           "allow_no_indices",
                                           "routing",
                                           "refresh",
                                           "expand_wildcards",
                                           "allow_partial_search_results",
                                           "realtime",
                                           "ignore_throttled",
                                           "batched_reduce_size",
                                           "max_concurrent_shard_requests",
                                           "max_concurrent_searches",
                                           "ccs_minimize_roundtrips",
                                           "pre_filter_shard_size",
                                           "timeout",
                                           "master_timeout",
                                           "cluster_manager_timeout",
                                           "local",
                                           "include_defaults"};
    enum { N = sizeof harmless / sizeof *harmless };
    const char *names[N + 24];
    size_t n = 0;
    for (size_t i = 0; i < N; ++i)
        names[n++] = harmless[i];
    for (; more && *more; ++more)
        names[n++] = *more;
    names[n] = NULL;
    return exchange_check_arguments(x, names);
}

/* The media type that the client speaks: "application/vnd.elasticsearch+json;compatible-with=8". */
static const char *media_type(exchange *x)
{
    static const struct {
        const char *version, *type;
    } types[] = {{"compatible-with=7", "application/vnd.elasticsearch+json;compatible-with=7"},
                 {"compatible-with=8", "application/vnd.elasticsearch+json;compatible-with=8"},
                 {"compatible-with=9", "application/vnd.elasticsearch+json;compatible-with=9"}};
    const char *accept = exchange_header(x, "Accept");
    for (size_t i = 0; accept && i < sizeof types / sizeof *types; ++i)
        if (strstr(accept, "vnd.elasticsearch+json") && strstr(accept, types[i].version))
            return types[i].type;
    return "application/json";
}

void elastic_reply(exchange *x, unsigned status)
{
    if (!x->type || strcmp(x->type, "application/json") == 0)
        x->type = media_type(x);
    exchange_add_header(x, "X-Elastic-Product", "Elasticsearch");
    exchange_reply(x, status);
}

static const char *type_of(const fault *f)
{
    switch (f->status) {
    case 400:
        return f->line ? "parsing_exception" : "illegal_argument_exception";
    case 401:
    case 403:
        return "security_exception";
    case 404:
        return "index_not_found_exception";
    case 409:
        return "version_conflict_engine_exception";
    case 413:
        return "content_too_long_exception";
    case 429:
        return "es_rejected_execution_exception";
    case 504:
        return "timeout_exception";
    default:
        return "gpuidx_exception";
    }
}

static void put_cause(gx_text *t, const fault *f, const char *index)
{
    gx_text_add_format(t, "\"type\":\"%s\",\"reason\":", type_of(f));
    gx_text_add_json(t, f->text, strlen(f->text));
    if (f->member[0]) {
        gx_text_add_string(t, ",\"member\":");
        gx_text_add_json(t, f->member, strlen(f->member));
    }
    if (f->line)
        gx_text_add_format(t, ",\"line\":%u,\"col\":%u", f->line, f->column);
    if (f->status == 404) {
        gx_text_add_string(t, ",\"resource.type\":\"index_or_alias\",\"index\":");
        gx_text_add_json(t, index, strlen(index));
    }
}

void elastic_put_error(gx_text *t, const fault *f, const char *index)
{
    gx_text_add_string(t, "\"error\":{\"root_cause\":[{");
    put_cause(t, f, index);
    gx_text_add_string(t, "}],");
    put_cause(t, f, index);
    gx_text_add_format(t, "},\"status\":%d", f->status);
}

void elastic_fault(exchange *x)
{
    gx_text_add_string(&x->reply, "{");
    elastic_put_error(&x->reply, &x->fault, x->index ? x->index : "");
    gx_text_add_string(&x->reply, "}");
    elastic_reply(x, (unsigned)x->fault.status);
}

void elastic_put_shards(gx_text *t)
{
    gx_text_add_string(t, "\"_shards\":{\"total\":1,\"successful\":1,\"skipped\":0,\"failed\":0}");
}

/* ---- bodies ---- */

static bool read_query(reader *r, const json_t *value, void *to)
{
    (void)r;
    ((item *)to)->query = value;
    return true;
}

static bool read_from(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 0, UINT32_MAX / 2, &((item *)to)->from);
}

static bool read_size(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 0, UINT32_MAX / 2, &((item *)to)->size);
}

static bool read_source(reader *r, const json_t *value, void *to)
{
    return source_read(r, value, &((item *)to)->source);
}

static bool read_highlight(reader *r, const json_t *value, void *to)
{
    return highlight_read(r, value, &((item *)to)->highlight);
}

static bool read_aggs(reader *r, const json_t *value, void *to)
{
    return aggs_read(r, value, &((item *)to)->aggs);
}

/* A number asks for a count that is exact up to it: ours always is. */
static bool read_total(reader *r, const json_t *value, void *to)
{
    item *it = to;
    if (json_is_integer(value)) {
        it->total = json_integer_value(value) != -1;
        return true;
    }
    return reader_bool(r, value, &it->total);
}

/* A key's order: "desc", or an object with `order`, `missing` and `mode`, of which each has one value alone that is
 * not what Elasticsearch does without it. */
static bool read_sort_order(reader *r, const json_t *how, bool *desc, bool *first)
{
    const char *key;
    json_t *value;
    const char *order = json_string_value(how);
    if (json_is_object(how)) {
        json_object_foreach((json_t *)how, key, value)
        {
            const char *text = json_string_value(value);
            reader_enter(r, key, 0);
            if (strcmp(key, "order") == 0)
                order = text ? text : "";
            else if (strcmp(key, "missing") == 0 && text && (!strcmp(text, "_first") || !strcmp(text, "_last")))
                *first = strcmp(text, "_first") == 0;
            else
                return reader_fail(r, "'%.40s' with this value is not available in this version of gpuidx", key);
            reader_leave(r);
        }
    } else if (how && !order) {
        return reader_fail(r, "asc, desc or an object is expected");
    }
    if (order && strcmp(order, "asc") && strcmp(order, "desc"))
        return reader_fail(r, "the order is asc or desc");
    *desc = order ? strcmp(order, "desc") == 0 : *desc;
    return true;
}

/* The order of results: by attributes, then by falling score, then by docid. Other orders are refused. */
static bool read_sort_key(reader *r, const json_t *value, void *to)
{
    const char *name = json_string_value(value);
    const json_t *how = NULL;
    item *it = to;
    gx_error err = {0};
    bool first = false;
    if (json_is_object(value) && json_object_size(value) == 1) {
        void *i = json_object_iter((json_t *)value);
        how = json_object_iter_value(i);
        name = json_object_iter_key(i);
    }
    if (!name)
        return reader_fail(r, "a name, or an object with one, is expected");
    bool desc = strcmp(name, "_score") == 0;
    const bool special = desc || strcmp(name, "_doc") == 0;
    if (how)
        reader_enter(r, name, 0);
    if (!read_sort_order(r, how, &desc, &first))
        return false;
    if (how)
        reader_leave(r);
    if (strcmp(name, "_score") == 0 && desc && !first && !it->by_docid)
        return it->by_score = true;
    if (strcmp(name, "_doc") == 0 && !desc && !first)
        return it->by_docid = true;
    if (special || it->by_score || it->by_docid || it->n_keys == GX_MAX_SORT_KEYS)
        return reader_fail(
            r,
            "results come by at most %u attributes, then by falling _score, then by rising _doc; an order "
            "with '%.60s' here is not available in this version of gpuidx",
            GX_MAX_SORT_KEYS, name);
    if (gx_index_find_attribute(it->source.ix, name, strlen(name), &it->keys[it->n_keys].number, &err))
        return reader_fail(r, "%s", err.text);
    it->keys[it->n_keys++].desc = desc;
    gx_text_add_format(&it->order, "%s%s:%s:missing-%s", it->order.len ? "," : "", name, desc ? "desc" : "asc",
                       first ? "first" : "last");
    return true;
}

/* The values of a sort, and the cursor behind them; or the cursor alone. */
static bool read_search_after(reader *r, const json_t *value, void *to)
{
    item *it = to;
    const size_t n = json_array_size(value);
    const json_t *last = n ? json_array_get(value, n - 1) : NULL;
    if (!json_is_array(value) || !n)
        return reader_fail(r, "the 'sort' of an answer's last hit is expected, whose last element is a cursor");
    it->after_at = value;
    it->n_after = n;
    reader_enter(r, NULL, n - 1);
    if (!json_is_string(last) || !json_string_length(last))
        return reader_fail(r, "a cursor is expected, which stands last in the 'sort' of an answer's last hit");
    it->after = json_string_value(last);
    it->after_len = json_string_length(last);
    reader_leave(r);
    return true;
}

static bool read_inner_name(reader *r, const json_t *value, void *to)
{
    size_t len;
    return reader_string(r, value, &((item *)to)->inner_name, &len);
}

static bool read_inner_size(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 1, GX_MAX_GROUP_DOCUMENTS, &((item *)to)->inner_size);
}

static bool read_inner_hits(reader *r, const json_t *value, void *to)
{
    static const member members[] = {{"name", read_inner_name}, {"size", read_inner_size}};
    item *it = to;
    it->inner = true;
    if (json_is_array(value) && json_array_size(value) != 1)
        return reader_fail(r, "there is one set of inner hits");
    if (!json_is_array(value))
        return reader_object(r, value, members, 2, it);
    reader_enter(r, NULL, 0);
    if (!reader_object(r, json_array_get(value, 0), members, 2, it))
        return false;
    reader_leave(r);
    return true;
}

static bool read_collapse_field(reader *r, const json_t *value, void *to)
{
    item *it = to;
    gx_error err = {0};
    gx_page page;
    size_t len;
    if (!reader_string(r, value, &it->collapse_field, &len))
        return false;
    gx_page_init(&page, sizeof page);
    page.collapse = it->collapse_field;
    page.collapse_len = len;
    return gx_page_check(it->source.ix, &page, &err) == GX_OK || reader_fail(r, "%s", err.text);
}

static bool read_collapse_searches(reader *r, const json_t *value, void *to)
{
    uint64_t n; /* how many searches run at once for inner_hits: here is one */
    (void)to;
    return reader_count(r, value, 0, UINT32_MAX, &n);
}

static bool read_collapse(reader *r, const json_t *value, void *to)
{
    static const member members[] = {{"field", read_collapse_field},
                                     {"inner_hits", read_inner_hits},
                                     {"max_concurrent_group_searches", read_collapse_searches}};
    item *it = to;
    if (!reader_object(r, value, members, 3, it))
        return false;
    if (!it->collapse_field)
        return reader_fail(r, "'field' is missing");
    gx_text_add_format(&it->collapse, "%s:%llu", it->collapse_field,
                       (unsigned long long)(it->inner ? it->inner_size : 1));
    return !it->collapse.failed || fault_set(r->fault, 503, "no memory for the request");
}

static bool read_post_filter(reader *r, const json_t *value, void *to)
{
    (void)r;
    ((item *)to)->post_filter = value;
    return true;
}

static bool read_suggest(reader *r, const json_t *value, void *to)
{
    ((item *)to)->suggest = value; /* it is read when the index is known to be the client's */
    (void)r;
    return true;
}

static bool read_explain(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &((item *)to)->explain);
}

static bool read_version(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &((item *)to)->version);
}

static bool read_seq_no(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &((item *)to)->seq_no);
}

static bool read_shown_name(reader *r, const json_t *value, void *to)
{
    size_t len;
    return reader_string(r, value, to, &len);
}

/* A name, or an object with one. */
static bool read_shown_field(reader *r, const json_t *value, void *to)
{
    static const member members[] = {{"field", read_shown_name}};
    item *it = to;
    uint32_t number;
    gx_error err = {0};
    const char *name = json_string_value(value);
    if (json_is_object(value) && !reader_object(r, value, members, 1, &name))
        return false;
    if (!name)
        return reader_fail(r, "a name, or an object with 'field', is expected");
    if (strcmp(name, "*") == 0) {
        it->fields = UINT64_MAX;
        return true;
    }
    if (gx_index_find_attribute(it->source.ix, name, strlen(name), &number, &err))
        return reader_fail(r, "%s", err.text);
    it->fields |= UINT64_C(1) << number;
    return true;
}

static bool read_shown_fields(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_shown_field, to);
}

static bool read_sort(reader *r, const json_t *value, void *to)
{
    return json_is_array(value) ? reader_array(r, value, read_sort_key, to) : read_sort_key(r, value, to);
}

/* "500ms", "2s", "1m" */
static bool read_duration(const char *text, double *seconds)
{
    char *end;
    const double n = strtod(text, &end);
    if (*text < '0' || *text > '9' || !(n > 0 && n < 1e9))
        return false;
    if (strcmp(end, "ms") == 0)
        *seconds = 1e-3 * n;
    else if (strcmp(end, "s") == 0)
        *seconds = n;
    else if (strcmp(end, "m") == 0)
        *seconds = 60 * n;
    else
        return false;
    return true;
}

static bool read_timeout(reader *r, const json_t *value, void *to)
{
    double seconds; /* the whole request's limit is as long or shorter, which its member in the URL sets */
    const char *text;
    size_t len;
    (void)to;
    return reader_string(r, value, &text, &len) &&
           (read_duration(text, &seconds) || reader_fail(r, "'%.40s' is no duration, such as 500ms", text));
}

static const member members[] = {
    {"query", read_query},
    {"from", read_from},
    {"size", read_size},
    {"_source", read_source},
    {"highlight", read_highlight},
    {"aggs", read_aggs},
    {"aggregations", read_aggs},
    {"track_total_hits", read_total},
    {"sort", read_sort},
    {"timeout", read_timeout},
    {"search_after", read_search_after},
    {"post_filter", read_post_filter},
    {"explain", read_explain},
    {"version", read_version},
    {"seq_no_primary_term", read_seq_no},
    {"fields", read_shown_fields},
    {"docvalue_fields", read_shown_fields},
    {"collapse", read_collapse},
    {"min_score", NULL},
    {"suggest", read_suggest},
    {"rescore", NULL},
    {"knn", NULL},
    {"rank", NULL},
    {"retriever", NULL},
    {"stored_fields", NULL},
    {"script_fields", NULL},
    {"runtime_mappings", NULL},
    {"pit", NULL},
    {"slice", NULL},
    {"profile", NULL},
    {"terminate_after", NULL},
    {"indices_boost", NULL},
};

/* ---- from an item to a search ---- */

static bool open_text_filter(reader *r, exchange *x, const gx_text *conditions, gx_filter **out)
{
    gx_error err = {0};
    const gx_status st =
        native_open_filter(x, conditions->len ? conditions->bytes : NULL, conditions->len, out, &err);
    if (st == GX_EUSAGE)
        return reader_fail(r, "%s", err.text);
    return st == GX_OK || fault_set(r->fault, http_status(st), "%s", err.text);
}

/* The filter of the query; facets count beside it alone where the results have another one, too. */
static bool open_filter(reader *r, exchange *x, item *it, plan *p)
{
    gx_text both = {0};
    if (!it->post_filter)
        return open_text_filter(r, x, &it->dsl.conditions, &p->filter);
    reader_enter(r, "post_filter", 0);
    if (!dsl_read_filter(r, x, it->post_filter, &it->post))
        return false;
    const gx_text *parts[] = {&it->dsl.conditions, &it->post.conditions};
    for (size_t i = 0; i < 2; ++i)
        if (parts[i]->len) {
            gx_text_add_string(&both, both.len ? " AND (" : "(");
            gx_text_add(&both, parts[i]->bytes, parts[i]->len);
            gx_text_add_string(&both, ")");
        }
    p->faceted_apart = true;
    const bool good = !both.failed && open_text_filter(r, x, &both, &p->filter) &&
                      open_text_filter(r, x, &it->dsl.conditions, &p->faceted);
    free(both.bytes);
    reader_leave(r);
    return good || fault_set(r->fault, 503, "no memory for the request");
}

static bool read_dsl(reader *r, exchange *x, item *it)
{
    if (!it->query)
        return true;
    reader_enter(r, "query", 0);
    const bool good = dsl_read(r, x, it->query, &it->dsl);
    if (good)
        reader_leave(r);
    return good;
}

static bool check_suggest(reader *r, exchange *x, const item *it)
{
    if (!it->suggest)
        return true;
    reader_enter(r, "suggest", 0);
    const bool good = suggest_check(r, x, it->suggest);
    if (good)
        reader_leave(r);
    return good;
}

/* Words that are one text are searched for as such, which is fastest. */
static void set_text(const item *it, plan *p, search *s)
{
    const dsl_query *q = &it->dsl;
    if (q->words.len == 0) {
        s->all = true;
        s->text = "";
    } else if (q->plain) {
        p->setup.options.op = q->op;
        s->text = q->plain;
        s->len = q->plain_len;
    } else {
        p->setup.kind = GX_QUERY_BOOLEAN;
        p->setup.options.op = GX_OP_OR;
        s->text = q->words.bytes;
        s->len = q->words.len;
    }
}

/* Whether a hit shows what is read from its stored text. */
static bool shows_texts(const exchange *x, const item *it)
{
    const source_options *o = &it->source;
    return (x->at->stats.texts && !o->none && (!o->chosen || o->text)) || it->highlight.text || it->highlight.title;
}

static size_t n_sort_values(const item *it)
{
    return it->n_keys + it->by_score + it->by_docid;
}

static bool check_after(reader *r, const item *it)
{
    if (!it->after)
        return true;
    reader_enter(r, "search_after", 0);
    if (it->from)
        return reader_fail(r, "'from' is 0 beside search_after");
    if (it->n_after != 1 && it->n_after != n_sort_values(it) + 1)
        return reader_fail(r, "%zu values: a sort of %zu has as many and a cursor behind them", it->n_after,
                           n_sort_values(it));
    reader_leave(r);
    return true;
}

/* Make the exchange's search of an item whose body has been read. false: the reader's fault is set. */
static bool begin_item(reader *r, exchange *x, item *it)
{
    plan *p = NULL;
    const size_t number = x->n_plans;
    if (!read_dsl(r, x, it) || !check_suggest(r, x, it) || !(p = exchange_add_plan(x)))
        return false;
    if (it->by_docid && !it->by_score && it->dsl.words.len) {
        reader_enter(r, "sort", 0);
        return reader_fail(r, "an order by '_doc' is not available for a query with words");
    }
    if (!check_after(r, it))
        return false;
    p->sort = it->order.bytes;
    p->sort_len = it->order.len;
    p->after = it->after;
    p->after_len = it->after_len;
    p->collapse = it->collapse.bytes;
    p->collapse_len = it->collapse.len;
    p->cursor = it->size && (it->n_keys || it->by_docid);
    p->offset = (uint32_t)it->from;
    p->count = it->total;
    p->texts = shows_texts(x, it);
    p->explain = it->explain;
    if (!dsl_open_fields(r, x, &it->dsl.fields, p) || !open_filter(r, x, it, p) ||
        !aggs_set_facets(x, it->aggs.all, it->aggs.n, p) ||
        !native_settle(x, p, it->size))
        return false;
    search *s = exchange_add_search(x, number);
    if (!s)
        return false;
    set_text(it, &x->plans[number], s);
    it->search = x->n_searches - 1;
    it->is_searched = true;
    if (!it->aggs.n)
        exchange_share_plan(x);
    return aggs_add_searches(x, &it->aggs, it->search, &it->dsl.conditions);
}

/* The body, which may be empty; else it is read by the rows. */
static bool read_body(exchange *x, reader *r, const member *rows, size_t n, item *it)
{
    if (x->body.len == 0) {
        *r = (reader){.fault = &x->fault, .body = ""};
        return true;
    }
    return exchange_read_json(x, r) && reader_object(r, r->root, rows, n, it);
}

/* The only index, where the path names none. */
static bool open_index(exchange *x)
{
    if (*x->index == 0 || strcmp(x->index, "_all") == 0 || strcmp(x->index, "*") == 0) {
        if (catalog_name(x->sv->catalog, 1))
            return fault_set(&x->fault, 400, "which index? A request searches one");
        x->index = catalog_name(x->sv->catalog, 0);
    }
    if (strpbrk(x->index, ",*"))
        return fault_set(&x->fault, 400, "'%.100s': a request searches one index, by its whole name", x->index);
    return exchange_open_index(x, x->index);
}

static bool read_timeout_argument(exchange *x)
{
    const char *text = exchange_argument(x, "timeout");
    double seconds;
    if (!text)
        return true;
    if (!read_duration(text, &seconds))
        return fault_set(&x->fault, 400, "timeout: '%.40s' is no duration, such as 500ms", text);
    x->timeout = seconds < x->timeout ? seconds : x->timeout;
    return true;
}

/* ---- _search and _count ---- */

static bool read_flag_argument(exchange *x, const char *name, bool *out)
{
    const char *text = exchange_argument(x, name);
    if (!text)
        return true;
    *out = strcmp(text, "false") != 0;
    return strcmp(text, "true") == 0 || !*out || strspn(text, "0123456789") == strlen(text) ||
           fault_set(&x->fault, 400, "%s: '%.40s' is neither true nor false", name, text);
}

static bool read_operator_argument(exchange *x, gx_op *op)
{
    const char *text = exchange_argument(x, "default_operator");
    const int i = text ? gx_word_index("or|and|OR|AND", text, strlen(text)) : 0;
    *op = i % 2 ? GX_OP_AND : GX_OP_OR;
    return i >= 0 || fault_set(&x->fault, 400, "default_operator: '%.40s' is neither or nor and", text);
}

/* What the URL says beside the body. */
static bool read_arguments(exchange *x, item *it)
{
    static const char *const names[] = {"q",  "from", "size", "_source", "track_total_hits", "default_operator",
                                        "df", NULL};
    const char *q = exchange_argument(x, "q"), *df = exchange_argument(x, "df");
    gx_op op;
    if (!elastic_check_arguments(x, names) || !exchange_count_argument(x, "from", 0, UINT32_MAX / 2, &it->from) ||
        !exchange_count_argument(x, "size", 0, UINT32_MAX / 2, &it->size) || !read_operator_argument(x, &op) ||
        !source_read_text(x, exchange_argument(x, "_source"), &it->source) ||
        !read_flag_argument(x, "track_total_hits", &it->total) || !read_timeout_argument(x))
        return false;
    if (df && !elastic_is_text(df))
        return fault_set(&x->fault, 400, "df: '%.60s' is not the text", df);
    if (q && it->query)
        return fault_set(&x->fault, 400, "q and a query in the body: one of them");
    return !q || dsl_read_string(x, q, op, &it->dsl);
}

static void parse_one(exchange *x, const member *rows, size_t n)
{
    reader r = {0};
    elastic *e = open_index(x) ? open_elastic(x) : NULL;
    item *it = e ? add_item(e) : NULL;
    if (it && read_body(x, &r, rows, n, it) && read_arguments(x, it))
        begin_item(&r, x, it);
    x->quick = exchange_is_quick(x);
    reader_close(&r);
}

void elastic_search(exchange *x)
{
    parse_one(x, members, sizeof members / sizeof *members);
}

void elastic_count(exchange *x)
{
    parse_one(x, members, 1);
    for (size_t i = 0; i < x->n_plans; ++i) {
        x->plans[i].count = true;
        x->plans[i].wanted = 0;
        x->plans[i].setup.options.k = 1;
    }
}

/* ---- _msearch ---- */

static bool read_index(reader *r, const json_t *value, void *to)
{
    elastic *e = to;
    exchange *x = e->x;
    const char *name;
    size_t len;
    if (json_is_array(value) && json_array_size(value) == 1)
        value = json_array_get(value, 0);
    if (!reader_string(r, value, &name, &len))
        return false;
    if (!x->at) {
        x->index = name;
        return open_index(x);
    }
    return strcmp(name, x->index) == 0 || reader_fail(r, "the searches of one _msearch are of one index");
}

static bool read_ignored(reader *r, const json_t *value, void *to)
{
    (void)r;
    (void)value;
    (void)to;
    return true;
}

static const member header_members[] = {
    {"index", read_index},
    {"preference", read_ignored},
    {"search_type", read_ignored},
    {"request_cache", read_ignored},
    {"ignore_unavailable", read_ignored},
    {"allow_no_indices", read_ignored},
    {"expand_wildcards", read_ignored},
    {"routing", read_ignored},
};

/* Take a line's end off; the next line, or NULL at the end of the body. */
static const char *next_line(const char *at, const char *end, size_t *len)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    *len = (size_t)((stop ? stop : end) - at);
    return stop ? stop + 1 : end;
}

/* A header, in its line. false: the fault of the whole request is set. */
static bool read_header(elastic *e, const char *line, size_t len, unsigned number)
{
    exchange *x = e->x;
    reader r;
    bool good = true;
    if (len == 0 || (len == 1 && *line == '\r'))
        return x->at || open_index(x);
    if (reader_open(&r, &x->fault, line, len, x->sv->limits.depth)) {
        json_array_append(x->json[0], r.root);
        r.first_line = number;
        good = reader_object(&r, r.root, header_members, sizeof header_members / sizeof *header_members, e);
        if (good && !x->at)
            good = open_index(x);
    } else {
        x->fault.line += number;
        good = false;
    }
    reader_close(&r);
    return good;
}

/* A body in its line: what is wrong with it is its own item's. */
static bool read_item(elastic *e, const char *line, size_t len, unsigned number)
{
    exchange *x = e->x;
    reader r;
    item *it = add_item(e);
    if (!it)
        return false;
    fault own = {0};
    if (reader_open(&r, &own, line, len, x->sv->limits.depth)) {
        json_array_append(x->json[0], r.root);
        r.first_line = number;
        if (reader_object(&r, r.root, members, sizeof members / sizeof *members, it))
            begin_item(&r, x, it);
    } else {
        own.line += own.line ? number : 0;
    }
    reader_close(&r);
    if (!own.status && x->fault.status && x->fault.status != 413 && x->fault.status != 503) {
        own = x->fault; /* it found its way to the request */
        x->fault = (fault){0};
    }
    it->fault = own;
    if (own.status)
        it->is_searched = false;
    return !x->fault.status;
}

void elastic_msearch(exchange *x)
{
    elastic *e = open_elastic(x);
    const char *at = x->body.bytes, *end = at + x->body.len;
    unsigned number = 0;
    if (!e || !elastic_check_arguments(x, NULL) || (*x->index && !open_index(x)))
        return;
    if (!(x->json[0] = json_array())) {
        fault_set(&x->fault, 503, "no memory for the request");
        return;
    }
    for (size_t len, body_len; at < end; number += 2) {
        const char *header = at, *body = next_line(at, end, &len);
        if (body == end) {
            if (len && strspn(header, " \t\r\n") < len)
                fault_set(&x->fault, 400, "line %u: a header without a body behind it", number + 1);
            break;
        }
        at = next_line(body, end, &body_len);
        if (!read_header(e, header, len, number) || !read_item(e, body, body_len, number + 1))
            return;
    }
    x->quick = exchange_is_quick(x);
    if (e->n == 0)
        fault_set(&x->fault, 400, "there is no search in the body");
    else if (x->n_searches == 0 && !x->fault.status)
        elastic_msearch_answer(x); /* all are malformed */
}

/* ---- answers ---- */

/* In an order by attributes Elasticsearch tells no score, unless that is a key, too. */
static bool has_scores(const item *it)
{
    return it->n_keys == 0 || it->by_score;
}

/* Without words Elasticsearch gives each document the score 1. */
static double score_of(const item *it, double score)
{
    return it->dsl.words.len ? score : 1;
}

/* ,"sort":[19.9,"acme",null]: what results are ordered by; of several values the least one, with desc the greatest.
 * A cursor stands behind those of a page's last hit. */
static gx_status put_sort(gx_text *t, exchange *x, const item *it, const search *s, uint32_t hit, gx_error *err)
{
    gx_values values = {0};
    gx_status st = GX_OK;
    const char *comma = "";
    gx_text_add_string(t, ",\"sort\":[");
    for (uint32_t i = 0; i < it->n_keys && st == GX_OK; ++i) {
        st = gx_index_values(x->at->ix, it->keys[i].number, &s->docids[hit], 1, &values, err);
        const uint64_t n = st == GX_OK ? values.starts[1] : 0;
        gx_text_add_string(t, comma);
        comma = ",";
        if (n)
            gx_text_add_json_value(t, values.type, &values.values[it->keys[i].desc ? n - 1 : 0]);
        else
            gx_text_add_string(t, "null");
    }
    if (it->by_score) {
        gx_text_add_string(t, comma);
        gx_text_add_score(t, score_of(it, s->scores[hit]));
        comma = ",";
    }
    if (it->by_docid) {
        gx_text_add_string(t, comma);
        gx_text_add_number(t, s->docids[hit]);
        comma = ",";
    }
    if (s->cursor && hit + 1 == s->n_hits) {
        gx_text_add_string(t, comma);
        gx_text_add_json(t, s->cursor, s->cursor_len);
    }
    gx_text_add_string(t, "]");
    gx_values_free(&values);
    return st;
}

/* What each hit begins with, those of a group, too. */
static gx_status put_document(gx_text *t, exchange *x, const item *it, uint64_t docid, double score, gx_error *err)
{
    size_t len;
    const char *id = gx_index_doc_id(x->at->ix, docid, &len);
    gx_text_add_string(t, "{\"_index\":");
    gx_text_add_json(t, x->index, strlen(x->index));
    gx_text_add_string(t, ",\"_id\":");
    gx_text_add_json(t, id, len);
    gx_text_add_string(t, it->version ? ",\"_version\":1" : "");
    gx_text_add_string(t, it->seq_no ? ",\"_seq_no\":0,\"_primary_term\":1" : "");
    gx_text_add_string(t, ",\"_score\":");
    if (has_scores(it))
        gx_text_add_score(t, score_of(it, score));
    else
        gx_text_add_string(t, "null");
    return source_write(t, x->at->ix, docid, &it->source, err);
}

/* ,"inner_hits":{"name":{"hits":...}}: the best documents of a group. */
static gx_status put_inner(gx_text *t, exchange *x, const item *it, const gx_group *g, gx_error *err)
{
    const char *name = it->inner_name ? it->inner_name : it->collapse_field;
    gx_status st = GX_OK;
    gx_text_add_string(t, ",\"inner_hits\":{");
    gx_text_add_json(t, name, strlen(name));
    gx_text_add_format(t, ":{\"hits\":{\"total\":{\"value\":%llu,\"relation\":\"eq\"},\"max_score\":null,\"hits\":[",
                       (unsigned long long)g->n_matches);
    for (uint32_t i = 0; i < g->n && st == GX_OK; ++i) {
        gx_text_add_string(t, i ? "," : "");
        st = put_document(t, x, it, g->docids[i], g->scores[i], err);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "]}}}");
    return st;
}

static gx_status put_hit(gx_text *t, exchange *x, const item *it, const search *s, uint32_t hit, gx_highlighter *marks,
                         gx_error *err)
{
    const uint64_t docid = s->docids[hit];
    const uint64_t group = s->groups ? UINT64_C(1) << s->groups->attribute : 0;
    gx_status st = put_document(t, x, it, docid, s->scores[hit], err);
    if (st == GX_OK && (it->fields | group))
        st = fields_write(t, x->at->ix, docid, it->fields | group, err);
    if (st == GX_OK && marks && (it->highlight.text || it->highlight.title))
        st = highlight_write(t, x->at->ix, docid, marks, &it->highlight, err);
    if (st == GX_OK && n_sort_values(it))
        st = put_sort(t, x, it, s, hit, err);
    if (st == GX_OK && s->groups && it->inner)
        st = put_inner(t, x, it, &s->groups->groups[hit], err);
    if (st == GX_OK && it->explain)
        st = explanation_write(t, plan_index(x, s->plan), s, hit, err);
    gx_text_add_string(t, "}");
    return st;
}

static gx_status put_hits(gx_text *t, exchange *x, const item *it, const search *s, gx_error *err)
{
    gx_highlighter *marks = NULL;
    gx_status st = GX_OK;
    if ((it->highlight.text || it->highlight.title) && it->dsl.words.len)
        st = searches_open_marks(s, &marks, err);
    gx_text_add_string(t, "\"hits\":{");
    if (it->total)
        gx_text_add_format(t, "\"total\":{\"value\":%llu,\"relation\":\"eq\"},", (unsigned long long)s->n_matches);
    gx_text_add_string(t, "\"max_score\":");
    if (s->n_hits && it->from == 0 && it->n_keys == 0)
        gx_text_add_score(t, score_of(it, s->scores[0]));
    else
        gx_text_add_string(t, "null");
    gx_text_add_string(t, ",\"hits\":[");
    for (uint32_t i = 0; i < s->n_hits && st == GX_OK; ++i) {
        gx_text_add_string(t, i ? "," : "");
        st = put_hit(t, x, it, s, i, marks, err);
    }
    gx_text_add_string(t, "]}");
    gx_highlighter_close(marks);
    return st;
}

/* The members of an answer, in an object that is open. */
static void put_answer(gx_text *t, exchange *x, item *it)
{
    gx_error err = {0};
    const search *s = it->is_searched ? &x->searches[it->search] : NULL;
    const size_t begin = t->len;
    if (s && s->status != GX_OK)
        fault_set(&it->fault, http_status(s->status), "%s", s->error ? s->error : gx_status_name(s->status));
    if (!it->fault.status) {
        gx_text_add_format(t, "\"took\":%d,\"timed_out\":false,", (int)(1e3 * (serve_clock() - x->began)));
        elastic_put_shards(t);
        gx_text_add_string(t, ",");
        const gx_status st = put_hits(t, x, it, s, &err);
        if (st != GX_OK)
            fault_set(&it->fault, http_status(st), "%s", err.text);
        else
            aggs_write(t, x, &it->aggs, s->facets, &it->fault);
        if (!it->fault.status)
            suggest_put(t, x, it->suggest, &it->fault);
    }
    if (it->fault.status) {
        t->len = begin;
        elastic_put_error(t, &it->fault, x->index);
    }
}

void elastic_search_answer(exchange *x)
{
    elastic *e = x->extra;
    gx_text_add_string(&x->reply, "{");
    put_answer(&x->reply, x, &e->items[0]);
    gx_text_add_string(&x->reply, "}");
    if (e->items[0].fault.status)
        x->fault = e->items[0].fault;
    else
        elastic_reply(x, 200);
}

void elastic_msearch_answer(exchange *x)
{
    elastic *e = x->extra;
    gx_text *t = &x->reply;
    gx_text_add_format(t, "{\"took\":%d,\"responses\":[", (int)(1e3 * (serve_clock() - x->began)));
    for (size_t i = 0; i < e->n; ++i) {
        gx_text_add_string(t, i ? ",{" : "{");
        put_answer(t, x, &e->items[i]);
        gx_text_add_string(t, e->items[i].fault.status ? "}" : ",\"status\":200}");
    }
    gx_text_add_string(t, "]}");
    elastic_reply(x, 200);
}

void elastic_count_answer(exchange *x)
{
    gx_text_add_format(&x->reply, "{\"count\":%llu,", (unsigned long long)x->searches[0].n_matches);
    elastic_put_shards(&x->reply);
    gx_text_add_string(&x->reply, "}");
    elastic_reply(x, 200);
}
