/* Lane-contiguous binary packing, for decoders that keep integers in registers. Lane l of a warp
 * owns integers 32 l .. 32 l + 31, which take b words. The words of the lanes are interleaved, so
 * that a warp reads whole rows of 128 bytes:
 *
 *     | word 0 of lane 0 | word 0 of lane 1 | .. | word 0 of lane 31 | word 1 of lane 0 | ..
 *       32 b words in all
 *
 * Each lane sums its own integers, so that 1,024 docids need one scan over the warp. A block of
 * fewer than 1,024 integers is laid out as in GPU-BP (gpubp.c). A block of zeros takes no words.
 */
#include "codecs/codec.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"

enum { BLOCK = 1024, LANES = 32 };

static uint32_t max_words(uint32_t n)
{
    return n;
}

static uint32_t lane1024_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint32_t b = gx_max_bit_width(in, n), n_words = gx_div_up(n * b, 32);
    if (n < BLOCK) {
        gx_pack(in, n, gx_packed_width(n_words, n), out);
        return n_words;
    }
    for (uint32_t lane = 0; lane < LANES; ++lane) {
        uint32_t row[32];
        gx_pack(in + 32 * lane, 32, b, row);
        for (uint32_t w = 0; w < b; ++w)
            out[w * LANES + lane] = row[w];
    }
    return n_words;
}

static bool lane1024_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    return gx_packed_is_valid(words, n_words, n);
}

static void lane1024_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint32_t b = gx_packed_width(n_words, n);
    if (n < BLOCK) {
        gx_simd_best()->unpack(words, n, b, out);
        return;
    }
    void (*const unpack)(const uint32_t *, uint32_t, uint32_t, uint32_t *) = gx_simd_best()->unpack;
    for (uint32_t lane = 0; lane < LANES; ++lane) {
        uint32_t row[32 + GX_READ_SLACK / 4];
        for (uint32_t w = 0; w < b; ++w)
            row[w] = words[w * LANES + lane];
        unpack(row, 32, b, out + 32 * lane);
    }
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)param;
    const uint32_t b = gx_packed_width(n_words, n);
    if (b == 0)
        return 0;
    if (n < BLOCK)
        return gx_bits_at(words, i * b, b);
    const uint32_t bit = i % 32 * b, *const w = words + bit / 32 * LANES + i / 32;
    uint64_t x = w[0];
    if (bit % 32 + b > 32)
        x |= (uint64_t)w[LANES] << 32;
    return (uint32_t)(x >> bit % 32) & gx_low_bits(b);
}

const gx_codec gx_codec_lane1024 = {"lane1024", "Lane1024", "gpuidx",        GX_CODEC_LANE1024, BLOCK,           true,
                                    NULL,       max_words,  lane1024_encode, lane1024_valid,    lane1024_decode, at};
