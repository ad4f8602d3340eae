#include "index/corpus/formats/html.h"

#include <string.h>

static bool is_letter(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- entities ---- */

/* "#233", "#xE9"; 0: none. *from goes behind the digits. */
static unsigned decode_numeric_entity(const char **from, const char *end)
{
    const char *p = *from + 1;
    const bool hex = p < end && (*p | 32) == 'x';
    unsigned code = 0, n = 0;
    for (p += hex; p < end && n < 8; ++p, ++n) {
        const char c = *p;
        if (c >= '0' && c <= '9')
            code = code * (hex ? 16 : 10) + (unsigned)(c - '0');
        else if (hex && (c | 32) >= 'a' && (c | 32) <= 'f')
            code = code * 16 + (unsigned)((c | 32) - 'a' + 10);
        else
            break;
    }
    if (n == 0)
        return 0;
    *from = p;
    const bool character = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
    return character ? code : ' ';
}

/* The entity at from, an ampersand: its character to *to, never more bytes than it takes. Returns
 * the byte behind. */
static const char *entity(const char *from, const char *end, char **to)
{
    const char *p = from + 1;
    unsigned code = 0;
    if (p < end && *p == '#') {
        code = decode_numeric_entity(&p, end);
    } else {
        while (p < end && p - from < 10 && (is_letter(*p) || (*p >= '0' && *p <= '9')))
            ++p;
        code = gx_html_entity(from + 1, (size_t)(p - from - 1));
    }
    if (!code) {
        *(*to)++ = '&';
        return from + 1;
    }
    if (p < end && *p == ';')
        ++p;
    *to = gx_put_utf8(*to, code == 0xa0 ? ' ' : code);
    return p;
}

/* ---- tags ---- */

/* The byte behind the tag that begins at p, or NULL if it never ends. Quoted attributes may hold
 * '>'. */
static const char *tag_end(const char *p, const char *end)
{
    const char *gt = memchr(p, '>', (size_t)(end - p));
    if (!gt || !memchr(p, '=', (size_t)(gt - p)))
        return gt ? gt + 1 : NULL;
    for (const char *q = p + 1; q < end && *q != '<'; ++q) {
        if (*q == '>')
            return q + 1;
        if ((*q == '"' || *q == '\'') && q[-1] == '=') {
            const char *close = memchr(q + 1, *q, (size_t)(end - q - 1));
            if (!close)
                return gt + 1; /* a quote that is never closed quotes nothing */
            q = close;
        }
    }
    return gt + 1;
}

typedef struct tag {
    const char *name, *end; /* end: the byte behind the tag */
    size_t n;
    bool closing;
} tag;

static bool tag_is(const tag *t, const char *name)
{
    return strlen(name) == t->n && strncasecmp(t->name, name, t->n) == 0;
}

static bool is_inline(const tag *t)
{
    static const char *const names[] = {
        "a",    "abbr", "acronym", "b",    "bdo",   "big",  "cite",   "code",   "del", "em",  "font", "i", "ins", "kbd",
        "nobr", "q",    "s",       "samp", "small", "span", "strike", "strong", "sub", "sup", "tt",   "u", "var", "wbr",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (tag_is(t, names[i]))
            return true;
    return false;
}

/* Where searches for what never comes may stop, so that a page of them costs no more than one. */
typedef struct limits {
    const char *last_gt; /* the last '>', or NULL */
    bool no_comment_end; /* no "-->" follows */
} limits;

/* What begins at p, a '<': a tag, comment or declaration; false: just a character. */
static bool read_tag(const char *p, const char *end, limits *l, tag *t)
{
    *t = (tag){.name = p + 1};
    if (!l->last_gt || p > l->last_gt)
        return false;
    if (end - p >= 4 && memcmp(p, "<!--", 4) == 0) {
        const char *close = l->no_comment_end ? NULL : memmem(p + 4, (size_t)(end - p - 4), "-->", 3);
        l->no_comment_end = !close;
        t->end = close ? close + 3 : tag_end(p, end);
    } else if (p + 1 < end && (p[1] == '!' || p[1] == '?')) {
        t->end = tag_end(p, end);
    } else {
        t->closing = p + 1 < end && p[1] == '/';
        t->name += t->closing;
        if (t->name >= end || !is_letter(*t->name))
            return false;
        while (t->name + t->n < end && (is_letter(t->name[t->n]) || (t->name[t->n] >= '0' && t->name[t->n] <= '9')))
            ++t->n;
        t->end = tag_end(p, end);
    }
    return t->end != NULL;
}

/* The "</name" of an element whose content begins at p; end if there is none. */
static const char *find_closing(const char *p, const char *end, const tag *t)
{
    for (; (p = memchr(p, '<', (size_t)(end - p))); ++p)
        if ((size_t)(end - p) > t->n + 1 && p[1] == '/' && strncasecmp(p + 2, t->name, t->n) == 0)
            return p;
    return end;
}

/* ---- the whole ---- */

/* Words of a title: entities decoded, white space runs made one space. */
static bool add_title(gx_scratch *title, const char *p, const char *end)
{
    char character[8];
    while (p < end) {
        char *to = character;
        if (is_space(*p)) {
            ++p;
            if (title->n > 0 && title->p[title->n - 1] != ' ')
                *to++ = ' ';
        } else if (*p == '&') {
            p = entity(p, end, &to);
        } else {
            *to++ = *p++;
        }
        if (!gx_scratch_add(title, character, (size_t)(to - character)))
            return false;
    }
    while (title->n > 0 && title->p[title->n - 1] == ' ')
        --title->n;
    return true;
}

bool gx_html_to_text(gx_span *text, gx_scratch *title, bool html)
{
    const char *from = text->p, *const end = text->p + text->n, *lt = from;
    const size_t old_title = title ? title->n : 0;
    limits l = {.last_gt = text->n ? memrchr(text->p, '>', text->n) : NULL};
    char *to = text->p;
    tag t;
    while (from < end) {
        if (lt && lt <= from)
            lt = memchr(from, '<', (size_t)(end - from));
        const char *const stop = lt ? lt : end;
        const char *amp;
        while ((amp = memchr(from, '&', (size_t)(stop - from)))) {
            memmove(to, from, (size_t)(amp - from));
            to += amp - from;
            from = entity(amp, stop, &to);
        }
        memmove(to, from, (size_t)(stop - from));
        to += stop - from;
        from = stop;
        if (from == end)
            break;
        if (!read_tag(from, end, &l, &t)) {
            *to++ = *from++;
            continue;
        }
        from = t.end;
        if (html && is_inline(&t))
            continue;
        *to++ = ' ';
        if (html && !t.closing && (tag_is(&t, "script") || tag_is(&t, "style"))) {
            from = find_closing(from, end, &t);
        } else if (html && !t.closing && tag_is(&t, "title") && title->n == old_title) {
            const char *close = find_closing(from, end, &t);
            if (!add_title(title, from, close))
                return false;
            from = close;
        }
    }
    text->n = (size_t)(to - text->p);
    return true;
}
