/* log_reader.h: what the readers of a query log's forms share; for query_log.c and the files beside
 * it, log_*.c, alone.
 *
 *   gx_log_next -> gx_log_read_line -> gx_log_parse_* of the log's form -> gx_log_emit
 *   of csv      -> gx_log_next_record -> gx_log_emit_columns            -> gx_log_emit
 */
#ifndef GX_QUERY_LOG_LOG_READER_H
#define GX_QUERY_LOG_LOG_READER_H

#include <jansson.h>
#include <string.h>

#include "index/corpus/source.h"
#include "query/log/query_log.h"

enum { GX_LOG_MAX_COLUMNS = 64 };
enum gx_log_column { GX_LOG_COLUMN_NONE, GX_LOG_COLUMN_ID, GX_LOG_COLUMN_TEXT, GX_LOG_COLUMN_FILTER };

typedef struct gx_log_cell {
    char *p;
    size_t n;
} gx_log_cell;

/* Whether the queries of a log with columns are texts or JSON vectors: as the first with a text is. */
typedef enum gx_log_kind { GX_LOG_UNKNOWN, GX_LOG_TEXTS, GX_LOG_WEIGHTS } gx_log_kind;

/* Fields of a topic. */
enum gx_log_field {
    GX_LOG_TITLE,
    GX_LOG_DESC,
    GX_LOG_NARR,
    GX_LOG_NUM,
    GX_LOG_N_FIELDS,
    GX_LOG_NO_FIELD = GX_LOG_N_FIELDS
};

/* The state of an open topic. */
typedef struct gx_log_topic {
    bool open, has[GX_LOG_N_FIELDS];
    enum gx_log_field field; /* whose text is being read */
    uint64_t begin;          /* the number of the line with <top> */
} gx_log_topic;

struct gx_log {
    gx_input in;
    char *path;
    gx_log_form form;
    gx_log_encoding encoding;
    gx_log_counts counts;
    uint64_t line;         /* the number of the current line */
    gx_log_text utf8;      /* the current line, converted */
    gx_log_text id, title; /* of the current topic, object or line of several columns */
    gx_log_text filter;    /* of the current object or line of several columns; empty: none */
    gx_log_topic topic;
    gx_log_text fields[GX_LOG_N_FIELDS];  /* of the topic */
    enum gx_log_field wanted[GX_LOG_NUM]; /* [n_wanted]: fields that make the text of a topic */
    unsigned n_wanted;
    enum gx_log_column columns[GX_LOG_MAX_COLUMNS]; /* [n_columns] of tsv and csv */
    unsigned n_columns;
    gx_log_cell cells[GX_LOG_MAX_COLUMNS]; /* [n_cells] of the current line or record */
    unsigned n_cells;
    bool more_cells; /* there are others behind these, and they are not empty */
    char separator;  /* of csv; 0: not yet known */
    gx_log_kind kind;
    json_t *vector;          /* the current query's, of a log with columns */
    gx_weighted_term *terms; /* [max_terms] of it */
    size_t max_terms;
    bool began;        /* the first line that may name the columns has been read */
    gx_source *source; /* of docs, smart, vectors and csr */
    char *json_members; /* of vectors: gx_source_options.members, or NULL */
    bool unique, number;
    uint64_t *ids; /* [1 << id_bits]: hashes of the ids so far; 0: free */
    unsigned id_bits;
    bool has_zero_id; /* the id with the hash 0 has been */
};

/* ---- log_text.c: text that grows and ends with a NUL ---- */

gx_status gx_log_append(gx_log_text *b, const char *p, size_t n, gx_error *err);
gx_status gx_log_assign(gx_log_text *b, const char *p, size_t n, gx_error *err);

static inline const char *gx_log_skip_blanks(const char *p)
{
    return p + strspn(p, " \t\r\n\f\v");
}

/* ---- query_log.c ---- */

/* GX_EINPUT, with the log's path and the number of the line. */
gx_status gx_log_refuse(gx_log *log, uint64_t line, const char *why, gx_error *err);

/* Read the next line as UTF-8. It lives until the next call. */
gx_status gx_log_read_line(gx_log *log, char **line, size_t *n, bool *found, gx_error *err);

/* Check what was parsed, and give it as *q; its id is copied. id NULL: it is the query's position in the log, from 1,
 * of which a refused query takes one, too. */
gx_status gx_log_emit(gx_log *log, gx_log_query *q, const gx_log_query *parsed, gx_error *err);

/* A query without an id of its own: its id is the number of its line. */
gx_status gx_log_emit_numbered(gx_log *log, gx_log_query *q, const char *text, size_t len, gx_error *err);

/* ---- log_lines.c: forms with a query on each line ---- */

gx_status gx_log_parse_keyed(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err);
gx_status gx_log_parse_prioritized(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err);
gx_status gx_log_parse_object(gx_log *log, gx_log_query *q, const char *line, size_t n, gx_error *err);

/* ---- log_columns.c: tsv, and the columns of tsv and csv ---- */

gx_status gx_log_parse_columns(gx_log *log, const char *columns, gx_error *err); /* of gx_log_options */

/* Do the cells name the columns? One is an id's name, and another a text's; or there is one cell, of csv, and it is a
 * text's. *half: only a text is named, where no query of the usual columns has its text, or beside an id that is a
 * word. */
bool gx_log_names_columns(const gx_log *log, enum gx_log_column named[GX_LOG_MAX_COLUMNS], bool *half);

/* Do the cells of the log's first line name the columns? Where columns are not given they are taken from it. */
bool gx_log_read_header(gx_log *log, bool *half);

gx_status gx_log_refuse_half(const gx_log *log, gx_error *err); /* GX_EUSAGE: no column of ids is named */

void gx_log_split_tabs(gx_log *log, char *line, size_t n); /* to the log's cells */
gx_status gx_log_parse_tabbed(gx_log *log, gx_log_query *q, gx_error *err);
gx_status gx_log_emit_columns(gx_log *log, gx_log_query *q, gx_error *err); /* the query that the cells hold */

/* ---- log_csv.c ---- */

gx_status gx_log_next_record(gx_log *log, gx_log_query *q, bool *more, gx_error *err);
bool gx_log_is_csv_name(const char *path); /* .csv, or .csv.gz and so on */

/* Are the line's fields, with any separator of csv, names of columns? GX_ENOMEM. */
gx_status gx_log_is_csv_header(gx_log *log, const char *line, size_t n, bool *is, gx_error *err);

/* ---- log_topics.c: topics of TREC ---- */

gx_status gx_log_parse_topic_fields(gx_log *log, const char *list, gx_error *err); /* of gx_log_options */
gx_status gx_log_next_topic(gx_log *log, gx_log_query *q, bool *more, gx_error *err);

/* ---- log_guess.c: the form by the first lines ---- */

gx_status gx_log_guess_form(gx_log *log, gx_error *err);

/* Refuse a file with many NUL bytes in what has been read so far. A text may have a few by
 * damage. */
gx_status gx_log_refuse_binary(const gx_log *log, gx_error *err);

bool gx_log_is_comment(gx_log_form form, const char *line);

#endif
