#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/files/temporary_file.h"
#include "engine/hash.h"
#include "engine/memory/grow.h"
#include "engine/memory/huge_pages.h"
#include "engine/status.h"
#include "index/inversion/postings_buffer_internal.h"

gx_status gx_postings_buffer_open(gx_postings_buffer **out, const char *dir, uint64_t memory, uint32_t n_together,
                                  gx_error *err)
{
    *out = NULL;
    gx_postings_buffer *inv = calloc(1, sizeof *inv);
    if (!inv)
        return gx_fail(err, GX_ENOMEM, "out of memory for the postings buffer");
    inv->fd = -1;
    inv->memory = memory;
    inv->n_together = n_together;
    inv->slab_bytes = 64u << 10;
    while (inv->slab_bytes < 4u << 20 && inv->slab_bytes < memory / 16)
        inv->slab_bytes *= 2;
    inv->slab_shift = (uint32_t)__builtin_ctz(inv->slab_bytes / UNIT);
    inv->slot_mask = FIRST_SLOTS - 1;
    inv->seed = gx_hash_seed();
    inv->slots = gx_huge_alloc(FIRST_SLOTS * sizeof(slot));
    inv->dir = strdup(dir);
    if (!inv->slots || !inv->dir) {
        gx_postings_buffer_close(inv);
        return gx_fail(err, GX_ENOMEM, "out of memory for the postings buffer");
    }
    *out = inv;
    return GX_OK;
}

void gx_postings_free(postings *p)
{
    free(p->docids);
    free(p->tfs);
    free(p->details);
    *p = (postings){0};
}

void gx_postings_buffer_close(gx_postings_buffer *inv)
{
    if (!inv)
        return;
    for (uint32_t i = 0; i < inv->n_slabs; ++i)
        gx_huge_free(inv->slabs[i], inv->slab_bytes);
    free(inv->slabs);
    gx_huge_free(inv->lists, inv->max_lists * sizeof(list));
    free(inv->strings);
    gx_huge_free(inv->slots, (inv->slot_mask + 1ull) * sizeof(slot));
    free(inv->dir);
    free(inv->runs);
    free(inv->marks);
    free(inv->keys);
    if (inv->fd >= 0)
        close(inv->fd);
    free(inv);
}

uint64_t gx_postings_buffer_bytes(const gx_postings_buffer *inv)
{
    return (uint64_t)inv->slabs_used * inv->slab_bytes + (uint64_t)inv->n_lists * sizeof(list) + inv->strings_bytes +
           (inv->slot_mask + 1ull) * sizeof(slot);
}

uint64_t gx_postings_buffer_sorting(const gx_postings_buffer *inv)
{
    return (uint64_t)inv->n_lists * sizeof(sort_key);
}

uint32_t gx_postings_buffer_spills(const gx_postings_buffer *inv)
{
    return inv->n_spills;
}

/* Room for n elements of size bytes in *array of *max, at least doubling; false: no memory. */
static bool grow_array(void *array, uint32_t *max, uint64_t n, size_t size)
{
    if (n <= *max)
        return true;
    uint64_t want = n + n / 2 + 16;
    if (want > UINT32_MAX)
        want = UINT32_MAX;
    if (n > want)
        return false;
    void *p;
    memcpy(&p, array, sizeof p);
    if (!(p = realloc(p, want * size)))
        return false;
    memcpy(array, &p, sizeof p);
    *max = (uint32_t)want;
    return true;
}

/* ---- terms ---- */

static bool grow_slots(gx_postings_buffer *inv)
{
    const uint64_t n = 2 * (inv->slot_mask + 1ull);
    slot *s = n <= 1ull << 31 ? gx_huge_alloc(n * sizeof *s) : NULL;
    if (!s)
        return false;
    for (uint32_t t = 0; t < inv->n_lists; ++t) {
        size_t len;
        const uint8_t *term = term_of(inv, &inv->lists[t], &len);
        const uint64_t h = XXH3_64bits_withSeed(term, len, inv->seed);
        uint32_t i = (uint32_t)h & (uint32_t)(n - 1);
        while (s[i].number)
            i = (i + 1) & (uint32_t)(n - 1);
        s[i] = (slot){(uint32_t)(h >> 32), t + 1};
    }
    gx_huge_free(inv->slots, (inv->slot_mask + 1ull) * sizeof(slot));
    inv->slots = s;
    inv->slot_mask = (uint32_t)(n - 1);
    return true;
}

