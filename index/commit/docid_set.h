/* docid_set.h: a set of docids that grows. */
#ifndef GX_INDEX_COMMIT_DOCID_SET_H
#define GX_INDEX_COMMIT_DOCID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gx_docid_set {
    uint64_t *words; /* [n_words] */
    size_t n_words;
    uint32_t n; /* docids in it */
} gx_docid_set; /* all zeros: empty */

/* docid is not in the set. false: no memory. */
bool gx_docid_set_add(gx_docid_set *s, uint32_t docid);

/* Make the set readable for n_docs documents. false: no memory. */
bool gx_docid_set_cover(gx_docid_set *s, uint32_t n_docs);

/* The set is empty, and holds no memory. */
void gx_docid_set_clear(gx_docid_set *s);

#endif
