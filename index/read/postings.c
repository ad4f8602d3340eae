/* postings.c: a list as its postings, block by block, for those who use the library. The engines go
 * through lists in ways of their own. */
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/status.h"
#include "index/positions.h"
#include "index/read/collection.h"

struct gx_postings {
    const gx_index *ix; /* of a collection: of the part at hand */
    const gx_parts *parts;
    uint32_t part;
    bool wide;
    const char *bytes; /* the term, of a collection */
    size_t len;
    gx_list list;
    uint32_t term, block; /* block: the next one */
    uint64_t least;       /* the next docid is at least this */
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
    uint32_t *positions; /* [max_positions] */
    size_t max_positions;
};

/* Go to the list of the first part, from number i on, that has the term. */
static void next_part(gx_postings *p, uint32_t i)
{
    p->list = (gx_list){0};
    p->block = 0;
    p->least = 0;
    for (p->part = i; p->part < p->parts->n; ++p->part) {
        p->ix = p->parts->parts[p->part].ix;
        const uint32_t term = gx_index_find_term(p->ix, p->bytes, p->len);
        if (term == UINT32_MAX)
            continue;
        p->term = term;
        p->list = gx_index_list(p->ix, term);
        return;
    }
}

gx_status gx_postings_open(gx_postings **out, const gx_index *ix, uint32_t term, gx_error *err)
{
    uint32_t n_terms = ix->n_terms;
    *out = NULL;
    if (ix->parts)
        gx_parts_terms(ix->parts, &n_terms);
    if (term >= n_terms)
        return gx_fail(err, GX_EUSAGE, "%s: there is no term %u: the index has %u terms, from 0", ix->path, term,
                       n_terms);
    gx_postings *p = calloc(1, sizeof *p);
    if (!p)
        return gx_fail(err, GX_ENOMEM, "%s: no memory to read list %u", ix->path, term);
    p->ix = ix;
    p->parts = ix->parts;
    p->wide = gx_index_is_wide(ix);
    if (p->parts) {
        p->bytes = gx_parts_term(p->parts, term, &p->len);
        next_part(p, 0);
    } else {
        p->term = term;
        p->list = gx_index_list(ix, term);
    }
    *out = p;
    return GX_OK;
}

static gx_status next_block(gx_postings *p, const uint32_t **docids, const uint32_t **tfs, uint32_t *n, gx_error *err)
{
    uint32_t n_here = 0;
    uint64_t least = p->least;
    if (p->block < p->list.n_blocks) { /* of a collection that is at its end the list has none */
        n_here = gx_list_decode_docids(&p->list, p->block, p->docids);
        for (uint32_t i = 0; i < n_here; ++i) {
            if (p->docids[i] < least || p->docids[i] >= p->ix->n_docs)
                return gx_fail(err, GX_ECORRUPT, "%s: list %u, block %u: does not decode to rising docids below %u",
                               p->ix->path, p->term, p->block, p->ix->n_docs);
            least = (uint64_t)p->docids[i] + 1;
        }
        if (tfs)
            gx_list_decode_tfs(&p->list, p->block, p->tfs);
        ++p->block;
    }
    p->least = least;
    *docids = p->docids;
    if (tfs)
        *tfs = p->tfs;
    *n = n_here;
    return GX_OK;
}

uint64_t gx_postings_base(const gx_postings *p)
{
    return p->wide && p->part < p->parts->n ? p->parts->parts[p->part].base : 0;
}

/* Of a block of the part at hand what lives, with docids of the collection less gx_postings_base. */
static uint32_t keep_live(gx_postings *p, bool tfs, uint32_t n)
{
    const gx_part *part = &p->parts->parts[p->part];
    const uint32_t base = p->wide ? 0 : (uint32_t)part->base;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (!gx_deletes_is_live(part->deletes, p->docids[i]))
            continue;
        p->docids[kept] = base + gx_deletes_rank(part->deletes, p->docids[i]);
        if (tfs)
            p->tfs[kept] = p->tfs[i];
        ++kept;
    }
    return kept;
}

gx_status gx_postings_next(gx_postings *p, const uint32_t **docids, const uint32_t **tfs, uint32_t *n, gx_error *err)
{
    gx_status st;
    do {
        while (p->parts && p->part < p->parts->n && p->block == p->list.n_blocks)
            next_part(p, p->part + 1);
        if ((st = next_block(p, docids, tfs, n, err)) != GX_OK || *n == 0 || !p->parts)
            return st;
        *n = keep_live(p, tfs != NULL, *n);
    } while (*n == 0);
    return st;
}

