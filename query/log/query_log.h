/* query_log.h: read the queries of a log, one after another, in constant memory.
 *
 *   form          a line, or a topic                                id
 *   efficiency    17:land rover series 11a                          17
 *   million       17:2:land rover series 11a  (2: a priority)       17
 *   tsv           17<TAB>land rover series 11a                      17
 *   csv           17,"land rover, series 11a"                       17
 *   lines         land rover series 11a                             the line number
 *   jsonl         {"id": "17", "query": "land rover ..."}           id, _id, qid or query_id;
 *                 (the text is query, text or title)                else the line number
 *   topics        <top> <num> Number: 17 <title> land rover </top>  17
 *   docs          <DOC> <DOCNO>17</DOCNO> land rover </DOC>         17 (CACM)
 *   smart         .I 17, .W, land rover                             17 (Cranfield)
 *   vectors       {"id": "17", "vector": {"land": 1.5, ...}}        id, _id, docid, qid or query_id
 *   csr           a row of a matrix (index/corpus/formats/source_csr.c)     its number, from 0
 *
 * The options can name other members of vectors than these. A regular file whose size is that which a
 * matrix's first three numbers tell is guessed to be csr.
 *
 * A text of tsv or csv that is a JSON object of weights is a vector; all queries of a log are texts, or all are
 * vectors. With gx_log_options.number, or without a column of ids, a query's id is its position in the log.
 *
 * A query of tsv or csv may have a filter of its own, in a column that is named filter, and one of jsonl
 * under "filter"; where it is blank or missing, the query has none.
 *
 * The first line of tsv or csv may name the columns ("qid<TAB>query"). Without this, and without columns
 * in the options, the first column is the id and the second the text; what further columns of tsv hold is
 * left out and such lines are counted, and records of csv with other numbers of columns are refused.
 *
 * The text of a query is given as UTF-8. By default, a line that is not valid UTF-8 is read as
 * Latin-1 (Windows-1252, as on the Web). A log may have CRLF line ends, a BOM, queries with an id
 * and without text, and no newline at its end. A NUL byte is read as a blank. A line with nothing
 * but white space is skipped and counted, and so is a comment: "#" and a blank, or, where lines
 * begin with an id, "#".
 *
 * Where the first lines speak for a form, but not all of them, the guess is refused, as it is where most begin with
 * what may be an id and a separator of csv. The name of a file tells csv, and so does a first line that names columns.
 *
 * A file is refused as binary if the part read when it is opened holds at least 16 NUL bytes and at
 * least one in a thousand bytes is NUL.
 */
#ifndef GX_QUERY_LOG_QUERY_LOG_H
#define GX_QUERY_LOG_QUERY_LOG_H

#include "engine/api/gpuidx_advanced.h" /* gx_log_form, gx_log_options, gx_log_counts */

typedef struct gx_log_query {
    const char *id, *text; /* [id_len], [len], and NUL-terminated; they live until the next call */
    size_t id_len, len;
    uint64_t line;      /* the line on which the query begins, from 1 */
    const char *filter; /* [filter_len] an expression; NULL: none */
    size_t filter_len;
    /* Of vectors, csr, and vectors in columns: the query's terms [n_terms] and their weights, and no text. They live
     * until the next call. Else NULL. Their weights are not checked. */
    const gx_weighted_term *terms;
    uint32_t n_terms;
} gx_log_query;

typedef struct gx_log gx_log;

/* Open the log at path ("-": stdin). opt may be NULL. GX_ENOTFOUND, GX_EIO, GX_ENOMEM; GX_EINPUT:
 * the file is no log (UTF-16, or binary); GX_EUSAGE: columns or topic_fields are none, or the form
 * cannot be guessed. */
gx_status gx_log_open(gx_log **out, const char *path, const gx_log_options *opt, gx_error *err);
void gx_log_close(gx_log *log);

/* Read the next query. At the end of the log, *more is false and *q is left as it was. GX_EINPUT
 * ("path:line: ..."): a line or topic is bad; the caller may continue with the next call. After
 * GX_EUSAGE (the columns must be given), GX_EIO or GX_ENOMEM the only valid call is gx_log_close. */
gx_status gx_log_next(gx_log *log, gx_log_query *q, bool *more, gx_error *err);

gx_log_form gx_log_get_form(const gx_log *log); /* the form given or guessed, never GX_LOG_GUESS */
gx_log_counts gx_log_get_counts(const gx_log *log);

#endif
