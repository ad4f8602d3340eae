/* view.h: an index seen through its fields: the same documents, ids, attributes and terms, and lists whose tfs are
 * impacts, made of the fields' tfs and lengths when a list is first asked for, and kept.
 *
 *   norm    = (1 - b) + b / avglen * len                                of a field of a document
 *   BM25F   tf' = sum over the fields of weight * tf / norm             by rising field number
 *           part = tf' / (tf' + k1)
 *           an impact of 1 adds idf * 2^-23 to a score, idf of the documents that have the term in one of the fields
 *   best, sum
 *           part = sum over the fields of share * (x / (x + k1)), x = tf / norm
 *           unit = sum over the fields of weight * idf, idf of the documents that have the term in the field, times
 *           k1 + 1 where the scorer is; share = weight * idf * (k1 + 1) / unit
 *           an impact of 1 adds unit * 2^-23 to a score
 *   impact  = max(1, round(2^23 * part))
 *
 * All steps of norm, tf', x and part are in single precision, round to nearest even, without contraction; c0 = 1 - b
 * and c1 = b / avglen, share and unit are computed in double precision and rounded once. A list has the postings that
 * have a tf in one of the fields. The engines add impacts up, each times its unit, by the linear shape of bm25.h, so
 * that every way to search gives the same bits. A search for `best` runs the lists of each field alone and takes the
 * greatest of the sums (query/engine/session_passes.c); the lists of all fields say what matches.
 *
 *   numbers of terms   0 to n - 1: those of the file; (f + 1) n + t: term t in field f alone
 *
 * A term in field f alone is looked up by a name: GX_FIELD_MARK, f + 1, and the term.
 */
#ifndef GX_INDEX_FIELDS_VIEW_H
#define GX_INDEX_FIELDS_VIEW_H

#include "engine/api/gpuidx_advanced.h"
#include "index/fields/fields.h"

#define GX_FIELD_MARK '\x1e'
#define GX_VIEW_UNIT 0x1p-23

struct gx_deletes;
typedef struct gx_view gx_view;

typedef struct gx_field_norm {
    bool used;
    float weight, c0, c1; /* see above */
    double b, avglen;     /* what they are made of */
} gx_field_norm;

/* How a view scores. */
typedef struct gx_view_profile {
    gx_field_norm fields[GX_MAX_FIELDS]; /* of each field, also of those that are not used */
    float k1;
    double b; /* the fields' own where they have none */
    gx_field_scoring scoring;
    gx_preset preset;
    double (*idf)(double n_docs, double df), times, n_docs; /* the preset's; k1 + 1 or 1; of the collection */
} gx_view_profile;

/* In how many live documents of a file or collection a word stands, field by field. Thread-safe. */
typedef struct gx_view_counts gx_view_counts;
gx_status gx_view_counts_open(gx_view_counts **out, const gx_index *ix, gx_error *err);
gx_view_counts *gx_view_counts_share(gx_view_counts *c);
void gx_view_counts_close(gx_view_counts *c);
gx_status gx_view_counts_get(const gx_view_counts *c, const char *term, size_t len, uint64_t *dfs /* [n_fields] */);

/* The view of a file with fields, which it holds open. deletes: the documents that count no more; NULL: none.
 * counts: of the collection; NULL: the profile is of BM25F. gx_index_close. GX_ENOMEM. */
gx_status gx_view_open(gx_index **out, gx_index *base, const gx_view_profile *profile, const struct gx_deletes *deletes,
                       gx_view_counts *counts, gx_error *err);
void gx_view_close(gx_index *ix); /* called by gx_index_close */

/* The view of a file that ix is, or its first part; NULL: the lists are the file's. */
const gx_index *gx_view_of(const gx_index *ix);

/* Whether it is a view of that index: their documents and attributes are the same. */
bool gx_view_is_of(const gx_index *view, const gx_index *ix);

const gx_view_profile *gx_view_get_profile(const gx_index *ix);

/* Whether the score of a document is that of its best field, of an index of any kind. */
bool gx_view_is_best(const gx_index *ix);

/* Make the list. Returns its df, which may be 0. Thread-safe. */
uint32_t gx_view_prepare(const gx_index *ix, uint32_t term);
gx_list gx_view_list(const gx_index *ix, uint32_t term);

/* Make all lists of the view of a file, and lay them out as an index file has them, for a GPU: ix->file, header and the
 * arrays are those of the view then. Thread-safe. GX_ENOMEM, GX_ECORRUPT, GX_EUSAGE: they are too many. */
gx_status gx_view_make_image(const gx_index *ix, uint32_t n_threads, gx_error *err);

/* GX_OK, or why a list could not be made: GX_ENOMEM, GX_ECORRUPT. */
gx_status gx_view_status(const gx_index *ix, gx_error *err);

/* The name of a term in a field alone: the term's bytes behind 2 more. false: the name is not of this form, or of no
 * field of the index. */
bool gx_view_parse_name(const gx_index *ix, const char *name, size_t len, uint32_t *field);

/* The deletes of the view, which counts its own lists; NULL: none is deleted. */
struct gx_deletes *gx_view_deletes(const gx_index *ix);

/* The documents of the collection that have the term in each field, dfs[n]; not of a view of BM25F. */
void gx_view_dfs(const gx_index *ix, const char *term, size_t len, uint64_t *dfs);

/* The list of a list's term in that field alone, which is made. false: there is none, the list is of another field, or
 * it is of all fields that are searched and this one is not. */
bool gx_view_in_field(const gx_index *ix, uint32_t list, uint32_t field, uint32_t *in_field);

/* What an impact of 1 of the term's list adds to a score, before BM25F's idf, of a view of a file or collection. */
double gx_view_unit(const gx_index *ix, const char *term, size_t len);

/* The length of a document in each field, lens[n]. */
void gx_view_lens(const gx_index *ix, uint32_t docid, uint32_t *lens);

/* The tf of a term of the view in each field of a document, tfs[n], which are 0 before. */
void gx_view_explain(const gx_index *ix, uint32_t term, uint32_t docid, uint32_t *tfs);

#endif
