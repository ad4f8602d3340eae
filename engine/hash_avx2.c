/* XXH3-64 in AVX2 registers; called by hash.c where the processor has them. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

uint64_t gx_hash_avx2(const void *data, size_t n);

uint64_t gx_hash_avx2(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
