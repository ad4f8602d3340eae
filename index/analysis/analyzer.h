/* analyzer.h: turn text into terms. The builder and queries use the same analyzer.
 *
 *   bytes -> folded -> tokens -> possessive, elision removed -> lower case -> stop words dropped -> stemmed
 *       \____/    \____/    \_____________________________________________________________________/
 *       fold.h  tokenizer.h   gx_analysis_term, a function of one token alone, gives the term. A
 *                             builder calls it once for each different token.
 *
 * A JSON object describes an analyzer. The META section of an index holds it under "analyzer":
 *
 *   "tokenizer"        "word" (Unicode words) or "whitespace"
 *   "lowercase"        true or false; Unicode's simple mapping, as in Lucene
 *   "possessive"       true or false; removes a final 's, with an apostrophe ' U+2019 or U+FF07
 *   "max_token_bytes"  255; longer tokens are dropped
 *   "stopwords"        ["a", ...]
 *   "stemmer"          "none", "porter" (Porter's, as in Lucene; see porter.h) or the name of a
 *                      Snowball stemmer, of which "english" is Porter2
 *   "fold"             "unicode" (fold.h), or missing: text is not folded. What is folded is in
 *                      lower case, and tokens of nothing but connectors (U+203F, ...) are no terms
 *   "rules"            rules that older descriptions lack, or missing: none. "emoji": emoji below U+1F000 are words
 *                      (emoji.h), which "english" leaves out; "french", "german", ...: language.h; "scripts",
 *                      "identifiers", "ngrams:3", "ngrams:edge:2-15": subtokens.h; "dictionary": with "scripts", words
 *                      of Thai, Lao, Khmer, Burmese by a dictionary (dictionary.h); "light": light.h
 *   "stemmer_print"    16 hexadecimal digits: the fingerprint of the Snowball stemmer that made the terms
 *                      (stemmer_print.h), or missing: it is not known
 *   "unicode"          Unicode's version when the terms were made, where a fold or the rule "emoji" depends on it
 *   "icu"              ICU's version when the terms were made, where the rule "dictionary" depends on it
 *
 * A program refuses a rule that it does not know; one older than "rules" ignores it and what stands below it here: it
 * answers, but lacks the rules.
 */
#ifndef GX_INDEX_ANALYSIS_ANALYZER_H
#define GX_INDEX_ANALYSIS_ANALYZER_H

#include "engine/api/gpuidx.h"
#include "index/analysis/tokenizer.h"

typedef struct gx_analyzer gx_analyzer; /* does not change once open; several threads may share it */

typedef struct gx_analyzer_options {
    /* "english" (default: word, lower case, possessive, Lucene's 33 stop words, porter), "simple"
     * (word, lower case), "whitespace", "multilingual" (as simple, folded, with the rules scripts, dictionary and
     * light), "code" (as simple, with the rule identifiers), or a language (as simple, with Snowball's stemmer) */
    const char *name;
    const char *stemmer;   /* "none", "porter", "english" (Porter2), any of Snowball's; NULL: that of name */
    const char *stopwords; /* "none", "lucene", or a file with one word a line; NULL: those of name */
    const char *fold;      /* "none" or "unicode"; NULL: that of name, "unicode" of multilingual, else "none" */
    const char *ngrams;    /* "none" (NULL), "edge:2-15" or "3" (subtokens.h); neither stemmer nor stop words then */
} gx_analyzer_options;

/* Open an analyzer. opt NULL: "english". GX_EUSAGE (an unknown name), GX_ENOTFOUND or GX_EIO (the
 * file of stop words), GX_ENOMEM. */
gx_status gx_analyzer_open(gx_analyzer **out, const gx_analyzer_options *opt, gx_error *err);

/* Open the analyzer that json[len] describes. GX_ECORRUPT (it is no such object), GX_EUSAGE (this
 * library lacks the stemmer or the fold), GX_ENOMEM. */
gx_status gx_analyzer_open_json(gx_analyzer **out, const char *json, size_t len, gx_error *err);
void gx_analyzer_close(gx_analyzer *an);

/* The description as NUL-terminated JSON, which the caller frees. NULL: out of memory. */
char *gx_analyzer_json(const gx_analyzer *an);

typedef enum gx_analyzers_differ {
    GX_ANALYZERS_SAME,
    GX_ANALYZERS_OTHER,  /* they make other terms: another stemmer, other stop words, ... */
    GX_ANALYZERS_STEMMER /* the stemmer is that of another version */
} gx_analyzers_differ;

