/* dictionary.h: words of Thai, Lao, Khmer and Burmese, which a dictionary finds: ICU's, where the build has ICU. */
#ifndef GX_INDEX_ANALYSIS_DICTIONARY_H
#define GX_INDEX_ANALYSIS_DICTIONARY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gx_dictionary gx_dictionary; /* belongs to one thread at a time */

/* The version of ICU that finds the words, such as "72.1"; "": this build has no dictionary. */
const char *gx_dictionary_version(void);

/* NULL: no memory, or no dictionary. */
gx_dictionary *gx_dictionary_open(void);
void gx_dictionary_close(gx_dictionary *d);

/* Begin to read UTF-8 text[len], which lives until the last call of gx_dictionary_next. false: no memory. */
bool gx_dictionary_begin(gx_dictionary *d, const char *text, uint32_t len);

/* The byte at which the next word ends; it begins where the one before ended. 0: there are no more. */
uint32_t gx_dictionary_next(gx_dictionary *d);

#endif
