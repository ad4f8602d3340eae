/* doc_indexer.h: one thread's way from the text of documents to postings, in bounded memory: an
 * analysis, a memo of tokens and an inverter, and what they have done so far.
 */
#ifndef GX_INDEX_BUILD_DOC_INDEXER_H
#define GX_INDEX_BUILD_DOC_INDEXER_H

#include "index/analysis/analyzer.h"
#include "index/build/postings_buffer.h"
#include "index/build/stages.h"

typedef struct gx_inversion gx_inversion; /* belongs to one thread at a time */

/* Sums over the documents added. */
typedef struct gx_tally {
    uint64_t tokens, empty, dropped_tokens, replaced_bytes; /* as in gx_builder_counts */
    uint64_t memory_bytes;                                  /* held now */
    uint32_t spills;
    double seconds[GX_N_STAGES]; /* of the thread, those that it waits in the system included */
} gx_tally;

/* The analyzer outlives it. dir: where temporary files may be made. memory: bytes beyond which a
 * document makes it spill. */
gx_status gx_inversion_open(gx_inversion **out, const gx_analyzer *analyzer, const char *dir, uint64_t memory,
                            gx_error *err);
void gx_inversion_close(gx_inversion *v);

/* The first half of an addition, for which no docid is needed; it may come to nothing. GX_ENOMEM.
 * */
gx_status gx_inversion_split(gx_inversion *v, const gx_document *doc, gx_error *err);

/* The document that was split last gets this docid, above all before; *n_tokens: its length. After
 * a failure only close is left. GX_EIO, GX_ENOMEM. */
gx_status gx_inversion_add(gx_inversion *v, uint32_t docid, const gx_document *doc, uint32_t *n_tokens, gx_error *err);

/* No more is added: the memo goes, and the inverter is sealed. GX_EIO, GX_ENOMEM. */
gx_status gx_inversion_seal(gx_inversion *v, gx_error *err);

gx_inverter *gx_inversion_inverter(gx_inversion *v); /* to merge; it stays the inversion's */
const gx_tally *gx_inversion_tally(const gx_inversion *v);
double gx_inversion_stamp(const gx_inversion *v); /* when the last call ended */

gx_status gx_inversion_no_memory(gx_error *err); /* GX_ENOMEM, in words for all of a build */

#endif
