#include <mutex>
#include <new>
#include <vector>

#include "tools/bench/bitmaps/bitmap_device.cuh"

#include "engine/clock.h"
#include "tools/bench/bitmaps/bitmap_gpu.h"
#include "tools/bench/bitmaps/bitmap_pool.h"
#include "tools/bench/bitmaps/bitmap_ranges.cuh"
#include "tools/bench/bitmaps/bitmap_stages.cuh"
#include "tools/bench/bitmaps/wah.cuh"

const bitmap_config bitmap_configs[BITMAP_N_CONFIGS] = {
    {"baseline", false, BITMAP_NO_METADATA, false, 1},
    {"reuse", true, BITMAP_NO_METADATA, false, 5.43},
    {"reuse, stage 2 in 64 bits", true, BITMAP_STAGE2_64, false, 15.1},
    {"reuse, stage 2 in 32 bits", true, BITMAP_STAGE2_32, false, 15.1},
    {"reuse, stage 4 in 32 bits", true, BITMAP_STAGE4_32, false, 20.5},
    {"reuse, pool", true, BITMAP_NO_METADATA, true, 24.4},
    {"reuse, stage 2 in 64 bits, pool", true, BITMAP_STAGE2_64, true, 28.5},
    {"reuse, stage 2 in 32 bits, pool", true, BITMAP_STAGE2_32, true, 37.7},
    {"reuse, stage 4 in 32 bits, pool", true, BITMAP_STAGE4_32, true, 113},
    {"decompressed columns", true, BITMAP_DECOMPRESSED, false, 411},
    {"decompressed columns, pool", true, BITMAP_DECOMPRESSED, true, 411},
};

const bitmap_variant bitmap_variants[] = {{512, 8, 4, 0}, {1024, 8, 2, 16}, {512, 4, 2, 0}, {1024, 4, 4, 0}, {0}};

namespace {

enum { STREAMS = 8, MAX_ARRAYS = 5, MAX_EVENTS = 64, TILE_SIZES = 2 };

typedef void wah_or_kernel(gx::wah_columns, uint32_t, uint32_t, gx::wah_result);

/* In the order of bitmap_variants. */
wah_or_kernel *const or_kernels[] = {gx::wah_or<512, 8, 4, 0>, gx::wah_or<1024, 8, 2, 16>, gx::wah_or<512, 4, 2, 0>,
                                     gx::wah_or<1024, 4, 4, 0>};
const uint32_t tile_sizes[TILE_SIZES] = {512, 1024};

/* Neighbouring columns that are worked on together. */
struct span {
    uint32_t first, n;       /* columns, from the first that lies on the GPU */
    uint64_t atoms, n_atoms; /* from the first atom that lies on the GPU */
    uint64_t n_words;        /* of all of them, decompressed */
};

} // namespace

struct bitmap_gpu {
    const bitmap_index *ix;
    uint32_t first, n, n_slots;
    uint64_t n_chunks, n_atoms;
    std::vector<uint64_t> begins; /* [n + 1] */
    device_array<uint64_t> atoms, d_begins, starts64, plain, slots;
    device_array<uint32_t> starts32, index32;
    device_array<gx::wah_sample> samples[TILE_SIZES];
    bitmap_pool *pool = NULL;

    span columns(uint32_t from, uint32_t m) const
    {
        return {from, m, begins[from], begins[from + m] - begins[from], m * n_chunks};
    }
    ~bitmap_gpu() { bitmap_pool_close(pool); }
};

struct bitmap_client {
    bitmap_gpu *g;
    cudaStream_t streams[STREAMS] = {};
    cudaEvent_t events[MAX_EVENTS] = {}, joins[STREAMS] = {};
    size_t temp_bytes = 0;
    device_array<unsigned char> temps[STREAMS]; /* of CUB's scans */
    device_array<uint64_t> result, scratch;
    device_array<uint32_t> mask;
    device_array<unsigned long long> count;
    device_array<const uint64_t *> table;
    const uint64_t **h_table = NULL; /* pinned */
    bool all_reductions;
    gpu_timer timer;

    ~bitmap_client()
    {
        for (cudaStream_t s : streams)
            if (s)
                cudaStreamDestroy(s);
        for (cudaEvent_t e : events)
            if (e)
                cudaEventDestroy(e);
        for (cudaEvent_t e : joins)
            if (e)
                cudaEventDestroy(e);
        cudaFreeHost(h_table);
    }
};

