/* kernels.h: the loops in which the CPU engine spends its time. There is one set of kernels for
 * each instruction set; all sets give the same results. kernels_template.h has their code.
 *
 * A candidate is a document that may still be one of the k best. Candidates are kept in columns,
 * which have an entry for each candidate:
 *
 *     doc            the docid
 *     tf             the tf in the list that the candidate comes from
 *     score          at first an upper bound of that list's impact, then the exact sum of the
 *                    impacts that are known
 *     remaining_ub   the sum of the bounds of the lists that may hold the document and in which it
 *                    has not been looked up yet
 *     list_mask      bit j is set while list j may hold the document
 *     K              K of the document's length, once score is exact
 *
 * search.c takes candidates through its steps in batches. A step is a loop over the columns: it
 * drops the candidates with score + remaining_ub below the threshold T and moves the others
 * together.
 *
 * Answers are exact for two reasons: impacts are computed operation by operation as in bm25.h, and
 * T only grows.
 */
#ifndef GX_QUERY_CPU_KERNELS_KERNELS_H
#define GX_QUERY_CPU_KERNELS_KERNELS_H

#include "index/index.h"
#include "query/score/bm25.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define GX_X86 1
#elif defined(__aarch64__) && defined(__GNUC__)
#define GX_ARM64 1
#endif

#define GX_CPU_BATCH 512u                                 /* candidates that make a batch */
#define GX_CPU_COLUMN (GX_CPU_BATCH + GX_MAX_BLOCK + 16u) /* a batch, a block and a vector */

typedef struct gx_cpu_columns {
    uint32_t n, n_docs;
    bool unordered; /* doc need not rise */
    _Alignas(64) uint32_t doc[GX_CPU_COLUMN];
    _Alignas(64) uint32_t tf[GX_CPU_COLUMN];
    _Alignas(64) uint32_t score[GX_CPU_COLUMN];
    _Alignas(64) uint32_t remaining_ub[GX_CPU_COLUMN];
    _Alignas(64) uint32_t list_mask[GX_CPU_COLUMN];
    _Alignas(64) float K[GX_CPU_COLUMN];
} gx_cpu_columns;

#define GX_CPU_TESTS 14u             /* conditions that kernels test, at most; others take longer */
#define GX_CPU_TABLES 2u             /* tables of them, at most */
#define GX_CPU_YES GX_CPU_TESTS      /* gx_cpu_test.met, unmet: the clause selects the document */
#define GX_CPU_NO (GX_CPU_TESTS + 1) /* it does not */

typedef enum gx_cpu_test_form {
    GX_CPU_TEST_VALUE, /* the number of `width` bytes that the document has in `values` */
    GX_CPU_TEST_CODES, /* any of the numbers of `width` bytes in the document's 2^words_shift words of `values` */
    GX_CPU_TEST_DOCID  /* the docid itself */
} gx_cpu_test_form;

/* A condition: a number of the document has its bit in `table` or, where there is none, is in
 * [low, low + span]. Numbers outside of [inner_low, inner_low + inner_span] are ambiguous: the document then needs a
 * value of `column` from column_low to column_high.
 *   VALUE   4 bytes can be read that end with a number; `values` has fewer than 2^31 bytes
 *   CODES   a number that stands for no value is more - 1. If the document has other values behind its last
 *           number, this is `more`, the greatest number of that width: they do not tell yet either
 * Tests of the same `values` have the same form, width and shift. */
typedef struct gx_cpu_test {
    gx_cpu_test_form form;
    uint32_t width; /* bytes of a number: 1, 2 or 4; of CODES 1 or 2 */
    const void *values;
    const uint32_t *table;                     /* a bit a number; of CODES NULL */
    uint32_t low, span, inner_low, inner_span; /* of CODES, each as often as a word has numbers */
    bool ranged;                               /* from column_low to column_high, of a column with one value */
    bool in_row;                               /* the number is the byte of what is read that begins at row_shift */
    uint32_t row_shift;
    bool inexact; /* inner_low and inner_span are others than low and span */
    uint32_t words_shift, more;
    const struct gx_column *column;
    uint64_t column_low, column_high;
    float share;         /* of all documents, about what meets it */
    uint32_t met, unmet; /* the number of the next test, greater than this one's; or YES, NO */
} gx_cpu_test;

/* What documents must be: clause by clause, those that one of the tests [first, end) after the other leads
 * to YES. `first` may be YES or NO itself. */
typedef struct gx_cpu_clause {
    uint32_t first, end;
    float cost;                    /* of asking about a document: 1 is to read a number of it */
    float share;                   /* of all documents, about what it selects */
    uint32_t sure_first, sure_end; /* it selects all documents of [sure_first, sure_end); 0, 0: not known of any */
} gx_cpu_clause;

