#include "engine/hash.h"

#include <sys/random.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* hash_avx2.c is the same function in AVX2 registers. AVX-512 is no faster, because memory is the
 * limit. gx_hash chooses at each call, since the library has no global state. The choice costs
 * nothing measurable for a section, and short strings skip it. */
#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_HASH_AVX2 1
uint64_t gx_hash_avx2(const void *data, size_t n);
#endif

#define MIN_AVX2_BYTES 1024 /* for fewer bytes AVX2 is no faster */

uint64_t gx_hash(const void *data, size_t n)
{
#ifdef HAVE_HASH_AVX2
    if (n > MIN_AVX2_BYTES && __builtin_cpu_supports("avx2"))
        return gx_hash_avx2(data, n);
#endif
    return XXH3_64bits(data, n);
}

uint64_t gx_hash_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return seed;
    struct timespec t; /* the system has no random numbers yet */
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t parts[] = {(uint64_t)t.tv_sec, (uint64_t)t.tv_nsec, (uint64_t)(uintptr_t)&seed};
    return XXH3_64bits(parts, sizeof parts);
}

struct gx_hasher {
    XXH3_state_t *state; /* XXH3_createState aligns it */
};

gx_hasher *gx_hasher_open(void)
{
    gx_hasher *h = malloc(sizeof *h);
    if (h && !(h->state = XXH3_createState())) {
        free(h);
        h = NULL;
    }
    if (h)
        gx_hasher_start(h);
    return h;
}

void gx_hasher_start(gx_hasher *h)
{
    XXH3_64bits_reset(h->state);
}

void gx_hasher_add(gx_hasher *h, const void *data, size_t n)
{
    XXH3_64bits_update(h->state, data, n);
}

uint64_t gx_hasher_get(const gx_hasher *h)
{
    return XXH3_64bits_digest(h->state);
}

void gx_hasher_close(gx_hasher *h)
{
    if (h)
        XXH3_freeState(h->state);
    free(h);
}
