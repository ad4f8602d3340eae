/* decode.h: whole lists, and docids: what stands between a codec's blocks and those who want
 * postings.
 *
 * A packed list is a codec's blocks one behind another (codec.h); where it holds docids, heads has
 * each block's first docid and the blocks hold 0, then d[i] - d[i-1] - 1 (index/format.h).
 */
#ifndef GX_CODECS_DECODE_H
#define GX_CODECS_DECODE_H

#include "codecs/codec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_packed {
    const gx_codec *codec;
    uint8_t param;
    const uint8_t *params; /* [n_blocks] parameters, where several lists are one; NULL: all blocks have param */
    const uint32_t *words; /* GX_READ_SLACK readable bytes follow the last */
    const uint32_t *ends;  /* [n_blocks], rising */
    const uint32_t *heads; /* [n_blocks], or NULL: the list does not hold docids */
    uint64_t n;            /* integers; n_blocks = ceil(n / block_len) */
} gx_packed;

static inline uint64_t gx_packed_blocks(const gx_packed *list)
{
    return (list->n + list->codec->block_len - 1) / list->codec->block_len;
}

/* Pack in[n] (as they are, no gaps taken): words [gx_pack_list_words(codec, n)], ends [n_blocks];
 * returns the words used. */
uint64_t gx_pack_list_words(const gx_codec *codec, uint64_t n);
uint64_t gx_pack_list(const gx_codec *codec, uint8_t param, const uint32_t *in, uint64_t n, uint32_t *words,
                      uint32_t *ends);

/* Docids in coded form: coded[n] from rising docids[n], and each block's head. May not overlap. */
void gx_docids_to_coded(const uint32_t *docids, uint64_t n, uint32_t block_len, uint32_t *coded, uint32_t *heads);

/* One block of docids: decode, then sum from the head. out as codec->decode's. */
void gx_decode_docids(const gx_codec *codec, const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param,
                      uint32_t head, uint32_t *out);

typedef enum gx_form {
    GX_FORM_INTEGERS, /* what was packed */
    GX_FORM_DOCIDS    /* docids from heads */
} gx_form;

/* The whole list to out [n, and room for block_len - 1 more]. */
void gx_decode_list_cpu(const gx_packed *list, gx_form form, uint32_t *out);

#ifdef __cplusplus
}
#endif
#endif
