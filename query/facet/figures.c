#include "query/facet/figures.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"

#define AT_ONCE GX_SLOTS_AT_ONCE
#define MOST_BITS 126 /* of a sum of doubles with one exponent, beside its sign */
#define NO_NUMBER 0x7ffu
#define HAS_NO_NUMBER (1u << 31)

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for the figures of an attribute");
}

/* ---- exponents ---- */

/* The biased exponents of a column's doubles that are finite and not 0: 1 + the least, and in the upper half 1 + the
 * greatest; HAS_NO_NUMBER where there are others. */
static uint32_t exponents_of(const gx_column *c)
{
    const uint64_t *const values = c->values;
    uint32_t known = __atomic_load_n(&c->exponents, __ATOMIC_RELAXED), least = NO_NUMBER, greatest = 1;
    bool no_number = false;
    if (known)
        return known;
    for (uint64_t i = 0; i < c->n_values; ++i) {
        const uint32_t biased = (uint32_t)(values[i] >> 52) & NO_NUMBER, e = biased > 1 ? biased : 1;
        const bool counts = values[i] << 1 && biased != NO_NUMBER;
        no_number |= biased == NO_NUMBER;
        least = counts && e < least ? e : least;
        greatest = counts && e > greatest ? e : greatest;
    }
    least = least < greatest ? least : greatest;
    known = (least + 1) | (greatest + 1) << 16 | (no_number ? HAS_NO_NUMBER : 0);
    __atomic_store_n((uint32_t *)&c->exponents, known, __ATOMIC_RELAXED);
    return known;
}

/* One exponent for the doubles of all files. false: their sums can take more than 128 bits. */
static bool find_exponent(gx_tally *t, const gx_index *const *files, uint32_t n_files)
{
    uint32_t least = NO_NUMBER, greatest = 1;
    uint64_t n = 1;
    t->one_shift = true;
    for (uint32_t i = 0; i < n_files; ++i) {
        const gx_column *c = &files[i]->columns[t->column];
        const uint32_t e = exponents_of(c), low = (e & 0xffff) - 1, high = (e >> 16 & 0x7fff) - 1;
        t->one_shift = t->one_shift && !(e & HAS_NO_NUMBER);
        least = low < least ? low : least;
        greatest = high > greatest ? high : greatest;
        n += c->n_values;
    }
    least = least < greatest ? least : greatest;
    t->exponent = (int)least - 1 + GX_SUM_UNIT;
    t->one_shift = t->one_shift && greatest - least < 64;
    return 53 + (greatest - least) + (64 - (uint32_t)__builtin_clzll(n)) <= MOST_BITS;
}

gx_status gx_tally_open(gx_tally *t, const gx_sum *asked, uint32_t column, gx_attribute_type type, uint32_t n_slots,
                        const gx_index *const *files, uint32_t n_files, gx_error *err)
{
    *t = (gx_tally){.asked = *asked, .column = column, .type = type, .n_slots = n_slots};
    if (!(t->slots = calloc(n_slots + 1ull, sizeof *t->slots)) ||
        (type != GX_ATTRIBUTE_FLOAT && !(t->offsets = calloc(2 * (n_slots + 1ull), sizeof *t->offsets))))
        return no_memory(err);
    for (uint32_t i = 0; i < n_slots; ++i)
        t->slots[i].least = UINT64_MAX;
    if (type == GX_ATTRIBUTE_FLOAT && !find_exponent(t, files, n_files) &&
        !(t->exact = calloc(n_slots + 1ull, sizeof *t->exact)))
        return no_memory(err);
    return GX_OK;
}

void gx_tally_close(gx_tally *t)
{
    free(t->slots);
    free(t->exact);
    free(t->offsets);
    free(t->values.keys);
    free(t->value_slots);
    *t = (gx_tally){0};
}

/* Take the sums of the file at hand. */
static void end_file(gx_tally *t)
{
    for (uint32_t i = 0; i < t->n_slots && t->c && t->offsets; ++i) {
        t->slots[i].sum += (gx_wide)t->offsets[2 * i] + (gx_wide)t->offsets[2 * i + 1] * t->c->base;
        t->slots[i].n += t->offsets[2 * i + 1];
        t->offsets[2 * i] = t->offsets[2 * i + 1] = 0;
    }
}

void gx_tally_file(gx_tally *t, const gx_index *ix)
{
    end_file(t);
    t->c = &ix->columns[t->column];
}

/* ---- the values of some pairs ---- */

typedef struct gathered {
    uint64_t raw[AT_ONCE];
    const uint32_t *slots; /* [n], `own` or others */
    uint32_t own[AT_ONCE], n;
} gathered;

