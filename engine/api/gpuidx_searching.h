/* gpuidx_searching.h: what a search may have beside gx_search: filters, facets, snippets, explanations,
 * relevance feedback, and what it did. Part of gpuidx_advanced.h. */
#ifndef GPUIDX_SEARCHING_H
#define GPUIDX_SEARCHING_H

#include "gpuidx.h"
#include "gpuidx_expansion.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fields ---- */

/* How an index with fields (gx_builder_options.fields) is searched field by field. `fields` names those that are
 * searched, with their weights, "title^3,text:b=0.4": ^W, 0 to 1,000,000, 1 unless given; :b=B, 0 to 1, unless given
 * that of the options. NULL: all fields, each of weight 1. A document matches where one of these fields has the word.
 * The scoring is one of these, each times k1 + 1 where the scorer is; see gx_preset:
 *
 *   GX_FIELDS_BM25F   sum over terms of idf * tf' / (tf' + k1),  tf' = sum over fields of weight * tf / norm
 *   GX_FIELDS_SUM     sum over fields of weight * (sum over terms of idf_f * x / (x + k1)),  x = tf / norm
 *   GX_FIELDS_BEST    the greatest over fields of weight * (sum over terms of idf_f * x / (x + k1))
 *
 * norm is 1 - b + b * len / avglen; tf and len are those of the field in the document, avglen the mean over all
 * documents. idf is the scorer's by the number of documents that have the term in one of the fields, idf_f by the
 * number of those that have it in this field. k1 and b NaN: the preset's own. BM25F lets a word count once, however
 * many fields it stands in; `sum` and `best` score each field by itself, as the types most_fields and best_fields of
 * Elasticsearch's multi_match do. What matches is the same in all three: AND wants each word in one of the fields.
 *
 * What stands beside idf is rounded to a multiple of 2^-23, at least 1, in a fixed order of steps of single precision
 * (index/fields/view.h), so that every engine, thread count, batch and number of segments gives the same bits.
 *
 * The view is an index of the same documents, ids, attributes and texts, on which an engine is opened as on any other;
 * gx_query_options.preset must be a BM25 scorer then (of GX_FIELDS_SUM and GX_FIELDS_BEST, the view's), and its k1
 * and b are NaN or those of the view. It makes a list when a query first asks for it, in 3 to 5 bytes a posting of
 * memory, and keeps it until it is closed: the first query of a word is slower, by some ns a posting. Keep views that
 * are used again. An engine of GX_ENGINE_AUTO is the CPU; GX_ENGINE_GPU makes all lists first. `approximate` has no
 * effect on GX_FIELDS_BEST, which is exact. Of an index with positions phrases can be searched, on the CPU: they have
 * all their words in one field, and are words whose tf in a field is the number of matches there, and whose idf is the
 * sum of their words'. A view keeps up to 65,536 different phrases; one more is GX_EUSAGE (gx_view_is_worn). Filters
 * of the index are good for its views, too. The index stays open as long as the view.
 */
typedef enum gx_field_scoring { GX_FIELDS_BM25F, GX_FIELDS_BEST, GX_FIELDS_SUM } gx_field_scoring;
#define GX_N_FIELD_SCORINGS 3
GX_API const char *gx_field_scoring_name(gx_field_scoring s); /* "bm25f", "best", "sum"; "?" of others */
GX_API bool gx_field_scoring_find(gx_field_scoring *out, const char *name);

typedef struct gx_view_options {
    size_t size;
    const char *fields;
    gx_preset preset; /* whose k1 and b count where they are not given */
    float k1, b;
    gx_field_scoring scoring;
} gx_view_options;
#define GX_VIEW_OPTIONS                                                                                                \
    {                                                                                                                  \
        sizeof(gx_view_options), NULL, GX_BM25, NAN, NAN, GX_FIELDS_BM25F                                              \
    }
GX_API void gx_view_options_init(gx_view_options *o, size_t size);

/* GX_EUSAGE: the index has no fields, a field does not exist (the message has the nearest name), a weight, k1 or b
 * is out of its range. GX_ENOMEM. */
GX_API gx_status gx_index_open_view(gx_index **out, gx_index *ix, const gx_view_options *opt, gx_error *err);

