/* view.h: an index seen through its fields: the same documents, ids, attributes and terms, and lists whose tfs are
 * impacts of BM25F, made of the fields' tfs and lengths when a list is first asked for, and kept.
 *
 *   tf'     = sum over the fields of weight * tf / ((1 - b) + b / avglen * len)     by rising field number
 *   impact  = max(1, round(2^23 * (tf' / (tf' + k1))))
 *
 * All steps are in single precision, round to nearest even, without contraction; c0 = 1 - b and c1 = b / avglen are
 * rounded once. A list has the postings that have a tf in one of the fields. The engines add impacts up, each times
 * idf * 2^-23, by the linear shape of bm25.h, so that every way to search gives the same bits.
 *
 *   numbers of terms   0 to n - 1: those of the file; (f + 1) n + t: term t in field f alone
 *
 * A term in field f alone is looked up by a name: GX_FIELD_MARK, f + 1, and the term.
 */
#ifndef GX_INDEX_FIELDS_VIEW_H
#define GX_INDEX_FIELDS_VIEW_H

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
    double b; /* where all fields have one; NaN: they differ */
} gx_view_profile;

/* The view of a file with fields, which it holds open. deletes: the documents that count no more; NULL: none.
 * gx_index_close. GX_ENOMEM. */
gx_status gx_view_open(gx_index **out, gx_index *base, const gx_view_profile *profile, const struct gx_deletes *deletes,
                       gx_error *err);
void gx_view_close(gx_index *ix); /* called by gx_index_close */

/* The view of a file that ix is, or its first part; NULL: the lists are the file's. */
const gx_index *gx_view_of(const gx_index *ix);

const gx_view_profile *gx_view_get_profile(const gx_index *ix);

/* Make the list, and set ix->lists[term].df, which may become 0. Thread-safe. */
void gx_view_prepare(const gx_index *ix, uint32_t term);
gx_list gx_view_list(const gx_index *ix, uint32_t term);

/* GX_OK, or why a list could not be made: GX_ENOMEM, GX_ECORRUPT. */
gx_status gx_view_status(const gx_index *ix, gx_error *err);

/* The name of a term in a field alone: the term's bytes behind 2 more. false: the name is not of this form, or of no
 * field of the index. */
bool gx_view_parse_name(const gx_index *ix, const char *name, size_t len, uint32_t *field);

/* The deletes of the view, which counts its own lists; NULL: none is deleted. */
struct gx_deletes *gx_view_deletes(const gx_index *ix);

/* The length of a document in each field, lens[n]. */
void gx_view_lens(const gx_index *ix, uint32_t docid, uint32_t *lens);

/* The tf of a term of the view in each field of a document, tfs[n], which are 0 before. */
void gx_view_explain(const gx_index *ix, uint32_t term, uint32_t docid, uint32_t *tfs);

#endif
