/* lists.h: what the CPU engine derives from the index's lists. It derives a list's parts when the
 * list is first used, and all threads share them.
 *
 *   directory   tells in which block of the list a docid is: it has a block's number for every
 *               2^shift documents
 *   map         has a bit a slot of 2^shift documents. The bit is set where the list holds one of
 *               them (query/derived.h)
 *   rank        belongs to a dense list, whose map has a bit a document: the number of set bits
 *               before each 64 documents
 *   bounds      belong to one scorer (c0, c1, lossy): the greatest tf / (tf + K) of the list and of
 *               each block, the least K of each block, and the 1st, 10th, 100th, 1,000th and
 *               10,000th greatest tf / (tf + K)
 *
 * Maps and ranks are kept within a budget. query/derived.h plans which lists have them.
 */
#ifndef GX_QUERY_CPU_LISTS_H
#define GX_QUERY_CPU_LISTS_H

#include "query/cpu/kernels.h"

typedef struct gx_cpu_lists gx_cpu_lists;

typedef struct gx_cpu_map {
    uint32_t *directory; /* NULL: the list has so few blocks that none is needed */
    uint32_t *map;       /* NULL: none; else readable 32 words past the last */
    uint32_t *rank;      /* NULL: not dense, or no budget */
    uint8_t directory_shift, map_shift;
} gx_cpu_map;

#define GX_CPU_N_KTH 5
static const uint32_t gx_cpu_kth_ranks[GX_CPU_N_KTH] = {1, 10, 100, 1000, 10000};

typedef struct gx_cpu_block {
    float most, min_K; /* most: not less than any posting's tf / (tf + K) as a real number, nor than as a float */
} gx_cpu_block;

typedef struct gx_cpu_bounds {
    float most;
    float kth[GX_CPU_N_KTH]; /* at least gx_cpu_kth_ranks[i] postings have at least this; 0: the list is shorter */
    gx_cpu_block blocks[];   /* [n_blocks] */
} gx_cpu_bounds;

/* One set of parameters: bounds, and the lengths that K is made of. */
typedef struct gx_cpu_params gx_cpu_params;

/* map_memory: budget in bytes for maps and ranks. GX_ENOMEM. */
gx_status gx_cpu_lists_open(gx_cpu_lists **out, const gx_index *ix, const gx_cpu_kernels *kernels, uint64_t map_memory,
                            gx_error *err);
void gx_cpu_lists_close(gx_cpu_lists *ls);

uint64_t gx_cpu_lists_map_bytes(const gx_cpu_lists *ls); /* maps and ranks made so far */
/* What the budget leaves for other tables when all maps and ranks that fit are made. */
uint64_t gx_cpu_lists_spare_memory(const gx_cpu_lists *ls);
/* Zeroed memory for tables that are read at random, at a cache line's beginning, which lives as long
 * as ls; NULL: no memory. Thread-safe. */
void *gx_cpu_lists_alloc(gx_cpu_lists *ls, size_t bytes);

/* The parameter set of norm, made at first use; NULL: no memory. Lives as long as ls. */
gx_cpu_params *gx_cpu_lists_params(gx_cpu_lists *ls, gx_scorer norm);
const uint32_t *gx_cpu_params_lens(const gx_cpu_params *p);

/* Of term's list, made at first use; NULL: no memory. Thread-safe; scratch is the caller's, of its
 * thread. */
typedef struct gx_cpu_scratch {
    _Alignas(64) uint32_t docids[GX_MAX_BLOCK + 16];
    _Alignas(64) uint32_t tfs[GX_MAX_BLOCK + 16];
    _Alignas(64) float parts[GX_MAX_BLOCK + 16];
    uint32_t counts[4097];
} gx_cpu_scratch;
const gx_cpu_map *gx_cpu_lists_map(gx_cpu_lists *ls, uint32_t term, gx_cpu_scratch *scratch);
const gx_cpu_bounds *gx_cpu_params_bounds(gx_cpu_lists *ls, gx_cpu_params *p, uint32_t term, gx_cpu_scratch *scratch);

/* ---- a list's blocks ---- */

/* GPU-BP: what kernels->scan_packed_block and unpack_docids read. */
static inline bool gx_cpu_is_packed(const gx_codec *c)
{
    return c->id == GX_CODEC_GPUBP128 || c->id == GX_CODEC_GPUBP256;
}

/* Where block j's docid words begin, and how many they are. */
static inline const uint32_t *gx_cpu_docid_words(const gx_list *l, uint32_t j, uint32_t *n_words)
{
    const uint32_t begin = j ? l->docid_ends[j - 1] : 0;
    *n_words = l->docid_ends[j] - begin;
    return l->payload + begin;
}

/* As gx_list_decode_docids, by the kernels where they can. docids[GX_MAX_BLOCK] aligned to 64
 * bytes. */
uint32_t gx_cpu_decode_docids(const gx_cpu_kernels *kernels, const gx_list *l, uint32_t j, uint32_t *docids);

#endif
