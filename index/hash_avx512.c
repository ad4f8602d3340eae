/* XXH3-64 in AVX512 registers; called by hash.c where the processor has them. */
#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC target("avx512f")
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX512
#include <xxhash.h>

uint64_t gx_hash_avx512(const void *data, size_t n);

uint64_t gx_hash_avx512(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}
#endif
