/* list_encoder.h: encodes lists in memory, apart from the index file, so that several threads can
 * encode at once. A writer (writer.h) then appends what each encoder holds.
 *
 *   gx_list_encoder_open -> gx_list_encoder_add, terms in rising order -> gx_writer_add_encoded
 */
#ifndef GX_INDEX_WRITE_LIST_ENCODER_H
#define GX_INDEX_WRITE_LIST_ENCODER_H

#include "codecs/codec.h"
#include "index/fields/field_tfs.h"
#include "index/write/term_postings.h"

/* All that is known of an encoded list except its blocks. */
typedef struct gx_encoded_list {
    uint64_t sum_tfs;
    uint32_t term_len, df, n_words;
    const gx_codec *docids, *tfs;
    uint8_t docid_param, tf_param;
    float unit;         /* gx_term_postings.unit */
    size_t field_bytes; /* of the tfs by field */
} gx_encoded_list;

/* For one thread at a time. The writer reads its members. */
typedef struct gx_list_encoder {
    const gx_codec *docids, *tfs; /* gx_codec_auto: chosen for each list */
    uint32_t n_docs;
    uint32_t n_fields;          /* 0: there are none */
    uint32_t *field_lens;       /* [n_docs * (n_fields - 1)] sums of the tfs, atomic; of all encoders */
    const uint32_t *field_positions; /* the same: how many positions each field takes; with positions */
    uint32_t *field_tfs;             /* [max_field_tfs] of a list, by its positions */
    size_t max_field_tfs;
    gx_field_bytes field_bytes; /* the tfs by field of all lists */
    gx_encoded_list *lists;
    uint32_t *hashes;                               /* [n_lists] low halves of the terms' hashes */
    char *terms;                                    /* one behind another */
    uint32_t *words, *heads, *docid_ends, *tf_ends; /* of all lists; an end counts words from its list's first word */
    bool with_positions;                            /* set by who opens it */
    uint32_t *position_words, *position_lens;       /* of all lists; the words of each block */
    size_t fall; /* the first list whose term does not come behind the one before it; 0: none */
    size_t n_lists, n_terms, n_words, n_blocks, max_lists, max_hashes, max_terms, max_words, max_heads, max_docid_ends,
        max_tf_ends, n_position_words, max_position_words, max_position_lens;
    /* [max_gaps] scratch: the integers of a block, or of a list where its parameter or codec is
     * chosen */
    uint32_t *gaps;
    size_t max_gaps;
} gx_list_encoder;

/* docids and tfs have equal block_len, or are gx_codec_auto. n_docs: all docids are below it. */
void gx_list_encoder_open(gx_list_encoder *c, const gx_codec *docids, const gx_codec *tfs, uint32_t n_docs);
void gx_list_encoder_close(gx_list_encoder *c);

/* As gx_writer_add_list, except that the order of terms is an error only for the writer. */
gx_status gx_list_encoder_add(gx_list_encoder *c, const gx_term_postings *list, gx_error *err);

/* Whether the term comes behind the last one in byte order. */
bool gx_terms_rise(const char *last, size_t last_len, const char *term, size_t len);

void gx_list_encoder_clear(gx_list_encoder *c); /* drop all lists, keep most of the memory */

/* A term for a message: at most its first bytes, with a question mark for each byte that cannot be
 * printed. Returns buffer. */
const char *gx_show_term(const char *term, size_t len, char buffer[64]);

#endif
