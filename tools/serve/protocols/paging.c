/* paging.c: the http-json search backend of agent frameworks, such as pi-serini's: a search of which agents read page
 * after page, and documents that they read some lines at a time. Results and lines are numbered from 1.
 *
 *   /agents/{index}/search   {"query", "offset", "limit"} --> {"hits", "hasMore", "nextOffset", "totalHits"}
 *   /agents/{index}/read     {"docid", "offset", "limit"} --> {"found", "docid", "text", "nextOffset", ...}
 *
 * The first page searches as deep as --window says; the others come from the results that are kept. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols.h"
#include "tools/serve/searches.h"
#include "tools/serve/protocols/windows.h"

enum { DEFAULT_LINES = 200, SNIPPET_WORDS = 40 };

typedef struct page {
    exchange *x;
    const char *query, *filter, *id, *docid;
    size_t query_len, filter_len, id_len, docid_len;
    uint64_t offset, limit; /* offset from 1 */
    bool tell;              /* the window's id is told */
    window *window;
} page;

static void free_page(void *extra)
{
    page *p = extra;
    window_release(p->window);
    free(p);
}

static page *open_page(exchange *x)
{
    page *p = calloc(1, sizeof *p);
    if (!p) {
        fault_set(&x->fault, 503, "no memory for the request");
        return NULL;
    }
    *p = (page){.x = x, .offset = 1};
    x->extra = p;
    x->free_extra = free_page;
    return p;
}

/* ---- a page of results ---- */

/* The parts of a hit that are the document's; of one that is not there any more, none. */
static gx_status put_parts(exchange *x, const char *id, gx_highlighter *marks, gx_error *err)
{
    const gx_index *ix = x->at->ix;
    gx_text *t = &x->reply;
    gx_snippet snippet = {0};
    uint64_t docid;
    size_t len, cap = 0;
    char *text = NULL;
    if (!native_find_document(x, id, strlen(id), &docid))
        return GX_OK;
    const char *title = gx_index_doc_title(ix, docid, &len);
    if (len) {
        gx_text_add_string(t, ",\"title\":");
        gx_text_add_json(t, title, len);
    }
    gx_status st = gx_index_doc_text(ix, docid, &text, &cap, &len, err);
    if (st == GX_OK)
        st = gx_highlighter_snippet(marks, text, len, SNIPPET_WORDS, &snippet, err);
    if (st == GX_OK) {
        gx_text_add_string(t, ",\"snippet\":");
        gx_text_add_json(t, text + snippet.begin, snippet.end - snippet.begin);
        gx_text_add_format(t, ",\"snippetTruncated\":%s", snippet.end - snippet.begin < len ? "true" : "false");
    }
    free(text);
    return st == GX_ENOTFOUND ? GX_OK : st;
}

static gx_status put_hits(exchange *x, const window *w, uint64_t from, uint64_t to, gx_error *err)
{
    const gx_query q = {.size = sizeof q, .kind = x->sv->defaults.kind, .text = w->query, .len = strlen(w->query)};
    gx_highlighter *marks = NULL;
    gx_text *t = &x->reply;
    gx_status st = gx_highlighter_open(&marks, x->at->ix, &q, err);
    gx_text_add_string(t, "{\"hits\":[");
    for (uint64_t i = from; i < to && st == GX_OK; ++i) {
        const char *id = w->ids.bytes + w->begins[i];
        gx_text_add_string(t, i > from ? ",{\"docid\":" : "{\"docid\":");
        gx_text_add_json(t, id, strlen(id));
        gx_text_add_string(t, ",\"score\":");
        gx_text_add_score(t, w->scores[i]);
        st = put_parts(x, id, marks, err);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "]");
    gx_highlighter_close(marks);
    return st;
}

