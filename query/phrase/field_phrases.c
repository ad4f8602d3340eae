/* field_phrases.c: a search by positions (seek.h) finds the documents that match in any field; their positions are then
 * read once more, field by field. */
#include "query/phrase/field_phrases.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/positions.h"
#include "query/phrase/seek.h"

/* Where a list's term stands in the documents. */
typedef struct places {
    uint32_t list;
    uint32_t *positions; /* document by document */
    size_t *begins;      /* [n_docs + 1] */
    size_t n, max;
} places;

typedef struct finding {
    const gx_index *ix;
    gx_phrase phrase;
    gx_phrase_word *words; /* [phrase.n] */
    places *lists;         /* [n_lists], different ones */
    uint32_t *list_of;     /* [phrase.n] */
    uint32_t n_lists;
    uint32_t *docids;
    size_t n_docids, max_docids;
    gx_word_places *at; /* [phrase.n] */
    uint32_t *scratch;
    size_t max_scratch;
    bool failed; /* memory lacks */
} finding;

static bool keep_docids(void *user, const gx_found *found)
{
    finding *x = user;
    if (!gx_reserve(&x->docids, &x->max_docids, x->n_docids + found->n, sizeof *x->docids)) {
        x->failed = true;
        return false;
    }
    memcpy(x->docids + x->n_docids, found->docids, found->n * sizeof *found->docids);
    x->n_docids += found->n;
    return true;
}

static gx_status open_finding(finding *x, const gx_index *ix, const char *name, size_t len)
{
    gx_phrase_name p = {0};
    gx_phrase_name_word w;
    *x = (finding){.ix = ix};
    gx_phrase_name_read(&p, name, len);
    x->words = malloc(p.n * sizeof *x->words);
    x->lists = calloc(p.n, sizeof *x->lists);
    x->list_of = malloc(p.n * sizeof *x->list_of);
    x->at = malloc(p.n * sizeof *x->at);
    if (!x->words || !x->lists || !x->list_of || !x->at)
        return GX_ENOMEM;
    for (uint32_t i = 0; gx_phrase_name_next(&p, name, len, &w); ++i) {
        uint32_t j = 0;
        x->words[i] = (gx_phrase_word){gx_index_find_term(ix, w.term, w.len), w.offset, false};
        while (j < x->n_lists && x->lists[j].list != x->words[i].list)
            ++j;
        x->list_of[i] = j;
        x->lists[j].list = x->words[i].list;
        x->n_lists += j == x->n_lists;
    }
    x->phrase = (gx_phrase){(gx_phrase_kind)p.kind, p.slop, p.n, x->words};
    return GX_OK;
}

static void close_finding(finding *x)
{
    for (uint32_t i = 0; x->lists && i < x->n_lists; ++i) {
        free(x->lists[i].positions);
        free(x->lists[i].begins);
    }
    free(x->words);
    free(x->lists);
    free(x->list_of);
    free(x->at);
    free(x->docids);
    free(x->scratch);
}

/* Append the positions of the posting `i` of a block whose tfs are decoded. */
static gx_status read_posting(places *p, const gx_index *ix, uint64_t block, const uint32_t *tfs, uint32_t n,
                              uint32_t i)
{
    const gx_block_positions b = gx_index_block_positions(ix, block);
    uint64_t all = 0, before = 0;
    for (uint32_t j = 0; j < n; ++j) {
        before += j < i ? tfs[j] : 0;
        all += tfs[j];
    }
    if (all / 32 > b.n_words)
        return GX_ECORRUPT;
    if (!gx_reserve(&p->positions, &p->max, p->n + tfs[i], sizeof *p->positions))
        return GX_ENOMEM;
    uint32_t *const to = p->positions + p->n;
    if (!gx_positions_decode(b, all, before, tfs[i], to))
        return GX_ECORRUPT;
    for (uint32_t j = 1; j < tfs[i]; ++j)
        to[j] += to[j - 1] + 1;
    p->n += tfs[i];
    return GX_OK;
}

