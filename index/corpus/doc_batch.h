/* doc_batch.h: documents that lie in memory together, so that a thread can hand many of them to
 * another thread at once.
 *
 *   raw     bytes of a file, of which documents are parts that need no copy
 *   bytes   copies of all other strings, and the words of errors
 *   docs    for each document where its strings are, their lengths, its line
 *
 * A bad document of a corpus has a place in the batch, too: its status, and the error's words in
 * the place of its text.
 */
#ifndef GX_INDEX_CORPUS_DOC_BATCH_H
#define GX_INDEX_CORPUS_DOC_BATCH_H

#include "engine/api/gpuidx.h"

typedef struct gx_batch_document {
    size_t id, title, text; /* where they begin, in raw or in bytes */
    size_t title_len, text_len, first_value, first_weight;
    uint64_t line;
    uint32_t id_len, n_values, n_vector;
    uint32_t n_tokens, title_positions; /* the owner's */
    gx_status status;                   /* not GX_OK: an error stands in the place of a document */
    bool id_is_raw, title_is_raw, text_is_raw;
    bool has_title, has_vector;
    bool left_out; /* the owner's: the document does not go into the index */
} gx_batch_document;

typedef struct gx_doc_batch {
    const char *raw; /* [n_raw] the owner's, set before documents are added; NULL: all are copied */
    size_t n_raw;
    char *bytes; /* [n_bytes] */
    size_t n_bytes, max_bytes;
    gx_batch_document *docs; /* [n] */
    size_t n, max;
    struct gx_batch_value *values; /* [n_values] of all documents */
    size_t n_values, max_values;
    struct gx_batch_weight *weights; /* [n_weights] of all documents */
    size_t n_weights, max_weights;
    bool numbered;   /* a document's id is number + its line; the bytes of its id are room for it */
    uint64_t number; /* changed before gx_doc_batch_get is called for the first time */
} gx_doc_batch;      /* all zero: empty */

#define GX_NUMBER_DIGITS 20u /* bytes of an id, where documents are numbered */

/* Write the number in decimal to the end of digits. Returns where it begins. */
static inline size_t gx_write_number(char digits[GX_NUMBER_DIGITS], uint64_t number)
{
    size_t at = GX_NUMBER_DIGITS;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    return at;
}

/* Append the document. Its strings stay where they are if they lie in raw; others are copied. false:
 * no memory. */
bool gx_doc_batch_add(gx_doc_batch *b, const gx_document *doc, uint64_t line);
bool gx_doc_batch_add_error(gx_doc_batch *b, const gx_error *err, uint64_t line);
bool gx_doc_batch_set_error(gx_doc_batch *b, size_t i, const gx_error *err); /* in the place of the i-th document */

/* Arrays of a document's parts; all zero: none yet. */
typedef struct gx_doc_parts {
    gx_attribute_value *values;
    gx_weighted_term *vector;
    size_t max_values, max_vector;
} gx_doc_parts;

/* Make *doc the i-th document, which is no error. One thread at a time. Its bytes belong to the
 * batch, and its values and its vector to the parts, until they are used again. false: no memory. */
bool gx_doc_batch_get(const gx_doc_batch *b, size_t i, gx_doc_parts *parts, gx_document *doc);

/* The id [n] of the i-th document, unless documents are numbered. */
const char *gx_doc_batch_id(const gx_doc_batch *b, size_t i, size_t *n);

/* The words [n] of the error in the place of the i-th document. */
const char *gx_doc_batch_error(const gx_doc_batch *b, size_t i, size_t *n);

void gx_doc_batch_clear(gx_doc_batch *b); /* no document is left, and raw is NULL; the memory stays */
void gx_doc_batch_free(gx_doc_batch *b);
void gx_doc_parts_free(gx_doc_parts *parts);

#endif
