#include "index/analysis/fold.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/lower_bound.h"
#include "index/analysis/emoji.h"

/* Text is folded in units: a character and the marks, vowels of Hangul and ignorable characters
 * that follow it. No two units compose. A longer row of marks, which no language writes, is cut. */
#define UNIT_CHARS 32u
#define MAX_DECOMPOSED 18u /* characters of which one consists; U+FDFA has most */
#define MAX_CASE_FOLDED 3u

#define DECOMPOSE (UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_IGNORE)

enum { DOTLESS_I = 0x131, ZERO_WIDTH_SPACE = 0x200B, KEY = 0x20E3, SELECTOR = 0xFE0F };

static bool within(utf8proc_int32_t c, utf8proc_int32_t first, utf8proc_int32_t last)
{
    return c >= first && c <= last;
}

static bool is_mark(utf8proc_int32_t c)
{
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

static bool is_diacritic(utf8proc_int32_t c)
{
    static const utf8proc_int32_t ranges[][2] = {
        {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05C7}, {0x0610, 0x061A}, {0x064B, 0x0670},
        {0x06D6, 0x06ED}, {0x0711, 0x074A}, {0x08CA, 0x08FF}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
        {0x20D0, 0x20FF}, {0xA66F, 0xA672}, {0xA67C, 0xA67D}, {0xFB1E, 0xFB1E}, {0xFE20, 0xFE2F},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && c >= ranges[i][0]; ++i)
        if (c <= ranges[i][1])
            return is_mark(c);
    return false;
}

/* Whether c belongs to the unit of the character before it. */
static bool continues_unit(utf8proc_int32_t c)
{
    utf8proc_int32_t parts[MAX_DECOMPOSED];
    int boundary = 0;
    if (c < 0x80 || c == ZERO_WIDTH_SPACE)
        return false;
    const utf8proc_ssize_t n = utf8proc_decompose_char(c, parts, MAX_DECOMPOSED, DECOMPOSE, &boundary);
    return n == 0 || (n > 0 && (is_mark(parts[0]) || within(parts[0], 0x1160, 0x11FF)));
}

/* The character at text[at], and its length in *n. -1: no UTF-8; *n is 1 then. */
static utf8proc_int32_t char_at(const char *text, size_t len, size_t at, size_t *n)
{
    utf8proc_int32_t c = (unsigned char)text[at];
    *n = 1;
    if (c < 0x80)
        return c;
    const size_t left = len - at < 4 ? len - at : 4;
    const utf8proc_ssize_t taken = utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)left, &c);
    if (taken <= 0)
        return -1;
    *n = (size_t)taken;
    return c;
}

/* Fold a unit of UTF-8; the characters go to out. Returns their number. */
static size_t fold_unit(const char *text, size_t len, bool turkish,
                        utf8proc_int32_t out[static UNIT_CHARS * MAX_DECOMPOSED * MAX_CASE_FOLDED])
{
    utf8proc_int32_t parts[UNIT_CHARS * MAX_DECOMPOSED];
    const utf8proc_ssize_t n_parts = utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, parts,
                                                        (utf8proc_ssize_t)(UNIT_CHARS * MAX_DECOMPOSED), DECOMPOSE);
    utf8proc_ssize_t n = 0;
    for (utf8proc_ssize_t i = 0; i < n_parts; ++i) {
        int boundary = 0;
        if (parts[i] == 0x2019 || parts[i] == 0x02BC)
            out[n++] = '\'';
        else if (turkish && parts[i] == 'I' && (i + 1 == n_parts || !is_diacritic(parts[i + 1])))
            out[n++] = DOTLESS_I;
        else if (!is_diacritic(parts[i]))
            n += utf8proc_decompose_char(parts[i], out + n, MAX_DECOMPOSED, DECOMPOSE | UTF8PROC_CASEFOLD, &boundary);
    }
    return n ? (size_t)utf8proc_normalize_utf32(out, n, UTF8PROC_COMPOSE | UTF8PROC_STABLE) : 0;
}

/* ---- the folded text ---- */

static bool reserve_bytes(gx_fold *f, size_t n)
{
    if (f->n + n <= f->max)
        return true;
    const size_t max = f->n + n + f->max / 2 + 1024;
    char *p = f->n + n <= INT32_MAX ? realloc(f->bytes, max) : NULL;
    if (!p)
        return false;
    f->bytes = p;
    f->max = max;
    return true;
}

