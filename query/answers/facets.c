/* facets.c: facets of the matches of queries, counted and shown. */
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "query/answers/facet_asked.h"
#include "query/answers/facet_set.h"
#include "query/engine/session.h"
#include "query/facet/facet_ordinals.h"

/* ---- the answer ---- */

struct gx_facets {
    uint32_t n;
    uint64_t n_matches;
    gx_facet_made *answers; /* [n] */
};

void gx_facets_close(gx_facets *f)
{
    for (uint32_t i = 0; f && i < f->n; ++i)
        gx_facet_made_free(&f->answers[i]);
    if (f)
        free(f->answers);
    free(f);
}

uint64_t gx_facets_n_matches(const gx_facets *f)
{
    return f->n_matches;
}

const gx_facet_answer *gx_facets_get(const gx_facets *f, uint32_t i)
{
    return i < f->n ? &f->answers[i].shown : NULL;
}

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to count a facet");
}

/* ---- counting ---- */

static gx_status count_all(gx_facets *f, const gx_facet_set *s, const gx_facet *facets, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < f->n && st == GX_OK; ++i) {
        gx_facet facet;
        uint32_t column;
        st = gx_facet_check(&facet, &column, s->ix, facets, i, err);
        if (st == GX_OK)
            st = gx_facet_make(&f->answers[i], s, &facet, column, err);
    }
    return st;
}

static gx_facets *new_facets(uint32_t n, uint64_t n_matches)
{
    gx_facets *f = calloc(1, sizeof *f);
    if (f && !(f->answers = calloc(n + 1ull, sizeof *f->answers))) {
        free(f);
        return NULL;
    }
    if (f) {
        f->n = n;
        f->n_matches = n_matches;
    }
    return f;
}

static gx_status open_facets(gx_facets **out, const gx_index *ix, const uint64_t *words, uint64_t n_matches,
                             const gx_facet *facets, uint32_t n, gx_error *err)
{
    gx_facet_set set;
    gx_facets *f = new_facets(n, n_matches);
    gx_status st = gx_facet_set_open(&set, ix, words, n_matches, err);
    if (st == GX_OK)
        st = f ? count_all(f, &set, facets, err) : no_memory(err);
    gx_facet_set_close(&set);
    if (st == GX_OK)
        *out = f;
    else
        gx_facets_close(f);
    return st;
}

/* Facets of documents, whose filter is not known. */
static gx_status count_of(gx_facets **out, const gx_index *ix, const uint64_t *words, const gx_facet *facets,
                          uint32_t n, gx_error *err)
{
    const uint64_t n_docs = gx_index_n_docs(ix);
    const size_t n_words = gx_index_n_words(ix);
    *out = NULL;
    gx_status st = gx_facets_check(ix, facets, n, err);
    uint64_t *own = st == GX_OK ? gx_facet_words(n_docs) : NULL, n_matches = 0;
    if (st != GX_OK || !own)
        return st != GX_OK ? st : no_memory(err);
    for (size_t w = 0; w < n_words; ++w) {
        own[w] = w == n_docs / 64 ? words[w] & ((UINT64_C(1) << n_docs % 64) - 1) : words[w];
        n_matches += (uint64_t)__builtin_popcountll(own[w]);
    }
    st = open_facets(out, ix, own, n_matches, facets, n, err);
    free(own);
    return st;
}

gx_status gx_count_facets_of(gx_facets **out, const gx_index *ix, const uint64_t *words, const gx_facet *facets,
                             uint32_t n, gx_error *err)
{
    gx_status st = GX_OK;
    *out = NULL;
    gx_clear_error(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        gx_facet f;
        uint32_t column;
        st = gx_facet_check(&f, &column, ix, facets, i, err);
        if (st == GX_OK && f.exclude_own)
            st = gx_fail(err, GX_EUSAGE, "facet: exclude-own: a set of documents tells no filter");
    }
    return st == GX_OK ? count_of(out, ix, words, facets, n, err) : st;
}

/* ---- facets that leave out their own filter ---- */

