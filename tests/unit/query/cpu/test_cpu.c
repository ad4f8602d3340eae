/* The CPU engine's parts: what is derived from lists holds for every posting, and the search equals
 * the accumulators even where the executor would not choose it. Each row is an instruction set. */
#include <math.h>
#include <unistd.h>

#include "codecs/words/pack.h"
#include "index/attributes/attributes.h"
#include "query/cpu/search.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"
#include "tests/support/vectors.h"

static const gx_cpu_kernels *kernels_named(const char *name)
{
    setenv("GX_CPU", name, 1);
    const gx_cpu_kernels *k = gx_cpu_choose();
    unsetenv("GX_CPU");
    return k;
}

typedef struct fixture {
    gen_collection *c;
    gx_index *ix;
    gx_cpu_lists *lists;
    gx_cpu_searcher *s;
} fixture;

static void open_fixture(fixture *f, const gx_cpu_kernels *k, uint64_t seed, uint32_t n_docs, const gx_codec *codec,
                         uint64_t maps)
{
    char path[] = "/tmp/gpuidx-test-cpu-XXXXXX";
    gx_error err = {0};
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    f->c = gen_open(seed, (gen_shape)(seed % GEN_N_SHAPES), n_docs, 40);
    if (gen_write(f->c, path, codec, codec, &err) != GX_OK || gx_index_open(&f->ix, path, NULL, &err) != GX_OK ||
        gx_cpu_lists_open(&f->lists, f->ix, k, maps, &err) != GX_OK ||
        gx_cpu_searcher_open(&f->s, f->ix, k, f->lists, &err) != GX_OK)
        fail_msg("%s", err.text);
    unlink(path);
}

static void close_fixture(fixture *f)
{
    gx_cpu_searcher_close(f->s);
    gx_cpu_lists_close(f->lists);
    gx_index_close(f->ix);
    gen_close(f->c);
}

/* The part of the posting with the greatest tf, of a linear scorer. */
static float unit_of(const gen_list *l, gx_scorer s)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < l->df; ++i)
        most = l->tfs[i] > most ? l->tfs[i] : most;
    return gx_scorer_is_linear(s) ? (float)most / GX_LINEAR_K : 1;
}

static gx_scorer norm_of(const fixture *f, double k1, double b, uint32_t lossy)
{
    return (gx_scorer){(float)(k1 * (1 - b)), (float)(k1 * b / f->ix->avgdl), lossy};
}

/* Against every posting: the list's and the block's bounds, as an impact at several weights and as
 * counts of the k-th. */
static void check_bounds(fixture *f, uint32_t term, gx_scorer norm)
{
    static const float weights[] = {0, 1.5f, 1000, 0x1.2345p22f, 0x1p30f};
    const gen_list *l = &f->c->lists[term];
    gx_cpu_params *p = gx_cpu_lists_params(f->lists, norm);
    assert_non_null(p);
    const gx_cpu_bounds *b = gx_cpu_params_bounds(f->lists, p, term, &f->s->scratch);
    assert_non_null(b);
    const float unit = unit_of(l, norm);
    uint32_t reach[GX_CPU_N_KTH] = {0};
    for (uint32_t i = 0; i < l->df; ++i) {
        const gx_cpu_block *block = &b->blocks[i / f->ix->block_len];
        const float K = gx_bm25_K(norm, f->c->doc_lens[l->docids[i]]), tf = (float)l->tfs[i];
        assert_true(K >= block->min_K);
        assert_true(tf / (tf + K) <= block->most && block->most <= b->most);
        for (size_t w = 0; w < sizeof weights / sizeof *weights; ++w) {
            const float weight = weights[w] / unit;
            const uint32_t impact = gx_bm25_impact(weight, l->tfs[i], K);
            const gx_cpu_bound bound = {.w = weight * (1 + 2e-6f), .min_K = block->min_K, .most = UINT32_MAX};
            assert_true(impact <= gx_cpu_bound_of(&bound, l->tfs[i]));
            assert_true(impact <= ceil((double)weight * block->most * (1 + 1e-6)) + 1);
        }
        for (uint32_t q = 0; q < GX_CPU_N_KTH; ++q)
            reach[q] += tf / (tf + K) >= b->kth[q] * (1 - 0x1p-22f); /* a rounding or two below, if linear */
    }
    for (uint32_t q = 0; q < GX_CPU_N_KTH; ++q) {
        if (b->kth[q] > 0)
            assert_true(reach[q] >= gx_cpu_kth_ranks[q]);
        if (q == 0 && gx_scorer_is_linear(norm) && l->df >= gx_cpu_kth_ranks[1])
            assert_true(b->kth[q] > 0);
    }
}

static void bounds_hold_for_every_posting(void **state)
{
    static const double k1s[] = {0, 0.5, 0.9, 1.2, 2, 1000}, bs[] = {0, 0.4, 0.75, 1};
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    for (uint64_t seed = 0; seed < GEN_N_SHAPES; ++seed) {
        fixture f;
        open_fixture(&f, k, seed, 3000, gx_codecs[seed % 3], UINT64_MAX);
        for (uint32_t term = 0; term < f.c->n_terms; term += 3) {
            for (uint32_t i = 0; i < 24; ++i)
                check_bounds(&f, term, norm_of(&f, k1s[i % 6], bs[i / 6], i % 5 == 4));
            check_bounds(&f, term, (gx_scorer){GX_LINEAR_K, 0, 0});
        }
        close_fixture(&f);
    }
}

