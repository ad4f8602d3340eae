#include "codecs/auto_codec.h"

const gx_codec gx_codec_auto = {.name = "auto", .title = "chosen by list", .block_len = 128};

static uint64_t count_encoded_words(const gx_codec *c, uint8_t param, const uint32_t *in, uint64_t n)
{
    uint32_t words[2 * GX_MAX_BLOCK];
    uint64_t used = 0;
    for (uint64_t at = 0; at < n; at += c->block_len)
        used += c->encode(in + at, n - at < c->block_len ? (uint32_t)(n - at) : c->block_len, param, words);
    return used;
}

void gx_choices(bool is_docids, const uint32_t *in, uint64_t n, double load, gx_choice out[GX_MAX_CHOICES])
{
    static const uint8_t candidates[2][GX_MAX_CHOICES] = {
        /* first for tfs, then for docids */
        {GX_CODEC_GPUBP128, GX_CODEC_GPUPFD128, GX_CODEC_ELIASFANO, GX_CODEC_RICE},
        {GX_CODEC_GPUBP128, GX_CODEC_ELIASFANO, GX_CODEC_VARINTSU, GX_CODEC_RICE},
    };
    for (uint32_t i = 0; i < GX_MAX_CHOICES; ++i) {
        const gx_codec *const c = gx_codec_by_id(candidates[is_docids][i]);
        const uint8_t param = c->param ? c->param(in, n) : 0;
        const double slower = ((is_docids ? c->decode_cost.docids : c->decode_cost.tfs) - 10.0) / 10.0;
        out[i] = (gx_choice){
            c, param, 32.0 * (double)count_encoded_words(c, param, in, n) + GX_CHOICE_BITS * (double)n * load * slower};
    }
}
