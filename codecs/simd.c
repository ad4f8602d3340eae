#include "codecs/simd.h"

#include <stdatomic.h>
#include <string.h>

#include "codecs/pack.h"

extern const gx_simd gx_simd_avx2, gx_simd_avx512;

static bool always(void) { return true; }

static void sum(uint32_t *v, uint32_t n, uint32_t head)
{
    uint32_t last = head - 1;
    for (uint32_t i = 0; i < n; ++i)
        v[i] = last += v[i] + 1;
}

static void unpack_docids(const uint32_t *words, uint32_t n, uint32_t b, uint32_t head, uint32_t *out)
{
    gx_unpack(words, n, b, out);
    sum(out, n, head);
}

static bool bytes(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    for (uint32_t i = 0; i < n; i += 16) {
        if (data > end)
            return false;
        const uint32_t m = n - i < 16 ? n - i : 16;
        uint32_t s = selectors[i / 16];
        for (uint32_t j = 0; j < m; ++j, s >>= 2) {
            uint32_t x;
            memcpy(&x, data, 4);
            out[i + j] = x & 0xffffffffu >> (24 - 8 * (s & 3));
            data += (s & 3) + 1;
        }
    }
    return true;
}

static bool bytes_docids(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t head, uint32_t *out)
{
    if (!bytes(selectors, data, end, n, out))
        return false;
    sum(out, n, head);
    return true;
}

static uint8_t *put_bytes(const uint32_t *in, uint32_t n, uint32_t *selectors, uint8_t *data)
{
    for (uint32_t i = 0; i < n; i += 16) {
        const uint32_t m = n - i < 16 ? n - i : 16;
        uint32_t s = 0;
        for (uint32_t j = 0; j < m; ++j) {
            const uint32_t more = (gx_width(in[i + j] | 1) - 1) / 8;
            s |= more << (2 * j);
            memcpy(data, &in[i + j], 4); /* the bytes past the integer are written over */
            data += more + 1;
        }
        selectors[i / 16] = s;
    }
    return data;
}

static const gx_simd portable = {"portable", always, gx_unpack, unpack_docids, bytes, bytes_docids, put_bytes, sum};

const gx_simd *const gx_simds[] = {
    &portable,
#ifdef __x86_64__
    &gx_simd_avx2,
    &gx_simd_avx512,
#endif
    NULL
};

const gx_simd *gx_simd_best(void)
{
    static _Atomic(const gx_simd *) found; /* the same whoever looks first */
    const gx_simd *best = atomic_load_explicit(&found, memory_order_relaxed);
    if (!best) {
        for (const gx_simd *const *s = gx_simds; *s; ++s) {
            if ((*s)->usable())
                best = *s;
        }
        atomic_store_explicit(&found, best, memory_order_relaxed);
    }
    return best;
}
