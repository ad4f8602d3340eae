/* native.c: our own protocol: searches that answer as `gpuidx query --format=jsonl` does, counts, indexes. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/access.h"
#include "tools/serve/protocols.h"
#include "tools/serve/searches.h"

/* ---- what other protocols share ---- */

void native_fault(exchange *x)
{
    const fault *f = &x->fault;
    gx_text *t = &x->reply;
    gx_text_add_format(t, "{\"error\":{\"status\":%d,\"message\":", f->status);
    gx_text_add_json(t, f->text, strlen(f->text));
    if (f->member[0]) {
        gx_text_add_string(t, ",\"member\":");
        gx_text_add_json(t, f->member, strlen(f->member));
    }
    if (f->line)
        gx_text_add_format(t, ",\"line\":%u,\"column\":%u", f->line, f->column);
    gx_text_add_string(t, "}}\n");
}

plan *native_new_plan(exchange *x)
{
    return exchange_add_plan(x);
}

bool native_settle(exchange *x, plan *p, uint64_t k)
{
    gx_error err = {0};
    const uint64_t all = k + p->offset;
    if (all > x->sv->limits.k) {
        fault_set(&x->fault, 400, "offset and results together are %llu; they are at most %u", (unsigned long long)all,
                  x->sv->limits.k);
        return false;
    }
    p->wanted = (uint32_t)k;
    p->setup.options.k = (uint32_t)(all ? all : 1);
    const gx_status st = gx_search_setup_settle(&p->setup, x->at->ix, &err);
    return st == GX_OK || fault_set(&x->fault, 400, "%s", err.text);
}

gx_status native_view(exchange *x, plan *p, const char *fields, gx_field_scoring scoring, gx_error *err)
{
    gx_view_options o = GX_VIEW_OPTIONS;
    o.fields = fields && strcmp(fields, "all") ? fields : NULL;
    o.scoring = scoring;
    o.preset = p->setup.options.preset;
    o.k1 = p->setup.options.k1;
    o.b = p->setup.options.b;
    view_release(p->view);
    return snapshot_view(x->at, &o, &p->view, err);
}

const gx_index *plan_index(const exchange *x, const plan *p)
{
    return p->view ? view_index(p->view) : x->at->ix;
}

/* "(A) AND (B)" of two filters in their canonical forms, which are whole expressions. */
static gx_status join_filters(exchange *x, const char *text, size_t len, gx_filter **out, gx_error *err)
{
    gx_text both = {0};
    gx_text_add_string(&both, "(");
    gx_text_add(&both, text, len);
    gx_text_add_format(&both, ") AND (%s)", x->who->filter);
    gx_status st = GX_ENOMEM;
    if (!both.failed)
        st = gx_filter_open(out, x->at->ix, both.bytes, both.len, NULL, err);
    free(both.bytes);
    return st == GX_EUSAGE ? GX_EINTERNAL : st;
}

gx_status native_open_filter(exchange *x, const char *text, size_t len, gx_filter **out, gx_error *err)
{
    const char *own = x->who->filter;
    gx_filter *asked = NULL;
    *out = NULL;
    if (!text && !own)
        return GX_OK;
    gx_status st = text ? gx_filter_open(&asked, x->at->ix, text, len, NULL, err) : GX_OK;
    if (st != GX_OK)
        return st;
    if (!own) {
        *out = asked;
        return GX_OK;
    }
    if (asked) {
        size_t n;
        const char *canonical = gx_filter_text(asked, &n);
        st = join_filters(x, canonical, n, out, err);
        gx_filter_close(asked);
        return st;
    }
    st = gx_filter_open(out, x->at->ix, own, strlen(own), NULL, err);
    return st == GX_EUSAGE ? GX_EINTERNAL : st; /* the token's filter is no fault of who asks */
}

bool native_find_document(exchange *x, const char *id, size_t len, uint64_t *docid)
{
    gx_error err = {0};
    bool allowed = false;
    *docid = gx_index_find_doc64(x->at->ix, id, len);
    if (*docid == UINT64_MAX)
        return false;
    const gx_status st = snapshot_allows(x->at, x->who->filter, *docid, &allowed, &err);
    if (st != GX_OK)
        fault_set(&x->fault, 500, "the token's filter: %s", err.text);
    return allowed;
}

