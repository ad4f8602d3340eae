/* lexicon.c: find a term's id in the hash table of the file's THSH section. */
#include <string.h>

#include "engine/hash.h"
#include "index/index.h"

uint32_t gx_index_find_term(const gx_index *ix, const char *term, size_t len)
{
    const uint64_t mask = ((uint64_t)1 << ix->term_hash_bits) - 1;
    for (uint64_t slot = gx_hash(term, len) & mask;; slot = (slot + 1) & mask) { /* ends at an empty slot */
        const uint32_t found = ix->term_hash[slot];
        if (found == 0)
            return UINT32_MAX;
        size_t found_len;
        const char *bytes = gx_strings_get(&ix->terms, found - 1, &found_len);
        if (found_len == len && memcmp(bytes, term, len) == 0)
            return found - 1;
    }
}
