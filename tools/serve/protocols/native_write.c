/* native_write.c: documents are written by our own protocol: one by its path, or many operations in one request. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols.h"
#include "tools/serve/writes.h"

static const char *const arguments[] = {"refresh", NULL};

/* ---- one document ---- */

static write_op *begin_one(exchange *x, write_kind kind)
{
    writing *w = exchange_check_arguments(x, arguments) ? writes_open(x, x->index) : NULL;
    write_op *op = w ? writes_add(w) : NULL;
    if (!op)
        return NULL;
    w->single = true;
    op->kind = kind;
    op->doc.id = x->id;
    op->doc.id_len = strlen(x->id);
    return op;
}

static void read_body(exchange *x, write_op *op)
{
    reader r = {0};
    if (op && exchange_read_json(x, &r))
        writes_read_document(&r, r.root, x, op);
    reader_close(&r);
}

void native_put(exchange *x)
{
    read_body(x, begin_one(x, WRITE_PUT));
}

void native_update(exchange *x)
{
    read_body(x, begin_one(x, WRITE_UPDATE));
}

void native_delete(exchange *x)
{
    begin_one(x, WRITE_DELETE);
}

void native_write_answer(exchange *x)
{
    static const char *const names[] = {"", "created", "replaced", "deleted", "absent"};
    const writing *w = x->extra;
    const write_op *op = &w->ops[0];
    gx_text *t = &x->reply;
    if (op->result == WRITE_ABSENT) {
        fault_set(&x->fault, 404, "there is no document '%.200s' in '%s'", x->id, x->index);
        return;
    }
    gx_text_add_string(t, "{\"schema\":1,\"id\":");
    gx_text_add_json(t, op->doc.id, op->doc.id_len);
    gx_text_add_format(t, ",\"result\":\"%s\",\"commit\":%llu}\n", names[op->result], (unsigned long long)w->commit);
    exchange_reply(x, op->result == WRITE_CREATED ? 201 : 200);
}

/* ---- many ---- */

typedef struct operation {
    exchange *x;
    write_op *op;
} operation;

static bool read_document(reader *r, const json_t *value, void *to)
{
    operation *o = to;
    const char *name = r->steps[r->n_steps - 1].name;
    o->op->kind = (write_kind)gx_word_index("put|add|update", name, strlen(name));
    return writes_read_document(r, value, o->x, o->op) && (o->op->doc.id || reader_fail(r, "the document has no 'id'"));
}

static bool read_deletion(reader *r, const json_t *value, void *to)
{
    write_op *op = ((operation *)to)->op;
    op->kind = WRITE_DELETE;
    return reader_string(r, value, &op->doc.id, &op->doc.id_len);
}

/* Read an operation; what is wrong with it fails it alone. false: the fault of the request is set. */
static bool read_operation(reader *r, const json_t *value, void *to)
{
    static const member members[] = {
        {"put", read_document}, {"add", read_document}, {"update", read_document}, {"delete", read_deletion}};
    writing *w = to;
    operation o = {w->x, w->n < w->x->sv->limits.ops ? writes_add(w) : NULL};
    fault *f = r->fault;
    const uint32_t n_steps = r->n_steps;
    if (!o.op)
        return fault_set(f, 413, "a request has at most %u changes", w->x->sv->limits.ops);
    r->fault = &o.op->fault;
    if (json_is_object(value) && json_object_size(value) == 1)
        reader_object(r, value, members, sizeof members / sizeof *members, &o);
    else
        reader_fail(r, "this is no object with one of put, add, update and delete");
    r->n_steps = n_steps;
    r->fault = f;
    return true;
}

static bool read_operations(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_operation, to);
}

static bool read_line(writing *w, const char *line, size_t len, unsigned number)
{
    exchange *x = w->x;
    reader r;
    fault f = {0};
    bool good = true;
    if (reader_open(&r, &f, line, len, x->sv->limits.depth)) {
        json_array_append(x->json[0], r.root);
        r.first_line = number;
        r.fault = &x->fault;
        good = read_operation(&r, r.root, w);
        if (good)
            w->ops[w->n - 1].line = number + 1;
    } else {
        write_op *op = writes_add(w);
        good = op != NULL;
        if (op) {
            op->fault = f;
            op->fault.line += number;
        }
    }
    reader_close(&r);
    return good;
}

static void read_lines(writing *w)
{
    exchange *x = w->x;
    const char *at = x->body.bytes, *end = at + x->body.len;
    for (unsigned number = 0; at < end; ++number) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t len = (size_t)((stop ? stop : end) - at);
        if (strspn(at, " \t\r\n") < len && !read_line(w, at, len, number))
            return;
        at += len + 1;
    }
    if (w->n == 0)
        fault_set(&x->fault, 400, "there is no operation in the body");
}

void native_write(exchange *x)
{
    static const member members[] = {{"operations", read_operations}};
    writing *w = exchange_check_arguments(x, arguments) ? writes_open(x, x->index) : NULL;
    const char *type = exchange_header(x, "Content-Type");
    reader r = {0};
    if (!w)
        return;
    if (type && strstr(type, "ndjson")) {
        gx_text_add(&x->body, "\n", 1); /* ends the last line, for strspn */
        if (x->body.failed || !(x->json[0] = json_array()))
            fault_set(&x->fault, 503, "no memory for the request");
        else
            read_lines(w);
        return;
    }
    if (exchange_read_json(x, &r) && reader_object(&r, r.root, members, 1, w) && w->n == 0)
        reader_fail(&r, "there is no operation in 'operations'");
    reader_close(&r);
}

static void put_error(gx_text *t, size_t i, const write_op *op)
{
    const fault *f = &op->fault;
    gx_text_add_format(t, "{\"operation\":%zu,\"id\":", i);
    if (op->doc.id)
        gx_text_add_json(t, op->doc.id, op->doc.id_len);
    else
        gx_text_add_string(t, "null");
    gx_text_add_format(t, ",\"status\":%d,\"message\":", f->status);
    gx_text_add_json(t, f->text, strlen(f->text));
    if (f->member[0]) {
        gx_text_add_string(t, ",\"member\":");
        gx_text_add_json(t, f->member, strlen(f->member));
    }
    if (f->line)
        gx_text_add_format(t, ",\"line\":%u,\"column\":%u", f->line, f->column ? f->column : 1);
    gx_text_add_string(t, "}");
}

void native_writes_answer(exchange *x)
{
    static const char *const names[] = {"failed", "created", "replaced", "deleted", "absent"};
    const writing *w = x->extra;
    gx_text *t = &x->reply;
    size_t counts[5] = {0}, n = 0;
    for (size_t i = 0; i < w->n; ++i)
        ++counts[w->ops[i].result];
    gx_text_add_format(t, "{\"schema\":1,\"commit\":%llu", (unsigned long long)w->commit);
    for (size_t i = 0; i < 5; ++i)
        gx_text_add_format(t, ",\"%s\":%zu", names[i], counts[i]);
    gx_text_add_string(t, ",\"errors\":[");
    for (size_t i = 0; i < w->n; ++i)
        if (w->ops[i].result == WRITE_FAILED) {
            gx_text_add_string(t, n++ ? "," : "");
            put_error(t, i, &w->ops[i]);
        }
    gx_text_add_string(t, "]}\n");
    exchange_reply(x, 200);
}
