/* session.c: sessions: opened, closed and asked about themselves. How they run batches: session_state.h. */
#include "query/engine/session_state.h"

#include <stdlib.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "query/plan/approximate.h"
#include "query/plan/field_way.h"
#include "query/plan/phrases.h"

void gx_session_close(gx_session *s)
{
    if (!s)
        return;
    gx_part_sessions_close(s->parts);
    if (s->exec)
        gx_spares_give(s->en->spares, s->en->ops, s->en->opt.device, s->exec);
    if (s->cpu_workspace)
        gx_executor_cpu.workspace_close(s->cpu_workspace);
    gx_counter_close(s->counter);
    gx_batch_buffer_free(&s->batch);
    gx_batch_buffer_free(&s->missed);
    free(s->missed_at);
    gx_batch_buffer_free(&s->passes);
    free(s->candidates);
    free(s->candidate_docids);
    free(s->candidate_scores);
    free(s);
}

const gx_search_stats *gx_session_stats(const gx_session *session)
{
    gx_session *s =
        (gx_session *)session; /* of a collection the sum is made here; only the session's thread may call */
    if (s->parts) {
        const uint64_t cached = s->work.cached;
        gx_part_sessions_stats(s->parts, &s->work);
        s->work.and_fell_to_or += s->fell_when_planned;
        s->work.cached = cached;
    }
    return &s->work;
}

gx_status gx_session_get_memory(const gx_session *s, gx_session_memory *out)
{
    gx_session_memory m = {sizeof m, 0, 0};
    if (s->parts)
        gx_part_sessions_memory(s->parts, &m);
    if (s->exec && s->en->ops->memory)
        s->en->ops->memory(s->exec, &m.device, &m.pinned);
    return gx_sized_write(out, &m, sizeof m, GX_SIZE_THROUGH(gx_session_memory, pinned));
}

gx_status gx_session_fall_back(gx_session *s, const gx_error *gpu, gx_error *err)
{
    gx_status st = gx_engine_fall_back(s->en, gpu, err);
    if (st == GX_OK && (st = gx_executor_cpu.workspace_open(&s->cpu_workspace, s->en->cpu_prepared_index, err)))
        s->cpu_workspace = NULL;
    return st;
}

gx_status gx_session_open(gx_session **out, gx_engine *en, gx_error *err)
{
    gx_error gpu;
    *out = NULL;
    gx_clear_error(err);
    gx_session *s = calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a session");
    s->en = en;
    s->batch.wide = s->passes.wide = gx_index_is_wide(en->ix);
    gpu.text[0] = 0;
    gx_status st = en->parts ? gx_part_sessions_open(&s->parts, en->parts, err)
                             : gx_spares_take(en->spares, en->ops, en->opt.device, en->state, &s->exec, &gpu);
    if (st != GX_OK && !en->parts) {
        s->exec = NULL;
        st = gx_engine_can_fall_back(en, st) ? gx_session_fall_back(s, &gpu, err) : gx_fail(err, st, "%s", gpu.text);
    }
    if (st != GX_OK) {
        gx_session_close(s);
        return st;
    }
    *out = s;
    return GX_OK;
}

void gx_session_set_facet_engine(gx_session *s, gx_facet_engine engine)
{
    s->facet_engine = engine;
}

gx_facet_engine gx_session_facet_engine(const gx_session *s)
{
    return s->facet_engine;
}

uint64_t gx_session_n_counted(const gx_session *s)
{
    return s->n_counted;
}

gx_status gx_session_facet_ordinals(gx_session *s, uint32_t column, const gx_facet *facet,
                                    const gx_facet_ordinals **out, gx_error *err)
{
    const gx_executor *ops = s->en->ops;
    *out = NULL;
    return s->exec && !s->cpu_workspace && ops->facet_ordinals ? ops->facet_ordinals(s->exec, column, facet, out, err)
                                                               : GX_OK;
}

void gx_session_expect(const gx_session *s, const gx_plan *plan, bool known)
{
    if (s->exec && s->en->ops->expect && !s->cpu_workspace)
        s->en->ops->expect(s->exec, plan, known);
}

void gx_session_add_scores(gx_session *s, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n)
{
    s->work.lookups += (uint64_t)n * rest->n_terms;
    if (gx_plan_has_ways(rest, s->en->ix))
        gx_add_scores(s->en->ix, rest, docids, scores, n);
    else if (s->cpu_workspace)
        gx_executor_cpu.add_scores(s->cpu_workspace, rest, docids, scores, n);
    else if (s->en->ops->add_scores)
        s->en->ops->add_scores(s->exec, rest, docids, scores, n);
    else
        gx_add_scores(s->en->ix, rest, docids, scores, n);
}

const uint32_t *gx_session_list_bits(gx_session *s, uint32_t list)
{
    if (s->cpu_workspace)
        return gx_executor_cpu.list_bits(s->cpu_workspace, list);
    return s->en->ops->list_bits ? s->en->ops->list_bits(s->exec, list) : NULL;
}

const uint32_t *gx_session_bits(void *session, uint32_t list)
{
    return gx_session_list_bits(session, list);
}

#define FEW_SCORES 64u /* documents whose compressed blocks are read, and for which no tables are made */

gx_status gx_session_add_scores_of(gx_session *s, const gx_plan *plan, gx_candidate *documents, size_t n, gx_error *err)
{
    uint32_t docids[256], scores[256];
    if (n > UINT32_MAX)
        return gx_fail(err, GX_ENOMEM, "no memory for the scores of %zu documents", n);
    if (s->parts) {
        return gx_part_sessions_add_scores(s->parts, plan, documents, (uint32_t)n, err);
    }
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < 256 ? n - i : 256;
        for (size_t j = 0; j < m; ++j) {
            docids[j] = (uint32_t)documents[i + j].docid;
            scores[j] = documents[i + j].score;
        }
        if (n > FEW_SCORES)
            gx_session_add_scores(s, plan, docids, scores, (uint32_t)m);
        else
            gx_add_scores(s->en->ix, plan, docids, scores, (uint32_t)m);
        const gx_status st = gx_phrases_add_scores(s->en->ix, plan, docids, scores, (uint32_t)m, err);
        if (st != GX_OK)
            return st;
        for (size_t j = 0; j < m; ++j)
            documents[i + j].score = scores[j];
    }
    return GX_OK;
}

const gx_engine *gx_session_engine(const gx_session *s)
{
    return s->en;
}

bool gx_engine_is_shard(const gx_engine *en)
{
    return en->parts && en->parts->shard;
}
