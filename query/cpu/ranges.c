#include "query/cpu/ranges.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COMMON_SHARE GX_SEGMENT_DOCS      /* lists of more than n_docs / COMMON_SHARE postings are common */
#define DENSE_SHARE (GX_SEGMENT_DOCS / 8) /* and of more than n_docs / DENSE_SHARE dense */
#define MAX_TF (UINT32_MAX >> GX_SEGMENT_SHIFT) /* that a posting has room for */
#define N_LOCKS 64u                       /* lists derived at the same time, at most */

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

void gx_ranges_set_memory(gx_ranges *r, uint64_t memory)
{
    r->memory = memory;
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

static gx_range_form form_of(const gx_index *ix, uint32_t df, bool wide)
{
    if (df < gx_ranges_n_tiles(ix))
        return GX_RANGE_RARE;
    if ((uint64_t)df * DENSE_SHARE > ix->n_docs && !wide)
        return GX_RANGE_DENSE;
    return (uint64_t)df * COMMON_SHARE > ix->n_docs ? GX_RANGE_COMMON : GX_RANGE_SPARSE;
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 127) & ~UINT64_C(63); /* as it is allocated, and vectors may be read past the end */
}

/* Where the postings of a list under way go. */
typedef struct list_writer {
    gx_range_list *list;
    uint32_t *docids;
    uint32_t *tfs;
    uint32_t *starts;
    gx_segment_start *segments;
    uint8_t *present;
    gx_narrow_posting *narrow;
    gx_wide_posting *wide;
    uint64_t *bits;
    uint8_t *bytes;
    uint32_t next_start;                  /* of those that `starts` has */
    uint32_t n_segments, last, n_written; /* the list's segments: all, the last one so far + 1, those so far */
} list_writer;

/* df postings in n_segments segments. */
static bool open_writer(gx_ranges *r, list_writer *w, uint32_t df)
{
    const uint64_t n_segments = gx_ranges_n_segments(r->ix), n_tiles = gx_ranges_n_tiles(r->ix);
    const uint64_t one = padded(df), two = padded(2 * (uint64_t)df), four = padded(4 * (uint64_t)df);
    const uint64_t postings = w->list->wide ? four : two;
    const uint64_t segments = padded(((uint64_t)w->n_segments + 1) * sizeof *w->segments);
    const uint64_t starts = padded(4 * (w->list->form == GX_RANGE_DENSE ? n_segments + 1 : n_tiles));
    const uint64_t bits = padded(n_segments * GX_SEGMENT_DOCS / 8);
    switch (w->list->form) {
    case GX_RANGE_RARE:
        return charge(r, 2 * four) && (w->docids = allocate(r, four)) && (w->tfs = allocate(r, four));
    case GX_RANGE_DENSE:
        return charge(r, starts + bits + one) && (w->starts = allocate(r, starts)) && (w->bits = allocate(r, bits)) &&
               (w->bytes = allocate(r, one));
    case GX_RANGE_SPARSE:
        if (!charge(r, starts + padded(n_tiles)) || !(w->starts = allocate(r, starts)) ||
            !(w->present = allocate(r, padded(n_tiles))))
            return false;
        break;
    default:
        break;
    }
    if (!charge(r, segments + postings) || !(w->segments = allocate(r, segments)))
        return false;
    if (w->list->wide)
        return (w->wide = allocate(r, postings)) != NULL;
    return (w->narrow = allocate(r, postings)) != NULL;
}

/* Set the starts below `end` that are not set yet. */
static void end_starts(list_writer *w, uint32_t end, uint32_t start)
{
    for (; w->starts && w->next_start < end; ++w->next_start)
        w->starts[w->next_start] = start;
}

/* Begin the segments of a common list up to one that has postings, or of a sparse list this one alone. */
static void begin_segment(list_writer *w, uint32_t segment, uint32_t start)
{
    if (w->present) {
        end_starts(w, segment / GX_TILE_SEGMENTS + 1, w->n_written);
        w->present[segment / GX_TILE_SEGMENTS] |= (uint8_t)(1u << segment % GX_TILE_SEGMENTS);
        w->segments[w->n_written++].start = start;
    }
    while (!w->present && w->n_written <= segment)
        w->segments[w->n_written++].start = start;
    w->last = segment + 1;
}

