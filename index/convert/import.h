/* import.h: what importers of other engines' collections have in common: their options made into
 * what the writer takes. */
#ifndef GX_INDEX_CONVERT_IMPORT_H
#define GX_INDEX_CONVERT_IMPORT_H

#include "engine/api/gpuidx_advanced.h" /* gx_import_options */
#include "index/convert/attribute_file.h"
#include "index/write/external_ids.h"
#include "index/write/writer.h"

typedef struct gx_import_setup {
    const char *source; /* the file that the ids are read from, for messages; the importer sets it */
    gx_import_options options;       /* of full size */
    gx_writer_options writer;        /* force, codecs and impacts are set */
    gx_analyzer *analyzer;           /* NULL: none is named */
    gx_attribute_file *attributes;   /* NULL: none; its columns are the writer's */
    gx_external_ids ids;             /* so far */
    uint32_t n_docs, n_odd, n_again; /* ids that runs cannot hold, and that an earlier document has */
    char odd[64], again[64];         /* the first of each */
} gx_import_setup;

/* path: the index that is made. opt may be NULL; *out must stay where it is. GX_EUSAGE (opt's size; an
 * unknown codec or analyzer; a stemmer, stop words or fold without an analyzer), and the statuses of
 * gx_analyzer_open and gx_attribute_file_open. */
gx_status gx_import_setup_open(gx_import_setup *out, const gx_import_options *opt, const char *path, gx_error *err);
void gx_import_setup_close(gx_import_setup *s);

/* Take the next document's id. GX_EINPUT: an earlier document has it, and the options do not keep such; statuses of
 * attribute_file.h. */
gx_status gx_import_add_document(gx_import_setup *s, const char *id, size_t len, gx_error *err);

/* When all documents are known: warn of their ids, and read their attributes. Statuses of attribute_file.h. */
gx_status gx_import_end_documents(const gx_import_setup *s, gx_error *err);

/* Give the options' warn a text. */
void gx_import_warn(const gx_import_setup *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
