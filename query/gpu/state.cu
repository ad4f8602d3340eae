/* An index on a GPU: opened, uploaded, its tables and maps planned within the memory there is, its
 * bounds computed and kept. */
#include "query/gpu/state.cuh"

extern "C" {
#include "query/filter/mask.h"
#include "query/score/derived.h"
}

#include <time.h>

namespace gx {

constexpr uint32_t MIN_AUX_DF = GX_MAP_MIN_DF; /* lists from this length have maps and k-th impacts */
constexpr uint32_t TABLE_BLOCKS = 32;          /* lists of more blocks have a table, of an entry about 16 blocks */
constexpr uint64_t RESERVE = 512u << 20;       /* of device memory, left to others */
constexpr uint64_t EXPECTED_SESSIONS = 8, SESSION_LEAST_BYTES = 2 * SESSION_FIRST_BYTES;
constexpr double POOL_SHARE = 0.5;     /* of the memory for maps and lists, where both want more */
constexpr double MOST_OF_POOL = 0.9;   /* the same where the rest would not suffice for coarse maps of all lists */
constexpr int MAX_CACHED_BOUNDS = 16;  /* sets that are kept when nobody uses them */
constexpr uint32_t SAMPLED_ROWS = 256; /* for bounds::evenness, about */
constexpr uint32_t ROW_POSTINGS = 2; /* a list has a row of tiles if half of the tiles or more can have its postings */

/* Words of a map, of the ranks behind it if it is dense, and of the tf classes; each in whole
 * sectors of 32 bytes. */
static uint64_t slot_words(uint32_t n_docs, uint32_t shift)
{
    const uint64_t words = (uint64_t)((n_docs - 1) >> shift) / 32 + 1, whole = shift == EXACT_SLOTS ? RANK_WORDS : 8;
    return (words + whole - 1) / whole * whole;
}
static uint64_t rank_words(uint32_t n_docs)
{
    return ((uint64_t)(n_docs - 1) / (32 * RANK_WORDS) + 8) & ~7ull;
}
static uint64_t class_words(uint32_t n_docs, uint32_t shift)
{
    return ((uint64_t)((n_docs - 1) >> shift) / 16 + 8) & ~7ull;
}

static uint64_t presence_words(uint32_t n_docs, uint32_t shift)
{
    return slot_words(n_docs, shift) + (shift == EXACT_SLOTS ? rank_words(n_docs) : 0);
}

/* Which lists are long. */
static gx_status find_aux_lists(gpu_prepared_index *s, gx_error *err)
{
    const gx_index *ix = s->ix;
    uint64_t n = 0;
    for (uint32_t i = 0; i < ix->n_terms; ++i)
        n += ix->lists[i].df >= MIN_AUX_DF;
    s->aux_of = (uint32_t *)malloc((ix->n_terms + 1ull) * sizeof *s->aux_of);
    s->aux_lists = (list_aux *)calloc(n + 1, sizeof *s->aux_lists);
    if (!s->aux_of || !s->aux_lists)
        return gx_fail(err, GX_ENOMEM, "no memory for the directory of %u lists", ix->n_terms);
    s->table_words = 4; /* the first stand for "no table" */
    for (uint32_t i = 0; i < ix->n_terms; ++i) {
        const uint32_t df = ix->lists[i].df, n_blocks = (df - 1) / ix->block_len + 1;
        s->aux_of[i] = UINT32_MAX;
        if (df < MIN_AUX_DF)
            continue;
        list_aux *l = &s->aux_lists[s->n_aux];
        s->aux_of[i] = s->n_aux++;
        *l = {
            i, 0, NO_TABLE_SHIFT, 0, NO_MAP_SHIFT, NO_CLASSES, ix->docid_ends[ix->lists[i].first_block + n_blocks - 1],
            0};
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

/* Place the maps of the plan (query/score/derived.h) of at most this many words. */
static gx_status place_maps(gpu_prepared_index *s, uint64_t words, gx_error *err)
{
    static const gx_map_sizes sizes = {presence_words, class_words};
    const uint32_t n_docs = s->ix->n_docs;
    const uint64_t most = words < UINT32_MAX - 64 ? words : UINT32_MAX - 64; /* offsets have 32 bits */
    gx_map_plan plan;
    s->map_words = 8; /* the first stand for "no map" */
    const uint64_t left = most > s->map_words ? most - s->map_words : 0;
    const gx_status st = gx_map_plan_make(&plan, s->ix, &gx_maps_gpu, &sizes, left, err);
    if (st != GX_OK)
        return st;
    for (uint32_t i = 0; i < plan.n_maps; ++i) {
        list_aux *l = &s->aux_lists[s->aux_of[plan.lists[i]]];
        const uint32_t slots = i < plan.n_fine ? gx_maps_gpu.fine_slots : plan.slots;
        l->map_shift = gx_map_shift(n_docs, s->ix->lists[plan.lists[i]].df, slots);
        l->map = (uint32_t)s->map_words;
        s->map_words += presence_words(n_docs, l->map_shift);
        if (i < plan.n_fine) {
            l->classes = (uint32_t)s->map_words;
            s->map_words += class_words(n_docs, l->map_shift);
        }
    }
    gx_map_plan_free(&plan);
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

static uint64_t start_bytes(const tile_rows *r)
{
    return (uint64_t)r->n_rows * (r->n_tiles + 1 + 1) * sizeof(uint32_t); /* and the list */
}

static uint64_t maxima_bytes(const tile_rows *r)
{
    return (uint64_t)r->n_rows * r->n_tiles;
}

/* Whether the words of a block can be counted in TILE_WORD_BITS. */
static bool blocks_suit_tiles(const gx_index *ix)
{
    for (uint32_t i = 0; i < GX_MAX_CODINGS; ++i) {
        const gx_coding c = ix->header->codings[i];
        const gx_codec *both[] = {gx_codec_by_id(c.docids), gx_codec_by_id(c.tfs)};
        for (const gx_codec *codec : both) {
            if (codec && codec->max_words(ix->block_len) >> TILE_WORD_BITS)
                return false;
        }
    }
    return true;
}

/* Which lists have rows of tiles. */
static gx_status plan_rows(gpu_prepared_index *s, gx_error *err)
{
    const gx_index *ix = s->ix;
    const uint32_t n_tiles = count_tiles(ix->n_docs),
                   least = n_tiles / ROW_POSTINGS > MIN_AUX_DF ? n_tiles / ROW_POSTINGS : MIN_AUX_DF;
    s->row_of = (uint32_t *)malloc((ix->n_terms + 1ull) * sizeof *s->row_of);
    if (!s->row_of)
        return gx_fail(err, GX_ENOMEM, "no memory for the directory of %u lists", ix->n_terms);
    for (uint32_t i = 0; i < ix->n_terms; ++i)
        s->row_of[i] = ix->lists[i].df >= least ? s->rows.n_rows++ : NO_ROW;
    s->rows.n_tiles = n_tiles <= MAX_TILES && blocks_suit_tiles(ix) ? n_tiles : 0;
    return GX_OK;
}

/* ---- memory ---- */

/* How the memory that an engine may use is divided. */
struct memory_plan {
    uint64_t limit, fixed; /* fixed: what the index takes without maps and pool, and the least session */
    uint64_t pool, maps;   /* bytes, at most; lists have the first claim up to `pool`, and what maps leave */
    uint64_t pool_wanted;
    bool mapped; /* the payload is in host memory */
};

/* The payload's section among the device sections. */
static uint64_t payload_offset(const gx_index *ix)
{
    return (uint64_t)((const uint8_t *)ix->payload - (ix->file + ix->header->device_offset));
}
static uint64_t payload_end(const gx_index *ix)
{
    const uint64_t end =
        (payload_offset(ix) + ix->payload_words * 4 + GX_READ_SLACK + GX_ALIGN - 1) / GX_ALIGN * GX_ALIGN;
    return end < ix->header->device_bytes ? end : ix->header->device_bytes;
}

/* Returns the bytes of the device sections that are copied to the device. */
static uint64_t arena_bytes(const gx_index *ix, bool mapped)
{
    return ix->header->device_bytes - (mapped ? payload_end(ix) - payload_offset(ix) : 0);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the bytes of the coarsest maps of all long lists. Fewer maps save few look-ups. */
static uint64_t coarse_map_bytes(const gpu_prepared_index *s)
{
    uint64_t words = 0;
    for (uint32_t i = 0; i < s->n_aux; ++i) {
        const uint32_t df = s->ix->lists[s->aux_lists[i].list].df;
        words += presence_words(s->ix->n_docs, gx_map_shift(s->ix->n_docs, df, gx_maps_gpu.coarsest_slots));
    }
    return words * 4;
}

/* Divides the memory: first what must be there; then what EXPECTED_SESSIONS take, but at most half of what
 * remains, or a quarter if the payload is in host memory; then maps and the pool. */
static gx_status plan_memory(const gpu_prepared_index *s, const gx_engine_options *opt, const char *device,
                             memory_plan *plan, gx_error *err)
{
    const gx_index *ix = s->ix;
    const uint64_t derived = s->table_words * 4 + ix->n_terms * 8ull + s->n_aux * (sizeof(list_aux) + N_KTH) +
                             SESSION_LEAST_BYTES + (1u << 20);
    const uint64_t payload = payload_end(ix) - payload_offset(ix),
                   share = opt->resident_share < 1 ? (uint64_t)(opt->resident_share * (double)payload) : UINT64_MAX,
                   wanted = lesser(opt->resident_memory, share);
    plan->mapped = arena_bytes(ix, false) + derived > plan->limit || wanted < payload;
    plan->fixed = arena_bytes(ix, plan->mapped) + derived;
    if (plan->fixed > plan->limit)
        return gx_fail(
            err, GX_ENOGPU,
            "the index needs %.1f MiB of memory on GPU %d (%s), even with its lists in host memory, and %.1f "
            "MiB may be used; use the CPU engine, or allow more",
            (double)plan->fixed / 1048576, s->device, device, (double)plan->limit / 1048576);
    const uint64_t others = lesser(EXPECTED_SESSIONS * SESSION_DEVICE_BYTES,
                                   (plan->limit - plan->fixed) / (plan->mapped ? 4 : 2)),
                   left = plan->limit - plan->fixed - others;
    const double pool_share = (1 - POOL_SHARE) * (double)left < (double)coarse_map_bytes(s) ? MOST_OF_POOL : POOL_SHARE;
    plan->pool_wanted = !plan->mapped ? 0 : wanted < payload ? wanted : whole_pool_bytes(ix);
    plan->pool = lesser(plan->pool_wanted, wanted < payload ? left : (uint64_t)(pool_share * (double)left));
    plan->maps = lesser(left - plan->pool, opt->map_memory);
    return GX_OK;
}

/* Returns the device's address of what lies at `at` in the device sections. */
static const void *in_arena(const gpu_prepared_index *s, const void *at, bool mapped)
{
    const uint64_t offset = (uint64_t)((const uint8_t *)at - (s->ix->file + s->ix->header->device_offset));
    return s->arena +
           (mapped && offset >= payload_end(s->ix) ? offset - (payload_end(s->ix) - payload_offset(s->ix)) : offset);
}

/* Copy the device sections, but for the payload if it is in host memory, and point X at them. */
static gx_status upload_index(gpu_prepared_index *s, bool mapped, gx_error *err)
{
    const gx_index *ix = s->ix;
    const gx_header *h = ix->header;
    const uint8_t *base = ix->file + h->device_offset;
    const uint64_t bytes = arena_bytes(ix, mapped), before = mapped ? payload_offset(ix) : bytes;
    TRY("memory for the index", device_alloc(&s->arena, bytes + 2 * GX_READ_SLACK));
    TRY("clearing memory", cudaMemset(s->arena + bytes, 0, 2 * GX_READ_SLACK));
    if (before)
        TRY_STATUS(gx_device_upload(s->device, s->arena, base, before, err));
    if (before < bytes)
        TRY_STATUS(gx_device_upload(s->device, s->arena + before, base + payload_end(ix), bytes - before, err));
    s->X.lists = (const gx_list_entry *)in_arena(s, ix->lists, mapped);
    s->X.heads = (const uint32_t *)in_arena(s, ix->heads, mapped);
    s->X.docid_ends = (const uint32_t *)in_arena(s, ix->docid_ends, mapped);
    s->X.tf_ends = (const uint32_t *)in_arena(s, ix->tf_ends, mapped);
    s->X.doc_lens = (const uint32_t *)in_arena(s, ix->doc_lens, mapped);
    if (mapped)
        TRY_STATUS(payload_pin(&s->payload, ix, &s->X.payload, err));
    else
        s->X.payload = (const uint32_t *)in_arena(s, ix->payload, false);
    s->X.n_docs = ix->n_docs;
    s->X.n_terms = ix->n_terms;
    s->X.block_len = ix->block_len;
    return GX_OK;
}

/* The pool for lists, of what the maps have left. */
static gx_status open_pool(gpu_prepared_index *s, const memory_plan *plan, gx_residency_policy policy, gx_error *err)
{
    const uint64_t unused = plan->maps - lesser(plan->maps, s->map_words * 4),
                   bytes = lesser(plan->pool + unused, plan->pool_wanted) / GX_RESIDENCY_UNIT * GX_RESIDENCY_UNIT;
    if (bytes == 0)
        return GX_OK;
    s->linger_ns = 0; /* a kernel that lingers reads lists through caches that do not see copies to the pool */
    s->budget.used += bytes;
    return payload_open_pool(&s->payload, bytes, policy, s->X.payload, err);
}

/* Memory for what is derived, within the plan; the tables and maps filled. What rows and columns may take
 * later is taken from plan->maps. */
static gx_status derive(gpu_prepared_index *s, memory_plan *plan, uint64_t map_memory, gx_error *err)
{
    const gx_index *ix = s->ix;
    gx_status st = plan_rows(s, err);
    if (st != GX_OK)
        return st;
    /* impacts are searched by tiles, for which maps leave room; other indexes give the rest */
    const uint64_t rows = start_bytes(&s->rows) + maxima_bytes(&s->rows), columns = columns_bytes(ix),
                   kept_rows = ix->impacts && rows <= plan->maps ? rows : 0,
                   kept = kept_rows + (columns <= (plan->maps - kept_rows) / 4 ? columns : 0);
    plan->maps -= kept;
    if ((st = place_maps(s, plan->maps / 4, err)) != GX_OK)
        return st;
    s->tile_memory = map_memory > s->map_words * 4 ? map_memory - s->map_words * 4 : 0;
    s->budget.used = plan->fixed - SESSION_LEAST_BYTES + s->map_words * 4;
    TRY("memory for tables", device_alloc(&s->tables, s->table_words));
    TRY("memory for maps", device_alloc(&s->maps, s->map_words));
    TRY("memory for the directory", device_alloc(&s->d_aux_of, ix->n_terms));
    TRY("memory for the directory", device_alloc(&s->d_aux, s->n_aux));
    TRY("memory for bounds", device_alloc(&s->d_best, ix->n_terms));
    TRY("memory for bounds", device_alloc(&s->d_kth, (uint64_t)s->n_aux * N_KTH));
    s->X.tables = s->tables;
    s->X.maps = s->maps;
    s->X.rank_offset = ix->n_docs ? (uint32_t)slot_words(ix->n_docs, EXACT_SLOTS) : 0;
    TRY("clearing maps", cudaMemsetAsync(s->tables, 0, s->table_words * 4, s->stream));
    TRY("clearing maps", cudaMemsetAsync(s->maps, 0, s->map_words * 4, s->stream));
    TRY("clearing maps", cudaMemsetAsync(s->maps, 0xff, 16, s->stream));
    TRY("copying the directory",
        cudaMemcpyAsync(s->d_aux_of, s->aux_of, ix->n_terms * 4ull, cudaMemcpyHostToDevice, s->stream));
    TRY("copying the directory",
        cudaMemcpyAsync(s->d_aux, s->aux_lists, s->n_aux * sizeof(list_aux), cudaMemcpyHostToDevice, s->stream));
    derive_tables(s->X, s->d_aux, s->n_aux, s->tables, s->stream);
    derive_maps(s->X, s->coding, s->codings, s->d_aux, s->n_aux, s->maps, s->stream);
    TRY("starting to build maps", cudaGetLastError());
    TRY("building maps", cudaStreamSynchronize(s->stream));
    return GX_OK;
}

static void give_tile_memory(gpu_prepared_index *s, const void *memory, uint64_t bytes)
{
    if (memory) {
        s->tile_memory += bytes;
        budget_give(&s->budget, bytes);
    }
}

static void free_bounds(gpu_prepared_index *s, bounds *b)
{
    if (b) {
        give_tile_memory(s, b->maxima, maxima_bytes(&s->rows));
        (void)cudaFree(b->maxima);
        free(b->best);
        free(b->kth);
        free(b);
    }
}

void gpu_release_index(void *state)
{
    gpu_prepared_index *s = (gpu_prepared_index *)state;
    if (!s)
        return;
    (void)cudaSetDevice(s->device);
    for (bounds *b = s->bounds_sets, *next; b; b = next) {
        next = b->next;
        free_bounds(s, b);
    }
    payload_close(&s->payload);
    void *const memory[] = {s->arena, s->tables, s->maps,  s->d_aux_of,
                            s->d_aux, s->d_best, s->d_kth, (void *)s->rows.starts};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i)
        (void)cudaFree(memory[i]);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
    (void)cudaGetLastError();
    close_positions(s);
    close_columns(&s->columns);
    free(s->aux_of);
    free(s->row_of);
    free(s->aux_lists);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->linger_lock);
    free(s);
}

static void describe_state(gpu_prepared_index *s, const char *device)
{
    char lists[96] = "";
    if (s->payload.pinned)
        payload_describe(&s->payload, lists, sizeof lists);
    snprintf(s->description, sizeof s->description, "GPU %d: %.180s%s%s", s->device, device, *lists ? ", " : "", lists);
}

/* A smaller GPU than this one, which the environment's GX_GPU_LIKE names for tests: its room is then used alone. */
static const struct small_gpu {
    const char *name;
    gpu_room room;
} small_gpus[] = {{"l4", {58, 99 * 1024, 100 * 1024}}};
constexpr size_t SEARCH_SHARED = 49 * 1024; /* of a thread block of a search that is not by tiles, at most */

template <class T> static T lesser(T a, T b)
{
    return a < b ? a : b;
}

static gx_status find_room(const cudaDeviceProp *p, gpu_room *room, uint32_t *most_blocks, gx_error *err)
{
    const char *const like = getenv("GX_GPU_LIKE");
    *room = {(uint32_t)p->multiProcessorCount, p->sharedMemPerBlockOptin, p->sharedMemPerMultiprocessor};
    *most_blocks = UINT32_MAX;
    if (!like || !*like)
        return GX_OK;
    for (const small_gpu &g : small_gpus) {
        if (strcmp(like, g.name) == 0) {
            room->multiprocessors = lesser(room->multiprocessors, g.room.multiprocessors);
            room->block_shared = lesser(room->block_shared, g.room.block_shared);
            room->shared = lesser(room->shared, g.room.shared);
            *most_blocks = room->multiprocessors * (uint32_t)(room->shared / SEARCH_SHARED);
            return GX_OK;
        }
    }
    return gx_fail(err, GX_EUSAGE, "the environment's GX_GPU_LIKE, '%s', is not l4, the only GPU it can name; unset it",
                   like);
}

static gx_status open_state(gpu_prepared_index *s, const gx_engine_options *opt, gx_error *err)
{
    cudaDeviceProp p;
    size_t have = 0, total = 0;
    gx_status st = gx_device_use(s->device, err);
    if (st != GX_OK)
        return st;
    TRY("asking for its properties", cudaGetDeviceProperties(&p, s->device));
    TRY("asking for its memory", cudaMemGetInfo(&have, &total));
    gpu_room room;
    uint32_t most_blocks;
    TRY_STATUS(find_room(&p, &room, &most_blocks, err));
    s->multiprocessors = room.multiprocessors;
    /* a lingering kernel needs all its thread blocks resident at once */
    s->linger_ns = !p.cooperativeLaunch ? 0 : opt->linger_us < 1000000 ? opt->linger_us * 1000 : 1000000000;
    s->coding = find_coding(s->ix->header, &s->codings);
    memory_plan plan = {};
    plan.limit = have > RESERVE ? have - RESERVE : 0;
    if (opt->device_memory && opt->device_memory < plan.limit)
        plan.limit = opt->device_memory;
    s->budget.limit = plan.limit;
    TRY_STATUS(find_aux_lists(s, err));
    TRY_STATUS(plan_memory(s, opt, p.name, &plan, err));
    TRY("making a stream", cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    TRY_STATUS(upload_index(s, plan.mapped, err));
    TRY_STATUS(derive(s, &plan, opt->map_memory, err));
    TRY_STATUS(open_columns(&s->columns, s->ix, s, err));
    if (plan.mapped)
        TRY_STATUS(open_pool(s, &plan, opt->residency_policy, err));
    s->grid = lesser(search_grid(s->coding, s->multiprocessors), most_blocks);
    s->small_grid = lesser(small_batch_grid(s->coding, s->multiprocessors), most_blocks);
    s->tiled = find_tiled_grid(s->coding, room);
    s->documents = lesser(documents_grid(s->coding, s->multiprocessors), most_blocks);
    s->phrases = lesser(phrases_grid(s->coding, s->multiprocessors), most_blocks);
    describe_state(s, p.name);
    return GX_OK;
}

gx_status gpu_prepare_index(void **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err)
{
    *out = NULL;
    gpu_prepared_index *s = (gpu_prepared_index *)calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU engine");
    s->ix = ix;
    s->device = opt->device;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->linger_lock, NULL);
    const gx_status st = open_state(s, opt, err);
    if (st != GX_OK) {
        gpu_release_index(s);
        return st;
    }
    *out = s;
    return GX_OK;
}

const char *gpu_describe_index(const void *state)
{
    return ((const gpu_prepared_index *)state)->description;
}

/* ---- lingering kernels ---- */

void stop_lingering(gpu_prepared_index *s)
{
    if (__atomic_load_n(&s->lingering, __ATOMIC_SEQ_CST) == NULL)
        return;
    pthread_mutex_lock(&s->linger_lock);
    if (s->lingering)
        __atomic_store_n(&s->lingering->stop, 1u, __ATOMIC_RELEASE);
    __atomic_store_n(&s->lingering, NULL, __ATOMIC_RELEASE); /* a thread that reads NULL may free the slot */
    pthread_mutex_unlock(&s->linger_lock);
}

void register_lingering(gpu_prepared_index *s, query_slot *slot)
{
    pthread_mutex_lock(&s->linger_lock);
    if (s->lingering && s->lingering != slot)
        __atomic_store_n(&s->lingering->stop, 1u, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->stop, 0u, __ATOMIC_RELAXED);
    __atomic_store_n(&s->lingering, slot, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&s->linger_lock);
}

/* ---- masks ---- */

static gx_status copy_mask(gpu_prepared_index *s, uint32_t **out, const uint32_t *words, gx_error *err)
{
    const size_t n = gx_mask_n_words(s->ix->n_docs);
    TRY("choosing it", cudaSetDevice(s->device));
    stop_lingering(s);
    TRY("memory for a mask", device_alloc(out, n));
    pthread_mutex_lock(&s->lock);
    cudaError_t e = cudaMemcpyAsync(*out, words, n * sizeof *words, cudaMemcpyHostToDevice, s->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(s->stream);
    pthread_mutex_unlock(&s->lock);
    TRY("copying a mask", e);
    return GX_OK;
}

static uint64_t mask_bytes(const gpu_prepared_index *s)
{
    return gx_mask_n_words(s->ix->n_docs) * sizeof(uint32_t);
}

gx_status gpu_mask_open(void **out, void *state, const uint32_t *words, gx_error *err)
{
    gpu_prepared_index *s = (gpu_prepared_index *)state;
    uint32_t *mask = NULL;
    *out = NULL;
    TRY_STATUS(budget_take(&s->budget, "a mask", mask_bytes(s), err));
    const gx_status st = copy_mask(s, &mask, words, err);
    if (st != GX_OK) {
        (void)cudaFree(mask);
        budget_give(&s->budget, mask_bytes(s));
        return st;
    }
    *out = mask;
    return GX_OK;
}

/* A lingering kernel reads masks through caches that do not see other writes. It must end before a
 * new mask takes this memory. cudaFree waits for the device. */
void gpu_mask_close(void *state, void *mask)
{
    gpu_prepared_index *s = (gpu_prepared_index *)state;
    if (!mask)
        return;
    (void)cudaSetDevice(s->device);
    stop_lingering(s);
    (void)cudaFree(mask);
    budget_give(&s->budget, mask_bytes(s));
}

/* ---- bounds ---- */

static gx_status compute_bounds(gpu_prepared_index *s, bounds *b, gpu_call_counts *calls, gx_error *err)
{
    stop_lingering(s);
    const bounds_args args = {s->d_aux_of, b->norm, s->d_best, s->d_kth};
    derive_bounds(s->X, s->coding, s->codings, args, s->stream);
    TRY("starting to compute bounds", cudaGetLastError());
    TRY("copying bounds",
        cudaMemcpyAsync(b->best, s->d_best, s->ix->n_terms * sizeof(float), cudaMemcpyDeviceToHost, s->stream));
    TRY("copying bounds",
        cudaMemcpyAsync(b->kth, s->d_kth, (size_t)s->n_aux * N_KTH, cudaMemcpyDeviceToHost, s->stream));
    TRY("computing bounds", wait_for_stream(calls, s->stream));
    return GX_OK;
}

gx_status acquire_bounds(gpu_prepared_index *s, gx_scorer norm, gpu_call_counts *calls, bounds **out, gx_error *err)
{
    gx_status st = GX_OK;
    pthread_mutex_lock(&s->lock);
    bounds **at = &s->bounds_sets, *b;
    int n = 0;
    while (*at && !gx_scorer_is((*at)->norm, norm)) {
        at = &(*at)->next;
        ++n;
    }
    if ((b = *at) != NULL) {
        *at = b->next; /* move it to the front */
    } else {
        if ((b = (bounds *)calloc(1, sizeof *b)) != NULL) {
            b->norm = norm;
            b->best = (float *)malloc((s->ix->n_terms + 1ull) * sizeof(float));
            b->kth = (uint8_t *)malloc((s->n_aux + 1ull) * N_KTH);
        }
        if (!b || !b->best || !b->kth)
            st = gx_fail(err, GX_ENOMEM, "no memory for the bounds of %u lists", s->ix->n_terms);
        else
            st = compute_bounds(s, b, calls, err);
        /* free the oldest set that nobody uses */
        for (at = &s->bounds_sets; st == GX_OK && n >= MAX_CACHED_BOUNDS && *at;) {
            bounds *old = *at;
            if (old->users == 0 && !old->next) {
                *at = NULL;
                free_bounds(s, old);
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
        free_bounds(s, b);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

void release_bounds(gpu_prepared_index *s, bounds *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&s->lock);
    b->users -= 1;
    pthread_mutex_unlock(&s->lock);
}

/* ---- tiles ---- */

/* Takes device memory from what is left to tiles. *out is NULL if it does not suffice. */
static void alloc_tiles(gpu_prepared_index *s, void **out, uint64_t bytes)
{
    *out = NULL;
    gx_error ignored;
    if (bytes > s->tile_memory || budget_take(&s->budget, "the tiles", bytes, &ignored) != GX_OK)
        return;
    s->tile_memory -= bytes;
    if (cudaMalloc(out, bytes ? bytes : 1) != cudaSuccess) {
        (void)cudaGetLastError();
        *out = NULL;
        s->tile_memory += bytes;
        budget_give(&s->budget, bytes);
    }
}

/* The starts of all rows, and which lists they are of. */
static gx_status make_rows(gpu_prepared_index *s, gx_error *err)
{
    const uint32_t n = s->rows.n_rows;
    uint32_t *lists = (uint32_t *)malloc((n + 1ull) * sizeof *lists), *starts;
    if (!lists)
        return gx_fail(err, GX_ENOMEM, "no memory for the directory of %u lists", n);
    for (uint32_t i = 0; i < s->ix->n_terms; ++i) {
        if (s->row_of[i] != NO_ROW)
            lists[s->row_of[i]] = i;
    }
    gx_status st = GX_OK;
    alloc_tiles(s, (void **)&starts, start_bytes(&s->rows));
    if (starts) {
        uint32_t *d_lists = starts + (size_t)n * (s->rows.n_tiles + 1);
        st = gx_cuda_status(cudaMemcpyAsync(d_lists, lists, n * sizeof *lists, cudaMemcpyHostToDevice, s->stream),
                            "copying the directory", err);
        s->rows.lists = d_lists;
        s->rows.starts = starts;
        if (st == GX_OK) {
            derive_tile_starts(s->X, s->rows, starts, s->stream);
            st = gx_cuda_status(cudaStreamSynchronize(s->stream), "finding tiles", err);
        }
    }
    free(lists);
    return st;
}

/* Reads some rows' maxima. They have been computed. */
static gx_status measure_evenness(gpu_prepared_index *s, bounds *b, gx_error *err)
{
    const uint32_t n_tiles = s->rows.n_tiles, step = s->rows.n_rows / SAMPLED_ROWS + 1;
    double sum = 0, postings = 0;
    uint8_t row[MAX_TILES];
    b->evenness = 1;
    for (uint32_t i = 0; i < s->ix->n_terms; ++i) {
        const double df = s->ix->lists[i].df;
        if (s->row_of[i] == NO_ROW || s->row_of[i] % step)
            continue;
        const uint8_t *from = b->maxima + (size_t)s->row_of[i] * n_tiles;
        TRY("copying bounds", cudaMemcpyAsync(row, from, n_tiles, cudaMemcpyDeviceToHost, s->stream));
        TRY("copying bounds", cudaStreamSynchronize(s->stream));
        for (uint32_t t = 0; t < n_tiles; ++t)
            sum += row[t] ? df * (row[t] + 1) / 256 : 0;
        postings += df * n_tiles;
    }
    b->evenness = postings > 0 ? (float)(sum / postings) : 1;
    return GX_OK;
}

/* Whether the memory suffices for what make_tiles lacks. */
static bool tiles_fit(const gpu_prepared_index *s)
{
    const uint64_t bytes = maxima_bytes(&s->rows) + (s->rows.starts ? 0 : start_bytes(&s->rows));
    return bytes <= s->tile_memory && bytes <= budget_left(&s->budget);
}

gx_status make_tiles(gpu_prepared_index *s, bounds *b, gpu_call_counts *calls, bool *there, gx_error *err)
{
    gx_status st = GX_OK;
    *there = false;
    if (s->rows.n_tiles == 0)
        return GX_OK;
    pthread_mutex_lock(&s->lock);
    if (!b->maxima && tiles_fit(s)) {
        stop_lingering(s);
        if (!s->rows.starts)
            st = make_rows(s, err);
        if (st == GX_OK && s->rows.starts)
            alloc_tiles(s, (void **)&b->maxima, maxima_bytes(&s->rows));
        if (st == GX_OK && b->maxima) {
            derive_tile_maxima(s->X, s->coding, s->codings, s->rows, b->norm, b->maxima, s->stream);
            st = gx_cuda_status(cudaGetLastError(), "starting to bound tiles", err);
            if (st == GX_OK)
                st = gx_cuda_status(wait_for_stream(calls, s->stream), "bounding tiles", err);
            if (st == GX_OK && gx_scorer_is_linear(b->norm))
                st = measure_evenness(s, b, err);
        }
    }
    *there = st == GX_OK && b->maxima;
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* ---- waiting ---- */

cudaError_t wait_for_event(gpu_call_counts *c, cudaEvent_t event, const gx_plan *plan, bool *cancelled)
{
    c->waits += 1;
    if (!plan->cancel)
        return cudaEventSynchronize(event);
    const struct timespec nap = {0, 50000};
    cudaError_t e;
    for (uint32_t turn = 0; (e = cudaEventQuery(event)) == cudaErrorNotReady; ++turn) {
        *cancelled = *cancelled || plan->cancel(plan->user);
        if (turn > 1000) /* about a millisecond */
            nanosleep(&nap, NULL);
    }
    return e;
}

} // namespace gx
