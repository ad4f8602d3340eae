#include "query/plan/phrases.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/plan/boolean.h"

#define NONE UINT32_MAX
#define FEW_ALLOWED 4u /* documents that are so many times fewer than the shortest list's are looked up one by one */

/* ---- of a query ---- */

static int compare_words(const gx_query_phrase_word *a, const gx_query_phrase_word *b)
{
    const size_t len = a->len < b->len ? a->len : b->len;
    const int order = len ? memcmp(a->term, b->term, len) : 0;
    if (order || a->len != b->len)
        return order ? order : a->len < b->len ? -1 : 1;
    if (a->other != b->other)
        return a->other ? 1 : -1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int compare_phrases(const gx_query_phrase *x, const gx_query_phrase *y)
{
    int order = (x->kind > y->kind) - (x->kind < y->kind);
    order = order ? order : (x->slop > y->slop) - (x->slop < y->slop);
    order = order ? order : (x->n > y->n) - (x->n < y->n);
    for (uint32_t i = 0; i < x->n && !order; ++i)
        order = compare_words(&x->words[i], &y->words[i]);
    return order;
}

/* Equal ones by their weights, so that the order of a sum depends on nothing else. */
static int by_words_and_weight(const void *a, const void *b)
{
    const gx_query_phrase *x = a, *y = b;
    const int order = compare_phrases(x, y);
    return order ? order : (x->qtf > y->qtf) - (x->qtf < y->qtf);
}

static int by_word(const void *a, const void *b)
{
    return compare_words(a, b);
}

/* Copy phrase p; its words and bytes go to *words and *bytes, which move behind them. */
static gx_query_phrase copy_phrase(const gx_phrase_text *p, gx_query_phrase_word **words, char **bytes)
{
    gx_query_phrase out = {p->kind, p->slop, p->n, *words, p->weight, 0, 0};
    for (uint32_t i = 0; i < p->n; ++i) {
        out.words[i] = (gx_query_phrase_word){
            .term = *bytes, .len = p->words[i].len, .offset = p->words[i].offset, .other = p->words[i].other};
        if (gx_phrase_is_group(p->kind) || p->kind == GX_PHRASE_NEAR) { /* the order tells nothing */
            out.words[i].offset = 0;
            out.words[i].other = false;
        }
        if (p->kind == GX_PHRASE_ONEAR)
            out.words[i].offset = i;
        if (p->words[i].len)
            memcpy(*bytes, p->words[i].term, p->words[i].len);
        *bytes += p->words[i].len;
    }
    *words += p->n;
    if (gx_phrase_is_group(p->kind) || p->kind == GX_PHRASE_NEAR)
        qsort(out.words, out.n, sizeof *out.words, by_word);
    return out;
}

static struct gx_query_phrases *copy_phrases(const gx_phrase_text *phrases, uint32_t n)
{
    size_t n_words = 0, n_bytes = 0;
    for (uint32_t i = 0; i < n; ++i) {
        n_words += phrases[i].n;
        for (uint32_t w = 0; w < phrases[i].n; ++w)
            n_bytes += phrases[i].words[w].len;
    }
    struct gx_query_phrases *q =
        malloc(sizeof *q + n * sizeof *q->phrases + n_words * sizeof(gx_query_phrase_word) + n_bytes);
    if (!q)
        return NULL;
    gx_query_phrase_word *words = (gx_query_phrase_word *)(void *)(q->phrases + n);
    char *bytes = (char *)(words + n_words);
    q->n_more = 0;
    q->n = n;
    for (uint32_t i = 0; i < n; ++i)
        q->phrases[i] = copy_phrase(&phrases[i], &words, &bytes);
    return q;
}

gx_status gx_query_phrases_make(struct gx_query_phrases **out, uint32_t *n_unknown, const gx_phrase_text *phrases,
                                uint32_t n, const gx_collection_stats *stats, uint32_t number, gx_error *err)
{
    struct gx_query_phrases *q = n ? copy_phrases(phrases, n) : NULL;
    uint32_t kept = 0, known = 0;
    *out = NULL;
    *n_unknown = 0;
    if (n == 0)
        return GX_OK;
    if (!q)
        return gx_fail(err, GX_ENOMEM, "no memory for %u phrases", n);
    qsort(q->phrases, n, sizeof *q->phrases, by_words_and_weight);
    for (uint32_t i = 0; i < n; ++i) {
        if (kept && compare_phrases(&q->phrases[kept - 1], &q->phrases[i]) == 0)
            q->phrases[kept - 1].qtf += q->phrases[i].qtf;
        else
            q->phrases[kept++] = q->phrases[i];
    }
    for (uint32_t i = 0; i < kept; ++i) {
        gx_query_phrase *p = &q->phrases[i];
        bool all = true, any = false;
        for (uint32_t w = 0; w < p->n; ++w) {
            p->words[w].number = number++;
            p->words[w].df = stats->df(stats->user, p->words[w].term, p->words[w].len);
            const bool new_place = !p->words[w].other && (w == 0 || !gx_phrase_is_group(p->kind));
            all = all && (w == 0 || !new_place || any);
            any = p->words[w].df || (any && !new_place);
        }
        if (all && any)
            q->phrases[known++] = *p;
    }
    q->n = known;
    *n_unknown = kept - known;
    *out = q;
    return GX_OK;
}

struct gx_query_phrases *gx_query_phrases_share(struct gx_query_phrases *p)
{
    if (p)
        __atomic_fetch_add(&p->n_more, 1, __ATOMIC_RELAXED);
    return p;
}

void gx_query_phrases_close(struct gx_query_phrases *p)
{
    if (p && __atomic_fetch_sub(&p->n_more, 1, __ATOMIC_ACQ_REL) == 0)
        free(p);
}

/* ---- of an index ---- */

uint32_t gx_phrase_keep_known(gx_phrase_word *words, uint32_t n, gx_phrase_kind kind)
{
    uint32_t kept = 0, begin = 0; /* of the place */
    for (uint32_t w = 0; w < n; ++w) {
        const bool other = w && (words[w].other || gx_phrase_is_group(kind));
        if (!other && w && kept == begin)
            return 0;
        begin = other ? begin : kept;
        if (words[w].list == NONE)
            continue;
        words[kept] = words[w];
        words[kept].other = kept > begin;
        ++kept;
    }
    return kept == begin ? 0 : kept;
}

/* Returns the number of the phrase's words in the index; 0: it cannot be matched. */
static uint32_t find_words(gx_phrase_word *words, const gx_query_phrase *p, const gx_index *ix, const uint32_t *ids,
                           size_t stride)
{
    for (uint32_t w = 0; w < p->n; ++w) {
        const gx_query_phrase_word *x = &p->words[w];
        words[w].list = ids ? ids[x->number * stride] : gx_index_find_term(ix, x->term, x->len);
        words[w].offset = x->offset;
        words[w].other = x->other;
    }
    return gx_phrase_keep_known(words, p->n, p->kind);
}

gx_status gx_plan_phrases_make(struct gx_plan_phrases **out, uint32_t *n_unknown, const struct gx_query_phrases *of,
                               const gx_index *ix, const uint32_t *ids, size_t stride, gx_error *err)
{
    size_t n_words = 0;
    *out = NULL;
    if (!of || of->n == 0)
        return GX_OK;
    for (uint32_t i = 0; i < of->n; ++i)
        n_words += of->phrases[i].n;
    struct gx_plan_phrases *p = malloc(sizeof *p + of->n * sizeof *p->phrases + n_words * sizeof(gx_phrase_word));
    if (!p)
        return gx_fail(err, GX_ENOMEM, "no memory for %u phrases", of->n);
    gx_phrase_word *words = (gx_phrase_word *)(void *)(p->phrases + of->n);
    p->n = 0;
    for (uint32_t i = 0; i < of->n; ++i) {
        const gx_query_phrase *x = &of->phrases[i];
        const uint32_t n = find_words(words, x, ix, ids, stride);
        if (n == 0) {
            ++*n_unknown;
            continue;
        }
        p->phrases[p->n++] = (gx_sought_phrase){{x->kind, x->slop, n, words}, x->w};
        words += n;
    }
    if (p->n == 0) {
        free(p);
        p = NULL;
    }
    *out = p;
    return GX_OK;
}

/* ---- documents ---- */

typedef struct adding {
    const uint32_t *docids;
    uint32_t *scores;
    uint32_t n, at;
} adding;

static bool add_found(void *user, const gx_found *f)
{
    adding *a = user;
    for (uint32_t i = 0; i < f->n; ++i) {
        while (a->docids[a->at] != f->docids[i])
            ++a->at;
        a->scores[a->at] += f->scores[i];
    }
    return true;
}

gx_status gx_phrases_add_scores(const gx_index *ix, const gx_plan *plan, const uint32_t *docids, uint32_t *scores,
                                uint32_t n, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; plan->phrases && i < plan->phrases->n && n && st == GX_OK; ++i) {
        adding a = {docids, scores, n, 0};
        const gx_seek s = {.ix = ix,
                           .phrases = &plan->phrases->phrases[i],
                           .n_phrases = 1,
                           .docids = docids,
                           .n_docids = n,
                           .scores = true,
                           .norm = plan->norm,
                           .take = add_found,
                           .user = &a};
        st = gx_seek_run(&s, err);
    }
    return st;
}