gx_status native_put_document(gx_text *t, const gx_index *ix, uint64_t docid, const char *text_name, gx_error *err)
{
    size_t len, cap = 0;
    char *text = NULL;
    const char *id = gx_index_doc_id(ix, docid, &len);
    gx_text_add_string(t, "\"id\":");
    gx_text_add_json(t, id, len);
    const char *title = gx_index_doc_title(ix, docid, &len);
    if (len) {
        gx_text_add_string(t, ",\"title\":");
        gx_text_add_json(t, title, len);
    }
    const gx_status st = gx_index_doc_text(ix, docid, &text, &cap, &len, err);
    if (st == GX_OK) {
        gx_text_add_format(t, ",\"%s\":", text_name);
        gx_text_add_json(t, text, len);
    }
    free(text);
    return st == GX_ENOTFOUND ? GX_OK : st; /* the index stores no texts */
}

/* ---- reading a search ---- */

/* What a body asks for. */
typedef struct asked {
    exchange *x;
    size_t plan; /* its number */
    const json_t *query, *queries, *vector;
    const char *qid;
    size_t qid_len;
    const json_t *fields; /* that are searched: a text; NULL: none */
    gx_field_scoring scoring;
    bool scoring_given;
    uint64_t k;
    double timeout; /* seconds */
} asked;

static plan *plan_of(asked *a)
{
    return &a->x->plans[a->plan];
}

/* An option of the library's table, whose name is the member's. */
static bool read_option(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    const char *name = r->steps[r->n_steps - 1].name;
    char buf[64];
    size_t len;
    gx_error err = {0};
    if (json_is_null(value))
        return true;
    const char *text = reader_scalar(r, value, buf, &len);
    return text && (gx_search_setup_set(&plan_of(a)->setup, name, strlen(name), text, len, &err) == GX_OK ||
                    reader_fail(r, "%s", err.text));
}

static bool read_k(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    return reader_count(r, value, 0, a->x->sv->limits.k, &a->k);
}

static bool read_offset(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    uint64_t n;
    if (!reader_count(r, value, 0, a->x->sv->limits.k, &n))
        return false;
    plan_of(a)->offset = (uint32_t)n;
    return true;
}

static bool read_timeout(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    uint64_t ms;
    if (!reader_count(r, value, 1, 3600000, &ms))
        return false;
    a->timeout = 1e-3 * (double)ms;
    return true;
}

static bool read_query(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    const char *text;
    size_t len;
    a->query = value;
    return reader_string(r, value, &text, &len);
}

static bool read_queries(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    a->queries = value;
    if (!json_is_array(value))
        return reader_fail(r, "this is not an array");
    return json_array_size(value) || reader_fail(r, "there is no query in it");
}

static bool read_vector(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    a->vector = value;
    return (json_is_object(value) && json_object_size(value)) ||
           reader_fail(r, "this is no object of terms and weights");
}

static bool read_qid(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    return reader_string(r, value, &a->qid, &a->qid_len);
}

static bool read_filter(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    plan *p = plan_of(a);
    const char *text = NULL;
    size_t len = 0;
    gx_error err = {0};
    if (!json_is_null(value) && !reader_string(r, value, &text, &len))
        return false;
    gx_filter_close(p->filter);
    const gx_status st = native_open_filter(a->x, text, len, &p->filter, &err);
    if (st == GX_EUSAGE)
        return reader_fail(r, "%s", err.text);
    return st == GX_OK || fault_set(&a->x->fault, http_status(st), "%s", err.text);
}

/* Add the facets of a text, or of figures of all matches. */
static bool add_facets(reader *r, asked *a, const char *facets, const char *sums)
{
    enum { MOST = GX_MAX_ATTRIBUTES + 1 };
    plan *p = plan_of(a);
    gx_error err = {0};
    gx_facet_list *list = NULL;
    uint32_t n;
    if (!p->facets && !(p->facets = calloc(MOST, sizeof *p->facets)))
        return reader_fail(r, "no memory");
    if (!p->lists && !(p->lists = calloc(MOST, sizeof *p->lists)))
        return reader_fail(r, "no memory");
    if (gx_facet_list_read(&list, a->x->at->ix, facets, sums, &err))
        return reader_fail(r, "%s", err.text);
    const gx_facet *all = gx_facet_list_get(list, &n);
    for (uint32_t i = 0; i < n && a->x->who->filter; ++i)
        if (all[i].exclude_own || (all[i].inner && all[i].inner->exclude_own)) {
            gx_facet_list_close(list); /* it would leave out conditions of the token's filter, too */
            return reader_fail(r, "exclude-own is not available to a token with a filter");
        }
    if (p->n_lists == MOST || n > MOST - p->n_facets) {
        gx_facet_list_close(list);
        return reader_fail(r, "there are at most %u facets", GX_MAX_ATTRIBUTES);
    }
    p->lists[p->n_lists++] = list;
    memcpy((gx_facet *)p->facets + p->n_facets, all, n * sizeof *all);
    p->n_facets += n;
    return true;
}

