/* ewah.h: bitmaps under Enhanced Word-Aligned Hybrid coding (Lemire, Kaser and Aouiche, "Sorting improves
 * word-aligned bitmap indexes", Data & Knowledge Engineering 2010), in words of 64 bits: a peer that
 * `gpuidx bench bitmaps` compares with.
 *
 * A bitmap is a sequence of words of 64 rows: row r is bit r % 64 of word r / 64. A word is clean if its
 * bits are all 0 or all 1, else dirty. The coded form is a sequence of markers, each of which is followed
 * by the dirty words that it counts, as they are:
 *
 *   bit 0           bits 1 to 32                    bits 33 to 63
 *   running bit     running length: clean words,    dirty words, which follow the clean ones
 *                   each of the running bit
 *
 * This is the layout of the authors' EWAHBoolArray<uint64_t>.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_EWAH_H
#define GX_TOOLS_BENCH_BITMAPS_EWAH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EWAH_MAX_RUN UINT32_MAX    /* the most clean words of a marker */
#define EWAH_MAX_DIRTY 0x7fffffffu /* the most dirty words of a marker */

/* A bitmap to write. All zero: an empty one, without words. Free it by ewah_free. */
typedef struct ewah {
    uint64_t *words; /* [n] markers and dirty words */
    size_t n, max;
    size_t marker;    /* where the last marker is */
    uint64_t n_words; /* that the bitmap has, clean and dirty */
} ewah;

/* Append n words, each equal to `word`. false: no memory, and the bitmap holds fewer of them. */
bool ewah_add(ewah *e, uint64_t word, uint64_t n);
void ewah_free(ewah *e);

/* The OR of bitmaps of as many words, coded too, to `out`, which must be empty. Of two, clean words meet
 * in one step; of many, the two that take the least memory are merged first, again and again, as the
 * authors' fast_logicalor does. n >= 1. false: no memory. */
bool ewah_or(const ewah *a, const ewah *b, ewah *out);
bool ewah_or_many(const ewah *bitmaps, uint32_t n, ewah *out);

/* A place in a bitmap, from which its words are read one after another. */
typedef struct ewah_reader {
    const uint64_t *next, *end; /* the next marker */
    const uint64_t *dirty;      /* [n_dirty] those left of the marker before */
    uint64_t run, n_dirty;      /* clean words left of the marker before, and dirty ones behind them */
    uint64_t clean;             /* what each of the clean words is */
} ewah_reader;

ewah_reader ewah_begin(const ewah *e);
/* OR the next n words of the bitmap, which has as many, into words[n]. */
void ewah_or_next(ewah_reader *r, uint64_t n, uint64_t *words);

#ifdef __cplusplus
}
#endif
#endif
