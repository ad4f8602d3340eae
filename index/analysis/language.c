#include "index/analysis/language.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "index/analysis/stemmer_print.h"

static const char *const names[] = {NULL, "french", "italian", "catalan", "turkish", "irish", "german"};

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
    static const char *const irish[] = {"d", "m", "b", NULL};
    const char *const *list = language == GX_LANGUAGE_FRENCH    ? french
                              : language == GX_LANGUAGE_ITALIAN ? italian
                              : language == GX_LANGUAGE_IRISH   ? irish
                                                                : catalan;
    for (; *list; ++list)
        if (strlen(*list) == n && memcmp(*list, p, n) == 0)
            return true;
    return false;
}

/* Lucene's GermanNormalizationFilter: umlauts are their vowels, and so are ae and oe, and ue but behind a vowel or q;
 * sharp s is ss. */
static size_t write_german(char *word, size_t len)
{
    enum { ORDINARY, NO_UMLAUT /* u does not begin ue */, VOWEL /* e makes an umlaut of it */ } state = ORDINARY;
    size_t n = 0;
    for (size_t i = 0; i < len; ++i) {
        const unsigned char c = (unsigned char)word[i], next = i + 1 < len ? (unsigned char)word[i + 1] : 0;
        const char plain = c != 0xC3 ? 0 : next == 0xA4 ? 'a' : next == 0xB6 ? 'o' : next == 0xBC ? 'u' : 0;
        if (plain) {
            word[n++] = plain;
            ++i;
            state = NO_UMLAUT;
        } else if (c == 0xC3 && next == 0x9F) { /* sharp s */
            word[n++] = 's';
            word[n++] = 's';
            ++i;
            state = ORDINARY;
        } else if (c == 'e') {
            if (state != VOWEL)
                word[n++] = 'e';
            state = NO_UMLAUT;
        } else {
            word[n++] = (char)c;
            state = c == 'a' || c == 'o'               ? VOWEL
                    : c == 'u'                         ? (state == ORDINARY ? VOWEL : NO_UMLAUT)
                    : c == 'i' || c == 'q' || c == 'y' ? NO_UMLAUT
                                                       : ORDINARY;
        }
    }
    return n;
}

size_t gx_language_cut(gx_language language, char *word, size_t len)
{
    if (language == GX_LANGUAGE_GERMAN)
        return write_german(word, len);
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
