/* session_phrases.c: plans with phrases, on a file. An engine that takes programs answers most of them
 * (query/exec/programs.h). Of the others the host finds the matches of phrases, beside every engine.
 *
 *   AND   documents that hold all words and match all phrases are sought, and scored as they are found
 *   OR    the engine finds the k best by the words alone; documents that match a phrase are found, and get the scores
 *         of the words too. The k best of both are the answer: a document that matches no phrase and is not among the
 *         k best by words has k better ones. Phrases of the query's own words, as pairs are, add a bounded share of
 *         what these do: more documents than k are found by words, until no other one can be among the k best
 */
#include "query/engine/session_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/exec/programs.h"
#include "query/plan/phrases.h"
#include "query/score/topk.h"

#define SLICE 256u /* documents that get the words' scores at a time */

/* ---- AND, and one phrase alone ---- */

typedef struct best_found {
    gx_topk top;
    uint32_t threshold;
} best_found;

/* Documents come by rising docid: of equal scores the first ones stay. */
static bool take_best(void *user, const gx_found *f)
{
    best_found *b = user;
    for (uint32_t i = 0; i < f->n; ++i) {
        if (f->scores[i] >= b->threshold)
            gx_topk_push(&b->top, gx_key(f->scores[i], f->docids[i]));
        if (b->top.n == b->top.k && gx_key_score(b->top.keys[0]) >= b->threshold)
            b->threshold = gx_key_score(b->top.keys[0]) + 1;
    }
    return true;
}

static gx_status seek_best(gx_session *s, const gx_plan *plan, gx_hits *hits, gx_error *err)
{
    gx_sought_word words[GX_MAX_TERMS];
    best_found best = {{hits->keys, plan->k, 0}, plan->initial_threshold};
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        words[i] = (gx_sought_word){plan->terms[i].list, plan->terms[i].w};
    const gx_seek seek = {.ix = s->en->ix,
                          .words = words,
                          .n_words = plan->n_terms,
                          .phrases = plan->phrases->phrases,
                          .n_phrases = plan->n_phrases,
                          .mask = plan->mask,
                          .filter = plan->filter,
                          .scores = true,
                          .norm = plan->norm,
                          .threshold = plan->prune ? &best.threshold : NULL,
                          .take = take_best,
                          .user = &best,
                          .cancel = plan->cancel,
                          .cancel_user = plan->user};
    const gx_status st = gx_seek_run(&seek, err);
    gx_topk_sort(&best.top);
    hits->n = st == GX_OK ? best.top.n : 0;
    return st;
}

/* ---- OR ---- */

/* The matches of phrases: docid << 32 | score. */
typedef struct matches {
    uint64_t *found;
    size_t max;
    uint32_t n, n_before; /* all, and those of earlier phrases */
    uint32_t threshold;   /* of the phrase under way */
    bool failed;
} matches;

static bool take_match(void *user, const gx_found *f)
{
    matches *m = user;
    m->failed = !gx_reserve(&m->found, &m->max, m->n + (size_t)f->n + 1, sizeof *m->found);
    for (uint32_t i = 0; i < f->n && !m->failed; ++i)
        m->found[m->n++] = (uint64_t)f->docids[i] << 32 | f->scores[i];
    return !m->failed;
}

