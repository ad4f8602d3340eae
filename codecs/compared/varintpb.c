/* varint-PB, known as BA or varint30. The low two bits of the first byte give, in binary, the
 * number of bytes that follow it; the integer is stored above them. An integer takes 1 to 4 bytes,
 * which hold 6, 14, 22 or 30 bits.
 *
 *     300 = 0x12c    length 01, then 100101100: (300 << 2) + 1 in two bytes
 *
 * An integer of 2^30 or more does not fit. A block with such an integer is stored as n words and a
 * word of 0. This is one word longer than any other block, and so recognised.
 *
 * Parallel structure: as in varint-PU. One lane for each block walks through the first bytes and
 * stores the position of every fourth integer. A scan would do as well: four bytes of a block map
 * the offset of the first integer in them to that of the first integer in the next four. It takes
 * several times the instructions.
 */
#include "codecs/codec.h"
#include "codecs/compared/varint.h"

static uint32_t max_words(uint32_t n)
{
    return n + 1;
}

static uint32_t varint_pb_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint32_t any = gx_any_bits(in, n);
    if (any == 0)
        return 0;
    if (any >> 30) {
        memcpy(out, in, n * sizeof *out);
        out[n] = 0;
        return n + 1;
    }
    uint8_t *p = (uint8_t *)out;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t length = gx_bytes_of(in[i] << 2), x = in[i] << 2 | (length - 1);
        memcpy(p, &x, length);
        p += length;
    }
    return gx_varint_pad(out, p);
}

static void varint_pb_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (n_words > n) {
        memcpy(out, words, n * sizeof *out);
        return;
    }
    const uint8_t *p = (const uint8_t *)words, *const end = (const uint8_t *)(words + n_words);
    uint32_t i = 0;
    for (; i < n && n_words && p <= end; i += 2) { /* two at a time: both lie in one 8-byte load */
        uint64_t x;
        memcpy(&x, p, 8);
        const uint32_t a = 8 * ((uint32_t)x & 3) + 8, b = 8 * ((uint32_t)(x >> a) & 3) + 8;
        out[i] = ((uint32_t)x & gx_low_bits(a)) >> 2;
        if (i + 1 < n)
            out[i + 1] = ((uint32_t)(x >> a) & gx_low_bits(b)) >> 2;
        p += (a + b) / 8;
    }
    if (i < n)
        memset(out, 0, n * sizeof *out);
}

static bool varint_pb_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    return gx_varint_valid(&gx_codec_varintpb, words, n_words, n);
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)param;
    if (n_words > n)
        return words[i];
    const uint8_t *p = (const uint8_t *)words, *const end = (const uint8_t *)(words + n_words);
    for (; i > 0 && p < end; --i)
        p += (*p & 3) + 1;
    return p < end ? gx_load_bytes(p, (*p & 3) + 1u) >> 2 : 0;
}

const gx_codec gx_codec_varintpb = {"varint-pb",
                                    "varint-PB",
                                    "BA, varint30; Stepanov et al., CIKM 2011, taxonomy",
                                    GX_CODEC_VARINTPB,
                                    GX_VARINT_BLOCK,
                                    false,
                                    NULL,
                                    max_words,
                                    varint_pb_encode,
                                    varint_pb_valid,
                                    varint_pb_decode,
                                    at,
                                    NULL,
                                    NULL,
                                    {15, 10}};
