/* source_warc.c: WARC 1.0 and 1.1, as ClueWeb and crawls come. Of a record's head three lines
 * count: its type, its id and its length. Responses and resources that are HTML or text are
 * documents; all other records are passed over. Before the page of a response stands the server's
 * head.
 */
#include <stdlib.h>
#include <string.h>

#include "index/corpus/formats/html.h"
#include "index/corpus/source_reader.h"

/* The lines of a record's head that the reader uses. */
typedef struct warc_head {
    bool response, resource, has_length, trec_id;
    bool html, text; /* what Content-Type says: of a resource, or in the server's head */
    uint64_t length;
} warc_head;

static gx_status no_memory(gx_source *s, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
}

/* The value of the head line "NAME: value"; false: it is another line. */
static bool header_is(const char *line, size_t len, const char *name, gx_span *value)
{
    const size_t n = strlen(name);
    if (len <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
        return false;
    const char *p = line + n + 1, *end = line + len;
    while (p < end && (*p == ' ' || *p == '\t'))
        ++p;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        --end;
    *value = (gx_span){(char *)p, (size_t)(end - p)};
    return true;
}

static bool begins(gx_span a, const char *what)
{
    return a.n >= strlen(what) && strncasecmp(a.p, what, strlen(what)) == 0;
}

static void read_type(warc_head *h, gx_span type)
{
    h->html = begins(type, "text/html") || begins(type, "application/xhtml");
    h->text = begins(type, "text/");
}

/* Read a line of the record's head. The id goes to s->id. */
static bool read_head_line(gx_source *s, warc_head *h, const char *line, size_t len)
{
    gx_span v;
    if (header_is(line, len, "WARC-Type", &v)) {
        h->response = v.n == 8 && begins(v, "response");
        h->resource = v.n == 8 && begins(v, "resource");
    } else if (header_is(line, len, "Content-Length", &v)) {
        h->has_length = v.n > 0 && v.n < 19 && strspn(v.p, "0123456789") >= v.n;
        h->length = h->has_length ? strtoull(v.p, NULL, 10) : 0;
    } else if (header_is(line, len, "Content-Type", &v)) {
        read_type(h, v);
    } else if (header_is(line, len, "WARC-TREC-ID", &v)) {
        h->trec_id = true;
        s->id.n = 0;
        return gx_scratch_add(&s->id, v.p, v.n);
    } else if (header_is(line, len, "WARC-Record-ID", &v) && !h->trec_id) {
        s->id.n = 0;
        return gx_scratch_add(&s->id, v.p, v.n);
    }
    return true;
}

/* Read the next record's head. *found false: there is none. */
static gx_status read_head(gx_source *s, warc_head *h, bool *found, gx_error *err)
{
    char *line;
    size_t len;
    *h = (warc_head){0};
    s->id.n = 0;
    do {
        s->rec.line = s->in.line;
        const gx_status st = gx_input_line(&s->in, &line, &len, found, err);
        if (st || !*found)
            return st;
    } while (len == 0);
    if (len < 7 || memcmp(line, "WARC/1.", 7) != 0) {
        s->in.begin = s->in.end;
        s->in.eof = true;
        return gx_fail_record(s, s->rec.line, err, "no record of WARC 1 begins here; the rest of this file is lost");
    }
    for (;;) {
        bool more;
        const gx_status st = gx_input_line(&s->in, &line, &len, &more, err);
        if (st)
            return st;
        if (!more || len == 0)
            break;
        if (!read_head_line(s, h, line, len))
            return no_memory(s, err);
    }
    if (h->has_length)
        return GX_OK;
    s->in.begin = s->in.end;
    s->in.eof = true;
    return gx_fail_record(s, s->rec.line, err, "the record has no Content-Length; the rest of this file is lost");
}

static gx_status cut_off(gx_source *s, gx_error *err)
{
    s->in.begin = s->in.end;
    return gx_fail_record(s, s->rec.line, err, "the record is cut off: the file ends in it");
}

static gx_status skip_block(gx_source *s, uint64_t n, gx_error *err)
{
    gx_input *in = &s->in;
    for (;;) {
        const size_t have = in->end - in->begin;
        const size_t take = n < have ? (size_t)n : have;
        gx_input_consume(in, take);
        n -= take;
        if (n == 0)
            return GX_OK;
        if (in->eof)
            return cut_off(s, err);
        const gx_status st = gx_input_fill(in, err);
        if (st)
            return st;
    }
}

/* The record's block, of h->length bytes. */
static gx_status take_block(gx_source *s, const warc_head *h, gx_span *block, gx_error *err)
{
    gx_input *in = &s->in;
    if (h->length > in->max_record) {
        const gx_status st = skip_block(s, h->length, err);
        if (st)
            return st;
        ++in->too_long;
        return gx_fail_record(s, s->rec.line, err, "a document of more than %zu bytes", in->max_record);
    }
    while (in->end - in->begin < h->length) {
        const gx_status st = in->eof ? cut_off(s, err) : gx_input_fill(in, err);
        if (st)
            return st;
    }
    *block = (gx_span){in->buf + in->begin, (size_t)h->length};
    gx_input_consume(in, block->n);
    return GX_OK;
}

/* Remove the server's head, and take the page's type from it. */
static void strip_server_head(warc_head *h, gx_span *page)
{
    char *p = page->p, *const end = p + page->n;
    gx_span type;
    if (!begins(*page, "HTTP/"))
        return;
    h->html = h->text = false;
    while (p < end) {
        char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;
        if (header_is(p, (size_t)(stop - p), "Content-Type", &type))
            read_type(h, type);
        const bool empty = stop == p || (stop == p + 1 && *p == '\r');
        p = nl ? nl + 1 : end;
        if (empty)
            break;
    }
    *page = (gx_span){p, (size_t)(end - p)};
}

gx_status gx_read_warc(gx_source *s, bool *found, gx_error *err)
{
    warc_head h;
    gx_span page;
    for (;;) {
        gx_status st = read_head(s, &h, found, err);
        if (st || !*found)
            return st;
        s->first = false;
        if (h.response || h.resource) {
            if ((st = take_block(s, &h, &page, err)))
                return st;
            if (h.response)
                strip_server_head(&h, &page);
            if (h.html || h.text)
                break;
        } else if ((st = skip_block(s, h.length, err))) {
            return st;
        }
    }
    if (s->id.n > 2 && s->id.p[0] == '<' && s->id.p[s->id.n - 1] == '>')
        s->rec.id = (gx_span){s->id.p + 1, s->id.n - 2};
    else
        s->rec.id = (gx_span){s->id.p, s->id.n};
    s->title.n = 0;
    if (h.html && !gx_html_to_text(&page, &s->title, true))
        return no_memory(s, err);
    if (s->title.n)
        s->rec.title = (gx_span){s->title.p, s->title.n};
    s->rec.text = page;
    return GX_OK;
}

/* ---- whole records ---- */

/* The line at *p, without its end, which is passed over. false: the line is not whole. */
static bool next_line(const char **p, const char *end, const char **line, size_t *n)
{
    const char *nl = memchr(*p, '\n', (size_t)(end - *p));
    if (!nl)
        return false;
    *line = *p;
    *n = (size_t)(nl - *p);
    *n -= *n > 0 && nl[-1] == '\r';
    *p = nl + 1;
    return true;
}

typedef enum head_state { HEAD_WHOLE, HEAD_MORE, HEAD_ODD } head_state;

/* Pass over the head of the record at *p, as read_head does; HEAD_MORE: over the lines of it that are whole. */
static head_state pass_head(gx_source *s, const char **p, const char *end, warc_head *h)
{
    const char *line;
    size_t n;
    *h = (warc_head){0};
    do
        if (!next_line(p, end, &line, &n))
            return HEAD_MORE;
    while (n == 0);
    if (n < 7 || memcmp(line, "WARC/1.", 7) != 0)
        return HEAD_ODD;
    while (next_line(p, end, &line, &n)) {
        if (n == 0)
            return h->has_length && h->length <= s->in.max_record ? HEAD_WHOLE : HEAD_ODD;
        if (n > s->in.max_record || !read_head_line(s, h, line, n))
            return HEAD_ODD;
    }
    return HEAD_MORE;
}

size_t gx_whole_warc(gx_source *s, size_t enough, bool *odd)
{
    const gx_input *in = &s->in;
    const char *const begin = in->buf + in->begin, *const end = in->buf + in->end, *p = begin;
    size_t whole = 0;
    warc_head h;
    *odd = false;
    while (whole < enough) {
        const head_state state = pass_head(s, &p, end, &h);
        *odd = state == HEAD_ODD || (state == HEAD_MORE && (size_t)(end - begin) - whole > in->max_record);
        if (state != HEAD_WHOLE || (size_t)(end - p) < h.length)
            break;
        p += h.length;
        whole = (size_t)(p - begin);
    }
    return whole;
}

uint64_t gx_warc_lines_ahead(gx_source *s)
{
    const char *const begin = s->in.buf + s->in.begin, *const end = s->in.buf + s->in.end, *p = begin;
    uint64_t lines = 0;
    warc_head h;
    if (pass_head(s, &p, end, &h) == HEAD_WHOLE && !h.response && !h.resource)
        p = end;
    for (const char *q = begin; (q = memchr(q, '\n', (size_t)(p - q))); ++q)
        ++lines;
    return lines;
}
