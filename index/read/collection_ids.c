/* collection_ids.c: no two live documents of a collection have one id. */
#include "index/read/collection.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/status.h"

typedef struct id_place {
    uint64_t hash;
    uint32_t part, docid;
} id_place;

static int by_hash(const void *a, const void *b)
{
    const id_place *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* How many of a file's documents may have ids: none where all ids together have no byte. */
static uint32_t count_ids(const gx_index *ix)
{
    const gx_strings *ids = &ix->doc_ids;
    size_t len;
    return ids->n && gx_strings_get(ids, ids->n - 1, &len) + len > ids->bytes ? ids->n : 0;
}

/* Those of live documents; places has room for all. Returns their number. */
static uint64_t place_ids(id_place *places, const gx_part *parts, uint32_t n)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t d = 0, n_ids = count_ids(parts[i].ix); d < n_ids; ++d) {
            size_t len;
            const char *id = gx_deletes_is_live(parts[i].deletes, d) ? gx_index_doc_id(parts[i].ix, d, &len) : NULL;
            if (id && len)
                places[at++] = (id_place){XXH3_64bits(id, len), i, d};
        }
    return at;
}

/* The places have one hash. */
static gx_status compare_ids(const gx_part *parts, const id_place *x, const id_place *y, gx_error *err)
{
    size_t a_len, b_len;
    const char *a = gx_index_doc_id(parts[x->part].ix, x->docid, &a_len);
    const char *b = gx_index_doc_id(parts[y->part].ix, y->docid, &b_len);
    if (a_len != b_len || memcmp(a, b, a_len) != 0)
        return GX_OK;
    return gx_fail(err, GX_EUSAGE, "%s and %s both have a document \"%.*s\"; an id must be unique in a collection",
                   parts[x->part].ix->path, parts[y->part].ix->path, (int)(a_len < 200 ? a_len : 200), a);
}

gx_status gx_parts_check_ids(const gx_part *parts, uint32_t n, gx_error *err)
{
    uint64_t n_docs = 0;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n; ++i)
        n_docs += count_ids(parts[i].ix);
    id_place *places = malloc((n_docs + 1) * sizeof *places);
    if (!places)
        return gx_fail(err, GX_ENOMEM, "no memory to compare %llu ids", (unsigned long long)n_docs);
    n_docs = place_ids(places, parts, n);
    qsort(places, n_docs, sizeof *places, by_hash);
    for (uint64_t i = 1; i < n_docs && st == GX_OK; ++i) /* of each with all of its hash before it */
        for (uint64_t j = i; j-- && places[j].hash == places[i].hash && st == GX_OK;)
            st = compare_ids(parts, &places[j], &places[i], err);
    free(places);
    return st;
}
