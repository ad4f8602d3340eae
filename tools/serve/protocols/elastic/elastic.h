/* elastic.h: what the files of Elasticsearch's protocol share.
 *
 *   query.c    the query of a body, Query DSL, becomes a search of ours
 *   fields.c   by which fields words are searched
 *   search.c   _search, _msearch, _count: bodies and answers
 *   aggs.c     aggs become facets, and searches of their own
 *   buckets.c  answers of facets and of these searches become buckets
 *   show.c     _source, fields, highlight and _explanation of a hit
 *   docs.c     _doc, _mget
 *   info.c     /, _cat, _cluster, _mapping, HEAD
 *   write.c    _doc, _create, _update, _bulk and _refresh of collections
 *
 * Fields: an index has one field of text, called text, title, contents and _all; its attributes are fields too. An
 * index that was built with fields has those, and contents and _all are all of them as one text. */
#ifndef GX_SERVE_PROTOCOLS_ELASTIC_H
#define GX_SERVE_PROTOCOLS_ELASTIC_H

#include "tools/serve/protocols.h"

/* ---- queries ---- */

/* By which fields the words of a request are searched (fields.c). */
typedef struct dsl_fields {
    enum { DSL_FIELDS_NONE, DSL_FIELDS_EACH, DSL_FIELDS_SET } kind; /* as one text; one by one, title:(a); by `set` */
    bool whole;                                                     /* words of all text are among them */
    char set[1024];                                                 /* "title^3,text" */
    gx_field_scoring scoring;
} dsl_fields;

bool elastic_has_fields(const gx_index *ix);
bool elastic_is_field(const gx_index *ix, const char *name);
/* Words of all text, of one field, of a set of weighted fields are used. false: they do not go with those before, and
 * the reader's fault is set. */
bool dsl_use_text(reader *r, dsl_fields *f);
bool dsl_use_each(reader *r, dsl_fields *f);
bool dsl_use_set(reader *r, dsl_fields *f, const char *set, gx_field_scoring scoring);
/* Let a plan search by them. */
bool dsl_open_fields(reader *r, exchange *x, const dsl_fields *f, plan *p);

/* What multi_match and its like say of fields. */
typedef struct multi_fields {
    const gx_index *ix; /* set before they are read, as are scoring and breaker */
    gx_text set;        /* "title^3,text"; ends in NUL once it is settled */
    uint32_t n;
    gx_field_scoring scoring;
    double breaker; /* tie_breaker; below 0: none is given */
} multi_fields;
bool multi_read_fields(reader *r, const json_t *value, void *multi);
bool multi_read_type(reader *r, const json_t *value, void *multi);
bool multi_read_breaker(reader *r, const json_t *value, void *multi);
bool multi_settle(reader *r, multi_fields *m, gx_op op);

/* A query: documents that match the words, which score, and meet the conditions. */
typedef struct dsl_query {
    gx_text words;      /* in the boolean syntax, as one expression; empty: no words */
    gx_text conditions; /* in the syntax of filters, as one expression; empty: no conditions */
    const char *plain;  /* [plain_len] where the words are no more than a text whose words are searched for, or NULL */
    size_t plain_len;
    gx_op op;          /* of plain */
    dsl_fields fields; /* of a whole request */
} dsl_query;

/* Read the query where the reader stands. false: the fault is set. Free it in either case. */
bool dsl_read(reader *r, exchange *x, const json_t *query, dsl_query *out);
/* The same of what selects documents and does not score: words are refused. */
bool dsl_read_filter(reader *r, exchange *x, const json_t *query, dsl_query *out);
void dsl_free(dsl_query *q);
/* Read "a query in a line", of the parameter q. */
bool dsl_read_string(exchange *x, const char *text, gx_op op, dsl_query *out);

bool elastic_is_text(const char *field);

/* suggest.c: check "suggest" of a search; false: the fault is set. Then write it, behind a comma; NULL: nothing. */
bool suggest_check(reader *r, exchange *x, const json_t *suggest);
void suggest_put(gx_text *t, exchange *x, const json_t *suggest, fault *f);
/* The number of an attribute; UINT32_MAX: there is none of this name. */
uint32_t elastic_attribute(const gx_index *ix, const char *name, gx_attribute_info *info);

