/* search.h: one thread's search of one plan. The CPU engine has six ways to search:
 *
 *   gx_cpu_exhaust     adds every posting of every list to an accumulator a document. It is
 *                      obviously right, a witness of the others. It is also GX_ALGORITHM_TAAT
 *   gx_cpu_accumulate  does the same by kernels, and visits the documents that have postings
 *                      alone. It is the fastest way where nearly all postings count: for many rare
 *                      words, or very large k
 *   gx_cpu_search      reads list after list with a rising threshold; see search.c
 *   gx_cpu_intersect   answers AND as GX_ALGORITHM_PMF; see pmf.c
 *   gx_cpu_document_at_a_time   answers as GX_ALGORITHM_DAAT; see daat.c
 *   gx_cpu_block_max   reads range after range of documents, for long OR queries; see block_max.h
 */
#ifndef GX_QUERY_CPU_SEARCH_H
#define GX_QUERY_CPU_SEARCH_H

#include "query/cpu/best.h"
#include "query/cpu/lists.h"
#include "query/cpu/selection.h"
#include "query/exec/exec.h"

#define GX_CPU_FEW_LISTS 32u /* lists for which a searcher has cursors from the start */

#define GX_CPU_CACHED_DOCIDS 8192u /* docids of whole blocks that a cursor keeps decoded */
#define GX_CPU_SCORES_SLACK 64u    /* accumulators of no document, which are 0 */
#define GX_CPU_WINDOW 1024u        /* words of a window; a power of two */

/* One list of the plan under way. */
typedef struct gx_cpu_cursor {
    gx_list list;
    bool live; /* it has postings of kept documents alone (lists.h) */
    uint32_t term;
    float w;
    uint32_t ub;           /* no posting's impact is greater */
    uint32_t remaining_ub; /* sum of the later lists' ub */
    bool packed;           /* kernels->scan_packed_block can read its blocks */
    uint8_t tf_shift;      /* log2 of the block length if the tfs are packed, else 0 */
    const gx_cpu_map *map;
    const gx_cpu_bounds *bounds;
    uint32_t block, n_cached;   /* docids has blocks [block, block + n_cached), block_len apart */
    uint32_t tf_block;          /* the block whose tfs are in tfs; UINT32_MAX: none */
    bool uses_next_geq;         /* the first look-up in a block uses next_geq */
    uint32_t last_probed_block; /* the block of the last call of next_geq */
    _Alignas(64) uint32_t docids[GX_CPU_CACHED_DOCIDS + 16];
    uint32_t tfs[GX_MAX_BLOCK + 16];
} gx_cpu_cursor;

/* What gx_cpu_intersect works on. */
typedef struct gx_cpu_pmf {
    uint32_t n;                /* candidates */
    uint32_t *docids, *scores; /* [n] */
    uint32_t *positions;       /* [n] the results of Parallel Merge Find */
    uint32_t *needed;          /* the blocks to decode */
    uint32_t *decoded;         /* the docids of these blocks */
    size_t max_docids, max_scores, max_positions, max_needed, max_decoded;
} gx_cpu_pmf;

/* What gx_cpu_document_at_a_time works on. */
typedef struct gx_cpu_daat {
    struct gx_cpu_pointer *pointers; /* [max_pointers] */
    uint32_t max_pointers;
} gx_cpu_daat;

typedef struct gx_cpu_block_max_state gx_cpu_block_max_state; /* block_max.c */

