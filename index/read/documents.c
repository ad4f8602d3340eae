/* documents.c: what the index stores of a document beside its postings: external id, title,
 * text. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/hash.h"
#include "engine/lower_bound.h"
#include "engine/status.h"
#include "index/read/collection.h"

/* Of a collection, the file that has the document, whose docid becomes the file's; there it is UINT32_MAX where the
 * collection lacks it. */
static const gx_index *find_file(const gx_index *ix, uint64_t docid, uint32_t *local)
{
    *local = docid < UINT32_MAX ? (uint32_t)docid : UINT32_MAX;
    if (!ix->parts)
        return ix;
    if (docid < gx_index_n_docs(ix))
        return gx_parts_find(ix->parts, docid, local)->ix;
    *local = UINT32_MAX;
    return ix;
}

static const char *get_string(const gx_strings *s, uint32_t docid, size_t *len)
{
    *len = 0;
    if (docid >= s->n)
        return NULL;
    const char *bytes = gx_strings_get(s, docid, len);
    return *len ? bytes : NULL;
}

const char *gx_index_doc_id(const gx_index *ix, uint64_t docid, size_t *len)
{
    uint32_t local;
    const gx_index *file = find_file(ix, docid, &local);
    return get_string(&file->doc_ids, local, len);
}

/* Add the id of a document, and a line end, at byte `at` of buf. Returns the byte behind them. */
static size_t add_id(const gx_index *ix, uint64_t docid, char *buf, size_t at, size_t size)
{
    size_t len;
    const char *id = gx_index_doc_id(ix, docid, &len);
    if (len && at < size)
        memcpy(buf + at, id, len < size - at ? len : size - at);
    at += len;
    if (at < size)
        buf[at] = '\n';
    return at + 1;
}

size_t gx_index_join_doc_ids(const gx_index *ix, const uint32_t *docids, size_t n, char *buf, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < n; ++i)
        at = add_id(ix, docids[i], buf, at, size);
    return at;
}

size_t gx_index_join_doc_ids64(const gx_index *ix, const uint64_t *docids, size_t n, char *buf, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < n; ++i)
        at = add_id(ix, docids[i], buf, at, size);
    return at;
}

const char *gx_index_doc_title(const gx_index *ix, uint64_t docid, size_t *len)
{
    uint32_t local;
    const gx_index *file = find_file(ix, docid, &local);
    return get_string(&file->titles, local, len);
}

uint32_t gx_index_doc_len(const gx_index *ix, uint64_t docid)
{
    return docid < gx_index_n_docs(ix) ? gx_index_length(ix, docid) : 0;
}

uint32_t gx_index_length(const gx_index *ix, uint64_t docid)
{
    uint32_t local = (uint32_t)docid;
    if (ix->parts)
        ix = gx_parts_find(ix->parts, docid, &local)->ix;
    return ix->doc_lens[local];
}

/* ---- external ids to docids ---- */

#define MAX_LINEAR_SCANS 8u /* about this many scans take as long as making the table */

/* A hash table from external id to docid. The file does not hold it, because most indexes are never
 * asked for an id. The first MAX_LINEAR_SCANS look-ups scan all ids; the next look-up makes the
 * table. A slot holds docid + 1, or 0 when it is empty, as in the lexicon. Documents without an id, which can be
 * very many, have no slots: the table would be searched through all of them. */
struct gx_id_table {
    pthread_mutex_t lock;      /* held by the thread that makes the table */
    _Atomic(uint32_t *) slots; /* [2^bits]; NULL: not made yet */
    uint32_t bits;
    uint32_t first_unnamed; /* the first document without an id, or the number of documents */
    uint64_t seed;          /* of the hash function */
    atomic_uint n_scans;
};

bool gx_id_table_open(struct gx_id_table **out)
{
    struct gx_id_table *t = calloc(1, sizeof *t);
    if (t)
        t->seed = gx_hash_seed();
    if (t && pthread_mutex_init(&t->lock, NULL) != 0) {
        free(t);
        t = NULL;
    }
    *out = t;
    return t;
}

void gx_id_table_close(struct gx_id_table *t)
{
    if (!t)
        return;
    pthread_mutex_destroy(&t->lock);
    free(atomic_load(&t->slots));
    free(t);
}

