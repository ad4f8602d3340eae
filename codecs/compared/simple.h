/* simple.h: the selectors of the Simple family, for the host and the device.
 *
 * A word has its selector in its top 4 bits; below lie integers, the first in the lowest bits. A
 * selector says how many they are and the bits of each: up to three runs of equal width, and never
 * are two widths more than one bit apart. So the device reads a selector as an entry of a table,
 * one word:
 *
 *     | wide: bit i set: integer i has a bit more | bits: 5 | count: 5 |     Simple-9, Simple-16
 *                                       | bits: 8 | count: 8 |               Simple-8b
 */
#ifndef GX_CODECS_COMPARED_SIMPLE_H
#define GX_CODECS_COMPARED_SIMPLE_H

/* X(selector, n0, b0, n1, b1, n2, b2): n0 integers of b0 bits, then n1 of b1, then n2 of b2. */
/* clang-format off */
#define GX_SIMPLE9(X)                   \
    X(0, 28, 1, 0, 0, 0, 0)             \
    X(1, 14, 2, 0, 0, 0, 0)             \
    X(2, 9, 3, 0, 0, 0, 0)              \
    X(3, 7, 4, 0, 0, 0, 0)              \
    X(4, 5, 5, 0, 0, 0, 0)              \
    X(5, 4, 7, 0, 0, 0, 0)              \
    X(6, 3, 9, 0, 0, 0, 0)              \
    X(7, 2, 14, 0, 0, 0, 0)             \
    X(8, 1, 28, 0, 0, 0, 0)

#define GX_SIMPLE16(X)                  \
    X(0, 28, 1, 0, 0, 0, 0)             \
    X(1, 7, 2, 14, 1, 0, 0)             \
    X(2, 7, 1, 7, 2, 7, 1)              \
    X(3, 14, 1, 7, 2, 0, 0)             \
    X(4, 14, 2, 0, 0, 0, 0)             \
    X(5, 1, 4, 8, 3, 0, 0)              \
    X(6, 1, 3, 4, 4, 3, 3)              \
    X(7, 7, 4, 0, 0, 0, 0)              \
    X(8, 4, 5, 2, 4, 0, 0)              \
    X(9, 2, 4, 4, 5, 0, 0)              \
    X(10, 3, 6, 2, 5, 0, 0)             \
    X(11, 2, 5, 3, 6, 0, 0)             \
    X(12, 4, 7, 0, 0, 0, 0)             \
    X(13, 1, 10, 2, 9, 0, 0)            \
    X(14, 2, 14, 0, 0, 0, 0)            \
    X(15, 1, 28, 0, 0, 0, 0)

#define GX_SIMPLE8B(X)                  \
    X(0, 240, 0, 0, 0, 0, 0)            \
    X(1, 120, 0, 0, 0, 0, 0)            \
    X(2, 60, 1, 0, 0, 0, 0)             \
    X(3, 30, 2, 0, 0, 0, 0)             \
    X(4, 20, 3, 0, 0, 0, 0)             \
    X(5, 15, 4, 0, 0, 0, 0)             \
    X(6, 12, 5, 0, 0, 0, 0)             \
    X(7, 10, 6, 0, 0, 0, 0)             \
    X(8, 8, 7, 0, 0, 0, 0)              \
    X(9, 7, 8, 0, 0, 0, 0)              \
    X(10, 6, 10, 0, 0, 0, 0)            \
    X(11, 5, 12, 0, 0, 0, 0)            \
    X(12, 4, 15, 0, 0, 0, 0)            \
    X(13, 3, 20, 0, 0, 0, 0)            \
    X(14, 2, 30, 0, 0, 0, 0)            \
    X(15, 1, 60, 0, 0, 0, 0)
/* clang-format on */

/* Integers that have no place in 28 bits have their low bits in the row and those above in a word
 * of their own before, an escape: no integers, the upper bits added to the first integer of the
 * next word. Simple-9 has a selector left for it; Simple-16 has none, so there words of one integer
 * whose 8 highest bits are set are escapes. */
#define GX_SIMPLE_LOW 12u            /* bits that stay in the row */
#define GX_SIMPLE_HIGH 0xfffffu      /* of an escape: the upper bits */
#define GX_SIMPLE9_ESCAPE 0x9u       /* word >> 28 of an escape */
#define GX_SIMPLE9_LIMIT 0x10000000u /* integers from here on are escaped */
#define GX_SIMPLE16_ESCAPE 0xfffu    /* word >> 20 of an escape */
#define GX_SIMPLE16_LIMIT 0xff00000u

#endif
