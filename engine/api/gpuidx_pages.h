/* gpuidx_pages.h: answers in an order by attributes, and page by page. Part of gpuidx_advanced.h. */
#ifndef GPUIDX_PAGES_H
#define GPUIDX_PAGES_H

#include "gpuidx_values.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GX_MAX_SORT_KEYS 8u /* attributes of one order */

/* Which part of the list of all results an answer is, and in what order that list is. Begin with gx_page_init. */
typedef struct gx_page {
    size_t size;
    /* "price:desc,year": the attributes whose values order the results, the first of them first; [sort_len] bytes.
     * sort_len 0: results come by falling score, then by rising docid, as gx_search gives them.
     *
     * Behind a name and a colon stand asc (the default) or desc, and missing-last (the default) or missing-first, which
     * says where documents without a value are, up or down. Numbers and dates are ordered as such, false is before
     * true, and keywords are ordered byte by byte. Of a document with several values the least one counts with asc,
     * the greatest one with desc. Documents that are equal in all of this come by falling score, then by rising docid.
     *
     * A GPU engine leaves such answers to a thread of the host, which finds the same. */
    const char *sort;
    size_t sort_len;
    uint64_t offset; /* results that are left out before the first one; beyond the last one, the answer is empty */
    /* A cursor that gx_search_page has given: the results behind the one that it names. [after_len] bytes; after_len
     * 0: from the first result on. With an offset, that many more are left out. */
    const char *after;
    size_t after_len;
    /* What else a cursor is to name: bytes [scope_len], such as the text of a filter that became a mask. */
    const char *scope;
    size_t scope_len;
    /* "shop" or "shop:3": groups, [collapse_len] bytes; collapse_len 0: none. Documents with the same value of the
     * attribute are one group, and documents without a value are one group together. Of each group only the best
     * document is a result, so that k, offset and the cursor count groups; gx_page_end.groups has the best 3 (without a
     * number: 1; at most GX_MAX_GROUP_DOCUMENTS). What is best, the order says. Attributes of which a document of the
     * index has several values are refused, as is type keywords. Numbers are one value where they are equal.
     *
     * With GX_OP_AND_OR, AND answers where it has k documents in all. gx_results.n_matches counts documents. */
    const char *collapse;
    size_t collapse_len;
} gx_page;
GX_API void gx_page_init(gx_page *p, size_t size);

/* Whether the order and the groups of the page are some of this index; else GX_EUSAGE, as gx_search_page. */
GX_API gx_status gx_page_check(const gx_index *ix, const gx_page *page, gx_error *err);

#define GX_MAX_GROUP_DOCUMENTS 1000u

/* The documents that match and have the same value of an attribute. */
typedef struct gx_group {
    bool missing;   /* those without a value; `value` is zero then */
    gx_value value; /* strings belong to the index */
    uint64_t n_matches;
    uint32_t n;             /* the best ones, the first of which is the page's result: */
    const uint64_t *docids; /* [n] */
    const double *scores;   /* [n] */
} gx_group;

typedef struct gx_groups {
    uint32_t attribute; /* its number */
    gx_attribute_type type;
    uint32_t n, most;       /* most: documents that were asked of a group */
    const gx_group *groups; /* [n], one for each result of the page */
} gx_groups;
GX_API void gx_groups_free(gx_groups *g); /* NULL is fine */

/* What is known of a page beside its results. */
typedef struct gx_page_end {
    size_t size;
    uint64_t first; /* results before the page's first one: its rank is first + 1. With `moved` about so many */
    /* The cursor that goes on behind the page's last result, which the caller frees; NULL: the page has no results. */
    char *next;
    size_t next_len;
    /* The cursor that was given is of an older commit of the collection. The results come from the newer one: those
     * behind the place where the named document is, or was. */
    bool moved;
    /* Of gx_page.collapse, freed by gx_groups_free; NULL: without. Finding them takes time: a caller who wants the
     * results alone gives the `size` before this member, or no end. */
    gx_groups *groups;
} gx_page_end;

/* As gx_search, of one page of each answer: k is the most results of a page. end [n], or NULL, whose sizes the caller
 * sets; on failure there is nothing to free. n is 1 where there is a cursor.
 *
 * A cursor names the query (its text or terms, its filter's text, operator, scorer and parameters, the prior and the
 * order), the index file or collection, its commit, and the last result's values, score and id. While a reader holds a
 * commit, the pages are cuts of one list. It does not name a mask (gx_page.scope may), nor k: pages may have different
 * lengths.
 * With GX_OP_AND_OR k is named, too: AND answers where it has k results in all, and the pages are cuts of that answer,
 * else of OR's.
 *
 * GX_EUSAGE, beside what gx_search says: the order or the groups (an unknown attribute, for which the nearest name is
 * given, an unknown word, several values a document), a cursor that is damaged, or of another query, order or index;
 * answers that are not exact (gx_query_options.approximate, threshold_factor or block_budget) of a page that has an
 * order, groups, an offset or a cursor;
 * an engine of a shard. */
GX_API gx_status gx_search_page(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *opt,
                                const gx_page *page, const gx_results *out, gx_page_end *end, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
