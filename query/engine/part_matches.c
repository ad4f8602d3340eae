/* part_matches.c: all documents of a collection that match a plan, of one part after another. */
#include "query/engine/part_state.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"

/* The matches of a collection: how many, and their bits, where these are asked for. `words` are those of
 * documents that hold any term, all_words of those that hold all. */
typedef struct part_matches {
    gx_op op;
    uint64_t any, all;
    uint64_t *words, *all_words;
} part_matches;

static gx_status match_part(gx_part_sessions *s, uint32_t i, const gx_plan *here, part_matches *m, gx_error *err)
{
    const gx_part *part = &s->e->ix->parts->parts[i];
    uint64_t any = 0, all = 0;
    gx_status st = s->counters[i] ? GX_OK : gx_counter_open(&s->counters[i], part->ix, err);
    if (st == GX_OK && s->sessions[i])
        gx_counter_use_bits(s->counters[i], gx_session_bits, s->sessions[i]);
    if (st == GX_OK)
        st = gx_count_any_and_all(s->counters[i], here, m->op != GX_OP_AND ? &any : NULL,
                                  m->op != GX_OP_OR ? &all : NULL, err);
    if (st != GX_OK)
        return st;
    all = here->n_unknown ? 0 : all;
    m->any += any;
    m->all += all;
    if (m->words && any)
        gx_part_gather(part, gx_counter_any(s->counters[i]), m->words);
    if (m->all_words && all)
        gx_part_gather(part, gx_counter_all(s->counters[i]), m->all_words);
    return GX_OK;
}

gx_status gx_part_sessions_match(gx_part_sessions *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err)
{
    const size_t n_words = gx_index_n_words(s->e->ix);
    part_matches m = {.op = plan->op, .words = words};
    gx_part_plans *p = NULL;
    gx_status st = GX_OK;
    *n = 0;
    if (words)
        memset(words, 0, n_words * sizeof *words);
    if (!plan->parts && !plan->terms)
        return GX_OK;
    if (words && plan->op != GX_OP_OR && !(m.all_words = calloc(n_words + 1, sizeof *m.all_words)))
        return gx_fail(err, GX_ENOMEM, "no memory to count matches among %llu documents",
                       (unsigned long long)gx_index_n_docs(s->e->ix));
    if (plan->parts) {
        st = gx_part_plans_rebind(&p, s->e->ix, &plan->parts->query, GX_OP_OR, err);
    } else { /* a plan of the only part */
        gx_plan here = *plan;
        gx_part_sessions_give_documents(s, plan, 0, &here);
        st = match_part(s, 0, &here, &m, err);
    }
    for (uint32_t i = s->e->range.begin; p && i < s->e->range.end && st == GX_OK; ++i) {
        gx_plan *here = &p->plans[i];
        gx_part_sessions_give_documents(s, plan, i, here);
        st = match_part(s, i, here, &m, err);
    }
    gx_part_plans_free(p);
    const bool of_all = gx_count_is_of_all(plan, m.all);
    *n = of_all ? m.all : m.any;
    if (words && of_all)
        memcpy(words, m.all_words, n_words * sizeof *words);
    free(m.all_words);
    return st;
}
