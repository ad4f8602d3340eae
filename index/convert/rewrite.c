/* rewrite.c: make a new index file from an open index, with other codecs, another order of
 * documents, or without titles or texts.
 *
 *   open index --decode--> lists --[docids mapped, sorted]--> writer --> new file
 *
 * Terms, tfs, lengths, ids, titles, texts and the META section stay the same, so a query gives the
 * same scores. If docids change, documents of equal score may come in another order. Where impacts
 * are asked for, they take the place of tfs; one unit for all lists needs a pass over them first.
 */
#include "engine/api/gpuidx_advanced.h" /* gx_index_rewrite */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/auto_codec.h"
#include "engine/files/temporary_file.h"
#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/text/json_text.h"
#include "index/check/check.h"
#include "index/convert/impacts.h"
#include "index/convert/join.h"
#include "index/convert/rewrite.h"
#include "index/fields/fields.h"
#include "index/positions.h"
#include "index/read/collection.h"
#include "index/write/bitmap_maker.h"
#include "index/write/quantizer.h"
#include "index/write/writer.h"

typedef struct posting {
    uint32_t docid, tf;
} posting;

/* The index, or a part of a collection: where its lists are read. */
typedef struct part_cursor {
    const gx_part *part;
    uint32_t *new_docids; /* [n_docs of the part] the collection's docids; UINT32_MAX: deleted. NULL: base + docid */
    uint32_t next;        /* the least term not read yet */
} part_cursor;

typedef struct rewriter {
    const gx_index *ix;
    uint32_t n_terms;
    part_cursor *cursors; /* [ix->parts->n], of a collection */
    const gx_rewrite_options *opt;
    uint32_t n_threads;
    gx_writer *writer;
    gx_columns *columns;              /* NULL: the index has no attributes */
    uint32_t *docids, *tfs;           /* [longest df + GX_MAX_BLOCK]: the decoder may write a whole last block */
    posting *postings, *radix_buffer; /* [longest df], when the order changes */
    gx_impact_options impacts;        /* complete */
    double *scores;                   /* [longest df], where impacts are made */
    double unit;                      /* of all impacts */
    bool joins;                       /* a collection whose lists only change docids: several threads do that */
    uint32_t *doc_tfs;                /* [n_docs] the sum of each old document's tfs so far */
    uint64_t sum_tfs;
    uint32_t *old_docids; /* [n_docs] the old docid of each new one, when the order changes */
    bool with_positions;  /* or fields, of each occurrence in the place of its position */
    bool with_fields;     /* they are the fields */
    uint32_t n_fields;    /* of the new index */
    gx_field_reader fields;
    uint32_t *field_tfs; /* of the list, posting by posting */
    size_t max_field_tfs;
    uint32_t *positions, *sorted_positions; /* of the list */
    size_t n_positions, max_positions, max_sorted;
    size_t *starts; /* [longest df] where each posting's positions begin, when the order changes */
    char *text;
    size_t text_cap;
} rewriter;

static uint32_t longest_df(const gx_index *ix)
{
    uint32_t longest = 0, n = 0;
    const gx_collection_term *terms = ix->parts ? gx_parts_terms(ix->parts, &n) : NULL;
    for (uint32_t t = 0; t < n; ++t)
        if (terms[t].df > longest)
            longest = terms[t].df;
    for (uint32_t t = 0; t < ix->n_terms; ++t)
        if (ix->lists[t].df > longest)
            longest = ix->lists[t].df;
    return longest;
}

/* Inverts the permutation. GX_EUSAGE if it is none. */
static gx_status invert_order(rewriter *r, gx_error *err)
{
    const uint32_t n = r->ix->n_docs;
    for (uint32_t d = 0; d < n; ++d)
        r->old_docids[d] = UINT32_MAX;
    for (uint32_t d = 0; d < n; ++d) {
        const uint32_t to = r->opt->new_docids[d];
        if (to >= n || r->old_docids[to] != UINT32_MAX)
            return gx_fail(err, GX_EUSAGE,
                           "the new order of documents is no permutation: document %u goes to %u of "
                           "%u",
                           d, to, n);
        r->old_docids[to] = d;
    }
    return GX_OK;
}

