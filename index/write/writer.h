/* writer.h: the one way to make an index file.
 *
 *   gx_writer_open -> gx_writer_add_document, docid 0, 1, 2, ...
 *                  -> gx_writer_add_list, terms in strictly rising byte order
 *                  -> gx_writer_finish: the whole file appears; without this call nothing does
 *                  -> gx_writer_close: always
 *
 * Lists may come before documents where options.n_docs announces how many documents follow.
 *
 * The payload goes to a temporary file without a name in the output's directory. Everything else
 * that grows is spooled to more such files, so that memory is a few MiB, about 16 bytes a term, and
 * the longest list encoded, whatever the size of the collection. gx_writer_finish adds the other
 * sections, syncs the file and gives it its name. Until then a file of that name is untouched, and
 * a failure, an abort or a kill leaves nothing behind. (Where the file system has no files without
 * a name, they are called .gpuidx-*.tmp until they are done.) A writer is for one thread at a time.
 * After a failure every further call except close fails with the same words.
 */
#ifndef GX_INDEX_WRITE_WRITER_H
#define GX_INDEX_WRITE_WRITER_H

#include "codecs/codec.h"
#include "engine/files/atomic_file.h"
#include "index/analysis/analyzer.h"
#include "index/format.h"
#include "index/write/columns.h"
#include "index/write/list_encoder.h"

typedef struct gx_writer gx_writer;

typedef struct gx_writer_options {
    size_t size;
    bool force;                   /* replace an existing file */
    bool unnamed;                 /* as gx_writer_keep_unnamed; of the path, the directory alone counts */
    const gx_place *place;        /* where the file goes, whose path is for messages; NULL: the path says it */
    bool store_text;              /* documents bring their text, which is compressed and kept */
    bool impacts;                 /* the lists' tfs are impacts, and the file says so */
    const gx_codec *docids, *tfs; /* of equal block_len, or gx_codec_auto; tfs NULL: as docids */
    const uint8_t *uuid;          /* [16], for reproducible files; NULL: a random one */
    /* if not 0: exactly this number of documents will be added, before,
     * between or after the lists */
    uint32_t n_docs;
    bool list_units;     /* with impacts: each list has a unit of its own (gx_term_postings.unit) */
    bool positions;      /* the lists have positions, of blocks of their own; not with impacts */
    gx_columns *columns; /* the documents' attributes, complete when gx_writer_finish is called; NULL: none */
    uint32_t threads;    /* that gx_writer_finish uses at most, the caller's included; 0: one */
    /* The documents' fields, whose names META has, at most GX_MAX_FIELDS; 0: none. Not with impacts. Lists
     * have tfs by field, and a document's length in a field is the sum of its tfs there: 4 bytes of memory a document
     * and field but the last. With positions the tfs by field follow from gx_writer_field_positions. */
    uint32_t n_fields;
    bool fields_in_texts; /* a stored text has a line of each field in the place of GX_FIELD_SEPARATOR */
} gx_writer_options;
#define GX_WRITER_OPTIONS ((gx_writer_options){.size = sizeof(gx_writer_options)})

/* GX_EUSAGE (no codec, or unequal block lengths), GX_EEXISTS, GX_ENOTFOUND (no such directory),
 * GX_EIO, GX_ENOMEM. */
gx_status gx_writer_open(gx_writer **out, const char *path, const gx_writer_options *opt, gx_error *err);

/* The next document. title may be NULL with title_len 0. text is ignored unless store_text; NULL
 * with 0: empty. n_tokens: the document's length after analysis. GX_EUSAGE (too long a string,
 * lists have begun, one too many), GX_EIO, GX_ENOMEM. */
gx_status gx_writer_add_document(gx_writer *w, const gx_document *doc, uint32_t n_tokens, gx_error *err);

/* With options.positions: the next n documents' titles take so many positions each; before gx_writer_finish, of all
 * documents in order. Without this call no title takes any. GX_EIO, GX_ENOMEM. */
gx_status gx_writer_add_title_positions(gx_writer *w, const uint32_t *title_positions, size_t n, gx_error *err);

/* With options.positions and several fields, once all documents have been added and before the first list: an array of
 * zeros, [n_docs * (n_fields - 1)], for how many positions each field but the last takes. NULL: no memory. */
uint32_t *gx_writer_field_positions(gx_writer *w);

/* Documents without their texts, in a form that a writer takes at once. All zero: none. */
typedef struct gx_document_pack {
    uint32_t n;
    uint32_t *id_lens, *title_lens, *n_tokens, *title_positions; /* [n] */
    char *ids, *titles;                                          /* one behind another */
    size_t n_ids, n_titles, max_id_lens, max_title_lens, max_n_tokens, max_ids, max_titles, max_title_positions;
    uint64_t sum_tokens;
} gx_document_pack;

/* false: no memory */
bool gx_document_pack_add(gx_document_pack *p, const gx_document *doc, uint32_t n_tokens, uint32_t title_positions);
void gx_document_pack_clear(gx_document_pack *p); /* the memory stays */
void gx_document_pack_free(gx_document_pack *p);

/* Add the documents as gx_writer_add_document does one after another, where options.store_text is
 * false. The same statuses. */
gx_status gx_writer_add_pack(gx_writer *w, const gx_document_pack *p, gx_error *err);

/* The next term and its postings: docids[df] rising and below the number of documents, tfs[df] >=
 * 1; df >= 1. GX_EUSAGE where that, or the terms' order, is broken; GX_EIO, GX_ENOMEM. */
gx_status gx_writer_add_list(gx_writer *w, const char *term, size_t len, uint32_t df, const uint32_t *docids,
                             const uint32_t *tfs, gx_error *err);

/* The same with all that a list has: positions, with options.positions. */
gx_status gx_writer_add_postings(gx_writer *w, const gx_term_postings *list, gx_error *err);

/* The unit of all impacts (FORMAT.md), before gx_writer_finish; without this call it is 1. */
void gx_writer_set_unit(gx_writer *w, double unit);

/* Add many lists at once, which other threads have encoded. gx_writer_open_encoded opens an encoder
 * once all documents have been added, or announced by options.n_docs. gx_writer_add_encoded takes
 * the encoder's lists and leaves it empty. The same statuses. */
void gx_writer_open_encoded(gx_writer *w, gx_list_encoder *c);
gx_status gx_writer_add_encoded(gx_writer *w, gx_list_encoder *c, gx_error *err);

/* Complete the file and give it its name. meta: the META section, a JSON object as text:
 * {"analyzer": gx_analyzer_json's object, ...}. GX_EUSAGE: documents are missing. */
gx_status gx_writer_finish(gx_writer *w, const char *meta, gx_error *err);

/* gx_writer_finish with an analyzer alone in META. NULL: "whitespace", for terms that another
 * program has made. */
gx_status gx_writer_finish_with(gx_writer *w, const gx_analyzer *an, gx_error *err);

/* From now on gx_writer_finish completes the file without giving it a name. It can be opened at
 * gx_writer_unnamed_path, which the caller frees (NULL: no memory), until gx_writer_close. */
void gx_writer_keep_unnamed(gx_writer *w);
char *gx_writer_unnamed_path(const gx_writer *w);

/* Free everything; if finish has not succeeded, nothing remains on disk. */
void gx_writer_close(gx_writer *w);

#endif
