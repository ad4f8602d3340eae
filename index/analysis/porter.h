/* porter.h: Porter's stemmer (M. F. Porter, An algorithm for suffix stripping, 1980), in the form
 * that Lucene uses.
 *
 * Like Porter's own program, this form departs from the paper in two rules: -bli becomes -ble,
 * where the paper has only -abli to -able, and -logi becomes -log. Snowball's "porter" follows the
 * paper, so the two differ on words such as "biology" and "possibly".
 */
#ifndef GX_INDEX_ANALYSIS_PORTER_H
#define GX_INDEX_ANALYSIS_PORTER_H

#include <stddef.h>

/* Stem word[len] in place and return the new length, which is at most len. Words of one or two
 * bytes stay as they are. The word should be of lower-case ASCII letters; any other byte counts as
 * a consonant and is never cut. */
size_t gx_porter(char *word, size_t len);

#endif
