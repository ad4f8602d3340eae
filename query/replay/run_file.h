/* run_file.h: write a TREC run: for each answer a line "qid Q0 docno rank score tag".
 *
 * Each thread formats lines into a gx_run_text of its own. The caller writes these buffers in the
 * order of their queries. A score is printed with at least ten significant digits, so that scores
 * that differ are printed differently: sorting a query's lines by score, and equal scores by docid,
 * gives the ranking back. The file appears when it is complete (engine/files/atomic_file.h).
 */
#ifndef GX_QUERY_REPLAY_RUN_FILE_H
#define GX_QUERY_REPLAY_RUN_FILE_H

#include "engine/api/gpuidx.h"

/* A growing buffer of lines. All zero: empty. */
typedef struct gx_run_text {
    char *bytes;
    size_t n, cap;
} gx_run_text;

/* The answer to one query. The score of a key is gx_key_score(key) * 2^-exponent. */
typedef struct gx_run_answer {
    const char *qid; /* [qid_len] */
    size_t qid_len;
    const uint64_t *keys; /* [n] as gx_key makes them, best first */
    uint32_t n;
    int exponent;
    const uint32_t *highs; /* [n] of the keys in a wide collection (gx_hits); else NULL */
    const double *scores;  /* [n] in the place of the keys' scores; NULL: these */
} gx_run_answer;

/* Append the lines of one query's answer. Blanks and control characters in ids become "_".
 * GX_ENOMEM. */
gx_status gx_run_append(gx_run_text *text, const gx_index *ix, const gx_run_answer *answer, const char *tag,
                        gx_error *err);

/* Write the score sum * 2^-exponent at p, in at most 24 bytes, and return their number. sum is
 * below 2^31, and the score at most FLT_MAX. */
size_t gx_run_score(char *p, uint32_t sum, int exponent);

typedef struct gx_run gx_run;

/* Open a run for writing. path "-" is stdout. If path exists and is no regular file (a pipe,
 * /dev/null), it is written directly. Statuses of gx_atomic_file_open. */
gx_status gx_run_open(gx_run **out, const char *path, bool force, gx_error *err);

/* Append the lines. GX_EIO. */
gx_status gx_run_write(gx_run *run, const gx_run_text *text, gx_error *err);

/* Write everything to disk, and give the file its name. Statuses of gx_atomic_file_commit. */
gx_status gx_run_commit(gx_run *run, gx_error *err);

/* Close the run. Remove the temporary file unless it was committed. Accepts NULL. */
void gx_run_close(gx_run *run);

#endif
