/* write.c: documents are written: _doc, _create, _update, _bulk, and _refresh of what is written. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols/elastic/elastic.h"
#include "tools/serve/writes.h"

/* ---- replies ---- */

static const char *result_name(write_result r)
{
    static const char *const names[] = {"", "created", "updated", "deleted", "not_found"};
    return names[r];
}

static int result_status(const write_op *op)
{
    static const int statuses[] = {0, 201, 200, 200, 404};
    return op->result == WRITE_FAILED ? op->fault.status : statuses[op->result];
}

static void put_place(gx_text *t, const char *index, const write_op *op)
{
    gx_text_add_string(t, "\"_index\":");
    gx_text_add_json(t, index, strlen(index));
    gx_text_add_string(t, ",\"_id\":");
    if (op->doc.id)
        gx_text_add_json(t, op->doc.id, op->doc.id_len);
    else
        gx_text_add_string(t, "null");
}

static void put_result(gx_text *t, const char *index, const write_op *op, bool forced)
{
    put_place(t, index, op);
    gx_text_add_format(t,
                       ",\"_version\":1,\"result\":\"%s\"%s,\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0},"
                       "\"_seq_no\":0,\"_primary_term\":1",
                       result_name(op->result), forced ? ",\"forced_refresh\":true" : "");
}

static const char *error_type(const write_op *op)
{
    if (op->result == WRITE_ABSENT)
        return "document_missing_exception";
    return op->fault.status == 409 ? "version_conflict_engine_exception" : "document_parsing_exception";
}

/* {"type", "reason"} of a change that failed. */
static void put_cause(gx_text *t, const write_op *op)
{
    char reason[960];
    const fault *f = &op->fault;
    if (op->result == WRITE_ABSENT)
        snprintf(reason, sizeof reason, "[%.*s]: document missing", (int)(op->doc.id_len < 200 ? op->doc.id_len : 200),
                 op->doc.id);
    else if (f->line)
        snprintf(reason, sizeof reason, "[%u:%u] %s%s%s", f->line, f->column ? f->column : 1, f->member,
                 f->member[0] ? ": " : "", f->text);
    else
        snprintf(reason, sizeof reason, "%s", f->text);
    gx_text_add_format(t, "{\"type\":\"%s\",\"reason\":", error_type(op));
    gx_text_add_json(t, reason, strlen(reason));
    gx_text_add_string(t, "}");
}

/* An update of a document that is not there is an error; a deletion is none. */
static bool is_error(const write_op *op)
{
    return op->result == WRITE_FAILED || (op->result == WRITE_ABSENT && op->kind == WRITE_UPDATE);
}

void elastic_write_answer(exchange *x)
{
    const writing *w = x->extra;
    const write_op *op = &w->ops[0];
    gx_text *t = &x->reply;
    gx_text_add_string(t, "{");
    if (is_error(op)) {
        gx_text_add_string(t, "\"error\":{\"root_cause\":[");
        put_cause(t, op);
        gx_text_add_string(t, "],\"type\":\"document_missing_exception\",\"reason\":\"document missing\"}");
        gx_text_add_format(t, ",\"status\":%d", result_status(op));
    } else {
        put_result(t, x->index, op, w->now);
    }
    gx_text_add_string(t, "}");
    elastic_reply(x, (unsigned)result_status(op));
}

/* ---- one document ---- */

static const char *const write_arguments[] = {
    "op_type", "wait_for_active_shards", "require_alias", "retry_on_conflict", "_source", "filter_path", NULL};

static bool check_write_arguments(exchange *x)
{
    const char *source = exchange_argument(x, "_source"), *path = exchange_argument(x, "filter_path");
    const char *alias = exchange_argument(x, "require_alias");
    if (!elastic_check_arguments(x, write_arguments))
        return false;
    if (source && strcmp(source, "false"))
        return fault_set(&x->fault, 400, "_source: documents are not sent back");
    if (path)
        return fault_set(&x->fault, 400, "filter_path is not available in this version of gpuidx");
    return !alias || strcmp(alias, "false") == 0 || fault_set(&x->fault, 400, "require_alias: there are no aliases");
}

static write_op *begin_one(exchange *x, write_kind kind)
{
    writing *w = check_write_arguments(x) ? writes_open(x, x->index) : NULL;
    write_op *op = w ? writes_add(w) : NULL;
    if (!op)
        return NULL;
    w->single = true;
    op->kind = kind;
    op->doc.id = *x->id ? x->id : NULL;
    op->doc.id_len = strlen(x->id);
    return op;
}

static void read_body(exchange *x, write_op *op)
{
    reader r = {0};
    if (!op->doc.id && !writes_make_id(op))
        fault_set(&x->fault, 503, "no memory for an id");
    else if (exchange_read_json(x, &r))
        writes_read_document(&r, r.root, x, op);
    reader_close(&r);
}

