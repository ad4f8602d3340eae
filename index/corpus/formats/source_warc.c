/* source_warc.c: WARC 1.0 and 1.1, as ClueWeb, Common Crawl and crawlers write it. Responses, resources and conversions
 * that are HTML or plain text are documents. All other records are passed over, and noted by their types. A response
 * is what came over the network: before the page stands the server's head, and the page may be encoded.
 */
#include <stdlib.h>

#include "engine/text/ascii.h"
#include "index/corpus/formats/charset.h"
#include "index/corpus/formats/coding.h"
#include "index/corpus/formats/html.h"
#include "index/corpus/source_reader.h"

enum { MOST_VALUE = 128 };

/* A copy of a head line's value, cut off if it is longer. */
typedef struct kept_value {
    char p[MOST_VALUE];
    size_t n;
} kept_value;

/* The lines of a record's head that the reader uses. */
typedef struct warc_head {
    bool has_length, trec_id;
    kept_value type, media, payload; /* WARC-Type, Content-Type, WARC-Identified-Payload-Type */
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
    if (len <= n || line[n] != ':' || !gx_same_start(line, name, n))
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
    return a.n >= strlen(what) && gx_same_start(a.p, what, strlen(what));
}

static bool same(gx_span a, const char *what)
{
    return a.n == strlen(what) && begins(a, what);
}

static void keep(kept_value *to, gx_span v)
{
    to->n = v.n < MOST_VALUE ? v.n : MOST_VALUE;
    memcpy(to->p, v.p, to->n);
}

static gx_span span_of(kept_value *v)
{
    return (gx_span){v->p, v->n};
}

/* Whether the record's block may be a document. */
static bool is_wanted(warc_head *h)
{
    const gx_span type = span_of(&h->type);
    return same(type, "response") || same(type, "resource") || same(type, "conversion");
}