/* Whether half of the phrases that a view can keep are taken: it should be opened anew. */
GX_API bool gx_view_is_worn(const gx_index *view);

/* The i-th field: its name, NULL where there are no more, and the sum of its lengths (may be NULL). */
GX_API const char *gx_index_field(const gx_index *ix, uint32_t i, uint64_t *n_tokens);

/* How many documents have the term in each field, dfs[fields]; 0 in all: the index lacks it. GX_EUSAGE: it has
 * no fields. GX_ENOMEM, GX_ECORRUPT. */
GX_API gx_status gx_index_field_dfs(const gx_index *ix, const char *term, size_t len, uint64_t *dfs, gx_error *err);

/* ---- filters: expressions over attributes ---- */

/* A filter is a set of documents, given by an expression over the attributes of an index:
 *
 *   year:[2015 TO 2019] AND category:cs.IR AND NOT id:@list.txt AND price:<20 AND has:doi
 *
 * The manual page gpuidx-query(1) describes the syntax. A query may have a filter of its own
 * (gx_query.filter), and one of kind GX_QUERY_BOOLEAN conditions in its text; gx_mask_open makes a
 * mask, for all queries of a call, of a filter's words. A filter does not change: threads may share it. */

typedef struct gx_filter_options {
    size_t size;
    /* Called for each id:@FILE of the expression. It sets the bit of each document whose id the
     * file contains in words[ceil(n_docs / 64)], which are 0 before. If it fails, gx_filter_open
     * returns its status. NULL: gx_filter_open refuses id:@FILE. */
    gx_status (*read_ids)(void *user, const char *file, uint64_t *words, gx_error *err);
    void *user;
} gx_filter_options;
#define GX_FILTER_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_filter_options), NULL, NULL                                                                          \
    }
GX_API void gx_filter_options_init(gx_filter_options *o, size_t size);

/* Read an expression of len bytes. ix must outlive the filter. opt may be NULL. GX_EUSAGE: the
 * message names the column, in characters from 1, and for an unknown attribute the nearest one;
 * parentheses nest more than 64 levels deep, or there are more than 16,384 conditions.
 * GX_ENOMEM. */
GX_API gx_status gx_filter_open(gx_filter **out, const gx_index *ix, const char *text, size_t len,
                                const gx_filter_options *opt, gx_error *err);
GX_API void gx_filter_close(gx_filter *f); /* NULL is fine */

/* The filter in a canonical form, which does not depend on blanks, on quotes, or on parentheses
 * around one operand. Filters of equal texts select the same documents of an index, unless a
 * file of ids changes. [*len] bytes, which belong to the filter. */
GX_API const char *gx_filter_text(const gx_filter *f, size_t *len);

/* The documents that the filter selects: bit d % 64 of words[d / 64] is set for document d, and no
 * bit at n_docs and above. *n receives their number, UINT32_MAX where there are more, and may be NULL.
 * Takes a pass over the column of each condition. GX_ENOMEM. */
GX_API gx_status gx_filter_evaluate(const gx_filter *f, uint64_t *words /* [ceil(n_docs / 64)] */, uint32_t *n,
                                    gx_error *err);

/* ---- facets: the documents that match, counted by an attribute ---- */

/* How the values of an attribute are divided into groups. */
typedef enum gx_facet_grouping {
    GX_FACET_VALUES, /* a group a value, and of a date a group a year */
    GX_FACET_YEARS,  /* of a date, in UTC */
    GX_FACET_MONTHS,
    GX_FACET_DAYS,
    GX_FACET_BINS,      /* of int, float and date: `bins` ranges of the same width, from the least value that a match
                     * has to the greatest; fewer where there are fewer whole numbers between them */
    GX_FACET_WIDTH,     /* of int and float: ranges of this width, one of which begins at 0; those that have a match */
    GX_FACET_STORED,    /* of int, float and date: the bins of the bitmap columns; of an index of one file that has
                      * them */
    GX_FACET_QUANTILES, /* of int, float and date: `bins` ranges that have about as many of the matches' values each.
                         * Of n values in order, range i begins at value number ceil(i n / bins), from 0; ranges that
                         * begin at equal values are one */
    GX_FACET_ALL        /* all matches are one group; no attribute is named */
} gx_facet_grouping;

