/* The merge of buffers: their runs and the lists that they hold, term by term, of all terms or of
 * a range. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/heap.h"
#include "engine/lower_bound.h"
#include "engine/status.h"
#include "index/inversion/postings_buffer_internal.h"

/* A walk over the lists of a range, terms in byte order: those of a run, or those that a postings
 * buffer holds. It has the current entry, and the place of the next. */
typedef struct cursor {
    const gx_postings_buffer *inv;
    uint64_t prefix; /* the term's */
    const uint8_t *term;
    uint32_t len, df, number;
    uint32_t occurrences; /* with details */
    const run *run;       /* NULL: held */

    uint32_t at_key, end_key; /* held: of inv->keys, the next one's, and the range's end */
    const list *l;

    uint64_t next, end; /* a run: what of the file is still to be read */
    uint8_t *window;    /* bytes [at, n) are not used up */
    size_t at, n, max;
    uint32_t bytes;
} cursor;

/* Read until the window has `want` bytes of the run, or the run's last. false: an error. */
static gx_status refill_window(const gx_postings_buffer *inv, cursor *c, size_t want, gx_error *err)
{
    if (c->n - c->at >= want)
        return GX_OK;
    memmove(c->window, c->window + c->at, c->n - c->at);
    c->n -= c->at;
    c->at = 0;
    if (want > c->max) {
        uint8_t *p = realloc(c->window, want);
        if (!p)
            return gx_postings_no_memory(err);
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
    const uint32_t head = entry_head(c->inv);
    gx_status st = refill_window(c->inv, c, head, err);
    if (st != GX_OK)
        return st;
    uint16_t len;
    memcpy(&len, c->window + c->at, 2);
    memcpy(&c->df, c->window + c->at + 2, 4);
    memcpy(&c->bytes, c->window + c->at + 6, 4);
    if (c->inv->details)
        memcpy(&c->occurrences, c->window + c->at + 10, 4);
    c->len = len;
    if ((st = refill_window(c->inv, c, (size_t)head + len + c->bytes, err)) != GX_OK)
        return st;
    c->term = c->window + c->at + head;
    c->at += (size_t)head + len + c->bytes;
    return GX_OK;
}

/* The next list that is held and has a posting, or false. */
static bool advance_in_memory(cursor *c)
{
    const gx_postings_buffer *inv = c->inv;
    while (c->at_key < c->end_key) {
        prefetch_lists(inv, inv->keys, c->at_key);
        c->prefix = inv->keys[c->at_key].prefix;
        c->l = &inv->lists[inv->keys[c->at_key++].number];
        if (c->l->df == 0)
            continue;
        size_t len;
        c->term = term_of(inv, c->l, &len);
        c->len = (uint32_t)len;
        c->df = c->l->df;
        c->occurrences = inv->details ? occurrences_of(c->l) : 0;
        return true;
    }
    return false;
}

/* The next entry, or *more = false. */
static gx_status advance_cursor(cursor *c, bool *more, gx_error *err)
{
    gx_status st = GX_OK;
    *more = c->run ? c->at < c->n || c->next < c->end : advance_in_memory(c);
    if (*more && c->run && (st = advance_run(c, err)) == GX_OK)
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

GX_DEFINE_SIFT_DOWN(sift_down, cursor *, before)

/* Decode a run's entry. */
static void decode_entry(const cursor *c, const postings *to, uint32_t at, size_t at_detail)
{
    uint32_t *const docids = to->docids + at, *const tfs = to->tfs + at;
    const uint8_t *p = c->term + c->len;
    if (c->inv->details) {
        gx_postings_decode_details(p, c->occurrences, docids, tfs, to->details + at_detail);
        return;
    }
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
    size_t at_detail;
} part;

#define MAX_KEPT_POSTINGS (1u << 20) /* postings; memory for more is not kept */

struct gx_postings_merger {
    cursor *cursors, **heap; /* [n_cursors] */
    part *parts;             /* [n_cursors] */
    held_list *held;         /* [n_cursors] of the term at hand, to be decoded */
    uint32_t n_cursors, n_heap, n_held;
    bool details;
    size_t window; /* bytes, of a run's cursor */
    uint8_t *term; /* [65536] */
    postings pieces, whole;
};

static void sift_part_down(part *heap, uint32_t n, uint32_t i)
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

/* Copy the details of a part's postings [first, end). Returns their number. */
static size_t copy_details(gx_postings_merger *m, part *p, uint32_t first, uint32_t end, size_t to)
{
    size_t n = 0;
    for (uint32_t i = first; i < end; ++i)
        n += m->pieces.tfs[i];
    memcpy(m->whole.details + to, m->pieces.details + p->at_detail, n * sizeof *m->whole.details);
    p->at_detail += n;
    return n;
}

/* Merge the parts of m->pieces into m->whole, by rising docid. The part with the lowest docid gives
 * all postings that come before those of the next part. */
static void merge_parts(gx_postings_merger *m, uint32_t n)
{
    const uint32_t *const docids = m->pieces.docids, *const tfs = m->pieces.tfs;
    part *const heap = m->parts;
    uint32_t to = 0;
    size_t to_detail = 0;
    for (uint32_t i = n / 2; i-- > 0;)
        sift_part_down(heap, n, i);
    while (n) {
        part *const p = &heap[0];
        uint32_t next = n > 1 ? heap[1].doc : UINT32_MAX;
        if (n > 2 && heap[2].doc < next)
            next = heap[2].doc;
        uint32_t at = p->at;
        const uint32_t first = at;
        do {
            m->whole.docids[to] = docids[at];
            m->whole.tfs[to++] = tfs[at++];
        } while (at < p->end && docids[at] < next);
        if (m->details)
            to_detail += copy_details(m, p, first, at, to_detail);
        p->at = at;
        if (at < p->end)
            p->doc = docids[at];
        else
            heap[0] = heap[--n];
        sift_part_down(heap, n, 0);
    }
}

/* Add postings [at, *df) of m->pieces, and their details, to the parts, of which there are *n. */
static void add_part(gx_postings_merger *m, uint32_t at, size_t at_detail, uint64_t df, uint32_t *n)
{
    const uint32_t *const docids = m->pieces.docids;
    if (at && docids[at - 1] < docids[at])
        m->parts[*n - 1].end = (uint32_t)df;
    else
        m->parts[(*n)++] = (part){at, (uint32_t)df, docids[at], at_detail};
}

/* Decode the lists that wait for it, and add them to the parts. */
static void decode_held(gx_postings_merger *m, uint32_t *n_parts)
{
    gx_postings_buffer_decode_many(m->held, m->n_held, &m->pieces);
    for (uint32_t i = 0; i < m->n_held; ++i)
        add_part(m, m->held[i].at, m->held[i].at_detail, (uint64_t)m->held[i].at + m->held[i].l->df, n_parts);
    m->n_held = 0;
}

/* The list of the term that comes first, from all cursors that have it, in their order. What runs
 * have is decoded at once, for their windows move on. Lists that are held are decoded together. */
static gx_status merge_list(gx_postings_merger *m, size_t len, const postings **out, uint64_t *df, gx_error *err)
{
    uint32_t n_parts = 0;
    uint64_t n_details = 0;
    *df = 0;
    do {
        cursor *const c = m->heap[0];
        const uint32_t at = (uint32_t)*df;
        const size_t at_detail = (size_t)n_details;
        if (*df + c->df > UINT32_MAX || !gx_postings_reserve(&m->pieces, *df + c->df) ||
            (m->details && !gx_postings_reserve_details(&m->pieces, n_details + c->occurrences)))
            return gx_postings_no_memory(err);
        *df += c->df;
        n_details += m->details ? c->occurrences : 0;
        if (c->run) {
            decode_held(m, &n_parts);
            decode_entry(c, &m->pieces, at, at_detail);
            add_part(m, at, at_detail, *df, &n_parts);
        } else {
            m->held[m->n_held++] = (held_list){c->inv, c->l, at, at_detail};
        }
        bool more;
        const gx_status st = advance_cursor(c, &more, err);
        if (st != GX_OK)
            return st;
        if (!more)
            m->heap[0] = m->heap[--m->n_heap];
        if (m->n_heap)
            sift_down(m->heap, m->n_heap, 0);
    } while (m->n_heap && compare_terms(m->heap[0]->term, m->heap[0]->len, m->term, len) == 0);
    decode_held(m, &n_parts);
    *out = &m->pieces;
    if (n_parts == 1)
        return GX_OK;
    if (!gx_postings_reserve(&m->whole, *df) || (m->details && !gx_postings_reserve_details(&m->whole, n_details)))
        return gx_postings_no_memory(err);
    merge_parts(m, n_parts);
    *out = &m->whole;
    return GX_OK;
}

/* ---- ranges ---- */

static bool is_before_end(uint64_t prefix, gx_term_range r)
{
    return r.to == 0 || prefix < r.to;
}

/* The first of keys whose prefix is not below this one. */
static uint32_t find_key(const gx_postings_buffer *inv, uint64_t prefix)
{
    GX_FIRST(uint32_t, i, 0, inv->n_lists, inv->keys[i].prefix >= prefix);
    return i;
}

/* The number of the run's marks, from its first on, whose prefix is below this one. */
static uint32_t count_marks(const gx_postings_buffer *inv, const run *r, uint64_t prefix)
{
    const mark *const marks = inv->marks + r->first_mark;
    GX_FIRST(uint32_t, i, 0, r->n_marks, marks[i].prefix >= prefix);
    return i;
}

/* Move the cursor to its first entry in the range. *more = false: there is none. */
static gx_status begin_range(cursor *c, gx_term_range range, bool *more, gx_error *err)
{
    const gx_postings_buffer *inv = c->inv;
    if (!c->run) {
        c->at_key = find_key(inv, range.from);
        c->end_key = range.to ? find_key(inv, range.to) : inv->n_lists;
        for (uint32_t i = c->at_key; i < c->end_key && i < c->at_key + PREFETCHED_LISTS; ++i)
            prefetch_list(inv, &inv->keys[i]);
        return advance_cursor(c, more, err);
    }
    const mark *const marks = inv->marks + c->run->first_mark;
    const uint32_t before = count_marks(inv, c->run, range.from),
                   until = range.to ? count_marks(inv, c->run, range.to) : c->run->n_marks;
    c->next = before ? marks[before - 1].at : c->run->begin;
    c->end = until < c->run->n_marks ? marks[until].at : c->run->end;
    c->at = c->n = 0;
    gx_status st;
    do
        st = advance_cursor(c, more, err);
    while (st == GX_OK && *more && c->prefix < range.from);
    return st;
}

static gx_status merge_range(gx_postings_merger *m, gx_term_range range, gx_list_fn *fn, void *user, gx_error *err)
{
    gx_status st = GX_OK;
    while (m->n_heap && is_before_end(m->heap[0]->prefix, range) && st == GX_OK) {
        const size_t len = m->heap[0]->len;
        const postings *p = NULL;
        uint64_t df;
        memcpy(m->term, m->heap[0]->term, len);
        st = merge_list(m, len, &p, &df, err);
        if (st == GX_OK)
            st = fn(user,
                    &(gx_term_postings){.term = (const char *)m->term,
                                        .len = len,
                                        .df = (uint32_t)df,
                                        .docids = p->docids,
                                        .tfs = p->tfs,
                                        .gaps = m->details ? p->details : NULL},
                    err);
    }
    return st;
}

gx_status gx_postings_merger_run(gx_postings_merger *m, gx_term_range range, gx_list_fn *fn, void *user, gx_error *err)
{
    const cursor *const first = &m->cursors[0];
    if (m->n_cursors == 1 && !first->run) /* nothing to merge */
        return gx_postings_buffer_each(first->inv,
                                       &(key_range){first->inv->keys, find_key(first->inv, range.from),
                                                    range.to ? find_key(first->inv, range.to) : first->inv->n_lists},
                                       &m->whole, fn, user, err);
    m->n_heap = m->n_held = 0;
    for (uint32_t i = 0; i < m->n_cursors; ++i) {
        bool more;
        const gx_status st = begin_range(&m->cursors[i], range, &more, err);
        if (st != GX_OK)
            return st;
        if (more && is_before_end(m->cursors[i].prefix, range))
            m->heap[m->n_heap++] = &m->cursors[i];
    }
    for (uint32_t i = m->n_heap / 2; i-- > 0;)
        sift_down(m->heap, m->n_heap, i);
    const gx_status st = merge_range(m, range, fn, user, err);
    if (m->pieces.max > MAX_KEPT_POSTINGS ||
        m->pieces.max_details > MAX_KEPT_POSTINGS) { /* other threads have such lists too */
        gx_postings_free(&m->pieces);
        gx_postings_free(&m->whole);
    }
    return st;
}

/* Open a merger with room for n cursors. */
static gx_status new_merger(gx_postings_merger **out, uint64_t n_cursors, gx_error *err)
{
    gx_postings_merger *m = *out = calloc(1, sizeof *m);
    if (!m)
        return gx_postings_no_memory(err);
    m->cursors = calloc(n_cursors, sizeof *m->cursors);
    m->heap = calloc(n_cursors, sizeof *m->heap);
    m->parts = calloc(n_cursors, sizeof *m->parts);
    m->held = calloc(n_cursors, sizeof *m->held);
    m->term = malloc(65536);
    return n_cursors <= UINT32_MAX && m->cursors && m->heap && m->parts && m->held && m->term
               ? GX_OK
               : gx_postings_no_memory(err);
}

/* The next cursor: over a run, or, NULL, over what the buffer holds. */
static gx_status add_cursor(gx_postings_merger *m, const gx_postings_buffer *inv, const run *r, gx_error *err)
{
    cursor *c = &m->cursors[m->n_cursors];
    m->details = inv->details;
    *c = (cursor){.inv = inv, .number = m->n_cursors++, .run = r, .max = r ? m->window : 0};
    return !r || (c->window = malloc(c->max)) ? GX_OK : gx_postings_no_memory(err);
}

/* The bytes that each of n cursors reads at once, out of the memory that they share. More than 512
 * KiB together bring nothing where each has 16 KiB. */
static size_t window_of(uint64_t memory, uint64_t n)
{
    const uint64_t share = (512u << 10) / n, good = share < 16u << 10 ? 16u << 10 : share, most = memory / 2 / n;
    return most < LEAST_WINDOW ? LEAST_WINDOW : most < good ? most : good;
}

/* Cursors in the order of docids: of a postings buffer, what it holds or its runs one after
 * another. */
static gx_status open_cursors(gx_postings_merger **out, gx_postings_buffer *const *buffers, uint32_t n, gx_error *err)
{
    uint64_t n_cursors = 0, memory = 0;
    for (uint32_t i = 0; i < n; ++i) {
        n_cursors += buffers[i]->n_runs ? buffers[i]->n_runs : 1;
        memory += buffers[i]->memory / n; /* one of n threads has a merger */
    }
    gx_status st = new_merger(out, n_cursors, err);
    if (st == GX_OK)
        (*out)->window = window_of(memory, n_cursors);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if (buffers[i]->n_runs == 0)
            st = add_cursor(*out, buffers[i], NULL, err);
        for (uint32_t r = 0; r < buffers[i]->n_runs && st == GX_OK; ++r)
            st = add_cursor(*out, buffers[i], &buffers[i]->runs[r], err);
    }
    return st;
}

gx_status gx_postings_merger_open(gx_postings_merger **out, gx_postings_buffer *const *buffers, uint32_t n,
                                  gx_error *err)
{
    const gx_status st = open_cursors(out, buffers, n, err);
    if (st != GX_OK) {
        gx_postings_merger_close(*out);
        *out = NULL;
    }
    return st;
}

void gx_postings_merger_close(gx_postings_merger *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n_cursors; ++i)
        free(m->cursors[i].window);
    free(m->cursors);
    free(m->heap);
    free(m->parts);
    free(m->held);
    free(m->term);
    gx_postings_free(&m->pieces);
    gx_postings_free(&m->whole);
    free(m);
}

