#include "query/syntax/signs.h"

#define MOST_SLOP 100000u /* no more is read */
#define OR_QUOTES GX_OR_QUOTES

typedef enum place { NOT_A_SIGN, AT_BEGIN, ANYWHERE, COLON } place;

static const uint8_t places[256] = {
    ['!'] = AT_BEGIN, ['/'] = AT_BEGIN, ['['] = AT_BEGIN,  ['{'] = AT_BEGIN,  ['*'] = ANYWHERE, ['?'] = ANYWHERE,
    ['~'] = ANYWHERE, ['|'] = ANYWHERE, ['<'] = ANYWHERE,  ['>'] = ANYWHERE,  ['='] = ANYWHERE, [':'] = COLON,
    ['&'] = ANYWHERE, ['#'] = AT_BEGIN, [0xe2] = AT_BEGIN, [0xef] = AT_BEGIN,
};

/* Characters that word processors write for - and ". */
static const struct {
    const char *text;
    bool quote;
} typographic[] = {
    {"\u2010", false}, {"\u2011", false}, {"\u2012", false}, {"\u2013", false}, {"\u2014", false},
    {"\u2015", false}, {"\u2212", false}, {"\ufe63", false}, {"\uff0d", false}, {"\u201c", true},
    {"\u201d", true},  {"\u201e", true},  {"\u201f", true},  {"\uff02", true},
};

/* The number of the typographic sign at p, of n bytes; -1: there is none. */
static int find_typographic(const char *p, size_t n)
{
    for (int i = 0; i < (int)(sizeof typographic / sizeof *typographic); ++i)
        if (n >= 3 && memcmp(p, typographic[i].text, 3) == 0)
            return i;
    return -1;
}

bool gx_is_sign(const char *text, size_t at, size_t len)
{
    return places[(unsigned char)text[at]] != NOT_A_SIGN &&
           ((unsigned char)text[at] < 0x80 || find_typographic(text + at, len - at) >= 0);
}

static bool ends_at(const gx_scanner *s, size_t i)
{
    return i >= s->len || gx_ends_word(s->delimiters, s->text[i]);
}

/* Where the word ends that begins at s->at. */
static size_t end_of_word(const gx_scanner *s)
{
    size_t i = s->at;
    while (!ends_at(s, i))
        ++i;
    return i;
}

static bool refuse(gx_scanner *s, size_t at, const char *what)
{
    uint32_t column = s->column;
    for (size_t i = s->at + 1; i <= at; ++i)
        column += i == s->len || ((unsigned char)s->text[i] & 0xc0) != 0x80;
    gx_scan_refuse(s, column, "%s", what);
    return false;
}

/* What is wrong with a sign that is one only where a word begins; NULL: nothing. */
static const char *fault_at_begin(const gx_scanner *s)
{
    const char *const p = s->text + s->at;
    const int dash = find_typographic(p, s->len - s->at);
    switch (*p) {
    case '!':
        return "! is no operator: - or NOT before a word excludes it" OR_QUOTES;
    case '[':
    case '{':
        return "a range follows the name of an attribute and a colon, as in year:[2015 TO 2019]" OR_QUOTES;
    case '#': { /* "#1(" and "#combine(" are operators of Indri */
        const size_t end = end_of_word(s);
        return end < s->len && s->text[end] == '('
                   ? "# is no operator: write words, AND, OR, NOT and parentheses" OR_QUOTES
                   : NULL;
    }
    }
    return dash < 0                  ? NULL
           : typographic[dash].quote ? "this is no quote that the syntax knows; write \" for it"
                                     : "this dash is no minus sign; write - to exclude a word" OR_QUOTES;
}

static const char *fault_of_tilde(const gx_scanner *s, size_t i)
{
    const bool digit = !ends_at(s, i + 1) && s->text[i + 1] >= '0' && s->text[i + 1] <= '2';
    if (i == s->at)
        return "a word is expected right before ~, as in neutrino~1" OR_QUOTES;
    return ends_at(s, i + 1 + digit)
               ? NULL
               : "0, 1 or 2 is expected behind ~, or nothing: the number of typing errors" OR_QUOTES;
}

/* What is wrong with a sign at text[i], wherever it stands in a word; NULL: nothing. */
static const char *fault_anywhere(const gx_scanner *s, size_t i)
{
    const bool begin = i == s->at;
    switch (s->text[i]) {
    case '*':
        return begin && ends_at(s, i + 1)
                   ? "* stands alone, for all documents; beside words, conditions select, as in has:year or year:>=2015"
                   : NULL;
    case '?':
        return begin && ends_at(s, i + 1) ? "? stands for a letter of a word, as in n?utrino" OR_QUOTES : NULL;
    case '~':
        return fault_of_tilde(s, i);
    case '|':
        return "| is no operator: write OR" OR_QUOTES;
    case '&':
        return begin || s->text[i - 1] == '&' ? "& is no operator: write AND" OR_QUOTES : NULL;
    default:
        return "a comparison follows the name of an attribute and a colon, as in year:>=2015 or year:2019" OR_QUOTES;
    }
}