static bool grow_lists(gx_postings_buffer *inv)
{
    const uint64_t max = inv->max_lists ? 2ull * inv->max_lists : 1024;
    list *l = max <= 1ull << 31 ? gx_huge_grow(inv->lists, inv->max_lists * sizeof *l, max * sizeof *l) : NULL;
    if (!l)
        return false;
    inv->lists = l;
    inv->max_lists = (uint32_t)max;
    return true;
}

uint32_t gx_postings_buffer_term(gx_postings_buffer *inv, const char *term, size_t len)
{
    const uint64_t h = XXH3_64bits_withSeed(term, len, inv->seed);
    const uint32_t tag = (uint32_t)(h >> 32);
    uint32_t i = (uint32_t)h & inv->slot_mask;
    for (; inv->slots[i].number; i = (i + 1) & inv->slot_mask) {
        if (inv->slots[i].tag != tag)
            continue;
        size_t n;
        const uint8_t *known = term_of(inv, &inv->lists[inv->slots[i].number - 1], &n);
        if (n == len && memcmp(known, term, len) == 0)
            return inv->slots[i].number - 1;
    }
    if (!grow_array(&inv->strings, &inv->max_strings, (uint64_t)inv->strings_bytes + len + 2, 1) ||
        (inv->n_lists == inv->max_lists && !grow_lists(inv)))
        return GX_NO_TERM;
    uint8_t *p = inv->strings + inv->strings_bytes;
    p[0] = (uint8_t)len;
    p[1] = (uint8_t)(len >> 8);
    memcpy(p + 2, term, len);
    inv->lists[inv->n_lists] =
        (list){.doc = UINT32_MAX, .string = inv->strings_bytes, .n_near = inv->details ? 0 : NO_POSTING};
    inv->strings_bytes += (uint32_t)len + 2;
    inv->slots[i] = (slot){tag, ++inv->n_lists};
    if (inv->n_lists > inv->slot_mask / 4 * 3 && !grow_slots(inv))
        return GX_NO_TERM;
    return inv->n_lists - 1;
}

/* ---- chains ---- */

/* A new chunk's address in units, or UINT32_MAX. */
static uint32_t new_chunk(gx_postings_buffer *inv, uint32_t bytes)
{
    if (inv->slabs_used == 0 || inv->slab_at + bytes > inv->slab_bytes) {
        if (inv->slabs_used == inv->n_slabs) {
            if (((uint64_t)inv->n_slabs + 1) << inv->slab_shift > UINT32_MAX ||
                !grow_array(&inv->slabs, &inv->max_slabs, (uint64_t)inv->n_slabs + 1, sizeof *inv->slabs) ||
                !(inv->slabs[inv->n_slabs] = gx_huge_alloc(inv->slab_bytes)))
                return UINT32_MAX;
            ++inv->n_slabs;
        }
        ++inv->slabs_used;
        inv->slab_at = 0;
    }
    const uint32_t unit = ((inv->slabs_used - 1) << inv->slab_shift) + inv->slab_at / UNIT;
    inv->slab_at += bytes;
    return unit;
}

