/* pmf.c: AND by Ding, He, Yan and Suel's algorithm (WWW 2009, sections 7 and 8), on one CPU core.
 *
 *   decode and score the shortest list                       -> candidates: docids and scores
 *   for each next list:
 *     Parallel Merge Find of the candidates in its heads     -> blocks that may hold a candidate
 *     decode those blocks, one behind another                -> a sorted list
 *     Parallel Merge Find of the candidates in that list     -> which candidates the list holds
 *     get their tfs, alone if the codec can; add impacts     -> the remaining candidates
 *   select the best k candidates */
#include <stdlib.h>

#include "engine/clock.h"
#include "engine/status.h"
#include "query/cpu/search.h"
#include "query/ding2009/merge_find.h"
#include "query/filter/mask.h"
#include "query/score/topk.h"

#define CANCEL_EVERY 1024u /* blocks */

void gx_cpu_pmf_free(gx_cpu_pmf *m)
{
    free(m->docids);
    free(m->scores);
    free(m->positions);
    free(m->needed);
    free(m->decoded);
}

/* Makes room for n integers. The contents are lost. */
static bool reserve(uint32_t **array, size_t *max, size_t n)
{
    if (n <= *max)
        return true;
    free(*array);
    *array = malloc((n + GX_MAX_BLOCK + 16) * sizeof **array);
    *max = *array ? n : 0;
    return *array;
}

static bool reserve_candidates(gx_cpu_pmf *m, uint32_t n)
{
    return reserve(&m->docids, &m->max_docids, n) && reserve(&m->scores, &m->max_scores, n) &&
           reserve(&m->positions, &m->max_positions, n) && reserve(&m->needed, &m->max_needed, n);
}

static bool is_cancelled(const gx_plan *plan, uint32_t j)
{
    return plan->cancel && j % CANCEL_EVERY == 0 && plan->cancel(plan->user);
}

static uint32_t impact(const gx_cpu_searcher *s, const gx_plan *plan, float w, uint32_t tf, uint32_t docid)
{
    return gx_bm25_impact(w, tf, gx_bm25_K(plan->norm, s->ix->doc_lens[docid]));
}

/* Makes the first list's postings that the mask allows candidates. Returns false if cancelled. */
static bool begin(gx_cpu_searcher *s, const gx_plan *plan, const gx_list *l)
{
    gx_cpu_pmf *m = &s->pmf;
    double t = gx_clock_seconds();
    m->n = 0;
    for (uint32_t j = 0; j < l->n_blocks;) {
        uint32_t n;
        if (is_cancelled(plan, j))
            return false;
        j += gx_cpu_decode_blocks(s, l, j, &n);
        t = gx_cpu_lap(s, GX_STEP_DECOMPRESS, t);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t docid = s->scratch.docids[i];
            if (docid < s->ix->n_docs && (!plan->mask || gx_mask_has(plan->mask, docid))) {
                m->scores[m->n] = impact(s, plan, plan->terms[0].w, s->scratch.tfs[i], docid);
                m->docids[m->n++] = docid;
            }
        }
        t = gx_cpu_lap(s, GX_STEP_SCORE, t);
    }
    s->work.blocks_decoded += l->n_blocks;
    return true;
}

/* Writes the blocks that may hold candidates to needed and returns their number. No block holds
 * candidates before the first head. */
static uint32_t find_blocks(gx_cpu_pmf *m, const gx_list *l, uint32_t levels)
{
    uint32_t n = 0;
    gx_merge_find_cpu(m->docids, m->n, l->heads, l->n_blocks, levels, m->positions);
    for (uint32_t i = 0; i < m->n; ++i) {
        const uint32_t p = m->positions[i];
        const bool is_head = p < l->n_blocks && l->heads[p] == m->docids[i];
        const uint32_t block = is_head ? p : p - 1;
        if ((is_head || p) && (n == 0 || m->needed[n - 1] != block))
            m->needed[n++] = block;
    }
    return n;
}

/* Decodes the docids of the needed blocks to decoded, one block behind another, and sets *n to
 * their number. Returns false if cancelled. */
