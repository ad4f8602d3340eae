#include "index/fields/field_tfs.h"

#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

typedef struct bit_writer {
    uint8_t *bytes; /* 0 from the bit `at` on */
    uint64_t at;
} bit_writer;

static inline void put(bit_writer *w, uint64_t value, uint32_t n)
{
    for (uint32_t done = 0; done < n;) {
        const uint32_t shift = (uint32_t)(w->at & 7), some = 8 - shift < n - done ? 8 - shift : n - done;
        w->bytes[w->at >> 3] |= (uint8_t)((value >> done & ((1u << some) - 1)) << shift);
        done += some;
        w->at += some;
    }
}

static inline uint32_t log2_of(uint32_t x)
{
    return 31 - (uint32_t)__builtin_clz(x);
}

/* x >= 1: as many zeros as x has bits below its highest, a one, and those bits. */
static void put_gamma(bit_writer *w, uint32_t x)
{
    const uint32_t n = log2_of(x);
    w->at += n;
    put(w, 1, 1);
    put(w, x & ((1ull << n) - 1), n);
}

static uint64_t gamma_bits(uint32_t x)
{
    return 2ull * log2_of(x) + 1;
}

/* What one field of a list takes. */
typedef struct field_size {
    uint32_t n, rice; /* postings; low bits of a gap */
    uint64_t bits;    /* behind the head */
} field_size;

/* The low bits of n gaps whose sum is `gaps`: those of the whole number of their mean. */
static uint32_t rice_of(uint64_t gaps, uint32_t n)
{
    const uint64_t mean = gaps / n;
    return mean ? log2_of((uint32_t)mean) : 0;
}

static field_size measure(const uint32_t *tfs, uint32_t df, uint32_t stride)
{
    field_size s = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < df; ++i) {
        if (tfs[(size_t)i * stride]) {
            ++s.n;
            next = i + 1;
        }
    }
    if (s.n == 0)
        return s;
    s.rice = rice_of(next - s.n, s.n);
    s.bits = 5;
    next = 0;
    for (uint32_t i = 0; i < df; ++i) {
        const uint32_t tf = tfs[(size_t)i * stride];
        if (tf) {
            s.bits += ((i - next) >> s.rice) + 1 + s.rice + gamma_bits(tf);
            next = i + 1;
        }
    }
    return s;
}

static void put_field(bit_writer *w, const uint32_t *tfs, uint32_t df, uint32_t stride, uint32_t rice)
{
    uint32_t next = 0;
    put(w, rice, 5);
    for (uint32_t i = 0; i < df; ++i) {
        const uint32_t tf = tfs[(size_t)i * stride];
        if (!tf)
            continue;
        w->at += (i - next) >> rice;
        put(w, 1, 1);
        put(w, (i - next) & ((1u << rice) - 1), rice);
        put_gamma(w, tf);
        next = i + 1;
    }
}

static uint32_t without_last(const uint32_t *tfs, const uint32_t *field_tfs, uint32_t df, uint32_t stride)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < df; ++i) {
        uint64_t sum = 0;
        for (uint32_t f = 0; f < stride; ++f)
            sum += field_tfs[(size_t)i * stride + f];
        n += sum == tfs[i];
    }
    return n;
}

static bool reserve(gx_field_bytes *out, uint64_t n)
{
    if (out->max - out->n >= n + GX_FIELD_TFS_SLACK)
        return true;
    const size_t max = out->n + (size_t)n + out->n / 2 + 4096;
    uint8_t *p = realloc(out->bytes, max);
    if (!p)
        return false;
    out->bytes = p;
    out->max = max;
    return true;
}

bool gx_field_tfs_encode(gx_field_bytes *out, const uint32_t *tfs, const uint32_t *field_tfs, uint32_t df,
                         uint32_t n_fields)
{
    const uint32_t stride = n_fields - 1;
    field_size sizes[GX_MAX_FIELDS];
    const uint32_t rest = stride ? without_last(tfs, field_tfs, df, stride) : 0;
    uint64_t bits = 0, any = 0;
    for (uint32_t f = 0; f < stride; ++f) {
        sizes[f] = measure(field_tfs + f, df, stride);
        bits += gamma_bits(sizes[f].n + 1) + sizes[f].bits;
        any |= sizes[f].n;
    }
    bits += gamma_bits(rest + 1);
    if (!any)
        return true;
    const size_t n = (size_t)((bits + 7) / 8);
    if (!reserve(out, n))
        return false;
    memset(out->bytes + out->n, 0, n);
    bit_writer w = {out->bytes + out->n, 0};
    for (uint32_t f = 0; f < stride; ++f)
        put_gamma(&w, sizes[f].n + 1);
    put_gamma(&w, rest + 1);
    for (uint32_t f = 0; f < stride; ++f)
        if (sizes[f].n)
            put_field(&w, field_tfs + f, df, stride, sizes[f].rice);
    out->n += n;
    return true;
}

