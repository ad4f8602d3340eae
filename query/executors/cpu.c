/* cpu.c: the CPU executor. The prepared index holds the derived lists; a session's workspace is a
 * searcher. */
#include "query/exec/exec.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/isa.h"
#include "engine/status.h"
#include "query/cpu/choice.h"
#include "query/cpu/ranges.h"
#include "query/executors/cpu.h"

typedef struct cpu_prepared_index {
    const gx_index *ix;
    const gx_cpu_kernels *kernels;
    gx_cpu_lists *lists;
    gx_ranges *ranges;
    char words[64];
} cpu_prepared_index;

static void cpu_release_index(void *state)
{
    cpu_prepared_index *s = state;
    if (!s)
        return;
    gx_ranges_close(s->ranges);
    gx_cpu_lists_close(s->lists);
    free(s);
}

static gx_status cpu_prepare_index(void **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err)
{
    *out = NULL;
    cpu_prepared_index *s = calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a CPU engine");
    s->ix = ix;
    s->kernels = gx_cpu_choose();
    if (!s->kernels) {
        free(s);
        return gx_isa_fail_override(err);
    }
    if (ix->n_docs > INT32_MAX) /* gathers take signed indices */
        s->kernels = &gx_cpu_portable;
    snprintf(s->words, sizeof s->words, "CPU (%s)", s->kernels->title);
    const gx_status st = gx_cpu_lists_open(&s->lists, ix, s->kernels, opt->map_memory, err);
    if (st == GX_OK)
        s->ranges = gx_ranges_open(ix, s->lists, s->kernels, gx_cpu_lists_spare_memory(s->lists));
    if (st != GX_OK || !s->ranges) {
        cpu_release_index(s);
        return st != GX_OK ? st : gx_fail(err, GX_ENOMEM, "no memory for the ranges of %u lists", ix->n_terms);
    }
    *out = s;
    return GX_OK;
}

void gx_cpu_state_keep(void *state, const uint64_t *words)
{
    cpu_prepared_index *s = state;
    (void)gx_cpu_lists_keep(s->lists, words); /* without memory bounds are less close */
    gx_ranges_set_memory(s->ranges, gx_cpu_lists_spare_memory(s->lists));
}

bool gx_cpu_state_has_kept(const void *state, const uint64_t *words)
{
    return gx_cpu_lists_have_kept(((const cpu_prepared_index *)state)->lists, words);
}

uint32_t gx_cpu_state_n_live_lists(const void *state)
{
    return gx_cpu_lists_n_live(((const cpu_prepared_index *)state)->lists);
}

static const char *cpu_describe(const void *state)
{
    return ((const cpu_prepared_index *)state)->words;
}

static gx_status cpu_workspace_open(void **out, void *state, gx_error *err)
{
    cpu_prepared_index *s = state;
    gx_cpu_searcher *searcher;
    const gx_status st = gx_cpu_searcher_open(&searcher, s->ix, s->kernels, s->lists, err);
    if (st == GX_OK)
        searcher->ranges = s->ranges;
    *out = searcher;
    return st;
}

static void cpu_workspace_close(void *exec)
{
    gx_cpu_searcher_close(exec);
}

static gx_status run_one(gx_cpu_searcher *s, const gx_plan *plan, gx_hits *hits, gx_error *err)
{
    uint64_t n_postings = 0, n_blocks = 0;
    hits->n = 0;
    if (plan->n_terms == 0)
        return GX_OK;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        n_postings += plan->terms[i].df;
        n_blocks += (plan->terms[i].df + s->ix->block_len - 1) / s->ix->block_len;
    }
    s->work.postings += n_postings;
    s->work.blocks += n_blocks;
    gx_status st = gx_cpu_answer(s, plan, plan->op == GX_OP_OR ? GX_OP_OR : GX_OP_AND, n_postings, hits, err);
    if (st == GX_OK && plan->op == GX_OP_AND_OR && hits->n < plan->k) {
        s->work.and_fell_to_or += 1;
        st = gx_cpu_answer(s, plan, GX_OP_OR, n_postings, hits, err);
    }
    return st;
}

static gx_status cpu_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                         gx_error *err)
{
    gx_cpu_searcher *s = exec;
    gx_status st = GX_OK;
    s->work = (gx_search_stats){0};
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = run_one(s, &plans[i], &hits[i], err);
    if (work) {
        work->postings += s->work.postings;
        work->blocks += s->work.blocks;
        work->blocks_decoded += s->work.blocks_decoded;
        work->lookups += s->work.lookups;
        work->and_fell_to_or += s->work.and_fell_to_or;
        work->driven += s->work.driven;
        work->masked += s->work.masked;
        work->tested += s->work.tested;
        for (int i = 0; i < GX_N_STEPS; ++i)
            work->steps[i] += s->work.steps[i];
    }
    return st;
}

static void cpu_add_scores(void *exec, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n)
{
    gx_cpu_add_scores(exec, rest, docids, scores, n);
}

static void cpu_expect(void *exec, const gx_plan *plan, bool known)
{
    gx_cpu_expect(exec, plan, known);
}

/* Those of a dense list; see lists.h. */
static const uint32_t *cpu_list_bits(void *exec, uint32_t list)
{
    gx_cpu_searcher *s = exec;
    const gx_cpu_map *map = gx_cpu_lists_map(s->lists, list, &s->scratch);
    return map && map->rank ? map->map : NULL;
}

const gx_executor gx_executor_cpu = {"cpu",
                                     cpu_prepare_index,
                                     cpu_release_index,
                                     cpu_describe,
                                     cpu_workspace_open,
                                     cpu_workspace_close,
                                     cpu_run,
                                     NULL,
                                     NULL,
                                     NULL,
                                     cpu_add_scores,
                                     NULL,
                                     NULL,
                                     cpu_expect,
                                     NULL,
                                     NULL,
                                     NULL,
                                     NULL,
                                     NULL,
                                     cpu_list_bits};
