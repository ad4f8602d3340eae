/* query_log.h: read the queries of a log, one after another, in constant memory.
 *
 *   form          a line, or a topic                                id
 *   efficiency    17:land rover series 11a                          17
 *   million       17:2:land rover series 11a  (2: a priority)       17
 *   tsv           17<TAB>land rover series 11a                      17
 *   lines         land rover series 11a                             the line number
 *   jsonl         {"id": "17", "query": "land rover ..."}           id, _id, qid or query_id;
 *                 (the text is query, text or title)                else the line number
 *   topics        <top> <num> Number: 17 <title> land rover </top>  17
 *   docs          <DOC> <DOCNO>17</DOCNO> land rover </DOC>         17 (CACM)
 *   smart         .I 17, .W, land rover                             17 (Cranfield)
 *
 * The first line of tsv may name the columns ("qid<TAB>query"). Without this, and without columns in
 * the options, the first column is the id and the second the text; what further columns hold is left
 * out and such lines are counted.
 *
 * The text of a query is given as UTF-8. By default, a line that is not valid UTF-8 is read as
 * Latin-1 (Windows-1252, as on the Web). A log may have CRLF line ends, a BOM, queries with an id
 * and without text, and no newline at its end. A NUL byte is read as a blank. A line with nothing
 * but white space is skipped and counted, and so is a comment: "#" and a blank, or, where lines begin
 * with an id, "#".
 *
 * Where the first lines speak for a form, but not all of them, the guess is refused.
 *
 * A file is refused as binary if the part read when it is opened holds at least 16 NUL bytes and at
 * least one in a thousand bytes is NUL.
 */
#ifndef GX_QUERY_EVAL_QUERY_LOG_H
#define GX_QUERY_EVAL_QUERY_LOG_H

#include "engine/gpuidx.h"

typedef enum gx_log_form {
    GX_LOG_GUESS, /* decided by the first 64 KiB of the file */
    GX_LOG_EFFICIENCY,
    GX_LOG_MILLION,
    GX_LOG_TSV,
    GX_LOG_LINES,
    GX_LOG_JSONL,
    GX_LOG_TOPICS,
    GX_LOG_DOCS,
    GX_LOG_SMART,
    GX_LOG_N_FORMS
} gx_log_form;

typedef enum gx_log_encoding {
    GX_LOG_AUTO,  /* a line is UTF-8 if it is valid UTF-8, else Latin-1 */
    GX_LOG_UTF8,  /* UTF-8; invalid bytes become U+FFFD */
    GX_LOG_LATIN1 /* Latin-1 */
} gx_log_encoding;

/* Find a form by its name ("guess", "efficiency", "tsv", ...), or an encoding ("auto", "utf-8",
 * "latin1"). false: there is none of that name. */
bool gx_log_form_find(const char *name, gx_log_form *out);
const char *gx_log_form_name(gx_log_form form);
bool gx_log_encoding_find(const char *name, gx_log_encoding *out);

#define GX_LOG_MAX_LINE (1u << 20) /* most bytes of a line or topic */
#define GX_LOG_MAX_ID 255u         /* most bytes of an id */

typedef struct gx_log_query {
    const char *id, *text; /* [id_len], [len], and NUL-terminated; they live until the next call */
    size_t id_len, len;
    uint64_t line; /* the line on which the query begins, from 1 */
} gx_log_query;

typedef struct gx_log_counts {
    uint64_t queries, empty, bad; /* empty: queries without text; bad: refused lines */
    uint64_t blank;               /* lines of white space that were skipped, except those between topics */
    uint64_t comments;            /* comments that were skipped */
    uint64_t header;              /* 1: the first line named the columns */
    uint64_t more_columns;        /* lines whose columns behind the second were left out */
    uint64_t latin1;              /* lines (of docs and smart: texts) converted from Latin-1 */
    uint64_t invalid;             /* lines in which invalid UTF-8 was replaced */
    uint64_t nuls;                /* NUL bytes read as blanks */
} gx_log_counts;

typedef struct gx_log_options {
    gx_log_form form;
    gx_log_encoding encoding;
    const char *columns;      /* of tsv, such as "-,id,text"; "text" may be repeated. NULL: as above */
    const char *topic_fields; /* the text of topics: title, desc and narr, in any order. NULL: "title" */
    bool unique;              /* refuse a query whose id an earlier one has; takes 16 bytes a query */
} gx_log_options;

typedef struct gx_log gx_log;

/* Open the log at path ("-": stdin). opt may be NULL. GX_ENOTFOUND, GX_EIO, GX_ENOMEM; GX_EINPUT: the
 * file is no log (UTF-16, or binary); GX_EUSAGE: columns or topic_fields are none, or the form cannot
 * be guessed. */
gx_status gx_log_open(gx_log **out, const char *path, const gx_log_options *opt, gx_error *err);
void gx_log_close(gx_log *log);

/* Read the next query. At the end of the log, *more is false and *q is left as it was. GX_EINPUT
 * ("path:line: ..."): a line or topic is bad; the caller may continue with the next call. After
 * GX_EIO or GX_ENOMEM the only valid call is gx_log_close. */
gx_status gx_log_next(gx_log *log, gx_log_query *q, bool *more, gx_error *err);

/* A buffer that grows. All zero: empty; free(p) in the end. */
typedef struct gx_log_text {
    char *p; /* [n], and a NUL */
    size_t n, cap;
} gx_log_text;

/* The line of n bytes as UTF-8, by the rules of a log's lines, in b; what is done to it is added to
 * counts. GX_ENOMEM. */
gx_status gx_log_convert(gx_log_text *b, const char *line, size_t n, gx_log_encoding encoding, gx_log_counts *counts,
                         gx_error *err);

gx_log_form gx_log_get_form(const gx_log *log); /* the form given or guessed, never GX_LOG_GUESS */
gx_log_counts gx_log_get_counts(const gx_log *log);

#endif