/* Counts facets of the documents that `filter`, NULL: none, selects. */
typedef gx_status count_under(void *user, gx_facets **out, const gx_filter *filter, const gx_facet *facets, uint32_t n,
                              gx_error *err);

/* The facets that are counted together: those for which nothing is left out, or those of one attribute. */
typedef struct shares {
    const gx_index *ix;
    gx_facet *facets;  /* [n] full-sized and checked */
    uint32_t *columns; /* [n] */
    bool *done;        /* [n] */
    gx_facet *chosen;  /* [n] of one share, and their numbers */
    uint32_t *numbers;
    uint32_t n;
} shares;

static void free_shares(shares *s)
{
    free(s->facets);
    free(s->columns);
    free(s->done);
    free(s->chosen);
    free(s->numbers);
}

static gx_status open_shares(shares *s, const gx_index *ix, const gx_facet *facets, uint32_t n, gx_error *err)
{
    gx_status st = GX_OK;
    *s = (shares){.ix = ix, .n = n};
    s->facets = calloc(n + 1ull, sizeof *s->facets);
    s->columns = calloc(n + 1ull, sizeof *s->columns);
    s->done = calloc(n + 1ull, sizeof *s->done);
    s->chosen = calloc(n + 1ull, sizeof *s->chosen);
    s->numbers = calloc(n + 1ull, sizeof *s->numbers);
    if (!s->facets || !s->columns || !s->done || !s->chosen || !s->numbers)
        return no_memory(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = gx_facet_check(&s->facets[i], &s->columns[i], ix, facets, i, err);
    return st;
}

/* Count the facets that are like number `first`: of which the same is left out. */
static gx_status count_share(shares *s, gx_facets *all, uint32_t first, const gx_filter *filter, count_under *count,
                             void *user, gx_error *err)
{
    gx_facets *some = NULL;
    uint32_t m = 0;
    for (uint32_t i = first; i < s->n; ++i) {
        const bool like = s->facets[i].exclude_own == s->facets[first].exclude_own &&
                          (!s->facets[i].exclude_own || s->columns[i] == s->columns[first]);
        if (s->done[i] || !like)
            continue;
        s->chosen[m] = s->facets[i];
        s->chosen[m].exclude_own = false;
        s->numbers[m++] = i;
        s->done[i] = true;
    }
    const gx_status st = count(user, &some, filter, s->chosen, m, err);
    for (uint32_t i = 0; i < m && st == GX_OK; ++i) {
        all->answers[s->numbers[i]] = some->answers[i];
        some->answers[i] = (gx_facet_made){0};
    }
    if (st == GX_OK && !s->facets[first].exclude_own)
        all->n_matches = some->n_matches;
    gx_facets_close(some);
    return st;
}

/* Those that have nothing of the filter to leave out are as if they left out nothing. */
static gx_status find_own(shares *s, const gx_filter *filter, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < s->n && st == GX_OK; ++i) {
        gx_filter *left = NULL;
        bool same = true;
        if (s->facets[i].exclude_own && filter)
            st = gx_filter_without(&left, &same, filter, s->columns[i], err);
        s->facets[i].exclude_own = st == GX_OK && !same;
        gx_filter_close(left);
    }
    return st;
}

/* Count facets some of which leave out conditions of the filter. The matches are counted even if no facet is of all of
 * the filter. */
static gx_status count_shares(gx_facets **out, const gx_index *ix, const gx_filter *filter, const gx_facet *facets,
                              uint32_t n, count_under *count, void *user, gx_error *err)
{
    shares s;
    gx_facets *all = new_facets(n, 0);
    gx_status st = open_shares(&s, ix, facets, n, err);
    bool counted = false;
    if (st == GX_OK)
        st = all ? find_own(&s, filter, err) : no_memory(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        gx_filter *left = NULL;
        bool same = true;
        if (s.done[i])
            continue;
        counted = counted || !s.facets[i].exclude_own;
        if (s.facets[i].exclude_own)
            st = gx_filter_without(&left, &same, filter, s.columns[i], err);
        if (st == GX_OK)
            st = count_share(&s, all, i, same ? filter : left, count, user, err);
        gx_filter_close(left);
    }
    if (st == GX_OK && !counted) {
        gx_facets *none = NULL;
        st = count(user, &none, filter, s.chosen, 0, err);
        all->n_matches = st == GX_OK ? none->n_matches : 0;
        gx_facets_close(none);
    }
    free_shares(&s);
    if (st == GX_OK)
        *out = all;
    else
        gx_facets_close(all);
    return st;
}

