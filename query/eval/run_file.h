/* run_file.h: writing a TREC run, fast: "qid Q0 docno rank score tag", a line an answer.
 *
 * Lines are formatted into the caller's buffer (gx_run_text, one a thread), and buffers are written
 * in the order of their queries. A score is printed with nine significant digits, which read back
 * as the same float. A file is written beside its place and renamed when it is complete.
 */
#ifndef GX_QUERY_EVAL_RUN_FILE_H
#define GX_QUERY_EVAL_RUN_FILE_H

#include "engine/gpuidx.h"

typedef struct gx_run_text { /* all zero: empty */
    char *bytes;
    size_t n, cap;
} gx_run_text;

/* Append the lines of one query's answers: keys as gx_key makes them, best first; a score's float
 * is score * 2^-exponent. Blanks and control characters in ids become "_". GX_ENOMEM. */
gx_status gx_run_append(gx_run_text *text, const gx_index *ix, const char *qid, size_t qid_len, const uint64_t *keys,
                        uint32_t n, int exponent, const char *tag, gx_error *err);
/* The score alone: at most 24 bytes at p; returns how many. score finite >= 0. */
size_t gx_run_score(char *p, float score);

typedef struct gx_run gx_run;

/* path "-": stdout. A path that is no regular file (a pipe, /dev/null) is written directly. */
gx_status gx_run_open(gx_run **out, const char *path, gx_error *err);
gx_status gx_run_write(gx_run *run, const gx_run_text *text, gx_error *err);
/* Everything to disk, and the file into its place. */
gx_status gx_run_commit(gx_run *run, gx_error *err);
/* Without a commit before, nothing is left of it. Accepts NULL. */
void gx_run_close(gx_run *run);

#endif
