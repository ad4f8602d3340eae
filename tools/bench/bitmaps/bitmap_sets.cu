#include <new>
#include <vector>

#include "tools/bench/bitmaps/bitmap_device.cuh"

#include "engine/clock.h"
#include "tools/bench/bitmaps/bitmap_columns.cuh"
#include "tools/bench/bitmaps/bitmap_sets.h"
#include "tools/bench/bitmaps/containers.cuh"

extern "C" {
#include "tools/bench/data/made_bitmaps.h"
}

struct bitmap_sets {
    gx_containers *containers = NULL;
    uint64_t n_rows, n_words;
    device_array<gx_container> table;
    device_array<uint32_t> data, mask, rows, tile_counts;
    device_array<unsigned long long> count;
    cudaStream_t stream = NULL;
    gpu_timer timer;

    ~bitmap_sets()
    {
        gx_containers_close(containers);
        if (stream)
            cudaStreamDestroy(stream);
    }
};

namespace {

__global__ void do_nothing() {}

gx_status fill_sets(bitmap_sets *s, const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t n_threads,
                    gx_error *err)
{
    std::vector<gx_wah> columns;
    for (uint32_t i = 0; i < n; ++i)
        columns.push_back(bitmap_column(ix, first + i));
    PASS(gx_containers_open(&s->containers, columns.data(), n, n_threads, err));
    const gx_containers *const c = s->containers;
    s->n_rows = c->n_rows;
    s->n_words = (c->n_rows + 31) / 32;
    PASS(s->table.upload(c->table, (uint64_t)c->n_places * n, err));
    PASS(s->data.upload(c->data, c->data_bytes / 4, err));
    PASS(s->mask.alloc(s->n_words, err));
    PASS(s->rows.alloc(s->n_rows, err));
    PASS(s->tile_counts.alloc(c->n_places, err));
    PASS(s->count.alloc(1, err));
    TRY(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "a stream");
    return s->timer.open(err);
}

} // namespace

gx_status bitmap_sets_open(bitmap_sets **out, const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t n_threads,
                           gx_error *err)
{
    *out = NULL;
    int device;
    TRY(cudaGetDevice(&device), "the device");
    bitmap_sets *const s = new (std::nothrow) bitmap_sets;
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for containers");
    const gx_status st = fill_sets(s, ix, first, n, n_threads, err);
    if (st != GX_OK) {
        bitmap_sets_close(s);
        return st;
    }
    *out = s;
    return GX_OK;
}

void bitmap_sets_close(bitmap_sets *s)
{
    delete s;
}

uint64_t bitmap_sets_bytes(const bitmap_sets *s, uint32_t n)
{
    const gx_containers *const c = s->containers;
    uint64_t bytes = (uint64_t)c->n_places * n * sizeof *c->table;
    for (uint32_t place = 0; place < c->n_places; ++place)
        for (uint32_t i = 0; i < n; ++i)
            bytes += gx_container_bytes(c->table[(uint64_t)place * c->n_columns + i]);
    return bytes;
}

gx_status bitmap_sets_query(bitmap_sets *s, const bitmap_step *steps, uint32_t n_steps, uint32_t runs, bool cold,
                            const bitmap_rows *answer, double *seconds, gx_error *err)
{
    const uint32_t n_tiles = s->containers->n_places;
    const gx::container_source source = {s->table.p, (const uint4 *)s->data.p, s->containers->data_bytes / 16,
                                         s->containers->n_columns};
    const gx::row_result out = {answer->mask ? s->mask.p : NULL, answer->count ? s->count.p : NULL,
                                answer->rows ? s->tile_counts.p : NULL};
    static const gx::row_operation operations[] = {gx::ROWS_OR, gx::ROWS_AND, gx::ROWS_ANDNOT};
    gx::row_steps q = {};
    static_assert(BITMAP_MAX_STEPS == gx::MAX_ROW_STEPS, "the kernel takes as many");
    assert(n_steps <= BITMAP_MAX_STEPS && (!answer->rows || (answer->mask && answer->count)));
    for (q.n = 0; q.n < n_steps; ++q.n)
        q.steps[q.n] = {operations[steps[q.n].operation], steps[q.n].first, steps[q.n].n, NULL};
    TRY(cudaMemsetAsync(s->mask.p, 0xa5, s->n_words * 4, s->stream), "filling memory");
    PASS(s->timer.mean(runs, cold, s->stream, seconds, err, [&] {
        if (out.count)
            cudaMemsetAsync(out.count, 0, sizeof *out.count, s->stream);
        gx::select_rows<<<n_tiles, gx::TILE_THREADS, 0, s->stream>>>(source, q, s->n_rows, out);
        if (answer->rows)
            gx::list_rows<<<n_tiles * gx::LIST_PARTS, gx::LIST_THREADS, 0, s->stream>>>(
                s->mask.p, s->tile_counts.p, s->n_rows, s->n_rows, s->rows.p);
    }));
    if (answer->mask)
        TRY(cudaMemcpy(answer->mask, s->mask.p, s->n_words * 4, cudaMemcpyDeviceToHost), "the result");
    if (answer->count)
        TRY(cudaMemcpy(answer->count, s->count.p, sizeof *answer->count, cudaMemcpyDeviceToHost), "the result");
    if (answer->rows)
        TRY(cudaMemcpy(answer->rows, s->rows.p, *answer->count * 4, cudaMemcpyDeviceToHost), "the result");
    return GX_OK;
}

