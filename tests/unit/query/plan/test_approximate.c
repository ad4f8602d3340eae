/* Answers that need not be exact, against a judge of its own: which terms the first pass leaves out and which blocks
 * of documents are searched within a budget, its candidates and their scores from plain arrays. And where answers are
 * exact all the same. */
#include <math.h>
#include <unistd.h>

#include "query/engine/session.h"
#include "query/plan/approximate.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

#define N_DOCS 6000u
#define MANY_DOCS 60000u /* blocks for several phases of a search by bounds */
#define N_TERMS 60u
#define MAX_K 300u
#define N_BATCH 5u

#define PATH "/tmp/gpuidx-test-approximate-XXXXXX"
static char path[] = PATH;
static gen_collection *c;
static gx_index *ix;
static uint32_t n_docs = N_DOCS; /* of the collection that is opened next */

static uint32_t env_uint(const char *name, uint32_t otherwise)
{
    const char *s = getenv(name);
    return s ? (uint32_t)strtoul(s, NULL, 0) : otherwise;
}

static int open_index(void **state)
{
    (void)state;
    gx_error err = {0};
    memcpy(path, PATH, sizeof path);
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    c = gen_open(env_uint("GX_TEST_SEED", 11), GEN_CLUSTERED, n_docs, N_TERMS);
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    if (gen_write(c, path, codec, codec, &err) || gx_index_open(&ix, path, NULL, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int close_index(void **state)
{
    (void)state;
    gx_index_close(ix);
    gen_close(c);
    return unlink(path);
}

/* ---- the judge ---- */

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The impacts of those of the plan's terms that `taken` marks (NULL: all), added to scores[c->n_docs]. */
static void add_impacts(const gx_plan *plan, const bool *taken, uint32_t *scores)
{
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        size_t len;
        const char *name = gx_index_term(ix, plan->terms[i].list, &len);
        const gen_list *l = &c->lists[strtoul(name + 1, NULL, 10)];
        for (uint32_t x = 0; (!taken || taken[i]) && x < l->df; ++x) {
            const float len_part = plan->norm.c1 * (float)c->doc_lens[l->docids[x]], K = plan->norm.c0 + len_part;
            const float above = plan->terms[i].w * (float)l->tfs[x], below = (float)l->tfs[x] + K;
            const long impact = lrintf(above / below);
            scores[l->docids[x]] += impact > 1 ? (uint32_t)impact : 1;
        }
    }
}

/* The k best of the documents that score and of which `allowed` (NULL: all) has a bit, to keys. */
static uint32_t best_of(const uint32_t *scores, const uint64_t *allowed, uint32_t k, uint64_t *keys)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        if (scores[d] && (!allowed || allowed[d / 64] >> d % 64 & 1))
            keys[n++] = (uint64_t)scores[d] << 32 | (uint32_t)~d;
    }
    qsort(keys, n, sizeof *keys, falling);
    return n < k ? n : k;
}

/* Leave the lightest terms out, one after another, while the share allows it. */
static bool leave_out(const gx_plan *plan, float share, bool *taken)
{
    double total = 0, gone = 0;
    uint32_t n = plan->n_terms;
    for (uint32_t i = 0; i < n; ++i) {
        taken[i] = true;
        total += plan->terms[i].w;
    }
    for (; n > 1; --n) {
        uint32_t least = UINT32_MAX;
        for (uint32_t i = 0; i < plan->n_terms; ++i) {
            if (taken[i] && (least == UINT32_MAX || plan->terms[i].w <= plan->terms[least].w))
                least = i;
        }
        gone += plan->terms[least].w;
        if (gone > share * total)
            break;
        taken[least] = false;
    }
    return n < plan->n_terms;
}

#define BLOCK 256u
#define MAX_BLOCKS ((MANY_DOCS + BLOCK - 1) / BLOCK)

/* A list and what bounds of its parts are made of (cpu/block_max.c, ranges.c). */
typedef struct judged_list {
    const gen_list *list;
    uint32_t levels, by_tf; /* by_tf: a bound is that many times the tf */
    uint64_t ub, weight;
    float most; /* the greatest part of a score that w is multiplied with */
} judged_list;