namespace {

/* ---- a query as the paper has it ---- */

/* One run of a query. */
struct query_run {
    bitmap_client *c;
    const bitmap_plan *plan;
    uint32_t slot = 0, group = 0; /* the pool's slots: the first, and how many columns an array of them has */
    bool pooled;
    bitmap_steps steps = {};
    int n_events = 0;
    double *event_steps[MAX_EVENTS / 2];

    /* Array number `array` of a span, of n words; `first` is the group's first column. */
    gx_status take(uint64_t **p, uint32_t array, const span &s, uint32_t first, uint64_t n, cudaStream_t stream,
                   gx_error *err)
    {
        if (pooled) {
            *p = c->g->slots.p + ((uint64_t)slot + (uint64_t)array * group + s.first - first) * c->g->n_chunks;
            return GX_OK;
        }
        if (plan->steps)
            TRY(cudaStreamSynchronize(stream), "the stages");
        const double begin = gx_clock_seconds();
        TRY(cudaMalloc(p, n * sizeof **p), "memory for a stage");
        steps.memory += gx_clock_seconds() - begin;
        ++steps.memory_calls;
        return GX_OK;
    }
    gx_status put(uint64_t *p, cudaStream_t stream, gx_error *err)
    {
        if (pooled || !p)
            return GX_OK;
        if (plan->steps)
            TRY(cudaStreamSynchronize(stream), "the stages");
        const double begin = gx_clock_seconds();
        TRY(cudaFree(p), "freeing memory");
        steps.memory += gx_clock_seconds() - begin;
        ++steps.memory_calls;
        return GX_OK;
    }
    /* A step of kernels, timed by events where that is wanted. */
    template <class LAUNCH> gx_status step(double *time, cudaStream_t stream, gx_error *err, LAUNCH launch)
    {
        const bool timed = plan->steps && n_events + 2 <= MAX_EVENTS;
        if (timed)
            TRY(cudaEventRecord(c->events[n_events], stream), "an event");
        launch();
        TRY(cudaGetLastError(), "a stage");
        if (timed) {
            TRY(cudaEventRecord(c->events[n_events + 1], stream), "an event");
            event_steps[n_events / 2] = time;
            n_events += 2;
        }
        return GX_OK;
    }
    gx_status collect_steps(gx_error *err)
    {
        for (int i = 0; i < n_events; i += 2) {
            float ms;
            TRY(cudaEventElapsedTime(&ms, c->events[i], c->events[i + 1]), "an event");
            *event_steps[i / 2] += 1e-3 * ms;
        }
        return GX_OK;
    }
};

/* Stages 3 to 5 from known starts; `data` holds EndPoints, WordIndex and DecompData in turn. */
template <class START>
gx_status from_starts(query_run &r, const span &s, const START *starts, uint64_t base, uint64_t *data, int lane,
                      gx_error *err)
{
    bitmap_client *const c = r.c;
    const cudaStream_t stream = c->streams[lane];
    PASS(r.step(&r.steps.stages[2], stream, err, [&] {
        cudaMemsetAsync(data, 0, s.n_words * 8, stream);
        gx::stage3_ends<<<gx::stage_blocks(s.n_atoms), gx::STAGE_THREADS, 0, stream>>>(starts, base, s.n_atoms, data);
    }));
    PASS(r.step(&r.steps.stages[3], stream, err,
                [&] { gx::stage_scan(c->temps[lane].p, c->temp_bytes, data, data, s.n_words, stream); }));
    return r.step(&r.steps.stages[4], stream, err, [&] {
        gx::stage5_words<<<gx::stage_blocks(s.n_words), gx::STAGE_THREADS, 0, stream>>>(c->g->atoms.p + s.atoms, data,
                                                                                        (uint64_t)0, s.n_words, data);
    });
}

gx_status decompress_baseline(query_run &r, const span &s, uint32_t first, int lane, uint64_t **data, gx_error *err)
{
    bitmap_client *const c = r.c;
    const cudaStream_t stream = c->streams[lane];
    const uint64_t *const atoms = c->g->atoms.p + s.atoms;
    uint64_t *sizes, *starts, *ends, *index;
    PASS(r.take(&sizes, 0, s, first, s.n_atoms, stream, err));
    PASS(r.step(&r.steps.stages[0], stream, err, [&] {
        gx::stage1_sizes<<<gx::stage_blocks(s.n_atoms), gx::STAGE_THREADS, 0, stream>>>(atoms, s.n_atoms, sizes);
    }));
    PASS(r.take(&starts, 1, s, first, s.n_atoms, stream, err));
    PASS(r.step(&r.steps.stages[1], stream, err,
                [&] { gx::stage_scan(c->temps[lane].p, c->temp_bytes, sizes, starts, s.n_atoms, stream); }));
    PASS(r.put(sizes, stream, err));
    PASS(r.take(&ends, 2, s, first, s.n_words, stream, err));
    PASS(r.step(&r.steps.stages[2], stream, err, [&] {
        cudaMemsetAsync(ends, 0, s.n_words * 8, stream);
        gx::stage3_ends<<<gx::stage_blocks(s.n_atoms), gx::STAGE_THREADS, 0, stream>>>(starts, (uint64_t)0, s.n_atoms,
                                                                                       ends);
    }));
    PASS(r.put(starts, stream, err));
    PASS(r.take(&index, 3, s, first, s.n_words, stream, err));
    PASS(r.step(&r.steps.stages[3], stream, err,
                [&] { gx::stage_scan(c->temps[lane].p, c->temp_bytes, ends, index, s.n_words, stream); }));
    PASS(r.put(ends, stream, err));
    PASS(r.take(data, 4, s, first, s.n_words, stream, err));
    PASS(r.step(&r.steps.stages[4], stream, err, [&] {
        gx::stage5_words<<<gx::stage_blocks(s.n_words), gx::STAGE_THREADS, 0, stream>>>(atoms, index, (uint64_t)0,
                                                                                        s.n_words, *data);
    }));
    return r.put(index, stream, err);
}

/* A span's words: to an array that is the query's, or where they are stored. */
gx_status decompress(query_run &r, const span &s, uint32_t first, int lane, uint64_t **data, gx_error *err)
{
    bitmap_client *const c = r.c;
    bitmap_gpu *const g = c->g;
    const cudaStream_t stream = c->streams[lane];
    const uint64_t *const atoms = g->atoms.p + s.atoms;
    const bitmap_metadata metadata = r.plan->config->metadata;
    uint64_t *sizes = NULL;
    if (!r.plan->config->reuse)
        return decompress_baseline(r, s, first, lane, data, err);
    switch (metadata) {
    case BITMAP_DECOMPRESSED:
        *data = g->plain.p + s.first * g->n_chunks;
        return GX_OK;
    case BITMAP_STAGE4_32:
        PASS(r.take(data, 0, s, first, s.n_words, stream, err));
        return r.step(&r.steps.stages[4], stream, err, [&] {
            gx::stage5_words<<<gx::stage_blocks(s.n_words), gx::STAGE_THREADS, 0, stream>>>(
                atoms, g->index32.p + s.first * g->n_chunks, s.atoms, s.n_words, *data);
        });
    case BITMAP_STAGE2_32:
        PASS(r.take(data, 0, s, first, s.n_words, stream, err));
        return from_starts(r, s, g->starts32.p + s.atoms, s.first * g->n_chunks, *data, lane, err);
    case BITMAP_STAGE2_64:
        PASS(r.take(data, 0, s, first, s.n_words, stream, err));
        return from_starts(r, s, g->starts64.p + s.atoms, s.first * g->n_chunks, *data, lane, err);
    case BITMAP_NO_METADATA:
        break;
    }
    PASS(r.take(&sizes, 1, s, first, s.n_atoms, stream, err));
    PASS(r.step(&r.steps.stages[0], stream, err, [&] {
        gx::stage1_sizes<<<gx::stage_blocks(s.n_atoms), gx::STAGE_THREADS, 0, stream>>>(atoms, s.n_atoms, sizes);
    }));
    PASS(r.take(data, 0, s, first, s.n_words, stream, err));
    PASS(r.step(&r.steps.stages[1], stream, err,
                [&] { gx::stage_scan(c->temps[lane].p, c->temp_bytes, sizes, sizes, s.n_atoms, stream); }));
    PASS(from_starts(r, s, sizes, 0, *data, lane, err));
    return r.put(sizes, stream, err);
}

/* Arrays of a column's words, or fewer, that a query takes for each of its columns. */
uint32_t n_arrays(const bitmap_config *config)
{
    if (!config->reuse)
        return 5;
    return config->metadata == BITMAP_DECOMPRESSED ? 0 : config->metadata == BITMAP_NO_METADATA ? 2 : 1;
}

uint32_t power_of_2(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* n columns to one, by kernels on the first stream; out is the client's result, or another array of
 * a column. */
void launch_reduction(bitmap_client *c, bitmap_reduction reduction, const gx::plain_columns &in, uint32_t n,
                      uint64_t *out)
{
    const cudaStream_t stream = c->streams[0];
    const uint64_t n_words = in.n_words;
    gx::plain_columns from = in;
    switch (reduction) {
    case BITMAP_COA:
        for (uint32_t left = n, half; left; left = half > 1 ? half : 0) {
            half = (left + 1) / 2;
            uint64_t *const to = half == 1 ? out : c->scratch.p;
            gx::reduce_coa<<<dim3(gx::stage_blocks(n_words), half), gx::STAGE_THREADS, 0, stream>>>(from, left, half,
                                                                                                    to);
            from = {c->scratch.p, NULL, n_words};
        }
        break;
    case BITMAP_ROA: {
        const uint32_t threads = std::min(std::max(power_of_2(n), 32u), 1024u);
        gx::reduce_roa<<<(uint32_t)n_words, threads, threads * 8, stream>>>(in, n, out);
        break;
    }
    case BITMAP_HYBRID:
        for (uint32_t left = n; left;) {
            const uint32_t tiles = (left + 31) / 32;
            gx::reduce_hybrid<<<dim3((uint32_t)((n_words + 31) / 32), tiles), dim3(32, 32), 0, stream>>>(
                from, left, tiles == 1 ? out : c->scratch.p);
            from = {c->scratch.p, NULL, n_words};
            left = tiles == 1 ? 0 : tiles;
        }
        break;
    case BITMAP_IDEAL_HYBRID: {
        const uint32_t y = std::min(power_of_2(n), 1024u), x = 1024 / y;
        gx::reduce_hybrid<<<(uint32_t)((n_words + x - 1) / x), dim3(x, y), 0, stream>>>(in, n, out);
        break;
    }
    default:
        gx::reduce_stream<<<gx::stage_blocks(n_words), gx::STAGE_THREADS, 0, stream>>>(in, n, out);
    }
}

/* Columns [first, first + n) decompressed one by one, each by a stream of its own, and reduced. */
gx_status run_by_column(query_run &r, uint32_t first, uint32_t n, uint64_t *out, gx_error *err)
{
    bitmap_client *const c = r.c;
    bitmap_gpu *const g = c->g;
    std::vector<uint64_t *> data(n, nullptr);
    for (uint32_t i = 0; i < n; ++i)
        PASS(decompress(r, g->columns(first + i, 1), first, i % STREAMS, &data[i], err));
    for (int k = 1; k < STREAMS; ++k) {
        TRY(cudaEventRecord(c->joins[k], c->streams[k]), "an event");
        TRY(cudaStreamWaitEvent(c->streams[0], c->joins[k], 0), "an event");
    }
    std::copy(data.begin(), data.end(), c->h_table);
    TRY(cudaMemcpyAsync(c->table.p, c->h_table, n * sizeof *c->h_table, cudaMemcpyHostToDevice, c->streams[0]),
        "the columns' addresses");
    PASS(r.step(&r.steps.reduction, c->streams[0], err, [&] {
        launch_reduction(c, r.plan->reduction, {NULL, c->table.p, g->n_chunks}, n, out);
    }));
    TRY(cudaStreamSynchronize(c->streams[0]), "the query");
    for (uint32_t i = 0; i < n && r.plan->config->metadata != BITMAP_DECOMPRESSED; ++i)
        PASS(r.put(data[i], c->streams[0], err));
    return GX_OK;
}

gx_status run_at_once(query_run &r, uint32_t first, uint32_t n, uint64_t *out, gx_error *err)
{
    bitmap_client *const c = r.c;
    uint64_t *data = NULL;
    PASS(decompress(r, c->g->columns(first, n), first, 0, &data, err));
    PASS(r.step(&r.steps.reduction, c->streams[0], err, [&] {
        launch_reduction(c, r.plan->reduction, {data, NULL, c->g->n_chunks}, n, out);
    }));
    if (r.plan->config->metadata == BITMAP_DECOMPRESSED)
        return GX_OK;
    if (!r.pooled)
        TRY(cudaStreamSynchronize(c->streams[0]), "the query");
    return r.put(data, c->streams[0], err);
}

/* A query, waited for: in one group of columns, or in several where the pool has too few slots. */
gx_status run_query(query_run &r, uint32_t n, gx_error *err)
{
    bitmap_client *const c = r.c;
    bitmap_gpu *const g = c->g;
    const uint32_t arrays = n_arrays(r.plan->config);
    const uint32_t most = r.pooled && arrays && !r.plan->hashed ? std::min(g->n_slots / arrays, n) : n;
    for (uint32_t first = 0; first < n; first += most) {
        const uint32_t m = std::min(most, n - first), slots = r.pooled ? arrays * m : 0;
        uint64_t *const out = first ? c->scratch.p + ((most + 31) / 32) * g->n_chunks : c->result.p;
        r.group = m;
        r.slot = slots && !r.plan->hashed ? bitmap_pool_take(g->pool, slots) : 0;
        if (slots && r.plan->hashed && !bitmap_pool_try(g->pool, (uint64_t)(uintptr_t)c, slots, &r.slot))
            return gx_fail(err, GX_ENOMEM, "the pool has no %u arrays for the query", slots);
        gx_status st = (r.plan->a_column ? run_by_column : run_at_once)(r, first, m, out, err);
        if (st == GX_OK && first)
            gx::or_words<<<gx::stage_blocks(g->n_chunks), gx::STAGE_THREADS, 0, c->streams[0]>>>(out, g->n_chunks,
                                                                                                 c->result.p);
        const cudaError_t e = cudaStreamSynchronize(c->streams[0]);
        if (slots)
            bitmap_pool_give(g->pool, r.slot, slots);
        PASS(st);
        TRY(e, "the query");
    }
    return GX_OK;
}

/* ---- opening ---- */

/* Stages 1 to 5 of all columns, kept. */
gx_status make_metadata(bitmap_gpu *g, gx_error *err)
{
    const uint64_t n_atoms = g->n_atoms, n_words = g->n * g->n_chunks;
    device_array<unsigned char> temp;
    size_t a = 0, b = 0;
    if (n_words > INT32_MAX)
        return gx_fail(err, GX_EUSAGE, "%u columns have more than 2^31 words; take fewer columns or rows", g->n);
    PASS(g->starts64.alloc(n_atoms, err));
    PASS(g->starts32.alloc(n_atoms, err));
    PASS(g->index32.alloc(n_words, err));
    PASS(g->plain.alloc(n_words, err));
    TRY(gx::stage_scan(NULL, a, g->starts64.p, g->starts64.p, n_atoms, (cudaStream_t)0), "a scan");
    cub::DeviceScan::ExclusiveSum(NULL, a, g->starts64.p, g->starts64.p, (int)n_atoms);
    cub::DeviceScan::ExclusiveSum(NULL, b, g->index32.p, g->index32.p, (int)n_words);
    PASS(temp.alloc(std::max(a, b), err));
    gx::stage1_sizes<<<gx::stage_blocks(n_atoms), gx::STAGE_THREADS>>>(g->atoms.p, n_atoms, g->starts64.p);
    TRY(gx::stage_scan(temp.p, a, g->starts64.p, g->starts64.p, n_atoms, (cudaStream_t)0), "a scan");
    gx::stage_copy<<<gx::stage_blocks(n_atoms), gx::STAGE_THREADS>>>(g->starts64.p, n_atoms, g->starts32.p);
    TRY(cudaMemset(g->index32.p, 0, n_words * 4), "filling memory");
    gx::stage3_ends<<<gx::stage_blocks(n_atoms), gx::STAGE_THREADS>>>(g->starts32.p, (uint64_t)0, n_atoms,
                                                                      g->index32.p);
    TRY(gx::stage_scan(temp.p, b, g->index32.p, g->index32.p, n_words, (cudaStream_t)0), "a scan");
    gx::stage5_words<<<gx::stage_blocks(n_words), gx::STAGE_THREADS>>>(g->atoms.p, g->index32.p, (uint64_t)0, n_words,
                                                                       g->plain.p);
    TRY(cudaGetLastError(), "making metadata");
    TRY(cudaDeviceSynchronize(), "making metadata");
    return GX_OK;
}

gx_status fill_gpu(bitmap_gpu *g, gx_error *err)
{
    const bitmap_index *const ix = g->ix;
    const uint64_t from = ix->begins[g->first];
    for (uint32_t i = 0; i <= g->n; ++i)
        g->begins.push_back(ix->begins[g->first + i] - from);
    g->n_atoms = g->begins[g->n];
    g->n_chunks = ix->n_chunks;
    PASS(g->atoms.upload(ix->atoms + from, g->n_atoms, err));
    PASS(g->d_begins.upload(g->begins.data(), g->n + 1ull, err));
    for (int k = 0; k < TILE_SIZES; ++k) {
        bitmap_sample *const samples = bitmap_make_samples(ix, g->first, g->n, tile_sizes[k]);
        if (!samples)
            return gx_fail(err, GX_ENOMEM, "no memory for samples");
        static_assert(sizeof(bitmap_sample) == sizeof(gx::wah_sample), "the same two numbers");
        const gx_status st = g->samples[k].upload((const gx::wah_sample *)samples,
                                                  (bitmap_n_tiles(ix, tile_sizes[k]) + 1ull) * g->n, err);
        free(samples);
        PASS(st);
    }
    PASS(make_metadata(g, err));
    PASS(g->slots.alloc(g->n_slots * g->n_chunks, err));
    return bitmap_pool_open(&g->pool, g->n_slots, err);
}

gx_status fill_client(bitmap_client *c, gx_error *err)
{
    bitmap_gpu *const g = c->g;
    uint64_t *const p = g->slots.p;
    TRY(gx::stage_scan(NULL, c->temp_bytes, p, p, std::max(g->n * g->n_chunks, g->n_atoms), (cudaStream_t)0), "a scan");
    cub::DeviceScan::ExclusiveSum(NULL, c->temp_bytes, p, p, (int)std::max(g->n * g->n_chunks, g->n_atoms));
    for (int k = 0; k < STREAMS; ++k) {
        TRY(cudaStreamCreateWithFlags(&c->streams[k], cudaStreamNonBlocking), "a stream");
        TRY(cudaEventCreateWithFlags(&c->joins[k], cudaEventDisableTiming), "an event");
        PASS(c->temps[k].alloc(c->temp_bytes, err));
    }
    for (cudaEvent_t &e : c->events)
        TRY(cudaEventCreate(&e), "an event");
    PASS(c->result.alloc(g->n_chunks, err));
    const uint32_t partial = (g->n + 31) / 32 + 1, half = (g->n + 1) / 2;
    PASS(c->scratch.alloc((c->all_reductions ? std::max(partial, half) : partial) * g->n_chunks, err));
    PASS(c->mask.alloc(g->ix->shape.n_rows / 32 + 1, err));
    PASS(c->count.alloc(1, err));
    PASS(c->table.alloc(g->n, err));
    TRY(cudaMallocHost(&c->h_table, g->n * sizeof *c->h_table), "pinned memory");
    PASS(c->timer.open(err));
    TRY(cudaDeviceSynchronize(), "opening a client"); /* the client's streams do not wait for what was copied */
    return GX_OK;
}

} // namespace

const char *bitmap_reduction_name(bitmap_reduction r)
{
    static const char *const names[BITMAP_N_REDUCTIONS] = {"column-oriented", "row-oriented", "hybrid", "ideal hybrid",
                                                           "stream (ours)"};
    return names[r];
}

gx_status bitmap_gpu_open(bitmap_gpu **out, const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t n_slots,
                          gx_error *err)
{
    *out = NULL;
    int device;
    TRY(cudaGetDevice(&device), "the device");
    bitmap_gpu *const g = new (std::nothrow) bitmap_gpu;
    if (!g)
        return gx_fail(err, GX_ENOMEM, "no memory for columns");
    g->ix = ix;
    g->first = first;
    g->n = n;
    g->n_slots = n_slots ? n_slots : MAX_ARRAYS * n;
    const gx_status st = fill_gpu(g, err);
    if (st != GX_OK) {
        bitmap_gpu_close(g);
        return st;
    }
    *out = g;
    return GX_OK;
}

void bitmap_gpu_close(bitmap_gpu *g)
{
    delete g;
}

gx_status bitmap_client_open(bitmap_client **out, bitmap_gpu *g, bool all_reductions, gx_error *err)
{
    *out = NULL;
    bitmap_client *const c = new (std::nothrow) bitmap_client;
    if (!c)
        return gx_fail(err, GX_ENOMEM, "no memory for a client");
    c->g = g;
    c->all_reductions = all_reductions;
    const gx_status st = fill_client(c, err);
    if (st != GX_OK) {
        bitmap_client_close(c);
        return st;
    }
    *out = c;
    return GX_OK;
}

void bitmap_client_close(bitmap_client *c)
{
    delete c;
}

gx_status bitmap_gpu_query(bitmap_client *c, const bitmap_plan *plan, uint32_t n, uint32_t runs, uint64_t *chunks,
                           double *seconds, double *kernel_seconds, bitmap_steps *steps, gx_error *err)
{
    const double share = 1.0 / std::max(runs - 1, 1u);
    bitmap_steps sum = {};
    *seconds = 0;
    TRY(cudaMemsetAsync(c->result.p, 0xa5, c->g->n_chunks * 8, c->streams[0]), "filling memory");
    for (uint32_t run = 0; run < runs; ++run) {
        query_run r = {c, plan};
        r.pooled = plan->config->pool || plan->no_calls;
        TRY(cudaStreamSynchronize(c->streams[0]), "the stream");
        const double begin = gx_clock_seconds();
        PASS(run_query(r, n, err));
        const double took = gx_clock_seconds() - begin;
        PASS(r.collect_steps(err));
        if (run == 0 && runs > 1)
            continue;
        *seconds += took * share;
        sum.memory += r.steps.memory * share;
        sum.reduction += r.steps.reduction * share;
        sum.memory_calls = r.steps.memory_calls;
        for (int k = 0; k < 5; ++k)
            sum.stages[k] += r.steps.stages[k] * share;
    }
    if (steps)
        *steps = sum;
    if (kernel_seconds) { /* all kernels, launched without waiting; only of a query in one group */
        query_run r = {c, plan};
        const uint32_t slots = n_arrays(plan->config) * n;
        gx_status st = GX_OK;
        r.pooled = true;
        r.group = n;
        r.slot = slots ? bitmap_pool_take(c->g->pool, slots) : 0;
        const gx_status timed = c->timer.mean(runs, false, c->streams[0], kernel_seconds, err, [&] {
            if (st == GX_OK)
                st = run_at_once(r, 0, n, c->result.p, err);
        });
        if (slots)
            bitmap_pool_give(c->g->pool, r.slot, slots);
        PASS(st);
        PASS(timed);
    }
    if (chunks)
        TRY(cudaMemcpy(chunks, c->result.p, c->g->n_chunks * 8, cudaMemcpyDeviceToHost), "the result");
    return GX_OK;
}

uint64_t bitmap_gpu_waits(bitmap_gpu *g)
{
    return bitmap_pool_waits(g->pool);
}

gx_status bitmap_gpu_copy_time(bitmap_client *c, uint32_t runs, double *seconds, gx_error *err)
{
    void *pinned;
    TRY(cudaMallocHost(&pinned, c->g->n_chunks * 8), "pinned memory");
    const gx_status st = c->timer.mean(runs, false, c->streams[0], seconds, err, [&] {
        cudaMemcpyAsync(pinned, c->result.p, c->g->n_chunks * 8, cudaMemcpyDeviceToHost, c->streams[0]);
    });
    cudaFreeHost(pinned);
    return st;
}

gx_status bitmap_gpu_ours(bitmap_client *c, uint32_t variant, uint32_t n, uint32_t runs, bool cold,
                          const bitmap_answer *answer, double *seconds, gx_error *err)
{
    bitmap_gpu *const g = c->g;
    const bitmap_variant *const v = &bitmap_variants[variant];
    const int size = (int)(std::find(tile_sizes, tile_sizes + TILE_SIZES, v->tile) - tile_sizes);
    const uint32_t bytes = v->warps * v->tile * 8, n_tiles = bitmap_n_tiles(g->ix, v->tile);
    const uint64_t n_rows = g->ix->shape.n_rows, mask_bytes = (n_rows + 31) / 32 * 4;
    const gx::wah_columns columns = {g->atoms.p, g->d_begins.p, g->samples[size].p, g->n, n_tiles, g->n_chunks};
    const gx::wah_result out = {answer->chunks ? c->result.p : NULL, answer->mask ? c->mask.p : NULL,
                                answer->count ? c->count.p : NULL, n_rows};
    TRY(cudaFuncSetAttribute(or_kernels[variant], cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
        "shared memory");
    TRY(cudaMemsetAsync(c->result.p, 0xa5, g->n_chunks * 8, c->streams[0]), "filling memory");
    TRY(cudaMemsetAsync(c->mask.p, 0xa5, mask_bytes, c->streams[0]), "filling memory");
    PASS(c->timer.mean(runs, cold, c->streams[0], seconds, err, [&] {
        if (out.count)
            cudaMemsetAsync(out.count, 0, sizeof *out.count, c->streams[0]);
        or_kernels[variant]<<<n_tiles, v->warps * 32, bytes, c->streams[0]>>>(columns, 0, n, out);
    }));
    if (answer->chunks)
        TRY(cudaMemcpy(answer->chunks, c->result.p, g->n_chunks * 8, cudaMemcpyDeviceToHost), "the result");
    if (answer->mask)
        TRY(cudaMemcpy(answer->mask, c->mask.p, mask_bytes, cudaMemcpyDeviceToHost), "the result");
    if (answer->count)
        TRY(cudaMemcpy(answer->count, c->count.p, sizeof *answer->count, cudaMemcpyDeviceToHost), "the result");
    return GX_OK;
}

gx_status bitmap_gpu_reduce(bitmap_client *c, bitmap_reduction r, uint32_t n, uint32_t runs, bool cold,
                            uint64_t *chunks, double *seconds, gx_error *err)
{
    bitmap_gpu *const g = c->g;
    TRY(cudaMemsetAsync(c->result.p, 0xa5, g->n_chunks * 8, c->streams[0]), "filling memory");
    PASS(c->timer.mean(runs, cold, c->streams[0], seconds, err, [&] {
        launch_reduction(c, r, {g->plain.p, NULL, g->n_chunks}, n, c->result.p);
    }));
    if (chunks)
        TRY(cudaMemcpy(chunks, c->result.p, g->n_chunks * 8, cudaMemcpyDeviceToHost), "the result");
    return GX_OK;
}

/* ---- ranges by other encodings ---- */

const char *bitmap_encoding_name(bitmap_encoding e)
{
    static const char *const names[BITMAP_N_ENCODINGS] = {"two range-encoded columns", "bit slices", "forward column"};
    return names[e];
}

static uint32_t n_slices_of(uint32_t n_bins)
{
    uint32_t n = 0;
    while (n_bins > 1u << n)
        ++n;
    return n;
}

uint64_t bitmap_encoding_bytes(bitmap_encoding e, uint64_t n_rows, uint32_t n_bins)
{
    const uint64_t column = (n_rows + 127) / 128 * 16;
    return e == BITMAP_BY_COLUMNS ? 2 * column : e == BITMAP_BY_SLICES ? n_slices_of(n_bins) * column : n_rows;
}

gx_status bitmap_gpu_range(const bitmap_index *ix, bitmap_encoding e, uint32_t low, uint32_t high, uint32_t runs,
                           bool cold, uint32_t *mask, double *seconds, gx_error *err)
{
    const uint64_t n_rows = ix->shape.n_rows, n_quads = (n_rows + 127) / 128, n_words = (n_rows + 31) / 32;
    const uint32_t n_slices = n_slices_of(ix->n_columns);
    device_array<uint32_t> columns, out;
    device_array<uint8_t> values;
    gpu_timer timer;
    if (e == BITMAP_BY_VALUES) {
        std::vector<uint8_t> padded(n_quads * 128, 0xff);
        std::copy(ix->values, ix->values + n_rows, padded.begin());
        PASS(values.upload(padded.data(), padded.size(), err));
    } else {
        std::vector<uint32_t> words((e == BITMAP_BY_COLUMNS ? 2 : n_slices) * n_quads * 4);
        for (uint64_t row = 0; row < n_rows; ++row) {
            const uint32_t bin = ix->values[row], bits = e == BITMAP_BY_SLICES ? bin : (bin <= high) | (bin < low) << 1;
            for (uint32_t k = 0, left = bits; left; ++k, left >>= 1)
                words[k * n_quads * 4 + row / 32] |= (left & 1) << row % 32;
        }
        PASS(columns.upload(words.data(), words.size(), err));
    }
    PASS(out.alloc(n_quads * 4, err));
    TRY(cudaMemset(out.p, 0xa5, n_quads * 16), "filling memory");
    PASS(timer.open(err));
    const uint4 *const quads = (const uint4 *)columns.p;
    const uint32_t blocks = (uint32_t)((n_quads + gx::RANGE_THREADS - 1) / gx::RANGE_THREADS);
    PASS(timer.mean(runs, cold, 0, seconds, err, [&] {
        if (e == BITMAP_BY_COLUMNS)
            gx::range_by_columns<<<blocks, gx::RANGE_THREADS>>>(quads, low ? quads + n_quads : NULL, n_quads,
                                                                (uint4 *)out.p);
        else if (e == BITMAP_BY_SLICES)
            gx::range_by_slices<<<blocks, gx::RANGE_THREADS>>>(quads, n_slices, low, high, n_rows, n_quads,
                                                               (uint4 *)out.p);
        else
            gx::range_by_values<<<(uint32_t)((n_quads * 4 + gx::RANGE_THREADS - 1) / gx::RANGE_THREADS),
                                  gx::RANGE_THREADS>>>((const uint4 *)values.p, low, high, n_quads * 4, out.p);
    }));
    TRY(cudaMemcpy(mask, out.p, n_words * 4, cudaMemcpyDeviceToHost), "the result");
    return GX_OK;
}