static void reply_page(exchange *x)
{
    const page *p = x->extra;
    const window *w = p->window;
    gx_text *t = &x->reply;
    gx_error err = {0};
    const uint64_t from = p->offset - 1 < w->n ? p->offset - 1 : w->n;
    const uint64_t to = w->n - from < p->limit ? w->n : from + p->limit;
    const gx_status st = put_hits(x, w, from, to, &err);
    if (st != GX_OK) {
        fault_set(&x->fault, http_status(st), "%s", err.text);
        return;
    }
    gx_text_add_format(t, ",\"hasMore\":%s", to < w->n ? "true" : "false");
    if (to < w->n)
        gx_text_add_format(t, ",\"nextOffset\":%llu", (unsigned long long)to + 1);
    if (w->n < w->depth)
        gx_text_add_format(t, ",\"totalHits\":%u", w->n);
    if (p->tell)
        gx_text_add_format(t, ",\"window\":\"%s\"", w->id);
    gx_text_add_format(t, ",\"timingMs\":{\"request\":%.3f}}\n", 1e3 * (serve_clock() - x->began));
    exchange_reply(x, 200);
}

void paging_answer(exchange *x)
{
    page *p = x->extra;
    p->window = windows_keep(x->sv->windows, x, &x->searches[0], p->filter);
    if (p->window)
        reply_page(x);
    else
        fault_set(&x->fault, 503, "no memory for the results");
}

/* ---- what is asked ---- */

static bool read_query(reader *r, const json_t *value, void *to)
{
    page *p = to;
    return reader_string(r, value, &p->query, &p->query_len) && (p->query_len || reader_fail(r, "it is empty"));
}

static bool read_filter(reader *r, const json_t *value, void *to)
{
    return reader_string(r, value, &((page *)to)->filter, &((page *)to)->filter_len);
}

static bool read_docid(reader *r, const json_t *value, void *to)
{
    page *p = to;
    return reader_string(r, value, &p->docid, &p->docid_len) && (p->docid_len || reader_fail(r, "it is empty"));
}

static bool read_offset(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 1, UINT32_MAX, &((page *)to)->offset);
}

static bool read_limit(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 1, UINT32_MAX, &((page *)to)->limit);
}

static bool read_window(reader *r, const json_t *value, void *to)
{
    page *p = to;
    p->tell = true;
    return json_is_true(value) || reader_string(r, value, &p->id, &p->id_len);
}

/* Search as deep as a window is. */
static void begin_search(reader *r, page *p)
{
    exchange *x = p->x;
    gx_error err = {0};
    plan *wanted = native_new_plan(x);
    if (!wanted)
        return;
    const gx_status st = native_open_filter(x, p->filter, p->filter_len, &wanted->filter, &err);
    if (st == GX_EUSAGE) {
        reader_enter(r, "filter", 0);
        reader_fail(r, "%s", err.text);
        return;
    }
    if (st != GX_OK) {
        fault_set(&x->fault, http_status(st), "%s", err.text);
        return;
    }
    search *s = native_settle(x, wanted, x->sv->limits.window) ? exchange_add_search(x, 0) : NULL;
    if (s) {
        s->text = p->query;
        s->len = p->query_len;
    }
}

static void find_window(reader *r, page *p)
{
    exchange *x = p->x;
    if (p->id)
        p->window = windows_find(x->sv->windows, x, p->id);
    else if (p->query)
        p->window = windows_find_query(x->sv->windows, x, p->query, p->filter);
    if (p->window) {
        x->job = reply_page;
    } else if (p->id) {
        reader_enter(r, "window", 0);
        reader_fail(r, "it is not known, or no longer; search again");
        x->fault.status = 404;
    } else if (p->query) {
        begin_search(r, p);
    } else {
        reader_fail(r, "'query' is missing");
    }
}

void paging_search(exchange *x)
{
    static const member members[] = {{"query", read_query},
                                     {"offset", read_offset},
                                     {"limit", read_limit},
                                     {"filter", read_filter},
                                     {"window", read_window}};
    reader r = {0};
    page *p = exchange_open_index(x, x->index) ? open_page(x) : NULL;
    if (p && exchange_read_json(x, &r) && reader_object(&r, r.root, members, sizeof members / sizeof *members, p)) {
        p->limit = p->limit ? p->limit : 10;
        if (p->id && p->query)
            reader_fail(&r, "'query' and the id of a window: one of them");
        else
            find_window(&r, p);
    }
    reader_close(&r);
}

