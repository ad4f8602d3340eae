/* The GPU executor's host side: the index in device memory with what is derived from it, and batches of plans on their way
 * through it.
 *
 *   plans -> parts of a batch: descriptors in pinned memory -> copy in -> begin -> search [-> search of AND's failures as OR]
 *         -> select -> copy out -> the caller's keys
 *
 * Two parts are under way at a time: while the GPU works on one, the host describes the next. Nothing is allocated and
 * nothing is waited for between a part's first copy and its last. A query whose candidates overflowed their room is run
 * again with room for every document, beginning at the threshold that it reached.
 */
#include "query/gpu_kernels.cuh"

#include <pthread.h>
#include <time.h>

using namespace gx;

constexpr uint32_t LONG_DF = 64;            /* lists from this length have maps and k-th impacts */
constexpr uint32_t TABLE_BLOCKS = 32;       /* lists of more blocks have a table, of an entry about 16 blocks */
constexpr uint32_t SLOTS = 8, FINE_SLOTS = 16; /* least slots a posting of a map; of one with tf classes */
constexpr uint32_t MAX_QUERIES = 4096, MAX_TERMS = 1u << 16, MAX_RUNS = 1u << 18; /* of a part */
constexpr uint64_t MAX_ITEMS = 3u << 20, MAX_CANDIDATES = 16u << 20, MAX_ANSWERS = 1u << 20;
constexpr uint64_t RESERVE = 512u << 20;    /* of device memory, left to others */
constexpr uint32_t FIRST_PART = 512;        /* queries of a run's first part */
constexpr uint32_t FEW_QUERIES = 4, FEW_BYTES = 512u << 10; /* of a part that is sent in one copy */
constexpr int N_PARTS = 2, KEPT_BOUNDS = 16;

/* ---- state: the index on the device ---- */

/* Bounds of impacts for one set of parameters. */
struct bounds {
    bounds *next;
    gx_norm norm;
    float *best;   /* [n_terms] */
    uint8_t *kth;  /* [n_long * N_KTH] */
    int users;
};

