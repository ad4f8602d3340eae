#include "index/corpus/formats/html.h"

#include <string.h>

#include "engine/text/ascii.h"

/* What a byte is in a tag. */
enum char_class { SPACE = 1, ENDS_NAME = 2, ENDS_ATTRIBUTE = 4, ENDS_VALUE = 8 };

#define WHITE (SPACE | ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE)

static const unsigned char classes[256] = {
    [' '] = WHITE,
    ['\t'] = WHITE,
    ['\n'] = WHITE,
    ['\f'] = WHITE,
    ['\r'] = WHITE,
    ['/'] = ENDS_NAME | ENDS_ATTRIBUTE,
    ['>'] = ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE,
    ['='] = ENDS_ATTRIBUTE,
};

static bool is(char c, enum char_class k)
{
    return classes[(unsigned char)c] & k;
}

static bool is_space(char c)
{
    return is(c, SPACE);
}

/* ---- character references ---- */

/* Windows-1252 for the numbers 128 to 159, as the standard has it; 0: the number itself. */
static unsigned replace_c1(unsigned code)
{
    const unsigned c = code >= 0x80 && code < 0xa0 ? gx_latin1_code((unsigned char)code) : 0xfffd;
    return c == 0xfffd ? code : c;
}

/* "#233", "#xE9" at p. Returns the bytes it takes, 0: there is none. */
static size_t numeric_reference(const char *p, size_t n, unsigned *code)
{
    const bool hex = n > 1 && (p[1] | 32) == 'x';
    const size_t begin = hex ? 2 : 1;
    size_t i = begin;
    unsigned c = 0;
    for (; i < n; ++i) {
        unsigned digit;
        if (p[i] >= '0' && p[i] <= '9')
            digit = (unsigned)(p[i] - '0');
        else if (hex && (p[i] | 32) >= 'a' && (p[i] | 32) <= 'f')
            digit = (unsigned)((p[i] | 32) - 'a' + 10);
        else
            break;
        c = c > 0x10ffff ? c : c * (hex ? 16 : 10) + digit; /* any number of digits, without overflow */
    }
    if (i == begin)
        return 0;
    *code = c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0xfffd : replace_c1(c);
    return i + (i < n && p[i] == ';');
}

/* The reference at from, an ampersand: its characters to *to, never more bytes than it takes. Returns
 * the byte behind. */
static const char *reference(const char *from, const char *end, bool sgml, char **to)
{
    const char *p = from + 1;
    unsigned codes[2] = {0, 0};
    size_t n = 0;
    if (p < end && *p == '#')
        n = numeric_reference(p, (size_t)(end - p), codes);
    else if (p < end)
        n = gx_html_named_reference(p, (size_t)(end - p), sgml, codes);
    if (n == 0) {
        *(*to)++ = '&';
        return p;
    }
    *to = gx_put_utf8(*to, codes[0] == 0xa0 ? ' ' : codes[0]);
    if (codes[1])
        *to = gx_put_utf8(*to, codes[1]);
    return p + n;
}

/* Copy text, with its references as characters. Returns the end of what is written; `to` is at or before p. */
static char *put_text(char *to, const char *p, const char *end, bool sgml)
{
    const char *amp;
    while ((amp = memchr(p, '&', (size_t)(end - p)))) {
        memmove(to, p, (size_t)(amp - p));
        to += amp - p;
        p = reference(amp, end, sgml, &to);
    }
    memmove(to, p, (size_t)(end - p));
    return to + (end - p);
}

