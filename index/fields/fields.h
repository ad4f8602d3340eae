/* fields.h: the fields of an index that was built with them: their names, their part in each document's length, and
 * their tfs in each list. FORMAT.md describes the section FLDS. field_tfs.h has the code of the tfs.
 */
#ifndef GX_INDEX_FIELDS_FIELDS_H
#define GX_INDEX_FIELDS_FIELDS_H

#include "index/fields/field_tfs.h"
#include "index/index.h"

#define GX_MAX_FIELD_NAME 64u /* bytes */

typedef struct gx_fields {
    uint32_t n;                       /* 1 to GX_MAX_FIELDS */
    char *names[GX_MAX_FIELDS];       /* [n] */
    uint64_t n_tokens[GX_MAX_FIELDS]; /* [n] sums of the documents' lengths; of a collection, of live documents */
    /* of a file: */
    uint32_t len_width; /* 1, 2 or 4 */
    const uint8_t *lens; /* [n_docs * (n - 1)] numbers of len_width bytes, document by document */
    const uint32_t *ends, *wraps; /* [n_terms]; [n_wraps] lists at whose ends the count has passed another 2^32 */
    uint32_t n_wraps;
    const uint8_t *bytes; /* [n_bytes] of all lists, and GX_FIELD_TFS_SLACK zero bytes more */
    uint64_t n_bytes;
} gx_fields;

/* The sizes of FLDS's three arrays, each padded to a multiple of 8 bytes. */
static inline uint64_t gx_fields_lens_bytes(uint32_t n_docs, uint32_t n, uint32_t width)
{
    return ((uint64_t)n_docs * (n - 1) * width + 7) / 8 * 8;
}
static inline uint64_t gx_fields_ends_bytes(uint32_t n_terms, uint32_t n_wraps)
{
    return (((uint64_t)n_terms + n_wraps) * sizeof(uint32_t) + 7) / 8 * 8;
}

/* FLDS's parameter. */
static inline uint64_t gx_fields_param(uint32_t n, uint32_t width, uint32_t n_wraps)
{
    return n | (uint64_t)width << 8 | (uint64_t)n_wraps << 32;
}

void gx_fields_close(gx_fields *f); /* accepts NULL */

/* The number of the field of that name; UINT32_MAX: there is none. */
uint32_t gx_fields_find(const gx_fields *f, const char *name, size_t len);

/* The bytes of a list's tfs. */
const uint8_t *gx_fields_list(const gx_fields *f, uint32_t term, size_t *n);

/* The length of document docid of a file in each field but the last, lens[n - 1]. */
void gx_fields_lens(const gx_fields *f, uint32_t docid, uint32_t *lens);

/* For those who copy lists block by block: reads a list's tfs by field as the field of each occurrence. */
typedef struct gx_field_reader {
    uint32_t *tfs; /* [max] of the list at hand, field by field */
    size_t max;
} gx_field_reader;

/* Block j of the term's list, blocks in order from 0, n postings with these tfs: put the field of each occurrence,
 * rising within a posting, to (*fields)[from] on, which grows; *end: behind the last. GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_fields_read_block(gx_field_reader *r, const gx_index *ix, uint32_t term, uint32_t j, const uint32_t *tfs,
                               uint32_t n, uint32_t **fields, size_t *max, size_t from, size_t *end, gx_error *err);

/* The way back: of df postings and the fields of their occurrences the tfs in all fields but the last, (*rows)[df *
 * (n_fields - 1)], posting by posting, which grows. GX_ENOMEM. */
gx_status gx_fields_count(uint32_t **rows, size_t *max, const uint32_t *tfs, uint32_t df, const uint32_t *fields,
                          uint32_t n_fields, gx_error *err);

/* Documents that have the term in each field, dfs[n], of a file. false: damaged. */
bool gx_fields_dfs(const gx_index *ix, uint32_t term, uint32_t *dfs);

/* The stretches of a document's positions, of which no phrase has two: its title and its text, or its fields. Where all
 * of them but the first begin, begins[*n], docid < ix->n_docs; *n < GX_MAX_FIELDS. */
void gx_index_stretches(const gx_index *ix, uint32_t docid, uint32_t *n, uint64_t *begins);

/* How many positions each field but the last takes, lens[n - 1], of a file with n fields and positions. */
void gx_index_field_positions(const gx_index *ix, uint32_t docid, uint32_t *lens);

#endif