/* ---- what is shown ---- */

typedef struct source_options {
    bool none; /* no _source */
    bool id, title, text;
    uint64_t attributes; /* bit i: attribute i */
    bool chosen;         /* only what is set above; else all but the id */
    const gx_index *ix;  /* set before it is read */
} source_options;

typedef struct highlight_options {
    bool text, title, escape;
    uint32_t words; /* of the fragment of the text; UINT32_MAX: all */
    const char *pre, *post;
} highlight_options;

bool source_read(reader *r, const json_t *value, void *source);
/* "title,text", "true" or "false", of a parameter. */
bool source_read_text(exchange *x, const char *text, source_options *out);
/* Read "highlight" into *to, a highlight_options. */
bool highlight_read(reader *r, const json_t *value, void *to);
/* Add ,"_source":{...} of a document. */
gx_status source_write(gx_text *t, const gx_index *ix, uint64_t docid, const source_options *o, gx_error *err);
gx_status highlight_write(gx_text *t, const gx_index *ix, uint64_t docid, gx_highlighter *marks,
                          const highlight_options *o, gx_error *err);

/* Add ,"fields":{...} of the attributes whose bits are set. */
gx_status fields_write(gx_text *t, const gx_index *ix, uint64_t docid, uint64_t fields, gx_error *err);
/* Add ,"_explanation":{...} of a hit of a search. */
gx_status explanation_write(gx_text *t, const gx_index *ix, const search *s, uint32_t hit, gx_error *err);

/* ---- aggregations ---- */

typedef enum agg_kind {
    AGG_TERMS,
    AGG_HISTOGRAM,
    AGG_DATES,
    AGG_MIN,
    AGG_MAX,
    AGG_SUM,
    AGG_AVG,
    AGG_STATS,
    AGG_COUNT,
    AGG_DISTINCT,
    AGG_PERCENTILES,
    AGG_RANGE,
    AGG_DATE_RANGE,
    AGG_FILTER,
    AGG_FILTERS
} agg_kind;

/* A bucket of ranges and filters: a search of its own counts it. */
typedef struct agg_part {
    const char *key; /* of filters and of ranges that have one; or NULL */
    const json_t *from, *to;
    gx_text conditions;
    size_t search; /* its number in the exchange */
} agg_part;

typedef struct agg {
    const char *name; /* of the reply */
    agg_kind kind;
    bool typed_dates; /* the attribute is a date */
    bool keep_empty;  /* buckets without a document, between others */
    bool keyed;       /* buckets are an object */
    uint64_t min_count;
    gx_facet facet; /* its sums are NULL, of one that has n_sums: */
    gx_sum sum;
    agg_part *parts; /* [n_parts] of ranges and filters */
    uint32_t n_parts;
    struct agg *subs; /* [n_subs] of each bucket */
    uint32_t n_subs;
} agg;

enum { MAX_AGGS = 32, MAX_PARTS = 256, MAX_BUCKETS = 65536 };
typedef struct aggs {
    agg *all; /* [n] */
    uint32_t n;
    exchange *x; /* set before they are read */
} aggs;

/* Read "aggs" into *to, an aggs whose exchange is set. */
bool aggs_read(reader *r, const json_t *value, void *to);
void aggs_free(aggs *a);
/* Make the facets of a plan. */
bool aggs_set_facets(exchange *x, const agg *all, uint32_t n, plan *p);
/* Add the searches that count ranges and filters: as the exchange's search of that number, and beside its conditions,
 * which are those of the query. */
bool aggs_add_searches(exchange *x, aggs *a, size_t search_number, const gx_text *conditions);
/* Add ,"aggregations":{...}. false: *f is set. */
bool aggs_write(gx_text *t, exchange *x, const aggs *a, const gx_facets *facets, fault *f);

/* ---- replies ---- */

void elastic_reply(exchange *x, unsigned status);
/* An "error" and "status" for a fault, in an object that is open. */
void elastic_put_error(gx_text *t, const fault *f, const char *index);
void elastic_put_shards(gx_text *t);
/* Parameters that change nothing in an answer, and those in `more`; another one is a fault. */
bool elastic_check_arguments(exchange *x, const char *const *more);

#endif
