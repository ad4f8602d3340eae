/* daat.c: document at a time, which Ding, He, Yan and Suel (WWW 2009, section 2) measure their GPU against, on one CPU
 * core. Each list has a pointer, which forward seeks advance: over whole blocks by their heads, then within a block.
 * Only the block at the pointer is decoded; tfs are where a document is scored.
 *
 *   AND   docid = the shortest list's next
 *         seek it in the next list, the one after it, ..
 *         found in all: add the impacts up     found beyond: docid = the shortest list's first from there on
 *   OR    docid = the least at a pointer; add the impacts of the lists that stand at it, and move these on
 */
#include <stdlib.h>

#include "engine/clock.h"
#include "engine/status.h"
#include "query/cpu/search.h"
#include "query/filter/mask.h"
#include "query/score/topk.h"

#define CANCEL_EVERY 256u /* decoded blocks */
#define TIMED_EVERY 16u   /* of the blocks, one in so many is timed: two looks at the clock take a third of a block */
#define END UINT32_MAX    /* behind the last document */

struct gx_cpu_pointer {
    gx_list list;
    float w;
    uint32_t docid; /* where it stands, or END */
    uint32_t block, n, at;
    uint32_t tf_block; /* whose tfs are in tfs; UINT32_MAX: none */
    _Alignas(64) uint32_t docids[GX_MAX_BLOCK + 64];
    uint32_t tfs[GX_MAX_BLOCK + 64];
};
typedef struct gx_cpu_pointer pointer;

void gx_cpu_daat_free(gx_cpu_daat *d)
{
    free(d->pointers);
}

static bool reserve(gx_cpu_daat *d, uint32_t n)
{
    if (n <= d->max_pointers)
        return true;
    free(d->pointers);
    d->pointers = aligned_alloc(64, n * sizeof *d->pointers);
    d->max_pointers = d->pointers ? n : 0;
    return d->pointers;
}

/* ---- pointers ---- */

static void open_block(gx_cpu_searcher *s, pointer *p, uint32_t block)
{
    const bool timed = s->work.blocks_decoded % TIMED_EVERY == 0;
    const double begin = timed ? gx_clock_seconds() : 0;
    gx_cpu_decode_docids(s->kernels, &p->list, block, p->docids);
    if (timed)
        s->work.steps[GX_STEP_DECOMPRESS] += TIMED_EVERY * (gx_clock_seconds() - begin);
    s->work.blocks_decoded += 1;
    p->block = block;
    p->n = gx_list_block_n(&p->list, block);
    p->at = 0;
}

/* The last block from p->block on whose head is at most docid; p->block if none of the later ones is. */
static uint32_t find_block(const pointer *p, uint32_t docid)
{
    const uint32_t *heads = p->list.heads, n = p->list.n_blocks;
    uint32_t step = 1, low = p->block;
    while (step < n - low && heads[low + step] <= docid) {
        low += step;
        step *= 2;
    }
    uint32_t high = step < n - low ? low + step : n; /* heads[high] is greater, or it is the end */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        *(heads[middle] <= docid ? &low : &high) = middle;
    }
    return low;
}

/* Move to the first docid from `docid` on, which is not before the pointer. In a damaged list it may be another one,
 * but never one before. */
static uint32_t seek(gx_cpu_searcher *s, pointer *p, uint32_t docid)
{
    if (p->docid >= docid)
        return p->docid;
    const uint32_t block = find_block(p, docid);
    if (block != p->block)
        open_block(s, p, block);
    for (;;) {
        while (p->at < p->n && p->docids[p->at] < docid)
            ++p->at;
        if (p->at < p->n)
            return p->docid = p->docids[p->at];
        if (p->block + 1 == p->list.n_blocks)
            return p->docid = END;
        open_block(s, p, p->block + 1);
    }
}

static bool open_pointers(gx_cpu_searcher *s, const gx_plan *plan)
{
    if (!reserve(&s->daat, plan->n_terms))
        return false;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        pointer *p = &s->daat.pointers[i];
        p->list = gx_index_list(s->ix, plan->terms[i].list);
        p->w = plan->terms[i].w;
        p->tf_block = UINT32_MAX;
        open_block(s, p, 0);
        p->docid = p->docids[0];
    }
    return true;
}

