#include "index/convert/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/files/temporary_file.h"
#include "engine/lower_bound.h"
#include "engine/memory/grow.h"
#include "engine/parallel.h"
#include "engine/status.h"
#include "index/convert/rewrite.h"
#include "index/fields/fields.h"
#include "index/positions.h"
#include "index/read/collection.h"
#include "index/write/writer.h"

#define RANGES_A_THREAD 4u    /* of terms, of a wave, so that the threads end together */
#define MAX_RANGE_TERMS 4096u /* of the part whose terms bound the ranges */
#define MIN_RANGE_POSTINGS ((uint64_t)1 << 16)
#define WAVES 16u /* of ranges, at least, so that little of what is encoded waits in memory */

/* The next term of a part, up to the end of the range. */
typedef struct term_cursor {
    uint32_t next, end;
    const char *term; /* NULL: the range's end */
    size_t len;
} term_cursor;

/* What a range is joined with; the next wave's range uses it again. */
typedef struct range_joiner {
    gx_list_encoder lists;
    term_cursor *cursors; /* [parts->n] */
    uint32_t *docids, *tfs;
    size_t max_docids, max_tfs;
    uint32_t *positions;
    size_t n_positions, max_positions; /* of the list so far */
    gx_field_reader fields;
    uint32_t *field_tfs; /* of the list, posting by posting */
    size_t max_field_tfs;
    gx_status st;
    gx_error err;
} range_joiner;

typedef struct join {
    const gx_index *ix;
    const gx_parts *parts;
    uint32_t **new_docids;    /* [parts->n][n_docs of the part], UINT32_MAX: deleted. NULL: base + docid */
    const gx_index *bounding; /* the part with most postings: ranges begin at some of its terms */
    uint32_t *begins;         /* [n_ranges] those terms; the first range begins at the first term of any part */
    uint32_t n_ranges;
    size_t max_begins;
    range_joiner *joiners;     /* [n_joiners] */
    uint32_t n_joiners, first; /* the first range of the wave */
    bool with_positions;       /* or fields, of each occurrence in the place of its position */
    bool with_fields;
    uint32_t *doc_tfs; /* [n_docs] to which each posting's tf is added, atomically; NULL: not wanted */
} join;