typedef struct gx_cpu_searcher {
    const gx_index *ix;
    const gx_cpu_kernels *kernels;
    gx_cpu_lists *lists;
    gx_cpu_params *params; /* of the last plan */
    gx_scorer norm;
    bool coarse;         /* params are those of a scorer near norm */
    double params_slack; /* what a k-th greatest impact of params is divided by to be a lower bound */
    gx_cpu_scratch scratch;
    gx_cpu_columns columns;
    gx_cpu_best best;
    uint32_t found[GX_CPU_COLUMN], positions[GX_CPU_COLUMN];
    _Alignas(64) uint32_t window[GX_CPU_WINDOW + 32]; /* a map of a part of a list without one */
    gx_cpu_cursor *cursors;                           /* [max_cursors], in the plan's order */
    gx_cpu_cursor **order;                            /* [max_cursors] in the search's order */
    uint32_t max_cursors;
    uint64_t *seen;        /* a bit a document: set if it was scored in full. All 0 between plans */
    uint32_t *seen_docids; /* [n_seen] the documents whose bits are set */
    size_t n_seen, max_seen;
    uint32_t *scores; /* [n_docs] accumulators, GX_CPU_SCORES_SLACK more. All 0 between plans; NULL until needed */
    uint16_t *match_counts; /* [n_docs] the number of lists that hold the document, likewise */
    gx_cpu_pmf pmf;
    gx_cpu_daat daat;
    /* Of a first threshold that is likely: the least share of the postings that the selection must allow for it
     * (0: the threshold is known); postings that have been read, and those that it allows. */
    double least_share;
    uint32_t n_read, n_allowed;
    bool guesses;                      /* the plan's first threshold is likely, not known */
    bool misjudged;                    /* too few: the search ends, and begins again with a lower threshold */
    uint32_t n_probed;                 /* blocks of which these were counted */
    uint32_t n_early;                  /* clauses of the selection's program that are asked while a block is read */
    uint32_t n_early_sieved;           /* the same, of postings that have passed the selection's sieve */
    float survivors;                   /* of the candidates of a batch, the share that the maps and bounds leave */
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
/* Answer plan under OR. As above. may_switch: block-max may be tried on the way (choice.h). */
gx_status gx_cpu_accumulate(gx_cpu_searcher *s, const gx_plan *plan, bool may_switch, gx_hits *hits, gx_error *err);
/* The expect of the executor (query/exec/exec.h). */
void gx_cpu_expect(const gx_cpu_searcher *s, const gx_plan *plan, bool known);
/* Answer plan under AND. As above. */
gx_status gx_cpu_intersect(gx_cpu_searcher *s, const gx_plan *plan, gx_hits *hits, gx_error *err);
void gx_cpu_pmf_free(gx_cpu_pmf *m);
/* Answer plan under op. As above. */
gx_status gx_cpu_document_at_a_time(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, gx_hits *hits, gx_error *err);
void gx_cpu_daat_free(gx_cpu_daat *d);

/* Add to scores[n] what rest's terms add to them in docids[n], which rise; rescore.c. */
void gx_cpu_add_scores(gx_cpu_searcher *s, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n);

/* Make sure that s->scores, and for AND s->match_counts, are there. GX_ENOMEM. */
gx_status gx_cpu_reserve_accumulators(gx_cpu_searcher *s, gx_op op, gx_error *err);
/* Set s->params (NULL: no memory) and s->norm for the plan's scorer. */
void gx_cpu_choose_params(gx_cpu_searcher *s, const gx_plan *plan);

/* Open the lists of a plan, in which gx_cpu_look_up_candidates looks the candidates of s->columns up, in any order,
 * with the scores and bounds that they have. Those that reach the threshold are added to s->best; s->columns is empty
 * then.
 * False: no memory. */
bool gx_cpu_open_lists(gx_cpu_searcher *s, const gx_plan *plan);
void gx_cpu_look_up_candidates(gx_cpu_searcher *s, uint32_t n_lists);
/* Not less than the impact of any posting of weight w whose tf / (tf + K) is at most `most`. */
uint32_t gx_cpu_greatest_impact(float w, float most);

/* Decode the docids and tfs of the list's blocks from j on to s->scratch, as many blocks as it has
 * room for. *n: the number of postings. Returns the number of blocks. */
uint32_t gx_cpu_decode_blocks(gx_cpu_searcher *s, const gx_list *l, uint32_t j, uint32_t *n);

/* Add the seconds that passed since `since` to a step. Returns the time now, in seconds of the
 * monotonic clock. */
double gx_cpu_lap(gx_cpu_searcher *s, gx_step step, double since);

#endif
