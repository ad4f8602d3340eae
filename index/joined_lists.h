/* joined_lists.h: a few lists of a file as an index of their own, each of which may be several lists joined: those of
 * the words that yor* stands for are one list, whose tfs are sums, and whose positions are those of all.
 *
 *   file:   york  yorker  ...  new  ...      joined: 0 = york or yorker, 1 = new
 *
 * The index that is made has the documents of the file, and lists 0 to n - 1. Terms are not looked up in it.
 */
#ifndef GX_INDEX_JOINED_LISTS_H
#define GX_INDEX_JOINED_LISTS_H

#include "codecs/positions.h"
#include "index/index.h"

/* What list i of the index that is made consists of. */
typedef struct gx_list_join {
    const uint32_t *lists; /* [n], n >= 1; may repeat */
    uint32_t n;
    bool positions;       /* the list has some. A list alone has those of the file */
    const uint64_t *keep; /* of several lists: postings of no other documents are needed, a bit a document; NULL: all */
} gx_list_join;

/* Make an index of n lists. ix, a file, outlives it. A list that would be empty has no postings and df 0, and must not
 * be read. Close with gx_joined_close. GX_ENOMEM, GX_ECORRUPT (positions). */
gx_status gx_joined_open(gx_index **out, const gx_index *ix, const gx_list_join *joins, uint32_t n, gx_error *err);
void gx_joined_close(gx_index *ix); /* accepts NULL */

/* For gx_index_list and gx_index_block_positions; block: counted behind those of the file. */
gx_list gx_joined_list(const gx_index *ix, uint32_t list);
gx_block_positions gx_joined_positions(const gx_index *ix, uint64_t block);

#endif
