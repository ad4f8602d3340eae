/* How a batch's lists are cut into items: every block of a list that needs items is in one of them,
 * and lists of different queries take turns. The host's work alone: no GPU is needed. */
#include "query/gpu/sub_batch.cuh"

extern "C" {
#include "query/score/derived.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"
}

using namespace gx;

enum { MOST_QUERIES = 12, MOST_TERMS = 96, MOST_RUNS = MOST_TERMS * 12, MOST_BLOCKS = 3000 };

struct fixture {
    sub_batch p;
    gpu_query queries[MOST_QUERIES];
    gpu_term terms[MOST_TERMS];
    item_range runs[MOST_RUNS];
};

static void open_fixture(fixture *f)
{
    memset(f, 0, sizeof *f);
    f->p.queries = f->queries;
    f->p.terms = f->terms;
    f->p.ranges = f->runs;
    begin_description(&f->p);
}

/* A query whose first `essential` lists need items. */
static void add_lists(fixture *f, const uint32_t *n_blocks, uint32_t n, uint32_t essential)
{
    const uint32_t q = f->p.n_queries++;
    f->queries[q].first_term = f->p.n_terms;
    f->queries[q].n_terms = n;
    f->p.n_essential[q] = essential;
    for (uint32_t t = 0; t < n; ++t, ++f->p.n_terms) {
        f->terms[f->p.n_terms].at.n_blocks = n_blocks[t];
        f->terms[f->p.n_terms].at.first_block = 100 * f->p.n_terms;
        f->terms[f->p.n_terms].weight.query = q;
    }
}

static void describe(fixture *f, uint32_t first, uint32_t n, bool are_multi_term, uint32_t item_blocks, bool fine)
{
    uint32_t active[MOST_QUERIES];
    pending_list lists[MOST_QUERIES];
    describe_items(&f->p, first, n, are_multi_term, item_blocks, fine, {active, lists});
    assert_true(f->p.n_ranges <= MOST_RUNS);
}

static uint32_t end_of(const fixture *f, uint32_t run)
{
    return run + 1 < f->p.n_ranges ? f->runs[run + 1].item : f->p.n_items;
}

/* Runs from `from` on as text: "term:first block+items*blocks an item". */
static const char *show(const fixture *f, uint32_t from)
{
    static char text[4096];
    size_t n = 0;
    text[0] = 0;
    for (uint32_t r = from; r < f->p.n_ranges; ++r)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%u:%u+%ux%u", r > from ? " " : "", f->runs[r].term,
                              f->runs[r].block, end_of(f, r) - f->runs[r].item, f->runs[r].item_blocks);
    return text;
}

static void a_long_list_is_cut_in_rounds_of_16_64_256_blocks(void **)
{
    static const uint32_t blocks[] = {100};
    fixture f;
    open_fixture(&f);
    add_lists(&f, blocks, 1, 1);
    describe(&f, 0, 1, false, 16, false);
    assert_string_equal(show(&f, 0), "0:0+1x16 0:16+3x16 0:64+3x16");
    assert_int_equal(f.queries[0].n_items, 7);
    open_fixture(&f);
    add_lists(&f, blocks, 1, 1);
    describe(&f, 0, 1, false, 4, false);
    assert_string_equal(show(&f, 0), "0:0+4x4 0:16+12x4 0:64+9x4");
}

static void lists_of_different_queries_take_turns(void **)
{
    static const uint32_t a[] = {20, 3}, b[] = {70, 1, 9};
    fixture f;
    open_fixture(&f);
    add_lists(&f, a, 2, 2); /* terms 0, 1 */
    add_lists(&f, b, 3, 2); /* terms 2, 3, 4; the last needs no items */
    describe(&f, 0, 2, false, 16, false);
    assert_string_equal(show(&f, 0), "0:0+1x16 2:0+1x16 0:16+1x16 2:16+3x16 2:64+1x16 1:0+1x16 3:0+1x16");
    assert_int_equal(f.queries[0].n_items, 3);
    assert_int_equal(f.queries[1].n_items, 6);
}

