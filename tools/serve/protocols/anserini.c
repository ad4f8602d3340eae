/* anserini.c: the routes of Anserini's REST server: GET /v1/{index}/search and /v1/{index}/doc/{id}. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols.h"

void anserini_fault(exchange *x)
{
    gx_text_add_string(&x->reply, "{\"error\":");
    gx_text_add_json(&x->reply, x->fault.text, strlen(x->fault.text));
    if (x->fault.member[0]) {
        gx_text_add_string(&x->reply, ",\"member\":");
        gx_text_add_json(&x->reply, x->fault.member, strlen(x->fault.member));
    }
    gx_text_add_string(&x->reply, "}\n");
}

/* "parse": whether documents are objects (the default) or texts. */
static bool read_parse(exchange *x, bool *out)
{
    const char *text = exchange_argument(x, "parse");
    *out = !text || strcmp(text, "true") == 0;
    if (*out || strcmp(text, "false") == 0)
        return true;
    fault_set(&x->fault, 400, "'%.40s' is neither true nor false", text);
    snprintf(x->fault.member, sizeof x->fault.member, "parse");
    return false;
}

void anserini_search(exchange *x)
{
    static const char *const names[] = {"query", "hits", "parse", "qid", "filter", NULL};
    const char *query = exchange_argument(x, "query"), *filter = exchange_argument(x, "filter");
    uint64_t hits = 10;
    bool objects;
    gx_error err = {0};
    if (!exchange_open_index(x, x->index) || !exchange_check_arguments(x, names) ||
        !exchange_count_argument(x, "hits", 1, x->sv->limits.k, &hits) || !read_parse(x, &objects))
        return;
    if (!query) {
        fault_set(&x->fault, 400, "the parameter 'query' is missing");
        return;
    }
    plan *p = exchange_add_plan(x);
    if (!p)
        return;
    p->texts = objects;
    const gx_status st = native_open_filter(x, filter, filter ? strlen(filter) : 0, &p->filter, &err);
    if (st != GX_OK) {
        fault_set(&x->fault, http_status(st), "%s", err.text);
        snprintf(x->fault.member, sizeof x->fault.member, "filter");
        return;
    }
    search *s = native_settle(x, p, hits) ? exchange_add_search(x, 0) : NULL;
    if (s) {
        s->text = query;
        s->len = strlen(query);
    }
}

/* An object, or the text alone; null where the index stores neither. */
static gx_status put_doc(exchange *x, uint64_t docid, bool object, gx_error *err)
{
    gx_text *t = &x->reply;
    char *text = NULL;
    size_t cap = 0, len = 0;
    if (object) {
        gx_text_add_string(t, "{");
        const gx_status st = native_put_document(t, x->at->ix, docid, "contents", err);
        gx_text_add_string(t, "}");
        return st;
    }
    const gx_status st = gx_index_doc_text(x->at->ix, docid, &text, &cap, &len, err);
    if (st == GX_OK)
        gx_text_add_json(t, text, len);
    else
        gx_text_add_string(t, "null");
    free(text);
    return st == GX_ENOTFOUND ? GX_OK : st;
}

void anserini_answer(exchange *x)
{
    const search *s = &x->searches[0];
    gx_text *t = &x->reply;
    gx_error err = {0};
    gx_status st = GX_OK;
    gx_text_add_string(t, "{\"api\":\"v1\",\"index\":");
    gx_text_add_json(t, x->index, strlen(x->index));
    gx_text_add_string(t, ",\"query\":{\"text\":");
    gx_text_add_json(t, s->text, s->len);
    gx_text_add_string(t, "},\"candidates\":[");
    for (uint32_t i = 0; i < s->n_hits && st == GX_OK; ++i) {
        size_t len;
        const char *id = gx_index_doc_id(x->at->ix, s->docids[i], &len);
        gx_text_add_string(t, i ? ",{\"docid\":" : "{\"docid\":");
        gx_text_add_json(t, id, len);
        gx_text_add_string(t, ",\"score\":");
        gx_text_add_score(t, s->scores[i]);
        gx_text_add_format(t, ",\"rank\":%u,\"doc\":", i + 1);
        st = put_doc(x, s->docids[i], s->plan->texts, &err);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "]}\n");
    if (st != GX_OK)
        fault_set(&x->fault, http_status(st), "%s", err.text);
    else
        exchange_reply(x, 200);
}

void anserini_document(exchange *x)
{
    static const char *const names[] = {"parse", NULL};
    uint64_t docid;
    bool object;
    gx_error err = {0};
    gx_text *t = &x->reply;
    if (!exchange_open_index(x, x->index) || !exchange_check_arguments(x, names) || !read_parse(x, &object))
        return;
    if (!native_find_document(x, x->id, strlen(x->id), &docid)) {
        fault_set(&x->fault, 404, "there is no document '%.200s' in '%s'", x->id, x->index);
        return;
    }
    gx_text_add_string(t, "{\"api\":\"v1\",\"index\":");
    gx_text_add_json(t, x->index, strlen(x->index));
    gx_text_add_string(t, ",\"docid\":");
    gx_text_add_json(t, x->id, strlen(x->id));
    gx_text_add_string(t, ",\"doc\":");
    const gx_status st = put_doc(x, docid, object, &err);
    gx_text_add_string(t, "}\n");
    if (st != GX_OK)
        fault_set(&x->fault, http_status(st), "%s", err.text);
    else
        exchange_reply(x, 200);
}