static void maps_hold_every_posting_and_ranks_count_them(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    for (uint64_t seed = 0; seed < 8; ++seed) {
        fixture f;
        uint32_t n_dense = 0, n_maps = 0;
        /* seed 6: a list of 1,024 is just not dense */
        open_fixture(&f, k, seed, seed < 4 ? 3000 : seed == 6 ? 16 * 1024 : 40000, gx_codecs[seed % 3], UINT64_MAX);
        for (uint32_t term = 0; term < f.c->n_terms; ++term) {
            const gen_list *l = &f.c->lists[term];
            const gx_cpu_map *m = gx_cpu_lists_map(f.lists, term, &f.s->scratch);
            assert_non_null(m);
            uint32_t at = 0;
            for (uint32_t d = 0; m->map && d < f.c->n_docs; ++d) {
                const uint32_t slot = d >> m->map_shift;
                const bool held = at < l->df && l->docids[at] == d, set = m->map[slot / 32] >> slot % 32 & 1;
                assert_true(set || !held);
                if (m->rank) {
                    assert_int_equal(set, held);
                    if (d % 64 == 0)
                        assert_int_equal(m->rank[d / 64], at);
                }
                at += held;
            }
            n_maps += m->map != NULL;
            n_dense += m->rank != NULL;
        }
        assert_true(n_dense > 0 && n_maps > n_dense);
        close_fixture(&f);
    }
}

static void maps_stay_within_their_budget_and_longer_lists_come_first(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    uint64_t last = 0;
    for (uint64_t budget = 0; budget < 2000000; budget = budget * 3 / 2 + 500) {
        fixture f;
        uint32_t least_mapped = UINT32_MAX, greatest_unmapped = 0, last_mapped = 0, first_unmapped = UINT32_MAX;
        open_fixture(&f, k, 3, 20000, gx_codecs[0], budget);
        for (uint32_t term = 0; term < f.c->n_terms; ++term) {
            const gx_cpu_map *m = gx_cpu_lists_map(f.lists, term, &f.s->scratch);
            const uint32_t df = f.c->lists[term].df;
            assert_non_null(m);
            if (m->map && df <= least_mapped) {
                least_mapped = df;
                last_mapped = term;
            }
            if (!m->map && df >= 64 && df > greatest_unmapped) {
                greatest_unmapped = df;
                first_unmapped = term;
            }
        }
        const uint64_t used = gx_cpu_lists_map_bytes(f.lists);
        assert_true(used <= budget);
        assert_true(used >= last);
        assert_true(least_mapped > greatest_unmapped ||
                    (least_mapped == greatest_unmapped && last_mapped < first_unmapped));
        last = used;
        close_fixture(&f);
    }
    assert_true(last > 0);
}

/* The search against the accumulators, for every k and operator, on the same plan. */
static void the_search_equals_the_accumulators(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    uint32_t n_cases = 0, n_codecs = 0;
    if (!k)
        skip();
    while (gx_codecs[n_codecs])
        ++n_codecs;
    for (uint64_t seed = 0; seed < 24; ++seed) {
        fixture f;
        gen_rng r = {seed};
        gx_error err = {0};
        const uint32_t n_docs = 1 + gen_below(&r, seed % 6 == 5 ? 30000 : 4000);
        static const uint64_t maps[] = {UINT64_MAX, 0, UINT64_MAX, 20000};
        open_fixture(&f, k, seed, n_docs, gx_codecs[seed % n_codecs], maps[seed % 4]);
        uint64_t *fast = malloc(n_docs * sizeof *fast), *slow = malloc(n_docs * sizeof *slow);
        assert_non_null(fast);
        assert_non_null(slow);
        for (uint32_t i = 0; i < (n_docs > 4000 ? 60 : 200); ++i, ++n_cases) {
            const uint32_t ks[] = {1, 10, 64, 65, 100, 1000, n_docs, 1 + gen_below(&r, n_docs)};
            uint32_t ids[40], /* all lists: more than a list mask has bits */
                n = gen_below(&r, 10) ? 1 + gen_below(&r, 6) : 1 + gen_below(&r, 40);
            gx_query_options opt = GX_QUERY_OPTIONS;
            gx_plan plan;
            opt.k = ks[gen_below(&r, 8)];
            opt.preset = (gx_preset)gen_below(&r, GX_N_PRESETS);
            for (uint32_t t = 0; t < n; ++t)
                ids[t] = gen_below(&r, f.c->n_terms);
            assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, n, &opt, &err), GX_OK);
            for (int op = GX_OP_OR; op <= GX_OP_AND; ++op) {
                gx_hits a = {fast, 0}, b = {slow, 0};
                assert_int_equal(gx_cpu_search(f.s, &plan, (gx_op)op, &a, &err), GX_OK);
                assert_int_equal(gx_cpu_exhaust(f.s, &plan, (gx_op)op, &b, &err), GX_OK);
                uint32_t x = 0;
                while (x < a.n && x < b.n && a.keys[x] == b.keys[x])
                    ++x;
                if (a.n != b.n || x < a.n)
                    fail_msg("seed %llu, case %u, %s: %u hits for %u, the first difference at %u of k %u",
                             (unsigned long long)seed, i, op == GX_OP_AND ? "AND" : "OR", a.n, b.n, x, plan.k);
            }
            gx_plan_free(&plan);
        }
        free(fast);
        free(slow);
        close_fixture(&f);
    }
    print_message("%s: %u cases\n", k->title, n_cases);
}

