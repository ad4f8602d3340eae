/* check_parts.h: the steps of opening, in their order, for open.c. Each refuses with the words of
 * check.h's example. */
#ifndef GX_INDEX_CHECK_PARTS_H
#define GX_INDEX_CHECK_PARTS_H

#include "index/index.h"

/* ix->file, file_bytes and path are set. Verify header and section table, then set everything that
 * follows from them: counts, codings, and the sections' arrays, whose lengths are right afterwards.
 * */
gx_status gx_check_header(gx_index *ix, gx_error *err);

/* What front cannot see without reading the sections. Also sets min_doc_len and max_doc_len. */
gx_status gx_check_structure(gx_index *ix, gx_error *err);

gx_status gx_check_checksums(const gx_index *ix, gx_error *err);

/* Needs the other three. */
gx_status gx_check_contents(const gx_index *ix, gx_error *err);

/* Fill err with "PATH: section SECT: ..." and return GX_ECORRUPT. */
__attribute__((format(printf, 4, 5))) gx_status gx_corrupt(gx_error *err, const gx_index *ix, uint32_t kind,
                                                           const char *format, ...);

/* The table's entry of that kind, or NULL. */
const gx_section *gx_index_section(const gx_index *ix, uint32_t kind);

/* "HEAD"; anything that is not a letter or digit becomes '?'. */
const char *gx_section_name(uint32_t kind, char name[5]);

#endif