/* ---- as index files have them ---- */

/* Columns in both memories. */
struct stored_columns {
    made_bitmaps made = {};
    device_array<gx_bitmap_entry> directory;
    device_array<uint32_t> words, mask;
    gpu_timer timer;

    ~stored_columns() { made_bitmaps_close(&made); }
};

static gx_status fill_stored(stored_columns *s, const bitmap_index *ix, bool range, gx_error *err)
{
    const gx_bitmaps *const b = &s->made.bitmaps;
    const uint32_t n_rows = (uint32_t)ix->shape.n_rows;
    uint32_t first, n;
    bitmap_attribute(&ix->shape, 0, &first, &n);
    PASS(made_bitmaps_of_values(&s->made, ix->values, n_rows, n, range ? GX_BITMAPS_RANGE : GX_BITMAPS_EQUALITY, err));
    PASS(s->directory.upload(b->directory, b->n_columns, err));
    PASS(s->words.upload(b->words, s->made.n_words + GX_READ_SLACK / 4, err));
    PASS(s->mask.alloc((n_rows + 31) / 32, err));
    return s->timer.open(err);
}

/* The columns for bins [low, high], of which there are n, as steps. In a range encoding the last bin has no column: all
 * rows have a value. */
static gx::row_steps stored_steps(const gx_bitmaps *b, const bitmap_stored *q)
{
    gx::row_steps s = {};
    if (!q->range) {
        s.steps[s.n++] = {gx::ROWS_OR, q->low, q->high - q->low + 1, NULL};
        return s;
    }
    s.all = q->high >= b->n_columns;
    if (!s.all)
        s.steps[s.n++] = {gx::ROWS_OR, q->high, 1, NULL};
    if (q->low)
        s.steps[s.n++] = {gx::ROWS_ANDNOT, q->low - 1, 1, NULL};
    return s;
}

/* The same on the CPU, as filters have it. */
static void select_by_cpu(const gx_bitmaps *b, const gx::row_steps *s, uint32_t n_rows, uint64_t *words)
{
    memset(words, s->all ? 0xff : 0, (n_rows + 63ull) / 64 * 8);
    for (uint32_t k = 0; k < s->n; ++k)
        for (uint32_t i = 0; i < s->steps[k].n; ++i)
            (s->steps[k].operation == gx::ROWS_OR ? gx_bitmap_set : gx_bitmap_clear)(b, s->steps[k].first + i, n_rows,
                                                                                     words);
}

gx_status bitmap_stored_query(const bitmap_index *ix, bitmap_stored *q, uint32_t runs, uint32_t *mask, gx_error *err)
{
    const uint32_t n_rows = (uint32_t)ix->shape.n_rows;
    stored_columns s;
    PASS(fill_stored(&s, ix, q->range, err));
    const gx_bitmaps *const b = &s.made.bitmaps;
    const gx::row_steps steps = stored_steps(b, q);
    const gx::bitmap_columns columns = {s.directory.p, s.words.p, NULL, s.made.n_words, b->n_columns, n_rows};
    const gx::row_result out = {s.mask.p, NULL, NULL};
    const uint32_t n_tiles = (n_rows + gx::TILE_ROWS - 1) / gx::TILE_ROWS;
    q->bytes = 0;
    for (uint32_t k = 0; k < steps.n; ++k)
        for (uint32_t i = 0; i < steps.steps[k].n; ++i)
            q->bytes += 4 * made_bitmaps_words(&s.made, steps.steps[k].first + i);
    TRY(cudaMemset(s.mask.p, 0xa5, (n_rows + 31ull) / 32 * 4), "filling memory");
    for (int warm = 0; warm < 2; ++warm)
        PASS(s.timer.mean(runs, !warm, 0, &q->seconds[warm], err,
                          [&] { gx::select_rows<<<n_tiles, gx::TILE_THREADS>>>(columns, steps, n_rows, out); }));
    std::vector<uint64_t> words((n_rows + 63ull) / 64 + 1);
    q->cpu_seconds = 1e9;
    for (uint32_t run = 0; run < 3; ++run) { /* the best of three */
        const double begin = gx_clock_seconds();
        select_by_cpu(b, &steps, n_rows, words.data());
        q->cpu_seconds = std::min(q->cpu_seconds, gx_clock_seconds() - begin);
    }
    TRY(cudaMemcpy(mask, s.mask.p, (n_rows + 31ull) / 32 * 4, cudaMemcpyDeviceToHost), "the result");
    for (uint64_t row = 0; row < n_rows; ++row)
        if ((mask[row / 32] >> row % 32 & 1) != (words[row / 64] >> row % 64 & 1))
            return gx_fail(err, GX_EINTERNAL, "bitmap columns: the GPU and the CPU differ at row %llu",
                           (unsigned long long)row);
    return GX_OK;
}

gx_status bitmap_launch_time(uint32_t runs, double *seconds, gx_error *err)
{
    gpu_timer timer;
    PASS(timer.open(err));
    return timer.mean(runs, false, 0, seconds, err, [] { do_nothing<<<132, gx::TILE_THREADS>>>(); });
}
