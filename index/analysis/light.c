#include "index/analysis/light.h"

#include <string.h>
#include <utf8proc.h>

enum { DROPPED = 0 };

/* The digit 0 of each set of ten. */
static const utf8proc_int32_t zeros[] = {0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66,
                                         0x0CE6, 0x0D66, 0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810};

/* Indian scripts from Devanagari to Malayalam have 128 characters each, in one order. */
static utf8proc_int32_t of_indic(utf8proc_int32_t c)
{
    const utf8proc_int32_t in_script = c & 0x7F;
    return in_script == 0x3C && c < 0x0D00 ? DROPPED : in_script == 0x01 ? c + 1 : c;
}

static utf8proc_int32_t normalised(utf8proc_int32_t c)
{
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; ++i)
        if (c >= zeros[i] && c < zeros[i] + 10)
            return '0' + (c - zeros[i]);
    switch (c) {
    case 0x05F3:
        return '\'';
    case 0x05F4:
        return '"';
    case 0x0929: /* letters with nukta, which NFC composes */
    case 0x0931:
    case 0x0934:
        return c - 1;
    case 0x0629: /* teh marbuta */
        return 0x0647;
    case 0x0640: /* tatweel */
        return DROPPED;
    case 0x0649: /* alef maksura */
    case 0x06CC: /* Farsi yeh */
        return 0x064A;
    case 0x0671: /* alef wasla */
        return 0x0627;
    case 0x06A9: /* keheh */
        return 0x0643;
    default:
        return c >= 0x0900 && c < 0x0D80 ? of_indic(c) : c;
    }
}

size_t gx_light(char *word, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t taken =
            (unsigned char)word[i] < 0xD7 || (unsigned char)word[i] > 0xE1
                ? 0
                : utf8proc_iterate((const utf8proc_uint8_t *)word + i, (utf8proc_ssize_t)(len - i), &c);
        if (taken <= 0) { /* nothing of the table, or no UTF-8 */
            word[n++] = word[i++];
            continue;
        }
        const utf8proc_int32_t to = normalised(c);
        if (to == c)
            memmove(word + n, word + i, (size_t)taken);
        i += (size_t)taken;
        n += to == c         ? (size_t)taken
             : to == DROPPED ? 0
                             : (size_t)utf8proc_encode_char(to, (utf8proc_uint8_t *)word + n);
    }
    return n;
}
