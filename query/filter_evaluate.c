/* filter_evaluate.c: a filter's tree to a bit a document. */
#include "query/filter.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/attribute_order.h"
#include "index/collection.h"

/* 64 bytes of 0 or 1 as bits. */
static uint64_t pack(const uint8_t flags[64])
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        uint64_t x;
        memcpy(&x, flags + 8 * i, 8);
        word |= x * 0x0102040810204080u >> 56 << 8 * i; /* byte j of x becomes bit j */
    }
    return word;
}

/* select_TYPE: the documents whose value is in [low, high]. */
#define SELECT(TYPE)                                                                                                   \
    static void select_##TYPE(const TYPE *values, uint32_t n_docs, TYPE low, TYPE high, uint64_t *words)               \
    {                                                                                                                  \
        for (uint64_t d = 0; d < n_docs; d += 64) {                                                                    \
            uint8_t flags[64] = {0};                                                                                   \
            const uint64_t left = n_docs - d;                                                                          \
            if (left >= 64)                                                                                            \
                for (uint32_t i = 0; i < 64; ++i)                                                                      \
                    flags[i] = (uint8_t)((values[d + i] >= low) & (values[d + i] <= high));                            \
            else                                                                                                       \
                for (uint32_t i = 0; i < left; ++i)                                                                    \
                    flags[i] = (uint8_t)((values[d + i] >= low) & (values[d + i] <= high));                            \
            words[d / 64] = pack(flags);                                                                               \
        }                                                                                                              \
    }
SELECT(uint8_t)
SELECT(uint16_t)
SELECT(uint32_t)
SELECT(uint64_t)
SELECT(double)

static size_t n_words(const gx_filter *f)
{
    return ((size_t)f->ix->n_docs + 63) / 64;
}

static void select_all(const gx_filter *f, uint64_t *words)
{
    memset(words, 0xff, n_words(f) * sizeof *words);
    if (f->ix->n_docs % 64)
        words[f->ix->n_docs / 64] = (UINT64_C(1) << f->ix->n_docs % 64) - 1;
}

/* Documents of which any keyword has an ordinal in [low, high]. */
static void select_keywords(const gx_filter *f, const gx_column *c, uint64_t low, uint64_t high, uint64_t *words)
{
    memset(words, 0, n_words(f) * sizeof *words);
    for (uint32_t d = 0; d < f->ix->n_docs; ++d) {
        bool any = false;
        for (uint32_t i = c->starts[d]; i < c->starts[d + 1]; ++i) {
            const uint64_t ordinal = gx_column_raw(c, i);
            any |= ordinal >= low && ordinal <= high;
        }
        words[d / 64] |= (uint64_t)any << d % 64;
    }
}

/* By the order of the column's values, where it is there or is worth its while. */
static bool select_by_order(const gx_filter *f, gx_column *c, uint64_t low, uint64_t high, uint64_t *words)
{
    const bool worth = c->starts && __atomic_fetch_add(&c->n_scans, 1, __ATOMIC_RELAXED) > 0;
    const gx_column_order *o = worth ? gx_column_get_order(f->ix, c) : __atomic_load_n(&c->order, __ATOMIC_ACQUIRE);
    uint64_t begin, end;
    if (!o)
        return false;
    gx_column_order_range(c, o, low, high, &begin, &end);
    if (end - begin > f->ix->n_docs / (c->starts ? 2 : 64)) /* reading all values takes less time */
        return false;
    memset(words, 0, n_words(f) * sizeof *words);
    for (uint64_t at = begin; at < end; ++at)
        words[o->docids[at] / 64] |= UINT64_C(1) << o->docids[at] % 64;
    return true;
}