static float part_of(const gx_plan *plan, const gen_list *l, uint32_t i)
{
    const float len_part = plan->norm.c1 * (float)c->doc_lens[l->docids[i]], K = plan->norm.c0 + len_part;
    return (float)l->tfs[i] / ((float)l->tfs[i] + K);
}

static judged_list judge_list(const gx_plan *plan, const gx_plan_term *t)
{
    size_t len;
    const gen_list *l = &c->lists[strtoul(gx_index_term(ix, t->list, &len) + 1, NULL, 10)];
    judged_list j = {.list = l, .levels = 255};
    const bool linear = plan->norm.c0 == 0x1p60f;
    uint32_t max_tf = 0;
    for (uint32_t i = 0; i < l->df; ++i) {
        const float part = part_of(plan, l, i);
        max_tf = l->tfs[i] > max_tf ? l->tfs[i] : max_tf;
        j.most = part > j.most ? part : j.most;
    }
    j.most = j.most * (1 + 0x1p-21f);
    double greatest = j.most;
    if (linear && max_tf < 256) {
        j.by_tf = 255 / max_tf;
        j.levels = max_tf * j.by_tf;
        greatest = (float)max_tf / 0x1p60f;
    }
    j.ub = (uint64_t)ceil(t->w * greatest * (1 + 1e-6)) + 1;
    return j;
}

/* The bounds of all blocks by the lists that `taken` marks (NULL: all), in units of the query. */
static void judge_bounds(const gx_plan *plan, const bool *taken, uint32_t *bounds)
{
    static judged_list lists[GX_MAX_TERMS];
    uint64_t total = 0, unit = 1, n = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        if (taken && !taken[i])
            continue;
        const judged_list *j = &lists[n];
        lists[n++] = judge_list(plan, &plan->terms[i]);
        const uint64_t least = (256 * j->ub + j->levels * 65535 - 1) / (j->levels * 65535ull);
        unit = least > unit ? least : unit;
        total += j->ub;
    }
    unit = (total + 59999) / 60000 > unit ? (total + 59999) / 60000 : unit;
    for (uint32_t i = 0; i < n; ++i) {
        const judged_list *j = &lists[i];
        const uint64_t weight = (256 * j->ub + j->levels * unit - 1) / (j->levels * unit);
        uint32_t most[MAX_BLOCKS] = {0};
        for (uint32_t x = 0; x < j->list->df; ++x) {
            const double b = ceil(part_of(plan, j->list, x) * (255.0 / j->most * (1 + 0x1p-22)));
            const uint32_t bound = j->by_tf ? j->list->tfs[x] * j->by_tf : b < 1 ? 1 : b > 255 ? 255 : (uint32_t)b;
            uint32_t *of = &most[j->list->docids[x] / BLOCK];
            *of = bound > *of ? bound : *of;
        }
        for (uint32_t b = 0; b < MAX_BLOCKS; ++b)
            bounds[b] += (uint32_t)(most[b] * weight / 256);
    }
}

/* Of `allowed` (NULL: all) the documents that are searched within a budget of blocks, to words. */
static const uint64_t *keep_blocks(const gx_plan *plan, const bool *taken, const uint64_t *allowed, uint64_t budget,
                                   uint64_t *words)
{
    uint32_t bounds[MAX_BLOCKS] = {0};
    const uint32_t n_blocks = (c->n_docs + BLOCK - 1) / BLOCK;
    if (budget == 0 || budget >= n_blocks)
        return allowed;
    memset(words, 0, (c->n_docs / 64 + 1) * sizeof *words);
    judge_bounds(plan, taken, bounds);
    for (uint32_t d = 0; allowed && d < n_blocks; ++d) {
        uint64_t any = 0;
        for (uint32_t w = d * (BLOCK / 64); w < (d + 1) * (BLOCK / 64) && w <= c->n_docs / 64; ++w)
            any |= allowed[w];
        bounds[d] = any ? bounds[d] : 0;
    }
    for (; budget; --budget) {
        uint32_t best = 0;
        for (uint32_t b = 1; b < n_blocks; ++b)
            best = bounds[b] > bounds[best] ? b : best;
        for (uint32_t w = best * (BLOCK / 64); bounds[best] && w < (best + 1) * (BLOCK / 64) && w <= c->n_docs / 64;
             ++w)
            words[w] = allowed ? allowed[w] : UINT64_MAX;
        bounds[best] = 0;
    }
    return words;
}