static inline uint8_t *put_vbyte(uint8_t *p, uint64_t v)
{
    while (v >= 128) {
        *p++ = (uint8_t)(v | 128);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* A record: the d-gap to the next document (>= 1) and the tf of this one. Its first byte is never
 * 0. */
static inline uint8_t *put_record(uint8_t *p, uint32_t gap, uint32_t tf)
{
    const uint64_t v = (uint64_t)gap << 1 | (tf == 1);
    if (__builtin_expect(v < 128, 1))
        *p++ = (uint8_t)v;
    else
        p = put_vbyte(p, v);
    return tf == 1 ? p : put_vbyte(p, tf);
}
#define MAX_RECORD 10u

/* Begin the chain, or continue it in a new chunk. */
static bool extend_chain(gx_postings_buffer *inv, list *l)
{
    const uint32_t bytes = chunk_bytes(l->chunks), unit = new_chunk(inv, bytes);
    if (unit == UINT32_MAX)
        return false;
    if (l->chunks == 0)
        l->first = unit;
    else
        memcpy(l->at + l->left + CHUNK_END - 4, &unit, 4);
    l->at = chunk_at(inv, unit);
    l->left = (uint16_t)(bytes - CHUNK_END);
    if (l->chunks < 255)
        ++l->chunks;
    return true;
}

/* Append bytes of whole records, for which there is room, to the chain. */
static void append_to_chain(list *l, const uint8_t *p, uint32_t n)
{
    memcpy(l->at, p, n);
    l->at += n;
    l->left = (uint16_t)(l->left - n);
    *l->at = 0;
}

/* Of n bytes of records those at the front that have room in `most`. */
static uint32_t whole_records(const uint8_t *p, uint32_t n, uint32_t most)
{
    uint32_t whole = 0;
    for (const uint8_t *q = p; whole < n;) {
        uint64_t v, tf;
        q = get_vbyte(q, &v);
        if (!(v & 1))
            q = get_vbyte(q, &tf);
        if (q - p > most)
            break;
        whole = (uint32_t)(q - p);
    }
    return whole;
}

/* The same of records with details. */
static uint32_t whole_details(const uint8_t *p, uint32_t n, uint32_t most)
{
    uint32_t whole = 0;
    for (const uint8_t *q = p; whole < n;) {
        uint64_t v, detail;
        q = get_vbyte(q, &v);
        if (v & 1)
            q = get_vbyte(q, &detail);
        if (q - p > most)
            break;
        whole = (uint32_t)(q - p);
    }
    return whole;
}

/* Move what is near to the chain. Returns false: no memory. */
static bool move_to_chain(gx_postings_buffer *inv, list *l)
{
    uint32_t first = 0;
    if (l->chunks && l->n_near > l->left) {
        first = inv->details ? whole_details(l->near, l->n_near, l->left) : whole_records(l->near, l->n_near, l->left);
        append_to_chain(l, l->near, first);
    }
    if ((l->chunks == 0 || l->n_near - first > l->left) && !extend_chain(inv, l))
        return false;
    append_to_chain(l, l->near + first, l->n_near - first);
    l->n_near = 0;
    return true;
}

/* Append the pending posting of a list, if it has one; else the first docid. docid is the document that follows. */
static inline bool flush_pending(gx_postings_buffer *inv, list *l, uint32_t docid)
{
    if (__builtin_expect(l->n_near > NEAR_BYTES - MAX_RECORD, 0)) {
        if (l->n_near == NO_POSTING) {
            l->n_near = (uint8_t)(put_vbyte(l->near, docid) - l->near);
            return true;
        }
        if (!move_to_chain(inv, l))
            return false;
    }
    l->n_near = (uint8_t)(put_record(l->near + l->n_near, docid - l->doc, l->tf) - l->near);
    return true;
}

#define PREFETCHED_TERMS 128u

/* Bring the states of lists into the cache, and the ends of those chains that go on soon. */
static inline void prefetch_terms(const list *lists, const uint32_t *terms, size_t n, uint32_t most_near)
{
    for (size_t i = 0; i < n; ++i)
        gx_prefetch(&lists[terms[i]]);
    for (size_t i = 0; i < n; ++i) {
        const list *const l = &lists[terms[i]];
        gx_prefetch(l->n_near > most_near ? l->at : (const uint8_t *)l);
    }
}

gx_status gx_postings_buffer_add(gx_postings_buffer *inv, uint32_t docid, const uint32_t *terms, size_t n)
{
    list *const lists = inv->lists;
    for (size_t i = 0; i < n; ++i) {
        if (i % PREFETCHED_TERMS == 0)
            prefetch_terms(lists, terms + i, n - i < PREFETCHED_TERMS ? n - i : PREFETCHED_TERMS,
                           NEAR_BYTES - MAX_RECORD);
        list *l = &lists[terms[i]];
        if (l->doc == docid) {
            ++l->tf;
            continue;
        }
        if (!flush_pending(inv, l, docid))
            return GX_ENOMEM;
        l->doc = docid;
        l->tf = 1;
        ++l->df;
    }
    return GX_OK;
}

gx_status gx_postings_buffer_add_tfs(gx_postings_buffer *inv, uint32_t docid, const uint32_t *terms,
                                     const uint32_t *tfs, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        if (i % PREFETCHED_TERMS == 0)
            prefetch_terms(inv->lists, terms + i, n - i < PREFETCHED_TERMS ? n - i : PREFETCHED_TERMS,
                           NEAR_BYTES - MAX_RECORD);
        list *l = &inv->lists[terms[i]];
        if (!flush_pending(inv, l, docid))
            return GX_ENOMEM;
        l->doc = docid;
        l->tf = tfs[i];
        ++l->df;
    }
    return GX_OK;
}

void gx_postings_buffer_keep_details(gx_postings_buffer *inv)
{
    inv->details = true;
}

/* A record of an occurrence, the first in its document or another. */
static inline uint8_t *put_detail(uint8_t *p, bool first, uint32_t gap, uint32_t last, uint32_t detail)
{
    if (!first)
        return put_vbyte(p, (uint64_t)(detail - last) << 1);
    p = put_vbyte(p, (uint64_t)gap << 1 | 1);
    return put_vbyte(p, detail);
}

gx_status gx_postings_buffer_add_details(gx_postings_buffer *inv, uint32_t docid, const uint32_t *terms,
                                         const uint32_t *details, size_t n)
{
    list *const lists = inv->lists;
    for (size_t i = 0; i < n; ++i) {
        if (i % PREFETCHED_TERMS == 0)
            prefetch_terms(lists, terms + i, n - i < PREFETCHED_TERMS ? n - i : PREFETCHED_TERMS,
                           NEAR_DETAILS - MAX_RECORD);
        list *const l = &lists[terms[i]];
        const uint32_t count = occurrences_of(l) + 1;
        if (__builtin_expect(l->n_near > NEAR_DETAILS - MAX_RECORD, 0) &&
            (count > UINT32_MAX - NEAR_BYTES || !move_to_chain(inv, l)))
            return GX_ENOMEM;
        const bool first = l->doc != docid;
        const uint32_t detail = !first && details[i] <= l->tf ? l->tf + 1 : details[i];
        l->n_near = (uint8_t)(put_detail(l->near + l->n_near, first, docid - l->doc, l->tf, detail) - l->near);
        memcpy(l->near + NEAR_DETAILS, &count, sizeof count);
        l->doc = docid;
        l->tf = detail;
        l->df += first;
    }
    return GX_OK;
}

bool gx_postings_reserve_details(postings *p, uint64_t n)
{
    return gx_reserve(&p->details, &p->max_details, (size_t)n, sizeof *p->details);
}

bool gx_postings_reserve(postings *p, uint64_t df)
{
    uint32_t max = p->max;
    if (df <= max)
        return true;
    return grow_array(&p->docids, &max, df, sizeof *p->docids) && grow_array(&p->tfs, &p->max, df, sizeof *p->tfs);
}

/* A list that is decoded piece by piece: chunks, then what is near. */
typedef struct list_decoder {
    const gx_postings_buffer *inv;
    const list *l;
    const uint8_t *chunk, *p;
    uint32_t at, end;     /* where the next posting goes, and the last, which is pending */
    uint32_t doc, chunks; /* the next posting's docid, with details the last one's; chunks before this one */
    size_t at_detail, end_detail;
} list_decoder;

/* Postings go to docids and tfs from `at` on. */
static inline list_decoder begin_list(const gx_postings_buffer *inv, const list *l, uint32_t at)
{
    const uint8_t *const chunk = l->chunks ? chunk_at(inv, l->first) : l->near;
    uint64_t doc;
    const uint8_t *const p = get_vbyte(chunk, &doc);
    return (list_decoder){inv, l, chunk, p, at, at + l->df - 1, (uint32_t)doc, 0, 0, 0};
}

/* The same of a list with details. */
static inline list_decoder begin_details(const gx_postings_buffer *inv, const list *l, uint32_t at, size_t at_detail)
{
    const uint8_t *const chunk = l->chunks ? chunk_at(inv, l->first) : l->near;
    return (list_decoder){inv,        l,          chunk, chunk,     at,
                          at + l->df, UINT32_MAX, 0,     at_detail, at_detail + occurrences_of(l)};
}

/* Go on with the chain's next chunk, or what is near, where p is at the end of a chunk. */
static inline void next_piece(list_decoder *d, const uint8_t *p)
{
    if (p == d->l->at) {
        d->p = d->l->near;
        return;
    }
    uint32_t next;
    memcpy(&next, d->chunk + chunk_bytes(d->chunks++) - 4, 4);
    d->p = d->chunk = chunk_at(d->inv, next);
    gx_prefetch(d->chunk);
}

/* Decode a piece's postings. false: they are the list's last but one, and with the pending one all is decoded. */
static inline bool decode_piece(list_decoder *d, uint32_t *docids, uint32_t *tfs)
{
    const list *l = d->l;
    const uint8_t *p = d->p;
    uint32_t doc = d->doc, i = d->at;
    const uint32_t end = d->end;
    for (; i < end && *p; ++i) {
        uint64_t v = *p++, tf = 1;
        if (v >= 128)
            p = get_vbyte(p - 1, &v);
        docids[i] = doc;
        doc += (uint32_t)(v >> 1);
        if (!(v & 1)) {
            tf = *p++;
            if (tf >= 128)
                p = get_vbyte(p - 1, &tf);
        }
        tfs[i] = (uint32_t)tf;
    }
    if (i == end) {
        docids[end] = l->doc;
        tfs[end] = l->tf;
        return false;
    }
    d->doc = doc;
    d->at = i;
    next_piece(d, p);
    return true;
}

/* Read a record of an occurrence. *first: of a posting, which has *doc then. *detail: the first detail, or how much it
 * is more than the last one, less 1. */
static inline const uint8_t *get_detail(const uint8_t *p, bool *first, uint32_t *doc, uint32_t *detail)
{
    uint64_t v = *p++, own;
    if (v >= 128)
        p = get_vbyte(p - 1, &v);
    *first = v & 1;
    if (!*first) {
        *detail = (uint32_t)(v >> 1) - 1;
        return p;
    }
    *doc += (uint32_t)(v >> 1);
    own = *p++;
    if (own >= 128)
        p = get_vbyte(p - 1, &own);
    *detail = (uint32_t)own;
    return p;
}

/* decode_piece of a list with details. */
static inline bool decode_details(list_decoder *d, const postings *to)
{
    const uint8_t *p = d->p;
    uint32_t doc = d->doc, detail, *docid = to->docids + d->at, *tf = to->tfs + d->at - 1;
    uint32_t *out = to->details + d->at_detail, *const end = to->details + d->end_detail;
    for (; out < end && *p; *out++ = detail) {
        bool first;
        p = get_detail(p, &first, &doc, &detail);
        if (first) {
            *docid++ = doc;
            *++tf = 1;
        } else {
            ++*tf;
        }
    }
    d->doc = doc;
    d->at = (uint32_t)(docid - to->docids);
    d->at_detail = (size_t)(out - to->details);
    if (out == end)
        return false;
    next_piece(d, p);
    return true;
}

void gx_postings_decode_details(const uint8_t *p, uint32_t n, uint32_t *docids, uint32_t *tfs, uint32_t *details)
{
    uint32_t doc = UINT32_MAX, detail;
    --tfs;
    for (uint32_t i = 0; i < n; ++i) {
        bool first;
        p = get_detail(p, &first, &doc, &detail);
        if (first) {
            *docids++ = doc;
            *++tfs = 1;
        } else {
            ++*tfs;
        }
        details[i] = detail;
    }
}

void gx_postings_buffer_decode(const gx_postings_buffer *inv, const list *l, const postings *to)
{
    if (inv->details) {
        list_decoder d = begin_details(inv, l, 0, 0);
        while (decode_details(&d, to))
            ;
        return;
    }
    list_decoder d = begin_list(inv, l, 0);
    while (decode_piece(&d, to->docids, to->tfs))
        ;
}

#define DECODED_TOGETHER 32u

void gx_postings_buffer_decode_many(const held_list *lists, uint32_t n, const postings *to)
{
    const bool details = n && lists->inv->details;
    list_decoder open[DECODED_TOGETHER];
    for (uint32_t first = 0, some; first < n; first += some) {
        some = n - first < DECODED_TOGETHER ? n - first : DECODED_TOGETHER;
        uint32_t n_open = 0;
        for (uint32_t i = 0; i < some; ++i) {
            const held_list *h = &lists[first + i];
            open[n_open++] =
                details ? begin_details(h->inv, h->l, h->at, h->at_detail) : begin_list(h->inv, h->l, h->at);
        }
        while (n_open)
            for (uint32_t i = 0; i < n_open; ++i)
                if (!(details ? decode_details(&open[i], to) : decode_piece(&open[i], to->docids, to->tfs)))
                    open[i--] = open[--n_open];
    }
}

/* ---- byte order ---- */

#define FEW_KEYS 4096u

static int compare_keys(const void *pa, const void *pb, void *strings)
{
    const uint8_t *a = (const uint8_t *)strings + ((const sort_key *)pa)->string;
    const uint8_t *b = (const uint8_t *)strings + ((const sort_key *)pb)->string;
    return compare_terms(a + 2, (size_t)a[0] | (size_t)a[1] << 8, b + 2, (size_t)b[0] | (size_t)b[1] << 8);
}

static int by_prefix(const void *a, const void *b)
{
    const uint64_t x = ((const sort_key *)a)->prefix, y = ((const sort_key *)b)->prefix;
    return (x > y) - (x < y);
}

/* Many: 16 bits at a time. */
bool gx_sort_prefixes(sort_key *a, uint32_t n)
{
    if (n < FEW_KEYS) {
        qsort(a, n, sizeof *a, by_prefix);
        return true;
    }
    sort_key *b = malloc((n ? n : 1) * sizeof *b), *const spare = b;
    uint32_t *count = malloc(65537 * sizeof *count);
    if (!b || !count) {
        free(spare);
        free(count);
        return false;
    }
    for (unsigned shift = 0; shift < 64; shift += 16) { /* an even number of passes */
        memset(count, 0, 65537 * sizeof *count);
        for (uint32_t i = 0; i < n; ++i)
            ++count[(a[i].prefix >> shift & 65535) + 1];
        for (uint32_t i = 0; i < 65536; ++i)
            count[i + 1] += count[i];
        for (uint32_t i = 0; i < n; ++i)
            b[count[a[i].prefix >> shift & 65535]++] = a[i];
        sort_key *const t = a;
        a = b;
        b = t;
    }
    free(spare);
    free(count);
    return true;
}

/* All lists' numbers, terms in byte order; the caller frees. */
static sort_key *sort_terms(const gx_postings_buffer *inv)
{
    const uint32_t n = inv->n_lists;
    sort_key *keys = malloc((n ? n : 1) * sizeof *keys);
    if (!keys)
        return NULL;
    for (uint32_t t = 0; t < n; ++t) {
        size_t len;
        const uint8_t *term = term_of(inv, &inv->lists[t], &len);
        keys[t] = (sort_key){prefix_of(term, len), t, inv->lists[t].string};
    }
    if (n < FEW_KEYS) {
        qsort_r(keys, n, sizeof *keys, compare_keys, inv->strings);
        return keys;
    }
    if (!gx_sort_prefixes(keys, n)) {
        free(keys);
        return NULL;
    }
    for (uint32_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && keys[j].prefix == keys[i].prefix; ++j)
            ;
        if (j - i > 1)
            qsort_r(keys + i, j - i, sizeof *keys, compare_keys, inv->strings);
    }
    return keys;
}

