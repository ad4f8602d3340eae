/* packed_tables.h: where the bits of packed integers lie, for kernels that fetch them with byte
 * permutations.
 *
 * Integer i of width b begins at bit i b. A permutation brings the bytes that hold it into its own
 * lane, a shift by the table's second half moves it to bit 0 there, and a mask of b bits ends it.
 */
#ifndef GX_CODECS_WORDS_PACKED_TABLES_H
#define GX_CODECS_WORDS_PACKED_TABLES_H

#include <stdint.h>

/* f(b, q, t) for q and t from 0 to 7, and rows of it for all widths. */
#define GX_ROW8(f, b, q) f(b, q, 0), f(b, q, 1), f(b, q, 2), f(b, q, 3), f(b, q, 4), f(b, q, 5), f(b, q, 6), f(b, q, 7)
#define GX_ROW64(f, b)                                                                                                 \
    {                                                                                                                  \
        GX_ROW8(f, b, 0), GX_ROW8(f, b, 1), GX_ROW8(f, b, 2), GX_ROW8(f, b, 3), GX_ROW8(f, b, 4), GX_ROW8(f, b, 5),    \
            GX_ROW8(f, b, 6), GX_ROW8(f, b, 7)                                                                         \
    }
#define GX_ROWS_TO_8(f)                                                                                                \
    GX_ROW64(f, 0), GX_ROW64(f, 1), GX_ROW64(f, 2), GX_ROW64(f, 3), GX_ROW64(f, 4), GX_ROW64(f, 5), GX_ROW64(f, 6),    \
        GX_ROW64(f, 7), GX_ROW64(f, 8)
#define GX_ROWS_TO_16(f)                                                                                               \
    GX_ROWS_TO_8(f), GX_ROW64(f, 9), GX_ROW64(f, 10), GX_ROW64(f, 11), GX_ROW64(f, 12), GX_ROW64(f, 13),               \
        GX_ROW64(f, 14), GX_ROW64(f, 15), GX_ROW64(f, 16)
#define GX_ROWS_TO_25(f)                                                                                               \
    GX_ROWS_TO_16(f), GX_ROW64(f, 17), GX_ROW64(f, 18), GX_ROW64(f, 19), GX_ROW64(f, 20), GX_ROW64(f, 21),             \
        GX_ROW64(f, 22), GX_ROW64(f, 23), GX_ROW64(f, 24), GX_ROW64(f, 25)

/* 8 integers of up to 25 bits, 4 a half: the bytes of each, counted from the half's first byte, and
 * what to shift away. The second half begins at byte 4 b / 8. */
#define GX_HALF_BIT(b, q, t) ((2 * (q) + (t) / 4) / 4 * (4 * (b) % 8) + (2 * (q) + (t) / 4) % 4 * (b))
#define GX_HALF_FROM(b, q, t) GX_HALF_BIT(b, (q) % 4, t) / 8 + (t) % 4
#define GX_HALF_SHIFT(b, q, t) ((t) % 4 ? 0 : GX_HALF_BIT(b, (q) % 4, t) % 8)

#endif
