/* filter_evaluate.c: a filter's tree to a bit a document. */
#include "query/filter/filter.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/attributes/attribute_order.h"
#include "index/read/collection.h"
#include "query/filter/filter_kernels.h"

static size_t n_words(const gx_filter *f)
{
    return gx_index_n_words(f->ix);
}

static void select_all(const gx_filter *f, uint64_t *words)
{
    memset(words, 0xff, n_words(f) * sizeof *words);
    if (f->ix->n_docs % 64)
        words[f->ix->n_docs / 64] = (UINT64_C(1) << f->ix->n_docs % 64) - 1;
}

/* Of n documents from `first` on, those of which any value is in [low, high]. */
static void select_several(const gx_column *c, size_t first, uint32_t n, uint64_t low, uint64_t high, uint64_t *words)
{
    memset(words, 0, ((size_t)n + 63) / 64 * sizeof *words);
    for (uint32_t d = 0; d < n; ++d)
        words[d / 64] |= (uint64_t)gx_filter_meets(c, (uint32_t)first + d, low, high) << d % 64;
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

/* Of n documents from `first` on, those whose value is in [low, high], and perhaps some that have none. */
static void select_values(const gx_column *c, size_t first, uint32_t n, uint64_t low, uint64_t high, uint64_t *words)
{
    const gx_filter_kernels *k = gx_filter_kernels_best();
    const void *const from = (const uint8_t *)c->values + first * c->width;
    double least, most;
    if (c->starts) {
        select_several(c, first, n, low, high, words);
    } else if (c->type == GX_ATTRIBUTE_FLOAT) {
        memcpy(&least, &low, sizeof least);
        memcpy(&most, &high, sizeof most);
        k->select_double(from, n, least, most, words);
    } else if (c->width == 1) {
        k->select_u8(from, n, (uint8_t)low, (uint8_t)high, words);
    } else if (c->width == 2) {
        k->select_u16(from, n, (uint16_t)low, (uint16_t)high, words);
    } else if (c->width == 4) {
        k->select_u32(from, n, (uint32_t)low, (uint32_t)high, words);
    } else {
        k->select_u64(from, n, low, high, words);
    }
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

/* ---- bitmap columns ---- */

/* Times in ns, on one core of a server: of a word of 64 documents in a bitmap, of a number in a list or
 * of runs, of a byte of values, and of a value among several of a document. */
#define WORD_TIME 0.4
#define NUMBER_TIME 1.2
#define BYTE_TIME 0.028
#define SEVERAL_TIME 5

/* What of a range its bins decide: the documents of bins [begin, end), and perhaps some of bin `low`
 * and bin `high`, which the range cuts; UINT32_MAX: none. */
typedef struct bin_range {
    uint32_t begin, end, low, high;
} bin_range;

static bin_range find_bins(const gx_column *c, uint64_t low, uint64_t high)
{
    bin_range r = {0, 0, UINT32_MAX, UINT32_MAX};
    uint32_t first, last;
    if (!gx_bitmaps_find(c, low, high, &first, &last))
        return r;
    r.begin = first;
    r.end = last + 1;
    if (gx_sort_key(c->type, low) > gx_sort_key(c->type, gx_bitmaps_least(c, first)))
        r.low = r.begin++;
    if (r.low != last && gx_sort_key(c->type, high) < gx_sort_key(c->type, gx_bitmaps_greatest(c, last)))
        r.high = --r.end;
    r.end = r.end < r.begin ? r.begin : r.end;
    return r;
}

static double time_of_column(const gx_filter *f, const gx_bitmaps *b, uint32_t column)
{
    if (column >= b->n_columns) /* of a range encoding, all that have a value */
        return WORD_TIME * (double)n_words(f);
    const gx_bitmap_entry e = b->directory[column];
    return gx_bitmap_form_of(e) == GX_BITMAP_WORDS ? WORD_TIME * (double)n_words(f) : NUMBER_TIME * gx_bitmap_n(e);
}

/* Of the documents of bins [begin, end). */
static double time_of_bins(const gx_filter *f, const gx_bitmaps *b, uint32_t begin, uint32_t end, double limit)
{
    double time = 0;
    if (begin == end)
        return 0;
    if (b->encoding == GX_BITMAPS_RANGE)
        return time_of_column(f, b, end - 1) + (begin ? time_of_column(f, b, begin - 1) : 0);
    for (uint32_t i = begin; i < end && time < limit; ++i)
        time += time_of_column(f, b, i);
    return time;
}

/* Of the documents of a bin, and of reading the values of the 64 neighbours of each. */
static double time_of_cut(const gx_filter *f, const gx_column *c, uint32_t bin, double scan)
{
    const gx_bitmaps *b = &c->bitmaps;
    const uint32_t column = bin < b->n_columns ? bin : bin - 1;
    const bool runs = b->n_columns && gx_bitmap_form_of(b->directory[column]) == GX_BITMAP_RUNS;
    const double share = runs ? 1.0 / b->n_bins : 64.0 / b->n_bins;
    return time_of_bins(f, b, bin, bin + 1, scan) + WORD_TIME * (double)n_words(f) + scan * (share < 1 ? share : 1);
}

/* Add the documents of bins [begin, end). */
static void add_bins(const gx_filter *f, const gx_column *c, uint32_t begin, uint32_t end, uint64_t *words)
{
    const gx_bitmaps *b = &c->bitmaps;
    if (begin == end)
        return;
    if (b->encoding == GX_BITMAPS_EQUALITY) {
        for (uint32_t i = begin; i < end; ++i)
            gx_bitmap_set(b, i, f->ix->n_docs, words);
        return;
    }
    if (end <= b->n_columns)
        gx_bitmap_set(b, end - 1, f->ix->n_docs, words);
    else
        select_present(f, c, words);
    if (begin)
        gx_bitmap_clear(b, begin - 1, f->ix->n_docs, words);
}

/* Add the documents of a bin whose value is in [low, high]. */
static void add_cut(const gx_filter *f, const gx_column *c, uint32_t bin, uint64_t low, uint64_t high,
                    uint64_t *scratch, uint64_t *words)
{
    uint64_t selected;
    memset(scratch, 0, n_words(f) * sizeof *scratch);
    add_bins(f, c, bin, bin + 1, scratch);
    for (size_t w = 0; w < n_words(f); ++w) {
        const size_t left = f->ix->n_docs - 64 * w;
        if (!scratch[w])
            continue;
        select_values(c, 64 * w, left < 64 ? (uint32_t)left : 64, low, high, &selected);
        words[w] |= scratch[w] & selected;
    }
}

/* By the columns of the attribute, where that takes less time than reading all values. */
static bool select_by_bitmaps(const gx_filter *f, const gx_column *c, uint64_t low, uint64_t high, uint64_t *words)
{
    const gx_bitmaps *b = &c->bitmaps;
    if (b->encoding == GX_BITMAPS_NONE)
        return false;
    const double scan = c->starts ? SEVERAL_TIME * (double)c->n_values : BYTE_TIME * (double)f->ix->n_docs * c->width;
    const bin_range r = find_bins(c, low, high);
    const bool cuts = r.low != UINT32_MAX || r.high != UINT32_MAX;
    double time = time_of_bins(f, b, r.begin, r.end, scan);
    time += r.low != UINT32_MAX ? time_of_cut(f, c, r.low, scan) : 0;
    time += r.high != UINT32_MAX ? time_of_cut(f, c, r.high, scan) : 0;
    uint64_t *scratch = cuts && time < scan ? malloc((n_words(f) + 1) * sizeof *scratch) : NULL;
    if (time >= scan || (cuts && !scratch))
        return false;
    memset(words, 0, n_words(f) * sizeof *words);
    add_bins(f, c, r.begin, r.end, words);
    if (r.low != UINT32_MAX)
        add_cut(f, c, r.low, low, high, scratch, words);
    if (r.high != UINT32_MAX)
        add_cut(f, c, r.high, low, high, scratch, words);
    for (size_t w = 0; b->encoding == GX_BITMAPS_RANGE && c->present && w < n_words(f); ++w)
        words[w] &= c->present[w];
    free(scratch);
    return true;
}

/* ---- the tree ---- */

static void select_range(const gx_filter *f, const gx_filter_node *n, uint64_t *words)
{
    gx_column *c = &f->ix->columns[n->column];
    uint64_t low, high;
    if (!gx_filter_range(c, n, &low, &high)) {
        memset(words, 0, n_words(f) * sizeof *words);
        return;
    }
    const bool ordered = c->starts && __atomic_load_n(&c->order, __ATOMIC_ACQUIRE); /* then nothing is decoded */
    if ((ordered && select_by_order(f, c, low, high, words)) || select_by_bitmaps(f, c, low, high, words) ||
        (!ordered && select_by_order(f, c, low, high, words)))
        return;
    select_values(c, 0, f->ix->n_docs, low, high, words);
    for (size_t w = 0; c->present && w < n_words(f); ++w)
        words[w] &= c->present[w];
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
        if (n->ids)
            memcpy(words, n->ids, n_words(f) * sizeof *words);
        else
            memset(words, 0, n_words(f) * sizeof *words);
        for (uint32_t d = 0; n->docids && d < n->n_ids; ++d)
            words[n->docids[d] / 64] |= UINT64_C(1) << n->docids[d] % 64;
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
        return gx_fail(err, GX_ENOMEM, "no memory for a filter of %llu documents",
                       (unsigned long long)gx_index_n_docs(f->ix));
    if (n) {
        const uint64_t all = gx_filter_kernels_best()->count(words, n_words(f));
        *n = all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
    }
    return GX_OK;
}
