/* language.h: rules for words of one language, which hold where text is cut into words and the stemmer is of that
 * language:
 *
 *   french, italian, catalan, irish
 *                              an elided article, pronoun or preposition is no part of the word: l'avion is avion
 *   turkish                    I becomes dotless i and U+0130 i in lower case; an apostrophe begins a suffix of a
 *                              name, which is cut off: Istanbul'da is istanbul
 *   german                     umlauts are their vowels, as are ae, oe and ue (but behind a vowel or q); sharp s is ss:
 *                              M\u00FCller and Mueller are muller
 *
 * They are those of Lucene's ElisionFilter, TurkishLowerCaseFilter, ApostropheFilter and GermanNormalizationFilter. An
 * apostrophe is one of ' U+2018 U+2019 U+02BC U+FF07. */
#ifndef GX_INDEX_ANALYSIS_LANGUAGE_H
#define GX_INDEX_ANALYSIS_LANGUAGE_H

#include <stddef.h>

typedef enum gx_language {
    GX_LANGUAGE_ANY, /* no rules */
    GX_LANGUAGE_FRENCH,
    GX_LANGUAGE_ITALIAN,
    GX_LANGUAGE_CATALAN,
    GX_LANGUAGE_TURKISH,
    GX_LANGUAGE_IRISH,
    GX_LANGUAGE_GERMAN
} gx_language;

gx_language gx_language_of_stemmer(const char *stemmer);
const char *gx_language_name(gx_language language); /* its stemmer's; NULL: no rules */

/* Cut what is elided, or behind an apostrophe, off a word in lower case, or write it as German; in place. Returns its
 * length. */
size_t gx_language_cut(gx_language language, char *word, size_t len);

/* Write Turkish lower case of UTF-8 text to out, which has room for 3 len bytes. Copies bytes that are not UTF-8. A
 * dot above an i is dropped. Returns the length. */
size_t gx_lowercase_turkish(char *out, const char *in, size_t len);

/* Write lower case by Unicode's simple mapping, in the same way. */
size_t gx_lowercase_utf8(char *out, const char *in, size_t len);

#endif
