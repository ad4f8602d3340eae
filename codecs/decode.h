/* decode.h: whole packed lists, and blocks of docids.
 *
 * A packed list is the blocks of a codec one behind another (codec.h). Where it holds docids, heads
 * has the first docid of each block, and the block holds 0, then d[i] - d[i-1] - 1
 * (index/format.h).
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
    const uint8_t
        *params; /* [n_blocks] each block's parameter, where several lists were joined; NULL: all have param */
    const uint32_t *words; /* GX_READ_SLACK readable bytes follow the last */
    const uint32_t *ends;  /* [n_blocks], rising */
    const uint32_t *heads; /* [n_blocks], or NULL: the list does not hold docids */
    uint64_t n;            /* integers; n_blocks = ceil(n / block_len) */
} gx_packed;

static inline uint64_t gx_packed_blocks(const gx_packed *list)
{
    return (list->n + list->codec->block_len - 1) / list->codec->block_len;
}

/* Pack in[n] as they are; no gaps are taken. words [gx_pack_list_words(codec, n)] and ends
 * [n_blocks] are written. Returns the number of words used. */
uint64_t gx_pack_list_words(const gx_codec *codec, uint64_t n);
uint64_t gx_pack_list(const gx_codec *codec, uint8_t param, const uint32_t *in, uint64_t n, uint32_t *words,
                      uint32_t *ends);

/* Rising docids[n] to coded form: coded[n], and each block's head. The arrays may not overlap. */
void gx_docids_to_gaps(const uint32_t *docids, uint64_t n, uint32_t block_len, uint32_t *coded, uint32_t *heads);

/* Decode one block of docids: decode, then sum up from head. out as for codec->decode. */
void gx_decode_docids(const gx_codec *codec, const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param,
                      uint32_t head, uint32_t *out);

typedef enum gx_form {
    GX_FORM_INTEGERS, /* the integers that were packed */
    GX_FORM_DOCIDS    /* docids, summed up from the heads */
} gx_form;

/* Decode the whole list to out[n], which has room for block_len - 1 more. */
void gx_decode_list_cpu(const gx_packed *list, gx_form form, uint32_t *out);

#ifdef __cplusplus
}
#endif
#endif
