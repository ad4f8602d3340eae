#include "tools/bench/bitmaps/bitmap_cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "engine/parallel.h"
#include "engine/status.h"
#include "tools/bench/bitmaps/containers.h"

#if GX_ROARING
#include <roaring/roaring.h>
#endif

enum { TILE = 2048, CONTAINER = 65536 };

/* Roaring bitmaps of a share of the rows, a whole number of containers; [n] of the columns, and the
 * result. */
typedef struct slice {
    void **columns;
    void *result;
    uint64_t first, end; /* rows */
} slice;

struct bitmap_cpu {
    const bitmap_index *ix;
    uint32_t first, n;
    uint64_t *plain; /* [n][n_chunks] */
    bitmap_sample *samples;
    gx_containers *containers; /* of the n columns */
    uint32_t *mask;            /* their OR: a bit a row, whole containers */
    slice whole, *slices;      /* all rows; [n_slices] shares of them */
    uint32_t n_slices;
    uint64_t roaring_bytes;
    /* a measurement */
    bitmap_way way;
    uint32_t runs;
    uint64_t *chunks;
    gx_wah_writer pairs; /* the result of BITMAP_WAH_PAIRS */
    double seconds, met;
    atomic_int status;
    atomic_uint n_threads; /* 0: not known yet */
    atomic_uint arrived, round, next;
};

/* ---- CRoaring ---- */

#if GX_ROARING

static gx_status fill_bitmap(roaring_bitmap_t *b, const uint64_t *chunks, uint64_t first, uint64_t end)
{
    for (uint64_t row = first; row < end;) { /* a run of ones at a time */
        const uint64_t left = chunks[row / GX_WAH_ROWS] >> row % GX_WAH_ROWS;
        if (left == 0) {
            row = (row / GX_WAH_ROWS + 1) * GX_WAH_ROWS;
            continue;
        }
        row += (uint64_t)__builtin_ctzll(left);
        uint64_t last = row;
        for (uint64_t rest; last < end && (rest = ~chunks[last / GX_WAH_ROWS] >> last % GX_WAH_ROWS) % 2 == 0;) {
            const uint64_t ones = (uint64_t)__builtin_ctzll(rest), chunk_left = GX_WAH_ROWS - last % GX_WAH_ROWS;
            last += ones < chunk_left ? ones : chunk_left;
        }
        last = last < end ? last : end;
        if (row < last)
            roaring_bitmap_add_range(b, row, last);
        row = last;
    }
    roaring_bitmap_run_optimize(b);
    roaring_bitmap_shrink_to_fit(b);
    return GX_OK;
}

static void fill_slice(const bitmap_cpu *c, slice *s)
{
    for (uint32_t i = 0; i < c->n; ++i) {
        s->columns[i] = roaring_bitmap_create();
        fill_bitmap(s->columns[i], c->plain + i * c->ix->n_chunks, s->first, s->end);
    }
}

static void fill_numbered(void *user, uint32_t number)
{
    bitmap_cpu *const c = user;
    fill_slice(c, number ? &c->slices[number - 1] : &c->whole);
}

static gx_status open_roaring(bitmap_cpu *c, uint32_t max_threads)
{
    const uint64_t n_rows = c->ix->shape.n_rows, n_containers = (n_rows + CONTAINER - 1) / CONTAINER;
    const uint64_t share = (n_containers + 4ull * max_threads - 1) / (4ull * max_threads) * CONTAINER;
    c->n_slices = (uint32_t)((n_rows + share - 1) / share);
    c->slices = calloc(c->n_slices, sizeof *c->slices);
    c->whole = (slice){calloc(c->n, sizeof(void *)), NULL, 0, n_rows};
    if (!c->slices || !c->whole.columns)
        return GX_ENOMEM;
    for (uint32_t i = 0; i < c->n_slices; ++i) {
        const uint64_t first = i * share, end = first + share < n_rows ? first + share : n_rows;
        c->slices[i] = (slice){calloc(c->n, sizeof(void *)), NULL, first, end};
        if (!c->slices[i].columns)
            return GX_ENOMEM;
    }
    gx_parallel_for(max_threads, c->n_slices + 1, fill_numbered, c);
    for (uint32_t i = 0; i < c->n; ++i)
        c->roaring_bytes += roaring_bitmap_size_in_bytes(c->whole.columns[i]);
    return GX_OK;
}

