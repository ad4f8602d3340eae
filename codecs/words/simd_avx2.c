/* AVX2: eight integers at a time. */
#ifdef __x86_64__
#pragma GCC target("avx2,bmi")

#include <immintrin.h>
#include <pthread.h>
#include <string.h>

#include "codecs/words/byte_tables.h"
#include "codecs/words/eliasfano.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"
#include "codecs/words/unpack_avx2.h"

#define INLINE __attribute__((always_inline)) static inline

/* For each descriptor of varint-GU, the shuffle that moves the eight data bytes to their integers.
 * 0x80 yields a zero byte. */
static uint8_t gu_shuffles[256][32] __attribute__((aligned(32)));
static pthread_once_t gu_tables_once = PTHREAD_ONCE_INIT;

static void make_gu_tables(void)
{
    memset(gu_shuffles, 0x80, sizeof gu_shuffles);
    for (uint32_t d = 0; d < 256; ++d) {
        uint32_t i = 0, from = 0;
        for (uint32_t ends = ~d & 0xff; ends; ends &= ends - 1, ++i) {
            const uint32_t to = (uint32_t)__builtin_ctz(ends) + 1;
            for (uint32_t k = 0; k < 4 && from + k < to; ++k)
                gu_shuffles[d][4 * i + k] = (uint8_t)(from + k);
            from = to;
        }
    }
}

static bool usable(void)
{
    /* Virtual machines may leave out some of what every processor with AVX2 has; others take this as their sign. */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("popcnt"))
        return false;
    pthread_once(&gu_tables_once, make_gu_tables);
    return true;
}

/* Turns eight gaps into docids. Each lane of *last has the docid before them. */
INLINE __m256i add_prefix(__m256i v, __m256i *last)
{
    v = gx_sums8(v);
    v = _mm256_add_epi32(v, _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8));
    const __m256i docids = _mm256_add_epi32(v, *last);
    *last = _mm256_add_epi32(*last, _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7)));
    return docids;
}

static void prefix_sum(uint32_t *v, uint32_t n, uint32_t head)
{
    __m256i last = _mm256_set1_epi32((int)(head - 1));
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_si256((__m256i *)(v + i), add_prefix(_mm256_loadu_si256((const __m256i *)(v + i)), &last));
    uint32_t before = (uint32_t)_mm256_extract_epi32(last, 0);
    for (; i < n; ++i)
        v[i] = before += v[i] + 1;
}

/* Integers 8 g to 8 g + 7 of more than 25 bits: each lies in eight bytes, wherever it begins. */
INLINE __m256i unpack8_wide(const uint8_t *p, uint32_t g, uint32_t b)
{
    uint64_t w[8];
    p += b * g;
    for (uint32_t j = 0; j < 8; ++j) {
        memcpy(&w[j], p + j * b / 8, 8);
        w[j] >>= j * b % 8;
    }
    return _mm256_and_si256(
        _mm256_setr_epi32((int)w[0], (int)w[1], (int)w[2], (int)w[3], (int)w[4], (int)w[5], (int)w[6], (int)w[7]),
        _mm256_set1_epi32((int)gx_low_bits(b)));
}

static void unpack(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out)
{
    if (b <= 25) {
        const gx_unpacker8 u = gx_unpack_from(words, b);
        for (uint32_t g = 0; 8 * g < n; ++g)
            _mm256_storeu_si256((__m256i *)(out + 8 * g), gx_unpack8(&u, g));
    } else {
        for (uint32_t g = 0; 8 * g < n; ++g)
            _mm256_storeu_si256((__m256i *)(out + 8 * g), unpack8_wide((const uint8_t *)words, g, b));
    }
}

static void unpack_docids(const uint32_t *words, uint32_t n, uint32_t b, uint32_t head, uint32_t *out)
{
    if (b <= 25) {
        gx_unpack_docids8(words, b, n, head, out);
    } else {
        __m256i last = _mm256_set1_epi32((int)(head - 1));
        for (uint32_t g = 0; 8 * g < n; ++g)
            _mm256_storeu_si256((__m256i *)(out + 8 * g),
                                add_prefix(unpack8_wide((const uint8_t *)words, g, b), &last));
    }
}

