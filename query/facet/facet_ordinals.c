#include "query/facet/facet_ordinals.h"

#include <stdlib.h>
#include <string.h>

#include "engine/lower_bound.h"
#include "engine/status.h"

#define ABSENT UINT32_MAX

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for the groups of a facet");
}

/* ---- the groups of all values ---- */

/* What ordinals are made of. */
typedef struct making {
    gx_facet_ordinals *o;
    const gx_column *c;
    gx_facet_count f;      /* of the facet, as facet_counts.h asks for */
    gx_count_table groups; /* of wide values: each key, with its ordinal + 1 once that is known */
    uint32_t *of_raw;      /* of values of 1 or 2 bytes: [bound] the ordinal; ABSENT: no document has it */
    uint32_t bound;
    bool too_many;
} making;

static bool is_narrow(const gx_column *c)
{
    return c->width <= 2;
}

/* Whether value i is one that a document has. */
static bool is_there(const gx_column *c, uint64_t i)
{
    return c->starts || !c->present || c->present[i / 64] >> i % 64 & 1;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t find_key(const gx_facet_ordinals *o, uint64_t key)
{
    GX_FIRST(uint32_t, behind, 1, o->n, o->keys[behind] > key);
    return behind - 1;
}

/* The keys of values of 1 or 2 bytes, and the ordinal of each such value. */
static bool find_narrow_keys(making *m)
{
    gx_facet_ordinals *o = m->o;
    m->bound = 1u << 8 * m->c->width;
    m->of_raw = malloc(m->bound * sizeof *m->of_raw);
    o->keys = malloc(m->bound * sizeof *o->keys);
    if (!m->of_raw || !o->keys)
        return false;
    memset(m->of_raw, 0xff, m->bound * sizeof *m->of_raw);
    for (uint64_t i = 0; i < m->c->n_values; ++i)
        if (is_there(m->c, i))
            m->of_raw[gx_column_raw(m->c, i)] = 0;
    uint32_t n = 0;
    for (uint32_t raw = 0; raw < m->bound; ++raw)
        if (m->of_raw[raw] != ABSENT)
            o->keys[n++] = gx_facet_key_of(&m->f, m->c, raw);
    qsort(o->keys, n, sizeof *o->keys, by_key);
    for (uint32_t i = 0; i < n; ++i)
        if (o->n == 0 || o->keys[o->n - 1] != o->keys[i])
            o->keys[o->n++] = o->keys[i];
    for (uint32_t raw = 0; raw < m->bound; ++raw)
        if (m->of_raw[raw] != ABSENT)
            m->of_raw[raw] = find_key(o, gx_facet_key_of(&m->f, m->c, raw));
    return true;
}

/* The keys of wide values. */
static bool find_wide_keys(making *m)
{
    gx_facet_ordinals *o = m->o;
    uint64_t last = 0;
    for (uint64_t i = 0; i < m->c->n_values && !m->too_many; ++i) {
        if (!is_there(m->c, i))
            continue;
        const uint64_t key = gx_facet_key_of(&m->f, m->c, gx_column_raw(m->c, i));
        if (m->groups.n && key == last)
            continue;
        last = key;
        if ((!m->groups.bits || !m->groups.counts[gx_count_table_slot(&m->groups, key)]) &&
            !gx_count_table_add(&m->groups, key, 1))
            return false;
        m->too_many = m->groups.n > GX_MAX_ORDINALS;
    }
    if (m->too_many)
        return true;
    gx_counted_group *sorted = gx_count_table_sort(&m->groups);
    o->keys = malloc((m->groups.n + 1ull) * sizeof *o->keys);
    for (uint32_t i = 0; sorted && o->keys && i < m->groups.n; ++i) {
        o->keys[i] = sorted[i].key;
        m->groups.counts[gx_count_table_slot(&m->groups, sorted[i].key)] = i + 1ull;
    }
    o->n = m->groups.n;
    free(sorted);
    return sorted && o->keys;
}

static bool find_strings(making *m)
{
    gx_facet_ordinals *o = m->o;
    o->n = m->c->n_strings;
    if (!(o->strings = calloc(o->n + 1ull, sizeof *o->strings)))
        return false;
    for (uint32_t i = 0; i < o->n; ++i)
        o->strings[i].p = gx_column_string(o->ix, m->c, i, &o->strings[i].len);
    return true;
}

static uint32_t ordinal_of(const making *m, uint64_t i)
{
    const uint64_t raw = gx_column_raw(m->c, i);
    if (m->o->strings)
        return raw < m->o->n ? (uint32_t)raw : m->o->n + 1;
    if (m->of_raw)
        return m->of_raw[raw];
    return (uint32_t)(m->groups.counts[gx_count_table_slot(&m->groups, gx_facet_key_of(&m->f, m->c, raw))] - 1);
}

/* ---- the ordinals of all documents ---- */

static void put(gx_facet_ordinals *o, uint64_t i, uint32_t ordinal)
{
    if (o->bytes == 1)
        ((uint8_t *)o->ordinals)[i] = (uint8_t)ordinal;
    else if (o->bytes == 2)
        ((uint16_t *)o->ordinals)[i] = (uint16_t)ordinal;
    else
        ((uint32_t *)o->ordinals)[i] = ordinal;
}

/* Values of a document rise, and so do its ordinals: equal ones are neighbours. */
static void put_several(const making *m)
{
    gx_facet_ordinals *o = m->o;
    const uint32_t *const starts = m->c->starts;
    uint64_t n = 0;
    for (uint32_t d = 0; d < o->ix->n_docs; ++d) {
        uint32_t last = ABSENT;
        o->starts[d] = (uint32_t)n;
        for (uint32_t v = starts[d]; v < starts[d + 1]; ++v) {
            const uint32_t ordinal = ordinal_of(m, v);
            if (ordinal != last)
                put(o, n++, ordinal);
            last = ordinal;
        }
    }
    o->starts[o->ix->n_docs] = (uint32_t)n;
    o->n_ordinals = n;
}

static bool put_ordinals(const making *m)
{
    gx_facet_ordinals *o = m->o;
    o->bytes = gx_n_counts(o) <= 1u << 8 ? 1 : gx_n_counts(o) <= 1u << 16 ? 2 : 4;
    o->n_ordinals = m->c->n_values;
    o->ordinals = malloc((o->n_ordinals + 1) * o->bytes);
    o->starts = m->c->starts ? malloc((o->ix->n_docs + 1ull) * sizeof *o->starts) : NULL;
    if (!o->ordinals || (m->c->starts && !o->starts))
        return false;
    if (o->starts) {
        put_several(m);
        return true;
    }
    for (uint64_t i = 0; i < o->n_ordinals; ++i)
        put(o, i, is_there(m->c, i) ? ordinal_of(m, i) : o->n);
    return true;
}

/* ---- ordinals ---- */

/* The grouping whose ordinals count the facet. */
static gx_facet_grouping grouping_of(const gx_facet *f)
{
    return f->grouping == GX_FACET_BINS ? GX_FACET_VALUES : f->grouping;
}

bool gx_facet_has_ordinals(const gx_index *ix, uint32_t column, const gx_facet *f)
{
    const gx_column *c = &ix->columns[column];
    return gx_is_keyword(c->type) ? c->n_strings <= GX_MAX_ORDINALS : !c->starts || f->grouping != GX_FACET_BINS;
}

gx_facet_ordinals gx_facet_ordinals_of(uint32_t column, const gx_facet *f)
{
    return (gx_facet_ordinals){.column = column, .grouping = grouping_of(f), .width = f->width};
}

bool gx_facet_ordinals_suit(const gx_facet_ordinals *o, uint32_t column, const gx_facet *f)
{
    return o->column == column && o->grouping == grouping_of(f) &&
           (o->grouping != GX_FACET_WIDTH || o->width == f->width);
}

gx_status gx_facet_ordinals_make(gx_facet_ordinals **out, const gx_index *ix, uint32_t column, const gx_facet *f,
                                 gx_error *err)
{
    const gx_column *c = &ix->columns[column];
    making m = {.c = c, .f = {.facet = *f, .type = c->type, .bins_of = ix, .bins_column = c}};
    *out = NULL;
    if (!gx_facet_has_ordinals(ix, column, f))
        return GX_OK;
    if (!(m.o = malloc(sizeof *m.o)))
        return no_memory(err);
    *m.o = gx_facet_ordinals_of(column, f);
    m.o->ix = ix;
    m.f.facet.grouping = m.o->grouping;
    const bool found = (gx_is_keyword(c->type) ? find_strings : is_narrow(c) ? find_narrow_keys : find_wide_keys)(&m);
    const bool good = found && (m.too_many || put_ordinals(&m));
    gx_count_table_free(&m.groups);
    free(m.of_raw);
    if (good && !m.too_many)
        *out = m.o;
    else
        gx_facet_ordinals_close(m.o);
    return good ? GX_OK : no_memory(err);
}

void gx_facet_ordinals_drop(gx_facet_ordinals *o)
{
    free(o->ordinals);
    free(o->starts);
    o->ordinals = NULL;
    o->starts = NULL;
}

void gx_facet_ordinals_close(gx_facet_ordinals *o)
{
    if (!o)
        return;
    gx_facet_ordinals_drop(o);
    free(o->keys);
    free(o->strings);
    free(o);
}

/* ---- groups ---- */

gx_status gx_facet_count_take(gx_facet_count *f, const gx_facet_ordinals *o, const uint32_t *counts, uint64_t n_matches,
                              gx_error *err)
{
    size_t n = 0;
    f->bins_of = o->ix;
    f->bins_column = &o->ix->columns[o->column];
    f->n_present = n_matches - counts[o->n];
    if (f->facet.grouping == GX_FACET_BINS)
        return gx_facet_count_bins(f, o->keys, counts, o->n, err);
    for (uint32_t i = 0; i < o->n; ++i)
        n += counts[i] != 0;
    if (!(f->groups = malloc((n + 1) * sizeof *f->groups)))
        return no_memory(err);
    for (uint32_t i = 0; i < o->n; ++i)
        if (counts[i])
            f->groups[f->n_groups++] = (gx_counted_group){o->keys ? o->keys[i] : i, counts[i]};
    f->strings = o->strings;
    f->borrowed = true;
    return GX_OK;
}