static void free_result(slice *s)
{
    if (s->result)
        roaring_bitmap_free(s->result);
    s->result = NULL;
}

static void close_slice(slice *s, uint32_t n)
{
    free_result(s);
    for (uint32_t i = 0; s->columns && i < n; ++i)
        if (s->columns[i])
            roaring_bitmap_free(s->columns[i]);
    free(s->columns);
}

static void or_slice(bitmap_cpu *c, slice *s)
{
    s->result = roaring_bitmap_or_many(c->n, (const roaring_bitmap_t **)s->columns);
}

static bool set_row(uint32_t row, void *chunks)
{
    ((uint64_t *)chunks)[row / GX_WAH_ROWS] |= (uint64_t)1 << row % GX_WAH_ROWS;
    return true;
}

static void copy_roaring(const bitmap_cpu *c, uint64_t *chunks, uint32_t n_threads)
{
    memset(chunks, 0, c->ix->n_chunks * sizeof *chunks);
    for (uint32_t i = 0; i < (n_threads > 1 ? c->n_slices : 1); ++i)
        roaring_iterate(n_threads > 1 ? c->slices[i].result : c->whole.result, set_row, chunks);
}

#else

static gx_status open_roaring(bitmap_cpu *c, uint32_t max_threads)
{
    (void)c, (void)max_threads;
    return GX_OK;
}

static void free_result(slice *s)
{
    (void)s;
}

static void close_slice(slice *s, uint32_t n)
{
    (void)s, (void)n;
}

static void or_slice(bitmap_cpu *c, slice *s)
{
    (void)c, (void)s;
}

static void copy_roaring(const bitmap_cpu *c, uint64_t *chunks, uint32_t n_threads)
{
    (void)c, (void)chunks, (void)n_threads;
}

#endif

/* ---- opening ---- */

static gx_status open_containers(bitmap_cpu *c, uint32_t max_threads)
{
    gx_wah *const columns = malloc(c->n * sizeof *columns);
    for (uint32_t i = 0; columns && i < c->n; ++i)
        columns[i] = bitmap_column(c->ix, c->first + i);
    gx_status st = columns ? gx_containers_open(&c->containers, columns, c->n, max_threads, NULL) : GX_ENOMEM;
    free(columns);
    if (st == GX_OK && !(c->mask = malloc(c->containers->n_places * GX_CONTAINER_WORDS * sizeof *c->mask + 1)))
        st = GX_ENOMEM;
    return st;
}

static void decode_column(void *user, uint32_t i)
{
    bitmap_cpu *const c = user;
    const gx_wah column = bitmap_column(c->ix, c->first + i);
    gx_wah_decode(&column, c->plain + i * c->ix->n_chunks);
}

gx_status bitmap_cpu_open(bitmap_cpu **out, const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t max_threads,
                          gx_error *err)
{
    bitmap_cpu *const c = calloc(1, sizeof *c);
    gx_status st = GX_ENOMEM;
    *out = NULL;
    if (c) {
        c->ix = ix;
        c->first = first;
        c->n = n;
        c->plain = malloc(n * ix->n_chunks * sizeof *c->plain);
        c->samples = bitmap_make_samples(ix, first, n, TILE);
    }
    if (c && c->plain && c->samples) {
        gx_parallel_for(max_threads, n, decode_column, c);
        st = open_roaring(c, max_threads);
        if (st == GX_OK)
            st = open_containers(c, max_threads);
    }
    if (st != GX_OK) {
        bitmap_cpu_close(c);
        return gx_fail(err, st, "no memory for %u columns of %llu rows", n, (unsigned long long)ix->shape.n_rows);
    }
    *out = c;
    return GX_OK;
}