/* Add bytes made of text[begin, end). */
static bool put(gx_fold *f, const char *bytes, size_t n, size_t begin, size_t end, bool bytewise)
{
    if (n == 0)
        return true;
    if (!reserve_bytes(f, n))
        return false;
    const gx_fold_chunk *last = f->n_chunks ? &f->chunks[f->n_chunks - 1] : NULL;
    if (!bytewise || !last || !last->bytewise || last->end != begin) {
        if (f->n_chunks == f->max_chunks) {
            const uint32_t max = f->max_chunks + f->max_chunks / 2 + 64;
            gx_fold_chunk *p = realloc(f->chunks, max * sizeof *p);
            if (!p)
                return false;
            f->chunks = p;
            f->max_chunks = max;
        }
        f->chunks[f->n_chunks++] = (gx_fold_chunk){(uint32_t)f->n, (uint32_t)begin, (uint32_t)end, bytewise};
    } else {
        f->chunks[f->n_chunks - 1].end = (uint32_t)end;
    }
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
    return true;
}

/* Add text[begin, end), which is ASCII, in lower case. */
static bool put_ascii(gx_fold *f, const char *text, size_t begin, size_t end)
{
    if (!put(f, text + begin, end - begin, begin, end, true))
        return false;
    for (size_t i = f->n - (end - begin); i < f->n; ++i)
        if (f->bytes[i] >= 'A' && f->bytes[i] <= 'Z')
            f->bytes[i] |= 0x20;
    return true;
}

/* Add the marks to the one folded character of a unit that make an emoji of it. Returns the number of characters. */
static size_t mark_emoji(const char *text, size_t len, utf8proc_int32_t *out)
{
    size_t n;
    const utf8proc_int32_t c = char_at(text, len, 0, &n);
    if (c != out[0])
        return 1;
    const bool key = (c == '#' || c == '*' || within(c, '0', '9')) && gx_emoji_key_marks(text + n, len - n);
    if (!key && (gx_emoji_of(c) != GX_EMOJI_TEXT || !gx_emoji_is_marked(text + n, len - n)))
        return 1;
    out[1] = SELECTOR;
    out[2] = KEY;
    return key ? 3 : 2;
}

static bool put_unit(gx_fold *f, const char *text, size_t begin, size_t end)
{
    utf8proc_int32_t out[UNIT_CHARS * MAX_DECOMPOSED * MAX_CASE_FOLDED];
    char bytes[4 * UNIT_CHARS * MAX_DECOMPOSED * MAX_CASE_FOLDED];
    size_t n = 0;
    size_t n_out = fold_unit(text + begin, end - begin, f->turkish, out);
    if (f->emoji && n_out == 1)
        n_out = mark_emoji(text + begin, end - begin, out);
    for (size_t i = 0; i < n_out; ++i)
        n += (size_t)utf8proc_encode_char(out[i], (utf8proc_uint8_t *)bytes + n);
    return put(f, bytes, n, begin, end, n_out == 1 && n == end - begin && memcmp(bytes, text + begin, n) == 0);
}

bool gx_fold_text(gx_fold *f, const char *text, size_t len)
{
    f->n = f->n_chunks = f->replaced = 0;
    for (size_t at = 0, n; at < len;) {
        size_t end = at;
        while (end < len && (unsigned char)text[end] < 0x80 && !(f->turkish && text[end] == 'I'))
            ++end;
        if (end > at && end < len)
            --end; /* the last may have marks */
        if (end > at && !put_ascii(f, text, at, end))
            return false;
        at = end;
        if (at == len)
            return true;
        const utf8proc_int32_t c = char_at(text, len, at, &n);
        end = at + n;
        if (c < 0) {
            if (!put(f, "\xEF\xBF\xBD", 3, at, end, false))
                return false;
            ++f->replaced;
        } else if (c == ZERO_WIDTH_SPACE) {
            if (!put(f, text + at, n, at, end, true))
                return false;
        } else {
            for (unsigned chars = 1; chars < UNIT_CHARS && end < len; ++chars, end += n) {
                const utf8proc_int32_t next = char_at(text, len, end, &n);
                if (next < 0 || !continues_unit(next))
                    break;
            }
            if (!put_unit(f, text, at, end))
                return false;
        }
        at = end;
    }
    return true;
}

/* The chunk of a byte of the folded text. */
static const gx_fold_chunk *chunk_of(const gx_fold *f, size_t at)
{
    GX_FIRST(uint32_t, behind, 1, f->n_chunks, f->chunks[behind].at > at);
    return &f->chunks[behind - 1];
}

void gx_fold_range(const gx_fold *f, size_t *begin, size_t *end)
{
    const gx_fold_chunk *first = chunk_of(f, *begin), *last = chunk_of(f, *end - 1);
    *begin = first->bytewise ? first->begin + (*begin - first->at) : first->begin;
    *end = last->bytewise ? last->begin + (*end - last->at) : last->end;
}

void gx_fold_free(gx_fold *f)
{
    free(f->bytes);
    free(f->chunks);
    memset(f, 0, sizeof *f);
}