/* ---- each kernel against plain C ---- */

enum { N_KERNEL_DOCS = 100000, KERNEL_CASES = 3000 };

/* n rising docids, close together or far apart, and a tf each, small or up to 2^20. */
static void random_postings(gen_rng *r, uint32_t n, uint32_t max_gap, uint32_t *docids, uint32_t *tfs)
{
    uint32_t doc = gen_below(r, 1000);
    const uint32_t max_tf = gen_below(r, 4) ? 12 : 1u << 20;
    for (uint32_t i = 0; i < n; ++i) {
        docids[i] = doc;
        tfs[i] = 1 + gen_below(r, max_tf);
        doc += 1 + gen_below(r, max_gap);
    }
}

/* A batch with any scores, bounds and lists, whose docids rise and are below N_KERNEL_DOCS. */
static void random_batch(gen_rng *r, gx_cpu_columns *c)
{
    memset(c, 0xa5, sizeof *c);
    c->n = gen_below(r, GX_CPU_COLUMN - 15);
    c->n_docs = N_KERNEL_DOCS;
    c->unordered = false;
    random_postings(r, c->n, 1 + gen_below(r, N_KERNEL_DOCS / (c->n + 20)), c->doc, c->tf);
    for (uint32_t i = 0; i < c->n; ++i) {
        c->score[i] = gen_below(r, 1u << 29);
        c->remaining_ub[i] = (1u << 24) + gen_below(r, 1u << 29);
        c->list_mask[i] = (uint32_t)gen_u64(r);
        c->K[i] = (float)(1 + gen_below(r, 4000)) / 256;
        if (c->doc[i] >= N_KERNEL_DOCS) {
            c->n = i;
            break;
        }
    }
}

/* What the columns hold, but for those that a kernel leaves behind. */
static void assert_same_batch(const gx_cpu_columns *a, const gx_cpu_columns *b, bool tf, bool K)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->doc, b->doc, a->n * sizeof *a->doc);
    assert_memory_equal(a->score, b->score, a->n * sizeof *a->score);
    assert_memory_equal(a->remaining_ub, b->remaining_ub, a->n * sizeof *a->remaining_ub);
    assert_memory_equal(a->list_mask, b->list_mask, a->n * sizeof *a->list_mask);
    if (tf)
        assert_memory_equal(a->tf, b->tf, a->n * sizeof *a->tf);
    if (K)
        assert_memory_equal(a->K, b->K, a->n * sizeof *a->K);
}

/* ---- programs of filters ---- */

/* Columns of N_KERNEL_DOCS documents: words of any bits; wide values, a document each, and their codes, 16
 * neighbouring values to each; and up to 11 values a document, 4 to a code. */
enum { MOST_VALUES = 11, NO_CODE = 254, MORE_CODES = 255, WIDE_SHIFT = 4, SEVERAL_SHIFT = 2 };
static struct {
    uint32_t words[N_KERNEL_DOCS + 2];
    uint64_t wide[N_KERNEL_DOCS];
    uint16_t wide_codes[N_KERNEL_DOCS + 2];
    uint16_t several[N_KERNEL_DOCS * MOST_VALUES];
    uint32_t starts[N_KERNEL_DOCS + 1];
    uint8_t several_codes[3][N_KERNEL_DOCS][16]; /* of 1, 2 and 4 words */
    uint32_t table[N_KERNEL_DOCS / 32 + 1];      /* of docids, and of numbers below 2^16 */
} columns;
static const gx_column wide_column = {.type = GX_ATTRIBUTE_INT, .width = 8, .values = columns.wide};
static const gx_column several_column = {
    .type = GX_ATTRIBUTE_INT, .width = 2, .values = columns.several, .starts = columns.starts};

static void fill_columns(gen_rng *r)
{
    for (uint32_t x = 0; x < N_KERNEL_DOCS + 2; ++x)
        columns.words[x] = (uint32_t)gen_u64(r);
    for (uint32_t x = 0; x < sizeof columns.table / sizeof *columns.table; ++x)
        columns.table[x] = (uint32_t)gen_u64(r);
    for (uint32_t d = 0; d < N_KERNEL_DOCS; ++d) {
        columns.wide[d] = gen_below(r, 60000 << WIDE_SHIFT);
        columns.wide_codes[2 + d] = (uint16_t)(columns.wide[d] >> WIDE_SHIFT);
        const uint32_t n = gen_below(r, 2) ? gen_below(r, 4) : gen_below(r, MOST_VALUES + 1), begin = columns.starts[d];
        columns.starts[d + 1] = begin + n;
        for (uint32_t i = 0; i < n; ++i)
            columns.several[begin + i] = (uint16_t)gen_below(r, 250 << SEVERAL_SHIFT);
        for (uint32_t shift = 0; shift < 3; ++shift) {
            const uint32_t room = 4u << shift;
            uint8_t *const codes = columns.several_codes[shift][0] + (size_t)d * room;
            for (uint32_t i = 0; i < room; ++i)
                codes[i] = i < n ? (uint8_t)(columns.several[begin + i] >> SEVERAL_SHIFT) : NO_CODE;
            if (n > room)
                codes[room - 1] = MORE_CODES;
        }
    }
}

