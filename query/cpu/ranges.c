#include "query/cpu/ranges.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define DENSE_SHARE (8u * GX_RANGE_DOCS) /* lists of more than n_docs / DENSE_SHARE postings are dense */
#define N_LOCKS 64u                      /* lists derived at the same time, at most */

/* The bounds of one scorer. */
typedef struct scorer_bounds {
    gx_scorer norm;
    struct scorer_bounds *next;
    _Atomic(gx_range_bounds *) lists[]; /* [n_terms] */
} scorer_bounds;

struct gx_ranges {
    const gx_index *ix;
    gx_cpu_lists *lists;
    const gx_cpu_kernels *kernels;
    uint64_t memory;
    atomic_uint_least64_t used;
    pthread_mutex_t locks[N_LOCKS];   /* of what is derived of a list, by its number */
    _Atomic(gx_range_list *) *ranged; /* [n_terms] */
    pthread_mutex_t lock;             /* of what follows */
    scorer_bounds *scorers;
};

gx_ranges *gx_ranges_open(const gx_index *ix, gx_cpu_lists *lists, const gx_cpu_kernels *kernels, uint64_t memory)
{
    gx_ranges *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    for (uint32_t i = 0; i < N_LOCKS; ++i)
        pthread_mutex_init(&r->locks[i], NULL);
    r->ix = ix;
    r->lists = lists;
    r->kernels = kernels;
    r->memory = memory;
    r->ranged = calloc((size_t)ix->n_terms + 1, sizeof *r->ranged);
    if (!r->ranged) {
        gx_ranges_close(r);
        return NULL;
    }
    return r;
}

void gx_ranges_close(gx_ranges *r)
{
    if (!r)
        return;
    for (scorer_bounds *s = r->scorers, *next; s; s = next) {
        next = s->next;
        for (uint32_t t = 0; t < r->ix->n_terms; ++t)
            free(s->lists[t]);
        free(s);
    }
    for (uint32_t t = 0; r->ranged && t < r->ix->n_terms; ++t)
        free(r->ranged[t]);
    free(r->ranged);
    for (uint32_t i = 0; i < N_LOCKS; ++i)
        pthread_mutex_destroy(&r->locks[i]);
    pthread_mutex_destroy(&r->lock);
    free(r); /* the arrays lie in the lists' memory */
}

uint64_t gx_ranges_bytes(const gx_ranges *r)
{
    return atomic_load(&r->used);
}

/* Take bytes from the budget. */
static bool charge(gx_ranges *r, uint64_t bytes)
{
    uint64_t used = atomic_load(&r->used);
    do {
        if (bytes > r->memory || used > r->memory - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&r->used, &used, used + bytes));
    return true;
}

static void *allocate(gx_ranges *r, uint64_t bytes)
{
    return bytes < SIZE_MAX ? gx_cpu_lists_alloc(r->lists, (size_t)bytes) : NULL;
}

/* ---- a list ---- */

static gx_range_form form_of(const gx_index *ix, uint32_t df)
{
    if (df < gx_ranges_n_tiles(ix))
        return GX_RANGE_RARE;
    return (uint64_t)df * DENSE_SHARE > ix->n_docs ? GX_RANGE_DENSE : GX_RANGE_SPARSE;
}

/* How many starts a list has, and of how many documents each, as a shift. */
static uint32_t n_starts(const gx_index *ix, gx_range_form form, uint32_t *shift)
{
    *shift = form == GX_RANGE_DENSE ? GX_SEGMENT_SHIFT : GX_TILE_SHIFT;
    const uint32_t a_tile = 1u << (GX_TILE_SHIFT - *shift);
    return form == GX_RANGE_RARE ? 0 : gx_ranges_n_tiles(ix) * a_tile + 1;
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 127) & ~UINT64_C(63); /* as it is allocated, and vectors may be read past the end */
}

/* Where the postings of a list under way go. */
typedef struct list_writer {
    gx_range_list *list;
    uint32_t *docids;
    uint16_t *tfs;
    uint32_t *starts;
    gx_narrow_posting *narrow;
    gx_wide_posting *wide;
    uint32_t shift, next_start;
} list_writer;

