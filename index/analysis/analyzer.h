/* analyzer.h: text to terms, the same when an index is built and when it is queried.
 *
 *   bytes -> tokens (Unicode words, or white space) -> lower case -> possessive off -> stop words
 *   out -> stemmer -> terms
 *            \_ tokenizer.h _/                          \_ a function of one token alone:
 *            gx_analysis_term, which a
 *                                                        builder calls once for each different
 *                                                        token _/
 *
 * An analyzer is described by a small JSON object, stored in the index's META section under
 * "analyzer":
 *   {"tokenizer": "word" | "whitespace", "lowercase": true, "possessive": true, "max_token_bytes":
 *   255,
 *    "stopwords": ["a", ...], "stemmer": "porter" | "none" | a Snowball name}
 *
 * "porter" is Porter's algorithm as Lucene has it (porter.h); "english" is Snowball's Porter2.
 * Lower case is Unicode's simple mapping, as in Lucene. The possessive filter takes 's off, with
 * any of the apostrophes ' U+2019 U+FF07.
 */
#ifndef GX_INDEX_ANALYSIS_ANALYZER_H
#define GX_INDEX_ANALYSIS_ANALYZER_H

#include "engine/gpuidx.h"

typedef struct gx_analyzer gx_analyzer; /* immutable and shareable once open */

typedef struct gx_analyzer_options {
    /* "english" (default: word, lower case, possessive, Lucene's 33 stop words, porter), "simple"
     * (word, lower case) or "whitespace" */
    const char *name;
    const char *stemmer;   /* NULL: the name's own; "none", "porter", "english" (Porter2), any of Snowball's */
    const char *stopwords; /* NULL: the name's own; "none", "lucene", or a file, a word a line */
} gx_analyzer_options;

/* opt NULL: english. GX_EUSAGE (an unknown name), GX_ENOTFOUND or GX_EIO (the stop word file),
 * GX_ENOMEM. */
gx_status gx_analyzer_open(gx_analyzer **out, const gx_analyzer_options *opt, gx_error *err);
/* From a description. GX_ECORRUPT (not such an object), GX_EUSAGE (a stemmer that this library
 * lacks), GX_ENOMEM. */
gx_status gx_analyzer_open_json(gx_analyzer **out, const char *json, size_t len, gx_error *err);
void gx_analyzer_close(gx_analyzer *an);
/* The description, NUL-terminated JSON; the caller frees. NULL: out of memory. */
char *gx_analyzer_json(const gx_analyzer *an);

/* Call emit for every term of text, in order; begin and end are the token's byte range in text (for
 * snippets). The term's bytes live until emit returns. emit returning false stops. Thread-safe:
 * workspaces are kept in a pool inside, so that no call makes a stemmer anew. GX_ENOMEM. */
typedef bool gx_term_fn(void *user, const char *term, size_t len, size_t begin, size_t end);
gx_status gx_analyze(const gx_analyzer *an, const char *text, size_t len, gx_term_fn *emit, void *user);

/* ---- in two steps, for a builder ---- */

typedef struct gx_analysis gx_analysis; /* one thread's workspace on an analyzer, which outlives it */

gx_status gx_analysis_open(gx_analysis **out, const gx_analyzer *an, gx_error *err);
void gx_analysis_close(gx_analysis *a);

/* Raw tokens: bytes[begin[i], end[i]), i < n, in the workspace's copy of the text, where ASCII is
 * lower case already if the analyzer lowers. At least GX_TOKENIZER_SLACK bytes behind any token are
 * readable. All live until the next split. */
typedef struct gx_tokens {
    const char *bytes;
    const uint32_t *begin, *end;
    uint32_t n;
    uint32_t replaced; /* bytes of the text that are not UTF-8 (word tokenizer) */
} gx_tokens;

/* Room for a text of len < 2^31 bytes, which the caller fills before gx_analysis_tokenize. NULL: no
 * memory. Long texts are best split piece by piece (gx_safe_split). */
char *gx_analysis_buffer(gx_analysis *a, size_t len);
gx_status gx_analysis_tokenize(gx_analysis *a, size_t len, gx_tokens *out);

/* max_token_bytes. */
uint32_t gx_analysis_max_token(const gx_analysis *a);

typedef enum gx_token_kind { GX_TOKEN_TERM, GX_TOKEN_STOPPED, GX_TOKEN_TOO_LONG } gx_token_kind;

/* What becomes of one raw token. A term's bytes live until the next call. STOPPED: a stop word, or
 * no letter or digit in it. TOO_LONG: above max_token_bytes. */
gx_token_kind gx_analysis_term(gx_analysis *a, const char *token, size_t len, const char **term, size_t *term_len);

#endif
