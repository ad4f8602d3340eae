/* analyzer.h: text to terms, the same when an index is built and when it is queried.
 *
 *   bytes -> tokens (Unicode words, or white space) -> lower case -> possessive off -> stop words out -> stemmer -> terms
 *
 * An analyzer is described by a small JSON object, stored in the index's META section under "analyzer":
 *   {"tokenizer": "word" | "whitespace", "lowercase": true, "possessive": true, "max_token_bytes": 255,
 *    "stopwords": ["a", ...], "stemmer": "porter" | "none" | a Snowball name}
 */
#ifndef GX_ANALYZER_H
#define GX_ANALYZER_H

#include "engine/gpuidx.h"

typedef struct gx_analyzer gx_analyzer; /* immutable and shareable once open */

typedef struct gx_analyzer_options {
    const char *name;      /* "english" (default: word, lower case, possessive, Lucene's 33 stop words, porter), "simple" (word, lower case) or "whitespace" */
    const char *stemmer;   /* NULL: the name's own; "none", "porter", "english" (Porter2), any of Snowball's */
    const char *stopwords; /* NULL: the name's own; "none", "lucene", or a file, a word a line */
} gx_analyzer_options;

gx_status gx_analyzer_open(gx_analyzer **out, const gx_analyzer_options *opt, gx_error *err);
gx_status gx_analyzer_open_json(gx_analyzer **out, const char *json, size_t len, gx_error *err);
void gx_analyzer_close(gx_analyzer *an);
/* The description, NUL-terminated JSON; the caller frees. NULL: out of memory. */
char *gx_analyzer_json(const gx_analyzer *an);

/* Call emit for every term of text, in order; begin and end are the token's byte range in text (for snippets).
 * The term's bytes live until emit returns. emit returning false stops. Thread-safe. */
typedef bool gx_term_fn(void *user, const char *term, size_t len, size_t begin, size_t end);
gx_status gx_analyze(const gx_analyzer *an, const char *text, size_t len, gx_term_fn *emit, void *user);

#endif
