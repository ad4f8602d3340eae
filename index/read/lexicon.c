/* lexicon.c: the terms of an index: look them up in the hash table of the file's THSH section, and
 * make them of a text. */
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/hash.h"
#include "engine/memory/prefetch.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "index/fields/view.h"
#include "index/read/collection.h"
#include "index/read/lexicon.h"

#define MAX_PROBES 64u /* a table of usual terms needs fewer */

/* Look the term up among all of them, which are in byte order. */
static uint32_t find_in_order(const gx_index *ix, const char *term, size_t len)
{
    uint32_t lo = 0, hi = ix->terms.n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        size_t n;
        const char *bytes = gx_strings_get(&ix->terms, mid, &n);
        const int order = memcmp(bytes, term, n < len ? n : len);
        if (order == 0 && n == len)
            return mid;
        if (order < 0 || (order == 0 && n < len))
            lo = mid + 1;
        else
            hi = mid;
    }
    return UINT32_MAX;
}

uint32_t gx_index_find_term(const gx_index *ix, const char *term, size_t len)
{
    return ix->parts ? gx_parts_find_term(ix->parts, term, len)
                     : gx_index_find_hashed(ix, gx_hash(term, len), term, len);
}

/* Terms that were chosen so that their hashes collide make long rows of full slots, in which a
 * look-up would take as long as there are terms. */
static uint32_t find_hashed(const gx_index *ix, uint64_t hash, const char *term, size_t len)
{
    const uint64_t mask = ((uint64_t)1 << ix->term_hash_bits) - 1;
    uint64_t slot = hash & mask;
    for (uint32_t probes = 0; probes < MAX_PROBES; ++probes, slot = (slot + 1) & mask) {
        const uint32_t found = ix->term_hash[slot];
        if (found == 0)
            return UINT32_MAX;
        size_t found_len;
        const char *bytes = gx_strings_get(&ix->terms, found - 1, &found_len);
        if (found_len == len && memcmp(bytes, term, len) == 0)
            return found - 1;
    }
    return find_in_order(ix, term, len);
}

/* A term of a view, whose list is made now. */
static uint32_t find_viewed(const gx_index *ix, uint64_t hash, const char *term, size_t len)
{
    uint32_t field, id;
    if (len && term[0] == GX_PHRASE_MARK)
        return gx_view_find_phrase(ix, term, len);
    if (gx_view_parse_name(ix, term, len, &field)) {
        id = find_hashed(ix, gx_hash(term + 2, len - 2), term + 2, len - 2);
        id = id == UINT32_MAX ? id : id + ix->terms.n * (field + 1);
    } else {
        id = find_hashed(ix, hash, term, len);
    }
    return id != UINT32_MAX && gx_view_prepare(ix, id) ? id : UINT32_MAX;
}

uint32_t gx_index_find_hashed(const gx_index *ix, uint64_t hash, const char *term, size_t len)
{
    return ix->view ? find_viewed(ix, hash, term, len) : find_hashed(ix, hash, term, len);
}

static const uint32_t *first_slot(const gx_index *ix, uint64_t hash)
{
    return &ix->term_hash[hash & (((uint64_t)1 << ix->term_hash_bits) - 1)];
}

void gx_index_expect_hashed(const gx_index *ix, uint64_t hash)
{
    gx_prefetch(first_slot(ix, hash));
}

void gx_index_find_all(const gx_index *ix, const gx_term_key *keys, uint32_t n, uint32_t *ids)
{
    for (uint32_t i = 0; i < n; ++i) { /* the term in the first slot is the one, as a rule */
        const uint32_t found = *first_slot(ix, keys[i].hash);
        ids[i] = found ? found - 1 : UINT32_MAX;
        if (!found)
            continue;
        gx_prefetch((const char *)ix->terms.offsets + (size_t)ids[i] * ix->terms.width);
        gx_prefetch(&ix->lists[ids[i]]);
    }
    for (uint32_t i = 0; i < n; ++i) {
        size_t len;
        if (ids[i] != UINT32_MAX)
            gx_prefetch(gx_strings_get(&ix->terms, ids[i], &len));
    }
    for (uint32_t i = 0; i < n; ++i) {
        if (ids[i] != UINT32_MAX)
            ids[i] = gx_index_find_hashed(ix, keys[i].hash, keys[i].bytes, keys[i].len);
    }
}

