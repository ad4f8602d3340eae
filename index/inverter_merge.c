/* The merge of inverters: their runs and the lists that they hold, term by term. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/status.h"
#include "index/inverter_held.h"

/* Lists being read, terms in byte order: a run's, or those that an inverter holds. The entry at hand, and what follows. */
typedef struct cursor {
    const gx_inverter *inv;
    uint64_t prefix; /* the term's */
    const uint8_t *term;
    uint32_t len, df, number;

    uint32_t at_key; /* held: of inv->keys, the next one's */
    const list *l;

    uint64_t next, end; /* a run: what of the file is still to be read */
    uint8_t *window;    /* bytes [at, n) are not used up. NULL: held */
    size_t at, n, max;
    uint32_t bytes;
} cursor;

/* At least want bytes of the run in the window, where there are so many; false: an error. */
static gx_status fill(const gx_inverter *inv, cursor *c, size_t want, gx_error *err)
{
    if (c->n - c->at >= want)
        return GX_OK;
    memmove(c->window, c->window + c->at, c->n - c->at);
    c->n -= c->at;
    c->at = 0;
    if (want > c->max) {
        uint8_t *p = realloc(c->window, want);
        if (!p)
            return gx_inverter_no_memory(err);
        c->window = p;
        c->max = want;
    }
    while (c->n < want) {
        const uint64_t rest = c->end - c->next, room = c->max - c->n;
        const ssize_t r = rest ? pread(inv->fd, c->window + c->n, rest < room ? rest : room, (off_t)c->next) : 0;
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return gx_fail(err, GX_EIO, "cannot read back a temporary file in %s: %s", inv->dir,
                           r < 0 ? strerror(errno) : "it ends too early");
        c->n += (size_t)r;
        c->next += (uint64_t)r;
    }
    return GX_OK;
}

/* The next entry of a run. */
static gx_status advance_run(cursor *c, gx_error *err)
{
    gx_status st = fill(c->inv, c, ENTRY_HEAD, err);
    if (st != GX_OK)
        return st;
    uint16_t len;
    memcpy(&len, c->window + c->at, 2);
    memcpy(&c->df, c->window + c->at + 2, 4);
    memcpy(&c->bytes, c->window + c->at + 6, 4);
    c->len = len;
    if ((st = fill(c->inv, c, (size_t)ENTRY_HEAD + len + c->bytes, err)) != GX_OK)
        return st;
    c->term = c->window + c->at + ENTRY_HEAD;
    c->at += (size_t)ENTRY_HEAD + len + c->bytes;
    return GX_OK;
}

/* The next list that is held and has a posting, or false. */
static bool advance_held(cursor *c)
{
    const gx_inverter *inv = c->inv;
    while (c->at_key < inv->n_lists) {
        prefetch_lists(inv, inv->keys, c->at_key);
        c->l = &inv->lists[inv->keys[c->at_key++].number];
        if (c->l->df == 0)
            continue;
        size_t len;
        c->term = term_of(inv, c->l, &len);
        c->len = (uint32_t)len;
        c->df = c->l->df;
        return true;
    }
    return false;
}

/* The next entry, or *more = false. */
static gx_status advance(cursor *c, bool *more, gx_error *err)
{
    gx_status st = GX_OK;
    *more = c->window ? c->at < c->n || c->next < c->end : advance_held(c);
    if (*more && c->window)
        st = advance_run(c, err);
    if (*more && st == GX_OK)
        c->prefix = prefix_of(c->term, c->len);
    return st;
}

static bool before(const cursor *a, const cursor *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    const int c = compare_terms(a->term, a->len, b->term, b->len);
    return c < 0 || (c == 0 && a->number < b->number);
}

/* Let heap[i] sink to its place in the heap of n. */
static void sink(cursor **heap, uint32_t n, uint32_t i)
{
    cursor *const c = heap[i];
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(heap[child + 1], heap[child]))
            ++child;
        if (!before(heap[child], c))
            break;
        heap[i] = heap[child];
    }
    heap[i] = c;
}

static void decode_entry(const cursor *c, uint32_t *docids, uint32_t *tfs)
{
    if (!c->window) {
        gx_inverter_decode(c->inv, c->l, docids, tfs);
        return;
    }
    const uint8_t *p = c->term + c->len;
    uint32_t doc = 0;
    for (uint32_t i = 0; i < c->df; ++i) {
        uint64_t v, tf = 1;
        p = get_vbyte(p, &v);
        if (!(v & 1))
            p = get_vbyte(p, &tf);
        docids[i] = doc += (uint32_t)(v >> 1);
        tfs[i] = (uint32_t)tf;
    }
}

/* Rising docids [at, end) of a list whose pieces are decoded one behind another. */
typedef struct part {
    uint32_t at, end, doc; /* doc: the one at at */
} part;

typedef struct merging {
    cursor *cursors, **heap; /* [n_cursors] */
    part *parts;             /* [n_cursors] */
    uint32_t n_cursors, n_heap;
    uint8_t *term;           /* [65536] */
    postings pieces, whole;
} merging;

static void sink_part(part *heap, uint32_t n, uint32_t i)
{
    const part p = heap[i];
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1].doc < heap[child].doc)
            ++child;
        if (heap[child].doc > p.doc)
            break;
        heap[i] = heap[child];
    }
    heap[i] = p;
}

