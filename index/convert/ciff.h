/* ciff.h: exchange by CIFF, the Common Index File Format (Lin et al., 2020) of Anserini, PISA,
 * Terrier, JASS and others.
 *
 *   Header    PostingsList ...    DocRecord ...          protobuf messages, each with its length, a
 *             varint, before it
 *
 *   Header        1 version (1), 2 num_postings_lists, 3 num_docs, 4 total_postings_lists, 5
 *                 total_docs, 6 total_terms_in_collection, 7 average_doclength (double), 8
 *                 description
 *   PostingsList  1 term, 2 df, 3 cf, 4 postings: each 1 docid, as the difference from the one
 *   before, 2 tf
 *   DocRecord     1 docid, 2 collection_docid, 3 doclength
 *
 * Fields are decoded and encoded one by one with nanopb's streams: a message is never held whole
 * when it is read, and no code is generated. Postings, nearly all of a file's bytes, are read from
 * the window by hand where they have the form that exporters give them, and so they are written.
 *
 * What an import demands of a file: version 1; lists by rising term in byte order, each with a
 * term, as many postings as df says, docids that rise and lie below num_docs, no tf of 0; documents
 * by docid, all of [0, num_docs), each with a collection_docid; strings of UTF-8; nothing behind
 * the last document. Unknown fields are passed over. Totals, cf and the average length are not
 * looked at: the index's own come from its lists and documents.
 */
#ifndef GX_INDEX_CONVERT_CIFF_H
#define GX_INDEX_CONVERT_CIFF_H

#include "codecs/codec.h"
#include "index/analysis/analyzer.h"
#include "index/index.h"

typedef struct gx_ciff_options {
    size_t size;
    bool force;
    const gx_codec *docids, *tfs; /* import; tfs NULL: as docids */
    const gx_analyzer *analyzer;  /* import: what queries will be analysed with; NULL: see gx_ciff_import */
    bool impacts;                 /* import: the file's tfs are impacts. An export of ours tells so itself */
    bool (*cancel)(void *user);
    void *user;
} gx_ciff_options;
#define GX_CIFF_OPTIONS ((gx_ciff_options){.size = sizeof(gx_ciff_options)})

/* Make an index at path of a CIFF file ("-": stdin), which may be compressed (input.h). It is read
 * once from front to back; memory is 8 bytes a posting of the longest list beside the writer's.
 * Lists without postings are left out. CIFF does not tell how its terms were made: the analyzer is
 * "whitespace" unless one is given, or the description is that of an export of ours, which names
 * it. GX_ENOTFOUND, GX_EIO, GX_EINPUT (with file, byte of the decompressed stream and reason),
 * GX_ECANCELLED, and the writer's failures. */
gx_status gx_ciff_import(const char *file, const char *path, const gx_ciff_options *opt, gx_error *err);

/* Write ix as a CIFF file, aside, and renamed when it is whole. Memory: 26 bytes a posting of the
 * longest list. Names that ix lacks (tools/bench/collection.h) are numbers of one width. GX_EEXISTS
 * (unless force), GX_ENOTFOUND, GX_EIO, GX_ENOMEM, GX_ECANCELLED, GX_ECORRUPT (a list does not
 * decode to rising docids below n_docs); GX_EUSAGE: ix has what CIFF cannot hold: a name that is
 * empty or not UTF-8, a number of 2^31 or more. */
gx_status gx_ciff_export(const gx_index *ix, const char *path, const gx_ciff_options *opt, gx_error *err);

/* ---- for both ---- */

/* A description that tells the analyzer: this, a version, GX_CIFF_IMPACTS where tfs are impacts,
 * GX_CIFF_ANALYZER, and gx_analyzer_json's object. */
#define GX_CIFF_MAKER "gpuidx "
#define GX_CIFF_IMPACTS "; impacts"
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

/* Whether n bytes are UTF-8. */
bool gx_ciff_is_utf8(const char *text, size_t n);

#endif
