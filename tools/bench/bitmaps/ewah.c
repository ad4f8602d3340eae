#include "tools/bench/bitmaps/ewah.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"

static uint64_t run_of(uint64_t marker)
{
    return marker >> 1 & EWAH_MAX_RUN;
}

static uint64_t dirty_of(uint64_t marker)
{
    return marker >> 33;
}

/* ---- writing ---- */

/* Begin a marker that counts nothing yet. */
static bool add_marker(ewah *e)
{
    if (!gx_reserve(&e->words, &e->max, e->n + 1, sizeof *e->words))
        return false;
    e->marker = e->n;
    e->words[e->n++] = 0;
    return true;
}

static bool add_clean(ewah *e, uint64_t bit, uint64_t n)
{
    if (n && e->n == 0 && !add_marker(e))
        return false;
    while (n) {
        uint64_t *const m = &e->words[e->marker];
        const uint64_t run = run_of(*m), room = EWAH_MAX_RUN - run, more = n < room ? n : room;
        if (dirty_of(*m) || (run && (*m & 1) != bit) || more == 0) {
            if (!add_marker(e))
                return false;
            continue;
        }
        *m = (*m & ~(uint64_t)1) + (more << 1) + bit;
        e->n_words += more;
        n -= more;
    }
    return true;
}

static bool add_dirty(ewah *e, const uint64_t *words, uint64_t n)
{
    if (!gx_reserve(&e->words, &e->max, e->n + n + 2, sizeof *e->words) || (n && e->n == 0 && !add_marker(e)))
        return false;
    while (n) {
        const uint64_t room = EWAH_MAX_DIRTY - dirty_of(e->words[e->marker]), more = n < room ? n : room;
        if (more == 0) {
            if (!add_marker(e))
                return false;
            continue;
        }
        if (!gx_reserve(&e->words, &e->max, e->n + more, sizeof *e->words))
            return false;
        memcpy(e->words + e->n, words, more * sizeof *words);
        e->words[e->marker] += more << 33;
        e->n += more;
        e->n_words += more;
        words += more;
        n -= more;
    }
    return true;
}

bool ewah_add(ewah *e, uint64_t word, uint64_t n)
{
    bool good = true;
    if (word == 0 || word == UINT64_MAX)
        return add_clean(e, word & 1, n);
    for (; n && good; --n)
        good = add_dirty(e, &word, 1);
    return good;
}

void ewah_free(ewah *e)
{
    free(e->words);
    *e = (ewah){0};
}

/* ---- reading ---- */

/* Go to the next marker that counts a word, if nothing is left of the one before. */
static void refill(ewah_reader *r)
{
    while (r->run == 0 && r->n_dirty == 0 && r->next < r->end) {
        const uint64_t m = *r->next;
        r->run = run_of(m);
        r->n_dirty = dirty_of(m);
        r->clean = m & 1 ? UINT64_MAX : 0;
        r->dirty = r->next + 1;
        r->next += 1 + r->n_dirty;
    }
}

ewah_reader ewah_begin(const ewah *e)
{
    ewah_reader r = {.next = e->words, .end = e->words + e->n};
    refill(&r);
    return r;
}

static void skip_dirty(ewah_reader *r, uint64_t n)
{
    r->dirty += n;
    r->n_dirty -= n;
}

void ewah_or_next(ewah_reader *r, uint64_t n, uint64_t *restrict words)
{
    while (n) {
        const uint64_t run = r->run < n ? r->run : n;
        if (r->clean)
            memset(words, 0xff, run * sizeof *words);
        r->run -= run;
        words += run;
        n -= run;
        const uint64_t dirty = r->n_dirty < n ? r->n_dirty : n;
        for (uint64_t i = 0; i < dirty; ++i)
            words[i] |= r->dirty[i];
        skip_dirty(r, dirty);
        words += dirty;
        n -= dirty;
        refill(r);
    }
}

/* ---- OR, coded ---- */

/* Go on by n words, or to the end. */
static void skip(ewah_reader *r, uint64_t n)
{
    while (n && (r->run || r->n_dirty)) {
        const uint64_t run = r->run < n ? r->run : n, dirty = r->n_dirty < n - run ? r->n_dirty : n - run;
        r->run -= run;
        skip_dirty(r, dirty);
        n -= run + dirty;
        refill(r);
    }
}

/* Append the next n words, or those that are left. */
static bool copy(ewah_reader *r, uint64_t n, ewah *out)
{
    bool good = true;
    while (n && good && (r->run || r->n_dirty)) {
        const uint64_t run = r->run < n ? r->run : n, dirty = r->n_dirty < n - run ? r->n_dirty : n - run;
        good = add_clean(out, r->clean & 1, run) && add_dirty(out, r->dirty, dirty);
        r->run -= run;
        skip_dirty(r, dirty);
        n -= run + dirty;
        refill(r);
    }
    return good;
}

