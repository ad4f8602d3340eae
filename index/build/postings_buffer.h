/* postings_buffer.h: the terms of documents to the postings of terms, in bounded memory.
 *
 *   term number -> state (32 bytes: last document and its tf so far, df, end of the chain)
 *                    \_ chain of chunks, 16 bytes at first, growing: first docid, then (tf, d-gap)
 *                    (tf, d-gap) ... as vbytes
 *
 * The last posting of a list stays in its state until the next one comes, so counting a repeated
 * term costs no search, and a term that occurs in one document has no chain at all. When the caller
 * finds that too much is held it spills: all lists go, terms in byte order, as a run to an unnamed
 * temporary file, and numbering begins anew. At the end the runs, whose docids follow each other,
 * are merged term by term. So are several inverters, which several threads fill, each with
 * documents of its own: what they have of a list is interleaved by docid. Several threads may merge
 * them, each some ranges of terms.
 */
#ifndef GX_INDEX_BUILD_POSTINGS_BUFFER_H
#define GX_INDEX_BUILD_POSTINGS_BUFFER_H

#include "engine/gpuidx.h"

typedef struct gx_inverter gx_inverter; /* belongs to one thread */

#define GX_NO_TERM UINT32_MAX

/* dir: where temporary files may be made. chunk_memory sizes the pieces in which memory is taken:
 * about what will be held before spilling. */
gx_status gx_inverter_open(gx_inverter **out, const char *dir, uint64_t chunk_memory, gx_error *err);
void gx_inverter_close(gx_inverter *inv);

/* The number of a term of len < 65536 bytes, from 0 in order of first mention; good until the next
 * spill. GX_NO_TERM: no memory. */
uint32_t gx_inverter_term(gx_inverter *inv, const char *term, size_t len);

/* One occurrence each of terms[n] (numbers) in the document. Docids never fall; a document may come
 * in several calls. GX_ENOMEM: the inverter is spoilt. */
gx_status gx_inverter_add(gx_inverter *inv, uint32_t docid, const uint32_t *terms, size_t n);

uint64_t gx_inverter_bytes(const gx_inverter *inv);  /* memory held */
uint32_t gx_inverter_spills(const gx_inverter *inv); /* runs written so far */

/* Write all that is held to a run and forget it; numbers are void. Not within a document. GX_EIO,
 * GX_ENOMEM. */
gx_status gx_inverter_spill(gx_inverter *inv, gx_error *err);

/* A whole list; the arrays live until the function returns. */
typedef gx_status gx_list_fn(void *user, const char *term, size_t len, uint32_t df, const uint32_t *docids,
                             const uint32_t *tfs, gx_error *err);

/* No more is added: bring what is held into byte order, or write the last run. Once GX_OK, further
 * calls do nothing. Where several inverters are merged, each one's thread may do its part so. From
 * then on they are only read. GX_EIO, GX_ENOMEM. */
gx_status gx_inverter_seal(gx_inverter *inv, gx_error *err);

/* Terms whose first 8 bytes, the first highest and zeros behind, are in [from, to); to 0: there is
 * no end. */
typedef struct gx_term_range {
    uint64_t from, to;
} gx_term_range;

/* All terms of n sealed inverters in ranges of about equal work, some ten thousand postings or a
 * long list each, in their order; the caller frees. GX_ENOMEM. */
gx_status gx_inverter_ranges(gx_inverter *const *inverters, uint32_t n, gx_term_range **ranges, uint32_t *n_ranges,
                             gx_error *err);

/* The lists of n >= 1 sealed inverters, no two of which have a document in common, merged. A merger
 * belongs to one thread; several may read the same inverters, and outlive none of them. */
typedef struct gx_merger gx_merger;
gx_status gx_merger_open(gx_merger **out, gx_inverter *const *inverters, uint32_t n, gx_error *err);
void gx_merger_close(gx_merger *m);

/* Give every list of the range to fn, terms in byte order, until one call fails. fn's status,
 * GX_EIO, GX_ENOMEM. */
gx_status gx_merger_run(gx_merger *m, gx_term_range range, gx_list_fn *fn, void *user, gx_error *err);

/* The same of all terms; inverters that are not sealed are now. */
gx_status gx_inverter_merge(gx_inverter *const *inverters, uint32_t n, gx_list_fn *fn, void *user, gx_error *err);

#endif
