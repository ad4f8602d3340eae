/* source_trec.c: TREC's SGML: <DOC> <DOCNO>id</DOCNO> ... </DOC>, with text or with a web page in
 * it. <DOC> may have attributes; where there is no <DOCNO>, its attribute id, docno or docid is the id.
 *
 * Names of tags are taken in any case. CDATA sections are text, in which no tag is found. A document that meets the
 * next one's <DOC><DOCNO> before its
 * own </DOC> was not closed: it is refused, and the next one is not lost.
 */
#include <string.h>

#include "engine/text/ascii.h"
#include "index/corpus/formats/charset.h"
#include "index/corpus/formats/html.h"
#include "index/corpus/source_reader.h"

enum {
    LOOK_AHEAD = GX_TREC_END_TAG, /* bytes in which a line end and "<DOCNO" are to be found behind "<DOC>" */
    MOST_TAG = 4096               /* bytes of a "<DOC ...>" */
};

static bool starts_with(const char *p, const char *end, const char *what)
{
    const size_t n = strlen(what);
    return (size_t)(end - p) >= n && gx_same_start(p, what, n);
}

typedef enum gt_state { GT_FOUND, GT_BEHIND_LT, GT_UNKNOWN } gt_state;

/* The '>' of a tag in whose attributes p is: a quoted value may hold one. NULL: there is none, or a '<' comes before
 * (GT_BEHIND_LT). GT_UNKNOWN: `end` comes before; a quote that is never closed quotes nothing then. */
static const char *find_gt(const char *p, const char *end, gt_state *state)
{
    const char *first = NULL;
    char before = 0, quote = 0; /* the last that is no white space */
    for (; p < end && !(*p == '>' && !quote); ++p) {
        if (*p == '<' && !quote) {
            *state = GT_BEHIND_LT;
            return NULL;
        }
        if (*p == '>' && !first)
            first = p;
        if (quote)
            quote = *p == quote ? 0 : quote;
        else if ((*p == '"' || *p == '\'') && before == '=')
            quote = *p;
        before = gx_is_space(*p) ? before : *p;
    }
    *state = p < end ? GT_FOUND : GT_UNKNOWN;
    return p < end ? p : first;
}

typedef enum tag_state { NO_TAG, WHOLE_TAG, CUT_TAG } tag_state;

/* Whether "<DOC>", or "<DOC" with attributes, is at p; *behind: the byte behind it. more: bytes behind `end` are not
 * known yet. */
static tag_state document_tag(const char *p, const char *end, bool more, const char **behind)
{
    static const char name[] = "<DOC";
    const size_t n = (size_t)(end - p), known = n < sizeof name - 1 ? n : sizeof name - 1;
    gt_state state;
    if (!gx_same_start(p, name, known))
        return NO_TAG;
    if (n <= sizeof name - 1)
        return more ? CUT_TAG : NO_TAG;
    const char *const q = p + sizeof name - 1;
    if (*q == '>') {
        *behind = q + 1;
        return WHOLE_TAG;
    }
    if (!gx_is_space(*q))
        return NO_TAG;
    const bool short_tag = n <= MOST_TAG;
    const char *const stop = short_tag ? end : p + MOST_TAG, *gt = find_gt(q, stop, &state);
    if (short_tag && more && state == GT_UNKNOWN)
        return CUT_TAG;
    *behind = gt ? gt + 1 : NULL;
    return gt ? WHOLE_TAG : NO_TAG;
}

/* The value of one of the attributes of a tag, id, docno or docid; absent: there is none. */
static gx_span find_id_attribute(const char *p, const char *end)
{
    static const char *const names[] = {"id", "docno", "docid"};
    while (p < end) {
        while (p < end && gx_is_space(*p))
            ++p;
        const char *const name = p;
        while (p < end && !gx_is_space(*p) && *p != '=')
            ++p;
        const size_t n = (size_t)(p - name);
        while (p < end && gx_is_space(*p))
            ++p;
        if (p == end || *p != '=')
            continue;
        for (++p; p < end && gx_is_space(*p);)
            ++p;
        const char quote = p < end && (*p == '"' || *p == '\'') ? *p++ : 0, *const value = p;
        while (p < end && (quote ? *p != quote : !gx_is_space(*p)))
            ++p;
        for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
            if (n == strlen(names[i]) && gx_same_start(name, names[i], n))
                return (gx_span){(char *)value, (size_t)(p - value)};
        p += quote && p < end;
    }
    return (gx_span){0};
}