typedef enum gx_facet_order {
    GX_FACET_BY_COUNT, /* the largest count first; of equal counts, the smaller value first */
    GX_FACET_BY_VALUE
} gx_facet_order;

/* What is counted. */
typedef struct gx_facet {
    size_t size;
    const char *name; /* of the attribute; [name_len] bytes */
    size_t name_len;
    uint32_t n; /* most groups that are returned, the first of the order; 0: all */
    gx_facet_grouping grouping;
    gx_facet_order order;
    uint32_t bins;             /* of GX_FACET_BINS and GX_FACET_QUANTILES: 1 to GX_MAX_BINS */
    double width;              /* of GX_FACET_WIDTH: above 0; of int a whole number */
    const struct gx_sum *sums; /* [n_sums], of each group's matches (gpuidx_sums.h); those of the first size, or NULL */
    uint32_t n_sums;
    const struct gx_facet *inner; /* counts the matches of each group; it has no sums and no inner. NULL: none */
    bool exclude_own; /* the conditions of the query's filter on this attribute are left out, so that other values than
                       * those that were chosen are counted: gx_filter_without. n_present + n_missing are the matches
                       * then. Conditions in the query's text and options.mask stay */
} gx_facet;
#define GX_FACET                                                                                                       \
    {                                                                                                                  \
        sizeof(gx_facet), NULL, 0, 10, GX_FACET_VALUES, GX_FACET_BY_COUNT, 0, 0, NULL, 0, NULL, false                  \
    }

/* Read a facet from a text such as "category", "category:20" or "price:bins=10": the name, and behind
 * colons the number of groups (10), or all; by=year, month or day; bins=1 to GX_MAX_BINS; width=X;
 * bins=stored; quantiles=1 to GX_MAX_BINS; order=count or value; exclude-own. bins, width and quantiles mean all
 * groups, by value, unless the text says otherwise. out->name points into the text. GX_EUSAGE; also where the text has
 * figures or an inner facet, which gx_facet_list_read (gpuidx_sums.h) reads. */
GX_API gx_status gx_facet_read(gx_facet *out, const char *text, gx_error *err);

/* A group and its documents. */
typedef struct gx_facet_group {
    /* [len] bytes, NUL behind them: of a keyword the string, else what stands behind NAME: in a filter that
     * selects the group: 2019, true, 2019-05, [0 TO 9], [0.5 TO 1} */
    const char *text;
    size_t len;
    uint64_t count;
    int64_t first, last; /* of int, date (seconds since 1970) and bool: its values */
    double low, high;    /* of float: its values, without `high` where the text ends with } */
} gx_facet_group;

/* The answer of one facet. */
typedef struct gx_facet_answer {
    const char *name; /* [name_len] bytes */
    size_t name_len;
    gx_attribute_type type;
    uint64_t n_present, n_missing;       /* matches that have a value; that have none */
    uint64_t n_groups;                   /* all that have a match, and bins without one */
    uint32_t n;                          /* groups that are returned */
    const gx_facet_group *groups;        /* [n] */
    uint32_t n_sums;                     /* of each group: gx_facet_figures */
    const struct gx_figures *figures;    /* [n * n_sums] */
    const struct gx_facet_answer *inner; /* [n], or NULL: gx_facet_inner */
} gx_facet_answer;

typedef struct gx_facets gx_facets;

/* Count all documents that match a query, not only the best k, by n facets. What matches is what
 * gx_results.n_matches counts, under the options' mask and the query's filter, without deleted documents.
 * A document of several values is counted once in each group that has one of them. Counts are exact and
 * the same of every engine. The CPU makes one pass over the lists of the query, in which the matches become
 * bits, and for each facet a pass over the values of the matches, or over the attribute's bitmap columns where
 * that takes less time. A GPU's session counts on the GPU where that is expected to take less time. The first
 * facet of an attribute copies it there: 1, 2 or 4 bytes for each value of a document. Where the index is a
 * collection, a facet has more than 2^20 groups or is GX_FACET_BINS of several values a document, or device_memory
 * has no room, the CPU counts. It does not search: k and scorer matter for GX_OP_AND_OR alone. Call gx_search
 * without options.count beside it. Memory while it runs: two bits a document, and 4 bytes for each string of a
 * keyword.
 *
 * The answer has its own copy of all texts, and is closed with gx_facets_close. opt may be NULL.
 * GX_EUSAGE (as gx_search; no such attribute, with the nearest one; a grouping that the type does not
 * have; an engine of a shard), GX_ENOMEM, GX_ECANCELLED, GX_EDEADLINE. */
