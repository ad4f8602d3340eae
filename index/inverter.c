#include "index/inverter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/status.h"
#include "index/pages.h"

/* A list being built. df counts the documents, the last of which is (doc, tf); the others are in the chain. */
typedef struct list {
    uint8_t *at;      /* where the chain goes on */
    uint32_t first;   /* the chain's first chunk, in units; meaningless while df < 2 */
    uint32_t doc, tf; /* df == 0: none yet */
    uint32_t df;
    uint32_t string;  /* the term, in strings: two bytes of length, then the bytes */
    uint16_t left;    /* bytes that may be written at at */
    uint8_t chunks;   /* chunks so far */
} list;
_Static_assert(sizeof(list) == 32, "half a cache line");

#define UNIT 16u /* bytes; chunks are addressed in units */
#define FIRST_SLOTS 4096u

typedef struct slot {
    uint32_t tag, number; /* high half of the term's hash; number + 1, 0: free */
} slot;

typedef struct run {
    uint64_t begin, end; /* in the temporary file */
} run;

/* A list decoded. */
typedef struct postings {
    uint32_t *docids, *tfs; /* [max] */
    uint32_t max;
} postings;

typedef struct sort_key {
    uint64_t prefix; /* the term's first 8 bytes, the first highest, zeros behind */
    uint32_t number, string;
} sort_key;

struct gx_inverter {
    list *lists;
    uint32_t n_lists, max_lists;
    uint8_t *strings;
    uint32_t strings_bytes, max_strings;
    slot *slots; /* [slot_mask + 1] */
    uint32_t slot_mask;

    uint8_t **slabs; /* of slab_bytes each */
    uint32_t n_slabs, max_slabs, slabs_used;
    uint32_t slab_bytes, slab_shift /* log2 of units a slab */, slab_at /* bytes used of the last used slab */;

    char *dir;
    int fd; /* the runs, or -1 */
    uint64_t file_bytes;
    run *runs;
    uint32_t n_runs, max_runs;

    postings whole;
    sort_key *keys; /* [n_lists] once sealed, terms in byte order */
    bool sealed;
};

/* Bytes of the i-th chunk of a chain: 16, 16, 32, 32, ... 8192. */
static inline uint32_t chunk_bytes(uint32_t i) { return UNIT << (i < 18 ? i / 2 : 9); }

/* The last 4 bytes of a chunk are the next one's address; before them a zero byte ends the records. */
#define CHUNK_END 5u

gx_status gx_inverter_open(gx_inverter **out, const char *dir, uint64_t memory, gx_error *err)
{
    *out = NULL;
    gx_inverter *inv = calloc(1, sizeof *inv);
    if (!inv)
        return gx_fail(err, GX_ENOMEM, "out of memory for the inverter");
    inv->fd = -1;
    inv->slab_bytes = 64u << 10;
    while (inv->slab_bytes < 4u << 20 && inv->slab_bytes < memory / 16)
        inv->slab_bytes *= 2;
    inv->slab_shift = (uint32_t)__builtin_ctz(inv->slab_bytes / UNIT);
    inv->slot_mask = FIRST_SLOTS - 1;
    inv->slots = gx_pages_open(FIRST_SLOTS * sizeof(slot));
    inv->dir = strdup(dir);
    if (!inv->slots || !inv->dir) {
        gx_inverter_close(inv);
        return gx_fail(err, GX_ENOMEM, "out of memory for the inverter");
    }
    *out = inv;
    return GX_OK;
}

static void free_postings(postings *p)
{
    free(p->docids);
    free(p->tfs);
    *p = (postings){0};
}

void gx_inverter_close(gx_inverter *inv)
{
    if (!inv)
        return;
    for (uint32_t i = 0; i < inv->n_slabs; ++i)
        gx_pages_close(inv->slabs[i], inv->slab_bytes);
    free(inv->slabs);
    gx_pages_close(inv->lists, inv->max_lists * sizeof(list));
    free(inv->strings);
    gx_pages_close(inv->slots, (inv->slot_mask + 1ull) * sizeof(slot));
    free(inv->dir);
    free(inv->runs);
    free(inv->keys);
    free_postings(&inv->whole);
    if (inv->fd >= 0)
        close(inv->fd);
    free(inv);
}