#define GATHER(NAME, TYPE)                                                                                             \
    static void gather_##NAME(const gx_column *c, const uint32_t *docs, uint32_t n, uint64_t *raw)                     \
    {                                                                                                                  \
        const TYPE *const values = c->values;                                                                          \
        for (uint32_t i = 0; i < n; ++i)                                                                               \
            raw[i] = values[docs[i]];                                                                                  \
    }
GATHER(u8, uint8_t)
GATHER(u16, uint16_t)
GATHER(u32, uint32_t)
GATHER(u64, uint64_t)

static void gather(const gx_column *c, const uint32_t *docs, uint32_t n, uint64_t *raw)
{
    (c->width == 1 ? gather_u8 : c->width == 2 ? gather_u16 : c->width == 4 ? gather_u32 : gather_u64)(c, docs, n, raw);
}

/* Of the documents that have a value. Returns how many these are. */
static uint32_t gather_present(const gx_column *c, const uint32_t *docs, uint32_t n, uint64_t *raw)
{
    const uint64_t *const values = c->values, *const present = c->present;
    uint32_t m = 0;
    for (uint32_t i = 0; i < n && c->width == 8; ++i) {
        raw[m] = values[docs[i]];
        m += present[docs[i] / 64] >> docs[i] % 64 & 1;
    }
    for (uint32_t i = 0; i < n && c->width < 8; ++i) {
        raw[m] = gx_column_raw(c, docs[i]);
        m += present[docs[i] / 64] >> docs[i] % 64 & 1;
    }
    return m;
}

/* Leave out those that `keep` says no of. */
static void compact(gathered *g, const uint8_t *keep)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n; ++i) {
        g->raw[n] = g->raw[i];
        g->own[n] = g->slots[i];
        n += keep[i];
    }
    g->slots = g->own;
    g->n = n;
}

/* Doubles that are none, which only a damaged file has. */
static void drop_no_numbers(gathered *g)
{
    uint8_t keep[AT_ONCE];
    bool all = true;
    for (uint32_t i = 0; i < g->n; ++i) {
        keep[i] = (g->raw[i] >> 52 & NO_NUMBER) != NO_NUMBER;
        all &= keep[i];
    }
    if (!all)
        compact(g, keep);
}

/* ---- a slot's figures ---- */

static void add_offsets(gx_tally *t, const gathered *g)
{
    uint64_t *const offsets = t->offsets;
    for (uint32_t i = 0; i < g->n; ++i) {
        uint64_t *const of = &offsets[2 * (size_t)g->slots[i]];
        of[0] += g->raw[i];
        ++of[1];
    }
}

static void add_numbers(gx_tally *t, const gathered *g)
{
    gx_slot_tally *const slots = t->slots;
    const int64_t base = t->c->base;
    for (uint32_t i = 0; i < g->n; ++i) {
        gx_slot_tally *s = &slots[g->slots[i]];
        s->sum += (int64_t)((uint64_t)base + g->raw[i]);
        ++s->n;
    }
}

static void add_floats(gx_tally *t, const gathered *g)
{
    gx_slot_tally *const slots = t->slots;
    const int exponent = t->exponent;
    for (uint32_t i = 0; i < g->n; ++i) {
        const gx_float_parts p = gx_float_split(g->raw[i]);
        gx_slot_tally *s = &slots[g->slots[i]];
        s->sum += (gx_wide)p.mantissa << (p.mantissa ? p.exponent - exponent : 0);
        ++s->n;
    }
}

/* A double in units of 2^(least + GX_SUM_UNIT), where shifts are below 64: the two halves without a choice. */
static inline gx_wide near_float(uint64_t bits, uint64_t least)
{
    const uint64_t biased = bits >> 52 & 0x7ff, normal = biased != 0,
                   m = (bits & ((UINT64_C(1) << 52) - 1)) | normal << 52, shift = (biased - normal - least) & 63,
                   sign = -(bits >> 63);
    const gx_wide v = (gx_wide)((unsigned __int128)(m >> 1 >> (63 - shift)) << 64 | m << shift);
    const gx_wide all = (gx_wide)((unsigned __int128)sign << 64 | sign);
    return (v ^ all) - all;
}

static void add_near_floats(gx_tally *t, const gathered *g)
{
    gx_slot_tally *const slots = t->slots;
    const uint64_t least = (uint64_t)(t->exponent - GX_SUM_UNIT);
    for (uint32_t i = 0; i < g->n; ++i) {
        gx_slot_tally *s = &slots[g->slots[i]];
        s->sum += near_float(g->raw[i], least);
        ++s->n;
    }
}

/* The same of one slot: mantissas, of 54 bits with the sign, are summed by their shifts, by turns in two tables, so
 * that one addition seldom waits for the one before. */
