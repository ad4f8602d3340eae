#include "index/corpus/formats/charset.h"

#include <errno.h>
#include <iconv.h>
#include <stdlib.h>

#include "engine/text/ascii.h"

enum {
    MOST_LABEL = 40,     /* bytes of a set's name */
    MOST_PRESCAN = 1024, /* bytes in which the page tells its set; more of its head, if that is longer */
    MOST_HEAD = 16384,
    MOST_OPEN = 4 /* sets that are kept open */
};

/* ---- names of character sets ---- */

/* Labels of the Encoding Standard that iconv does not know, or takes for another set; the first of each line is
 * iconv's name. */
static const char *const labels[] = {
    "UTF-8 utf8 utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "CP1252 ansi_x3.4-1968 ascii cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 "
    "iso_8859-1:1987 l1 latin1 us-ascii windows-1252 cp1252 x-cp1252 x-user-defined",
    "CP1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 x-cp1254",
    "CP874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "GB18030 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "BIG5-HKSCS big5 cn-big5 csbig5 x-x-big5",
    "CP932 csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "EUC-JP-MS cseucpkdfmtjapanese euc-jp x-euc-jp",
    "CP949 cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949",
    "UTF-16LE csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "UTF-16BE unicodefffe utf-16be",
    "CP866 866 csibm866 ibm866",
    "ISO-8859-2 iso88592",
    "ISO-8859-3 iso88593",
    "ISO-8859-4 iso88594",
    "ISO-8859-5 iso88595",
    "ISO-8859-6 iso88596 csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i",
    "ISO-8859-7 iso88597 sun_eu_greek",
    "ISO-8859-8 iso88598 csiso88598e csiso88598i iso-8859-8-e iso-8859-8-i logical visual",
    "ISO-8859-10 iso885910 csisolatin6",
    "ISO-8859-13 iso885913",
    "ISO-8859-14 iso885914",
    "ISO-8859-15 iso885915 csisolatin9 l9",
    "KOI8-R koi koi8 koi8_r",
    "KOI8-U koi8-ru",
    "MACINTOSH csmacintosh mac x-mac-roman",
    "MAC-CYRILLIC x-mac-cyrillic x-mac-ukrainian",
    "CP1250 x-cp1250",
    "CP1251 x-cp1251",
    "CP1253 x-cp1253",
    "CP1255 x-cp1255",
    "CP1256 x-cp1256",
    "CP1257 x-cp1257",
    "CP1258 x-cp1258",
};

/* iconv's name of the set, in `name`. false: the label is none that may be one. */
static bool find_name(gx_span label, char name[MOST_LABEL])
{
    while (label.n > 0 && (unsigned char)*label.p <= ' ')
        ++label.p, --label.n;
    while (label.n > 0 && (unsigned char)label.p[label.n - 1] <= ' ')
        --label.n;
    if (label.n == 0 || label.n >= MOST_LABEL)
        return false;
    for (size_t i = 0; i < label.n; ++i) {
        const char c = label.p[i];
        const bool may = ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || strchr("-_.:+", c);
        if (!may || c == 0)
            return false;
        name[i] = (char)(c >= 'A' && c <= 'Z' ? c | 32 : c);
    }
    name[label.n] = 0;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; ++i) {
        const size_t first = strcspn(labels[i], " ");
        for (const char *p = labels[i] + first; *p; p += strcspn(p, " ")) {
            ++p;
            if (strncmp(p, name, label.n) == 0 && (p[label.n] == ' ' || p[label.n] == 0)) {
                memcpy(name, labels[i], first);
                name[first] = 0;
                return true;
            }
        }
    }
    return true;
}

/* ---- what a page says of itself ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static bool same(gx_span a, const char *what)
{
    return a.n == strlen(what) && gx_same_start(a.p, what, a.n);
}

gx_span gx_find_charset(gx_span v)
{
    static const char name[] = "charset";
    char *p = v.p, *const end = v.p + v.n;
    for (; (size_t)(end - p) >= sizeof name - 1; ++p) {
        if (!gx_same_start(p, name, sizeof name - 1))
            continue;
        char *q = p + sizeof name - 1;
        while (q < end && is_space(*q))
            ++q;
        if (q == end || *q != '=')
            continue;
        for (++q; q < end && is_space(*q);)
            ++q;
        const char quote = q < end && (*q == '"' || *q == '\'') ? *q++ : 0;
        char *stop = q;
        while (stop < end && (quote ? *stop != quote : !is_space(*stop) && *stop != ';'))
            ++stop;
        return (quote && stop == end) || stop == q ? (gx_span){0} : (gx_span){q, (size_t)(stop - q)};
    }
    return (gx_span){0};
}

/* Read an attribute at *at to *name and *value, both perhaps empty. false: the tag has no more. */
static bool next_attribute(char **at, char *end, gx_span *name, gx_span *value)
{
    char *p = *at;
    while (p < end && (is_space(*p) || *p == '/'))
        ++p;
    *at = p;
    if (p == end || *p == '>')
        return false;
    *name = (gx_span){p, 0};
    for (++p; p < end && !is_space(*p) && *p != '/' && *p != '>' && *p != '=';)
        ++p;
    name->n = (size_t)(p - name->p);
    *value = (gx_span){p, 0};
    while (p < end && is_space(*p))
        ++p;
    if (p < end && *p == '=') {
        for (++p; p < end && is_space(*p);)
            ++p;
        const char quote = p < end && (*p == '"' || *p == '\'') ? *p++ : 0;
        value->p = p;
        while (p < end && (quote ? *p != quote : !is_space(*p) && *p != '>'))
            ++p;
        value->n = (size_t)(p - value->p);
        p += quote && p < end;
    }
    *at = p;
    return true;
}