static bool take_colon(gx_scanner *s, size_t i)
{
    if (i == s->at)
        return refuse(s, i,
                      "the name of an attribute is expected right before the colon, as in year:2019; write \\: for a "
                      "colon in a word");
    if (i + 1 < s->len && !gx_is_blank(s->text[i + 1]))
        return true;
    return refuse(s, i + 1,
                  "a value is expected right behind the colon, as in year:2019; write \\: for a colon in a word");
}

/* A sign that is right makes a pattern of the word, unless another one has made another kind of pattern of it. */
static const char *take_sign(const gx_scanner *s, size_t i, gx_word_sign *sign)
{
    const char kind = s->text[i] == '?' ? '*' : s->text[i];
    if (kind != '*' && kind != '~')
        return NULL;
    if (sign->kind && sign->kind != kind)
        return "~ is for words without * and ?" OR_QUOTES;
    *sign = (gx_word_sign){kind, i};
    return NULL;
}

size_t gx_scan_signs(gx_scanner *s, gx_word_sign *sign)
{
    *sign = (gx_word_sign){0};
    for (size_t i = s->at; !ends_at(s, i); ++i) {
        const place where = places[(unsigned char)s->text[i]];
        const char *fault = NULL;
        if (s->text[i] == '\\')
            ++i;
        if (i >= s->len || where == NOT_A_SIGN)
            continue;
        if (where == COLON && sign->kind) {
            refuse(s, sign->at,
                   "the name of an attribute has no *, ? or ~; * alone stands for all documents" OR_QUOTES);
            return 0;
        }
        if (where == COLON)
            return take_colon(s, i) ? i : 0;
        if (where == ANYWHERE)
            fault = fault_anywhere(s, i);
        else if (i == s->at)
            fault = fault_at_begin(s);
        if (!fault)
            fault = take_sign(s, i, sign);
        if (fault) {
            refuse(s, i, fault);
            return 0;
        }
    }
    return 0;
}

/* ---- signs in plain text ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A word of a text: text[begin, end), without punctuation at its end. */
typedef struct span {
    size_t begin, end;
} span;

static span word_around(const char *text, size_t len, size_t at)
{
    span w = {at, at};
    while (w.begin > 0 && !gx_is_blank(text[w.begin - 1]))
        --w.begin;
    while (w.end < len && !gx_is_blank(text[w.end]))
        ++w.end;
    while (w.end > at + 1 && strchr(".,;:!?)", text[w.end - 1]))
        --w.end;
    return w;
}

/* "..." with a blank, a bracket or a sign before it, and no letter or digit behind it. */
static bool take_quotes(const char *text, size_t len, size_t at, span *w)
{
    const char before = at > 0 ? text[at - 1] : ' ', *end = memchr(text + at + 1, '"', len - at - 1);
    if (!end || end == text + at + 1 || !(gx_is_blank(before) || strchr("(+-", before)))
        return false;
    const size_t behind = (size_t)(end - text) + 1;
    *w = (span){at, behind};
    return behind == len || !(is_letter(text[behind]) || is_digit(text[behind]));
}

/* Whether the sign at text[at] looks as if it were to change the search. */
static bool is_operator(const char *text, size_t len, size_t at, span *w)
{
    if (text[at] == '"')
        return take_quotes(text, len, at, w);
    *w = word_around(text, len, at);
    const char before = at > w->begin ? text[at - 1] : 0;
    size_t i = at + 1;
    switch (text[at]) {
    case '+':
    case '-': /* of a word: not of a number, and not alone */
        while (i < w->end && strchr("+-(\"", text[i]))
            ++i;
        return (at == w->begin || (at == w->begin + 1 && before == '(')) && i < w->end && is_letter(text[i]);
    case '*': /* A* is an algorithm */
        return i == w->end && at > w->begin + 1 && (is_letter(before) || is_digit(before)) &&
               !memchr(text + w->begin, '*', at - w->begin);
    default: /* ~ */
        while (i < w->end && (is_digit(text[i]) || text[i] == '.'))
            ++i;
        return i == w->end && i > at + 1 && (is_letter(before) || before == '"');
    }
}

bool gx_plain_operator(const char *text, size_t len, size_t *begin, size_t *end)
{
    static const bool signs[256] = {['"'] = true, ['+'] = true, ['-'] = true, ['*'] = true, ['~'] = true};
    for (size_t i = 0; i < len; ++i) {
        span w;
        if (!signs[(unsigned char)text[i]] || !is_operator(text, len, i, &w))
            continue;
        *begin = w.begin;
        *end = w.end;
        return true;
    }
    return false;
}

bool gx_plain_quotes(const char *text, size_t len, size_t *begin, size_t *end, size_t *behind, uint32_t *slop)
{
    const char *quote;
    for (size_t i = *begin; i < len && (quote = memchr(text + i, '"', len - i)); i = (size_t)(quote - text) + 1) {
        span w;
        if (!take_quotes(text, len, (size_t)(quote - text), &w))
            continue;
        size_t at = w.end;
        uint32_t n = 0;
        for (at += at < len && text[at] == '~'; at > w.end && at < len && is_digit(text[at]) && n < MOST_SLOP; ++at)
            n = 10 * n + (uint32_t)(text[at] - '0');
        *begin = w.begin + 1;
        *end = w.end - 1;
        *behind = at;
        *slop = n;
        return true;
    }
    return false;
}