/* Words of a title: references decoded, white space runs made one space. */
static bool add_title(gx_scratch *title, const char *p, const char *end)
{
    char character[16];
    while (p < end) {
        char *to = character;
        if (is_space(*p)) {
            ++p;
            if (title->n > 0 && title->p[title->n - 1] != ' ')
                *to++ = ' ';
        } else if (*p == '&') {
            p = reference(p, end, false, &to);
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

/* ---- SGML ---- */

/* The byte behind the tag that begins at p, or NULL if it never ends. Quoted attributes may hold
 * '>'. */
static const char *sgml_tag_end(const char *p, const char *end)
{
    const char *gt = memchr(p, '>', (size_t)(end - p));
    if (!gt || !memchr(p, '=', (size_t)(gt - p)))
        return gt ? gt + 1 : NULL;
    char before = 0; /* the last that is no white space */
    for (const char *q = p + 1; q < end && *q != '<'; ++q) {
        if (*q == '>')
            return q + 1;
        if ((*q == '"' || *q == '\'') && before == '=') {
            const char *close = memchr(q + 1, *q, (size_t)(end - q - 1));
            if (!close)
                return gt + 1; /* a quote that is never closed quotes nothing */
            q = close;
        }
        before = is_space(*q) ? before : *q;
    }
    return gt + 1;
}

/* Where searches for what never comes may stop, so that a page of them costs no more than one. */
typedef struct limits {
    const char *last_gt; /* the last '>', or NULL */
    bool no_comment_end; /* no "-->" follows */
    bool no_cdata_end;   /* no "]]>" follows */
} limits;

static bool starts(const char *p, const char *end, const char *what, size_t n)
{
    return (size_t)(end - p) >= n && memcmp(p, what, n) == 0;
}

/* The byte behind what begins at p, a '<': a tag, comment or declaration; NULL: just a character. */
static const char *sgml_markup_end(const char *p, const char *end, limits *l)
{
    if (!l->last_gt || p > l->last_gt)
        return NULL;
    if (starts(p, end, "<!--", 4)) {
        const char *close = l->no_comment_end ? NULL : memmem(p + 4, (size_t)(end - p - 4), "-->", 3);
        l->no_comment_end = !close;
        return close ? close + 3 : sgml_tag_end(p, end);
    }
    if (p + 1 < end && p[1] != '!' && p[1] != '?') {
        const char *name = p + 1 + (p[1] == '/');
        if (name >= end || !gx_is_letter(*name))
            return NULL;
    }
    return p + 1 < end ? sgml_tag_end(p, end) : NULL;
}

static void sgml_to_text(gx_span *text)
{
    const char *from = text->p, *const end = text->p + text->n;
    limits l = {.last_gt = text->n ? memrchr(text->p, '>', text->n) : NULL};
    char *to = text->p;
    while (from < end) {
        const char *lt = memchr(from, '<', (size_t)(end - from));
        to = put_text(to, from, lt ? lt : end, true);
        from = lt ? lt : end;
        if (!lt)
            break;
        if (!l.no_cdata_end && starts(lt, end, "<![CDATA[", 9)) {
            const char *close = memmem(lt + 9, (size_t)(end - lt - 9), "]]>", 3);
            l.no_cdata_end = !close;
            if (close) {
                memmove(to, lt + 9, (size_t)(close - lt - 9));
                to += close - lt - 9;
                from = close + 3;
                continue;
            }
        }
        const char *behind = sgml_markup_end(lt, end, &l);
        *to++ = behind ? ' ' : '<';
        from = behind ? behind : lt + 1;
    }
    text->n = (size_t)(to - text->p);
}

/* ---- tags of HTML ---- */

enum { MOST_NAME = 16 }; /* bytes of the names that are known; of longer names only the beginning is kept */

typedef struct tag {
    char name[MOST_NAME]; /* in lower case; [n], or MOST_NAME + 1 for a longer one */
    size_t n;
    const char *end; /* the byte behind the tag */
    bool closes_itself;
} tag;

/* The byte behind the attributes at p and the '>' behind them; NULL: the page ends before. */
static const char *skip_attributes(const char *p, const char *end, bool *closes_itself)
{
    for (;;) {
        *closes_itself = false;
        for (; p < end && (is_space(*p) || *p == '/'); ++p)
            *closes_itself = *p == '/';
        if (p < end && *p == '>')
            return p + 1;
        if (p < end)
            ++p; /* a name may begin with '=' */
        while (p < end && !is(*p, ENDS_ATTRIBUTE))
            ++p;
        while (p < end && is_space(*p))
            ++p;
        if (p >= end)
            return NULL;
        if (*p != '=')
            continue;
        do
            ++p;
        while (p < end && is_space(*p));
        if (p >= end)
            return NULL;
        if (*p == '"' || *p == '\'') {
            p = memchr(p + 1, *p, (size_t)(end - p - 1));
            if (!p)
                return NULL;
            ++p;
        } else {
            while (p < end && !is(*p, ENDS_VALUE))
                ++p;
        }
    }
}

/* The tag whose name begins at p, a letter. false: the page ends in it. */
static bool read_tag(const char *p, const char *end, tag *t)
{
    for (t->n = 0; p < end && !is(*p, ENDS_NAME); ++p) {
        if (t->n < MOST_NAME)
            t->name[t->n] = (char)(*p | (gx_is_letter(*p) ? 32 : 0));
        t->n += t->n <= MOST_NAME;
    }
    if (p < end && *p == '>') {
        t->closes_itself = false;
        t->end = p + 1;
    } else {
        t->end = skip_attributes(p, end, &t->closes_itself);
    }
    return t->end != NULL;
}

static bool tag_is(const tag *t, const char *name, size_t n)
{
    return t->n == n && memcmp(t->name, name, n) == 0;
}
#define IS(t, name) tag_is(t, name, sizeof name - 1)

/* Whether the tag's name is one of these, each with a NUL behind it and all with another. */
static bool is_one_of(const tag *t, const char *names)
{
    for (size_t n; (n = strlen(names)); names += n + 1)
        if (n == t->n && memcmp(t->name, names, n) == 0)
            return true;
    return false;
}

/* Elements that do not part words, by the first letter. */
static bool is_inline(const tag *t)
{
    static const char *const by_letter[26] = {
        ['a' - 'a'] = "a\0abbr\0acronym\0",
        ['b' - 'a'] = "b\0bdi\0bdo\0big\0blink\0",
        ['c' - 'a'] = "cite\0code\0",
        ['d' - 'a'] = "data\0del\0dfn\0",
        ['e' - 'a'] = "em\0",
        ['f' - 'a'] = "font\0",
        ['i' - 'a'] = "i\0ins\0",
        ['k' - 'a'] = "kbd\0",
        ['l' - 'a'] = "label\0",
        ['m' - 'a'] = "mark\0",
        ['n' - 'a'] = "nobr\0",
        ['o' - 'a'] = "output\0",
        ['q' - 'a'] = "q\0",
        ['r' - 'a'] = "ruby\0",
        ['s' - 'a'] = "span\0strong\0s\0samp\0small\0strike\0sub\0sup\0",
        ['t' - 'a'] = "time\0tt\0",
        ['u' - 'a'] = "u\0",
        ['v' - 'a'] = "var\0",
        ['w' - 'a'] = "wbr\0",
    };
    const char *names = by_letter[t->name[0] - 'a'];
    return names && is_one_of(t, names);
}

/* What stands between an element's tags. */
typedef enum content {
    MARKUP,
    SCRIPT,      /* up to </script>, which may also stand in what looks like a comment */
    STYLE,       /* up to </style>; it is no text either */
    TITLE,       /* text with references, up to </title> */
    WORDS,       /* the same, up to the end tag of the name */
    RAW,         /* text without references, up to the end tag of the name */
    ALL_THE_REST /* text without references, up to the page's end */
} content;

static content content_of(const tag *t)
{
    switch (t->name[0]) {
    case 'i':
        return IS(t, "iframe") ? RAW : MARKUP;
    case 'n':
        return IS(t, "noembed") || IS(t, "noframes") ? RAW : MARKUP;
    case 'p':
        return IS(t, "plaintext") ? ALL_THE_REST : MARKUP;
    case 's':
        return IS(t, "script") ? SCRIPT : IS(t, "style") ? STYLE : MARKUP;
    case 't':
        return IS(t, "title") ? TITLE : IS(t, "textarea") ? WORDS : MARKUP;
    case 'x':
        return IS(t, "xmp") ? RAW : MARKUP;
    default:
        return MARKUP;
    }
}

/* Whether the name, in any case, stands at p and ends there. */
static bool name_at(const char *p, const char *end, const char *name, size_t n)
{
    return (size_t)(end - p) > n && is(p[n], ENDS_NAME) && gx_same_start(p, name, n);
}

/* The "</name" of an element whose content begins at p; end if there is none. */
static const char *find_end_tag(const char *p, const char *end, const char *name, size_t n)
{
    for (; (p = memchr(p, '<', (size_t)(end - p))); ++p)
        if (end - p > 2 && p[1] == '/' && name_at(p + 2, end, name, n))
            return p;
    return end;
}

/* The same of a script. Behind "<!--" a "<script" opens a script inside it, whose end tag is not the script's. */
static const char *find_script_end(const char *p, const char *end)
{
    enum { PLAIN, COMMENT, INNER } state = PLAIN;
    while (p < end) {
        if (state != PLAIN && starts(p, end, "-->", 3)) {
            state = PLAIN;
            p += 3;
        } else if (*p != '<') {
            const char *lt = state == PLAIN ? memchr(p, '<', (size_t)(end - p)) : p + 1;
            p = lt ? lt : end;
        } else if (end - p > 2 && p[1] == '/' && name_at(p + 2, end, "script", 6)) {
            if (state != INNER)
                return p;
            state = COMMENT;
            p += 8;
        } else if (state == PLAIN && starts(p, end, "<!--", 4)) {
            state = COMMENT;
            p += 2; /* "<!-->" ends at once */
        } else if (state == COMMENT && name_at(p + 1, end, "script", 6)) {
            state = INNER;
            p += 7;
        } else {
            ++p;
        }
    }
    return end;
}

/* ---- comments and declarations of HTML ---- */

/* The byte behind a comment, whose "<!--" ends at p; end if it has none. */
static const char *comment_end(const char *p, const char *end)
{
    const char *const begin = p;
    if (p < end && *p == '>')
        return p + 1;
    if (starts(p, end, "->", 2))
        return p + 2;
    for (; (p = memchr(p, '>', (size_t)(end - p))); ++p) {
        const char *dashes = p - 2 - (p[-1] == '!');
        if (dashes >= begin && dashes[0] == '-' && dashes[1] == '-')
            return p + 1;
    }
    return end;
}

/* The byte behind the "<!" or "<?" or "</" at p that begins no tag. */
static const char *declaration_end(const char *p, const char *end)
{
    if (starts(p, end, "<!--", 4))
        return comment_end(p + 4, end);
    const char *gt = memchr(p, '>', (size_t)(end - p));
    return gt ? gt + 1 : end;
}

/* ---- pages ---- */

typedef struct page {
    const char *from, *end; /* what is left */
    char *to;               /* the text so far ends here */
    gx_scratch *title;
    bool has_title;
    unsigned n_foreign;  /* open elements svg and math */
    unsigned n_inserted; /* open elements in these that hold HTML */
    bool no_memory;
} page;

static bool is_foreign(const page *g)
{
    return g->n_foreign > 0 && g->n_inserted == 0;
}

/* Start tags that end svg and math, as they can only be HTML. */
static bool breaks_out(const tag *t)
{
    static const char names[] = "b\0big\0blockquote\0body\0br\0center\0code\0dd\0div\0dl\0dt\0em\0embed\0h1\0h2\0h3\0"
                                "h4\0h5\0h6\0head\0hr\0i\0img\0li\0listing\0menu\0meta\0nobr\0ol\0p\0pre\0ruby\0s\0"
                                "small\0span\0strong\0strike\0sub\0sup\0table\0tt\0u\0ul\0var\0";
    return is_one_of(t, names);
}

/* Elements of svg and math that hold HTML. */
static bool holds_html(const tag *t)
{
    return is_one_of(t, "foreignobject\0desc\0title\0mi\0mo\0mn\0ms\0mtext\0annotation-xml\0");
}

static bool is_foreign_root(const tag *t)
{
    return IS(t, "svg") || IS(t, "math");
}

/* Keep account of svg and math, in which no title, text area or raw text is. */
static void follow_foreign(page *g, const tag *t, bool closing)
{
    if (is_foreign_root(t)) {
        if (!closing && !t->closes_itself)
            ++g->n_foreign;
        else if (closing && g->n_foreign > 0)
            --g->n_foreign;
    } else if (g->n_foreign == 0) {
        return;
    } else if (holds_html(t)) {
        if (!closing && !t->closes_itself)
            ++g->n_inserted;
        else if (closing && g->n_inserted > 0)
            --g->n_inserted;
    } else if (!closing && g->n_inserted == 0 && breaks_out(t)) {
        g->n_foreign = 0;
    }
    if (g->n_foreign == 0)
        g->n_inserted = 0;
}

/* Behind the start tag: take content that is no markup. */
static void take_content(page *g, const tag *t, content c)
{
    const char *from = t->end, *const end = g->end;
    const char *stop = c == SCRIPT         ? find_script_end(from, end)
                       : c == ALL_THE_REST ? end
                                           : find_end_tag(from, end, t->name, t->n);
    g->from = stop;
    if (c == SCRIPT || c == STYLE)
        return;
    if (c == TITLE && !g->has_title) {
        const size_t before = g->title->n;
        g->no_memory = !add_title(g->title, from, stop);
        g->has_title = g->title->n > before;
    } else if (c == TITLE || c == WORDS) {
        g->to = put_text(g->to, from, stop, false);
    } else {
        memmove(g->to, from, (size_t)(stop - from));
        g->to += stop - from;
    }
}

/* A tag begins at g->from, and its name at `name`. */
static void take_tag(page *g, const char *name, bool closing)
{
    tag t;
    if (!read_tag(name, g->end, &t)) {
        g->from = g->end; /* the page ends in it: there is no tag */
        return;
    }
    g->from = t.end;
    const bool foreign = is_foreign(g);
    if (g->n_foreign || t.name[0] == 's' || t.name[0] == 'm')
        follow_foreign(g, &t, closing);
    const bool left = foreign && g->n_foreign == 0; /* svg or math has ended: that parts words, too */
    if (!left && is_inline(&t))
        return;
    *g->to++ = ' ';
    const content c = closing ? MARKUP : content_of(&t);
    if (c == MARKUP || (foreign && ((c != SCRIPT && c != STYLE) || t.closes_itself)))
        return;
    take_content(g, &t, c);
}

/* What begins at g->from, a '<'. */
static void take_markup(page *g)
{
    const char *const p = g->from, *const end = g->end;
    const char c = end - p > 1 ? p[1] : 0, d = end - p > 2 ? p[2] : 0;
    if (gx_is_letter(c)) {
        take_tag(g, p + 1, false);
    } else if (c == '/' && gx_is_letter(d)) {
        take_tag(g, p + 2, true);
    } else if (c == '/' && d == '>') {
        g->from = p + 3;
    } else if (is_foreign(g) && starts(p, end, "<![CDATA[", 9)) {
        const char *close = memmem(p + 9, (size_t)(end - p - 9), "]]>", 3);
        const size_t n = (size_t)((close ? close : end) - p - 9);
        memmove(g->to, p + 9, n);
        g->to += n;
        g->from = close ? close + 3 : end;
    } else if (c == '!' || c == '?' || (c == '/' && end - p > 2)) {
        g->from = declaration_end(p, end);
    } else {
        *g->to++ = '<';
        g->from = p + 1;
    }
}

bool gx_html_to_text(gx_span *text, gx_scratch *title, bool html)
{
    page g = {.from = text->p, .end = text->p + text->n, .to = text->p, .title = title};
    if (!html) {
        sgml_to_text(text);
        return true;
    }
    while (g.from < g.end && !g.no_memory) {
        const char *lt = memchr(g.from, '<', (size_t)(g.end - g.from));
        g.to = put_text(g.to, g.from, lt ? lt : g.end, false);
        g.from = lt ? lt : g.end;
        if (lt)
            take_markup(&g);
    }
    text->n = (size_t)(g.to - text->p);
    return !g.no_memory;
}