/* The docids of a part's live documents in the collection. NULL: no memory. */
static uint32_t *number_documents(const gx_part *p)
{
    uint32_t *to = malloc((p->ix->n_docs + 1ull) * sizeof *to), next = (uint32_t)p->base; /* the whole is one file */
    for (uint32_t d = 0; to && d < p->ix->n_docs; ++d)
        to[d] = gx_deletes_is_live(p->deletes, d) ? next++ : UINT32_MAX;
    return to;
}

static gx_status open_cursors(rewriter *r, gx_error *err)
{
    const gx_parts *p = r->ix->parts;
    r->n_terms = r->ix->n_terms;
    if (!p)
        return GX_OK;
    bool ok = gx_parts_terms(p, &r->n_terms) && (r->cursors = calloc(p->n, sizeof *r->cursors));
    for (uint32_t i = 0; ok && i < p->n; ++i) {
        r->cursors[i].part = &p->parts[i];
        if (p->parts[i].deletes)
            ok = (r->cursors[i].new_docids = number_documents(&p->parts[i])) != NULL;
    }
    return ok ? GX_OK : gx_fail(err, GX_ENOMEM, "%s: no memory to read its parts", r->ix->path);
}

static void close_cursors(rewriter *r)
{
    for (uint32_t i = 0; r->cursors && i < r->ix->parts->n; ++i)
        free(r->cursors[i].new_docids);
    free(r->cursors);
}

static gx_status alloc_buffers(rewriter *r, gx_error *err)
{
    const size_t n = r->joins ? 0 : (size_t)longest_df(r->ix) + GX_MAX_BLOCK;
    r->docids = malloc((n + 1) * sizeof *r->docids);
    r->tfs = malloc((n + 1) * sizeof *r->tfs);
    r->doc_tfs = calloc((size_t)r->ix->n_docs + 1, sizeof *r->doc_tfs);
    bool ok = r->docids && r->tfs && r->doc_tfs;
    if (r->opt->new_docids) {
        r->postings = malloc(n * sizeof *r->postings);
        r->radix_buffer = malloc(n * sizeof *r->radix_buffer);
        r->old_docids = malloc(((size_t)r->ix->n_docs + 1) * sizeof *r->old_docids);
        ok = ok && r->postings && r->radix_buffer && r->old_docids;
        if (r->with_positions)
            ok = (r->starts = malloc((n + 1) * sizeof *r->starts)) && ok;
    }
    if (r->impacts.model != GX_IMPACTS_KEEP)
        ok = (r->scores = malloc(n * sizeof *r->scores)) && ok;
    if (!ok)
        return gx_fail(err, GX_ENOMEM, "%s: no memory to rewrite lists of up to %zu postings", r->ix->path, n);
    return r->opt->new_docids ? invert_order(r, err) : GX_OK;
}

static bool keeps_positions(const rewriter *r)
{
    return r->with_positions && !r->with_fields;
}

/* The file that has a document of the index, and its docid there. */
static const gx_index *find_document(const rewriter *r, uint32_t docid, uint32_t *local)
{
    *local = docid;
    return r->ix->parts ? gx_parts_find(r->ix->parts, docid, local)->ix : r->ix;
}

/* Tell the writer, which has all documents, where their fields begin. */
static gx_status place_fields(rewriter *r, gx_error *err)
{
    const uint32_t n_stored = r->n_fields ? r->n_fields - 1 : 0;
    uint32_t *places = keeps_positions(r) && n_stored ? gx_writer_field_positions(r->writer) : NULL;
    if (!keeps_positions(r) || n_stored == 0)
        return GX_OK;
    if (!places)
        return gx_fail(err, GX_ENOMEM, "%s: no memory for the fields of documents", r->ix->path);
    for (uint32_t d = 0; d < r->ix->n_docs; ++d, places += n_stored) {
        uint32_t local;
        const gx_index *ix = find_document(r, r->old_docids ? r->old_docids[d] : d, &local);
        gx_index_field_positions(ix, local, places);
    }
    return GX_OK;
}