static void add_near_floats_of_one(gx_tally *t, const gathered *g)
{
    const uint64_t least = (uint64_t)(t->exponent - GX_SUM_UNIT);
    int64_t sums[2][64] = {{0}};
    static_assert(AT_ONCE <= 1024, "a table's sums fit in 64 bits");
    for (uint32_t i = 0; i < g->n; ++i) {
        const uint64_t bits = g->raw[i], biased = bits >> 52 & 0x7ff, normal = biased != 0,
                       m = (bits & ((UINT64_C(1) << 52) - 1)) | normal << 52, sign = -(bits >> 63);
        sums[i % 2][(biased - normal - least) & 63] += (int64_t)((m ^ sign) - sign);
    }
    for (uint32_t shift = 0; shift < 64; ++shift)
        t->slots->sum += ((gx_wide)sums[0][shift] + sums[1][shift]) * ((gx_wide)1 << shift);
    t->slots->n += g->n;
}

static void add_offsets_of_one(gx_tally *t, const gathered *g)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->n; ++i)
        sum += g->raw[i];
    t->offsets[0] += sum;
    t->offsets[1] += g->n;
}

static void add_exactly(gx_tally *t, const gathered *g)
{
    for (uint32_t i = 0; i < g->n; ++i) {
        const gx_float_parts p = gx_float_split(g->raw[i]);
        gx_exact_sum_add(&t->exact[g->slots[i]], p.mantissa, p.exponent);
        ++t->slots[g->slots[i]].n;
    }
}

static void add_extremes(gx_tally *t, const gathered *g)
{
    for (uint32_t i = 0; i < g->n; ++i) {
        gx_slot_tally *s = &t->slots[g->slots[i]];
        const uint64_t key = gx_value_key(t->c, g->raw[i]);
        s->least = key < s->least ? key : s->least;
        s->greatest = key > s->greatest ? key : s->greatest;
    }
}

static void add_extremes_of_one(gx_tally *t, const gathered *g)
{
    gx_slot_tally *const s = t->slots;
    const gx_column *c = t->c;
    uint64_t least = s->least, greatest = s->greatest;
    for (uint32_t i = 0; i < g->n; ++i) {
        const uint64_t key = gx_value_key(c, g->raw[i]);
        least = key < least ? key : least;
        greatest = key > greatest ? key : greatest;
    }
    s->least = least;
    s->greatest = greatest;
}

static bool keep_values(gx_tally *t, const gathered *g)
{
    if (!gx_reserve(&t->values.keys, &t->values.max, t->values.n + g->n, sizeof *t->values.keys) ||
        !gx_reserve(&t->value_slots, &t->max_value_slots, t->values.n + g->n, sizeof *t->value_slots))
        return false;
    for (uint32_t i = 0; i < g->n; ++i) {
        t->values.keys[t->values.n] = gx_value_key(t->c, g->raw[i]);
        t->value_slots[t->values.n++] = g->slots[i];
    }
    return true;
}

static gx_status add_gathered(gx_tally *t, gathered *g, gx_error *err)
{
    const bool floats = t->type == GX_ATTRIBUTE_FLOAT, one = t->n_slots == 1;
    if (floats && !t->one_shift)
        drop_no_numbers(g);
    (!floats        ? (t->c->width > 4 ? add_numbers
                       : one           ? add_offsets_of_one
                                       : add_offsets)
     : t->exact     ? add_exactly
     : t->one_shift ? (one ? add_near_floats_of_one : add_near_floats)
                    : add_floats)(t, g);
    if (t->asked.figures & (GX_FIGURE_MIN | GX_FIGURE_MAX))
        (one ? add_extremes_of_one : add_extremes)(t, g);
    const bool values = t->asked.figures & GX_FIGURE_DISTINCT || t->asked.n_percentiles;
    return !values || keep_values(t, g) ? GX_OK : no_memory(err);
}

static gx_status add_several(gx_tally *t, const uint32_t *docs, const uint32_t *slots, uint32_t n, gx_error *err)
{
    const gx_column *c = t->c;
    gathered g;
    g.n = 0;
    g.slots = g.own;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        for (uint32_t v = c->starts[docs[i]]; v < c->starts[docs[i] + 1] && st == GX_OK; ++v) {
            g.raw[g.n] = gx_column_raw(c, v);
            g.own[g.n++] = slots[i];
            if (g.n == AT_ONCE) {
                st = add_gathered(t, &g, err);
                g.n = 0;
                g.slots = g.own;
            }
        }
    return st == GX_OK && g.n ? add_gathered(t, &g, err) : st;
}

