/* Text that grows: scores as printf prints them, JSON strings that are valid whatever the bytes. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "engine/api/gpuidx_advanced.h"
#include "tests/support/test.h"

static void check_score(double score)
{
    char expected[32];
    gx_text t = {0};
    snprintf(expected, sizeof expected, "%.11g", score);
    const char *point = localeconv()->decimal_point; /* of the host program; scores have a point in every locale */
    char *at = strstr(expected, point);
    if (at) {
        *at = '.';
        memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
    }
    gx_text_add_score(&t, score);
    gx_text_add(&t, "", 1);
    if (strcmp(t.bytes, expected))
        fail_msg("%a is '%s', expected '%s'", score, t.bytes, expected);
    free(t.bytes);
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void scores_are_those_of_printf(void **state)
{
    static const double corners[] = {
        0,          1,    10,           9.99999999995, 99.9999999995, 1e-4,    9.9999999999e-5, 0.5,
        0.1,        1e10, 9999999999.5, 99999999999.5, 1e11,          1e300,   5e-324,          INFINITY,
        3.14159265, 1e-5, 12345678.9,   0.000125,      999999999.99,  0x1p-13, 0x1p33,          0x1p34};
    uint64_t seed = 88172645463325252u;
    (void)state;
    for (size_t i = 0; i < sizeof corners / sizeof *corners; ++i) {
        check_score(corners[i]);
        check_score(nextafter(corners[i], 0));
        check_score(nextafter(corners[i], INFINITY));
    }
    for (int i = 0; i < 300000; ++i) {
        const uint64_t r = next(&seed);
        check_score(ldexp((double)(r >> 33), -(int)(r % 45)));           /* what a search gives */
        check_score(ldexp((double)(next(&seed) >> 11), -(int)(r % 70))); /* any double */
        check_score((double)(r % 100000000000) / 1e8);
        check_score((double)(r % 1000000) / 8 + 0.0625);
    }
}

static void strings_are_valid_json(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (int i = 0; i < 20000; ++i) {
        char bytes[24], copy[64] = "[";
        const size_t len = next(&seed) % sizeof bytes;
        for (size_t k = 0; k < len; ++k)
            bytes[k] = (char)(next(&seed) % (i % 2 ? 256 : 128));
        gx_text t = {0};
        gx_text_add(&t, copy, 1);
        gx_text_add_json(&t, bytes, len);
        gx_text_add(&t, "]", 1);
        json_t *j = json_loadb(t.bytes, t.len, JSON_ALLOW_NUL, NULL);
        assert_non_null(j);
        if (i % 2 == 0) {
            assert_int_equal(json_string_length(json_array_get(j, 0)), len);
            assert_memory_equal(json_string_value(json_array_get(j, 0)), bytes, len);
        }
        json_decref(j);
        free(t.bytes);
    }
}

static void a_text_grows(void **state)
{
    static const char more[] =
        "a long piece of text, a long piece of text, a long piece of text, a long piece of text, "
        "a long piece of text, a long piece of text, a long piece of text, a long piece";
    gx_text t = {0};
    (void)state;
    for (uint64_t i = 0; i < 5000; ++i) {
        gx_text_add_number(&t, i);
        gx_text_add_format(&t, ",%s", i % 100 ? "" : more);
    }
    gx_text_add(&t, "", 1);
    assert_false(t.failed);
    char *at = t.bytes;
    for (uint64_t i = 0; i < 5000; ++i) {
        assert_int_equal(strtoull(at, &at, 10), i);
        assert_int_equal(*at++, ',');
        if (i % 100 == 0) {
            assert_memory_equal(at, more, sizeof more - 1);
            at += sizeof more - 1;
        }
    }
    free(t.bytes);
    t = (gx_text){0};
    gx_text_add_number(&t, UINT64_MAX);
    assert_int_equal(t.len, 20);
    free(t.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_printf),
        cmocka_unit_test(strings_are_valid_json),
        cmocka_unit_test(a_text_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