static void write_posting(list_writer *w, uint32_t docid, uint32_t tf)
{
    const uint32_t i = w->list->df++, in_segment = docid % GX_SEGMENT_DOCS, segment = docid >> GX_SEGMENT_SHIFT;
    w->list->max_tf = tf > w->list->max_tf ? tf : w->list->max_tf;
    if (w->segments) {
        if (segment >= w->last)
            begin_segment(w, segment, i);
        w->segments[w->n_written - 1].ranges |= UINT32_C(1) << (in_segment >> GX_RANGE_SHIFT);
    }
    if (w->narrow) {
        w->narrow[i] = (gx_narrow_posting)(in_segment | tf << GX_SEGMENT_SHIFT);
    } else if (w->wide) {
        w->wide[i] = in_segment | tf << GX_SEGMENT_SHIFT;
    } else if (w->bits) {
        end_starts(w, segment + 1, i);
        w->bits[docid / 64] |= UINT64_C(1) << docid % 64;
        w->bytes[i] = (uint8_t)tf;
    } else {
        w->docids[i] = docid;
        w->tfs[i] = tf;
    }
}

/* Set the starts behind the last posting. */
static void end_list(list_writer *w, const gx_index *ix)
{
    if (w->bits)
        end_starts(w, gx_ranges_n_segments(ix) + 1, w->list->df);
    if (w->present)
        end_starts(w, gx_ranges_n_tiles(ix), w->n_written);
    while (w->segments && w->n_written <= w->n_segments)
        w->segments[w->n_written++].start = w->list->df;
}

/* Decode block j into scratch and keep the postings of documents that the lists keep, whose docids rise and are
 * < n_docs; *last: the docid before, + 1. A whole index has no others. Returns their number. */
static uint32_t decode_block(const gx_ranges *r, const gx_list *l, uint32_t j, uint32_t *last, gx_cpu_scratch *scratch)
{
    const uint64_t *words = gx_cpu_lists_kept(r->lists);
    const uint32_t n = gx_cpu_decode_docids(r->kernels, l, j, scratch->docids);
    uint32_t kept = 0;
    gx_list_decode_tfs(l, j, scratch->tfs);
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t docid = scratch->docids[i], tf = scratch->tfs[i];
        if (docid < *last || docid >= r->ix->n_docs || (words && !(words[docid / 64] >> docid % 64 & 1)))
            continue;
        scratch->docids[kept] = docid;
        scratch->tfs[kept++] = tf;
        *last = docid + 1;
    }
    return kept;
}

/* The segments that have postings of the list. */
static uint32_t count_segments(const gx_ranges *r, const gx_list *l, gx_cpu_scratch *scratch)
{
    uint32_t last = 0, end = 0, n_segments = 0;
    for (uint32_t j = 0; j < l->n_blocks; ++j) {
        const uint32_t n = decode_block(r, l, j, &last, scratch);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t segment = scratch->docids[i] >> GX_SEGMENT_SHIFT;
            n_segments += segment >= end;
            end = segment + 1;
        }
    }
    return n_segments;
}

static gx_range_list *make_list(gx_ranges *r, uint32_t term, gx_cpu_scratch *scratch)
{
    gx_list l;
    gx_cpu_lists_list(r->lists, term, scratch, &l);
    const uint32_t max_tf = gx_index_max_tf(r->ix, term);
    uint32_t last = 0;
    gx_range_list *list = calloc(1, sizeof *list);
    if (!list)
        return NULL;
    list->wide = max_tf > UINT8_MAX;
    list->form = form_of(r->ix, l.df, list->wide);
    list_writer w = {.list = list, .n_segments = gx_ranges_n_segments(r->ix)};
    if (list->form == GX_RANGE_SPARSE)
        w.n_segments = count_segments(r, &l, scratch);
    if (max_tf > MAX_TF || !open_writer(r, &w, l.df)) {
        free(list);
        return NULL;
    }
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = decode_block(r, &l, j, &last, scratch);
        for (uint32_t i = 0; i < n; ++i)
            write_posting(&w, scratch->docids[i], scratch->tfs[i]);
    }
    end_list(&w, r->ix);
    list->n_segments = w.n_segments;
    list->docids = w.docids;
    list->tfs = w.tfs;
    list->starts = w.starts;
    list->segments = w.segments;
    list->present = w.present;
    list->postings = w.wide ? (const void *)w.wide : w.narrow;
    list->bits = w.bits;
    list->bytes = w.bytes;
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

