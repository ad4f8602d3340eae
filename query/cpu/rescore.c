/* rescore.c: adds what lists add to the scores of some documents. A list that has ranges (ranges.h) is read there, any
 * other by its compressed blocks. */
#include "engine/lower_bound.h"
#include "engine/memory/prefetch.h"
#include "query/cpu/ranges.h"
#include "query/cpu/search.h"
#include "query/plan/approximate.h"

#define AT_ONCE 64u /* documents whose lines are fetched together */

/* The tf of the document at `place` of its segment among n postings, which rise by place; 0: it is not
 * among them. */
static inline uint32_t find_narrow(const gx_narrow_posting *p, uint32_t n, uint32_t place)
{
    for (; n > 8; n -= n / 2)
        p += (p[n / 2 - 1] & (GX_SEGMENT_DOCS - 1)) < place ? n / 2 : 0;
    for (uint32_t i = 0; i < n; ++i) {
        if ((p[i] & (GX_SEGMENT_DOCS - 1)) == place)
            return p[i] >> GX_SEGMENT_SHIFT;
    }
    return 0;
}

static inline uint32_t find_wide(const gx_wide_posting *p, uint32_t n, uint32_t place)
{
    for (uint32_t i = 0; i < n; ++i) {
        if ((p[i] & (GX_SEGMENT_DOCS - 1)) == place)
            return p[i] >> GX_SEGMENT_SHIFT;
    }
    return 0;
}

/* A dense list has a bit a document. The number of bits before the document's, from the start of its
 * segment, is the place of its tf. */
static uint32_t find_dense(const gx_range_list *l, uint32_t docid)
{
    const uint32_t segment = docid >> GX_SEGMENT_SHIFT, place = docid & (GX_SEGMENT_DOCS - 1);
    const uint64_t *bits = l->bits + segment * (size_t)(GX_SEGMENT_DOCS / 64);
    if (!(bits[place / 64] >> place % 64 & 1))
        return 0;
    uint32_t at = l->starts[segment];
    for (uint32_t i = 0; i < place / 64; ++i)
        at += (uint32_t)__builtin_popcountll(bits[i]);
    at += (uint32_t)__builtin_popcountll(bits[place / 64] & ((UINT64_C(1) << place % 64) - 1));
    return l->bytes[at];
}

/* In a common or a sparse list. */
static uint32_t find_in_segment(const gx_range_list *l, uint32_t docid)
{
    const uint32_t place = docid & (GX_SEGMENT_DOCS - 1);
    const gx_segment_start *at = gx_range_list_start(l, docid >> GX_SEGMENT_SHIFT);
    if (!at || !(at->ranges >> (place >> GX_RANGE_SHIFT) & 1))
        return 0;
    const uint32_t n = at[1].start - at->start;
    return l->wide ? find_wide((const gx_wide_posting *)l->postings + at->start, n, place)
                   : find_narrow((const gx_narrow_posting *)l->postings + at->start, n, place);
}

/* A rare list has its docids, in which documents are found by halving. */
static uint32_t find_rare(const gx_range_list *l, uint32_t docid)
{
    const uint32_t at = gx_lower_bound(l->docids, 0, l->df, docid);
    return at < l->df && l->docids[at] == docid ? l->tfs[at] : 0;
}

/* tfs[n] of the documents in the list; 0 where it does not have them. */
static void look_up(const gx_range_list *l, const uint32_t *docids, uint32_t *tfs, uint32_t n)
{
    switch (l->form) {
    case GX_RANGE_DENSE:
        for (uint32_t i = 0; i < n; ++i)
            tfs[i] = find_dense(l, docids[i]);
        break;
    case GX_RANGE_COMMON:
    case GX_RANGE_SPARSE:
        for (uint32_t i = 0; i < n; ++i)
            tfs[i] = find_in_segment(l, docids[i]);
        break;
    default:
        for (uint32_t i = 0; i < n; ++i)
            tfs[i] = find_rare(l, docids[i]);
        break;
    }
}

/* What look_up reads first of a dense or a common list. */
static void prefetch(const gx_range_list *l, const uint32_t *docids, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t segment = docids[i] >> GX_SEGMENT_SHIFT;
        if (l->form == GX_RANGE_DENSE) {
            gx_prefetch(l->bits + segment * (size_t)(GX_SEGMENT_DOCS / 64));
            gx_prefetch(l->bytes + l->starts[segment]);
        } else if (l->form == GX_RANGE_COMMON) {
            gx_prefetch((const char *)l->postings + (size_t)l->segments[segment].start * (l->wide ? 4 : 2));
        }
    }
}

static void add_term(gx_cpu_searcher *s, const gx_range_list *l, const gx_plan *one, const uint32_t *docids,
                     const float *K, uint32_t *scores, uint32_t n)
{
    uint32_t tfs[AT_ONCE];
    if (!l) {
        gx_add_scores(s->ix, one, docids, scores, n);
        return;
    }
    look_up(l, docids, tfs, n);
    for (uint32_t i = 0; i < n; ++i) {
        if (tfs[i])
            scores[i] += gx_bm25_impact(one->terms->w, tfs[i], K[i]);
    }
}

/* The term's list by ranges, on its way to the cache; NULL: it has none. */
static const gx_range_list *open_list(gx_cpu_searcher *s, const gx_plan_term *t, const uint32_t *docids, uint32_t n)
{
    const gx_range_list *l = s->ranges ? gx_ranges_list(s->ranges, t->list, &s->scratch) : NULL;
    if (l)
        prefetch(l, docids, n);
    return l;
}

void gx_cpu_add_scores(gx_cpu_searcher *s, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n)
{
    float K[AT_ONCE];
    for (uint32_t begin = 0, m; begin < n; begin += m, docids += m, scores += m) {
        m = n - begin < AT_ONCE ? n - begin : AT_ONCE;
        for (uint32_t i = 0; i < m; ++i)
            K[i] = gx_bm25_K(rest->norm, gx_index_length(s->ix, docids[i]));
        const gx_range_list *l = rest->n_terms ? open_list(s, &rest->terms[0], docids, m) : NULL;
        for (uint32_t t = 0; t < rest->n_terms; ++t) {
            const gx_range_list *next = t + 1 < rest->n_terms ? open_list(s, &rest->terms[t + 1], docids, m) : NULL;
            gx_plan one = {.norm = rest->norm, .n_terms = 1, .terms = &rest->terms[t]};
            add_term(s, l, &one, docids, K, scores, m);
            l = next;
        }
    }
}
