#include "query/cpu/selection.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/filter/filter.h"

#define MASK_GROUPS 64u   /* a block that spans more groups of a mask is read without asking them */
#define SELECTED_COST 3u  /* looking a document up in all lists costs as much as reading this many postings */
#define VISITED_COST 1u   /* finding that a document fails the other conditions: the same unit */
#define READ_SHARE 0.2    /* the share of a list's postings that a search tests */
#define MARK_COST 1.3     /* setting a document's bit in a mask (unit: one clause) */
#define COST_OF_OTHERS 10 /* a test that no kernel makes (unit: one clause) */
#define LEAST_SIEVED 500  /* make a sieve only if a search reads at least this many postings */
#define LEAST_COST 2.2f   /* make a sieve if testing a posting costs at least this (unit: one clause) */
#define MOST_SAVED 3.0f   /* the most that a posting saves which a sieve drops (unit: one clause) */

void gx_cpu_selection_free(gx_cpu_selection *s)
{
    free(s->made.words);
    free(s->made.groups);
    gx_cpu_sieve_free(&s->sieve);
}

/* ---- masks made here ---- */

static gx_status no_memory(const gx_cpu_selection *s, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for a filter of %u documents", s->n_docs);
}

/* For bits that are about to be set. */
static bool reserve_made(gx_cpu_selection *s)
{
    s->has_made = true;
    if (!s->made.words)
        s->made.words = calloc(gx_mask_n_words(s->n_docs) + GX_MASK_SLACK, sizeof *s->made.words);
    if (!s->made.groups)
        s->made.groups = calloc(s->n_docs / GX_MASK_GROUP + 1, sizeof *s->made.groups);
    return s->made.words && s->made.groups;
}

/* Work out the groups and the count from the words. */
static void complete_made(gx_mask *m, uint32_t n_docs)
{
    m->n = 0;
    for (size_t w = 0; w < gx_mask_n_words(n_docs) / 2; ++w) {
        const uint64_t bits = gx_mask_word(m, w);
        m->groups[w * 64 / GX_MASK_GROUP] |= bits != 0;
        m->n += (uint32_t)__builtin_popcountll(bits);
    }
}

static gx_status evaluate(gx_cpu_selection *s, const gx_filter *f, gx_error *err)
{
    if (!reserve_made(s))
        return no_memory(s, err);
    const gx_status st = gx_filter_evaluate(f, (uint64_t *)(void *)s->made.words, NULL, err);
    if (st == GX_OK)
        complete_made(&s->made, s->n_docs);
    else
        memset(s->made.words, 0, gx_mask_n_words(s->n_docs) * sizeof *s->made.words);
    return st;
}

/* ---- choosing ---- */

static uint64_t count_postings(const gx_plan *plan)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        n += plan->terms[i].df;
    return n;
}

/* Returns about how many of df postings have docids in [first, end). */
static uint64_t within(const gx_cpu_selection *s, uint64_t df)
{
    return s->end - s->first < s->n_docs ? df * (s->end - s->first) / s->n_docs : df;
}

/* Whether to look up documents that cost as much as `cost` postings can be worth it at all. */
static bool is_few(const gx_cpu_selection *s, const gx_plan *plan, uint64_t cost)
{
    return cost < within(s, count_postings(plan));
}

/* What it costs to look up the documents found, in postings. */
static uint64_t cost_of(const gx_filter_documents *found)
{
    return found->selected * SELECTED_COST + (found->n - found->selected) * VISITED_COST;
}

