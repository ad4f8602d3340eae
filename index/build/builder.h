/* builder.h: documents in, one index file out. The interface is public: gx_builder in
 * engine/gpuidx.h.
 *
 *   document -> gx_analysis     bytes to raw tokens                                  (analyse)
 *            -> memo            raw token to term number: stemming, stop words and
 *                               case are worked out once for each different token    (analyse)
 *            -> gx_inverter     term number to the term's chain of postings          (invert)
 *   finish   -> gx_inverter     terms in byte order, runs merged, arrays of a list   (merge)
 *            -> gx_writer       blocks, heads, ends, documents, sections             (encode,
 *                               write)
 *
 * Ids are checked, and the lists encoded, in the caller's thread. What lies between, and takes most
 * of the time, is done by a crew (parallel_inverter.h), of the caller's thread and as many more as
 * are wanted: each has an analysis, a memo and an inverter, and takes the next batch of documents.
 * Documents come back from it in their order; the inverters are merged as one.
 *
 * What bounds it. A raw token costs one look-up of a 16-byte slot, a term one of a 32-byte state
 * and of the end of its chain: three cache lines at random, asked for a document at a time before
 * they are used; the rest is arithmetic. On 60 MB of arXiv abstracts, one core of a busy AMD EPYC
 * at 2.6 GHz, each piece's fastest of 8 rounds (tests/bench/bench_build.c): 5 ns a token to split,
 * 11 to look up, new tokens' stemming included, 10 a term to append, 8 a posting to merge; 235 MB/s
 * without reading and writing.
 */
#ifndef GX_INDEX_BUILD_BUILDER_H
#define GX_INDEX_BUILD_BUILDER_H

#include "engine/gpuidx.h"
#include "index/build/stages.h"

#endif
