#include "index/deletes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/files/atomic_file.h"
#include "engine/files/temporary_file.h"
#include "engine/lower_bound.h"
#include "engine/status.h"
#include "index/parts.h"

static const char magic[8] = {'\x89', 'G', 'P', 'U', 'D', 'E', 'L', '\n'};

/* The head of a file of deletes. Behind it: live [ceil(n_docs / 64)] of 8 bytes, the numbers of
 * terms [n_entries] of 4, rising, and their counts [n_entries] of 4. */
typedef struct deletes_head {
    char magic[8];
    uint32_t version, n_docs;
    uint8_t uuid[16]; /* of the index file */
    uint32_t n_deleted, n_entries;
    uint64_t n_tokens, n_postings;
    uint32_t min_doc_len, max_doc_len;
} deletes_head;
static_assert(sizeof(deletes_head) == 64, "the layout of a file of deletes is fixed");

static size_t n_words(uint32_t n_docs)
{
    return ((size_t)n_docs + 63) / 64;
}

gx_deletes *gx_deletes_share(gx_deletes *d)
{
    if (d)
        atomic_fetch_add(&d->n_more, 1);
    return d;
}

void gx_deletes_close(gx_deletes *d)
{
    if (!d || atomic_fetch_sub(&d->n_more, 1) != 0)
        return;
    free(d->live);
    free(d->before);
    free(d->dfs);
    free(d);
}

static gx_deletes *alloc_deletes(const gx_index *ix)
{
    gx_deletes *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->n_docs = ix->n_docs;
    d->live = calloc(n_words(ix->n_docs) + 1, sizeof *d->live);
    d->before = calloc(n_words(ix->n_docs) + 1, sizeof *d->before);
    d->dfs = calloc((size_t)ix->n_terms + 1, sizeof *d->dfs);
    if (!d->live || !d->before || !d->dfs) {
        gx_deletes_close(d);
        return NULL;
    }
    return d;
}

/* Returns the number of live documents. */
static uint32_t count_before(gx_deletes *d)
{
    uint32_t n = 0;
    for (size_t w = 0; w < n_words(d->n_docs); ++w) {
        d->before[w] = n;
        n += (uint32_t)__builtin_popcountll(d->live[w]);
    }
    d->before[n_words(d->n_docs)] = n;
    return n;
}

uint32_t gx_deletes_select(const gx_deletes *d, uint32_t rank)
{
    if (!d)
        return rank;
    GX_FIRST(size_t, behind, 1, n_words(d->n_docs), d->before[behind] > rank);
    const size_t w = behind - 1;
    uint64_t word = d->live[w];
    for (uint32_t i = d->before[w]; i < rank; ++i)
        word &= word - 1;
    return (uint32_t)(64 * w + (size_t)__builtin_ctzll(word));
}

/* ---- files ---- */

/* What stands in the file's bytes, which the manifest's checksum has proved to be those written. */
static gx_status bind_file(gx_deletes *d, const char *path, const char *bytes, const gx_manifest_deletes *m,
                           const gx_index *ix, gx_error *err)
{
    deletes_head h;
    const size_t words = n_words(ix->n_docs);
    if (m->bytes < sizeof h)
        return gx_fail(err, GX_ECORRUPT, "%s: it is cut short", path);
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.version != 1)
        return gx_fail(err, GX_ECORRUPT, "%s: this is no file of deletes, or one of a newer gpuidx", path);
    if (memcmp(h.uuid, ix->header->uuid, sizeof h.uuid) != 0 || h.n_docs != ix->n_docs || h.n_entries > ix->n_terms)
        return gx_fail(err, GX_ECORRUPT, "%s: it belongs to another index than %s", path, ix->path);
    if (m->bytes != sizeof h + 8 * words + 8ull * h.n_entries)
        return gx_fail(err, GX_ECORRUPT, "%s: it has %llu bytes, which its head does not announce", path,
                       (unsigned long long)m->bytes);
    const char *terms = bytes + sizeof h + 8 * words, *counts = terms + 4ull * h.n_entries;
    memcpy(d->live, bytes + sizeof h, 8 * words);
    if (ix->n_docs % 64 && d->live[words - 1] >> ix->n_docs % 64)
        return gx_fail(err, GX_ECORRUPT, "%s: it names documents that the index does not have", path);
    d->n_deleted = h.n_deleted;
    d->n_tokens = h.n_tokens;
    d->n_postings = h.n_postings;
    d->min_doc_len = h.min_doc_len;
    d->max_doc_len = h.max_doc_len;
    if (ix->n_docs - count_before(d) != h.n_deleted || h.n_deleted != m->n_docs || h.n_tokens != m->n_tokens)
        return gx_fail(err, GX_ECORRUPT, "%s: it deletes another number of documents than it says", path);
    for (uint32_t i = 0, least = 0; i < h.n_entries; ++i) {
        uint32_t term, count;
        memcpy(&term, terms + 4ull * i, sizeof term);
        memcpy(&count, counts + 4ull * i, sizeof count);
        if (term < least || term >= ix->n_terms || count == 0 || count > ix->lists[term].df || count > h.n_deleted)
            return gx_fail(err, GX_ECORRUPT, "%s: entry %u: %u documents of term %u", path, i, count, term);
        least = term + 1;
        d->dfs[term] = count;
    }
    return GX_OK;
}