/* The answer's keys; *passes: the answer is that of two passes. */
static uint32_t judge(const gx_plan *plan, const gx_query_options *opt, const uint64_t *allowed, uint64_t *keys,
                      bool *passes)
{
    static uint32_t first[MANY_DOCS], all[MANY_DOCS];
    static uint64_t searched[MANY_DOCS / 64 + 1];
    bool taken[GX_MAX_TERMS];
    memset(first, 0, sizeof first);
    memset(all, 0, sizeof all);
    add_impacts(plan, NULL, all);
    *passes = opt->approximate > 0 && opt->op == GX_OP_OR && opt->prune && leave_out(plan, opt->approximate, taken);
    const uint64_t budget = opt->prune && opt->op == GX_OP_OR ? opt->block_budget : 0;
    if (!*passes)
        return best_of(all, keep_blocks(plan, NULL, allowed, budget, searched), plan->k, keys);
    add_impacts(plan, taken, first);
    const uint32_t n = best_of(first, keep_blocks(plan, taken, allowed, budget, searched), 2 * plan->k + 40, keys);
    if (n < plan->k) {
        *passes = false;
        return best_of(all, keep_blocks(plan, NULL, allowed, budget, searched), plan->k, keys);
    }
    for (uint32_t i = 0; i < n; ++i)
        keys[i] = (uint64_t)all[(uint32_t)~keys[i]] << 32 | (uint32_t)keys[i];
    qsort(keys, n, sizeof *keys, falling);
    return n < plan->k ? n : plan->k;
}

/* ---- queries ---- */

typedef struct batch {
    gx_query queries[N_BATCH];
    gx_weighted_term terms[N_BATCH][N_TERMS];
    char names[N_BATCH][N_TERMS][16];
} batch;

static void make_batch(batch *b, gen_rng *r)
{
    for (uint32_t i = 0; i < N_BATCH; ++i) {
        const uint32_t n = 1 + gen_below(r, gen_below(r, 2) ? 6 : N_TERMS - 1), spread = 1 + gen_below(r, 8);
        for (uint32_t t = 0; t < n; ++t) {
            gen_term_name(gen_below(r, N_TERMS), b->names[i][t]);
            b->terms[i][t] = (gx_weighted_term){b->names[i][t], strlen(b->names[i][t]),
                                                (float)(1 + gen_below(r, 7)) / (float)(1u << gen_below(r, spread))};
        }
        b->queries[i] =
            (gx_query){.size = sizeof(gx_query), .kind = GX_QUERY_TERMS, .terms = b->terms[i], .n_terms = n};
    }
}

static gx_query_options make_options(gen_rng *r)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.preset = gen_below(r, 2) ? GX_IMPACT : GX_BM25;
    opt.k = 1 + gen_below(r, gen_below(r, 3) ? 20 : MAX_K);
    opt.approximate = (float)gen_below(r, 11) / 10;
    opt.prune = gen_below(r, 8) > 0;
    if (gen_below(r, 3) == 0)
        opt.algorithm = GX_ALGORITHM_BLOCK_MAX;
    if (gen_below(r, 2))
        opt.block_budget = 1 + gen_below(r, c->n_docs / BLOCK * 5 / 4);
    return opt;
}

/* skips: the engine knows budgets of blocks. */
static void check_batch(gx_engine *en, gx_session *s, const batch *b, const gx_query_options *opt, bool skips,
                        const uint64_t *allowed, uint32_t *n_passes)
{
    gx_query_options judged = *opt;
    static uint32_t docids[N_BATCH * MAX_K];
    static double scores[N_BATCH * MAX_K];
    static uint64_t keys[MANY_DOCS];
    uint32_t n_hits[N_BATCH];
    uint64_t n_matches[N_BATCH];
    gx_error err = {0};
    const gx_results out = {sizeof out, docids, NULL, n_hits, n_matches, scores};
    if (gx_search(s, b->queries, N_BATCH, opt, &out, &err) != GX_OK)
        fail_msg("%s", err.text);
    judged.block_budget = skips ? opt->block_budget : 0;
    for (uint32_t i = 0; i < N_BATCH; ++i) {
        gx_plan plan;
        bool passes;
        if (gx_engine_plan(&plan, en, &b->queries[i], opt, &err) != GX_OK)
            fail_msg("%s", err.text);
        const uint32_t n = judge(&plan, &judged, allowed, keys, &passes);
        *n_passes += passes;
        for (uint32_t j = 0; j < n || n != n_hits[i]; ++j) {
            const size_t at = (size_t)i * opt->k + j;
            if (n != n_hits[i] || docids[at] != (uint32_t)~keys[j] ||
                scores[at] != ldexp((double)(keys[j] >> 32), -plan.exponent))
                fail_msg("query %u of a batch: wrong at rank %u (%u hits, %u wanted): %u terms, k %u, approximate %g, "
                         "%llu blocks, %s%s",
                         i, j, n_hits[i], n, plan.n_terms, opt->k, (double)opt->approximate,
                         (unsigned long long)judged.block_budget, gx_preset_name(opt->preset),
                         allowed ? ", masked" : "");
        }
        gx_plan_free(&plan);
    }
}