/* Words that are each the OR of two dirty ones, up to the first that is clean; returns how many. */
static uint64_t or_until_clean(const uint64_t *a, const uint64_t *b, uint64_t n, uint64_t *restrict out)
{
    uint64_t i = 0;
    for (uint64_t word; i < n && (word = a[i] | b[i]) != UINT64_MAX; ++i)
        out[i] = word;
    return i;
}

/* Dirty words that meet dirty words; those of the result are made where they stay. */
static bool or_dirty(ewah_reader *a, ewah_reader *b, ewah *out)
{
    const uint64_t n = a->n_dirty < b->n_dirty ? a->n_dirty : b->n_dirty;
    bool good = gx_reserve(&out->words, &out->max, out->n + n + 2, sizeof *out->words);
    for (uint64_t i = 0; i < n && good;) {
        if (out->n == 0 || dirty_of(out->words[out->marker]) == EWAH_MAX_DIRTY)
            good = add_marker(out) && gx_reserve(&out->words, &out->max, out->n + n - i + 1, sizeof *out->words);
        if (!good)
            break;
        const uint64_t room = EWAH_MAX_DIRTY - dirty_of(out->words[out->marker]), left = n - i < room ? n - i : room,
                       dirty = or_until_clean(a->dirty + i, b->dirty + i, left, out->words + out->n);
        out->words[out->marker] += dirty << 33;
        out->n += dirty;
        out->n_words += dirty;
        i += dirty;
        uint64_t ones = 0;
        while (dirty < left && i + ones < n && (a->dirty[i + ones] | b->dirty[i + ones]) == UINT64_MAX)
            ++ones;
        good = add_clean(out, 1, ones) &&
               gx_reserve(&out->words, &out->max, out->n + n - i - ones + 2, sizeof *out->words);
        i += ones;
    }
    skip_dirty(a, n);
    skip_dirty(b, n);
    refill(a);
    refill(b);
    return good;
}

bool ewah_or(const ewah *a, const ewah *b, ewah *out)
{
    ewah_reader x = ewah_begin(a), y = ewah_begin(b);
    bool good = gx_reserve(&out->words, &out->max, a->n + b->n + 2, sizeof *out->words);
    while (good && (x.run || x.n_dirty) && (y.run || y.n_dirty)) {
        ewah_reader *const longer = x.run > y.run ? &x : &y, *const other = x.run > y.run ? &y : &x;
        const uint64_t run = longer->run;
        if (run == 0) {
            good = or_dirty(&x, &y, out);
        } else if (longer->clean) {
            good = add_clean(out, 1, run);
            longer->run = 0;
            refill(longer);
            skip(other, run);
        } else {
            longer->run = 0;
            refill(longer);
            good = copy(other, run, out);
        }
    }
    return good;
}

/* Put heap[i] of a heap of bitmaps, the smallest first, where it belongs below i. */
static void sift(ewah *heap, uint32_t n, uint32_t i)
{
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1].n < heap[child].n;
        if (heap[child].n >= heap[i].n)
            return;
        const ewah x = heap[i];
        heap[i] = heap[child];
        heap[child] = x;
    }
}

/* The two smallest become one. A bitmap whose max is 0 is the caller's. */
static bool merge_smallest(ewah *heap, uint32_t *n)
{
    ewah both = {0}, first = heap[0];
    heap[0] = heap[--*n];
    sift(heap, *n, 0);
    const bool good = ewah_or(&first, &heap[0], &both);
    if (first.max)
        ewah_free(&first);
    if (heap[0].max)
        ewah_free(&heap[0]);
    heap[0] = both;
    sift(heap, *n, 0);
    return good;
}

bool ewah_or_many(const ewah *bitmaps, uint32_t n, ewah *out)
{
    ewah *const heap = malloc(n * sizeof *heap);
    bool good = heap != NULL;
    for (uint32_t i = 0; heap && i < n; ++i) {
        heap[i] = bitmaps[i];
        heap[i].max = 0;
    }
    for (uint32_t i = n / 2; heap && i-- > 0;)
        sift(heap, n, i);
    while (good && n > 1)
        good = merge_smallest(heap, &n);
    if (good && heap[0].max == 0) { /* the only one */
        ewah_reader r = ewah_begin(&heap[0]);
        good = copy(&r, heap[0].n_words, out);
    } else if (good) {
        *out = heap[0];
        heap[0].max = 0;
    }
    for (uint32_t i = 0; heap && i < n; ++i)
        if (heap[i].max)
            ewah_free(&heap[i]);
    free(heap);
    return good;
}
