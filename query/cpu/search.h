/* search.h: one thread's search of one plan, in the ways that the CPU engine has.
 *
 *   gx_cpu_exhaust     every posting of every list into an accumulator a document: what is
 *                      obviously right, and what pays when nearly all postings count anyway (very
 *                      long queries, very large k); also GX_ALGORITHM_TAAT
 *   gx_cpu_search      list at a time with a running threshold; see search.c
 *   gx_cpu_intersect   AND as GX_ALGORITHM_PMF; see pmf.c
 *   gx_cpu_block_max   range of documents at a time, for long OR queries; see block_max.h
 */
#ifndef GX_QUERY_CPU_SEARCH_H
#define GX_QUERY_CPU_SEARCH_H

#include "query/cpu/best.h"
#include "query/cpu/lists.h"
#include "query/cpu/selection.h"
#include "query/exec.h"

#define GX_CPU_FEW_LISTS 32u /* lists for which cursors are made when a searcher is opened */

#define GX_CPU_CACHED_DOCIDS 8192u /* docids that a cursor keeps decoded; whole blocks of any length */
#define GX_CPU_WINDOW 1024u        /* words of a window; a power of two */

/* One list of the plan under way. */
typedef struct gx_cpu_cursor {
    gx_list list;
    uint32_t term;
    float w;
    uint32_t ub;           /* no posting's impact is greater */
    uint32_t remaining_ub; /* sum of the later lists' ub */
    bool packed;           /* its blocks suit kernels->scan_packed_block */
    uint8_t tf_shift;      /* packed tfs of full blocks: log2 of the block length; else 0 */
    const gx_cpu_map *map;
    const gx_cpu_bounds *bounds;
    uint32_t block,
        n_cached;       /* blocks [block, block + n_cached) are decoded in docids, each block_len after the other */
    uint32_t tf_block;  /* whose tfs are in tfs; UINT32_MAX: none */
    bool uses_next_geq; /* a docid is looked up by next_geq */
    uint32_t last_probed_block; /* the block that next_geq was asked last */
    _Alignas(64) uint32_t docids[GX_CPU_CACHED_DOCIDS + 16];
    uint32_t tfs[GX_MAX_BLOCK + 16];
} gx_cpu_cursor;

/* What gx_cpu_intersect works on. */
typedef struct gx_cpu_pmf {
    uint32_t n;                /* candidates */
    uint32_t *docids, *scores; /* [n] */
    uint32_t *positions;       /* [n] what Parallel Merge Find says */
    uint32_t *needed;          /* the blocks to decode */
    uint32_t *decoded;         /* their docids */
    size_t max_docids, max_scores, max_positions, max_needed, max_decoded;
} gx_cpu_pmf;

typedef struct gx_cpu_block_max_state gx_cpu_block_max_state; /* block_max.c */

typedef struct gx_cpu_searcher {
    const gx_index *ix;
    const gx_cpu_kernels *kernels;
    gx_cpu_lists *lists;
    gx_cpu_params *params; /* of the last plan */
    gx_scorer norm;
    gx_cpu_scratch scratch;
    gx_cpu_columns columns;
    gx_cpu_best best;
    uint32_t found[GX_CPU_COLUMN], positions[GX_CPU_COLUMN];
    _Alignas(64) uint32_t window[GX_CPU_WINDOW + 32]; /* a presence map of part of a list that has none */
    gx_cpu_cursor *cursors;                           /* [max_cursors], in the plan's order */
    gx_cpu_cursor **order;                            /* [max_cursors] in the search's order */
    uint32_t max_cursors;
    uint64_t *seen;        /* a bit a document that was scored in full, all 0 between plans */
    uint32_t *seen_docids; /* [n_seen] which */
    size_t n_seen, max_seen;
    uint32_t *scores;       /* [n_docs] accumulators, all 0 between plans; NULL until needed */
    uint16_t *match_counts; /* [n_docs] how many of the plan's lists hold the document, likewise */
    gx_cpu_pmf pmf;
    gx_cpu_selection selection;        /* of the plan under way, while gx_cpu_search runs */
    struct gx_ranges *ranges;          /* of the engine; ranges.h */
    gx_cpu_block_max_state *block_max; /* NULL until needed */
    gx_search_stats work;
} gx_cpu_searcher;

gx_status gx_cpu_searcher_open(gx_cpu_searcher **out, const gx_index *ix, const gx_cpu_kernels *kernels,
                               gx_cpu_lists *lists, gx_error *err);
void gx_cpu_searcher_close(gx_cpu_searcher *s);

/* Answer plan under op, which is GX_OP_OR or GX_OP_AND. n_terms >= 1. GX_ENOMEM, GX_ECANCELLED. */
gx_status gx_cpu_exhaust(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, gx_hits *hits, gx_error *err);
gx_status gx_cpu_search(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, gx_hits *hits, gx_error *err);
/* AND. */
gx_status gx_cpu_intersect(gx_cpu_searcher *s, const gx_plan *plan, gx_hits *hits, gx_error *err);
void gx_cpu_pmf_free(gx_cpu_pmf *m);

/* Decode as many of the list's blocks from j on as s->scratch takes: docids, tfs, *n of each;
 * returns the number of blocks. */
uint32_t gx_cpu_decode_blocks(gx_cpu_searcher *s, const gx_list *l, uint32_t j, uint32_t *n);

/* Seconds of the monotonic clock; and what passed since then added to a step. Returns the time now.
 * */
double gx_cpu_lap(gx_cpu_searcher *s, gx_step step, double since);

#endif
