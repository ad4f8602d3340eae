/* porter.h: Porter's stemmer (M. F. Porter, An algorithm for suffix stripping, 1980), in the form
 * that Lucene uses.
 *
 * That form has the two departures of Porter's own program: -bli becomes -ble (not only -abli to
 * -able), and -logi becomes -log. Snowball's "porter" has neither, so the two differ on words such
 * as "biology" and "possibly".
 */
#ifndef GX_INDEX_ANALYSIS_PORTER_H
#define GX_INDEX_ANALYSIS_PORTER_H

#include <stddef.h>

/* Stem word[len] in place and return the new length, which is never greater. Words of one or two
 * characters stay. Lower-case ASCII letters are meant; any other byte counts as a consonant and is
 * never cut. */
size_t gx_porter(char *word, size_t len);

#endif
