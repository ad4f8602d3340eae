/* routes.c: the table of all routes, and /openapi.json, which is made of it. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/metrics.h"
#include "tools/serve/protocols.h"

static void alive(exchange *x)
{
    gx_text_add_string(&x->reply, "{\"status\":\"alive\"}\n");
    exchange_reply(x, 200);
}

static void ready(exchange *x)
{
    if (atomic_load(&x->sv->draining)) {
        fault_set(&x->fault, 503, "the server is ending");
        return;
    }
    gx_text_add_string(&x->reply, "{\"status\":\"ready\"}\n");
    exchange_reply(x, 200);
}

/* clang-format off */
static const route routes[] = {
    {"GET", "/health/livez", ACCESS_NONE, native_fault, alive, NULL, .summary = "whether the server lives"},
    {"GET", "/health/readyz", ACCESS_NONE, native_fault, ready, NULL, .summary = "whether it takes requests"},
    {"GET", "/metrics", ACCESS_READ, native_fault, metrics_reply, NULL, .summary = "counters, in Prometheus's form"},
    {"GET", "/openapi.json", ACCESS_NONE, native_fault, routes_openapi, NULL, .summary = "this table"},

    {"GET", "/v1", ACCESS_READ, native_fault, native_indexes, NULL, .summary = "the indexes"},
    {"GET", "/v1/status", ACCESS_READ, native_fault, metrics_status, NULL,
     .summary = "latencies of the last thousand requests"},
    {"GET", "/v1/{index}", ACCESS_READ, native_fault, native_index, NULL,
     .summary = "an index: documents, attributes, commit"},
    {"POST", "/v1/{index}/search", ACCESS_READ, native_fault, native_search, native_answer, .slow = true,
     .summary = "search: one query, several, or one a line (application/x-ndjson)"},
    {"GET", "/v1/{index}/search", ACCESS_READ, anserini_fault, anserini_search, anserini_answer, .slow = true,
     .summary = "search, as Anserini's REST server has it: query, hits, parse"},
    {"POST", "/v1/{index}/count", ACCESS_READ, native_fault, native_count, native_count_answer,
     .summary = "count the documents that match; a body as that of a search"},
    {"GET", "/v1/{index}/suggest", ACCESS_READ, native_fault, suggest_words, NULL,
     .summary = "words that complete 'prefix', or that may be meant by 'like'; the most common, at most 'n'"},
    {"GET", "/v1/{index}/doc/{id}", ACCESS_READ, anserini_fault, anserini_document, NULL, .summary = "a document"},
    {"PUT", "/v1/{index}/doc/{id}", ACCESS_WRITE, native_fault, native_put, native_write_answer,
     .summary = "add a document, or replace the one of its id"},
    {"PATCH", "/v1/{index}/doc/{id}", ACCESS_WRITE, native_fault, native_update, native_write_answer,
     .summary = "replace the members of a document that are given"},
    {"DELETE", "/v1/{index}/doc/{id}", ACCESS_WRITE, native_fault, native_delete, native_write_answer,
     .summary = "delete a document"},
    {"POST", "/v1/{index}/docs", ACCESS_WRITE, native_fault, native_write, native_writes_answer,
     .summary = "many operations (put, add, update, delete): an array 'operations', or one a line "
                "(application/x-ndjson)"},

    {"POST", "/retrieve", ACCESS_READ, native_fault, retrieve_search, retrieve_answer, .slow = true,
     .summary = "Search-R1's: queries, topk, return_scores, of the first index"},
    {"POST", "/retrieve/{index}", ACCESS_READ, native_fault, retrieve_search, retrieve_answer, .slow = true,
     .summary = "Search-R1's, of an index"},

    {"POST", "/agents/{index}/search", ACCESS_READ, native_fault, paging_search, paging_answer, .slow = true,
     .summary = "the http-json search backend of agent frameworks: query, offset, limit; a window of results is kept"},
    {"POST", "/agents/{index}/read", ACCESS_READ, native_fault, paging_read, NULL,
     .summary = "lines of a document: docid, offset, limit; nextOffset where it goes on"},
    {"POST", "/v1/vector_stores/{index}/search", ACCESS_READ, openai_fault, openai_search, openai_answer, .slow = true,
     .summary = "OpenAI's search of a vector store: query, filters, max_num_results"},

    {"POST", "/mcp", ACCESS_READ, mcp_fault, mcp_message, mcp_answer, .slow = true,
     .summary = "the Model Context Protocol: tools search and fetch, of all indexes"},
    {"POST", "/mcp/{index}", ACCESS_READ, mcp_fault, mcp_message, mcp_answer, .slow = true,
     .summary = "the same, of an index"},
    {"GET", "/mcp", ACCESS_NONE, native_fault, mcp_no_stream, NULL, .summary = "there is no stream of messages"},
    {"GET", "/mcp/{index}", ACCESS_NONE, native_fault, mcp_no_stream, NULL, .summary = "the same"},

    {"GET", "/", ACCESS_NONE, native_fault, page_reply, NULL, .accept = "text/html",
     .summary = "a page for people, where Accept names text/html; else Elasticsearch's greeting"},
    {"GET", "/_page/page.js", ACCESS_NONE, native_fault, page_script, NULL, .summary = "of the page"},
    {"GET", "/_page/page.css", ACCESS_NONE, native_fault, page_style, NULL, .summary = "of the page"},
    {"GET", "/", ACCESS_READ, elastic_fault, elastic_root, NULL, .summary = "Elasticsearch's greeting"},
    {"POST", "/_search", ACCESS_READ, elastic_fault, elastic_search, elastic_search_answer, .slow = true,
     .item_by_item = true, .summary = "Elasticsearch's search, of the only index"},
    {"GET", "/_search", ACCESS_READ, elastic_fault, elastic_search, elastic_search_answer, .slow = true,
     .item_by_item = true, .summary = "the same"},
    {"POST", "/_msearch", ACCESS_READ, elastic_fault, elastic_msearch, elastic_msearch_answer, .slow = true,
     .item_by_item = true, .summary = "Elasticsearch's searches, a header and a body a line"},
    {"POST", "/_mget", ACCESS_READ, elastic_fault, elastic_mget, NULL, .summary = "Elasticsearch's documents by id"},
    {"GET", "/_cat/indices", ACCESS_READ, elastic_fault, elastic_cat, NULL,
     .summary = "Elasticsearch's list of indexes"},
    {"GET", "/_cluster/health", ACCESS_READ, elastic_fault, elastic_health, NULL, .summary = "Elasticsearch's health"},
    {"POST", "/{index}/_search", ACCESS_READ, elastic_fault, elastic_search, elastic_search_answer, .slow = true,
     .item_by_item = true, .summary = "Elasticsearch's search"},
    {"GET", "/{index}/_search", ACCESS_READ, elastic_fault, elastic_search, elastic_search_answer, .slow = true,
     .item_by_item = true, .summary = "the same; the parameter q is a query"},
    {"POST", "/{index}/_msearch", ACCESS_READ, elastic_fault, elastic_msearch, elastic_msearch_answer, .slow = true,
     .item_by_item = true, .summary = "Elasticsearch's searches of an index"},
    {"POST", "/{index}/_count", ACCESS_READ, elastic_fault, elastic_count, elastic_count_answer,
     .summary = "Elasticsearch's count"},
    {"GET", "/{index}/_count", ACCESS_READ, elastic_fault, elastic_count, elastic_count_answer, .summary = "the same"},
    {"POST", "/{index}/_mget", ACCESS_READ, elastic_fault, elastic_mget, NULL,
     .summary = "Elasticsearch's documents by id, of an index"},
    {"GET", "/{index}/_doc/{id}", ACCESS_READ, elastic_fault, elastic_document, NULL,
     .summary = "Elasticsearch's document"},
    {"GET", "/{index}/_source/{id}", ACCESS_READ, elastic_fault, elastic_source, NULL,
     .summary = "Elasticsearch's document, its source alone"},
    {"GET", "/{index}/_mapping", ACCESS_READ, elastic_fault, elastic_mapping, NULL,
     .summary = "Elasticsearch's mapping"},
    {"PUT", "/{index}/_doc/{id}", ACCESS_WRITE, elastic_fault, elastic_put, elastic_write_answer,
     .summary = "Elasticsearch's index: add or replace a document"},
    {"POST", "/{index}/_doc/{id}", ACCESS_WRITE, elastic_fault, elastic_put, elastic_write_answer,
     .summary = "the same"},
    {"DELETE", "/{index}/_doc/{id}", ACCESS_WRITE, elastic_fault, elastic_delete, elastic_write_answer,
     .summary = "Elasticsearch's delete"},
    {"POST", "/{index}/_doc", ACCESS_WRITE, elastic_fault, elastic_put, elastic_write_answer,
     .summary = "add a document under an id that the server makes"},
    {"PUT", "/{index}/_create/{id}", ACCESS_WRITE, elastic_fault, elastic_create, elastic_write_answer,
     .summary = "Elasticsearch's create: add a document of a new id"},
    {"POST", "/{index}/_create/{id}", ACCESS_WRITE, elastic_fault, elastic_create, elastic_write_answer,
     .summary = "the same"},
    {"POST", "/{index}/_update/{id}", ACCESS_WRITE, elastic_fault, elastic_update, elastic_write_answer,
     .summary = "Elasticsearch's update by a document"},
    {"POST", "/_bulk", ACCESS_WRITE, elastic_fault, elastic_bulk, elastic_bulk_answer,
     .summary = "Elasticsearch's bulk: index, create, update, delete, of one index"},
    {"PUT", "/_bulk", ACCESS_WRITE, elastic_fault, elastic_bulk, elastic_bulk_answer, .summary = "the same"},
    {"POST", "/{index}/_bulk", ACCESS_WRITE, elastic_fault, elastic_bulk, elastic_bulk_answer,
     .summary = "Elasticsearch's bulk of an index"},
    {"PUT", "/{index}/_bulk", ACCESS_WRITE, elastic_fault, elastic_bulk, elastic_bulk_answer, .summary = "the same"},
    {"POST", "/{index}/_refresh", ACCESS_READ, elastic_fault, elastic_refresh, elastic_refresh_answer,
     .summary = "serve the last commit from now on"},
    {"GET", "/{index}/_refresh", ACCESS_READ, elastic_fault, elastic_refresh, elastic_refresh_answer,
     .summary = "the same"},
    {"GET", "/{index}", ACCESS_READ, elastic_fault, elastic_index, NULL, .summary = "Elasticsearch's index"},
};
/* clang-format on */