gx_status gx_postings_no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "out of memory while inverting");
}

gx_status gx_postings_buffer_each(const gx_postings_buffer *inv, const key_range *range, postings *whole,
                                  gx_list_fn *fn, void *user, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = range->begin; i < range->end && st == GX_OK; ++i) {
        prefetch_lists(inv, range->keys, i);
        const list *l = &inv->lists[range->keys[i].number];
        if (l->df == 0)
            continue;
        if (!gx_postings_reserve(whole, l->df) ||
            (inv->details && !gx_postings_reserve_details(whole, occurrences_of(l))))
            return gx_postings_no_memory(err);
        gx_postings_buffer_decode(inv, l, whole);
        size_t len;
        const uint8_t *term = term_of(inv, l, &len);
        st = fn(user,
                &(gx_term_postings){.term = (const char *)term,
                                    .len = len,
                                    .df = l->df,
                                    .docids = whole->docids,
                                    .tfs = whole->tfs,
                                    .gaps = inv->details ? whole->details : NULL},
                err);
    }
    return st;
}

static gx_status add_mark(gx_postings_buffer *inv, uint64_t prefix, uint64_t at, gx_error *err)
{
    if (!grow_array(&inv->marks, &inv->max_marks, (uint64_t)inv->n_marks + 1, sizeof(mark)))
        return gx_postings_no_memory(err);
    inv->marks[inv->n_marks++] = (mark){prefix, at};
    return GX_OK;
}

