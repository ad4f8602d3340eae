#include "index/joined_lists.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/made_list.h"
#include "index/positions.h"

#define MANY 16u /* postings that are so many times fewer than the documents are sorted; else each document has a sum */

/* A list of the index. */
typedef struct joined {
    gx_list list;
    gx_made_list *made;     /* NULL: the list is the file's */
    uint32_t *docids, *tfs; /* while it is made */
} joined;

struct gx_joined_lists {
    const gx_index *file;
    uint32_t n;
    joined *lists;          /* [n] */
    gx_list_entry *entries; /* [n] */
    /* Positions of the lists that are made, block by block: words [ends[b - 1], ends[b]), and slack behind. */
    uint32_t *words;
    uint64_t *ends;
    size_t max_words, max_ends, n_words, n_ends;
};

/* ---- postings of several lists ---- */

/* A posting, and where its positions begin. */
typedef struct posting {
    uint32_t docid, tf;
    size_t at;
} posting;

/* Postings in any order of documents, and their positions. */
typedef struct gathered {
    posting *postings;
    uint32_t *positions;
    size_t n, max, n_positions, max_positions;
} gathered;

static int by_docid(const void *a, const void *b)
{
    const posting *x = a, *y = b;
    if (x->docid != y->docid)
        return x->docid < y->docid ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool is_kept(const gx_list_join *j, const gx_index *ix, uint32_t docid)
{
    return docid < ix->n_docs && (!j->keep || (j->keep[docid / 64] >> docid % 64 & 1));
}

/* Whether a document of those that are kept may be in the block. */
static bool may_hold(const gx_list_join *j, const gx_index *ix, const gx_list *l, uint32_t block)
{
    if (!j->keep)
        return true;
    const uint32_t first = l->heads[block], behind = block + 1 < l->n_blocks ? l->heads[block + 1] : ix->n_docs;
    for (uint32_t w = first / 64; w <= (behind - 1) / 64 && w * 64ull < ix->n_docs; ++w)
        if (j->keep[w])
            return true;
    return false;
}

static gx_status gather_block(gathered *g, const gx_list_join *j, const gx_index *ix, uint32_t list, const gx_list *l,
                              uint32_t block, gx_error *err)
{
    uint32_t docids[GX_MAX_BLOCK + 32], tfs[GX_MAX_BLOCK + 32];
    const uint32_t n = gx_list_decode_docids(l, block, docids);
    size_t at = g->n_positions;
    gx_status st = GX_OK;
    gx_list_decode_tfs(l, block, tfs);
    if (!gx_reserve(&g->postings, &g->max, g->n + n, sizeof *g->postings))
        return gx_fail(err, GX_ENOMEM, "no memory for the postings of a pattern");
    if (j->positions)
        st = gx_index_decode_positions(ix, list, block, tfs, n, &g->positions, &g->max_positions, at, &g->n_positions,
                                       err);
    for (uint32_t i = 0; i < n && st == GX_OK; at += tfs[i++])
        if (is_kept(j, ix, docids[i]))
            g->postings[g->n++] = (posting){docids[i], tfs[i], at};
    return st;
}

static gx_status gather(gathered *g, const gx_list_join *j, const gx_index *ix, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < j->n && st == GX_OK; ++i) {
        const gx_list l = gx_index_list(ix, j->lists[i]);
        for (uint32_t block = 0; block < l.n_blocks && st == GX_OK; ++block)
            if (may_hold(j, ix, &l, block))
                st = gather_block(g, j, ix, j->lists[i], &l, block, err);
    }
    if (st == GX_OK && g->n > 1)
        qsort(g->postings, g->n, sizeof *g->postings, by_docid);
    return st;
}

/* ---- joined ---- */

static uint32_t add_tfs(uint32_t a, uint32_t b)
{
    return a + b < a ? UINT32_MAX : a + b;
}

