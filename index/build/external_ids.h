/* external_ids.h: which document an external id belongs to, while an index is built.
 *
 * A table of 95-bit hashes, 16 bytes a slot: ids are not kept. Two different ids are taken for one
 * with a probability below n^2 / 2^96, 1e-14 for 25 million documents.
 */
#ifndef GX_INDEX_BUILD_EXTERNAL_IDS_H
#define GX_INDEX_BUILD_EXTERNAL_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gx_docids {
    struct gx_docid_slot *slots; /* [1 << bits] */
    uint32_t bits, n;
} gx_docids;

bool gx_docids_open(gx_docids *d); /* false: no memory */
void gx_docids_close(gx_docids *d);

/* The hash of an id, and its slot on its way into the cache: some work between this and
 * gx_docids_find hides a miss. */
typedef struct gx_docid_hash {
    uint64_t low;
    uint32_t more;
} gx_docid_hash;
gx_docid_hash gx_docids_prepare(const gx_docids *d, const char *id, size_t len);

/* The place of id's docid, UINT32_MAX in a place that was made for it; the caller puts the docid
 * there before the next call. NULL: no memory. */
uint32_t *gx_docids_find(gx_docids *d, gx_docid_hash id);

#endif
