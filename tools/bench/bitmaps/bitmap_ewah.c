#include "tools/bench/bitmaps/bitmap_ewah.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel.h"
#include "tools/bench/bitmaps/ewah.h"
#include "tools/bench/bitmaps/wah.h"

enum { TILE = 2048 }; /* words of a result that are made at a time; 16 KB stay in the L1 cache */

/* Columns of rows [64 * first, 64 * (first + n)). */
typedef struct share {
    uint64_t first, n; /* words */
    ewah *columns;     /* [n columns] */
    ewah_reader *readers;
    ewah merged;
} share;

struct bitmap_ewah {
    const uint64_t *chunks;
    uint32_t n, n_shares;
    uint64_t n_rows, n_chunks, n_words;
    share *shares;    /* [1 + n_shares], the first of all rows */
    uint64_t *buffer; /* [n_words] the result */
    atomic_bool failed;
};

/* Word `at` of a column: 64 rows of chunks of 63. */
static uint64_t word_of(const bitmap_ewah *e, const uint64_t *chunks, uint64_t at)
{
    const uint64_t row = at * 64, c = row / GX_WAH_ROWS, skip = row % GX_WAH_ROWS;
    const uint64_t next = c + 1 < e->n_chunks ? chunks[c + 1] : 0;
    return chunks[c] >> skip | next << (GX_WAH_ROWS - skip);
}

static bool code_share(bitmap_ewah *e, share *s)
{
    bool good = (s->columns = calloc(e->n, sizeof *s->columns)) && (s->readers = calloc(e->n, sizeof *s->readers));
    for (uint32_t i = 0; i < e->n && good; ++i)
        for (uint64_t w = 0; w < s->n && good; ++w)
            good = ewah_add(&s->columns[i], word_of(e, e->chunks + i * e->n_chunks, s->first + w), 1);
    return good;
}

static void code_numbered(void *user, uint32_t number)
{
    bitmap_ewah *const e = user;
    if (!code_share(e, &e->shares[number]))
        atomic_store(&e->failed, true);
}

gx_status bitmap_ewah_open(bitmap_ewah **out, const uint64_t *chunks, uint32_t n, uint64_t n_rows, uint32_t max_threads)
{
    bitmap_ewah *const e = *out = calloc(1, sizeof *e);
    const uint64_t n_words = (n_rows + 63) / 64, n_tiles = (n_words + TILE - 1) / TILE;
    if (!e)
        return GX_ENOMEM;
    const uint64_t a_share = (n_tiles + 4ull * max_threads - 1) / (4ull * max_threads) * TILE;
    e->chunks = chunks;
    e->n = n;
    e->n_rows = n_rows;
    e->n_chunks = gx_wah_n_chunks(n_rows);
    e->n_words = n_words;
    e->n_shares = (uint32_t)((n_words + a_share - 1) / a_share);
    e->shares = calloc(e->n_shares + 1ull, sizeof *e->shares);
    e->buffer = malloc(n_words * sizeof *e->buffer);
    if (e->shares && e->buffer) {
        e->shares[0].n = n_words;
        for (uint32_t i = 0; i < e->n_shares; ++i) {
            const uint64_t first = i * a_share, left = n_words - first;
            e->shares[i + 1] = (share){.first = first, .n = left < a_share ? left : a_share};
        }
        gx_parallel_for(max_threads, e->n_shares + 1, code_numbered, e);
    }
    if (e->shares && e->buffer && !atomic_load(&e->failed))
        return GX_OK;
    bitmap_ewah_close(e);
    *out = NULL;
    return GX_ENOMEM;
}

void bitmap_ewah_clear(bitmap_ewah *e)
{
    for (uint32_t s = 0; s < e->n_shares + 1 && e->shares; ++s)
        ewah_free(&e->shares[s].merged);
}

void bitmap_ewah_close(bitmap_ewah *e)
{
    if (!e)
        return;
    bitmap_ewah_clear(e);
    for (uint32_t s = 0; s < e->n_shares + 1 && e->shares; ++s) {
        for (uint32_t i = 0; i < e->n && e->shares[s].columns; ++i)
            ewah_free(&e->shares[s].columns[i]);
        free(e->shares[s].columns);
        free(e->shares[s].readers);
    }
    free(e->shares);
    free(e->buffer);
    free(e);
}

uint64_t bitmap_ewah_bytes(const bitmap_ewah *e)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < e->n; ++i)
        bytes += e->shares[0].columns[i].n * sizeof(uint64_t);
    return bytes;
}

uint32_t bitmap_ewah_n_shares(const bitmap_ewah *e, uint32_t n_threads)
{
    return n_threads == 1 ? 1 : e->n_shares;
}

static void or_into_buffer(const bitmap_ewah *e, share *s)
{
    for (uint32_t i = 0; i < e->n; ++i)
        s->readers[i] = ewah_begin(&s->columns[i]);
    for (uint64_t at = 0; at < s->n; at += TILE) {
        const uint64_t n = s->n - at < TILE ? s->n - at : TILE;
        uint64_t *const words = e->buffer + s->first + at;
        memset(words, 0, n * sizeof *words);
        for (uint32_t i = 0; i < e->n; ++i)
            ewah_or_next(&s->readers[i], n, words);
    }
}

bool bitmap_ewah_or(bitmap_ewah *e, bitmap_ewah_way way, uint32_t n_threads, uint32_t number)
{
    share *const s = &e->shares[n_threads == 1 ? 0 : number + 1];
    if (way == BITMAP_EWAH_MERGED)
        return ewah_or_many(s->columns, e->n, &s->merged);
    or_into_buffer(e, s);
    return true;
}

void bitmap_ewah_copy(bitmap_ewah *e, bitmap_ewah_way way, uint32_t n_threads, uint64_t *chunks)
{
    for (uint32_t k = 0; way == BITMAP_EWAH_MERGED && k < bitmap_ewah_n_shares(e, n_threads); ++k) {
        const share *const s = &e->shares[n_threads == 1 ? 0 : k + 1];
        ewah_reader r = ewah_begin(&s->merged);
        memset(e->buffer + s->first, 0, s->n * sizeof *e->buffer);
        ewah_or_next(&r, s->n, e->buffer + s->first);
    }
    memset(chunks, 0, e->n_chunks * sizeof *chunks);
    for (uint64_t row = 0; row < e->n_rows; ++row)
        chunks[row / GX_WAH_ROWS] |= (e->buffer[row / 64] >> row % 64 & 1) << row % GX_WAH_ROWS;
}