static uint32_t impact(const gx_cpu_searcher *s, const gx_plan *plan, pointer *p)
{
    const gx_list *l = &p->list;
    uint32_t tf;
    if (p->tf_block == p->block) {
        tf = p->tfs[p->at];
    } else if (plan->op == GX_OP_AND && l->tfs->random_access) {
        const uint32_t j = p->block, begin = j ? l->tf_ends[j - 1] : l->docid_ends[l->n_blocks - 1];
        tf = l->tfs->at(l->payload + begin, l->tf_ends[j] - begin, p->n, l->tf_param, p->at) + 1;
    } else {
        gx_list_decode_tfs(l, p->block, p->tfs);
        p->tf_block = p->block;
        tf = p->tfs[p->at];
    }
    return gx_bm25_impact(p->w, tf, gx_bm25_K(plan->norm, s->ix->doc_lens[p->docid]));
}

/* ---- searches ---- */

static bool is_wanted(const gx_cpu_searcher *s, const gx_plan *plan, uint32_t docid)
{
    return docid < s->ix->n_docs && (!plan->mask || gx_mask_has(plan->mask, docid));
}

/* Whether to go on, asked once for some blocks. */
static bool is_cancelled(const gx_cpu_searcher *s, const gx_plan *plan, uint64_t *asked)
{
    if (!plan->cancel || s->work.blocks_decoded < *asked)
        return false;
    *asked = s->work.blocks_decoded + CANCEL_EVERY;
    return plan->cancel(plan->user);
}

/* False: cancelled. */
static bool intersect(gx_cpu_searcher *s, const gx_plan *plan, gx_topk *top)
{
    pointer *const p = s->daat.pointers;
    uint64_t asked = s->work.blocks_decoded;
    uint32_t docid = p[0].docid;
    while (docid != END) {
        uint32_t i = 1, next = docid + 1;
        if (is_cancelled(s, plan, &asked))
            return false;
        for (; i < plan->n_terms; ++i) {
            const uint32_t found = seek(s, &p[i], docid);
            s->work.lookups += 1;
            if (found != docid) {
                next = found;
                break;
            }
        }
        if (i == plan->n_terms && is_wanted(s, plan, docid)) {
            uint32_t score = 0;
            for (i = 0; i < plan->n_terms; ++i)
                score += impact(s, plan, &p[i]);
            gx_topk_push(top, gx_key(score, docid));
        }
        docid = next == END ? END : seek(s, &p[0], next);
    }
    return true;
}

static bool unite(gx_cpu_searcher *s, const gx_plan *plan, gx_topk *top)
{
    pointer *const p = s->daat.pointers;
    uint64_t asked = s->work.blocks_decoded;
    for (;;) {
        uint32_t docid = END, score = 0;
        if (is_cancelled(s, plan, &asked))
            return false;
        for (uint32_t i = 0; i < plan->n_terms; ++i)
            docid = p[i].docid < docid ? p[i].docid : docid;
        if (docid == END)
            return true;
        const bool wanted = is_wanted(s, plan, docid);
        for (uint32_t i = 0; i < plan->n_terms; ++i) {
            if (p[i].docid != docid)
                continue;
            score += wanted ? impact(s, plan, &p[i]) : 0;
            seek(s, &p[i], docid + 1);
        }
        if (wanted)
            gx_topk_push(top, gx_key(score, docid));
    }
}

gx_status gx_cpu_document_at_a_time(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, gx_hits *hits, gx_error *err)
{
    gx_topk top = {hits->keys, plan->k, 0};
    gx_plan of_op = *plan;
    const double begin = gx_clock_seconds(), decompressed = s->work.steps[GX_STEP_DECOMPRESS];
    of_op.op = op;
    hits->n = 0;
    if (!open_pointers(s, &of_op))
        return gx_fail(err, GX_ENOMEM, "no memory for %u pointers", plan->n_terms);
    if (!(op == GX_OP_AND ? intersect : unite)(s, &of_op, &top))
        return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
    const double t = gx_clock_seconds();
    double *const decoding = &s->work.steps[GX_STEP_DECOMPRESS];
    if (*decoding - decompressed > t - begin) /* of a few blocks the one that was timed may have been a slow one */
        *decoding = decompressed + (t - begin);
    s->work.steps[op == GX_OP_AND ? GX_STEP_INTERSECT : GX_STEP_SCORE] += t - begin - (*decoding - decompressed);
    gx_topk_sort(&top);
    hits->n = top.n;
    gx_cpu_lap(s, GX_STEP_TOP_K, t);
    return GX_OK;
}
