/* payload.cuh: the payload of an index whose lists have no room in device memory.
 *
 *   host memory, pinned     | list 0 | list 1 | list 2 | ...     as in the file; kernels read it over PCIe
 *   device memory: pool     | list 7 | list 2 | free | list 9 |  copies; query/exec/residency.h says of which lists
 *
 * gpu_index.payload is the device's address of the pinned payload. Kernels find a list at
 * payload + term_payload.words. For a list in the pool the host sets `words` to the distance, modulo
 * 2^64, from the pinned payload to the copy. So no kernel knows of the pool.
 *
 * Lists are copied by a stream of their own while sessions search. A search does not wait for a
 * copy: it reads the list from host memory until the copy is complete. */
#ifndef GX_QUERY_GPU_PAYLOAD_CUH
#define GX_QUERY_GPU_PAYLOAD_CUH

#include "query/gpu/memory.cuh"

extern "C" {
#include "index/index.h"
#include "query/exec/residency.h"
}

#include <pthread.h>

namespace gx {

constexpr uint32_t N_COPY_BATCHES = 4, MAX_COPIES = 32; /* lists of a batch of copies */

/* Copies in flight. */
struct copy_batch {
    cudaEvent_t done;
    bool busy;
    uint32_t n;
    gx_residency_copy copies[MAX_COPIES];
};

struct pinned_range;

struct payload_store {
    const gx_index *ix;
    pinned_range *pinned; /* NULL: the payload is in the arena, and nothing else here is used */
    const uint32_t *host; /* the pinned payload */
    char *pool;
    uint64_t pool_bytes, pool_words; /* pool_words: see above, of the pool's begin */
    gx_residency *cache;             /* NULL: there is no pool */
    cudaStream_t stream;
    pthread_mutex_t lock; /* of what follows */
    copy_batch batches[N_COPY_BATCHES];
    double last, allowance; /* when lists were admitted last, in seconds; bytes that may be copied now */
    bool failed;            /* a copy failed: no more lists are admitted */
};

/* Returns the index of the list's first word in the payload of its file. */
static inline uint64_t first_word(const gx_list_entry *e)
{
    return (uint64_t)e->payload_hi << 32 | e->payload_lo;
}

/* Returns the bytes of a list's payload. */
static inline uint64_t list_bytes(const gx_index *ix, uint32_t list)
{
    const uint64_t end = list + 1 < ix->n_terms ? first_word(&ix->lists[list + 1]) : ix->payload_words;
    return (end - first_word(&ix->lists[list])) * 4;
}

/* Returns term_payload.words of a list. */
static inline uint64_t find_list(const payload_store *p, const gx_list_entry *e, uint32_t list)
{
    const uint64_t at = p->cache ? gx_residency_find(p->cache, list) : GX_NOT_RESIDENT;
    return at == GX_NOT_RESIDENT ? first_word(e) : p->pool_words + at / 4;
}

/* Pin the payload in place, or a copy of it where that is refused, and set *mapped to the device's address
 * of it. Engines on one index share what is pinned. GX_ECUDA. */
gx_status payload_pin(payload_store *p, const gx_index *ix, const uint32_t **mapped, gx_error *err);

/* Allocate the pool, whose bytes the caller has taken from the budget, and open the cache. mapped: as
 * payload_pin set it. Static: the pool is filled. GX_ENOMEM, GX_ECUDA. */
gx_status payload_open_pool(payload_store *p, uint64_t bytes, gx_residency_policy policy, const uint32_t *mapped,
                            gx_error *err);
void payload_close(payload_store *p); /* no search is under way; accepts what is half open */

/* Returns the bytes of a pool that has room for all lists. */
uint64_t whole_pool_bytes(const gx_index *ix);

/* Copies that are complete become visible, and lists that the reader missed are copied to the pool. Does
 * not wait, and does nothing while another thread does it. The reader has not entered. */
void payload_admit(payload_store *p, gx_residency_reader *reader);

/* Plan the pool by counts[n_terms] of uses (gx_residency_plan), and copy the lists. GX_ENOMEM, GX_ECUDA. */
gx_status payload_warm(payload_store *p, const uint32_t *counts, gx_error *err);

/* "25 % of the payload in its memory, the rest mapped", or "copied" where it could not be pinned in place. */
void payload_describe(const payload_store *p, char *out, size_t bytes);

} // namespace gx

#endif
