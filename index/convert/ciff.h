/* ciff.h: import and export of CIFF, the Common Index File Format (Lin et al., 2020), which
 * Anserini, PISA, Terrier, JASS and others read or write.
 *
 *   file:  Header   PostingsList ...   DocRecord ...
 *
 * These are protobuf messages. Before each stands its length, a varint. Their fields are:
 *
 *   Header         1 version (1), 2 num_postings_lists, 3 num_docs, 4 total_postings_lists,
 *                  5 total_docs, 6 total_terms_in_collection, 7 average_doclength (double),
 *                  8 description
 *   PostingsList   1 term, 2 df, 3 cf, 4 postings, each a Posting
 *   Posting        1 docid, as the difference from the posting before, 2 tf
 *   DocRecord      1 docid, 2 collection_docid, 3 doclength
 *
 * The code reads and writes fields one by one with nanopb's streams, so that it needs no generated
 * code, and no message is held whole when it is read. Postings are nearly all bytes of a file. Code
 * of our own writes them, and reads those that have the form that exporters give them.
 *
 * An import demands of a file:
 *   - version 1;
 *   - lists in byte order of their terms, each with a term and as many postings as its df says;
 *   - in each list, docids that rise and lie below num_docs, and no tf of 0;
 *   - documents in order of docid, all of [0, num_docs), each with a collection_docid;
 *   - strings that are UTF-8, and nothing behind the last document.
 * It skips unknown fields, and ignores the totals and the average length, because the index computes its
 * own from the lists and documents. Of a cf that is not the sum of its list's tfs it warns.
 */
#ifndef GX_INDEX_CONVERT_CIFF_H
#define GX_INDEX_CONVERT_CIFF_H

#include "engine/api/gpuidx_advanced.h" /* gx_ciff_import, gx_ciff_export */
#include "index/index.h"

/* ---- for both ---- */

/* The description of gpuidx's own exports: GX_CIFF_MAKER, a version, GX_CIFF_IMPACTS if the tfs are
 * impacts, GX_CIFF_UNIT if they have a unit, GX_CIFF_ANALYZER, and the object of gx_analyzer_json. */
#define GX_CIFF_MAKER "gpuidx "
#define GX_CIFF_IMPACTS "; impacts"
#define GX_CIFF_UNIT "; unit " /* of impacts, and a number; only where it is not 1 */
#define GX_CIFF_ANALYZER "; analyzer "

enum { GX_CIFF_VERSION = 1 };
enum {
    GX_CIFF_N_LISTS = 2,
    GX_CIFF_N_DOCS,
    GX_CIFF_TOTAL_LISTS,
    GX_CIFF_TOTAL_DOCS,
    GX_CIFF_TOTAL_TERMS,
    GX_CIFF_AVERAGE,
    GX_CIFF_DESCRIPTION
};                                                                   /* fields of Header, beside version */
enum { GX_CIFF_TERM = 1, GX_CIFF_DF, GX_CIFF_CF, GX_CIFF_POSTINGS }; /* of PostingsList */
enum { GX_CIFF_GAP = 1, GX_CIFF_TF };                                /* of Posting */
enum { GX_CIFF_DOCID = 1, GX_CIFF_NAME, GX_CIFF_LENGTH };            /* of DocRecord */

/* Whether text[n] is UTF-8. */
bool gx_ciff_is_utf8(const char *text, size_t n);

#endif
