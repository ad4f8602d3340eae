/* What --approximate and its like say, to options and back. */
#include "engine/api/gpuidx_advanced.h"
#include "tests/support/test.h"

static const struct {
    const char *text, *again;
    float terms;
    uint64_t blocks;
} good[] = {
    {"0", "0", 0, 0},
    {"1", "1", 1, 0},
    {"0.25", "0.25", .25f, 0},
    {"2.5e-1", "0.25", .25f, 0},
    {"terms:0.25", "0.25", .25f, 0},
    {"blocks:1000000000", "blocks:1000000000", 0, 1000000000},
    {"blocks:1e3", "blocks:1000", 0, 1000},
    {"blocks:4294967295,terms:0.5", "terms:0.5,blocks:4294967295", .5f, UINT32_MAX},
};
static const char *const bad[][2] = {
    {"", "there is no ''"},
    {"1.01", "between 0 and 1"},
    {"-0.1", "between 0 and 1"},
    {"nan", "there is no 'nan'"},
    {"0.5x", "no number"},
    {"terms", "has no value"},
    {"terms:", "no number"},
    {"terms:nan", "no number"},
    {"terms:inf", "no number"},
    {"threshold:1.2", "there is no threshold any more"},
    {"terms:0.5,threshold", "there is no threshold any more"},
    {"thresholds:2", "there is no 'thresholds'"},
    {"blocks:0", "between 1"},
    {"blocks:-5", "between 1"},
    {"blocks:1.5", "whole"},
    {"blocks:4294967296", "between 1"},
    {"blocks:1e99", "between 1"},
    {"blocks:5,blocks:6", "twice"},
    {"blocks:5,", "there is no ''"},
    {"block:5", "no 'block'"},
    {"terms:0.2;blocks:5", "no number"},
    {"blocks: 5", "no number"},
    {"0.2,blocks:5", "no number"},
    {"alpha:0.9", "there is no 'alpha'"},
    {",", "there is no ''"},
};

static void texts_are_read_and_written(void **state)
{
    (void)state;
    gx_error err = {0};
    char text[GX_APPROXIMATE_BYTES];
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        gx_query_options o = GX_QUERY_OPTIONS;
        o.approximate = .7f;
        o.block_budget = 7;
        if (gx_approximate_read(&o, good[i].text, &err) != GX_OK)
            fail_msg("%s: %s", good[i].text, err.text);
        assert_true(o.approximate == good[i].terms);
        assert_int_equal(o.block_budget, good[i].blocks);
        gx_approximate_write(&o, text);
        assert_string_equal(text, good[i].again);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_query_options o = GX_QUERY_OPTIONS;
        const gx_query_options before = o;
        assert_int_equal(gx_approximate_read(&o, bad[i][0], &err), GX_EUSAGE);
        if (!strstr(err.text, bad[i][1]))
            fail_msg("'%s': %s", bad[i][0], err.text);
        assert_memory_equal(&o, &before, sizeof o);
    }
    gx_query_options old = {.size = offsetof(gx_query_options, block_budget)};
    assert_int_equal(gx_approximate_read(&old, "0.5", &err), GX_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_read_and_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
