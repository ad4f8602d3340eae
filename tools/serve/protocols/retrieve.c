/* retrieve.c: Search-R1's POST /retrieve: many queries in one request, answered in their order. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols.h"

typedef struct retrieval {
    exchange *x;
    const json_t *queries;
    uint64_t topk;
    bool scores;
} retrieval;

static bool read_query(reader *r, const json_t *value, void *to)
{
    retrieval *a = to;
    const char *text;
    size_t len;
    search *s = reader_string(r, value, &text, &len) ? exchange_add_search(a->x, 0) : NULL;
    if (s) {
        s->text = text;
        s->len = len;
    }
    return s != NULL;
}

static bool read_queries(reader *r, const json_t *value, void *to)
{
    ((retrieval *)to)->queries = value;
    return reader_array(r, value, read_query, to);
}

static bool read_topk(reader *r, const json_t *value, void *to)
{
    retrieval *a = to;
    return json_is_null(value) || reader_count(r, value, 0, a->x->sv->limits.k, &a->topk);
}

static bool read_scores(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &((retrieval *)to)->scores);
}

void retrieve_search(exchange *x)
{
    static const member members[] = {{"queries", read_queries}, {"topk", read_topk}, {"return_scores", read_scores}};
    retrieval a = {.x = x};
    reader r = {0};
    gx_error err = {0};
    if (*x->index == 0)
        x->index = catalog_name(x->sv->catalog, 0);
    plan *p = exchange_open_index(x, x->index) ? exchange_add_plan(x) : NULL;
    if (p && exchange_read_json(x, &r) && reader_object(&r, r.root, members, 3, &a)) {
        if (!a.queries)
            reader_fail(&r, "'queries' is missing");
        else if (native_open_filter(x, NULL, 0, &p->filter, &err))
            fault_set(&x->fault, 500, "the token's filter: %s", err.text);
        else
            native_settle(x, p, a.topk ? a.topk : 3);
        p->explain = a.scores; /* which has no other meaning here */
    }
    reader_close(&r);
    if (!x->fault.status && x->n_searches == 0) {
        gx_text_add_string(&x->reply, "{\"result\":[]}");
        exchange_reply(x, 200);
    }
}

/* {"id": ..., "contents": "\"title\"\ntext"}, as its corpora are. */
static gx_status put_document(exchange *x, uint64_t docid, gx_text *contents, char **text, size_t *cap, gx_error *err)
{
    size_t len;
    gx_text *t = &x->reply;
    const char *id = gx_index_doc_id(x->at->ix, docid, &len);
    gx_text_add_string(t, "{\"id\":");
    gx_text_add_json(t, id, len);
    gx_text_add_string(t, ",\"contents\":");
    contents->len = 0;
    const char *title = gx_index_doc_title(x->at->ix, docid, &len);
    if (len) {
        gx_text_add_string(contents, "\"");
        gx_text_add(contents, title, len);
        gx_text_add_string(contents, "\"\n");
    }
    const gx_status st = gx_index_doc_text(x->at->ix, docid, text, cap, &len, err);
    if (st == GX_OK)
        gx_text_add(contents, *text, len);
    gx_text_add_json(t, contents->bytes ? contents->bytes : "", contents->len);
    gx_text_add_string(t, "}");
    return st == GX_ENOTFOUND ? GX_OK : st;
}

void retrieve_answer(exchange *x)
{
    gx_text *t = &x->reply, contents = {0};
    const bool scores = x->plans[0].explain;
    char *text = NULL;
    size_t cap = 0;
    gx_error err = {0};
    gx_status st = GX_OK;
    gx_text_add_string(t, "{\"result\":[");
    for (size_t i = 0; i < x->n_searches && st == GX_OK; ++i) {
        const search *s = &x->searches[i];
        gx_text_add_string(t, i ? ",[" : "[");
        for (uint32_t k = 0; k < s->n_hits && st == GX_OK; ++k) {
            gx_text_add_string(t, k ? "," : "");
            gx_text_add_string(t, scores ? "{\"document\":" : "");
            st = put_document(x, s->docids[k], &contents, &text, &cap, &err);
            gx_text_add_string(t, scores ? ",\"score\":" : "");
            if (scores)
                gx_text_add_score(t, s->scores[k]);
            gx_text_add_string(t, scores ? "}" : "");
        }
        gx_text_add_string(t, "]");
    }
    gx_text_add_string(t, "]}");
    free(text);
    free(contents.bytes);
    if (st != GX_OK)
        fault_set(&x->fault, http_status(st), "%s", err.text);
    else
        exchange_reply(x, 200);
}
