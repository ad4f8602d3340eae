#include "query/cpu/lists.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/words/bits.h"
#include "engine/memory/huge_pages.h"
#include "engine/memory/prefetch.h"
#include "engine/status.h"
#include "query/cpu/live_list.h"
#include "query/score/derived.h"

#define MIN_DIRECTORY 4u /* blocks; shorter lists have no directory */
#define MAP_OVERHANG 32u /* words behind a map that kernels may read */
#define N_MAP_LOCKS 64u  /* the most maps that threads make at the same time */
#define CHUNK_BYTES ((size_t)32 << 20)
#define LENS_AT_ONCE 1024u /* lengths of a page: read twice, the second time from the cache */
#define LIVE_SHARE 64u     /* live lists are made if one document in so many, or more, is not kept, */
#define LIVE_MIN_DF 64u    /* of lists with as many postings: to read shorter ones costs little */

struct gx_cpu_params {
    gx_scorer norm;
    const uint32_t *lens;             /* [n_docs] one of gx_cpu_lists.lens */
    _Atomic(gx_cpu_bounds *) *bounds; /* [n_terms] */
    gx_cpu_params *next;
};

/* Memory for maps, ranks and directories. Searches read them at random places, so that many small
 * ones share huge pages. */
typedef struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes, used;
    char *memory; /* zeroed */
} arena_chunk;

struct gx_cpu_lists {
    const gx_index *ix;
    const gx_cpu_kernels *kernels;
    uint32_t least_df, last_list; /* which lists have maps: see has_map */
    uint32_t slots;               /* slots a posting of a map, at least */
    uint64_t spare_memory;        /* of the budget, when all maps are made */
    _Atomic(gx_cpu_map *) *maps;  /* [n_terms] */
    atomic_uint_least64_t map_bytes;
    pthread_mutex_t map_locks[N_MAP_LOCKS]; /* list t's map is made under lock t % N_MAP_LOCKS */
    /* [n_terms] in the arena; NULL: not made yet, &no_live: there is none. Itself NULL: there are none at all */
    _Atomic(const gx_list *) *live;
    uint64_t live_memory; /* a budget */
    atomic_uint_least64_t live_bytes;
    atomic_uint n_live;
    pthread_mutex_t live_locks[N_MAP_LOCKS]; /* list t's live list is made under lock t % N_MAP_LOCKS */
    pthread_mutex_t lock;                    /* guards the members below */
    gx_cpu_params *params;
    /* [n_docs] exact, and lossy. Copies in huge pages, since searches read them at random places */
    uint32_t *lens[2];
    uint64_t *kept; /* [ceil(n_docs / 64)] a bit a document; NULL: all are. Constant */
    uint32_t n_kept;
    arena_chunk *chunks; /* the first one has the room that is left */
};

static const gx_list no_live;

/* ---- the budget ---- */

static uint64_t map_words(uint32_t n_docs, uint32_t shift)
{
    return 2 * ((uint64_t)(n_docs >> shift) / 64 + 1) + MAP_OVERHANG;
}

static uint64_t rank_words(uint32_t n_docs)
{
    return (uint64_t)n_docs / 64 + 1;
}

/* A list whose map has a bit a document is dense, and has ranks. */
static uint64_t map_and_rank_words(uint32_t n_docs, uint32_t shift)
{
    return map_words(n_docs, shift) + (shift == 0 ? rank_words(n_docs) : 0);
}

/* Find out which lists have maps, which take at most map_memory bytes. */
static gx_status plan_maps(gx_cpu_lists *ls, uint64_t map_memory, gx_error *err)
{
    static const gx_map_sizes sizes = {map_and_rank_words, NULL};
    gx_map_plan plan;
    ls->least_df = GX_MAP_MIN_DF;
    ls->last_list = UINT32_MAX;
    ls->slots = GX_MAP_SLOTS;
    ls->spare_memory = map_memory;
    if (map_memory == UINT64_MAX)
        return GX_OK;
    const gx_status st = gx_map_plan_make(&plan, ls->ix, &gx_maps_cpu, &sizes, map_memory / 4, err);
    if (st != GX_OK)
        return st;
    ls->slots = plan.slots;
    ls->least_df = UINT32_MAX;
    if (plan.n_maps) {
        ls->last_list = plan.lists[plan.n_maps - 1];
        ls->least_df = ls->ix->lists[ls->last_list].df;
    }
    for (uint32_t i = 0; i < plan.n_maps; ++i) {
        const uint32_t shift = gx_map_shift(ls->ix->n_docs, ls->ix->lists[plan.lists[i]].df, plan.slots);
        const uint64_t bytes = 4 * map_and_rank_words(ls->ix->n_docs, shift);
        ls->spare_memory -= bytes < ls->spare_memory ? bytes : ls->spare_memory;
    }
    gx_map_plan_free(&plan);
    return GX_OK;
}

