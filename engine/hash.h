/* hash.h: XXH3-64 at the speed of the machine: of sections (checksums) and of terms (the lexicon).
 * */
#ifndef GX_ENGINE_HASH_H
#define GX_ENGINE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t gx_hash(const void *data, size_t n);

/* The same of data that comes in pieces. start may be called again; close accepts NULL. */
typedef struct gx_hasher gx_hasher;
gx_hasher *gx_hasher_open(void); /* started; NULL: out of memory */
void gx_hasher_start(gx_hasher *h);
void gx_hasher_add(gx_hasher *h, const void *data, size_t n);
uint64_t gx_hasher_get(const gx_hasher *h);
void gx_hasher_close(gx_hasher *h);

#endif
