/* varint-PU. The low bits of the first byte give, in unary, the number of bytes that follow it; the
 * integer is stored above them. An integer takes 1 to 5 bytes, as many as in VByte.
 *
 *     300 = 0x12c    length 01, then 1 00101100: (300 << 2) + 1 in two bytes
 *
 * An integer x of L bytes is stored as (x << L) + 2^(L-1) - 1, lowest byte first.
 *
 * Parallel structure: a byte does not show whether it is the first of an integer, so that a block
 * without an index has none. But blocks are independent, and the lanes of a warp can go on by
 * themselves once they know the positions of 32 integers, every fourth one. One lane for each block
 * walks through the first bytes and stores these positions (varint.cuh).
 */
#include "codecs/codec.h"
#include "codecs/compared/varint.h"

static uint32_t max_words(uint32_t n)
{
    return gx_div_up(5 * n, 4);
}

static uint32_t varint_pu_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (gx_any_bits(in, n) == 0)
        return 0;
    uint8_t *p = (uint8_t *)out;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t length = (gx_bit_width(in[i] | 1) + 6) / 7;
        const uint64_t x = (uint64_t)in[i] << length | gx_low_bits(length - 1);
        memcpy(p, &x, length);
        p += length;
    }
    return gx_varint_pad(out, p);
}

/* The integer that starts at the lowest byte of x, and its length in bytes. */
static uint32_t first_of(uint64_t x, uint32_t *length)
{
    *length = (uint32_t)__builtin_ctz(~(uint32_t)x | 0x10) + 1;
    return (uint32_t)((x & (((uint64_t)1 << 8 * *length) - 1)) >> *length);
}

static const uint64_t low_bits = 0x0101010101010101u;

static void varint_pu_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint8_t *p = (const uint8_t *)words, *const end = (const uint8_t *)(words + n_words);
    for (uint32_t i = 0; i < n;) {
        uint64_t x;
        uint32_t length;
        if (n_words == 0 || p > end) {
            memset(out, 0, n * sizeof *out);
            return;
        }
        memcpy(&x, p, 8);
        if (i + 8 <= n && (x & low_bits) == 0) {
            for (uint32_t k = 0; k < 8; ++k)
                out[i + k] = x >> (8 * k + 1) & 0x7f;
            p += 8;
            i += 8;
        } else {
            out[i++] = first_of(x, &length);
            p += length;
        }
    }
}

static bool varint_pu_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    return gx_varint_valid(&gx_codec_varintpu, words, n_words, n);
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)n, (void)param;
    const uint8_t *p = (const uint8_t *)words, *const end = (const uint8_t *)(words + n_words);
    uint32_t x = 0;
    for (uint32_t k = 0; k <= i; ++k) {
        uint64_t bytes;
        uint32_t length;
        if (n_words == 0 || p > end)
            return 0;
        memcpy(&bytes, p, 8);
        x = first_of(bytes, &length);
        p += length;
    }
    return x;
}

const gx_codec gx_codec_varintpu = {"varint-pu",
                                    "varint-PU",
                                    "Stepanov et al., CIKM 2011, taxonomy",
                                    GX_CODEC_VARINTPU,
                                    GX_VARINT_BLOCK,
                                    false,
                                    NULL,
                                    max_words,
                                    varint_pu_encode,
                                    varint_pu_valid,
                                    varint_pu_decode,
                                    at,
                                    NULL,
                                    NULL,
                                    {16, 10}};