/* Longer lists than least_df have a map, and of those with least_df postings the ones up to
 * last_list. */
static bool has_map(const gx_cpu_lists *ls, uint32_t list)
{
    const uint32_t df = ls->ix->lists[list].df;
    return df > ls->least_df || (df == ls->least_df && list <= ls->last_list);
}

/* ---- memory ---- */

static arena_chunk *open_arena_chunk(size_t bytes)
{
    arena_chunk *c = calloc(1, sizeof *c);
    if (c && !(c->memory = gx_huge_alloc(bytes))) {
        free(c);
        return NULL;
    }
    if (c)
        c->bytes = bytes;
    return c;
}

void *gx_cpu_lists_alloc(gx_cpu_lists *ls, size_t bytes)
{
    void *p = NULL;
    bytes = (bytes + 63) & ~(size_t)63;
    pthread_mutex_lock(&ls->lock);
    arena_chunk *c = ls->chunks;
    if (c && bytes > CHUNK_BYTES / 4) { /* a large piece has a chunk of its own, behind the first */
        arena_chunk *own = open_arena_chunk(bytes);
        if (own) {
            own->next = c->next;
            c->next = own;
        }
        c = own;
    } else if (!c || c->bytes - c->used < bytes) {
        arena_chunk *more = open_arena_chunk(bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES);
        if (more) {
            more->next = c;
            ls->chunks = more;
        }
        c = more;
    }
    if (c) {
        p = c->memory + c->used;
        c->used += bytes;
    }
    pthread_mutex_unlock(&ls->lock);
    return p;
}

static void close_arena(gx_cpu_lists *ls)
{
    for (arena_chunk *c = ls->chunks, *next; c; c = next) {
        next = c->next;
        gx_huge_free(c->memory, c->bytes);
        free(c);
    }
}

/* ---- parameter sets ---- */

static size_t lens_bytes(const gx_index *ix)
{
    return ((size_t)ix->n_docs + 1) * sizeof(uint32_t);
}

static void free_params(const gx_cpu_lists *ls, gx_cpu_params *p)
{
    for (uint32_t t = 0; p->bounds && t < ls->ix->n_terms; ++t)
        free(p->bounds[t]);
    free(p->bounds);
    free(p);
}

/* The copy is 0 before: where no document has a term, its pages take no memory. */
static void copy_lens(uint32_t *to, const uint32_t *from, uint32_t n, bool lossy)
{
    uint32_t any = 0;
    for (uint32_t i = 0; i < n; ++i)
        any |= from[i];
    for (uint32_t i = 0; any && i < n; ++i)
        to[i] = lossy ? gx_lossy_length(from[i]) : from[i];
}

/* The lengths, copied at first use. The caller holds the lock. */
static const uint32_t *find_lens(gx_cpu_lists *ls, bool lossy)
{
    const gx_index *ix = ls->ix;
    if (!ls->lens[lossy] && (ls->lens[lossy] = gx_huge_alloc(lens_bytes(ix)))) {
        for (uint32_t d = 0; d < ix->n_docs; d += LENS_AT_ONCE)
            copy_lens(ls->lens[lossy] + d, ix->doc_lens + d,
                      ix->n_docs - d < LENS_AT_ONCE ? ix->n_docs - d : LENS_AT_ONCE, lossy);
    }
    return ls->lens[lossy];
}

static gx_cpu_params *make_params(gx_cpu_lists *ls, gx_scorer norm)
{
    gx_cpu_params *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->norm = norm;
    p->bounds = calloc((size_t)ls->ix->n_terms + 1, sizeof *p->bounds);
    p->lens = find_lens(ls, norm.lossy);
    if (!p->bounds || !p->lens) {
        free_params(ls, p);
        return NULL;
    }
    return p;
}