GX_API gx_status gx_count_facets(gx_facets **out, gx_session *s, const gx_query *query, const gx_query_options *opt,
                                 const gx_facet *facets /* [n] */, uint32_t n, gx_error *err);
/* The same of n queries, each as large as the first says: out[i] is the answer to queries[i]. A GPU takes much less
 * time for many queries together than for one at a time. After a failure all of out[n] are NULL. */
GX_API gx_status gx_count_facets_batch(gx_facets **out /* [n] */, gx_session *s, const gx_query *queries, uint32_t n,
                                       const gx_query_options *opt, const gx_facet *facets /* [n_facets] */,
                                       uint32_t n_facets, gx_error *err);
/* The same of a set of documents of an index: bit d % 64 of words[d / 64] is set for document d, as
 * gx_filter_evaluate sets it. */
GX_API gx_status gx_count_facets_of(gx_facets **out, const gx_index *ix,
                                    const uint64_t *words /* [ceil(n_docs / 64)] */, const gx_facet *facets, uint32_t n,
                                    gx_error *err);
/* Check facets, as gx_count_facets does, before there is a query. */
GX_API gx_status gx_facets_check(const gx_index *ix, const gx_facet *facets, uint32_t n, gx_error *err);
GX_API uint64_t gx_facets_n_matches(const gx_facets *f);
GX_API const gx_facet_answer *gx_facets_get(const gx_facets *f, uint32_t i); /* i < n; it belongs to f */
GX_API void gx_facets_close(gx_facets *f);                                   /* NULL is fine */

/* ---- the same queries by several scorers ---- */

typedef struct gx_scorer_choice {
    gx_preset preset;
    float k1, b; /* NaN: the preset's own */
} gx_scorer_choice;

/* Search for queries[n] by each of scorers[n_scorers], whose answers go to results[i], as gx_search gives them; of opt,
 * preset, k1 and b count for nothing. Stops at the first scorer that fails, of which the message tells the number. */
GX_API gx_status gx_search_scorers(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *opt,
                                   const gx_scorer_choice *scorers, uint32_t n_scorers, const gx_results *results,
                                   gx_error *err);

/* ---- answers that need not be exact ---- */

/* Set o's approximate and block_budget as a text says: a number from 0 to 1, which is approximate; or, separated by a
 * comma, each at most once and in any order, "terms:X" (approximate, 0 to 1) and "blocks:N" (block_budget, 1 to
 * 2^32 - 1). What the text does not name is off. GX_EUSAGE: *o is unchanged; o->size does not reach block_budget, or
 * the error says what of the text is wrong. */
GX_API gx_status gx_approximate_read(gx_query_options *o, const char *text, gx_error *err);

#define GX_APPROXIMATE_BYTES 96u
/* Write to text[GX_APPROXIMATE_BYTES], ending with 0, what gx_approximate_read reads: a number where no other than
 * approximate is set, "0" where answers are exact, else those that are set. o is full-sized. */
GX_API void gx_approximate_write(const gx_query_options *o, char *text);

/* ---- a number of each document in its score ---- */

/* Read a prior from a text such as "pagerank:w=0.3" or "pagerank:w=0.3,form=sat,half=10": the attribute's name, and
 * behind a colon, with commas between, w=X (above 0; 1), form=log, sat or linear (log), half=X (above 0; 1).
 * GX_EUSAGE. */
GX_API gx_status gx_prior_read(gx_prior *out, const char *text, gx_error *err);
/* Whether a search of the index takes it. GX_EUSAGE: there is no such attribute, with the nearest one; it is of another
 * type than int and float; the weight, half or form is none. */
GX_API gx_status gx_prior_check(const gx_prior *prior, const gx_index *ix, gx_error *err);
#define GX_PRIOR_BYTES 192u
/* Write to text[GX_PRIOR_BYTES], ending with 0, what gx_prior_read reads; "off" where there is none. */
GX_API void gx_prior_write(const gx_prior *prior, char *text);

/* ---- pairs of words ---- */

