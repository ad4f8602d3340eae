#include "tools/bench/bitmaps/wah.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"

static_assert(UINT64_MAX / GX_WAH_ROWS < GX_WAH_MAX_LENGTH, "a fill can be as long as any column");

/* ---- writing ---- */

static gx_status put_atom(gx_wah_writer *w, uint64_t atom)
{
    if (w->n_atoms == w->max_atoms) {
        const uint64_t most = w->max_atoms + w->max_atoms / 2 + 64;
        uint64_t *const atoms = realloc(w->atoms, most * sizeof *atoms);
        if (!atoms)
            return GX_ENOMEM;
        w->atoms = atoms;
        w->max_atoms = most;
    }
    w->atoms[w->n_atoms++] = atom;
    return GX_OK;
}

gx_status gx_wah_put(gx_wah_writer *w, uint64_t chunk, uint64_t n)
{
    assert(chunk <= GX_WAH_ONES && n <= GX_WAH_MAX_LENGTH - w->n_chunks);
    const bool equal = chunk == 0 || chunk == GX_WAH_ONES;
    const uint64_t fill = GX_WAH_FILL | (chunk ? GX_WAH_VALUE : 0);
    gx_status st = GX_OK;
    if (n == 0)
        return GX_OK;
    if (equal && w->n_atoms && (w->atoms[w->n_atoms - 1] & ~GX_WAH_MAX_LENGTH) == fill)
        w->atoms[w->n_atoms - 1] += n;
    else if (equal)
        st = put_atom(w, fill | n);
    else
        for (uint64_t i = 0; i < n && st == GX_OK; ++i)
            st = put_atom(w, chunk);
    if (st == GX_OK)
        w->n_chunks += n;
    return st;
}

void gx_wah_free(gx_wah_writer *w)
{
    free(w->atoms);
    *w = (gx_wah_writer){0};
}

/* ---- checking ---- */

/* What is wrong with atom i, behind which `left` chunks of the column were missing; NULL: nothing.
 */
static const char *atom_fault(const gx_wah *c, uint64_t i, uint64_t left)
{
    const uint64_t atom = c->atoms[i], length = gx_wah_length(atom);
    if (left == 0)
        return "lies behind the last row";
    if (!(atom & GX_WAH_FILL))
        return atom == 0 || atom == GX_WAH_ONES ? "is a literal of equal bits" : NULL;
    if (length == 0)
        return "is a fill of no chunks";
    if (length > left)
        return "is a fill that ends behind the last row";
    if (i && (c->atoms[i - 1] & ~GX_WAH_MAX_LENGTH) == (atom & ~GX_WAH_MAX_LENGTH))
        return "is a fill of the value of the fill before it";
    return NULL;
}

gx_status gx_wah_check(const gx_wah *c, gx_error *err)
{
    uint64_t left = gx_wah_n_chunks(c->n_rows);
    for (uint64_t i = 0; i < c->n_atoms; ++i) {
        const char *const fault = atom_fault(c, i, left);
        if (fault)
            return gx_fail(err, GX_ECORRUPT, "a WAH column: atom %llu %s", (unsigned long long)i, fault);
        left -= gx_wah_length(c->atoms[i]);
    }
    if (left)
        return gx_fail(err, GX_ECORRUPT, "a WAH column: it ends %llu chunks before the last row",
                       (unsigned long long)left);
    if (c->n_rows && gx_wah_chunk(c->atoms[c->n_atoms - 1]) & ~gx_wah_last_chunk(c->n_rows))
        return gx_fail(err, GX_ECORRUPT, "a WAH column: bits are set behind the last row");
    return GX_OK;
}

/* ---- reading ---- */

uint64_t gx_wah_count(const gx_wah *c)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < c->n_atoms; ++i)
        n += (uint64_t)__builtin_popcountll(gx_wah_chunk(c->atoms[i])) * gx_wah_length(c->atoms[i]);
    return n;
}

void gx_wah_decode(const gx_wah *c, uint64_t *chunks)
{
    for (uint64_t i = 0; i < c->n_atoms; ++i) {
        const uint64_t chunk = gx_wah_chunk(c->atoms[i]);
        for (uint64_t n = gx_wah_length(c->atoms[i]); n; --n)
            *chunks++ = chunk;
    }
}

void gx_wah_or_part(const gx_wah *c, uint64_t atom, uint64_t skip, uint64_t n, uint64_t *chunks)
{
    const uint64_t *a = c->atoms + atom;
    for (uint64_t at = 0; at < n; ++a, skip = 0) {
        if (!(*a & GX_WAH_FILL)) {
            chunks[at++] |= *a;
            continue;
        }
        const uint64_t length = gx_wah_length(*a) - skip, end = length < n - at ? at + length : n;
        if (*a & GX_WAH_VALUE)
            for (uint64_t i = at; i < end; ++i)
                chunks[i] = GX_WAH_ONES;
        at = end;
    }
}

void gx_wah_or_chunks(const gx_wah *c, uint64_t *chunks)
{
    gx_wah_or_part(c, 0, 0, gx_wah_n_chunks(c->n_rows), chunks);
}

/* ---- operations on compressed columns ---- */

/* Where an operation is in a column: `left` chunks of atom `at`, each of them `chunk`. */
typedef struct cursor {
    const gx_wah *column;
    uint64_t at, left, chunk;
} cursor;

static void load_atom(cursor *c)
{
    c->left = c->at < c->column->n_atoms ? gx_wah_length(c->column->atoms[c->at]) : 0;
    c->chunk = c->left ? gx_wah_chunk(c->column->atoms[c->at]) : 0;
}

static cursor begin(const gx_wah *column)
{
    cursor c = {.column = column};
    load_atom(&c);
    return c;
}

static void advance(cursor *c, uint64_t n)
{
    if ((c->left -= n) == 0) {
        ++c->at;
        load_atom(c);
    }
}

static inline gx_status combine(const gx_wah *a, const gx_wah *b, gx_wah_writer *out, bool conjunction)
{
    assert(a->n_rows == b->n_rows && out->n_chunks == 0);
    cursor x = begin(a), y = begin(b);
    gx_status st = GX_OK;
    while (x.left && st == GX_OK) {
        const uint64_t n = x.left < y.left ? x.left : y.left;
        st = gx_wah_put(out, conjunction ? x.chunk & y.chunk : x.chunk | y.chunk, n);
        advance(&x, n);
        advance(&y, n);
    }
    return st;
}

gx_status gx_wah_and(const gx_wah *a, const gx_wah *b, gx_wah_writer *out)
{
    return combine(a, b, out, true);
}

gx_status gx_wah_or(const gx_wah *a, const gx_wah *b, gx_wah_writer *out)
{
    return combine(a, b, out, false);
}

gx_status gx_wah_not(const gx_wah *a, gx_wah_writer *out)
{
    gx_status st = GX_OK;
    for (uint64_t i = 0; i < a->n_atoms && st == GX_OK; ++i) {
        const uint64_t n = gx_wah_length(a->atoms[i]), chunk = gx_wah_chunk(a->atoms[i]) ^ GX_WAH_ONES;
        const bool last = i + 1 == a->n_atoms; /* the rows end within its last chunk */
        st = gx_wah_put(out, chunk, n - last);
        if (last && st == GX_OK)
            st = gx_wah_put(out, chunk & gx_wah_last_chunk(a->n_rows), 1);
    }
    return st;
}