static bool read_facet(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    return reader_string(r, value, &text, &len) && add_facets(r, to, text, NULL);
}

static bool read_facets(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_facet, to);
}

static bool read_sums(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    return reader_string(r, value, &text, &len) && add_facets(r, to, NULL, text);
}

static bool read_sort(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    plan *p = plan_of(a);
    gx_error err = {0};
    gx_page page;
    if (!reader_string(r, value, &p->sort, &p->sort_len))
        return false;
    gx_page_init(&page, sizeof page);
    page.sort = p->sort;
    page.sort_len = p->sort_len;
    return gx_page_check(a->x->at->ix, &page, &err) == GX_OK || reader_fail(r, "%s", err.text);
}

static bool read_collapse(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    plan *p = plan_of(a);
    gx_error err = {0};
    gx_page page;
    if (!reader_string(r, value, &p->collapse, &p->collapse_len))
        return false;
    if (!p->collapse_len)
        return reader_fail(r, "the name of an attribute is expected");
    gx_page_init(&page, sizeof page);
    page.collapse = p->collapse;
    page.collapse_len = p->collapse_len;
    return gx_page_check(a->x->at->ix, &page, &err) == GX_OK || reader_fail(r, "%s", err.text);
}

static bool read_after(reader *r, const json_t *value, void *to)
{
    plan *p = plan_of(to);
    return reader_string(r, value, &p->after, &p->after_len) &&
           (p->after_len || reader_fail(r, "a cursor is expected, which an answer to 'cursor' has"));
}

static bool read_cursor(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &plan_of(to)->cursor);
}

static bool read_attribute(reader *r, const json_t *value, void *to)
{
    plan *p = plan_of(to);
    const gx_index *ix = ((asked *)to)->x->at->ix;
    gx_error err = {0};
    const char *name;
    size_t len;
    uint32_t number;
    if (!reader_string(r, value, &name, &len))
        return false;
    if (gx_index_find_attribute(ix, name, len, &number, &err))
        return reader_fail(r, "%s", err.text);
    for (uint32_t i = 0; i < p->n_shown; ++i)
        if (p->shown[i] == number)
            return reader_fail(r, "an attribute is named twice");
    p->shown[p->n_shown++] = number;
    return true;
}

/* Names, or "all". */
static bool read_attributes(reader *r, const json_t *value, void *to)
{
    plan *p = plan_of(to);
    const uint32_t n = gx_index_n_attributes(((asked *)to)->x->at->ix);
    const char *all = json_string_value(value);
    if (!p->shown && !(p->shown = malloc((n + 1) * sizeof *p->shown)))
        return fault_set(r->fault, 503, "no memory for the request");
    if (!all)
        return reader_array(r, value, read_attribute, to);
    if (strcmp(all, "all"))
        return reader_fail(r, "an array of names, or \"all\", is expected");
    while (p->n_shown < n) {
        p->shown[p->n_shown] = p->n_shown;
        ++p->n_shown;
    }
    return true;
}

static bool read_prior(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    gx_error err = {0};
    const gx_prior *prior = &plan_of(a)->setup.options.prior;
    if (!read_option(r, value, to))
        return false;
    return prior->weight == 0 || gx_prior_check(prior, a->x->at->ix, &err) == GX_OK || reader_fail(r, "%s", err.text);
}