/* Append the positions, or the fields, of a block's occurrences. */
static gx_status decode_details(rewriter *r, const gx_index *ix, uint32_t term, uint32_t j, const uint32_t *tfs,
                                uint32_t n, size_t from, size_t *end, gx_error *err)
{
    return r->with_fields
               ? gx_fields_read_block(&r->fields, ix, term, j, tfs, n, &r->positions, &r->max_positions, from, end, err)
               : gx_index_decode_positions(ix, term, j, tfs, n, &r->positions, &r->max_positions, from, end, err);
}

static gx_status copy_document(rewriter *r, uint32_t docid, gx_error *err)
{
    const gx_index *ix = r->ix->parts ? gx_parts_find(r->ix->parts, docid, &docid)->ix : r->ix;
    size_t id_len, title_len = 0, text_len = 0;
    const char *id = gx_index_doc_id(ix, docid, &id_len), *title = NULL;
    if (!r->opt->drop_titles)
        title = gx_index_doc_title(ix, docid, &title_len);
    if (ix->text && !r->opt->drop_texts) {
        const gx_status st = gx_index_doc_text(ix, docid, &r->text, &r->text_cap, &text_len, err);
        if (st != GX_OK)
            return st;
    }
    gx_status st = r->columns ? gx_columns_copy(r->columns, ix, docid, err) : GX_OK;
    if (st == GX_OK && r->columns)
        st = gx_columns_add(r->columns, err);
    if (st != GX_OK)
        return st;
    st = gx_writer_add_document(
        r->writer,
        &(gx_document){
            .id = id, .id_len = id_len, .title = title, .title_len = title_len, .text = r->text, .text_len = text_len},
        ix->doc_lens[docid], err);
    const bool titled = keeps_positions(r) && !r->n_fields;
    const uint32_t title_positions = titled ? gx_index_title_positions(ix, docid) : 0;
    return st == GX_OK && titled ? gx_writer_add_title_positions(r->writer, &title_positions, 1, err) : st;
}

/* Decodes all of list t. GX_ECORRUPT unless its docids rise and are below n_docs. */
static gx_status decode_list(rewriter *r, uint32_t t, const gx_list *l, gx_error *err)
{
    uint32_t n = 0;
    uint64_t least = 0;
    gx_status st = GX_OK;
    r->n_positions = 0;
    for (uint32_t j = 0; j < l->n_blocks && st == GX_OK; ++j) {
        const uint32_t here = gx_list_decode_tfs(l, j, r->tfs + n);
        if (r->with_positions)
            st = decode_details(r, r->ix, t, j, r->tfs + n, here, r->n_positions, &r->n_positions, err);
        n += gx_list_decode_docids(l, j, r->docids + n);
    }
    if (st != GX_OK)
        return st;
    for (uint32_t i = 0; i < n; ++i) {
        if (r->docids[i] < least || r->docids[i] >= r->ix->n_docs)
            return gx_fail(err, GX_ECORRUPT, "%s: list %u: posting %u has docid %u, outside [%llu, %u)", r->ix->path, t,
                           i, r->docids[i], (unsigned long long)least, r->ix->n_docs);
        if (r->tfs[i] == 0)
            return gx_fail(err, GX_ECORRUPT, "%s: list %u: posting %u has a tf of 0", r->ix->path, t, i);
        least = (uint64_t)r->docids[i] + 1;
        r->doc_tfs[r->docids[i]] += r->tfs[i];
        r->sum_tfs += r->tfs[i];
    }
    return GX_OK;
}

/* Radix sort by docid, least significant digit first. Skips digits above the width of n_docs. */
static posting *radix_sort(posting *a, posting *radix_buffer, uint32_t n, uint32_t n_docs)
{
    enum { BITS = 11, BUCKETS = 1 << BITS };
    for (uint32_t shift = 0; shift < 32 && (n_docs - 1) >> shift; shift += BITS) {
        uint32_t at[BUCKETS] = {0}, sum = 0;
        for (uint32_t i = 0; i < n; ++i)
            ++at[a[i].docid >> shift & (BUCKETS - 1)];
        for (uint32_t b = 0; b < BUCKETS; ++b) {
            const uint32_t count = at[b];
            at[b] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < n; ++i)
            radix_buffer[at[a[i].docid >> shift & (BUCKETS - 1)]++] = a[i];
        posting *swap = a;
        a = radix_buffer;
        radix_buffer = swap;
    }
    return a;
}

