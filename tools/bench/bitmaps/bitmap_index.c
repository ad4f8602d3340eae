#include "tools/bench/bitmaps/bitmap_index.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel.h"
#include "engine/random.h"
#include "engine/status.h"

const bitmap_shape bitmap_shapes[] = {
    {"bpa", "BPA", 7273800, 20, 1367, 1, 94},
    {"linkage", "linkage", 5749132, 12, 130, 1, 370},
    {"kddcup", "kddcup", 4898431, 42, 475, 1, 630},
    {"zipf", "Zipf", 32000000, 10, 100, 2, 1},
    {"runs", "Zipf in runs", 32000000, 10, 100, 2, 500},
    {"range", "one attribute", 32000000, 1, 128, 0, 1},
    {NULL},
};

/* ---- drawing ---- */

/* Numbers below n by given probabilities: Walker's alias method. */
typedef struct alias_table {
    uint32_t n, *other;
    double *keep;
} alias_table;

static bool make_alias(alias_table *t, uint32_t n, double skew)
{
    uint32_t *const few = malloc(n * sizeof *few), *const many = malloc(n * sizeof *many);
    uint32_t n_few = 0, n_many = 0;
    double sum = 0;
    *t = (alias_table){n, malloc(n * sizeof *t->other), malloc(n * sizeof *t->keep)};
    const bool ok = few && many && t->other && t->keep;
    for (uint32_t i = 0; ok && i < n; ++i)
        sum += pow(i + 1, -skew);
    for (uint32_t i = 0; ok && i < n; ++i) {
        t->keep[i] = pow(i + 1, -skew) / sum * n;
        t->other[i] = i;
        if (t->keep[i] < 1)
            few[n_few++] = i;
        else
            many[n_many++] = i;
    }
    while (ok && n_few && n_many) {
        const uint32_t a = few[--n_few], b = many[n_many - 1];
        t->other[a] = b;
        t->keep[b] -= 1 - t->keep[a];
        if (t->keep[b] < 1) {
            --n_many;
            few[n_few++] = b;
        }
    }
    free(few);
    free(many);
    return ok;
}

static void free_alias(alias_table *t)
{
    free(t->other);
    free(t->keep);
}

static uint32_t draw(const alias_table *t, uint64_t *seed)
{
    const uint64_t x = gx_random_next(seed);
    const uint32_t i = (uint32_t)((x >> 32) * t->n >> 32);
    return (double)(uint32_t)x < t->keep[i] * 0x1p32 ? i : t->other[i];
}

static uint64_t draw_run(double mean, uint64_t *seed)
{
    if (mean <= 1)
        return 1;
    const double u = ((double)(gx_random_next(seed) >> 11) + 1) * 0x1p-53; /* in (0, 1] */
    return 1 + (uint64_t)(log(u) / log1p(-1 / mean));
}

/* ---- the columns of an attribute ---- */

/* A chunk in the making: the words of the bins that it has touched. */
typedef struct open_chunk {
    uint64_t *words;   /* [n_bins] */
    uint32_t *touched; /* [63] */
    uint32_t n_touched;
} open_chunk;

static gx_status put_chunk(open_chunk *c, gx_wah_writer *columns, uint64_t number)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < c->n_touched && st == GX_OK; ++i) {
        gx_wah_writer *const w = &columns[c->touched[i]];
        st = gx_wah_put(w, 0, number - w->n_chunks);
        if (st == GX_OK)
            st = gx_wah_put(w, c->words[c->touched[i]], 1);
        c->words[c->touched[i]] = 0;
    }
    c->n_touched = 0;
    return st;
}

static gx_status write_columns(const bitmap_shape *s, const alias_table *t, open_chunk *c, uint64_t seed,
                               gx_wah_writer *columns, uint8_t *values)
{
    const uint64_t n_chunks = gx_wah_n_chunks(s->n_rows);
    gx_status st = GX_OK;
    uint64_t left = 0;
    uint32_t bin = 0;
    for (uint64_t chunk = 0, row = 0; chunk < n_chunks && st == GX_OK; ++chunk) {
        for (uint32_t bit = 0; bit < GX_WAH_ROWS && row < s->n_rows;) {
            if (left == 0) {
                bin = draw(t, &seed);
                left = draw_run(s->run, &seed);
            }
            uint64_t n = GX_WAH_ROWS - bit;
            n = n < left ? n : left;
            n = n < s->n_rows - row ? n : s->n_rows - row;
            if (!c->words[bin])
                c->touched[c->n_touched++] = bin;
            c->words[bin] |= GX_WAH_ONES >> (GX_WAH_ROWS - n) << bit;
            if (values)
                memset(values + row, (int)bin, n);
            bit += (uint32_t)n;
            row += n;
            left -= n;
        }
        st = put_chunk(c, columns, chunk);
    }
    for (uint32_t i = 0; i < t->n && st == GX_OK; ++i)
        st = gx_wah_put(&columns[i], 0, n_chunks - columns[i].n_chunks);
    return st;
}

/* ---- the index ---- */

void bitmap_attribute(const bitmap_shape *shape, uint32_t attribute, uint32_t *first, uint32_t *n)
{
    const uint64_t a = attribute, all = shape->n_columns;
    *first = (uint32_t)(a * all / shape->n_attributes);
    *n = (uint32_t)((a + 1) * all / shape->n_attributes) - *first;
}

