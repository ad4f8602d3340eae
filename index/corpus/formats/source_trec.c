/* source_trec.c: TREC's SGML: <DOC> <DOCNO>id</DOCNO> ... </DOC>, with text or with a web page in
 * it.
 *
 * Names of tags are taken in any case. A document that meets the next one's <DOC><DOCNO> before its
 * own </DOC> was not closed: it is refused, and the next one is not lost.
 */
#include <string.h>

#include "index/corpus/formats/html.h"
#include "index/corpus/source_reader.h"

enum { LOOK_AHEAD = 64 }; /* bytes in which "<DOC>", a line end and "<DOCNO>" are to be found */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool starts_with(const char *p, const char *end, const char *what)
{
    const size_t n = strlen(what);
    return (size_t)(end - p) >= n && strncasecmp(p, what, n) == 0;
}

static bool starts_document(const char *p, const char *end)
{
    if (!starts_with(p, end, "<DOC>"))
        return false;
    for (p += 5; p < end && is_space(*p); ++p)
        ;
    return starts_with(p, end, "<DOCNO>");
}

/* ---- finding a document ---- */

/* Skip all bytes before the next <DOC>. in->begin is then at the <DOC>. */
static gx_status find_document(gx_source *s, bool *found, gx_error *err)
{
    gx_input *in = &s->in;
    bool other = false; /* this file holds something, but no document so far */
    for (;;) {
        const char *p = in->buf + in->begin, *const end = in->buf + in->end;
        const char *lt = p;
        while ((lt = memchr(lt, '<', (size_t)(end - lt))) && !starts_with(lt, end, "<DOC>"))
            ++lt;
        if (lt) {
            gx_input_consume(in, (size_t)(lt - p));
            *found = true;
            return GX_OK;
        }
        for (const char *q = p; s->first && !other && q < end; ++q)
            other = !is_space(*q);
        if (in->eof) {
            gx_input_consume(in, (size_t)(end - p));
            *found = false;
            return other ? gx_fail_record(s, 1, err, "no <DOC> in the whole file; is it TREC text?") : GX_OK;
        }
        gx_input_consume(in, (size_t)(end - p) > 4 ? (size_t)(end - p) - 4 : 0); /* "<DOC" may be cut off */
        const gx_status st = gx_input_fill(in, err);
        if (st)
            return st;
    }
}

typedef enum ending { CLOSED, NEXT_BEGINS, CUT_OFF } ending;

/* The end of the document whose <DOC> is at in->begin, looked for from *seen on (both count from
 * begin). */
static bool find_ending(const gx_input *in, size_t *seen, ending *how)
{
    const char *const p = in->buf + in->begin, *const end = in->buf + in->end;
    for (const char *lt = p + *seen; (lt = memchr(lt, '<', (size_t)(end - lt))); ++lt) {
        *seen = (size_t)(lt - p);
        if (!in->eof && end - lt < LOOK_AHEAD)
            return false;
        *how = lt[1] == '/' ? CLOSED : NEXT_BEGINS;
        if (lt[1] == '/' ? starts_with(lt, end, "</DOC>") : (lt[-1] == '\n' && starts_document(lt, end)))
            return true;
    }
    *seen = (size_t)(end - p);
    *how = CUT_OFF;
    return in->eof;
}

/* The last </DOC> that find_ending would find with these bytes, or NULL. */
static const char *last_ending(const gx_input *in)
{
    const char *const begin = in->buf + in->begin, *end = in->buf + in->end;
    const size_t n = (size_t)(end - begin), ahead = in->eof ? 0 : LOOK_AHEAD - 1;
    for (const char *lt, *stop = begin + (n > ahead ? n - ahead : 0);
         (lt = memrchr(begin, '<', (size_t)(stop - begin))); stop = lt)
        if (starts_with(lt, end, "</DOC>"))
            return lt;
    return NULL;
}

