#include "query/phrase/phrase.h"

/* p[i] less offset, counted from the greatest offset so that it is never negative. */
static inline uint32_t adjusted(const gx_word_places *w, uint32_t i, uint32_t greatest)
{
    return w->positions[i] + (greatest - w->offset);
}

/* ---- in a row ---- */

/* The starts of a word alone. */
static uint32_t starts_of(uint32_t *starts, const gx_word_places *w, uint32_t greatest)
{
    for (uint32_t i = 0; i < w->n; ++i)
        starts[i] = adjusted(w, i, greatest);
    return w->n;
}

static uint32_t shortest(const gx_word_places *words, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; ++i)
        best = words[i].n < words[best].n ? i : best;
    return best;
}

/* Of starts[n], rising, those at which another word stands too. */
static uint32_t keep_starts(uint32_t *starts, uint32_t n, const gx_word_places *w, uint32_t greatest)
{
    uint32_t kept = 0, j = 0;
    for (uint32_t i = 0; i < n; ++i) {
        while (j < w->n && adjusted(w, j, greatest) < starts[i])
            ++j;
        if (j == w->n)
            break;
        starts[kept] = starts[i];
        kept += adjusted(w, j, greatest) == starts[i];
    }
    return kept;
}

static uint32_t count_in_a_row(const gx_phrase *p, const gx_word_places *words, uint32_t *starts)
{
    const uint32_t greatest = words[p->n - 1].offset, first = shortest(words, p->n);
    uint32_t n = starts_of(starts, &words[first], greatest);
    for (uint32_t w = 0; w < p->n && n; ++w) {
        if (w != first)
            n = keep_starts(starts, n, &words[w], greatest);
    }
    return n;
}

/* ---- within a range ---- */

typedef struct window {
    const gx_word_places *words;
    uint32_t n, greatest, slop;
    uint32_t *at; /* [n] for each word the first place not before the start */
    bool repeats; /* a word stands in the phrase more than once */
} window;

/* Whether the places of one word that begin at word `from` of the phrase can all be of their own, word `fixed`
 * standing at its first one. Ranges of places have one length and come by rising begin: the first that is free will do.
 */
static bool are_apart(const window *v, uint32_t from, uint32_t fixed, uint32_t start)
{
    const gx_word_places *words = v->words;
    uint32_t next = 0;
    for (uint32_t w = from; w < v->n; ++w) {
        if (words[w].list != words[from].list || w == fixed)
            continue;
        uint32_t j = v->at[w] > next ? v->at[w] : next;
        if (words[fixed].list == words[w].list && j == v->at[fixed])
            ++j;
        if (j >= words[w].n || adjusted(&words[w], j, v->greatest) - start > v->slop)
            return false;
        next = j + 1;
    }
    return true;
}

static bool is_first_of_its_word(const window *v, uint32_t w)
{
    for (uint32_t i = 0; i < w; ++i)
        if (v->words[i].list == v->words[w].list)
            return false;
    return true;
}

/* Whether a match begins at `start` with word `fixed`, whose first place that is. */
static bool begins_with(const window *v, uint32_t fixed, uint32_t start)
{
    for (uint32_t w = 0; w < v->n; ++w)
        if (is_first_of_its_word(v, w) && !are_apart(v, w, fixed, start))
            return false;
    return true;
}

static bool begins_at(const window *v, uint32_t start)
{
    bool all = true;
    for (uint32_t w = 0; w < v->n && all; ++w)
        all = adjusted(&v->words[w], v->at[w], v->greatest) - start <= v->slop;
    if (!all || !v->repeats)
        return all;
    for (uint32_t w = 0; w < v->n; ++w)
        if (adjusted(&v->words[w], v->at[w], v->greatest) == start && begins_with(v, w, start))
            return true;
    return false;
}

static uint32_t slop_of(const gx_phrase *p)
{
    return p->kind == GX_PHRASE_NEAR ? p->slop - 1 : p->slop;
}

/* at: [p->n] */
static window open_window(const gx_phrase *p, const gx_word_places *words, uint32_t *at)
{
    window v = {words, p->n, words[p->n - 1].offset, slop_of(p), at, false};
    for (uint32_t w = 0; w < p->n; ++w) {
        at[w] = 0;
        v.repeats = v.repeats || !is_first_of_its_word(&v, w);
    }
    return v;
}

/* The least of the words' next places. false: a word has no place left. */
static bool next_start(const window *v, uint32_t *start)
{
    *start = UINT32_MAX;
    for (uint32_t w = 0; w < v->n; ++w) {
        if (v->at[w] == v->words[w].n)
            return false;
        const uint32_t x = adjusted(&v->words[w], v->at[w], v->greatest);
        *start = x < *start ? x : *start;
    }
    return true;
}

static void leave_start(window *v, uint32_t start)
{
    for (uint32_t w = 0; w < v->n; ++w)
        v->at[w] += adjusted(&v->words[w], v->at[w], v->greatest) == start;
}