/* ---- fewer runs ---- */

/* Merge the runs [first, first + n) into one run behind all others in the file. It takes their
 * place. Where the file system can punch holes, the bytes of the old runs are freed. */
static gx_status merge_runs(gx_postings_buffer *inv, uint32_t first, uint32_t n, gx_error *err)
{
    gx_run_writer w = {0};
    gx_postings_merger *m;
    run *const runs = inv->runs + first;
    gx_status st = new_merger(&m, n, err);
    if (st == GX_OK)
        m->window = window_of(inv->memory, n);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = add_cursor(m, inv, &runs[i], err);
    if (st == GX_OK)
        st = gx_run_writer_open(&w, inv, err);
    if (st == GX_OK)
        st = gx_postings_merger_run(m, (gx_term_range){0, 0}, gx_run_writer_add, &w, err);
    if (st == GX_OK)
        st = gx_run_writer_finish(&w, err);
    gx_run_writer_close(&w);
    gx_postings_merger_close(m);
    if (st != GX_OK)
        return st;
    for (uint32_t i = 0; i < n; ++i)
        (void)fallocate(inv->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)runs[i].begin,
                        (off_t)(runs[i].end - runs[i].begin));
    runs[0] = w.run;
    memmove(runs + 1, runs + n, (inv->n_runs - first - n) * sizeof *runs);
    inv->n_runs -= n - 1;
    return GX_OK;
}