/* Do two descriptions make the same terms? What one of them has not recorded is the same. GX_ENOMEM. */
gx_status gx_analyzers_agree(const gx_analyzer *a, const gx_analyzer *b, gx_analyzers_differ *how);

bool gx_analyzer_is_recorded(const gx_analyzer *an); /* does it tell what made the terms? */

/* Is what was recorded when the terms were made as in this program? *what tells the difference. */
gx_analysis_change gx_analyzer_change(const gx_analyzer *an, gx_error *what);

/* A term of a text. */
typedef struct gx_found_term {
    const char *term; /* [len] */
    size_t len;
    size_t begin, end; /* the token's bytes in the text, for snippets; with a fold, tokens made of one character share
                          its bytes, and tokens of one word may overlap */
    uint32_t position; /* of the token (gx_tokens); stop words leave gaps */
} gx_found_term;

/* Receives a term; its bytes live until the function returns. Returning false ends the analysis. */
typedef bool gx_term_fn(void *user, const gx_found_term *t);

/* Call emit for every term of text, in order: by rising position. Thread-safe. The analyzer keeps a pool of workspaces,
 * so that most calls need not make a stemmer. GX_ENOMEM. */
typedef gx_status gx_analyze_fn(const gx_analyzer *an, const char *text, size_t len, gx_term_fn *emit, void *user);
gx_analyze_fn gx_analyze;

/* The same of the text of a query: terms are left out that stand in documents for shorter queries alone. */
gx_analyze_fn gx_analyze_query;

/* The letters of a short text as those of its terms are written, folded and in lower case where the analyzer does that:
 * for patterns, which are not words. Returns the bytes that it writes to out[max]; 0 where max is below three times
 * what there is, or memory lacks. Thread-safe. */
size_t gx_analyzer_letters(const gx_analyzer *an, const char *text, size_t len, char *out, size_t max);

/* ---- in two steps, for a builder ---- */

typedef struct gx_analysis gx_analysis; /* one thread's workspace on an analyzer, which outlives it */

gx_status gx_analysis_open(gx_analysis **out, const gx_analyzer *an, gx_error *err);
void gx_analysis_close(gx_analysis *a);

/* Raw tokens, byte ranges of the workspace's copy of the text. The copy
 * is folded, if the analyzer folds. ASCII letters are lower case already if it lowers case. At
 * least GX_TOKENIZER_SLACK bytes behind any token are readable. The arrays live until the next
 * gx_analysis_buffer. */
typedef struct gx_tokens {
    const char *bytes;
    const gx_token *ranges; /* [n] */
    uint32_t n;
    uint32_t replaced; /* bytes of the text that are not UTF-8; counted by the word tokenizer and a fold only */
    const uint32_t
        *positions;       /* [n] of the tokens: from 0, never falling; several may share one. NULL: token i has i */
    uint32_t n_positions; /* the positions of a text's next piece begin here; n without positions */
} gx_tokens;

/* Room for a text of len < 2^31 bytes, which the caller fills before gx_analysis_tokenize. NULL: no
 * memory. A long text is best tokenized in pieces (gx_safe_split). */
char *gx_analysis_buffer(gx_analysis *a, size_t len);

/* Find the tokens of the len bytes in the buffer. GX_ENOMEM. */
gx_status gx_analysis_tokenize(gx_analysis *a, size_t len, gx_tokens *out);

/* From bytes [*begin, *end) of the copy, which are not empty, to those of the text. */
void gx_analysis_range(const gx_analysis *a, size_t *begin, size_t *end);

/* The analyzer's max_token_bytes. */
uint32_t gx_analysis_max_token(const gx_analysis *a);

typedef enum gx_token_kind { GX_TOKEN_TERM, GX_TOKEN_STOPPED, GX_TOKEN_TOO_LONG } gx_token_kind;

/* Turn one raw token into a term.
 *   GX_TOKEN_TERM       *term holds *term_len bytes, which live until the next call
 *   GX_TOKEN_STOPPED    the token is a stop word, or nothing is left of it, or (word tokenizer) it
 *                       has nothing but underscores, or connectors if the analyzer folds
 *   GX_TOKEN_TOO_LONG   the token has more than max_token_bytes bytes */
gx_token_kind gx_analysis_term(gx_analysis *a, const char *token, size_t len, const char **term, size_t *term_len);

#endif
