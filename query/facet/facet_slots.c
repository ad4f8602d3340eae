#include "query/facet/facet_slots.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/filter/filter_kernels.h"

#define NONE 1u /* in the map */
#define MAP_OF_NARROW 65536u
#define WORDS_AT_ONCE 8u
#define MUCH 8 /* times as many strings as matches: a table of those with a slot is smaller than the map */

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for the groups of a facet");
}

gx_status gx_slots_open(gx_slots *s, const gx_facet_count *counted, uint32_t n, uint64_t n_matches, bool one_file,
                        gx_error *err)
{
    s->counted = counted;
    s->n = n;
    s->n_matches = n_matches;
    s->one_file = one_file;
    s->map = NULL;
    s->n_map = s->max_map = 0;
    s->keys = s->ordinals = (gx_count_table){0};
    for (uint32_t i = 0; counted && i < n && !gx_is_keyword(counted->type); ++i)
        if (!gx_count_table_add(&s->keys, counted->groups[i].key, i + 1ull))
            return no_memory(err);
    return GX_OK;
}

void gx_slots_close(gx_slots *s)
{
    free(s->map);
    gx_count_table_free(&s->keys);
    gx_count_table_free(&s->ordinals);
}

static uint32_t find(const gx_count_table *t, uint64_t key)
{
    return t->bits ? (uint32_t)t->counts[gx_count_table_slot(t, key)] : 0;
}

/* ---- strings ---- */

/* The string's number in the file, or UINT32_MAX. */
static uint32_t find_string(const gx_slots *s, const gx_counted_string *string)
{
    uint32_t low = 0, high = s->c->n_strings;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        size_t len;
        const char *p = gx_column_string(s->ix, s->c, middle, &len);
        const size_t n = len < string->len ? len : string->len;
        const int order = n ? memcmp(p, string->p, n) : 0;
        if (order == 0 && len == string->len)
            return middle;
        if (order < 0 || (order == 0 && len < string->len))
            low = middle + 1;
        else
            high = middle;
    }
    return UINT32_MAX;
}

static bool bind_strings(gx_slots *s)
{
    const bool table = s->c->n_strings / MUCH > s->n_matches + s->n;
    bool good = table || gx_reserve(&s->map, &s->max_map, s->c->n_strings + 1ull, sizeof *s->map);
    s->n_map = table ? 0 : s->c->n_strings;
    for (uint64_t i = 0; i < s->n_map && good; ++i)
        s->map[i] = NONE;
    for (uint32_t i = 0; i < s->n && good; ++i) {
        const gx_counted_string *string = &s->counted->strings[s->counted->groups[i].key];
        const uint32_t ordinal = s->one_file ? string->ordinal : find_string(s, string);
        if (ordinal == UINT32_MAX)
            continue;
        if (table)
            good = gx_count_table_add(&s->ordinals, ordinal, i + 1ull);
        else
            s->map[ordinal] = i + 2;
    }
    return good;
}

/* ---- the slot of a value ---- */

static bool bind(gx_slots *s)
{
    gx_count_table_free(&s->ordinals);
    s->n_map = 0;
    if (gx_is_keyword(s->c->type))
        return bind_strings(s);
    if (s->c->width > 2)
        return true;
    s->n_map = UINT64_C(1) << 8 * s->c->width;
    if (!gx_reserve(&s->map, &s->max_map, s->n_map, sizeof *s->map))
        return false;
    memset(s->map, 0, s->n_map * sizeof *s->map);
    return true;
}

/* 2 + the slot, or NONE, of a value that the map does not tell. */
static uint32_t look_up(gx_slots *s, uint64_t raw)
{
    if (gx_is_keyword(s->c->type))
        return s->n_map ? NONE : find(&s->ordinals, raw) + 1;
    const uint32_t slot = find(&s->keys, gx_facet_key_of(s->counted, s->c, raw)) + 1;
    if (raw < s->n_map)
        s->map[raw] = slot;
    return slot;
}

static inline uint32_t slot_of(gx_slots *s, uint64_t raw)
{
    const uint32_t slot = raw < s->n_map ? s->map[raw] : 0;
    return slot ? slot : look_up(s, raw);
}

/* ---- pairs ---- */

/* Leave out the documents that are in no slot. */
static void drop_others(gx_slots *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_pairs; ++i) {
        s->docs[n] = s->docs[i];
        s->slots[n] = s->slots[i];
        n += s->slots[i] != NONE - 2;
    }
    s->n_pairs = n;
}