/* Rules of synonyms, one a line. */
static bool read_synonyms(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    plan *p = plan_of(a);
    gx_error err = {0};
    const char *rules;
    size_t len;
    if (json_is_null(value))
        return true;
    if (!reader_string(r, value, &rules, &len))
        return false;
    gx_synonyms_close(p->synonyms);
    const gx_status st = gx_synonyms_open(&p->synonyms, a->x->at->ix, rules, len, &err);
    p->setup.options.synonyms = p->synonyms;
    return st == GX_OK || reader_fail(r, "%s", err.text);
}

static bool read_marks(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &plan_of(to)->marked);
}

static bool read_snippets(reader *r, const json_t *value, void *to)
{
    static const member members[] = {{"marks", read_marks}};
    plan *p = plan_of(to);
    if (!json_is_object(value))
        return reader_bool(r, value, &p->snippets);
    p->snippets = true;
    return reader_object(r, value, members, 1, to);
}

static bool read_explain(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &plan_of(to)->explain);
}

static bool read_count(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &plan_of(to)->count);
}

static bool read_field(reader *r, const json_t *value, void *to)
{
    const char *name;
    size_t len;
    if (!reader_string(r, value, &name, &len))
        return false;
    const int i = gx_word_index("id|title|text", name, len);
    plan_of(to)->texts |= i == 2;
    return i >= 0 || reader_fail(r, "there is no stored field '%.80s'; there are id, title and text", name);
}

/* A text names fields that are searched, an array those that are shown. */
static bool read_fields(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    if (!json_is_string(value))
        return reader_array(r, value, read_field, to);
    ((asked *)to)->fields = value;
    return reader_string(r, value, &text, &len);
}

static bool read_scoring(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    const char *text;
    size_t len;
    a->scoring_given = true;
    return reader_string(r, value, &text, &len) &&
           (gx_field_scoring_find(&a->scoring, text) || reader_fail(r, "'%.40s' is not bm25f, best or sum", text));
}

static bool open_fields(asked *a, reader *r)
{
    gx_error err = {0};
    if (!a->fields && a->scoring_given)
        return reader_fail(r, "'field-scoring' needs 'fields', a text such as \"title^3,text\"");
    if (!a->fields)
        return true;
    reader_enter(r, "fields", 0);
    const gx_status st = native_view(a->x, plan_of(a), json_string_value(a->fields), a->scoring, &err);
    if (st == GX_EUSAGE)
        return reader_fail(r, "%s", err.text);
    reader_leave(r);
    return st == GX_OK || fault_set(&a->x->fault, http_status(st), "%s", err.text);
}

