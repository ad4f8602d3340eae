#include "codecs/words/simd.h"

#include <stdatomic.h>
#include <string.h>

#include "codecs/words/eliasfano.h"
#include "codecs/words/pack.h"
#include "engine/isa.h"

extern const gx_simd gx_simd_avx2, gx_simd_avx512, gx_simd_neon;

static bool always(void)
{
    return true;
}

static void prefix_sum(uint32_t *v, uint32_t n, uint32_t head)
{
    uint32_t last = head - 1;
    for (uint32_t i = 0; i < n; ++i)
        v[i] = last += v[i] + 1;
}

static void unpack_docids(const uint32_t *words, uint32_t n, uint32_t b, uint32_t head, uint32_t *out)
{
    gx_unpack(words, n, b, out);
    prefix_sum(out, n, head);
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

static bool bytes_docids(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t head,
                         uint32_t *out)
{
    if (!bytes(selectors, data, end, n, out))
        return false;
    prefix_sum(out, n, head);
    return true;
}

static uint8_t *put_bytes(const uint32_t *in, uint32_t n, uint32_t *selectors, uint8_t *data)
{
    for (uint32_t i = 0; i < n; i += 16) {
        const uint32_t m = n - i < 16 ? n - i : 16;
        uint32_t s = 0;
        for (uint32_t j = 0; j < m; ++j) {
            const uint32_t more = (gx_bit_width(in[i + j] | 1) - 1) / 8;
            s |= more << (2 * j);
            memcpy(data, &in[i + j], 4); /* the next integer overwrites the excess bytes */
            data += more + 1;
        }
        selectors[i / 16] = s;
    }
    return data;
}

static bool su(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    for (uint32_t i = 0; i < n;) {
        uint64_t eight;
        if (data > end)
            return false;
        memcpy(&eight, data, 8);
        if (i + 8 <= n && (eight & 0x8080808080808080u) == 0) {
            for (uint32_t k = 0; k < 8; ++k)
                out[i + k] = eight >> 8 * k & 0x7f;
            i += 8;
            data += 8;
            continue;
        }
        uint32_t x = 0, shift = 0, byte;
        do {
            byte = *data++;
            x |= (byte & 0x7f) << shift;
            shift += 7;
        } while (byte & 0x80 && shift < 35);
        out[i++] = x;
    }
    return true;
}

static bool gb(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    for (uint32_t i = 0; i < n; i += 4) {
        if (data > end)
            return false;
        uint32_t s = *data++;
        for (uint32_t j = 0; j < 4; ++j, s >>= 2) {
            uint32_t x;
            memcpy(&x, data, 4);
            out[i + j] = x & 0xffffffffu >> (24 - 8 * (s & 3));
            data += (s & 3) + 1;
        }
    }
    return true;
}

static bool gu(const uint8_t *groups, uint32_t n_groups, bool complete, uint32_t n, uint32_t *out)
{
    /* begun: the low bits of an integer that began in an earlier group; bits: how many they are. */
    uint32_t i = 0, begun = 0, bits = 0;
    for (; n_groups > 0; --n_groups, groups += 9) {
        uint64_t data;
        memcpy(&data, groups + 1, 8);
        uint32_t ends = ~groups[0] & 0xffu, from = 0;
        for (; ends; ends &= ends - 1) {
            const uint32_t to = (uint32_t)__builtin_ctz(ends) + 1, width = 8 * (to - from);
            if (width + bits > 32)
                return false;
            out[i] = begun | ((uint32_t)(data >> 8 * from) & gx_low_bits(width)) << bits;
            begun = bits = 0;
            from = to;
            if (++i == n)
                return true;
        }
        if (complete && from < 8) {
            if (8 * (8 - from) + bits > 24)
                return false;
            begun |= (uint32_t)(data >> 8 * from) << bits;
            bits += 8 * (8 - from);
        }
    }
    return false;
}

static void add_high_parts(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t b, uint32_t first,
                           uint32_t step, uint32_t *out)
{
    uint8_t at[128];
    gx_ef_select_bits(words, n_words, n, at);
    gx_ef_add_high_parts(at, n, b, first, step, out);
}

static const gx_simd portable = {"portable", "portable",   always,        gx_unpack,  unpack_docids,
                                 bytes,      bytes_docids, put_bytes,     prefix_sum, su,
                                 gb,         gu,           add_high_parts};

const gx_simd *const gx_simds[] = {&portable,
#ifdef __x86_64__
                                   &gx_simd_avx2, &gx_simd_avx512,
#elif defined(__aarch64__)
                                   &gx_simd_neon,
#endif
                                   NULL};

/* The best implementation that this CPU can run, or the one of that name. NULL if there is none. */
static const gx_simd *usable(const char *name)
{
    const gx_simd *best = NULL;
    for (const gx_simd *const *s = gx_simds; *s; ++s) {
        if ((!name || strcmp((*s)->name, name) == 0) && (*s)->usable())
            best = *s;
    }
    return best;
}

const gx_simd *gx_simd_choose(void)
{
    return usable(gx_isa_override());
}

const gx_simd *gx_simd_best(void)
{
    static _Atomic(const gx_simd *) found; /* every thread would store the same pointer */
    const gx_simd *best = atomic_load_explicit(&found, memory_order_acquire);
    if (!best) {
        best = gx_simd_choose();
        best = best ? best : usable(NULL);
        atomic_store_explicit(&found, best, memory_order_release);
    }
    return best;
}