gx_status gx_tally_add(gx_tally *t, const uint32_t *docs, const uint32_t *slots, uint32_t n, gx_error *err)
{
    const gx_column *c = t->c;
    gathered g;
    if (c->starts)
        return add_several(t, docs, slots, n, err);
    g.slots = slots;
    if (c->present && t->n_slots == 1) { /* all slots are one, whichever documents are left */
        g.n = gather_present(c, docs, n, g.raw);
        return add_gathered(t, &g, err);
    }
    gather(c, docs, n, g.raw);
    g.n = n;
    if (c->present) {
        uint8_t keep[AT_ONCE];
        for (uint32_t i = 0; i < n; ++i)
            keep[i] = c->present[docs[i] / 64] >> docs[i] % 64 & 1;
        compact(&g, keep);
    }
    return add_gathered(t, &g, err);
}

/* ---- the end ---- */

static gx_value value_of_key(gx_attribute_type type, uint64_t key)
{
    gx_value v = {0};
    if (type == GX_ATTRIBUTE_FLOAT)
        v.real = gx_key_float(key);
    else
        v.number = gx_key_number(key);
    return v;
}

/* The place, from 0, of the least of n values that at least this many percent do not exceed. Percents are read to 6
 * decimal places, so that 99.9 is not a little more. */
static uint64_t place_of(double percent, uint64_t n)
{
    const uint64_t millionths = (uint64_t)llround(percent * 1e6), all = 100000000;
    const uint64_t rank = (uint64_t)(((unsigned __int128)millionths * n + all - 1) / all);
    return rank ? rank - 1 : 0;
}

static void find_sums(const gx_tally *t, uint32_t slot, gx_figures *f)
{
    const gx_slot_tally *s = &t->slots[slot];
    const uint64_t n = s->n ? s->n : 1;
    if (t->type == GX_ATTRIBUTE_FLOAT && t->exact) {
        f->sum = gx_exact_sum_round(&t->exact[slot], 1);
        f->average = gx_exact_sum_round(&t->exact[slot], n);
        return;
    }
    const int exponent = t->type == GX_ATTRIBUTE_FLOAT ? t->exponent : 0;
    f->sum = gx_wide_round(s->sum, exponent, 1);
    f->average = gx_wide_round(s->sum, exponent, n);
    if (t->type != GX_ATTRIBUTE_FLOAT) {
        f->sum_high = (int64_t)(s->sum >> 64);
        f->sum_low = (uint64_t)s->sum;
    }
}

/* Of the sorted values keys[n] of one slot. */
static void find_of_values(const gx_tally *t, const uint64_t *keys, uint64_t n, gx_figures *f, gx_value *percentiles)
{
    for (uint64_t i = 0; i < n; ++i)
        f->distinct += i == 0 || keys[i] != keys[i - 1];
    for (uint32_t p = 0; p < t->asked.n_percentiles && n; ++p)
        percentiles[p] = value_of_key(t->type, keys[place_of(t->asked.percentiles[p], n)]);
}

/* The values of each slot side by side, in order. */
static gx_status end_values(gx_tally *t, gx_figures *out, uint32_t stride, gx_value *percentiles, gx_error *err)
{
    const size_t n = t->values.n;
    uint64_t *sorted = malloc((n + 1) * sizeof *sorted), *starts = calloc(t->n_slots + 2ull, sizeof *starts);
    if (!sorted || !starts) {
        free(sorted);
        free(starts);
        return no_memory(err);
    }
    for (uint32_t i = 0; i < t->n_slots; ++i)
        starts[i + 1] = starts[i] + t->slots[i].n;
    for (size_t i = 0; i < n; ++i)
        sorted[starts[t->value_slots[i]]++] = t->values.keys[i];
    uint64_t begin = 0;
    for (uint32_t i = 0; i < t->n_slots; ++i) {
        gx_sort_keys(sorted + begin, t->values.keys, t->slots[i].n);
        find_of_values(t, sorted + begin, t->slots[i].n, &out[(size_t)i * stride],
                       percentiles + (size_t)i * t->asked.n_percentiles);
        begin += t->slots[i].n;
    }
    free(sorted);
    free(starts);
    return GX_OK;
}

gx_status gx_tally_end(gx_tally *t, gx_figures *out, uint32_t stride, gx_value *percentiles, gx_error *err)
{
    const bool values = t->asked.figures & GX_FIGURE_DISTINCT || t->asked.n_percentiles;
    end_file(t);
    for (uint32_t i = 0; i < t->n_slots; ++i) {
        gx_figures *f = &out[(size_t)i * stride];
        f->type = t->type;
        f->figures = t->asked.figures;
        f->n = t->slots[i].n;
        f->n_percentiles = t->asked.n_percentiles;
        f->percentiles = percentiles + (size_t)i * t->asked.n_percentiles;
        find_sums(t, i, f);
        if (f->n && t->asked.figures & (GX_FIGURE_MIN | GX_FIGURE_MAX)) {
            f->least = value_of_key(t->type, t->slots[i].least);
            f->greatest = value_of_key(t->type, t->slots[i].greatest);
        }
    }
    return values ? end_values(t, out, stride, percentiles, err) : GX_OK;
}
