/* light.h: the light normalisation of the analyzer "multilingual", of words that are folded (fold.h) already:
 *
 *   Arabic    alef maksura and Farsi yeh are yeh, keheh is kaf, teh marbuta is heh, alef wasla is alef; tatweel is
 *             dropped. (The fold has dropped hamza, madda and the signs of vowels.)
 *   Hebrew    gershayim is ", geresh is '. (The fold has dropped the points.)
 *   Indic     nukta is dropped, candrabindu is anusvara
 *   digits    those of Arabic, Persian, N'Ko, Indic scripts, Thai, Lao, Tibetan, Burmese, Khmer, Mongolian are 0 to 9
 */
#ifndef GX_INDEX_ANALYSIS_LIGHT_H
#define GX_INDEX_ANALYSIS_LIGHT_H

#include <stddef.h>

/* Normalise a word[len] of UTF-8 in place. Returns its length. */
size_t gx_light(char *word, size_t len);

#endif
