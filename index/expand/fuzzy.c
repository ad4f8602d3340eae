/* fuzzy.c: words within a distance of another, by optimal string alignment: an automaton of bits, as Wu and Manber's
 * (Fast text searching, 1992) with Hyyro's (2003) swaps.
 *
 *   errors[e], bit i     the characters read are within distance e of the first i ones of the word
 *
 * It walks the tree of terms. Of the terms of a leaf those are candidates whose letters differ in so few as edits can
 * change; they are read together at the end, while the bytes of the next ones are fetched.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/expand/walk.h"

#define AHEAD 8u /* terms whose bytes are fetched before they are read */

typedef struct state {
    uint64_t errors[GX_MAX_DISTANCE + 1];
    uint64_t places; /* of the character that led here: bit i + 1 where the word has it at i */
    bool others;     /* a character that the word does not have may follow */
} state;

typedef struct automaton {
    const gx_fuzzy *fuzzy;
    uint32_t letters[GX_MAX_FUZZY_CHARACTERS + 1]; /* of the word from character i on */
    uint32_t *terms;                               /* [n_terms] candidates */
    size_t n_terms, max_terms;
    bool failed;
    state states[GX_MAX_FUZZY_CHARACTERS + GX_MAX_DISTANCE + 2];
    gx_walk walk;
} automaton;

gx_status gx_fuzzy_compile(gx_fuzzy *z, const char *word, size_t len, uint32_t distance, uint32_t fixed, gx_error *err)
{
    *z = (gx_fuzzy){.only_ascii = true};
    for (size_t at = 0; at < len;) {
        uint32_t used;
        const uint32_t c = gx_first_character(word + at, len - at, true, &used);
        if (z->n == GX_MAX_FUZZY_CHARACTERS)
            return gx_fail(err, GX_EUSAGE, "a word with typing errors has at most %u characters",
                           GX_MAX_FUZZY_CHARACTERS);
        if (c < 128)
            z->ascii[c] |= UINT64_C(2) << z->n;
        else
            z->only_ascii = false;
        z->word[z->n++] = c;
        at += used;
    }
    z->fixed = fixed < z->n ? fixed : z->n;
    z->distance = distance != GX_DISTANCE_AUTO ? distance : z->n < 3 ? 0 : z->n < 6 ? 1 : 2;
    return GX_OK;
}

static inline uint64_t places_of(const gx_fuzzy *z, uint32_t c)
{
    uint64_t places = 0;
    if (c < 128)
        return z->ascii[c];
    for (uint32_t i = 0; i < z->n && !z->only_ascii; ++i)
        places |= (uint64_t)(z->word[i] == c) << (i + 1);
    return places;
}

static inline uint64_t mask_of(const gx_fuzzy *z)
{
    return (UINT64_C(2) << z->n) - 1;
}

/* Whether a character that the word does not have leads from the state to another: as step. */
static inline bool may_lead_elsewhere(const gx_fuzzy *z, const state *s)
{
    uint64_t errors = 0;
    for (uint32_t e = 1; e <= z->distance; ++e)
        errors = s->errors[e - 1] | s->errors[e - 1] << 1 | errors << 1;
    return errors & mask_of(z);
}

/* The first k characters are the word's, and no others may be. */
static void set_fixed(const gx_fuzzy *z, state *s, uint32_t k)
{
    s->places = 0;
    for (uint32_t e = 0; e <= GX_MAX_DISTANCE; ++e) {
        s->errors[e] = 0;
        for (uint32_t i = 0; i <= e && k == z->fixed && k + i <= z->n; ++i)
            s->errors[e] |= UINT64_C(1) << (k + i);
    }
    s->others = k == z->fixed && may_lead_elsewhere(z, s);
}

static inline bool step(void *user, uint32_t k, uint32_t c)
{
    automaton *a = user;
    const gx_fuzzy *z = a->fuzzy;
    const state *s = &a->states[k];
    state *to = &a->states[k + 1];
    if (k > z->n + GX_MAX_DISTANCE)
        return false;
    if (k < z->fixed) {
        set_fixed(z, to, k + 1);
        return c == z->word[k];
    }
    const uint64_t places = places_of(z, c), mask = mask_of(z);
    to->places = places;
    to->errors[0] = (s->errors[0] << 1) & places;
    uint64_t any = to->errors[0];
    for (uint32_t e = 1; e <= GX_MAX_DISTANCE; ++e) {
        const uint64_t swapped = k ? (s[-1].errors[e - 1] << 2) & (places << 1) & s->places : 0;
        to->errors[e] = (((s->errors[e] << 1) & places) | s->errors[e - 1] | (s->errors[e - 1] << 1) |
                         (to->errors[e - 1] << 1) | swapped) &
                        mask;
        any = e <= z->distance ? to->errors[e] : any;
    }
    to->others = may_lead_elsewhere(z, to);
    return any != 0;
}

