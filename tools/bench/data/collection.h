/* collection.h: a generated collection of any size, in memory as an index, and queries for it; for
 * benchmarks, and for other engines through ds2i.h.
 *
 * The shape is that of GOV2 as the papers use it: at 25.2 M documents and 800 terms the queries
 * touch 3.73 M postings each, at about 11 bits a posting.
 *
 *   documents  lengths lognormal (mean about 910, 50 to 30,000), in sites of about 620 documents; a
 *   site has one of 16 topics
 *   terms      lengths of lists log-uniform, from 2,000 to 8 M of 25.2 M documents (in proportion
 *              for other sizes); a term has a topic; its density in a site depends on the site's
 *              topic and on a factor of its own, so docids cluster; tf = 1 + geometric, with a
 *              heavy tail for one posting in eight
 *   queries    2 to 5 terms (35, 25, 22 and 18 in a hundred), half of them on one topic
 *
 * All of it is a function of the options (but not of the number of threads).
 */
#ifndef GX_TOOLS_BENCH_DATA_COLLECTION_H
#define GX_TOOLS_BENCH_DATA_COLLECTION_H

#include "index/index.h"

#define GX_SYNTH_MAX_TERMS 5

typedef struct gx_synth_query {
    uint32_t n, terms[GX_SYNTH_MAX_TERMS]; /* by rising df */
} gx_synth_query;

typedef struct gx_synth_options {
    uint32_t n_docs;  /* >= 1,000 */
    uint32_t n_terms; /* >= 64 */
    uint32_t n_queries;
    uint64_t seed;
    const gx_codec *codec;
    uint32_t threads; /* 0: one a core */
    double density;   /* lists are this many times as long; > 0 */
} gx_synth_options;
#define GX_SYNTH_OPTIONS ((gx_synth_options){25205179, 800, 1024, 1, NULL, 0, 1})

typedef struct gx_synth {
    gx_index ix;             /* no terms, ids or titles: queries are made by gx_plan_make_ids */
    gx_synth_query *queries; /* [n_queries] */
    uint32_t n_queries;
    void *memory;
} gx_synth;

/* GX_EUSAGE, GX_ENOMEM. */
gx_status gx_synth_open(gx_synth **out, const gx_synth_options *opt, gx_error *err);

/* Lists of opt.n_terms terms. */
typedef struct gx_synth_lists {
    const uint32_t *const *docids; /* [dfs[i]] of list i, rising and < opt.n_docs */
    const uint32_t *dfs;           /* each >= 1 */
    const uint16_t *const *tfs;    /* [dfs[i]], each >= 1; NULL: all tfs are 1 */
    const uint32_t *doc_lens;      /* [n_docs]; NULL: lengths as above */
} gx_synth_lists;

/* An index of these lists, without queries. Of opt, n_queries and density do not count; n_terms >=
 * 1. GX_EUSAGE, GX_ENOMEM. */
gx_status gx_synth_open_lists(gx_synth **out, const gx_synth_options *opt, const gx_synth_lists *lists, gx_error *err);
void gx_synth_close(gx_synth *s);

#endif
