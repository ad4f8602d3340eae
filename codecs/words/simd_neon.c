/* NEON, which every aarch64 processor has: four integers at a time. */
#ifdef __aarch64__
#include <arm_neon.h>

#include "codecs/words/byte_tables.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"
#include "codecs/words/unpack_neon.h"

static bool usable(void)
{
    return true;
}

static void prefix_sum(uint32_t *v, uint32_t n, uint32_t head)
{
    uint32x4_t last = vdupq_n_u32(head - 1);
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_u32(v + i, gx_add_prefix4(vld1q_u32(v + i), &last));
    uint32_t before = vgetq_lane_u32(last, 0);
    for (; i < n; ++i)
        v[i] = before += v[i] + 1;
}

static void unpack(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out)
{
    if (b > 25) {
        gx_unpack(words, n, b, out);
        return;
    }
    const gx_unpacker4 u = gx_unpack_from(words, b);
    const uint8_t *p = u.p;
    for (const uint32_t *const end = out + n; out < end; out += 8, p += (size_t)b) {
        vst1q_u32(out, gx_unpack_half_at(&u, p, 0));
        vst1q_u32(out + 4, gx_unpack_half_at(&u, p, 1));
    }
}

static void unpack_docids(const uint32_t *words, uint32_t n, uint32_t b, uint32_t head, uint32_t *out)
{
    if (b <= 25) {
        gx_unpack_docids8(words, b, n, head, out);
    } else {
        gx_unpack(words, n, b, out);
        prefix_sum(out, n, head);
    }
}

/* Four integers whose lengths are those of selectors s. */
static inline uint32x4_t four(const uint8_t *data, uint8_t s)
{
    return vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(data), vld1q_u8((const uint8_t *)byte_shuffles[s])));
}

static inline bool decode_vbyte(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n,
                                bool docids, uint32_t head, uint32_t *out)
{
    uint32x4_t last = vdupq_n_u32(head - 1);
    const uint8_t *s = (const uint8_t *)selectors;
    for (uint32_t i = 0; i < n; i += 8, s += 2) {
        if (data > end)
            return false;
        uint32x4_t low, high;
        if ((s[0] | s[1]) == 0) {
            const uint16x8_t v = vmovl_u8(vld1_u8(data));
            low = vmovl_u16(vget_low_u16(v));
            high = vmovl_high_u16(v);
            data += 8;
        } else {
            low = four(data, s[0]);
            data += lengths[s[0]];
            high = four(data, s[1]);
            data += lengths[s[1]];
        }
        vst1q_u32(out + i, docids ? gx_add_prefix4(low, &last) : low);
        vst1q_u32(out + i + 4, docids ? gx_add_prefix4(high, &last) : high);
    }
    return true;
}

static bool bytes(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    return decode_vbyte(selectors, data, end, n, false, 0, out);
}

static bool bytes_docids(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t head,
                         uint32_t *out)
{
    return decode_vbyte(selectors, data, end, n, true, head, out);
}

static bool gb(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    for (uint32_t i = 0; i < n; i += 4) {
        if (data > end)
            return false;
        const uint8_t s = *data++;
        vst1q_u32(out + i, four(data, s));
        data += lengths[s];
    }
    return true;
}

/* What has no better form than plain C here. */
static uint8_t *put_bytes(const uint32_t *in, uint32_t n, uint32_t *selectors, uint8_t *data)
{
    return gx_simds[0]->put_bytes(in, n, selectors, data);
}

static bool su(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    return gx_simds[0]->su(data, end, n, out);
}

static bool gu(const uint8_t *groups, uint32_t n_groups, bool complete, uint32_t n, uint32_t *out)
{
    return gx_simds[0]->gu(groups, n_groups, complete, n, out);
}

static void add_high_parts(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t b, uint32_t first,
                           uint32_t step, uint32_t *out)
{
    gx_simds[0]->add_high_parts(words, n_words, n, b, first, step, out);
}

const gx_simd gx_simd_neon = {"neon",     "NEON", usable, unpack, unpack_docids, bytes, bytes_docids, put_bytes,
                              prefix_sum, su,     gb,     gu,     add_high_parts};
#else
typedef int gx_no_neon;
#endif
