/* columns.h: the attributes of documents, on their way into an index file.
 *
 *   gx_columns_open
 *     gx_columns_set or gx_columns_copy   the next document's values are read
 *     gx_columns_add                      it gets the next docid
 *   gx_columns_leave_out                  documents that go again
 *   gx_columns_write                      by the writer, at the end
 *
 * Values are spooled, 8 bytes each, and each different string is kept in memory. Of any type but
 * GX_ATTRIBUTE_KEYWORD a document may have several values, of which equal ones become one. For one thread.
 */
#ifndef GX_INDEX_WRITE_COLUMNS_H
#define GX_INDEX_WRITE_COLUMNS_H

#include "index/attributes/attributes.h"
#include "index/write/section_writer.h"

typedef struct gx_columns gx_columns;

/* bitmaps: [n] or NULL. dir: the directory for temporary files, which must outlive the columns; the
 * attributes are copied. GX_EUSAGE (none or too many attributes, a bad name, a name twice, no such
 * type, bitmap columns that cannot be), GX_ENOMEM. */
gx_status gx_columns_open(gx_columns **out, const gx_attribute *attributes, const gx_bitmap_options *bitmaps,
                          uint32_t n, const char *dir, gx_error *err);
void gx_columns_close(gx_columns *c); /* NULL is fine */

/* Read the next document's values. GX_EINPUT: one of them is not of its type, or an attribute of
 * GX_ATTRIBUTE_KEYWORD has two. GX_EUSAGE (no such attribute), GX_ENOMEM. */
gx_status gx_columns_set(gx_columns *c, const gx_attribute_value *values, uint32_t n, gx_error *err);

/* The same from a document of an index whose attributes are those of c. GX_ECORRUPT (an ordinal
 * without a string), GX_ENOMEM. */
gx_status gx_columns_copy(gx_columns *c, const gx_index *ix, uint32_t docid, gx_error *err);

/* The document whose values were read last is the next one. GX_EIO, GX_ENOMEM. */
gx_status gx_columns_add(gx_columns *c, gx_error *err);

/* Documents d with remap[d] == UINT32_MAX do not go into the file.
 * remap must outlive the columns. */
void gx_columns_leave_out(gx_columns *c, const uint32_t *remap);

/* Write the sections of attributes: three, and one of bitmap columns if there are any or `all`.
 * GX_EUSAGE: the columns do not have n_docs documents. GX_EINPUT, GX_EIO, GX_ENOMEM. */
gx_status gx_columns_write(gx_columns *c, gx_section_writer *s, uint32_t n_docs, bool all, gx_error *err);

#endif
