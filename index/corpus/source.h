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
 *   jsonl      a line: a JSON object            id, _id or docid    title         text, contents
 *                                                                                or content
 *   tsv, csv   a line; csv: RFC 4180            (1)                 (1)           (1)
 *   trectext   <DOC> to </DOC>                  <DOCNO>, else id    (2)           (3)
 *                                               of <DOC>
 *   trecweb    <DOC> to </DOC>, and HTML        <DOCNO>             <title>       HTML without tags
 *              behind <DOCHDR>                                                    and scripts
 *   smart      ".I id" to the next .I           .I                  .T            .A and .W
 *   warc       a response, resource or          WARC-TREC-ID, else  <title>       HTML as in
 *              conversion of HTML or            WARC-Record-ID                    trecweb; all of
 *              plain text                                                         plain text
 *   plain      a line                           (4)                 none          the line
 *   vectors    a line: a JSON object with the   id, _id, docid,     title         text, contents
 *              member "vector": {term: weight}  qid or query_id                   or content
 *   csr        a row of a matrix                its number, from 0  none          none
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

#include "engine/api/gpuidx_advanced.h" /* gx_source_open */
#include "index/corpus/input.h"

/* Begin with an open input, which is moved into the source: the documents of this file. opt->format
 * is not GX_SOURCE_GUESS; max_record, latin1, cancel and user are those of the input. GX_ENOMEM;
 * the input stays the caller's then. */
gx_status gx_source_open_input(gx_source **out, gx_input *in, const gx_source_options *opt, gx_error *err);

/* Whether there is a regular file at path that is a CSR matrix: its size is that which its first three numbers
 * tell. */
bool gx_csr_is_matrix(const char *path);

/* The caller has taken so many documents from pieces (pieces.h), and so many bad ones. */
void gx_source_add_counts(gx_source *s, uint64_t documents, uint64_t bad);

/* From now on threads decompress files ahead (unpack_ahead.h): of the caller's, which call
 * gx_unpack_ahead_work(*ahead). *ahead is NULL where the format has no compressed files. GX_ENOMEM, and the
 * statuses of gx_walk_open. gx_source_end_ahead closes the open file; no thread works any more. */
struct gx_unpack_ahead;
gx_status gx_source_begin_ahead(gx_source *s, uint32_t threads, uint64_t memory, void (*wake)(void *user), void *user,
                                struct gx_unpack_ahead **ahead, gx_error *err);
void gx_source_end_ahead(gx_source *s);

#endif