static void select_range(const gx_filter *f, const gx_filter_node *n, uint64_t *words)
{
    gx_column *c = &f->ix->columns[n->column];
    uint64_t low, high;
    double least, most;
    if (!gx_filter_range(c, n, &low, &high)) {
        memset(words, 0, n_words(f) * sizeof *words);
        return;
    }
    if (select_by_order(f, c, low, high, words))
        return;
    if (c->type == GX_ATTRIBUTE_FLOAT) {
        memcpy(&least, &low, sizeof least);
        memcpy(&most, &high, sizeof most);
        select_double(c->values, f->ix->n_docs, least, most, words);
    } else if (c->starts) {
        select_keywords(f, c, low, high, words);
    } else if (c->width == 1) {
        select_uint8_t(c->values, f->ix->n_docs, (uint8_t)low, (uint8_t)high, words);
    } else if (c->width == 2) {
        select_uint16_t(c->values, f->ix->n_docs, (uint16_t)low, (uint16_t)high, words);
    } else if (c->width == 4) {
        select_uint32_t(c->values, f->ix->n_docs, (uint32_t)low, (uint32_t)high, words);
    } else {
        select_uint64_t(c->values, f->ix->n_docs, low, high, words);
    }
    for (size_t w = 0; c->present && w < n_words(f); ++w)
        words[w] &= c->present[w];
}

static void select_present(const gx_filter *f, const gx_column *c, uint64_t *words)
{
    select_all(f, words);
    for (size_t w = 0; c->present && w < n_words(f); ++w)
        words[w] &= c->present[w];
    for (uint32_t d = 0; c->starts && d < f->ix->n_docs; ++d)
        if (c->starts[d] == c->starts[d + 1])
            words[d / 64] &= ~(UINT64_C(1) << d % 64);
}

static bool evaluate(const gx_filter *f, uint32_t i, uint64_t *words);

/* AND or OR: the first child's words, and with each other child's. false: no memory. */
static bool evaluate_series(const gx_filter *f, const gx_filter_node *n, uint64_t *words)
{
    uint64_t *other = malloc((n_words(f) + 1) * sizeof *other);
    bool ok = other && evaluate(f, n->first, words);
    for (uint32_t c = f->nodes[n->first].next; ok && c != UINT32_MAX; c = f->nodes[c].next) {
        ok = evaluate(f, c, other);
        if (n->kind == GX_FILTER_AND)
            for (size_t w = 0; w < n_words(f); ++w)
                words[w] &= other[w];
        else
            for (size_t w = 0; w < n_words(f); ++w)
                words[w] |= other[w];
    }
    free(other);
    return ok;
}

/* The tree is not deep: GX_FILTER_MAX_DEPTH. false: no memory. */
static bool evaluate(const gx_filter *f, uint32_t i, uint64_t *words)
{
    const gx_filter_node *n = &f->nodes[i];
    switch (n->kind) {
    case GX_FILTER_AND:
    case GX_FILTER_OR:
        return evaluate_series(f, n, words);
    case GX_FILTER_NOT:
        if (!evaluate(f, n->first, words))
            return false;
        for (size_t w = 0; w < n_words(f); ++w)
            words[w] = ~words[w];
        if (f->ix->n_docs % 64)
            words[f->ix->n_docs / 64] &= (UINT64_C(1) << f->ix->n_docs % 64) - 1;
        return true;
    case GX_FILTER_RANGE:
        select_range(f, n, words);
        return true;
    case GX_FILTER_HAS:
        select_present(f, &f->ix->columns[n->column], words);
        return true;
    case GX_FILTER_IDS:
        memcpy(words, n->ids, n_words(f) * sizeof *words);
        return true;
    }
    return false;
}

/* Live documents of each part, with docids of the collection. */
static bool evaluate_parts(const gx_filter *f, uint64_t *words)
{
    bool ok = true;
    memset(words, 0, n_words(f) * sizeof *words);
    for (uint32_t i = 0; i < f->ix->parts->n && ok; ++i) {
        const gx_filter *part = f->parts[i];
        uint64_t *local = malloc((n_words(part) + 1) * sizeof *local);
        ok = local && evaluate(part, part->root, local);
        if (ok)
            gx_part_gather(&f->ix->parts->parts[i], local, words);
        free(local);
    }
    return ok;
}

gx_status gx_filter_evaluate(const gx_filter *f, uint64_t *words, uint32_t *n, gx_error *err)
{
    if (!(f->parts ? evaluate_parts(f, words) : evaluate(f, f->root, words)))
        return gx_fail(err, GX_ENOMEM, "no memory for a filter of %u documents", f->ix->n_docs);
    uint32_t count = 0;
    for (size_t w = 0; w < n_words(f); ++w)
        count += (uint32_t)__builtin_popcountll(words[w]);
    if (n)
        *n = count;
    return GX_OK;
}
