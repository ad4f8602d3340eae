/* wildcard.c: patterns of ? and *. Terms that begin with the text before the first sign follow each other; of those,
 * those that end with the text behind the last sign, or that have the longest text between, are looked at closely. */
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "engine/status.h"
#include "index/expand/patterns.h"
#include "index/read/term_tree.h"

/* ---- compile ---- */

/* The next item of a pattern's text, of which *at bytes are read; the text is UTF-8. */
static uint32_t next_item(const char *text, size_t len, bool literal, size_t *at)
{
    uint32_t used;
    const char sign = text[*at];
    if (!literal && (sign == '*' || sign == '?')) {
        ++*at;
        return sign == '*' ? GX_ANY_TEXT : GX_ANY_CHARACTER;
    }
    *at += !literal && sign == '\\' && *at + 1 < len;
    const uint32_t c = gx_first_character(text + *at, len - *at, true, &used);
    *at += used;
    return c;
}

static gx_status read_items(gx_wildcard *w, const gx_index *ix, const char *text, size_t len, bool literal, bool as_is,
                            gx_error *err)
{
    uint32_t n = 0;
    for (size_t at = 0; at < len;) {
        const uint32_t c = next_item(text, len, literal, &at);
        if (++n > GX_MAX_PATTERN_CHARACTERS)
            return gx_fail(err, GX_EUSAGE, "the pattern has more than %u characters", GX_MAX_PATTERN_CHARACTERS);
        if (c >= GX_LONE_BYTE && c < GX_END_OF_CHARACTERS)
            return gx_fail(err, GX_EUSAGE, "character %u of the pattern is not UTF-8", n);
        if (c < GX_LONE_BYTE)
            w->n += gx_pattern_letters(ix, as_is, c, w->items + w->n);
        else if (c != GX_ANY_TEXT || w->n == 0 || w->items[w->n - 1] != GX_ANY_TEXT)
            w->items[w->n++] = c;
    }
    if (literal)
        w->items[w->n++] = GX_ANY_TEXT;
    return GX_OK;
}

/* Write the characters of items[first, end) as UTF-8 to *out. */
static void put_text(const gx_wildcard *w, uint32_t first, uint32_t end, char **out, size_t *len)
{
    char *p = *out;
    for (uint32_t i = first; i < end; ++i)
        p += gx_put_character(p, w->items[i]);
    *len = (size_t)(p - *out);
}

/* The texts between signs. */
static void find_texts(gx_wildcard *w)
{
    uint32_t best = 0;
    for (uint32_t first = 0, end; first < w->n; first = end + 1) {
        end = first;
        while (end < w->n && w->items[end] < GX_LONE_BYTE)
            ++end;
        if (first == 0)
            put_text(w, first, end, &w->prefix, &w->prefix_len);
        if (end == w->n)
            put_text(w, first, end, &w->suffix, &w->suffix_len);
        if (end - first > best) {
            best = end - first;
            put_text(w, first, end, &w->middle, &w->middle_len);
        }
    }
    for (uint32_t i = 0; i < w->n; ++i) {
        char bytes[4];
        w->least_bytes +=
            w->items[i] < GX_LONE_BYTE ? gx_put_character(bytes, w->items[i]) : w->items[i] == GX_ANY_CHARACTER;
    }
}

static gx_status check_items(const gx_wildcard *w, gx_error *err)
{
    bool any = false;
    for (uint32_t i = 0; i < w->n; ++i) {
        if (w->items[i] < GX_LONE_BYTE)
            return GX_OK;
        any = any || w->items[i] == GX_ANY_TEXT;
    }
    return w->n == 0 ? gx_fail(err, GX_EUSAGE, "the pattern is empty")
           : any     ? gx_fail(err, GX_EUSAGE, "the pattern matches every word; it needs a letter or digit")
                     : GX_OK;
}

gx_status gx_wildcard_compile(gx_wildcard *w, const gx_index *ix, const char *text, size_t len, bool literal,
                              bool as_is, gx_error *err)
{
    const size_t most = (len < GX_MAX_PATTERN_CHARACTERS ? len : GX_MAX_PATTERN_CHARACTERS) * GX_LETTER_MAX + 1;
    *w = (gx_wildcard){.items = malloc(most * sizeof *w->items)};
    w->prefix = malloc(4 * most);
    w->suffix = malloc(4 * most);
    w->middle = malloc(4 * most);
    if (!w->items || !w->prefix || !w->suffix || !w->middle)
        return gx_fail(err, GX_ENOMEM, "no memory for a pattern");
    gx_status st = read_items(w, ix, text, len, literal, as_is, err);
    if (st == GX_OK && (st = check_items(w, err)) == GX_OK)
        find_texts(w);
    return st;
}

void gx_wildcard_free(gx_wildcard *w)
{
    free(w->items);
    free(w->prefix);
    free(w->suffix);
    free(w->middle);
}

/* ---- match ---- */

/* Go on behind the last * that was met, one character later each time. */
bool gx_wildcard_matches(const gx_wildcard *w, const char *word, size_t len)
{
    uint32_t i = 0, star = UINT32_MAX, used;
    size_t at = 0, again = 0;
    while (at < len) {
        const uint32_t c = gx_first_character(word + at, len - at, true, &used);
        if (i < w->n && w->items[i] == GX_ANY_TEXT) {
            star = i++;
            again = at;
        } else if (i < w->n && (w->items[i] == c || w->items[i] == GX_ANY_CHARACTER)) {
            ++i;
            at += used;
        } else if (star != UINT32_MAX) {
            gx_first_character(word + again, len - again, true, &used);
            again += used;
            at = again;
            i = star + 1;
        } else {
            return false;
        }
    }
    while (i < w->n && w->items[i] == GX_ANY_TEXT)
        ++i;
    return i == w->n;
}