typedef struct engine_row {
    gx_engine_kind kind;
    uint64_t map_memory, result_cache;
    uint32_t n_cases;
} engine_row;

static void answers_are_the_judges(void **state)
{
    const engine_row *row = *state;
    const uint32_t n_cases = env_uint("GX_TEST_CASES", row->n_cases);
    gx_engine_options eopt = GX_ENGINE_OPTIONS;
    gx_engine *en;
    gx_session *s;
    gx_error err = {0};
    static batch b;
    uint64_t words[MANY_DOCS / 64 + 1];
    uint32_t n_passes = 0;
    const bool skips = row->kind == GX_ENGINE_CPU && row->map_memory;
    eopt.kind = row->kind;
    eopt.map_memory = row->map_memory;
    eopt.result_cache = row->result_cache;
    const gx_status st = gx_engine_open(&en, ix, &eopt, &err);
    if (st == GX_ENOGPU)
        skip();
    if (st != GX_OK || gx_session_open(&s, en, &err) != GX_OK)
        fail_msg("%s", err.text);
    gen_rng r = {env_uint("GX_TEST_SEED", 11) + 1};
    for (uint32_t i = 0; i < n_cases; ++i) {
        gx_query_options opt = make_options(&r);
        gx_mask *mask = NULL;
        const bool masked = gen_below(&r, 4) == 0;
        bool open = true;
        for (size_t w = 0; w < sizeof words / sizeof *words; ++w) {
            open = w % (BLOCK / 64) ? open : gen_below(&r, 3) > 0; /* some blocks have no document */
            words[w] = open ? gen_u64(&r) & gen_u64(&r) : 0;
        }
        if (masked && gx_mask_open(&mask, en, words, &err) != GX_OK)
            fail_msg("%s", err.text);
        opt.mask = mask;
        make_batch(&b, &r);
        check_batch(en, s, &b, &opt, skips, masked ? words : NULL, &n_passes);
        if (row->result_cache) { /* again, from the cache, and for fewer results */
            check_batch(en, s, &b, &opt, skips, masked ? words : NULL, &n_passes);
            opt.k = 1 + opt.k / 2;
            check_batch(en, s, &b, &opt, skips, masked ? words : NULL, &n_passes);
        }
        gx_mask_close(mask);
    }
    assert_true(n_passes > n_cases); /* of N_BATCH queries each */
    assert_true(row->result_cache == 0 || gx_session_stats(s)->cached > n_cases);
    gx_session_close(s);
    gx_engine_close(en);
}

/* ---- other thresholds and budgets ---- */

typedef struct cpu_session {
    gx_engine *en;
    gx_session *s;
} cpu_session;

static cpu_session open_cpu_session(void)
{
    cpu_session x;
    gx_engine_options eopt = GX_ENGINE_OPTIONS;
    gx_error err = {0};
    eopt.kind = GX_ENGINE_CPU;
    if (gx_engine_open(&x.en, ix, &eopt, &err) != GX_OK || gx_session_open(&x.s, x.en, &err) != GX_OK)
        fail_msg("%s", err.text);
    return x;
}

static void close_cpu_session(cpu_session *x)
{
    gx_session_close(x->s);
    gx_engine_close(x->en);
}

typedef struct answers {
    uint32_t n[N_BATCH], docids[N_BATCH * MAX_K];
    double scores[N_BATCH * MAX_K];
} answers;

