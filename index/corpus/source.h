/* source.h: read documents from files, one after another, with the place that each came from.
 *
 *   paths -> gx_walk    lists the files; those of a directory in byte order of their names
 *         -> gx_input   gives the bytes of a file, decompressed, through a window
 *         -> reader     finds a record in the window and splits it, by the format: source_plain.c,
 *                       source_delimited.c, source_json.c, source_smart.c, source_trec.c
 *         -> source.c   checks the id, repairs UTF-8, counts
 *         -> gx_document
 *
 * A document is ready to be indexed, stored and printed: id, title and text are UTF-8 without NUL
 * bytes, and the id has no white space and no control characters. Bytes are not copied unless they
 * must be changed.
 *
 *   format     a document is                    id                  title         text
 *   jsonl      a line: a JSON object            id, _id or docid    title         text or contents
 *   tsv, csv   a line; csv: RFC 4180            (1)                 (1)           (1)
 *   trectext   <DOC> to </DOC>                  <DOCNO>             (2)           (3)
 *   trecweb    <DOC> to </DOC>, and HTML        <DOCNO>             <title>       HTML without tags
 *              behind <DOCHDR>                                                    and scripts
 *   smart      ".I id" to the next      .I                   .T            .A and .W
 *   plain      a line                           (4)                 none          the line
 *   files      a file; HTML if its name         (5)                 HTML: title   the file; HTML as
 *              says so                                                            in trecweb
 *
 *   (1) columns as given, or by a header line; else id,text or id,title,text
 *   (2) <TITLE>, <HEADLINE>, <HL>, <HEAD>, ...
 *   (3) <TEXT>, <LP>, ...; without any of these, everything else in the document
 *   (4) the number of the line, from 1, over all files
 *   (5) the path below the given directory or in the archive, its last part, or this without its
 *       ending; % and white space become %25, %20, ...
 *
 * An archive (tar, zip) is read as a directory is.
 */
#ifndef GX_INDEX_CORPUS_SOURCE_H
#define GX_INDEX_CORPUS_SOURCE_H

#include "engine/gpuidx.h"
#include "index/corpus/input.h"

typedef enum gx_source_format {
    GX_SOURCE_GUESS, /* by the file's name and first bytes; for a directory, by those of its first file */
    GX_SOURCE_JSONL,
    GX_SOURCE_TSV,
    GX_SOURCE_CSV,
    GX_SOURCE_TRECTEXT,
    GX_SOURCE_TRECWEB,
    GX_SOURCE_SMART,
    GX_SOURCE_PLAIN,
    GX_SOURCE_FILES
} gx_source_format;

/* Find a format by its name, "jsonl" and so on. false: there is no such format. */
bool gx_source_format_find(const char *name, gx_source_format *out);
const char *gx_source_format_name(gx_source_format f); /* "guess" for GX_SOURCE_GUESS */

/* What names a document of the format files: a/b.html, b.html or b. */
typedef enum gx_file_id { GX_FILE_ID_PATH, GX_FILE_ID_NAME, GX_FILE_ID_STEM } gx_file_id;

typedef struct gx_source_options {
    gx_source_format format;
    /* The columns of tsv and csv, such as "id,-,-,title,text". id stands once. If title or text
     * stands several times, the columns are joined with a space. A column "-" is ignored. NULL: by
     * the file's header line, as above. */
    const char *columns;
    size_t max_record; /* most bytes of a record, after decompression; 0: 64 MiB */
    bool latin1;       /* the bytes are Latin-1 (Windows-1252), not UTF-8 */
    bool else_latin1;  /* a title or text that is not UTF-8 is Latin-1; false: it is repaired */
    gx_file_id file_id;
    bool (*cancel)(void *user); /* called at every read; true: stop. May be NULL */
    void *user;
} gx_source_options;

typedef struct gx_source gx_source;

/* Check that the n paths can be read, and begin. A path is a file, a directory (all files below it,
 * except hidden ones) or "-" (stdin). The strings of paths and opt must outlive the source. opt may
 * be NULL. GX_EUSAGE (bad columns, no path, "-" twice), GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
gx_status gx_source_open(gx_source **out, const char *const *paths, size_t n, const gx_source_options *opt,
                         gx_error *err);

/* Begin with an open input, which is moved into the source: the documents of this file. opt->format
 * is not GX_SOURCE_GUESS; max_record, latin1, cancel and user are those of the input. GX_ENOMEM; the
 * input stays the caller's then. */
gx_status gx_source_open_input(gx_source **out, gx_input *in, const gx_source_options *opt, gx_error *err);
void gx_source_close(gx_source *s);

/* A document and where it begins. */
typedef struct gx_source_document {
    gx_document doc; /* title NULL: none. The bytes belong to the source until the next call */
    const char *file;
    uint64_t line; /* from 1 */
} gx_source_document;

/* Point *out to the next document, or to NULL after the last.
 * GX_EINPUT: a document is bad; err begins with "file:line: ". The next call continues behind the
 * document, or behind its file if the rest of the file cannot be read. After GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM or GX_ECANCELLED the only valid call is gx_source_close. */
gx_status gx_source_next(gx_source *s, const gx_source_document **out, gx_error *err);

typedef struct gx_source_counts {
    uint64_t documents;      /* good documents */
    uint64_t bad;            /* documents refused with GX_EINPUT */
    uint64_t too_long;       /* of these, those longer than max_record */
    uint64_t empty;          /* good documents with nothing but white space in title and text */
    uint64_t files;          /* files opened, each member of an archive being one */
    uint64_t bytes;          /* bytes read, after decompression */
    uint64_t nul_bytes;      /* NUL bytes, read as spaces */
    uint64_t latin1;         /* titles and texts read as Latin-1, by else_latin1 */
    uint64_t replaced;       /* sequences that are not UTF-8, read as U+FFFD */
    uint64_t raw_bytes;      /* bytes read, before decompression */
    uint64_t raw_total;      /* bytes of all files, before decompression; 0: unknown (a pipe) */
    gx_source_format format; /* of the file being read */
} gx_source_counts;
gx_source_counts gx_source_get_counts(const gx_source *s);

#endif
