/* gpuidx_expansion.h: the words of an index that a pattern stands for. Part of gpuidx_advanced.h.
 *
 *   gx_index_expand(&e, ix, GX_PATTERN_WILDCARD, "neutrin*", 8, NULL, &err)    neutrino, neutrinoless, ...
 *
 * Words are the index's terms: in lower case and stemmed, where its analyzer does that. The letters of a pattern become
 * lower case, or are folded, as those of a text; only the word of GX_PATTERN_FUZZY is stemmed. A pattern stands for
 * whole words. A character is one of UTF-8, and each byte of a term that is no part of one.
 */
#ifndef GPUIDX_EXPANSION_H
#define GPUIDX_EXPANSION_H

#include "gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GX_MAX_EXPANSIONS 100000u      /* most words of one expansion */
#define GX_MAX_PATTERN_CHARACTERS 1000u /* of a pattern */
#define GX_MAX_FUZZY_CHARACTERS 62u     /* of a GX_PATTERN_FUZZY */
#define GX_MAX_DISTANCE 2u
#define GX_DISTANCE_AUTO 3u /* 0 for a word of 1 or 2 characters, 1 for 3 to 5, 2 for more */

typedef enum gx_pattern_kind {
    /* words that begin with the text */
    GX_PATTERN_PREFIX,
    /* ? is a character, * any number of them; a backslash takes the next character as it is */
    GX_PATTERN_WILDCARD,
    /* Words within a distance, which counts edits: a character put in, left out or replaced, or two neighbours swapped;
     * what was swapped is not edited again (optimal string alignment) */
    GX_PATTERN_FUZZY,
    /* A regular expression of: characters, . [a-z] [^a-z] \d \w \s and their opposites, ( ) | * + ? {2} {2,} {2,4}, and
     * a backslash before a sign. It must match a whole word. Without look-around, back references, ^ and $. It runs in
     * time that is linear in a word, as an automaton of at most 10,000 states. Words of more than 1,000 characters do
     * not match. */
    GX_PATTERN_REGEX
} gx_pattern_kind;

typedef struct gx_expand_options {
    size_t size;           /* sizeof(gx_expand_options) */
    uint32_t max_words;    /* 1 to GX_MAX_EXPANSIONS: no more words are found */
    uint32_t distance;     /* of GX_PATTERN_FUZZY: 0 to GX_MAX_DISTANCE, or GX_DISTANCE_AUTO */
    uint32_t fixed_prefix; /* of GX_PATTERN_FUZZY: so many characters at the beginning must be the same */
    bool as_is;            /* the pattern's letters stay as they are, and its word is not stemmed */
    bool nearest;          /* words of a lower distance come first, before those of a greater df */
} gx_expand_options;

/* clang-format off */
#define GX_EXPAND_OPTIONS {sizeof(gx_expand_options), 50, GX_DISTANCE_AUTO, 0, false, false}
/* clang-format on */

typedef struct gx_expanded_word {
    const char *word; /* [len] bytes, NUL-terminated */
    size_t len;
    uint64_t df;       /* documents that hold it, at least 1 */
    uint32_t distance; /* 0 unless the pattern is GX_PATTERN_FUZZY */
} gx_expanded_word;

typedef struct gx_expansion {
    gx_expanded_word *words; /* [n] those of greatest df, by falling df; of equal ones the first in byte order */
    uint32_t n;
    uint64_t n_matched; /* words that match: more than n where max_words left some out */
} gx_expansion;

/* The words of ix, a file or collection, that match the pattern text[len]. opt NULL: GX_EXPAND_OPTIONS. Free *out with
 * gx_expansion_free. GX_EUSAGE, the message says where: bad options; a pattern that is empty, is not UTF-8, is too
 * long, matches every word of some length or more, or is no regular expression as above. GX_ENOMEM. Thread-safe. */
GX_API gx_status gx_index_expand(gx_expansion **out, const gx_index *ix, gx_pattern_kind kind, const char *text,
                                 size_t len, const gx_expand_options *opt, gx_error *err);
GX_API void gx_expansion_free(gx_expansion *e); /* accepts NULL */

/* What was meant by a word that no document holds: at most n words within the distance GX_DISTANCE_AUTO of it, the
 * nearest first, then by falling df. word[len] is analysed as a text is; where nothing or several terms are left of it,
 * or its term is in the index, there are no suggestions. Free *out as above. GX_EUSAGE (n is not from 1 to
 * GX_MAX_EXPANSIONS), GX_ENOMEM. Thread-safe. */
GX_API gx_status gx_index_suggest(gx_expansion **out, const gx_index *ix, const char *word, size_t len, uint32_t n,
                                  gx_error *err);
/* The same of a term, which is not analysed. */
GX_API gx_status gx_index_suggest_term(gx_expansion **out, const gx_index *ix, const char *term, size_t len, uint32_t n,
                                       gx_error *err);

/* ---- words that mean the same ---- */

/* Rules, one a line, in the form of Solr's synonym files:
 *
 *   tv, television, telly => television, tv     each of the words before => becomes those behind it
 *   sofa, couch                                 each becomes all of them
 *   # a comment
 *
 * Entries are words, or several words with blanks between; a backslash takes the next character as it is. They are
 * analysed as a query is. Rules of the same entry add up. What a rule gives is not looked up again, and rules that turn
 * a word into another and, by others, back into itself are an error.
 *
 * In a plain query the longest run of words that is an entry is replaced; in a boolean query a word that is one, or a
 * quoted phrase. What replaces it counts as one word of the query: with AND a document must have one of its entries.
 * The entries of one word score together as GX_EXPANSION_ONE says; each of several words is a phrase, whose score is
 * added. */
GX_API gx_status gx_synonyms_open(gx_synonyms **out, const gx_index *ix, const char *rules, size_t len, gx_error *err);
/* The same of a file. GX_EINPUT, naming the line and column: a line that is no rule; bytes that are not UTF-8; an entry
 * of which analysis leaves nothing; a circle; an entry of several words that is to be searched where ix has no
 * positions. GX_EIO, GX_ENOMEM. What is opened is searched with ix, or an index of the same analysis; threads may
 * share it. */
GX_API gx_status gx_synonyms_read(gx_synonyms **out, const gx_index *ix, const char *path, gx_error *err);
GX_API uint32_t gx_synonyms_n(const gx_synonyms *s); /* entries that are replaced */
GX_API void gx_synonyms_close(gx_synonyms *s);       /* accepts NULL */

#ifdef __cplusplus
}
#endif
#endif