/* The answers to queries [begin, end) of the batch; a query's are at its place. */
static void search_some(cpu_session *x, const batch *b, uint32_t begin, uint32_t end, const gx_query_options *opt,
                        answers *a)
{
    gx_error err = {0};
    const size_t at = (size_t)begin * opt->k;
    const gx_results out = {sizeof out, a->docids + at, NULL, a->n + begin, NULL, a->scores + at};
    if (gx_search(x->s, b->queries + begin, end - begin, opt, &out, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static void search_batch(cpu_session *x, const batch *b, const gx_query_options *opt, answers *a)
{
    memset(a, 0, sizeof *a);
    search_some(x, b, 0, N_BATCH, opt, a);
}

static void are_equal(const answers *a, const answers *b, uint32_t k)
{
    for (uint32_t q = 0; q < N_BATCH; ++q) {
        const size_t at = (size_t)q * k;
        if (a->n[q] != b->n[q] || memcmp(a->docids + at, b->docids + at, a->n[q] * sizeof *a->docids) != 0 ||
            memcmp(a->scores + at, b->scores + at, a->n[q] * sizeof *a->scores) != 0)
            fail_msg("query %u of a batch: the answers differ", q);
    }
}

/* The more blocks, the greater each score of the answer; with all blocks it is exact. */
static void more_blocks_find_no_less(void **state)
{
    (void)state;
    cpu_session x = open_cpu_session();
    static batch b;
    static answers exact, less, more;
    const uint32_t n_blocks = (c->n_docs + BLOCK - 1) / BLOCK;
    uint32_t n_better = 0;
    gen_rng r = {env_uint("GX_TEST_SEED", 11) + 3};
    for (uint32_t i = 0; i < 12; ++i) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        opt.preset = i % 2 ? GX_BM25 : GX_IMPACT;
        opt.k = i % 3 ? 10 : MAX_K;
        make_batch(&b, &r);
        search_batch(&x, &b, &opt, &exact);
        memset(&less, 0, sizeof less);
        for (opt.block_budget = 1; opt.block_budget < 2 * n_blocks; opt.block_budget += 1 + opt.block_budget / 4) {
            search_batch(&x, &b, &opt, &more);
            for (uint32_t q = 0; q < N_BATCH; ++q) {
                assert_true(more.n[q] >= less.n[q] && more.n[q] <= exact.n[q]);
                for (uint32_t j = 0; j < more.n[q]; ++j) {
                    const size_t at = (size_t)q * opt.k + j;
                    assert_true(more.scores[at] >= less.scores[at] && more.scores[at] <= exact.scores[at]);
                    n_better += more.scores[at] > less.scores[at];
                }
            }
            less = more;
        }
        opt.block_budget = UINT32_MAX;
        search_batch(&x, &b, &opt, &more);
        are_equal(&more, &exact, opt.k);
        opt.block_budget = n_blocks;
        search_batch(&x, &b, &opt, &more);
        are_equal(&more, &exact, opt.k);
    }
    assert_true(n_better > 100);
    close_cpu_session(&x);
}

/* Where blocks are not skipped, answers are exact. */
static void other_searches_skip_no_blocks(void **state)
{
    (void)state;
    cpu_session x = open_cpu_session();
    static batch b;
    static answers exact, other;
    gen_rng r = {7};
    for (uint32_t i = 0; i < 40; ++i) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        opt.op = i % 4 == 0 ? GX_OP_AND : i % 4 == 1 ? GX_OP_AND_OR : GX_OP_OR;
        opt.prune = i % 4 != 2;
        opt.algorithm = i % 4 == 3 ? GX_ALGORITHM_TAAT : GX_ALGORITHM_AUTO;
        make_batch(&b, &r);
        search_batch(&x, &b, &opt, &exact);
        opt.block_budget = 1;
        search_batch(&x, &b, &opt, &other);
        are_equal(&other, &exact, opt.k);
    }
    close_cpu_session(&x);
}

/* ---- options ---- */

static void refuse(cpu_session *x, const batch *b, const gx_query_options *opt, const char *why)
{
    static answers a;
    gx_error err = {0};
    const gx_results out = {sizeof out, a.docids, NULL, a.n, NULL, a.scores};
    assert_int_equal(gx_search(x->s, b->queries, N_BATCH, opt, &out, &err), GX_EUSAGE);
    if (!strstr(err.text, why))
        fail_msg("%s", err.text);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    cpu_session x = open_cpu_session();
    static batch b;
    gen_rng r = {6};
    const double bad[] = {-0.01, 1.01, NAN, INFINITY, -INFINITY, 1e9};
    make_batch(&b, &r);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        opt.approximate = (float)bad[i];
        refuse(&x, &b, &opt, "between 0 and 1");
    }
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.block_budget = UINT32_MAX + UINT64_C(1);
    refuse(&x, &b, &opt, "at most 4294967295");
    /* a program that was built before there were budgets */
    static answers exact, old;
    opt = (gx_query_options)GX_QUERY_OPTIONS;
    search_batch(&x, &b, &opt, &exact);
    memset((char *)&opt + offsetof(gx_query_options, block_budget), 0xff,
           sizeof opt - offsetof(gx_query_options, block_budget));
    opt.size = offsetof(gx_query_options, block_budget);
    search_batch(&x, &b, &opt, &old);
    are_equal(&old, &exact, opt.k);
    close_cpu_session(&x);
}

