/* seek.h: the documents that hold all of some words and match some phrases, by rising docid.
 *
 *   a block of the shortest list, or of the documents that are given
 *     drop what the mask leaves out, and what cannot reach the threshold by this list's tfs
 *     look the rest up in one list after the other; blocks without a candidate are not read
 *     drop what the filter leaves out, and what cannot reach the threshold by the tfs of all lists
 *     compare positions: of one phrase of words in a row a word at a time for all candidates, blocks with many of them
 *     decoded whole; else document by document, phrase by phrase
 *
 * Positions are read of documents that have come so far, and of no others.
 */
#ifndef GX_QUERY_PHRASE_SEEK_H
#define GX_QUERY_PHRASE_SEEK_H

#include "index/index.h"
#include "query/filter/filter.h"
#include "query/phrase/phrase.h"
#include "query/score/bm25.h"

/* A word that all documents must hold. */
typedef struct gx_sought_word {
    uint32_t list;
    float w; /* its scaled weight; negative: it does not score */
} gx_sought_word;

typedef struct gx_sought_phrase {
    gx_phrase phrase;
    float w;
} gx_sought_phrase;

/* Documents that are found, as long as the call lasts. */
typedef struct gx_found {
    uint32_t n;
    const uint32_t *docids;     /* [n], rising */
    const uint32_t *scores;     /* [n]; NULL where nothing scores */
    const uint32_t *phrase_tfs; /* [n] of the only phrase; NULL where there is none or several */
} gx_found;

typedef struct gx_seek {
    const gx_index *ix; /* of one file; with positions where there are phrases */
    const gx_sought_word *words;
    uint32_t n_words;
    const gx_sought_phrase *phrases;
    uint32_t n_phrases;      /* words and phrases together are at least one */
    const gx_mask *mask;     /* of one file; NULL: all documents */
    const uint64_t *allowed; /* a bit a document; NULL: all documents */
    const gx_filter *filter; /* of one file; NULL: all documents */
    const uint32_t *docids;  /* [n_docids], rising and < n_docs: no others are looked at; NULL: all */
    uint32_t n_docids;
    bool scores; /* whether scores are asked for, by norm */
    gx_scorer norm;
    const uint32_t *threshold; /* documents with lower scores may be left out; it may grow from call to call. Or NULL */
    bool (*take)(void *user, const gx_found *found); /* false: stop */
    void *user;
    bool (*cancel)(void *user);
    void *cancel_user;
} gx_seek;

/* GX_ENOMEM, GX_ECORRUPT (positions are damaged), GX_ECANCELLED. Thread-safe. */
gx_status gx_seek_run(const gx_seek *s, gx_error *err);
/* The same where each place of a phrase has one word, and there are no groups. */
gx_status gx_seek_run_plain(const gx_seek *s, gx_error *err);

/* Whether the phrase is a group, or has places with several words. */
bool gx_phrase_has_others(const gx_phrase *p);

/* A `take` that sets the bit of each document in user, which is uint64_t [ceil(n_docs / 64)]. */
bool gx_seek_mark(void *user, const gx_found *found);

/* Whether the phrase can match at all in the index: it has all words. */
bool gx_phrase_is_known(const gx_phrase *p);

#endif