static uint32_t count_in_range(const gx_phrase *p, const gx_word_places *words, uint32_t *at)
{
    window v = open_window(p, words, at);
    uint32_t n = 0;
    for (uint32_t start; next_start(&v, &start); leave_start(&v, start))
        n += begins_at(&v, start);
    return n;
}

/* ---- in order ---- */

/* Keep in `ends`, the places of a word from which the rest of the phrase follows, those places of the word before it
 * from which one of them is at most n behind. */
static uint32_t follow(uint32_t *to, const gx_word_places *w, const uint32_t *ends, uint32_t n_ends, uint32_t slop)
{
    uint32_t n = 0, j = 0;
    for (uint32_t i = 0; i < w->n; ++i) {
        while (j < n_ends && ends[j] <= w->positions[i])
            ++j;
        if (j == n_ends)
            break;
        to[n] = w->positions[i];
        n += ends[j] - w->positions[i] <= slop;
    }
    return n;
}

static uint32_t count_in_order(const gx_phrase *p, const gx_word_places *words, uint32_t *scratch)
{
    const gx_word_places *last = &words[p->n - 1];
    const uint32_t *ends = last->positions;
    uint32_t n = last->n, most = 0, *to = scratch;
    for (uint32_t w = 0; w < p->n; ++w)
        most = words[w].n > most ? words[w].n : most;
    for (uint32_t w = p->n - 1; w > 0 && n; --w) {
        n = follow(to, &words[w - 1], ends, n, p->slop);
        ends = to;
        to = to == scratch ? scratch + most : scratch;
    }
    return n;
}

uint32_t gx_phrase_tf(const gx_phrase *p, const gx_word_places *words, uint32_t *scratch)
{
    if (p->kind == GX_PHRASE_ONEAR)
        return count_in_order(p, words, scratch);
    if (p->kind != GX_PHRASE_NEAR && p->slop == 0)
        return count_in_a_row(p, words, scratch);
    return count_in_range(p, words, scratch);
}

/* ---- which places ---- */

static void mark_in_range(const gx_phrase *p, const gx_word_places *words, uint32_t *at,
                          void (*mark)(void *user, uint32_t word, uint32_t place), void *user)
{
    window v = open_window(p, words, at);
    for (uint32_t start; next_start(&v, &start); leave_start(&v, start)) {
        if (!begins_at(&v, start))
            continue;
        for (uint32_t w = 0; w < p->n; ++w)
            for (uint32_t i = at[w]; i < words[w].n && adjusted(&words[w], i, v.greatest) - start <= v.slop; ++i)
                mark(user, w, i);
    }
}

/* Of the places of a word keep in good[] those with a good one of the other word, which comes behind or before. */
static void keep_linked(const gx_word_places *w, uint32_t *good, const gx_word_places *other,
                        const uint32_t *other_good, bool behind, uint32_t slop)
{
    for (uint32_t i = 0; i < w->n; ++i) {
        bool linked = false;
        for (uint32_t j = 0; j < other->n && good[i] && !linked; ++j) {
            const uint32_t first = behind ? w->positions[i] : other->positions[j],
                           second = behind ? other->positions[j] : w->positions[i];
            linked = other_good[j] && second > first && second - first <= slop;
        }
        good[i] = linked;
    }
}

static void mark_in_order(const gx_phrase *p, const gx_word_places *words, uint32_t *good, uint32_t *begins,
                          void (*mark)(void *user, uint32_t word, uint32_t place), void *user)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < p->n; ++w) {
        begins[w] = n;
        for (uint32_t i = 0; i < words[w].n; ++i)
            good[n++] = true;
    }
    for (uint32_t w = p->n - 1; w > 0; --w)
        keep_linked(&words[w - 1], good + begins[w - 1], &words[w], good + begins[w], true, p->slop);
    for (uint32_t w = 1; w < p->n; ++w)
        keep_linked(&words[w], good + begins[w], &words[w - 1], good + begins[w - 1], false, p->slop);
    for (uint32_t w = 0; w < p->n; ++w)
        for (uint32_t i = 0; i < words[w].n; ++i)
            if (good[begins[w] + i])
                mark(user, w, i);
}

void gx_phrase_mark_places(const gx_phrase *p, const gx_word_places *words, uint32_t *scratch,
                           void (*mark)(void *user, uint32_t word, uint32_t place), void *user)
{
    if (p->kind == GX_PHRASE_ONEAR)
        mark_in_order(p, words, scratch + p->n, scratch, mark, user);
    else
        mark_in_range(p, words, scratch, mark, user);
}

uint32_t gx_phrase_most_tf(const gx_phrase *p, const uint32_t *tfs)
{
    uint64_t sum = 0;
    uint32_t least = UINT32_MAX;
    for (uint32_t w = 0; w < p->n; ++w) {
        sum += tfs[w];
        least = tfs[w] < least ? tfs[w] : least;
    }
    if (p->kind == GX_PHRASE_ONEAR)
        return tfs[0];
    return p->kind == GX_PHRASE_WORDS && p->slop == 0 ? least : sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}