/* Work out about how many documents a filter allows, and find them if they are few. false: no memory. */
static bool find_few(gx_cpu_selection *s, const gx_plan *plan)
{
    const gx_filter *f = s->filter;
    if (!gx_filter_has_orders(f)) {
        s->allowed = gx_filter_guess(f);
        if (!is_few(s, plan, (uint64_t)s->allowed * SELECTED_COST))
            return true;
    }
    const gx_filter_documents found = gx_filter_find(f, count_postings(plan)); /* others are not visited or marked */
    s->rarest = found.node;
    s->allowed = found.n == UINT64_MAX        ? gx_filter_guess(f)
                 : found.selected < s->n_docs ? (uint32_t)found.selected
                                              : s->n_docs;
    if (found.n >= UINT32_MAX)
        return true;
    s->few = is_few(s, plan, cost_of(&found));
    s->cost = cost_of(&found);
    s->exact = found.exact;
    if (found.n_spans) {
        s->n_spans = found.n_spans;
        memcpy(s->spans, found.spans, found.n_spans * sizeof *s->spans);
        s->unordered = !found.rising;
        s->repeated = found.repeated;
        s->n = (uint32_t)found.n;
    } else if (s->few) {
        if (!reserve_made(s))
            return false;
        s->n = s->made.n = gx_filter_mark(f, s->made.words, s->made.groups);
        s->allowed = s->made.n < s->allowed ? s->made.n : s->allowed; /* some may have been counted twice before */
        s->masks[s->n_masks++] = &s->made;
        if (found.exact)
            s->filter = NULL;
    }
    return true;
}

/* Whether the tests that a mask of the spans' documents replaces take longer than to make it: of clauses [0, n),
 * and of others if `exact`. */
static bool is_worth_marking(const gx_cpu_selection *s, const gx_plan *plan, uint32_t n)
{
    double n_read = 0, cost = s->more && s->exact ? COST_OF_OTHERS : 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        n_read += !s->few || plan->terms[i].df < s->cost ? READ_SHARE * plan->terms[i].df : 0;
    for (uint32_t i = 0; i < n; ++i)
        cost += s->program.clauses[i].cost;
    return n_read * cost > MARK_COST * s->n;
}

/* Make a mask of the spans' documents. */
static bool mark_spans(gx_cpu_selection *s)
{
    if (!reserve_made(s))
        return false;
    s->made.n = 0;
    for (uint32_t i = 0; i < s->n_spans; ++i) {
        for (uint32_t j = 0; j < s->spans[i].n; ++j) {
            const uint32_t docid = s->spans[i].docids[j], bit = UINT32_C(1) << docid % 32;
            s->made.n += !(s->made.words[docid / 32] & bit);
            s->made.words[docid / 32] |= bit;
            s->made.groups[docid / GX_MASK_GROUP] = true;
        }
    }
    s->masks[s->n_masks++] = &s->made;
    return true;
}

/* Make the filter's program, and a mask of the documents that find_few found, if that takes less time than their
 * tests. false: no memory. */
static bool make_program(gx_cpu_selection *s, const gx_plan *plan)
{
    uint32_t n_first;
    s->more = !gx_cpu_program_make(&s->program, s->filter, s->rarest, &n_first);
    if (s->program.n_clauses == 1 && !s->more)
        s->program.clauses[0].share = (float)s->allowed / (float)s->n_docs;
    s->n_met = n_first;
    const uint32_t answered = s->exact ? s->program.n_clauses : n_first;
    if (s->n_spans && is_worth_marking(s, plan, answered)) {
        s->n_masked = answered;
        s->more = s->more && !s->exact;
        return mark_spans(s);
    }
    return true;
}

/* Make a sieve of the filter, if enough postings are tested. */
static void make_sieve(gx_cpu_selection *s, const gx_plan *plan)
{
    float cost = 0, share = 1;
    double n_read = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        n_read += !s->few || plan->terms[i].df < s->cost ? READ_SHARE * plan->terms[i].df : 0;
    for (uint32_t i = 0; i < s->program.n_clauses; ++i) {
        cost += share * s->program.clauses[i].cost;
        share *= s->program.clauses[i].share;
    }
    cost += s->more ? share * COST_OF_OTHERS : 0;
    if (cost < LEAST_COST || n_read < LEAST_SIEVED)
        return;
    gx_cpu_sieve_make(&s->sieve, s->filter);
    s->sieve.saved = (1 - s->sieve.share) * (cost < MOST_SAVED ? cost : MOST_SAVED);
}

