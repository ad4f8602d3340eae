#include "query/exec/fill.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/filter/filter.h"
#include "query/filter/mask.h"

#define FIRST_DOCS 4096u /* are tested one by one before the filter is evaluated for all documents */

/* The documents of the filter below `end`, as bits. */
static void test_first(const gx_filter *f, uint32_t end, uint64_t *words)
{
    uint32_t docids[64];
    uint8_t keep[64];
    for (uint32_t first = 0; first < end; first += 64) {
        const uint32_t n = end - first < 64 ? end - first : 64;
        uint64_t word = 0;
        for (uint32_t i = 0; i < n; ++i)
            docids[i] = first + i;
        gx_filter_test(f, docids, n, keep);
        for (uint32_t i = 0; i < n; ++i)
            word |= (uint64_t)keep[i] << i;
        words[first / 64] = word;
    }
}

static void set_first(uint32_t end, uint64_t *words)
{
    memset(words, 0xff, ((size_t)end + 63) / 64 * sizeof *words);
    if (end % 64)
        words[end / 64] = (UINT64_C(1) << end % 64) - 1;
}

/* Of the plan's documents those below `end`; words has bits for them. */
static gx_status select_first(const gx_index *ix, const gx_plan *plan, uint32_t end, uint64_t *words, gx_error *err)
{
    gx_status st = GX_OK;
    if (!plan->filter)
        set_first(end, words);
    else if (end < ix->n_docs)
        test_first(plan->filter, end, words);
    else
        st = gx_filter_evaluate(plan->filter, words, NULL, err);
    for (size_t w = 0; st == GX_OK && plan->mask && w * 64 < end; ++w)
        words[w] &= gx_mask_word(plan->mask, w);
    return st;
}

/* Add documents of words[ceil(end / 64)] that are not among the first n_scored hits. */
static void add_hits(gx_hits *hits, uint32_t n_scored, uint32_t k, uint32_t end, uint64_t *words)
{
    for (uint32_t i = 0; i < n_scored; ++i) {
        const uint32_t docid = gx_key_docid(hits->keys[i]);
        if (docid < end)
            words[docid / 64] &= ~(UINT64_C(1) << docid % 64);
    }
    hits->n = n_scored;
    for (uint32_t w = 0; (uint64_t)w * 64 < end && hits->n < k; ++w)
        for (uint64_t left = words[w]; left && hits->n < k; left &= left - 1)
            hits->keys[hits->n++] = gx_key(0, 64 * w + (uint32_t)__builtin_ctzll(left));
}

gx_status gx_fill(const gx_index *ix, const gx_plan *plan, gx_hits *hits, gx_error *err)
{
    const uint32_t n_scored = hits->n, n_docs = ix->n_docs;
    if (!plan->fill || hits->n >= plan->k || plan->initial_threshold > 0)
        return GX_OK;
    uint64_t *words = malloc(((size_t)n_docs / 64 + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for the documents of a boolean query");
    uint32_t end = n_docs < FIRST_DOCS ? n_docs : FIRST_DOCS;
    gx_status st = select_first(ix, plan, end, words, err);
    if (st == GX_OK)
        add_hits(hits, n_scored, plan->k, end, words);
    if (st == GX_OK && hits->n < plan->k && end < n_docs) {
        st = select_first(ix, plan, n_docs, words, err);
        if (st == GX_OK)
            add_hits(hits, n_scored, plan->k, n_docs, words);
    }
    free(words);
    return st;
}