static bool open_writer(gx_ranges *r, list_writer *w, uint32_t df)
{
    const gx_range_form form = w->list->form;
    const uint32_t starts = n_starts(r->ix, form, &w->shift);
    const uint64_t posting = form != GX_RANGE_DENSE ? 6 : w->list->wide ? 4 : 2;
    if (!charge(r, padded(4 * (uint64_t)starts) + padded(posting * df) + 64))
        return false;
    if (starts && !(w->starts = allocate(r, padded(4 * (uint64_t)starts))))
        return false;
    if (form != GX_RANGE_DENSE)
        return (w->docids = allocate(r, padded(4 * (uint64_t)df))) && (w->tfs = allocate(r, padded(2 * (uint64_t)df)));
    if (w->list->wide)
        return (w->wide = allocate(r, padded(4 * (uint64_t)df))) != NULL;
    return (w->narrow = allocate(r, padded(2 * (uint64_t)df))) != NULL;
}

static void write_posting(list_writer *w, uint32_t docid, uint32_t tf)
{
    const uint32_t i = w->list->df++, in_segment = docid & (GX_SEGMENT_DOCS - 1);
    for (; w->starts && w->next_start <= docid >> w->shift; ++w->next_start)
        w->starts[w->next_start] = i;
    if (w->narrow) {
        w->narrow[i] = (gx_narrow_posting)(in_segment | tf << GX_SEGMENT_SHIFT);
    } else if (w->wide) {
        w->wide[i] = in_segment | tf << GX_SEGMENT_SHIFT;
    } else {
        w->docids[i] = docid;
        w->tfs[i] = (uint16_t)tf;
    }
}

/* Decode block j into scratch and keep the postings whose docids rise and are < n_docs; *last: the
 * docid before, + 1. A whole index has no others. Returns their number. */
static uint32_t decode_block(const gx_ranges *r, const gx_list *l, uint32_t j, uint32_t *last, gx_cpu_scratch *scratch)
{
    const uint32_t n = gx_cpu_decode_docids(r->kernels, l, j, scratch->docids);
    uint32_t kept = 0;
    gx_list_decode_tfs(l, j, scratch->tfs);
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t docid = scratch->docids[i], tf = scratch->tfs[i];
        if (docid < *last || docid >= r->ix->n_docs)
            continue;
        scratch->docids[kept] = docid;
        scratch->tfs[kept++] = tf;
        *last = docid + 1;
    }
    return kept;
}

static gx_range_list *make_list(gx_ranges *r, uint32_t term, gx_cpu_scratch *scratch)
{
    const gx_list l = gx_index_list(r->ix, term);
    const uint32_t max_tf = gx_index_max_tf(r->ix, term);
    uint32_t last = 0, shift;
    gx_range_list *list = calloc(1, sizeof *list);
    if (!list)
        return NULL;
    *list = (gx_range_list){.form = form_of(r->ix, l.df), .wide = max_tf > UINT8_MAX, .max_tf = max_tf};
    list_writer w = {.list = list};
    if (max_tf > UINT16_MAX || !open_writer(r, &w, l.df)) {
        free(list);
        return NULL;
    }
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = decode_block(r, &l, j, &last, scratch);
        for (uint32_t i = 0; i < n; ++i)
            write_posting(&w, scratch->docids[i], scratch->tfs[i]);
    }
    for (const uint32_t n = n_starts(r->ix, list->form, &shift); w.next_start < n; ++w.next_start)
        w.starts[w.next_start] = list->df;
    list->docids = w.docids;
    list->tfs = w.tfs;
    list->starts = w.starts;
    list->postings = w.wide ? (const void *)w.wide : w.narrow;
    return list;
}

const gx_range_list *gx_ranges_list(gx_ranges *r, uint32_t term, gx_cpu_scratch *scratch)
{
    gx_range_list *list = atomic_load_explicit(&r->ranged[term], memory_order_acquire);
    if (list)
        return list;
    pthread_mutex_lock(&r->locks[term % N_LOCKS]);
    list = atomic_load_explicit(&r->ranged[term], memory_order_acquire);
    if (!list && (list = make_list(r, term, scratch)))
        atomic_store_explicit(&r->ranged[term], list, memory_order_release);
    pthread_mutex_unlock(&r->locks[term % N_LOCKS]);
    return list;
}

