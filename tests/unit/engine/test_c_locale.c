/* Numbers in text have a point, whatever locale the program has set: in that of each test a number has a comma, or the
 * Arabic point, which is two bytes. Other test programs run under the latter as a whole (tests/meson.build). */
#include "engine/text/c_locale.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/json_text.h"
#include "index/attributes/attributes.h"
#include "query/replay/run_file.h"
#include "query/syntax/parse.h"
#include "tests/support/attribute_index.h"
#include "tests/support/decimal_point.h"
#include "tests/support/exchange.h"
#include "tests/support/query_tree_text.h"

static void a_program_prints_its_own_point_before_and_after(const char *own)
{
    char text[16], wanted[16];
    snprintf(text, sizeof text, "%.1f", 2.5);
    snprintf(wanted, sizeof wanted, "2%s5", own);
    assert_string_equal(text, wanted);
}

static void texts_have_a_point(void)
{
    char text[GX_VALUE_TEXT];
    gx_error err = {0};
    gx_print(text, sizeof text, "%g", 2.5);
    assert_string_equal(text, "2.5");
    gx_print_float(0.1, text);
    assert_string_equal(text, "0.1");
    text[gx_run_score(text, 1, 112)] = 0;
    assert_non_null(strchr(text, '.'));
    gx_fail(&err, GX_EUSAGE, "b is %g", 0.75);
    assert_string_equal(err.text, "b is 0.75");
    gx_scanner s = {"", 0, .column = 1, .prefix = "", .err = &err};
    gx_scan_refuse(&s, 1, "%g", 0.5);
    assert_string_equal(err.text, "column 1: 0.5");
}

static void texts_are_read_with_a_point(void)
{
    double x;
    gx_facet facet;
    gx_query_tree tree;
    size_t len;
    assert_true(gx_strtod("2.5", NULL) == 2.5 && gx_strtof("2.5", NULL) == 2.5f);
    assert_null(gx_parse_float("-2.5e1", 6, &x));
    assert_true(x == -25);
    assert_non_null(gx_parse_float("2,5", 3, &x));
    assert_int_equal(gx_facet_read(&facet, "price:width=0.25", NULL), GX_OK);
    assert_true(facet.width == 0.25);
    assert_int_equal(gx_query_parse(&tree, NULL, "a^2.5", 5, NULL), GX_OK);
    assert_true(tree.nodes[tree.nodes[tree.root].first].boost == 2.5f);
    char *text = query_tree_text(&tree, &len);
    assert_string_equal(text, "a^2.5");
    free(text);
    gx_query_tree_free(&tree);
}

static void json_has_a_point(void)
{
    json_t *json = gx_json_load("[0.5]", 5, 0, NULL);
    assert_true(json_real_value(json_array_get(json, 0)) == 0.5);
    char *text = gx_json_dump(json, JSON_COMPACT);
    assert_string_equal(text, "[0.5]");
    free(text);
    json_decref(json);
}

static void judgements_and_runs_have_a_point(void)
{
    gx_trec_table run;
    FILE *f = fopen(in_dir("run"), "w");
    assert_non_null(f);
    fputs("1 Q0 d 1 2.5 tag\n", f);
    fclose(f);
    assert_int_equal(gx_trec_read(&run, in_dir("run"), GX_TREC_RUN, NULL), GX_OK);
    assert_true(run.rows[0].value == 2.5f);
    gx_trec_free(&run);
}

/* The unit of impacts stands in the description, as text. */
static void ciff_has_a_point(void)
{
    const gx_import_options opt = with_codec();
    const gx_export_options to = replacing();
    gx_error err = {0};
    if (gx_ciff_import(golden_file("cases/text/library-unit.ciff"), in_dir("a.gx"), &opt, &err))
        fail_msg("%s", err.text);
    gx_index *a = open_index("a.gx");
    assert_true(a->impact_unit == gx_strtod("0.00498199462890625", NULL));
    assert_int_equal(gx_ciff_export(a, in_dir("x"), &to, &err), GX_OK);
    assert_int_equal(gx_ciff_import(in_dir("x"), in_dir("b.gx"), &opt, &err), GX_OK);
    gx_index *b = open_index("b.gx");
    assert_true(a->impact_unit == b->impact_unit);
    gx_index_close(a);
    gx_index_close(b);
}

static void check_all(const char *point, uint32_t wide)
{
    if (!set_decimal_point(point, wide))
        skip();
    a_program_prints_its_own_point_before_and_after(point);
    texts_have_a_point();
    texts_are_read_with_a_point();
    json_has_a_point();
    judgements_and_runs_have_a_point();
    ciff_has_a_point();
    a_program_prints_its_own_point_before_and_after(point);
    setlocale(LC_NUMERIC, "C");
}

static void a_decimal_comma_changes_nothing(void **state)
{
    (void)state;
    check_all(",", ',');
}

static void a_decimal_point_of_two_bytes_changes_nothing(void **state)
{
    (void)state;
    check_all("\xd9\xab", 0x66b);
}

static void bytes_are_those_of_ascii(void **state)
{
    (void)state;
    for (int c = 0; c < 256; ++c) { /* this program has the C locale */
        assert_int_equal(gx_is_space((char)c), isspace(c) != 0);
        assert_int_equal(gx_is_digit((char)c), isdigit(c) != 0);
        assert_int_equal(gx_is_letter((char)c), isalpha(c) != 0);
        assert_int_equal(gx_is_letter_or_digit((char)c), isalnum(c) != 0);
        assert_int_equal(gx_is_hex((char)c), isxdigit(c) != 0);
        assert_int_equal((unsigned char)gx_lower((char)c), tolower(c));
    }
}

static void capitals_are_those_of_ascii(void **state)
{
    static const char *const texts[] = {"",          "TITLE",    "title", "TiTles", "t\xc4\xb0tle", "T\xc4\xb0TLE",
                                        "\xe9t\xe9", "\xc9T\xc9"};
    const size_t n = sizeof texts / sizeof *texts;
    (void)state;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
            assert_int_equal(gx_same_text(texts[i], texts[j]), strcasecmp(texts[i], texts[j]) == 0);
            for (size_t most = 0; most < 8; ++most)
                assert_int_equal(gx_same_start(texts[i], texts[j], most), strncasecmp(texts[i], texts[j], most) == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_ascii),
        cmocka_unit_test(capitals_are_those_of_ascii),
        cmocka_unit_test(a_decimal_comma_changes_nothing),
        cmocka_unit_test(a_decimal_point_of_two_bytes_changes_nothing),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