static int compare_terms(const char *a, size_t a_len, const char *b, size_t b_len)
{
    const size_t n = a_len < b_len ? a_len : b_len;
    const int order = n ? memcmp(a, b, n) : 0;
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* ---- ranges ---- */

static gx_status cut_ranges(join *j, uint32_t n_threads, gx_error *err)
{
    const gx_index *most = j->parts->parts[0].ix;
    for (uint32_t i = 1; i < j->parts->n; ++i)
        if (j->parts->parts[i].ix->n_postings > most->n_postings)
            most = j->parts->parts[i].ix;
    const uint64_t share = most->n_postings / ((uint64_t)WAVES * RANGES_A_THREAD * n_threads);
    const uint64_t enough = share > MIN_RANGE_POSTINGS / j->parts->n ? share : MIN_RANGE_POSTINGS / j->parts->n;
    gx_status st = gx_grow(&j->begins, &j->max_begins, 1, sizeof *j->begins, err);
    j->bounding = most;
    j->n_ranges = 1;
    uint64_t n_postings = 0;
    for (uint32_t t = 0, begin = 0; t < most->n_terms && st == GX_OK; ++t) {
        if (n_postings > enough || t - begin == MAX_RANGE_TERMS) {
            st = gx_grow(&j->begins, &j->max_begins, j->n_ranges + 1ull, sizeof *j->begins, err);
            if (st == GX_OK)
                j->begins[j->n_ranges++] = begin = t;
            n_postings = 0;
        }
        n_postings += most->lists[t].df;
    }
    return st;
}

/* The first term of a part at or behind the beginning of a range. */
static uint32_t find_begin(const join *j, const gx_index *part, uint32_t range)
{
    if (range == 0)
        return 0;
    if (range == j->n_ranges)
        return part->n_terms;
    size_t len, found_len;
    const char *term = gx_strings_get(&j->bounding->terms, j->begins[range], &len), *found;
    GX_FIRST(uint32_t, i, 0, part->n_terms,
             (found = gx_strings_get(&part->terms, i, &found_len), compare_terms(found, found_len, term, len) >= 0));
    return i;
}

static void read_cursor(term_cursor *c, const gx_index *part)
{
    c->term = c->next < c->end ? gx_strings_get(&part->terms, c->next, &c->len) : NULL;
}

/* The least of the parts' next terms, or NULL at the range's end. */
static const term_cursor *find_least(const range_joiner *r, uint32_t n)
{
    const term_cursor *least = NULL;
    for (uint32_t i = 0; i < n; ++i) {
        const term_cursor *c = &r->cursors[i];
        if (c->term && (!least || compare_terms(c->term, c->len, least->term, least->len) < 0))
            least = c;
    }
    return least;
}

/* ---- lists ---- */

/* Keep the positions of a block's live postings, which have been appended. */
static void keep_positions(range_joiner *r, size_t end, const uint32_t *docids, const uint32_t *tfs, uint32_t n,
                           const uint32_t *to)
{
    if (!to) {
        r->n_positions = end;
        return;
    }
    size_t from = r->n_positions;
    for (uint32_t i = 0; i < n; from += tfs[i++]) {
        if (to[docids[i]] == UINT32_MAX)
            continue;
        memmove(r->positions + r->n_positions, r->positions + from, tfs[i] * sizeof *r->positions);
        r->n_positions += tfs[i];
    }
}

/* Append the live postings of a part's list to the *n so far. */
static gx_status append_list(const join *j, range_joiner *r, uint32_t p, uint32_t term, uint32_t *n, gx_error *err)
{
    const gx_part *part = &j->parts->parts[p];
    const uint32_t *const to = j->new_docids[p];
    const gx_list l = gx_index_list(part->ix, term);
    const size_t room = (size_t)*n + l.df + GX_MAX_BLOCK; /* the decoder may write a whole last block */
    gx_status st = gx_grow(&r->docids, &r->max_docids, room, sizeof *r->docids, err);
    if (st == GX_OK)
        st = gx_grow(&r->tfs, &r->max_tfs, room, sizeof *r->tfs, err);
    for (uint32_t b = 0; b < l.n_blocks && st == GX_OK; ++b) {
        uint32_t *docids = r->docids + *n, *tfs = r->tfs + *n, kept = 0, greatest = 0;
        gx_list_decode_tfs(&l, b, tfs);
        const uint32_t here = gx_list_decode_docids(&l, b, docids);
        for (uint32_t i = 0; i < here; ++i)
            greatest = docids[i] > greatest ? docids[i] : greatest;
        size_t end = 0;
        if (j->with_fields)
            st = gx_fields_read_block(&r->fields, part->ix, term, b, tfs, here, &r->positions, &r->max_positions,
                                      r->n_positions, &end, err);
        else if (j->with_positions)
            st = gx_index_decode_positions(part->ix, term, b, tfs, here, &r->positions, &r->max_positions,
                                           r->n_positions, &end, err);
        if (st != GX_OK)
            return st;
        if (greatest >= part->ix->n_docs)
            return gx_fail(err, GX_ECORRUPT, "%s: list %u, block %u: does not decode to docids below %u",
                           part->ix->path, term, b, part->ix->n_docs);
        if (j->with_positions)
            keep_positions(r, end, docids, tfs, here, to);
        for (uint32_t i = 0; i < here && !to; ++i)
            docids[i] += part->base;
        for (uint32_t i = 0; i < here && to; ++i) {
            const uint32_t docid = to[docids[i]];
            docids[kept] = docid;
            tfs[kept] = tfs[i];
            kept += docid != UINT32_MAX;
        }
        kept = to ? kept : here;
        for (uint32_t i = 0; i < kept && j->doc_tfs; ++i)
            __atomic_fetch_add(&j->doc_tfs[docids[i]], tfs[i], __ATOMIC_RELAXED);
        *n += kept;
    }
    return st;
}

/* The least term's lists of all parts become one. The term's bytes belong to a part. */
static gx_status join_term(const join *j, range_joiner *r, const char *term, size_t len, gx_error *err)
{
    uint32_t n = 0, df = 0;
    gx_status st = GX_OK;
    r->n_positions = 0;
    for (uint32_t i = 0; i < j->parts->n && st == GX_OK; ++i) {
        term_cursor *c = &r->cursors[i];
        if (!c->term || compare_terms(c->term, c->len, term, len) != 0)
            continue;
        df += gx_part_df(&j->parts->parts[i], c->next);
        st = append_list(j, r, i, c->next++, &n, err);
        read_cursor(c, j->parts->parts[i].ix);
    }
    if (st == GX_OK && n != df)
        return gx_fail(err, GX_ECORRUPT, "%s: a list has %u live documents, and its deletes leave %u", j->ix->path, n,
                       df);
    gx_term_postings list = {.term = term,
                             .len = len,
                             .df = n,
                             .docids = r->docids,
                             .tfs = r->tfs,
                             .positions = r->positions,
                             .unit = (float)j->ix->impact_unit};
    if (st != GX_OK || n == 0)
        return st;
    if (j->with_fields) {
        st = gx_fields_count(&r->field_tfs, &r->max_field_tfs, r->tfs, n, r->positions, j->ix->fields->n, err);
        list.field_tfs = r->field_tfs;
        list.positions = NULL;
    }
    if (st != GX_OK)
        return st;
    gx_error why;
    st = gx_list_encoder_add(&r->lists, &list, &why);
    if (st == GX_EUSAGE) /* the encoder refuses what the parts should not hold */
        return gx_fail(err, GX_ECORRUPT, "%s: %s", j->ix->path, why.text);
    return st == GX_OK ? st : gx_fail(err, st, "%s", why.text);
}

/* gx_parallel_fn: join a range of the wave. */
static void join_range(void *user, uint32_t number)
{
    join *j = user;
    range_joiner *r = &j->joiners[number];
    const uint32_t range = j->first + number;
    r->st = GX_OK;
    for (uint32_t i = 0; i < j->parts->n; ++i) {
        const gx_index *part = j->parts->parts[i].ix;
        r->cursors[i] = (term_cursor){find_begin(j, part, range), find_begin(j, part, range + 1), NULL, 0};
        read_cursor(&r->cursors[i], part);
    }
    for (const term_cursor *least; r->st == GX_OK && (least = find_least(r, j->parts->n));)
        r->st = join_term(j, r, least->term, least->len, &r->err);
}

static gx_status join_ranges(join *j, gx_writer *w, const gx_join_options *o, gx_error *err)
{
    const uint32_t n_threads = o->n_threads;
    gx_status st = GX_OK;
    j->joiners = calloc((size_t)n_threads * RANGES_A_THREAD, sizeof *j->joiners);
    if (!j->joiners)
        return gx_fail(err, GX_ENOMEM, "no memory to join %u parts", j->parts->n);
    for (; j->n_joiners < n_threads * RANGES_A_THREAD && st == GX_OK; ++j->n_joiners) {
        range_joiner *r = &j->joiners[j->n_joiners];
        gx_writer_open_encoded(w, &r->lists);
        if (!(r->cursors = calloc(j->parts->n, sizeof *r->cursors)))
            st = gx_fail(err, GX_ENOMEM, "no memory to join %u parts", j->parts->n);
    }
    for (; j->first < j->n_ranges && st == GX_OK; j->first += j->n_joiners) {
        const uint32_t left = j->n_ranges - j->first, n = left < j->n_joiners ? left : j->n_joiners;
        if (o->cancel && o->cancel(o->user))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        gx_parallel_for(n_threads, n, join_range, j);
        for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
            range_joiner *r = &j->joiners[i];
            st = r->st == GX_OK ? gx_writer_add_encoded(w, &r->lists, err) : gx_fail(err, r->st, "%s", r->err.text);
        }
    }
    return st;
}