static void where_items_are_fine_a_query_begins_with_single_blocks(void **)
{
    static const uint32_t a[] = {10, 100, 20};
    fixture f;
    open_fixture(&f);
    add_lists(&f, a, 3, 3);
    describe(&f, 0, 1, false, 16, true);
    /* the second list begins too, as the first has fewer than 16 blocks; the third does not */
    assert_string_equal(show(&f, 0), "0:0+10x1 1:0+16x1 1:16+12x4 1:64+3x16 2:0+1x16 2:16+1x16");
}

static void a_launch_takes_short_queries_or_long_ones(void **)
{
    static const uint32_t blocks[] = {1, 2, 3, 4, 5, 6, 7};
    fixture f;
    open_fixture(&f);
    add_lists(&f, blocks, 7, 7); /* terms 0 .. 6: a query of more than SHORT_QUERY_TERMS */
    add_lists(&f, blocks, 6, 1); /* term 7 */
    add_lists(&f, blocks, 3, 0); /* nothing to search */
    describe(&f, 0, 3, false, 16, true);
    assert_string_equal(show(&f, 0), "7:0+1x1");
    describe(&f, 0, 3, true, 16, true);
    assert_string_equal(show(&f, 1), "0:0+1x16 1:0+1x16 2:0+1x16 3:0+1x16 4:0+1x16 5:0+1x16 6:0+1x16");
    describe(&f, 2, 1, false, 16, true);
    assert_int_equal(f.p.n_ranges, 8);
}

static void where_lists_go_in_turn_each_query_begins_with_its_first_list(void **)
{
    static const uint32_t a[] = {10, 100, 20}, b[] = {300, 7};
    fixture f;
    open_fixture(&f);
    f.p.in_turn = true;
    add_lists(&f, a, 3, 3); /* terms 0, 1, 2 */
    add_lists(&f, b, 2, 2); /* terms 3, 4 */
    describe(&f, 0, 2, false, 4, true);
    assert_string_equal(show(&f, 0), "0:0+10x1 3:0+16x1 3:16+48x1 3:64+48x4 3:256+11x4");
    open_fixture(&f);
    f.p.in_turn = true;
    f.p.shared = 10; /* few queries: short lists in shares of blocks, 0, and shorter items in the third round */
    add_lists(&f, a, 3, 3);
    add_lists(&f, b, 2, 2);
    describe(&f, 0, 2, false, 4, true);
    assert_string_equal(show(&f, 0), "0:0+40x0 3:0+16x1 3:16+48x1 3:64+96x2 3:256+11x4");
}

/* Every item by itself, as the kernel begin makes them: the blocks of each list, counted in quarters, which are the
 * shares of a block. */
