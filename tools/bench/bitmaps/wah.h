/* wah.h: columns of a bitmap index under Word-Aligned Hybrid coding (Wu, Otoo and Shoshani, TODS
 * 2006), in words of 64 bits.
 *
 * A column has a bit a row. 63 rows are a chunk: row r is bit r % 63 of chunk r / 63, and the bits
 * of the last chunk behind the last row are 0. A column is a sequence of atoms, words of 64 bits:
 *
 *   bit 63   bit 62      bits 0 to 61
 *   0        the chunk's 63 bits         literal: one chunk, neither all 0 nor all 1
 *   1        value       length          fill: that many chunks, all of whose bits are the value
 *
 * The form is canonical: no two neighbouring fills have one value, and a single chunk of equal bits
 * is a fill of length 1. So equal columns have equal atoms. A column of n_rows has
 * gx_wah_n_chunks(n_rows) chunks, fewer than 2^62 for any 64-bit number of rows, so that a length
 * never overflows.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_WAH_H
#define GX_TOOLS_BENCH_BITMAPS_WAH_H

#include "engine/api/gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GX_WAH_ROWS 63u                      /* rows of a chunk */
#define GX_WAH_ONES (UINT64_MAX >> 1)        /* a chunk of 63 ones */
#define GX_WAH_FILL ((uint64_t)1 << 63)      /* set in fills */
#define GX_WAH_VALUE ((uint64_t)1 << 62)     /* set in fills of ones */
#define GX_WAH_MAX_LENGTH (GX_WAH_VALUE - 1) /* the most chunks that a fill can count */

/* A column to read; the atoms belong to somebody else. */
typedef struct gx_wah {
    const uint64_t *atoms; /* [n_atoms] */
    uint64_t n_atoms, n_rows;
} gx_wah;

/* A column to write. All zero: an empty one. Free its atoms by gx_wah_free. */
typedef struct gx_wah_writer {
    uint64_t *atoms;
    uint64_t n_atoms, max_atoms;
    uint64_t n_chunks; /* that the atoms stand for */
} gx_wah_writer;

static inline uint64_t gx_wah_n_chunks(uint64_t n_rows)
{
    return n_rows / GX_WAH_ROWS + (n_rows % GX_WAH_ROWS != 0);
}

/* The bits of the last chunk of n_rows rows, of which there is at least one, that are rows. */
static inline uint64_t gx_wah_last_chunk(uint64_t n_rows)
{
    return GX_WAH_ONES >> (gx_wah_n_chunks(n_rows) * GX_WAH_ROWS - n_rows);
}

/* The chunks that an atom stands for. */
static inline uint64_t gx_wah_length(uint64_t atom)
{
    return atom & GX_WAH_FILL ? atom & GX_WAH_MAX_LENGTH : 1;
}

/* What each of these chunks is. */
static inline uint64_t gx_wah_chunk(uint64_t atom)
{
    return !(atom & GX_WAH_FILL) ? atom : atom & GX_WAH_VALUE ? GX_WAH_ONES : 0;
}

/* Append n chunks, each equal to `chunk` (at most GX_WAH_ONES); n may be 0. GX_ENOMEM: nothing was
 * appended. */
gx_status gx_wah_put(gx_wah_writer *w, uint64_t chunk, uint64_t n);
void gx_wah_free(gx_wah_writer *w);

/* The column written so far. n_rows must be of w->n_chunks chunks. It holds until the next put. */
static inline gx_wah gx_wah_written(const gx_wah_writer *w, uint64_t n_rows)
{
    return (gx_wah){w->atoms, w->n_atoms, n_rows};
}

/* Whether the atoms are a column of n_rows rows in canonical form. GX_ECORRUPT names the first atom
 * that is not. The functions below demand a column that passes. */
gx_status gx_wah_check(const gx_wah *c, gx_error *err);

/* The rows that are set. */
uint64_t gx_wah_count(const gx_wah *c);

/* All chunks to chunks[gx_wah_n_chunks(n_rows)]; `or` keeps the bits that are set there. */
void gx_wah_decode(const gx_wah *c, uint64_t *chunks);
void gx_wah_or_chunks(const gx_wah *c, uint64_t *chunks);

/* The same as gx_wah_or_chunks for the n chunks from chunk `first` of the column only: chunks[0] is
 * chunk `first`, which lies `skip` chunks behind the first one of atom number `atom`. */
void gx_wah_or_part(const gx_wah *c, uint64_t atom, uint64_t skip, uint64_t n, uint64_t *chunks);

/* Operations on compressed columns of equal n_rows, atom by atom: fills meet in one step, whatever
 * their length. The result is appended to `out`, which must be empty. GX_ENOMEM. */
gx_status gx_wah_and(const gx_wah *a, const gx_wah *b, gx_wah_writer *out);
gx_status gx_wah_or(const gx_wah *a, const gx_wah *b, gx_wah_writer *out);
gx_status gx_wah_not(const gx_wah *a, gx_wah_writer *out);

#ifdef __cplusplus
}
#endif
#endif
