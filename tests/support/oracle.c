#include "tests/support/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double idf(gx_preset p, double N, double df)
{
    switch (p) {
    case GX_BM25_PISA: {
        const double x = log((N - df + .5) / (df + .5));
        return x > 1e-6 ? x : 1e-6;
    }
    case GX_BM25_ATIRE:
        return log(N / df);
    case GX_BM25_ROBERTSON: {
        const double x = log((N - df + .5) / (df + .5));
        return x > 0 ? x : 0;
    }
    case GX_BM25:
    case GX_BM25_LUCENE:
    case GX_BM25_LUCENE_LOSSY:
        return log(1 + (N - df + .5) / (df + .5));
    case GX_IMPACT:
        return 1;
    case GX_N_PRESETS:
        break;
    }
    abort();
}

/* The most that a term of weight 1 adds to a score. */
static double most_part(const oracle_query *q, const gen_list *l)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < l->df && q->preset == GX_IMPACT; ++i)
        most = l->tfs[i] > most ? l->tfs[i] : most;
    return most;
}

/* A length as Lucene stores it: one of 256 values, which is found by trying them. */
static uint32_t lucene_lossy_length(uint32_t dl)
{
    if (dl < 40)
        return dl;
    uint32_t best = 40;
    for (int e = 1; e < 29; ++e) {
        for (uint32_t m = 8; m < 16; ++m) {
            const uint64_t v = 24 + ((uint64_t)m << e);
            if (v <= dl && v > best)
                best = (uint32_t)v;
        }
    }
    return best;
}

/* Sum, count and sort the documents of one operator, from what score_lists has left. */
typedef struct doc_score {
    uint32_t fixed, holders;
    double exact;
} doc_score;

static int score_lists(const gen_collection *c, const oracle_query *q, doc_score *docs)
{
    const int upper = q->preset == GX_BM25_LUCENE || q->preset == GX_BM25_ROBERTSON;
    const double k1 = isnan(q->k1) ? (upper ? 1.2f : .9f) : q->k1, b = isnan(q->b) ? (upper ? .75f : .4f) : q->b;
    const double avgdl = (double)c->n_tokens / c->n_docs;
    const int times = q->preset == GX_BM25_PISA || q->preset == GX_BM25_ATIRE || q->preset == GX_BM25_ROBERTSON;
    double total = 0;
    int e = 30;
    for (uint32_t i = 0; i < q->n_terms; ++i)
        total += idf(q->preset, c->n_docs, c->lists[q->terms[i]].df) * (times ? k1 + 1 : 1) * q->qtfs[i] *
                 most_part(q, &c->lists[q->terms[i]]);
    if (total > 0) {
        while (total * exp2(e) > 1073741824)
            --e;
        while (total * exp2(e + 1) <= 1073741824)
            ++e;
    }
    const float c0 = (float)(k1 * (1 - b)), c1 = (float)(k1 * b / avgdl);
    for (uint32_t i = 0; i < q->n_terms; ++i) {
        const gen_list *l = &c->lists[q->terms[i]];
        const double weight = idf(q->preset, c->n_docs, l->df) * (times ? k1 + 1 : 1) * q->qtfs[i];
        const float w = (float)(weight * exp2(e));
        for (uint32_t j = 0; j < l->df; ++j) {
            doc_score *d = &docs[l->docids[j]];
            uint32_t dl = c->doc_lens[l->docids[j]];
            if (q->preset == GX_BM25_LUCENE_LOSSY)
                dl = lucene_lossy_length(dl);
            const float tf = (float)l->tfs[j];
            const float K1 = c1 * (float)dl, K = c0 + K1, up = w * tf, down = tf + K;
            const double rounded = nearbyint(q->preset == GX_IMPACT ? up : up / down);
            d->fixed += rounded < 1 ? 1 : (uint32_t)rounded;
            d->holders += 1;
            if (q->preset == GX_IMPACT)
                d->exact += weight * l->tfs[j];
            else
                d->exact += weight * l->tfs[j] / (l->tfs[j] + k1 * (1 - b) + k1 * b * dl / avgdl);
        }
    }
    return e;
}

static int by_score_descending(const void *x, const void *y)
{
    const oracle_hit *a = x, *b = y;
    if (a->fixed != b->fixed)
        return a->fixed > b->fixed ? -1 : 1;
    return a->docid < b->docid ? -1 : 1;
}

static int doubles_descending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a < b) - (a > b);
}

static void collect_hits(oracle_answer *a, const gen_collection *c, const oracle_query *q, const doc_score *docs,
                         uint32_t min_holders)
{
    free(a->hits);
    free(a->exact);
    a->hits = malloc((c->n_docs + 1) * sizeof *a->hits);
    a->exact = malloc((c->n_docs + 1) * sizeof *a->exact);
    if (!a->hits || !a->exact)
        abort();
    a->n_matches = 0;
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        if (docs[d].holders < min_holders || (q->mask && !(q->mask[d / 64] >> d % 64 & 1)))
            continue;
        a->hits[a->n_matches] = (oracle_hit){d, docs[d].fixed, docs[d].exact};
        a->exact[a->n_matches++] = docs[d].exact;
    }
    qsort(a->hits, a->n_matches, sizeof *a->hits, by_score_descending);
    qsort(a->exact, a->n_matches, sizeof *a->exact, doubles_descending);
    a->n_hits = a->n_matches < q->k ? (uint32_t)a->n_matches : q->k;
}

oracle_answer oracle_search(const gen_collection *c, const oracle_query *q)
{
    oracle_answer a = {0};
    doc_score *docs = calloc(c->n_docs, sizeof *docs);
    if (!docs)
        abort();
    a.exponent = score_lists(c, q, docs);
    const uint32_t every = q->n_unknown || !q->n_terms ? UINT32_MAX : q->n_terms;
    collect_hits(&a, c, q, docs, q->op == GX_OP_OR ? !q->unscored : every);
    if (q->op == GX_OP_AND_OR && a.n_matches < q->k)
        collect_hits(&a, c, q, docs, 1);
    free(docs);
    return a;
}

void oracle_free(oracle_answer *a)
{
    free(a->hits);
    free(a->exact);
    memset(a, 0, sizeof *a);
}
