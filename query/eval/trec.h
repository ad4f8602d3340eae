/* trec.h: read and check judgements (qrels) and runs in TREC's formats.
 *
 *   a line of qrels     qid iteration docno relevance
 *   a line of a run     qid Q0 docno rank score tag
 *
 * gx_trec_read reads a whole file into rows, sorted by qid and then by docno. topics[t] is the
 * range of rows of one qid. Fields are separated by blanks or tabs. A file may have CRLF line ends,
 * a BOM and blank lines, and it may be compressed. qids and docnos are in byte order, as in
 * trec_eval.
 */
#ifndef GX_QUERY_EVAL_TREC_H
#define GX_QUERY_EVAL_TREC_H

#include "engine/gpuidx.h"

typedef enum gx_trec_kind { GX_TREC_QRELS, GX_TREC_RUN } gx_trec_kind;

typedef struct gx_trec_row {
    const char *qid, *docno; /* NUL-terminated; the strings belong to the table */
    float value;             /* the relevance, an integer of at most 2^24 in magnitude, or the score */
    uint32_t line;           /* the line in the file, from 1 */
} gx_trec_row;

typedef struct gx_trec_topic {
    const char *qid;
    size_t first, n; /* rows [first, first + n), n >= 1 */
} gx_trec_topic;

typedef struct gx_trec_table {
    gx_trec_row *rows;     /* [n_rows] by qid, then docno; no pair (qid, docno) occurs twice */
    gx_trec_topic *topics; /* [n_topics] by qid */
    size_t n_rows, n_topics;
    char *text; /* the bytes of the file, cut into fields; rows point into it */
} gx_trec_table;

/* Read the file at path ("-": stdin). An empty file gives an empty table. GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM. GX_EINPUT, with "path:line: reason": a line has too few or too many fields, a
 * relevance or a score is no number, or a query names a document twice. */
gx_status gx_trec_read(gx_trec_table *out, const char *path, gx_trec_kind kind, gx_error *err);
void gx_trec_free(gx_trec_table *t);

/* The topic of that qid, or NULL. */
const gx_trec_topic *gx_trec_find(const gx_trec_table *t, const char *qid);

#endif
