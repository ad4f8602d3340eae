/* patterns.h: the patterns of one kind each, and the terms of an index file that they match.
 *
 *   text --compile--> pattern --find, for each file--> gx_found, which keeps what matches
 */
#ifndef GX_INDEX_EXPAND_PATTERNS_H
#define GX_INDEX_EXPAND_PATTERNS_H

#include "engine/api/gpuidx_expansion.h"
#include "index/index.h"
#include "index/read/characters.h"

/* A term that matches. */
typedef struct gx_match_found {
    uint32_t part, term; /* its number in the part; part 0 of a file */
    uint64_t df;
    uint32_t distance;
} gx_match_found;

/* What is kept: all, or the best `most` as a heap whose top is the worst of them. */
typedef struct gx_found {
    const gx_index *ix;          /* the file that is searched */
    const uint32_t *deleted_dfs; /* of its terms, or NULL */
    uint32_t part, most;
    bool all, nearest;
    bool failed; /* no memory */
    uint64_t n_matched;
    size_t n, max;
    gx_match_found *items;
} gx_found;

void gx_found_add(gx_found *f, uint32_t term, uint32_t distance);

/* A letter, or several, of a pattern as the analyzer makes it; out has room for GX_LETTER_MAX. Returns the number. */
#define GX_LETTER_MAX 32u
uint32_t gx_pattern_letters(const gx_index *ix, bool as_is, uint32_t c, uint32_t *out);

/* ---- wildcards ---- */

typedef struct gx_wildcard {
    uint32_t *items; /* [n] characters, GX_ANY_CHARACTER, GX_ANY_TEXT, no two of the last side by side */
    uint32_t n;
    char *prefix, *suffix, *middle; /* of UTF-8: what begins, ends each match, and the longest text that it has */
    size_t prefix_len, suffix_len, middle_len;
    size_t least_bytes; /* of a match */
    uint32_t letters;   /* that each match has (index/read/term_tree.h) */
} gx_wildcard;

#define GX_ANY_CHARACTER (GX_END_OF_CHARACTERS + 1)
#define GX_ANY_TEXT (GX_END_OF_CHARACTERS + 2)

/* literal: no sign means anything, and any text may follow. Free it also where this fails. */
gx_status gx_wildcard_compile(gx_wildcard *w, const gx_index *ix, const char *text, size_t len, bool literal,
                              bool as_is, gx_error *err);
void gx_wildcard_free(gx_wildcard *w);
gx_status gx_wildcard_find(const gx_wildcard *w, gx_found *f, gx_error *err);
bool gx_wildcard_matches(const gx_wildcard *w, const char *word, size_t len);

/* ---- typing errors ---- */

typedef struct gx_fuzzy {
    uint32_t n, distance, fixed; /* characters; of them, that must be the same */
    uint32_t word[GX_MAX_FUZZY_CHARACTERS];
    uint64_t ascii[128]; /* bit i + 1: character i is this one */
    bool only_ascii;
} gx_fuzzy;

gx_status gx_fuzzy_compile(gx_fuzzy *z, const char *word, size_t len, uint32_t distance, uint32_t fixed, gx_error *err);
gx_status gx_fuzzy_find(const gx_fuzzy *z, gx_found *f, gx_error *err);

/* ---- regular expressions ---- */

typedef struct gx_regex gx_regex;

gx_status gx_regex_compile(gx_regex **out, const gx_index *ix, const char *text, size_t len, bool as_is, gx_error *err);
void gx_regex_free(gx_regex *x); /* accepts NULL */
/* It makes states of the automaton: one thread at a time. GX_EUSAGE: there are too many. */
gx_status gx_regex_find(gx_regex *x, gx_found *f, gx_error *err);
gx_status gx_regex_matches(gx_regex *x, const char *word, size_t len, bool *matches, gx_error *err);

#endif
