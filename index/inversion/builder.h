/* builder.h: documents in, one index file out. The interface is public: gx_builder in
 * engine/api/gpuidx.h.
 *
 *   document -> tokenizer        bytes to raw tokens                                    (analyse)
 *            -> term cache       raw token to term number; case folding, stop words and
 *                                stemming run once for each different token             (analyse)
 *            -> postings buffer  appends a posting to the term's chain                  (invert)
 *   finish   -> postings merge   terms in byte order, runs merged, arrays of each list  (merge)
 *            -> list encoder, writer   blocks, heads, ends, documents, sections         (encode,
 *            write)
 *
 * The caller's thread looks ids up and gives docids. The work in between, which takes most of the
 * time, is shared by the threads of a parallel inverter (parallel_inverter.h): each thread has a
 * document indexer of its own and takes the next batch of documents. gx_builder_add_source lets the
 * threads read and check the documents of a corpus, too (pieces.h), so that for each of them the
 * caller's thread has only a hash to look up; idle ones decompress (unpack_ahead.h). Documents come
 * back in order, and the postings buffers of all threads are merged into one sequence of lists.
 *
 * Costs. A raw token needs one look-up of a 16-byte slot. A term needs one look-up of its 32-byte
 * state and one write at the end of its chain. These are three cache lines at random places, all
 * prefetched a document ahead. Measured on 60 MB of arXiv abstracts, one core of a busy AMD EPYC at
 * 2.6 GHz (tests/bench/bench_build.c, fastest of 8 rounds):
 *
 *   split a token       5 ns        append a term       10 ns
 *   look a token up    11 ns        merge a posting      8 ns
 *
 * Together that is 235 MB/s of text without reading and writing.
 */
#ifndef GX_INDEX_INVERSION_BUILDER_H
#define GX_INDEX_INVERSION_BUILDER_H

#include "engine/files/atomic_file.h"
#include "index/inversion/stages.h"

/* gx_builder_open with the analyzer of an open index in place of the one that opt names, and a place for the file.
 * Both may be NULL. */
struct gx_analyzer;
gx_status gx_builder_open_like(gx_builder **out, const gx_builder_options *opt, const struct gx_analyzer *analyzer,
                               const gx_place *place, gx_error *err);

/* Whether gx_builder_add would take the document, were its id new. doc is full-sized. GX_EINPUT,
 * GX_EUSAGE, GX_ENOMEM. */
gx_status gx_builder_check(const gx_builder *b, const gx_document *doc, gx_error *err);

/* The docid of the document added with this id, UINT32_MAX: none. gx_builder_forget also lets the
 * id count as new from now on; the document stays. Without GX_DUPLICATES_LAST docids are those of
 * the file. */
uint32_t gx_builder_find(const gx_builder *b, const char *id, size_t len);
uint32_t gx_builder_forget(gx_builder *b, const char *id, size_t len);

#endif