typedef struct gx_cpu_program {
    uint32_t n_clauses;
    gx_cpu_clause clauses[GX_CPU_TESTS];
    gx_cpu_test tests[GX_CPU_TESTS];
    uint32_t n_tables;
    uint32_t tables[GX_CPU_TABLES][(1u << 16) / 32]; /* [n_tables], of tests: numbers of up to 16 bits */
} gx_cpu_program;

#define GX_CPU_GROUP 512u      /* documents for which a sieve is answered at once */
#define GX_CPU_SIEVE_STEPS 40u /* at most */
#define GX_CPU_SIEVE_DEPTH 8u  /* of the stack */

typedef enum gx_cpu_sieve_how { GX_CPU_SIEVE_PUSH, GX_CPU_SIEVE_AND, GX_CPU_SIEVE_OR } gx_cpu_sieve_how;

/* What is pushed, or joined with the top of the stack: the documents of `in` without those of `out`, or all others.
 * If it pops, it is the top, which leaves, and joins what is below. */
typedef struct gx_cpu_sieve_step {
    gx_cpu_sieve_how how;
    bool inverted, pops;
    const uint32_t *in, *out; /* a bit a document, whole groups of them; NULL: all, none */
} gx_cpu_sieve_step;

/* A filter as operations on bitmaps, of which one set of documents is left; see sieve.h. Its own bits are those of
 * this plan in the groups that have its serial number. */
typedef struct gx_cpu_sieve {
    uint32_t n_steps; /* 0: there is no sieve */
    gx_cpu_sieve_step steps[GX_CPU_SIEVE_STEPS];
    float share;       /* of all documents, about what passes */
    float cost, saved; /* of a group; by a posting that is looked up: as gx_cpu_clause.cost */
    bool used;         /* since it was set to false, some postings have been looked up */
    uint32_t *bits;    /* whole groups; readable 48 words past them */
    uint32_t *made;    /* [groups] the number of the plan for which the group was answered last */
    uint32_t serial;   /* of this plan; not 0 */
    uint32_t n_made;   /* groups that have been answered for it */
} gx_cpu_sieve;

/* What bounds the impacts of a block's postings: w * tf / (tf + min_K), and `most`. */
typedef struct gx_cpu_bound {
    float w;     /* the weight, rounded up */
    float min_K; /* the least K of the block's documents */
    uint32_t most;
    uint32_t min_tf;               /* a posting with a lower tf cannot reach T */
    uint32_t remaining_ub;         /* the most that later lists can add */
    const gx_cpu_program *program; /* what documents must be to become candidates: .. */
    uint32_t clause, end_clause;   /* .. clauses [clause, end_clause) */
    gx_cpu_sieve *sieve;           /* or NULL; postings that pass it are asked clauses [clause, end_sieved) */
    uint32_t end_sieved;
} gx_cpu_bound;

/* The documents of a dense list as a bitmap, and the number of set bits before every 64 documents.
 */
typedef struct gx_cpu_dense {
    const uint64_t *bits; /* [n_docs / 64 + 1] */
    const uint32_t *rank; /* [n_docs / 64 + 1] */
} gx_cpu_dense;

/* A block that GPU-BP packed: the words of its docids and of its tfs with their widths in bits,
 * n <= 128 postings, the first docid. Both arrays are readable GX_READ_SLACK bytes past their
 * words. */
typedef struct gx_cpu_packed_block {
    const uint32_t *docids, *tfs;
    uint32_t docid_bits, tf_bits, n, first;
} gx_cpu_packed_block;

/* A list's map, which has a bit for each slot of 2^shift documents and is readable 32 words past
 * its last, and what a candidate loses that the map lacks: ub from remaining_ub, bit from
 * list_mask. Word i of the map is at i & mask: UINT32_MAX where the map has every word, 2^n - 1
 * where 2^n words serve all. */
typedef struct gx_cpu_presence {
    const uint32_t *map;
    uint32_t shift, mask, ub, bit;
} gx_cpu_presence;

/* The lengths of documents, from which `norm` makes K. */
typedef struct gx_cpu_lengths {
    const uint32_t *lens; /* [n_docs] */
    uint32_t n_docs;
    gx_scorer norm;
} gx_cpu_lengths;