/* AND and AND-then-OR know no approximation. */
static void other_operators_are_exact(void **state)
{
    (void)state;
    gx_engine_options eopt = GX_ENGINE_OPTIONS;
    gx_engine *en;
    gx_session *s;
    gx_error err = {0};
    static batch b;
    static uint32_t docids[2][N_BATCH * 10];
    static double scores[2][N_BATCH * 10];
    uint32_t n_hits[2][N_BATCH];
    gen_rng r = {5};
    eopt.kind = GX_ENGINE_CPU;
    if (gx_engine_open(&en, ix, &eopt, &err) != GX_OK || gx_session_open(&s, en, &err) != GX_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < 100; ++i) {
        make_batch(&b, &r);
        for (int way = 0; way < 2; ++way) {
            gx_query_options opt = GX_QUERY_OPTIONS;
            opt.op = i % 2 ? GX_OP_AND : GX_OP_AND_OR;
            opt.approximate = way ? 0.9f : 0;
            const gx_results out = {sizeof out, docids[way], NULL, n_hits[way], NULL, scores[way]};
            assert_int_equal(gx_search(s, b.queries, N_BATCH, &opt, &out, &err), GX_OK);
        }
        assert_memory_equal(n_hits[0], n_hits[1], sizeof n_hits[0]);
        for (uint32_t q = 0; q < N_BATCH; ++q) {
            assert_memory_equal(docids[0] + q * 10, docids[1] + q * 10, n_hits[0][q] * sizeof **docids);
            assert_memory_equal(scores[0] + q * 10, scores[1] + q * 10, n_hits[0][q] * sizeof **scores);
        }
    }
    gx_session_close(s);
    gx_engine_close(en);
}

static engine_row rows[] =
    {
        {GX_ENGINE_CPU, UINT64_MAX, 0, 400},
        {GX_ENGINE_CPU, 0, 0, 400}, /* scores are added by the compressed lists */
        {GX_ENGINE_CPU, UINT64_MAX, 1 << 20, 400},
        {GX_ENGINE_GPU, UINT64_MAX, 0, 100},
        {GX_ENGINE_CPU, UINT64_MAX, 0, 40},
};

#define ON(i, name)                                                                                                    \
    {                                                                                                                  \
        "answers_are_the_judges " name, answers_are_the_judges, NULL, NULL, &rows[i]                                   \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {ON(0, "cpu"),
                                       ON(1, "cpu without tables"),
                                       ON(2, "cpu with a cache"),
                                       ON(3, "gpu"),
                                       cmocka_unit_test(other_operators_are_exact),
                                       cmocka_unit_test(other_searches_skip_no_blocks),
                                       cmocka_unit_test(bad_options_are_refused)};
    const struct CMUnitTest of_many[] = {ON(4, "cpu, many documents"),
                                         cmocka_unit_test(more_blocks_find_no_less)};
    if (getenv("GX_TEST_FILTER"))
        cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    int failed = cmocka_run_group_tests(tests, open_index, close_index);
    n_docs = MANY_DOCS;
    failed += cmocka_run_group_tests(of_many, open_index, close_index);
    return failed;
}
