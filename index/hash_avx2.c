/* XXH3-64 in AVX2 registers; called by hash.c where the processor has them. */
#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

uint64_t gx_hash_avx2(const void *data, size_t n);

uint64_t gx_hash_avx2(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}
#endif