static void insertion_sort(posting *a, uint32_t n)
{
    for (uint32_t i = 1; i < n; ++i) {
        const posting p = a[i];
        uint32_t j = i;
        for (; j && a[j - 1].docid > p.docid; --j)
            a[j] = a[j - 1];
        a[j] = p;
    }
}

/* Put the positions in the order of sorted postings, which have the places that they had in the place of tfs, and get
 * their tfs. */
static gx_status sort_positions(rewriter *r, posting *sorted, uint32_t n, gx_error *err)
{
    size_t at = 0;
    for (uint32_t i = 0; i < n; at += r->tfs[i++])
        r->starts[i] = at;
    const gx_status st = gx_grow(&r->sorted_positions, &r->max_sorted, at, sizeof *r->positions, err);
    at = 0;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        const uint32_t from = sorted[i].tf, tf = r->tfs[from];
        memcpy(r->sorted_positions + at, r->positions + r->starts[from], tf * sizeof *r->positions);
        sorted[i].tf = tf;
        at += tf;
    }
    return st;
}

static gx_status reorder_list(rewriter *r, uint32_t n, gx_error *err)
{
    for (uint32_t i = 0; i < n; ++i)
        r->postings[i] = (posting){r->opt->new_docids[r->docids[i]], r->with_positions ? i : r->tfs[i]};
    posting *sorted = r->postings;
    if (n <= 256)
        insertion_sort(r->postings, n);
    else
        sorted = radix_sort(r->postings, r->radix_buffer, n, r->ix->n_docs);
    if (r->with_positions) {
        const gx_status st = sort_positions(r, sorted, n, err);
        if (st != GX_OK)
            return st;
    }
    for (uint32_t i = 0; i < n; ++i) {
        r->docids[i] = sorted[i].docid;
        r->tfs[i] = sorted[i].tf;
    }
    return GX_OK;
}

/* Append what lives of a part's list to the *n postings so far. */
static gx_status append_part(rewriter *r, const part_cursor *c, uint32_t term, uint32_t *n, gx_error *err)
{
    const gx_index *ix = c->part->ix;
    const gx_list l = gx_index_list(ix, term);
    const uint32_t most = *n + gx_part_df(c->part, term);
    uint64_t least = 0;
    for (uint32_t j = 0; j < l.n_blocks && *n <= most; ++j) {
        uint32_t *docids = r->docids + *n, *tfs = r->tfs + *n, kept = 0;
        const uint32_t n_here = gx_list_decode_tfs(&l, j, tfs);
        size_t from = r->n_positions, end = from;
        if (r->with_positions) {
            const gx_status st = decode_details(r, ix, term, j, tfs, n_here, from, &end, err);
            if (st != GX_OK)
                return st;
        }
        gx_list_decode_docids(&l, j, docids);
        for (uint32_t i = 0; i < n_here; ++i) {
            if (docids[i] < least || docids[i] >= ix->n_docs || tfs[i] == 0)
                return gx_fail(err, GX_ECORRUPT, "%s: list %u, block %u: does not decode to rising docids below %u",
                               ix->path, term, j, ix->n_docs);
            least = (uint64_t)docids[i] + 1;
            const size_t begin = from;
            from += r->with_positions ? tfs[i] : 0;
            const uint32_t to = c->new_docids ? c->new_docids[docids[i]] : (uint32_t)c->part->base + docids[i];
            if (to == UINT32_MAX)
                continue;
            if (r->with_positions)
                memmove(r->positions + r->n_positions, r->positions + begin, tfs[i] * sizeof *r->positions);
            r->n_positions += from - begin;
            docids[kept] = to;
            tfs[kept++] = tfs[i];
            r->doc_tfs[to] += tfs[i];
            r->sum_tfs += tfs[i];
        }
        *n += kept;
    }
    if (*n > most)
        return gx_fail(err, GX_ECORRUPT, "%s: list %u has more live documents than its deletes leave", ix->path, term);
    return GX_OK;
}