#define MAPPED(NAME, TYPE)                                                                                             \
    static void map_##NAME(gx_slots *s)                                                                                \
    {                                                                                                                  \
        const TYPE *const values = s->c->values;                                                                       \
        const uint32_t *const map = s->map;                                                                            \
        const uint64_t n_map = s->n_map;                                                                               \
        uint32_t least = UINT32_MAX;                                                                                   \
        for (uint32_t i = 0; i < s->n_pairs; ++i) {                                                                    \
            const TYPE raw = values[s->docs[i]];                                                                       \
            uint32_t slot = raw < n_map ? map[raw] : 0;                                                                \
            if (!slot)                                                                                                 \
                slot = look_up(s, raw);                                                                                \
            s->slots[i] = slot - 2;                                                                                    \
            least = slot < least ? slot : least;                                                                       \
        }                                                                                                              \
        if (least == NONE)                                                                                             \
            drop_others(s);                                                                                            \
    }
MAPPED(u8, uint8_t)
MAPPED(u16, uint16_t)
MAPPED(u32, uint32_t)
MAPPED(u64, uint64_t)

/* Give the documents of one value each their slots; those without one are left out. */
static void find_slots(gx_slots *s)
{
    if (!s->counted)
        memset(s->slots, 0, s->n_pairs * sizeof *s->slots);
    else
        (s->c->width == 1 ? map_u8 : s->c->width == 2 ? map_u16 : s->c->width == 4 ? map_u32 : map_u64)(s);
}

typedef struct use_of_pairs {
    gx_pairs_use *use;
    void *user;
    gx_error *err;
} use_of_pairs;

static gx_status flush(gx_slots *s, const use_of_pairs *u)
{
    const uint32_t n = s->n_pairs;
    s->n_pairs = 0;
    return n ? u->use(u->user, s->docs, s->slots, n, u->err) : GX_OK;
}

static gx_status each_of_one(gx_slots *s, const uint64_t *words, const uint64_t *present, const use_of_pairs *u)
{
    const gx_filter_kernels *kernels = gx_filter_kernels_best();
    const size_t n_words = ((size_t)s->ix->n_docs + 63) / 64;
    gx_status st = GX_OK;
    s->n_pairs = 0;
    for (size_t w = 0; w < n_words && st == GX_OK; w += WORDS_AT_ONCE) {
        uint64_t both[WORDS_AT_ONCE];
        const uint32_t n = (uint32_t)(n_words - w < WORDS_AT_ONCE ? n_words - w : WORDS_AT_ONCE);
        for (uint32_t i = 0; i < n && present; ++i)
            both[i] = words[w + i] & present[w + i];
        s->n_pairs += kernels->list(present ? both : words + w, n, (uint32_t)(64 * w), s->docs + s->n_pairs);
        if (s->n_pairs > GX_SLOTS_AT_ONCE - 64 * WORDS_AT_ONCE || w + n == n_words) {
            find_slots(s);
            st = flush(s, u);
        }
    }
    return st;
}

/* Values rise, and so do the groups of ranges: one pair a group. */
static gx_status each_of_several(gx_slots *s, const uint64_t *words, const use_of_pairs *u)
{
    gx_status st = GX_OK;
    s->n_pairs = 0;
    for (uint32_t d = 0; d < s->ix->n_docs && st == GX_OK; ++d) {
        if (!words[d / 64]) {
            d |= 63;
            continue;
        }
        if (!(words[d / 64] >> d % 64 & 1))
            continue;
        uint32_t before = NONE;
        for (uint32_t v = s->c->starts[d]; v < s->c->starts[d + 1] && st == GX_OK; ++v) {
            const uint32_t slot = slot_of(s, gx_column_raw(s->c, v));
            if (slot == NONE || slot == before)
                continue;
            before = slot;
            s->docs[s->n_pairs] = d;
            s->slots[s->n_pairs++] = slot - 2;
            if (s->n_pairs == GX_SLOTS_AT_ONCE)
                st = flush(s, u);
        }
    }
    return st == GX_OK ? flush(s, u) : st;
}

gx_status gx_slots_each(gx_slots *s, const gx_index *ix, uint32_t column, const uint64_t *words, gx_pairs_use *use,
                        void *user, gx_error *err)
{
    const use_of_pairs u = {use, user, err};
    s->ix = ix;
    if (!s->counted)
        return each_of_one(s, words, NULL, &u);
    s->c = &ix->columns[column];
    if (!bind(s))
        return no_memory(err);
    return s->c->starts ? each_of_several(s, words, &u) : each_of_one(s, words, s->c->present, &u);
}
