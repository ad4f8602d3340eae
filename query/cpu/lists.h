/* lists.h: what the CPU engine derives from the index's lists. It derives a list's parts when the
 * list is first used, and all threads share them.
 *
 *   live list   the list without the postings of documents that are not kept, encoded again as the
 *               index has it. All else is derived from it, and searches read it in the list's place
 *   directory   tells in which block of the list a docid is: it has a block's number for every
 *               2^shift documents
 *   map         has a bit a slot of 2^shift documents. The bit is set where the list holds one of
 *               them (query/score/derived.h)
 *   rank        belongs to a dense list, whose map has a bit a document: the number of set bits
 *               before each 64 documents
 *   bounds      belong to one scorer (c0, c1, lossy): the greatest tf / (tf + K) of the list and of
 *               each block, the least K of each block, and the 1st, 10th, 100th, 1,000th and
 *               10,000th greatest tf / (tf + K); of the documents that are kept
 *
 * Maps and ranks are kept within a budget. query/score/derived.h plans which lists have them. Of what they
 * leave, half is for live lists, where there are any.
 */
#ifndef GX_QUERY_CPU_LISTS_H
#define GX_QUERY_CPU_LISTS_H

#include "query/cpu/kernels/kernels.h"

typedef struct gx_cpu_lists gx_cpu_lists;

typedef struct gx_cpu_map {
    uint32_t *directory; /* NULL: the list has too few blocks to need one */
    uint32_t *map;       /* NULL: none. Readable 32 words past the last */
    uint32_t *rank;      /* NULL: the list is not dense, or has no map */
    uint8_t directory_shift, map_shift;
} gx_cpu_map;

#define GX_CPU_N_KTH 5
static const uint32_t gx_cpu_kth_ranks[GX_CPU_N_KTH] = {1, 10, 100, 1000, 10000};

typedef struct gx_cpu_block {
    float most, min_K; /* most >= every tf / (tf + K), as real numbers and as floats */
} gx_cpu_block;

typedef struct gx_cpu_bounds {
    float most;
    float kth[GX_CPU_N_KTH]; /* gx_cpu_kth_ranks[i] postings have it or more; 0: a shorter list */
    gx_cpu_block blocks[];   /* [n_blocks] */
} gx_cpu_bounds;

/* The bounds for one scorer, and the lengths from which it computes K. */
typedef struct gx_cpu_params gx_cpu_params;

/* map_memory: the most bytes for maps and ranks; UINT64_MAX: no limit. GX_ENOMEM. */
gx_status gx_cpu_lists_open(gx_cpu_lists **out, const gx_index *ix, const gx_cpu_kernels *kernels, uint64_t map_memory,
                            gx_error *err);
void gx_cpu_lists_close(gx_cpu_lists *ls);

/* Keep those of the documents that have bits in words [ceil(n_docs / 64)]: the mask of each plan that uses the lists
 * allows no others, and bounds are of these alone. Long lists become live lists, if one document in 64 or more is not
 * kept. Before all other calls. false: no memory, and all are kept. */
bool gx_cpu_lists_keep(gx_cpu_lists *ls, const uint64_t *words);
/* The words; NULL: all documents are kept. */
const uint64_t *gx_cpu_lists_kept(const gx_cpu_lists *ls);
/* Whether all documents of words, NULL: of the index, are kept. Thread-safe. */
bool gx_cpu_lists_have_kept(const gx_cpu_lists *ls, const uint64_t *words);
uint32_t gx_cpu_lists_n_kept(const gx_cpu_lists *ls); /* how many are; n_docs unless some are not */
uint32_t gx_cpu_lists_n_live(const gx_cpu_lists *ls); /* live lists that are made. Thread-safe */

uint64_t gx_cpu_lists_map_bytes(const gx_cpu_lists *ls); /* of maps and ranks that are made */
/* The bytes that the budget leaves for other tables once all planned maps and ranks are made. */
uint64_t gx_cpu_lists_spare_memory(const gx_cpu_lists *ls);
/* Zeroed memory from the beginning of a cache line on, for tables that searches read at random
 * places. It lives as long as ls. NULL: no memory. Thread-safe. */
void *gx_cpu_lists_alloc(gx_cpu_lists *ls, size_t bytes);

/* The parameters of norm, which are made at first use and live as long as ls. NULL: no memory.
 * Thread-safe. */
gx_cpu_params *gx_cpu_lists_params(gx_cpu_lists *ls, gx_scorer norm);
const uint32_t *gx_cpu_params_lens(const gx_cpu_params *p);

/* A thread's scratch memory for the functions below. */
typedef struct gx_cpu_scratch {
    _Alignas(64) uint32_t docids[GX_MAX_BLOCK + 16];
    _Alignas(64) uint32_t tfs[GX_MAX_BLOCK + 16];
    _Alignas(64) float parts[GX_MAX_BLOCK + 16];
    uint32_t counts[4097];
} gx_cpu_scratch;

/* Term's list as it is searched: the live list, or the index's where there is none. It is chosen, and made, at first
 * use, and stays as long as ls. Returns whether it has postings of kept documents alone. Thread-safe. */
bool gx_cpu_lists_list(gx_cpu_lists *ls, uint32_t term, gx_cpu_scratch *scratch, gx_list *list);

/* The map and the bounds of term's list as it is searched, which are made at first use and live as long as ls. NULL:
 * no memory. Thread-safe. */
const gx_cpu_map *gx_cpu_lists_map(gx_cpu_lists *ls, uint32_t term, gx_cpu_scratch *scratch);
const gx_cpu_bounds *gx_cpu_params_bounds(gx_cpu_lists *ls, gx_cpu_params *p, uint32_t term, gx_cpu_scratch *scratch);

/* Ask for the cache lines that tell where a list, its map and its bounds are; once they are there, for the first lines
 * of all three, also where list l is known. */
void gx_cpu_lists_prefetch(const gx_cpu_lists *ls, const gx_cpu_params *p, uint32_t term);
void gx_cpu_lists_prefetch_made(const gx_cpu_lists *ls, const gx_cpu_params *p, uint32_t term);
void gx_cpu_lists_prefetch_list(const gx_cpu_lists *ls, const gx_cpu_params *p, uint32_t term, const gx_list *l);

/* ---- a list's blocks ---- */

/* Whether kernels->scan_packed_block and unpack_docids can read the codec's blocks: it is GPU-BP.
 */
static inline bool gx_cpu_is_packed(const gx_codec *c)
{
    return c->id == GX_CODEC_GPUBP128 || c->id == GX_CODEC_GPUBP256;
}

/* The first of block j's docid words, and their number. */
static inline const uint32_t *gx_cpu_docid_words(const gx_list *l, uint32_t j, uint32_t *n_words)
{
    const uint32_t begin = j ? l->docid_ends[j - 1] : 0;
    *n_words = l->docid_ends[j] - begin;
    return l->payload + begin;
}

/* As gx_list_decode_docids. The kernels decode the block if they can. docids[GX_MAX_BLOCK] is
 * aligned to 64 bytes. */
uint32_t gx_cpu_decode_docids(const gx_cpu_kernels *kernels, const gx_list *l, uint32_t j, uint32_t *docids);

#endif