static gx_status count_filtered(void *user, gx_facets **out, const gx_filter *filter, const gx_facet *facets,
                                uint32_t n, gx_error *err)
{
    const gx_index *ix = user;
    const size_t n_words = gx_index_n_words(ix);
    uint64_t *words = gx_facet_words(gx_index_n_docs(ix));
    gx_status st = words ? GX_OK : no_memory(err);
    for (size_t w = 0; w < n_words && st == GX_OK && !filter; ++w)
        words[w] = UINT64_MAX;
    if (st == GX_OK && filter)
        st = gx_filter_evaluate(filter, words, NULL, err);
    if (st == GX_OK)
        st = count_of(out, ix, words, facets, n, err);
    free(words);
    return st;
}

gx_status gx_count_facets_filtered(gx_facets **out, const gx_index *ix, const gx_filter *filter, const gx_facet *facets,
                                   uint32_t n, gx_error *err)
{
    *out = NULL;
    gx_clear_error(err);
    return count_shares(out, ix, filter, facets, n, count_filtered, (void *)ix, err);
}

/* ---- queries ---- */

/* Queries whose matches are counted. */
typedef struct counted_batch {
    gx_session *s;
    const gx_index *ix;
    const gx_facet *asked; /* [n], the caller's */
    gx_facet *facets;      /* [n] the same, full-sized and checked */
    uint32_t *columns;     /* [n] */
    uint32_t n;
    const gx_facet_ordinals **ordinals; /* [n], those of the engine; NULL: it does not count */
    uint64_t n_counts;                  /* of a query, by the engine */
    uint64_t *words;                    /* NULL until a query is counted here */
    gx_facets **out;                    /* of all queries of the caller */
} counted_batch;

static void free_batch(counted_batch *b)
{
    free(b->facets);
    free(b->columns);
    free(b->ordinals);
    free(b->words);
}

static gx_status open_batch(counted_batch *b, gx_error *err)
{
    gx_status st = GX_OK;
    b->facets = calloc(b->n + 1ull, sizeof *b->facets);
    b->columns = calloc(b->n + 1ull, sizeof *b->columns);
    if (!b->facets || !b->columns)
        return no_memory(err);
    for (uint32_t i = 0; i < b->n && st == GX_OK; ++i)
        st = gx_facet_check(&b->facets[i], &b->columns[i], b->ix, b->asked, i, err);
    return st;
}

/* Times in ns that decide who counts, of one core and of a GPU: of a posting, and of its document in a facet; of a
 * batch on the GPU, of a query of it, and of each count that comes back. Rounded from query/facet/MEASURED.md, "Facets
 * on a GPU" (bench_facets_gpu on an NVIDIA H100). */
#define CPU_POSTING_TIME 1.6
#define CPU_FACET_TIME 1.5
#define GPU_BATCH_TIME 35000.0
#define GPU_QUERY_TIME 300.0
#define GPU_POSTING_TIME 0.002
#define GPU_COUNT_TIME 1.0

static bool gpu_is_faster(const counted_batch *b, const gx_plan *plans, uint32_t n)
{
    double postings = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (plans[i].n_phrases) /* the CPU alone finds them */
            return false;
        postings += plans[i].fill ? (double)gx_index_n_docs(b->ix) : 0;
        for (uint32_t t = 0; t < plans[i].n_terms && !plans[i].fill; ++t)
            postings += plans[i].terms[t].df;
    }
    return postings * (CPU_POSTING_TIME + b->n * CPU_FACET_TIME) >
           GPU_BATCH_TIME + postings * (1 + b->n) * GPU_POSTING_TIME +
               n * (GPU_QUERY_TIME + (double)b->n_counts * GPU_COUNT_TIME);
}