/* The live postings of term t of a collection: df of them,
 * which the deletes have been counted by. */
static gx_status decode_parts(rewriter *r, const char *term, size_t len, uint32_t df, gx_error *err)
{
    gx_status st = GX_OK;
    uint32_t n = 0;
    r->n_positions = 0;
    for (uint32_t i = 0; i < r->ix->parts->n && st == GX_OK; ++i) {
        part_cursor *c = &r->cursors[i];
        const gx_index *ix = c->part->ix;
        const char *found = NULL;
        size_t found_len = 0;
        for (int order = -1; c->next < ix->n_terms; ++c->next) { /* terms that no live document has are passed over */
            found = gx_strings_get(&ix->terms, c->next, &found_len);
            const size_t least = found_len < len ? found_len : len;
            order = least ? memcmp(found, term, least) : 0;
            order = order ? order : (found_len > len) - (found_len < len);
            if (order >= 0) {
                found = order == 0 ? found : NULL;
                break;
            }
            found = NULL;
        }
        if (!found)
            continue;
        st = append_part(r, c, c->next++, &n, err);
    }
    if (st == GX_OK && n != df)
        st =
            gx_fail(err, GX_ECORRUPT, "%s: a list has %u live documents, and its deletes leave %u", r->ix->path, n, df);
    return st;
}

/* Decode list t; *df: its postings. The terms of a collection are decoded in their order. */
static gx_status decode_term(rewriter *r, uint32_t t, uint32_t *df, gx_error *err)
{
    if (!r->ix->parts) {
        const gx_list l = gx_index_list(r->ix, t);
        *df = l.df;
        return decode_list(r, t, &l, err);
    }
    size_t len;
    const char *term = gx_index_term(r->ix, t, &len);
    *df = gx_index_df(r->ix, t);
    return decode_parts(r, term, len, *df, err);
}

/* The scores of a list of df postings, which has been decoded. */
static gx_weight_range score_list(rewriter *r, uint32_t df)
{
    uint64_t cf = 0;
    gx_weight_range range = {0};
    for (uint32_t i = 0; i < df; ++i)
        cf += r->tfs[i];
    gx_impact_scores(&r->impacts, r->ix, cf, df, r->docids, r->tfs, r->scores);
    for (uint32_t i = 0; i < df; ++i)
        gx_weight_range_add(&range, r->scores[i]);
    return range;
}

/* The list's tfs become impacts; its unit. */
static double quantize_list(rewriter *r, uint32_t df)
{
    const gx_weight_range range = score_list(r, df);
    const double unit = r->impacts.list_units ? gx_impact_unit(range, r->impacts.bits) : r->unit;
    for (uint32_t i = 0; i < df; ++i)
        r->tfs[i] = gx_quantize(r->scores[i], unit);
    return unit;
}

static gx_status copy_list(rewriter *r, uint32_t t, gx_error *err)
{
    size_t len;
    uint32_t df;
    const char *term = gx_index_term(r->ix, t, &len);
    gx_status st = decode_term(r, t, &df, err);
    if (st != GX_OK)
        return st;
    const double unit = r->scores ? quantize_list(r, df) : gx_index_unit(r->ix, t);
    if (r->opt->new_docids)
        st = reorder_list(r, df, err);
    if (st != GX_OK)
        return st;
    gx_term_postings list = {.term = term,
                             .len = len,
                             .df = df,
                             .docids = r->docids,
                             .tfs = r->tfs,
                             .positions = r->opt->new_docids ? r->sorted_positions : r->positions,
                             .unit = (float)unit};
    if (r->with_fields) {
        const gx_status st_fields =
            gx_fields_count(&r->field_tfs, &r->max_field_tfs, list.tfs, df, list.positions, r->ix->fields->n, err);
        if (st_fields != GX_OK)
            return st_fields;
        list.field_tfs = r->field_tfs;
        list.positions = NULL;
    }
    gx_error why;
    const gx_status added = gx_writer_add_postings(r->writer, &list, &why);
    if (added == GX_EUSAGE) /* the writer refuses what the index should not hold */
        return gx_fail(err, GX_ECORRUPT, "%s: list %u: %s", r->ix->path, t, why.text);
    return added ? gx_fail(err, added, "%s", why.text) : GX_OK;
}