/* clang-format off */
#define STRING "\"type\":\"string\",\"description\":"
#define COUNT "\"type\":\"integer\",\"minimum\":0,\"description\":"
#define SWITCH "\"type\":\"boolean\",\"description\":"
#define STRINGS "\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":"
/* What a search may have. The schema of an option is that of the library's table. */
static const member members[] = {
    {"query", read_query, STRING "\"the query; one of query, queries and vector is needed\""},
    {"queries", read_queries,
     "\"type\":\"array\",\"items\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"properties\":{\"query\":"
     "{\"type\":\"string\"},\"qid\":{\"type\":\"string\"}},\"required\":[\"query\"]}]},"
     "\"description\":\"several queries, which are answered as answers\""},
    {"vector", read_vector,
     "\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"},"
     "\"description\":\"terms and their weights in place of a text\""},
    {"qid", read_qid, STRING "\"an id of the query, which the answer repeats\""},
    {"k", read_k, COUNT "\"the most results of a query\""},
    {"offset", read_offset, COUNT "\"results that are left out before the first\""},
    {"after", read_after, STRING "\"the cursor of an earlier answer to this query: the results behind its last\""},
    {"cursor", read_cursor, SWITCH "\"also answer the cursor of the next page, for after\""},
    {"op", read_option},
    {"syntax", read_option},
    {"quotes", read_option},
    {"sdm", read_option},
    {"scorer", read_option},
    {"k1", read_option},
    {"b", read_option},
    {"rm3", read_option},
    {"prior", read_prior},
    {"prune", read_option},
    {"algorithm", read_option},
    {"approximate", read_option},
    {"max-expansions", read_option},
    {"fuzzy-prefix", read_option},
    {"expansion-scoring", read_option},
    {"query-k1", read_option},
    {"query-b", read_option},
    {"synonyms", read_synonyms,
     STRING "\"rules that replace words of the query, one a line, as Solr's: tv, telly => television\""},
    {"filter", read_filter, STRING "\"which documents may match: year:>=2019 AND venue:acl\""},
    {"facets", read_facets, STRINGS "\"facets, as query --facet has them: year, venue:20\""},
    {"sums", read_sums, STRING "\"figures of all matches, as query --sums has them: price:avg\""},
    {"sort", read_sort, STRING "\"attributes that the results are ordered by: price:desc,year\""},
    {"collapse", read_collapse,
     STRING "\"one result for each value of an attribute, with its best documents: shop, shop:3\""},
    {"snippets", read_snippets,
     "\"oneOf\":[{\"type\":\"boolean\"},{\"type\":\"object\",\"properties\":{\"marks\":{\"type\":\"boolean\"}}}],"
     "\"description\":\"show a stretch of each text; with marks, which characters are words of the query\""},
    {"explain", read_explain, SWITCH "\"show why each result has its score\""},
    {"count", read_count, SWITCH "\"count all documents that match\""},
    {"attributes", read_attributes,
     "\"oneOf\":[{\"type\":\"array\",\"items\":{\"type\":\"string\"}},{\"type\":\"string\",\"enum\":[\"all\"]}],"
     "\"description\":\"the attributes whose values each result has\""},
    {"fields", read_fields,
     "\"oneOf\":[{\"type\":\"array\",\"items\":{\"type\":\"string\"}},{\"type\":\"string\"}],"
     "\"description\":\"an array: stored texts that each result has, of id, title, text. A text: fields that are "
     "searched, each with a weight, as query --fields has them: title^3,text\""},
    {"field-scoring", read_scoring,
     "\"type\":\"string\",\"enum\":[\"bm25f\",\"best\",\"sum\"],\"description\":\"how fields that are searched are "
     "scored together\""},
    {"timeout_ms", read_timeout,
     "\"type\":\"integer\",\"minimum\":1,\"maximum\":3600000,\"description\":\"milliseconds for the answer\""},
};
/* clang-format on */

/* The members of an option's schema. */
static void put_option_schema(gx_text *t, const gx_search_option *o)
{
    static const char *const types[] = {"integer", "number", "string", "boolean", "string"};
    gx_text_add_format(t, "\"type\":\"%s\",\"description\":", types[o->kind]);
    gx_text_add_json(t, o->help, strlen(o->help));
    for (const char *w = o->words, *first = w; w; w = w[strcspn(w, "|")] ? w + strcspn(w, "|") + 1 : NULL)
        gx_text_add_format(t, "%s\"%.*s\"", w == first ? ",\"enum\":[" : ",", (int)strcspn(w, "|"), w);
    gx_text_add_string(t, o->words ? "]" : "");
}

void native_put_schema(gx_text *t)
{
    bool any = false;
    for (size_t i = 0; i < sizeof members / sizeof *members; ++i) {
        if (!members[i].read)
            continue;
        gx_text_add_format(t, "%s\"%s\":{", any ? "," : "", members[i].name);
        if (members[i].schema)
            gx_text_add_string(t, members[i].schema);
        else
            put_option_schema(t, gx_search_option_find(members[i].name, strlen(members[i].name)));
        gx_text_add_string(t, "}");
        any = true;
    }
}

/* ---- its queries ---- */

static search *add_search(asked *a, const char *text, size_t len)
{
    search *s = exchange_add_search(a->x, a->plan);
    if (s) {
        s->text = text;
        s->len = len;
        s->all = true;
        s->qid = a->qid ? a->qid : "";
        s->qid_len = a->qid_len;
    }
    return s;
}

static bool add_vector(asked *a, reader *r)
{
    const size_t n = json_object_size(a->vector);
    gx_weighted_term *terms = malloc(n * sizeof *terms);
    search *s = terms ? add_search(a, "", 0) : NULL;
    if (!s) {
        free(terms);
        return fault_set(&a->x->fault, 503, "no memory for the query");
    }
    s->terms = terms;
    reader_enter(r, "vector", 0);
    for (void *i = json_object_iter((json_t *)a->vector); i; i = json_object_iter_next((json_t *)a->vector, i)) {
        const char *term = json_object_iter_key(i);
        double weight;
        reader_enter(r, term, 0);
        if (!reader_number(r, json_object_iter_value(i), &weight))
            return false;
        if (!(weight > 0 && weight <= GX_MAX_WEIGHT))
            return reader_fail(r, "a weight is above 0 and at most %g", (double)GX_MAX_WEIGHT);
        terms[s->n_terms++] = (gx_weighted_term){term, strlen(term), (float)weight};
        reader_leave(r);
    }
    reader_leave(r);
    return true;
}

