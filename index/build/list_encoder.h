/* list_encoder.h: lists coded apart from their file, so that several threads can code, and one puts
 * what they made behind each other.
 *
 *   gx_coded_open -> gx_coded_add, terms in rising order -> gx_writer_add_coded (writer.h), which
 *   takes all that was added
 */
#ifndef GX_INDEX_BUILD_LIST_ENCODER_H
#define GX_INDEX_BUILD_LIST_ENCODER_H

#include "codecs/codec.h"
#include "engine/gpuidx.h"

/* What is known of a list but its blocks. */
typedef struct gx_coded_list {
    uint64_t sum_tfs;
    uint32_t term_len, df, n_words;
    const gx_codec *docids, *tfs;
    uint8_t docid_param, tf_param;
} gx_coded_list;

/* Of one thread at a time; read by the writer. */
typedef struct gx_coded {
    const gx_codec *docids, *tfs; /* gx_codec_auto: a list's own */
    uint32_t n_docs;
    gx_coded_list *lists;
    char *terms;                                    /* one behind another */
    uint32_t *words, *heads, *docid_ends, *tf_ends; /* of all lists; ends count from their list's first word */
    size_t n_lists, n_terms, n_words, n_blocks, max_lists, max_terms, max_words, max_heads, max_docid_ends, max_tf_ends;
    uint32_t *gaps; /* [max_gaps] a block's integers, or a list's, for parameters and choices */
    size_t max_gaps;
} gx_coded;

/* docids, tfs: of equal block_len, or gx_codec_auto. Docids are to be below n_docs. */
void gx_coded_open(gx_coded *c, const gx_codec *docids, const gx_codec *tfs, uint32_t n_docs);
void gx_coded_close(gx_coded *c);

/* As gx_writer_add_list, but for the order of terms, which the writer looks at. */
gx_status gx_coded_add(gx_coded *c, const char *term, size_t len, uint32_t df, const uint32_t *docids,
                       const uint32_t *tfs, gx_error *err);

void gx_coded_empty(gx_coded *c); /* of lists; most memory is kept */

/* Words for messages: a term's bytes, its beginning only, anything not printable as a question
 * mark. */
const char *gx_show_term(const char *term, size_t len, char buffer[64]);

/* Grow *array to hold n items of the size, by halves. GX_ENOMEM. */
gx_status gx_grow(void *array, size_t *max, size_t n, size_t size, gx_error *err);

#endif
