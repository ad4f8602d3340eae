/* wildcard.c: patterns of ? and *. Terms that begin with the text before the first sign follow each other; of those,
 * those with the pattern's letters that end with the text behind the last sign, or that have the longest text between,
 * are looked at closely. */
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
        w->letters |= w->items[i] < GX_LONE_BYTE ? gx_letter_of(w->items[i]) : 0;
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

#define FEW 32u /* words that are looked at one by one */

/* The terms of a range, by groups of neighbours. */
typedef struct grouped {
    const gx_df_maxima *maxima;
    uint32_t first, end; /* groups that lie in the range */
} grouped;

#define FAR GX_DF_GROUP

/* Call look of each group whose greatest df is not below *least, which may rise. */
static void each_group(const grouped *g, const uint32_t *least, void (*look)(void *user, uint32_t group), void *user)
{
    const uint32_t *far = gx_df_maxima_of_groups(g->maxima);
    for (uint32_t i = g->first; i < g->end;) {
        if (i % FAR == 0 && i + FAR <= g->end && far[i / FAR] < *least) {
            i += FAR;
            continue;
        }
        if (g->maxima->groups[i] >= *least)
            look(user, i);
        ++i;
    }
}

/* The greatest dfs of groups, the least of them on top. */
typedef struct best_groups {
    const grouped *g;
    uint32_t n, most, least; /* least: a group below it is none of the best */
    uint32_t *dfs;           /* [most] */
} best_groups;

static void take_group(void *user, uint32_t group)
{
    best_groups *b = user;
    const uint32_t df = b->g->maxima->groups[group];
    uint32_t i = 0;
    if (b->n < b->most) {
        for (i = b->n++; i && b->dfs[(i - 1) / 2] > df; i = (i - 1) / 2)
            b->dfs[i] = b->dfs[(i - 1) / 2];
    } else {
        for (uint32_t c; (c = 2 * i + 1) < b->n; i = c) {
            c += c + 1 < b->n && b->dfs[c + 1] < b->dfs[c];
            if (b->dfs[c] >= df)
                break;
            b->dfs[i] = b->dfs[c];
        }
    }
    b->dfs[i] = df;
    if (b->n == b->most)
        b->least = b->dfs[0] + 1;
}

/* What is sought, and a df below which no term is among the best. */
typedef struct seeking {
    gx_found *f;
    uint32_t least;
    uint64_t n_seen;
} seeking;

static void look_at_range(seeking *s, uint32_t first, uint32_t end)
{
    const gx_list_entry *lists = s->f->ix->lists;
    for (uint32_t t = first; t < end; ++t)
        if (lists[t].df >= s->least) {
            gx_found_add(s->f, t, 0);
            ++s->n_seen;
        }
}

static void look_at_group(void *user, uint32_t group)
{
    look_at_range(user, group * GX_DF_GROUP, (group + 1) * GX_DF_GROUP);
}

/* The words that begin with the prefix, whatever follows. As many groups as words are asked for have a word each of
 * their greatest df: words of a lower one than the least of these are none of the best. */
static bool find_prefix(gx_found *f, uint32_t first, uint32_t end)
{
    const grouped g = {gx_index_df_maxima(f->ix), (first + GX_DF_GROUP - 1) / GX_DF_GROUP, end / GX_DF_GROUP};
    const bool whole = !f->all && !f->deleted_dfs && f->n == 0 && g.first < g.end;
    seeking s = {f, 0, 0};
    if (!g.maxima)
        return false;
    if (whole && g.end - g.first > f->most) {
        best_groups b = {&g, 0, f->most, 0, malloc(f->most * sizeof *b.dfs)};
        if (!b.dfs)
            return false;
        each_group(&g, &b.least, take_group, &b);
        s.least = b.dfs[0];
        free(b.dfs);
    }
    look_at_range(&s, first, whole ? g.first * GX_DF_GROUP : end);
    if (whole) {
        each_group(&g, &s.least, look_at_group, &s);
        look_at_range(&s, g.end * GX_DF_GROUP, end);
    }
    f->n_matched += end - first - s.n_seen; /* those that were seen are counted */
    return true;
}

static void look_at(const gx_wildcard *w, gx_found *f, uint32_t term)
{
    size_t len;
    const char *p = gx_strings_get(&f->ix->terms, term, &len);
    if (gx_wildcard_matches(w, p, len))
        gx_found_add(f, term, 0);
}

/* Whether the word, which has the pattern's letters, ends as it does, or has its longest text. */
static void look_closer(const gx_wildcard *w, gx_found *f, uint32_t term)
{
    size_t len;
    const char *p = gx_strings_get(&f->ix->terms, term, &len);
    if (len < w->least_bytes || memcmp(p + len - w->suffix_len, w->suffix, w->suffix_len) != 0)
        return;
    if (w->suffix_len == 0 && w->middle_len > w->prefix_len && !memmem(p, len, w->middle, w->middle_len))
        return;
    if (gx_wildcard_matches(w, p, len))
        gx_found_add(f, term, 0);
}

/* Look closer at the words that have all letters. */
static void find_by_letters(const gx_wildcard *w, gx_found *f, const uint32_t *letters, uint32_t first, uint32_t end)
{
    const uint32_t need = w->letters;
    uint32_t term = first;
#if defined(__SSE2__)
    const __m128i all = _mm_set1_epi32((int)need);
    for (; end - term >= 8; term += 8) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(letters + term));
        const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(letters + term + 4));
        const __m128i has =
            _mm_packs_epi32(_mm_cmpeq_epi32(_mm_and_si128(a, all), all), _mm_cmpeq_epi32(_mm_and_si128(b, all), all));
        for (uint32_t bits = (uint32_t)_mm_movemask_epi8(has) & 0x5555; bits; bits &= bits - 1)
            look_closer(w, f, term + (uint32_t)__builtin_ctz(bits) / 2);
    }
#endif
    for (; term < end; ++term)
        if ((letters[term] & need) == need)
            look_closer(w, f, term);
}

gx_status gx_wildcard_find(const gx_wildcard *w, gx_found *f, gx_error *err)
{
    uint32_t first, end;
    bool good = true;
    const gx_term_tree *tree;
    gx_index_prefix_range(f->ix, w->prefix, w->prefix_len, &first, &end);
    const bool is_prefix = w->n && w->items[w->n - 1] == GX_ANY_TEXT && w->least_bytes == w->prefix_len;
    if (first == end)
        return GX_OK;
    if (is_prefix)
        good = find_prefix(f, first, end);
    else if (end - first <= FEW)
        for (uint32_t term = first; term < end; ++term)
            look_at(w, f, term);
    else if ((tree = gx_index_term_tree(f->ix)))
        find_by_letters(w, f, gx_term_letters(tree), first, end);
    else
        good = false;
    return good && !f->failed ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the words that match a pattern");
}