static gx_status read_file(char **out, int dir_fd, const char *path, const gx_manifest_deletes *m, gx_error *err)
{
    struct stat s;
    gx_status st = GX_OK;
    *out = NULL;
    const int fd = openat(dir_fd, gx_name_in(dir_fd, path), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return gx_fail(err, gx_status_of_errno(errno), "cannot open %s: %s", path, strerror(errno));
    if (fstat(fd, &s) != 0)
        st = gx_fail(err, GX_EIO, "cannot look at %s: %s", path, strerror(errno));
    else if (!S_ISREG(s.st_mode) || (uint64_t)s.st_size != m->bytes)
        st = gx_fail(err, GX_ECORRUPT, "%s: it has not the %llu bytes that the manifest says", path,
                     (unsigned long long)m->bytes);
    else if (!(*out = malloc((size_t)m->bytes + 1)))
        st = gx_fail(err, GX_ENOMEM, "%s: no memory to read it", path);
    else if ((errno = gx_pread_all(fd, *out, (size_t)m->bytes, 0)))
        st = gx_fail(err, GX_EIO, "cannot read %s: %s", path, strerror(errno));
    else if (XXH3_64bits(*out, (size_t)m->bytes) != m->checksum)
        st = gx_fail(err, GX_ECORRUPT, "%s: its checksum is not the manifest's: the file is damaged", path);
    close(fd);
    return st;
}

gx_status gx_deletes_open(gx_deletes **out, int dir_fd, const char *dir, const gx_manifest_deletes *m,
                          const gx_index *ix, gx_error *err)
{
    char *path = gx_path_in(dir, m->file), *bytes = NULL;
    gx_deletes *d = alloc_deletes(ix);
    *out = NULL;
    gx_status st = path && d ? read_file(&bytes, dir_fd, path, m, err)
                             : gx_fail(err, GX_ENOMEM, "no memory for the deletes of %s", dir);
    if (st == GX_OK)
        st = bind_file(d, path, bytes, m, ix, err);
    if (st == GX_OK)
        *out = d;
    else
        gx_deletes_close(d);
    free(bytes);
    free(path);
    return st;
}

gx_status gx_deletes_write(const gx_deletes *d, const gx_place *place, const char *dir, const gx_index *ix,
                           gx_manifest_deletes *m, gx_error *err)
{
    deletes_head h = {.version = 1,
                      .n_docs = d->n_docs,
                      .n_deleted = d->n_deleted,
                      .n_tokens = d->n_tokens,
                      .n_postings = d->n_postings,
                      .min_doc_len = d->min_doc_len,
                      .max_doc_len = d->max_doc_len};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.uuid, ix->header->uuid, sizeof h.uuid);
    for (uint32_t t = 0; t < ix->n_terms; ++t)
        h.n_entries += d->dfs[t] != 0;
    const size_t words = n_words(d->n_docs), n_bytes = sizeof h + 8 * words + 8ull * h.n_entries;
    char *path = gx_path_in(dir, m->file), *bytes = malloc(n_bytes);
    gx_atomic_file f = GX_ATOMIC_FILE_INIT;
    gx_status st = path && bytes ? gx_atomic_file_open_in(&f, place, path, GX_ATOMIC_FILE_SEEK, err)
                                 : gx_fail(err, GX_ENOMEM, "no memory for the deletes of %s", dir);
    if (st == GX_OK) {
        char *terms = bytes + sizeof h + 8 * words, *counts = terms + 4ull * h.n_entries;
        memcpy(bytes, &h, sizeof h);
        memcpy(bytes + sizeof h, d->live, 8 * words);
        for (uint32_t t = 0; t < ix->n_terms; ++t) {
            if (!d->dfs[t])
                continue;
            memcpy(terms, &t, sizeof t);
            memcpy(counts, &d->dfs[t], sizeof d->dfs[t]);
            terms += sizeof t;
            counts += sizeof t;
        }
        m->bytes = n_bytes;
        m->checksum = XXH3_64bits(bytes, n_bytes);
        m->n_docs = d->n_deleted;
        m->n_tokens = d->n_tokens;
        if ((errno = gx_write_all(f.fd, bytes, n_bytes)))
            st = gx_fail(err, GX_EIO, "cannot write %s: %s", path, strerror(errno));
    }
    if (st == GX_OK)
        st = gx_atomic_file_sync(&f, err);
    if (st == GX_OK)
        st = gx_atomic_file_commit(&f, err);
    gx_atomic_file_close(&f);
    free(bytes);
    free(path);
    return st;
}

