/* GPU-BP (Mallia et al., CIKM 2019, section 3.1): n integers packed at b bits each, where b is the
 * width of the greatest one.
 *
 * b is not stored. It follows from the block's length: b = min(32, 32 * words / n). For a block of
 * 128 integers this is words / 4. If n is not a multiple of 32, the rounding to whole words can
 * leave room for wider integers; the encoder then packs at the width that the decoder will compute.
 * A block of zeros takes no words.
 */
#include "codecs/codec.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"

static uint32_t max_words(uint32_t n)
{
    return n;
}

static uint32_t gpubp_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint32_t n_words = gx_div_up(n * gx_max_bit_width(in, n), 32);
    gx_pack(in, n, gx_packed_width(n_words, n), out);
    return n_words;
}

static bool gpubp_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    return gx_packed_is_valid(words, n_words, n);
}

static void gpubp_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    gx_simd_best()->unpack(words, n, gx_packed_width(n_words, n), out);
}

static void gpubp_decode_docids(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head,
                                uint32_t *out)
{
    (void)param;
    gx_simd_best()->unpack_docids(words, n, gx_packed_width(n_words, n), head, out);
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)param;
    const uint32_t b = gx_packed_width(n_words, n);
    return b ? gx_bits_at(words, i * b, b) : 0;
}

#define GPUBP(block, ...)                                                                                              \
    {                                                                                                                  \
        "gpubp" #block, "GPU-BP" #block, "Mallia et al., CIKM 2019, 3.1", GX_CODEC_GPUBP##block, block, true, NULL,    \
            max_words, gpubp_encode, gpubp_valid, gpubp_decode, at, gpubp_decode_docids, NULL, __VA_ARGS__             \
    }

const gx_codec gx_codec_gpubp128 = GPUBP(128, {10, 10});
const gx_codec gx_codec_gpubp256 = GPUBP(256, {0, 0});
