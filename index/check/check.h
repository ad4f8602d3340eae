/* check.h: verify an index file, and measure what its bytes are used for.
 *
 *   level               what is verified beyond the level above
 *   GX_CHECK_HEADER     magic, version, sizes, section table, and the checksum of header and table
 *   GX_CHECK_STRUCTURE  every offset, count and bound that later reads rely on
 *   GX_CHECK_CHECKSUM   the XXH3-64 of every section
 *   GX_CHECK_FULL       every block is decoded, and encoding it again must give the same words;
 *                       every stored text is decompressed; terms rise and the hash table finds them
 *
 * An error message names the section, the place and the reason:
 *   "arxiv.gx: section HEAD: block 12 (list 7) begins at docid 99, not above 103".
 */
#ifndef GX_INDEX_CHECK_CHECK_H
#define GX_INDEX_CHECK_CHECK_H

#include "engine/api/gpuidx_advanced.h" /* gx_index_verify, gx_index_measure */
#include "index/index.h"

#endif
