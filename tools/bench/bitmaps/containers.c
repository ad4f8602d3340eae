#include "tools/bench/bitmaps/containers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel.h"
#include "engine/status.h"

enum { LEAST_ALIGNED = 16, BITMAP_BYTES = GX_CONTAINER_WORDS * 4 };

/* ---- making ---- */

/* Rows [row, row + n) of the words are set. n is at least 1. */
static void set_rows(uint32_t *words, uint32_t row, uint32_t n)
{
    const uint32_t first = row / 32, last = (row + n - 1) / 32;
    const uint32_t head = ~0u << row % 32, tail = ~0u >> (31 - (row + n - 1) % 32);
    if (first == last) {
        words[first] |= head & tail;
        return;
    }
    words[first] |= head;
    for (uint32_t i = first + 1; i < last; ++i)
        words[i] = ~0u;
    words[last] |= tail;
}

/* Rows that follow one another of a WAH column, told container by container. */
typedef struct wah_reader {
    const gx_wah *column;
    uint64_t atom, skip; /* the next chunk: the atom, and how many of its chunks have been read */
    uint64_t chunk;      /* its number */
} wah_reader;

/* The rows of the next container into words; what of the last chunk lies behind it is read again. */
static void read_container(wah_reader *r, uint64_t first_row, uint64_t end_row, uint32_t *words)
{
    memset(words, 0, BITMAP_BYTES);
    for (;;) {
        const uint64_t atom = r->column->atoms[r->atom], begin = r->chunk * GX_WAH_ROWS;
        const uint64_t left = gx_wah_length(atom) - r->skip, end = begin + left * GX_WAH_ROWS;
        const uint64_t from = begin > first_row ? begin : first_row, to = end < end_row ? end : end_row;
        if (atom & GX_WAH_FILL) {
            if (atom & GX_WAH_VALUE && from < to)
                set_rows(words, (uint32_t)(from - first_row), (uint32_t)(to - from));
        } else {
            for (uint64_t bits = atom; bits; bits &= bits - 1) {
                const uint64_t row = begin + (uint64_t)__builtin_ctzll(bits);
                if (row >= from && row < to)
                    words[(row - first_row) / 32] |= 1u << (row - first_row) % 32;
            }
        }
        if (end >= end_row) { /* stay at the chunk in which the next container begins */
            const uint64_t next = end_row / GX_WAH_ROWS;
            r->skip += next - r->chunk;
            r->chunk = next;
            if (r->skip == gx_wah_length(atom)) {
                ++r->atom;
                r->skip = 0;
            }
            return;
        }
        r->chunk += left;
        ++r->atom;
        r->skip = 0;
    }
}

/* Runs of ones: as many as there are ones that follow a zero. */
static uint32_t count_runs(const uint32_t *words, uint32_t *n_rows)
{
    uint32_t runs = 0, rows = 0, before = 0;
    for (uint32_t i = 0; i < GX_CONTAINER_WORDS; ++i) {
        runs += (uint32_t)__builtin_popcount(words[i] & ~(words[i] << 1 | before));
        rows += (uint32_t)__builtin_popcount(words[i]);
        before = words[i] >> 31;
    }
    *n_rows = rows;
    return runs;
}

uint32_t gx_container_bytes(gx_container c)
{
    static const uint32_t sizes[] = {2, 0, 4};
    return gx_container_form_of(c) == GX_CONTAINER_BITMAP ? BITMAP_BYTES
                                                          : gx_container_n(c) * sizes[gx_container_form_of(c)];
}

static gx_container choose_form(const uint32_t *words)
{
    uint32_t n_rows;
    const uint32_t n_runs = count_runs(words, &n_rows), list = 2 * n_rows, runs = 4 * n_runs;
    if (runs < list && runs < BITMAP_BYTES)
        return (gx_container){0, n_runs | (uint32_t)GX_CONTAINER_RUNS << 30};
    if (list < BITMAP_BYTES)
        return (gx_container){0, n_rows | (uint32_t)GX_CONTAINER_LIST << 30};
    return (gx_container){0, (uint32_t)GX_CONTAINER_BITMAP << 30};
}

static void write_container(const uint32_t *words, gx_container c, uint32_t *data)
{
    uint16_t *rows = (uint16_t *)data;
    if (gx_container_form_of(c) == GX_CONTAINER_BITMAP) {
        memcpy(data, words, BITMAP_BYTES);
        return;
    }
    for (uint32_t i = 0, before = 0, first = 0; i < GX_CONTAINER_WORDS; before = words[i++] >> 31) {
        if (gx_container_form_of(c) == GX_CONTAINER_LIST) {
            for (uint32_t bits = words[i]; bits; bits &= bits - 1)
                *rows++ = (uint16_t)(32 * i + (uint32_t)__builtin_ctz(bits));
            continue;
        }
        const uint32_t after = i + 1 < GX_CONTAINER_WORDS ? words[i + 1] << 31 : 0;
        const uint32_t firsts = words[i] & ~(words[i] << 1 | before), lasts = words[i] & ~(words[i] >> 1 | after);
        for (uint32_t bits = firsts | lasts; bits; bits &= bits - 1) {
            const uint32_t bit = bits & -bits, row = 32 * i + (uint32_t)__builtin_ctz(bits);
            if (firsts & bit)
                first = row;
            if (lasts & bit)
                *data++ = first | row << 16;
        }
    }
}