uint64_t gx_inverter_bytes(const gx_inverter *inv)
{
    return (uint64_t)inv->slabs_used * inv->slab_bytes + (uint64_t)inv->n_lists * (sizeof(list) + 16) + inv->strings_bytes +
           (inv->slot_mask + 1ull) * sizeof(slot) + (uint64_t)inv->whole.max * 8;
}

uint32_t gx_inverter_spills(const gx_inverter *inv)
{
    return inv->n_runs;
}

/* Room for n elements of size bytes in *array of *max, at least doubling; false: no memory. */
static bool reserve(void *array, uint32_t *max, uint64_t n, size_t size)
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

static const uint8_t *term_of(const gx_inverter *inv, const list *l, size_t *len)
{
    const uint8_t *p = inv->strings + l->string;
    *len = (size_t)p[0] | (size_t)p[1] << 8;
    return p + 2;
}

static bool grow_slots(gx_inverter *inv)
{
    const uint64_t n = 2 * (inv->slot_mask + 1ull);
    slot *s = n <= 1ull << 31 ? gx_pages_open(n * sizeof *s) : NULL;
    if (!s)
        return false;
    for (uint32_t t = 0; t < inv->n_lists; ++t) {
        size_t len;
        const uint8_t *term = term_of(inv, &inv->lists[t], &len);
        const uint64_t h = XXH3_64bits(term, len);
        uint32_t i = (uint32_t)h & (uint32_t)(n - 1);
        while (s[i].number)
            i = (i + 1) & (uint32_t)(n - 1);
        s[i] = (slot){(uint32_t)(h >> 32), t + 1};
    }
    gx_pages_close(inv->slots, (inv->slot_mask + 1ull) * sizeof(slot));
    inv->slots = s;
    inv->slot_mask = (uint32_t)(n - 1);
    return true;
}

static bool grow_lists(gx_inverter *inv)
{
    const uint64_t max = inv->max_lists ? 2ull * inv->max_lists : 1024;
    list *l = max <= 1ull << 31 ? gx_pages_open(max * sizeof *l) : NULL;
    if (!l)
        return false;
    if (inv->n_lists)
        memcpy(l, inv->lists, inv->n_lists * sizeof *l);
    gx_pages_close(inv->lists, inv->max_lists * sizeof *l);
    inv->lists = l;
    inv->max_lists = (uint32_t)max;
    return true;
}

uint32_t gx_inverter_term(gx_inverter *inv, const char *term, size_t len)
{
    const uint64_t h = XXH3_64bits(term, len);
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
    if (!reserve(&inv->strings, &inv->max_strings, (uint64_t)inv->strings_bytes + len + 2, 1) ||
        (inv->n_lists == inv->max_lists && !grow_lists(inv)))
        return GX_NO_TERM;
    uint8_t *p = inv->strings + inv->strings_bytes;
    p[0] = (uint8_t)len;
    p[1] = (uint8_t)(len >> 8);
    memcpy(p + 2, term, len);
    inv->lists[inv->n_lists] = (list){.string = inv->strings_bytes};
    inv->strings_bytes += (uint32_t)len + 2;
    inv->slots[i] = (slot){tag, ++inv->n_lists};
    if (inv->n_lists > inv->slot_mask / 4 * 3 && !grow_slots(inv))
        return GX_NO_TERM;
    return inv->n_lists - 1;
}

/* ---- chains ---- */

static inline uint8_t *chunk_at(const gx_inverter *inv, uint32_t unit)
{
    return inv->slabs[unit >> inv->slab_shift] + (size_t)(unit & ((1u << inv->slab_shift) - 1)) * UNIT;
}

