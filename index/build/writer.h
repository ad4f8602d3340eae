/* writer.h: the one way to make an index file.
 *
 *   gx_writer_open -> gx_writer_add_document, docid 0, 1, 2, ...
 *                  -> gx_writer_add_list, terms in strictly rising byte order
 *                  -> gx_writer_finish: the file is there, whole            (or not called: nothing
 *                  is) -> gx_writer_close: always
 *
 * Where lists must come first, the number of documents is told beforehand (options), and documents
 * may follow them.
 *
 * The payload goes to a temporary file without a name in the output's directory; what else grows is
 * spooled to more such files, so memory is a few MiB, about 16 bytes a term and the longest list
 * coded, whatever the collection. finish adds the other sections, syncs the file and gives it its
 * name: a file of that name is untouched until then, and a failure, an abort or a kill leaves
 * nothing behind. (Where the system has no files without a name, they have one until they are done:
 * .gpuidx-*.tmp.) A writer serves one thread at a time. After a failure every further call fails
 * with the same words; only close is left.
 */
#ifndef GX_INDEX_BUILD_WRITER_H
#define GX_INDEX_BUILD_WRITER_H

#include "codecs/codec.h"
#include "index/analysis/analyzer.h"
#include "index/build/list_encoder.h"

typedef struct gx_writer gx_writer;

typedef struct gx_writer_options {
    size_t size;
    bool force;                   /* replace an existing file */
    bool store_text;              /* documents bring their text, which is compressed and kept */
    const gx_codec *docids, *tfs; /* of equal block_len, or gx_codec_auto; tfs NULL: as docids */
    uint32_t threads;             /* reserved, 0 */
    const uint8_t *uuid;          /* [16], for reproducible files; NULL: a random one */
    /* if not 0: exactly so many documents will come, before, between or after the lists */
    uint32_t n_docs;
} gx_writer_options;
#define GX_WRITER_OPTIONS ((gx_writer_options){.size = sizeof(gx_writer_options)})

#define GX_MAX_STRING (1u << 20) /* most bytes of an id, a title or a term */
#define GX_MAX_TEXT (1u << 30)   /* most bytes of a stored text */

/* GX_EUSAGE (no codec, or unequal block lengths), GX_EEXISTS, GX_ENOTFOUND (no such directory),
 * GX_EIO, GX_ENOMEM. */
gx_status gx_writer_open(gx_writer **out, const char *path, const gx_writer_options *opt, gx_error *err);

/* The next document. title may be NULL with title_len 0. text is ignored unless store_text; NULL
 * with 0: empty. n_tokens: the document's length after analysis. GX_EUSAGE (too long a string,
 * lists have begun, one too many), GX_EIO, GX_ENOMEM. */
gx_status gx_writer_add_document(gx_writer *w, const char *id, size_t id_len, const char *title, size_t title_len,
                                 const char *text, size_t text_len, uint32_t n_tokens, gx_error *err);

/* The next term and its postings: docids[df] rising and below the number of documents, tfs[df] >=
 * 1; df >= 1. GX_EUSAGE where that, or the terms' order, is broken; GX_EIO, GX_ENOMEM. */
gx_status gx_writer_add_list(gx_writer *w, const char *term, size_t len, uint32_t df, const uint32_t *docids,
                             const uint32_t *tfs, gx_error *err);

/* Many of the next lists at once, which other threads coded meanwhile: open, for gx_coded_add, when
 * all documents are there, or told of; add_coded takes the lists and leaves c empty. The same
 * statuses. */
void gx_writer_open_coded(const gx_writer *w, gx_coded *c);
gx_status gx_writer_add_coded(gx_writer *w, gx_coded *c, gx_error *err);

/* Put the file in its place. GX_EUSAGE: documents are missing. meta: the META section, a JSON
 * object as text: {"analyzer": gx_analyzer_json's object, ...}. */
gx_status gx_writer_finish(gx_writer *w, const char *meta, gx_error *err);

/* gx_writer_finish with nothing but an analyzer in META; NULL: "whitespace", where others have made
 * the terms. */
gx_status gx_writer_finish_with(gx_writer *w, const gx_analyzer *an, gx_error *err);

/* Free everything; if finish has not succeeded, nothing remains on disk. */
void gx_writer_close(gx_writer *w);

#endif