/* The marks of keys. */
static gx_status mark_keys(gx_postings_buffer *inv, gx_error *err)
{
    gx_status st = GX_OK;
    uint64_t since = MARK_POSTINGS;
    for (uint32_t i = 0; i < inv->n_lists && st == GX_OK; ++i) {
        if (i + 16 < inv->n_lists)
            gx_prefetch(&inv->lists[inv->keys[i + 16].number]);
        if (since >= MARK_POSTINGS) {
            st = add_mark(inv, inv->keys[i].prefix, i, err);
            since = 0;
        }
        since += inv->lists[inv->keys[i].number].df;
    }
    return st;
}

/* ---- runs ---- */

static gx_status write_run_bytes(gx_postings_buffer *inv, const uint8_t *p, size_t n, gx_error *err)
{
    while (n) {
        const ssize_t w = pwrite(inv->fd, p, n, (off_t)inv->file_bytes);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return gx_fail(err, GX_EIO, "cannot write a temporary file in %s: %s", inv->dir,
                           strerror(w < 0 ? errno : ENOSPC));
        p += w;
        n -= (size_t)w;
        inv->file_bytes += (uint64_t)w;
    }
    return GX_OK;
}

#define RUN_BUFFER (256u << 10) /* bytes */
#define MAX_ENTRY (ENTRY_HEAD + 65535u + ENTRY_POSTINGS * MAX_RECORD)
_Static_assert(MAX_ENTRY <= RUN_BUFFER, "the buffer has room for any entry");

