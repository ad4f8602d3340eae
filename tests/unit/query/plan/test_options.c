/* Options of a search by name: what is read is what is told, and what is no value is refused. */
#include <math.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tests/support/test.h"

static gx_search_setup defaults(void)
{
    gx_search_setup s;
    gx_search_setup_init(&s, sizeof s);
    return s;
}

static void the_words_are_those_of_the_enumerations(void **state)
{
    (void)state;
    for (int i = 0; i < GX_N_PRESETS; ++i) {
        const char *name = gx_preset_name((gx_preset)i);
        assert_int_equal(gx_word_index(GX_PRESET_WORDS, name, strlen(name)), i);
    }
    assert_int_equal(gx_word_index(GX_OP_WORDS, "and", 3), GX_OP_AND);
    assert_int_equal(gx_word_index(GX_OP_WORDS, "and-or", 6), GX_OP_AND_OR);
    assert_int_equal(gx_word_index(GX_ALGORITHM_WORDS, "block-max", 9), GX_ALGORITHM_BLOCK_MAX);
    assert_int_equal(gx_word_index(GX_OP_WORDS, "an", 2), -1);
    assert_int_equal(gx_word_index(GX_OP_WORDS, "", 0), -1);
}

static void defaults_are_told_and_read_again(void **state)
{
    size_t n;
    const gx_search_option *o = gx_search_options(&n);
    (void)state;
    for (size_t i = 0; i < n; ++i) {
        gx_search_setup s = defaults();
        gx_error err = {0};
        char text[GX_OPTION_VALUE_BYTES];
        gx_search_setup_get(&s, &o[i], text);
        if (gx_search_setup_set(&s, o[i].name, strlen(o[i].name), text, strlen(text), &err))
            fail_msg("%s=%s: %s", o[i].name, text, err.text);
        assert_ptr_equal(gx_search_option_find(o[i].name, strlen(o[i].name)), &o[i]);
    }
}

static void values_arrive(void **state)
{
    static const char *const pairs[] = {"k=1000",
                                        "op=and",
                                        "syntax=boolean",
                                        "scorer=bm25:pisa",
                                        "k1=25",
                                        "b=1",
                                        "rm3=5,20,0.25",
                                        "timeout=0.5",
                                        "prune=off",
                                        "algorithm=taat",
                                        "approximate=terms:0.5,blocks:7"};
    gx_search_setup s = defaults();
    gx_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
        char text[GX_OPTION_VALUE_BYTES];
        if (gx_search_setup_read(&s, pairs[i], &err))
            fail_msg("%s: %s", pairs[i], err.text);
        const char *equals = strchr(pairs[i], '=');
        gx_search_setup_get(&s, gx_search_option_find(pairs[i], (size_t)(equals - pairs[i])), text);
        assert_string_equal(text, equals + 1);
    }
    assert_int_equal(s.options.k, 1000);
    assert_int_equal(s.options.op, GX_OP_AND);
    assert_int_equal(s.kind, GX_QUERY_BOOLEAN);
    assert_int_equal(s.options.preset, GX_BM25_PISA);
    assert_true(s.options.k1 == 25 && s.options.b == 1 && s.options.seconds == 0.5);
    assert_int_equal(s.rm3.fb_terms, 20);
    assert_int_equal(s.options.block_budget, 7);
    assert_int_equal(gx_search_setup_read(&s, " k=5\tk1=default \n rm3=off scorer=bm25 prune=true", &err), GX_OK);
    assert_true(s.options.k == 5 && isnan(s.options.k1) && s.rm3.fb_docs == 0 && s.options.prune && s.scorer_given);
}

static void what_is_no_value_is_refused_and_changes_nothing(void **state)
{
    static const struct {
        const char *text;
        gx_status status;
    } bad[] = {
        {"k=0", GX_EUSAGE},
        {"k=-1", GX_EUSAGE},
        {"k=1.0", GX_EUSAGE},
        {"k=1e3", GX_EUSAGE},
        {"k=4294967296", GX_EUSAGE},
        {"k=", GX_EUSAGE},
        {"k=default", GX_EUSAGE},
        {"k", GX_EUSAGE},
        {"k=99999999999999999999", GX_EUSAGE},
        {"k1=-0.1", GX_EUSAGE},
        {"k1=nan", GX_EUSAGE},
        {"k1=inf", GX_EUSAGE},
        {"k1=0x1", GX_EUSAGE},
        {"k1=1e39", GX_EUSAGE},
        {"k1=1,2", GX_EUSAGE},
        {"b=1.01", GX_EUSAGE},
        {"op=AND", GX_EUSAGE},
        {"op=an", GX_EUSAGE},
        {"op=or|and", GX_EUSAGE},
        {"scorer=bm26", GX_EUSAGE},
        {"syntax=", GX_EUSAGE},
        {"prune=2", GX_EUSAGE},
        {"rm3=10", GX_EUSAGE},
        {"rm3=10,10", GX_EUSAGE},
        {"rm3=0,10,0.5", GX_EUSAGE},
        {"rm3=10,10,1.5", GX_EUSAGE},
        {"rm3=10,10,0.5,", GX_EUSAGE},
        {"rm3=a,10,0.5", GX_EUSAGE},
        {"timeout=-1", GX_EUSAGE},
        {"approximate=2", GX_EUSAGE},
        {"K=5", GX_ENOTFOUND},
        {"size=5", GX_ENOTFOUND},
        {"=5", GX_ENOTFOUND},
        {"k=5 opp=and", GX_ENOTFOUND},
        {"k=5 op=xor", GX_EUSAGE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_search_setup s = defaults(), before = s;
        gx_error err = {0};
        const gx_status st = gx_search_setup_read(&s, bad[i].text, &err);
        if (st != bad[i].status)
            fail_msg("%s: %s (%s)", bad[i].text, gx_status_name(st), err.text);
        assert_true(err.text[0] != 0);
        assert_memory_equal(&s, &before, sizeof s);
    }
    gx_search_setup s = defaults();
    assert_int_equal(gx_search_setup_set(&s, "op", 2, "and\0", 4, NULL), GX_EUSAGE);
    char large[600];
    memset(large, '1', sizeof large);
    assert_int_equal(gx_search_setup_set(&s, "b", 1, large, sizeof large, NULL), GX_EUSAGE);
    s.size = 8;
    assert_int_equal(gx_search_setup_set(&s, "k", 1, "1", 1, NULL), GX_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_are_those_of_the_enumerations),
        cmocka_unit_test(defaults_are_told_and_read_again),
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(what_is_no_value_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
