/* emoji.h: Unicode's emoji below U+1F000 (UTS 51). Pictographs from there on are emoji or like them. */
#ifndef GX_INDEX_ANALYSIS_EMOJI_H
#define GX_INDEX_ANALYSIS_EMOJI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gx_emoji {
    GX_EMOJI_NONE,
    GX_EMOJI_TEXT,     /* an emoji where gx_emoji_is_marked, else a sign of text, such as U+2764 and U+00A9 */
    GX_EMOJI_PRESENTED /* \p{Emoji_Presentation}, and what U+1F000 to U+1FAFF have or will have */
} gx_emoji;

gx_emoji gx_emoji_of(int32_t code);

/* Whether what follows a sign, p[n], makes an emoji of it: U+FE0F, a joiner or a skin tone. */
bool gx_emoji_is_marked(const char *p, size_t n);

/* The bytes of p[n], behind a digit, # or *, that make it a key: U+20E3, perhaps behind U+FE0F; else 0. */
size_t gx_emoji_key_marks(const char *p, size_t n);

#endif