/* The set that the attributes at *at, of a <meta>, tell; absent: none. */
static gx_span read_meta(char **at, char *end)
{
    gx_span name, value, charset = {0};
    bool pragma = false, needs_pragma = false;
    while (next_attribute(at, end, &name, &value)) {
        if (same(name, "http-equiv")) {
            pragma |= same(value, "content-type");
        } else if (same(name, "content") && !charset.p) {
            charset = gx_find_charset(value);
            needs_pragma = charset.p != NULL;
        } else if (same(name, "charset")) {
            charset = value;
            needs_pragma = false;
        }
    }
    return needs_pragma && !pragma ? (gx_span){0} : charset;
}

/* The encoding of an XML declaration. */
static gx_span read_xml(gx_span page)
{
    gx_span name, value;
    if (page.n < 6 || memcmp(page.p, "<?xml", 5) != 0 || !is_space(page.p[5]))
        return (gx_span){0};
    char *at = page.p + 5, *gt = memchr(at, '>', page.n - 5);
    while (gt && next_attribute(&at, gt, &name, &value))
        if (same(name, "encoding") && value.n)
            return value;
    return (gx_span){0};
}

/* Pass over the tag at p, whose name is behind `name`, and its attributes. */
static char *pass_tag(char *name, char *end)
{
    gx_span attribute, value;
    while (name < end && !is_space(*name) && *name != '>')
        ++name;
    while (next_attribute(&name, end, &attribute, &value))
        ;
    return name;
}

static bool tag_at(const char *p, const char *end, const char *name)
{
    const size_t n = strlen(name);
    return (size_t)(end - p) > n + 1 && gx_same_start(p + 1, name, n) &&
           (is_space(p[n + 1]) || p[n + 1] == '/' || p[n + 1] == '>');
}

/* The set that the page names; absent: none. */
static gx_span ask_page(gx_span page)
{
    char *p = page.p, *const end = page.p + (page.n < MOST_HEAD ? page.n : MOST_HEAD);
    while ((p = memchr(p, '<', (size_t)(end - p)))) {
        if (p - page.p > MOST_PRESCAN && tag_at(p, end, "body"))
            break;
        if (end - p >= 4 && memcmp(p, "<!--", 4) == 0) {
            char *close = memmem(p + 2, (size_t)(end - p - 2), "-->", 3);
            p = close ? close + 3 : end;
        } else if (tag_at(p, end, "meta")) {
            p += 5;
            const gx_span charset = read_meta(&p, end);
            if (charset.n)
                return charset;
        } else if (end - p > 1 && (gx_is_letter(p[1]) || (p[1] == '/' && end - p > 2 && gx_is_letter(p[2])))) {
            p = pass_tag(p + 1, end);
        } else if (end - p > 1 && strchr("!/?", p[1]) && p[1]) {
            char *gt = memchr(p, '>', (size_t)(end - p));
            p = gt ? gt : end;
        } else {
            ++p;
        }
    }
    return read_xml(page);
}

/* ---- conversion ---- */

typedef struct charset {
    char name[MOST_LABEL]; /* "": none */
    iconv_t to_utf8;       /* -1: iconv does not know it */
} charset;

struct gx_charsets {
    charset list[MOST_OPEN];
    unsigned next; /* to be replaced */
};

void gx_charsets_close(gx_source *s)
{
    for (unsigned i = 0; s->charsets && i < MOST_OPEN; ++i)
        if (s->charsets->list[i].name[0] && s->charsets->list[i].to_utf8 != (iconv_t)-1)
            iconv_close(s->charsets->list[i].to_utf8);
    free(s->charsets);
    free(s->page.p);
    s->charsets = NULL;
    s->page = (gx_scratch){0};
}

static charset *open_charset(gx_source *s, const char *name)
{
    struct gx_charsets *c = s->charsets;
    if (!c && !(c = s->charsets = calloc(1, sizeof *c)))
        return NULL;
    for (unsigned i = 0; i < MOST_OPEN; ++i)
        if (strcmp(c->list[i].name, name) == 0)
            return &c->list[i];
    charset *const set = &c->list[c->next];
    c->next = (c->next + 1) % MOST_OPEN;
    if (set->name[0] && set->to_utf8 != (iconv_t)-1)
        iconv_close(set->to_utf8);
    memcpy(set->name, name, strlen(name) + 1);
    set->to_utf8 = iconv_open("UTF-8", name);
    return set;
}