static bool has_id(const gx_index *ix, uint32_t docid, const char *id, size_t len)
{
    size_t found_len;
    const char *found = gx_strings_get(&ix->doc_ids, docid, &found_len);
    /* ids that are numbers differ in the last byte rather than in the first */
    return found_len == len && (len == 0 || found[len - 1] == id[len - 1]) && memcmp(found, id, len) == 0;
}

/* Finds t->first_unnamed. Returns the number of documents that have an id. */
static uint32_t count_named(struct gx_id_table *t, const gx_strings *ids)
{
    uint32_t n = 0;
    t->first_unnamed = ids->n;
    for (uint32_t docid = 0; docid < ids->n; ++docid) {
        size_t len;
        gx_strings_get(ids, docid, &len);
        n += len != 0;
        if (len == 0 && t->first_unnamed == ids->n)
            t->first_unnamed = docid;
    }
    return n;
}

static uint32_t *make_id_table(struct gx_id_table *t, const gx_index *ix)
{
    const uint64_t n_named = count_named(t, &ix->doc_ids);
    for (t->bits = 1; (uint64_t)1 << t->bits < n_named * 3 / 2 + 1; ++t->bits)
        ;
    const uint64_t mask = ((uint64_t)1 << t->bits) - 1;
    uint32_t *slots = calloc(mask + 1, sizeof *slots);
    for (uint32_t docid = 0; slots && docid < ix->doc_ids.n; ++docid) {
        size_t len;
        const char *id = gx_strings_get(&ix->doc_ids, docid, &len);
        if (len == 0)
            continue;
        uint64_t slot = XXH3_64bits_withSeed(id, len, t->seed) & mask;
        while (slots[slot])
            slot = (slot + 1) & mask;
        slots[slot] = docid + 1;
    }
    return slots;
}

/* The slots of the table. NULL: the caller scans, because look-ups are still few or memory is
 * short. */
static const uint32_t *id_table_of(const gx_index *ix)
{
    struct gx_id_table *t = ix->id_table;
    uint32_t *slots = atomic_load(&t->slots);
    if (slots || atomic_fetch_add(&t->n_scans, 1) < MAX_LINEAR_SCANS)
        return slots;
    pthread_mutex_lock(&t->lock);
    if (!(slots = atomic_load(&t->slots)) && (slots = make_id_table(t, ix)))
        atomic_store(&t->slots, slots);
    pthread_mutex_unlock(&t->lock);
    return slots;
}

static bool is_live(const gx_live *live, uint32_t docid)
{
    return !live || (gx_deletes_is_live(live->deletes, docid) &&
                     (docid / 64 >= live->n_words || !(live->gone[docid / 64] >> docid % 64 & 1)));
}

/* Where several documents have the same id, both the scan and the table find the first of them that
 * is live. */
uint32_t gx_index_find_live_doc(const gx_index *ix, const gx_live *live, const char *id, size_t len)
{
    const uint32_t n = ix->doc_ids.n, *slots = n ? id_table_of(ix) : NULL;
    if (!slots || len == 0) {
        uint32_t docid = slots ? ix->id_table->first_unnamed : 0;
        while (docid < n && !(has_id(ix, docid, id, len) && is_live(live, docid)))
            ++docid;
        return docid < n ? docid : UINT32_MAX;
    }
    const uint64_t mask = ((uint64_t)1 << ix->id_table->bits) - 1;
    uint64_t slot = XXH3_64bits_withSeed(id, len, ix->id_table->seed) & mask;
    while (slots[slot] && !(has_id(ix, slots[slot] - 1, id, len) && is_live(live, slots[slot] - 1)))
        slot = (slot + 1) & mask;
    return slots[slot] ? slots[slot] - 1 : UINT32_MAX;
}

static uint64_t find_in_parts(const gx_parts *p, const char *id, size_t len)
{
    for (uint32_t i = p->n; i--;) { /* what changes lies in the last parts */
        const gx_part *part = &p->parts[i];
        const gx_live live = {part->deletes, NULL, 0};
        const uint32_t local = gx_index_find_live_doc(part->ix, &live, id, len);
        if (local != UINT32_MAX)
            return part->base + gx_deletes_rank(part->deletes, local);
    }
    return UINT64_MAX;
}

uint64_t gx_index_find_doc64(const gx_index *ix, const char *id, size_t len)
{
    if (ix->parts)
        return find_in_parts(ix->parts, id, len);
    const uint32_t docid = gx_index_find_live_doc(ix, NULL, id, len);
    return docid == UINT32_MAX ? UINT64_MAX : docid;
}