static bool cancelled(const rewriter *r, uint32_t i)
{
    return i % 1024 == 0 && r->opt->cancel && r->opt->cancel(r->opt->user);
}

/* The unit of all impacts, by a pass over the lists. */
static gx_status find_unit(rewriter *r, gx_error *err)
{
    gx_status st = GX_OK;
    gx_weight_range range = {0};
    for (uint32_t t = 0; st == GX_OK && t < r->n_terms; ++t) {
        uint32_t df;
        if (cancelled(r, t))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        if ((st = decode_term(r, t, &df, err)) == GX_OK)
            gx_weight_range_merge(&range, score_list(r, df));
    }
    for (uint32_t i = 0; r->cursors && i < r->ix->parts->n; ++i)
        r->cursors[i].next = 0;
    r->unit = gx_impact_unit(range, r->impacts.bits);
    r->sum_tfs = 0; /* the lists are decoded again */
    memset(r->doc_tfs, 0, r->ix->n_docs * sizeof *r->doc_tfs);
    return st;
}

/* What GX_CHECK_FULL finds in the sums: the index may have been opened at a lower level. */
static gx_status check_sums(const rewriter *r, gx_error *err)
{
    const gx_index *ix = r->ix;
    bool imported = ix->impacts; /* its lengths need not be what tfs add up to */
    for (uint32_t i = 0; ix->parts && i < ix->parts->n; ++i)
        imported = imported || ix->parts->parts[i].ix->sum_tfs != ix->parts->parts[i].ix->n_tokens;
    for (uint32_t d = 0; ix->parts && !imported && d < ix->n_docs; ++d)
        if (r->doc_tfs[d] != gx_index_length(ix, d))
            return gx_fail(err, GX_ECORRUPT, "%s: document %u has length %u, its tfs add up to %u", ix->path, d,
                           gx_index_length(ix, d), r->doc_tfs[d]);
    if (ix->parts)
        return GX_OK;
    if (r->sum_tfs != ix->sum_tfs)
        return gx_fail(err, GX_ECORRUPT, "%s: tfs add up to %llu, the header says %llu", ix->path,
                       (unsigned long long)r->sum_tfs, (unsigned long long)ix->sum_tfs);
    for (uint32_t d = 0; !ix->impacts && ix->sum_tfs == ix->n_tokens && d < ix->n_docs; ++d)
        if (r->doc_tfs[d] != ix->doc_lens[d])
            return gx_fail(err, GX_ECORRUPT, "%s: document %u has length %u, its tfs add up to %u", ix->path, d,
                           ix->doc_lens[d], r->doc_tfs[d]);
    return GX_OK;
}

static gx_status copy_lists(rewriter *r, gx_error *err)
{
    gx_status st = GX_OK;
    if (r->joins) {
        const gx_join_options o = {
            r->n_threads, r->with_positions, r->with_fields, r->doc_tfs, r->opt->cancel, r->opt->user};
        return gx_join_lists(r->ix, r->writer, &o, err);
    }
    for (uint32_t t = 0; st == GX_OK && t < r->n_terms; ++t) {
        if (cancelled(r, t))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        st = copy_list(r, t, err);
    }
    return st;
}

/* META with the member that says so where titles are not stored, and without it where they are. Frees meta. NULL: no
 * memory. */
static char *tell_titles(char *meta, bool stored)
{
    json_t *root = gx_json_load(meta, strlen(meta), 0, NULL);
    if (root && stored == json_is_false(json_object_get(root, "titles"))) {
        free(meta);
        if (stored)
            json_object_del(root, "titles");
        else
            json_object_set_new(root, "titles", json_false());
        meta = gx_json_dump(root, JSON_COMPACT);
    }
    json_decref(root);
    return meta;
}