gx_status gx_run_writer_open(gx_run_writer *w, gx_postings_buffer *inv, gx_error *err)
{
    *w = (gx_run_writer){inv, malloc(RUN_BUFFER), 0, RUN_BUFFER, MARK_POSTINGS, {inv->file_bytes, 0, inv->n_marks, 0}};
    return w->buffer ? GX_OK : gx_postings_no_memory(err);
}

void gx_run_writer_close(gx_run_writer *w)
{
    free(w->buffer);
    w->buffer = NULL;
}

gx_status gx_run_writer_finish(gx_run_writer *w, gx_error *err)
{
    const gx_status st = write_run_bytes(w->inv, w->buffer, w->n, err);
    w->n = 0;
    w->run.end = w->inv->file_bytes;
    w->run.n_marks = w->inv->n_marks - w->run.first_mark;
    return st;
}

static gx_status write_entry(gx_run_writer *w, const gx_term_postings *l, uint32_t begin, uint32_t df, gx_error *err)
{
    const uint32_t *const docids = l->docids + begin, *const tfs = l->tfs + begin;
    if (w->n + ENTRY_HEAD + l->len + (size_t)df * MAX_RECORD > RUN_BUFFER) {
        const gx_status st = write_run_bytes(w->inv, w->buffer, w->n, err);
        if (st != GX_OK)
            return st;
        w->n = 0;
    }
    uint8_t *const head = w->buffer + w->n, *const body = head + ENTRY_HEAD + l->len, *p = body;
    memcpy(head + ENTRY_HEAD, l->term, l->len);
    for (uint32_t i = 0, last = 0; i < df; last = docids[i++])
        p = put_record(p, docids[i] - last, tfs[i]);
    const uint16_t len = (uint16_t)l->len;
    const uint32_t bytes = (uint32_t)(p - body);
    memcpy(head, &len, 2);
    memcpy(head + 2, &df, 4);
    memcpy(head + 6, &bytes, 4);
    w->n = (size_t)(p - w->buffer);
    return GX_OK;
}

