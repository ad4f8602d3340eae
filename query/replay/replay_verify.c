/* replay_verify.c: the answers of a replay are compared with those of another engine, and with those that
 * the exhaustive search finds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/engine/masks.h"
#include "query/exec/wide_hits.h"
#include "query/plan/approximate.h"
#include "query/replay/replay_state.h"

#define MAX_SHOWN_DIFFERENCES 5

/* Set the plans' masks for an engine. If a boolean query has a mask of its own, masks[i] receives a
 * copy of it on the other engine, which the caller closes; else masks[i] stays NULL. */
static bool set_masks(gx_replay_worker *w, gx_engine *en, gx_mask **masks)
{
    const gx_replay_options *opt = w->r->opt;
    gx_error err = {0};
    for (uint32_t i = 0; i < w->n; ++i) {
        gx_plan *p = &w->plans[i];
        p->mask = p->own_mask ? p->own_mask : en == opt->other ? opt->other_mask : opt->query.mask;
        if (p->own_mask && en == opt->other) {
            const gx_status st = gx_mask_copy(&masks[i], en, p->own_mask, &err);
            if (st != GX_OK)
                return gx_replay_fail(w->r, st, &err);
            p->mask = masks[i];
        }
    }
    return true;
}

static bool is_same(const gx_hits *a, uint32_t i, const gx_hits *b, uint32_t j)
{
    return a->keys[i] == b->keys[j] && gx_hits_docid(a, i) == gx_hits_docid(b, j);
}

static void show_difference(gx_replay_worker *w, uint32_t i, const char *how)
{
    gx_replay_pass *r = w->r;
    const gx_hits *a = &w->hits[i], *b = &w->again[i];
    const gx_replay_query *q = &w->queries[i];
    char text[400];
    uint32_t rank = 0;
    while (rank < a->n && rank < b->n && is_same(a, rank, b, rank))
        ++rank;
    int n = snprintf(text, sizeof text, "query %.*s (line %" PRIu64 ") differs %s: %u results and %u", (int)q->id_len,
                     w->bytes + q->id, q->line, how, a->n, b->n);
    if (rank < a->n && rank < b->n)
        snprintf(text + n, sizeof text - (size_t)n,
                 "; at rank %u docid %" PRIu64 ", score %u and docid %" PRIu64 ", score %u", rank + 1,
                 gx_hits_docid(a, rank), gx_key_score(a->keys[rank]), gx_hits_docid(b, rank),
                 gx_key_score(b->keys[rank]));
    pthread_mutex_lock(&r->lock);
    const bool shown = r->n_shown++ < MAX_SHOWN_DIFFERENCES;
    pthread_mutex_unlock(&r->lock);
    if (shown)
        gx_replay_say(r, text);
}

static bool is_equal(gx_replay_worker *w, const gx_hits *a, const gx_hits *b)
{
    (void)w;
    return a->n == b->n && memcmp(a->keys, b->keys, a->n * sizeof *a->keys) == 0 &&
           (!a->highs || memcmp(a->highs, b->highs, a->n * sizeof *a->highs) == 0);
}

/* Whether `a` has as many results as the exact answer b (within a budget of blocks, no more), and each is in b or
 * behind it. Counts those that are as good as b's. */
static bool is_approximate(gx_replay_worker *w, const gx_hits *a, const gx_hits *b)
{
    const bool budget = w->r->opt->query.block_budget > 0;
    bool good = a->n == b->n || (budget && a->n < b->n);
    w->exact_results += b->n;
    for (uint32_t i = 0, j = 0; i < a->n && b->n; ++i) {
        const uint32_t last = b->n - 1;
        while (j < b->n && gx_hits_better(b, j, a, i))
            ++j;
        good = good && (gx_hits_better(b, last, a, i) || (j < b->n && is_same(b, j, a, i)));
        w->found_results += gx_key_score(a->keys[i]) >= gx_key_score(b->keys[last]);
    }
    return good;
}

/* Answer the batch again in a session of engine en, and compare the answers. */
static bool compare(gx_replay_worker *w, gx_session *session, gx_engine *en, const char *how,
                    bool (*agree)(gx_replay_worker *, const gx_hits *, const gx_hits *), uint64_t *differ)
{
    gx_error err = {0};
    gx_mask **masks = calloc(w->n + 1ull, sizeof *masks);
    if (!masks)
        return gx_replay_fail(w->r, gx_fail(&err, GX_ENOMEM, "no memory to verify %u queries", w->n), &err);
    const bool good = set_masks(w, en, masks) && gx_replay_search(w, session, w->again, w->keys_again, w->highs_again);
    for (uint32_t i = 0; i < w->n; ++i)
        gx_mask_close(masks[i]);
    free(masks);
    for (uint32_t i = 0; good && i < w->n; ++i) {
        if (!agree(w, &w->hits[i], &w->again[i])) {
            ++*differ;
            show_difference(w, i, how);
        }
    }
    return good;
}

bool gx_replay_verify(gx_replay_worker *w)
{
    if (!gx_replay_plan(w, w->session, w->r->en))
        return false;
    bool good =
        w->r->service ? gx_replay_search_by_service(w) : gx_replay_search(w, w->session, w->hits, w->keys, w->highs);
    if (good && w->other && w->r->opt->rm3) { /* the other engine finds its own feedback documents */
        gx_replay_free_plans(w);
        if (!gx_replay_plan(w, w->other, w->r->opt->other))
            return false;
    }
    if (good && w->other)
        good = compare(w, w->other, w->r->opt->other, "on the other engine", is_equal, &w->other_differs);
    for (uint32_t i = 0; i < w->n; ++i)
        w->plans[i].prune = false;
    good = good &&
           compare(w, w->exhaustive, w->exhaustive_on, "when every posting is scored",
                   gx_query_options_are_exact(&w->r->opt->query) ? is_equal : is_approximate, &w->exhaustive_differs);
    w->verified += w->n;
    gx_replay_free_plans(w);
    return good && gx_replay_deliver(w);
}