/* ---- documents ---- */

/* The new docids of parts of which documents are deleted. */
static gx_status number_documents(join *j, gx_error *err)
{
    j->new_docids = calloc(j->parts->n, sizeof *j->new_docids);
    for (uint32_t i = 0; i < j->parts->n; ++i) {
        const gx_part *p = &j->parts->parts[i];
        if (!j->new_docids || (p->deletes && !(j->new_docids[i] = malloc((p->ix->n_docs + 1ull) * sizeof(uint32_t)))))
            return gx_fail(err, GX_ENOMEM, "no memory to join %u parts", j->parts->n);
        for (uint32_t d = 0, next = p->base; p->deletes && d < p->ix->n_docs; ++d)
            j->new_docids[i][d] = gx_deletes_is_live(p->deletes, d) ? next++ : UINT32_MAX;
    }
    return GX_OK;
}

static gx_status add_document(const gx_index *ix, uint32_t docid, gx_writer *w, bool positions, gx_error *err)
{
    static const gx_document nameless = {.size = sizeof nameless};
    const gx_status st = gx_writer_add_document(w, &nameless, ix->doc_lens[docid], err);
    positions = positions && !ix->fields;
    const uint32_t title_positions = positions ? gx_index_title_positions(ix, docid) : 0;
    return st == GX_OK && positions ? gx_writer_add_title_positions(w, &title_positions, 1, err) : st;
}