/* Read the weights of gx_sdm from "0.85,0.1,0.05", "on", which is the same, or "off". GX_EUSAGE. */
GX_API gx_status gx_sdm_read(gx_sdm *out, const char *text, gx_error *err);
/* Whether a search of the index takes these options' pairs. GX_EUSAGE. opt is full-sized. */
GX_API gx_status gx_sdm_check(const gx_query_options *opt, const gx_index *ix, gx_error *err);
#define GX_SDM_BYTES 96u
/* Write to text[GX_SDM_BYTES], ending with 0, what gx_sdm_read reads. */
GX_API void gx_sdm_write(const gx_sdm *sdm, char *text);

/* ---- snippets: the part of a document's text that best shows why it was found ---- */

/* A highlighter holds the terms of one query, each with a weight, which is greater for rarer
 * terms. A snippet is the stretch of about max_words words whose different terms have the
 * greatest sum of weights, and the earliest of several such stretches. Words are separated by
 * white space. They match after the index's own analysis, so "indexing" is marked for "index". */
typedef struct gx_highlighter gx_highlighter; /* of one query; belongs to one thread */

#define GX_MAX_MARKS 64u      /* most words marked in a snippet */
#define GX_SNIPPET_BYTES 480u /* most bytes of one; text without white space is cut between characters */

typedef struct gx_snippet {
    size_t begin, end; /* bytes of the text, at character boundaries where it is valid UTF-8 */
    uint32_t n_marks;
    struct {
        size_t begin, end; /* bytes of the text, inside the snippet, rising */
    } marks[GX_MAX_MARKS];
} gx_snippet;

/* Open the highlighter of a query of any kind; of GX_QUERY_BOOLEAN it takes the words that are not
 * negated. The query is copied. GX_EUSAGE (query's size, the boolean syntax), GX_ENOMEM. */
GX_API gx_status gx_highlighter_open(gx_highlighter **out, const gx_index *ix, const gx_query *query, gx_error *err);
/* The same with the options of the query's search, of which `expansion` counts; NULL: defaults. */
GX_API gx_status gx_highlighter_open_options(gx_highlighter **out, const gx_index *ix, const gx_query *query,
                                             const gx_query_options *options, gx_error *err);

/* Words of the query that stand for several, in the query's order, and what each stands for; i < n_patterns. The word
 * is added to *pattern. */
struct gx_text;
GX_API uint32_t gx_highlighter_n_patterns(const gx_highlighter *h);
GX_API const gx_expansion *gx_highlighter_pattern(const gx_highlighter *h, uint32_t i, struct gx_text *pattern);
GX_API void gx_highlighter_close(gx_highlighter *h);

/* The number of different terms of the query, and the number of those that the index lacks. */
GX_API uint32_t gx_highlighter_n_terms(const gx_highlighter *h);
GX_API uint32_t gx_highlighter_n_unknown(const gx_highlighter *h);
/* The i-th term that the index lacks, i < n_unknown; NUL-terminated. */
GX_API const char *gx_highlighter_unknown(const gx_highlighter *h, uint32_t i);
/* What may be meant by it: at most n words, as gx_index_suggest finds them. Free *out with gx_expansion_free. */
GX_API gx_status gx_highlighter_suggest(gx_expansion **out, const gx_highlighter *h, uint32_t i, uint32_t n,
                                        gx_error *err);

/* Find the snippet of a text. max_words >= 1. If no word matches, it is the beginning of the
 * text. */
GX_API gx_status gx_highlighter_snippet(gx_highlighter *h, const char *text, size_t len, uint32_t max_words,
                                        gx_snippet *out, gx_error *err);

/* ---- explanations: the formula of a document's score with its numbers, term by term ---- */

/* The caller's thread reads the numbers from the lists with code that no engine uses. The score is
 * that of gx_search to the bit. */