/* ---- find ---- */

/* The words that begin with the prefix, whatever follows. */
static bool find_prefix(gx_found *f, uint32_t first, uint32_t end)
{
    const gx_df_maxima *m = gx_index_df_maxima(f->ix);
    if (!m)
        return false;
    const uint32_t *of_groups = gx_df_maxima_of_groups(m);
    const bool whole = !f->all && !f->deleted_dfs;
    uint64_t left_out = 0;
    for (uint32_t t = first; t < end;) {
        const uint32_t group = t / GX_DF_GROUP, far = t / (GX_DF_GROUP * GX_DF_GROUP);
        uint32_t skip = 0;
        if (whole && t % GX_DF_GROUP == 0 && gx_found_is_full_of(f, m->groups[group])) {
            const bool further = t % (GX_DF_GROUP * GX_DF_GROUP) == 0 && gx_found_is_full_of(f, of_groups[far]);
            skip = further ? GX_DF_GROUP * GX_DF_GROUP : GX_DF_GROUP;
            skip = skip < end - t ? skip : end - t;
        } else {
            gx_found_add(f, t, 0);
        }
        left_out += skip;
        t += skip ? skip : 1;
    }
    f->n_matched += left_out;
    return true;
}

static inline uint64_t offset_of(const gx_strings *s, uint32_t i)
{
    return s->width == 4 ? ((const uint32_t *)s->offsets)[i] : ((const uint64_t *)s->offsets)[i];
}

static void look_at(const gx_wildcard *w, gx_found *f, uint32_t term)
{
    size_t len;
    const char *p = gx_strings_get(&f->ix->terms, term, &len);
    if (gx_wildcard_matches(w, p, len))
        gx_found_add(f, term, 0);
}

/* The words that end with the suffix; its last bytes, 4 at most, are compared first. */
static void find_suffix(const gx_wildcard *w, gx_found *f, uint32_t first, uint32_t end)
{
    const gx_strings *s = &f->ix->terms;
    const size_t n = w->suffix_len < 4 ? w->suffix_len : 4;
    const uint32_t mask = n == 4 ? UINT32_MAX : (UINT32_C(1) << 8 * n) - 1;
    uint32_t last = 0, term = first;
    memcpy(&last, w->suffix + w->suffix_len - n, n);
    uint64_t at = offset_of(s, first);
    const uint64_t safe = offset_of(s, end);
    for (; term < end; ++term) {
        const uint64_t next = offset_of(s, term + 1), begin = next - n;
        uint32_t bytes = 0;
        if (next - at >= w->least_bytes) {
            if (begin + 4 <= safe)
                memcpy(&bytes, s->bytes + begin, 4);
            else
                memcpy(&bytes, s->bytes + begin, n);
            if ((bytes & mask) == last)
                look_at(w, f, term);
        }
        at = next;
    }
}

/* The first place of text[n] in p[len]; NULL: there is none. */
static const char *find_text(const char *p, size_t len, const char *text, size_t n)
{
    size_t i = 0;
#if defined(__SSE2__)
    const __m128i first = _mm_set1_epi8(text[0]), last = _mm_set1_epi8(text[n - 1]);
    for (; i + n - 1 + 16 <= len; i += 16) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + i + n - 1));
        uint32_t bits = (uint32_t)_mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last)));
        for (; bits; bits &= bits - 1) {
            const char *at = p + i + __builtin_ctz(bits);
            if (memcmp(at, text, n) == 0)
                return at;
        }
    }
#endif
    return len - i >= n ? memmem(p + i, len - i, text, n) : NULL;
}

/* The words that have the middle somewhere. */
static void find_middle(const gx_wildcard *w, gx_found *f, uint32_t first, uint32_t end)
{
    const gx_strings *s = &f->ix->terms;
    const char *p = s->bytes + offset_of(s, first), *const stop = s->bytes + offset_of(s, end);
    uint32_t term = first;
    while (term < end && (size_t)(stop - p) >= w->middle_len &&
           (p = find_text(p, (size_t)(stop - p), w->middle, w->middle_len))) {
        const uint64_t at = (uint64_t)(p - s->bytes);
        uint32_t step = 1, high;
        while (step < end - term && offset_of(s, term + step) <= at) { /* the term that begins last of those up to p */
            term += step;
            step *= 2;
        }
        for (high = step < end - term ? term + step : end; term + 1 < high;) {
            const uint32_t mid = term + (high - term) / 2;
            *(offset_of(s, mid) <= at ? &term : &high) = mid;
        }
        look_at(w, f, term);
        p = s->bytes + offset_of(s, ++term);
    }
}

gx_status gx_wildcard_find(const gx_wildcard *w, gx_found *f, gx_error *err)
{
    uint32_t first, end;
    bool good = true;
    gx_index_prefix_range(f->ix, w->prefix, w->prefix_len, &first, &end);
    const bool is_prefix = w->n && w->items[w->n - 1] == GX_ANY_TEXT && w->least_bytes == w->prefix_len;
    if (first == end)
        return GX_OK;
    if (is_prefix)
        good = find_prefix(f, first, end);
    else if (w->suffix_len)
        find_suffix(w, f, first, end);
    else if (w->middle_len > w->prefix_len || (w->middle_len && w->prefix_len == 0))
        find_middle(w, f, first, end);
    else
        for (uint32_t term = first; term < end; ++term)
            look_at(w, f, term);
    return good && !f->failed ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the words that match a pattern");
}
