#include "query/plan/text_terms.h"

#include <string.h>

#include "engine/hash.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"

typedef struct search {
    gx_text_terms *terms;
    bool few;
} search;

static bool add_unknown(gx_text_terms *t, uint64_t hash)
{
    for (uint32_t i = 0; i < t->n_unknown; ++i) {
        if (t->unknown[i] == hash)
            return true;
    }
    if (t->n_unknown == GX_FEW_TERMS)
        return false;
    t->unknown[t->n_unknown++] = hash;
    return true;
}

/* The term whose number in part i is id; NULL: there is none yet. */
static gx_query_term *find_term(gx_text_terms *t, uint32_t part, uint32_t id)
{
    for (uint32_t i = 0; i < t->n; ++i) {
        if (t->ids[i * t->parts->n + part] == id)
            return &t->terms[i];
    }
    return NULL;
}

static bool take(void *user, const gx_found_term *found)
{
    search *s = user;
    gx_text_terms *t = s->terms;
    const uint32_t n_parts = t->parts->n;
    uint32_t *ids = t->ids + t->n * n_parts, part = 0;
    s->few = t->n < GX_FEW_TERMS && (t->n + 1) * n_parts <= GX_FEW_IDS;
    if (!s->few)
        return false;
    const uint64_t df = gx_parts_find_ids(t->parts, found->term, found->len, ids);
    if (df == 0)
        return s->few = add_unknown(t, gx_hash(found->term, found->len));
    while (ids[part] == UINT32_MAX)
        ++part;
    gx_query_term *same = find_term(t, part, ids[part]);
    if (same) {
        same->qtf += 1;
        return true;
    }
    gx_query_term *q = &t->terms[t->n];
    *q = (gx_query_term){.df = df, .qtf = 1, .number = t->n++};
    q->term = gx_strings_get(&t->parts->parts[part].ix->terms, ids[part], &q->len);
    return true;
}

static bool is_behind(const gx_query_term *a, const gx_query_term *b)
{
    if (a->df != b->df)
        return a->df > b->df;
    const size_t len = a->len < b->len ? a->len : b->len;
    const int order = memcmp(a->term, b->term, len);
    return order ? order > 0 : a->len > b->len;
}

gx_status gx_text_terms_find(gx_text_terms *out, bool *few, const gx_index *ix, const char *text, size_t len,
                             gx_error *err)
{
    search s = {out, true};
    out->parts = ix->parts;
    out->n = out->n_unknown = 0;
    const gx_status st = gx_analyze_query(ix->analyzer, text, len, take, &s);
    *few = s.few;
    if (st != GX_OK)
        return gx_fail(err, st, "cannot analyse a query of %zu bytes: %s", len, gx_status_name(st));
    for (uint32_t i = 1; i < out->n; ++i) {
        const gx_query_term t = out->terms[i];
        uint32_t j = i;
        for (; j && is_behind(&out->terms[j - 1], &t); --j)
            out->terms[j] = out->terms[j - 1];
        out->terms[j] = t;
    }
    return GX_OK;
}