typedef struct gx_explain_term {
    const char *term; /* the index's bytes; of a phrase its text, as in "new york"~2 */
    size_t term_len;
    uint64_t df;     /* of a phrase: documents that match it */
    double qtf;      /* how often the query contains the term, or the weight that the query gives it */
    uint32_t tf;     /* 0: the document lacks the term */
    double idf;      /* as the preset has it, without qtf; 1 where it has none; of a phrase the sum of its words' */
    double unit;     /* of the list's impacts (gx_index_stats.impact_unit); 1 where the index holds tfs */
    double weight;   /* idf, times k1 + 1 where the preset has it, times qtf, times unit */
    uint32_t impact; /* fixed point; 0 if tf is 0 */
    float score;     /* impact * 2^-exponent */
    /* Of a view of fields: tf of each, [n_fields]; and tf is what stands beside idf, in units, of which `unit` is one.
     * With GX_FIELDS_SUM and GX_FIELDS_BEST `unit` has the idfs in it, and idf is 1. */
    const uint32_t *field_tfs;
    const uint64_t *field_dfs; /* [n_fields] documents that have the term in each; NULL: of GX_FIELDS_BM25F */
} gx_explain_term;

/* A field of a view: how it is weighed, and its length in the document. */
typedef struct gx_explain_field {
    const char *name;
    bool used;
    double weight, b, avglen;
    uint32_t len;
    uint32_t sum; /* of GX_FIELDS_BEST: its score, in fixed point */
} gx_explain_field;

typedef struct gx_explanation {
    uint64_t docid, n_docs;
    uint32_t dl, counted_dl; /* counted_dl: dl, or what the preset keeps of it */
    double avgdl, k1, b;     /* k1, b: 0 where linear */
    float K;                 /* k1 (1 - b + b counted_dl / avgdl), in single precision as it is used; 0 where linear */
    bool times_k1;           /* the preset multiplies by k1 + 1 */
    bool linear;             /* the preset's score is weight * tf: it has no k1, b and K */
    const char *preset, *formula;
    int exponent;
    uint32_t n_unknown; /* different terms of the query that the index lacks */
    uint32_t n_terms;
    gx_explain_term *terms; /* [n_terms], by rising df */
    uint32_t sum;           /* of the impacts */
    float score;            /* (sum + prior_impact) * 2^-exponent: what gx_search returns */
    gx_prior prior;         /* weight 0: there is none */
    bool has_prior;         /* the document has a value of it, */
    double prior_value;     /* this one, */
    uint64_t prior_impact;  /* which adds this, in fixed point */
    uint32_t n_fields;      /* of a view of fields, else 0 */
    gx_explain_field *fields; /* [n_fields] */
    gx_field_scoring field_scoring;
    uint32_t best_field; /* of GX_FIELDS_BEST: the number of the field that counts, whose lists `terms` has */
} gx_explanation;

/* Explain the score of a document for a query. docid < n_docs. The function does not test
 * whether the document matches under opt->op. Free with gx_explanation_free. GX_EUSAGE as
 * gx_search, GX_ENOMEM. */
GX_API gx_status gx_explain(gx_explanation *out, const gx_index *ix, const gx_query *query, const gx_query_options *opt,
                            uint64_t docid, gx_error *err);
GX_API void gx_explanation_free(gx_explanation *e); /* accepts a zeroed one */

/* ---- relevance feedback: a query with the terms of its best documents added ---- */

/* RM3, as Anserini defines it. Let q be the query, lambda its weight.
 *
 *   1. gx_search finds the fb_docs best documents d of q, with their scores.
 *   2. The terms of d are those of its title and text, analysed as the build did. Left out are
 *      terms of fewer than 2 or more than 20 bytes, terms with other characters than a to z and
 *      0 to 9, and terms that more than a tenth of all documents contain. The fb_terms of
 *      greatest tf are kept; p(t|d) is tf / (sum of their tfs).
 *   3. The weight of t is the sum over d of p(t|d) score(d). The fb_terms heaviest terms are
 *      kept, and their weights are divided by their sum.
 *   4. The expanded query gives t the weight
 *      lambda (how often q contains t) / (terms of q) + (1 - lambda) (weight of t).
 *
 * Of terms with equal tfs or weights, those first in byte order are kept. (Anserini computes in
 * single precision and leaves that order to a hash table; this computes in double precision.) */
typedef struct gx_rm3_options {
    size_t size;
    uint32_t fb_docs;  /* feedback documents, 1 to GX_RM3_MAX_DOCS */
    uint32_t fb_terms; /* feedback terms, 1 to GX_MAX_TERMS */
    double weight;     /* lambda, 0 to 1: how much the original query counts */
} gx_rm3_options;
#define GX_RM3_MAX_DOCS 1000u
#define GX_RM3_OPTIONS                                                                                                 \
    {                                                                                                                  \
        sizeof(gx_rm3_options), 10, 10, 0.5                                                                            \
    }
