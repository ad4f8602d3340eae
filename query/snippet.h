/* snippet.h: the part of a document's text that shows best why it was found.
 *
 *   query --gx_highlighter_open--> its terms, each with a weight (rarer is heavier)
 *   text  --gx_highlighter_snippet--> one stretch of it, and the places of the query's words in
 *   that stretch
 *
 * The stretch is the one of about max_words words in which the different terms weigh most; the
 * earliest of equals. Words are what lies between white space; matching is the index's own
 * analysis, so "indexing" shows up for "index".
 */
#ifndef GX_QUERY_SNIPPET_H
#define GX_QUERY_SNIPPET_H

#include "index/index.h"

typedef struct gx_highlighter gx_highlighter; /* of one query; belongs to one thread */

#define GX_MAX_MARKS 64u      /* most words marked in a snippet */
#define GX_SNIPPET_BYTES 480u /* most bytes of one; text without white space is cut between characters */

typedef struct gx_snippet {
    size_t begin, end; /* bytes of the text, at character boundaries where it is valid UTF-8 */
    uint32_t n_marks;
    struct {
        size_t begin, end; /* bytes of the text, inside the snippet, rising */
    } marks[GX_MAX_MARKS];
} gx_snippet;

/* GX_ENOMEM, or what analysis says. */
gx_status gx_highlighter_open(gx_highlighter **out, const gx_index *ix, const char *query, size_t len, gx_error *err);
void gx_highlighter_close(gx_highlighter *h);

/* Different terms of the query, and of those, the ones that the index lacks. */
uint32_t gx_highlighter_n_terms(const gx_highlighter *h);
uint32_t gx_highlighter_n_unknown(const gx_highlighter *h);
/* The i-th term that the index lacks, i < n_unknown; NUL-terminated. */
const char *gx_highlighter_unknown(const gx_highlighter *h, uint32_t i);

/* max_words >= 1. Where no word matches, the text's beginning. */
gx_status gx_highlighter_snippet(gx_highlighter *h, const char *text, size_t len, uint32_t max_words, gx_snippet *out,
                                 gx_error *err);

#endif
