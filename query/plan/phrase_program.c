#include "query/plan/phrase_program.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/index.h"
#include "query/plan/phrases.h"

#define MORE (1 + 0x1p-20) /* more than what impacts of different tfs differ by roundings */

/* Different lists of a phrase, in the order of its words; places[i]: that of word i, counted from `first`. Returns
 * their number, or GX_MAX_PLACES + 1 where there are more than that. */
static uint32_t find_places(const gx_phrase *p, uint32_t first, uint32_t *lists, uint32_t *places)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < p->n; ++w) {
        uint32_t at = 0;
        while (at < n && lists[at] != p->words[w].list)
            ++at;
        if (at == n && n == GX_MAX_PLACES)
            return GX_MAX_PLACES + 1;
        if (at == n)
            lists[n++] = p->words[w].list;
        if (places)
            places[w] = first + at;
    }
    return n;
}

static uint32_t program_words(const gx_plan *plan, uint32_t *n_places)
{
    uint32_t n = GX_PROGRAM_TERMS + plan->n_terms, lists[GX_MAX_PLACES];
    *n_places = 0;
    for (uint32_t i = 0; i < plan->n_phrases; ++i) {
        const gx_phrase *p = &plan->phrases->phrases[i].phrase;
        if (p->n > GX_MAX_PROGRAM_WORDS || *n_places > GX_MAX_PLACES || n > GX_MAX_PROGRAM_WORDS)
            return GX_MAX_PROGRAM_WORDS + 1;
        *n_places += find_places(p, 0, lists, NULL);
        n += 2 + p->n;
    }
    return n + *n_places;
}

bool gx_plan_suits_program(const gx_plan *plan)
{
    uint32_t n_places;
    if (!plan->prune || plan->n_phrases == 0 || !plan->phrases)
        return false;
    for (uint32_t i = 0; i < plan->n_phrases; ++i) {
        const gx_phrase *p = &plan->phrases->phrases[i].phrase;
        if (p->kind != GX_PHRASE_WORDS || p->slop || gx_phrase_has_others(p) ||
            p->words[p->n - 1].offset >= 1u << (32 - GX_PLACE_BITS))
            return false;
    }
    return program_words(plan, &n_places) <= GX_MAX_PROGRAM_WORDS && n_places <= GX_MAX_PLACES &&
           plan->n_terms + n_places <= GX_MAX_TERMS;
}

/* A term, and whose it is: the n_places first ones are the phrases'. */
typedef struct owned_term {
    gx_plan_term term;
    uint32_t owner;
} owned_term;

static int by_df(const void *a, const void *b)
{
    const owned_term *x = a, *y = b;
    if (x->term.df != y->term.df)
        return x->term.df < y->term.df ? -1 : 1;
    if (x->term.list != y->term.list)
        return x->term.list < y->term.list ? -1 : 1;
    return (x->owner > y->owner) - (x->owner < y->owner);
}

/* The terms of all phrases; writes the phrases behind the program's `at` words. */
static uint32_t add_phrases(const gx_index *ix, const gx_plan *plan, owned_term *terms, gx_phrase_program *program,
                            uint32_t at)
{
    uint32_t n = 0, lists[GX_MAX_PLACES], places[GX_MAX_PROGRAM_WORDS];
    for (uint32_t i = 0; i < plan->n_phrases; ++i) {
        const gx_sought_phrase *s = &plan->phrases->phrases[i];
        const uint32_t m = find_places(&s->phrase, n, lists, places);
        uint32_t rarest = n;
        for (uint32_t j = 0; j < m; ++j, ++n) {
            terms[n] = (owned_term){{.list = lists[j], .df = ix->lists[lists[j]].df, .w = 0, .qtf = 1}, n};
            rarest = terms[n].term.df < terms[rarest].term.df ? n : rarest;
        }
        terms[rarest].term.w = (float)((double)s->w * MORE);
        memcpy(&program->words[at], &s->w, sizeof s->w);
        program->words[at + 1] = s->phrase.n;
        for (uint32_t w = 0; w < s->phrase.n; ++w)
            program->words[at + 2 + w] = places[w] | s->phrase.words[w].offset << GX_PLACE_BITS;
        at += 2 + s->phrase.n;
    }
    return n;
}

gx_status gx_program_plan_make(gx_plan *out, const gx_index *ix, const gx_plan *plan, bool words_optional,
                               gx_error *err)
{
    uint32_t n_places;
    const uint32_t n_words = program_words(plan, &n_places), n = plan->n_terms + n_places;
    gx_phrase_program *program = malloc(sizeof *program + n_words * sizeof *program->words);
    gx_plan_term *terms = malloc(n * sizeof *terms);
    owned_term *owned = malloc(n * sizeof *owned);
    *out = (gx_plan){0};
    if (!program || !terms || !owned) {
        free(program);
        free(terms);
        free(owned);
        return gx_fail(err, GX_ENOMEM, "no memory for the phrases of a query");
    }
    program->n_words = n_words;
    (void)add_phrases(ix, plan, owned, program, GX_PROGRAM_TERMS + n);
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        owned[n_places + i] = (owned_term){plan->terms[i], n_places + i};
    const uint32_t n_required = words_optional ? n_places : n;
    qsort(owned, n_required, sizeof *owned, by_df);
    program->words[0] = n_required;
    program->words[GX_PROGRAM_PHRASES] = plan->n_phrases;
    program->words[GX_PROGRAM_PLACES] = n_places;
    program->words[GX_PROGRAM_WORDS] = plan->n_terms;
    for (uint32_t i = 0; i < n; ++i) {
        terms[i] = owned[i].term;
        program->words[GX_PROGRAM_TERMS + owned[i].owner] = i;
    }
    free(owned);
    *out = *plan;
    out->op = GX_OP_AND;
    out->algorithm = GX_ALGORITHM_AUTO;
    out->n_terms = n;
    out->terms = terms;
    out->n_phrases = 0;
    out->phrases = NULL;
    out->program = program;
    out->approximate = 0;
    out->fill = false;
    if (plan->op == GX_OP_AND_OR) /* whether there are k results decides */
        out->initial_threshold = 0;
    return GX_OK;
}

void gx_program_plan_free(gx_plan *plan)
{
    free(plan->terms);
    free((void *)plan->program);
}
