#include "query/facet/count.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/filter/filter.h"
#include "query/filter/filter_kernels.h"
#include "query/filter/mask.h"
#include "query/plan/boolean.h"
#include "query/plan/phrases.h"

struct gx_counter {
    const gx_index *ix;
    size_t n_words;
    uint64_t *any, *all;   /* [n_words] documents held by any list, by every list so far */
    uint64_t *one;         /* [n_words] by this list */
    gx_list_bits_fn *bits; /* or NULL */
    void *bits_user;
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

void gx_counter_use_bits(gx_counter *c, gx_list_bits_fn *fn, void *user)
{
    c->bits = fn;
    c->bits_user = user;
}

static const uint32_t *bits_of(const gx_counter *c, uint32_t list)
{
    return c->bits ? c->bits(c->bits_user, list) : NULL;
}

/* Words 64 w to 64 w + 63 of a list's bits, of documents that there are. */
static uint64_t bits_word(const gx_counter *c, const uint32_t *bits, size_t w)
{
    const uint32_t left = (uint32_t)(c->ix->n_docs - 64 * w);
    const uint64_t x = bits[2 * w] | (uint64_t)bits[2 * w + 1] << 32;
    return left < 64 ? x & ((UINT64_C(1) << left) - 1) : x;
}

/* Set the bits of a list's documents. */
static void mark(const gx_counter *c, uint32_t list, uint64_t *words)
{
    const uint32_t *bits = bits_of(c, list);
    if (!bits)
        gx_list_mark(c->ix, list, words);
    for (size_t w = 0; bits && w < c->n_words; ++w)
        words[w] |= bits_word(c, bits, w);
}

/* Intersect c->all with the list. If `any`, also add the list to c->any. */
static void intersect(gx_counter *c, uint32_t list, bool any)
{
    memset(c->one, 0, c->n_words * sizeof *c->one);
    mark(c, list, c->one);
    for (size_t w = 0; any && w < c->n_words; ++w)
        c->any[w] |= c->one[w];
    for (size_t w = 0; w < c->n_words; ++w)
        c->all[w] &= c->one[w];
}

static gx_status read_phrases(gx_counter *c, const gx_plan *plan, bool any, bool all, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < plan->n_phrases && st == GX_OK; ++i) {
        const bool first = plan->n_terms == 0 && i == 0;
        memset(c->one, 0, c->n_words * sizeof *c->one);
        st = gx_phrase_mark(c->ix, &plan->phrases->phrases[i].phrase, plan, NULL, 0, c->one, err);
        for (size_t w = 0; any && w < c->n_words; ++w)
            c->any[w] |= c->one[w];
        for (size_t w = 0; all && w < c->n_words; ++w)
            c->all[w] = first ? c->one[w] : c->all[w] & c->one[w];
    }
    return st;
}

/* What a look-up of a docid in the next list takes, and to set a bit for a posting, in ns. */
#define LOOK_UP_NS 5.0
#define MARK_NS 0.9

/* Whether to look up the documents of the shortest of some lists in the others is faster than to mark those of all. */
static bool is_sought(const gx_plan *plan, uint32_t n)
{
    double marks = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        marks += MARK_NS * plan->terms[i].df;
    return plan->n_phrases || n < plan->n_terms || (n > 1 && LOOK_UP_NS * (n - 1) * plan->terms[0].df < marks);
}

/* The lists that have no bits, to words[n]; the bits of the others are intersected in c->one. */
static uint32_t divide_lists(gx_counter *c, const gx_plan *plan, gx_sought_word *words)
{
    uint32_t n = 0;
    bool any = false;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const uint32_t *bits = bits_of(c, plan->terms[i].list);
        if (!bits)
            words[n++] = (gx_sought_word){plan->terms[i].list, -1};
        for (size_t w = 0; bits && w < c->n_words; ++w)
            c->one[w] = any ? c->one[w] & bits_word(c, bits, w) : bits_word(c, bits, w);
        any = any || bits;
    }
    return n;
}

