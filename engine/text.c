/* text.c: text that grows, and the forms in which numbers and strings are added to it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/text/c_locale.h"
#include "engine/text/seconds.h"

char *gx_text_room(gx_text *t, size_t n)
{
    if (t->failed)
        return NULL;
    if (t->cap - t->len < n || !t->bytes) {
        const size_t least = t->len + n, cap = least < 256 ? 512 : least + least / 2;
        char *bytes = realloc(t->bytes, cap);
        if (!bytes) {
            t->failed = true;
            return NULL;
        }
        t->bytes = bytes;
        t->cap = cap;
    }
    return t->bytes + t->len;
}

void gx_text_add(gx_text *t, const char *bytes, size_t len)
{
    char *to = len ? gx_text_room(t, len) : NULL;
    if (to) {
        memcpy(to, bytes, len);
        t->len += len;
    }
}

void gx_text_add_string(gx_text *t, const char *string)
{
    gx_text_add(t, string, strlen(string));
}

void gx_text_add_format(gx_text *t, const char *format, ...)
{
    va_list args;
    char few[128];
    const gx_c_locale l = gx_c_locale_begin();
    va_start(args, format);
    const int n = vsnprintf(few, sizeof few, format, args);
    va_end(args);
    char *to = n >= (int)sizeof few ? gx_text_room(t, (size_t)n + 1) : NULL;
    if (n > 0 && n < (int)sizeof few) {
        gx_text_add(t, few, (size_t)n);
    } else if (to) {
        va_start(args, format);
        vsnprintf(to, (size_t)n + 1, format, args);
        va_end(args);
        t->len += (size_t)n;
    }
    gx_c_locale_end(l);
}

/* The digits of n, without leading zeros, at the end of digits[20]; returns the first. */
static char *put_digits(char digits[20], uint64_t n)
{
    char *p = digits + 20;
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    return p;
}

void gx_text_add_number(gx_text *t, uint64_t number)
{
    char digits[20];
    const char *p = put_digits(digits, number);
    gx_text_add(t, p, (size_t)(digits + 20 - p));
}

/* ---- scores ---- */

enum { SCORE_DIGITS = 11 };

static const uint64_t POWERS_OF_5[] = {
    1,      5,       25,      125,      625,       3125,       15625,      78125,
    390625, 1953125, 9765625, 48828125, 244140625, 1220703125, 6103515625, 30517578125,
};
#define LEAST_UNITS UINT64_C(10000000000) /* the least number of SCORE_DIGITS digits */

/* x = m * 2^*e with m of 53 bits, of a normal number above 0. */
static uint64_t take_apart(double x, int *e)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *e = (int)(bits >> 52) - 1075;
    return (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
}

/* score * 10^decimals as a whole number, rounded to even. score = m * 2^e with m of 53 bits: the product with
 * 5^decimals has less than 128 bits, so that nothing is lost before it is rounded. */
static uint64_t units(uint64_t m, int e, int decimals)
{
    const unsigned __int128 x = (unsigned __int128)m * POWERS_OF_5[decimals];
    const int shift = -(e + decimals);
    if (shift <= 0)
        return (uint64_t)(x << -shift);
    const unsigned __int128 half = (unsigned __int128)1 << (shift - 1), rest = x & ((half << 1) - 1);
    const uint64_t floor = (uint64_t)(x >> shift);
    return floor + (rest > half || (rest == half && floor % 2));
}

/* Print a score of 1e-4 to below 1e11 at p, at most 24 bytes; returns their number. */
static size_t put_score(char *p, double score)
{
    int e;
    const uint64_t m = take_apart(score, &e);
    const int log2 = e + 52, least_log10 = log2 * 1233 >> 12; /* the logarithm to base 10, or one less than it */
    int decimals = SCORE_DIGITS - least_log10 - 1;
    decimals = decimals < 0 ? 0 : decimals > 15 ? 15 : decimals;
    uint64_t n = units(m, e, decimals);
    while (n >= LEAST_UNITS * 10 && decimals > 0) /* one less it was, or n was rounded up to a digit more */
        n = units(m, e, --decimals);
    for (; decimals > 0 && n % 10 == 0; --decimals)
        n /= 10;
    char digits[20];
    char *first = put_digits(digits, n);
    while (digits + 20 - first <= decimals) /* a zero before the point */
        *--first = '0';
    const size_t whole = (size_t)(digits + 20 - first) - (size_t)decimals;
    memcpy(p, first, whole);
    if (decimals == 0)
        return whole;
    p[whole] = '.';
    memcpy(p + whole + 1, first + whole, (size_t)decimals);
    return whole + 1 + (size_t)decimals;
}