static gx_status read_places(finding *x, places *p)
{
    const gx_index *ix = x->ix;
    const gx_list l = gx_index_list(ix, p->list);
    uint32_t docids[GX_MAX_BLOCK + 32], tfs[GX_MAX_BLOCK + 32], block = 0, decoded = UINT32_MAX, n = 0, at = 0;
    gx_status st = GX_OK;
    if (!(p->begins = malloc((x->n_docids + 1) * sizeof *p->begins)))
        return GX_ENOMEM;
    for (size_t d = 0; d < x->n_docids && st == GX_OK; ++d) {
        p->begins[d] = p->n;
        while (block + 1 < l.n_blocks && l.heads[block + 1] <= x->docids[d])
            ++block;
        if (block != decoded) {
            n = gx_list_decode_docids(&l, block, docids);
            gx_list_decode_tfs(&l, block, tfs);
            decoded = block;
            at = 0;
        }
        while (at < n && docids[at] < x->docids[d])
            ++at;
        st = at < n && docids[at] == x->docids[d]
                 ? read_posting(p, ix, ix->lists[p->list].first_block + (uint64_t)block, tfs, n, at)
                 : GX_ECORRUPT;
    }
    p->begins[x->n_docids] = p->n;
    return st;
}

/* How often document d matches in the field whose positions are [begin, end). */
static uint32_t count_in(finding *x, size_t d, uint64_t begin, uint64_t end)
{
    for (uint32_t w = 0; w < x->phrase.n; ++w) {
        const places *p = &x->lists[x->list_of[w]];
        size_t from = p->begins[d], to = p->begins[d + 1];
        while (from < to && p->positions[from] < begin)
            ++from;
        while (to > from && p->positions[to - 1] >= end)
            --to;
        if (from == to)
            return 0;
        x->at[w] =
            (gx_word_places){p->positions + from, (uint32_t)(to - from), x->words[w].offset, x->words[w].list};
    }
    return gx_phrase_tf(&x->phrase, x->at, x->scratch);
}

static gx_status count_by_field(finding *x, gx_field_postings *out)
{
    const uint32_t n_stored = x->ix->fields->n - 1, df = (uint32_t)x->n_docids;
    size_t most = 0;
    for (uint32_t i = 0; i < x->n_lists; ++i)
        for (size_t d = 0; d < df; ++d) {
            const size_t n = x->lists[i].begins[d + 1] - x->lists[i].begins[d];
            most = n > most ? n : most;
        }
    if (!gx_reserve(&x->scratch, &x->max_scratch, 2 * most + x->phrase.n, sizeof *x->scratch))
        return GX_ENOMEM;
    for (uint32_t d = 0; d < df; ++d) {
        uint64_t begins[GX_MAX_FIELDS], begin = 0;
        uint32_t n;
        gx_index_stretches(x->ix, x->docids[d], &n, begins);
        out->docids[d] = x->docids[d];
        out->tfs[d] = 0;
        for (uint32_t f = 0; f <= n_stored; ++f) {
            const uint64_t end = f < n ? begins[f] : UINT64_MAX;
            const uint32_t tf = count_in(x, d, begin, end);
            out->tfs[d] += tf;
            if (f < n_stored)
                out->field_tfs[(size_t)f * df + d] = tf;
            begin = end;
        }
    }
    return GX_OK;
}

static gx_status find(finding *x, gx_field_postings *out)
{
    const gx_sought_phrase phrase = {x->phrase, 0};
    const gx_seek s = {.ix = x->ix, .phrases = &phrase, .n_phrases = 1, .take = keep_docids, .user = x};
    gx_error why;
    gx_status st = gx_seek_run(&s, &why);
    if (st != GX_OK || x->failed)
        return x->failed ? GX_ENOMEM : st;
    for (uint32_t i = 0; i < x->n_lists && st == GX_OK; ++i)
        st = read_places(x, &x->lists[i]);
    if (st != GX_OK)
        return st;
    const size_t df = x->n_docids;
    if (!(out->memory = malloc((df * (x->ix->fields->n + 1) + 1) * sizeof *out->memory)))
        return GX_ENOMEM;
    out->df = (uint32_t)df;
    out->docids = out->memory;
    out->tfs = out->docids + df;
    out->field_tfs = out->tfs + df;
    return count_by_field(x, out);
}

gx_status gx_field_phrase_find(gx_field_postings *out, const gx_index *base, const char *name, size_t len)
{
    finding x;
    *out = (gx_field_postings){0};
    gx_status st = open_finding(&x, base, name, len);
    if (st == GX_OK)
        st = find(&x, out);
    close_finding(&x);
    return st;
}