uint32_t gx_index_find_doc(const gx_index *ix, const char *id, size_t len)
{
    const uint64_t docid = gx_index_find_doc64(ix, id, len);
    return docid < UINT32_MAX ? (uint32_t)docid : UINT32_MAX;
}

/* ---- texts ---- */

/* The frame that holds the document: the last one with first_doc <= docid. */
static uint32_t frame_of(const gx_index *ix, uint32_t docid)
{
    GX_FIRST(uint32_t, behind, 1, ix->n_text_frames, ix->text_frames[behind].first_doc > docid);
    return behind - 1;
}

/* Decompress frame i into *buf, which has room for *cap bytes and is enlarged as needed.
 * GX_ECORRUPT: its size is not the announced one, or its ends fall or do not reach its last byte.
 * GX_ENOMEM. */
static gx_status read_frame(const gx_index *ix, uint32_t i, char **buf, size_t *cap, gx_error *err)
{
    const gx_text_frame *f = &ix->text_frames[i];
    const uint32_t n = f[1].first_doc - f->first_doc;
    const size_t bytes = (size_t)(f[1].offset - f->offset);
    if (ZSTD_getFrameContentSize(ix->text + f->offset, bytes) != f->raw_bytes)
        return gx_fail(err, GX_ECORRUPT, "%s: section TEXT: frame %u does not hold %u bytes", ix->path, i,
                       f->raw_bytes);
    if (*cap < f->raw_bytes) {
        char *grown = realloc(*buf, f->raw_bytes);
        if (!grown)
            return gx_fail(err, GX_ENOMEM, "out of memory: %u bytes of text", f->raw_bytes);
        *buf = grown;
        *cap = f->raw_bytes;
    }
    const size_t got = ZSTD_decompress(*buf, *cap, ix->text + f->offset, bytes);
    if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return gx_fail(err, GX_ENOMEM, "%s: no memory to decompress a text", ix->path);
    if (ZSTD_isError(got) || got != f->raw_bytes)
        return gx_fail(err, GX_ECORRUPT, "%s: section TEXT: frame %u (documents %u to %u) cannot be decompressed: %s",
                       ix->path, i, f->first_doc, f[1].first_doc - 1,
                       ZSTD_isError(got) ? ZSTD_getErrorName(got) : "too short");
    const uint32_t room = f->raw_bytes - n * (uint32_t)sizeof(uint32_t); /* >= 0: gx_check_structure has checked it */
    uint32_t before = 0;
    for (uint32_t j = 0; j < n; ++j) {
        uint32_t end;
        memcpy(&end, *buf + j * sizeof end, sizeof end);
        if (end < before || end > room)
            return gx_fail(err, GX_ECORRUPT,
                           "%s: section TEXT: frame %u: the text of document %u ends at %u, not in "
                           "[%u, %u]",
                           ix->path, i, f->first_doc + j, end, before, room);
        before = end;
    }
    if (before != room)
        return gx_fail(err, GX_ECORRUPT, "%s: section TEXT: frame %u: texts end at %u of %u bytes", ix->path, i, before,
                       room);
    return GX_OK;
}

gx_status gx_index_doc_text(const gx_index *whole, uint64_t number, char **buf, size_t *cap, size_t *len, gx_error *err)
{
    uint32_t docid;
    const gx_index *ix = find_file(whole, number, &docid);
    *len = 0;
    if (!ix->text_frames || docid >= ix->n_docs)
        return gx_fail(err, GX_ENOTFOUND, "%s: no text is stored of document %llu", ix->path,
                       (unsigned long long)(docid == UINT32_MAX ? number : docid));
    const uint32_t i = frame_of(ix, docid);
    const gx_status st = read_frame(ix, i, buf, cap, err);
    if (st != GX_OK)
        return st;
    const uint32_t first = ix->text_frames[i].first_doc, n = ix->text_frames[i + 1].first_doc - first;
    uint32_t begin = 0, end;
    if (docid > first)
        memcpy(&begin, *buf + (docid - first - 1) * sizeof begin, sizeof begin);
    memcpy(&end, *buf + (docid - first) * sizeof end, sizeof end);
    *len = end - begin;
    memmove(*buf, *buf + n * sizeof end + begin, *len);
    return GX_OK;
}
