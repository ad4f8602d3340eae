/* varint-GB, known as Group Varint (Dean, WSDM 2009): groups of a descriptor and four integers. The
 * descriptor is a byte of four lengths less one, two bits each, the first integer's lowest.
 *
 *     1, 300, 2, 3    | 00 00 01 00 | 01 | 2c 01 | 02 | 03 |
 *
 * A group takes 5 to 17 bytes. The last group of a block may have fewer than four integers, and
 * then has no bytes for the others.
 *
 * Parallel structure: the four integers of a group are independent once the position of the group
 * is known. This is the sum of all lengths before it: 32 steps in a block. One lane for each block
 * takes these steps and stores the position of every group; then each lane of a warp decodes a
 * group. If all descriptors came first, as in GPU-VByte, a scan would give the positions.
 */
#include "codecs/codec.h"
#include "codecs/compared/varint.h"
#include "codecs/words/simd.h"

static uint32_t max_words(uint32_t n)
{
    return gx_div_up(gx_div_up(n, 4) + 4 * n, 4);
}

static uint32_t varint_gb_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (gx_any_bits(in, n) == 0)
        return 0;
    uint8_t *p = (uint8_t *)out, *control = p;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t length = gx_bytes_of(in[i]);
        if (i % 4 == 0) {
            control = p++;
            *control = 0;
        }
        *control |= (uint8_t)((length - 1) << i % 4 * 2);
        memcpy(p, &in[i], length);
        p += length;
    }
    return gx_varint_pad(out, p);
}

static void varint_gb_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (n_words == 0 || !gx_simd_best()->gb((const uint8_t *)words, (const uint8_t *)(words + n_words), n, out))
        memset(out, 0, n * sizeof *out);
}

static bool varint_gb_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    return gx_varint_valid(&gx_codec_varintgb, words, n_words, n);
}

/* The data bytes of the first k integers of a group. */
static uint32_t bytes_of(uint32_t control, uint32_t k)
{
    return k + gx_sum_2bit(control & gx_low_bits(2 * k));
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)n, (void)param;
    const uint8_t *p = (const uint8_t *)words, *const end = (const uint8_t *)(words + n_words);
    for (; i >= 4 && p < end; i -= 4)
        p += 1 + bytes_of(*p, 4);
    return p < end ? gx_load_bytes(p + 1 + bytes_of(*p, i), (*p >> 2 * i & 3) + 1u) : 0;
}

const gx_codec gx_codec_varintgb = {"varint-gb",
                                    "varint-GB",
                                    "Group Varint; Stepanov et al., CIKM 2011, taxonomy",
                                    GX_CODEC_VARINTGB,
                                    GX_VARINT_BLOCK,
                                    false,
                                    NULL,
                                    max_words,
                                    varint_gb_encode,
                                    varint_gb_valid,
                                    varint_gb_decode,
                                    at,
                                    NULL,
                                    NULL,
                                    {10, 11}};
