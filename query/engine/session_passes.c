/* session_passes.c: plans that are run more than once. Those that need not be answered exactly: by a first pass of some
 * terms, whose candidates get the scores of all (approximate.h). And those whose score is that of a document's best
 * field: field by field. */
#include "query/engine/session_state.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/engine/masks.h"
#include "query/plan/approximate.h"
#include "query/plan/field_way.h"
#include "query/score/topk.h"

#define MAX_WAYS 64u /* plans that run field by field at a time, each with a mask perhaps */

static bool reserve_candidates(gx_session *s, size_t n)
{
    size_t max = s->max_candidates;
    if (n <= max)
        return true;
    if (!gx_reserve(&s->candidates, &max, n, sizeof *s->candidates) ||
        !gx_resize(&s->candidate_docids, max, sizeof *s->candidate_docids) ||
        !gx_resize(&s->candidate_scores, max, sizeof *s->candidate_scores))
        return false;
    s->max_candidates = max;
    return true;
}

static int by_docid(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Of the candidates the plan's k best, by the scores of all its terms. */
static gx_status choose_best(gx_session *s, const gx_plan *plan, const gx_plan *rest, const gx_hits *candidates,
                             gx_hits *hits, gx_error *err)
{
    const uint32_t n = candidates->n;
    gx_topk best = {hits->keys, plan->k, 0};
    if (s->parts)
        return gx_part_sessions_choose_best(s->parts, plan, rest, candidates, hits, err);
    if (!reserve_candidates(s, n))
        return gx_fail(err, GX_ENOMEM, "no memory for %u candidates", n);
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t key = candidates->keys[i];
        s->candidates[i] = (uint64_t)gx_key_docid(key) << 32 | gx_key_score(key);
    }
    qsort(s->candidates, n, sizeof *s->candidates, by_docid);
    for (uint32_t i = 0; i < n; ++i) {
        s->candidate_docids[i] = (uint32_t)(s->candidates[i] >> 32);
        s->candidate_scores[i] = (uint32_t)s->candidates[i];
    }
    gx_session_add_scores(s, rest, s->candidate_docids, s->candidate_scores, n);
    for (uint32_t i = 0; i < n; ++i)
        gx_topk_push(&best, gx_key(s->candidate_scores[i], s->candidate_docids[i]));
    gx_topk_sort(&best);
    hits->n = n < plan->k ? n : plan->k;
    return GX_OK;
}

/* The plans of which a first pass has found too little, by all terms. */
static gx_status run_again(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, const gx_two_passes *passes,
                           gx_error *err)
{
    gx_batch_buffer *b = &s->passes;
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (passes[i].first.k == 0 || b->hits[i].n >= plans[i].k)
            continue;
        b->plans[m] = plans[i];
        b->plans[m].approximate = 0;
        b->hits[m] = (gx_hits){hits[i].keys, 0, hits[i].highs};
        s->candidate_docids[m++] = i;
    }
    const gx_status st = m ? gx_session_run_exact(s, b->plans, m, b->hits, err) : GX_OK;
    for (uint32_t j = 0; j < m && st == GX_OK; ++j)
        hits[s->candidate_docids[j]].n = b->hits[j].n;
    return st;
}

