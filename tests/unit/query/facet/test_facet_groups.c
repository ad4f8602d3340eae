/* What is printed of a facet's group is a filter that selects the documents which it counts: of values that are huge,
 * tiny, neighbours and multiples of the width, whatever the width is. GX_TEST_SEED is the seed, 33 without it;
 * GX_TEST_CASES=N makes N times as many collections. */
#include <float.h>
#include <math.h>

#include "engine/random.h"
#include "index/attributes/attributes.h"
#include "tests/support/facets.h"
#include "tests/support/scratch.h"

enum { X, M, N, D, S, N_ATTRIBUTES }; /* M and S: several values */
static const gx_attribute attributes[N_ATTRIBUTES] = {{"x", GX_ATTRIBUTE_FLOAT},
                                                      {"m", GX_ATTRIBUTE_FLOAT},
                                                      {"n", GX_ATTRIBUTE_INT},
                                                      {"d", GX_ATTRIBUTE_DATE},
                                                      {"s", GX_ATTRIBUTE_DATE}};
enum { N_DOCS = 200 };
static uint64_t seed = 33;
static double width; /* of this collection's facets, about which its values are drawn */
static int64_t n_width;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) >> 20) % n;
}

static double draw_size(void)
{
    return ldexp(1 + below(1000) / 1000.0, (int)below(2098) - 1074);
}

static double draw_width(void)
{
    static const double few[] = {0.1, 1e-16, 1e307, 1e308, DBL_MAX, 5e-324, 1, 1.0 / 3, 0x1p-52, 1e15, 1e300, 1e-300};
    return below(2) ? few[below(sizeof few / sizeof *few)] : draw_size();
}

static double draw_value(void)
{
    double x = draw_size();
    switch (below(6)) {
    case 0: /* a multiple of the width, about where ranges are as small as doubles are dense */
        x = width * ldexp(1 + below(100) / 100.0, (int)below(4) + 50);
        break;
    case 1:
        x = width * below(50);
        break;
    case 2:
        x = width * (below(1000) / 100.0);
        break;
    case 3:
        x = below(4) ? DBL_MAX / (1 + below(5)) : 0;
        break;
    }
    x = fmin(x, DBL_MAX);
    for (uint32_t i = below(3); i; --i)
        x = nextafter(x, below(2) ? 0 : DBL_MAX);
    return below(2) ? x : -x;
}

static int64_t draw_int(void)
{
    const int64_t x = (int64_t)gx_random_next(&seed);
    return below(4) == 0 ? (below(2) ? INT64_MAX : INT64_MIN) : x >> below(64);
}

static int64_t draw_second(void)
{
    const int64_t least = 86400 * gx_days_to(0, 1, 1), end = 86400 * gx_days_to(10000, 1, 1);
    const int64_t day = 86400 * gx_days_to(1999 + below(3), (int)below(12) + 1, 1);
    switch (below(4)) {
    case 0:
        return below(2) ? least : end - 1;
    case 1:
        return least + (int64_t)(gx_random_next(&seed) % (uint64_t)(end - least));
    default:
        return day + (int64_t)below(3) - 1;
    }
}

static void add_document(gx_builder *b, uint32_t d)
{
    char id[16];
    doc_values v = {0};
    for (uint32_t a = 0; a < N_ATTRIBUTES; ++a)
        for (uint32_t i = below(8) == 0 ? 0 : a == M || a == S ? 1 + below(4) : 1; i; --i) {
            if (a == X || a == M)
                gx_print_float(draw_value(), next_text(&v));
            else if (a == N)
                snprintf(next_text(&v), VALUE_BYTES, "%lld", (long long)draw_int());
            else
                gx_print_date(draw_second(), next_text(&v));
            add_value(&v, a);
        }
    snprintf(id, sizeof id, "doc%u", d);
    add_of_words(b, id, 1, &v);
}

/* The documents that the text of a group selects. */
static uint64_t count_selected(const gx_index *ix, const char *name, const char *group)
{
    uint64_t words[N_DOCS / 64 + 1] = {0}, n = 0;
    char text[200];
    gx_filter *f;
    gx_error err = {0};
    const int len = snprintf(text, sizeof text, "%s:%s", name, group);
    if (gx_filter_open(&f, ix, text, (size_t)len, NULL, &err) || gx_filter_evaluate(f, words, NULL, &err))
        fail_msg("%s: %s", text, err.text);
    gx_filter_close(f);
    for (uint32_t w = 0; w <= N_DOCS / 64; ++w)
        n += (uint64_t)__builtin_popcountll(words[w]);
    return n;
}