enum { N_ROUTES = sizeof routes / sizeof *routes };

const route *routes_all(size_t *n)
{
    *n = N_ROUTES;
    return routes;
}

/* ---- matching ---- */

/* Whether the path has the form. What stands for {index} and for {id} is len[i] bytes at begin[i]. */
static bool matches(const char *form, const char *path, const char *begin[2], size_t len[2])
{
    for (; *form; ++form) {
        if (*form != '{') {
            if (*form != *path++)
                return false;
            continue;
        }
        const bool is_id = form[1] == 'i' && form[2] == 'd';
        form += strcspn(form, "}");
        const size_t n = form[1] ? strcspn(path, "/") : strlen(path); /* the last one takes the rest */
        if (n == 0 || (!is_id && memchr(path, '/', n)))
            return false;
        begin[is_id] = path;
        len[is_id] = n;
        path += n;
    }
    return *path == 0;
}

static bool has_method(const route *r, const char *method)
{
    return strcmp(r->method, method) == 0 || (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

static bool is_accepted(exchange *x, const route *r)
{
    const char *accept = r->accept ? exchange_header(x, "Accept") : NULL;
    return !r->accept || (accept && strstr(accept, r->accept));
}

static void add_method(char list[64], const char *method)
{
    const size_t len = strlen(list);
    if (!strstr(list, method))
        snprintf(list + len, 64 - len, "%s%s", len ? ", " : "", method);
}

const route *routes_find(exchange *x, char allowed[64])
{
    allowed[0] = 0;
    for (size_t i = 0; i < N_ROUTES; ++i) {
        const char *begin[2] = {"", ""};
        size_t len[2] = {0, 0};
        if (!matches(routes[i].path, x->path, begin, len))
            continue;
        add_method(allowed, routes[i].method);
        if (!has_method(&routes[i], x->method) || !is_accepted(x, &routes[i]))
            continue;
        if (len[0]) {
            x->index = begin[0];
            x->path[begin[0] - x->path + (ptrdiff_t)len[0]] = 0;
        }
        if (len[1])
            x->id = begin[1];
        return &routes[i];
    }
    return NULL;
}

/* ---- /openapi.json ---- */

static void put_parameters(gx_text *t, const char *path)
{
    bool any = false;
    for (const char *p = path; (p = strchr(p, '{')); ++p) {
        gx_text_add_string(t, any ? "," : ",\"parameters\":[");
        gx_text_add_format(t, "{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"}}",
                           (int)strcspn(p + 1, "}"), p + 1);
        any = true;
    }
    gx_text_add_string(t, any ? "]" : "");
}

