/* positions.h: where terms stand in documents, of an index file that has positions (FORMAT.md).
 *
 * A position counts the tokens of a document, title and text, from 0, those that are no terms (stop words) among them.
 * The text goes on where the title ends, or a field where the one before ends; a phrase has no words on both sides of
 * such a place.
 */
#ifndef GX_INDEX_POSITIONS_H
#define GX_INDEX_POSITIONS_H

#include "codecs/positions.h"
#include "index/index.h"

/* Of a collection: whether its parts that have documents have positions; where none has documents, whether any part. */
bool gx_index_has_positions(const gx_index *ix);

/* The words of block `block` < ix->n_blocks, counted over all lists: gx_list_entry.first_block + j. */
gx_block_positions gx_index_block_positions(const gx_index *ix, uint64_t block);

/* The positions of the postings of block j of list `term`, whose tfs are tfs[n], go to *positions, which grows, from
 * `at` on: of each posting its tf positions. *end: behind the last. GX_ECORRUPT (the block is damaged, or tfs are),
 * GX_ENOMEM. */
gx_status gx_index_decode_positions(const gx_index *ix, uint32_t term, uint32_t j, const uint32_t *tfs, uint32_t n,
                                    uint32_t **positions, size_t *max, size_t at, size_t *end, gx_error *err);

/* Positions that the title of document docid < ix->n_docs takes; 0 of a file with fields. */
uint32_t gx_index_title_positions(const gx_index *ix, uint32_t docid);

#endif