struct gpu_state {
    const gx_index *ix;
    int device;
    char description[288];
    uint32_t multiprocessors, grid, coding;
    gpu_codings codings;
    gpu_index X;
    char *arena;
    uint32_t *tables, *maps;
    uint32_t *long_of;     /* [n_terms] on the host: number of the long list, or UINT32_MAX */
    long_list *longs;      /* [n_long] on the host */
    uint32_t n_long;
    uint32_t *d_long_of;
    long_list *d_longs;
    float *d_best;
    uint8_t *d_kth;
    uint64_t map_words, table_words;
    cudaStream_t stream;
    pthread_mutex_t lock;  /* of what follows, d_best, d_kth and stream */
    bounds *bounds_sets;
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define TRY(what, call)                                             \
    do {                                                            \
        const gx_status st_ = gx_cuda_status((call), (what), err);  \
        if (st_ != GX_OK)                                           \
            return st_;                                             \
    } while (0)

template <typename T> static cudaError_t device_alloc(T **out, uint64_t n)
{
    return cudaMalloc((void **)out, n ? n * sizeof(T) : sizeof(T));
}

static uint64_t candidate_room(const gx_index *ix)
{
    const uint64_t all = (uint64_t)ix->n_docs * 1024;
    const uint64_t room = all < MAX_CANDIDATES ? all : MAX_CANDIDATES, two = 2ull * ix->n_docs + 1; /* AND, then OR */
    return room > two ? room : two;
}

static uint64_t answer_room(const gx_index *ix)
{
    return 2ull * ix->n_docs > MAX_ANSWERS ? 2ull * ix->n_docs : MAX_ANSWERS;
}

static uint32_t most_item_blocks(const gx_index *ix)
{
    const uint32_t n = 4096 / ix->block_len;
    return n < 1 ? 1 : n > MAX_ITEM_BLOCKS ? MAX_ITEM_BLOCKS : n;
}

static uint64_t item_room(const gx_index *ix)
{
    const uint64_t one = 2 * (ix->n_blocks / most_item_blocks(ix) + 2 * GX_MAX_TERMS); /* any one query, twice */
    const uint64_t many = one < MAX_ITEMS / 64 ? 64 * one : MAX_ITEMS;
    return one > many ? one : many;
}

static uint64_t exec_bytes(const gx_index *ix)
{
    const uint64_t part = MAX_QUERIES * (sizeof(gpu_query) + sizeof(gpu_query_state) + BINS * 4) + MAX_TERMS * sizeof(gpu_term) +
                          MAX_RUNS * sizeof(gpu_run) + item_room(ix) * sizeof(gpu_item) + (candidate_room(ix) + answer_room(ix)) * 8;
    return N_PARTS * part;
}

static uint32_t map_shift_for(uint32_t n_docs, uint32_t df, uint32_t slots)
{
    uint32_t shift = 0;
    while (shift < 24 && n_docs >> (shift + 1) >= (uint64_t)slots * df)
        ++shift;
    return shift;
}

/* Words of a map, of the ranks behind it if it is dense, and of the tf classes; each in whole sectors of 32 bytes. */
static uint64_t slot_words(uint32_t n_docs, uint32_t shift)
{
    const uint64_t words = (uint64_t)((n_docs - 1) >> shift) / 32 + 1, whole = shift == EXACT_SLOTS ? RANK_WORDS : 8;
    return (words + whole - 1) / whole * whole;
}
static uint64_t rank_words(uint32_t n_docs) { return ((uint64_t)(n_docs - 1) / (32 * RANK_WORDS) + 8) & ~7ull; }
static uint64_t class_words(uint32_t n_docs, uint32_t shift) { return ((uint64_t)((n_docs - 1) >> shift) / 16 + 8) & ~7ull; }

static uint64_t presence_words(uint32_t n_docs, uint32_t shift)
{
    return slot_words(n_docs, shift) + (shift == EXACT_SLOTS ? rank_words(n_docs) : 0);
}

/* Which lists are long. */
static gx_status find_long_lists(gpu_state *s, gx_error *err)
{
    const gx_index *ix = s->ix;
    uint64_t n = 0;
    for (uint32_t i = 0; i < ix->n_terms; ++i)
        n += ix->lists[i].df >= LONG_DF;
    s->long_of = (uint32_t *)malloc((ix->n_terms + 1ull) * sizeof *s->long_of);
    s->longs = (long_list *)calloc(n + 1, sizeof *s->longs);
    if (!s->long_of || !s->longs)
        return gx_fail(err, GX_ENOMEM, "no memory for the directory of %u lists", ix->n_terms);
    s->table_words = 4; /* the first stand for "no table" */
    for (uint32_t i = 0; i < ix->n_terms; ++i) {
        const uint32_t df = ix->lists[i].df, n_blocks = (df - 1) / ix->block_len + 1;
        s->long_of[i] = UINT32_MAX;
        if (df < LONG_DF)
            continue;
        long_list *l = &s->longs[s->n_long];
        s->long_of[i] = s->n_long++;
        *l = {i, 0, NO_TABLE_SHIFT, 0, NO_MAP_SHIFT, NO_CLASSES, {0, 0}};
        if (n_blocks > TABLE_BLOCKS) {
            uint32_t shift = 0;
            while ((ix->n_docs >> (shift + 1)) >= n_blocks / 16)
                ++shift;
            const uint64_t entries = ((ix->n_docs - 1) >> shift) + 1;
            if (s->table_words + entries < UINT32_MAX) {
                l->table = (uint32_t)s->table_words;
                l->table_shift = shift;
                s->table_words += entries;
            }
        }
    }
    return GX_OK;
}

struct by_length {
    uint32_t df, number;
};

static int longest_first(const void *a, const void *b)
{
    const by_length *x = (const by_length *)a, *y = (const by_length *)b;
    return x->df != y->df ? (x->df > y->df ? -1 : 1) : (x->number > y->number) - (x->number < y->number);
}

/* Give maps to lists, longest first, within so many words: presence for all, then tf classes and finer slots. */
static gx_status plan_maps(gpu_state *s, uint64_t words, gx_error *err)
{
    const uint32_t n_docs = s->ix->n_docs;
    by_length *order = (by_length *)malloc((s->n_long + 1ull) * sizeof *order);
    if (!order)
        return gx_fail(err, GX_ENOMEM, "no memory for the order of %u lists", s->n_long);
    for (uint32_t i = 0; i < s->n_long; ++i)
        order[i] = {s->ix->lists[s->longs[i].list].df, i};
    qsort(order, s->n_long, sizeof *order, longest_first);
    words = words < UINT32_MAX - 64 ? words : UINT32_MAX - 64; /* offsets have 32 bits */
    uint32_t slots = SLOTS, with_map = 0, with_classes = 0;
    uint64_t used = 8; /* the first stand for "no map" */
    for (;; slots /= 2, with_map = 0, used = 8) { /* rather coarser maps than lists without one */
        for (; with_map < s->n_long; ++with_map) {
            const uint64_t more = presence_words(n_docs, map_shift_for(n_docs, order[with_map].df, slots));
            if (used + more > words)
                break;
            used += more;
        }
        if (with_map == s->n_long || slots == 1)
            break;
    }
    for (; with_classes < with_map; ++with_classes) {
        const uint32_t df = order[with_classes].df, shift = map_shift_for(n_docs, df, FINE_SLOTS);
        const uint64_t more = presence_words(n_docs, shift) + class_words(n_docs, shift) -
                              presence_words(n_docs, map_shift_for(n_docs, df, slots));
        if (used + more > words)
            break;
        used += more;
    }
    s->map_words = 8;
    for (uint32_t i = 0; i < with_map; ++i) {
        long_list *l = &s->longs[order[i].number];
        l->map_shift = map_shift_for(n_docs, order[i].df, i < with_classes ? FINE_SLOTS : slots);
        l->map = (uint32_t)s->map_words;
        s->map_words += presence_words(n_docs, l->map_shift);
        if (i < with_classes) {
            l->classes = (uint32_t)s->map_words;
            s->map_words += class_words(n_docs, l->map_shift);
        }
    }
    free(order);
    return GX_OK;
}

/* The one codec of all lists, or CODING_ANY. */
static uint32_t find_coding(const gx_header *h, gpu_codings *codings)
{
    const uint32_t any = CODING_ANY;
    uint32_t coding = UINT32_MAX;
    memcpy(codings->of, h->codings, sizeof codings->of);
    for (uint32_t i = 0; i < GX_MAX_CODINGS; ++i) {
        const gx_coding c = h->codings[i];
        if (c.docids == 0)
            continue;
        const uint32_t one = c.docids == c.tfs ? (uint32_t)c.docids : any;
        coding = coding == UINT32_MAX || coding == one ? one : any;
    }
    return coding == UINT32_MAX ? any : coding;
}

/* Copy the device sections and point X at them. */
static gx_status upload_index(gpu_state *s, gx_error *err)
{
    const gx_index *ix = s->ix;
    const gx_header *h = ix->header;
    TRY("memory for the index", device_alloc(&s->arena, h->device_bytes + 2 * GX_READ_SLACK));
    TRY("clearing memory", cudaMemset(s->arena + h->device_bytes, 0, 2 * GX_READ_SLACK));
    const gx_status st = gx_device_upload(s->device, s->arena, ix->file + h->device_offset, h->device_bytes, err);
    if (st != GX_OK)
        return st;
    const uint8_t *base = ix->file + h->device_offset;
    s->X.lists = (const gx_list_entry *)(s->arena + ((const uint8_t *)ix->lists - base));
    s->X.heads = (const uint32_t *)(s->arena + ((const uint8_t *)ix->heads - base));
    s->X.docid_ends = (const uint32_t *)(s->arena + ((const uint8_t *)ix->docid_ends - base));
    s->X.tf_ends = (const uint32_t *)(s->arena + ((const uint8_t *)ix->tf_ends - base));
    s->X.payload = (const uint32_t *)(s->arena + ((const uint8_t *)ix->payload - base));
    s->X.doc_lens = (const uint32_t *)(s->arena + ((const uint8_t *)ix->doc_lens - base));
    s->X.n_docs = ix->n_docs;
    s->X.n_terms = ix->n_terms;
    s->X.block_len = ix->block_len;
    return GX_OK;
}

/* Memory for what is derived, within limit bytes; the tables and maps filled. */
static gx_status derive(gpu_state *s, uint64_t limit, uint64_t map_memory, gx_error *err)
{
    const gx_index *ix = s->ix;
    gx_status st = find_long_lists(s, err);
    if (st != GX_OK)
        return st;
    const uint64_t fixed = ix->header->device_bytes + s->table_words * 4 + ix->n_terms * 8ull +
                           s->n_long * (sizeof(long_list) + N_KTH) + exec_bytes(ix) + (1u << 20);
    if (fixed > limit)
        return gx_fail(err, GX_ENOGPU, "the index needs %.1f MiB of GPU memory and %.1f MiB may be used; use the CPU engine%s",
                       (double)fixed / 1048576, (double)limit / 1048576, ", or allow more");
    /* Half of what remains is left to further sessions. */
    const uint64_t others = exec_bytes(ix) < (limit - fixed) / 2 ? exec_bytes(ix) : (limit - fixed) / 2;
    const uint64_t map_bytes = limit - fixed - others < map_memory ? limit - fixed - others : map_memory;
    if ((st = plan_maps(s, map_bytes / 4, err)) != GX_OK)
        return st;
    TRY("memory for tables", device_alloc(&s->tables, s->table_words));
    TRY("memory for maps", device_alloc(&s->maps, s->map_words));
    TRY("memory for the directory", device_alloc(&s->d_long_of, ix->n_terms));
    TRY("memory for the directory", device_alloc(&s->d_longs, s->n_long));
    TRY("memory for bounds", device_alloc(&s->d_best, ix->n_terms));
    TRY("memory for bounds", device_alloc(&s->d_kth, (uint64_t)s->n_long * N_KTH));
    s->X.tables = s->tables;
    s->X.maps = s->maps;
    s->X.rank_offset = ix->n_docs ? (uint32_t)slot_words(ix->n_docs, EXACT_SLOTS) : 0;
    TRY("clearing maps", cudaMemsetAsync(s->tables, 0, s->table_words * 4, s->stream));
    TRY("clearing maps", cudaMemsetAsync(s->maps, 0, s->map_words * 4, s->stream));
    TRY("clearing maps", cudaMemsetAsync(s->maps, 0xff, 16, s->stream));
    TRY("copying the directory", cudaMemcpyAsync(s->d_long_of, s->long_of, ix->n_terms * 4ull, cudaMemcpyHostToDevice, s->stream));
    TRY("copying the directory", cudaMemcpyAsync(s->d_longs, s->longs, s->n_long * sizeof(long_list), cudaMemcpyHostToDevice, s->stream));
    derive_tables(s->X, s->d_longs, s->n_long, s->tables, s->stream);
    derive_maps(s->X, s->coding, s->codings, s->d_longs, s->n_long, s->maps, s->stream);
    TRY("starting to build maps", cudaGetLastError());
    TRY("building maps", cudaStreamSynchronize(s->stream));
    return GX_OK;
}

static void free_bounds(bounds *b)
{
    if (b) {
        free(b->best);
        free(b->kth);
        free(b);
    }
}

static void cuda_state_close(void *state)
{
    gpu_state *s = (gpu_state *)state;
    if (!s)
        return;
    (void)cudaSetDevice(s->device);
    for (bounds *b = s->bounds_sets, *next; b; b = next) {
        next = b->next;
        free_bounds(b);
    }
    void *const memory[] = {s->arena, s->tables, s->maps, s->d_long_of, s->d_longs, s->d_best, s->d_kth};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i)
        (void)cudaFree(memory[i]);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
    (void)cudaGetLastError();
    free(s->long_of);
    free(s->longs);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static gx_status open_state(gpu_state *s, const gx_engine_options *opt, gx_error *err)
{
    cudaDeviceProp p;
    size_t have = 0, total = 0;
    gx_status st = gx_device_use(s->device, err);
    if (st != GX_OK)
        return st;
    TRY("asking for its properties", cudaGetDeviceProperties(&p, s->device));
    TRY("asking for its memory", cudaMemGetInfo(&have, &total));
    s->multiprocessors = (uint32_t)p.multiProcessorCount;
    for (const gx_coding &c : s->ix->header->codings) {
        const gx_codec *docids = gx_codec_by_id(c.docids), *tfs = gx_codec_by_id(c.tfs);
        if (c.docids && !(codec_known(c.docids) && codec_known(c.tfs)))
            return gx_fail(err, GX_ENOGPU, "the GPU engine has no decoder for lists of codecs %s and %s; use the CPU engine",
                           docids ? docids->name : "?", tfs ? tfs->name : "?");
    }
    s->coding = find_coding(s->ix->header, &s->codings);
    uint64_t limit = have > RESERVE ? have - RESERVE : 0;
    if (opt->device_memory && opt->device_memory < limit)
        limit = opt->device_memory;
    if (s->ix->header->device_bytes + exec_bytes(s->ix) > limit)
        return gx_fail(err, GX_ENOGPU, "the index needs %.1f MiB of memory on GPU %d (%s) and %.1f MiB may be used; use the CPU engine, "
                                       "or allow more",
                       (double)(s->ix->header->device_bytes + exec_bytes(s->ix)) / 1048576, s->device, p.name,
                       (double)limit / 1048576);
    TRY("making a stream", cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    if ((st = upload_index(s, err)) != GX_OK || (st = derive(s, limit, opt->map_memory, err)) != GX_OK)
        return st;
    s->grid = search_grid(s->coding, s->multiprocessors);
    snprintf(s->description, sizeof s->description, "GPU %d: %s", s->device, p.name);
    return GX_OK;
}

static gx_status cuda_state_open(void **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err)
{
    *out = NULL;
    gpu_state *s = (gpu_state *)calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU engine");
    s->ix = ix;
    s->device = opt ? opt->device : 0;
    pthread_mutex_init(&s->lock, NULL);
    const gx_engine_options defaults = {sizeof defaults, GX_ENGINE_AUTO, 0, 0, UINT64_MAX};
    const gx_status st = open_state(s, opt ? opt : &defaults, err);
    if (st != GX_OK) {
        cuda_state_close(s);
        return st;
    }
    *out = s;
    return GX_OK;
}

static const char *cuda_describe(const void *state)
{
    return ((const gpu_state *)state)->description;
}

/* ---- bounds ---- */

static gx_status compute_bounds(gpu_state *s, bounds *b, gx_error *err)
{
    const bounds_args args = {s->d_long_of, b->norm, s->d_best, s->d_kth};
    derive_bounds(s->X, s->coding, s->codings, args, s->stream);
    TRY("starting to compute bounds", cudaGetLastError());
    TRY("copying bounds", cudaMemcpyAsync(b->best, s->d_best, s->ix->n_terms * sizeof(float), cudaMemcpyDeviceToHost, s->stream));
    TRY("copying bounds", cudaMemcpyAsync(b->kth, s->d_kth, (size_t)s->n_long * N_KTH, cudaMemcpyDeviceToHost, s->stream));
    TRY("computing bounds", cudaStreamSynchronize(s->stream));
    return GX_OK;
}

static bool same_norm(gx_norm a, gx_norm b) { return a.c0 == b.c0 && a.c1 == b.c1 && a.lossy == b.lossy; }

/* The bounds for norm, computed if they are new; to be given back. */
static gx_status take_bounds(gpu_state *s, gx_norm norm, bounds **out, gx_error *err)
{
    gx_status st = GX_OK;
    pthread_mutex_lock(&s->lock);
    bounds **at = &s->bounds_sets, *b;
    int n = 0;
    while (*at && !same_norm((*at)->norm, norm)) {
        at = &(*at)->next;
        ++n;
    }
    if ((b = *at) != NULL) {
        *at = b->next; /* to the front */
    } else {
        if ((b = (bounds *)calloc(1, sizeof *b)) != NULL) {
            b->norm = norm;
            b->best = (float *)malloc((s->ix->n_terms + 1ull) * sizeof(float));
            b->kth = (uint8_t *)malloc((s->n_long + 1ull) * N_KTH);
        }
        if (!b || !b->best || !b->kth)
            st = gx_fail(err, GX_ENOMEM, "no memory for the bounds of %u lists", s->ix->n_terms);
        else
            st = compute_bounds(s, b, err);
        for (at = &s->bounds_sets; st == GX_OK && n >= KEPT_BOUNDS && *at;) { /* the oldest unused go */
            bounds *old = *at;
            if (old->users == 0 && !old->next) {
                *at = NULL;
                free_bounds(old);
                break;
            }
            at = &old->next;
        }
    }
    if (st == GX_OK) {
        b->next = s->bounds_sets;
        s->bounds_sets = b;
        b->users += 1;
        *out = b;
    } else {
        free_bounds(b);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static void give_bounds(gpu_state *s, bounds *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&s->lock);
    b->users -= 1;
    pthread_mutex_unlock(&s->lock);
}

/* ---- an exec: a thread's workspace ---- */

/* A query to be answered. */
struct job {
    uint32_t plan;      /* number of the plan */
    gx_op op;
    bool roomy;         /* room for every document: it overflowed before */
    uint32_t threshold; /* that it reached then */
};

/* Where a job's queries are in its part. */
struct placed {
    job j;
    uint32_t first, second; /* of AND-then-OR: AND, OR; else second is NO_QUERY */
};

struct part {
    bool busy;
    uint32_t n_jobs, n_queries, n_first, n_terms, n_runs, n_items;
    uint32_t items_end[N_LAUNCHES]; /* of each launch */
    uint64_t n_candidates, n_answers;
    bool any_exhaustive, any_select;
    bool timed;               /* events and counts are taken: not of a few queries alone */
    bool direct;              /* answers are written to host memory as they are found */
    placed *jobs;             /* [MAX_QUERIES] */
    gpu_query *queries;       /* pinned, [MAX_QUERIES] */
    gpu_term *terms;          /* pinned, [MAX_TERMS] */
    gpu_run *runs;            /* pinned, [MAX_RUNS] */
    gpu_query_state *results; /* pinned, [MAX_QUERIES]; written by the device */
    uint64_t *answers;        /* pinned, [MAX_ANSWERS]; written by the device, if direct */
    char *few;                /* pinned, [FEW_BYTES]: all that a search of a few queries needs */
    unsigned long long *counts; /* pinned, [N_COUNTS] */
    char *d_few;
    gpu_query *d_queries;
    gpu_term *d_terms;
    gpu_run *d_runs;
    gpu_item *d_items;
    gpu_query_state *d_states;
    uint32_t *d_histograms, *d_next;
    unsigned long long *d_candidates, *d_answers, *d_counts;
    void *sort_scratch; /* for k > SORTED_K */
    size_t sort_bytes;
    cudaStream_t stream;
    cudaEvent_t events[4]; /* copied in, searched, selected, copied out */
};

struct gpu_exec {
    gpu_state *s;
    part parts[N_PARTS];
    uint64_t candidate_room, answer_room, item_room;
    bounds *bounds_used[KEPT_BOUNDS]; /* by the run under way */
    uint32_t n_bounds_used;
    job *again; /* jobs that overflowed */
    uint32_t n_again, max_again;
};

static void close_part(part *p)
{
    void *const pinned[] = {p->queries, p->terms, p->runs, p->results, p->answers, p->few, p->counts};
    void *const device[] = {p->d_few, p->d_queries, p->d_terms, p->d_runs, p->d_items, p->d_states, p->d_histograms,
                            p->d_next, p->d_candidates, p->d_answers, p->d_counts, p->sort_scratch};
    if (p->stream)
        (void)cudaStreamSynchronize(p->stream);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; ++i)
        (void)cudaFreeHost(pinned[i]);
    for (size_t i = 0; i < sizeof device / sizeof *device; ++i)
        (void)cudaFree(device[i]);
    for (cudaEvent_t e : p->events) {
        if (e)
            (void)cudaEventDestroy(e);
    }
    if (p->stream)
        (void)cudaStreamDestroy(p->stream);
    free(p->jobs);
}

static void cuda_exec_close(void *exec)
{
    gpu_exec *x = (gpu_exec *)exec;
    if (!x)
        return;
    (void)cudaSetDevice(x->s->device);
    for (part &p : x->parts)
        close_part(&p);
    (void)cudaGetLastError();
    free(x->again);
    free(x);
}

template <typename T> static cudaError_t pinned_alloc(T **out, uint64_t n)
{
    return cudaHostAlloc((void **)out, n * sizeof(T), cudaHostAllocMapped);
}

static gx_status open_part(gpu_exec *x, part *p, gx_error *err)
{
    const uint64_t answers = x->answer_room < MAX_ANSWERS ? x->answer_room : MAX_ANSWERS;
    p->jobs = (placed *)malloc(MAX_QUERIES * sizeof *p->jobs);
    if (!p->jobs)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    TRY("pinned memory", pinned_alloc(&p->queries, MAX_QUERIES));
    TRY("pinned memory", pinned_alloc(&p->terms, MAX_TERMS));
    TRY("pinned memory", pinned_alloc(&p->runs, MAX_RUNS));
    TRY("pinned memory", pinned_alloc(&p->results, MAX_QUERIES));
    TRY("pinned memory", pinned_alloc(&p->few, FEW_BYTES));
    TRY("memory for a session", device_alloc(&p->d_few, FEW_BYTES));
    TRY("pinned memory", pinned_alloc(&p->answers, answers));
    TRY("pinned memory", pinned_alloc(&p->counts, N_COUNTS));
    TRY("memory for a session", device_alloc(&p->d_queries, MAX_QUERIES));
    TRY("memory for a session", device_alloc(&p->d_terms, MAX_TERMS));
    TRY("memory for a session", device_alloc(&p->d_runs, MAX_RUNS));
    TRY("memory for a session", device_alloc(&p->d_items, x->item_room));
    TRY("memory for a session", device_alloc(&p->d_states, MAX_QUERIES));
    TRY("memory for a session", device_alloc(&p->d_histograms, MAX_QUERIES * BINS));
    TRY("memory for a session", device_alloc(&p->d_next, N_LAUNCHES));
    TRY("memory for a session", device_alloc(&p->d_candidates, x->candidate_room));
    TRY("memory for a session", device_alloc(&p->d_answers, x->answer_room));
    TRY("memory for a session", device_alloc(&p->d_counts, N_COUNTS));
    TRY("making a stream", cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    for (int i = 0; i < 4; ++i)
        TRY("making an event", cudaEventCreateWithFlags(&p->events[i], i == 3 ? cudaEventDisableTiming : cudaEventDefault));
    return GX_OK;
}

static gx_status cuda_exec_open(void **out, void *state, gx_error *err)
{
    gpu_state *s = (gpu_state *)state;
    *out = NULL;
    TRY("choosing it", cudaSetDevice(s->device));
    gpu_exec *x = (gpu_exec *)calloc(1, sizeof *x);
    if (!x)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    x->s = s;
    x->candidate_room = candidate_room(s->ix);
    x->answer_room = answer_room(s->ix);
    x->item_room = item_room(s->ix);
    gx_status st = GX_OK;
    for (int i = 0; i < N_PARTS && st == GX_OK; ++i)
        st = open_part(x, &x->parts[i], err);
    if (st != GX_OK) {
        cuda_exec_close(x);
        return st;
    }
    *out = x;
    return GX_OK;
}

/* ---- describing queries ---- */

static void describe_term(const gpu_state *s, const gx_plan_term *t, uint32_t query, gpu_term *out)
{
    const gx_index *ix = s->ix;
    const gx_list_entry *e = &ix->lists[t->list];
    const uint32_t n_blocks = (e->df - 1) / ix->block_len + 1, number = s->long_of[t->list];
    const gx_coding c = ix->header->codings[e->coding];
    out->at = {e->first_block, n_blocks, 0, NO_TABLE_SHIFT};
    out->payload = {(uint64_t)e->payload_hi << 32 | e->payload_lo, ix->docid_ends[e->first_block + n_blocks - 1], e->df};
    out->filter = {0, NO_MAP_SHIFT, 0, NO_CLASSES};
    out->weight = {t->w, 0, query, c.docids | (uint32_t)e->docid_param << 8 | (uint32_t)c.tfs << 16 | (uint32_t)e->tf_param << 24};
    if (number != UINT32_MAX) {
        const long_list *l = &s->longs[number];
        out->at.table = l->table;
        out->at.table_shift = l->table_shift;
        out->filter.map = l->map;
        out->filter.map_shift = l->map_shift;
        out->filter.classes = l->classes;
    }
}

/* No impact of weight w is greater, given the greatest tf / (tf + K): both sides are within 2^-21 of the exact values. */
static uint32_t list_bound(float w, float best)
{
    return (uint32_t)ceil((double)w * best * (1 + 0x1p-20)) + 2;
}

/* At least k of the list's postings have this impact or more; 1 if nothing better is known. */
static uint32_t kth_impact(const gpu_state *s, const bounds *b, const gx_plan_term *t, uint32_t k)
{
    const uint32_t number = s->long_of[t->list];
    if (number == UINT32_MAX || t->df < k)
        return 1;
    for (uint32_t i = 0; i < N_KTH; ++i) {
        if (kth_at[i] >= k) {
            const double x = (double)t->w * b->kth[(size_t)number * N_KTH + i] / 256 * (1 - 0x1p-20) - 2;
            return x > 1 ? (uint32_t)x : 1;
        }
    }
    return 1;
}

/* Lists by falling bound, the longer later: an insertion sort for the few, qsort for the many. */
static int by_bound(const void *a, const void *b)
{
    const gpu_term *x = (const gpu_term *)a, *y = (const gpu_term *)b;
    if (x->filter.bound != y->filter.bound)
        return x->filter.bound > y->filter.bound ? -1 : 1;
    if (x->payload.df != y->payload.df)
        return x->payload.df < y->payload.df ? -1 : 1;
    return (x->at.first_block > y->at.first_block) - (x->at.first_block < y->at.first_block);
}

static void sort_terms(gpu_term *t, uint32_t n)
{
    if (n > 16) {
        qsort(t, n, sizeof *t, by_bound);
        return;
    }
    for (uint32_t i = 1; i < n; ++i) {
        const gpu_term x = t[i];
        uint32_t j = i;
        for (; j > 0 && by_bound(&x, &t[j - 1]) < 0; --j)
            t[j] = t[j - 1];
        t[j] = x;
    }
}

/* Fill in one query of the part. drivers: lists that make items. */
static void describe_query(gpu_exec *x, part *p, const gx_plan *plan, const bounds *b, const job *j, bool all, uint32_t after,
                           uint32_t *drivers)
{
    const gpu_state *s = x->s;
    const uint32_t q = p->n_queries++, n = plan->n_terms;
    gpu_query *Q = &p->queries[q];
    gpu_term *t = &p->terms[p->n_terms];
    memset(Q, 0, sizeof *Q);
    Q->n_terms = n;
    Q->first_term = p->n_terms;
    Q->flags = (all ? QUERY_AND : 0) | (plan->prune ? 0 : QUERY_EXHAUSTIVE);
    Q->k = plan->k;
    Q->after = after;
    Q->c0 = plan->norm.c0;
    Q->c1 = plan->norm.c1;
    Q->lossy = plan->norm.lossy;
    Q->least_K = gx_bm25_K(plan->norm, s->ix->min_doc_len);
    Q->step = plan->k / 8 > 1 ? plan->k / 8 : 1;
    uint64_t room = j->roomy || !plan->prune ? s->ix->n_docs : 4096 + 4ull * plan->k;
    room = room < s->ix->n_docs ? room : s->ix->n_docs;
    Q->capacity = (uint32_t)room;
    Q->candidates = p->n_candidates;
    Q->answer = p->n_answers;
    p->n_candidates += room;
    p->n_answers += plan->k;
    p->n_terms += n;
    for (uint32_t i = 0; i < n; ++i)
        describe_term(s, &plan->terms[i], q, &t[i]);
    *drivers = 0;
    Q->first_threshold = 1;
    if (!plan->prune) {
        p->any_exhaustive = true;
        return;
    }
    p->any_select |= plan->k > QUICK_K;
    uint32_t total = 0, first = j->threshold > 1 ? j->threshold : 1;
    for (uint32_t i = 0; i < n; ++i) {
        t[i].filter.bound = list_bound(plan->terms[i].w, b->best[plan->terms[i].list]);
        total += t[i].filter.bound;
        const uint32_t kth = all && n > 1 ? 1 : kth_impact(s, b, &plan->terms[i], plan->k);
        first = first > kth ? first : kth;
    }
    if (!all)
        sort_terms(t, n);
    uint32_t rest = total;
    for (uint32_t i = 0; i < n; ++i) {
        if (rest >= first && (!all || i == 0))
            *drivers = i + 1;
        rest -= t[i].filter.bound;
        t[i].weight.rest = rest;
    }
    Q->first_threshold = first;
    Q->bin_base = float_bits((float)first) - 1; /* at most one step above what rounding down gives */
    const uint32_t range = float_bits((float)total) + 1 - Q->bin_base;
    while (range >> Q->bin_shift >= BINS)
        ++Q->bin_shift;
}

/* The runs that make items of queries [first, first + n), of the long ones or the others: list by list in their order, so that every query's threshold
 * rises early; of a list first a chunk, then another, then two, four, eight, ... */
static void describe_items(part *p, uint32_t first, uint32_t n, bool are_long, const uint32_t *drivers, uint32_t item_blocks,
                           uint32_t *active)
{
    uint32_t n_active = 0, deepest = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (drivers[first + i] && (p->queries[first + i].n_terms > NEAR_TERMS) == are_long) {
            active[n_active++] = first + i;
            deepest = deepest > drivers[first + i] ? deepest : drivers[first + i];
        }
    }
    for (uint32_t r = 0; r < deepest; ++r) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < n_active; ++i) {
            if (drivers[active[i]] > r)
                active[kept++] = active[i];
        }
        n_active = kept;
        bool more = true;
        for (uint32_t from = 0, size = 1; more; from += size, size = from > 1 ? from : 1) {
            more = false;
            for (uint32_t i = 0; i < n_active; ++i) {
                gpu_query *Q = &p->queries[active[i]];
                const uint32_t term = Q->first_term + r;
                const uint32_t chunks = (p->terms[term].at.n_blocks + item_blocks - 1) / item_blocks;
                if (from >= chunks)
                    continue;
                const uint32_t step = from > 1 ? from : 1, count = chunks - from < step ? chunks - from : step;
                p->runs[p->n_runs++] = {term, from, p->n_items};
                p->n_items += count;
                Q->n_items += count;
                more |= from + count < chunks;
            }
        }
    }
}

