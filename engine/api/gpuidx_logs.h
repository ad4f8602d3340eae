/* gpuidx_logs.h: query logs, and the latencies of their queries. Part of gpuidx_advanced.h. */
#ifndef GPUIDX_LOGS_H
#define GPUIDX_LOGS_H

#include "gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- query logs, and the latencies of their queries ---- */

/* The distribution of values, such as latencies in ns, with three significant digits. The layout is
 * HdrHistogram's: each value below 1024 has a bucket of its own; above, every power of two has 512
 * buckets of equal width. Count, least and greatest value are exact. */
#define GX_HISTOGRAM_HALF 512u
#define GX_HISTOGRAM_BUCKETS ((64u - 9u + 1u) * GX_HISTOGRAM_HALF)

typedef struct gx_histogram {
    uint64_t n, min, max;
    double sum;
    uint64_t buckets[GX_HISTOGRAM_BUCKETS];
} gx_histogram; /* all zero: empty */

/* The least value v such that a share p (0 to 1) of all values is <= v, rounded up to the end of
 * v's bucket but not above the greatest value; 0 when the histogram is empty. */
GX_API uint64_t gx_histogram_quantile(const gx_histogram *h, double p);

/* The mean; 0 when the histogram is empty. */
GX_API double gx_histogram_mean(const gx_histogram *h);

/* The form of a query log. The manual page gpuidx-replay(1) shows a line of each. */
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
    GX_LOG_VECTORS, /* queries are terms with weights, as the corpora GX_SOURCE_VECTORS, */
    GX_LOG_CSR,     /* and GX_SOURCE_CSR */
    GX_LOG_CSV,     /* also where the file's name ends in .csv, or its first line names such columns */
    GX_LOG_N_FORMS
} gx_log_form;

typedef enum gx_log_encoding {
    GX_LOG_AUTO,  /* a line is UTF-8 if it is valid UTF-8, else Latin-1 */
    GX_LOG_UTF8,  /* UTF-8; invalid bytes become U+FFFD */
    GX_LOG_LATIN1 /* Latin-1 */
} gx_log_encoding;

/* Find a form by its name ("guess", "efficiency", "tsv", ...), or an encoding ("auto", "utf-8",
 * "latin1"). false: there is none of that name. */
GX_API bool gx_log_form_find(const char *name, gx_log_form *out);
GX_API const char *gx_log_form_name(gx_log_form form);
GX_API bool gx_log_encoding_find(const char *name, gx_log_encoding *out);

typedef struct gx_log_counts {
    uint64_t queries, empty, bad; /* empty: queries without text; bad: refused lines */
    uint64_t blank;               /* lines of white space that were skipped, except those between topics */
    uint64_t comments;            /* comments that were skipped */
    uint64_t header;              /* 1: the first line named the columns */
    uint64_t more_columns;        /* lines of tsv whose columns behind the second were left out */
    uint64_t latin1;              /* lines (of docs and smart: texts) converted from Latin-1 */
    uint64_t invalid;             /* lines in which invalid UTF-8 was replaced */
    uint64_t nuls;                /* NUL bytes read as blanks */
    uint64_t repeated_ids;        /* queries whose id one of the first GX_LOG_KEPT_IDS has; 0 where unique is set */
    uint64_t filtered;            /* queries with a filter of their own */
    uint64_t operators;           /* queries with what gx_plain_operator finds */
} gx_log_counts;

/* Find in the text of a plain query what looks as if it were to change the search, which it does not: a quoted span, a
 * + or - before a word, a * or ~2 behind one. text[*begin, *end): the first of them. false: there is none. */
GX_API bool gx_plain_operator(const char *text, size_t len, size_t *begin, size_t *end);

#define GX_LOG_KEPT_IDS 65536u /* ids that are kept, in 1 MiB, to count repeated ones */

typedef struct gx_log_options {
    gx_log_form form;
    gx_log_encoding encoding;
    /* The columns of tsv or csv, such as "-,id,text,filter"; "text" may be repeated; "filter" is the
     * query's own filter. Without "id" a query's id is its position. NULL: those that the first line
     * names, else id,text. Refused (GX_EUSAGE) for logs of other forms. */
    const char *columns;
    const char *topic_fields; /* the text of topics: title, desc and narr, in any order. NULL: "title" */
    bool unique;              /* refuse a query whose id an earlier one has; takes 16 to 32 bytes a query */
    bool number;              /* a query's id is its position in the log, from 1, whatever the log has */
    /* The members of vectors, such as "id=qid,vector=weights", as gx_source_options.members has them. A log whose
     * form is guessed is of vectors then, unless it is a matrix. NULL: the usual ones. */
    const char *members;
} gx_log_options;
#define GX_LOG_OPTIONS                                                                                                 \
    {                                                                                                                  \
        GX_LOG_GUESS, GX_LOG_AUTO, NULL, NULL, false, false, NULL                                                      \
    }

#define GX_LOG_MAX_LINE (1u << 20) /* most bytes of a line or topic */
#define GX_LOG_MAX_ID 255u         /* most bytes of an id */

/* Read the queries of a log, and fill the GPU memory of an engine's lists (gx_engine_options.resident_memory)
 * with those that the residency policy keeps for such queries. opt may be NULL. *n_queries, which may
 * be NULL, receives the number of queries. Where all lists are in the memory that the engine searches,
 * nothing changes. Lines of the log that are bad are passed over. Searches may go on meanwhile.
 * Statuses of reading, GX_ENOMEM, GX_ECUDA. */
GX_API gx_status gx_engine_warm(gx_engine *en, const char *log, const gx_log_options *opt, uint64_t *n_queries,
                                gx_error *err);

/* A buffer that grows. All zero: empty; free(p) in the end. */
typedef struct gx_log_text {
    char *p; /* [n], and a NUL */
    size_t n, cap;
} gx_log_text;

/* Convert a line of n bytes to UTF-8 in b, as the lines of a log are converted, and count the
 * changes in counts. GX_ENOMEM. */
GX_API gx_status gx_log_convert(gx_log_text *b, const char *line, size_t n, gx_log_encoding encoding,
                                gx_log_counts *counts, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
