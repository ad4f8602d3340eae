#include "codecs/choice.h"

const gx_codec gx_codec_auto = {.name = "auto", .title = "chosen by list", .block_len = 128};

static uint64_t measure(const gx_codec *c, uint8_t param, const uint32_t *in, uint64_t n)
{
    uint32_t words[2 * GX_MAX_BLOCK];
    uint64_t used = 0;
    for (uint64_t at = 0; at < n; at += c->block_len)
        used += c->encode(in + at, n - at < c->block_len ? (uint32_t)(n - at) : c->block_len, param, words);
    return used;
}

uint32_t gx_choices(const uint32_t *in, uint64_t n, double load, gx_choice out[GX_MAX_CHOICES])
{
    uint32_t n_choices = 0;
    for (const gx_codec *const *p = gx_codecs; *p && n_choices < GX_MAX_CHOICES; ++p) {
        const gx_codec *const c = *p;
        if (c->decode_cost == 0 || c->block_len != gx_codec_auto.block_len)
            continue;
        const uint8_t param = c->param ? c->param(in, n) : 0;
        const double slower = (c->decode_cost - 10.0) / 10.0;
        out[n_choices++] = (gx_choice){c, param, 32.0 * (double)measure(c, param, in, n) + GX_CHOICE_BITS * (double)n * load * slower};
    }
    return n_choices;
}