/* A range of values as a range of codes, of which values 2^shift to a code have the same. */
static void set_codes(gx_cpu_test *t, uint32_t low, uint32_t high, uint32_t shift, uint32_t times)
{
    const uint32_t first = low >> shift, last = high >> shift;
    const uint32_t inner = (low + (1u << shift) - 1) >> shift, inner_end = (high + 1) >> shift;
    const uint32_t unused = t->width == 1 ? 253 : 65533;
    t->column_low = low;
    t->column_high = high;
    t->low = first * times;
    t->span = (last - first) * times;
    t->inner_low = (inner < inner_end ? inner : unused) * times;
    t->inner_span = inner < inner_end ? (inner_end - 1 - inner) * times : 0;
    t->inexact = t->low != t->inner_low || t->span != t->inner_span;
}

static gx_cpu_test random_test(gen_rng *r)
{
    const uint32_t kind = gen_below(r, 6), width = 1u << gen_below(r, 3), most = UINT32_MAX >> (32 - 8 * width);
    /* values of another width are elsewhere */
    const uint8_t *const values = (const uint8_t *)(columns.words + 1) + width;
    gx_cpu_test t = {.form = GX_CPU_TEST_VALUE, .values = values, .width = width};
    if (kind == 0) {
        t.form = GX_CPU_TEST_DOCID;
        t.low = gen_below(r, N_KERNEL_DOCS);
        t.span = gen_below(r, N_KERNEL_DOCS);
        t.table = gen_below(r, 2) ? columns.table : NULL;
    } else if (kind == 1) {
        const uint32_t low = gen_below(r, 60000 << WIDE_SHIFT), left = (60000 << WIDE_SHIFT) - low;
        t.values = columns.wide_codes + 2;
        t.column = &wide_column;
        t.width = 2;
        set_codes(&t, low, low + gen_below(r, gen_below(r, 2) ? left : left < 100 ? left : 100), WIDE_SHIFT, 1);
    } else if (kind < 4) {
        const uint32_t low = gen_below(r, 250 << SEVERAL_SHIFT), left = (250 << SEVERAL_SHIFT) - low;
        t.form = GX_CPU_TEST_CODES;
        t.words_shift = gen_below(r, 3);
        t.values = columns.several_codes[t.words_shift];
        t.column = &several_column;
        t.width = 1;
        t.more = MORE_CODES;
        set_codes(&t, low, low + gen_below(r, gen_below(r, 2) ? left : left < 9 ? left : 9), SEVERAL_SHIFT, 0x01010101);
    } else {
        t.low = (uint32_t)gen_u64(r) & most;
        t.span = gen_below(r, 2) ? most - t.low : gen_below(r, most - t.low + 1) / 2;
        t.table = width <= 2 && gen_below(r, 3) == 0 ? columns.table : NULL;
    }
    return t;
}

/* By what the test means: the values, not their codes. */
static bool meets(const gx_cpu_test *t, uint32_t doc)
{
    uint32_t value = doc;
    bool any = false;
    if (t->column == &wide_column)
        return columns.wide[doc] >= t->column_low && columns.wide[doc] <= t->column_high;
    for (uint32_t i = columns.starts[doc]; t->column && i < columns.starts[doc + 1]; ++i)
        any = any || (columns.several[i] >= t->column_low && columns.several[i] <= t->column_high);
    if (t->column)
        return any;
    if (t->form == GX_CPU_TEST_VALUE) {
        value = 0;
        memcpy(&value, (const uint8_t *)t->values + (size_t)doc * t->width, t->width);
    }
    return t->table ? columns.table[value / 32] >> value % 32 & 1 : value >= t->low && value - t->low <= t->span;
}

/* Clauses of tests that lead anywhere behind them. */
static void random_program(gen_rng *r, gx_cpu_program *p)
{
    uint32_t at = gen_below(r, GX_CPU_TESTS + 1);
    p->n_clauses = 0;
    while (at < GX_CPU_TESTS) {
        const uint32_t n = gen_below(r, 2) ? 1 : 1 + gen_below(r, GX_CPU_TESTS - at), end = at + n;
        p->clauses[p->n_clauses++] = (gx_cpu_clause){at, end, 1, gen_below(r, 2) ? 0.01f : 0.5f};
        for (; at < end; ++at) {
            p->tests[at] = at && gen_below(r, 3) == 0 ? p->tests[at - 1] : random_test(r); /* the same column again */
            uint32_t *const to[] = {&p->tests[at].met, &p->tests[at].unmet};
            for (int i = 0; i < 2; ++i) {
                const uint32_t left = end - 1 - at, next = gen_below(r, left + 2);
                *to[i] = next < left ? at + 1 + next : (next == left) == (i == 0) ? GX_CPU_YES : GX_CPU_NO;
            }
        }
    }
    if (gen_below(r, 16) == 0 && p->n_clauses < GX_CPU_TESTS) /* one that selects all, or nothing */
        p->clauses[p->n_clauses++] = (gx_cpu_clause){gen_below(r, 2) ? GX_CPU_YES : GX_CPU_NO, GX_CPU_TESTS, 0, 0};
}

/* One document after another. */
static bool selects(const gx_cpu_program *p, uint32_t clause, uint32_t end, uint32_t doc)
{
    for (; clause < end; ++clause) {
        uint32_t at = p->clauses[clause].first;
        while (at < GX_CPU_TESTS)
            at = meets(&p->tests[at], doc) ? p->tests[at].met : p->tests[at].unmet;
        if (at != GX_CPU_YES)
            return false;
    }
    return true;
}

