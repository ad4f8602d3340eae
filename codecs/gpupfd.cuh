/* gpupfd.cuh: GPU-PFD128 (gpupfd.c) on the device. */
#ifndef GX_CODECS_GPUPFD_CUH
#define GX_CODECS_GPUPFD_CUH

#include "codecs/patch.cuh"

namespace gx {

/* The fields of a block's last word (gpupfd.c). If no encoder can have written it, all are 0. */
struct gpupfd_header {
    uint32_t b, h, e;

    template <bool LDG> static __device__ __forceinline__ gpupfd_header read(const uint32_t *w, uint32_t n_words)
    {
        if (n_words - 1 >= 127)
            return {n_words ? 32u : 0u, 0, 0};
        const uint32_t last = load<LDG>(w + n_words - 1);
        const gpupfd_header p = {last >> 17 & 31, last >> 22 & 31, last >> 27};
        const uint32_t behind = p.e ? p.e * (5 + p.h) + 7 + 15 : 15;
        const bool good = p.e <= 25 && p.h <= 28 && 4 * p.b + gx_div_up(behind, 32) == n_words;
        return good ? p : gpupfd_header{0, 0, 0};
    }
};

/* The exception of a lane. The lane's bit of the map says whether it has one, and the bits below
 * tell which. */
template <bool LDG> struct gpupfd_exception {
    bool mine;
    uint32_t position, above;

    /* behind: the word after the packed integers. p.e > 0. */
    __device__ __forceinline__ gpupfd_exception(const uint32_t *behind, gpupfd_header p, uint32_t lane)
    {
        const uint32_t map = load<LDG>(behind) & gx_low_bits(p.e + 7);
        const uint32_t k = __popc(map & gx_low_bits(lane));
        mine = (map >> lane & 1) && k < p.e;
        const uint32_t x = mine ? read_bits<LDG>(behind, p.e + 7 + k * (p.h + 4), p.h + 4) : 0;
        position = ((lane - k) << 4 | (x & 15)) & 127;
        above = ((x >> 4) + 1) << p.b;
    }
};

template <bool LDG> struct gpupfd128 {
    static constexpr int BLOCK = 128, SEG = 128, V = 4;

    gpubp<128, 128, LDG> rows;
    gpupfd_header p;

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t lane, uint32_t = 0)
    {
        rows.open(w, n_words, n, lane);
        p.e = 0;
        if (n == BLOCK) {
            p = gpupfd_header::read<LDG>(w, n_words);
            rows.b = p.b;
        }
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        const uint32_t *const behind = rows.words + 4 * rows.b;
        rows.next(lane, v);
        if (p.e == 0)
            return;
        const gpupfd_exception<LDG> x(behind, p, lane);
        patch<true>(v, x.mine, x.position, x.above, lane);
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                                  uint32_t = 0)
    {
        if (n != BLOCK)
            return gpubp<128, 128, LDG>::at(w, n_words, n, i);
        const gpupfd_header p = gpupfd_header::read<LDG>(w, n_words);
        uint32_t x = p.b ? read_bits<LDG>(w, i * p.b, p.b) : 0;
        if (p.e == 0)
            return x;
        const uint32_t *const behind = w + 4 * p.b;
        uint32_t map = load<LDG>(behind) & gx_low_bits(p.e + 7), k = 0;
        for (; map && k < p.e; ++k, map &= map - 1) { /* only exceptions of the same 16 positions matter */
            const uint32_t sixteen = (uint32_t)__ffs((int)map) - 1 - k;
            if (sixteen < i >> 4)
                continue;
            if (sixteen > i >> 4)
                break;
            const uint32_t y = read_bits<LDG>(behind, p.e + 7 + k * (p.h + 4), p.h + 4);
            if ((y & 15) == (i & 15))
                x += ((y >> 4) + 1) << p.b;
        }
        return x;
    }
};

} // namespace gx

#endif
