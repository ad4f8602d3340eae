/* The CPU executor. A plan is answered exhaustively: every posting of every list is scored into an accumulator a
 * document, and the accumulators are read in order of docid. */
#include "query/exec.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/topk.h"

typedef struct cpu_state {
    const gx_index *ix;
} cpu_state;

typedef struct cpu_exec {
    const gx_index *ix;
    uint32_t *scores;  /* [n_docs], all 0 between plans */
    uint16_t *holders; /* [n_docs] how many of the plan's lists hold the document, all 0 between plans */
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
} cpu_exec;

static gx_status cpu_state_open(void **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err)
{
    (void)opt;
    cpu_state *s = calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a CPU engine");
    s->ix = ix;
    return GX_OK;
}

static void cpu_state_close(void *state)
{
    free(state);
}

static const char *cpu_describe(const void *state)
{
    (void)state;
    return "CPU (portable)";
}

static void cpu_exec_close(void *exec)
{
    cpu_exec *x = exec;
    if (!x)
        return;
    free(x->scores);
    free(x->holders);
    free(x);
}

static gx_status cpu_exec_open(void **out, void *state, gx_error *err)
{
    *out = NULL;
    cpu_exec *x = calloc(1, sizeof *x);
    if (!x)
        return gx_fail(err, GX_ENOMEM, "no memory for a CPU session");
    x->ix = ((cpu_state *)state)->ix;
    x->scores = calloc((size_t)x->ix->n_docs + 1, sizeof *x->scores);
    x->holders = calloc((size_t)x->ix->n_docs + 1, sizeof *x->holders);
    if (!x->scores || !x->holders) {
        cpu_exec_close(x);
        return gx_fail(err, GX_ENOMEM, "no memory for the accumulators of %u documents", ((cpu_state *)state)->ix->n_docs);
    }
    *out = x;
    return GX_OK;
}

/* Add every posting of one term. False: cancelled. */
static bool accumulate(cpu_exec *x, const gx_plan *plan, const gx_plan_term *t)
{
    const gx_list l = gx_index_list(x->ix, t->list);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        if (j % 1024 == 0 && plan->cancel && plan->cancel(plan->user))
            return false;
        const uint32_t n = gx_list_decode_docids(&l, j, x->docids);
        gx_list_decode_tfs(&l, j, x->tfs);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t d = x->docids[i];
            if (d >= x->ix->n_docs)
                continue;
            x->scores[d] += gx_bm25_impact(t->w, x->tfs[i], gx_bm25_K(plan->norm, x->ix->doc_lens[d]));
            ++x->holders[d];
        }
    }
    return true;
}

static void select_hits(const cpu_exec *x, uint32_t k, uint32_t min_holders, gx_hits *hits)
{
    gx_topk top = {hits->keys, k, 0};
    for (uint32_t d = 0; d < x->ix->n_docs; ++d) {
        if (x->holders[d] >= min_holders)
            gx_topk_push(&top, gx_key(x->scores[d], d));
    }
    gx_topk_sort(&top);
    hits->n = top.n;
}

static gx_status run_exhaustive(cpu_exec *x, const gx_plan *plan, gx_hits *hits, gx_work *work)
{
    bool going = true;
    hits->n = 0;
    for (uint32_t i = 0; i < plan->n_terms && going; ++i)
        going = accumulate(x, plan, &plan->terms[i]);
    if (going && plan->n_terms) {
        select_hits(x, plan->k, plan->op == GX_OP_OR ? 1 : plan->n_terms, hits);
        if (plan->op == GX_OP_AND_OR && hits->n < plan->k) {
            select_hits(x, plan->k, 1, hits);
            work->and_fell_to_or += 1;
        }
    }
    memset(x->scores, 0, (size_t)x->ix->n_docs * sizeof *x->scores);
    memset(x->holders, 0, (size_t)x->ix->n_docs * sizeof *x->holders);
    return going ? GX_OK : GX_ECANCELLED;
}

static gx_status cpu_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_work *work, gx_error *err)
{
    cpu_exec *x = exec;
    gx_work done = {0};
    for (uint32_t q = 0; q < n; ++q) {
        for (uint32_t i = 0; i < plans[q].n_terms; ++i) {
            const uint64_t df = plans[q].terms[i].df, blocks = (df + x->ix->block_len - 1) / x->ix->block_len;
            done.postings += df;
            done.blocks += blocks;
            done.blocks_decoded += blocks;
        }
        if (run_exhaustive(x, &plans[q], &hits[q], &done) != GX_OK)
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
    }
    if (work) {
        work->postings += done.postings;
        work->blocks += done.blocks;
        work->blocks_decoded += done.blocks_decoded;
        work->and_fell_to_or += done.and_fell_to_or;
    }
    return GX_OK;
}

const gx_exec_ops gx_exec_cpu = {"cpu", cpu_state_open, cpu_state_close, cpu_describe, cpu_exec_open, cpu_exec_close,
                                 cpu_run};
