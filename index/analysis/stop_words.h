/* stop_words.h: words that an analyzer leaves out, and the files that hold them.
 *
 * A file has a word a line. It may be compressed (gzip), begin with a byte order mark and have lines that end with LF,
 * CR LF or CR; blank lines and white space around words mean nothing. Comments begin with | anywhere, as in Snowball's
 * lists, or with # at a line's begin; where text is divided at white space alone, and | and # may be terms, only with
 * white space beside them. */
#ifndef GX_INDEX_ANALYSIS_STOP_WORDS_H
#define GX_INDEX_ANALYSIS_STOP_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/api/gpuidx.h"

typedef struct gx_stop_word {
    char *bytes;
    size_t len;
} gx_stop_word;

/* All zero: empty. */
typedef struct gx_stop_words {
    gx_stop_word *words; /* [n], sorted by bytes, no duplicates, once gx_stop_words_sort has been called */
    size_t n, max, longest;
} gx_stop_words;

bool gx_stop_words_add(gx_stop_words *s, const char *word, size_t len); /* a copy; false: no memory */
void gx_stop_words_sort(gx_stop_words *s);
bool gx_stop_words_has(const gx_stop_words *s, const char *word, size_t len); /* once sorted */
void gx_stop_words_free(gx_stop_words *s);

typedef enum gx_stop_word_kind {
    GX_STOP_WORD_SAME, /* the line's word, but for case and the fold */
    GX_STOP_WORD_CUT,  /* a word that analysis makes of the line's, such as "it" of "it's" */
    GX_STOP_WORD_OTHER /* a part of the line */
} gx_stop_word_kind;

/* What analysis makes of a line of a file. *word [*n] lives until the next call. NULL: no word, or several.
 * GX_ENOMEM. */
typedef gx_status gx_stop_word_fn(void *user, const char *line, size_t len, const char **word, size_t *n,
                                  gx_stop_word_kind *kind);

/* Add a file's words as `make` makes them, and sort. spaces: text is divided at white space alone. GX_EINPUT: a line
 * that no term can equal, unless what it is cut to is in the list as well; one that is not UTF-8, and so on.
 * GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
gx_status gx_stop_words_read(gx_stop_words *s, const char *path, bool spaces, gx_stop_word_fn *make, void *user,
                             gx_error *err);

#endif
