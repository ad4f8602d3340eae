/* GPU-VByte (Mallia et al., CIKM 2019, section 3.2): first all selectors of a block, then all
 * bytes.
 *
 *     | n selectors               | bytes of the integers | 1 to 4 zero bytes |
 *       2 bits each, 16 in a word   lowest first
 *
 * A selector is the length of an integer in bytes, less one. At least one zero byte pads the data
 * to a whole word, as in the paper's encoder (its Table 1 counts these bytes). A block of zeros
 * takes no words.
 */
#include <string.h>

#include "codecs/codec.h"
#include "codecs/words/bits.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"

static uint32_t selector_words(uint32_t n)
{
    return gx_div_up(n, 16);
}

static uint32_t max_words(uint32_t n)
{
    return selector_words(n) + n + 1;
}

static uint32_t gpuvbyte_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (gx_any_bits(in, n) == 0)
        return 0;
    uint8_t *const data = (uint8_t *)(out + selector_words(n));
    uint8_t *const p = gx_simd_best()->put_bytes(in, n, out, data);
    const uint32_t n_words = selector_words(n) + (uint32_t)(p - data) / 4 + 1;
    memset(p, 0, (size_t)((uint8_t *)(out + n_words) - p));
    return n_words;
}

/* The data bytes of the first n integers. */
static uint32_t data_bytes(const uint32_t *selectors, uint32_t n)
{
    uint32_t prefix_sum = n;
    for (uint32_t k = 0; k < n / 16; ++k)
        prefix_sum += gx_sum_2bit(selectors[k]);
    return n % 16 ? prefix_sum + gx_sum_2bit(selectors[n / 16] & gx_low_bits(2 * (n % 16))) : prefix_sum;
}

static bool gpuvbyte_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    const uint32_t head = selector_words(n);
    if (n_words == 0)
        return true;
    if (n_words < head || (n % 16 && words[n / 16] >> 2 * (n % 16)))
        return false;
    const uint32_t bytes = data_bytes(words, n);
    if (n_words != head + bytes / 4 + 1)
        return false;
    return words[n_words - 1] >> 8 * (bytes % 4) == 0;
}

static uint32_t load_bytes(const uint8_t *p, uint32_t more)
{
    uint32_t x;
    memcpy(&x, p, 4);
    return x & 0xffffffffu >> (24 - 8 * more);
}

/* Decodes a block that has no words, or whose selectors point past its end. Missing integers become
 * 0. */
static void decode_damaged(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t *out)
{
    const uint32_t head = selector_words(n);
    memset(out, 0, n * sizeof *out);
    if (n_words < head)
        return;
    const uint8_t *const data = (const uint8_t *)(words + head);
    const uint64_t end = (uint64_t)(n_words - head) * 4;
    uint32_t p = 0;
    for (uint32_t i = 0; i < n && p < end; ++i) {
        const uint32_t more = words[i / 16] >> 2 * (i % 16) & 3;
        out[i] = load_bytes(data + p, more);
        p += more + 1;
    }
}

static void gpuvbyte_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint32_t head = selector_words(n);
    const uint8_t *const end = (const uint8_t *)(words + n_words);
    if (n_words < head || !gx_simd_best()->bytes(words, (const uint8_t *)(words + head), end, n, out))
        decode_damaged(words, n_words, n, out);
}

static void gpuvbyte_decode_docids(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head,
                                   uint32_t *out)
{
    (void)param;
    const uint32_t first = selector_words(n);
    const uint8_t *const end = (const uint8_t *)(words + n_words);
    if (n_words < first || !gx_simd_best()->bytes_docids(words, (const uint8_t *)(words + first), end, n, head, out)) {
        decode_damaged(words, n_words, n, out);
        gx_simd_best()->prefix_sum(out, n, head);
    }
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)param;
    const uint32_t head = selector_words(n);
    if (n_words < head)
        return 0;
    const uint64_t p = (uint64_t)head * 4 + data_bytes(words, i);
    if (p >= (uint64_t)n_words * 4)
        return 0;
    return load_bytes((const uint8_t *)words + p, words[i / 16] >> 2 * (i % 16) & 3);
}

#define GPUVBYTE(block, ...)                                                                                           \
    {                                                                                                                  \
        "gpuvbyte" #block, "GPU-VByte" #block, "Mallia et al., CIKM 2019, 3.2", GX_CODEC_GPUVBYTE##block, block, true, \
            NULL, max_words, gpuvbyte_encode, gpuvbyte_valid, gpuvbyte_decode, at, gpuvbyte_decode_docids, NULL,       \
            __VA_ARGS__                                                                                                \
    }

const gx_codec gx_codec_gpuvbyte128 = GPUVBYTE(128, {11, 14});
const gx_codec gx_codec_gpuvbyte1024 = GPUVBYTE(1024, {0, 0});