/* An element of "queries": a text, or an object with the text and an id. */
static bool read_one_of_many(reader *r, const json_t *value, void *to)
{
    static const member of_one[] = {{"query", read_query}, {"qid", read_qid}};
    asked *a = to;
    a->query = NULL;
    a->qid = "";
    a->qid_len = 0;
    if (json_is_object(value) ? !reader_object(r, value, of_one, 2, a) : !read_query(r, value, a))
        return false;
    if (!a->query)
        return reader_fail(r, "there is no 'query' in it");
    return add_search(a, json_string_value(a->query), json_string_length(a->query)) != NULL;
}

static bool add_searches(asked *a, reader *r)
{
    if (!!a->query + !!a->queries + !!a->vector != 1)
        return reader_fail(r, "one of 'query', 'queries' and 'vector' is needed");
    if (a->queries && plan_of(a)->after_len) {
        reader_enter(r, "after", 0);
        return reader_fail(r, "a cursor is of one query: 'queries' has none");
    }
    if (a->vector)
        return add_vector(a, r);
    if (a->query)
        return add_search(a, json_string_value(a->query), json_string_length(a->query)) != NULL;
    reader_enter(r, "queries", 0);
    const bool good = reader_array(r, a->queries, read_one_of_many, a);
    reader_leave(r);
    return good;
}

/* Options that mean nothing beside others are refused, not ignored. */
static bool check_algorithm(const asked *a, reader *r)
{
    const gx_query_options *o = &a->x->plans[a->plan].setup.options;
    const bool every = !o->prune && o->algorithm != GX_ALGORITHM_AUTO;
    const bool of_or = o->algorithm == GX_ALGORITHM_BLOCK_MAX && o->op == GX_OP_AND;
    if (!json_object_get(r->root, "algorithm") || !(every || of_or))
        return true;
    reader_enter(r, "algorithm", 0);
    return reader_fail(r, every ? "it means nothing beside 'prune' off, which scores every posting in one way"
                                : "block-max means something to OR alone");
}

/* The whole is limited, whatever each query may have. */
static bool check_size(exchange *x)
{
    enum { MOST = 20 * 1000 * 1000 };
    uint64_t results = 0;
    for (size_t i = 0; i < x->n_searches; ++i)
        results += x->plans[x->searches[i].plan_number].setup.options.k;
    return results <= MOST || fault_set(&x->fault, 413, "a request has at most %d results of all its queries", MOST);
}

static bool read_search(exchange *x, reader *r)
{
    asked a = {.x = x, .plan = x->n_plans, .k = x->sv->defaults.options.k};
    gx_error err = {0};
    if (!native_new_plan(x) || !reader_object(r, r->root, members, sizeof members / sizeof *members, &a))
        return false;
    plan *p = plan_of(&a);
    if (!p->filter && native_open_filter(x, NULL, 0, &p->filter, &err))
        return fault_set(&x->fault, 500, "the token's filter: %s", err.text);
    if (a.timeout > 0 && a.timeout < x->timeout)
        x->timeout = a.timeout;
    p->snippets = p->snippets || p->marked;
    return check_algorithm(&a, r) && open_fields(&a, r) && native_settle(x, p, a.k) && add_searches(&a, r) &&
           check_size(x);
}

static bool is_lines(exchange *x)
{
    const char *type = exchange_header(x, "Content-Type");
    return type && strstr(type, "ndjson") != NULL;
}

/* A search a line. */
static void parse_lines(exchange *x)
{
    unsigned line = 0;
    const char *at = x->body.bytes, *end = at + x->body.len;
    x->json[0] = json_array();
    x->extra = "lines";
    for (; at < end && !x->fault.status; ++line) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t len = (size_t)((stop ? stop : end) - at);
        reader r;
        if (strspn(at, " \t\r") < len && reader_open(&r, &x->fault, at, len, x->sv->limits.depth)) {
            json_array_append(x->json[0], r.root);
            r.first_line = line;
            if (read_search(x, &r)) {
                x->searches[x->n_searches - 1].line = line + 1;
                exchange_share_plan(x);
            }
            reader_close(&r);
        } else if (x->fault.line) {
            x->fault.line += line;
        }
        at += len + 1;
    }
    if (!x->n_searches)
        fault_set(&x->fault, 400, "there is no query in the body");
}