static gx_status add_documents(const gx_parts *parts, gx_writer *w, bool positions, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < parts->n && st == GX_OK; ++i) {
        const gx_part *p = &parts->parts[i];
        for (uint32_t d = 0; d < p->ix->n_docs && st == GX_OK; ++d)
            if (gx_deletes_is_live(p->deletes, d))
                st = add_document(p->ix, d, w, positions, err);
    }
    return st;
}

static void free_join(join *j)
{
    for (uint32_t i = 0; i < j->n_joiners; ++i) {
        gx_list_encoder_close(&j->joiners[i].lists);
        free(j->joiners[i].cursors);
        free(j->joiners[i].docids);
        free(j->joiners[i].tfs);
        free(j->joiners[i].positions);
        free(j->joiners[i].fields.tfs);
        free(j->joiners[i].field_tfs);
    }
    for (uint32_t i = 0; j->new_docids && i < j->parts->n; ++i)
        free(j->new_docids[i]);
    free(j->joiners);
    free(j->new_docids);
    free(j->begins);
}

gx_status gx_join_lists(const gx_index *collection, gx_writer *w, const gx_join_options *o, gx_error *err)
{
    join j = {.ix = collection,
              .parts = collection->parts,
              .with_positions = o->positions,
              .with_fields = o->fields,
              .doc_tfs = o->doc_tfs};
    gx_status st = number_documents(&j, err);
    if (st == GX_OK)
        st = cut_ranges(&j, o->n_threads, err);
    if (st == GX_OK)
        st = join_ranges(&j, w, o, err);
    free_join(&j);
    return st;
}

/* Tell the writer, which has all documents, where their fields begin. */
static gx_status place_fields(const gx_parts *parts, gx_writer *w, uint32_t n_stored, gx_error *err)
{
    uint32_t *places = gx_writer_field_positions(w);
    if (!places)
        return gx_fail(err, GX_ENOMEM, "no memory to join %u parts", parts->n);
    for (uint32_t i = 0; i < parts->n; ++i) {
        const gx_part *p = &parts->parts[i];
        for (uint32_t d = 0; d < p->ix->n_docs; ++d) {
            if (!gx_deletes_is_live(p->deletes, d))
                continue;
            gx_index_field_positions(p->ix, d, places);
            places += n_stored;
        }
    }
    return GX_OK;
}

static gx_status write_joined(const gx_index *collection, gx_writer *w, uint32_t n_threads, gx_error *err)
{
    const gx_join_options o = {.n_threads = n_threads, .positions = gx_index_has_positions(collection)};
    gx_status st = add_documents(collection->parts, w, o.positions, err);
    if (st == GX_OK && o.positions && collection->fields && collection->fields->n > 1)
        st = place_fields(collection->parts, w, collection->fields->n - 1, err);
    if (st == GX_OK)
        st = gx_join_lists(collection, w, &o, err);
    char *meta = strndup(collection->meta, collection->meta_len);
    gx_writer_set_unit(w, collection->impact_unit);
    if (st == GX_OK)
        st = meta ? gx_writer_finish(w, meta, err) : gx_fail(err, GX_ENOMEM, "out of memory");
    free(meta);
    return st;
}

gx_status gx_index_join(gx_index **out, const gx_index *collection, uint32_t n_threads, gx_error *err)
{
    gx_writer_options o = GX_WRITER_OPTIONS;
    gx_writer *w = NULL;
    const char *tmp = getenv("TMPDIR"), *docids, *tfs;
    char *path = NULL, *unnamed = NULL;
    *out = NULL;
    o.unnamed = true;
    o.impacts = collection->impacts;
    o.positions = gx_index_has_positions(collection);
    o.n_fields = o.positions && collection->fields ? collection->fields->n : 0; /* phrases need them */
    gx_status st = gx_codecs_of_index(collection, &docids, &tfs, err);
    if (st == GX_OK)
        st = gx_codec_find_pair(&o.docids, &o.tfs, docids, tfs, err);
    if (st == GX_OK && asprintf(&path, "%s/joined parts", tmp && *tmp ? tmp : "/tmp") < 0) {
        path = NULL;
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    }
    if (st == GX_OK)
        st = gx_writer_open(&w, path, &o, err);
    if (st == GX_OK)
        st = write_joined(collection, w, n_threads, err);
    if (st == GX_OK && !(unnamed = gx_writer_unnamed_path(w)))
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK)
        st = gx_index_open_at(out, unnamed, GX_CHECK_STRUCTURE, GX_LOAD_MAP, err);
    gx_writer_close(w);
    free(unnamed);
    free(path);
    return st;
}
