/* import.h: what importers of other engines' collections have in common: their options made into
 * what the writer takes. */
#ifndef GX_INDEX_CONVERT_IMPORT_H
#define GX_INDEX_CONVERT_IMPORT_H

#include "engine/gpuidx_advanced.h" /* gx_import_options */
#include "index/build/writer.h"

typedef struct gx_import_setup {
    gx_import_options options; /* of full size */
    gx_writer_options writer;  /* force, codecs and impacts are set */
    gx_analyzer *analyzer;     /* NULL: none is named */
} gx_import_setup;

/* opt may be NULL. GX_EUSAGE (opt's size; an unknown codec or analyzer; a stemmer, stop words or
 * fold without an analyzer), and the statuses of gx_analyzer_open. */
gx_status gx_import_setup_open(gx_import_setup *out, const gx_import_options *opt, gx_error *err);
void gx_import_setup_close(gx_import_setup *s);

#endif