/* First passes, and beside them the plans that have none; passes[n] are all zero. */
static gx_status run_passes(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_two_passes *passes,
                            gx_error *err)
{
    const uint32_t n_docs = s->en->ix->n_docs;
    gx_batch_buffer *b = &s->passes;
    size_t n_keys = 0;
    for (uint32_t i = 0; i < n; ++i)
        n_keys += plans[i].approximate > 0 ? gx_first_pass_k(&plans[i], n_docs) : 0;
    gx_status st = gx_batch_buffer_reserve(b, n, n_keys, err);
    if (st == GX_OK && !reserve_candidates(s, n))
        st = gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    uint64_t *keys = b->keys;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        b->plans[i] = plans[i];
        b->hits[i] = hits[i];
        if (!gx_plan_is_approximate(&plans[i]))
            continue;
        if ((st = gx_two_passes_make(&passes[i], &plans[i], n_docs, err)) != GX_OK)
            break;
        b->plans[i] = passes[i].first;
        b->hits[i] = (gx_hits){keys, 0, b->highs ? b->highs + (keys - b->keys) : NULL};
        keys += passes[i].first.k;
    }
    if (st == GX_OK)
        st = gx_session_run_exact(s, b->plans, n, b->hits, err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if (passes[i].first.k == 0)
            hits[i].n = b->hits[i].n;
        else if (b->hits[i].n >= plans[i].k)
            st = choose_best(s, &plans[i], &passes[i].rest, &b->hits[i], &hits[i], err);
    }
    return st == GX_OK ? run_again(s, plans, n, hits, passes, err) : st;
}

gx_status gx_session_run_any(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_status st = GX_OK;
    bool approximate = false;
    for (uint32_t i = 0; i < n && !gx_view_is_best(s->en->ix); ++i)
        approximate = approximate || gx_plan_is_approximate(&plans[i]);
    if (!approximate)
        return gx_session_run_exact(s, plans, n, hits, err);
    for (uint32_t begin = 0, end; begin < n && st == GX_OK; begin = end) {
        size_t n_keys = 0;
        for (end = begin; end < n && (end == begin || n_keys < GX_SLICE_KEYS); ++end)
            n_keys += gx_first_pass_k(&plans[end], s->en->ix->n_docs);
        gx_two_passes *passes = calloc(end - begin, sizeof *passes);
        st = passes ? run_passes(s, plans + begin, end - begin, hits + begin, passes, err)
                    : gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
        for (uint32_t i = 0; passes && i < end - begin; ++i)
            gx_two_passes_free(&passes[i]);
        free(passes);
    }
    return st;
}

/* ---- the best field ----
 *
 * Plans on a view of fields whose score is that of a document's best field (field_way.h), on a file: each field finds
 * the k best by its lists alone, of the documents that match, and of its scores a document has the greatest. A document
 * that is among the k best is so in the field that gives it its score: whoever is before it there is before it in the
 * whole. */

/* Plans under way. */
typedef struct ways {
    gx_plan plans[MAX_WAYS], way[MAX_WAYS]; /* what matches; those of the field at hand */
    gx_hits found[MAX_WAYS];
    gx_mask *masks[MAX_WAYS];
    gx_plan_term *terms;
    uint64_t *keys, *merged; /* [as many as the plans want]; [the most that one wants] */
    uint32_t *seen, n_seen;  /* [n_seen] docids + 1 by hash, a power of two above twice the keys of one */
} ways;

static void free_ways(ways *w)
{
    for (uint32_t i = 0; w && i < MAX_WAYS; ++i)
        gx_mask_close(w->masks[i]);
    if (w) {
        free(w->terms);
        free(w->keys);
        free(w->merged);
        free(w->seen);
    }
    free(w);
}

static ways *open_ways(const gx_plan *plans, uint32_t n)
{
    size_t n_terms = 1, n_keys = 1, most = 1;
    for (uint32_t i = 0; i < n; ++i) {
        n_terms += plans[i].n_terms;
        n_keys += plans[i].k;
        most = plans[i].k > most ? plans[i].k : most;
    }
    ways *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    for (w->n_seen = 8; w->n_seen < 4 * most && w->n_seen < 1u << 31; w->n_seen *= 2)
        ;
    w->terms = malloc(n_terms * sizeof *w->terms);
    w->keys = malloc(n_keys * sizeof *w->keys);
    w->merged = malloc(most * sizeof *w->merged);
    w->seen = malloc(w->n_seen * sizeof *w->seen);
    if (w->terms && w->keys && w->merged && w->seen)
        return w;
    free_ways(w);
    return NULL;
}