/* ---- the terms of deleted documents ---- */

/* Whether any document of [begin, end) is in words. */
static bool any_between(const uint64_t *words, uint32_t begin, uint32_t end)
{
    if (begin >= end)
        return false;
    const uint32_t first = begin / 64, last = (end - 1) / 64;
    uint64_t word = words[first] & (UINT64_MAX << begin % 64);
    for (uint32_t w = first; w < last; word = words[++w])
        if (word)
            return true;
    return (word & (UINT64_MAX >> (63 - (end - 1) % 64))) != 0;
}

/* Postings of the list in documents of `gone`. A block is decoded only where one of them lies
 * between its first docid and the next block's. */
static gx_status count_gone(const gx_index *ix, uint32_t term, const uint64_t *gone, uint32_t least, uint32_t most,
                            uint32_t *n, gx_error *err)
{
    uint32_t docids[GX_MAX_BLOCK];
    const gx_list l = gx_index_list(ix, term);
    *n = 0;
    if (l.heads[0] > most)
        return GX_OK;
    GX_FIRST(uint32_t, behind, 1, l.n_blocks, l.heads[behind] > least);
    for (uint32_t j = behind - 1; j < l.n_blocks && l.heads[j] <= most; ++j) {
        const uint32_t head = l.heads[j], next = j + 1 < l.n_blocks ? l.heads[j + 1] : ix->n_docs;
        if (l.df == 1) {
            *n = (uint32_t)(gone[head / 64] >> head % 64 & 1);
            return GX_OK;
        }
        if (next - head <= 4096 && !any_between(gone, head, next))
            continue;
        const uint32_t n_here = gx_list_decode_docids(&l, j, docids);
        for (uint32_t i = 0; i < n_here; ++i) {
            if (docids[i] >= ix->n_docs)
                return gx_fail(err, GX_ECORRUPT, "%s: list %u, block %u: does not decode to docids below %u", ix->path,
                               term, j, ix->n_docs);
            *n += (uint32_t)(gone[docids[i] / 64] >> docids[i] % 64 & 1);
        }
    }
    return GX_OK;
}

static gx_status count_terms(gx_deletes *d, const gx_index *ix, const uint64_t *gone, gx_error *err)
{
    uint32_t least = 0, most = 0;
    bool any = false;
    gx_status st = GX_OK;
    for (size_t w = 0; w < n_words(ix->n_docs); ++w) {
        if (gone[w] && !any)
            least = (uint32_t)(64 * w + (size_t)__builtin_ctzll(gone[w]));
        if (gone[w])
            most = (uint32_t)(64 * w + 63 - (size_t)__builtin_clzll(gone[w]));
        any = any || gone[w];
    }
    for (uint32_t t = 0; any && st == GX_OK && t < ix->n_terms; ++t) {
        uint32_t n;
        if ((st = count_gone(ix, t, gone, least, most, &n, err)) != GX_OK)
            break;
        d->dfs[t] += n;
        d->n_postings += n;
        if (d->dfs[t] > ix->lists[t].df)
            st = gx_fail(err, GX_ECORRUPT, "%s: list %u holds a document twice", ix->path, t);
    }
    return st;
}

static void measure_lengths(gx_deletes *d, const gx_index *ix)
{
    bool any = false;
    d->min_doc_len = d->max_doc_len = 0;
    d->n_tokens = 0;
    for (uint32_t i = 0; i < ix->n_docs; ++i) {
        const uint32_t len = ix->doc_lens[i];
        if (!gx_deletes_is_live(d, i)) {
            d->n_tokens += len;
            continue;
        }
        d->min_doc_len = !any || len < d->min_doc_len ? len : d->min_doc_len;
        d->max_doc_len = len > d->max_doc_len ? len : d->max_doc_len;
        any = true;
    }
}

