/* Ranges of attributes in whose order the documents come: where zones tell that all documents of a block are selected,
 * none is asked. At and beside the bounds of zones, also of values that are missing, under NOT, and by every
 * instruction set, against exhaustive searches under a mask. */
#include "engine/api/gpuidx_advanced.h"
#include "index/attributes/attribute_order.h"
#include "query/cpu/search.h"
#include "query/engine/session.h"
#include "query/filter/mask.h"
#include "tests/support/cpu_collection.h"
#include "tests/support/test.h"
#include "tests/support/vectors.h"

enum { N_DOCS = 12 * GX_ZONE_DOCS + 77, N_WORDS = (N_DOCS + 63) / 64, N_ATTRIBUTES = 3 };
static const gx_attribute attributes[N_ATTRIBUTES] = {
    {"all", GX_ATTRIBUTE_INT}, {"most", GX_ATTRIBUTE_INT}, {"long", GX_ATTRIBUTE_INT}};
static const uint64_t factors[N_ATTRIBUTES] = {1, 1, UINT64_C(1) << 40};

static gx_index *ix;
static gx_engine *en;

/* Of all documents but a few of `most` the value is the docid times the attribute's factor. */
static bool has_value(uint32_t attribute, uint32_t d)
{
    return attribute != 1 || d % 97 != 13;
}

static void add_document(gx_builder *b, uint32_t d)
{
    char id[16], words[64], texts[N_ATTRIBUTES][32];
    gx_attribute_value values[N_ATTRIBUTES];
    uint32_t n = 0;
    gx_error err = {0};
    for (uint32_t a = 0; a < N_ATTRIBUTES; ++a) {
        const int len = snprintf(texts[a], sizeof texts[a], "%llu", (unsigned long long)(d * factors[a]));
        if (has_value(a, d))
            values[n++] = (gx_attribute_value){a, texts[a], (size_t)len};
    }
    /* blocks of `late` end at the first document of a zone */
    const size_t len = (size_t)sprintf(words, "every%s%s", d ? " late" : "", d % 3 ? "" : " third");
    const gx_document x = {sizeof x, id, NULL, words, (size_t)sprintf(id, "d%u", d), 0, len, values, n};
    if (gx_builder_add(b, &x, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static cpu_collection made = {
    .attributes = attributes, .n_attributes = N_ATTRIBUTES, .n_docs = N_DOCS, .add = add_document};

static int open_all(void **state)
{
    if (open_cpu_collection(state, &made) != 0)
        return -1;
    ix = made.ix;
    en = made.en;
    for (uint32_t a = 0; a < N_ATTRIBUTES; ++a) {
        const gx_column_order *const o = gx_column_get_order(ix, &ix->columns[a]);
        if (!o || !o->zones)
            return -1;
    }
    return 0;
}

static int close_all(void **state)
{
    return close_cpu_collection(state, &made);
}

/* Compare the answers of a query under a filter with those under a mask. Returns how many clauses were sure of some. */
static uint32_t compare(gx_cpu_searcher *s, const char *query, uint32_t k, const gx_filter *f, const gx_mask *mask,
                        const char *what)
{
    static uint64_t want[N_DOCS], got[N_DOCS];
    gx_hits expected = {want, 0}, hits = {got, 0};
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_plan plan;
    uint32_t n_sure = 0;
    opt.k = k;
    assert_int_equal(gx_plan_make(&plan, ix, query, strlen(query), &opt, NULL), GX_OK);
    plan.mask = mask;
    assert_int_equal(gx_cpu_exhaust(s, &plan, GX_OP_OR, &expected, NULL), GX_OK);
    plan.mask = NULL;
    plan.filter = f;
    assert_int_equal(gx_cpu_search(s, &plan, GX_OP_OR, &hits, NULL), GX_OK);
    if (hits.n != expected.n || memcmp(got, want, hits.n * sizeof *got) != 0)
        fail_msg("%s: '%s' under '%s': %u results, not %u", s->kernels->name, query, what, hits.n, expected.n);
    for (uint32_t i = 0; i < s->selection.program.n_clauses; ++i)
        n_sure += s->selection.program.clauses[i].sure_end > 0;
    gx_plan_free(&plan);
    return n_sure;
}

static uint32_t check_range(gx_cpu_searcher *s, uint32_t attribute, uint32_t first, uint32_t last, bool negated)
{
    uint64_t words[N_WORDS] = {0};
    char text[128];
    gx_filter *f;
    gx_mask *mask;
    uint32_t n_sure = 0;
    snprintf(text, sizeof text, "%s%s:[%llu TO %llu]", negated ? "NOT " : "", attributes[attribute].name,
             (unsigned long long)(first * factors[attribute]), (unsigned long long)(last * factors[attribute]));
    for (uint32_t d = 0; d < N_DOCS; ++d)
        if ((has_value(attribute, d) && d >= first && d <= last) != negated)
            words[d / 64] |= UINT64_C(1) << d % 64;
    assert_int_equal(gx_filter_open(&f, ix, text, strlen(text), NULL, NULL), GX_OK);
    assert_int_equal(gx_mask_open(&mask, en, words, NULL), GX_OK);
    n_sure += compare(s, "late", N_DOCS, f, mask, text);
    n_sure += compare(s, "late third", N_DOCS, f, mask, text);
    n_sure += compare(s, "every late", 10, f, mask, text);
    gx_filter_close(f);
    gx_mask_close(mask);
    return n_sure;
}

static void documents_that_zones_select_are_those_of_the_filter(void **state)
{
    static const char *const names[] = {"portable", VECTORS, "avx512"};
    uint32_t n_sure = 0;
    (void)state;
    for (int i = 0; i < 3; ++i) {
        gx_cpu_lists *lists;
        gx_cpu_searcher *s;
        setenv("GX_CPU", names[i], 1);
        const gx_cpu_kernels *const k = gx_cpu_choose();
        unsetenv("GX_CPU");
        if (!k)
            continue;
        assert_int_equal(gx_cpu_lists_open(&lists, ix, k, UINT64_MAX, NULL), GX_OK);
        assert_int_equal(gx_cpu_searcher_open(&s, ix, k, lists, NULL), GX_OK);
        for (uint32_t a = 0; a < N_ATTRIBUTES; ++a)
            for (uint32_t edge = 0; edge < 9; ++edge)
                for (uint32_t negated = 0; negated < 2; ++negated)
                    n_sure += check_range(s, a, GX_ZONE_DOCS - 1 + edge / 3, 9 * GX_ZONE_DOCS - 2 + edge % 3, negated);
        gx_cpu_searcher_close(s);
        gx_cpu_lists_close(lists);
    }
    assert_true(n_sure > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_that_zones_select_are_those_of_the_filter),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
