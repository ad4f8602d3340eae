/* fuzzy.c: words within a distance of another, by optimal string alignment: an automaton of bits, as Wu and Manber's
 * (Fast text searching, 1992) with Hyyro's (2003) swaps.
 *
 *   errors[e], bit i     the characters read are within distance e of the first i ones of the word
 */
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/expand/walk.h"

typedef struct state {
    uint64_t errors[GX_MAX_DISTANCE + 1];
    uint64_t places; /* of the character that led here: bit i + 1 where the word has it at i */
} state;

typedef struct automaton {
    const gx_fuzzy *fuzzy;
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

/* The first k characters are the word's, and no others may be. */
static void set_fixed(const gx_fuzzy *z, state *s, uint32_t k)
{
    s->places = 0;
    for (uint32_t e = 0; e <= GX_MAX_DISTANCE; ++e) {
        s->errors[e] = 0;
        for (uint32_t i = 0; i <= e && k == z->fixed && k + i <= z->n; ++i)
            s->errors[e] |= UINT64_C(1) << (k + i);
    }
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
    const uint64_t places = places_of(z, c), mask = (UINT64_C(2) << z->n) - 1;
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
    return any != 0;
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

gx_status gx_fuzzy_find(const gx_fuzzy *z, gx_found *f, gx_error *err)
{
    automaton *a = malloc(sizeof *a);
    if (!a)
        return gx_fail(err, GX_ENOMEM, "no memory for a pattern");
    a->fuzzy = z;
    set_fixed(z, &a->states[0], 0);
    a->walk.automaton = a;
    a->walk.found = f;
    a->walk.least_bytes = z->n > z->distance ? z->n - z->distance : 0;
    a->walk.most_bytes = 4 * (size_t)(z->n + z->distance);
    const gx_status st = gx_walk_all(&a->walk, step, accept);
    free(a);
    return st == GX_OK ? GX_OK : gx_fail(err, st, "no memory for the words that match a pattern");
}