gx_cpu_params *gx_cpu_lists_params(gx_cpu_lists *ls, gx_scorer norm)
{
    pthread_mutex_lock(&ls->lock);
    gx_cpu_params *p = ls->params;
    while (p && !gx_scorer_is(p->norm, norm))
        p = p->next;
    if (!p && (p = make_params(ls, norm))) {
        p->next = ls->params;
        ls->params = p;
    }
    pthread_mutex_unlock(&ls->lock);
    return p;
}

const uint32_t *gx_cpu_params_lens(const gx_cpu_params *p)
{
    return p->lens;
}

/* ---- open and close ---- */

gx_status gx_cpu_lists_open(gx_cpu_lists **out, const gx_index *ix, const gx_cpu_kernels *kernels, uint64_t map_memory,
                            gx_error *err)
{
    *out = NULL;
    gx_cpu_lists *ls = calloc(1, sizeof *ls);
    if (!ls)
        return gx_fail(err, GX_ENOMEM, "no memory for a CPU engine");
    pthread_mutex_init(&ls->lock, NULL);
    for (uint32_t i = 0; i < N_MAP_LOCKS; ++i) {
        pthread_mutex_init(&ls->map_locks[i], NULL);
        pthread_mutex_init(&ls->live_locks[i], NULL);
    }
    ls->ix = ix;
    ls->n_kept = ix->n_docs;
    ls->kernels = kernels;
    ls->maps = calloc((size_t)ix->n_terms + 1, sizeof *ls->maps);
    if (!ls->maps) {
        gx_cpu_lists_close(ls);
        return gx_fail(err, GX_ENOMEM, "no memory for the maps of %u lists", ix->n_terms);
    }
    const gx_status st = plan_maps(ls, map_memory, err);
    if (st != GX_OK) {
        gx_cpu_lists_close(ls);
        return st;
    }
    *out = ls;
    return GX_OK;
}

void gx_cpu_lists_close(gx_cpu_lists *ls)
{
    if (!ls)
        return;
    for (uint32_t t = 0; ls->maps && t < ls->ix->n_terms; ++t)
        free(ls->maps[t]);
    free(ls->maps);
    close_arena(ls);
    while (ls->params) {
        gx_cpu_params *next = ls->params->next;
        free_params(ls, ls->params);
        ls->params = next;
    }
    for (int lossy = 0; lossy < 2; ++lossy)
        gx_huge_free(ls->lens[lossy], lens_bytes(ls->ix));
    for (uint32_t i = 0; i < N_MAP_LOCKS; ++i) {
        pthread_mutex_destroy(&ls->map_locks[i]);
        pthread_mutex_destroy(&ls->live_locks[i]);
    }
    pthread_mutex_destroy(&ls->lock);
    free(ls->live);
    free(ls->kept);
    free(ls);
}

/* Documents 64 w to 64 w + 63 that the index has. */
static uint64_t all_of(const gx_cpu_lists *ls, size_t w)
{
    const size_t left = ls->ix->n_docs - 64 * w;
    return left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
}

/* Prepare for live lists. Without memory there are none. */
static void plan_live(gx_cpu_lists *ls)
{
    ls->live = calloc((size_t)ls->ix->n_terms + 1, sizeof *ls->live);
    ls->live_memory = ls->spare_memory;
    if (ls->live && ls->spare_memory != UINT64_MAX) {
        ls->live_memory = ls->spare_memory / 2;
        ls->spare_memory -= ls->live_memory;
    }
}

bool gx_cpu_lists_keep(gx_cpu_lists *ls, const uint64_t *words)
{
    const size_t n = ((size_t)ls->ix->n_docs + 63) / 64;
    if (!(ls->kept = malloc((n + 1) * sizeof *ls->kept)))
        return false;
    ls->n_kept = 0;
    for (size_t w = 0; w < n; ++w) {
        ls->kept[w] = words[w] & all_of(ls, w);
        ls->n_kept += (uint32_t)__builtin_popcountll(ls->kept[w]);
    }
    if (ls->n_kept && (uint64_t)(ls->ix->n_docs - ls->n_kept) * LIVE_SHARE >= ls->ix->n_docs)
        plan_live(ls);
    return true;
}

const uint64_t *gx_cpu_lists_kept(const gx_cpu_lists *ls)
{
    return ls->kept;
}