static int by_docid(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Add up what the phrases add to a document. */
static void join_matches(matches *m, uint32_t n_phrases)
{
    uint32_t kept = 0;
    if (n_phrases < 2 || m->n == 0)
        return;
    qsort(m->found, m->n, sizeof *m->found, by_docid);
    for (uint32_t i = 0; i < m->n; ++i) {
        if (kept && m->found[kept - 1] >> 32 == m->found[i] >> 32)
            m->found[kept - 1] += (uint32_t)m->found[i];
        else
            m->found[kept++] = m->found[i];
    }
    m->n = kept;
}

/* The most that the plan's words and other phrases than this one can add. */
static double most_of_others(const gx_plan *plan, uint32_t phrase)
{
    double most = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        most += ceil(plan->terms[i].w) + 1;
    for (uint32_t i = 0; i < plan->n_phrases; ++i)
        most += i == phrase ? 0 : ceil(plan->phrases->phrases[i].w) + 1;
    return most;
}

static gx_status find_matches(gx_session *s, const gx_plan *plan, uint32_t threshold, matches *m, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < plan->n_phrases && st == GX_OK; ++i) {
        const double others = most_of_others(plan, i);
        m->threshold = threshold > others ? threshold - (uint32_t)others : 0;
        const gx_seek seek = {.ix = s->en->ix,
                              .phrases = &plan->phrases->phrases[i],
                              .n_phrases = 1,
                              .mask = plan->mask,
                              .filter = plan->filter,
                              .scores = true,
                              .norm = plan->norm,
                              .threshold = &m->threshold,
                              .take = take_match,
                              .user = m,
                              .cancel = plan->cancel,
                              .cancel_user = plan->user};
        st = gx_seek_run(&seek, err);
        if (st == GX_OK && m->failed)
            st = gx_fail(err, GX_ENOMEM, "no memory for the matches of a phrase");
    }
    join_matches(m, plan->n_phrases);
    return st;
}

/* Add the words' scores to n documents with these scores. */
static void add_words(gx_session *s, const gx_plan *words, const uint32_t *docids, uint32_t *scores, uint32_t n,
                      gx_topk *top)
{
    if (words->n_terms)
        gx_session_add_scores(s, words, docids, scores, n);
    for (uint32_t i = 0; i < n; ++i)
        gx_topk_push(top, gx_key(scores[i], docids[i]));
}