/* Whether the CPU counts a facet on every engine. */
static bool has_details(const gx_facet *f)
{
    return f->n_sums || f->inner || f->grouping >= GX_FACET_QUANTILES;
}

/* Finds what the engine counts by. b->ordinals stays NULL where it cannot count all of the facets. */
static gx_status find_ordinals(counted_batch *b, gx_error *err)
{
    gx_status st = GX_OK;
    bool all = b->n > 0;
    for (uint32_t i = 0; i < b->n && all; ++i)
        all = !has_details(&b->facets[i]);
    b->n_counts = 0;
    if (!(b->ordinals = calloc(b->n + 1ull, sizeof *b->ordinals)))
        return no_memory(err);
    for (uint32_t i = 0; i < b->n && st == GX_OK && all; ++i) {
        st = gx_session_facet_ordinals(b->s, b->columns[i], &b->facets[i], &b->ordinals[i], err);
        all = st == GX_OK && b->ordinals[i];
        b->n_counts += all ? gx_n_counts(b->ordinals[i]) : 0;
    }
    if (!all) {
        free(b->ordinals);
        b->ordinals = NULL;
    }
    return st;
}

/* The answer of counts that the engine has made. */
static gx_status take_counts(gx_facets **out, const counted_batch *b, const gx_match_counts *counted, gx_error *err)
{
    gx_facets *f = new_facets(b->n, counted->n_matches);
    gx_status st = f ? GX_OK : no_memory(err);
    const uint32_t *counts = counted->counts;
    for (uint32_t i = 0; i < b->n && st == GX_OK; ++i) {
        const gx_column *column = &b->ix->columns[b->columns[i]];
        gx_facet_count c = {.facet = b->facets[i], .type = column->type};
        st = gx_facet_count_take(&c, b->ordinals[i], counts, f->n_matches, err);
        if (st == GX_OK)
            st = gx_facet_show(&f->answers[i], &c, column, f->n_matches, err);
        gx_facet_count_free(&c);
        counts += gx_n_counts(b->ordinals[i]);
    }
    if (st == GX_OK)
        *out = f;
    else
        gx_facets_close(f);
    return st;
}