void bitmap_cpu_close(bitmap_cpu *c)
{
    if (!c)
        return;
    close_slice(&c->whole, c->n);
    for (uint32_t i = 0; c->slices && i < c->n_slices; ++i)
        close_slice(&c->slices[i], c->n);
    free(c->slices);
    gx_containers_close(c->containers);
    free(c->mask);
    free(c->plain);
    free(c->samples);
    free(c);
}

const char *bitmap_way_name(bitmap_way way)
{
    static const char *const names[BITMAP_N_WAYS] = {"WAH, two by two", "WAH into chunks", "decompressed", "containers",
                                                     "CRoaring"};
    return names[way];
}

bool bitmap_cpu_can(bitmap_way way, uint32_t n_threads)
{
#if !GX_ROARING
    if (way == BITMAP_ROARING)
        return false;
#endif
    return way != BITMAP_WAH_PAIRS || n_threads == 1;
}

uint64_t bitmap_cpu_bytes(const bitmap_cpu *c, bitmap_way way)
{
    if (way == BITMAP_PLAIN)
        return c->n * c->ix->n_chunks * sizeof *c->plain;
    if (way == BITMAP_CONTAINERS)
        return c->containers->data_bytes + (uint64_t)c->containers->n_places * c->n * sizeof *c->containers->table;
    if (way == BITMAP_ROARING)
        return c->roaring_bytes;
    return (c->ix->begins[c->first + c->n] - c->ix->begins[c->first]) * sizeof *c->ix->atoms;
}

/* ---- the ways ---- */

/* Columns in halves, so that most are merged while they are short. */
static gx_status or_pairs(const bitmap_cpu *c, uint32_t first, uint32_t n, gx_wah_writer *out)
{
    gx_wah_writer w[2] = {{0}};
    gx_wah halves[2];
    gx_status st = GX_OK;
    for (int k = 0; k < 2 && st == GX_OK; ++k) {
        const uint32_t from = first + (k ? n / 2 : 0), m = k ? n - n / 2 : n / 2;
        if (m == 1)
            halves[k] = bitmap_column(c->ix, from);
        else if ((st = or_pairs(c, from, m, &w[k])) == GX_OK)
            halves[k] = gx_wah_written(&w[k], c->ix->shape.n_rows);
    }
    if (st == GX_OK)
        st = gx_wah_or(&halves[0], &halves[1], out);
    gx_wah_free(&w[0]);
    gx_wah_free(&w[1]);
    return st;
}

static gx_status or_all_pairs(bitmap_cpu *c)
{
    gx_wah_free(&c->pairs);
    if (c->n > 1)
        return or_pairs(c, c->first, c->n, &c->pairs);
    const gx_wah only = bitmap_column(c->ix, c->first);
    return gx_wah_or(&only, &only, &c->pairs);
}

static void or_tile(const bitmap_cpu *c, uint32_t tile)
{
    const uint64_t begin = (uint64_t)tile * TILE, left = c->ix->n_chunks - begin, n = left < TILE ? left : TILE;
    uint64_t *restrict const out = c->chunks + begin;
    memset(out, 0, n * sizeof *out);
    for (uint32_t k = 0; k < c->n; ++k) {
        if (c->way == BITMAP_WAH_CHUNKS) {
            const gx_wah column = bitmap_column(c->ix, c->first + k);
            const bitmap_sample s = c->samples[(uint64_t)tile * c->n + k];
            gx_wah_or_part(&column, s.atom, s.skip, n, out);
        } else {
            const uint64_t *restrict const in = c->plain + k * c->ix->n_chunks + begin;
            for (uint64_t i = 0; i < n; ++i)
                out[i] |= in[i];
        }
    }
}

static uint32_t n_items(const bitmap_cpu *c)
{
    if (c->way == BITMAP_WAH_PAIRS || (c->way == BITMAP_ROARING && atomic_load(&c->n_threads) == 1))
        return 1;
    if (c->way == BITMAP_CONTAINERS)
        return c->containers->n_places;
    return c->way == BITMAP_ROARING ? c->n_slices : bitmap_n_tiles(c->ix, TILE);
}