/* Most runs that a list of n blocks can make: 2 + log2 of its chunks. */
static uint32_t runs_of(uint32_t n_blocks)
{
    return 34 - (uint32_t)__builtin_clz(n_blocks);
}

/* What a job takes of a part. */
struct need {
    uint64_t queries, terms, runs, items, candidates, answers;
};

static need job_need(const gpu_exec *x, const gx_plan *plan, const job *j)
{
    const gx_index *ix = x->s->ix;
    const uint32_t times = j->op == GX_OP_AND_OR ? 2 : 1, blocks = most_item_blocks(ix);
    uint64_t room = j->roomy || !plan->prune ? ix->n_docs : 4096 + 4ull * plan->k;
    room = room < ix->n_docs ? room : ix->n_docs;
    need n = {times, times * plan->n_terms, 0, 0, times * room, times * (uint64_t)plan->k};
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const uint32_t b = (plan->terms[i].df - 1) / ix->block_len + 1;
        n.runs += times * runs_of(b);
        n.items += times * ((b + blocks - 1) / blocks);
    }
    return n;
}

/* ---- running a part ---- */

/* Before the part's first launch; it is not under way. */
static gx_status reserve_sort(part *p, uint32_t k, gx_error *err)
{
    const size_t bytes = sort_scratch_bytes(k);
    if (p->sort_scratch && bytes <= p->sort_bytes)
        return GX_OK;
    (void)cudaFree(p->sort_scratch);
    p->sort_scratch = NULL;
    TRY("memory for sorting results", cudaMalloc(&p->sort_scratch, bytes));
    p->sort_bytes = bytes;
    return GX_OK;
}

