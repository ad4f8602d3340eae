#include "index/made_list.h"

#include <stdlib.h>
#include <string.h>

const gx_codec *gx_made_list_codec(uint32_t block_len)
{
    return block_len == 128   ? gx_codec_by_id(GX_CODEC_GPUBP128)
           : block_len == 256 ? gx_codec_by_id(GX_CODEC_GPUBP256)
                              : gx_codec_by_id(GX_CODEC_GPUVBYTE1024);
}

/* Encode blocks of docids, or of tfs, to words; ends[n_blocks] of each. Returns the words. */
static uint32_t encode_blocks(const gx_codec *codec, const uint32_t *given, uint32_t n_given, bool is_docids,
                              uint32_t *words, uint32_t at, uint32_t *ends)
{
    const uint32_t block_len = codec->block_len;
    uint32_t values[GX_MAX_BLOCK];
    for (uint32_t from = 0, j = 0, n; from < n_given; from += n, ++j) {
        const uint32_t *const x = given + from;
        n = n_given - from < block_len ? n_given - from : block_len;
        for (uint32_t i = 0; i < n; ++i)
            values[i] = !is_docids ? x[i] - 1 : i ? x[i] - x[i - 1] - 1 : 0;
        ends[j] = at += codec->encode(values, n, 0, words + at);
    }
    return at;
}

gx_made_list *gx_made_list_make(const uint32_t *docids, const uint32_t *tfs, uint32_t n_postings, uint32_t block_len)
{
    const uint32_t n_blocks = n_postings ? (n_postings - 1) / block_len + 1 : 0;
    const gx_codec *codec = gx_made_list_codec(block_len);
    const size_t most = (2 * (size_t)codec->max_words(block_len) + 2) * n_blocks;
    uint32_t *const ends = malloc((most + 1) * sizeof *ends), *const words = ends + 2 * (size_t)n_blocks;
    if (!ends)
        return NULL;
    uint32_t n = encode_blocks(codec, docids, n_postings, true, words, 0, ends);
    n = encode_blocks(codec, tfs, n_postings, false, words, n, ends + n_blocks);
    const size_t before = 3 * (size_t)n_blocks;
    gx_made_list *m = malloc(sizeof *m + (before + n) * sizeof(uint32_t) + GX_READ_SLACK);
    for (uint32_t j = 0; m && j < n_blocks; ++j)
        m->words[j] = docids[(size_t)j * block_len];
    if (m) {
        memcpy(m->words + n_blocks, ends, (2 * (size_t)n_blocks + n) * sizeof *ends);
        memset(m->words + before + n, 0, GX_READ_SLACK);
        m->list = (gx_list){.df = n_postings,
                            .n_blocks = n_blocks,
                            .block_len = block_len,
                            .docids = codec,
                            .tfs = codec,
                            .heads = m->words,
                            .docid_ends = m->words + n_blocks,
                            .tf_ends = m->words + 2 * (size_t)n_blocks,
                            .payload = m->words + before};
    }
    free(ends);
    return m;
}