/* ---- reading ---- */

typedef struct bit_reader {
    const uint8_t *bytes;
    uint64_t at, end; /* bits */
} bit_reader;

/* The next 57 bits or more; past the end there may be others. */
static inline uint64_t peek(const bit_reader *r)
{
    uint64_t w;
    memcpy(&w, r->bytes + (r->at >> 3), sizeof w);
    return w >> (r->at & 7);
}

/* 0: damaged. */
static inline uint32_t get_gamma(bit_reader *r)
{
    if (r->at >= r->end)
        return 0;
    const uint64_t w = peek(r);
    if (!(uint32_t)w)
        return 0;
    const uint32_t n = (uint32_t)__builtin_ctzll(w);
    r->at += n + 1;
    if (r->at + n > r->end)
        return 0;
    const uint32_t low = (uint32_t)(peek(r) & ((1ull << n) - 1));
    r->at += n;
    return (uint32_t)(1ull << n) | low;
}

/* A gap; UINT64_MAX: damaged. */
static inline uint64_t get_rice(bit_reader *r, uint32_t rice)
{
    uint64_t high = 0;
    for (;;) {
        if (r->at >= r->end)
            return UINT64_MAX;
        const uint64_t w = peek(r) & ((UINT64_C(1) << 57) - 1);
        if (w) {
            const uint32_t n = (uint32_t)__builtin_ctzll(w);
            high += n;
            r->at += n + 1;
            break;
        }
        high += 57;
        r->at += 57;
    }
    if (high > UINT32_MAX || r->at + rice > r->end)
        return UINT64_MAX;
    const uint64_t low = peek(r) & ((UINT64_C(1) << rice) - 1);
    r->at += rice;
    return high << rice | low;
}

static bool get_head(bit_reader *r, uint32_t df, uint32_t n_fields, uint32_t *dfs)
{
    for (uint32_t f = 0; f < n_fields; ++f) {
        const uint32_t n = get_gamma(r);
        if (n == 0 || n - 1 > df)
            return false;
        dfs[f] = f + 1 < n_fields ? n - 1 : df - (n - 1);
    }
    return true;
}

static void no_fields(uint32_t df, uint32_t n_fields, uint32_t *dfs)
{
    memset(dfs, 0, n_fields * sizeof *dfs);
    dfs[n_fields - 1] = df;
}

bool gx_field_tfs_count(const uint8_t *bytes, size_t n, uint32_t df, uint32_t n_fields, uint32_t *dfs)
{
    bit_reader r = {bytes, 0, 8ull * n};
    if (n && get_head(&r, df, n_fields, dfs))
        return true;
    no_fields(df, n_fields, dfs);
    return n == 0;
}

static bool get_field(bit_reader *r, uint32_t n, uint32_t df, uint32_t *tfs)
{
    if (r->at + 5 > r->end)
        return false;
    const uint32_t rice = (uint32_t)(peek(r) & 31);
    uint64_t at = 0;
    r->at += 5;
    for (uint32_t i = 0; i < n; ++i, ++at) {
        const uint64_t gap = get_rice(r, rice);
        if (gap >= df || (at += gap) >= df)
            return false;
        const uint32_t tf = get_gamma(r);
        if (tf == 0)
            return false;
        tfs[at] = tf;
    }
    return true;
}

bool gx_field_tfs_decode(const uint8_t *bytes, size_t n, uint32_t df, uint32_t n_fields, uint32_t *field_tfs)
{
    bit_reader r = {bytes, 0, 8ull * n};
    uint32_t dfs[GX_MAX_FIELDS];
    if (n == 0)
        return true;
    bool good = get_head(&r, df, n_fields, dfs);
    for (uint32_t f = 0; good && f + 1 < n_fields; ++f)
        good = dfs[f] == 0 || get_field(&r, dfs[f], df, field_tfs + (size_t)f * df);
    if (!good || (r.at + 7) / 8 != n)
        return false;
    return (r.at & 7) == 0 || (uint8_t)(bytes[r.at >> 3] >> (r.at & 7)) == 0;
}