static void check_groups(const gx_index *ix, const char *facet, const gx_facet_answer *a)
{
    const bool number = a->type == GX_ATTRIBUTE_FLOAT, several = strcmp(a->name, "m") == 0 || strcmp(a->name, "s") == 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < a->n; ++i) {
        const gx_facet_group *g = &a->groups[i], *last = &a->groups[i - (i > 0)];
        sum += g->count;
        if (count_selected(ix, a->name, g->text) != g->count)
            fail_msg("%s: %s has %llu documents, and the filter selects %llu", facet, g->text,
                     (unsigned long long)g->count, (unsigned long long)count_selected(ix, a->name, g->text));
        if (number && !(isfinite(g->low) && isfinite(g->high) && g->low <= g->high))
            fail_msg("%s: %s goes from %g to %g", facet, g->text, g->low, g->high);
        if (i && (number ? g->low < last->low : g->first < last->first))
            fail_msg("%s: %s stands behind %s", facet, g->text, last->text);
    }
    if (several ? sum < a->n_present : sum != a->n_present)
        fail_msg("%s: the groups have %llu documents, and %llu have values", facet, (unsigned long long)sum,
                 (unsigned long long)a->n_present);
}

static void ask(const gx_index *ix, gx_session *s)
{
    static const char *const facets[] = {"x:width=%s", "m:width=%s",    "x:bins=%u",      "m:bins=%u",   "n:width=%s",
                                         "n:bins=%u",  "d:bins=%u",     "s:bins=%u",      "x:all",       "m:all",
                                         "n:all",      "d:by=year:all", "s:by=month:all", "d:by=day:all"};
    for (size_t i = 0; i < sizeof facets / sizeof *facets; ++i) {
        char text[80], number[GX_VALUE_TEXT];
        const char *at = strchr(facets[i], '%');
        gx_facet facet;
        gx_facets *got;
        gx_error err = {0};
        const gx_query query = GX_TEXT_QUERY("w0", 2);
        const gx_query_options opt = GX_QUERY_OPTIONS;
        gx_print_float(width, number);
        if (facets[i][0] == 'n')
            snprintf(number, sizeof number, "%lld", (long long)n_width);
        snprintf(text, sizeof text, "%s", facets[i]);
        if (at && at[1] == 's')
            sprintf(text + (at - facets[i]), "%s", number);
        else if (at)
            sprintf(text + (at - facets[i]), "%u", 1 + below(below(2) ? 10 : 1000));
        strcat(text, ":order=value");
        if (gx_facet_read(&facet, text, &err) || gx_count_facets(&got, s, &query, &opt, &facet, 1, &err))
            fail_msg("%s: %s", text, err.text);
        check_groups(ix, text, gx_facets_get(got, 0));
        gx_facets_close(got);
    }
}

static void each_group_is_a_filter_that_selects_its_count(void **state)
{
    (void)state;
    const char *given = getenv("GX_TEST_SEED"), *cases = getenv("GX_TEST_CASES");
    const uint32_t n = 60 * (cases ? (uint32_t)strtoul(cases, NULL, 10) : 1);
    seed = given ? strtoull(given, NULL, 0) : seed;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < n; ++i) {
        gx_index *ix;
        gx_engine *en;
        gx_session *s;
        gx_error err = {0};
        gx_engine_options cpu = GX_ENGINE_OPTIONS;
        cpu.kind = GX_ENGINE_CPU;
        width = draw_width();
        n_width = (int64_t)1 << below(62);
        build(in_dir("a.gx"), (attributes_of){attributes, NULL, N_ATTRIBUTES}, add_document, 0, N_DOCS);
        if (gx_index_open(&ix, in_dir("a.gx"), NULL, &err) || gx_engine_open(&en, ix, &cpu, &err) ||
            gx_session_open(&s, en, &err))
            fail_msg("%s", err.text);
        ask(ix, s);
        gx_session_close(s);
        gx_engine_close(en);
        gx_index_close(ix);
        unlink(in_dir("a.gx"));
    }
}

static void a_facet_has_one_grouping_and_a_width_that_a_double_holds(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"d:by=month:bins=2", "facet: 'bins=2': a facet has one of by=, bins=, quantiles= and width="},
        {"d:by=month:by=year", "facet: 'by=year': a facet has one of"},
        {"x:width=1:width=2", "facet: 'width=2': a facet has one of"},
        {"x:bins=3:width=2", "facet: 'width=2': a facet has one of"},
        {"n:width=9007199254740993", "facet: 'width=9007199254740993': the width is rounded to 9007199254740992"},
        {"n:width=9223372036854775807", "facet: 'width=9223372036854775807': the width is rounded to"},
        {"x:width=0", "facet: 'width=0': the width is no number above 0"},
        {"x:width=-1", "facet: 'width=-1': the width is no number above 0"},
        {"x:width=inf", "facet: 'width=inf': the width is no number above 0"},
        {"x:width=1e400", "facet: 'width=1e400': the width is no number above 0"},
        {"x:width=1e-400", "facet: 'width=1e-400': the width is no number above 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_facet facet;
        gx_error err = {0};
        assert_int_equal(gx_facet_read(&facet, bad[i].text, &err), GX_EUSAGE);
        if (strncmp(err.text, bad[i].says, strlen(bad[i].says)) != 0)
            fail_msg("%s: '%s', not '%s'", bad[i].text, err.text, bad[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_group_is_a_filter_that_selects_its_count),
        cmocka_unit_test(a_facet_has_one_grouping_and_a_width_that_a_double_holds),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
