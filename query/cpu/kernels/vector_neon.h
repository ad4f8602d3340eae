/* vector_neon.h: the vectors of kernels_template.h in NEON, which have 4 lanes. A table of byte permutations brings
 * the lanes that are kept together.
 */
#ifndef GX_QUERY_CPU_KERNELS_VECTOR_NEON_H
#define GX_QUERY_CPU_KERNELS_VECTOR_NEON_H

#include <arm_neon.h>
#include <string.h>

#include "codecs/words/unpack_neon.h"
#include "query/cpu/kernels/kernels.h"

#define LANES 4u
typedef uint32x4_t vec, lanes;
typedef float32x4_t fvec;
typedef uint32_t bits;
typedef uint8x16_t order;

/* For every set of lanes, the bytes of its lanes, lowest first; 0xff yields a zero byte. */
#define LANE(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
#define NO_LANE 255, 255, 255, 255
static const _Alignas(64) uint8_t orders[16][16] = {
    {NO_LANE, NO_LANE, NO_LANE, NO_LANE}, {LANE(0), NO_LANE, NO_LANE, NO_LANE}, {LANE(1), NO_LANE, NO_LANE, NO_LANE},
    {LANE(0), LANE(1), NO_LANE, NO_LANE}, {LANE(2), NO_LANE, NO_LANE, NO_LANE}, {LANE(0), LANE(2), NO_LANE, NO_LANE},
    {LANE(1), LANE(2), NO_LANE, NO_LANE}, {LANE(0), LANE(1), LANE(2), NO_LANE}, {LANE(3), NO_LANE, NO_LANE, NO_LANE},
    {LANE(0), LANE(3), NO_LANE, NO_LANE}, {LANE(1), LANE(3), NO_LANE, NO_LANE}, {LANE(0), LANE(1), LANE(3), NO_LANE},
    {LANE(2), LANE(3), NO_LANE, NO_LANE}, {LANE(0), LANE(2), LANE(3), NO_LANE}, {LANE(1), LANE(2), LANE(3), NO_LANE},
    {LANE(0), LANE(1), LANE(2), LANE(3)}};
static const uint32_t lane_numbers[4] = {0, 1, 2, 3}, lane_bits[4] = {1, 2, 4, 8};

#define bits_of(m) vaddvq_u32(vandq_u32(m, vld1q_u32(lane_bits)))
#define first_bits(at, n) ((n) - (at) >= 4 ? 0xfu : (1u << ((n) - (at))) - 1)
#define first_lanes(at, n) vcgtq_u32(v_splat((n) - (at)), vld1q_u32(lane_numbers))
#define count(m) ((uint32_t)(UINT64_C(0x4332322132212110) >> 4 * (m)) & 7u)

#define v_load(a) vld1q_u32(a)
#define v_store(a, x) vst1q_u32(a, x)
#define v_splat(x) vdupq_n_u32((uint32_t)(x))
#define v_add(a, b) vaddq_u32(a, b)
#define v_sub(a, b) vsubq_u32(a, b)
#define v_min(a, b) vminq_u32(a, b)
#define v_max(a, b) vmaxq_u32(a, b)
#define v_and(a, b) vandq_u32(a, b)
#define v_or(a, b) vorrq_u32(a, b)
#define v_without(a, b) vbicq_u32(a, b)
#define v_shift(a, by) vshlq_u32(a, vdupq_n_s32(-(int32_t)(by)))
#define v_shift_each(a, b) vshlq_u32(a, vnegq_s32(vreinterpretq_s32_u32(b)))
#define v_left_each(a, b) vshlq_u32(a, vreinterpretq_s32_u32(b))
#define v_word(slot) vshrq_n_u32(slot, 5)
#define v_bit(slot) vshlq_u32(v_splat(1), vreinterpretq_s32_u32(v_and(slot, v_splat(31))))
#define v_at_least(m, a, b) ((m)&bits_of(vcgeq_u32(a, b)))
#define v_below(m, a, b) ((m)&bits_of(vcltq_u32(a, b)))
#define v_bytes_in(m, x, low, span) ((m)&bits_of(bytes_in(x, low, span)))
#define v_halves_in(m, x, low, span) ((m)&bits_of(halves_in(x, low, span)))
#define v_any(x, b) bits_of(vtstq_u32(x, b))
#define v_none(x, b) (0xfu ^ v_any(x, b))
#define v_add_where(a, x, b, y) v_add(a, v_and(vtstq_u32(x, b), y))
#define v_sub_where(a, x, b, y) v_sub(a, v_and(vtstq_u32(x, b), y))
#define v_sub_unless(a, x, b, y) v_sub(a, v_without(y, vtstq_u32(x, b)))
#define v_clear_unless(a, x, b, y) v_without(a, v_without(y, vtstq_u32(x, b)))
#define v_lanes_below(m, a, b) v_and(m, vcltq_u32(a, b))
#define v_of8(base, at, m) v_gather(base, at, m)