/* The parts of m->pieces by rising docid to m->whole. The part that is behind gives all that it has before the next. */
static void interleave(merging *m, uint32_t n)
{
    const uint32_t *const docids = m->pieces.docids, *const tfs = m->pieces.tfs;
    part *const heap = m->parts;
    uint32_t to = 0;
    for (uint32_t i = n / 2; i-- > 0;)
        sink_part(heap, n, i);
    while (n) {
        part *const p = &heap[0];
        uint32_t next = n > 1 ? heap[1].doc : UINT32_MAX;
        if (n > 2 && heap[2].doc < next)
            next = heap[2].doc;
        uint32_t at = p->at;
        do {
            m->whole.docids[to] = docids[at];
            m->whole.tfs[to++] = tfs[at++];
        } while (at < p->end && docids[at] < next);
        p->at = at;
        if (at < p->end)
            p->doc = docids[at];
        else
            heap[0] = heap[--n];
        sink_part(heap, n, 0);
    }
}

/* The list of the term that comes first, from all cursors that have it, decoded in their order. */
static gx_status merge_list(merging *m, size_t len, const postings **out, uint64_t *df, gx_error *err)
{
    uint32_t n_parts = 0;
    *df = 0;
    do {
        cursor *const c = m->heap[0];
        if (*df + c->df > UINT32_MAX || !gx_postings_reserve(&m->pieces, *df + c->df))
            return gx_inverter_no_memory(err);
        const uint32_t at = (uint32_t)*df, *const docids = m->pieces.docids;
        decode_entry(c, m->pieces.docids + at, m->pieces.tfs + at);
        *df += c->df;
        if (at && docids[at - 1] < docids[at])
            m->parts[n_parts - 1].end = (uint32_t)*df;
        else
            m->parts[n_parts++] = (part){at, (uint32_t)*df, docids[at]};
        bool more;
        const gx_status st = advance(c, &more, err);
        if (st != GX_OK)
            return st;
        if (!more)
            m->heap[0] = m->heap[--m->n_heap];
        if (m->n_heap)
            sink(m->heap, m->n_heap, 0);
    } while (m->n_heap && compare_terms(m->heap[0]->term, m->heap[0]->len, m->term, len) == 0);
    *out = &m->pieces;
    if (n_parts == 1)
        return GX_OK;
    if (!gx_postings_reserve(&m->whole, *df))
        return gx_inverter_no_memory(err);
    interleave(m, n_parts);
    *out = &m->whole;
    return GX_OK;
}

static gx_status merge_lists(merging *m, gx_list_fn *fn, void *user, gx_error *err)
{
    gx_status st = GX_OK;
    while (m->n_heap && st == GX_OK) {
        const size_t len = m->heap[0]->len;
        const postings *p;
        uint64_t df;
        memcpy(m->term, m->heap[0]->term, len);
        st = merge_list(m, len, &p, &df, err);
        if (st == GX_OK)
            st = fn(user, (const char *)m->term, len, (uint32_t)df, p->docids, p->tfs, err);
    }
    return st;
}

/* A cursor before its first entry: run i of inv, or what inv holds. */
static bool begin_cursor(cursor *c, const gx_inverter *inv, uint32_t i, uint32_t number, size_t window)
{
    *c = (cursor){.inv = inv, .number = number};
    if (inv->n_runs == 0)
        return true;
    c->next = inv->runs[i].begin;
    c->end = inv->runs[i].end;
    c->max = window;
    return (c->window = malloc(window));
}

static gx_status begin_merging(merging *m, gx_inverter *const *inverters, uint32_t n, gx_error *err)
{
    uint64_t n_cursors = 0;
    for (uint32_t i = 0; i < n; ++i)
        n_cursors += inverters[i]->n_runs ? inverters[i]->n_runs : 1;
    const size_t window = n_cursors < 256 ? 256u << 10 : 16u << 10;
    m->cursors = calloc(n_cursors, sizeof *m->cursors);
    m->heap = calloc(n_cursors, sizeof *m->heap);
    m->parts = calloc(n_cursors, sizeof *m->parts);
    m->term = malloc(65536);
    if (n_cursors > UINT32_MAX || !m->cursors || !m->heap || !m->parts || !m->term)
        return gx_inverter_no_memory(err);
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t r = 0; r == 0 || r < inverters[i]->n_runs; ++r) {
            cursor *c = &m->cursors[m->n_cursors];
            bool more;
            if (!begin_cursor(c, inverters[i], r, m->n_cursors++, window))
                return gx_inverter_no_memory(err);
            const gx_status st = advance(c, &more, err);
            if (st != GX_OK)
                return st;
            if (more)
                m->heap[m->n_heap++] = c;
        }
    for (uint32_t i = m->n_heap / 2; i-- > 0;)
        sink(m->heap, m->n_heap, i);
    return GX_OK;
}

static void end_merging(merging *m)
{
    for (uint32_t i = 0; i < m->n_cursors; ++i)
        free(m->cursors[i].window);
    free(m->cursors);
    free(m->heap);
    free(m->parts);
    free(m->term);
    gx_postings_free(&m->pieces);
    gx_postings_free(&m->whole);
}

gx_status gx_inverter_merge(gx_inverter *const *inverters, uint32_t n, gx_list_fn *fn, void *user, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = gx_inverter_seal(inverters[i], err);
    if (st != GX_OK)
        return st;
    if (n == 1 && inverters[0]->n_runs == 0)
        return gx_inverter_each(inverters[0], inverters[0]->keys, fn, user, err);
    merging m = {0};
    st = begin_merging(&m, inverters, n, err);
    if (st == GX_OK)
        st = merge_lists(&m, fn, user, err);
    end_merging(&m);
    return st;
}