/* Of the candidates from number `from` on, those that the bound's clauses select. */
static void drop_others(gx_cpu_columns *c, uint32_t from, const gx_cpu_bound *b)
{
    uint32_t to = from;
    for (uint32_t i = from; i < c->n; ++i) {
        const bool kept = selects(b->program, b->clause, b->end_clause, c->doc[i]);
        c->doc[to] = c->doc[i];
        c->tf[to] = c->tf[i];
        c->score[to] = c->score[i];
        c->remaining_ub[to] = c->remaining_ub[i];
        c->list_mask[to] = c->list_mask[i];
        to += kept;
    }
    c->n = to;
}

/* Drop the candidates whose bits are 0. */
static void keep_allowed(gx_cpu_columns *c, const uint32_t *map)
{
    uint32_t to = 0;
    for (uint32_t x = 0; x < c->n; ++x) {
        if (!(map[c->doc[x] / 32] >> c->doc[x] % 32 & 1))
            continue;
        c->doc[to] = c->doc[x];
        c->score[to] = c->score[x];
        c->remaining_ub[to] = c->remaining_ub[x];
        c->list_mask[to] = c->list_mask[x];
        c->K[to++] = c->K[x];
    }
    c->n = to;
}

static void steps_of_a_batch_equal_those_in_plain_C(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state), *plain = &gx_cpu_portable;
    if (!k)
        skip();
    gen_rng r = {20};
    print_message("seed 20\n");
    static gx_cpu_columns a, b;
    static uint32_t map[N_KERNEL_DOCS / 32 + 64], rank[N_KERNEL_DOCS / 64 + 2], lens[N_KERNEL_DOCS + 1];
    static uint32_t tfs[GX_CPU_COLUMN], to_a[GX_CPU_COLUMN], to_b[GX_CPU_COLUMN];
    static uint64_t words[N_KERNEL_DOCS / 64 + 2];
    for (uint32_t d = 0; d <= N_KERNEL_DOCS; ++d)
        lens[d] = gen_below(&r, gen_below(&r, 50) ? 300 : 1u << 24);
    for (uint32_t i = 0; i < KERNEL_CASES; ++i) {
        const uint32_t bit = UINT32_C(1) << gen_below(&r, 32), T = gen_below(&r, 1u << 30),
                       ub = gen_below(&r, 1u << 24);
        const uint32_t shift = gen_below(&r, 8), mask = gen_below(&r, 2) ? UINT32_MAX : 1023;
        const bool all = gen_below(&r, 2);
        const float w = (float)(1 + gen_below(&r, 1u << 28));
        const gx_scorer norm = {(float)gen_below(&r, 100) / 64, (float)gen_below(&r, 100) / 4096, 0};
        for (uint32_t x = 0; x < sizeof map / sizeof *map; ++x)
            map[x] = (uint32_t)(gen_u64(&r) & gen_u64(&r));
        random_batch(&r, &a);
        b = a;
        const gx_cpu_presence presence = {map, shift, mask, ub, bit};
        k->apply_presence_map(&a, &presence, T, all);
        plain->apply_presence_map(&b, &presence, T, all);
        assert_same_batch(&a, &b, true, false);

        random_batch(&r, &a);
        a.unordered = true;
        for (uint32_t x = 0; x < a.n; ++x) { /* no order */
            const uint32_t y = gen_below(&r, a.n), doc = a.doc[x];
            a.doc[x] = a.doc[y];
            a.doc[y] = doc;
        }
        b = a;
        k->apply_presence_map(&a, &presence, T, all);
        plain->apply_presence_map(&b, &presence, T, all);
        assert_same_batch(&a, &b, true, false);

        random_batch(&r, &a);
        b = a;
        k->score_own(&a, lens, norm, w, T, NULL);
        plain->score_own(&b, lens, norm, w, T, NULL);
        assert_same_batch(&a, &b, false, true);

        random_batch(&r, &a);
        b = a;
        k->score_own(&a, lens, norm, w, T, map);
        plain->score_own(&b, lens, norm, w, T, NULL);
        keep_allowed(&b, map);
        assert_same_batch(&a, &b, false, true);

        random_batch(&r, &a);
        for (uint32_t x = 0; x < GX_CPU_COLUMN; ++x)
            tfs[x] = gen_below(&r, 2) ? 0 : 1 + gen_below(&r, gen_below(&r, 9) ? 12 : 1u << 20);
        b = a;
        k->add_list_score(&a, tfs, w, ub, bit, T, all);
        plain->add_list_score(&b, tfs, w, ub, bit, T, all);
        assert_same_batch(&a, &b, false, true);

        for (uint32_t x = 0, before = 0; x < N_KERNEL_DOCS / 64 + 1; ++x) {
            words[x] = gen_u64(&r) & gen_u64(&r);
            rank[x] = before;
            before += (uint32_t)__builtin_popcountll(words[x]);
        }
        random_batch(&r, &a);
        const gx_cpu_dense dense = {words, rank};
        assert_int_equal(k->dense_positions(&a, dense, bit, to_a), plain->dense_positions(&a, dense, bit, to_b));
        assert_memory_equal(to_a, to_b, a.n * sizeof *to_a);
    }
}