gx_status gx_deletes_make(gx_deletes **out, const gx_index *ix, const gx_deletes *old, const uint64_t *words,
                          gx_error *err)
{
    const size_t n = n_words(ix->n_docs);
    gx_deletes *d = alloc_deletes(ix);
    uint64_t *gone = malloc((n + 1) * sizeof *gone);
    *out = NULL;
    gx_status st = d && gone ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the deletes of %s", ix->path);
    if (st == GX_OK) {
        for (size_t w = 0; w < n; ++w) {
            const uint64_t all = w + 1 < n || ix->n_docs % 64 == 0 ? UINT64_MAX : (UINT64_C(1) << ix->n_docs % 64) - 1;
            const uint64_t was = old ? old->live[w] : all;
            gone[w] = was & words[w];
            d->live[w] = was & ~words[w];
        }
        if (old) {
            memcpy(d->dfs, old->dfs, ix->n_terms * sizeof *d->dfs);
            d->n_postings = old->n_postings;
        }
        d->n_deleted = ix->n_docs - count_before(d);
        measure_lengths(d, ix);
        st = count_terms(d, ix, gone, err);
    }
    free(gone);
    if (st == GX_OK)
        *out = d;
    else
        gx_deletes_close(d);
    return st;
}

gx_status gx_deletes_check(const gx_deletes *d, const gx_index *ix, const char *file, gx_error *err)
{
    const size_t n = n_words(ix->n_docs);
    uint64_t *gone = malloc((n + 1) * sizeof *gone);
    gx_deletes *again = NULL;
    gx_status st = gone ? GX_OK : gx_fail(err, GX_ENOMEM, "%s: no memory to check it", file);
    for (size_t w = 0; w < n && gone; ++w)
        gone[w] = ~d->live[w];
    if (st == GX_OK)
        st = gx_deletes_make(&again, ix, NULL, gone, err);
    free(gone);
    if (st != GX_OK)
        return st;
    for (uint32_t t = 0; t < ix->n_terms && st == GX_OK; ++t)
        if (d->dfs[t] != again->dfs[t])
            st = gx_fail(err, GX_ECORRUPT, "%s: %u of its documents hold term %u, not %u as it says", file,
                         again->dfs[t], t, d->dfs[t]);
    if (st == GX_OK && (d->n_tokens != again->n_tokens || d->n_postings != again->n_postings ||
                        d->min_doc_len != again->min_doc_len || d->max_doc_len != again->max_doc_len))
        st = gx_fail(err, GX_ECORRUPT, "%s: the lengths of its documents do not add up to what it says", file);
    gx_deletes_close(again);
    return st;
}

/* ---- joined parts ---- */

/* The deleted documents of each term of the part, by the joined index's numbers. */
static void add_dfs(gx_deletes *d, const gx_index *joined, const gx_part *was, const gx_part *now)
{
    const gx_index *ix = now->ix;
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        const uint32_t n = now->deletes->dfs[t] - (was->deletes ? was->deletes->dfs[t] : 0);
        size_t len;
        if (n == 0)
            continue;
        const char *term = gx_strings_get(&ix->terms, t, &len);
        const uint32_t id = gx_index_find_term(joined, term, len);
        if (id != UINT32_MAX) /* always, since a live document had it, unless the part is damaged */
            d->dfs[id] += n;
    }
    d->n_postings += now->deletes->n_postings - (was->deletes ? was->deletes->n_postings : 0);
}

gx_status gx_deletes_of_joined(gx_deletes **out, const gx_index *joined, const gx_part *was, const gx_part *now,
                               uint32_t n, gx_error *err)
{
    bool any = false;
    *out = NULL;
    for (uint32_t i = 0; i < n; ++i)
        any = any || was[i].n_live != now[i].n_live;
    if (!any)
        return GX_OK;
    gx_deletes *d = alloc_deletes(joined);
    if (!d)
        return gx_fail(err, GX_ENOMEM, "no memory for the deletes of %s", joined->path);
    uint32_t docid = 0;
    for (uint32_t i = 0; i < n; ++i) {
        for (uint32_t old = 0; old < now[i].ix->n_docs; ++old) {
            if (!gx_deletes_is_live(was[i].deletes, old))
                continue;
            d->live[docid / 64] |= (uint64_t)gx_deletes_is_live(now[i].deletes, old) << docid % 64;
            ++docid;
        }
        if (was[i].n_live != now[i].n_live)
            add_dfs(d, joined, &was[i], &now[i]);
    }
    d->n_deleted = joined->n_docs - count_before(d);
    measure_lengths(d, joined);
    *out = d;
    return GX_OK;
}