bool gx_cpu_lists_have_kept(const gx_cpu_lists *ls, const uint64_t *words)
{
    uint64_t others = 0;
    for (size_t w = 0; ls->kept && 64 * w < ls->ix->n_docs; ++w)
        others |= (words ? words[w] & all_of(ls, w) : all_of(ls, w)) & ~ls->kept[w];
    return others == 0;
}

uint32_t gx_cpu_lists_n_kept(const gx_cpu_lists *ls)
{
    return ls->n_kept;
}

uint32_t gx_cpu_lists_n_live(const gx_cpu_lists *ls)
{
    return atomic_load(&ls->n_live);
}

uint64_t gx_cpu_lists_map_bytes(const gx_cpu_lists *ls)
{
    return atomic_load(&ls->map_bytes);
}

uint64_t gx_cpu_lists_spare_memory(const gx_cpu_lists *ls)
{
    return ls->spare_memory;
}

/* ---- blocks ---- */

uint32_t gx_cpu_decode_docids(const gx_cpu_kernels *kernels, const gx_list *l, uint32_t j, uint32_t *docids)
{
    if (kernels->unpack_docids && l->block_len <= 128 && gx_cpu_is_packed(l->docids)) {
        uint32_t n_words;
        const uint32_t *words = gx_cpu_docid_words(l, j, &n_words), n = gx_list_block_n(l, j),
                       bits = gx_packed_width(n_words, n);
        if (bits <= kernels->max_docid_bits) {
            kernels->unpack_docids(words, bits, n, l->heads[j], docids);
            return n;
        }
    }
    return gx_list_decode_docids(l, j, docids);
}

/* ---- live lists ---- */

/* Memory of the budget. */
static void *alloc_live(void *lists, size_t bytes)
{
    gx_cpu_lists *ls = lists;
    uint64_t used = atomic_load(&ls->live_bytes);
    do {
        if (bytes > ls->live_memory || used > ls->live_memory - bytes)
            return NULL;
    } while (!atomic_compare_exchange_weak(&ls->live_bytes, &used, used + bytes));
    return gx_cpu_lists_alloc(ls, bytes);
}

static const gx_list *make_live(gx_cpu_lists *ls, uint32_t term, gx_cpu_scratch *scratch)
{
    const gx_list l = gx_index_list(ls->ix, term);
    const gx_live_documents kept = {ls->kept, ls->ix->n_docs};
    gx_list *live = alloc_live(ls, sizeof *live);
    if (!live || !gx_live_list_make(live, &l, &kept, ls->kernels, scratch, alloc_live, ls))
        return &no_live;
    atomic_fetch_add(&ls->n_live, 1);
    return live;
}

static const gx_list *find_live(gx_cpu_lists *ls, uint32_t term, gx_cpu_scratch *scratch)
{
    if (ls->ix->lists[term].df < LIVE_MIN_DF)
        return &no_live;
    pthread_mutex_t *lock = &ls->live_locks[term % N_MAP_LOCKS];
    pthread_mutex_lock(lock);
    const gx_list *live = atomic_load_explicit(&ls->live[term], memory_order_acquire);
    if (!live) {
        live = make_live(ls, term, scratch);
        atomic_store_explicit(&ls->live[term], live, memory_order_release);
    }
    pthread_mutex_unlock(lock);
    return live;
}

bool gx_cpu_lists_list(gx_cpu_lists *ls, uint32_t term, gx_cpu_scratch *scratch, gx_list *list)
{
    const gx_list *live = &no_live;
    if (ls->live && !(live = atomic_load_explicit(&ls->live[term], memory_order_acquire)))
        live = find_live(ls, term, scratch);
    if (live == &no_live) {
        *list = gx_index_list(ls->ix, term);
        return !ls->kept;
    }
    *list = *live;
    return true;
}

/* ---- maps ---- */

static void fill_directory(gx_cpu_map *m, const gx_list *l, uint32_t n_docs)
{
    uint32_t j = 0;
    for (uint32_t t = 0; t <= (n_docs >> m->directory_shift) + 1; ++t) {
        /* j becomes the last block that begins at or before slot t */
        while (j + 1 < l->n_blocks && l->heads[j + 1] <= (uint64_t)t << m->directory_shift)
            ++j;
        m->directory[t] = j;
    }
}

