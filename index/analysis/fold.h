/* fold.h: one spelling for what people write in several ways. The fold "unicode" of a text is
 *
 *   NFKC         composed and decomposed characters, ligatures, full and half width, superscripts,
 *                circled letters and other compatibility forms become one: U+FB01 is fi
 *   case fold    Unicode's full case folding: U+00DF is ss, final sigma is sigma
 *   diacritics   accents and points of Latin, Greek, Cyrillic, Hebrew, Arabic and Syriac letters
 *                are dropped, iota below the line among them. Marks that are letters stay: vowel
 *                signs of Indian and South-East Asian scripts, the voicing of kana. So do letters
 *                of their own: o with stroke, dotless i
 *   ignorable    soft hyphens, zero-width joiners, variation selectors and all other characters
 *                that Unicode ignores by default are dropped, but for U+200B, which separates words
 *   apostrophe   U+2019 and U+02BC become '
 *   not UTF-8    each byte becomes U+FFFD and is counted
 *
 * If the owner asks for it, a sign of text that U+FE0F or a joiner makes an emoji (emoji.h) is followed by U+FE0F, and
 * a key by U+FE0F U+20E3; and I without a mark is dotless i, as in Turkish.
 *
 * Folding a folded text changes nothing. The fold remembers where its bytes come from. */
#ifndef GX_INDEX_ANALYSIS_FOLD_H
#define GX_INDEX_ANALYSIS_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gx_fold_chunk {
    uint32_t at;         /* first byte in the folded text; the chunk ends where the next begins */
    uint32_t begin, end; /* bytes of the text */
    bool bytewise;       /* byte i of the chunk comes from byte i of the text's; else from all of them */
} gx_fold_chunk;

/* All zero before the first use. */
typedef struct gx_fold {
    char *bytes; /* [n] the folded text */
    size_t n, max;
    gx_fold_chunk *chunks; /* [n_chunks] */
    uint32_t n_chunks, max_chunks;
    uint32_t replaced;   /* bytes of the text that are not UTF-8 */
    bool emoji, turkish; /* set by the owner */
} gx_fold;

/* Fold text[len], len < 2^31. false: no memory, or the folded text takes 2^31 bytes or more. */
bool gx_fold_text(gx_fold *f, const char *text, size_t len);

/* From bytes [*begin, *end) of the folded text, which are not empty, to those of the text that they
 * were made of: whole characters, with the marks that follow them. */
void gx_fold_range(const gx_fold *f, size_t *begin, size_t *end);

void gx_fold_free(gx_fold *f);

#endif
