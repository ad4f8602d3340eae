/* stemmer_print.h: what an index remembers of the stemmer that its terms were made with.
 *
 * Snowball's stemmers change from version to version (the Dutch one was replaced by another), and the library does not
 * tell its version. So a stemmer is known by what it makes of fixed words: its fingerprint. */
#ifndef GX_INDEX_ANALYSIS_STEMMER_PRINT_H
#define GX_INDEX_ANALYSIS_STEMMER_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/* Lines "LANGUAGE: WORD WORD ...\n", of which "*" is for every stemmer. */
extern const char gx_stemmer_words[];

/* The full name of a stemmer of Snowball's that also has short ones: "french" of "fr", "fra" or "fre". Other names are
 * given back. */
const char *gx_stemmer_full_name(const char *name);

/* The fingerprint of a stemmer of Snowball's, never 0. false: there is none of that name, or no memory. */
bool gx_stemmer_print(const char *name, uint64_t *print);

#endif
