#include "codecs/compared/varint.h"

uint32_t gx_varint_pad(uint32_t *out, uint8_t *end)
{
    const uint32_t bytes = (uint32_t)(end - (uint8_t *)out), n_words = gx_div_up(bytes, 4);
    memset(end, 0, 4 * n_words - bytes);
    return n_words;
}

bool gx_varint_valid(const gx_codec *codec, const uint32_t *words, uint32_t n_words, uint32_t n)
{
    uint32_t values[GX_VARINT_BLOCK], again[GX_VARINT_MAX_WORDS];
    codec->decode(words, n_words, n, 0, values);
    return codec->encode(values, n, 0, again) == n_words && (n_words == 0 || memcmp(again, words, 4 * n_words) == 0);
}