/* Append the page to s->page. false: no memory. */
static bool convert(gx_source *s, iconv_t to_utf8, gx_span page)
{
    gx_scratch *const b = &s->page;
    char *from = page.p;
    size_t left = page.n;
    iconv(to_utf8, NULL, NULL, NULL, NULL);
    while (left > 0) {
        if (!gx_scratch_reserve(b, left + left / 2 + 16))
            return false;
        char *to = b->p + b->n;
        size_t room = b->cap - b->n;
        const size_t done = iconv(to_utf8, &from, &left, &to, &room);
        b->n = (size_t)(to - b->p);
        if (done != (size_t)-1 || errno == E2BIG)
            continue;
        ++s->counts.replaced; /* bytes that are no character, or the first of one */
        if (!gx_scratch_add(b, "\xef\xbf\xbd", 3))
            return false;
        left = errno == EINVAL ? 0 : left - 1;
        ++from;
    }
    if (!gx_scratch_reserve(b, 16))
        return false;
    char *to = b->p + b->n;
    size_t room = b->cap - b->n;
    iconv(to_utf8, NULL, NULL, &to, &room);
    b->n = (size_t)(to - b->p);
    return true;
}

/* The same of Windows-1252, which is most of the old Web. */
static bool convert_1252(gx_scratch *b, gx_span page)
{
    if (!gx_scratch_reserve(b, 3 * page.n))
        return false;
    char *to = b->p + b->n;
    for (size_t i = 0; i < page.n; ++i) {
        const unsigned char c = (unsigned char)page.p[i];
        const unsigned code = gx_latin1_code(c);
        to = gx_put_utf8(to, code == 0xfffd ? c : code);
    }
    b->n = (size_t)(to - b->p);
    return true;
}

/* Convert the page from the set of that name. *known is false where iconv does not know it. */
static bool convert_from(gx_source *s, const char *name, gx_span *page, bool *known)
{
    *known = true;
    if (strcmp(name, "UTF-8") == 0)
        return true;
    s->page.n = 0;
    if (strcmp(name, "CP1252") == 0) {
        if (!convert_1252(&s->page, *page))
            return false;
    } else {
        const charset *set = open_charset(s, name);
        *known = set && set->to_utf8 != (iconv_t)-1;
        if (!*known)
            return set != NULL;
        if (!convert(s, set->to_utf8, *page))
            return false;
    }
    *page = (gx_span){s->page.n ? s->page.p : page->p, s->page.n};
    return true;
}

/* The set that a byte order mark tells, which is passed over; NULL: there is none. */
static const char *take_mark(gx_span *page)
{
    const size_t n = page->n;
    const char *name = NULL;
    if (gx_skip_mark(&page->p, &page->n))
        return "UTF-8";
    if (n >= 2 && (memcmp(page->p, "\xff\xfe", 2) == 0 || memcmp(page->p, "\xfe\xff", 2) == 0)) {
        name = (unsigned char)*page->p == 0xff ? "UTF-16LE" : "UTF-16BE";
        page->p += 2;
        page->n -= 2;
    }
    return name;
}

/* Whether the bytes mean the same in every set in which pages are written but those of 2 bytes a character. */
static bool is_plain_ascii(gx_span page)
{
    return gx_ascii_prefix(page.p, page.n) == page.n && !memchr(page.p, 0x1b, page.n) && !memchr(page.p, 0, page.n);
}

gx_status gx_page_to_utf8(gx_source *s, gx_span *page, gx_span server, bool html, gx_error *err)
{
    gx_span said = {0}, first = {0};
    char name[MOST_LABEL];
    bool known = true, memory = true;
    if (s->in.latin1 || page->n == 0 || is_plain_ascii(*page))
        return GX_OK;
    const char *mark = take_mark(page);
    if (mark) {
        memory = convert_from(s, mark, page, &known);
    } else {
        said = server.p ? gx_find_charset(server) : said;
        if (said.p && find_name(said, name))
            memory = convert_from(s, name, page, &known);
        else
            known = !said.p;
        if (memory && html && (!said.p || !known)) {
            first = said;
            said = ask_page(*page);
            known = !said.p && !first.p;
            if (said.p && find_name(said, name)) {
                const bool wide = strncmp(name, "UTF-16", 6) == 0; /* it was read as ASCII */
                memory = convert_from(s, wide ? "UTF-8" : name, page, &known);
            }
        }
    }
    if (!memory)
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    if (!known) {
        const gx_span label = first.n ? first : said;
        gx_notes_add(&s->notes, GX_NOTE_CHARSETS, label.p, label.n, s->in.path, s->rec.line);
    }
    return GX_OK;
}