static bool decode(gx_cpu_searcher *s, const gx_plan *plan, const gx_list *l, uint32_t n_needed, uint32_t *n)
{
    gx_cpu_pmf *m = &s->pmf;
    *n = 0;
    for (uint32_t x = 0; x < n_needed; ++x) {
        if (is_cancelled(plan, x))
            return false;
        /* Only a list's last block is shorter, and it is the last one here. In a damaged list it
         * may not be. */
        gx_cpu_decode_docids(s->kernels, l, m->needed[x], s->scratch.docids);
        const uint32_t len = gx_list_block_n(l, m->needed[x]);
        for (uint32_t i = 0; i < len; ++i)
            m->decoded[x * l->block_len + i] = s->scratch.docids[i];
        *n = x * l->block_len + len;
    }
    s->work.blocks_decoded += n_needed;
    return true;
}

static uint32_t tf_of(gx_cpu_searcher *s, const gx_list *l, uint32_t j, uint32_t i, uint32_t *in_scratch)
{
    if (l->tfs->random_access) {
        const uint32_t begin = j ? l->tf_ends[j - 1] : l->docid_ends[l->n_blocks - 1];
        return l->tfs->at(l->payload + begin, l->tf_ends[j] - begin, gx_list_block_n(l, j), l->tf_param, i) + 1;
    }
    if (*in_scratch != j) {
        gx_list_decode_tfs(l, j, s->scratch.tfs);
        *in_scratch = j;
    }
    return s->scratch.tfs[i];
}

/* Adds impacts to the candidates that decoded[n] holds and drops the others. */
static void keep_found(gx_cpu_searcher *s, const gx_plan *plan, const gx_list *l, float w, uint32_t n)
{
    gx_cpu_pmf *m = &s->pmf;
    uint32_t kept = 0, in_scratch = UINT32_MAX;
    for (uint32_t i = 0; i < m->n; ++i) {
        const uint32_t p = m->positions[i], docid = m->docids[i];
        if (p == n || m->decoded[p] != docid)
            continue;
        const uint32_t tf = tf_of(s, l, m->needed[p / l->block_len], p % l->block_len, &in_scratch);
        m->scores[kept] = m->scores[i] + impact(s, plan, w, tf, docid);
        m->docids[kept++] = docid;
    }
    s->work.lookups += m->n;
    m->n = kept;
}

/* Intersects the candidates with list l. */
static gx_status intersect(gx_cpu_searcher *s, const gx_plan *plan, const gx_list *l, float w, gx_error *err)
{
    gx_cpu_pmf *m = &s->pmf;
    uint32_t n;
    double t = gx_clock_seconds();
    const uint32_t n_needed = find_blocks(m, l, plan->recursion);
    t = gx_cpu_lap(s, GX_STEP_INTERSECT, t);
    if (!reserve(&m->decoded, &m->max_decoded, (size_t)n_needed * l->block_len))
        return gx_fail(err, GX_ENOMEM, "no memory for %u decoded blocks", n_needed);
    if (!decode(s, plan, l, n_needed, &n))
        return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
    t = gx_cpu_lap(s, GX_STEP_DECOMPRESS, t);
    gx_merge_find_cpu(m->docids, m->n, m->decoded, n, plan->recursion, m->positions);
    t = gx_cpu_lap(s, GX_STEP_INTERSECT, t);
    keep_found(s, plan, l, w, n);
    gx_cpu_lap(s, GX_STEP_SCORE, t);
    return GX_OK;
}

gx_status gx_cpu_intersect(gx_cpu_searcher *s, const gx_plan *plan, gx_hits *hits, gx_error *err)
{
    gx_cpu_pmf *m = &s->pmf;
    gx_topk top = {hits->keys, plan->k, 0};
    gx_status st = GX_OK;
    hits->n = 0;
    gx_list l = gx_index_list(s->ix, plan->terms[0].list);
    if (!reserve_candidates(m, l.df))
        return gx_fail(err, GX_ENOMEM, "no memory for %u candidates", l.df);
    if (!begin(s, plan, &l))
        return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
    for (uint32_t i = 1; i < plan->n_terms && m->n && st == GX_OK; ++i) {
        l = gx_index_list(s->ix, plan->terms[i].list);
        st = intersect(s, plan, &l, plan->terms[i].w, err);
    }
    if (st != GX_OK)
        return st;
    const double t = gx_clock_seconds();
    for (uint32_t i = 0; i < m->n; ++i)
        gx_topk_push(&top, gx_key(m->scores[i], m->docids[i]));
    gx_topk_sort(&top);
    hits->n = top.n;
    gx_cpu_lap(s, GX_STEP_TOP_K, t);
    return GX_OK;
}