/* Keep the marks of the runs that are left, in their order. */
static gx_status renew_marks(gx_postings_buffer *inv, gx_error *err)
{
    uint64_t n = 0;
    for (uint32_t r = 0; r < inv->n_runs; ++r)
        n += inv->runs[r].n_marks;
    mark *marks = malloc((n + 1) * sizeof *marks);
    if (!marks)
        return gx_postings_no_memory(err);
    n = 0;
    for (uint32_t r = 0; r < inv->n_runs; ++r) {
        run *const a = &inv->runs[r];
        memcpy(marks + n, inv->marks + a->first_mark, a->n_marks * sizeof *marks);
        a->first_mark = (uint32_t)n;
        n += a->n_marks;
    }
    free(inv->marks);
    inv->marks = marks;
    inv->n_marks = (uint32_t)n;
    inv->max_marks = (uint32_t)n + 1;
    return GX_OK;
}

gx_status gx_postings_buffer_reduce_runs(gx_postings_buffer *inv, gx_error *err)
{
    /* Each of n_together threads will read the runs of n_together buffers. */
    const uint32_t together = gx_most_cursors(inv->memory / inv->n_together), left = together ? together : 1,
                   at_once = gx_most_cursors(inv->memory);
    gx_status st = GX_OK;
    bool merged = false;
    for (uint32_t first = 0; inv->n_runs > left && st == GX_OK; ++first, merged = true) {
        if (first + 1 >= inv->n_runs) /* another pass */
            first = 0;
        uint32_t n = inv->n_runs - left + 1;
        n = n < at_once ? n : at_once;
        n = n < inv->n_runs - first ? n : inv->n_runs - first;
        st = merge_runs(inv, first, n < 2 ? 2 : n, err);
    }
    return merged && st == GX_OK ? renew_marks(inv, err) : st;
}