/* The bits of c->all, of documents that mask and filter allow; false: the lists are better marked. */
static bool seek_all(gx_counter *c, const gx_plan *plan, gx_status *st, gx_error *err)
{
    gx_sought_word words[GX_MAX_TERMS];
    const uint32_t n = divide_lists(c, plan, words);
    if ((n == 0 && plan->n_phrases == 0) || !is_sought(plan, n))
        return false;
    const gx_seek s = {.ix = c->ix,
                       .words = words,
                       .n_words = n,
                       .phrases = plan->n_phrases ? plan->phrases->phrases : NULL,
                       .n_phrases = plan->n_phrases,
                       .mask = plan->mask,
                       .allowed = n < plan->n_terms ? c->one : NULL,
                       .filter = plan->filter,
                       .take = gx_seek_mark,
                       .user = c->all,
                       .cancel = plan->cancel,
                       .cancel_user = plan->user};
    memset(c->all, 0, c->n_words * sizeof *c->all);
    *st = gx_seek_run(&s, err);
    return true;
}

/* The bits of c->any and c->all, as far as they are asked for, without mask and filter. */
static gx_status read_lists(gx_counter *c, const gx_plan *plan, bool any, bool all, gx_error *err)
{
    memset(c->any, 0, any ? c->n_words * sizeof *c->any : 0);
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        if (plan->cancel && plan->cancel(plan->user))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled while its matches were counted");
        if (all && i) {
            intersect(c, plan->terms[i].list, any);
        } else if (all) {
            memset(c->all, 0, c->n_words * sizeof *c->all);
            mark(c, plan->terms[i].list, c->all);
            memcpy(c->any, c->all, any ? c->n_words * sizeof *c->any : 0);
        } else {
            mark(c, plan->terms[i].list, c->any);
        }
    }
    return read_phrases(c, plan, any, all, err);
}

/* Every document matches that is allowed. */
static void set_all(gx_counter *c)
{
    const uint32_t tail = c->ix->n_docs % 64;
    memset(c->any, 0xff, c->n_words * sizeof *c->any);
    if (tail)
        c->any[c->n_words - 1] = (UINT64_C(1) << tail) - 1;
}

static void keep_allowed(gx_counter *c, uint64_t *words, const gx_mask *mask, const uint64_t *selected)
{
    for (size_t w = 0; mask && w < c->n_words; ++w)
        words[w] &= gx_mask_word(mask, w);
    for (size_t w = 0; selected && w < c->n_words; ++w)
        words[w] &= selected[w];
}

gx_status gx_count_any_and_all(gx_counter *c, const gx_plan *plan, uint64_t *any, uint64_t *all, gx_error *err)
{
    if (any)
        *any = 0;
    if (all)
        *all = 0;
    if (plan->n_terms + plan->n_phrases == 0 && !plan->fill)
        return GX_OK;
    gx_status st = GX_OK;
    if (all && !any && !plan->fill && seek_all(c, plan, &st, err)) {
        *all = st == GX_OK ? gx_filter_kernels_best()->count(c->all, c->n_words) : 0;
        return st;
    }
    if (plan->fill)
        set_all(c);
    else
        st = read_lists(c, plan, any, all, err);
    if (st == GX_OK && plan->filter)
        st = gx_filter_evaluate(plan->filter, c->one, NULL, err);
    if (st != GX_OK)
        return st;
    if (any) {
        keep_allowed(c, c->any, plan->mask, plan->filter ? c->one : NULL);
        *any = gx_filter_kernels_best()->count(c->any, c->n_words);
    }
    if (all) {
        keep_allowed(c, c->all, plan->mask, plan->filter ? c->one : NULL);
        *all = gx_filter_kernels_best()->count(c->all, c->n_words);
    }
    return GX_OK;
}

const uint64_t *gx_counter_any(const gx_counter *c)
{
    return c->any;
}

const uint64_t *gx_counter_all(const gx_counter *c)
{
    return c->all;
}