size_t gx_whole_trec(gx_source *s, size_t enough, bool *odd)
{
    const gx_input *in = &s->in;
    const char *const begin = in->buf + in->begin, *const end = in->buf + in->end;
    const char *last = last_ending(in);
    const char *from = last ? last + 6 : begin, *lt = from; /* what find_document would skip belongs to these records */
    (void)enough;
    while ((lt = memchr(lt, '<', (size_t)(end - lt))) && !starts_with(lt, end, "<DOC>"))
        ++lt;
    *odd = !last && lt == begin && (size_t)(end - begin) > in->max_record;
    if (!lt)
        lt = end - from > 4 ? end - 4 : from;
    return (size_t)(lt - begin);
}

static gx_status too_long(gx_source *s, gx_error *err)
{
    ++s->in.too_long;
    return gx_fail_record(s, s->rec.line, err, "a document of more than %zu bytes", s->in.max_record);
}

static gx_status skip_document(gx_source *s, size_t seen, gx_error *err)
{
    gx_input *in = &s->in;
    ending how;
    do {
        gx_input_consume(in, seen - 1); /* one byte stays before the place: find_ending looks at it */
        seen = 1;
        const gx_status st = gx_input_fill(in, err);
        if (st)
            return st;
    } while (!find_ending(in, &seen, &how));
    gx_input_consume(in, seen);
    return too_long(s, err);
}

/* The next document's bytes, from <DOC> to </DOC>. */
static gx_status next_document(gx_source *s, gx_span *record, bool *found, gx_error *err)
{
    gx_input *in = &s->in;
    gx_status st = find_document(s, found, err);
    if (st || !*found)
        return st;
    s->first = false;
    s->rec.line = in->line;
    size_t seen = 5;
    ending how;
    while (!find_ending(in, &seen, &how)) {
        if (seen > in->max_record)
            return skip_document(s, seen, err);
        if ((st = gx_input_fill(in, err)))
            return st;
    }
    *record = (gx_span){in->buf + in->begin + 5, seen - 5};
    gx_input_consume(in, seen);
    if (how == CLOSED && seen <= in->max_record)
        return GX_OK;
    if (seen > in->max_record)
        return too_long(s, err);
    return gx_fail_record(s, s->rec.line, err, "<DOC> is not closed: %s comes before </DOC>",
                          how == CUT_OFF ? "the end of the file" : "the next <DOC>");
}

/* ---- elements ---- */

typedef struct element {
    const char *name;
    char *begin, *end; /* the content */
    char *outer, *after;
} element;

/* Find the first element with one of these names. false, with *name set: it is not closed. */
static bool find_element(char *p, char *end, const char *const *names, element *e)
{
    *e = (element){0};
    for (; (p = memchr(p, '<', (size_t)(end - p))); ++p) {
        for (int i = 0; names[i]; ++i) {
            const size_t n = strlen(names[i]);
            char *q = p + 1 + n;
            if (q >= end || (*q != '>' && !is_space(*q)) || !starts_with(p + 1, end, names[i]))
                continue;
            e->name = names[i];
            char *gt = memchr(q, '>', (size_t)(end - q));
            if (!gt)
                return false;
            e->outer = p;
            e->begin = gt + 1;
            for (q = gt; (q = memchr(q, '<', (size_t)(end - q))); ++q)
                if (q + 1 < end && q[1] == '/' && starts_with(q + 2, end, names[i]) && q + 2 + n < end &&
                    (q[2 + n] == '>' || is_space(q[2 + n])))
                    break;
            if (!q)
                return false;
            e->end = q;
            gt = memchr(q, '>', (size_t)(end - q));
            e->after = gt ? gt + 1 : end;
            return true;
        }
    }
    return false;
}

static gx_status not_closed(gx_source *s, const char *name, gx_error *err)
{
    return gx_fail_record(s, s->rec.line, err, "<%s> is not closed in this document", name);
}