void elastic_put(exchange *x)
{
    const char *type = exchange_argument(x, "op_type");
    const int i = type ? gx_word_index("index|create", type, strlen(type)) : *x->id == 0;
    write_op *op = i >= 0 ? begin_one(x, i == 1 ? WRITE_CREATE : WRITE_PUT) : NULL;
    if (i < 0)
        fault_set(&x->fault, 400, "op_type: '%.40s' is neither index nor create", type);
    if (op)
        read_body(x, op);
}

void elastic_create(exchange *x)
{
    write_op *op = begin_one(x, WRITE_CREATE);
    if (op)
        read_body(x, op);
}

void elastic_delete(exchange *x)
{
    begin_one(x, WRITE_DELETE);
}

/* ---- updates ---- */

typedef struct updating {
    exchange *x;
    write_op *op;
    const json_t *doc;
} updating;

static bool read_doc(reader *r, const json_t *value, void *to)
{
    updating *u = to;
    u->doc = value;
    return writes_read_document(r, value, u->x, u->op);
}

static bool read_upsert(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &((updating *)to)->op->upsert);
}

static bool read_flag(reader *r, const json_t *value, void *to)
{
    bool ignored;
    (void)to;
    return reader_bool(r, value, &ignored);
}

static bool read_update(reader *r, exchange *x, write_op *op)
{
    static const member members[] = {
        {"doc", read_doc}, {"doc_as_upsert", read_upsert}, {"detect_noop", read_flag}, {"upsert", NULL},
        {"script", NULL},  {"scripted_upsert", NULL},      {"_source", NULL}};
    updating u = {x, op, NULL};
    return reader_object(r, r->root, members, sizeof members / sizeof *members, &u) &&
           (u.doc || reader_fail(r, "'doc' is missing"));
}

void elastic_update(exchange *x)
{
    reader r = {0};
    write_op *op = begin_one(x, WRITE_UPDATE);
    if (op && exchange_read_json(x, &r))
        read_update(&r, x, op);
    reader_close(&r);
}

/* ---- _bulk ---- */

typedef struct bulk {
    exchange *x;
    writing *w;
    write_op *op; /* of the line */
    write_kind kind;
    const json_t *id;
} bulk;

static bool read_index(reader *r, const json_t *value, void *to)
{
    bulk *b = to;
    const char *name;
    size_t len;
    if (!reader_string(r, value, &name, &len))
        return false;
    if (b->w)
        return strcmp(name, b->x->index) == 0 ||
               reader_fail(r, "the documents of one _bulk are of one index, '%.100s'", b->x->index);
    b->x->index = name;
    b->w = writes_open(b->x, name);
    return b->w != NULL;
}

static bool read_id(reader *r, const json_t *value, void *to)
{
    const char *id;
    size_t len;
    ((bulk *)to)->id = value;
    return json_is_null(value) || reader_string(r, value, &id, &len);
}

static bool read_any(reader *r, const json_t *value, void *to)
{
    (void)r;
    (void)value;
    (void)to;
    return true; /* where there is one shard and no other writer, it changes nothing */
}

static bool read_action(reader *r, const json_t *value, void *to)
{
    static const member members[] = {
        {"_index", read_index},  {"_id", read_id},          {"routing", read_any},      {"retry_on_conflict", read_any},
        {"require_alias", NULL}, {"pipeline", NULL},        {"version", NULL},          {"version_type", NULL},
        {"if_seq_no", NULL},     {"if_primary_term", NULL}, {"dynamic_templates", NULL}};
    bulk *b = to;
    const char *name = r->steps[r->n_steps - 1].name;
    b->kind = (write_kind)gx_word_index("index|create|update|delete", name, strlen(name));
    if (!reader_object(r, value, members, sizeof members / sizeof *members, b))
        return false;
    if (!b->w)
        return reader_fail(r, "'_index' is missing, and the path names none");
    if (!json_is_string(b->id) && (b->kind == WRITE_UPDATE || b->kind == WRITE_DELETE))
        return reader_fail(r, "'_id' is missing");
    return true;
}

/* The line that says what is done. It is kept: ids lie in it. */
static bool read_action_line(bulk *b, const char *line, size_t len, unsigned number)
{
    static const member members[] = {
        {"index", read_action}, {"create", read_action}, {"update", read_action}, {"delete", read_action}};
    exchange *x = b->x;
    reader r;
    b->id = NULL;
    bool good = reader_open(&r, &x->fault, line, len, x->sv->limits.depth);
    r.first_line = number;
    json_array_append(x->json[0], r.root);
    if (!good)
        x->fault.line += number;
    else if (json_object_size(r.root) != 1)
        good = reader_fail(&r, "this is no object with one of index, create, update and delete");
    else
        good = reader_object(&r, r.root, members, sizeof members / sizeof *members, b);
    b->op = good ? writes_add(b->w) : NULL;
    reader_close(&r);
    if (!b->op)
        return false;
    b->op->kind = b->kind;
    b->op->line = number + 1;
    if (json_is_string(b->id)) {
        b->op->doc.id = json_string_value(b->id);
        b->op->doc.id_len = json_string_length(b->id);
    } else if (!writes_make_id(b->op)) {
        return fault_set(&x->fault, 503, "no memory for an id");
    }
    return true;
}

