/* attribute_file.h: the attributes of documents as a file of their own, beside formats that have none.
 *
 *   id<TAB>year:int<TAB>price:float:bins=25<TAB>tags:keywords     the header: names and types, and what
 *   doc7<TAB>2019<TAB>3.5<TAB>red,blue                            --attr takes behind them
 *   doc9<TAB><TAB>-1<TAB>                                         an empty field: no value
 *
 * A line a document, in any order; tabs part fields, commas the values of all types but keyword. In a field \t \n \r
 * \0 \\ and \, stand for a tab, a line end, a carriage return, a NUL, a backslash and a comma; nothing
 * else follows a backslash. Numbers have as many digits as it takes to read the same value back.
 *
 *   gx_attribute_file_open           reads the header
 *   gx_attribute_file_add_document   the ids of documents 0, 1, 2, ...
 *   gx_attribute_file_read           reads the lines, and completes the columns
 */
#ifndef GX_INDEX_CONVERT_ATTRIBUTE_FILE_H
#define GX_INDEX_CONVERT_ATTRIBUTE_FILE_H

#include "engine/api/gpuidx_advanced.h" /* gx_import_options, gx_attributes_export */
#include "index/write/columns.h"

typedef struct gx_attribute_file gx_attribute_file;

/* Open opt->attributes_file. path: the index that is made; temporary files lie beside it. opt, full-sized,
 * must outlive the file. GX_EINPUT (the header), GX_EUSAGE, GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
gx_status gx_attribute_file_open(gx_attribute_file **out, const gx_import_options *opt, const char *path,
                                 gx_error *err);
void gx_attribute_file_close(gx_attribute_file *f); /* NULL is fine */

gx_columns *gx_attribute_file_columns(gx_attribute_file *f); /* they are f's */

/* GX_EINPUT (an id that another document has), GX_ENOMEM. */
gx_status gx_attribute_file_add_document(gx_attribute_file *f, const char *id, size_t len, gx_error *err);

/* GX_EINPUT, with file and line: unless bad lines are skipped. GX_EIO, GX_ENOMEM, GX_ECANCELLED. */
gx_status gx_attribute_file_read(gx_attribute_file *f, gx_error *err);

#endif