static void fill_map(gx_cpu_map *m, const gx_cpu_kernels *kernels, const gx_list *l, uint32_t n_docs, uint32_t *docids)
{
    for (uint32_t j = 0; j < l->n_blocks; ++j) {
        const uint32_t n = gx_cpu_decode_docids(kernels, l, j, docids);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t slot = docids[i] >> m->map_shift;
            if (docids[i] < n_docs)
                m->map[slot / 32] |= UINT32_C(1) << slot % 32;
        }
    }
}

static void fill_rank(gx_cpu_map *m, size_t n)
{
    uint32_t before = 0;
    for (size_t i = 0; i < n; ++i) {
        uint64_t word;
        m->rank[i] = before;
        memcpy(&word, m->map + 2 * i, 8);
        before += (uint32_t)__builtin_popcountll(word);
    }
}

static gx_cpu_map *make_map(gx_cpu_lists *ls, uint32_t term, gx_cpu_scratch *scratch)
{
    const gx_index *ix = ls->ix;
    gx_list l;
    gx_cpu_map *m = calloc(1, sizeof *m);
    gx_cpu_lists_list(ls, term, scratch, &l);
    if (!m)
        return NULL;
    if (l.n_blocks >= MIN_DIRECTORY) {
        while ((ix->n_docs >> m->directory_shift) + 1 > l.n_blocks)
            ++m->directory_shift;
        m->directory = gx_cpu_lists_alloc(ls, ((size_t)(ix->n_docs >> m->directory_shift) + 2) * sizeof *m->directory);
        if (!m->directory)
            goto fail;
        fill_directory(m, &l, ix->n_docs);
    }
    if (has_map(ls, term)) {
        m->map_shift = (uint8_t)gx_map_shift(ix->n_docs, ix->lists[term].df, ls->slots); /* as planned */
        m->map = gx_cpu_lists_alloc(ls, map_words(ix->n_docs, m->map_shift) * sizeof *m->map);
        if (!m->map)
            goto fail;
        fill_map(m, ls->kernels, &l, ix->n_docs, scratch->docids);
        if (m->map_shift == 0) {
            if (!(m->rank = gx_cpu_lists_alloc(ls, rank_words(ix->n_docs) * sizeof *m->rank)))
                goto fail;
            fill_rank(m, rank_words(ix->n_docs));
        }
    }
    return m;

fail:
    free(m); /* the arrays are freed with ls */
    return NULL;
}

const gx_cpu_map *gx_cpu_lists_map(gx_cpu_lists *ls, uint32_t term, gx_cpu_scratch *scratch)
{
    gx_cpu_map *m = atomic_load_explicit(&ls->maps[term], memory_order_acquire);
    if (m)
        return m;
    pthread_mutex_t *map_locks = &ls->map_locks[term % N_MAP_LOCKS];
    pthread_mutex_lock(map_locks);
    m = atomic_load_explicit(&ls->maps[term], memory_order_acquire);
    if (!m && (m = make_map(ls, term, scratch))) {
        if (m->map)
            atomic_fetch_add(&ls->map_bytes, 4 * map_and_rank_words(ls->ix->n_docs, m->map_shift));
        atomic_store_explicit(&ls->maps[term], m, memory_order_release);
    }
    pthread_mutex_unlock(map_locks);
    return m;
}

/* ---- bounds ---- */

/* Parts lie in [0, unit]. They are counted in classes by value; the lower end of a class bounds the k-th greatest part
 * from below. A short list has fewer classes: to clear and to read them takes as long as its postings. */
#define MOST_CLASSES 4096u
#define FEW_CLASSES 1024u
#define FEW_POSTINGS 10000u

/* The greatest part that a list can have: 1 for BM25; for a linear scorer, that of its greatest tf.
 */
static float unit_of(const gx_index *ix, gx_scorer scorer, uint32_t term)
{
    return gx_scorer_is_linear(scorer) ? (float)gx_index_max_tf(ix, term) / GX_LINEAR_K : 1;
}

typedef struct part_classes {
    uint32_t *counts; /* [n + 1] */
    uint32_t n;
    float unit;
} part_classes;

static void find_kth(gx_cpu_bounds *b, const part_classes *classes, uint32_t df)
{
    const float top = b->most * ((float)classes->n / classes->unit);
    uint64_t above = 0;
    uint32_t q = 0, n_ranks = 0;
    while (n_ranks < GX_CPU_N_KTH && gx_cpu_kth_ranks[n_ranks] <= df)
        ++n_ranks;
    for (uint32_t c = top < classes->n ? (uint32_t)top : classes->n; q < n_ranks; --c) {
        above += classes->counts[c];
        for (; q < n_ranks && above >= gx_cpu_kth_ranks[q]; ++q)
            b->kth[q] = (float)c / classes->n * classes->unit;
        if (c == 0)
            break;
    }
}