/* The postings from `begin` on that one entry with details has, at most `rest` of them, and their occurrences. */
static uint32_t entry_postings(const gx_term_postings *l, uint32_t begin, uint32_t rest, uint32_t *n)
{
    uint32_t df = 1;
    uint64_t sum = l->tfs[begin];
    const uint32_t most = rest < ENTRY_POSTINGS ? rest : ENTRY_POSTINGS;
    while (df < most && sum + l->tfs[begin + df] <= ENTRY_OCCURRENCES)
        sum += l->tfs[begin + df++];
    *n = (uint32_t)sum;
    return df;
}

/* Make room for so many bytes in the buffer. */
static gx_status reserve_run(gx_run_writer *w, size_t bytes, gx_error *err)
{
    if (w->n + bytes <= w->max)
        return GX_OK;
    const gx_status st = write_run_bytes(w->inv, w->buffer, w->n, err);
    w->n = 0;
    if (st != GX_OK || bytes <= w->max)
        return st;
    uint8_t *p = realloc(w->buffer, bytes); /* a document with a term many times */
    if (!p)
        return gx_postings_no_memory(err);
    w->buffer = p;
    w->max = bytes;
    return GX_OK;
}

/* An entry of df postings that have n occurrences, whose details are the next ones. */
static gx_status write_details(gx_run_writer *w, const gx_term_postings *l, uint32_t begin, uint32_t df,
                               const uint32_t *details, uint32_t n, gx_error *err)
{
    const gx_status st = reserve_run(w, DETAILS_HEAD + l->len + (size_t)df * MAX_RECORD + (size_t)n * 5, err);
    if (st != GX_OK)
        return st;
    uint8_t *const head = w->buffer + w->n, *const body = head + DETAILS_HEAD + l->len, *p = body;
    memcpy(head + DETAILS_HEAD, l->term, l->len);
    uint32_t last = UINT32_MAX, d = 0;
    for (uint32_t i = begin; i < begin + df; last = l->docids[i++]) {
        const uint32_t end = d + l->tfs[i];
        p = put_detail(p, true, l->docids[i] - last, 0, details[d]);
        while (++d < end)
            p = put_detail(p, false, 0, 0, details[d] + 1);
    }
    const uint16_t len = (uint16_t)l->len;
    if (p - body > UINT32_MAX)
        return gx_postings_no_memory(err);
    const uint32_t bytes = (uint32_t)(p - body);
    memcpy(head, &len, 2);
    memcpy(head + 2, &df, 4);
    memcpy(head + 6, &bytes, 4);
    memcpy(head + 10, &n, 4);
    w->n = (size_t)(p - w->buffer);
    return GX_OK;
}