/* Against what each test means, for every width of values and number of candidates before. */
static void tests_keep_what_they_should(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    gen_rng r = {23};
    print_message("seed 23\n");
    static gx_cpu_columns a, all, want;
    static uint32_t words[N_KERNEL_DOCS + 64];
    static uint8_t marks[GX_CPU_COLUMN + 16];
    static gx_cpu_program program;
    uint64_t n_kept = 0, n_all = 0;
    fill_columns(&r);
    for (uint32_t i = 0; i < 2 * KERNEL_CASES; ++i) {
        random_program(&r, &program);
        const uint32_t clause = gen_below(&r, program.n_clauses + 1);
        for (uint32_t x = 0; x < sizeof words / sizeof *words; ++x)
            words[x] = (uint32_t)gen_u64(&r);
        for (uint32_t x = 0; x < sizeof marks; ++x)
            marks[x] = (uint8_t)gen_below(&r, 2);
        random_batch(&r, &all);
        const uint32_t from = gen_below(&r, 3) ? 0 : gen_below(&r, all.n + 1), by = gen_below(&r, 3);
        want = all;
        want.n = from;
        for (uint32_t x = from; x < all.n; ++x) {
            const uint32_t doc = all.doc[x];
            const bool kept = by == 0   ? selects(&program, clause, program.n_clauses, doc)
                              : by == 1 ? words[doc / 32] >> doc % 32 & 1
                                        : marks[x - from];
            want.doc[want.n] = all.doc[x];
            want.tf[want.n] = all.tf[x];
            want.score[want.n] = all.score[x];
            want.remaining_ub[want.n] = all.remaining_ub[x];
            want.list_mask[want.n] = all.list_mask[x];
            want.K[want.n] = all.K[x];
            want.n += kept;
        }
        n_kept += by == 0 && clause < program.n_clauses ? want.n - from : 0;
        n_all += by == 0 && clause < program.n_clauses ? all.n - from : 0;
        a = all;
        if (by == 0)
            k->test_program(&a, from, &program, clause);
        else if (by == 1)
            k->test_map(&a, from, words);
        else
            k->drop_unkept(&a, from, marks);
        assert_same_batch(&a, &want, true, true);
    }
    assert_true(n_kept > n_all / 10 && n_kept < n_all / 10 * 9); /* programs that tell documents apart */
}

/* Behind candidates that are there, those documents whose bound reaches T. */
static void documents_are_appended(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    gen_rng r = {24};
    print_message("seed 24\n");
    static gx_cpu_columns a, want;
    static uint32_t map[N_KERNEL_DOCS / 32 + 64], docids[512 + 16];
    for (uint32_t i = 0; i < KERNEL_CASES; ++i) {
        const uint32_t shift = gen_below(&r, 8), ub = gen_below(&r, 1u << 24),
                       remaining_ub = ub + gen_below(&r, 1u << 24);
        const uint32_t bit = UINT32_C(1) << gen_below(&r, 32), n = gen_below(&r, 513);
        const uint32_t T = gen_below(&r, 2) ? remaining_ub - ub + gen_below(&r, ub + 2) : gen_below(&r, 1u << 25);
        const gx_cpu_presence presence = {map, shift, UINT32_MAX, ub, bit};
        for (uint32_t x = 0; x < sizeof map / sizeof *map; ++x)
            map[x] = (uint32_t)(gen_u64(&r) & gen_u64(&r));
        for (uint32_t x = 0; x < n; ++x)
            docids[x] = gen_below(&r, N_KERNEL_DOCS);
        random_batch(&r, &a);
        a.n = a.n < GX_CPU_BATCH ? a.n : GX_CPU_BATCH;
        want = a;
        for (uint32_t x = 0; x < n; ++x) {
            const uint32_t slot = docids[x] >> shift;
            const bool in = map[slot / 32] >> slot % 32 & 1;
            if ((in ? remaining_ub : remaining_ub - ub) < T)
                continue;
            want.doc[want.n] = docids[x];
            want.tf[want.n] = want.score[want.n] = 0;
            want.remaining_ub[want.n] = in ? remaining_ub : remaining_ub - ub;
            want.list_mask[want.n++] = in ? UINT32_MAX : ~bit;
        }
        k->append_documents(&a, docids, n, &presence, remaining_ub, T);
        assert_same_batch(&a, &want, true, false);
    }
}