static void do_item(bitmap_cpu *c, uint32_t i)
{
    if (c->way == BITMAP_WAH_PAIRS) {
        if (or_all_pairs(c) != GX_OK)
            atomic_store(&c->status, GX_ENOMEM);
    } else if (c->way == BITMAP_ROARING) {
        or_slice(c, atomic_load(&c->n_threads) == 1 ? &c->whole : &c->slices[i]);
    } else if (c->way == BITMAP_CONTAINERS) {
        uint32_t *const words = c->mask + (uint64_t)i * GX_CONTAINER_WORDS;
        memset(words, 0, GX_CONTAINER_WORDS * sizeof *words);
        gx_containers_or(c->containers, i, 0, c->n, words);
    } else {
        or_tile(c, i);
    }
}

static void copy_mask(const bitmap_cpu *c, uint64_t *chunks)
{
    memset(chunks, 0, c->ix->n_chunks * sizeof *chunks);
    for (uint64_t row = 0; row < c->ix->shape.n_rows; ++row)
        chunks[row / GX_WAH_ROWS] |= (uint64_t)(c->mask[row / 32] >> row % 32 & 1) << row % GX_WAH_ROWS;
}

/* ---- measuring ---- */

/* All threads wait for one another. Returns when the last of them came: a thread that waited may be
 * late to see it. The time holds until the threads meet again. */
static double meet(bitmap_cpu *c)
{
    const uint32_t n = atomic_load(&c->n_threads), round = atomic_load(&c->round);
    if (atomic_fetch_add(&c->arrived, 1) + 1 == n) {
        atomic_store(&c->arrived, 0);
        c->met = gx_clock_seconds();
        atomic_fetch_add(&c->round, 1);
    }
    while (atomic_load(&c->round) == round)
        ;
    return c->met;
}

static void work(void *user, uint32_t thread)
{
    bitmap_cpu *const c = user;
    while (atomic_load(&c->n_threads) == 0)
        ;
    const uint32_t n = n_items(c);
    for (uint32_t run = 0; run < c->runs; ++run) {
        if (thread == 0) {
            atomic_store(&c->next, 0);
            free_result(&c->whole);
            for (uint32_t i = 0; i < c->n_slices; ++i)
                free_result(&c->slices[i]);
        }
        const double begin = meet(c);
        for (uint32_t i; (i = atomic_fetch_add(&c->next, 1)) < n;)
            do_item(c, i);
        const double end = meet(c);
        if (thread == 0 && run)
            c->seconds += end - begin;
    }
}

gx_status bitmap_cpu_or(bitmap_cpu *c, bitmap_way way, uint32_t n_threads, uint32_t runs, uint64_t *chunks,
                        double *seconds, gx_error *err)
{
    c->way = way;
    c->runs = runs;
    c->chunks = chunks;
    c->seconds = 0;
    atomic_store(&c->status, GX_OK);
    atomic_store(&c->n_threads, 0);
    gx_threads *const others = gx_threads_start(n_threads - 1, 1, work, c);
    atomic_store(&c->n_threads, gx_threads_count(others) + 1);
    work(c, 0);
    gx_threads_join(others);
    const gx_status st = (gx_status)atomic_load(&c->status);
    if (st == GX_OK && way == BITMAP_WAH_PAIRS) {
        const gx_wah all = gx_wah_written(&c->pairs, c->ix->shape.n_rows);
        gx_wah_decode(&all, chunks);
    }
    gx_wah_free(&c->pairs);
    if (st == GX_OK && way == BITMAP_CONTAINERS)
        copy_mask(c, chunks);
    if (st == GX_OK && way == BITMAP_ROARING)
        copy_roaring(c, chunks, atomic_load(&c->n_threads));
    *seconds = c->seconds / (runs - 1);
    return st == GX_OK ? st : gx_fail(err, st, "no memory for the OR of %u columns", c->n);
}
