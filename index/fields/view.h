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
 *
 * Where the file has positions, a phrase is a term, too, looked up by a name of its own (gx_phrase_name). Its tf in a
 * field is the number of its matches there (query/phrase/phrase.h); its idf is the sum of its words' idfs, each as
 * often as the phrase says it: those of the words in all fields, or in the field of the phrase; with `best` and `sum`
 * those in each field. Its list is made when it is first asked for, and kept: of GX_MAX_VIEW_PHRASES different ones at
 * most.
 */
#ifndef GX_INDEX_FIELDS_VIEW_H
#define GX_INDEX_FIELDS_VIEW_H

#include "engine/api/gpuidx_advanced.h"
#include "index/fields/fields.h"

#define GX_FIELD_MARK '\x1e'
#define GX_PHRASE_MARK '\x1d'
#define GX_VIEW_UNIT 0x1p-23
#define GX_MAX_VIEW_PHRASES 65536u

struct gx_deletes;
typedef struct gx_view gx_view;

typedef struct gx_field_norm {
    bool used;
    float weight, c0, c1; /* see above */
    double b, avglen;     /* what they are made of */
} gx_field_norm;

/* The postings of a list of a file with fields. */
typedef struct gx_field_postings {
    uint32_t df;
    uint32_t *docids, *tfs; /* [df] */
    uint32_t *field_tfs;    /* [(n_fields - 1) * df] field by field */
    uint32_t *memory;       /* the caller's to free, also after a failure */
} gx_field_postings;

/* Find a phrase's documents and tfs by field, of a file whose words these are. GX_ENOMEM, GX_ECORRUPT. */
typedef gx_status gx_view_find_fn(gx_field_postings *out, const gx_index *base, const char *name, size_t len);

/* How a view scores. */
typedef struct gx_view_profile {
    gx_field_norm fields[GX_MAX_FIELDS]; /* of each field, also of those that are not used */
    float k1;
    double b; /* the fields' own where they have none */
    gx_field_scoring scoring;
    gx_preset preset;
    double (*idf)(double n_docs, double df), times, n_docs; /* the preset's; k1 + 1 or 1; of the collection */
    gx_view_find_fn *find; /* of phrases */
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

/* A phrase as a name, and its words in their order. */
typedef struct gx_phrase_name {
    uint32_t field, kind, slop, n; /* 1 + the field, 0: any; gx_phrase_kind; as in gx_phrase; words */
    size_t at;                     /* where gx_phrase_name_next goes on */
} gx_phrase_name;
typedef struct gx_phrase_name_word {
    const char *term; /* [len] */
    size_t len;
    uint32_t offset;
} gx_phrase_name_word;
size_t gx_phrase_name_bytes(const gx_phrase_name_word *words, uint32_t n);
void gx_phrase_name_write(char *to, const gx_phrase_name *p, const gx_phrase_name_word *words, uint32_t n);
bool gx_phrase_name_read(gx_phrase_name *p, const char *name, size_t len); /* false: it is none */
bool gx_phrase_name_next(gx_phrase_name *p, const char *name, size_t len, gx_phrase_name_word *word);

/* Whether phrases can be searched: of a view of files with positions, which no GPU has. */
bool gx_view_takes_phrases(const gx_index *ix);

/* The number of a phrase's list, which is made; UINT32_MAX: no document matches, or it cannot be made. */
uint32_t gx_view_find_phrase(const gx_index *ix, const char *name, size_t len);

/* The name of a list's phrase; NULL: the list is of a word. */
const char *gx_view_phrase_of(const gx_index *ix, uint32_t list, size_t *len);
/* The same as a query says it. */
const char *gx_view_phrase_text(const gx_index *ix, uint32_t list, size_t *len);

/* The sum of the words' idfs, of n_docs documents; df: of a name of a term. */
double gx_view_phrase_idf(const char *name, size_t len, double (*idf)(double n_docs, double df), double n_docs,
                          uint64_t (*df)(void *user, const char *term, size_t len), void *user);

/* The deletes of the view, which counts its own lists; NULL: none is deleted. */
struct gx_deletes *gx_view_deletes(const gx_index *ix);

/* The documents of the collection that have the term in each field, dfs[n]; not of a view of BM25F. Of a phrase's name:
 * those that have the rarest of its words there. */
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