/* The least df of the phrase's words. */
static uint32_t least_df(const gx_index *ix, const gx_phrase *p)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t w = 0; w < p->n; ++w) {
        const uint32_t df = p->words[w].list == NONE ? 0 : ix->lists[p->words[w].list].df;
        least = df < least ? df : least;
    }
    return least;
}

gx_status gx_phrase_mark(const gx_index *ix, const gx_phrase *p, const gx_plan *plan, const uint64_t *allowed,
                         uint32_t n_allowed, uint64_t *words, gx_error *err)
{
    const gx_sought_phrase phrase = {*p, 0};
    gx_seek s = {.ix = ix,
                 .phrases = &phrase,
                 .n_phrases = 1,
                 .allowed = allowed,
                 .take = gx_seek_mark,
                 .user = words,
                 .cancel = plan->cancel,
                 .cancel_user = plan->user};
    uint32_t *docids = NULL;
    if (gx_phrase_is_group(p->kind)) {
        for (uint32_t w = 0; w < p->n; ++w)
            gx_list_mark(ix, p->words[w].list, words);
        return GX_OK;
    }
    if (allowed && (uint64_t)n_allowed * FEW_ALLOWED < least_df(ix, p)) {
        if (!(docids = malloc((n_allowed + 1ull) * sizeof *docids)))
            return gx_fail(err, GX_ENOMEM, "no memory for the documents of a phrase");
        for (size_t w = 0; w * 64 < ix->n_docs; ++w)
            for (uint64_t x = allowed[w]; x && s.n_docids < n_allowed; x &= x - 1)
                docids[s.n_docids++] = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(x);
        s.docids = docids;
    }
    const gx_status st = gx_seek_run(&s, err);
    free(docids);
    return st;
}