static gx_status rewrite(rewriter *r, gx_error *err)
{
    const gx_index *ix = r->ix;
    r->joins = ix->parts && !r->opt->new_docids && r->impacts.model == GX_IMPACTS_KEEP;
    gx_status st = r->joins ? GX_OK : open_cursors(r, err);
    if (st == GX_OK)
        st = alloc_buffers(r, err);
    for (uint32_t d = 0; st == GX_OK && d < ix->n_docs; ++d) {
        if (cancelled(r, d))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        st = copy_document(r, r->old_docids ? r->old_docids[d] : d, err);
    }
    r->unit = ix->impact_unit;
    if (st == GX_OK)
        st = place_fields(r, err);
    if (st == GX_OK && r->scores && !r->impacts.list_units)
        st = find_unit(r, err);
    if (st == GX_OK)
        st = copy_lists(r, err);
    if (st == GX_OK)
        st = check_sums(r, err);
    if (st != GX_OK)
        return st;
    gx_writer_set_unit(r->writer, r->unit);
    char *meta = r->scores ? gx_impact_meta(&r->impacts, ix) : strndup(ix->meta, ix->meta_len);
    if (meta)
        meta = tell_titles(meta, gx_index_stores_titles(ix) && !r->opt->drop_titles);
    if (!meta)
        return gx_fail(err, GX_ENOMEM, "%s: no memory to copy its description", ix->path);
    st = gx_writer_finish(r->writer, meta, err);
    free(meta);
    return st;
}

gx_status gx_codecs_of_index(const gx_index *ix, const char **docid_codec, const char **tf_codec, gx_error *err)
{
    gx_index_sizes *sizes = malloc(sizeof *sizes);
    uint64_t most = 0;
    if (!sizes)
        return gx_fail(err, GX_ENOMEM, "%s: no memory to look for its codecs", ix->path);
    gx_index_measure(ix->parts ? ix->parts->parts[0].ix : ix, sizes);
    *docid_codec = *tf_codec = NULL;
    for (uint32_t i = 0; i < sizes->n_codings; ++i)
        if (sizes->codings[i].n_postings > most) {
            most = sizes->codings[i].n_postings;
            *docid_codec = sizes->codings[i].docid_codec;
            *tf_codec = sizes->codings[i].tf_codec;
        }
    if (sizes->n_codings > 1 && ix->block_len == gx_codec_auto.block_len)
        *docid_codec = *tf_codec = gx_codec_auto.name;
    free(sizes);
    return GX_OK;
}

/* Columns for the attributes of the index, if it has any. Their temporary files go to dir. */
static gx_status open_columns(rewriter *r, const char *dir, gx_error *err)
{
    gx_attribute attributes[GX_MAX_ATTRIBUTES];
    gx_bitmap_options bitmaps[GX_MAX_ATTRIBUTES];
    char names[GX_MAX_ATTRIBUTES][GX_MAX_ATTRIBUTE_NAME + 1];
    for (uint32_t i = 0; i < r->ix->n_columns; ++i) {
        const gx_column *c = &r->ix->columns[i];
        memcpy(names[i], c->name, c->name_len);
        names[i][c->name_len] = 0;
        attributes[i] = (gx_attribute){names[i], c->type};
        bitmaps[i] = gx_bitmap_options_asked(c->type, &c->bitmaps.asked);
    }
    return r->ix->n_columns ? gx_columns_open(&r->columns, attributes, bitmaps, r->ix->n_columns, dir, err) : GX_OK;
}

static gx_status choose_codecs(const rewriter *r, gx_writer_options *w, gx_error *err)
{
    const char *docids = r->opt->docid_codec, *tfs = NULL;
    const gx_status st = docids ? GX_OK : gx_codecs_of_index(r->ix, &docids, &tfs, err);
    if (st != GX_OK)
        return st;
    return gx_codec_find_pair(&w->docids, &w->tfs, docids, r->opt->tf_codec ? r->opt->tf_codec : tfs, err);
}

/* The file that the writer has finished without a name, which stays while it is open. */
static gx_status open_unnamed(gx_index **out, const gx_writer *w, gx_error *err)
{
    char *path = gx_writer_unnamed_path(w);
    const gx_status st = path ? gx_index_open_at(out, path, GX_CHECK_STRUCTURE, GX_LOAD_MAP, err)
                              : gx_fail(err, GX_ENOMEM, "out of memory");
    free(path);
    return st;
}