/* ---- documents ---- */

/* Where line number n, from 0, begins; len: there are not so many. */
static size_t find_line(const char *text, size_t len, uint64_t n)
{
    size_t at = 0;
    while (n-- && at < len) {
        const char *stop = memchr(text + at, '\n', len - at);
        at = stop ? (size_t)(stop - text) + 1 : len;
    }
    return at;
}

static uint64_t count_lines(const char *text, size_t len)
{
    uint64_t n = 0;
    for (size_t at = 0; at < len; ++n)
        at += find_line(text + at, len - at, 1);
    return n;
}

static void put_lines(gx_text *t, const page *p, const char *text, size_t len)
{
    const uint64_t all = count_lines(text, len), first = p->offset - 1;
    const size_t from = find_line(text, len, first);
    size_t n = find_line(text + from, len - from, p->limit);
    const uint64_t lines = count_lines(text + from, n);
    const bool more = from + n < len;
    while (more && n && (text[from + n - 1] == '\n' || text[from + n - 1] == '\r'))
        --n;
    gx_text_add_string(t, ",\"text\":");
    gx_text_add_json(t, text + from, n);
    gx_text_add_format(t, ",\"offset\":%llu,\"limit\":%llu,\"totalUnits\":%llu", (unsigned long long)p->offset,
                       (unsigned long long)p->limit, (unsigned long long)all);
    if (lines)
        gx_text_add_format(t, ",\"returnedOffsetStart\":%llu,\"returnedOffsetEnd\":%llu", (unsigned long long)p->offset,
                           (unsigned long long)(first + lines));
    gx_text_add_format(t, ",\"truncated\":%s", more ? "true" : "false");
    if (more)
        gx_text_add_format(t, ",\"nextOffset\":%llu", (unsigned long long)(first + lines + 1));
}

static void reply_document(exchange *x, const page *p)
{
    gx_text *t = &x->reply;
    gx_error err = {0};
    uint64_t docid;
    size_t len = 0, cap = 0, title_len;
    char *text = NULL;
    const bool found = native_find_document(x, p->docid, p->docid_len, &docid);
    gx_status st = found ? gx_index_doc_text(x->at->ix, docid, &text, &cap, &len, &err) : GX_OK;
    gx_text_add_format(t, "{\"found\":%s,\"docid\":", found ? "true" : "false");
    gx_text_add_json(t, p->docid, p->docid_len);
    const char *title = found ? gx_index_doc_title(x->at->ix, docid, &title_len) : NULL;
    if (title && title_len) {
        gx_text_add_string(t, ",\"title\":");
        gx_text_add_json(t, title, title_len);
    }
    if (found && st == GX_OK)
        put_lines(t, p, text, len);
    gx_text_add_format(t, ",\"timingMs\":{\"request\":%.3f}}\n", 1e3 * (serve_clock() - x->began));
    free(text);
    if (st == GX_ENOTFOUND)
        fault_set(&x->fault, 400, "the index '%s' stores no texts", x->index);
    else if (st != GX_OK)
        fault_set(&x->fault, http_status(st), "%s", err.text);
    else
        exchange_reply(x, 200);
}

void paging_read(exchange *x)
{
    static const member members[] = {{"docid", read_docid}, {"offset", read_offset}, {"limit", read_limit}};
    reader r = {0};
    page *p = exchange_open_index(x, x->index) ? open_page(x) : NULL;
    if (p && exchange_read_json(x, &r) && reader_object(&r, r.root, members, 3, p)) {
        p->limit = p->limit ? p->limit : DEFAULT_LINES;
        if (p->docid)
            reply_document(x, p);
        else
            reader_fail(&r, "'docid' is missing");
    }
    reader_close(&r);
}
