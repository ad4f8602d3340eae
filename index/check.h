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
#ifndef GX_INDEX_CHECK_H
#define GX_INDEX_CHECK_H

#include "engine/gpuidx_advanced.h" /* gx_index_verify */
#include "index/index.h"

#define GX_MAX_SECTIONS 64u /* most that a file may have */

typedef struct gx_section_size {
    char name[5]; /* "PAYL" */
    bool device;  /* a device section: copied to the GPU */
    bool known;   /* false: an optional section that this version skips */
    uint64_t offset, bytes;
} gx_section_size;

typedef struct gx_coding_size {
    const gx_codec *docids, *tfs;
    uint64_t n_lists, n_postings, n_blocks;
    uint64_t docid_bytes, tf_bytes; /* bytes of the payload */
} gx_coding_size;

typedef struct gx_index_sizes {
    uint32_t n_sections, n_codings;
    gx_section_size sections[GX_MAX_SECTIONS]; /* in order of offset */
    gx_coding_size codings[GX_MAX_CODINGS];
    uint64_t header_bytes;  /* header and section table */
    uint64_t padding_bytes; /* between and after sections */
    /* Bits per posting, averaged over the whole index; 0 when it has no postings. Decoding reads
     * all five parts, so the space of the lists is the sum. */
    double docid_bits, tf_bits; /* payload */
    double head_bits;           /* HEAD: 32 bits a block */
    double end_bits;            /* DEND and TEND: 64 bits a block */
    double list_bits;           /* LIST: the directory, 128 bits a list */
} gx_index_sizes;

/* Measure what the bytes of an open index are used for. Reads the directory once, which takes about
 * 1 ms per million lists. */
void gx_index_measure(const gx_index *ix, gx_index_sizes *out);

#endif