static void check_items(const fixture *f, uint32_t first, uint32_t n, uint32_t item_blocks)
{
    static uint8_t covered[MOST_TERMS][MOST_BLOCKS];
    uint32_t n_items[MOST_QUERIES] = {}, n_middle[MOST_QUERIES] = {}, last_rank = 0;
    memset(covered, 0, sizeof covered);
    for (uint32_t r = 0; r < f->p.n_ranges; ++r) {
        const item_range *run = &f->runs[r];
        const gpu_term *t = &f->terms[run->term];
        const uint32_t q = t->weight.query, rank = run->term - f->queries[q].first_term;
        assert_true(end_of(f, r) > run->item); /* no empty runs */
        const bool shared = run->item_blocks == SHARED_BLOCK;
        assert_true(shared ? f->p.in_turn && t->at.n_blocks <= f->p.shared : run->item_blocks <= item_blocks);
        assert_true(q >= first && q < first + n && rank < (f->p.in_turn ? 1 : f->p.n_essential[q]));
        last_rank = r && f->queries[q].n_terms > SHORT_QUERY_TERMS &&
                            f->queries[f->terms[run[-1].term].weight.query].n_terms <= SHORT_QUERY_TERMS
                        ? 0
                        : last_rank; /* the launch of long queries */
        assert_true(rank >= last_rank);
        last_rank = rank;
        n_middle[q] += middle_item(*run, t->at) < end_of(f, r) - run->item;
        for (uint32_t i = run->item; i < end_of(f, r); ++i, ++n_items[q]) {
            const gpu_item item = make_range_item(*run, t->at, q, &f->queries[q], i - run->item);
            assert_true(item.block - t->at.first_block < t->at.n_blocks);
            assert_int_equal(item.packed & ITEM_SHARED ? item.packed >> ITEM_SHARE & 3 : 0,
                             shared ? (i - run->item) % MAX_SHARES : 0);
            const uint32_t n_blocks = (item.packed >> 24 & 15) + 1, begin = item.block - t->at.first_block;
            assert_int_equal(item.query, q);
            assert_int_equal(item.packed & ITEM_TERM, run->term);
            assert_int_equal((item.packed & ITEM_FIRST) != 0, begin == 0);
            assert_int_equal((item.packed & ITEM_LAST) != 0, begin + n_blocks == t->at.n_blocks);
            for (uint32_t b = begin; b < begin + n_blocks; ++b)
                covered[run->term][b] += shared ? 1 : MAX_SHARES;
        }
    }
    for (uint32_t q = 0; q < f->p.n_queries; ++q) {
        assert_int_equal(f->queries[q].n_items, n_items[q]);
        if (f->p.in_turn && n_items[q]) /* one item lets the next list in */
            assert_int_equal(n_middle[q], 1);
        for (uint32_t t = 0; t < f->queries[q].n_terms; ++t) {
            const uint32_t term = f->queries[q].first_term + t;
            const bool wanted = q >= first && q < first + n && t < f->p.n_essential[q] && (t == 0 || !f->p.in_turn);
            for (uint32_t b = 0; b < f->terms[term].at.n_blocks; ++b)
                if (covered[term][b] != (wanted ? MAX_SHARES : 0))
                    fail_msg("block %u of %u of list %u of query %u is in %u quarters of items", b,
                             f->terms[term].at.n_blocks, t, q, covered[term][b]);
        }
    }
}

static void every_block_is_in_one_item_of_random_batches(void **)
{
    static const uint32_t edges[] = {1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1024, 1025};
    static fixture f;
    gen_rng r = {1859};
    print_message("seed %llu\n", (unsigned long long)r.state);
    for (uint32_t run = 0; run < 3000; ++run) {
        open_fixture(&f);
        for (uint32_t q = 1 + gen_below(&r, MOST_QUERIES); q > 0; --q) {
            uint32_t blocks[8];
            const uint32_t n = 1 + gen_below(&r, 8);
            for (uint32_t t = 0; t < n; ++t)
                blocks[t] = gen_below(&r, 3) ? edges[gen_below(&r, sizeof edges / sizeof *edges)]
                                             : 1 + gen_below(&r, MOST_BLOCKS - 1);
            add_lists(&f, blocks, n, gen_below(&r, n + 1));
        }
        const uint32_t first = gen_below(&r, f.p.n_queries), n = 1 + gen_below(&r, f.p.n_queries - first);
        const uint32_t item_blocks = 1u << gen_below(&r, 5);
        const bool fine = gen_below(&r, 2);
        f.p.in_turn = gen_below(&r, 2);
        f.p.shared = f.p.in_turn ? gen_below(&r, 100) : 0;
        describe(&f, first, n, false, item_blocks, fine);
        describe(&f, first, n, true, item_blocks, fine);
        check_items(&f, first, n, item_blocks);
    }
}