typedef struct gx_cpu_kernels {
    const char *name, *title; /* as "avx512" and "AVX-512" */

    /* Append the candidates of a packed block, the postings with tf >= min_tf and docid < n_docs.
     * Returns false if no tf reaches min_tf; the docids are then not decoded. Where it is NULL, or
     * a width is above max_docid_bits or max_tf_bits, the caller decodes the block and calls
     * append_decoded_block. */
    bool (*scan_packed_block)(gx_cpu_columns *c, const gx_cpu_packed_block *p, const gx_cpu_bound *b);
    uint32_t max_docid_bits, max_tf_bits;

    /* Decode the docids of a packed block to docids[128], aligned to 64 bytes, for look-ups. NULL
     * as above. */
    void (*unpack_docids)(const uint32_t *words, uint32_t bits, uint32_t n, uint32_t first, uint32_t *docids);

    /* Whether any of n tfs is at least min_tf. */
    bool (*any_tf_reaches)(const uint32_t *tfs, uint32_t n, uint32_t min_tf);

    /* The same as scan_packed_block for decoded arrays, readable up to a multiple of 16. */
    void (*append_decoded_block)(gx_cpu_columns *c, const uint32_t *docids, const uint32_t *tfs, uint32_t n,
                                 const gx_cpu_bound *b);

    /* Look the candidates up in a list's map. If `all` is set, a candidate that it lacks is
     * dropped. doc must rise unless c->unordered. */
    void (*apply_presence_map)(gx_cpu_columns *c, const gx_cpu_presence *p, uint32_t T, bool all);

    /* Of the candidates from number `from` on, with their K, drop those that clauses of the program from
     * number `clause` on do not select; whose bit is 0 in a map of single documents; with keep[i] = 0 of
     * bytes of 0 or 1, the first of candidate `from`, readable 16 past the last. */
    void (*test_program)(gx_cpu_columns *c, uint32_t from, const gx_cpu_program *program, uint32_t clause);
    void (*test_map)(gx_cpu_columns *c, uint32_t from, const uint32_t *map);
    void (*drop_unkept)(gx_cpu_columns *c, uint32_t from, const uint8_t *keep);

    /* Append those of n documents that can reach T: their score is at most remaining_ub, and less by
     * p->ub where the list's map lacks them. Their tf and score are 0. */
    void (*append_documents)(gx_cpu_columns *c, const uint32_t *docids, uint32_t n, const gx_cpu_presence *p,
                             uint32_t remaining_ub, uint32_t T);

    /* Compute K from the documents' lengths; score becomes the list's exact impact. Documents whose bit is 0 in
     * `allowed`, a map of single documents, are dropped; NULL: none of them. */
    void (*score_own)(gx_cpu_columns *c, const uint32_t *lens, gx_scorer norm, float w, uint32_t T,
                      const uint32_t *allowed);

    /* Positions in a dense list of those documents whose list_mask has bit: pos[i] < df, or
     * UINT32_MAX where absent or not asked. Returns how many were asked. */
    uint32_t (*dense_positions)(const gx_cpu_columns *c, gx_cpu_dense d, uint32_t bit, uint32_t *pos);

    /* Add the impacts of a list in which the candidates were looked up: tfs[i], 0 where absent.
     * Where list_mask has bit, ub leaves remaining_ub. If all is set, absent candidates are
     * dropped. */
    void (*add_list_score)(gx_cpu_columns *c, const uint32_t *tfs, float w, uint32_t ub, uint32_t bit, uint32_t T,
                           bool all);

    /* How many of n rising docids, readable up to a multiple of 16, are below doc. */
    uint32_t (*count_below)(const uint32_t *docids, uint32_t n, uint32_t doc);

    /* parts[i] = tf / (tf + K) of n postings; the least K to *min_K, returns the greatest part.
     * Docids >= n_docs count as part 0. */
    float (*parts)(const uint32_t *docids, const uint32_t *tfs, uint32_t n, const gx_cpu_lengths *l, float *parts,
                   float *min_K);

    /* impacts[i] = the impact of weight w of n postings, of any value where the docid is >= n_docs. All arrays are
     * readable, or writable, up to a multiple of 16. */
    void (*impacts)(const uint32_t *docids, const uint32_t *tfs, uint32_t n, const gx_cpu_lengths *l, float w,
                    uint32_t *impacts);
} gx_cpu_kernels;

extern const gx_cpu_kernels gx_cpu_portable;
extern const gx_cpu_kernels gx_cpu_avx2;   /* where GX_X86 */
extern const gx_cpu_kernels gx_cpu_neon;   /* where GX_ARM64 */
extern const gx_cpu_kernels gx_cpu_avx512; /* where GX_X86; wants F, BW, DQ, VL, VBMI, VBMI2, VPOPCNTDQ */

/* The best that this processor runs, or the one that the environment's GX_CPU names (isa.h); NULL
 * if that cannot run here. */
const gx_cpu_kernels *gx_cpu_choose(void);

/* An upper bound of the impact of a posting, as all kernels compute it. */
static inline uint32_t gx_cpu_bound_of(const gx_cpu_bound *b, uint32_t tf)
{
    const float f = (float)tf, product = b->w * f, sum = f + b->min_K;
    const uint32_t i = (uint32_t)lrintf(product / sum) + 2;
    return i < b->most ? i : b->most;
}

#endif