bool gx_cpu_selection_drives(const gx_cpu_selection *s, uint32_t df)
{
    return s->few && s->cost < within(s, df);
}

gx_status gx_cpu_selection_begin(gx_cpu_selection *s, const gx_plan *plan, gx_error *err)
{
    s->n_masks = 0;
    s->filter = plan->filter_mask ? NULL : plan->filter;
    s->n_met = s->n_masked = 0;
    s->rarest = UINT32_MAX;
    s->more = false;
    s->few = s->exact = false;
    if (plan->mask)
        s->masks[s->n_masks++] = plan->mask;
    if (plan->filter_mask)
        s->masks[s->n_masks++] = plan->filter_mask;
    s->any = s->n_masks || s->filter;
    s->allowed = s->n_docs;
    s->n_spans = 0;
    s->unordered = s->repeated = false;
    s->first = 0;
    s->end = s->n_docs;
    if (s->filter)
        gx_filter_bound(s->filter, &s->first, &s->end);
    if (s->filter && !find_few(s, plan))
        return no_memory(s, err);
    if (s->filter && !make_program(s, plan))
        return no_memory(s, err);
    s->sieve.n_steps = s->sieve.n_made = 0;
    if (s->filter && !s->has_made)
        make_sieve(s, plan);
    if (!s->few)
        s->n_spans = 0;
    if (s->n_masks == 2 && s->masks[1]->n < s->masks[0]->n) {
        const gx_mask *first = s->masks[0];
        s->masks[0] = s->masks[1];
        s->masks[1] = first;
    }
    const uint64_t cost = s->n_masks ? (uint64_t)s->masks[0]->n * SELECTED_COST : UINT64_MAX;
    if (!s->n_spans && s->n_masks && (s->few || is_few(s, plan, cost))) {
        s->exact = s->exact && s->few;
        s->n_met = s->few ? s->n_met : s->n_masked;
        s->cost = s->few && s->cost < cost ? s->cost : cost;
        s->few = true;
        s->n = s->masks[0]->n;
    }
    s->gaps = false;
    for (uint32_t i = 0; i < s->n_masks; ++i) { /* as if masks and filter were not correlated */
        s->gaps = s->gaps || s->masks[i] == &s->made || s->masks[i]->gaps;
        if (s->masks[i] != &s->made)
            s->allowed = (uint32_t)((uint64_t)s->allowed * s->masks[i]->n / s->n_docs);
    }
    return GX_OK;
}

gx_status gx_cpu_selection_mask(gx_cpu_selection *s, const gx_plan *plan, const gx_mask **mask, gx_error *err)
{
    const gx_mask *first = plan->mask, *second = plan->filter_mask;
    *mask = first ? first : second;
    if (!plan->filter || (second && !first))
        return GX_OK;
    if (second) {
        if (!reserve_made(s))
            return no_memory(s, err);
        memcpy(s->made.words, second->words, gx_mask_n_words(s->n_docs) * sizeof *second->words);
        complete_made(&s->made, s->n_docs);
    } else {
        const gx_status st = evaluate(s, plan->filter, err);
        if (st != GX_OK)
            return st;
    }
    for (size_t w = 0; first && w < gx_mask_n_words(s->n_docs); ++w)
        s->made.words[w] &= first->words[w];
    *mask = &s->made;
    return GX_OK;
}

/* Set the bits of the mask that was made to 0. */
static void clear_made(gx_cpu_selection *s)
{
    const size_t n_groups = s->n_docs / GX_MASK_GROUP + 1, all = gx_mask_n_words(s->n_docs);
    bool *const groups = s->made.groups;
    for (bool *g = groups; (g = memchr(g, true, n_groups - (size_t)(g - groups))); *g++ = false) {
        const size_t begin = (size_t)(g - groups) * GX_MASK_GROUP / 32;
        const size_t n = all - begin < GX_MASK_GROUP / 32 ? all - begin : GX_MASK_GROUP / 32;
        memset(s->made.words + begin, 0, n * sizeof *s->made.words);
    }
}

