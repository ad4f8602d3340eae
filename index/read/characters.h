/* characters.h: the characters of a term: those of UTF-8, and each byte that is no part of one. */
#ifndef GX_INDEX_READ_CHARACTERS_H
#define GX_INDEX_READ_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GX_LONE_BYTE 0x110000u /* a byte b that is no part of a character is the character GX_LONE_BYTE + b */
#define GX_END_OF_CHARACTERS (GX_LONE_BYTE + 256u)

/* The bytes that the character takes which the byte begins; 0: none begins with it. */
static inline uint32_t gx_character_bytes(uint8_t lead)
{
    return lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
}

/* The first character of p[n], n > 0, and in *used its bytes. `ended`: nothing follows p[n]. Else *used is 0 where the
 * bytes are the beginning of a character. */
static inline uint32_t gx_first_character(const char *p, size_t n, bool ended, uint32_t *used)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *b = (const uint8_t *)p;
    const uint32_t bytes = gx_character_bytes(b[0]);
    *used = 1;
    if (bytes == 1)
        return b[0];
    uint32_t c = bytes ? b[0] & (0x7fu >> bytes) : 0, i = 1;
    while (i < bytes && i < n && (b[i] & 0xc0) == 0x80) {
        c = c << 6 | (b[i] & 0x3f);
        ++i;
    }
    if (bytes && i < bytes && i == n && !ended) {
        *used = 0;
        return GX_END_OF_CHARACTERS;
    }
    if (bytes == 0 || i < bytes || c < least[bytes] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return GX_LONE_BYTE + b[0];
    *used = bytes;
    return c;
}

/* Write a character of UTF-8 to p, which has room for 4 bytes. Returns its bytes. */
static inline uint32_t gx_put_character(char *p, uint32_t c)
{
    if (c < 0x80) {
        p[0] = (char)c;
        return 1;
    }
    const uint32_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (uint32_t i = n; --i; c >>= 6)
        p[i] = (char)(0x80 | (c & 0x3f));
    p[0] = (char)((0xf00u >> n) | c);
    return n;
}

#endif
