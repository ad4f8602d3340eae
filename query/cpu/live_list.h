/* live_list.h: a list without the postings of some documents, encoded again in memory as the index has it: by the same
 * codecs, in blocks of the same length.
 */
#ifndef GX_QUERY_CPU_LIVE_LIST_H
#define GX_QUERY_CPU_LIVE_LIST_H

#include "query/cpu/lists.h"

typedef struct gx_live_documents {
    const uint64_t *words; /* [ceil(n_docs / 64)] a bit a document that is kept */
    uint32_t n_docs;
} gx_live_documents;

/* The postings of l whose documents are kept; l itself, where it has no others. alloc gives the memory of the result's
 * arrays, in one piece; NULL: there is none. false: no posting is left, the list is damaged, or there is no memory. */
bool gx_live_list_make(gx_list *out, const gx_list *l, const gx_live_documents *kept, const gx_cpu_kernels *kernels,
                       gx_cpu_scratch *scratch, void *(*alloc)(void *user, size_t bytes), void *user);

#endif