static inline bool leads(const void *user, uint32_t k, uint32_t c)
{
    const automaton *a = user;
    const gx_fuzzy *z = a->fuzzy;
    const state *s = &a->states[k];
    const uint64_t places = z->ascii[c];
    if (s->others || k < z->fixed)
        return s->others || places;
    return (((s->errors[z->distance] << 1) & places) != 0) ||
           (k && z->distance && (s[-1].errors[z->distance - 1] << 2 & places << 1 & s->places) != 0);
}

static inline uint32_t accept(const void *user, uint32_t k)
{
    const automaton *a = user;
    const gx_fuzzy *z = a->fuzzy;
    for (uint32_t e = 0; e <= z->distance; ++e) {
        if (a->states[k].errors[e] >> z->n & 1)
            return e;
    }
    return GX_NO_MATCH;
}

/* ---- candidates ---- */

static inline bool has_more(uint32_t letters, uint32_t n)
{
    for (; letters && n; --n)
        letters &= letters - 1;
    return letters != 0;
}

/* The letters that a term in a state must have, but for *most: those of the word behind the last place that the state
 * may be at. */
static uint32_t letters_to_come(const automaton *a, const state *s, uint32_t *most)
{
    const uint32_t distance = a->fuzzy->distance;
    uint32_t least = 0;
    while (least < distance && s->errors[least] == 0)
        ++least;
    *most = distance - least;
    return s->errors[distance] ? a->letters[63 - __builtin_clzll(s->errors[distance])] : 0;
}

static inline void leaf(gx_walk *w, uint32_t first, uint32_t end, uint32_t depth)
{
    automaton *a = w->automaton;
    const uint32_t *letters = gx_term_letters(w->tree), most = a->fuzzy->distance, own = a->letters[0];
    uint32_t left;
    const uint32_t need = letters_to_come(a, &a->states[w->k], &left);
    (void)depth;
    if (!gx_reserve(&a->terms, &a->max_terms, a->n_terms + (end - first), sizeof *a->terms)) {
        a->failed = true;
        return;
    }
    for (uint32_t term = first; term < end; ++term)
        if (!has_more(need & ~letters[term], left) && !has_more(letters[term] & ~own, most) &&
            !has_more(own & ~letters[term], most))
            a->terms[a->n_terms++] = term;
}

static void read_term(automaton *a, uint32_t term)
{
    gx_found *f = a->walk.found;
    size_t len;
    const char *p = gx_strings_get(&f->ix->terms, term, &len);
    uint32_t k = 0, used;
    if (len < a->walk.least_bytes || len > a->walk.most_bytes)
        return;
    for (size_t at = 0; at < len; at += used)
        if (!step(a, k++, gx_first_character(p + at, len - at, true, &used)))
            return;
    const uint32_t distance = accept(a, k);
    if (distance != GX_NO_MATCH)
        gx_found_add(f, term, distance);
}

static inline uint64_t offset_of(const gx_strings *s, uint32_t i)
{
    return s->width == 4 ? ((const uint32_t *)s->offsets)[i] : ((const uint64_t *)s->offsets)[i];
}

static void read_terms(automaton *a)
{
    const gx_strings *s = &a->walk.found->ix->terms;
    for (size_t i = 0; i < a->n_terms; ++i) {
        if (i + 2 * AHEAD < a->n_terms)
            __builtin_prefetch((const char *)s->offsets + (size_t)a->terms[i + 2 * AHEAD] * s->width);
        if (i + AHEAD < a->n_terms)
            __builtin_prefetch(s->bytes + offset_of(s, a->terms[i + AHEAD]));
        read_term(a, a->terms[i]);
    }
}

gx_status gx_fuzzy_find(const gx_fuzzy *z, gx_found *f, gx_error *err)
{
    automaton *a = malloc(sizeof *a);
    if (!a)
        return gx_fail(err, GX_ENOMEM, "no memory for a pattern");
    a->fuzzy = z;
    set_fixed(z, &a->states[0], 0);
    a->walk.automaton = a;
    a->walk.found = f;
    a->letters[z->n] = 0;
    for (uint32_t i = z->n; i--;)
        a->letters[i] = a->letters[i + 1] | gx_letter_of(z->word[i]);
    a->terms = NULL;
    a->n_terms = a->max_terms = 0;
    a->failed = false;
    a->walk.least_bytes = z->n > z->distance ? z->n - z->distance : 0;
    a->walk.most_bytes = 4 * (size_t)(z->n + z->distance);
    gx_status st = gx_walk_all(&a->walk, step, leads, leaf);
    if (st == GX_OK)
        read_terms(a);
    if (st == GX_OK && (a->failed || f->failed))
        st = GX_ENOMEM;
    free(a->terms);
    free(a);
    return st == GX_OK ? GX_OK : gx_fail(err, st, "no memory for the words that match a pattern");
}
