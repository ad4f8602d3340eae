/* byte_tables.h: how a byte permutation decodes integers of 1 to 4 bytes, for kernels that have one. */
#ifndef GX_CODECS_WORDS_BYTE_TABLES_H
#define GX_CODECS_WORDS_BYTE_TABLES_H

#include <stdint.h>

/* For each four selectors, the shuffle that moves the next sixteen bytes to their integers (0x80
 * yields a zero byte), and how many of these bytes are used. */
#define PLACE(from, more, k) (char)((k) <= (more) ? (from) + (k) : 0x80)
#define PLACE4(from, more) PLACE(from, more, 0), PLACE(from, more, 1), PLACE(from, more, 2), PLACE(from, more, 3)
#define ROW(s)                                                                                                         \
    {                                                                                                                  \
        PLACE4(0, (s)&3), PLACE4(((s)&3) + 1, (s) >> 2 & 3), PLACE4(((s)&3) + ((s) >> 2 & 3) + 2, (s) >> 4 & 3),       \
            PLACE4(((s)&3) + ((s) >> 2 & 3) + ((s) >> 4 & 3) + 3, (s) >> 6 & 3)                                        \
    }
#define ROWS4(s) ROW(s), ROW((s) + 1), ROW((s) + 2), ROW((s) + 3)
#define ROWS16(s) ROWS4(s), ROWS4((s) + 4), ROWS4((s) + 8), ROWS4((s) + 12)
#define ROWS64(s) ROWS16(s), ROWS16((s) + 16), ROWS16((s) + 32), ROWS16((s) + 48)
static const char byte_shuffles[256][16]
    __attribute__((aligned(16))) = {ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192)};
#define LEN(s) (((s)&3) + ((s) >> 2 & 3) + ((s) >> 4 & 3) + ((s) >> 6 & 3) + 4)
#define LEN4(s) LEN(s), LEN((s) + 1), LEN((s) + 2), LEN((s) + 3)
#define LEN16(s) LEN4(s), LEN4((s) + 4), LEN4((s) + 8), LEN4((s) + 12)
#define LEN64(s) LEN16(s), LEN16((s) + 16), LEN16((s) + 32), LEN16((s) + 48)
static const uint8_t lengths[256] = {LEN64(0), LEN64(64), LEN64(128), LEN64(192)};

#endif
