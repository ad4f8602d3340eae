/* lexicon.h: the look-ups of several terms at once. A look-up reads four places in memory, one after the other: the
 * hash table's slot, the term's offset, its bytes and its list's entry. Those of several terms are waited for together.
 */
#ifndef GX_INDEX_READ_LEXICON_H
#define GX_INDEX_READ_LEXICON_H

#include "index/index.h"

/* A term to be looked up. */
typedef struct gx_term_key {
    const char *bytes;
    uint32_t len;
    uint64_t hash; /* gx_hash(bytes, len) */
} gx_term_key;

/* Ask for the first place of a look-up that follows. ix is one file. */
void gx_index_expect_hashed(const gx_index *ix, uint64_t hash);

/* ids[i] = gx_index_find_hashed of keys[i], for each of n keys. The entries of the lists that are found are asked for
 * too. ix is one file. Thread-safe. */
void gx_index_find_all(const gx_index *ix, const gx_term_key *keys, uint32_t n, uint32_t *ids);

#endif
