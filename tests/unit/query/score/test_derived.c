/* The plan of maps, against rules that are checked one by one on random lists. */
#include "query/score/derived.h"

#include "engine/random.h"
#include "tests/support/test.h"

enum { MAX_LISTS = 300 };

static uint64_t seed = 20091;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

/* Sizes as an engine has them: rounded up, with ranks for maps of single documents. */
static uint64_t map_words(uint32_t n_docs, uint32_t shift)
{
    return ((n_docs >> shift) / 32 + 8) / 8 * 8 + (shift == 0 ? n_docs / 512 + 1 : 0);
}

static uint64_t class_words(uint32_t n_docs, uint32_t shift)
{
    return (n_docs >> shift) / 16 + 1;
}

static const gx_map_sizes sizes = {map_words, class_words};

typedef struct fixture {
    gx_index ix;
    gx_list_entry lists[MAX_LISTS];
} fixture;

static void random_index(fixture *f)
{
    const uint32_t n_docs = 1 + below(below(2) ? 2000 : 20000000), longest = below(3) ? n_docs : 1 + below(n_docs);
    memset(f, 0, sizeof *f);
    f->ix.n_docs = n_docs;
    f->ix.n_terms = below(MAX_LISTS + 1);
    f->ix.lists = f->lists;
    for (uint32_t i = 0; i < f->ix.n_terms; ++i) /* some lists are as long as others */
        f->lists[i].df = i && below(4) == 0 ? f->lists[below(i)].df : 1 + below(1 + below(longest));
}

static uint64_t words_of(const fixture *f, uint32_t list, uint32_t slots, bool classes)
{
    const uint32_t shift = gx_map_shift(f->ix.n_docs, f->lists[list].df, slots);
    return map_words(f->ix.n_docs, shift) + (classes ? class_words(f->ix.n_docs, shift) : 0);
}

/* The words of the maps of the first n lists, of which the first n_fine are fine. */
static uint64_t words_of_first(const fixture *f, const gx_map_plan *p, uint32_t n, uint32_t slots, uint32_t n_fine,
                               uint32_t fine_slots)
{
    uint64_t words = 0;
    for (uint32_t i = 0; i < n; ++i)
        words += i < n_fine ? words_of(f, p->lists[i], fine_slots, true) : words_of(f, p->lists[i], slots, false);
    return words;
}

static void check_order(const fixture *f, const gx_map_plan *p)
{
    uint32_t n_long = 0;
    for (uint32_t i = 0; i < f->ix.n_terms; ++i)
        n_long += f->lists[i].df >= GX_MAP_MIN_DF;
    assert_int_equal(p->n_lists, n_long);
    for (uint32_t i = 0; i < p->n_lists; ++i) {
        const uint32_t list = p->lists[i], df = f->lists[list].df;
        assert_true(list < f->ix.n_terms && df >= GX_MAP_MIN_DF);
        if (i) {
            const uint32_t before = p->lists[i - 1], df_before = f->lists[before].df;
            assert_true(df_before > df || (df_before == df && before < list));
        }
    }
}

/* No map that the budget allows is missing, none that it does not allow is there, and slots are
 * halved only where that serves more lists. */
static void check_plan(const fixture *f, const gx_map_plan *p, const gx_map_policy *policy, uint64_t words)
{
    check_order(f, p);
    assert_true(p->n_fine <= p->n_maps && p->n_maps <= p->n_lists);
    assert_true(p->slots >= policy->coarsest_slots && p->slots <= GX_MAP_SLOTS);
    assert_true(words_of_first(f, p, p->n_maps, p->slots, p->n_fine, policy->fine_slots) <= words);
    if (p->n_maps < p->n_lists) {
        assert_true(words_of_first(f, p, p->n_maps + 1, p->slots, 0, 0) > words);
        assert_int_equal(p->slots, policy->coarsest_slots);
    }
    if (p->slots < GX_MAP_SLOTS)
        assert_true(words_of_first(f, p, p->n_lists, 2 * p->slots, 0, 0) > words);
    if (policy->fine_slots == 0)
        assert_int_equal(p->n_fine, 0);
    else if (p->n_fine < p->n_maps)
        assert_true(words_of_first(f, p, p->n_maps, p->slots, p->n_fine + 1, policy->fine_slots) > words);
}

static void plans_follow_their_rules(void **state)
{
    static const gx_map_policy *const policies[] = {&gx_maps_cpu, &gx_maps_gpu};
    static fixture f;
    uint32_t n_coarse = 0, n_lacking = 0, n_fine = 0;
    (void)state;
    for (uint32_t i = 0; i < 6000; ++i) {
        const gx_map_policy *policy = policies[i % 2];
        gx_map_plan p;
        gx_error err = {0};
        random_index(&f);
        assert_int_equal(gx_map_plan_make(&p, &f.ix, policy, &sizes, UINT64_MAX / 4, &err), GX_OK);
        check_plan(&f, &p, policy, UINT64_MAX / 4);
        assert_int_equal(p.n_maps, p.n_lists);
        assert_int_equal(p.slots, GX_MAP_SLOTS);
        const uint64_t all = words_of_first(&f, &p, p.n_lists, GX_MAP_SLOTS, 0, 0);
        gx_map_plan_free(&p);
        const uint64_t words = gx_random_next(&seed) % (2 * all + 2) / (1 + below(8));
        assert_int_equal(gx_map_plan_make(&p, &f.ix, policy, &sizes, words, &err), GX_OK);
        check_plan(&f, &p, policy, words);
        n_coarse += p.n_maps == p.n_lists && p.slots < GX_MAP_SLOTS;
        n_lacking += p.n_maps < p.n_lists;
        n_fine += p.n_fine > 0;
        gx_map_plan_free(&p);
        assert_int_equal(gx_map_plan_make(&p, &f.ix, policy, &sizes, 0, &err), GX_OK);
        assert_int_equal(p.n_maps, 0);
        gx_map_plan_free(&p);
    }
    assert_true(n_coarse > 100 && n_lacking > 100 && n_fine > 100);
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("GX_TEST_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_follow_their_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