/* Whether the engine has counted; its answers are in out then. */
static gx_status count_on_engine(counted_batch *b, const gx_plan *plans, uint32_t first, uint32_t n, bool *counted,
                                 gx_error *err)
{
    gx_match_counts *of = calloc(n + 1ull, sizeof *of);
    uint32_t *counts = malloc((n * b->n_counts + 1) * sizeof *counts);
    gx_status st = of && counts ? GX_OK : no_memory(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        of[i].counts = counts + i * b->n_counts;
    if (st == GX_OK)
        st = gx_session_count_matches(b->s, plans, n, b->ordinals, b->n, of, counted, err);
    for (uint32_t i = 0; i < n && st == GX_OK && *counted; ++i)
        st = take_counts(&b->out[first + i], b, &of[i], err);
    free(of);
    free(counts);
    return st;
}

#define COUNTS_AT_ONCE (4u << 20) /* counts of the queries that the engine counts together, if they are several */

static gx_status count_plans(void *user, const gx_plan *plans, uint32_t first, uint32_t n, gx_error *err)
{
    counted_batch *b = user;
    const gx_facet_engine engine = gx_session_facet_engine(b->s);
    bool counted = false;
    gx_status st = GX_OK;
    if (b->ordinals && (engine == GX_FACETS_BY_GPU || (engine == GX_FACETS_AUTO && gpu_is_faster(b, plans, n)))) {
        const uint64_t room = COUNTS_AT_ONCE / b->n_counts;
        counted = true;
        for (uint32_t i = 0, m; i < n && st == GX_OK && counted; i += m) {
            m = room < 1 ? 1 : room < n - i ? (uint32_t)room : n - i;
            st = count_on_engine(b, plans + i, first + i, m, &counted, err);
        }
    }
    if (st == GX_OK && !counted && !b->words && !(b->words = gx_facet_words(gx_index_n_docs(b->ix))))
        return no_memory(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        uint64_t n_matches = 0;
        if (b->out[first + i])
            continue;
        st = gx_session_match(b->s, &plans[i], b->words, &n_matches, err);
        if (st == GX_OK)
            st = open_facets(&b->out[first + i], b->ix, b->words, n_matches, b->asked, b->n, err);
    }
    return st;
}

/* Count n queries, of whose filters nothing is left out. opt is full-sized. */
static gx_status count_queries(gx_facets **out, gx_session *s, const gx_query *queries, uint32_t n,
                               const gx_query_options *opt, const gx_facet *facets, uint32_t n_facets, gx_error *err)
{
    const gx_engine *en = gx_session_engine(s);
    counted_batch b = {.s = s, .ix = gx_engine_index(en), .asked = facets, .n = n_facets, .out = out};
    gx_status st = open_batch(&b, err);
    if (st == GX_OK && gx_engine_is_shard(en))
        st = gx_fail(err, GX_EUSAGE, "facet: an engine of a shard sees its own parts alone");
    if (st == GX_OK && n && gx_session_facet_engine(s) != GX_FACETS_BY_CPU)
        st = find_ordinals(&b, err);
    if (st == GX_OK && n)
        st = gx_session_plan(s, queries, n, opt, count_plans, &b, err);
    free_batch(&b);
    return st;
}

/* A query whose facets have other filters than its own. */
typedef struct query_under {
    gx_session *s;
    gx_query query;
    const gx_query_options *opt;
} query_under;

static gx_status count_query_under(void *user, gx_facets **out, const gx_filter *filter, const gx_facet *facets,
                                   uint32_t n, gx_error *err)
{
    query_under *q = user;
    q->query.filter = filter;
    return count_queries(out, q->s, &q->query, 1, q->opt, facets, n, err);
}

static bool leaves_out(const gx_index *ix, const gx_facet *facets, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n && !any; ++i) {
        gx_facet f;
        uint32_t column;
        any = gx_facet_check(&f, &column, ix, facets, i, NULL) == GX_OK && f.exclude_own;
    }
    return any;
}

/* As count_queries, one query after another. */
static gx_status count_shared_queries(gx_facets **out, gx_session *s, const gx_query *queries, uint32_t n,
                                      const gx_query_options *opt, const gx_facet *facets, uint32_t n_facets,
                                      gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        query_under q = {.s = s, .query = GX_TEXT_QUERY(NULL, 0), .opt = opt};
        st = gx_sized_read(&q.query, sizeof q.query, (const char *)queries + i * queries->size,
                           GX_SIZE_THROUGH(gx_query, n_terms), "gx_query", err);
        if (st == GX_OK)
            st = count_shares(&out[i], gx_engine_index(gx_session_engine(s)), q.query.filter, facets, n_facets,
                              count_query_under, &q, err);
    }
    return st;
}

gx_status gx_count_facets_batch(gx_facets **out, gx_session *s, const gx_query *queries, uint32_t n,
                                const gx_query_options *options, const gx_facet *facets, uint32_t n_facets,
                                gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    for (uint32_t i = 0; i < n; ++i)
        out[i] = NULL;
    gx_clear_error(err);
    gx_status st =
        gx_sized_read(&opt, sizeof opt, options, GX_SIZE_THROUGH(gx_query_options, mask), "gx_query_options", err);
    if (st == GX_OK)
        st = (leaves_out(gx_engine_index(gx_session_engine(s)), facets, n_facets)
                  ? count_shared_queries
                  : count_queries)(out, s, queries, n, &opt, facets, n_facets, err);
    for (uint32_t i = 0; i < n && st != GX_OK; ++i) {
        gx_facets_close(out[i]);
        out[i] = NULL;
    }
    return st;
}

gx_status gx_count_facets(gx_facets **out, gx_session *s, const gx_query *query, const gx_query_options *options,
                          const gx_facet *facets, uint32_t n, gx_error *err)
{
    return gx_count_facets_batch(out, s, query, 1, options, facets, n, err);
}
