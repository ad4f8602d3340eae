/* varint-SU, known as VByte, varint or VInt: seven bits in each byte, the lowest first. The eighth
 * bit is set if another byte of the integer follows. An integer takes 1 to 5 bytes.
 *
 *     300 = 0x12c    | 1 0101100 | 0 0000010 |
 *
 * Parallel structure: a byte without the eighth bit ends an integer, independently of the bytes
 * before it. A scan over the counts of such bytes gives the position of every integer. No index
 * within the block is needed.
 */
#include "codecs/codec.h"
#include "codecs/compared/varint.h"
#include "codecs/words/simd.h"

static uint32_t max_words(uint32_t n)
{
    return gx_div_up(5 * n, 4);
}

static uint32_t varint_su_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (gx_any_bits(in, n) == 0)
        return 0;
    uint8_t *p = (uint8_t *)out;
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t x = in[i];
        for (; x >= 0x80; x >>= 7)
            *p++ = (uint8_t)(x | 0x80);
        *p++ = (uint8_t)x;
    }
    return gx_varint_pad(out, p);
}

static void varint_su_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (n_words == 0 || !gx_simd_best()->su((const uint8_t *)words, (const uint8_t *)(words + n_words), n, out))
        memset(out, 0, n * sizeof *out);
}

static bool varint_su_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    return gx_varint_valid(&gx_codec_varintsu, words, n_words, n);
}

/* The bytes of a word that end an integer; each sets the lowest bit of its byte. */
static uint32_t ends_of(uint32_t word)
{
    return ~word >> 7 & 0x01010101u;
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)n, (void)param;
    uint32_t k = 0, here, one[16];
    for (; k < n_words && i > (here = ends_of(words[k]) * 0x01010101u >> 24); ++k)
        i -= here;
    if (k == n_words)
        return 0;
    const uint8_t *p = (const uint8_t *)(words + k);
    while (i > 0)
        i -= *p++ < 0x80;
    return gx_simds[0]->su(p, (const uint8_t *)(words + n_words), 1, one) ? one[0] : 0;
}

const gx_codec gx_codec_varintsu = {"varint-su",
                                    "varint-SU",
                                    "VByte; Stepanov et al., CIKM 2011, taxonomy",
                                    GX_CODEC_VARINTSU,
                                    GX_VARINT_BLOCK,
                                    false,
                                    NULL,
                                    max_words,
                                    varint_su_encode,
                                    varint_su_valid,
                                    varint_su_decode,
                                    at,
                                    NULL,
                                    NULL,
                                    {15, 10}};
