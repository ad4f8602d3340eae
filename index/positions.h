/* positions.h: where terms stand in documents, of an index file that has positions (FORMAT.md).
 *
 * A position counts the tokens of a document, title and text, from 0, those that are no terms (stop words) among them.
 * The text goes on where the title ends; a phrase has no words on both sides of that place.
 */
#ifndef GX_INDEX_POSITIONS_H
#define GX_INDEX_POSITIONS_H

#include "codecs/positions.h"
#include "index/index.h"

/* Of one file; of a collection: whether its parts have positions, all of them. */
bool gx_index_has_positions(const gx_index *ix);

/* The words of block `block` < ix->n_blocks, counted over all lists: gx_list_entry.first_block + j. */
gx_block_positions gx_index_block_positions(const gx_index *ix, uint64_t block);

/* Positions that the title of document docid < ix->n_docs takes. */
uint32_t gx_index_title_positions(const gx_index *ix, uint32_t docid);

#endif