typedef struct making {
    gx_containers *c;
    const gx_wah *columns;
    bool writes; /* the second time */
    atomic_int status;
} making;

static void make_column(void *user, uint32_t i)
{
    making *const m = user;
    gx_containers *const c = m->c;
    uint32_t *const words = malloc(BITMAP_BYTES);
    wah_reader r = {.column = &m->columns[i]};
    if (!words) {
        atomic_store(&m->status, GX_ENOMEM);
        return;
    }
    for (uint32_t place = 0; place < c->n_places; ++place) {
        gx_container *const at = &c->table[(uint64_t)place * c->n_columns + i];
        const uint64_t first = (uint64_t)place * GX_CONTAINER_ROWS, end = first + GX_CONTAINER_ROWS;
        read_container(&r, first, end < c->n_rows ? end : c->n_rows, words);
        if (m->writes)
            write_container(words, *at, c->data + (uint64_t)at->begin * (LEAST_ALIGNED / 4));
        else
            *at = choose_form(words);
    }
    free(words);
}

static gx_status make(gx_containers *c, const gx_wah *columns, uint32_t n_threads)
{
    making m = {.c = c, .columns = columns};
    uint64_t units = 0;
    gx_parallel_for(n_threads, c->n_columns, make_column, &m);
    for (uint64_t i = 0; i < (uint64_t)c->n_places * c->n_columns; ++i) {
        c->table[i].begin = (uint32_t)units;
        units += (gx_container_bytes(c->table[i]) + LEAST_ALIGNED - 1) / LEAST_ALIGNED;
        if (units > UINT32_MAX)
            return GX_EUSAGE;
    }
    c->data_bytes = units * LEAST_ALIGNED;
    c->data = calloc(units + 1, LEAST_ALIGNED);
    m.writes = true;
    if (c->data && atomic_load(&m.status) == GX_OK)
        gx_parallel_for(n_threads, c->n_columns, make_column, &m);
    return c->data ? (gx_status)atomic_load(&m.status) : GX_ENOMEM;
}

gx_status gx_containers_open(gx_containers **out, const gx_wah *columns, uint32_t n_columns, uint32_t n_threads,
                             gx_error *err)
{
    gx_containers *const c = calloc(1, sizeof *c);
    const uint64_t n_rows = n_columns ? columns->n_rows : 0;
    gx_status st = GX_ENOMEM;
    *out = NULL;
    if (c) {
        *c = (gx_containers){.n_rows = n_rows, .n_columns = n_columns};
        c->n_places = (uint32_t)((n_rows + GX_CONTAINER_ROWS - 1) / GX_CONTAINER_ROWS);
        c->table = calloc((uint64_t)c->n_places * n_columns + 1, sizeof *c->table);
        if (c->table)
            st = make(c, columns, n_threads);
    }
    if (st != GX_OK) {
        gx_containers_close(c);
        return gx_fail(err, st,
                       st == GX_ENOMEM ? "no memory for containers of %u columns"
                                       : "%u columns in containers "
                                         "take more than 64 GiB",
                       n_columns);
    }
    *out = c;
    return GX_OK;
}

void gx_containers_close(gx_containers *c)
{
    if (!c)
        return;
    free(c->table);
    free(c->data);
    free(c);
}

/* ---- reading ---- */

void gx_containers_or(const gx_containers *c, uint32_t place, uint32_t first, uint32_t n, uint32_t *words)
{
    const gx_container *const table = c->table + (uint64_t)place * c->n_columns + first;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t *const data = c->data + (uint64_t)table[i].begin * (LEAST_ALIGNED / 4);
        const uint16_t *const rows = (const uint16_t *)data;
        const uint32_t m = gx_container_n(table[i]);
        switch (gx_container_form_of(table[i])) {
        case GX_CONTAINER_LIST:
            for (uint32_t k = 0; k < m; ++k)
                words[rows[k] / 32] |= 1u << rows[k] % 32;
            break;
        case GX_CONTAINER_BITMAP:
            for (uint32_t k = 0; k < GX_CONTAINER_WORDS; ++k)
                words[k] |= data[k];
            break;
        case GX_CONTAINER_RUNS:
            for (uint32_t k = 0; k < m; ++k)
                set_rows(words, data[k] & 0xffff, (data[k] >> 16) - (data[k] & 0xffff) + 1);
        }
    }
}
