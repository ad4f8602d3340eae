/* trec.h: read and check judgements (qrels) and runs in TREC's formats.
 *
 *   a line of qrels     qid iteration docno relevance
 *      or, as BEIR has      qid docno relevance, behind a line "query-id corpus-id score"
 *   a line of a run     qid Q0 docno rank score tag
 *
 * gx_trec_read reads a whole file into rows, sorted by qid and then by docno. topics[t] is the
 * range of rows of one qid. Fields are separated by blanks or tabs. A file may have CRLF line ends,
 * a BOM and blank lines, and it may be compressed. qids and docnos are in byte order, as in
 * trec_eval.
 */
#ifndef GX_QUERY_MEASURES_TREC_H
#define GX_QUERY_MEASURES_TREC_H

#include "engine/api/gpuidx_advanced.h" /* gx_trec_read */

/* The topic of that qid, or NULL. */
const gx_trec_topic *gx_trec_find(const gx_trec_table *t, const char *qid);

#endif