/* The line with the document: what is wrong with it fails this change alone. */
static void read_source_line(bulk *b, const char *line, size_t len, unsigned number)
{
    exchange *x = b->x;
    write_op *op = b->op;
    reader r;
    if (reader_open(&r, &op->fault, line, len, x->sv->limits.depth)) {
        json_array_append(x->json[0], r.root);
        r.first_line = number;
        if (op->kind == WRITE_UPDATE)
            read_update(&r, x, op);
        else
            writes_read_document(&r, r.root, x, op);
    } else {
        op->fault.line += op->fault.line ? number : number + 1;
    }
    reader_close(&r);
}

/* The line at *at, and *at behind it. */
static const char *take_line(const char **at, const char *end, size_t *len)
{
    const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
    *len = (size_t)((stop ? stop : end) - line);
    *at = stop ? stop + 1 : end;
    return line;
}

static void read_lines(bulk *b)
{
    exchange *x = b->x;
    const char *at = x->body.bytes, *end = at + x->body.len;
    size_t len;
    for (unsigned number = 0; at < end; ++number) {
        const char *line = take_line(&at, end, &len);
        if (strspn(line, " \t\r\n") >= len)
            continue;
        if (!read_action_line(b, line, len, number))
            return;
        if (b->w->n > x->sv->limits.ops) {
            fault_set(&x->fault, 413, "a request has at most %u changes", x->sv->limits.ops);
            return;
        }
        if (b->kind == WRITE_DELETE)
            continue;
        if (at >= end) {
            fault_set(&x->fault, 400, "the line with the document is missing behind the last one");
            x->fault.line = number + 2;
            x->fault.column = 1;
            return;
        }
        line = take_line(&at, end, &len);
        read_source_line(b, line, len, ++number);
    }
    if (!b->w || b->w->n == 0)
        fault_set(&x->fault, 400, "the body is empty; lines with actions and documents are expected");
}

void elastic_bulk(exchange *x)
{
    bulk b = {.x = x};
    if (!check_write_arguments(x) || (*x->index && !(b.w = writes_open(x, x->index))))
        return;
    if (x->body.len == 0 || x->body.bytes[x->body.len - 1] != '\n')
        gx_text_add(&x->body, "\n", 1); /* ends the last line, for strspn */
    if (x->body.failed || !(x->json[0] = json_array()))
        fault_set(&x->fault, 503, "no memory for the request");
    else
        read_lines(&b);
}

void elastic_bulk_answer(exchange *x)
{
    static const char *const names[] = {"index", "create", "update", "delete"};
    const writing *w = x->extra;
    gx_text *t = &x->reply;
    bool errors = false;
    for (size_t i = 0; i < w->n; ++i)
        errors = errors || is_error(&w->ops[i]);
    gx_text_add_format(t, "{\"took\":%u,\"errors\":%s,\"items\":[", (unsigned)(1e3 * (serve_clock() - x->began)),
                       errors ? "true" : "false");
    for (size_t i = 0; i < w->n; ++i) {
        const write_op *op = &w->ops[i];
        gx_text_add_format(t, "%s{\"%s\":{", i ? "," : "", names[op->kind]);
        if (is_error(op)) {
            put_place(t, x->index, op);
            gx_text_add_string(t, ",\"error\":");
            put_cause(t, op);
        } else {
            put_result(t, x->index, op, w->now);
        }
        gx_text_add_format(t, ",\"status\":%d}}", result_status(op));
    }
    gx_text_add_string(t, "]}");
    elastic_reply(x, 200);
}

/* ---- _refresh ---- */

void elastic_refresh(exchange *x)
{
    write_counts ignored;
    if (!elastic_check_arguments(x, NULL))
        return;
    if (writers_count(x->sv->writers, x->index, &ignored)) {
        writing *w = writes_open(x, x->index);
        if (w)
            w->now = w->visible = true;
        return;
    }
    if (!exchange_open_index(x, x->index))
        return;
    snapshot_release(x->at);
    x->at = NULL;
    catalog_refresh(x->sv->catalog, x->index);
    elastic_refresh_answer(x);
}

void elastic_refresh_answer(exchange *x)
{
    gx_text_add_string(&x->reply, "{");
    elastic_put_shards(&x->reply);
    gx_text_add_string(&x->reply, "}");
    elastic_reply(x, 200);
}