/* A new chunk's address in units, or UINT32_MAX. */
static uint32_t new_chunk(gx_inverter *inv, uint32_t bytes)
{
    if (inv->slabs_used == 0 || inv->slab_at + bytes > inv->slab_bytes) {
        if (inv->slabs_used == inv->n_slabs) {
            if (((uint64_t)inv->n_slabs + 1) << inv->slab_shift > UINT32_MAX ||
                !reserve(&inv->slabs, &inv->max_slabs, (uint64_t)inv->n_slabs + 1, sizeof *inv->slabs) ||
                !(inv->slabs[inv->n_slabs] = gx_pages_open(inv->slab_bytes)))
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

static inline const uint8_t *get_vbyte(const uint8_t *p, uint64_t *v)
{
    uint64_t x = *p & 127;
    for (unsigned shift = 7; *p++ & 128; shift += 7)
        x |= (uint64_t)(*p & 127) << shift;
    *v = x;
    return p;
}

/* A record: the d-gap to the next document (>= 1) and the tf of this one. Its first byte is never 0. */
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

/* Begin the chain, or go on in a new chunk. */
static bool extend_chain(gx_inverter *inv, list *l)
{
    const uint32_t bytes = chunk_bytes(l->chunks), unit = new_chunk(inv, bytes);
    if (unit == UINT32_MAX)
        return false;
    uint8_t *const chunk = chunk_at(inv, unit);
    if (l->chunks == 0) {
        l->first = unit;
        l->at = put_vbyte(chunk, l->doc);
    } else {
        *l->at = 0;
        memcpy(l->at + l->left + CHUNK_END - 4, &unit, 4);
        l->at = chunk;
    }
    l->left = (uint16_t)(bytes - CHUNK_END - (uint32_t)(l->at - chunk));
    if (l->chunks < 255)
        ++l->chunks;
    return true;
}

/* The pending posting goes to the chain, for another document follows by so much. */
static bool flush_tight(gx_inverter *inv, list *l, uint32_t gap)
{
    uint8_t record[MAX_RECORD];
    const uint32_t n = (uint32_t)(put_record(record, gap, l->tf) - record);
    while (l->chunks == 0 || n > l->left)
        if (!extend_chain(inv, l))
            return false;
    memcpy(l->at, record, n);
    l->at += n;
    l->left = (uint16_t)(l->left - n);
    return true;
}

gx_status gx_inverter_add(gx_inverter *inv, uint32_t docid, const uint32_t *terms, size_t n)
{
    list *const lists = inv->lists;
    const size_t ahead = 128; /* states and ends of chains of so many terms are on their way at once */
    for (size_t i = 0; i < n; ++i) {
        if (i % ahead == 0) {
            const size_t end = i + ahead < n ? i + ahead : n;
            for (size_t j = i; j < end; ++j)
                __builtin_prefetch(&lists[terms[j]], 1);
            for (size_t j = i; j < end; ++j)
                __builtin_prefetch(lists[terms[j]].at, 1);
        }
        list *l = &lists[terms[i]];
        if (l->doc == docid && l->df) {
            ++l->tf;
            continue;
        }
        if (l->df) {
            if (l->left >= MAX_RECORD) {
                uint8_t *p = put_record(l->at, docid - l->doc, l->tf);
                l->left = (uint16_t)(l->left - (p - l->at));
                l->at = p;
            } else if (!flush_tight(inv, l, docid - l->doc)) {
                return GX_ENOMEM;
            }
        }
        l->doc = docid;
        l->tf = 1;
        ++l->df;
    }
    return GX_OK;
}

static bool reserve_postings(postings *p, uint64_t df)
{
    uint32_t max = p->max;
    if (df <= max)
        return true;
    return reserve(&p->docids, &max, df, sizeof *p->docids) && reserve(&p->tfs, &p->max, df, sizeof *p->tfs);
}

/* docids[df] and tfs[df] of a list. */
static void decode_chain(const gx_inverter *inv, const list *l, uint32_t *docids, uint32_t *tfs)
{
    const uint32_t df = l->df;
    docids[df - 1] = l->doc;
    tfs[df - 1] = l->tf;
    if (df == 1)
        return;
    uint32_t chunks = 0;
    const uint8_t *chunk = chunk_at(inv, l->first);
    uint64_t v;
    const uint8_t *p = get_vbyte(chunk, &v);
    uint32_t doc = (uint32_t)v;
    for (uint32_t i = 0; i + 1 < df; ++i) {
        if (*p == 0) {
            uint32_t next;
            memcpy(&next, chunk + chunk_bytes(chunks) - 4, 4);
            ++chunks;
            p = chunk = chunk_at(inv, next);
        }
        v = *p++;
        if (v >= 128)
            p = get_vbyte(p - 1, &v);
        docids[i] = doc;
        doc += (uint32_t)(v >> 1);
        uint64_t tf = 1;
        if (!(v & 1)) {
            tf = *p++;
            if (tf >= 128)
                p = get_vbyte(p - 1, &tf);
        }
        tfs[i] = (uint32_t)tf;
    }
}

/* ---- byte order ---- */

static uint64_t prefix_of(const uint8_t *p, size_t len)
{
    uint64_t x = 0;
    for (size_t i = 0; i < 8; ++i)
        x = x << 8 | (i < len ? p[i] : 0);
    return x;
}

static int compare_terms(const void *a, size_t a_len, const void *b, size_t b_len)
{
    const int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c ? c : (a_len > b_len) - (a_len < b_len);
}

static int compare_keys(const void *pa, const void *pb, void *strings)
{
    const uint8_t *a = (const uint8_t *)strings + ((const sort_key *)pa)->string;
    const uint8_t *b = (const uint8_t *)strings + ((const sort_key *)pb)->string;
    return compare_terms(a + 2, (size_t)a[0] | (size_t)a[1] << 8, b + 2, (size_t)b[0] | (size_t)b[1] << 8);
}

/* Stable sort by prefix, 16 bits at a time; the result is in a. */
static bool sort_prefixes(sort_key *a, uint32_t n)
{
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
static sort_key *in_byte_order(const gx_inverter *inv)
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
    if (n < 4096) {
        qsort_r(keys, n, sizeof *keys, compare_keys, inv->strings);
        return keys;
    }
    if (!sort_prefixes(keys, n)) {
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

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "out of memory while inverting; --memory sets how much is held before lists go to a temporary file");
}

/* The lists that come after the i-th in byte order, on their way into the cache. */
static inline void prefetch_lists(const gx_inverter *inv, const sort_key *keys, uint32_t i)
{
    if (i + 16 < inv->n_lists)
        __builtin_prefetch(&inv->lists[keys[i + 16].number]);
    if (i + 8 < inv->n_lists && inv->lists[keys[i + 8].number].df > 1)
        __builtin_prefetch(chunk_at(inv, inv->lists[keys[i + 8].number].first));
}

/* Give the lists that are held, whose order is keys, to fn. */
static gx_status each_list(gx_inverter *inv, const sort_key *keys, gx_list_fn *fn, void *user, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < inv->n_lists && st == GX_OK; ++i) {
        prefetch_lists(inv, keys, i);
        const list *l = &inv->lists[keys[i].number];
        if (l->df == 0)
            continue;
        if (!reserve_postings(&inv->whole, l->df))
            return no_memory(err);
        decode_chain(inv, l, inv->whole.docids, inv->whole.tfs);
        size_t len;
        const uint8_t *term = term_of(inv, l, &len);
        st = fn(user, (const char *)term, len, l->df, inv->whole.docids, inv->whole.tfs, err);
    }
    return st;
}

/* ---- runs ----
 *
 * A run is one entry a term: u16 length, u32 df, u32 bytes of postings, the term, the postings (vbytes: docid or d-gap,
 * shifted left by one, the low bit set where the tf is 1; else the tf behind it). */

#define ENTRY_HEAD 10u

typedef struct run_writer {
    gx_inverter *inv;
    uint8_t *buffer;
    size_t n, max;
} run_writer;

static gx_status write_all(gx_inverter *inv, const uint8_t *p, size_t n, gx_error *err)
{
    while (n) {
        const ssize_t w = pwrite(inv->fd, p, n, (off_t)inv->file_bytes);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return gx_fail(err, GX_EIO, "cannot write a temporary file in %s: %s; free some space there, or give more --memory",
                           inv->dir, strerror(w < 0 ? errno : ENOSPC));
        p += w;
        n -= (size_t)w;
        inv->file_bytes += (uint64_t)w;
    }
    return GX_OK;
}

static gx_status write_entry(void *user, const char *term, size_t len, uint32_t df, const uint32_t *docids, const uint32_t *tfs,
                             gx_error *err)
{
    run_writer *w = user;
    const size_t most = ENTRY_HEAD + len + (size_t)df * MAX_RECORD;
    if (w->n + most > w->max && w->n) {
        const gx_status st = write_all(w->inv, w->buffer, w->n, err);
        if (st != GX_OK)
            return st;
        w->n = 0;
    }
    if (most > w->max) {
        uint8_t *p = realloc(w->buffer, most);
        if (!p)
            return no_memory(err);
        w->buffer = p;
        w->max = most;
    }
    uint8_t *const head = w->buffer + w->n, *const body = head + ENTRY_HEAD + len, *p = body;
    memcpy(head + ENTRY_HEAD, term, len);
    for (uint32_t i = 0, last = 0; i < df; last = docids[i++])
        p = put_record(p, docids[i] - last, tfs[i]);
    const uint16_t len16 = (uint16_t)len;
    const uint64_t bytes = (uint64_t)(p - body);
    if (bytes > UINT32_MAX)
        return gx_fail(err, GX_ENOMEM, "a list of %" PRIu32 " postings is too long for a run; give less --memory", df);
    const uint32_t bytes32 = (uint32_t)bytes;
    memcpy(head, &len16, 2);
    memcpy(head + 2, &df, 4);
    memcpy(head + 6, &bytes32, 4);
    w->n = (size_t)(p - w->buffer);
    return GX_OK;
}

static gx_status open_file(gx_inverter *inv, gx_error *err)
{
    if (inv->fd >= 0)
        return GX_OK;
    inv->fd = open(inv->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (inv->fd >= 0)
        return GX_OK;
    char path[4096]; /* a file system without O_TMPFILE */
    if (snprintf(path, sizeof path, "%s/.gpuidx-run-XXXXXX", inv->dir) < (int)sizeof path &&
        (inv->fd = mkostemp(path, O_CLOEXEC)) >= 0) {
        unlink(path);
        return GX_OK;
    }
    return gx_fail(err, GX_EIO, "cannot make a temporary file in %s: %s", inv->dir, strerror(errno));
}

gx_status gx_inverter_spill(gx_inverter *inv, gx_error *err)
{
    gx_status st = open_file(inv, err);
    if (st != GX_OK)
        return st;
    run_writer w = {inv, malloc(256u << 10), 0, 256u << 10};
    if (!w.buffer || !reserve(&inv->runs, &inv->max_runs, (uint64_t)inv->n_runs + 1, sizeof(run))) {
        free(w.buffer);
        return no_memory(err);
    }
    const uint64_t begin = inv->file_bytes;
    sort_key *keys = in_byte_order(inv);
    st = keys ? each_list(inv, keys, write_entry, &w, err) : no_memory(err);
    if (st == GX_OK)
        st = write_all(inv, w.buffer, w.n, err);
    free(keys);
    free(w.buffer);
    if (st != GX_OK)
        return st;
    inv->runs[inv->n_runs++] = (run){begin, inv->file_bytes};
    inv->n_lists = inv->strings_bytes = inv->slabs_used = inv->slab_at = 0;
    free_postings(&inv->whole);
    gx_pages_close(inv->slots, (inv->slot_mask + 1ull) * sizeof(slot));
    inv->slot_mask = FIRST_SLOTS - 1;
    inv->slots = gx_pages_open(FIRST_SLOTS * sizeof(slot));
    return inv->slots ? GX_OK : no_memory(err);
}

gx_status gx_inverter_seal(gx_inverter *inv, gx_error *err)
{
    if (inv->sealed)
        return GX_OK;
    if (inv->n_runs == 0) {
        if (!(inv->keys = in_byte_order(inv)))
            return no_memory(err);
    } else {
        const gx_status st = inv->n_lists ? gx_inverter_spill(inv, err) : GX_OK;
        if (st != GX_OK)
            return st;
        for (uint32_t i = 0; i < inv->n_slabs; ++i)
            gx_pages_close(inv->slabs[i], inv->slab_bytes);
        inv->n_slabs = 0;
    }
    inv->sealed = true;
    return GX_OK;
}

/* ---- merging ---- */

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
            return no_memory(err);
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
        decode_chain(c->inv, c->l, docids, tfs);
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
        if (*df + c->df > UINT32_MAX || !reserve_postings(&m->pieces, *df + c->df))
            return no_memory(err);
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
    if (!reserve_postings(&m->whole, *df))
        return no_memory(err);
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
        return no_memory(err);
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t r = 0; r == 0 || r < inverters[i]->n_runs; ++r) {
            cursor *c = &m->cursors[m->n_cursors];
            bool more;
            if (!begin_cursor(c, inverters[i], r, m->n_cursors++, window))
                return no_memory(err);
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
    free_postings(&m->pieces);
    free_postings(&m->whole);
}

gx_status gx_inverter_merge(gx_inverter *const *inverters, uint32_t n, gx_list_fn *fn, void *user, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = gx_inverter_seal(inverters[i], err);
    if (st != GX_OK)
        return st;
    if (n == 1 && inverters[0]->n_runs == 0)
        return each_list(inverters[0], inverters[0]->keys, fn, user, err);
    merging m = {0};
    st = begin_merging(&m, inverters, n, err);
    if (st == GX_OK)
        st = merge_lists(&m, fn, user, err);
    end_merging(&m);
    return st;
}