static uint32_t choose_item_blocks(const gpu_exec *x, const part *p, const uint32_t *drivers)
{
    uint64_t blocks = 0;
    const uint32_t most = most_item_blocks(x->s->ix), warps = x->s->grid * 8;
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        for (uint32_t i = 0; i < drivers[q]; ++i)
            blocks += p->terms[p->queries[q].first_term + i].at.n_blocks;
    }
    uint32_t n = 1;
    while (n < most && blocks / (2 * n) >= (p->n_jobs <= FEW_QUERIES ? 1ull : 4ull) * warps)
        n *= 2;
    while (n < most && blocks / n + p->n_terms > x->item_room)
        n *= 2;
    return n < most ? n : most;
}

/* A part of a few queries: all of it in one copy, made ready by the host. False: it does not fit. */
static bool pack_few(part *p, uint32_t item_blocks, gpu_batch *R, size_t *bytes)
{
    const size_t n = p->n_queries, terms = n * sizeof(gpu_query), states = terms + p->n_terms * sizeof(gpu_term);
    const size_t next = states + n * sizeof(gpu_query_state), counts = next + N_LAUNCHES * 4;
    const size_t histograms = counts + N_COUNTS * 8, items = histograms + n * BINS * 4;
    static_assert(N_LAUNCHES * 4 % 16 == 0 && N_COUNTS * 8 % 16 == 0, "pieces of 16 bytes");
    *bytes = items + (size_t)p->n_items * sizeof(gpu_item);
    if (p->n_jobs > FEW_QUERIES || *bytes > FEW_BYTES || p->any_exhaustive)
        return false;
    memcpy(p->few, p->queries, terms);
    memcpy(p->few + terms, p->terms, states - terms);
    gpu_query_state *st = (gpu_query_state *)(p->few + states);
    for (size_t q = 0; q < n; ++q)
        st[q] = {p->queries[q].first_threshold, 0, 0, 0};
    memset(p->few + next, 0, items - next);
    gpu_item *item = (gpu_item *)(p->few + items);
    for (uint32_t r = 0; r < p->n_runs; ++r) {
        const gpu_run run = p->runs[r];
        const uint32_t end = r + 1 < p->n_runs ? p->runs[r + 1].item : p->n_items;
        const gpu_term *t = &p->terms[run.term];
        for (uint32_t i = run.item; i < end; ++i)
            item[i] = make_item(run.term, t->at, t->weight.query, &p->queries[t->weight.query], run.first + i - run.item, item_blocks);
    }
    char *d = p->d_few;
    R->queries = (const gpu_query *)d;
    R->terms = (const gpu_term *)(d + terms);
    R->states = (gpu_query_state *)(d + states);
    R->next_item = (uint32_t *)(d + next);
    R->counts = (unsigned long long *)(d + counts);
    R->histograms = (uint32_t *)(d + histograms);
    R->items = (const gpu_item *)(d + items);
    return true;
}