/* What matches an AND is no matter of one field: it becomes a mask. */
static gx_status give_mask(gx_session *s, gx_plan *plan, gx_mask **mask, gx_error *err)
{
    uint64_t n, *words = calloc(gx_index_n_words(s->en->ix) + 1, sizeof *words);
    gx_status st = words ? gx_session_match(s, plan, words, &n, err)
                         : gx_fail(err, GX_ENOMEM, "no memory for the documents that match a query");
    if (st == GX_OK)
        st = gx_mask_open(mask, s->en, words, err);
    free(words);
    plan->mask = *mask;
    plan->filter = NULL;
    plan->filter_mask = NULL;
    plan->initial_threshold = plan->op == GX_OP_AND_OR ? 0 : plan->initial_threshold;
    return st;
}

/* Whether the docid is new; now it is not. */
static bool see(ways *w, uint32_t docid)
{
    for (uint32_t at = docid * 0x9e3779b1u;; ++at) {
        uint32_t *slot = &w->seen[at & (w->n_seen - 1)];
        if (*slot == docid + 1)
            return false;
        if (*slot == 0) {
            *slot = docid + 1;
            return true;
        }
    }
}

/* Of what is there and what a field has found, both best first, the k best. */
static void merge(ways *w, const gx_hits *found, uint32_t k, gx_hits *hits)
{
    uint32_t i = 0, j = 0, n = 0;
    if (hits->n == 0 || found->n == 0) {
        if (found->n)
            memcpy(hits->keys, found->keys, found->n * sizeof *hits->keys);
        hits->n += found->n;
        return;
    }
    memset(w->seen, 0, w->n_seen * sizeof *w->seen);
    while (n < k && (i < hits->n || j < found->n)) {
        const bool first = j == found->n || (i < hits->n && hits->keys[i] >= found->keys[j]);
        const uint64_t key = first ? hits->keys[i++] : found->keys[j++];
        if (see(w, gx_key_docid(key)))
            w->merged[n++] = key;
    }
    memcpy(hits->keys, w->merged, n * sizeof *hits->keys);
    hits->n = n;
}

static gx_status run_field(gx_session *s, ways *w, uint32_t field, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_plan_term *terms = w->terms;
    uint64_t *keys = w->keys;
    uint32_t at[MAX_WAYS], m = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_plan *plan = &w->plans[i];
        gx_plan way = gx_plan_way(plan, s->en->ix, field, terms);
        if (way.n_terms == 0)
            continue;
        if (hits[i].n == plan->k && gx_key_score(hits[i].keys[plan->k - 1]) > way.initial_threshold)
            way.initial_threshold = gx_key_score(hits[i].keys[plan->k - 1]);
        w->way[m] = way;
        w->found[m] = (gx_hits){keys, 0, NULL};
        at[m++] = i;
        terms += plan->n_terms;
        keys += plan->k;
    }
    const gx_status st = m ? gx_session_run_exact(s, w->way, m, w->found, err) : GX_OK;
    for (uint32_t j = 0; j < m && st == GX_OK; ++j)
        merge(w, &w->found[j], w->plans[at[j]].k, &hits[at[j]]);
    return st;
}

static gx_status run_slice(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    ways *w = open_ways(plans, n);
    gx_status st = w ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        hits[i].n = 0;
        w->plans[i] = plans[i];
        if (plans[i].op != GX_OP_OR && plans[i].n_terms)
            st = give_mask(s, &w->plans[i], &w->masks[i], err);
    }
    for (uint32_t f = 0; f < s->en->ix->fields->n && st == GX_OK; ++f)
        st = run_field(s, w, f, n, hits, err);
    free_ways(w);
    return st;
}

gx_status gx_session_run_best_field(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t begin = 0, m; begin < n && st == GX_OK; begin += m) {
        size_t n_keys = plans[begin].k;
        for (m = 1; begin + m < n && m < MAX_WAYS && n_keys < GX_SLICE_KEYS; ++m)
            n_keys += plans[begin + m].k;
        st = run_slice(s, plans + begin, m, hits + begin, err);
    }
    return st;
}