/* Use a line of the record's head. The id goes to s->id. */
static bool use_head_line(gx_source *s, warc_head *h, const char *line, size_t len)
{
    gx_span v;
    if (header_is(line, len, "WARC-Type", &v)) {
        keep(&h->type, v);
    } else if (header_is(line, len, "Content-Length", &v)) {
        h->has_length = v.n > 0 && v.n < 19 && strspn(v.p, "0123456789") >= v.n;
        h->length = h->has_length ? strtoull(v.p, NULL, 10) : 0;
    } else if (header_is(line, len, "Content-Type", &v)) {
        keep(&h->media, v);
    } else if (header_is(line, len, "WARC-Identified-Payload-Type", &v)) {
        keep(&h->payload, v);
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

/* Read a line of the record's head, an empty one at its end. It is used when the next comes, which may go on with its
 * value (a folded line). */
static bool read_head_line(gx_source *s, warc_head *h, const char *line, size_t len)
{
    gx_scratch *const b = &s->head_line;
    if (len > 0 && b->n > 0 && (*line == ' ' || *line == '\t')) {
        --b->n;
        return gx_scratch_add(b, line, len) && gx_scratch_add(b, "", 1);
    }
    const bool ok = b->n == 0 || use_head_line(s, h, b->p, b->n - 1);
    b->n = 0;
    return ok && (len == 0 || (gx_scratch_add(b, line, len) && gx_scratch_add(b, "", 1)));
}

/* Read the next record's head. *found false: there is none. */
static gx_status read_head(gx_source *s, warc_head *h, bool *found, gx_error *err)
{
    char *line;
    size_t len;
    *h = (warc_head){0};
    s->id.n = s->head_line.n = 0;
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
    for (bool more = true; more;) {
        const gx_status st = gx_input_line(&s->in, &line, &len, &more, err);
        if (st)
            return st;
        more = more && len > 0;
        if (!read_head_line(s, h, line, more ? len : 0))
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

/* ---- the server's head ---- */

/* The lines of the server's head that the reader uses. */
typedef struct server_head {
    gx_span media, transfer, content; /* Content-Type, Transfer-Encoding, Content-Encoding */
    bool is_there;
} server_head;

/* Where the head that begins the page ends; lines that go on in the next one are put together. */
static char *end_of_head(gx_span page)
{
    char *p = page.p, *const end = page.p + page.n;
    while (p < end) {
        char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return end;
        if (nl == p || (nl == p + 1 && *p == '\r'))
            return nl + 1;
        if (nl + 1 < end && (nl[1] == ' ' || nl[1] == '\t')) {
            *nl = ' ';
            if (nl > p && nl[-1] == '\r')
                nl[-1] = ' ';
        } else {
            p = nl + 1;
        }
    }
    return end;
}

/* Another line of a list: join it to those before, which the caller has in its own bytes. */
static bool join(gx_scratch *to, gx_span v)
{
    return (to->n == 0 || gx_scratch_add(to, ",", 1)) && gx_scratch_add(to, v.p, v.n);
}

/* Take the server's head off the page. Its lists of encodings go to s->title and s->text. false: no memory. */
static bool take_server_head(gx_source *s, server_head *h, gx_span *page)
{
    *h = (server_head){0};
    s->title.n = s->text.n = 0;
    bool interim = true; /* a head of status 100 to 199, behind which the head comes */
    while (interim && (begins(*page, "HTTP/") || begins(*page, "ICY "))) {
        char *p = page->p, *const end = end_of_head(*page);
        const char *status = memchr(p, ' ', (size_t)(end - p));
        interim = status && end - status > 4 && status[1] == '1' && status[4] != '\n';
        h->is_there = true;
        for (char *nl; p < end; p = nl + 1) {
            gx_span v;
            nl = memchr(p, '\n', (size_t)(end - p));
            nl = nl ? nl : end;
            const size_t n = (size_t)(nl - p);
            if (header_is(p, n, "Content-Type", &v))
                h->media = v;
            else if (header_is(p, n, "Transfer-Encoding", &v)  ? !join(&s->title, v)
                     : header_is(p, n, "Content-Encoding", &v) ? !join(&s->text, v)
                                                               : false)
                return false;
        }
        *page = (gx_span){end, (size_t)(page->p + page->n - end)};
    }
    h->transfer = (gx_span){s->title.p, s->title.n};
    h->content = (gx_span){s->text.p, s->text.n};
    return true;
}

/* ---- pages ---- */

typedef enum page_kind { NO_PAGE, HTML_PAGE, TEXT_PAGE } page_kind;

/* Content-Type without its parameters. */
static gx_span media_type(gx_span v)
{
    size_t n = 0;
    while (n < v.n && v.p[n] != ';' && v.p[n] != ',' && v.p[n] != ' ' && v.p[n] != '\t')
        ++n;
    return (gx_span){v.p, n};
}

static bool is_html(gx_span type)
{
    return same(type, "text/html") || same(type, "application/xhtml+xml");
}

/* Types that say nothing (WHATWG's MIME Sniffing, 7). */
static bool is_unknown(gx_span type)
{
    return type.n == 0 || same(type, "unknown/unknown") || same(type, "application/unknown") || same(type, "*/*");
}

/* What a page without a type is, by its first bytes (WHATWG's MIME Sniffing, 7.1). */
static page_kind sniff(gx_span page)
{
    static const char *const tags[] = {
        "!DOCTYPE HTML", "HTML",  "HEAD", "SCRIPT", "IFRAME", "H1", "DIV", "FONT", "TABLE", "A",
        "STYLE",         "TITLE", "B",    "BODY",   "BR",     "P",  "!--"};
    if (begins(page, "\xef\xbb\xbf"))
        page = (gx_span){page.p + 3, page.n - 3};
    while (page.n > 0 && strchr(" \t\n\f\r", *page.p) && *page.p)
        ++page.p, --page.n;
    if (begins(page, "<?xml"))
        return memmem(page.p, page.n < 1024 ? page.n : 1024, "<html", 5) ? HTML_PAGE : NO_PAGE;
    for (size_t i = 0; i < sizeof tags / sizeof *tags && page.n > 0 && *page.p == '<'; ++i) {
        const gx_span name = {page.p + 1, page.n - 1};
        const size_t n = strlen(tags[i]);
        if (begins(name, tags[i]) && (tags[i][1] == '-' || (name.n > n && (name.p[n] == ' ' || name.p[n] == '>'))))
            return HTML_PAGE;
    }
    if (begins(page, "\xff\xfe") || begins(page, "\xfe\xff"))
        return TEXT_PAGE;
    return page.n > 0 && gx_looks_like_text(page) ? TEXT_PAGE : NO_PAGE;
}

/* Undo the page's encodings. *kind becomes NO_PAGE where that is not possible, which is noted. */
static gx_status decode(gx_source *s, const server_head *h, gx_span *page, page_kind *kind, gx_error *err)
{
    gx_span which = {0};
    gx_coding_state state = gx_undo_codings(s, h->transfer, page, &which);
    bool damaged = state == GX_CODING_DAMAGED;
    if (state <= GX_CODING_DAMAGED) {
        const gx_span before = which;
        state = gx_undo_codings(s, h->content, page, &which);
        which = state == GX_CODING_UNDONE ? before : which;
        damaged |= state == GX_CODING_DAMAGED;
    }
    if (state == GX_CODING_NO_MEMORY)
        return no_memory(s, err);
    if (state == GX_CODING_TOO_LONG) {
        ++s->in.too_long;
        return gx_fail_record(s, s->rec.line, err, "a document of more than %zu bytes", s->in.max_record);
    }
    if (state == GX_CODING_UNKNOWN)
        *kind = NO_PAGE;
    if (state == GX_CODING_UNKNOWN || damaged)
        gx_notes_add(&s->notes, state == GX_CODING_UNKNOWN ? GX_NOTE_CODINGS : GX_NOTE_DAMAGED_CODINGS, which.p,
                     which.n, s->in.path, s->rec.line);
    return GX_OK;
}

/* The page in the record's block; *kind NO_PAGE: it is none, which is noted. */
static gx_status find_page(gx_source *s, warc_head *record, gx_span *page, page_kind *kind, gx_error *err)
{
    server_head h = {0};
    if (same(span_of(&record->type), "response") && !take_server_head(s, &h, page))
        return no_memory(s, err);
    gx_span content = h.is_there ? h.media : span_of(&record->media);
    if (begins(content, "application/http") || begins(content, "message/http")) /* a response without a head */
        content = (gx_span){0};
    if (is_unknown(media_type(content)))
        content = span_of(&record->payload);
    const gx_span type = media_type(content);
    const bool unknown = is_unknown(type);
    gx_status st = GX_OK;
    *kind = is_html(type) ? HTML_PAGE : same(type, "text/plain") ? TEXT_PAGE : NO_PAGE;
    if (*kind || unknown) {
        page_kind decoded = HTML_PAGE;
        if ((st = decode(s, &h, page, &decoded, err)) || decoded == NO_PAGE) {
            *kind = NO_PAGE;
            return st;
        }
    }
    if (unknown)
        *kind = sniff(*page);
    if (*kind == NO_PAGE)
        gx_notes_add(&s->notes, GX_NOTE_MEDIA_TYPES, unknown ? "no-type" : type.p, unknown ? 7 : type.n, s->in.path,
                     s->rec.line);
    else
        st = gx_page_to_utf8(s, page, content, *kind == HTML_PAGE, err);
    return st;
}

/* NUL bytes become spaces, as the input makes them in other formats. */
static void replace_nuls(gx_source *s, gx_span page)
{
    char *const end = page.p + page.n;
    for (char *p = page.p; (p = memchr(p, 0, (size_t)(end - p))); ++p) {
        *p = ' ';
        ++s->in.nul_bytes;
    }
}

/* Make the page the record's title and text. */
static gx_status use_page(gx_source *s, gx_span page, page_kind kind, gx_error *err)
{
    replace_nuls(s, page);
    s->title.n = 0;
    if (kind == HTML_PAGE && !gx_html_to_text(&page, &s->title, true))
        return no_memory(s, err);
    if (s->title.n)
        s->rec.title = (gx_span){s->title.p, s->title.n};
    s->rec.text = page;
    return GX_OK;
}

gx_status gx_read_warc(gx_source *s, bool *found, gx_error *err)
{
    warc_head h;
    gx_span page;
    page_kind kind = NO_PAGE;
    while (kind == NO_PAGE) {
        gx_status st = read_head(s, &h, found, err);
        if (st || !*found)
            return st;
        s->first = false;
        if (is_wanted(&h)) {
            if (!(st = take_block(s, &h, &page, err)))
                st = find_page(s, &h, &page, &kind, err);
        } else {
            const gx_span type = span_of(&h.type);
            gx_notes_add(&s->notes, GX_NOTE_RECORD_TYPES, type.n ? type.p : "none", type.n ? type.n : 4, s->in.path,
                         s->rec.line);
            st = skip_block(s, h.length, err);
        }
        if (st)
            return st;
    }
    if (s->id.n > 2 && s->id.p[0] == '<' && s->id.p[s->id.n - 1] == '>')
        s->rec.id = (gx_span){s->id.p + 1, s->id.n - 2};
    else
        s->rec.id = (gx_span){s->id.p, s->id.n};
    return use_page(s, page, kind, err);
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
    s->head_line.n = 0;
    do
        if (!next_line(p, end, &line, &n))
            return HEAD_MORE;
    while (n == 0);
    if (n < 7 || memcmp(line, "WARC/1.", 7) != 0)
        return HEAD_ODD;
    while (next_line(p, end, &line, &n)) {
        if (n > s->in.max_record || !read_head_line(s, h, line, n))
            return HEAD_ODD;
        if (n == 0)
            return h->has_length && h->length <= s->in.max_record ? HEAD_WHOLE : HEAD_ODD;
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
    if (pass_head(s, &p, end, &h) == HEAD_WHOLE && !is_wanted(&h))
        p = end;
    for (const char *q = begin; (q = memchr(q, '\n', (size_t)(p - q))); ++q)
        ++lines;
    return lines;
}
