/* external_ids.h: which document an external id belongs to, while an index is built.
 *
 * A table of 95-bit hashes, 16 bytes a slot: ids are not kept. Two different ids are taken for one
 * with a probability below n^2 / 2^96, 1e-14 for 25 million documents.
 */
#ifndef GX_INDEX_WRITE_EXTERNAL_IDS_H
#define GX_INDEX_WRITE_EXTERNAL_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gx_external_ids {
    struct gx_external_id_slot *slots; /* [1 << bits] */
    uint64_t seed;
    uint32_t bits, n;
} gx_external_ids;

bool gx_external_ids_open(gx_external_ids *d); /* false: no memory */
void gx_external_ids_close(gx_external_ids *d);

/* What the table keeps of an id. Any thread may make it. more is odd. */
typedef struct gx_id_key {
    uint64_t hash;
    uint32_t more;
} gx_id_key;
gx_id_key gx_external_ids_key(const gx_external_ids *d, const char *id, size_t len);

/* Bring the key's place into the cache, some keys before it is wanted. */
void gx_external_ids_prefetch(const gx_external_ids *d, gx_id_key key);

/* Where the docid of this id is stored. If the id is new, the place holds UINT32_MAX and the caller
 * writes the docid there before the next call. NULL: no memory. */
uint32_t *gx_external_ids_insert(gx_external_ids *d, gx_id_key key);

/* As gx_external_ids_insert, but NULL where the id is new. */
uint32_t *gx_external_ids_find(const gx_external_ids *d, gx_id_key key);

#endif
