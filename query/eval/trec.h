/* trec.h: judgements (qrels) and runs in TREC's formats, read whole and checked.
 *
 *   qrels   qid iteration docno relevance          run   qid Q0 docno rank score tag
 *
 *   file --gx_trec_read--> rows by qid, then docno;  topics[t] is one qid's rows [first, first + n)
 *
 * Fields are separated by blanks or tabs; CRLF, a BOM, blank lines and compressed files are fine.
 * Order of qids and docnos is that of their bytes, as in trec_eval.
 */
#ifndef GX_QUERY_EVAL_TREC_H
#define GX_QUERY_EVAL_TREC_H

#include "engine/gpuidx.h"

typedef enum gx_trec_kind { GX_TREC_QRELS, GX_TREC_RUN } gx_trec_kind;

typedef struct gx_trec_row {
    const char *qid, *docno; /* NUL-terminated, the table's own */
    float value;             /* relevance (an integer within 2^24), or score */
    uint32_t line;           /* from 1 */
} gx_trec_row;

typedef struct gx_trec_topic {
    const char *qid;
    size_t first, n; /* rows, n >= 1 */
} gx_trec_topic;

typedef struct gx_trec_table {
    gx_trec_row *rows;     /* [n_rows], by qid, then docno; no (qid, docno) twice */
    gx_trec_topic *topics; /* [n_topics], by qid */
    size_t n_rows, n_topics;
    char *text; /* the file's bytes, cut into fields */
} gx_trec_table;

/* path "-": stdin. GX_ENOTFOUND, GX_EIO, GX_ENOMEM; GX_EINPUT with "path:line: what is wrong" for a
 * line that does not have its fields, a relevance or score that is no number, a document named
 * twice for one query. An empty file is an empty table. */
gx_status gx_trec_read(gx_trec_table *out, const char *path, gx_trec_kind kind, gx_error *err);
void gx_trec_free(gx_trec_table *t);

/* The topic of that qid, or NULL. */
const gx_trec_topic *gx_trec_find(const gx_trec_table *t, const char *qid);

#endif
