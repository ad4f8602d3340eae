#include "query/count.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/filter.h"
#include "query/mask.h"

struct gx_counter {
    const gx_index *ix;
    size_t n_words;
    uint64_t *any, *all; /* [n_words] documents held by any list, by every list so far */
    uint64_t *one;       /* [n_words] by this list */
    uint32_t docids[GX_MAX_BLOCK];
};

gx_status gx_counter_open(gx_counter **out, const gx_index *ix, gx_error *err)
{
    *out = NULL;
    gx_counter *c = calloc(1, sizeof *c);
    if (!c)
        return gx_fail(err, GX_ENOMEM, "no memory to count matches");
    c->ix = ix;
    c->n_words = ((size_t)ix->n_docs + 63) / 64;
    c->any = malloc(3 * (c->n_words + 1) * sizeof *c->any);
    if (!c->any) {
        gx_counter_close(c);
        return gx_fail(err, GX_ENOMEM, "no memory to count matches among %u documents", ix->n_docs);
    }
    c->all = c->any + c->n_words;
    c->one = c->all + c->n_words;
    *out = c;
    return GX_OK;
}

void gx_counter_close(gx_counter *c)
{
    if (!c)
        return;
    free(c->any);
    free(c);
}

/* The list's documents as bits in c->one. */
static void set_docid_bits(gx_counter *c, uint32_t list)
{
    const gx_list l = gx_index_list(c->ix, list);
    memset(c->one, 0, c->n_words * sizeof *c->one);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_docids(&l, j, c->docids);
        for (uint32_t i = 0; i < n; ++i) {
            if (c->docids[i] < c->ix->n_docs)
                c->one[c->docids[i] / 64] |= UINT64_C(1) << c->docids[i] % 64;
        }
    }
}

static uint64_t count_bits(const uint64_t *words, size_t n)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < n; ++i)
        bits += (uint64_t)__builtin_popcountll(words[i]);
    return bits;
}

gx_status gx_count_any_and_all(gx_counter *c, const gx_plan *plan, uint64_t *any, uint64_t *all, gx_error *err)
{
    *any = *all = 0;
    if (plan->n_terms == 0)
        return GX_OK;
    memset(c->any, 0, c->n_words * sizeof *c->any);
    memset(c->all, 0xff, c->n_words * sizeof *c->all);
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        if (plan->cancel && plan->cancel(plan->user))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled while its matches were counted");
        set_docid_bits(c, plan->terms[i].list);
        for (size_t w = 0; w < c->n_words; ++w) {
            c->any[w] |= c->one[w];
            c->all[w] &= c->one[w];
        }
    }
    for (size_t w = 0; plan->mask && w < c->n_words; ++w) {
        const uint64_t allowed = gx_mask_word(plan->mask, w);
        c->any[w] &= allowed;
        c->all[w] &= allowed;
    }
    const gx_status st = plan->filter ? gx_filter_evaluate(plan->filter, c->one, NULL, err) : GX_OK;
    if (st != GX_OK)
        return st;
    for (size_t w = 0; plan->filter && w < c->n_words; ++w) {
        c->any[w] &= c->one[w];
        c->all[w] &= c->one[w];
    }
    *all = count_bits(c->all, c->n_words);
    *any = count_bits(c->any, c->n_words);
    return GX_OK;
}

gx_status gx_count_matches(gx_counter *c, const gx_plan *plan, uint64_t *n, gx_error *err)
{
    uint64_t any, all;
    const gx_status st = gx_count_any_and_all(c, plan, &any, &all, err);
    const bool is_and = plan->op == GX_OP_AND || (plan->op == GX_OP_AND_OR && all >= plan->k);
    *n = is_and ? all : any;
    return st;
}