size_t gx_trec_end_tag(const char *p, const char *end)
{
    const char *q = p + 5;
    if (!starts_with(p, end, "</DOC"))
        return 0;
    while (q < end && q - p < GX_TREC_END_TAG - 1 && gx_is_space(*q))
        ++q;
    return q < end && *q == '>' ? (size_t)(q + 1 - p) : 0;
}

/* Whether a document begins at p: it has an id in its tag, or <DOCNO> behind it. */
static tag_state starts_document(const char *p, const char *end, bool more)
{
    const char *behind;
    const tag_state state = document_tag(p, end, more, &behind);
    if (state != WHOLE_TAG)
        return state;
    if (find_id_attribute(p + 4, behind - 1).p)
        return WHOLE_TAG;
    if (more && end - behind < LOOK_AHEAD)
        return CUT_TAG;
    while (behind < end && gx_is_space(*behind))
        ++behind;
    return starts_with(behind, end, "<DOCNO") && end - behind > 6 && (behind[6] == '>' || gx_is_space(behind[6]))
               ? WHOLE_TAG
               : NO_TAG;
}

/* ---- finding a document ---- */

/* Skip all bytes before the next <DOC>. in->begin is then at the <DOC>, which has *n_tag bytes. */
static gx_status find_document(gx_source *s, size_t *n_tag, bool *found, gx_error *err)
{
    gx_input *in = &s->in;
    bool other = false; /* this file holds something, but no document so far */
    for (;;) {
        const char *p = in->buf + in->begin, *const end = in->buf + in->end;
        const char *lt = p, *behind = NULL;
        tag_state state = NO_TAG;
        while ((lt = memchr(lt, '<', (size_t)(end - lt))) &&
               (state = document_tag(lt, end, !in->eof, &behind)) == NO_TAG)
            ++lt;
        if (state == WHOLE_TAG) {
            *n_tag = (size_t)(behind - lt);
            gx_input_consume(in, (size_t)(lt - p));
            *found = true;
            return GX_OK;
        }
        for (const char *q = p; s->first && !other && q < end; ++q)
            other = !gx_is_space(*q);
        if (in->eof) {
            gx_input_consume(in, (size_t)(end - p));
            *found = false;
            return other ? gx_fail_record(s, 1, err, "no <DOC> in the whole file; is it TREC text?") : GX_OK;
        }
        gx_input_consume(in, (size_t)((lt ? lt : end) - p)); /* the tag may be cut off */
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
        if (lt[1] == '/' && gx_trec_end_tag(lt, end))
            return true;
        const tag_state next = lt[1] != '/' && lt[-1] == '\n' ? starts_document(lt, end, !in->eof) : NO_TAG;
        if (next != NO_TAG)
            return next == WHOLE_TAG;
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
        if (gx_trec_end_tag(lt, end))
            return lt;
    return NULL;
}

size_t gx_whole_trec(gx_source *s, size_t enough, bool *odd)
{
    const gx_input *in = &s->in;
    const char *const begin = in->buf + in->begin, *const end = in->buf + in->end;
    const char *last = last_ending(in), *behind;
    /* what find_document would skip belongs to these records */
    const char *from = last ? last + gx_trec_end_tag(last, end) : begin, *lt = from;
    (void)enough;
    while ((lt = memchr(lt, '<', (size_t)(end - lt))) && document_tag(lt, end, !in->eof, &behind) == NO_TAG)
        ++lt;
    *odd = !last && lt == begin && (size_t)(end - begin) > in->max_record;
    return (size_t)((lt ? lt : end) - begin);
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

/* The next document's bytes between <DOC> and </DOC>, and those of the attributes of <DOC>. */
static gx_status next_document(gx_source *s, gx_span *record, gx_span *attributes, bool *found, gx_error *err)
{
    gx_input *in = &s->in;
    size_t n_tag = 0;
    gx_status st = find_document(s, &n_tag, found, err);
    if (st || !*found)
        return st;
    s->first = false;
    s->rec.line = in->line;
    size_t seen = n_tag;
    ending how;
    while (!find_ending(in, &seen, &how)) {
        if (seen > in->max_record)
            return skip_document(s, seen, err);
        if ((st = gx_input_fill(in, err)))
            return st;
    }
    char *const begin = in->buf + in->begin;
    *record = (gx_span){begin + n_tag, seen - n_tag};
    *attributes = (gx_span){begin + 4, n_tag - 5};
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

static bool starts_cdata(const char *p, const char *end)
{
    return end - p > 9 && memcmp(p, "<![CDATA[", 9) == 0;
}

/* The byte behind the CDATA section at p; p itself where it is not closed. */
static char *skip_cdata(char *p, const char *end)
{
    char *close = memmem(p + 9, (size_t)(end - p - 9), "]]>", 3);
    return close ? close + 3 : p;
}

/* The next '<' at or behind p that is outside of CDATA sections, or NULL. *open: where a section begins that is never
 * closed, NULL so far. */
static char *find_lt(char *p, const char *end, const char **open)
{
    while ((p = memchr(p, '<', (size_t)(end - p))) && !*open && starts_cdata(p, end)) {
        char *behind = skip_cdata(p, end);
        if (behind == p) {
            *open = p;
            return p;
        }
        p = behind;
    }
    return p;
}

/* Find the first element with one of these names. false, with *name set: it is not closed. */
static bool find_element(char *p, char *end, const char *const *names, element *e)
{
    const char *open = NULL;
    gt_state state;
    *e = (element){0};
    for (; (p = find_lt(p, end, &open)); ++p) {
        for (int i = 0; names[i]; ++i) {
            const size_t n = strlen(names[i]);
            char *q = p + 1 + n;
            if (q >= end || (*q != '>' && !gx_is_space(*q)) || !starts_with(p + 1, end, names[i]))
                continue;
            e->name = names[i];
            char *gt = (char *)find_gt(q, end, &state);
            if (!gt && !(gt = memchr(q, '>', (size_t)(end - q))))
                return false;
            e->outer = p;
            e->begin = gt + 1;
            for (q = gt; (q = find_lt(q, end, &open)); ++q)
                if (q + 1 < end && q[1] == '/' && starts_with(q + 2, end, names[i]) && q + 2 + n < end &&
                    (q[2 + n] == '>' || gx_is_space(q[2 + n])))
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
    while (a->n > 0 && gx_is_space(*a->p))
        ++a->p, --a->n;
    while (a->n > 0 && gx_is_space(a->p[a->n - 1]))
        --a->n;
}

/* The id; *rest: what follows it. */
static gx_status read_docno(gx_source *s, gx_span record, gx_span attributes, gx_span *rest, gx_error *err)
{
    static const char *const names[] = {"DOCNO", NULL};
    element e;
    const bool found = find_element(record.p, record.p + record.n, names, &e);
    if (!found && e.name)
        return not_closed(s, "DOCNO", err);
    *rest = found ? (gx_span){e.after, (size_t)(record.p + record.n - e.after)} : record;
    s->rec.id = found ? (gx_span){e.begin, (size_t)(e.end - e.begin)}
                      : find_id_attribute(attributes.p, attributes.p + attributes.n);
    if (!s->rec.id.p)
        return gx_fail_record(s, s->rec.line, err, "no id: the document has no <DOCNO>");
    trim(&s->rec.id);
    gx_span *const id = &s->rec.id;
    if (starts_cdata(id->p, id->p + id->n) && skip_cdata(id->p, id->p + id->n) == id->p + id->n) {
        *id = (gx_span){id->p + 9, id->n - 12};
        trim(id);
    }
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
        if (gx_is_space(s->title.p[i]))
            s->title.p[i] = ' ';
    memset(e.outer, ' ', (size_t)(e.after - e.outer));
    if (s->title.n)
        s->rec.title = (gx_span){s->title.p, s->title.n};
    return GX_OK;
}

/* Add the text of all elements of that name to s->elements. */
static gx_status add_elements(gx_source *s, gx_span rest, const char *name, gx_error *err)
{
    const char *const names[] = {name, NULL};
    char *from = rest.p, *const end = rest.p + rest.n;
    element e;
    while (find_element(from, end, names, &e)) {
        const size_t begin = s->elements.n;
        if (!gx_scratch_add(&s->elements, e.begin, (size_t)(e.end - e.begin)))
            return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
        gx_span text = {s->elements.p + begin, s->elements.n - begin};
        gx_html_to_text(&text, NULL, false);
        memmove(s->elements.p + begin, text.p, text.n);
        s->elements.n = begin + text.n;
        if (!gx_scratch_add(&s->elements, "\n", 1))
            return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
        from = e.after;
    }
    return e.name ? not_closed(s, e.name, err) : GX_OK;
}

/* The elements that are fields, by their names. They stay in the text. */
static gx_status take_fields(gx_source *s, gx_span rest, gx_error *err)
{
    const uint32_t first = gx_source_first_field(s), n = s->opt.n_attributes - first;
    size_t ends[GX_MAX_INDEX_FIELDS];
    gx_status st = GX_OK;
    s->elements.n = 0;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        st = add_elements(s, rest, s->opt.attributes[first + i].name, err);
        ends[i] = s->elements.n;
    }
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        const size_t begin = i ? ends[i - 1] : 0;
        if (ends[i] > begin)
            st = gx_source_add_value(s, first + i, (gx_span){s->elements.p + begin, ends[i] - begin}, err);
    }
    return st;
}

gx_status gx_read_trectext(gx_source *s, bool *found, gx_error *err)
{
    static const char *const names[] = {"TEXT", "LP", "LEADPARA", "ABSTRACT", NULL};
    gx_span record, attributes, rest;
    gx_status st = next_document(s, &record, &attributes, found, err);
    if (st || !*found || (st = read_docno(s, record, attributes, &rest, err)) || (st = take_fields(s, rest, err)) ||
        (st = take_title(s, rest, err)))
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

/* The value of the last line "Content-Type: value" of the server's head; absent: there is none. */
static gx_span find_content_type(const char *p, const char *end)
{
    static const char name[] = "Content-Type:";
    gx_span value = {0};
    for (const char *nl; p < end; p = nl + 1) {
        nl = memchr(p, '\n', (size_t)(end - p));
        nl = nl ? nl : end;
        if (starts_with(p, nl, name))
            value = (gx_span){(char *)p + sizeof name - 1, (size_t)(nl - p) - (sizeof name - 1)};
    }
    return value;
}

gx_status gx_read_trecweb(gx_source *s, bool *found, gx_error *err)
{
    static const char *const names[] = {"DOCHDR", NULL};
    gx_span record, attributes, page;
    gx_status st = next_document(s, &record, &attributes, found, err);
    if (st || !*found || (st = read_docno(s, record, attributes, &page, err)))
        return st;
    element e;
    gx_span server = {0};
    if (find_element(page.p, page.p + page.n, names, &e)) {
        server = find_content_type(e.begin, e.end);
        page.n -= (size_t)(e.after - page.p);
        page.p = e.after;
    } else if (e.name) {
        return not_closed(s, "DOCHDR", err);
    }
    if ((st = gx_page_to_utf8(s, &page, server, true, err)))
        return st;
    s->title.n = 0;
    if (!gx_html_to_text(&page, &s->title, true))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    if (s->title.n)
        s->rec.title = (gx_span){s->title.p, s->title.n};
    s->rec.text = page;
    return GX_OK;
}