typedef struct drawing {
    bitmap_index *ix;
    gx_wah_writer *columns;
    uint64_t seed;
    atomic_int status;
} drawing;

static void draw_attribute(void *user, uint32_t number)
{
    drawing *const d = user;
    const bitmap_shape *const s = &d->ix->shape;
    alias_table t = {0};
    uint32_t first, n;
    gx_status st = GX_ENOMEM;
    bitmap_attribute(s, number, &first, &n);
    open_chunk c = {calloc(n, sizeof *c.words), malloc(GX_WAH_ROWS * sizeof *c.touched), 0};
    uint64_t seed = d->seed * 0x10001 + number;
    seed = gx_random_next(&seed);
    if (c.words && c.touched && make_alias(&t, n, s->skew))
        st = write_columns(s, &t, &c, seed, d->columns + first, number ? NULL : d->ix->values);
    if (st != GX_OK)
        atomic_store(&d->status, st);
    free_alias(&t);
    free(c.words);
    free(c.touched);
}

/* A column to its place, and checked there. */
static void place_column(void *user, uint32_t i)
{
    drawing *const d = user;
    memcpy(d->ix->atoms + d->ix->begins[i], d->columns[i].atoms, d->columns[i].n_atoms * sizeof *d->ix->atoms);
    gx_wah_free(&d->columns[i]);
    const gx_wah c = bitmap_column(d->ix, i);
    if (gx_wah_check(&c, NULL) != GX_OK)
        atomic_store(&d->status, GX_EINTERNAL);
}

static gx_status draw_index(bitmap_index *ix, gx_wah_writer *columns, uint64_t seed, uint32_t n_threads)
{
    drawing d = {ix, columns, seed, GX_OK};
    gx_parallel_for(n_threads, ix->shape.n_attributes, draw_attribute, &d);
    for (uint32_t i = 0; i < ix->n_columns; ++i)
        ix->begins[i + 1] = ix->begins[i] + columns[i].n_atoms;
    if (atomic_load(&d.status) == GX_OK && !(ix->atoms = malloc(ix->begins[ix->n_columns] * sizeof *ix->atoms)))
        return GX_ENOMEM;
    if (atomic_load(&d.status) == GX_OK)
        gx_parallel_for(n_threads, ix->n_columns, place_column, &d);
    return atomic_load(&d.status);
}

gx_status bitmap_index_open(bitmap_index **out, const bitmap_shape *shape, uint64_t seed, uint32_t n_threads,
                            gx_error *err)
{
    *out = NULL;
    if (gx_wah_n_chunks(shape->n_rows) > UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "%s: more than 2^32 chunks of 63 rows", shape->name);
    bitmap_index *const ix = calloc(1, sizeof *ix);
    gx_wah_writer *const columns = calloc(shape->n_columns, sizeof *columns);
    gx_status st = GX_ENOMEM;
    uint32_t first, n;
    if (ix) {
        *ix =
            (bitmap_index){.shape = *shape, .n_chunks = gx_wah_n_chunks(shape->n_rows), .n_columns = shape->n_columns};
        ix->begins = calloc(ix->n_columns + 1ull, sizeof *ix->begins);
        bitmap_attribute(shape, 0, &first, &n);
        ix->values = n <= 256 ? malloc(shape->n_rows + 1) : NULL;
        if (columns && ix->begins && (n > 256 || ix->values))
            st = draw_index(ix, columns, seed, n_threads);
    }
    for (uint32_t i = 0; columns && i < shape->n_columns; ++i)
        gx_wah_free(&columns[i]);
    free(columns);
    if (st != GX_OK) {
        bitmap_index_close(ix);
        return gx_fail(err, st,
                       st == GX_ENOMEM ? "%s: no memory for %llu rows" : "%s: its columns of %llu rows are wrong",
                       shape->name, (unsigned long long)shape->n_rows);
    }
    *out = ix;
    return GX_OK;
}

void bitmap_index_close(bitmap_index *ix)
{
    if (!ix)
        return;
    free(ix->atoms);
    free(ix->begins);
    free(ix->values);
    free(ix);
}

bitmap_sample *bitmap_make_samples(const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t tile)
{
    const uint32_t n_tiles = bitmap_n_tiles(ix, tile);
    bitmap_sample *const samples = malloc((n_tiles + 1ull) * n * sizeof *samples);
    for (uint32_t i = 0; samples && i < n; ++i) {
        const gx_wah c = bitmap_column(ix, first + i);
        uint64_t chunk = 0;
        uint32_t t = 0;
        for (uint64_t a = 0; a < c.n_atoms; ++a) {
            const uint64_t end = chunk + gx_wah_length(c.atoms[a]);
            for (; (uint64_t)t * tile < end; ++t)
                samples[(uint64_t)t * n + i] = (bitmap_sample){(uint32_t)a, (uint32_t)((uint64_t)t * tile - chunk)};
            chunk = end;
        }
        samples[(uint64_t)n_tiles * n + i] = (bitmap_sample){(uint32_t)c.n_atoms, 0};
    }
    return samples;
}
