/* pieces.h: a whole corpus as pieces, which several threads read.
 *
 *   gx_pieces_fill    the source's own thread opens files and fills a piece with the next bytes
 *   gx_pieces_read    any thread splits the piece to documents, with a reader of its own
 *   gx_pieces_begin   the source's thread, in the order of the corpus: the piece's turn
 *   gx_pieces_error   the error in the place of a bad document
 *   gx_pieces_end     the turn of the piece is over
 *
 * What a piece is filled with depends on its file:
 *
 *   a range     a large file of lines or of TREC's documents that is not compressed: the piece's reader
 *               reads the bytes itself (line_cuts.h)
 *   bytes       all other files of these formats, of csv and of warc, such as compressed ones and pipes:
 *               whole records, which the source's thread has found but not looked into
 *   files       the format `files`: one or several whole files
 *   documents   that the source's thread has read, as gx_source_next does: of smart and csr, the
 *               first record of a file that names columns, and records that are damaged or too long
 *
 * Documents, errors and their lines, and counts are those that gx_source_next gives. */
#ifndef GX_INDEX_CORPUS_PIECES_H
#define GX_INDEX_CORPUS_PIECES_H

#include "index/corpus/line_cuts.h"

typedef struct gx_pieces gx_pieces;

/* Take the rest of the source, which stays open and is used by nothing else until gx_pieces_close; it can only
 * be closed then, unless all pieces have been given. Pieces are of about piece_bytes; one is longer only if its
 * last record is. GX_ENOMEM. */
gx_status gx_pieces_open(gx_pieces **out, gx_source *s, uint32_t n_readers, size_t piece_bytes, gx_error *err);
void gx_pieces_close(gx_pieces *c); /* NULL is fine. No thread reads any more */

/* Fill the piece, which is empty. false: nothing is left. A failure is an error in the last piece. If there is
 * no memory for that error itself, gx_pieces_failure returns GX_ENOMEM, else GX_OK. */
bool gx_pieces_fill(gx_pieces *c, gx_line_piece *p);
gx_status gx_pieces_failure(const gx_pieces *c, gx_error *err);

/* Split the piece to documents. reader: below n_readers, for one thread at a time. look is called for each good
 * document, and may refuse it with GX_EINPUT; any other failure ends the piece. Ends early when *stop is true. */
void gx_pieces_read(gx_pieces *c, uint32_t reader, gx_line_piece *p, const atomic_bool *stop,
                    gx_piece_document_fn *look, void *user);

/* All counts but those of documents and bad ones are added to the source's. GX_ECANCELLED, GX_ENOMEM (while the
 * piece was read). */
gx_status gx_pieces_begin(gx_pieces *c, gx_line_piece *p, gx_error *err);
void gx_pieces_end(gx_pieces *c, gx_line_piece *p);

/* Between begin and end: the file and the line of the i-th document; the error there, whose status is returned. */
const char *gx_pieces_path(const gx_line_piece *p, size_t i);
uint64_t gx_pieces_line(const gx_line_piece *p, size_t i);
gx_status gx_pieces_error(const gx_line_piece *p, size_t i, gx_error *err);

#endif