static void trim(gx_span *a)
{
    while (a->n > 0 && is_space(*a->p))
        ++a->p, --a->n;
    while (a->n > 0 && is_space(a->p[a->n - 1]))
        --a->n;
}

/* The id; *rest: what follows it. */
static gx_status read_docno(gx_source *s, gx_span record, gx_span *rest, gx_error *err)
{
    static const char *const names[] = {"DOCNO", NULL};
    element e;
    if (!find_element(record.p, record.p + record.n, names, &e))
        return e.name ? not_closed(s, "DOCNO", err)
                      : gx_fail_record(s, s->rec.line, err, "no id: the document has no <DOCNO>");
    s->rec.id = (gx_span){e.begin, (size_t)(e.end - e.begin)};
    trim(&s->rec.id);
    *rest = (gx_span){e.after, (size_t)(record.p + record.n - e.after)};
    return GX_OK;
}

/* ---- TREC text ---- */

/* Copy the words of the first title to s->title, and overwrite them with blanks in the text. */
static gx_status take_title(gx_source *s, gx_span rest, gx_error *err)
{
    static const char *const names[] = {"TITLE", "HEADLINE", "HL", "HEAD", "TTL", "DOCTITLE", "H3", "TI", NULL};
    element e;
    s->title.n = 0;
    if (!find_element(rest.p, rest.p + rest.n, names, &e))
        return e.name ? not_closed(s, e.name, err) : GX_OK;
    gx_span title = {e.begin, (size_t)(e.end - e.begin)};
    gx_html_to_text(&title, NULL, false);
    trim(&title);
    if (!gx_scratch_add(&s->title, title.p, title.n))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    for (size_t i = 0; i < s->title.n; ++i)
        if (is_space(s->title.p[i]))
            s->title.p[i] = ' ';
    memset(e.outer, ' ', (size_t)(e.after - e.outer));
    if (s->title.n)
        s->rec.title = (gx_span){s->title.p, s->title.n};
    return GX_OK;
}

gx_status gx_read_trectext(gx_source *s, bool *found, gx_error *err)
{
    static const char *const names[] = {"TEXT", "LP", "LEADPARA", "ABSTRACT", NULL};
    gx_span record, rest;
    gx_status st = next_document(s, &record, found, err);
    if (st || !*found || (st = read_docno(s, record, &rest, err)) || (st = take_title(s, rest, err)))
        return st;
    char *to = rest.p, *from = rest.p, *const end = rest.p + rest.n;
    element e;
    bool any = false;
    while (find_element(from, end, names, &e)) {
        gx_span part = {e.begin, (size_t)(e.end - e.begin)};
        gx_html_to_text(&part, NULL, false);
        memmove(to, part.p, part.n);
        to += part.n;
        *to++ = '\n'; /* there was a tag */
        from = e.after;
        any = true;
    }
    if (e.name)
        return not_closed(s, e.name, err);
    if (any)
        rest.n = (size_t)(to - rest.p);
    else
        gx_html_to_text(&rest, NULL, false);
    s->rec.text = rest;
    return GX_OK;
}

/* ---- TREC web ---- */

gx_status gx_read_trecweb(gx_source *s, bool *found, gx_error *err)
{
    static const char *const names[] = {"DOCHDR", NULL};
    gx_span record, page;
    gx_status st = next_document(s, &record, found, err);
    if (st || !*found || (st = read_docno(s, record, &page, err)))
        return st;
    element e;
    if (find_element(page.p, page.p + page.n, names, &e)) {
        page.n -= (size_t)(e.after - page.p);
        page.p = e.after;
    } else if (e.name) {
        return not_closed(s, "DOCHDR", err);
    }
    s->title.n = 0;
    if (!gx_html_to_text(&page, &s->title, true))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    if (s->title.n)
        s->rec.title = (gx_span){s->title.p, s->title.n};
    s->rec.text = page;
    return GX_OK;
}