void gx_cpu_selection_end(gx_cpu_selection *s)
{
    if (s->has_made && s->made.words && s->made.groups)
        clear_made(s);
    s->any = s->few = s->exact = s->has_made = false;
    s->n_masks = 0;
    s->filter = NULL;
}

/* ---- candidates ---- */

void gx_cpu_selection_apply_masks(const gx_cpu_selection *s, const gx_cpu_kernels *k, gx_cpu_columns *c, uint32_t from)
{
    for (uint32_t i = 0; i < s->n_masks && c->n > from; ++i)
        k->test_map(c, from, s->masks[i]->words);
}

void gx_cpu_selection_apply_other_masks(const gx_cpu_selection *s, const gx_cpu_kernels *k, gx_cpu_columns *c)
{
    for (uint32_t i = 0; i < s->n_masks && c->n; ++i) {
        if (s->masks[i] != &s->made)
            k->test_map(c, 0, s->masks[i]->words);
    }
}

void gx_cpu_selection_apply_filter(const gx_cpu_selection *s, const gx_cpu_kernels *k, gx_cpu_columns *c, uint32_t from,
                                   uint32_t clause)
{
    uint8_t keep[GX_CPU_COLUMN];
    if (!s->filter)
        return;
    if (clause < s->program.n_clauses && c->n > from)
        k->test_program(c, from, &s->program, clause);
    if (s->more && c->n > from) {
        gx_filter_test(s->filter, c->doc + from, c->n - from, keep);
        k->drop_unkept(c, from, keep);
    }
}

static bool mask_may_allow(const gx_mask *mask, uint32_t begin, uint32_t end)
{
    for (uint32_t g = begin / GX_MASK_GROUP; g <= (end - 1) / GX_MASK_GROUP; ++g) {
        if (mask->groups[g])
            return true;
    }
    return false;
}

bool gx_cpu_selection_may_allow(const gx_cpu_selection *s, uint32_t begin, uint32_t end)
{
    if (end <= begin || end > s->n_docs || end - begin > MASK_GROUPS * GX_MASK_GROUP)
        return true;
    for (uint32_t i = 0; i < s->n_masks; ++i) {
        if (!mask_may_allow(s->masks[i], begin, end))
            return false;
    }
    return true;
}

const uint32_t *gx_cpu_selection_next(const gx_cpu_selection *s, uint32_t *at, uint32_t *room, uint32_t max,
                                      uint32_t *n)
{
    *n = 0;
    if (s->n_spans) {
        uint32_t i = 0, before = 0; /* spans, and their documents */
        for (; i + 1 < s->n_spans && *at >= before + s->spans[i].n; ++i)
            before += s->spans[i].n;
        const uint32_t *docids = s->spans[i].docids + (*at - before), left = before + s->spans[i].n - *at;
        *n = left < max ? left : max;
        *at = *at + *n < s->n ? *at + *n : UINT32_MAX;
        return docids;
    }
    const gx_mask *mask = s->masks[0], *other = s->n_masks > 1 ? s->masks[1] : NULL;
    const size_t n_words = gx_mask_n_words(s->n_docs) / 2;
    for (size_t w = *at / 64; w < n_words;) {
        if (w % (GX_MASK_GROUP / 64) == 0 && !mask->groups[w * 64 / GX_MASK_GROUP]) {
            w += GX_MASK_GROUP / 64;
            continue;
        }
        if (*n + 64 > max) {
            *at = (uint32_t)(64 * w);
            return room;
        }
        uint64_t bits = gx_mask_word(mask, w) & (other ? gx_mask_word(other, w) : UINT64_MAX);
        for (; bits; bits &= bits - 1)
            room[(*n)++] = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(bits);
        ++w;
    }
    *at = UINT32_MAX;
    return room;
}
