/* line_cuts.h: cut a large file into pieces, which several threads read. A piece ends where a record
 * does: with a line (jsonl, tsv, vectors, plain), or with </DOC> (trectext, trecweb). What cannot be
 * read from any place on, such as a compressed file or a pipe, is not cut here (pieces.h).
 *
 *   gx_line_cuts_open    the rest of a source's open file, from its first or second record on
 *   gx_line_cuts_claim   the next piece; one thread at a time
 *   gx_line_cuts_read    the piece's documents, with a reader of the thread's own
 *   gx_line_cuts_begin   in the order of the file: the piece's turn. Its counts become the source's
 *   gx_line_cuts_error   the error in the place of a bad document
 *   gx_line_cuts_end     the turn of the piece is over
 *
 * Documents, errors and their lines, and counts are those that gx_source_next gives. */
#ifndef GX_INDEX_CORPUS_LINE_CUTS_H
#define GX_INDEX_CORPUS_LINE_CUTS_H

#include <stdatomic.h>

#include "index/corpus/doc_batch.h"
#include "index/corpus/source_reader.h"

typedef struct gx_line_cuts gx_line_cuts;

typedef struct gx_line_piece {
    uint64_t begin, end;           /* in the file; end UINT64_MAX: the file's end */
    struct gx_piece_of_corpus *origin; /* where the piece comes from (pieces.c); NULL: from line cuts */
    gx_scratch raw;                /* the piece's bytes */
    gx_error failed;               /* an error behind them; GX_OK: none */
    size_t bytes;                  /* that it has, as far as is known before it is read */
    gx_doc_batch docs;
    size_t n_errors;         /* in the place of documents */
    gx_source_counts counts; /* of the piece alone */
    gx_notes notes;
    uint64_t lines;
    bool no_memory;
} gx_line_piece; /* all zero: empty */

/* Whether the first record of the open file must be read before it is cut. */
bool gx_line_cuts_wait(const gx_source *s);

/* Pieces are of about piece_bytes; one is longer only if its last record is. *out is NULL where the
 * file cannot be cut, or that would not pay (the rest is short). The source is as it was until
 * gx_line_cuts_take, which takes the rest of the file from it. It stays open, with its file, until
 * gx_line_cuts_close. n_readers may be 0, for a caller with readers of its own. GX_ENOMEM. */
gx_status gx_line_cuts_open(gx_line_cuts **out, gx_source *s, uint32_t n_readers, size_t piece_bytes, gx_error *err);
void gx_line_cuts_take(gx_source *s);
void gx_line_cuts_close(gx_line_cuts *c); /* NULL is fine. No thread reads any more */

/* The file is read as fd and called path from now on, which belong to the caller. */
void gx_line_cuts_use(gx_line_cuts *c, int fd, const char *path);

/* Set begin and end of the next piece. false: there is none. */
bool gx_line_cuts_claim(gx_line_cuts *c, gx_line_piece *p);

/* Called for each good document, number i of the piece, before or after the piece gets its copy.
 * GX_EINPUT: the document is refused; left_out of the error in its place is true, which is false
 * for a bad record. Any other failure ends the piece. */
typedef gx_status gx_piece_document_fn(void *user, size_t i, const gx_document *doc, gx_error *err);

/* Read the bytes of the piece from the file to p->raw, or set p->failed. Any thread may call it. */
void gx_line_cuts_load(const gx_line_cuts *c, gx_line_piece *p);

/* A reader of the caller's, of records as the source has them now. GX_ENOMEM. gx_source_free_buffers frees it. */
gx_status gx_piece_open_reader(gx_source *reader, const gx_source *s, gx_error *err);

/* Split p->raw, which the reader may change, to the piece's documents; behind them stands p->failed. fresh: its
 * bytes have not been counted. look may be NULL. Ends early when *stop is true. numbered: as of gx_doc_batch. */
void gx_piece_parse(gx_source *reader, const char *path, gx_line_piece *p, bool fresh, bool numbered,
                    const atomic_bool *stop, gx_piece_document_fn *look, void *user);

/* Read the reader's next record to the piece. *more: another may follow. false: no memory. */
bool gx_piece_read_record(gx_source *reader, gx_line_piece *p, gx_piece_document_fn *look, void *user, bool *more);

/* The error in the place of the i-th document, whose lines count from behind `lines` lines of the file. */
gx_status gx_piece_error(const gx_line_piece *p, size_t i, const char *path, uint64_t lines, gx_error *err);

/* Put the place before the words of an error. */
void gx_piece_add_place(const char *path, uint64_t line, gx_error *err);

/* Add the piece's counts, but for documents and bad ones, and its notes, to the source's. The piece's lines count from
 * behind `lines` lines of the file. */
void gx_piece_add_counts(const gx_line_piece *p, uint64_t lines, gx_source *s);

/* Whether records of the format are lines; those of TREC. */
bool gx_format_is_of_lines(gx_source_format f);
bool gx_format_is_of_trec(gx_source_format f);

/* Read the piece, whose earlier contents go. look may be NULL. Ends early when *stop is true. */
void gx_line_cuts_read(gx_line_cuts *c, uint32_t reader, gx_line_piece *p, const atomic_bool *stop,
                       gx_piece_document_fn *look, void *user);

/* All counts but those of documents and bad ones are added, which are the caller's. GX_ECANCELLED,
 * GX_ENOMEM (while the piece was read). */
gx_status gx_line_cuts_begin(gx_line_cuts *c, gx_source *s, gx_line_piece *p, gx_error *err);
void gx_line_cuts_end(gx_line_cuts *c, const gx_line_piece *p);

/* Between begin and end: the file's name; its line of the i-th document; the error there, whose
 * status is returned. */
const char *gx_line_cuts_path(const gx_line_cuts *c);
uint64_t gx_line_cuts_line(const gx_line_cuts *c, const gx_line_piece *p, size_t i);
gx_status gx_line_cuts_error(const gx_line_cuts *c, const gx_line_piece *p, size_t i, gx_error *err);

/* Empty a piece. Free buffers of more than `most` bytes. */
void gx_line_piece_clear(gx_line_piece *p, size_t most);

void gx_piece_of_corpus_free(struct gx_piece_of_corpus *origin);

/* Free the memory of a piece. */
void gx_line_piece_free(gx_line_piece *p);

#endif