gx_status gx_run_writer_add(void *user, const gx_term_postings *l, gx_error *err)
{
    gx_run_writer *w = user;
    gx_status st = GX_OK;
    if (w->since >= MARK_POSTINGS) {
        st = add_mark(w->inv, prefix_of((const uint8_t *)l->term, l->len), w->inv->file_bytes + w->n, err);
        w->since = 0;
    }
    w->since += l->df;
    const uint32_t *details = l->gaps;
    for (uint32_t at = 0, rest = details ? l->df : 0, df, n; rest && st == GX_OK; at += df, rest -= df, details += n) {
        df = entry_postings(l, at, rest, &n);
        st = write_details(w, l, at, df, details, n, err);
    }
    for (uint32_t at = 0, rest = details ? 0 : l->df, df; rest && st == GX_OK; at += df, rest -= df) {
        df = rest < ENTRY_POSTINGS ? rest : ENTRY_POSTINGS;
        st = write_entry(w, l, at, df, err);
    }
    return st;
}

static gx_status open_run_file(gx_postings_buffer *inv, gx_error *err)
{
    if (inv->fd >= 0)
        return GX_OK;
    inv->fd = gx_temporary_file_open(inv->dir);
    if (inv->fd >= 0)
        return GX_OK;
    return gx_fail(err, GX_EIO, "cannot make a temporary file in %s: %s", inv->dir, strerror(errno));
}

gx_status gx_postings_buffer_spill(gx_postings_buffer *inv, gx_error *err)
{
    gx_run_writer w;
    gx_status st = open_run_file(inv, err);
    if (st == GX_OK)
        st = gx_run_writer_open(&w, inv, err);
    if (st != GX_OK)
        return st;
    postings whole = {0};
    sort_key *keys = sort_terms(inv);
    if (!keys || !grow_array(&inv->runs, &inv->room_runs, (uint64_t)inv->n_runs + 1, sizeof(run)))
        st = gx_postings_no_memory(err);
    if (st == GX_OK)
        st = gx_postings_buffer_each(inv, &(key_range){keys, 0, inv->n_lists}, &whole, gx_run_writer_add, &w, err);
    if (st == GX_OK)
        st = gx_run_writer_finish(&w, err);
    free(keys);
    gx_run_writer_close(&w);
    gx_postings_free(&whole);
    if (st != GX_OK)
        return st;
    inv->runs[inv->n_runs++] = w.run;
    ++inv->n_spills;
    inv->n_lists = inv->strings_bytes = inv->slabs_used = inv->slab_at = 0;
    gx_huge_free(inv->slots, (inv->slot_mask + 1ull) * sizeof(slot));
    inv->slot_mask = FIRST_SLOTS - 1;
    inv->slots = gx_huge_alloc(FIRST_SLOTS * sizeof(slot));
    return inv->slots ? GX_OK : gx_postings_no_memory(err);
}

/* All lists are in runs: free the memory that held them. */
static void free_lists(gx_postings_buffer *inv)
{
    for (uint32_t i = 0; i < inv->n_slabs; ++i)
        gx_huge_free(inv->slabs[i], inv->slab_bytes);
    gx_huge_free(inv->lists, inv->max_lists * sizeof(list));
    gx_huge_free(inv->slots, (inv->slot_mask + 1ull) * sizeof(slot));
    free(inv->strings);
    inv->lists = NULL;
    inv->slots = NULL;
    inv->strings = NULL;
    inv->n_slabs = inv->max_lists = inv->max_strings = 0;
}

gx_status gx_postings_buffer_finish(gx_postings_buffer *inv, gx_error *err)
{
    if (inv->sealed)
        return GX_OK;
    if (inv->n_runs == 0) {
        if (!(inv->keys = sort_terms(inv)))
            return gx_postings_no_memory(err);
        const gx_status st = mark_keys(inv, err);
        if (st != GX_OK)
            return st;
    } else {
        gx_status st = inv->n_lists ? gx_postings_buffer_spill(inv, err) : GX_OK;
        if (st != GX_OK)
            return st;
        free_lists(inv);
        if ((st = gx_postings_buffer_reduce_runs(inv, err)) != GX_OK)
            return st;
    }
    inv->sealed = true;
    return GX_OK;
}