/* Keep the positions of what lives. Returns their number. */
static size_t keep_live_positions(gx_postings *p, const uint32_t tfs[], const bool live[], uint32_t n)
{
    size_t from = 0, to = 0;
    for (uint32_t i = 0; i < n; from += tfs[i++]) {
        if (!live[i])
            continue;
        memmove(p->positions + to, p->positions + from, tfs[i] * sizeof *p->positions);
        to += tfs[i];
    }
    return to;
}

gx_status gx_postings_positions(gx_postings *p, const uint32_t **positions, size_t *n, gx_error *err)
{
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK], n_here;
    bool live[GX_MAX_BLOCK];
    size_t sum = 0;
    *positions = NULL;
    *n = 0;
    if (p->block == 0 || !p->list.n_blocks) /* no posting was given */
        return GX_OK;
    if (!p->ix->positions)
        return gx_fail(err, GX_EUSAGE, "%s has no positions: build it with --positions", p->ix->path);
    n_here = gx_list_decode_tfs(&p->list, p->block - 1, tfs);
    const gx_status st = gx_index_decode_positions(p->ix, p->term, p->block - 1, tfs, n_here, &p->positions,
                                                   &p->max_positions, 0, &sum, err);
    if (st != GX_OK)
        return st;
    gx_list_decode_docids(&p->list, p->block - 1, docids);
    for (uint32_t i = 0; i < n_here; ++i) {
        live[i] = !p->parts || gx_deletes_is_live(p->parts->parts[p->part].deletes, docids[i]);
    }
    *n = p->parts ? keep_live_positions(p, tfs, live, n_here) : sum;
    *positions = p->positions;
    return GX_OK;
}

void gx_postings_close(gx_postings *p)
{
    if (p)
        free(p->positions);
    free(p);
}

static uint64_t sum_tfs_of_parts(const gx_index *ix, uint32_t term)
{
    uint64_t sum = 0;
    uint32_t n = 1;
    const uint32_t *docids, *tfs;
    gx_postings *p;
    if (gx_postings_open(&p, ix, term, NULL) != GX_OK)
        return 0;
    while (n && gx_postings_next(p, &docids, &tfs, &n, NULL) == GX_OK)
        for (uint32_t i = 0; i < n; ++i)
            sum += tfs[i];
    gx_postings_close(p);
    return sum;
}

uint64_t gx_index_cf(const gx_index *ix, uint32_t term)
{
    uint64_t sum = 0;
    uint32_t tfs[GX_MAX_BLOCK];
    if (ix->parts)
        return sum_tfs_of_parts(ix, term);
    if (term >= ix->n_terms)
        return 0;
    const gx_list l = gx_index_list(ix, term);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_tfs(&l, j, tfs);
        for (uint32_t i = 0; i < n; ++i)
            sum += tfs[i];
    }
    return sum;
}

/* Of the lists of all parts; the codecs are those of the first that has the term. */
static void add_sizes_of_parts(const gx_index *ix, uint32_t term, gx_list_size *out)
{
    size_t len;
    const char *bytes = gx_parts_term(ix->parts, term, &len);
    for (uint32_t i = 0; bytes && i < ix->parts->n; ++i) {
        const gx_index *part = ix->parts->parts[i].ix;
        gx_list_size one;
        gx_index_list_size(part, gx_index_find_term(part, bytes, len), &one);
        if (!out->docid_codec) {
            out->docid_codec = one.docid_codec;
            out->tf_codec = one.tf_codec;
        }
        out->n_blocks += one.n_blocks;
        out->docid_bytes += one.docid_bytes;
        out->tf_bytes += one.tf_bytes;
        out->overhead_bytes += one.overhead_bytes;
    }
}

void gx_index_list_size(const gx_index *ix, uint32_t term, gx_list_size *out)
{
    *out = (gx_list_size){0};
    if (ix->parts) {
        add_sizes_of_parts(ix, term, out);
        return;
    }
    if (term >= ix->n_terms)
        return;
    const gx_list l = gx_index_list(ix, term);
    const uint64_t docid_words = l.docid_ends[l.n_blocks - 1], words = l.tf_ends[l.n_blocks - 1];
    *out = (gx_list_size){
        .docid_codec = l.docids->name,
        .tf_codec = l.tfs->name,
        .n_blocks = l.n_blocks,
        .docid_bytes = 4 * docid_words,
        .tf_bytes = 4 * (words - docid_words),
        .overhead_bytes = sizeof(gx_list_entry) + 12ull * l.n_blocks, /* a head and two ends a block */
    };
}
