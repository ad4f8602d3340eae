/* codec.h: integer lists to 32-bit words and back, a block at a time.
 *
 * A block is 1 to block_len integers coded together. Blocks are self-contained: word count, number
 * of integers and the list's parameter are all that a decoder needs. The blocks of
 * a list lie one behind another. An array of endpoints, in words from the list's start, tells where
 * each ends, as in Mallia et al. (CIKM 2019), section 3:
 *
 *     words      | block 0      | block 1    | block 2        | ...
 *     ends        ends[0] -----^ ends[1] ---^ ends[2] -------^
 *
 * Block b is words [b ? ends[b-1] : 0, ends[b]).
 *
 * The registry (codecs.h) lists all codecs. build, bench, info, check, the tests and the manual
 * pages read it.
 */
#ifndef GX_CODECS_CODEC_H
#define GX_CODECS_CODEC_H

#include "codecs/codecs.h"
#include "engine/api/gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GX_MAX_BLOCK 1024u /* no codec's blocks are longer */
#define GX_MAX_WORDS 2048u /* no codec's block takes more words */
#define GX_READ_SLACK 64u  /* decoders may read (and ignore) this many bytes past a block's last word */

/* Identifiers in index files. */
enum gx_codec_id {
#define GX_ID(ID, NUMBER, NAME) GX_CODEC_##ID = NUMBER,
    GX_CODECS(GX_ID)
#undef GX_ID
};

typedef struct gx_codec {
    const char *name;   /* as users write it: "gpubp128" */
    const char *title;  /* as papers write it: "GPU-BP128" */
    const char *source; /* paper and section */
    uint8_t id;         /* enum gx_codec_id */
    uint16_t block_len; /* most integers in a block */
    bool random_access; /* at() costs O(1) */

    /* The parameter of a whole list (Rice's and PForDelta's b), 0..max_param, from its n values.
     * NULL: none, pass 0. */
    uint8_t (*param)(const uint32_t *values, uint64_t n);

    /* Most words that n <= block_len integers can take. */
    uint32_t (*max_words)(uint32_t n);

    /* Encode in[n], 1 <= n <= block_len, any values; returns the words written to
     * out[max_words(n)]. The bytes are a function of the values alone (golden bytes are tested). */
    uint32_t (*encode)(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out);

    /* Whether the structure of words[n_words] is that of a block: lengths add up, selectors exist.
     * A quick test; gx_codec_block_valid decides whether encode could have written the block.
     * Decoding is safe in any case. */
    bool (*valid)(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param);

    /* Decode n integers to out[n] (may write up to block_len rounded up to 32). Whatever the bytes
     * are, reads stay within words[n_words] + GX_READ_SLACK and writes within out. */
    void (*decode)(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out);

    /* The i-th integer alone, i < n. NULL: decode the block. */
    uint32_t (*at)(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i);

    /* Decode a block of docids: out[i] = head - 1 + (v[0] + 1) + .. + (v[i] + 1), modulo 2^32.
     * NULL: decode, then sum; gx_decode_docids (decode.h) does either. */
    void (*decode_docids)(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head,
                          uint32_t *out);

    /* In a block of docids: return the least i whose docid is >= docid, and store that docid in
     * *found. Where there is none, return n and leave *found alone. NULL: the caller decodes the
     * block. */
    uint32_t (*next_geq)(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head,
                         uint32_t docid, uint32_t *found);

    /* The time to decode one integer on the GPU into registers, docids summed up, relative to
     * GPU-BP128's, which is 10. Measured on the lists of a query log (MEASURED.md). auto_codec.h
     * chooses by it. 0: blocks are not of 128 integers, and `auto` does not consider the codec. */
    struct {
        uint8_t docids, tfs;
    } decode_cost;

    uint8_t max_param; /* the greatest value of param, also in files; 0 where param is NULL */
} gx_codec;

#define GX_DECLARE(ID, NUMBER, NAME) extern const gx_codec gx_codec_##NAME;
GX_CODECS(GX_DECLARE)
#undef GX_DECLARE

/* The registry, in order of id; ends at NULL. */
extern const gx_codec *const gx_codecs[];

const gx_codec *gx_codec_by_name(const char *name); /* NULL: none */
const gx_codec *gx_codec_by_id(uint8_t id);         /* NULL: none */

/* Whether words[n_words] is exactly what encode writes for some n integers: the block is valid, and
 * its decoded integers, encoded again, give the same words. GX_CHECK_FULL calls this; any other
 * block counts as corrupt. */
bool gx_codec_block_valid(const gx_codec *codec, const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param);

/* Find a codec by the name that a user gave. GX_EUSAGE lists the known names. "auto" gives
 * gx_codec_auto (auto_codec.h). */
gx_status gx_codec_find(const gx_codec **out, const char *name, gx_error *err);

/* Find the codecs of docids and of tfs. docid_name NULL: "gpubp128";
 * tf_name NULL: that of docids. */
gx_status gx_codec_find_pair(const gx_codec **docids, const gx_codec **tfs, const char *docid_name, const char *tf_name,
                             gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