#define f_load(a) vld1q_f32(a)
#define f_store(a, x) vst1q_f32(a, x)
#define f_splat(x) vdupq_n_f32(x)
#define f_from(x) vcvtq_f32_u32(x)
#define f_round(x) vcvtnq_u32_f32(x)
#define f_add(a, b) vaddq_f32(a, b)
#define f_mul(a, b) vmulq_f32(a, b)
#define f_div(a, b) vdivq_f32(a, b)
#define f_div_where(m, a, b) vreinterpretq_f32_u32(v_and(vreinterpretq_u32_f32(f_div(a, b)), m))
#define f_max(a, b) vmaxq_f32(a, b)
#define f_min_where(m, a, b) vbslq_f32(m, vminq_f32(a, b), a)
#define f_least(x) vminvq_f32(x)
#define f_greatest(x) vmaxvq_f32(x)

#define order_of(m) vld1q_u8(orders[m])
#define compress_store(a, to, o, x) vst1q_u8((uint8_t *)((a) + (to)), vqtbl1q_u8(vreinterpretq_u8_u32(x), o))
#define compress_store_f(a, to, o, x) vst1q_u8((uint8_t *)((a) + (to)), vqtbl1q_u8(vreinterpretq_u8_f32(x), o))

/* The lanes of which a number of 8 bits, of 16 bits, is in [low, low + span]. */
static inline uint32x4_t bytes_in(uint32x4_t x, uint32x4_t low, uint32x4_t span)
{
    const uint8x16_t offset = vsubq_u8(vreinterpretq_u8_u32(x), vreinterpretq_u8_u32(low));
    const uint32x4_t in = vreinterpretq_u32_u8(vcleq_u8(offset, vreinterpretq_u8_u32(span)));
    return vtstq_u32(in, in);
}

static inline uint32x4_t halves_in(uint32x4_t x, uint32x4_t low, uint32x4_t span)
{
    const uint16x8_t offset = vsubq_u16(vreinterpretq_u16_u32(x), vreinterpretq_u16_u32(low));
    const uint32x4_t in = vreinterpretq_u32_u16(vcleq_u16(offset, vreinterpretq_u16_u32(span)));
    return vtstq_u32(in, in);
}

static inline uint32x4_t v_load_bytes(const uint8_t *a)
{
    uint32_t four;
    memcpy(&four, a, sizeof four);
    return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four))));
}

/* There is no gather: a load a lane. Lanes that read nothing read what the first number is; where no lane reads, not
 * even that. */
static inline uint32x4_t v_gather(const uint32_t *base, uint32x4_t at, uint32x4_t m)
{
    const uint64x2_t pairs = vreinterpretq_u64_u32(v_and(at, m));
    const uint64_t low = vgetq_lane_u64(pairs, 0), high = vgetq_lane_u64(pairs, 1);
    if (!vmaxvq_u32(m))
        return v_splat(0);
    uint32x4_t x = vld1q_dup_u32(base + (uint32_t)low);
    x = vld1q_lane_u32(base + (low >> 32), x, 1);
    x = vld1q_lane_u32(base + (uint32_t)high, x, 2);
    x = vld1q_lane_u32(base + (high >> 32), x, 3);
    return v_and(x, m);
}

