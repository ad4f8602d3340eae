/* check_parts.h: the checks that open.c runs on a file. Their messages have the form of the example
 * in check.h. */
#ifndef GX_INDEX_CHECK_CHECK_PARTS_H
#define GX_INDEX_CHECK_CHECK_PARTS_H

#include "index/index.h"

/* GX_CHECK_HEADER. The caller has set ix->file, file_bytes and path. Verifies the header and the
 * section table, then sets the counts of ix and its arrays, each of which spans its stated length.
 * GX_ECORRUPT. */
gx_status gx_check_header(gx_index *ix, gx_error *err);

/* GX_CHECK_STRUCTURE, after gx_check_header: the offsets, counts and bounds inside the sections.
 * Also sets ix->min_doc_len and max_doc_len. GX_ECORRUPT. */
gx_status gx_check_structure(gx_index *ix, gx_error *err);

/* GX_CHECK_CHECKSUM, after gx_check_header. GX_ECORRUPT. */
gx_status gx_check_checksums(const gx_index *ix, gx_error *err);

/* GX_CHECK_FULL, after the other three. GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_check_contents(const gx_index *ix, gx_error *err);

/* Fill err with "PATH: section KIND: ..." and return GX_ECORRUPT. */
__attribute__((format(printf, 4, 5))) gx_status gx_corrupt(gx_error *err, const gx_index *ix, uint32_t kind,
                                                           const char *format, ...);

/* The entry of that kind in the section table, or NULL. */
const gx_section *gx_index_section(const gx_index *ix, uint32_t kind);

/* The four letters of a kind, "HEAD", at name, which is also returned. A byte that is neither a
 * letter nor a digit becomes '?'. */
const char *gx_section_name(uint32_t kind, char name[5]);

#endif
