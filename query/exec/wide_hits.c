#include "query/exec/wide_hits.h"

#include <stdlib.h>

void gx_wide_rebase(const gx_part *part, gx_hits *hits)
{
    for (uint32_t i = 0; i < hits->n; ++i) {
        const uint32_t local = gx_key_docid(hits->keys[i]);
        gx_hits_set(hits, i, gx_key_score(hits->keys[i]), part->base + gx_deletes_rank(part->deletes, local));
    }
}

void gx_wide_merge(gx_hits *hits, uint32_t k, const gx_hits *more)
{
    uint32_t a = 0, b = 0;
    while (a + b < k && (a < hits->n || b < more->n)) { /* how many of each are kept */
        if (b == more->n || (a < hits->n && gx_hits_better(hits, a, more, b)))
            ++a;
        else
            ++b;
    }
    hits->n = a + b;
    while (b) { /* from the end, where nothing is overwritten that is still needed */
        const uint32_t at = a + b - 1;
        const bool own = a && gx_hits_better(more, b - 1, hits, a - 1);
        const gx_hits *from = own ? hits : more;
        const uint32_t i = own ? --a : --b;
        hits->keys[at] = from->keys[i];
        hits->highs[at] = from->highs[i];
    }
}

static int by_docid(const void *a, const void *b)
{
    const gx_candidate *x = a, *y = b;
    return (x->docid > y->docid) - (x->docid < y->docid);
}

static int by_score(const void *a, const void *b)
{
    const gx_candidate *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : by_docid(a, b);
}

void gx_candidates_take(gx_candidate *out, const gx_hits *from)
{
    for (uint32_t i = 0; i < from->n; ++i)
        out[i] = (gx_candidate){gx_hits_docid(from, i), gx_key_score(from->keys[i])};
    qsort(out, from->n, sizeof *out, by_docid);
}

void gx_candidates_choose(gx_candidate *c, uint32_t n, uint32_t k, gx_hits *hits)
{
    qsort(c, n, sizeof *c, by_score);
    hits->n = n < k ? n : k;
    for (uint32_t i = 0; i < hits->n; ++i)
        gx_hits_set(hits, i, c[i].score, c[i].docid);
}