/* Many postings without positions: a sum for each document. */
static gx_status join_many(joined *out, const gx_list_join *j, const gx_index *ix, uint64_t n_postings, gx_error *err)
{
    uint32_t docids[GX_MAX_BLOCK + 32], tfs[GX_MAX_BLOCK + 32], n = 0;
    const uint32_t most = n_postings < ix->n_docs ? (uint32_t)n_postings : ix->n_docs;
    uint32_t *sums = calloc(ix->n_docs + 1ull, sizeof *sums);
    out->docids = malloc((most + 1ull) * sizeof *out->docids);
    out->tfs = malloc((most + 1ull) * sizeof *out->tfs);
    if (!sums || !out->docids || !out->tfs) {
        free(sums);
        return gx_fail(err, GX_ENOMEM, "no memory for the postings of a pattern");
    }
    for (uint32_t i = 0; i < j->n; ++i) {
        const gx_list l = gx_index_list(ix, j->lists[i]);
        for (uint32_t block = 0; block < l.n_blocks; ++block) {
            const uint32_t in_block = gx_list_decode_docids(&l, block, docids);
            gx_list_decode_tfs(&l, block, tfs);
            for (uint32_t p = 0; p < in_block; ++p)
                if (is_kept(j, ix, docids[p]))
                    sums[docids[p]] = add_tfs(sums[docids[p]], tfs[p]);
        }
    }
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        if (sums[d] == 0)
            continue;
        out->docids[n] = d;
        out->tfs[n++] = sums[d];
    }
    free(sums);
    out->list.df = n;
    return GX_OK;
}

/* The positions of a document's postings, each once, in `to`. Returns their number. */
static uint32_t join_positions(const gathered *g, size_t begin, size_t end, uint32_t *to)
{
    uint32_t n = 0, kept = 0;
    for (size_t i = begin; i < end; ++i) {
        memcpy(to + n, g->positions + g->postings[i].at, g->postings[i].tf * sizeof *to);
        n += g->postings[i].tf;
    }
    if (end - begin > 1)
        qsort(to, n, sizeof *to, by_value);
    for (uint32_t i = 0; i < n; ++i)
        if (kept == 0 || to[kept - 1] != to[i])
            to[kept++] = to[i];
    return kept;
}

/* Encode the positions of a block: of each posting the first, then gaps less 1. */
static bool encode_positions(struct gx_joined_lists *x, uint32_t *positions, const uint32_t *tfs, uint32_t n)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; all += tfs[i++])
        for (uint32_t k = tfs[i] - 1; k; --k)
            positions[all + k] -= positions[all + k - 1] + 1;
    const size_t room = (size_t)gx_positions_max_words(all) + GX_READ_SLACK / sizeof(uint32_t);
    if (!gx_reserve(&x->words, &x->max_words, x->n_words + room, sizeof *x->words) ||
        !gx_reserve(&x->ends, &x->max_ends, x->n_ends + 1, sizeof *x->ends))
        return false;
    x->n_words += (size_t)gx_positions_encode(positions, all, x->words + x->n_words);
    memset(x->words + x->n_words, 0, GX_READ_SLACK);
    x->ends[x->n_ends++] = x->n_words;
    return true;
}

/* Postings that are sorted become the list's. positions: room for those of a block, or NULL. */
static bool join_sorted(struct gx_joined_lists *x, joined *out, const gathered *g, uint32_t *positions)
{
    uint32_t n = 0, in_block = 0;
    uint64_t at = 0;
    for (size_t i = 0, end; i < g->n; i = end) {
        uint32_t tf = 0;
        for (end = i; end < g->n && g->postings[end].docid == g->postings[i].docid; ++end)
            tf = add_tfs(tf, g->postings[end].tf);
        if (positions)
            at += tf = join_positions(g, i, end, positions + at);
        out->docids[n] = g->postings[i].docid;
        out->tfs[n++] = tf;
        if (++in_block == x->file->block_len || end == g->n) {
            if (positions && !encode_positions(x, positions, out->tfs + n - in_block, in_block))
                return false;
            in_block = 0;
            at = 0;
        }
    }
    out->list.df = n;
    return true;
}