const char *gx_index_term(const gx_index *ix, uint32_t term, size_t *len)
{
    *len = 0;
    if (ix->parts)
        return gx_parts_term(ix->parts, term, len);
    const char *phrase = ix->view && term != UINT32_MAX ? gx_view_phrase_text(ix, term, len) : NULL;
    if (phrase)
        return phrase;
    if (ix->view && ix->terms.n)
        term %= ix->terms.n;
    return term < ix->terms.n ? gx_strings_get(&ix->terms, term, len) : NULL;
}

uint64_t gx_index_df(const gx_index *ix, uint32_t term)
{
    if (ix->parts) {
        uint32_t n;
        const gx_collection_term *terms = gx_parts_terms(ix->parts, &n);
        return term < n ? terms[term].df : 0;
    }
    return term < ix->n_terms ? ix->lists[term].df : 0;
}

uint64_t gx_index_df_of(const gx_index *ix, const char *term, size_t len)
{
    if (ix->parts)
        return gx_parts_df(ix->parts, term, len);
    return gx_index_df(ix, gx_index_find_term(ix, term, len));
}

/* ---- the terms of a text ---- */

typedef struct text_terms {
    gx_text_term *terms; /* NULL: terms and bytes are only counted */
    char *bytes;         /* of the next term */
    size_t n, n_bytes;
} text_terms;

static bool take_term(void *user, const gx_found_term *found)
{
    text_terms *t = user;
    if (t->terms) {
        t->terms[t->n] = (gx_text_term){t->bytes, found->len, found->begin, found->end, found->position};
        memcpy(t->bytes, found->term, found->len);
        t->bytes[found->len] = 0;
        t->bytes += found->len + 1;
    }
    ++t->n;
    t->n_bytes += found->len + 1;
    return true;
}

/* Analyse twice, once to count and once to keep, which needs one allocation. */
static gx_status analyze(const gx_analyzer *an, gx_analyze_fn *analyze_with, const char *text, size_t len,
                         gx_text_term **out, size_t *n, gx_error *err)
{
    *out = NULL;
    text_terms count = {0}, kept = {0};
    gx_status st = analyze_with(an, text, len, take_term, &count);
    if (st == GX_OK && !(kept.terms = malloc(count.n * sizeof *kept.terms + count.n_bytes + 1)))
        st = GX_ENOMEM;
    if (st == GX_OK) {
        kept.bytes = (char *)(kept.terms + count.n);
        st = analyze_with(an, text, len, take_term, &kept);
    }
    if (st != GX_OK) {
        free(kept.terms);
        return gx_fail(err, st, "cannot analyse a text of %zu bytes: %s", len, gx_status_name(st));
    }
    *out = kept.terms;
    *n = kept.n;
    return GX_OK;
}

gx_status gx_index_analyze(const gx_index *ix, const char *text, size_t len, gx_text_term **out, size_t *n,
                           gx_error *err)
{
    return analyze(ix->analyzer, gx_analyze, text, len, out, n, err);
}

gx_status gx_index_analyze_query(const gx_index *ix, const char *text, size_t len, gx_text_term **out, size_t *n,
                                 gx_error *err)
{
    return analyze(ix->analyzer, gx_analyze_query, text, len, out, n, err);
}

gx_analysis_change gx_index_analysis_change(const gx_index *ix, gx_error *what)
{
    gx_error none;
    const gx_analyzer *an = ix->analyzer;
    for (uint32_t i = 0; ix->parts && i < ix->parts->n && !gx_analyzer_is_recorded(an); ++i)
        an = ix->parts->parts[i].ix->analyzer; /* the first parts may be of an earlier version */
    return gx_analyzer_change(an, what ? what : &none);
}

gx_status gx_analyze_text(const char *analyzer, const char *stemmer, const char *stopwords, const char *fold,
                          const char *ngrams, const char *text, size_t len, gx_text_term **out, size_t *n,
                          gx_error *err)
{
    const gx_analyzer_options options = {analyzer, stemmer, stopwords, fold, ngrams};
    gx_analyzer *an;
    *out = NULL;
    gx_status st = gx_analyzer_open(&an, &options, err);
    if (st != GX_OK)
        return st;
    st = analyze(an, gx_analyze, text, len, out, n, err);
    gx_analyzer_close(an);
    return st;
}