/* With opened not NULL the index gets no name: it is opened there. */
static gx_status rewrite_index(gx_index **opened, const gx_index *ix, const char *path, const gx_place *place,
                               const gx_rewrite_options *opt, uint32_t n_threads, gx_error *err)
{
    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    gx_status st =
        gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_rewrite_options, user), "gx_rewrite_options", err);
    if (st == GX_OK && gx_index_is_wide(ix))
        st = gx_fail(err, GX_EUSAGE,
                     "%s has %llu documents, and one file has at most 2^32 - 2: it cannot be made one index", ix->path,
                     (unsigned long long)gx_index_n_docs(ix));
    if (st != GX_OK)
        return st;
    rewriter r = {.ix = ix, .opt = &o, .n_threads = n_threads};
    if ((st = gx_impact_options_complete(&r.impacts, &o.impacts, ix, err)) != GX_OK)
        return st;
    const bool makes_impacts = r.impacts.model != GX_IMPACTS_KEEP;
    if (makes_impacts && ix->fields)
        return gx_fail(err, GX_EUSAGE, "%s has fields, and an index of impacts has none: build it without --field",
                       ix->path);
    gx_writer_options w = GX_WRITER_OPTIONS;
    w.force = o.force;
    w.unnamed = opened != NULL;
    w.place = place;
    w.uuid = o.uuid;
    w.impacts = ix->impacts || makes_impacts;
    w.list_units = makes_impacts ? r.impacts.list_units : ix->units != NULL;
    w.store_text = ix->text && !o.drop_texts;
    r.n_fields = w.n_fields = ix->fields && !opened ? ix->fields->n : 0; /* a flat copy is for those who read lists */
    w.positions = gx_index_has_positions(ix) && !o.drop_positions && !w.impacts;
    r.with_fields = r.n_fields && !w.positions; /* else they follow from positions */
    r.with_positions = w.positions || r.with_fields;
    st = choose_codecs(&r, &w, err);
    char *dir = gx_directory_of(path);
    if (st == GX_OK)
        st = dir ? open_columns(&r, dir, err) : gx_fail(err, GX_ENOMEM, "out of memory");
    w.columns = r.columns;
    if (st == GX_OK)
        st = gx_writer_open(&r.writer, path, &w, err);
    if (st == GX_OK)
        st = rewrite(&r, err);
    if (st == GX_OK && opened)
        st = open_unnamed(opened, r.writer, err);
    gx_writer_close(r.writer);
    gx_columns_close(r.columns);
    free(dir);
    free(r.docids);
    free(r.doc_tfs);
    free(r.scores);
    free(r.tfs);
    free(r.postings);
    free(r.radix_buffer);
    free(r.old_docids);
    free(r.positions);
    free(r.sorted_positions);
    free(r.fields.tfs);
    free(r.field_tfs);
    free(r.starts);
    free(r.text);
    close_cursors(&r);
    return st;
}

gx_status gx_index_rewrite(const gx_index *ix, const char *path, const gx_rewrite_options *opt, gx_error *err)
{
    return rewrite_index(NULL, ix, path, NULL, opt, 1, err);
}

gx_status gx_collection_rewrite(const gx_index *ix, const char *path, const gx_place *place,
                                const gx_rewrite_options *opt, uint32_t n_threads, gx_error *err)
{
    return rewrite_index(NULL, ix, path, place, opt, n_threads, err);
}

gx_status gx_index_flatten(gx_index **out, const gx_index *ix, const char *path, gx_error *err)
{
    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    const char *tmp = getenv("TMPDIR");
    char *beside = NULL, *dir = strcmp(path, "-") ? gx_directory_of(path) : strdup(tmp && *tmp ? tmp : "/tmp");
    *out = NULL;
    if (!dir || asprintf(&beside, "%s/live documents", dir) < 0) {
        free(dir);
        return gx_fail(err, GX_ENOMEM, "out of memory");
    }
    free(dir);
    o.drop_titles = o.drop_texts = o.drop_positions = true;
    const gx_status st = rewrite_index(out, ix, beside, NULL, &o, 1, err);
    free(beside);
    return st;
}
