/* scripts.h: characters of scripts that do not put spaces between words. */
#ifndef GX_INDEX_ANALYSIS_SCRIPTS_H
#define GX_INDEX_ANALYSIS_SCRIPTS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool gx_code_within(int32_t c, int32_t first, int32_t last)
{
    return c >= first && c <= last;
}

static inline bool gx_is_han(int32_t c)
{
    return gx_code_within(c, 0x4E00, 0x9FFF) || gx_code_within(c, 0x3400, 0x4DBF) ||
           gx_code_within(c, 0x20000, 0x3134F) || gx_code_within(c, 0xF900, 0xFAD9) ||
           gx_code_within(c, 0x2E80, 0x2FD5) || c == 0x3005 || c == 0x3007 || gx_code_within(c, 0x3021, 0x3029) ||
           gx_code_within(c, 0x3038, 0x303B);
}

static inline bool gx_is_hiragana(int32_t c)
{
    return gx_code_within(c, 0x3041, 0x3096) || gx_code_within(c, 0x309D, 0x309F) ||
           gx_code_within(c, 0x1B001, 0x1B11E);
}

static inline bool gx_is_katakana(int32_t c)
{
    return gx_code_within(c, 0x30A0, 0x30FA) || gx_code_within(c, 0x30FC, 0x30FF) ||
           gx_code_within(c, 0x3031, 0x3035) || gx_code_within(c, 0x309B, 0x309C) ||
           gx_code_within(c, 0x31F0, 0x31FF) || gx_code_within(c, 0x32D0, 0x32FE) ||
           gx_code_within(c, 0x3300, 0x3357) || gx_code_within(c, 0xFF66, 0xFF9D) || c == 0x1B000;
}

/* Syllables and letters */
static inline bool gx_is_hangul(int32_t c)
{
    return gx_code_within(c, 0xAC00, 0xD7A3) || gx_code_within(c, 0x1100, 0x11FF) ||
           gx_code_within(c, 0x3131, 0x318E) || gx_code_within(c, 0xA960, 0xA97C) ||
           gx_code_within(c, 0xD7B0, 0xD7FB) || gx_code_within(c, 0xFFA0, 0xFFDC);
}

/* Thai, Lao, Myanmar, Khmer, Tai Le, New Tai Lue, Tai Tham, Tai Viet */
static inline bool gx_is_south_east_asian(int32_t c)
{
    return gx_code_within(c, 0x0E01, 0x0EDF) || gx_code_within(c, 0x1000, 0x109F) ||
           gx_code_within(c, 0x1780, 0x17DD) || gx_code_within(c, 0x1950, 0x19DF) ||
           gx_code_within(c, 0x1A20, 0x1AAD) || gx_code_within(c, 0xA9E0, 0xA9FF) || gx_code_within(c, 0xAA60, 0xAADF);
}

#endif