/* ---- ranges ---- */

gx_status gx_postings_buffer_ranges(gx_postings_buffer *const *buffers, uint32_t n, gx_term_range **ranges,
                                    uint32_t *n_ranges, gx_error *err)
{
    uint64_t n_marks = 0, n_parts = 0, got = 0;
    for (uint32_t i = 0; i < n; ++i) {
        n_marks += buffers[i]->n_marks;
        n_parts += buffers[i]->n_runs ? buffers[i]->n_runs : 1;
    }
    sort_key *marks = malloc((n_marks + 1) * sizeof *marks);
    gx_term_range *r = malloc((n_marks + 1) * sizeof *r);
    for (uint32_t i = 0; i < n && marks; ++i)
        for (uint32_t k = 0; k < buffers[i]->n_marks; ++k)
            marks[got++] = (sort_key){.prefix = buffers[i]->marks[k].prefix};
    if (!marks || !r || n_marks >= UINT32_MAX || !gx_sort_prefixes(marks, (uint32_t)n_marks)) {
        free(marks);
        free(r);
        return gx_postings_no_memory(err);
    }
    /* A part is read from the mark before the range on, so a range must span several marks of each
     * part. */
    const uint64_t step = 2 * n_parts < 16 ? 16 : 2 * n_parts;
    uint32_t at = 0;
    r[0] = (gx_term_range){0, 0};
    for (uint64_t i = step; i < n_marks; i += step) {
        if (marks[i].prefix <= r[at].from)
            continue;
        r[at].to = marks[i].prefix;
        r[++at] = (gx_term_range){marks[i].prefix, 0};
    }
    free(marks);
    *ranges = r;
    *n_ranges = at + 1;
    return GX_OK;
}

gx_status gx_postings_buffer_merge(gx_postings_buffer *const *buffers, uint32_t n, gx_list_fn *fn, void *user,
                                   gx_error *err)
{
    gx_postings_merger *m;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = gx_postings_buffer_finish(buffers[i], err);
    if (st == GX_OK)
        st = gx_postings_merger_open(&m, buffers, n, err);
    if (st != GX_OK)
        return st;
    st = gx_postings_merger_run(m, (gx_term_range){0, 0}, fn, user, err);
    gx_postings_merger_close(m);
    return st;
}
