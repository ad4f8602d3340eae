/* part_hits.c: what parts, and shards, have found becomes what the collection has found. */
#include "query/engine/part_state.h"

#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/plan/approximate.h"
#include "query/plan/phrases.h"

/* The docids of a part's keys become those of the collection, which is not wide. That keeps their order. */
static void rebase(const gx_part *part, uint64_t *keys, uint32_t n)
{
    const uint32_t base = (uint32_t)part->base;
    for (uint32_t i = 0; i < n; ++i)
        keys[i] = gx_key(gx_key_score(keys[i]), base + gx_deletes_rank(part->deletes, gx_key_docid(keys[i])));
}

/* Of hits->keys and more[n], both falling, keep the k greatest in hits->keys[k]. */
static void merge(gx_hits *hits, uint32_t k, const uint64_t *more, uint32_t n)
{
    uint32_t a = 0, b = 0;
    while (a + b < k && (a < hits->n || b < n)) { /* how many of each are kept */
        if (b == n || (a < hits->n && hits->keys[a] > more[b]))
            ++a;
        else
            ++b;
    }
    hits->n = a + b;
    while (b) { /* from the end, where nothing is overwritten that is still needed */
        const uint32_t at = a + b - 1;
        if (a && hits->keys[a - 1] < more[b - 1])
            hits->keys[at] = hits->keys[--a];
        else
            hits->keys[at] = more[--b];
    }
}

void gx_part_hits_take(const gx_part *part, gx_hits *hits, uint32_t k, gx_hits *found)
{
    if (hits->highs)
        gx_wide_rebase(part, found);
    else
        rebase(part, found->keys, found->n);
    if (found->keys == hits->keys)
        hits->n = found->n;
    else if (hits->highs)
        gx_wide_merge(hits, k, found);
    else
        merge(hits, k, found->keys, found->n);
}

/* Room for what shards exchange of n queries of up to n_keys keys together. */
static bool reserve_exchange(gx_part_sessions *s, uint32_t n, size_t n_keys)
{
    return gx_reserve(&s->keys, &s->max_keys, n_keys + 1, sizeof *s->keys) &&
           gx_reserve(&s->counts, &s->max_counts, 2ull * n + 1, sizeof *s->counts) &&
           (!s->batch.wide || gx_reserve(&s->highs, &s->max_highs, n_keys + 1, sizeof *s->highs));
}

static void copy_hits(gx_hits *to, const gx_hits *from)
{
    to->n = from->n;
    memcpy(to->keys, from->keys, from->n * sizeof *to->keys);
    if (to->highs)
        memcpy(to->highs, from->highs, from->n * sizeof *to->highs);
}

gx_status gx_part_sessions_exchange(gx_part_sessions *s, const gx_plan *plans, gx_part_plans *const *instead,
                                    uint32_t n, gx_hits *hits, gx_error *err)
{
    uint32_t m = 0;
    size_t n_keys = 0;
    for (uint32_t i = 0; i < n; ++i)
        n_keys += plans[i].k;
    if (!reserve_exchange(s, n, n_keys))
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    uint32_t *const n_of = s->counts, *const ks = s->counts + n, *const highs = s->batch.wide ? s->highs : NULL;
    n_keys = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (!(instead ? instead[i] : plans[i].parts))
            continue;
        gx_hits own = {s->keys + n_keys, 0, highs ? highs + n_keys : NULL};
        copy_hits(&own, &hits[i]);
        n_of[m] = own.n;
        ks[m++] = plans[i].k;
        n_keys += plans[i].k;
    }
    const gx_status st = s->e->shard->exchange(s->e->shard->user, s->keys, highs, n_of, ks, m, err);
    m = 0;
    n_keys = 0;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if (!(instead ? instead[i] : plans[i].parts))
            continue;
        const gx_hits all = {s->keys + n_keys, n_of[m++], highs ? highs + n_keys : NULL};
        copy_hits(&hits[i], &all);
        n_keys += plans[i].k;
    }
    return st;
}

gx_status gx_part_sessions_add_scores(gx_part_sessions *s, const gx_plan *rest, gx_candidate *c, uint32_t n,
                                      gx_error *err)
{
    const gx_parts *parts = s->e->ix->parts;
    uint32_t local[256], scores[256];
    gx_status st = GX_OK;
    for (uint32_t i = 0, m; i < n && st == GX_OK; i += m) {
        const gx_part *part = gx_parts_find(parts, c[i].docid, &local[0]);
        const uint32_t number = (uint32_t)(part - parts->parts);
        scores[0] = c[i].score;
        for (m = 1; i + m < n && m < sizeof local / sizeof *local; ++m) {
            if (gx_parts_find(parts, c[i + m].docid, &local[m]) != part)
                break;
            scores[m] = c[i + m].score;
        }
        gx_session *session = s->sessions[number]; /* NULL: another process searches the part */
        const gx_plan *plan = rest->parts ? &rest->parts->plans[number] : rest;
        if (session)
            gx_session_add_scores(session, plan, local, scores, m);
        else
            gx_add_scores(part->ix, plan, local, scores, m);
        st = gx_phrases_add_scores(part->ix, plan, local, scores, m, err);
        for (uint32_t j = 0; j < m; ++j)
            c[i + j].score = scores[j];
    }
    return st;
}

gx_status gx_part_sessions_choose_best(gx_part_sessions *s, const gx_plan *plan, const gx_plan *rest,
                                       const gx_hits *candidates, gx_hits *hits, gx_error *err)
{
    const uint32_t n = candidates->n;
    if (!gx_reserve(&s->candidates, &s->max_candidates, n, sizeof *s->candidates))
        return gx_fail(err, GX_ENOMEM, "no memory for %u candidates", n);
    gx_candidates_take(s->candidates, candidates);
    const gx_status st = gx_part_sessions_add_scores(s, rest, s->candidates, n, err);
    gx_candidates_choose(s->candidates, n, plan->k, hits);
    return st;
}
