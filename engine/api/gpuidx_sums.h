/* gpuidx_sums.h: figures of the matches beside their counts: least, greatest, sum, average, distinct values,
 * percentiles, of all matches or of each group of a facet; facets in facets. Part of gpuidx_advanced.h.
 *
 *   matches --gx_count_facets--> facet "brand"   sony   12 matches   price: sum 90, average 7.5    facet "year" of them
 *                                                apple   7           price: sum 60, average 8.57   facet "year" of them
 *
 * Grammar of what gx_facet_list_read reads, and of `gpuidx query --facet` and `--sums`:
 *
 *   facets     = facet { "," facet }
 *   facet      = level [ "/" level ]           the second counts the matches of each group of the first
 *   level      = NAME { ":" option }
 *   option     = NUMBER | "all"                groups that are returned; 10 without one
 *              | "by=" ( "year" | "month" | "day" ) | "width=" X | "bins=" ( N | "stored" ) | "quantiles=" N
 *              | "order=" ( "count" | "value" )
 *              | "exclude-own"                 without the conditions of the query's filter on this attribute
 *              | figure "=" NAME               of another attribute, or the same, of each group's matches; not in the
 *                                              second level
 *              | "stats=" NAME                 min, max, sum (not of a date) and avg
 *   sums       = sum { "," sum }               of all matches
 *   sum        = NAME { ":" figure }           without a figure: as stats=
 *   figure     = "min" | "max" | "sum" | "avg" | "distinct" | "p" X     X: percent, 0 to 100, up to 6 decimal places
 *
 * Whole numbers are summed in 128 bits. Doubles are summed exactly, and the sum is rounded once, to the nearest double;
 * so is an average, which is the exact sum divided by the number of values. Figures therefore do not depend on the
 * engine, the batch or the segments. */
#ifndef GPUIDX_SUMS_H
#define GPUIDX_SUMS_H

#include "gpuidx_searching.h"
#include "gpuidx_values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Figures, as bits. */
typedef enum gx_figure {
    GX_FIGURE_MIN = 1,
    GX_FIGURE_MAX = 2,
    GX_FIGURE_SUM = 4, /* of int and float; a date has none */
    GX_FIGURE_AVERAGE = 8,
    GX_FIGURE_DISTINCT = 16 /* how many different values there are */
} gx_figure;

#define GX_MAX_PERCENTILES 16u /* of a gx_sum */

/* What is asked of an attribute of type int, float or date. The number of values is always told. */
typedef struct gx_sum {
    size_t size;
    const char *name; /* of the attribute; [name_len] bytes */
    size_t name_len;
    uint32_t figures; /* of gx_figure; 0 without percentiles: min, max, average, and of numbers sum */
    uint32_t n_percentiles;
    double percentiles[GX_MAX_PERCENTILES]; /* [n_percentiles], each from 0 to 100, of at most 6 decimal places */
} gx_sum;
#define GX_SUM                                                                                                         \
    {                                                                                                                  \
        sizeof(gx_sum), NULL, 0, 0, 0,                                                                                 \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* The figures of an attribute over some documents: of all values of those that have one. Of several values a document
 * each counts. Where n is 0, there is no least, no greatest, no average and no percentile; the sum is 0. */
typedef struct gx_figures {
    const char *name; /* [name_len] bytes */
    size_t name_len;
    gx_attribute_type type;
    uint32_t figures; /* those that are set here, as bits of gx_figure */
    uint64_t n;       /* values */
    gx_value least, greatest;
    int64_t sum_high; /* of int: the sum is sum_high * 2^64 + sum_low */
    uint64_t sum_low;
    double sum;        /* of int and float, rounded once; infinite where no double is as large */
    double average;    /* rounded once; of a date, seconds since 1970-01-01 */
    uint64_t distinct; /* 0.0 and -0.0 are one value */
    uint32_t n_percentiles;
    const double *asked;         /* [n_percentiles] as gx_sum has them, */
    const gx_value *percentiles; /* and the least values that at least so many percent of all values do not exceed; 0:
                                  * the least value of all */
} gx_figures;

/* The figures of group g and of sum i, each in the order asked for; NULL: there are none. They belong to the answer. */
GX_API const gx_figures *gx_facet_figures(const gx_facet_answer *f, uint32_t g, uint32_t i);
/* The answer of the inner facet among the matches of group g; NULL: none was asked for. */
GX_API const gx_facet_answer *gx_facet_inner(const gx_facet_answer *f, uint32_t g);

/* Facets and sums, read from texts. One of `facets` is, with sums, the last: GX_FACET_ALL, one group of all matches.
 * Either text may be NULL. Messages begin with "facet: " or "sums: ". GX_EUSAGE as gx_facets_check, GX_ENOMEM. */
typedef struct gx_facet_list gx_facet_list;
GX_API gx_status gx_facet_list_read(gx_facet_list **out, const gx_index *ix, const char *facets, const char *sums,
                                    gx_error *err);
/* All of them, *n; they belong to the list. */
GX_API const gx_facet *gx_facet_list_get(const gx_facet_list *l, uint32_t *n);
GX_API void gx_facet_list_close(gx_facet_list *l); /* NULL is fine */

/* Count the documents that a filter selects, NULL: all of them, deleted ones left out. As gx_count_facets, and it knows
 * the filter's conditions, which gx_count_facets_of does not, for exclude_own. */
GX_API gx_status gx_count_facets_filtered(gx_facets **out, const gx_index *ix, const gx_filter *filter,
                                          const gx_facet *facets /* [n] */, uint32_t n, gx_error *err);

/* What is left of a filter without its conditions on an attribute. Where the filter is an AND, or one condition or
 * group, the operands that name this attribute alone are left out. *out is NULL where nothing is left. *same tells
 * whether nothing was left out; *out is NULL then too, and the filter itself serves. f must outlive *out. GX_EUSAGE: an
 * operand names this attribute beside others. GX_ENOMEM. */
GX_API gx_status gx_filter_without(gx_filter **out, bool *same, const gx_filter *f, uint32_t attribute, gx_error *err);

/* Add a sum of whole numbers in decimal; and figures as a JSON object: {"n":2,"min":1,"max":9,"sum":10,"avg":5.0}. What
 * does not exist, an infinite sum too, is null. */
GX_API void gx_text_add_wide(gx_text *t, int64_t high, uint64_t low);
GX_API void gx_text_add_json_figures(gx_text *t, const gx_figures *f);

#ifdef __cplusplus
}
#endif
#endif
