/* range_kernels_body.h: the loops of range_kernels.h, included once an instruction set by
 * range_kernels.c, which defines KERNELS, the table's name, and VECTOR, the bytes of a vector. The
 * vectors are GCC's, which it turns into the instructions of the set. */

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(KERNELS, x)
#define LANES16 (VECTOR / 2)
#define LANES32 (VECTOR / 4)

typedef uint8_t NAME(u8) __attribute__((vector_size(LANES16), aligned(1)));
typedef uint16_t NAME(u16) __attribute__((vector_size(VECTOR), aligned(2)));
typedef int32_t NAME(i32) __attribute__((vector_size(VECTOR), aligned(4)));
#define U8 NAME(u8)
#define U16 NAME(u16)
#define I32 NAME(i32)

/* bounds * weight >> 8, by products that fit into 16 bits. */
static inline U16 NAME(weigh)(const uint8_t *bounds, uint32_t weight)
{
    const U16 m = __builtin_convertvector(*(const U8 *)bounds, U16);
    return m * (uint16_t)(weight >> 8) + (m * (uint16_t)(weight & 255) >> 8);
}

static void NAME(add_bounds)(uint16_t *sums, const uint8_t *bounds, uint32_t n, uint32_t weight)
{
    for (uint32_t i = 0; i < n; i += LANES16)
        *(U16 *)(sums + i) += NAME(weigh)(bounds + i, weight);
}

/* A quarter at a time, so that the sums stay in registers. */
static void NAME(add_tile)(uint16_t *sums, const uint8_t *const *bounds, const uint32_t *weights, uint32_t n_lists)
{
    enum { PARTS = GX_TILE_RANGES / LANES16, AT_ONCE = PARTS < 4 ? PARTS : 4 };
    for (uint32_t part = 0; part < PARTS; part += AT_ONCE) {
        U16 sum[AT_ONCE];
        for (uint32_t v = 0; v < AT_ONCE; ++v)
            sum[v] = *(const U16 *)(sums + (part + v) * LANES16);
        for (uint32_t i = 0; i < n_lists; ++i) {
            for (uint32_t v = 0; v < AT_ONCE; ++v)
                sum[v] += NAME(weigh)(bounds[i] + (part + v) * LANES16, weights[i]);
        }
        for (uint32_t v = 0; v < AT_ONCE; ++v)
            *(U16 *)(sums + (part + v) * LANES16) = sum[v];
    }
}

static uint64_t NAME(reach)(const uint16_t *sums, uint32_t least)
{
    uint64_t bits = 0;
    if (least > UINT16_MAX)
        return 0;
    for (uint32_t i = 0; i < GX_TILE_RANGES; ++i)
        bits |= (uint64_t)(sums[i] >= least) << i;
    return bits;
}

/* Scores are below 2^31. */
static uint32_t NAME(greatest)(const uint32_t *scores)
{
    I32 most = *(const I32 *)scores;
    int32_t best = 0;
    for (uint32_t i = LANES32; i < GX_RANGE_DOCS; i += LANES32) {
        const I32 x = *(const I32 *)(scores + i), greater = x > most;
        most = (x & greater) | (most & ~greater);
    }
    for (uint32_t i = 0; i < LANES32; ++i)
        best = most[i] > best ? most[i] : best;
    return (uint32_t)best;
}

static void NAME(add_narrow)(uint32_t *scores, const gx_narrow_posting *postings, uint32_t n, const float *K, float w)
{
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t d = postings[i] & (GX_SEGMENT_DOCS - 1);
        scores[d] += gx_bm25_impact(w, postings[i] >> GX_SEGMENT_SHIFT, K[d]);
    }
}

static const gx_range_kernels KERNELS = {
    NAME(add_bounds), NAME(add_tile), NAME(reach), NAME(add_narrow), NAME(greatest),
};

#undef JOIN_
#undef JOIN
#undef NAME
#undef LANES16
#undef LANES32
#undef U8
#undef U16
#undef I32
#undef KERNELS
#undef VECTOR
