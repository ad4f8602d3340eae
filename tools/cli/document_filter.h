/* document_filter.h: --only, --not and --filter: the documents that may be results, from files of
 * external ids and from an expression over the attributes.
 *
 *   file of ids, a line each  -->  docids --.
 *   expression                -->  gx_filter --> a bit a document  -->  gx_mask of an engine
 */
#ifndef GX_TOOLS_CLI_DOCUMENT_FILTER_H
#define GX_TOOLS_CLI_DOCUMENT_FILTER_H

#include <pthread.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

typedef struct document_filter {
    char *only, *except; /* the files; NULL: not given */
    char *expression;    /* as it was given; NULL: not given */
    uint64_t *words;     /* [ceil(n_docs / 64)], a bit a document; NULL: there is no filter, all may be results */
    uint64_t n_allowed;
} document_filter;

/* Read the files and the expression: the documents of `only` (NULL: all) without those of `except`
 * (NULL: none) that the expression selects (NULL: all). Spaces and tabs around an id, blank lines,
 * a carriage return and a byte order mark do not count. Ids that the index does not have are passed
 * over, and a note says how many. 0, or the exit code with the message printed: a file that cannot
 * be read, (exit code 3) a line that is no id, or (exit code 2) a malformed expression. */
int document_filter_read(document_filter *out, const gx_index *ix, const char *only, const char *except,
                         const char *expression);
void document_filter_free(document_filter *f);

/* gx_filter_options.read_ids of an index, whose address is at user: a `gx_index *const *`. It reads the file
 * at each call. */
gx_status document_filter_read_ids(void *user, const char *path, uint64_t *words, gx_error *err);

/* gx_filter_options.read_ids of queries that come from elsewhere: it refuses, because whoever wrote them could have any
 * file of this user read, and lines of it printed. CLI_ID_FILES_FLAG allows it. */
gx_status document_filter_refuse_ids(void *user, const char *path, uint64_t *words, gx_error *err);

/* How filters of the queries of a log read id:@FILE: each file once, when it is first named. */
typedef struct id_files {
    const gx_index *ix;
    struct id_words *first; /* the files that are read */
    pthread_mutex_t lock;
    gx_filter_options options; /* for gx_filter_open; thread-safe */
} id_files;
void id_files_open(id_files *f, const gx_index *ix); /* *f must stay where it is */
void id_files_close(id_files *f);

/* The filter as a mask of the engine; *out is NULL where there is none. 0, or the exit code with
 * the message printed. */
int document_filter_open_mask(gx_mask **out, const document_filter *f, gx_engine *en);

#endif