INLINE bool decode_vbyte(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, bool docids,
                         uint32_t head, uint32_t *out)
{
    __m256i last = _mm256_set1_epi32((int)(head - 1));
    const uint8_t *s = (const uint8_t *)selectors;
    for (uint32_t i = 0; i < n; i += 8, s += 2) {
        if (data > end)
            return false;
        __m256i v;
        if ((s[0] | s[1]) == 0) {
            v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)data));
            data += 8;
        } else {
            const uint8_t *const upper = data + lengths[s[0]];
            const __m256i w = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)data)),
                                                      _mm_loadu_si128((const __m128i *)upper), 1);
            const __m256i pick =
                _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128((const __m128i *)byte_shuffles[s[0]])),
                                        _mm_load_si128((const __m128i *)byte_shuffles[s[1]]), 1);
            v = _mm256_shuffle_epi8(w, pick);
            data = upper + lengths[s[1]];
        }
        _mm256_storeu_si256((__m256i *)(out + i), docids ? add_prefix(v, &last) : v);
    }
    return true;
}

static bool bytes(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    return decode_vbyte(selectors, data, end, n, false, 0, out);
}

static bool bytes_docids(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t head,
                         uint32_t *out)
{
    return decode_vbyte(selectors, data, end, n, true, head, out);
}

static uint8_t *put_bytes(const uint32_t *in, uint32_t n, uint32_t *selectors, uint8_t *data)
{
    return gx_simds[0]->put_bytes(in, n, selectors, data);
}

static bool su(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    return gx_simds[0]->su(data, end, n, out);
}

static bool gb(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    for (uint32_t i = 0; i < n; i += 8) { /* two groups; the lengths of the first tell where the second begins */
        if (data > end)
            return false;
        const uint8_t low = data[0], *const upper = data + 1 + lengths[low], high = upper[0];
        const __m256i w = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(data + 1))),
                                                  _mm_loadu_si128((const __m128i *)(upper + 1)), 1);
        const __m256i pick =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128((const __m128i *)byte_shuffles[low])),
                                    _mm_load_si128((const __m128i *)byte_shuffles[high]), 1);
        _mm256_storeu_si256((__m256i *)(out + i), _mm256_shuffle_epi8(w, pick));
        data = upper + 1 + lengths[high];
    }
    return true;
}

/* If the groups are complete, an integer may have begun in the group before: its low bits are in
 * `begun`, and `bits` says how many they are. */
INLINE bool gu_groups(const uint8_t *groups, uint32_t n_groups, bool complete, uint32_t n, uint32_t *out)
{
    uint32_t i = 0, begun = 0, bits = 0;
    for (; n_groups > 0; --n_groups, groups += 9) {
        const uint8_t d = groups[0];
        const uint32_t here = (uint32_t)__builtin_popcount(~d & 0xffu);
        uint64_t data;
        memcpy(&data, groups + 1, 8);
        __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi64x((long long)data),
                                        _mm256_load_si256((const __m256i *)gu_shuffles[d]));
        if (complete) {
            v = _mm256_sllv_epi32(v, _mm256_setr_epi32((int)bits, 0, 0, 0, 0, 0, 0, 0));
            v = _mm256_or_si256(v, _mm256_setr_epi32((int)begun, 0, 0, 0, 0, 0, 0, 0));
        }
        if (i + 8 <= n) {
            _mm256_storeu_si256((__m256i *)(out + i), v);
            i += here;
        } else {
            uint32_t last[8];
            const uint32_t m = here < n - i ? here : n - i;
            _mm256_storeu_si256((__m256i *)last, v);
            memcpy(out + i, last, m * sizeof *out);
            i += m;
        }
        if (i == n)
            return true;
        if (complete) {
            bits = 8 * (uint32_t)__builtin_clz(~((uint32_t)d << 24));
            if (bits > 24)
                return false;
            begun = (uint32_t)(data >> 32 >> (32 - bits));
        }
    }
    return false;
}

static bool gu(const uint8_t *groups, uint32_t n_groups, bool complete, uint32_t n, uint32_t *out)
{
    return complete ? gu_groups(groups, n_groups, true, n, out) : gu_groups(groups, n_groups, false, n, out);
}

static void add_high_parts(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t b, uint32_t first,
                           uint32_t step, uint32_t *out)
{
    uint8_t at[128];
    gx_ef_select_bits(words, n_words, n, at);
    gx_ef_add_high_parts(at, n, b, first, step, out);
}

const gx_simd gx_simd_avx2 = {"avx2",     "AVX2", usable, unpack, unpack_docids, bytes, bytes_docids, put_bytes,
                              prefix_sum, su,     gb,     gu,     add_high_parts};
#else
typedef int gx_no_avx2;
#endif