/* Copy the part in; its items, states and histograms are made by the device. */
static gx_status send_many(part *p, uint32_t item_blocks, const gpu_batch &R, gx_error *err)
{
    const cudaStream_t stream = p->stream;
    TRY("copying queries", cudaMemcpyAsync(p->d_queries, p->queries, p->n_queries * sizeof *p->queries, cudaMemcpyHostToDevice, stream));
    TRY("copying queries", cudaMemcpyAsync(p->d_terms, p->terms, p->n_terms * sizeof *p->terms, cudaMemcpyHostToDevice, stream));
    TRY("copying queries", cudaMemcpyAsync(p->d_runs, p->runs, p->n_runs * sizeof *p->runs, cudaMemcpyHostToDevice, stream));
    if (p->timed)
        TRY("timing", cudaEventRecord(p->events[0], stream));
    begin_batch(R, p->d_runs, p->n_runs, p->n_queries, p->d_items, p->n_items, item_blocks, stream);
    return GX_OK;
}

/* Sort the answers that select left unsorted, by way of their own candidates, which are not needed any more. */
static gx_status sort_large(part *p, gx_error *err)
{
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        const gpu_query *Q = &p->queries[q];
        if (Q->k <= SORTED_K)
            continue;
        TRY("sorting results", sort_keys(p->sort_scratch, p->sort_bytes, p->d_answers + Q->answer, p->d_candidates + Q->candidates,
                                         Q->k, p->stream));
        TRY("sorting results", cudaMemcpyAsync(p->d_answers + Q->answer, p->d_candidates + Q->candidates, (size_t)Q->k * 8,
                                               cudaMemcpyDeviceToDevice, p->stream));
    }
    return GX_OK;
}

