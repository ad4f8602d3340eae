/* postings_buffer_internal.h: what a postings buffer holds, for its two halves alone:
 * postings_buffer.c, which takes documents and writes runs, and postings_merge.c, which reads both
 * again. */
#ifndef GX_INDEX_INVERSION_POSTINGS_BUFFER_INTERNAL_H
#define GX_INDEX_INVERSION_POSTINGS_BUFFER_INTERNAL_H

#include <string.h>

#include "engine/memory/prefetch.h"
#include "index/inversion/postings_buffer.h"

#define UNIT 16u /* bytes; chunks are addressed in units */

/* The last 4 bytes of a chunk are the next one's address; before them a zero byte ends the records.
 * */
#define CHUNK_END 5u

#define NEAR_BYTES 32u

/* A list being built: one cache line, which is all that is touched for most postings. df counts the documents, the
 * last of which is (doc, tf). The first docid and the records of the others are in the chain and, behind those,
 * near. */
typedef struct list {
    uint8_t *at;      /* where the chain goes on; a zero byte is there */
    uint32_t first;   /* the chain's first chunk, in units */
    uint32_t doc, tf; /* df == 0: none yet, and doc is UINT32_MAX */
    uint32_t df;
    uint32_t string; /* the term, in strings: two bytes of length, then the bytes */
    uint16_t left;   /* bytes that may be written at at */
    uint8_t chunks;  /* chunks so far; 0: there is no chain */
    uint8_t n_near;  /* or NO_POSTING */
    uint8_t near[NEAR_BYTES];
} list;
_Static_assert(sizeof(list) == 64, "a cache line");
_Static_assert(4 * UNIT - CHUNK_END >= NEAR_BYTES, "the first chunk has room for all that is near");
#define NO_POSTING 255u

/* A list with details is another sequence of bytes: no posting is pending, and of each occurrence there is a record:
 *
 *   the first in its document   vbyte of the d-gap (from docid -1 on), shifted left by one, the low bit set;
 *                               vbyte of its detail
 *   another                     vbyte of what its detail is more than the last one, shifted left by one
 *
 * `tf` is the last detail then, and the last bytes of `near` count the occurrences. */
#define NEAR_DETAILS (NEAR_BYTES - 4u)

static inline uint32_t occurrences_of(const list *l)
{
    uint32_t n;
    memcpy(&n, l->near + NEAR_DETAILS, sizeof n);
    return n;
}

#define FIRST_SLOTS 4096u

typedef struct slot {
    uint32_t tag, number; /* high half of the term's hash; number + 1, 0: free */
} slot;

/* Where terms of this prefix, or higher ones, begin: in keys, or in a run. Marks divide a part's
 * lists, terms in byte order, into pieces of MARK_POSTINGS, so that it can be read from the middle,
 * and several threads find ranges of about equal work. */
typedef struct mark {
    uint64_t prefix, at;
} mark;
#define MARK_POSTINGS 2048u

typedef struct run {
    uint64_t begin, end; /* in the temporary file */
    uint32_t first_mark, n_marks;
} run;

/* A list decoded. */
typedef struct postings {
    uint32_t *docids, *tfs; /* [max] */
    uint32_t max;
    uint32_t *details; /* [max_details] where the buffer keeps them: as gx_term_postings.gaps */
    size_t max_details;
} postings;

typedef struct sort_key {
    uint64_t prefix; /* the term's first 8 bytes, the first highest, zeros behind */
    uint32_t number, string;
} sort_key;

/* Sort by prefix. false: no memory. */
bool gx_sort_prefixes(sort_key *keys, uint32_t n);

struct gx_postings_buffer {
    list *lists;
    uint32_t n_lists, max_lists;
    uint8_t *strings;
    uint32_t strings_bytes, max_strings;
    slot *slots; /* [slot_mask + 1] */
    uint32_t slot_mask;
    uint64_t seed; /* of the hash function */

    uint8_t **slabs; /* of slab_bytes each */
    uint32_t n_slabs, max_slabs, slabs_used;
    uint32_t slab_bytes, slab_shift /* log2 of units a slab */, slab_at /* bytes used of the last used slab */;

    char *dir;
    int fd; /* the runs, or -1 */
    uint64_t file_bytes;
    run *runs;
    uint32_t n_runs, room_runs, n_spills;

    uint64_t memory;     /* bytes, as the caller of open said */
    uint32_t n_together; /* buffers that are merged together */

    mark *marks; /* [n_marks] of all runs, or of keys */
    uint32_t n_marks, max_marks;
    sort_key *keys;       /* [n_lists] once sealed, terms in byte order */
    bool sealed, details; /* details: lists have them */
};

/* Bytes of the i-th chunk of a chain: four of 64, four of 128, ... 8192. */
static inline uint32_t chunk_bytes(uint32_t i)
{
    return UNIT << (i < 28 ? 2 + i / 4 : 9);
}

/* A run has the terms' lists in byte order, each as one entry or, if it is long, as several, one
 * behind the other, of ENTRY_POSTINGS. So a reader needs little memory, however long the lists are.
 * An entry: u16 length, u32 df, u32 bytes of postings, the term, the postings
 * (vbytes: docid or d-gap, shifted left by one, the low bit set where the tf is 1; else the tf
 * behind it). */
