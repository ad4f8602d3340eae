/* collection.h: a collection opened for reading: index files and their deletes, as one index of the
 * live documents.
 *
 *   docids of the collection   0 ......... base[1] ......... base[2] ...    live documents, dense; 64 bits
 *   parts                      part 0      part 1            part 2
 *   docids of a part           live ones by gx_deletes_rank; 32 bits
 *
 * Such a gx_index has `parts` and no sections. What reads lists, columns or lengths goes through
 * the parts. The functions of gpuidx.h take it as they take one of a file: it equals the index that
 * a build of the live documents, in order, would make, docids, statistics and term numbers
 * included.
 */
#ifndef GX_INDEX_READ_COLLECTION_H
#define GX_INDEX_READ_COLLECTION_H

#include "index/parts.h"

/* Open the last commit of the collection in folder ix->path, which dir_fd is (AT_FDCWD: the path says it), each file
 * verified at this level; with GX_CHECK_FULL also what they are together. Parts that `old`, another commit of it, has
 * open are shared (NULL: none). Called by gx_index_open; err is not NULL. */
gx_status gx_collection_bind(gx_index *ix, int dir_fd, gx_check level, gx_load load, const gx_index *old,
                             gx_error *err);
void gx_parts_close(gx_parts *p); /* accepts NULL */

/* A collection of the parts [first, first + n) of another, as one index; for a merge. It shares
 * their files. gx_index_close. */
gx_status gx_collection_slice(gx_index **out, const gx_index *collection, uint32_t first, uint32_t n, gx_error *err);

/* The same of any parts; path is for messages. */
gx_status gx_collection_share(gx_index **out, const char *path, const gx_part *parts, uint32_t n, gx_error *err);

/* Make an index of n parts, whose references it takes, also where it fails. */
gx_status gx_collection_of_parts(gx_index *ix, gx_part *parts, uint32_t n, gx_error *err);

/* The same for parts that are known to agree, some of which join several (index/convert/join.h) and
 * so lack ids and texts: an index to search, with the path, analyzer and META of `like`. */
gx_status gx_collection_of_joined(gx_index **out, const gx_index *like, gx_part *parts, uint32_t n, gx_error *err);

/* Whether documents that are added to the collection, or file, keep their titles: not where it was built without them,
 * which META tells. That none has one so far tells nothing. */
bool gx_index_stores_titles(const gx_index *ix);

/* Of an index of vectors' impacts the bits of its weights, which META tells; 0: it is none. */
uint32_t gx_index_impact_bits(const gx_index *ix);

/* GX_EUSAGE where two live documents of the parts have one id, naming both files. GX_ENOMEM. */
gx_status gx_parts_check_ids(const gx_part *parts, uint32_t n, gx_error *err);

/* What keeps two index files from being parts of one collection: GX_EUSAGE, naming b. */
gx_status gx_parts_agree(const gx_index *a, const gx_index *b, gx_error *err);

/* The part that holds a document of the collection, and its docid there. */
const gx_part *gx_parts_find(const gx_parts *p, uint64_t docid, uint32_t *local);

/* A term's number in each part, ids[p->n], UINT32_MAX where the part lacks it. Returns its df. */
uint64_t gx_parts_find_ids(const gx_parts *p, const char *term, size_t len, uint32_t *ids);

/* Live documents that hold a term, 0: none; the greatest tf among them, at least 1. */
uint64_t gx_parts_df(const gx_parts *p, const char *term, size_t len);
uint32_t gx_parts_max_tf(const gx_parts *p, const char *term, size_t len);

/* The terms that live documents hold, in byte order. */
typedef struct gx_collection_term {
    uint32_t part, term; /* the first part that has it, and its number there */
    uint64_t df;         /* of live documents */
} gx_collection_term;

/* All of them, made at first use; *n is their number. NULL: no memory. Thread-safe. */
const gx_collection_term *gx_parts_terms(const gx_parts *p, uint32_t *n);
const char *gx_parts_term(const gx_parts *p, uint32_t term, size_t *len);
uint32_t gx_parts_find_term(const gx_parts *p, const char *term, size_t len);

/* The words of a mask of the collection, [ceil(n_docs / 64)], and those of one of its parts' own
 * documents: copied from the one to the other. The bits of deleted documents become 0; gather adds
 * its bits to `words`. */
void gx_part_scatter(const gx_part *p, const uint64_t *words, uint64_t *local);
void gx_part_gather(const gx_part *p, const uint64_t *local, uint64_t *words);

#endif
