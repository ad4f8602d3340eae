/* query_context.h: an open index, how to search it, and how to print what is found: what `gpuidx
 * query` and its shell have in common. One thread.
 */
#ifndef GX_TOOLS_SHELL_QUERY_CONTEXT_H
#define GX_TOOLS_SHELL_QUERY_CONTEXT_H

#include "tools/cli/document_filter.h"
#include "tools/cli/facet_list.h"
#include "tools/cli/hybrid.h"
#include "tools/cli/output.h"
#include "tools/cli/search_flags.h"
#include "tools/cli/shown_list.h"
#include "tools/shell/vector_query.h"

/* Which page of each answer is shown, and in what order. */
typedef struct ask_page {
    char *sort;      /* NULL: by score */
    char *collapse;  /* NULL: no groups */
    uint64_t offset; /* results that are left out */
    char *after;     /* a cursor; NULL: none */
    bool shown;      /* the cursor of the next page is printed */
    bool kept;       /* it is kept, for the shell's .next */
    gx_page_end end; /* of the last answer */
} ask_page;

typedef struct ask {
    gx_index *ix;
    gx_engine *en;
    gx_session *session;
    gx_engine_options engine;
    gx_query_kind kind;       /* GX_QUERY_TEXT or GX_QUERY_BOOLEAN */
    gx_query_options options; /* whose mask is the filter's, on this engine */
    gx_rm3_options rm3;       /* fb_docs 0: queries are not expanded */
    document_filter filter;
    gx_filter_options ids; /* how id:@FILE in a boolean query is read */
    bool id_files;         /* also in queries that are not typed */
    facet_list facets;     /* what is counted beside each answer; n 0: nothing */
    shown_list shown;      /* attributes whose values are printed */
    ask_page page;
    gx_mask *mask;
    hybrid both;         /* of --engine=hybrid */
    gx_service *service; /* answers with --engine=hybrid; NULL: the session does */
    gx_processor by;     /* what answered last */
    out_format format;
    bool explain, timing, snippets;
    bool (*stop)(void *user); /* ends the printing of an answer; NULL: nothing does */
    bool name_queries;        /* human: the query stands above its results */
    uint64_t line;            /* of standard input that the query stands in, for messages; 0: none */
    const char *tag;
    double deadline;  /* seconds for a query; 0: no limit */
    bool skip;        /* a line of standard input that cannot be answered does not end the program */
    uint64_t *docids; /* [max_k] */
    double *scores;   /* [max_k] */
    uint32_t max_k;
    uint64_t n_asked;
    bool keeps_old;     /* the last commit cannot be opened, which has been told */
    bool told_fallback; /* that the CPU searches in place of a GPU that failed */
    double seconds;     /* of searching, all queries together */
    char *last;         /* the last query, for the shell's .explain */
    gx_query_kind last_kind;
    size_t last_len;
    vector_query vector;        /* the last query, where it is one */
    gx_weighted_term *expanded; /* the last query, where RM3 has expanded it; else NULL */
    uint32_t n_expanded;
} ask;

/* Open the index at path as the flags say. 0, or the exit code with the message printed; close in
 * either case. */
int ask_open(ask *k, const cli_args *a, const char *path);
void ask_close(ask *k);

/* Where more results are asked for than there are documents, say so. */
void ask_note_large_k(const ask *k);

/* Search on another engine from here on; the old one stays when that fails. */
int ask_set_engine(ask *k, gx_engine_kind kind);
const char *ask_engine_name(const ask *k); /* "cpu" or "gpu"; of hybrid what answered last */

/* Search only the documents of these files of ids and of this expression from here on
 * (document_filter.h; NULL: none). The old filter stays when that fails. */
int ask_set_filter(ask *k, const char *only, const char *except, const char *expression);

/* Count these facets and sums beside each answer from here on (facet_list.h; NULL: none). The old ones stay when
 * that fails. */
int ask_set_facets(ask *k, const char *text, const char *sums);

/* Order results so from here on, as in "price:desc,year" (NULL: by score). The old order stays when that fails. */
int ask_set_sort(ask *k, const char *text);

/* Show one result of each value of an attribute from here on, as in "brand:3" (NULL: all results). The old groups stay
 * when that fails. */
int ask_set_collapse(ask *k, const char *text);

/* Show the next page of the last query. */
int ask_next(ask *k);

/* Print the values of these attributes from here on (shown_list.h; NULL: of none). The old ones stay when that fails.
 * */
int ask_set_shown(ask *k, const char *text);

/* Answer a query on stdout, of a collection by its last commit. 0, or the exit code with the
 * message printed; *n_hits the number of results. A cancelled search says so and is 0. */
int ask_query(ask *k, const char *qid, size_t qid_len, const char *text, size_t len, uint32_t *n_hits);

/* Tell that the query of k->line is refused, and why (err: GX_EINPUT, GX_EUSAGE, ...). 0: it is passed over; else the
 * exit code. */
int ask_refuse_line(const ask *k, const gx_query *asked, const char *qid, size_t qid_len, const gx_error *err);

/* Explain the last query's score of one document. */
int ask_explain(ask *k, uint64_t docid);

#endif
