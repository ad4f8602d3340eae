/* docs.c: documents by id: _doc, _source, _mget. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols/elastic/elastic.h"

/* The members of a document that was found, or not. */
static gx_status put_document(exchange *x, const char *id, const source_options *source, bool *found, gx_error *err)
{
    gx_text *t = &x->reply;
    uint64_t docid;
    *found = native_find_document(x, id, strlen(id), &docid);
    gx_text_add_string(t, "{\"_index\":");
    gx_text_add_json(t, x->index, strlen(x->index));
    gx_text_add_string(t, ",\"_id\":");
    gx_text_add_json(t, id, strlen(id));
    if (*found)
        gx_text_add_string(t, ",\"_version\":1,\"_seq_no\":0,\"_primary_term\":1");
    gx_text_add_format(t, ",\"found\":%s", *found ? "true" : "false");
    const gx_status st = *found ? source_write(t, x->at->ix, docid, source, err) : GX_OK;
    gx_text_add_string(t, "}");
    return st;
}

void elastic_document(exchange *x)
{
    static const char *const names[] = {"_source", NULL};
    source_options source = {0};
    gx_error err = {0};
    bool found;
    if (!exchange_open_index(x, x->index) || !elastic_check_arguments(x, names) ||
        !source_read_text(x, exchange_argument(x, "_source"), &source))
        return;
    const gx_status st = put_document(x, x->id, &source, &found, &err);
    if (st != GX_OK)
        fault_set(&x->fault, http_status(st), "%s", err.text);
    else
        elastic_reply(x, found ? 200 : 404);
}

void elastic_source(exchange *x)
{
    source_options source = {0};
    gx_error err = {0};
    uint64_t docid;
    if (!exchange_open_index(x, x->index) || !elastic_check_arguments(x, NULL))
        return;
    if (!native_find_document(x, x->id, strlen(x->id), &docid)) {
        fault_set(&x->fault, 404, "Document not found [%.60s]/[%.200s]", x->index, x->id);
        return;
    }
    const gx_status st = source_write(&x->reply, x->at->ix, docid, &source, &err);
    static const char prefix[] = ",\"_source\":";
    if (st == GX_OK && !x->reply.failed) {
        x->reply.len -= sizeof prefix - 1;
        memmove(x->reply.bytes, x->reply.bytes + sizeof prefix - 1, x->reply.len);
        elastic_reply(x, 200);
    } else {
        fault_set(&x->fault, http_status(st), "%s", err.text);
    }
}

/* ---- _mget ---- */

typedef struct many {
    exchange *x;
    source_options source, own;
    const char *id;
    size_t n;
} many;

static bool put_one(reader *r, many *m, const char *id, const source_options *source)
{
    gx_error err = {0};
    bool found;
    if (++m->n > m->x->sv->limits.queries)
        return fault_set(r->fault, 413, "a request has at most %u documents", m->x->sv->limits.queries);
    gx_text_add_string(&m->x->reply, m->n > 1 ? "," : "");
    const gx_status st = put_document(m->x, id, source, &found, &err);
    return st == GX_OK || fault_set(r->fault, http_status(st), "%s", err.text);
}

static bool read_id(reader *r, const json_t *value, void *to)
{
    size_t len;
    return reader_string(r, value, &((many *)to)->id, &len);
}

static bool read_index(reader *r, const json_t *value, void *to)
{
    many *m = to;
    const char *name;
    size_t len;
    if (!reader_string(r, value, &name, &len))
        return false;
    if (!m->x->at) {
        m->x->index = name;
        return exchange_open_index(m->x, name);
    }
    return strcmp(name, m->x->index) == 0 || reader_fail(r, "the documents of one _mget are of one index");
}

static bool read_own_source(reader *r, const json_t *value, void *to)
{
    many *m = to;
    m->own = (source_options){.ix = m->x->at ? m->x->at->ix : NULL};
    return source_read(r, value, &m->own);
}

static bool read_doc(reader *r, const json_t *value, void *to)
{
    static const member members[] = {{"_id", read_id}, {"_index", read_index}, {"_source", read_own_source}};
    many *m = to;
    m->id = NULL;
    m->own = m->source;
    if (!reader_object(r, value, members, sizeof members / sizeof *members, m))
        return false;
    if (!m->id)
        return reader_fail(r, "'_id' is missing");
    if (!m->x->at)
        return reader_fail(r, "'_index' is missing");
    return put_one(r, m, m->id, &m->own);
}

static bool read_docs(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_doc, to);
}

static bool read_id_alone(reader *r, const json_t *value, void *to)
{
    many *m = to;
    const char *id;
    size_t len;
    if (!m->x->at)
        return reader_fail(r, "ids need an index in the path");
    return reader_string(r, value, &id, &len) && put_one(r, m, id, &m->source);
}

static bool read_ids(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_id_alone, to);
}

void elastic_mget(exchange *x)
{
    static const char *const names[] = {"_source", NULL};
    static const member members[] = {{"docs", read_docs}, {"ids", read_ids}};
    many m = {.x = x};
    reader r = {0};
    if ((*x->index && !exchange_open_index(x, x->index)) || !elastic_check_arguments(x, names) ||
        !source_read_text(x, exchange_argument(x, "_source"), &m.source))
        return;
    gx_text_add_string(&x->reply, "{\"docs\":[");
    if (exchange_read_json(x, &r) && reader_object(&r, r.root, members, 2, &m)) {
        gx_text_add_string(&x->reply, "]}");
        elastic_reply(x, 200);
    }
    reader_close(&r);
}
