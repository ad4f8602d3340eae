/* facet_counts.h: the documents of a set, counted by an attribute.
 *
 *   set of documents, part by part --gx_facet_count_add--> groups: key, count
 *                                  --gx_facet_count_end--> the groups in order
 *
 * A group is a value or a range of values. Of the two ways to count a part's documents the one that is
 * expected to take less time is taken:
 *
 *   by documents   the value of each document of the set is read, and its group gets one more
 *   by columns     the bits that the set has in common with each bitmap column, where each of its bins
 *                  lies in one group
 */
#ifndef GX_QUERY_FACET_FACET_COUNTS_H
#define GX_QUERY_FACET_FACET_COUNTS_H

#include "engine/api/gpuidx_advanced.h"
#include "index/attributes/attributes.h"
#include "query/facet/count_table.h"
#include "query/facet/sort_keys.h"

/* A string of one part and its count. */
typedef struct gx_counted_string {
    const char *p;
    size_t len;
    uint64_t count;
    uint32_t ordinal; /* in the file that it was counted in; of several files that have it, any */
} gx_counted_string;

typedef enum gx_facet_way { GX_FACET_AUTO, GX_FACET_BY_DOCUMENTS, GX_FACET_BY_COLUMNS } gx_facet_way;

typedef struct gx_facet_count {
    gx_facet facet; /* full-sized and checked */
    gx_attribute_type type;
    gx_facet_way way; /* of measurements; GX_FACET_BY_COLUMNS only where they can be */
    uint64_t n_present;
    /* of GX_FACET_BINS: what the values of the set lie between, made by gx_facet_count_look */
    bool any;
    int64_t least, greatest;
    double least_float, greatest_float;
    double *edges;           /* [bins + 1] of float, where least_float < greatest_float */
    gx_keys values;          /* of GX_FACET_QUANTILES: of all matches, until gx_facet_count_cut; .. */
    uint64_t *cuts;          /* .. then the keys of range i's least and greatest value, cuts[2 i] and cuts[2 i + 1] */
    uint32_t n_cuts;         /* ranges */
    const gx_index *bins_of; /* of GX_FACET_STORED: the file whose bins they are */
    const gx_column *bins_column;
    gx_count_table table;       /* of all but strings */
    gx_counted_string *strings; /* [n_strings] */
    size_t n_strings, max_strings;
    bool sorted;              /* the strings are, and differ */
    bool borrowed;            /* the strings are those of gx_facet_ordinals */
    gx_counted_group *groups; /* [n_groups], after the end, by key: of strings the number in `strings`; else what
                               * gx_facet_group_of describes */
    size_t n_groups;
} gx_facet_count;

/* Whether each bin of a column's bitmaps is part of one group, so that the bitmaps tell what the values
 * tell. */
bool gx_facet_bins_are_in_groups(const gx_facet *facet, const gx_column *c);

/* GX_FACET_BINS needs a look at the set before it is counted. words: a bit a document of the file ix. */
void gx_facet_count_look(gx_facet_count *f, const gx_index *ix, uint32_t column, const uint64_t *words);

/* GX_FACET_QUANTILES needs two: the values of all files' sets are gathered, and then cut. GX_ENOMEM. */
gx_status gx_facet_count_gather(gx_facet_count *f, const gx_index *ix, uint32_t column, const uint64_t *words,
                                gx_error *err);
gx_status gx_facet_count_cut(gx_facet_count *f, gx_error *err);

/* The key of the group of a value as the file has it. Of GX_FACET_STORED, bins_of and bins_column are set. */
uint64_t gx_facet_key_of(const gx_facet_count *f, const gx_column *c, uint64_t raw);

/* Count the set. scratch: [ceil(n_docs / 64) + 1] words. GX_ENOMEM. */
gx_status gx_facet_count_add(gx_facet_count *f, const gx_index *ix, uint32_t column, const uint64_t *words,
                             uint64_t *scratch, gx_error *err);
gx_status gx_facet_count_end(gx_facet_count *f, gx_error *err); /* GX_ENOMEM */
/* Of GX_FACET_BINS, all of it: values, whose keys as GX_FACET_VALUES rise, and how many documents have each. An n
 * of 0 and counts of 0 are fine. GX_ENOMEM. */
gx_status gx_facet_count_bins(gx_facet_count *f, const uint64_t *keys, const uint32_t *counts, uint32_t n,
                              gx_error *err);
void gx_facet_count_free(gx_facet_count *f);

/* The values of a group: [first, last] of int, date and bool; of float [low, high], without high itself
 * where `open`. */
typedef struct gx_group_range {
    int64_t first, last;
    double low, high;
    bool open;
} gx_group_range;
gx_group_range gx_facet_group_of(const gx_facet_count *f, uint64_t key);

#endif
