#include "index/analysis/language.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "index/analysis/stemmer_print.h"

static const char *const names[] = {NULL, "french", "italian", "catalan", "turkish"};

gx_language gx_language_of_stemmer(const char *stemmer)
{
    const char *const name = gx_stemmer_full_name(stemmer);
    for (unsigned i = 1; i < sizeof names / sizeof *names; ++i)
        if (strcmp(names[i], name) == 0)
            return (gx_language)i;
    return GX_LANGUAGE_ANY;
}

const char *gx_language_name(gx_language language)
{
    return names[language];
}

/* ---- elisions and apostrophes ---- */

/* The length of the apostrophe at p; 0: there is none. */
static size_t apostrophe(const char *p, size_t left)
{
    static const char *const longer[] = {"\xE2\x80\x99", "\xE2\x80\x98", "\xCA\xBC", "\xEF\xBC\x87"};
    if (*p == '\'')
        return 1;
    for (size_t i = 0; i < sizeof longer / sizeof *longer; ++i) {
        const size_t n = strlen(longer[i]);
        if (left >= n && memcmp(p, longer[i], n) == 0)
            return n;
    }
    return 0;
}

static bool is_elided(gx_language language, const char *p, size_t n)
{
    static const char *const french[] = {"l", "m", "t",     "qu",     "n",      "s",      "j",
                                         "d", "c", "jusqu", "quoiqu", "lorsqu", "puisqu", NULL};
    static const char *const italian[] = {"c",    "l",  "all", "dall", "dell", "nell", "sull", "coll",
                                          "pell", "gl", "agl", "dagl", "degl", "negl", "sugl", "un",
                                          "m",    "t",  "s",   "v",    "d",    NULL};
    static const char *const catalan[] = {"d", "l", "m", "n", "s", "t", NULL};
    const char *const *list = language == GX_LANGUAGE_FRENCH    ? french
                              : language == GX_LANGUAGE_ITALIAN ? italian
                                                                : catalan;
    for (; *list; ++list)
        if (strlen(*list) == n && memcmp(*list, p, n) == 0)
            return true;
    return false;
}

size_t gx_language_cut(gx_language language, char *word, size_t len)
{
    for (size_t i = 0; i < len; ++i) {
        const size_t n = apostrophe(word + i, len - i);
        if (!n)
            continue;
        if (language == GX_LANGUAGE_TURKISH)
            return i;
        if (i + n == len || !is_elided(language, word, i))
            return len;
        memmove(word, word + i + n, len - i - n);
        return len - i - n;
    }
    return len;
}

/* ---- lower case ---- */

size_t gx_lowercase_utf8(char *out, const char *in, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        const unsigned char b = (unsigned char)in[i];
        utf8proc_int32_t c;
        utf8proc_ssize_t taken;
        if (b < 0x80) {
            out[n++] = (char)(b >= 'A' && b <= 'Z' ? b | 0x20 : b);
            ++i;
        } else if ((taken = utf8proc_iterate((const utf8proc_uint8_t *)in + i, (utf8proc_ssize_t)(len - i), &c)) <= 0) {
            out[n++] = in[i++];
        } else {
            n += (size_t)utf8proc_encode_char(utf8proc_tolower(c), (utf8proc_uint8_t *)out + n);
            i += (size_t)taken;
        }
    }
    return n;
}

size_t gx_lowercase_turkish(char *out, const char *in, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        const size_t from = i++;
        while (i < len && ((unsigned char)in[i] & 0xC0) == 0x80)
            ++i;
        const bool capital = in[from] == 'I', dotted = i - from == 2 && memcmp(in + from, "\xC4\xB0", 2) == 0;
        if (capital || dotted || in[from] == 'i') {
            const bool dot = i + 1 < len && memcmp(in + i, "\xCC\x87", 2) == 0;
            i += dot ? 2 : 0;
            if (capital && !dot)
                out[n++] = '\xC4', out[n++] = '\xB1'; /* dotless i */
            else
                out[n++] = 'i';
        } else {
            n += gx_lowercase_utf8(out + n, in + from, i - from);
        }
    }
    return n;
}
