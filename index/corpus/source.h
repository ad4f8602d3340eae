/* source.h: documents from files, one after another, with the place that each came from.
 *
 *   paths -> gx_walk    the files, directories walked in byte order of their names
 *         -> gx_input   a file's bytes, decompressed, through a window
 *         -> reader     a format: finds a record in the window and splits it    (source_plain.c,
 *                       source_delimited.c, source_json.c, source_trec.c)
 *         -> source.c   checks the id, repairs UTF-8, counts                     -> gx_document
 *
 * What comes out is ready to be indexed, stored and printed: id, title and text are UTF-8 without
 * NUL bytes; the id has no white space and no control characters. Bytes stay where they were read
 * whenever they can.
 *
 *   format     a document is                         id                      title             text
 *   jsonl      an object a line                      id, _id or docid        title             text
 *              or contents
 *   tsv, csv   a line; csv: RFC 4180                 by columns, or by a header line; else id,text
 *              or id,title,text
 *   trectext   <DOC> to </DOC>                       <DOCNO>                 <TITLE>, <HEADLINE>,
 *              <HL>, <HEAD>, ...
 *                                                                            <TEXT>, <LP>, ...; all
 *                                                                            else without these
 *   trecweb    <DOC> to </DOC>, HTML after <DOCHDR>  <DOCNO>                 <title>
 *              without tags and scripts
 *   plain      a line                                its number, from 1, over all files        the
 *              line
 *   files      a file; HTML where it is named so     path below the directory, % and white space as
 *              %25, %20, ...
 */
#ifndef GX_INDEX_CORPUS_SOURCE_H
#define GX_INDEX_CORPUS_SOURCE_H

#include "engine/gpuidx.h"

typedef enum gx_source_format {
    GX_SOURCE_GUESS, /* file by file, from its name and first bytes; a directory's from its first file */
    GX_SOURCE_JSONL,
    GX_SOURCE_TSV,
    GX_SOURCE_CSV,
    GX_SOURCE_TRECTEXT,
    GX_SOURCE_TRECWEB,
    GX_SOURCE_PLAIN,
    GX_SOURCE_FILES
} gx_source_format;

/* "jsonl" and so on; false if there is no such format. */
bool gx_source_format_find(const char *name, gx_source_format *out);
const char *gx_source_format_name(gx_source_format f); /* "guess" for GX_SOURCE_GUESS */

typedef struct gx_source_options {
    gx_source_format format;
    const char *columns;        /* of tsv and csv, "id,-,-,title,text": id once; title and text may be repeated, and are
                             joined with a space; - is ignored. NULL: see above */
    size_t max_record;          /* most bytes of a record as it stands in the file; 0: 64 MiB */
    bool latin1;                /* the bytes are Latin-1 (Windows-1252), not UTF-8 */
    bool (*cancel)(void *user); /* asked when a signal interrupts a read; may be NULL */
    void *user;
} gx_source_options;

typedef struct gx_source gx_source;

/* Check that the n paths can be read and begin. A path may be a file, a directory (all files below
 * it, hidden ones not) or "-" (stdin). The strings of paths and opt must outlive the source. opt
 * may be NULL. GX_EUSAGE (columns, no path, "-" twice), GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
gx_status gx_source_open(gx_source **out, const char *const *paths, size_t n, const gx_source_options *opt,
                         gx_error *err);
void gx_source_close(gx_source *s);

/* A document and where it begins. */
typedef struct gx_source_document {
    gx_document doc; /* title NULL: none. The bytes belong to the source until the next call */
    const char *file;
    uint64_t line; /* from 1 */
} gx_source_document;

/* The next document; *out is NULL after the last.
 * GX_EINPUT: a bad document; err begins with "file:line: ". The next call goes on behind it (behind
 * its file, if the file cannot be read on). GX_ENOTFOUND, GX_EIO, GX_ENOMEM, GX_ECANCELLED: there
 * is no going on. */
gx_status gx_source_next(gx_source *s, const gx_source_document **out, gx_error *err);

typedef struct gx_source_counts {
    uint64_t documents;      /* good ones */
    uint64_t bad;            /* GX_EINPUT */
    uint64_t empty;          /* good ones without a title and without text but white space */
    uint64_t files;          /* opened */
    uint64_t bytes;          /* read, after decompression */
    uint64_t nul_bytes;      /* read as spaces */
    uint64_t replaced;       /* sequences that are not UTF-8, read as U+FFFD */
    uint64_t raw_bytes;      /* read, as they lie in the files */
    uint64_t raw_total;      /* of all files; 0 when unknown (a pipe) */
    gx_source_format format; /* of the file being read */
} gx_source_counts;
gx_source_counts gx_source_get_counts(const gx_source *s);

#endif
