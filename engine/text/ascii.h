/* ascii.h: what the bytes of names, tags and numbers are, whatever locale the program has set.
 *
 * By <ctype.h> and strcasecmp the program's locale decides: in tr_TR "TITLE" and "title" are two names, and in Latin-1
 * byte 0xA0 is a blank. The library calls these in their place. A byte of 0x80 or more is nothing of all this.
 */
#ifndef GX_ENGINE_ASCII_H
#define GX_ENGINE_ASCII_H

#include <stdbool.h>
#include <stddef.h>

static inline bool gx_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool gx_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char gx_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

static inline bool gx_is_letter(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static inline bool gx_is_letter_or_digit(char c)
{
    return gx_is_letter(c) || gx_is_digit(c);
}

static inline bool gx_is_hex(char c)
{
    return gx_is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* Whether the first n bytes of two strings are the same but for capitals. Neither is read behind its NUL. */
static inline bool gx_same_start(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        if (gx_lower(a[i]) != gx_lower(b[i]))
            return false;
        if (!a[i])
            return true;
    }
    return true;
}

/* Whether two strings are the same but for capitals. */
static inline bool gx_same_text(const char *a, const char *b)
{
    return gx_same_start(a, b, (size_t)-1);
}

#endif
