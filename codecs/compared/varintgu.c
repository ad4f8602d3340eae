/* varint-GU (Stepanov et al., CIKM 2011): groups of a descriptor and eight data bytes. Bit j of the
 * descriptor is 0 if data byte j is the last byte of an integer. The descriptor thus holds the
 * integers' lengths less one in unary, separated by zeros, the first integer at the lowest bits.
 *
 *     aaaa, bbbbbb, cc, dddddddd in two groups:
 *     G8IU | 11001101 | aa aa bb bb bb cc 00 00 | 11110111 | dd dd dd dd 00 00 00 00 |
 *     G8CU | 11001101 | aa aa bb bb bb cc dd dd | 11111101 | dd dd 00 00 00 00 00 00 |
 *
 * The groups of G8IU are incomplete: an integer that does not fit begins the next group. Those of
 * G8CU are complete: an integer may begin in one group and end in the next. Unused data bytes are 0
 * and their descriptor bits are 1, so that a group has as many integers as its descriptor has
 * zeros.
 *
 * Parallel structure: descriptors are nine bytes apart. A scan over their counts of zeros tells how
 * many integers end before each group. All else is in the group's descriptor and, for G8CU, in the
 * descriptor before it. No index within the block is needed.
 */
#include "codecs/codec.h"
#include "codecs/compared/varint.h"
#include "codecs/words/simd.h"

static uint32_t max_words(uint32_t n)
{
    return gx_div_up(9 * gx_div_up(n, 2), 4);
}

static uint32_t varint_gu_encode(const uint32_t *in, uint32_t n, bool complete, uint32_t *out)
{
    if (gx_any_bits(in, n) == 0)
        return 0;
    uint8_t *p = (uint8_t *)out - 9; /* p: the group; used: its data bytes */
    uint32_t used = 8;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t length = gx_bytes_of(in[i]);
        if (!complete && used + length > 8)
            used = 8;
        for (uint32_t k = 0; k < length; ++k) {
            if (used == 8) {
                p += 9;
                p[0] = 0xff;
                memset(p + 1, 0, 8);
                used = 0;
            }
            p[++used] = (uint8_t)(in[i] >> 8 * k);
        }
        p[0] &= (uint8_t) ~(1u << (used - 1));
    }
    return gx_varint_pad(out, p + 9);
}

static uint32_t n_groups(uint32_t n_words)
{
    return 4 * n_words / 9;
}

static void varint_gu_decode(const uint32_t *words, uint32_t n_words, uint32_t n, bool complete, uint32_t *out)
{
    if (!gx_simd_best()->gu((const uint8_t *)words, n_groups(n_words), complete, n, out))
        memset(out, 0, n * sizeof *out);
}

/* The zero bits of a descriptor, as ones. */
static uint32_t zeros(uint8_t descriptor)
{
    return ~descriptor & 0xffu;
}

static uint32_t count(uint32_t byte)
{
    byte -= byte >> 1 & 0x55;
    byte = (byte & 0x33) + (byte >> 2 & 0x33);
    return (byte + (byte >> 4)) & 15;
}

/* The i-th integer ends at the i-th zero. It begins after the zero before that, in this group or in
 * the last one. */
static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, bool complete, uint32_t i)
{
    (void)n;
    const uint8_t *p = (const uint8_t *)words, *const end = p + 9 * n_groups(n_words);
    uint32_t left = 0, here; /* left: data bytes of an integer that goes on from the group before */
    for (; p < end && i >= (here = count(zeros(*p))); p += 9) {
        i -= here;
        left = complete ? 8 - gx_bit_width(zeros(*p)) : 0;
    }
    if (p >= end)
        return 0;
    uint32_t bits = zeros(*p), begin = 0, x = 0;
    for (; i > 0; --i, bits &= bits - 1, left = 0)
        begin = (uint32_t)__builtin_ctz(bits) + 1;
    if (left > 3)
        return 0;
    memcpy(&x, p - left, left);
    return x | gx_load_bytes(p + 1 + begin, (uint32_t)__builtin_ctz(bits) + 1 - begin) << 8 * left;
}

#define VARINTGU(id_, name, title, complete)                                                                           \
    static uint32_t encode_##id_(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)                         \
    {                                                                                                                  \
        (void)param;                                                                                                   \
        return varint_gu_encode(in, n, complete, out);                                                                 \
    }                                                                                                                  \
    static void decode_##id_(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)        \
    {                                                                                                                  \
        (void)param;                                                                                                   \
        varint_gu_decode(words, n_words, n, complete, out);                                                            \
    }                                                                                                                  \
    static bool valid_##id_(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)                        \
    {                                                                                                                  \
        (void)param;                                                                                                   \
        return gx_varint_valid(&gx_codec_##id_, words, n_words, n);                                                    \
    }                                                                                                                  \
    static uint32_t at_##id_(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)           \
    {                                                                                                                  \
        (void)param;                                                                                                   \
        return at(words, n_words, n, complete, i);                                                                     \
    }                                                                                                                  \
    const gx_codec gx_codec_##id_ = {name,                                                                             \
                                     title,                                                                            \
                                     "Stepanov et al., CIKM 2011, varint-GU",                                          \
                                     complete ? GX_CODEC_VARINTG8CU : GX_CODEC_VARINTG8IU,                             \
                                     GX_VARINT_BLOCK,                                                                  \
                                     false,                                                                            \
                                     NULL,                                                                             \
                                     max_words,                                                                        \
                                     encode_##id_,                                                                     \
                                     valid_##id_,                                                                      \
                                     decode_##id_,                                                                     \
                                     at_##id_,                                                                         \
                                     NULL,                                                                             \
                                     NULL,                                                                             \
                                     {complete ? 14 : 12, 11}};

VARINTGU(varintg8iu, "varint-g8iu", "varint-G8IU", false)
VARINTGU(varintg8cu, "varint-g8cu", "varint-G8CU", true)