static gx_status launch_part(gpu_exec *x, part *p, const uint32_t *drivers, uint32_t *active, gx_error *err)
{
    const gpu_state *s = x->s;
    const cudaStream_t stream = p->stream;
    gx_status st = GX_OK;
    uint32_t greatest_sorted = 0;
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        if (p->queries[q].k > SORTED_K && p->queries[q].k > greatest_sorted)
            greatest_sorted = p->queries[q].k;
    }
    if (greatest_sorted && (st = reserve_sort(p, greatest_sorted, err)) != GX_OK)
        return st;
    p->direct = !greatest_sorted && p->n_answers <= MAX_ANSWERS;
    p->timed = p->n_jobs > FEW_QUERIES;
    const uint32_t item_blocks = choose_item_blocks(x, p, drivers);
    for (uint32_t l = 0; l < N_LAUNCHES; ++l) {
        const uint32_t first = l < 2 ? 0 : p->n_first, n = l < 2 ? p->n_first : p->n_queries - p->n_first;
        describe_items(p, first, n, l % 2, drivers, item_blocks, active);
        p->items_end[l] = p->n_items;
    }

    gpu_batch R = {p->d_queries, p->d_terms, p->d_items, 0, p->d_next, p->d_states, p->d_histograms, p->d_candidates,
                   p->direct ? (unsigned long long *)p->answers : p->d_answers, p->results, p->d_counts};
    size_t few_bytes = 0;
    if (pack_few(p, item_blocks, &R, &few_bytes))
        TRY("copying queries", cudaMemcpyAsync(p->d_few, p->few, few_bytes, cudaMemcpyHostToDevice, stream));
    else if ((st = send_many(p, item_blocks, R, err)) != GX_OK)
        return st;
    const gpu_item *items = R.items;
    uint32_t *next_item = R.next_item;
    for (uint32_t l = 0; l < N_LAUNCHES; ++l) {
        const uint32_t begin = l ? p->items_end[l - 1] : 0;
        R.items = items + begin;
        R.n_items = p->items_end[l] - begin;
        R.next_item = next_item + l;
        search_batch(s->X, s->coding, R, l % 2, s->grid, stream);
        if (p->any_exhaustive && l == 1)
            search_exhaustively(s->X, s->coding, R, 0, p->n_first, stream);
        if (p->any_exhaustive && l == 3)
            search_exhaustively(s->X, s->coding, R, p->n_first, p->n_queries - p->n_first, stream);
    }
    TRY("starting a search", cudaGetLastError());
    if (p->timed)
        TRY("timing", cudaEventRecord(p->events[1], stream));
    if (p->any_select || p->any_exhaustive)
        select_best(R, 0, p->n_queries, stream);
    if (greatest_sorted && (st = sort_large(p, err)) != GX_OK)
        return st;
    if (!p->direct && p->n_answers <= MAX_ANSWERS) /* else collect copies them */
        TRY("copying results", cudaMemcpyAsync(p->answers, p->d_answers, p->n_answers * 8, cudaMemcpyDeviceToHost, stream));
    if (p->timed) {
        TRY("timing", cudaEventRecord(p->events[2], stream));
        TRY("copying results", cudaMemcpyAsync(p->counts, R.counts, N_COUNTS * 8, cudaMemcpyDeviceToHost, stream));
    }
    TRY("timing", cudaEventRecord(p->events[3], stream));
    p->busy = true;
    return GX_OK;
}