void native_search(exchange *x)
{
    static const char *const arguments[] = {"format", "tag", NULL};
    reader r = {0};
    bool run;
    if (!exchange_open_index(x, x->index) || !exchange_check_arguments(x, arguments) || !run_lines_read(x, &run))
        return;
    if (is_lines(x)) {
        gx_text_add(&x->body, "\n", 1); /* ends the last line, and the text for strspn */
        if (x->body.failed)
            fault_set(&x->fault, 503, "no memory for the body");
        else
            parse_lines(x);
    } else if (exchange_read_json(x, &r) && read_search(x, &r) && json_object_get(r.root, "queries")) {
        x->extra = "many";
    }
    reader_close(&r);
    x->quick = exchange_is_quick(x);
    for (size_t i = 0; run && i < x->n_searches; ++i)
        x->searches[i].all = false; /* a topic without words has no lines in a run */
}

/* ---- its answers ---- */

static gx_status explain(const exchange *x, const search *s, gx_explanation **out, gx_error *err)
{
    const gx_query q = searches_query(s);
    const gx_query_options options = s->plan->setup.options;
    gx_status st = GX_OK;
    *out = calloc(s->n_hits + 1, sizeof **out);
    if (!*out)
        return GX_ENOMEM;
    for (uint32_t i = 0; i < s->n_hits && st == GX_OK; ++i)
        st = gx_explain(&(*out)[i], plan_index(x, s->plan), &q, &options, s->docids[i], err);
    return st;
}

gx_status searches_open_marks(const search *s, gx_highlighter **out, gx_error *err)
{
    search bare = *s;
    bare.expanded = NULL; /* what the request itself says is marked */
    const gx_query q = searches_query(&bare);
    return gx_highlighter_open_options(out, plan_index(s->of, s->plan), &q, &s->plan->setup.options, err);
}

static gx_status put_answer(exchange *x, const search *s, gx_error *err)
{
    const plan *p = s->plan;
    gx_explanation *explanations = NULL;
    gx_answer a = {
        .ix = x->at->ix,
        .qid = s->qid,
        .qid_len = s->qid_len,
        .query = s->text,
        .query_len = s->len,
        .n_hits = s->n_hits,
        .docids = s->docids,
        .scores = s->scores,
        .counted = p->count || p->n_facets,
        .n_matches = s->n_matches,
        .facets = s->facets,
        .n_facets = s->facets ? p->n_facets : 0,
        .seconds = s->seconds,
        .engine = s->by == GX_PROCESSOR_GPU ? "gpu" : "cpu",
        .snippets = p->snippets,
        .expanded = s->expanded,
        .n_expanded = s->n_expanded,
        .first = s->first,
        .shown = p->shown,
        .n_shown = p->n_shown,
        .cursor = s->cursor,
        .cursor_len = s->cursor_len,
        .moved = s->moved,
        .groups = s->groups,
        .marked = p->marked,
        .texts = p->texts,
    };
    gx_status st = searches_open_marks(s, &a.marks, err);
    if (st == GX_OK && p->explain)
        st = explain(x, s, &explanations, err);
    a.explanations = explanations;
    if (st == GX_OK)
        st = gx_answer_write_json(&x->reply, &a, err);
    gx_highlighter_close(a.marks);
    for (uint32_t i = 0; explanations && i < s->n_hits; ++i)
        gx_explanation_free(&explanations[i]);
    free(explanations);
    return st;
}

