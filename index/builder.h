/* builder.h: documents in, one index file out. The interface is public: gx_builder in engine/gpuidx.h.
 *
 *   document -> gx_analysis     bytes to raw tokens                                  (analyse)
 *            -> memo            raw token to term number: stemming, stop words and
 *                               case are worked out once for each different token    (analyse)
 *            -> gx_inverter     term number to the term's chain of postings          (invert)
 *   finish   -> gx_inverter     terms in byte order, runs merged, arrays of a list   (merge)
 *            -> gx_writer       blocks, heads, ends, documents, sections             (encode, write)
 *
 * Each stage hands the next plain arrays, so that each can get a thread of its own.
 *
 * What bounds it. A raw token costs one look-up of a 16-byte slot, a term one of a 32-byte state and of the end of its
 * chain: three cache lines at random, asked for a document at a time before they are used. The rest is arithmetic: some
 * 2 instructions a byte to split, 45 a token to look up, 25 a term to count or append. On arXiv abstracts (103.5 million
 * raw tokens, 71.1 million terms, 46.7 million postings) that is, on an idle core of an AMD EPYC at 2.6 GHz, about 4 ns a
 * token to split, 10 to look up, 10 a term to append and 7 a posting to merge: 240 MB/s without reading and writing
 * (tests/bench_build.c). A thread for each of splitting and inverting would bring more; a better hash would not.
 */
#ifndef GX_BUILDER_H
#define GX_BUILDER_H

#include "engine/gpuidx.h"

/* Indices of gx_builder_counts.seconds. */
enum gx_builder_stage { GX_STAGE_ANALYSE, GX_STAGE_INVERT, GX_STAGE_MERGE, GX_STAGE_LISTS, GX_STAGE_DOCUMENTS };

#endif