/* The arrays of a list's bounds, under way. */
typedef struct bounds_writer {
    const gx_range_list *list;
    uint8_t *postings, *ranges, *segments;
    uint32_t n; /* postings so far */
} bounds_writer;

static bool open_bounds(gx_ranges *r, bounds_writer *w, const gx_range_list *list, bool of_postings)
{
    const uint64_t n_segments = gx_ranges_n_segments(r->ix), postings = padded(list->df);
    const uint64_t ranges = list->form == GX_RANGE_DENSE ? padded(n_segments * GX_SEGMENT_RANGES) : postings;
    const uint64_t segments = padded(list->form == GX_RANGE_SPARSE ? list->n_segments : n_segments);
    if (list->form == GX_RANGE_RARE)
        return !of_postings || (charge(r, postings) && (w->postings = allocate(r, postings)));
    return charge(r, ranges + segments) && (w->ranges = allocate(r, ranges)) && (w->segments = allocate(r, segments));
}

static inline void raise_to(uint8_t *bound, uint8_t to)
{
    *bound = to > *bound ? to : *bound;
}

static void write_bound(bounds_writer *w, uint32_t docid, uint8_t bound)
{
    const uint32_t segment = docid >> GX_SEGMENT_SHIFT;
    size_t of_segment = segment, of_range = docid >> GX_RANGE_SHIFT;
    if (w->postings)
        w->postings[w->n++] = bound;
    if (w->list->form == GX_RANGE_RARE)
        return;
    if (w->list->form != GX_RANGE_DENSE) {
        const gx_segment_start *s = gx_range_list_start(w->list, segment);
        const uint32_t before = (UINT32_C(1) << (docid % GX_SEGMENT_DOCS >> GX_RANGE_SHIFT)) - 1;
        of_segment = (size_t)(s - w->list->segments);
        of_range = s->start + (size_t)__builtin_popcount(s->ranges & before);
    }
    raise_to(&w->ranges[of_range], bound);
    raise_to(&w->segments[of_segment], bound);
}

static gx_range_bounds *make_bounds(gx_ranges *r, const gx_range_list *list, gx_cpu_params *params, gx_scorer norm,
                                    uint32_t term, gx_cpu_scratch *scratch)
{
    gx_list l;
    gx_cpu_lists_list(r->lists, term, scratch, &l);
    const gx_cpu_bounds *list_bounds = gx_cpu_params_bounds(r->lists, params, term, scratch);
    const uint32_t by_tf = gx_scorer_is_linear(norm) && !list->wide && list->max_tf ? 255 / list->max_tf : 0;
    bounds_writer w = {.list = list};
    gx_range_bounds *b = calloc(1, sizeof *b);
    if (!b || !list_bounds || !open_bounds(r, &w, list, !by_tf)) {
        free(b);
        return NULL;
    }
    const double scale = 255.0 / list_bounds->most * (1 + 0x1p-22);
    const gx_cpu_lengths lengths = {gx_cpu_params_lens(params), r->ix->n_docs, norm};
    uint32_t last = 0;
    float min_K;
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = decode_block(r, &l, j, &last, scratch);
        if (!by_tf)
            r->kernels->parts(scratch->docids, scratch->tfs, n, &lengths, scratch->parts, &min_K);
        for (uint32_t i = 0; i < n; ++i)
            write_bound(&w, scratch->docids[i],
                        by_tf ? (uint8_t)(scratch->tfs[i] * by_tf) : bound_of(scratch->parts[i], scale));
    }
    *b = (gx_range_bounds){by_tf ? list->max_tf * by_tf : 255, by_tf, w.postings, w.ranges, w.segments};
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
