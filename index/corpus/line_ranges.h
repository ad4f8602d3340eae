/* line_ranges.h: read a large file of lines on threads of the source's own.
 *
 * The rest of a file is cut into pieces of about 1 MiB (line_cuts.h). Each thread takes the next
 * piece and reads it. The caller's source receives the documents in the order of the file, so that
 * it gives the same documents, lines, errors and counts as without threads.
 *
 *   gx_line_ranges_open   cuts the file, and starts the threads
 *   a thread              piece -> gx_read_json, gx_read_tsv, ... -> copies of documents
 *   gx_line_ranges_next   the next document of the oldest piece
 *
 * At most 2 * threads + 2 pieces are in memory. A piece is longer only if its last line is. */
#ifndef GX_INDEX_CORPUS_LINE_RANGES_H
#define GX_INDEX_CORPUS_LINE_RANGES_H

#include "index/corpus/source_reader.h"

typedef struct gx_line_ranges gx_line_ranges; /* its functions are for one thread at a time */

/* Begin to read the rest of the source's open file; of tsv the first record, which may name the
 * columns, has been read. *out is NULL, and the source as it was, where that is not possible (it
 * is no regular file, or compressed, or its records are not lines) or would not pay (the rest is
 * short). The source must stay open, and its file too. GX_ENOMEM. */
gx_status gx_line_ranges_open(gx_line_ranges **out, gx_source *s, gx_error *err);

/* Make s->doc the next document, which belongs to the ranges until the next call, and add to the
 * source's counts. *found is false after the last. Statuses as of gx_source_next. */
gx_status gx_line_ranges_next(gx_line_ranges *r, gx_source *s, bool *found, gx_error *err);

void gx_line_ranges_close(gx_line_ranges *r); /* ends the threads */

#endif