#define ENTRY_HEAD 10u
/* With details: u32 occurrences stand before the term, postings are as in a list that is held, and an entry ends before
 * it has so many occurrences that its last posting is not alone. */
#define DETAILS_HEAD 14u
#define ENTRY_OCCURRENCES 2048u
#define ENTRY_POSTINGS 512u
#define LEAST_WINDOW 4096u /* bytes of a run that are read at once */

static inline const uint8_t *term_of(const gx_postings_buffer *inv, const list *l, size_t *len)
{
    const uint8_t *p = inv->strings + l->string;
    *len = (size_t)p[0] | (size_t)p[1] << 8;
    return p + 2;
}

static inline uint8_t *chunk_at(const gx_postings_buffer *inv, uint32_t unit)
{
    return inv->slabs[unit >> inv->slab_shift] + (size_t)(unit & ((1u << inv->slab_shift) - 1)) * UNIT;
}

static inline const uint8_t *get_vbyte(const uint8_t *p, uint64_t *v)
{
    uint64_t x = *p & 127;
    for (unsigned shift = 7; *p++ & 128; shift += 7)
        x |= (uint64_t)(*p & 127) << shift;
    *v = x;
    return p;
}

static inline uint64_t prefix_of(const uint8_t *p, size_t len)
{
    uint64_t x = 0;
    for (size_t i = 0; i < 8; ++i)
        x = x << 8 | (i < len ? p[i] : 0);
    return x;
}

static inline int compare_terms(const void *a, size_t a_len, const void *b, size_t b_len)
{
    const int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c ? c : (a_len > b_len) - (a_len < b_len);
}

/* Bring a list's state and its term into the cache. */
static inline void prefetch_list(const gx_postings_buffer *inv, const sort_key *key)
{
    gx_prefetch(&inv->lists[key->number]);
    gx_prefetch(inv->strings + key->string);
}

#define PREFETCHED_LISTS 16u

/* The lists that come after the i-th in byte order, on their way into the cache. */
static inline void prefetch_lists(const gx_postings_buffer *inv, const sort_key *keys, uint32_t i)
{
    if (i + PREFETCHED_LISTS < inv->n_lists)
        prefetch_list(inv, &keys[i + PREFETCHED_LISTS]);
    if (i + 8 < inv->n_lists && inv->lists[keys[i + 8].number].chunks)
        gx_prefetch(chunk_at(inv, inv->lists[keys[i + 8].number].first));
}

static inline uint32_t entry_head(const gx_postings_buffer *inv)
{
    return inv->details ? DETAILS_HEAD : ENTRY_HEAD;
}

/* Room for df postings, and so many details; false: no memory. */
bool gx_postings_reserve(postings *p, uint64_t df);
bool gx_postings_reserve_details(postings *p, uint64_t n);
void gx_postings_free(postings *p);

/* docids[df], tfs[df] and, where there are any, details of a list that is held. */
void gx_postings_buffer_decode(const gx_postings_buffer *inv, const list *l, const postings *to);

/* Decode an entry's postings with details, of n occurrences. */
void gx_postings_decode_details(const uint8_t *p, uint32_t n, uint32_t *docids, uint32_t *tfs, uint32_t *details);

/* A list of a term that several buffers hold; its postings go to docids and tfs from `at` on. */
typedef struct held_list {
    const gx_postings_buffer *inv;
    const list *l;
    uint32_t at;
    size_t at_detail; /* its details go there */
} held_list;

/* Decode n lists, a chunk of each in turn: while one chunk is decoded, the next ones of the other
 * lists are on their way into the cache. */
void gx_postings_buffer_decode_many(const held_list *lists, uint32_t n, const postings *to);

/* The lists keys[begin, end) of all the buffer's sorted keys. */
typedef struct key_range {
    const sort_key *keys;
    uint32_t begin, end;
} key_range;

/* Give the lists of the range, which are held, to fn; they are decoded to whole. */
gx_status gx_postings_buffer_each(const gx_postings_buffer *inv, const key_range *range, postings *whole,
                                  gx_list_fn *fn, void *user, gx_error *err);

/* Appends a run to the temporary file. add is a gx_list_fn whose user is the writer. */
typedef struct gx_run_writer {
    gx_postings_buffer *inv;
    uint8_t *buffer; /* [max] */
    size_t n, max;   /* n: bytes in the buffer */
    uint64_t since;  /* postings behind the last mark */
    run run;
} gx_run_writer;
gx_status gx_run_writer_open(gx_run_writer *w, gx_postings_buffer *inv, gx_error *err);
gx_list_fn gx_run_writer_add;
gx_status gx_run_writer_finish(gx_run_writer *w, gx_error *err); /* w->run is whole */
void gx_run_writer_close(gx_run_writer *w);

/* Of cursors that share so much memory, how many there may be. */
static inline uint32_t gx_most_cursors(uint64_t memory)
{
    const uint64_t n = memory / 2 / LEAST_WINDOW; /* the other half: postings, and what is made of them */
    return n < UINT16_MAX ? (uint32_t)n : UINT16_MAX;
}

/* Merge neighbouring runs to one, as often as it takes to leave no more than the final merge has
 * memory for. */
gx_status gx_postings_buffer_reduce_runs(gx_postings_buffer *inv, gx_error *err);

gx_status gx_postings_no_memory(gx_error *err);

#endif
