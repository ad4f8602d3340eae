/* hash.h: the hash function XXH3-64, for the checksums of sections and for hash tables of
 * strings. */
#ifndef GX_ENGINE_HASH_H
#define GX_ENGINE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The XXH3-64, with seed 0, of n bytes. */
uint64_t gx_hash(const void *data, size_t n);

/* A random number. A table of strings in memory takes one as the seed of its hash function, so that
 * nobody can write a text whose terms all fall into a few slots. */
uint64_t gx_hash_seed(void);

/* The same hash of data that comes in pieces: open (which starts), add each piece, get. start
 * begins the next hash. close accepts NULL. */
typedef struct gx_hasher gx_hasher;
gx_hasher *gx_hasher_open(void); /* NULL: out of memory */
void gx_hasher_start(gx_hasher *h);
void gx_hasher_add(gx_hasher *h, const void *data, size_t n);
uint64_t gx_hasher_get(const gx_hasher *h);
void gx_hasher_close(gx_hasher *h);

#endif
