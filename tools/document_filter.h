/* document_filter.h: --only and --not: the documents that may be results, from files of external
 * ids.
 *
 *   file of ids, a line each  -->  docids  -->  a bit a document  -->  gx_mask of an engine
 */
#ifndef GX_TOOLS_DOCUMENT_FILTER_H
#define GX_TOOLS_DOCUMENT_FILTER_H

#include "tools/cli.h"

typedef struct document_filter {
    char *only, *except; /* the files; NULL: not given */
    uint64_t *words;     /* [ceil(n_docs / 64)], a bit a document; NULL: there is no filter, all may be results */
    uint32_t n_allowed;
} document_filter;

/* Read the files: the documents of `only` (NULL: all) without those of `except` (NULL: none).
 * Spaces and tabs around an id, blank lines, a carriage return and a byte order mark do not count.
 * Ids that the index does not have are passed over, and a note says how many. 0, or the exit code
 * with the message printed: a file that cannot be read, or (exit code 3) a line that is no id. */
int document_filter_read(document_filter *out, const gx_index *ix, const char *only, const char *except);
void document_filter_free(document_filter *f);

/* The filter as a mask of the engine; *out is NULL where there is none. 0, or the exit code with
 * the message printed. */
int document_filter_open_mask(gx_mask **out, const document_filter *f, gx_engine *en);

#endif
