/* scanner.h: an expression that is read from left to right, for the parsers of queries (parse.c)
 * and of filters (filter.c). It counts columns, and keeps the first error. */
#ifndef GX_QUERY_SYNTAX_SCANNER_H
#define GX_QUERY_SYNTAX_SCANNER_H

#include <string.h>

#include "engine/api/gpuidx.h"

#define GX_NOT_SCANNED UINT32_MAX /* in place of the number of a node */

typedef struct gx_scanner {
    const char *text;
    size_t len, at;
    uint32_t column;        /* of text[at], in characters of UTF-8, from 1 */
    const char *delimiters; /* characters that end a word, besides blanks: no letters, no digits */
    const char *prefix;     /* of every message; "" or with a comma and a space at its end */
    gx_status st;
    gx_error *err;
} gx_scanner;

/* Fail with GX_EUSAGE at that column, unless an error stands already. Returns GX_NOT_SCANNED. */
__attribute__((format(printf, 3, 4))) uint32_t gx_scan_refuse(gx_scanner *s, uint32_t column, const char *format, ...);

static inline bool gx_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
}

static inline bool gx_ends_word(const char *delimiters, char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return false;
    return gx_is_blank(c) || strchr(delimiters, c);
}

static inline bool gx_scan_is_end(const gx_scanner *s)
{
    return s->at == s->len;
}

/* The next byte. At the end it is 0, which is a blank. */
static inline char gx_scan_peek(const gx_scanner *s)
{
    return gx_scan_is_end(s) ? 0 : s->text[s->at];
}

/* Whether the text, or a word of it, ends here. */
static inline bool gx_scan_is_word_end(const gx_scanner *s)
{
    return gx_scan_is_end(s) || gx_ends_word(s->delimiters, s->text[s->at]);
}

static inline bool gx_scan_is_next(const gx_scanner *s, char c)
{
    return !gx_scan_is_end(s) && s->text[s->at] == c;
}

/* Past one byte, of which there must be one. */
static inline void gx_scan_step(gx_scanner *s)
{
    ++s->at;
    s->column += gx_scan_is_end(s) || ((unsigned char)s->text[s->at] & 0xc0) != 0x80;
}

static inline void gx_scan_skip_blanks(gx_scanner *s)
{
    while (!gx_scan_is_end(s) && gx_is_blank(s->text[s->at]))
        gx_scan_step(s);
}

/* Past the character c, if it is the next. */
static inline bool gx_scan_take(gx_scanner *s, char c)
{
    const bool is = gx_scan_is_next(s, c);
    if (is)
        gx_scan_step(s);
    return is;
}

/* Whether the next word is this operator. */
static inline bool gx_scan_sees(const gx_scanner *s, const char *word)
{
    const size_t n = strlen(word), left = s->len - s->at;
    return left >= n && memcmp(s->text + s->at, word, n) == 0 &&
           (left == n || gx_ends_word(s->delimiters, s->text[s->at + n]));
}

/* Past blanks, and past the operator if it is the next word. */
static inline bool gx_scan_take_word(gx_scanner *s, const char *word)
{
    gx_scan_skip_blanks(s);
    const bool is = gx_scan_sees(s, word);
    for (size_t i = is ? strlen(word) : 0; i; --i)
        gx_scan_step(s);
    return is;
}

#endif