/* ---- bounds ---- */

/* The least b such that no real number within two roundings above part is greater than most b / 255. */
static uint8_t bound_of(float part, double scale)
{
    const double x = ceil((double)part * scale);
    return x < 255 ? x < 1 ? 1 : (uint8_t)x : 255;
}

static gx_range_bounds *make_bounds(gx_ranges *r, const gx_range_list *list, gx_cpu_params *params, gx_scorer norm,
                                    uint32_t term, gx_cpu_scratch *scratch)
{
    const gx_list l = gx_index_list(r->ix, term);
    const gx_cpu_bounds *list_bounds = gx_cpu_params_bounds(r->lists, params, term, scratch);
    const uint64_t n_tiles = gx_ranges_n_tiles(r->ix), tile_bytes = list->form == GX_RANGE_RARE ? 0 : padded(n_tiles),
                   bytes = padded(list->form == GX_RANGE_DENSE ? n_tiles * GX_TILE_RANGES : list->df);
    uint8_t *tiles = NULL, *bounds = NULL;
    gx_range_bounds *b = calloc(1, sizeof *b);
    if (!b || !list_bounds || !charge(r, tile_bytes + bytes) || !(bounds = allocate(r, bytes)) ||
        (tile_bytes && !(tiles = allocate(r, tile_bytes)))) {
        free(b);
        return NULL;
    }
    const double scale = 255.0 / list_bounds->most * (1 + 0x1p-22);
    const gx_cpu_lengths lengths = {gx_cpu_params_lens(params), r->ix->n_docs, norm};
    uint32_t last = 0, at = 0;
    float min_K;
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = decode_block(r, &l, j, &last, scratch);
        r->kernels->parts(scratch->docids, scratch->tfs, n, &lengths, scratch->parts, &min_K);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t docid = scratch->docids[i];
            const uint8_t bound = bound_of(scratch->parts[i], scale);
            uint8_t *range = list->form == GX_RANGE_DENSE ? &bounds[docid >> GX_RANGE_SHIFT] : &bounds[at++];
            *range = bound > *range ? bound : *range;
            if (tiles && bound > tiles[docid >> GX_TILE_SHIFT])
                tiles[docid >> GX_TILE_SHIFT] = bound;
        }
    }
    b->tiles = tiles;
    if (list->form == GX_RANGE_DENSE)
        b->ranges = bounds;
    else
        b->postings = bounds;
    return b;
}

static scorer_bounds *find_scorer(gx_ranges *r, gx_scorer norm)
{
    pthread_mutex_lock(&r->lock);
    scorer_bounds *s = r->scorers;
    while (s && !gx_scorer_is(s->norm, norm))
        s = s->next;
    if (!s && (s = calloc(1, sizeof *s + (size_t)r->ix->n_terms * sizeof *s->lists))) {
        s->norm = norm;
        s->next = r->scorers;
        r->scorers = s;
    }
    pthread_mutex_unlock(&r->lock);
    return s;
}

const gx_range_bounds *gx_ranges_bounds(gx_ranges *r, const gx_range_list *list, gx_cpu_params *params, gx_scorer norm,
                                        uint32_t term, gx_cpu_scratch *scratch)
{
    scorer_bounds *s = find_scorer(r, norm);
    if (!s)
        return NULL;
    gx_range_bounds *b = atomic_load_explicit(&s->lists[term], memory_order_acquire);
    if (b)
        return b;
    pthread_mutex_lock(&r->locks[term % N_LOCKS]);
    b = atomic_load_explicit(&s->lists[term], memory_order_acquire);
    if (!b && (b = make_bounds(r, list, params, norm, term, scratch)))
        atomic_store_explicit(&s->lists[term], b, memory_order_release);
    pthread_mutex_unlock(&r->locks[term % N_LOCKS]);
    return b;
}