/* Docids of an index may be damaged: some are n_docs or above. */
static void decoded_blocks_give_what_plain_C_gives(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state), *plain = &gx_cpu_portable;
    if (!k)
        skip();
    gen_rng r = {21};
    print_message("seed 21\n");
    static gx_cpu_columns a, b;
    static uint32_t lens[N_KERNEL_DOCS + 1];
    _Alignas(64) uint32_t docids[GX_MAX_BLOCK + 16], tfs[GX_MAX_BLOCK + 16];
    _Alignas(64) float parts_a[GX_MAX_BLOCK + 16], parts_b[GX_MAX_BLOCK + 16];
    static gx_cpu_program program;
    fill_columns(&r);
    for (uint32_t d = 0; d <= N_KERNEL_DOCS; ++d)
        lens[d] = gen_below(&r, 300);
    for (uint32_t i = 0; i < KERNEL_CASES; ++i) {
        const uint32_t n = 1 + gen_below(&r, gen_below(&r, 2) ? 128 : GX_MAX_BLOCK), min_tf = 1 + gen_below(&r, 14);
        gx_cpu_bound bound = {.w = (float)(1 + gen_below(&r, 1u << 28)),
                              .min_K = (float)gen_below(&r, 100) / 32,
                              .most = 1 + gen_below(&r, 1u << 28),
                              .min_tf = min_tf,
                              .remaining_ub = gen_below(&r, 1u << 28),
                              .program = &program};
        random_program(&r, &program);
        bound.clause = gen_below(&r, program.n_clauses + 1);
        bound.end_clause = bound.clause + gen_below(&r, program.n_clauses - bound.clause + 1);
        const gx_scorer norm = {(float)gen_below(&r, 100) / 64, (float)gen_below(&r, 100) / 4096, 0};
        random_postings(&r, n, 1 + gen_below(&r, 500), docids, tfs);
        random_batch(&r, &a);
        a.n = gen_below(&r, GX_CPU_BATCH);
        a.n_docs = 1 + gen_below(&r, N_KERNEL_DOCS);
        b = a;
        k->append_decoded_block(&a, docids, tfs, n, &bound);
        const uint32_t before = b.n;
        gx_cpu_bound without = bound;
        without.end_clause = without.clause;
        plain->append_decoded_block(&b, docids, tfs, n, &without);
        drop_others(&b, before, &bound);
        assert_same_batch(&a, &b, true, false);
        assert_int_equal(k->any_tf_reaches(tfs, n, min_tf), plain->any_tf_reaches(tfs, n, min_tf));
        const uint32_t doc = gen_below(&r, docids[n - 1] + 2);
        assert_int_equal(k->count_below(docids, n, doc), plain->count_below(docids, n, doc));
        float min_a, min_b;
        const gx_cpu_lengths lengths = {lens, a.n_docs, norm};
        const float most_a = k->parts(docids, tfs, n, &lengths, parts_a, &min_a),
                    most_b = plain->parts(docids, tfs, n, &lengths, parts_b, &min_b);
        assert_memory_equal(&most_a, &most_b, sizeof most_a);
        assert_memory_equal(&min_a, &min_b, sizeof min_a);
        assert_memory_equal(parts_a, parts_b, n * sizeof *parts_a);
    }
}

/* Blocks of any number of postings, as gx_pack writes them, with integers of every width. The first
 * d-gap may be above 0, which no index has but the unpackers define. */
static void packed_blocks_give_what_plain_C_gives(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state), *plain = &gx_cpu_portable;
    if (!k || !k->scan_packed_block)
        skip();
    gen_rng r = {22};
    print_message("seed 22\n");
    static gx_cpu_columns a, b;
    static gx_cpu_program program;
    fill_columns(&r);
    for (uint32_t i = 0; i < 128 * (k->max_docid_bits + 1); ++i) {
        const uint32_t n = 1 + i % 128, docid_bits = i / 128, tf_bits = gen_below(&r, k->max_tf_bits + 1);
        const uint32_t n_words[2] = {gx_packed_words(n, docid_bits), gx_packed_words(n, tf_bits)};
        const uint32_t first = gen_below(&r, gen_below(&r, 2) ? 1u << 24 : N_KERNEL_DOCS / 2),
                       most = gx_low_bits(tf_bits) + 2;
        uint32_t gaps[128], less_one[128], docids[128 + 16], tfs[128 + 16];
        for (uint32_t x = 0, last = first - 1; x < n; ++x) {
            gaps[x] = (uint32_t)gen_u64(&r) & gx_low_bits(docid_bits);
            less_one[x] = (uint32_t)gen_u64(&r) & gx_low_bits(gen_below(&r, tf_bits + 1));
            docids[x] = last += gaps[x] + 1;
            tfs[x] = less_one[x] + 1;
        }
        uint32_t *docid_words = calloc(1, n_words[0] * sizeof *docid_words + GX_READ_SLACK),
                 *tf_words = calloc(1, n_words[1] * sizeof *tf_words + GX_READ_SLACK);
        assert_true(docid_words && tf_words);
        memset(docid_words, 0xa5, n_words[0] * sizeof *docid_words + GX_READ_SLACK);
        memset(tf_words, 0xa5, n_words[1] * sizeof *tf_words + GX_READ_SLACK);
        gx_pack(gaps, n, docid_bits, docid_words);
        gx_pack(less_one, n, tf_bits, tf_words);

        _Alignas(64) uint32_t unpacked[128];
        k->unpack_docids(docid_words, docid_bits, n, first, unpacked);
        assert_memory_equal(unpacked, docids, n * sizeof *docids);

        gx_cpu_bound bound = {.w = 1e6f,
                              .min_K = 1,
                              .most = 900000,
                              .min_tf = gen_below(&r, 2) ? 1 : 1 + gen_below(&r, most),
                              .program = &program};
        random_batch(&r, &a);
        a.n = gen_below(&r, GX_CPU_BATCH);
        a.n_docs = gen_below(&r, 4) ? UINT32_MAX : first + gen_below(&r, 1u << docid_bits);
        b = a;
        plain->append_decoded_block(&b, docids, tfs, n, &bound);
        if (a.n_docs <= N_KERNEL_DOCS) {
            random_program(&r, &program);
            bound.end_clause = program.n_clauses;
            drop_others(&b, a.n, &bound);
        }
        const gx_cpu_packed_block block = {docid_words, tf_words, docid_bits, tf_bits, n, first};
        const bool any = k->scan_packed_block(&a, &block, &bound);
        assert_same_batch(&a, &b, true, false);
        assert_true(any || !plain->any_tf_reaches(tfs, n, bound.min_tf));
        free(docid_words);
        free(tf_words);
    }
}

