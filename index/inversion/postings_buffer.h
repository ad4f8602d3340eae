/* postings_buffer.h: collects the postings of terms from documents, in bounded memory.
 *
 *   term number -> state (64 bytes: last document and its tf so far, df, end of the chain,
 *                         some 25 bytes of postings)
 *                    \_ chain of chunks, 64 bytes at first, growing: first docid, then (tf, d-gap)
 *                       (tf, d-gap) ... as vbytes
 *
 * A list's last posting stays in its state until the next document arrives, so that counting a
 * repeated term needs no search. The postings before it are in the state, too, until there is no
 * room, and then go to the chain together: so most postings touch one cache line, and rare terms need no chain.
 * When the caller finds that the buffer holds too much, it spills: all lists are written, terms in byte
 * order, as a run to a temporary file, and term numbers begin anew. At the end the runs, whose
 * docids follow each other, are merged term by term. If there are more runs than memory has room to
 * read at once, neighbouring runs are merged to longer runs first. Several threads may fill a
 * buffer each, with documents of their own; their postings of a term are then interleaved by docid.
 * Several threads may merge, each some ranges of terms.
 *
 * A buffer may keep details: a number of each occurrence, such as its position. Then each occurrence goes to its list
 * at once: (d-gap, detail) the first in its document, (detail less the one before) the others.
 */
#ifndef GX_INDEX_INVERSION_POSTINGS_BUFFER_H
#define GX_INDEX_INVERSION_POSTINGS_BUFFER_H

#include "index/write/term_postings.h"

typedef struct gx_postings_buffer gx_postings_buffer; /* belongs to one thread */

#define GX_NO_TERM UINT32_MAX

/* dir: the directory for temporary files. memory: about how many bytes the buffer will hold before
 * it spills; it decides in what pieces memory is taken, and how many runs are read at once.
 * n_together: the buffers that will be merged together, by as many threads. */
gx_status gx_postings_buffer_open(gx_postings_buffer **out, const char *dir, uint64_t memory, uint32_t n_together,
                                  gx_error *err);
void gx_postings_buffer_close(gx_postings_buffer *inv);

/* The number of a term of len < 65536 bytes. Numbers count from 0 in the order of first mention and
 * are valid until the next spill. GX_NO_TERM: no memory. */
uint32_t gx_postings_buffer_term(gx_postings_buffer *inv, const char *term, size_t len);

/* Add one occurrence of each of terms[n] (numbers) in the document. Docids never fall; several
 * calls may add to one document. After GX_ENOMEM the only valid call is close. */
gx_status gx_postings_buffer_add(gx_postings_buffer *inv, uint32_t docid, const uint32_t *terms, size_t n);

/* Add the document with tfs of its own: tfs[i] >= 1 of term terms[i]; no term occurs twice. Docids
 * rise. After GX_ENOMEM the only valid call is close. */
gx_status gx_postings_buffer_add_tfs(gx_postings_buffer *inv, uint32_t docid, const uint32_t *terms,
                                     const uint32_t *tfs, size_t n);

/* To be called before the first term: a detail is kept of each occurrence, and the lists have them as gaps. All buffers
 * that are merged together keep them, or none does. */
void gx_postings_buffer_keep_details(gx_postings_buffer *inv);

/* gx_postings_buffer_add with a detail of each occurrence, below 2^31. Details of a term rise within a document; one
 * that does not becomes the last one and 1. */
gx_status gx_postings_buffer_add_details(gx_postings_buffer *inv, uint32_t docid, const uint32_t *terms,
                                         const uint32_t *details, size_t n);

uint64_t gx_postings_buffer_bytes(const gx_postings_buffer *inv);   /* memory held */
uint64_t gx_postings_buffer_sorting(const gx_postings_buffer *inv); /* bytes that a spill, or finish, takes besides */
uint32_t gx_postings_buffer_spills(const gx_postings_buffer *inv);  /* runs written so far */

/* Write all lists to a run and drop them; term numbers become invalid. Not in the middle of a
 * document. GX_EIO, GX_ENOMEM. */
gx_status gx_postings_buffer_spill(gx_postings_buffer *inv, gx_error *err);

/* Receives a whole list, which is valid until the function returns. */
typedef gx_status gx_list_fn(void *user, const gx_term_postings *list, gx_error *err);

/* No more postings follow: sort the terms in byte order, or write the last run and merge runs until
 * they are few. The thread that
 * filled the buffer may call this; merging then only reads. Once it has returned GX_OK, further
 * calls do nothing. GX_EIO, GX_ENOMEM. */
gx_status gx_postings_buffer_finish(gx_postings_buffer *inv, gx_error *err);

/* A range of terms: the first 8 bytes of each, read as a big-endian number and padded with zeros,
 * are in [from, to). to = 0: no upper limit. */
typedef struct gx_term_range {
    uint64_t from, to;
} gx_term_range;

/* Cut the terms of n finished buffers into ranges of about equal work, some ten thousand postings
 * or one long list each, in order. The caller frees *ranges. GX_ENOMEM. */
gx_status gx_postings_buffer_ranges(gx_postings_buffer *const *buffers, uint32_t n, gx_term_range **ranges,
                                    uint32_t *n_ranges, gx_error *err);

/* Merges the lists of n >= 1 finished buffers, which have no document in common. A merger belongs
 * to one thread. Several mergers may read the same buffers, which must outlive them. */
typedef struct gx_postings_merger gx_postings_merger;
gx_status gx_postings_merger_open(gx_postings_merger **out, gx_postings_buffer *const *buffers, uint32_t n,
                                  gx_error *err);
void gx_postings_merger_close(gx_postings_merger *m);

/* Call fn for every list of the range, terms in byte order, until a call fails. Statuses of fn,
 * GX_EIO, GX_ENOMEM. */
gx_status gx_postings_merger_run(gx_postings_merger *m, gx_term_range range, gx_list_fn *fn, void *user, gx_error *err);

/* The same for all terms. Finishes the buffers that are not finished yet. */
gx_status gx_postings_buffer_merge(gx_postings_buffer *const *buffers, uint32_t n, gx_list_fn *fn, void *user,
                                   gx_error *err);

#endif
