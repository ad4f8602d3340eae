/* lexicon.c: find a term's id in the hash table of the file's THSH section. */
#include <string.h>

#include "engine/hash.h"
#include "index/index.h"

#define MAX_PROBES 64u /* a table of usual terms needs fewer */

/* Look the term up among all of them, which are in byte order. */
static uint32_t find_in_order(const gx_index *ix, const char *term, size_t len)
{
    uint32_t lo = 0, hi = ix->n_terms;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        size_t n;
        const char *bytes = gx_strings_get(&ix->terms, mid, &n);
        const int order = memcmp(bytes, term, n < len ? n : len);
        if (order == 0 && n == len)
            return mid;
        if (order < 0 || (order == 0 && n < len))
            lo = mid + 1;
        else
            hi = mid;
    }
    return UINT32_MAX;
}

/* Terms that were chosen so that their hashes collide make long rows of full slots, in which a
 * look-up would take as long as there are terms. */
uint32_t gx_index_find_term(const gx_index *ix, const char *term, size_t len)
{
    const uint64_t mask = ((uint64_t)1 << ix->term_hash_bits) - 1;
    uint64_t slot = gx_hash(term, len) & mask;
    for (uint32_t probes = 0; probes < MAX_PROBES; ++probes, slot = (slot + 1) & mask) {
        const uint32_t found = ix->term_hash[slot];
        if (found == 0)
            return UINT32_MAX;
        size_t found_len;
        const char *bytes = gx_strings_get(&ix->terms, found - 1, &found_len);
        if (found_len == len && memcmp(bytes, term, len) == 0)
            return found - 1;
    }
    return find_in_order(ix, term, len);
}