void gx_text_add_score(gx_text *t, double score)
{
    char *p = gx_text_room(t, 32);
    if (!p)
        return;
    if (score >= 1e-4 && score < 1e10)
        t->len += put_score(p, score);
    else
        t->len += (size_t)gx_print(p, 32, "%.*g", SCORE_DIGITS, score);
}

void gx_text_add_seconds(gx_text *t, double seconds)
{
    int e;
    if (!(seconds >= 1e-9 && seconds < 1e6)) {
        gx_text_add_format(t, "%.6f", seconds);
        return;
    }
    const uint64_t m = take_apart(seconds, &e), n = units(m, e, 6);
    char text[32], *p = put_digits(text, n);
    const char *const end = text + 20;
    while (end - p < 7)
        *--p = '0';
    gx_text_add(t, p, (size_t)(end - p) - 6);
    gx_text_add(t, ".", 1);
    gx_text_add(t, end - 6, 6);
}

/* ---- strings ---- */

size_t gx_utf8_length(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n;
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        n = 2;
    else if ((s[0] & 0xf0) == 0xe0)
        n = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        n = 4;
    else
        return 0;
    if (n > len)
        return 0;
    for (size_t i = 1; i < n; ++i)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

bool gx_utf8_is_control(const char *c, size_t n)
{
    const unsigned char *s = (const unsigned char *)c;
    return (n == 1 && (s[0] < 0x20 || s[0] == 0x7f)) || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

bool gx_utf8_turns(const char *c, size_t n)
{
    const unsigned char *s = (const unsigned char *)c;
    return n == 3 && s[0] == 0xe2 &&
           ((s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae) || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

/* Whether one of eight bytes is below ' ', above 0x7e, a quote or a backslash. It may say so of others, too. */
static bool may_need_escape(uint64_t w)
{
    const uint64_t ones = UINT64_MAX / 255, tops = ones << 7;
    const uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\', del = w ^ ones * 0x7f;
    return (w | (((w - ones * ' ') & ~w) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
                 ((del - ones) & ~del))) & tops;
}

/* Copy the leading bytes of text[0, len) that stand in a JSON string as they are, printable ASCII but " and \. Returns
 * their number; what is behind them at p, up to len bytes in all, is changed. */
static size_t copy_plain(char *p, const char *text, size_t len)
{
    size_t i = 0;
    for (uint64_t w; i + sizeof w <= len; i += sizeof w) {
        memcpy(&w, text + i, sizeof w);
        memcpy(p + i, &w, sizeof w);
        if (may_need_escape(w))
            break;
    }
    for (; i < len && text[i] >= ' ' && text[i] < 0x7f && text[i] != '"' && text[i] != '\\'; ++i)
        p[i] = text[i];
    return i;
}

/* The character at text[0, len), escaped where it must be, at p, at most 6 bytes. *n receives its bytes in the text. */
static size_t put_character(char *p, const char *text, size_t len, size_t *n)
{
    const unsigned char c = (unsigned char)text[0];
    const size_t bytes = gx_utf8_length(text, len);
    *n = bytes ? bytes : 1;
    if (bytes == 0) {
        memcpy(p, "\\ufffd", 6);
        return 6;
    }
    if (c == '"' || c == '\\') {
        p[0] = '\\';
        p[1] = (char)c;
        return 2;
    }
    if (gx_utf8_is_control(text, bytes)) {
        static const char hex[] = "0123456789abcdef";
        const unsigned code = bytes == 2 ? (unsigned char)text[1] : c;
        memcpy(p, "\\u00", 4);
        p[4] = hex[code >> 4];
        p[5] = hex[code & 15];
        return 6;
    }
    memcpy(p, text, bytes);
    return bytes;
}

void gx_text_add_json(gx_text *t, const char *bytes, size_t len)
{
    enum { LONGEST = 6 }; /* bytes that a character takes */
    char *p = gx_text_room(t, len + 2);
    if (!p)
        return;
    *p++ = '"';
    ++t->len;
    for (size_t i = 0; i < len;) {
        const size_t plain = copy_plain(p, bytes + i, len - i);
        t->len += plain;
        i += plain;
        if (i < len) {
            size_t n;
            if (!(p = gx_text_room(t, LONGEST)))
                return;
            t->len += put_character(p, bytes + i, len - i, &n);
            i += n;
        }
        if (!(p = gx_text_room(t, len - i + 1)))
            return;
    }
    *p = '"';
    ++t->len;
}
