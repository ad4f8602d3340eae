/* import.h: what importers of other engines' collections have in common: their options made into
 * what the writer takes. */
#ifndef GX_INDEX_CONVERT_IMPORT_H
#define GX_INDEX_CONVERT_IMPORT_H

#include "engine/api/gpuidx_advanced.h" /* gx_import_options */
#include "index/convert/attribute_file.h"
#include "index/write/writer.h"

typedef struct gx_import_setup {
    gx_import_options options;     /* of full size */
    gx_writer_options writer;      /* force, codecs and impacts are set */
    gx_analyzer *analyzer;         /* NULL: none is named */
    gx_attribute_file *attributes; /* NULL: none; its columns are the writer's */
} gx_import_setup;

/* path: the index that is made. opt may be NULL; *out must stay where it is. GX_EUSAGE (opt's size; an
 * unknown codec or analyzer; a stemmer, stop words or fold without an analyzer), and the statuses of
 * gx_analyzer_open and gx_attribute_file_open. */
gx_status gx_import_setup_open(gx_import_setup *out, const gx_import_options *opt, const char *path, gx_error *err);
void gx_import_setup_close(gx_import_setup *s);

/* Tell the attributes of the next document's id, and read them when all documents are known; for a setup
 * without attributes they do nothing. Statuses of attribute_file.h. */
gx_status gx_import_add_document(const gx_import_setup *s, const char *id, size_t len, gx_error *err);
gx_status gx_import_read_attributes(const gx_import_setup *s, gx_error *err);

#endif