static inline uint32x4_t v_gather_bytes(const uint8_t *base, uint32x4_t at, uint32x4_t m)
{
    uint32_t from[4], in[4], x[4] = {0, 0, 0, 0};
    vst1q_u32(from, at);
    vst1q_u32(in, m);
    for (uint32_t i = 0; i < 4; ++i) {
        if (in[i])
            memcpy(&x[i], base + from[i], sizeof x[i]);
    }
    return v_load(x);
}

/* Where the words are close, one load and a permutation replace the loads of one word each. */
static inline uint32x4_t v_gather_near(const uint32_t *base, uint32x4_t at, uint32_t low, uint32_t high, uint32x4_t m)
{
    if (high - low >= 16)
        return v_gather(base, at, m);
    const uint8_t *const p = (const uint8_t *)(base + low);
    const uint32x4_t place = vmlaq_u32(v_splat(0x03020100), v_sub(at, v_splat(low)), v_splat(0x04040404));
    if (high - low < 4)
        return vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(p), vreinterpretq_u8_u32(place)));
    const uint8x16x4_t words = {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
    return vreinterpretq_u32_u8(vqtbl4q_u8(words, vreinterpretq_u8_u32(place)));
}

static inline uint32x4_t v_pick16(const void *base, const uint32_t *at)
{
    const uint16_t *const b = base;
    uint16x4_t x = vdup_n_u16(b[at[0]]);
    x = vld1_lane_u16(b + at[1], x, 1);
    x = vld1_lane_u16(b + at[2], x, 2);
    x = vld1_lane_u16(b + at[3], x, 3);
    return vmovl_u16(x);
}

static inline uint32x4_t v_pick8(const void *base, const uint32_t *at)
{
    const uint8_t *const b = base;
    uint16x4_t x = vdup_n_u16(b[at[0]]);
    x = vset_lane_u16(b[at[1]], x, 1);
    x = vset_lane_u16(b[at[2]], x, 2);
    x = vset_lane_u16(b[at[3]], x, 3);
    return vmovl_u16(x);
}

/* ---- packed blocks ---- */

#define MAX_DOCID_BITS 25
#define MAX_TF_BITS 25
#define SCAN_END(n) (n)
#define COUNT_BELOW_BY_HALVES

static void unpack_docids(const uint32_t *words, uint32_t b, uint32_t n, uint32_t first, uint32_t *docids)
{
    gx_unpack_docids8(words, b, n, first, docids);
}

typedef struct block_tfs {
    uint64_t reaching[2]; /* a bit a posting */
    gx_unpacker4 less_one;
} block_tfs;

static inline bool unpack_tfs(block_tfs *t, const uint32_t *words, uint32_t b, uint32_t n, uint32_t min_tf)
{
    static const uint16_t eight_bits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint64_t low = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1, high = n >= 128 ? UINT64_MAX
                                                                               : n > 64 ? (UINT64_C(1) << (n - 64)) - 1
                                                                                        : 0;
    t->less_one = gx_unpack_from(words, b);
    t->reaching[0] = low;
    t->reaching[1] = high;
    if (min_tf <= 1)
        return true;
    if ((min_tf - 1) >> b) /* more than the width can say */
        return false;
    const gx_unpacker4 u = t->less_one;
    const vec least = v_splat(min_tf - 1);
    uint64_t reaching[2] = {0, 0};
    for (uint32_t g = 0; 8 * g < n; ++g) {
        const uint16x8_t in = vuzp1q_u16(vreinterpretq_u16_u32(vcgeq_u32(gx_unpack_half(&u, g, 0), least)),
                                         vreinterpretq_u16_u32(vcgeq_u32(gx_unpack_half(&u, g, 1), least)));
        reaching[g / 8] |= (uint64_t)vaddvq_u16(vandq_u16(in, vld1q_u16(eight_bits))) << 8 * g % 64;
    }
    t->reaching[0] = reaching[0] & low;
    t->reaching[1] = reaching[1] & high;
    return t->reaching[0] | t->reaching[1];
}

static inline bits reaching_tfs(const block_tfs *t, uint32_t at)
{
    return t->reaching[at / 64] >> at % 64 & 0xf;
}

static inline vec tfs_at(const block_tfs *t, uint32_t at)
{
    return v_add(gx_unpack_half(&t->less_one, at / 8, at / 4 % 2), v_splat(1));
}

#endif