/* An index whose lists were damaged after it was checked: any answer will do, but nothing is read
 * or written outside. */
static void damaged_lists_do_no_harm(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    for (uint64_t seed = 0; seed < 30; ++seed) {
        fixture f;
        gen_rng r = {seed};
        gx_error err = {0};
        open_fixture(&f, k, seed, 3000, gx_codecs[1 + seed % 2], seed % 4 < 2 ? UINT64_MAX : 0);
        const size_t n_bytes = f.ix->payload_words * 4;
        uint8_t *damaged = malloc(n_bytes + GX_READ_SLACK);
        assert_non_null(damaged);
        memcpy(damaged, f.ix->payload, n_bytes);
        memset(damaged + n_bytes, 0, GX_READ_SLACK);
        for (uint32_t i = 0; i < n_bytes / 50 + 1; ++i)
            damaged[gen_below(&r, (uint32_t)n_bytes)] = seed % 3 ? (uint8_t)gen_u64(&r) : 0xff;
        f.ix->payload = (const uint32_t *)(const void *)damaged;
        uint64_t keys[3000];
        for (uint32_t i = 0; i < 40; ++i) {
            uint32_t ids[5];
            gx_plan plan;
            gx_query_options opt = GX_QUERY_OPTIONS;
            opt.k = i % 2 ? 10 : 1000;
            opt.k1 = i % 4 ? 0.9f : 0;
            for (uint32_t t = 0; t < 5; ++t)
                ids[t] = gen_below(&r, f.c->n_terms);
            assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, 5, &opt, &err), GX_OK);
            for (int op = GX_OP_OR; op <= GX_OP_AND; ++op) {
                gx_hits hits = {keys, 0};
                assert_int_equal(gx_cpu_search(f.s, &plan, (gx_op)op, &hits, &err), GX_OK);
                for (uint32_t x = 0; x < hits.n; ++x)
                    assert_true(gx_key_docid(keys[x]) < f.ix->n_docs);
                assert_int_equal(gx_cpu_exhaust(f.s, &plan, (gx_op)op, &hits, &err), GX_OK);
            }
            gx_hits hits = {keys, 0};
            plan.recursion = i % (GX_MAX_RECURSION + 1);
            assert_int_equal(gx_cpu_intersect(f.s, &plan, &hits, &err), GX_OK);
            for (uint32_t x = 0; x < hits.n; ++x)
                assert_true(gx_key_docid(keys[x]) < f.ix->n_docs);
            gx_plan_free(&plan);
        }
        close_fixture(&f);
        free(damaged);
    }
}

/* ---- the k best ---- */

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static void the_k_best_are_those_of_a_sort(void **state)
{
    static const uint32_t ks[] = {1, 2, 63, 64, 65, 100, 1000, 5000}, ranges[] = {1, 2, 50, 5000, 1u << 20, 1u << 30};
    gen_rng r = {7};
    gx_cpu_best *best = calloc(1, sizeof *best);
    uint64_t *keys = malloc(60000 * sizeof *keys), *out = malloc(5000 * sizeof *out);
    (void)state;
    assert_non_null(best);
    assert_non_null(keys);
    assert_non_null(out);
    for (int i = 0; i < 200; ++i) {
        const uint32_t k = ks[gen_below(&r, 8)], range = ranges[gen_below(&r, 6)],
                       n = gen_below(&r, gen_below(&r, 2) ? 60000 : 300);
        assert_true(gx_cpu_best_begin(best, k, 1));
        for (uint32_t x = 0; x < n; ++x) {
            const uint32_t score = 1 + gen_below(&r, range), docid = x * 7919u % 65537u;
            keys[x] = gx_key(score, docid);
            gx_cpu_best_add(best, score, docid);
        }
        const uint32_t got = gx_cpu_best_finish(best, out);
        qsort(keys, n, sizeof *keys, falling);
        assert_int_equal(got, n < k ? n : k);
        assert_memory_equal(out, keys, got * sizeof *out);
        if (n >= k)
            assert_true(best->threshold <= gx_key_score(out[k - 1]));
    }
    gx_cpu_best_free(best);
    free(best);
    free(keys);
    free(out);
}

#define ROWS(test)                                                                                                     \
    {#test " (portable)", test, NULL, NULL, "portable"},                                                               \
        {#test " (" VECTORS_TITLE ")", test, NULL, NULL, VECTORS},                                                     \
    {                                                                                                                  \
#test " (AVX-512)", test, NULL, NULL, "avx512"                                                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROWS(bounds_hold_for_every_posting),
        ROWS(maps_hold_every_posting_and_ranks_count_them),
        ROWS(maps_stay_within_their_budget_and_longer_lists_come_first),
        ROWS(the_search_equals_the_accumulators),
        ROWS(steps_of_a_batch_equal_those_in_plain_C),
        ROWS(tests_keep_what_they_should),
        ROWS(documents_are_appended),
        ROWS(decoded_blocks_give_what_plain_C_gives),
        ROWS(packed_blocks_give_what_plain_C_gives),
        ROWS(damaged_lists_do_no_harm),
        cmocka_unit_test(the_k_best_are_those_of_a_sort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