static void put_route(gx_text *t, const route *r)
{
    gx_text_add_format(t, "\"%s\":{\"summary\":",
                       strcmp(r->method, "POST") == 0     ? "post"
                       : strcmp(r->method, "PUT") == 0    ? "put"
                       : strcmp(r->method, "PATCH") == 0  ? "patch"
                       : strcmp(r->method, "DELETE") == 0 ? "delete"
                                                          : "get");
    gx_text_add_json(t, r->summary, strlen(r->summary));
    put_parameters(t, r->path);
    if (r->parse == native_search || r->parse == native_count) {
        gx_text_add_string(t, ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\","
                              "\"properties\":{");
        native_put_schema(t);
        gx_text_add_string(t, "},\"additionalProperties\":false}}}}");
    }
    gx_text_add_string(t, ",\"responses\":{\"200\":{\"description\":\"the answer\"},\"400\":{\"description\":\"the "
                          "request is malformed: message, member, line, column\"}}}");
}

void routes_openapi(exchange *x)
{
    gx_text *t = &x->reply;
    gx_text_add_format(t, "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"gpuidx\",\"version\":\"%s\"},\"paths\":{",
                       gx_version());
    for (size_t i = 0, k; i < N_ROUTES; i = k) {
        if (routes[i].accept) { /* the other route of this path stands for both */
            k = i + 1;
            continue;
        }
        gx_text_add_format(t, "%s\"%s\":{", i ? "," : "", routes[i].path);
        for (k = i; k < N_ROUTES && strcmp(routes[k].path, routes[i].path) == 0; ++k) {
            gx_text_add_string(t, k > i ? "," : "");
            put_route(t, &routes[k]);
        }
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "}}\n");
    exchange_reply(x, 200);
}