static bool has_match(const matches *m, uint32_t docid)
{
    uint32_t lo = 0, hi = m->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (m->found[mid] >> 32 < docid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < m->n && m->found[lo] >> 32 == docid;
}

/* The best of what the words and the phrases have found. */
static void choose_best(gx_session *s, const gx_plan *plan, const gx_plan *words, const matches *m,
                        const gx_hits *by_words, gx_hits *hits)
{
    gx_topk top = {hits->keys, plan->k, 0};
    const double others = most_of_others(words, UINT32_MAX);
    uint32_t docids[SLICE], scores[SLICE], n = 0;
    for (uint32_t i = 0; i < by_words->n; ++i)
        if (!has_match(m, gx_key_docid(by_words->keys[i])))
            gx_topk_push(&top, by_words->keys[i]);
    for (uint32_t i = 0; i < m->n; ++i) {
        uint32_t least = gx_key_score(gx_topk_threshold(&top));
        least = least > plan->initial_threshold ? least : plan->initial_threshold;
        if ((uint32_t)m->found[i] + others < least)
            continue;
        docids[n] = (uint32_t)(m->found[i] >> 32);
        scores[n++] = (uint32_t)m->found[i];
        if (n == SLICE) {
            add_words(s, words, docids, scores, n, &top);
            n = 0;
        }
    }
    add_words(s, words, docids, scores, n, &top);
    gx_topk_sort(&top);
    hits->n = top.n;
}

/* What the engine finds by the words. The k best by words bound those of the answer from below. */
static gx_status run_words(gx_session *s, const gx_plan *words, gx_hits *by_words, uint32_t *threshold, gx_error *err)
{
    *threshold = words->initial_threshold;
    if (words->n_terms == 0)
        return GX_OK;
    if (!(by_words->keys = malloc(words->k * sizeof *by_words->keys)))
        return gx_fail(err, GX_ENOMEM, "no memory for %u results", words->k);
    const gx_status st = gx_session_run_exact(s, words, 1, by_words, err);
    if (st == GX_OK && by_words->n == words->k && gx_key_score(by_words->keys[words->k - 1]) > *threshold)
        *threshold = gx_key_score(by_words->keys[words->k - 1]);
    return st;
}

/* ---- OR with phrases of the plan's own words: pairs of a query that has the words, too ---- */

#define FIRST_TRY 20u /* times k documents are found by words first, */
#define NEXT_TRY 10u  /* then so many times as many, */
#define MOST_TRIED 8u /* up to one document in so many */

/* A document whose words add s gets at most so many times s of the phrases. With x / (x + K) for the share of its
 * weight that a word adds, a phrase in a row adds at most the least share of its words, and so any mean of them; other
 * ones, whose tf may be the sum of their words', at most the sum. INFINITY: a word of a phrase is none of the plan's.
 */
static double most_by_words(const gx_plan *plan)
{
    double most = 0;
    for (uint32_t t = 0; t < plan->n_terms; ++t) {
        double share = 0;
        for (uint32_t i = 0; i < plan->n_phrases; ++i) {
            const gx_sought_phrase *p = &plan->phrases->phrases[i];
            uint32_t n_here = 0;
            double sum = 0;
            for (uint32_t w = 0; w < p->phrase.n; ++w) {
                uint32_t of = 0;
                while (of < plan->n_terms && plan->terms[of].list != p->phrase.words[w].list)
                    ++of;
                if (of == plan->n_terms || !(plan->terms[of].w > 0))
                    return INFINITY;
                n_here += of == t;
                sum += plan->terms[of].w;
            }
            const bool in_a_row = p->phrase.kind == GX_PHRASE_WORDS && p->phrase.slop == 0;
            share += n_here * (double)p->w / (in_a_row ? sum : plan->terms[t].w);
        }
        most = share > most ? share : most;
    }
    return most;
}

/* Find the k best of these documents, by words and phrases. */
static gx_status rank_found(gx_session *s, const gx_plan *plan, const gx_hits *found, gx_hits *hits, gx_error *err)
{
    const uint32_t n = found->n;
    gx_topk top = {hits->keys, plan->k, 0};
    uint64_t *all = malloc((n + 1ull) * 2 * sizeof *all);
    if (!all)
        return gx_fail(err, GX_ENOMEM, "no memory for %u results", n);
    uint32_t *docids = (uint32_t *)(all + n), *scores = docids + n;
    for (uint32_t i = 0; i < n; ++i)
        all[i] = (uint64_t)gx_key_docid(found->keys[i]) << 32 | gx_key_score(found->keys[i]);
    if (n)
        qsort(all, n, sizeof *all, by_docid);
    for (uint32_t i = 0; i < n; ++i) {
        docids[i] = (uint32_t)(all[i] >> 32);
        scores[i] = (uint32_t)all[i];
    }
    const gx_status st = gx_phrases_add_scores(s->en->ix, plan, docids, scores, n, err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        if (scores[i] >= plan->initial_threshold)
            gx_topk_push(&top, gx_key(scores[i], docids[i]));
    gx_topk_sort(&top);
    hits->n = top.n;
    free(all);
    return st;
}

/* Find more documents by words, until no other one can be among the k best. *done: the answer is found. */
static gx_status run_by_words(gx_session *s, const gx_plan *plan, gx_hits *hits, bool *done, gx_error *err)
{
    const double share = plan->prune && plan->n_terms && plan->n_phrases > 1 ? most_by_words(plan) : INFINITY;
    gx_plan words = *plan;
    gx_status st = GX_OK;
    words.op = GX_OP_OR;
    words.n_phrases = 0;
    words.phrases = NULL;
    words.fill = false;
    words.initial_threshold = 0;
    for (uint64_t k = (uint64_t)plan->k * FIRST_TRY; share <= 2 && !*done && st == GX_OK; k *= NEXT_TRY) {
        if (k > s->en->ix->n_docs / MOST_TRIED && k > plan->k * (uint64_t)FIRST_TRY)
            break;
        words.k = k < s->en->ix->n_docs ? (uint32_t)k : s->en->ix->n_docs;
        gx_hits found = {0};
        uint32_t threshold;
        st = run_words(s, &words, &found, &threshold, err);
        if (st == GX_OK)
            st = rank_found(s, plan, &found, hits, err);
        if (st == GX_OK) {
            const double last = found.n ? gx_key_score(found.keys[found.n - 1]) : 0,
                         most = last + share * (last + plan->n_terms + 1) * (1 + 1e-5) + 2.0 * plan->n_phrases + 2;
            uint32_t least = hits->n == plan->k ? gx_key_score(hits->keys[plan->k - 1]) : 0;
            least = least > plan->initial_threshold ? least : plan->initial_threshold;
            *done = found.n < words.k || least > most;
        }
        free(found.keys);
    }
    return st;
}

static gx_status run_any(gx_session *s, const gx_plan *plan, gx_hits *hits, gx_error *err)
{
    bool done = false;
    gx_status fast = run_by_words(s, plan, hits, &done, err);
    if (fast != GX_OK || done)
        return fast;
    gx_plan words = *plan;
    gx_hits by_words = {0};
    matches m = {0};
    uint32_t threshold;
    words.op = GX_OP_OR;
    words.n_phrases = 0;
    words.phrases = NULL;
    words.fill = false;
    gx_status st = run_words(s, &words, &by_words, &threshold, err);
    if (st == GX_OK)
        st = find_matches(s, plan, plan->prune ? threshold : 0, &m, err);
    if (st == GX_OK)
        choose_best(s, plan, &words, &m, &by_words, hits);
    free(by_words.keys);
    free(m.found);
    return st;
}

/* ---- plans ---- */

static gx_status run_phrases(gx_session *s, const gx_plan *plan, gx_hits *hits, gx_error *err)
{
    hits->n = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        s->work.postings += plan->terms[i].df;
        s->work.blocks += (plan->terms[i].df + s->en->ix->block_len - 1) / s->en->ix->block_len;
    }
    if (plan->op != GX_OP_OR || plan->n_terms + plan->n_phrases == 1) {
        const gx_status st = seek_best(s, plan, hits, err);
        if (st != GX_OK || plan->op != GX_OP_AND_OR || hits->n == plan->k)
            return st;
        s->work.and_fell_to_or += 1;
    }
    return run_any(s, plan, hits, err);
}

static gx_status run_group(void *user, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    gx_session *s = user;
    const gx_status st = s->cpu_workspace ? GX_OK : gx_session_run_exact(s, plans, n, hits, err);
    return st == GX_OK && s->cpu_workspace ? gx_fail(err, GX_ECUDA, "the GPU has failed") : st;
}

/* Let the engine answer what it can, and set answered[n]. */
static gx_status run_programs(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, bool *answered,
                              gx_error *err)
{
    const gx_executor *ops = s->en->ops;
    uint32_t n_fell = 0;
    gx_error why;
    if (s->cpu_workspace || !ops->takes_programs || !ops->takes_programs(s->en->state))
        return GX_OK;
    const gx_status st = gx_programs_run(s->en->ix, plans, n, hits, answered, &n_fell, run_group, s, &why);
    s->work.and_fell_to_or += n_fell;
    if (st == GX_OK)
        return GX_OK;
    memset(answered, 0, n * sizeof *answered);
    return s->cpu_workspace || st == GX_ECORRUPT ? GX_OK : gx_fail(err, st, "%s", why.text); /* the host tells more */
}

gx_status gx_session_run_phrases(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err)
{
    bool *answered = calloc(n, sizeof *answered);
    gx_status st = answered ? run_programs(s, plans, n, hits, answered, err)
                            : gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    for (uint32_t begin = 0, end; begin < n && st == GX_OK; begin = end) {
        for (end = begin; end < n && plans[end].n_phrases == 0 && !answered[end]; ++end)
            ;
        if (end > begin)
            st = gx_session_run_exact(s, plans + begin, end - begin, hits + begin, err);
        for (; end < n && (plans[end].n_phrases || answered[end]) && st == GX_OK; ++end)
            st = answered[end] ? GX_OK : run_phrases(s, &plans[end], &hits[end], err);
    }
    free(answered);
    return st;
}