static gx_status push_again(gpu_exec *x, job j, gx_error *err)
{
    if (x->n_again == x->max_again) {
        const uint32_t max = x->max_again ? 2 * x->max_again : 64;
        job *more = (job *)realloc(x->again, max * sizeof *more);
        if (!more)
            return gx_fail(err, GX_ENOMEM, "no memory for %u queries to be run again", max);
        x->again = more;
        x->max_again = max;
    }
    x->again[x->n_again++] = j;
    return GX_OK;
}

/* The answer of query q of the part to hits, or the query to those to be run again. */
static gx_status collect_query(gpu_exec *x, part *p, const placed *pl, uint32_t q, gx_op op, gx_hits *hits, gx_error *err)
{
    const gpu_query *Q = &p->queries[q];
    const gpu_query_state st = p->results[q];
    if (st.count > Q->capacity && !pl->j.roomy && !(Q->flags & QUERY_EXHAUSTIVE))
        return push_again(x, {pl->j.plan, op, true, st.threshold}, err);
    gx_hits *h = &hits[pl->j.plan];
    h->n = st.n_hits < Q->k ? st.n_hits : Q->k;
    if (p->n_answers <= MAX_ANSWERS)
        memcpy(h->keys, p->answers + Q->answer, (size_t)h->n * 8);
    else
        TRY("copying results", cudaMemcpy(h->keys, p->d_answers + Q->answer, (size_t)h->n * 8, cudaMemcpyDeviceToHost));
    return GX_OK;
}

static gx_status wait_for(part *p, const gx_plan *plan, bool *cancelled, gx_error *err)
{
    cudaError_t e = cudaErrorNotReady;
    if (plan && plan->cancel) {
        const struct timespec nap = {0, 200000};
        for (uint32_t turn = 0; (e = cudaEventQuery(p->events[3])) == cudaErrorNotReady; ++turn) {
            *cancelled = *cancelled || plan->cancel(plan->user);
            if (turn > 64)
                nanosleep(&nap, NULL);
        }
    } else {
        e = cudaEventSynchronize(p->events[3]);
    }
    TRY("searching", e);
    return GX_OK;
}

static gx_status collect(gpu_exec *x, part *p, const gx_plan *plans, gx_hits *hits, gx_work *work, gx_error *err)
{
    bool cancelled = false;
    if (!p->busy)
        return GX_OK;
    p->busy = false;
    gx_status st = wait_for(p, p->n_jobs ? &plans[p->jobs[0].j.plan] : NULL, &cancelled, err);
    if (st != GX_OK)
        return st;
    if (cancelled)
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    const double t0 = seconds();
    for (uint32_t i = 0; i < p->n_jobs && st == GX_OK; ++i) {
        const placed *pl = &p->jobs[i];
        const bool second = pl->second != NO_QUERY && p->results[pl->first].count < p->queries[pl->first].k;
        st = collect_query(x, p, pl, second ? pl->second : pl->first, pl->second == NO_QUERY ? pl->j.op : second ? GX_OP_OR : GX_OP_AND,
                           hits, err);
        if (work)
            work->and_fell_to_or += second;
    }
    if (work && p->timed) {
        float ms = 0;
        work->blocks_decoded += p->counts[COUNT_DECODED];
        work->lookups += p->counts[COUNT_LOOKUPS];
        if (cudaEventElapsedTime(&ms, p->events[0], p->events[1]) == cudaSuccess)
            work->seconds[1] += 1e-3 * ms;
        if (cudaEventElapsedTime(&ms, p->events[1], p->events[2]) == cudaSuccess)
            work->seconds[2] += 1e-3 * ms;
    }
    if (work)
        work->seconds[3] += seconds() - t0;
    return st;
}