/* Rows of query/MEASURED.md, "Which queries of few learned weights are searched by tiles?". */
static void few_weights_are_searched_by_what_was_faster(void **)
{
    static const struct {
        uint32_t n_docs, n_terms, k, n_queries;
        double postings; /* millions */
        bool good_maps, even, tiles;
    } rows[] = {
        {8841823, 2, 10, 256, .66, true, false, true},    {8841823, 6, 10, 256, 1.9, true, false, true},
        {8841823, 2, 1000, 256, .66, true, false, true},  {8841823, 6, 1000, 256, 1.9, true, false, true},
        {8841823, 2, 10, 256, .66, true, true, false},    {8841823, 6, 10, 256, 1.9, true, true, false},
        {8841823, 2, 1000, 256, .66, true, true, false},  {8841823, 4, 1000, 256, 1.18, true, true, false},
        {8841823, 2, 10, 256, .66, false, true, true},    {8841823, 6, 10, 256, 1.9, false, true, true},
        {8841823, 6, 1000, 256, 1.9, false, true, true},  {8841823, 4, 10, 1, 1.18, true, false, false},
        {8841823, 2, 10, 1, .66, true, true, false},      {8841823, 6, 10, 1, 1.9, true, true, false},
        {8841823, 4, 10, 1, 1.18, false, false, true},    {8841823, 6, 10, 1, 1.9, false, true, true},
        {8841823, 6, 1000, 1, 1.9, true, false, true},    {8841823, 2, 1000, 1, .66, true, true, false},
        {8841823, 12, 10, 256, 3.07, true, false, true},  {8841823, 12, 1000, 256, 3.07, true, false, true},
        {1000000, 2, 10, 1024, .06, true, false, true},   {1000000, 6, 10, 1024, .21, true, false, true},
        {1000000, 2, 1000, 1024, .16, true, false, true}, {1000000, 6, 1000, 1024, .09, true, false, true},
        {1000000, 2, 10, 1024, .06, true, true, false},   {1000000, 3, 10, 1024, .08, true, true, false},
        {1000000, 6, 1000, 1024, .21, true, true, true},  {1000000, 2, 1000, 1024, .01, true, true, false},
    };
    for (const auto &row : rows) {
        gx_index ix = {};
        gpu_prepared_index s = {};
        gx_plan_term terms[12] = {};
        gx_plan plan = {};
        list_aux aux = {};
        uint32_t aux_of = 0;
        const uint32_t df = (uint32_t)(row.postings * 1e6 / row.n_terms);
        ix.n_docs = row.n_docs;
        s.ix = &ix;
        s.rows.n_tiles = count_tiles(ix.n_docs);
        s.aux_of = &aux_of;
        s.aux_lists = &aux;
        aux.map_shift = gx_map_shift(ix.n_docs, df, row.good_maps ? GX_MAP_SLOTS : 1);
        for (uint32_t t = 0; t < row.n_terms; ++t)
            terms[t].df = df;
        plan.terms = terms;
        plan.n_terms = row.n_terms;
        plan.k = row.k;
        if (tiles_are_faster(&s, &plan, row.n_queries, row.even ? .72f : .19f) != row.tiles)
            fail_msg("%u documents, %u terms, %.2f M postings, k %u, %u queries: not %s", row.n_docs, row.n_terms,
                     row.postings, row.k, row.n_queries, row.tiles ? "tiles" : "lists");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_list_is_cut_in_rounds_of_16_64_256_blocks),
        cmocka_unit_test(lists_of_different_queries_take_turns),
        cmocka_unit_test(where_lists_go_in_turn_each_query_begins_with_its_first_list),
        cmocka_unit_test(where_items_are_fine_a_query_begins_with_single_blocks),
        cmocka_unit_test(a_launch_takes_short_queries_or_long_ones),
        cmocka_unit_test(every_block_is_in_one_item_of_random_batches),
        cmocka_unit_test(few_weights_are_searched_by_what_was_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
