/* analysis_state.h: an analyzer and a workspace, for analyzer.c, which opens and describes analyzers, and analysis.c,
 * which analyses texts with them. */
#ifndef GX_INDEX_ANALYSIS_ANALYSIS_STATE_H
#define GX_INDEX_ANALYSIS_ANALYSIS_STATE_H

#include <stdalign.h>
#include <stdatomic.h>

#include "index/analysis/analyzer.h"
#include "index/analysis/dictionary.h"
#include "index/analysis/fold.h"
#include "index/analysis/language.h"
#include "index/analysis/stop_words.h"
#include "index/analysis/subtokens.h"
#include "index/analysis/tokenizer.h"

#define POOL_SIZE 64u
#define POOL_LOOKS 8u /* places at which a thread looks that has none of its own, or whose own is taken */

/* A place for an idle workspace, or NULL. A thread has a place of its own as long as there are no more than POOL_SIZE,
 * in a cache line of its own: where many threads plan short queries, they would wait for the line of a shared one. */
typedef struct pool_slot {
    alignas(64) _Atomic(gx_analysis *) idle;
} pool_slot;

/* How tokens are divided further: subtokens.h */
typedef enum division { DIVIDE_NOT, DIVIDE_SCRIPTS, DIVIDE_IDENTIFIERS } division;

struct gx_analyzer {
    gx_tokenizer_mode mode;
    bool lowercase, possessive, fold;
    uint32_t max_token_bytes;
    bool emoji; /* those below U+1F000 are words, too */
    bool light; /* light.h */
    division division;
    bool dictionary; /* with DIVIDE_SCRIPTS: a dictionary finds words */
    char icu[16];    /* its version when the terms were made; "": not recorded */
    gx_grams grams;
    gx_language language; /* whose rules hold, or GX_LANGUAGE_ANY */
    char *stemmer;        /* "none", "porter", or Snowball's name */
    uint64_t print;       /* of the stemmer that the terms of an index were made with; 0: not recorded */
    char unicode[16];     /* Unicode's version of that time; "": not recorded */
    gx_stop_words stops;
    pool_slot *pool; /* [POOL_SIZE] */
};

struct gx_analysis {
    const gx_analyzer *an;
    gx_tokenizer tokenizer;
    gx_fold fold;
    bool folded;                 /* the tokenizer's text is fold's; else it is as it was given */
    struct sb_stemmer *snowball; /* NULL if the stemmer is not one of Snowball's */
    bool porter;
    bool query;                /* the text is a query's */
    gx_dictionary *dictionary; /* NULL: none, or the analyzer asks for none */
    gx_subtokens parts, grams;
    char *term; /* scratch; lower case takes at most three times a token's bytes */
};

/* Whether the token is none that can be a term: it has nothing but underscores or connectors. */
bool gx_token_is_no_word(const gx_analyzer *an, const char *token, size_t len);

/* Write the token in lower case, if the analyzer has that, to a->term. Returns its length. */
size_t gx_token_lower(gx_analysis *a, const char *token, size_t len);

/* Cut off what is no part of the word[n] that gx_token_lower has made of the token. Returns its length. */
size_t gx_word_cut(const gx_analyzer *an, const char *token, size_t len, char *word, size_t n);

#endif
