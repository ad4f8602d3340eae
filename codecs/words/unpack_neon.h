/* unpack_neon.h: packed integers four at a time in NEON, for codecs and for the CPU engine's kernels.
 */
#ifndef GX_CODECS_WORDS_UNPACK_NEON_H
#define GX_CODECS_WORDS_UNPACK_NEON_H

#include <arm_neon.h>
#include <stddef.h>

#include "codecs/words/packed_tables.h"

static const _Alignas(64) uint8_t gx_half_from[26][64] = {GX_ROWS_TO_25(GX_HALF_FROM)}, gx_half_shift[26][64] = {
                                                                                        GX_ROWS_TO_25(GX_HALF_SHIFT)};

typedef struct gx_unpacker4 {
    uint8x16_t from[2];
    int32x4_t shift[2]; /* to the left, so below 0 */
    uint32x4_t mask;
    const uint8_t *p;
    uint32_t b, half;
} gx_unpacker4;

static inline gx_unpacker4 gx_unpack_from(const uint32_t *words, uint32_t b)
{
    const uint8_t *const from = gx_half_from[b], *const shift = gx_half_shift[b];
    return (gx_unpacker4){{vld1q_u8(from), vld1q_u8(from + 16)},
                          {vnegq_s32(vreinterpretq_s32_u8(vld1q_u8(shift))),
                           vnegq_s32(vreinterpretq_s32_u8(vld1q_u8(shift + 16)))},
                          vdupq_n_u32((1u << b) - 1),
                          (const uint8_t *)words,
                          b,
                          4 * b / 8};
}

/* Half h of the 8 integers that begin at p. */
static inline uint32x4_t gx_unpack_half_at(const gx_unpacker4 *u, const uint8_t *p, uint32_t h)
{
    const uint8x16_t bytes = vqtbl1q_u8(vld1q_u8(p + (h ? (size_t)u->half : 0)), u->from[h]);
    return vandq_u32(vshlq_u32(vreinterpretq_u32_u8(bytes), u->shift[h]), u->mask);
}

/* Half h of integers 8 g to 8 g + 7. */
static inline uint32x4_t gx_unpack_half(const gx_unpacker4 *u, uint32_t g, uint32_t h)
{
    return gx_unpack_half_at(u, u->p + u->b * g, h);
}

/* Inclusive sums of 4 lanes. */
static inline uint32x4_t gx_sums4(uint32x4_t x)
{
    const uint32x4_t zero = vdupq_n_u32(0);
    x = vaddq_u32(x, vextq_u32(zero, x, 3));
    return vaddq_u32(x, vextq_u32(zero, x, 2));
}

/* Turns four gaps into docids. Each lane of *last has the docid before them. */
static inline uint32x4_t gx_add_prefix4(uint32x4_t v, uint32x4_t *last)
{
    static const uint32_t ones[4] = {1, 2, 3, 4};
    const uint32x4_t docids = vaddq_u32(gx_sums4(v), vaddq_u32(*last, vld1q_u32(ones)));
    *last = vdupq_laneq_u32(docids, 3);
    return docids;
}

/* docids[i] = first - 1 + (v[0] + 1) + .. + (v[i] + 1) of n packed integers v,
 * up to a multiple of 8. */
static inline void gx_unpack_docids8(const uint32_t *words, uint32_t b, uint32_t n, uint32_t first, uint32_t *docids)
{
    const gx_unpacker4 u = gx_unpack_from(words, b);
    const uint8_t *p = u.p;
    uint32x4_t last = vdupq_n_u32(first - 1);
    for (const uint32_t *const end = docids + n; docids < end; docids += 8, p += (size_t)b) {
        vst1q_u32(docids, gx_add_prefix4(gx_unpack_half_at(&u, p, 0), &last));
        vst1q_u32(docids + 4, gx_add_prefix4(gx_unpack_half_at(&u, p, 1), &last));
    }
}

#endif
