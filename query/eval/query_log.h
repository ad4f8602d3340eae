/* query_log.h: the queries of a log, one after another, in constant memory.
 *
 *   form          a line (or a topic)                               id
 *   efficiency    17:land rover series 11a                          17
 *   tsv           17<TAB>land rover series 11a                      17
 *   lines         land rover series 11a                             its line number
 *   jsonl         {"id": "17", "query": "land rover ..."}           id, _id, qid or query_id; else
 *                 the line number
 *                                                                   text: query, text or title
 *   topics        <top> <num> Number: 17 <title> land rover </top>  17
 *
 * Text comes out as UTF-8. A line that is not valid UTF-8 is taken as Latin-1 (Windows-1252, as on
 * the Web) unless told otherwise. CRLF, a BOM, single NUL bytes (made blanks), queries that have an
 * id and no text and a missing last newline are fine; lines of nothing but white space are passed
 * over and counted. With many NUL bytes at its beginning (16, and one in a thousand), a file is no
 * text.
 */
#ifndef GX_QUERY_EVAL_QUERY_LOG_H
#define GX_QUERY_EVAL_QUERY_LOG_H

#include "engine/gpuidx.h"

typedef enum gx_log_form {
    GX_LOG_GUESS, /* by the file's first 64 KiB */
    GX_LOG_EFFICIENCY,
    GX_LOG_TSV,
    GX_LOG_LINES,
    GX_LOG_JSONL,
    GX_LOG_TOPICS,
    GX_LOG_N_FORMS
} gx_log_form;

typedef enum gx_log_encoding {
    GX_LOG_AUTO,  /* UTF-8, and Latin-1 for lines that are not */
    GX_LOG_UTF8,  /* invalid bytes become U+FFFD */
    GX_LOG_LATIN1 /* every line */
} gx_log_encoding;

/* "guess", "efficiency", "tsv", ... and "auto", "utf-8", "latin1"; false: there is none. */
bool gx_log_form_find(const char *name, gx_log_form *out);
const char *gx_log_form_name(gx_log_form form);
bool gx_log_encoding_find(const char *name, gx_log_encoding *out);

#define GX_LOG_MAX_LINE (1u << 20) /* bytes of the longest line or topic */
#define GX_LOG_MAX_ID 255u         /* bytes of the longest id */

typedef struct gx_log_query {
    const char *id, *text; /* NUL-terminated too; they live until the next call */
    size_t id_len, len;
    uint64_t line; /* where it begins, from 1 */
} gx_log_query;

typedef struct gx_log_counts {
    uint64_t queries, empty, bad; /* empty: queries without text; bad: lines refused */
    uint64_t blank;               /* lines passed over, those between topics not counted */
    uint64_t latin1;              /* lines converted from Latin-1 */
    uint64_t invalid;             /* lines in which invalid UTF-8 was replaced */
    uint64_t nuls;                /* NUL bytes made blanks */
} gx_log_counts;

typedef struct gx_log gx_log;

/* path "-": stdin. GX_ENOTFOUND, GX_EIO, GX_ENOMEM; GX_EINPUT for a file that looks like none
 * (UTF-16, many NULs). */
gx_status gx_log_open(gx_log **out, const char *path, gx_log_form form, gx_log_encoding encoding, gx_error *err);
void gx_log_close(gx_log *log);

/* The next query. *more is false, and *q untouched, at the end. GX_EINPUT ("path:line: ...")
 * refuses one line or topic; the caller may go on with the next. GX_EIO, GX_ENOMEM end it. */
gx_status gx_log_next(gx_log *log, gx_log_query *q, bool *more, gx_error *err);

gx_log_form gx_log_get_form(const gx_log *log); /* as given or guessed, never GX_LOG_GUESS */
gx_log_counts gx_log_get_counts(const gx_log *log);

#endif