GX_API void gx_rm3_options_init(gx_rm3_options *o, size_t size);

/* Expand a query of kind GX_QUERY_TEXT or GX_QUERY_TERMS. The session belongs to an engine on
 * ix. opt are the options of the first search, mask and cancel function included; its k is
 * ignored. *out receives an array of *n terms by falling weight, with their bytes in the same
 * allocation, which the caller frees with free(*out). Search for it with a query of kind
 * GX_QUERY_TERMS and GX_OP_OR. Both engines give the same terms and weights. opt and rm3 may be
 * NULL. GX_EUSAGE; GX_ENOTFOUND: the index does not store the texts, or not all that it indexed;
 * GX_ENOMEM, and what gx_search returns. */
GX_API gx_status gx_rm3_expand(gx_weighted_term **out, uint32_t *n, gx_session *s, const gx_index *ix,
                               const gx_query *query, const gx_query_options *opt, const gx_rm3_options *rm3,
                               gx_error *err);

/* ---- what the searches of a session did ---- */

/* The steps of Ding et al.'s algorithms. */
typedef enum gx_step {
    GX_STEP_INITIALIZE,
    GX_STEP_DECOMPRESS,
    GX_STEP_INTERSECT,
    GX_STEP_SCORE,
    GX_STEP_TOP_K,
    GX_N_STEPS
} gx_step;

/* The stages of a search. */
typedef enum gx_search_stage {
    GX_SEARCH_COPY_IN, /* plan, and copy the plans to the GPU */
    GX_SEARCH_SCORE,
    GX_SEARCH_SELECT, /* of the scored documents, the best k */
    GX_SEARCH_COPY_OUT,
    GX_N_SEARCH_STAGES
} gx_search_stage;

/* What searches did: counts and times, summed over their queries. */
typedef struct gx_search_stats {
    uint64_t postings; /* sum of the plans' dfs: what an exhaustive engine touches */
    uint64_t blocks;   /* sum of the plans' blocks */
    /* How often docids of a block were decoded; small batches on a GPU are not counted. An engine
     * can decode a block again later, so this can be greater than blocks. */
    uint64_t blocks_decoded;
    uint64_t lookups;        /* exact look-ups of a docid in a list */
    uint64_t and_fell_to_or; /* AND-then-OR queries that needed OR */
    /* With a GPU. parts: sub-batches, each of which is copied to the GPU, searched and copied back
     * by itself. waits: how often the host waited for the GPU, normally once for each sub-batch.
     * allocations: how often device or pinned memory was allocated or freed during searches. */
    uint64_t parts, waits, allocations;
    /* Queries answered from the result cache (gx_engine_options); nothing else here counts them. */
    uint64_t cached;
    uint64_t linger_hits; /* single queries answered by a kernel that lingered after an earlier query */
    /* By gx_search_stage; 0 if not measured, as for small batches on a GPU. Sub-batches overlap
     * on a GPU, so the stages can add up to more than the time that passed. */
    double seconds[GX_N_SEARCH_STAGES];
    double steps[GX_N_STEPS]; /* seconds by gx_step; 0 for a search by GX_ALGORITHM_AUTO that prunes */
    /* Searches under a mask or filter, by what came first: the documents that it allows, which were
     * looked up in the lists; or the lists, of which candidates were looked up in a mask, or tested by
     * a filter's values. */
    uint64_t driven, masked, tested;
    uint64_t binned; /* of all these, those that first looked postings up in a map of a range of values (GPU) */
    /* With a GPU engine whose payload is in host memory (gx_engine_options.resident_memory), else 0: the
     * lists of the queries and their bytes; those of them that were in GPU memory; and queries whose
     * lists were all there. */
    uint64_t lists, resident_lists, list_bytes, resident_bytes, resident_queries;
} gx_search_stats;

/* What the session's searches did, summed since it was opened. The struct belongs to the session
 * and lives as long. It changes during a search, so only the session's thread may read it. */
GX_API const gx_search_stats *gx_session_stats(const gx_session *s);

#ifdef __cplusplus
}
#endif
#endif
