/* vector_portable.h: the vectors of kernels_template.h in plain C, which have one lane. */
#ifndef GX_QUERY_CPU_KERNELS_VECTOR_PORTABLE_H
#define GX_QUERY_CPU_KERNELS_VECTOR_PORTABLE_H

#include <string.h>

#include "query/cpu/kernels/kernels.h"

#define LANES 1u
typedef uint32_t vec;
typedef float fvec;
typedef uint32_t bits, lanes, order; /* 0 or 1 */

#define first_bits(at, n) ((void)(at), (void)(n), 1u)
#define first_lanes(at, n) first_bits(at, n)
#define count(m) (m)

#define v_load(a) (*(a))
#define v_store(a, x) ((void)(*(a) = (x)))
#define v_splat(x) ((uint32_t)(x))
#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_load_bytes(a) ((uint32_t) * (a))
#define v_shift_each(a, b) ((a) >> (b))
#define v_left_each(a, b) ((a) << (b))
#define v_min(a, b) ((a) < (b) ? (a) : (b))
#define v_max(a, b) ((a) > (b) ? (a) : (b))
#define v_and(a, b) ((a) & (b))
#define v_or(a, b) ((a) | (b))
#define v_without(a, b) ((a) & ~(b))
#define v_shift(a, by) ((a) >> (by))
#define v_word(slot) ((slot) / 32)
#define v_bit(slot) (UINT32_C(1) << (slot) % 32)
#define v_at_least(m, a, b) ((m) & ((a) >= (b)))
#define v_below(m, a, b) ((m) & ((a) < (b)))
#define v_bytes_in(m, x, low, span) ((m)&numbers_in(x, low, span, 8))
#define v_halves_in(m, x, low, span) ((m)&numbers_in(x, low, span, 16))
#define v_any(x, b) ((bits)(((x) & (b)) != 0))
#define v_none(x, b) (v_any(x, b) ^ 1u)
#define v_add_where(a, x, b, y) ((a) + (v_any(x, b) ? (y) : 0))
#define v_sub_where(a, x, b, y) ((a) - (v_any(x, b) ? (y) : 0))
#define v_sub_unless(a, x, b, y) ((a) - ((y) & (v_any(x, b) - 1)))
#define v_clear_unless(a, x, b, y) ((a) & ~((y) & (v_any(x, b) - 1)))
#define v_lanes_below(m, a, b) v_below(m, a, b)
#define v_gather(base, at, m) ((m) ? (base)[at] : 0)
#define v_gather_bytes(base, at, m) ((m) ? load_word((base) + (at)) : 0)
#define v_pick16(base, at) ((uint32_t)((const uint16_t *)(base))[*(at)])
#define v_pick8(base, at) ((uint32_t)((const uint8_t *)(base))[*(at)])
#define v_of8(base, at, m) v_gather(base, at, m)
#define v_gather_near(base, at, low, high, m) ((void)(low), (void)(high), v_gather(base, at, m))

#define f_load(a) (*(a))
#define f_store(a, x) ((void)(*(a) = (x)))
#define f_splat(x) ((float)(x))
#define f_from(x) ((float)(x))
#define f_round(x) ((uint32_t)lrintf(x))
#define f_add(a, b) ((a) + (b))
#define f_mul(a, b) ((a) * (b))
#define f_div(a, b) ((a) / (b))
#define f_div_where(m, a, b) ((m) ? (a) / (b) : 0)
#define f_max(a, b) ((a) > (b) ? (a) : (b))
#define f_min_where(m, a, b) ((m) && (b) < (a) ? (b) : (a))
#define f_least(x) (x)
#define f_greatest(x) (x)

#define order_of(m) (m)
#define compress_store(a, to, o, x) ((void)(o), (void)((a)[to] = (x)))
#define compress_store_f(a, to, o, x) compress_store(a, to, o, x)

/* Whether one of the numbers of `width` bits in x is in [low, low + span]. */
static inline bits numbers_in(uint32_t x, uint32_t low, uint32_t span, uint32_t width)
{
    const uint32_t mask = (1u << width) - 1;
    bits in = 0;
    for (uint32_t at = 0; at < 32; at += width)
        in |= (((x >> at) - low) & mask) <= (span & mask);
    return in;
}

static inline uint32_t load_word(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* One lane at a time would look at half of the docids. */
#define COUNT_BELOW_BY_HALVES

#endif
