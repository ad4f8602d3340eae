/* filter_test.c: which of some documents a filter selects, by their values alone. */
#include <string.h>

#include "engine/lower_bound.h"
#include "query/filter/filter.h"

#define CHUNK 512u        /* documents tested at a time; each level of the tree has as many bytes on the stack */
#define SAMPLE 128u       /* documents of a guess */
#define GOLDEN 2654435769 /* 2^32 over the golden ratio: steps of it fall evenly everywhere */

/* test_TYPE: the documents whose value is in [low, low + span]. */
#define TEST(TYPE)                                                                                                     \
    static void test_##TYPE(const TYPE *values, const uint32_t *docids, uint32_t n, TYPE low, TYPE span,               \
                            uint8_t *keep)                                                                             \
    {                                                                                                                  \
        for (uint32_t i = 0; i < n; ++i)                                                                               \
            keep[i] = (TYPE)(values[docids[i]] - low) <= span;                                                         \
    }
TEST(uint8_t)
TEST(uint16_t)
TEST(uint32_t)
TEST(uint64_t)

static void test_double(const double *values, const uint32_t *docids, uint32_t n, double low, double high,
                        uint8_t *keep)
{
    for (uint32_t i = 0; i < n; ++i)
        keep[i] = (values[docids[i]] >= low) & (values[docids[i]] <= high);
}

/* Documents of which any value is in [low, high]. */
static void test_several(const gx_column *c, const uint32_t *docids, uint32_t n, uint64_t low, uint64_t high,
                         uint8_t *keep)
{
    for (uint32_t i = 0; i < n; ++i)
        keep[i] = gx_filter_meets(c, docids[i], low, high);
}

static void test_presence(const gx_column *c, const uint32_t *docids, uint32_t n, uint8_t *keep)
{
    for (uint32_t i = 0; i < n; ++i)
        keep[i] = gx_column_has(c, docids[i]);
}

static void test_range(const gx_filter *f, const gx_filter_node *node, const uint32_t *docids, uint32_t n,
                       uint8_t *keep)
{
    const gx_column *c = &f->ix->columns[node->column];
    uint64_t low, high;
    double least, most;
    if (!gx_filter_range(c, node, &low, &high)) {
        memset(keep, 0, n);
        return;
    }
    const uint64_t span = high - low;
    if (c->starts) {
        test_several(c, docids, n, low, high, keep);
    } else if (c->type == GX_ATTRIBUTE_FLOAT) {
        memcpy(&least, &low, sizeof least);
        memcpy(&most, &high, sizeof most);
        test_double(c->values, docids, n, least, most, keep);
    } else if (c->width == 1) {
        test_uint8_t(c->values, docids, n, (uint8_t)low, (uint8_t)span, keep);
    } else if (c->width == 2) {
        test_uint16_t(c->values, docids, n, (uint16_t)low, (uint16_t)span, keep);
    } else if (c->width == 4) {
        test_uint32_t(c->values, docids, n, (uint32_t)low, (uint32_t)span, keep);
    } else {
        test_uint64_t(c->values, docids, n, low, span, keep);
    }
    for (uint32_t i = 0; c->present && i < n; ++i)
        keep[i] &= c->present[docids[i] / 64] >> docids[i] % 64 & 1;
}

static void test(const gx_filter *f, uint32_t i, const uint32_t *docids, uint32_t n, uint8_t *keep);

static bool any(const uint8_t *keep, uint32_t n, uint8_t value)
{
    return memchr(keep, value, n) != NULL;
}

/* AND or OR: the first child's, and each other child's, until nothing can change. */
static void test_series(const gx_filter *f, const gx_filter_node *node, const uint32_t *docids, uint32_t n,
                        uint8_t *keep)
{
    uint8_t other[CHUNK];
    const bool conjunction = node->kind == GX_FILTER_AND;
    test(f, node->first, docids, n, keep);
    for (uint32_t c = f->nodes[node->first].next; c != UINT32_MAX && any(keep, n, conjunction); c = f->nodes[c].next) {
        test(f, c, docids, n, other);
        for (uint32_t i = 0; i < n; ++i)
            keep[i] = conjunction ? keep[i] & other[i] : keep[i] | other[i];
    }
}

/* n <= CHUNK. The tree is not deep: GX_FILTER_MAX_DEPTH. */
static void test(const gx_filter *f, uint32_t i, const uint32_t *docids, uint32_t n, uint8_t *keep)
{
    const gx_filter_node *node = &f->nodes[i];
    switch (node->kind) {
    case GX_FILTER_AND:
    case GX_FILTER_OR:
        test_series(f, node, docids, n, keep);
        break;
    case GX_FILTER_NOT:
        test(f, node->first, docids, n, keep);
        for (uint32_t x = 0; x < n; ++x)
            keep[x] ^= 1;
        break;
    case GX_FILTER_RANGE:
        test_range(f, node, docids, n, keep);
        break;
    case GX_FILTER_HAS:
        test_presence(&f->ix->columns[node->column], docids, n, keep);
        break;
    case GX_FILTER_IDS:
        for (uint32_t x = 0; x < n && node->ids; ++x)
            keep[x] = node->ids[docids[x] / 64] >> docids[x] % 64 & 1;
        for (uint32_t x = 0; x < n && node->docids; ++x) {
            const uint32_t at = gx_lower_bound(node->docids, 0, node->n_ids, docids[x]);
            keep[x] = at < node->n_ids && node->docids[at] == docids[x];
        }
    }
}

void gx_filter_test(const gx_filter *f, const uint32_t *docids, uint32_t n, uint8_t *keep)
{
    for (uint32_t i = 0; i < n; i += CHUNK)
        test(f, f->root, docids + i, n - i < CHUNK ? n - i : CHUNK, keep + i);
}

uint32_t gx_filter_guess(const gx_filter *f)
{
    uint32_t docids[SAMPLE], n_kept = 0;
    uint8_t keep[SAMPLE];
    const uint32_t n_docs = f->ix->n_docs, n = n_docs < SAMPLE ? n_docs : SAMPLE;
    for (uint32_t i = 0; i < n; ++i)
        docids[i] = n < SAMPLE ? i : (uint32_t)((uint64_t)(uint32_t)(i * (uint32_t)GOLDEN) * n_docs >> 32);
    gx_filter_test(f, docids, n, keep);
    for (uint32_t i = 0; i < n; ++i)
        n_kept += keep[i];
    return n ? (uint32_t)((uint64_t)n_docs * n_kept / n) : 0;
}
