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
 */
#ifndef GX_BUILDER_H
#define GX_BUILDER_H

#include "engine/gpuidx.h"

/* Indices of gx_builder_counts.seconds. */
enum gx_builder_stage { GX_STAGE_ANALYSE, GX_STAGE_INVERT, GX_STAGE_MERGE, GX_STAGE_LISTS, GX_STAGE_DOCUMENTS };

#endif