void native_answer(exchange *x)
{
    gx_error err = {0};
    gx_status st = GX_OK;
    const bool lines = x->extra && strcmp(x->extra, "lines") == 0, many = x->extra && !lines;
    bool run = false;
    if (run_lines_read(x, &run) && run) {
        run_lines_answer(x);
        return;
    }
    gx_text_add_string(&x->reply, many ? "{\"schema\":1,\"answers\":[" : "");
    for (size_t i = 0; i < x->n_searches && st == GX_OK; ++i) {
        gx_text_add_string(&x->reply, many && i ? "," : "");
        st = put_answer(x, &x->searches[i], &err);
        gx_text_add_string(&x->reply, lines ? "\n" : "");
    }
    gx_text_add_string(&x->reply, many ? "]}\n" : lines ? "" : "\n");
    if (st != GX_OK) {
        fault_set(&x->fault, http_status(st), "%s", err.text);
        return;
    }
    x->type = lines ? "application/x-ndjson" : "application/json";
    exchange_reply(x, 200);
}

/* ---- counts ---- */

void native_count(exchange *x)
{
    native_search(x);
    for (size_t i = 0; i < x->n_plans; ++i)
        x->plans[i].count = true;
    for (size_t i = 0; i < x->n_plans; ++i)
        x->plans[i].setup.options.k = 1;
}

void native_count_answer(exchange *x)
{
    gx_text *t = &x->reply;
    const bool many = x->n_searches > 1;
    gx_text_add_string(t, many ? "{\"schema\":1,\"counts\":[" : "{\"schema\":1,\"count\":");
    for (size_t i = 0; i < x->n_searches; ++i) {
        gx_text_add_string(t, i ? "," : "");
        gx_text_add_number(t, x->searches[i].n_matches);
    }
    gx_text_add_string(t, many ? "]}\n" : "}\n");
    exchange_reply(x, 200);
}

/* ---- indexes ---- */

static void put_index(gx_text *t, const char *name, const snapshot *s)
{
    gx_text_add_string(t, "{\"name\":");
    gx_text_add_json(t, name, strlen(name));
    gx_text_add_format(t,
                       ",\"documents\":%llu,\"postings\":%llu,\"tokens\":%llu,\"avgdl\":%.17g,\"bytes\":%llu,"
                       "\"commit\":%llu,\"parts\":%u,\"titles\":%s,\"texts\":%s,\"impacts\":%s,\"engine\":",
                       (unsigned long long)s->n_docs, (unsigned long long)s->stats.n_postings,
                       (unsigned long long)s->stats.n_tokens, s->stats.avgdl, (unsigned long long)s->stats.file_bytes,
                       (unsigned long long)gx_index_commit(s->ix), gx_index_n_parts(s->ix),
                       s->stats.titles ? "true" : "false", s->stats.texts ? "true" : "false",
                       s->stats.impacts ? "true" : "false");
    const char *engine = gx_engine_describe(s->gpu ? s->gpu : s->cpu);
    gx_text_add_json(t, engine, strlen(engine));
    gx_text_add_string(t, ",\"fields\":[");
    const char *field;
    for (uint32_t i = 0; (field = gx_index_field(s->ix, i, NULL)); ++i) {
        gx_text_add_string(t, i ? "," : "");
        gx_text_add_json(t, field, strlen(field));
    }
    gx_text_add_string(t, "],\"attributes\":[");
    for (uint32_t i = 0; i < gx_index_n_attributes(s->ix); ++i) {
        gx_attribute_info info = {.size = sizeof info};
        if (gx_index_get_attribute(s->ix, i, &info))
            break;
        gx_text_add_string(t, i ? ",{\"name\":" : "{\"name\":");
        gx_text_add_json(t, info.name, info.name_len);
        gx_text_add_format(t, ",\"type\":\"%s\"}", gx_attribute_type_name(info.type));
    }
    gx_text_add_string(t, "]}");
}

void native_indexes(exchange *x)
{
    const char *name;
    uint32_t n = 0;
    gx_text_add_string(&x->reply, "{\"schema\":1,\"indexes\":[");
    for (uint32_t i = 0; (name = catalog_name(x->sv->catalog, i)); ++i) {
        if (!access_to(x->who, name))
            continue;
        snapshot *s = catalog_get(x->sv->catalog, name);
        gx_text_add_string(&x->reply, n++ ? "," : "");
        put_index(&x->reply, name, s);
        snapshot_release(s);
    }
    gx_text_add_string(&x->reply, "]}\n");
    exchange_reply(x, 200);
}

void native_index(exchange *x)
{
    if (!exchange_open_index(x, x->index))
        return;
    put_index(&x->reply, x->index, x->at);
    gx_text_add_string(&x->reply, "\n");
    exchange_reply(x, 200);
}