/* Documents that are not kept have no part. */
static void leave_out(const gx_cpu_lists *ls, uint32_t *docids, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        if (docids[i] < ls->ix->n_docs && !(ls->kept[docids[i] / 64] >> docids[i] % 64 & 1))
            docids[i] = UINT32_MAX;
    }
}

static gx_cpu_bounds *make_bounds(gx_cpu_lists *ls, const gx_cpu_params *p, uint32_t term, gx_cpu_scratch *scratch)
{
    gx_list l;
    const bool live = gx_cpu_lists_list(ls, term, scratch, &l);
    const part_classes classes = {scratch->counts, l.df < FEW_POSTINGS ? FEW_CLASSES : MOST_CLASSES,
                                  unit_of(ls->ix, p->norm, term)};
    const float classes_a_unit = classes.n / classes.unit;
    const bool counts = l.df >= gx_cpu_kth_ranks[1];
    const gx_cpu_lengths lengths = {p->lens, ls->ix->n_docs, p->norm};
    gx_cpu_bounds *b = calloc(1, sizeof *b + l.n_blocks * sizeof *b->blocks);
    if (!b)
        return NULL;
    if (counts)
        memset(classes.counts, 0, (classes.n + 1ull) * sizeof *classes.counts);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_cpu_decode_docids(ls->kernels, &l, j, scratch->docids);
        gx_list_decode_tfs(&l, j, scratch->tfs);
        if (!live)
            leave_out(ls, scratch->docids, n);
        const float most =
            ls->kernels->parts(scratch->docids, scratch->tfs, n, &lengths, scratch->parts, &b->blocks[j].min_K);
        b->blocks[j].most = most * (1 + 0x1p-21f); /* two roundings may lower a part */
        b->most = b->blocks[j].most > b->most ? b->blocks[j].most : b->most;
        for (uint32_t i = 0; counts && i < n; ++i) {
            const float class = scratch->parts[i] * classes_a_unit;
            ++classes.counts[class < classes.n ? (uint32_t) class : classes.n];
        }
    }
    if (counts)
        find_kth(b, &classes, l.df);
    return b;
}

const gx_cpu_bounds *gx_cpu_params_bounds(gx_cpu_lists *ls, gx_cpu_params *p, uint32_t term, gx_cpu_scratch *scratch)
{
    gx_cpu_bounds *b = atomic_load_explicit(&p->bounds[term], memory_order_acquire), *first = NULL;
    if (b)
        return b;
    if (!(b = make_bounds(ls, p, term, scratch)))
        return NULL;
    if (atomic_compare_exchange_strong(&p->bounds[term], &first, b))
        return b;
    free(b);
    return first;
}

/* ---- prefetches ---- */

void gx_cpu_lists_prefetch(const gx_cpu_lists *ls, const gx_cpu_params *p, uint32_t term)
{
    gx_prefetch(&ls->ix->lists[term]);
    if (ls->live)
        gx_prefetch(&ls->live[term]);
    gx_prefetch(&ls->maps[term]);
    gx_prefetch(&p->bounds[term]);
}

void gx_cpu_lists_prefetch_made(const gx_cpu_lists *ls, const gx_cpu_params *p, uint32_t term)
{
    const gx_list *live = ls->live ? atomic_load_explicit(&ls->live[term], memory_order_acquire) : NULL;
    const gx_list l = live && live != &no_live ? *live : gx_index_list(ls->ix, term);
    gx_cpu_lists_prefetch_list(ls, p, term, &l);
}

void gx_cpu_lists_prefetch_list(const gx_cpu_lists *ls, const gx_cpu_params *p, uint32_t term, const gx_list *l)
{
    gx_prefetch(atomic_load_explicit(&ls->maps[term], memory_order_relaxed));
    gx_prefetch(atomic_load_explicit(&p->bounds[term], memory_order_relaxed));
    gx_prefetch(l->heads);
    gx_prefetch(l->docid_ends);
    gx_prefetch(l->tf_ends);
    gx_prefetch(l->payload);
}