/* ---- runs ---- */

static gx_status find_bounds(gpu_exec *x, gx_norm norm, const bounds **out, gx_error *err)
{
    for (uint32_t i = 0; i < x->n_bounds_used; ++i) {
        if (same_norm(x->bounds_used[i]->norm, norm)) {
            *out = x->bounds_used[i];
            return GX_OK;
        }
    }
    if (x->n_bounds_used == KEPT_BOUNDS) /* described queries need theirs no more */
        give_bounds(x->s, x->bounds_used[--x->n_bounds_used]);
    bounds *b = NULL;
    const gx_status st = take_bounds(x->s, norm, &b, err);
    if (st == GX_OK)
        *out = x->bounds_used[x->n_bounds_used++] = b;
    return st;
}

/* Describe as many of jobs[n] as a part takes; *taken of them. */
static gx_status fill_part(gpu_exec *x, part *p, const gx_plan *plans, const job *jobs, uint32_t n, uint32_t *drivers, uint32_t *taken,
                           gx_work *work, gx_error *err)
{
    const uint64_t answers = x->answer_room < MAX_ANSWERS ? x->answer_room : MAX_ANSWERS;
    need sum = {0, 0, 0, 0, 0, 0};
    p->n_jobs = p->n_queries = p->n_first = p->n_terms = p->n_runs = p->n_items = 0;
    p->n_candidates = p->n_answers = 0;
    p->any_exhaustive = p->any_select = false;
    uint32_t i = 0;
    for (; i < n; ++i) {
        const gx_plan *plan = &plans[jobs[i].plan];
        const need one = job_need(x, plan, &jobs[i]);
        sum.queries += one.queries;
        sum.terms += one.terms;
        sum.runs += one.runs;
        sum.items += one.items;
        sum.candidates += one.candidates;
        sum.answers += one.answers;
        if (i && (sum.queries > MAX_QUERIES || sum.terms > MAX_TERMS || sum.runs > MAX_RUNS || sum.items > x->item_room ||
                  sum.candidates > x->candidate_room || sum.answers > answers))
            break;
        if (one.candidates > x->candidate_room || one.answers > x->answer_room)
            break; /* of AND-then-OR with room for all: run_jobs parts them */
        const bounds *b = NULL;
        if (plan->prune) {
            const gx_status st = find_bounds(x, plan->norm, &b, err);
            if (st != GX_OK)
                return st;
        }
        placed *pl = &p->jobs[p->n_jobs++];
        *pl = {jobs[i], p->n_queries, NO_QUERY};
        uint32_t d;
        describe_query(x, p, plan, b, &jobs[i], jobs[i].op != GX_OP_OR, NO_QUERY, &d);
        drivers[pl->first] = d;
        if (work) {
            for (uint32_t t = 0; t < plan->n_terms; ++t) {
                work->postings += plan->terms[t].df;
                work->blocks += (plan->terms[t].df - 1) / x->s->ix->block_len + 1;
            }
        }
    }
    p->n_first = p->n_queries;
    for (uint32_t m = 0; m < p->n_jobs; ++m) {
        placed *pl = &p->jobs[m];
        if (pl->j.op != GX_OP_AND_OR)
            continue;
        const gx_plan *plan = &plans[pl->j.plan];
        const bounds *b = NULL;
        if (plan->prune) {
            const gx_status st = find_bounds(x, plan->norm, &b, err);
            if (st != GX_OK)
                return st;
        }
        pl->second = p->n_queries;
        uint32_t d;
        describe_query(x, p, plan, b, &pl->j, false, pl->first, &d);
        drivers[pl->second] = d;
    }
    *taken = i;
    return GX_OK;
}

static gx_status run_jobs(gpu_exec *x, const gx_plan *plans, const job *jobs, uint32_t n, gx_hits *hits, gx_work *work, gx_error *err)
{
    uint32_t drivers[MAX_QUERIES], active[MAX_QUERIES];
    gx_status st = GX_OK;
    /* The first parts are small, so that the GPU begins early; later ones grow, as long as the others take. */
    for (uint32_t at = 0, turn = 0, most = FIRST_PART; at < n && st == GX_OK; turn = (turn + 1) % N_PARTS, most = 2 * most < MAX_QUERIES ? 2 * most : MAX_QUERIES) {
        part *p = &x->parts[turn];
        if ((st = collect(x, p, plans, hits, work, err)) != GX_OK)
            break;
        const gx_plan *plan = &plans[jobs[at].plan];
        if (plan->cancel && plan->cancel(plan->user)) {
            st = gx_fail(err, GX_ECANCELLED, "cancelled");
            break;
        }
        const double t0 = seconds();
        uint32_t taken = 0;
        st = fill_part(x, p, plans, jobs + at, n - at < most + most / 2 ? n - at : most, drivers, &taken, work, err);
        if (st == GX_OK && taken == 0)
            st = gx_fail(err, GX_ECUDA, "GPU: a query of %u terms and k = %u is larger than the session's memory; use the CPU engine",
                         plan->n_terms, plan->k);
        if (st == GX_OK)
            st = launch_part(x, p, drivers, active, err);
        if (work)
            work->seconds[0] += seconds() - t0;
        at += taken;
    }
    for (int i = 0; i < N_PARTS; ++i) { /* in any case: nothing may be under way when this returns */
        part *p = &x->parts[i];
        if (st == GX_OK)
            st = collect(x, p, plans, hits, work, err);
        else
            (void)cudaStreamSynchronize(p->stream);
        p->busy = false;
    }
    return st;
}

static gx_status cuda_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_work *work, gx_error *err)
{
    gpu_exec *x = (gpu_exec *)exec;
    TRY("choosing it", cudaSetDevice(x->s->device));
    job *jobs = (job *)malloc((n + 1ull) * sizeof *jobs);
    if (!jobs)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    uint32_t n_jobs = 0;
    for (uint32_t i = 0; i < n; ++i) {
        hits[i].n = 0;
        if (plans[i].n_terms)
            jobs[n_jobs++] = {i, plans[i].op, false, 0};
    }
    x->n_again = 0;
    gx_status st = run_jobs(x, plans, jobs, n_jobs, hits, work, err);
    if (st == GX_OK && x->n_again) {
        job *again = x->again;
        const uint32_t n_again = x->n_again;
        x->again = NULL;
        x->n_again = x->max_again = 0;
        st = run_jobs(x, plans, again, n_again, hits, NULL, err);
        free(again);
    }
    while (x->n_bounds_used)
        give_bounds(x->s, x->bounds_used[--x->n_bounds_used]);
    free(jobs);
    return st;
}

extern "C" const gx_exec_ops gx_exec_cuda = {
    "gpu", cuda_state_open, cuda_state_close, cuda_describe, cuda_exec_open, cuda_exec_close, cuda_run,
};
