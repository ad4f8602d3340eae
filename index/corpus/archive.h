/* archive.h: the members of an archive, tar or zip, for input.c. libarchive reads it.
 *
 * Every entry that is no folder is a member or is noted (notes.h). A hard link in a tar has no bytes of its own: where
 * the file can be read again, its members come last, in further passes over the archive. Tars that were put together
 * are read one after another. */
#ifndef GX_INDEX_CORPUS_ARCHIVE_H
#define GX_INDEX_CORPUS_ARCHIVE_H

#include "index/corpus/input.h"

/* The name of the archive's kind, "zip" or "tar", that begins with these bytes, of which 512 tell; NULL: it is none. */
const char *gx_archive_recognize(const char *p, size_t n);

/* The window's bytes are the first of an archive, which in->archive reads from now on. Statuses as of gx_input_open. */
gx_status gx_archive_open(gx_input *in, gx_error *err);

/* Go to the next member. *name, its path in the archive, is NULL after the last, and lives until the next call.
 * *again after an error: the next call goes on behind the bad entry. */
gx_status gx_archive_next(gx_input *in, const char **name, bool *again, gx_error *err);

/* Read the member's next bytes; *n = 0 at its end. */
gx_status gx_archive_read(gx_input *in, char *to, size_t max, size_t *n, gx_error *err);
void gx_archive_close(gx_input *in); /* NULL is fine */

/* What input.c gives: the file's next bytes, decompressed; the file from its beginning, once more; errors. */
gx_status gx_input_read_file(gx_input *in, char *to, size_t max, size_t *n, gx_error *err);
gx_status gx_input_restart_file(gx_input *in, gx_error *err);
gx_status gx_input_ask_cancel(const gx_input *in, gx_error *err);
gx_status gx_input_no_memory(const gx_input *in, gx_error *err);
gx_status gx_input_damaged(const gx_input *in, const char *what, const char *why, gx_error *err);

#endif