static gx_status join_few(struct gx_joined_lists *x, joined *out, const gx_list_join *j, gx_error *err)
{
    gathered g = {0};
    gx_status st = gather(&g, j, x->file, err);
    uint32_t *positions = j->positions ? malloc((g.n_positions + 1) * sizeof *positions) : NULL;
    out->docids = malloc((g.n + 1) * sizeof *out->docids);
    out->tfs = malloc((g.n + 1) * sizeof *out->tfs);
    if (st == GX_OK &&
        (!out->docids || !out->tfs || (j->positions && !positions) || !join_sorted(x, out, &g, positions)))
        st = gx_fail(err, GX_ENOMEM, "no memory for the postings of a pattern");
    free(positions);
    free(g.postings);
    free(g.positions);
    return st;
}

static gx_status join(struct gx_joined_lists *x, uint32_t i, const gx_list_join *j, gx_error *err)
{
    const gx_index *ix = x->file;
    joined *out = &x->lists[i];
    if (j->n == 1) {
        out->list = gx_index_list(ix, j->lists[0]);
        x->entries[i] = ix->lists[j->lists[0]];
        return GX_OK;
    }
    uint64_t n_postings = 0;
    for (uint32_t k = 0; k < j->n; ++k)
        n_postings += ix->lists[j->lists[k]].df;
    const uint64_t first_block = ix->n_blocks + x->n_ends;
    const gx_status st = !j->positions && n_postings > ix->n_docs / MANY ? join_many(out, j, ix, n_postings, err)
                                                                         : join_few(x, out, j, err);
    if (st != GX_OK)
        return st;
    if (!(out->made = gx_made_list_make(out->docids, out->tfs, out->list.df, ix->block_len)))
        return gx_fail(err, GX_ENOMEM, "no memory for the postings of a pattern");
    free(out->docids);
    free(out->tfs);
    out->docids = out->tfs = NULL;
    out->list = out->made->list;
    if (first_block > UINT32_MAX)
        return gx_fail(err, GX_ENOMEM, "too many blocks for the postings of a pattern");
    x->entries[i] = (gx_list_entry){.df = out->list.df, .first_block = (uint32_t)first_block};
    return GX_OK;
}

/* ---- open and close ---- */

gx_status gx_joined_open(gx_index **out, const gx_index *ix, const gx_list_join *joins, uint32_t n, gx_error *err)
{
    gx_index *index = malloc(sizeof *index);
    struct gx_joined_lists *x = index ? calloc(1, sizeof *x) : NULL;
    gx_status st = GX_OK;
    *out = NULL;
    if (!x) {
        free(index);
        return gx_fail(err, GX_ENOMEM, "no memory for the lists of a query");
    }
    *x = (struct gx_joined_lists){.file = ix, .n = n};
    x->lists = calloc(n + 1ull, sizeof *x->lists);
    x->entries = calloc(n + 1ull, sizeof *x->entries);
    *index = *ix;
    index->joined = x;
    index->n_terms = n;
    index->lists = x->entries;
    if (!x->lists || !x->entries)
        st = gx_fail(err, GX_ENOMEM, "no memory for the lists of a query");
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = join(x, i, &joins[i], err);
    if (st == GX_OK)
        *out = index;
    else
        gx_joined_close(index);
    return st;
}

void gx_joined_close(gx_index *ix)
{
    struct gx_joined_lists *x = ix ? (struct gx_joined_lists *)ix->joined : NULL;
    for (uint32_t i = 0; x && x->lists && i < x->n; ++i) {
        free(x->lists[i].made);
        free(x->lists[i].docids);
        free(x->lists[i].tfs);
    }
    if (x) {
        free(x->lists);
        free(x->entries);
        free(x->words);
        free(x->ends);
        free(x);
    }
    free(ix);
}

gx_list gx_joined_list(const gx_index *ix, uint32_t list)
{
    return ix->joined->lists[list].list;
}

gx_block_positions gx_joined_positions(const gx_index *ix, uint64_t block)
{
    const struct gx_joined_lists *x = ix->joined;
    const uint64_t begin = block ? x->ends[block - 1] : 0;
    return (gx_block_positions){x->words + begin, (size_t)(x->ends[block] - begin)};
}
