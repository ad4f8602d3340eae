/* made_list.h: a list that is made in memory, of postings, in blocks as those of a file. */
#ifndef GX_INDEX_MADE_LIST_H
#define GX_INDEX_MADE_LIST_H

#include "index/index.h"

typedef struct gx_made_list {
    gx_list list;
    uint32_t words[]; /* the list's arrays */
} gx_made_list;

/* The codec of lists that are made, of an index with blocks of this length. */
const gx_codec *gx_made_list_codec(uint32_t block_len);

/* Of n postings, docids rising. One piece of memory, which free() frees; of 0 postings it has no blocks. NULL: no
 * memory. */
gx_made_list *gx_made_list_make(const uint32_t *docids, const uint32_t *tfs, uint32_t n, uint32_t block_len);

#endif
