#include "codecs/decode.h"

#include "codecs/words/simd.h"

uint64_t gx_pack_list_words(const gx_codec *codec, uint64_t n)
{
    const uint64_t whole = n / codec->block_len, rest = n % codec->block_len;
    return whole * codec->max_words(codec->block_len) + (rest ? codec->max_words((uint32_t)rest) : 0);
}

uint64_t gx_pack_list(const gx_codec *codec, uint8_t param, const uint32_t *in, uint64_t n, uint32_t *words,
                      uint32_t *ends)
{
    uint64_t used = 0;
    for (uint64_t i = 0; i < n; i += codec->block_len) {
        const uint32_t m = n - i < codec->block_len ? (uint32_t)(n - i) : codec->block_len;
        used += codec->encode(in + i, m, param, words + used);
        *ends++ = (uint32_t)used;
    }
    return used;
}

void gx_docids_to_gaps(const uint32_t *docids, uint64_t n, uint32_t block_len, uint32_t *coded, uint32_t *heads)
{
    for (uint64_t i = 0; i < n; ++i) {
        if (i % block_len == 0) {
            *heads++ = docids[i];
            coded[i] = 0;
        } else {
            coded[i] = docids[i] - docids[i - 1] - 1;
        }
    }
}

void gx_decode_docids(const gx_codec *codec, const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param,
                      uint32_t head, uint32_t *out)
{
    if (codec->decode_docids) {
        codec->decode_docids(words, n_words, n, param, head, out);
    } else {
        codec->decode(words, n_words, n, param, out);
        gx_simd_best()->prefix_sum(out, n, head);
    }
}

void gx_decode_list_cpu(const gx_packed *list, gx_form form, uint32_t *out)
{
    const gx_codec *const c = list->codec;
    uint32_t begin = 0;
    for (uint64_t i = 0, k = 0; i < list->n; i += c->block_len, ++k) {
        const uint32_t m = list->n - i < c->block_len ? (uint32_t)(list->n - i) : c->block_len;
        const uint32_t *const words = list->words + begin;
        const uint32_t n_words = list->ends[k] - begin;
        const uint8_t param = list->params ? list->params[k] : list->param;
        if (form == GX_FORM_DOCIDS)
            gx_decode_docids(c, words, n_words, m, param, list->heads[k], out + i);
        else
            c->decode(words, n_words, m, param, out + i);
        begin = list->ends[k];
    }
}
