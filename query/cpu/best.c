#include "query/cpu/best.h"

#include <stdlib.h>
#include <string.h>

/* The bin of a score. A bin is 1/256 of an octave wide, and 1 wide below 512. Scores of a valid
 * index are below 2^31. */
static uint32_t bin_of(uint32_t score)
{
    if (score < 512)
        return score;
    const uint32_t e = 23 - (uint32_t)__builtin_clz(score);
    return (e << 8) + (score >> e);
}

static uint32_t edge_of(uint32_t bin)
{
    if (bin < 512)
        return bin;
    const uint32_t e = (bin >> 8) - 1;
    return ((bin & 255) + 256) << e;
}

bool gx_cpu_best_begin(gx_cpu_best *b, uint32_t k, uint32_t threshold)
{
    const size_t max = k <= GX_CPU_SMALL_K ? GX_CPU_SMALL_K : 4 * (size_t)k + 4096;
    if (max > b->max) {
        free(b->keys);
        free(b->sort_scratch);
        b->keys = malloc(max * sizeof *b->keys);
        b->sort_scratch = malloc(max * sizeof *b->sort_scratch);
        b->max = b->keys && b->sort_scratch ? max : 0;
        if (!b->max)
            return false;
    }
    b->k = k;
    b->threshold = threshold;
    b->n = 0;
    if (k > GX_CPU_SMALL_K) {
        b->bin = bin_of(threshold);
        b->above = 0;
        memset(b->counts + b->bin, 0, (GX_CPU_BINS - b->bin) * sizeof *b->counts);
    }
    return true;
}

void gx_cpu_best_free(gx_cpu_best *b)
{
    free(b->keys);
    free(b->sort_scratch);
}

static void add_in_order(gx_cpu_best *b, uint64_t key)
{
    uint32_t i;
    if (b->n < b->k)
        i = b->n++;
    else if (key > b->keys[b->k - 1])
        i = b->k - 1;
    else
        return;
    for (; i && b->keys[i - 1] < key; --i)
        b->keys[i] = b->keys[i - 1];
    b->keys[i] = key;
    if (b->n == b->k && gx_key_score(b->keys[b->k - 1]) > b->threshold)
        b->threshold = gx_key_score(b->keys[b->k - 1]);
}

/* Move the k greatest of n keys to the front, in any order (Hoare's selection with the median of
 * three as its pivot). */
static void select_best(uint64_t *keys, size_t n, size_t k)
{
    size_t lo = 0, hi = n; /* the border lies in [lo, hi) */
    while (hi - lo > 1 && k > lo && k < hi) {
        const uint64_t a = keys[lo], m = keys[lo + (hi - lo) / 2], z = keys[hi - 1];
        const uint64_t pivot = a > m ? (m > z ? m : a > z ? z : a) : (a > z ? a : m > z ? z : m);
        size_t i = lo, j = hi - 1;
        for (;;) {
            while (keys[i] > pivot)
                ++i;
            while (keys[j] < pivot)
                --j;
            if (i >= j)
                break;
            const uint64_t t = keys[i];
            keys[i++] = keys[j];
            keys[j--] = t;
        }
        /* all keys before i are greater than or equal to the pivot; all keys from i on are less
         * than or equal to it */
        if (i == lo)
            ++i;
        if (k <= i)
            hi = i;
        if (k >= i)
            lo = i;
    }
}

/* Drop the keys below the threshold. If more than 2 k are left, drop all but the k best. */
static void compact_log(gx_cpu_best *b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->n; ++i) {
        b->keys[kept] = b->keys[i];
        kept += gx_key_score(b->keys[i]) >= b->threshold;
    }
    b->n = kept;
    if (kept > b->k && kept > 2 * (uint64_t)b->k) {
        select_best(b->keys, kept, b->k);
        b->n = b->k;
        uint64_t least = b->keys[0];
        for (uint32_t i = 1; i < b->k; ++i)
            least = b->keys[i] < least ? b->keys[i] : least;
        if (gx_key_score(least) > b->threshold)
            b->threshold = gx_key_score(least);
    }
}

void gx_cpu_best_add(gx_cpu_best *b, uint32_t score, uint32_t docid)
{
    if (score < b->threshold)
        return;
    if (b->k <= GX_CPU_SMALL_K) {
        add_in_order(b, gx_key(score, docid));
        return;
    }
    if (b->n == b->max)
        compact_log(b);
    b->keys[b->n++] = gx_key(score, docid);
    const uint32_t bin = bin_of(score);
    ++b->counts[bin];
    if (bin < b->bin)
        return;
    ++b->above;
    /* while the bins above this one hold k keys, the threshold is their edge */
    while (b->above - b->counts[b->bin] >= b->k) {
        b->above -= b->counts[b->bin++];
        if (edge_of(b->bin) > b->threshold)
            b->threshold = edge_of(b->bin);
    }
}

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static void sort_run(uint64_t *keys, uint32_t n)
{
    if (n > 32) {
        qsort(keys, n, sizeof *keys, falling);
        return;
    }
    for (uint32_t i = 1; i < n; ++i) {
        const uint64_t key = keys[i];
        uint32_t j = i;
        for (; j && keys[j - 1] < key; --j)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* Sort n keys, greatest first. Two radix passes sort by the 22 highest bits of the scores' range;
 * then each run of keys with equal bits is sorted. */
static void sort_keys(uint64_t *keys, uint64_t *sort_scratch, uint32_t n)
{
    uint32_t greatest = 0, least = UINT32_MAX, starts[2][2048] = {{0}}, shift = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t s = gx_key_score(keys[i]);
        greatest = s > greatest ? s : greatest;
        least = s < least ? s : least;
    }
    while ((greatest - least) >> shift >= 1u << 22)
        ++shift;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t v = (greatest - gx_key_score(keys[i])) >> shift;
        ++starts[0][v & 2047];
        ++starts[1][v >> 11];
    }
    for (uint32_t pass = 0; pass < 2; ++pass) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < 2048; ++i) {
            const uint32_t c = starts[pass][i];
            starts[pass][i] = sum;
            sum += c;
        }
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t v = (greatest - gx_key_score(keys[i])) >> shift;
            sort_scratch[starts[pass][pass ? v >> 11 : v & 2047]++] = keys[i];
        }
        uint64_t *t = keys;
        keys = sort_scratch;
        sort_scratch = t;
    }
    for (uint32_t i = 0, end; i < n; i = end) {
        const uint32_t v = gx_key_score(keys[i]);
        for (end = i + 1; end < n && (greatest - gx_key_score(keys[end])) >> shift == (greatest - v) >> shift; ++end)
            ;
        sort_run(keys + i, end - i);
    }
}

uint32_t gx_cpu_best_finish(gx_cpu_best *b, uint64_t *out)
{
    if (b->k > GX_CPU_SMALL_K && b->n > 1) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < b->n; ++i) {
            b->keys[kept] = b->keys[i];
            kept += gx_key_score(b->keys[i]) >= b->threshold;
        }
        if (kept > b->k) {
            select_best(b->keys, kept, b->k);
            kept = b->k;
        }
        b->n = kept;
        if (kept)
            sort_keys(b->keys, b->sort_scratch, kept);
    }
    if (b->n)
        memcpy(out, b->keys, b->n * sizeof *out);
    return b->n;
}
