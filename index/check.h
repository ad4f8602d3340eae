/* check.h: verification of an index file, and where its bytes go.
 *
 *   GX_CHECK_HEADER     magic, version, sizes, section table, their checksum
 *   GX_CHECK_STRUCTURE  every offset, count and bound that later reads rely on
 *   GX_CHECK_CHECKSUM   every section's XXH3-64
 *   GX_CHECK_FULL       every list decoded, and encoded again, which must give the same; every
 *                       stored text decoded; term order and hash table
 *
 * A refusal names the section, the place and the reason:
 *   "arxiv.gx: section HEAD: block 12 (list 7) begins at docid 99, not above 103".
 */
#ifndef GX_INDEX_CHECK_H
#define GX_INDEX_CHECK_H

#include "engine/gpuidx_advanced.h" /* gx_index_verify */
#include "index/index.h"

#define GX_MAX_SECTIONS 64u /* most that a file may have */

typedef struct gx_section_size {
    char name[5]; /* "PAYL" */
    bool device;  /* resides on the device */
    bool known;   /* false: an optional section of a later version, skipped */
    uint64_t offset, bytes;
} gx_section_size;

typedef struct gx_coding_size {
    const gx_codec *docids, *tfs;
    uint64_t n_lists, n_postings, n_blocks;
    uint64_t docid_bytes, tf_bytes; /* of payload */
} gx_coding_size;

typedef struct gx_index_sizes {
    uint32_t n_sections, n_codings;
    gx_section_size sections[GX_MAX_SECTIONS]; /* in order of offset */
    gx_coding_size codings[GX_MAX_CODINGS];
    uint64_t header_bytes;  /* header and section table */
    uint64_t padding_bytes; /* between and after sections */
    /* Bits a posting of the whole index; 0 when it has no postings. What decoding a list needs is
     * their sum. */
    double docid_bits, tf_bits; /* payload */
    double head_bits;           /* HEAD: 32 a block */
    double end_bits;            /* DEND and TEND: 64 a block */
    double list_bits;           /* LIST: the directory, 128 a list */
} gx_index_sizes;

/* Where the bytes of an open index go. Reads the directory once (a millisecond a million lists). */
void gx_index_measure(const gx_index *ix, gx_index_sizes *out);

#endif
