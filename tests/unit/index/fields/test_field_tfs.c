/* The tfs of lists by field decode to what they were, and damaged bytes are refused or decode to something, with
 * nothing read or written outside. */
#include "index/fields/field_tfs.h"

#include "engine/random.h"
#include "tests/support/test.h"

enum { MOST = 3000 };

static uint32_t tfs[MOST], rows[MOST * GX_MAX_FIELDS], found[MOST * GX_MAX_FIELDS];

static uint32_t below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)(gx_random_next(seed) % n);
}

/* df postings; one in `sparse` has a tf in a field. */
static void draw(uint64_t *seed, uint32_t df, uint32_t n_fields, uint32_t sparse)
{
    const uint32_t n = n_fields - 1;
    for (uint32_t i = 0; i < df; ++i) {
        uint64_t sum = 0;
        for (uint32_t f = 0; f < n; ++f) {
            const uint32_t tf =
                below(seed, sparse) ? 0 : 1 + (uint32_t)(gx_random_next(seed) >> (40 + below(seed, 24)));
            rows[i * n + f] = tf;
            sum += tf;
        }
        const uint32_t rest = sum && below(seed, 2) ? 0 : 1 + below(seed, 9);
        tfs[i] = (uint32_t)sum + rest;
    }
}

static void expect_list(const uint8_t *bytes, size_t n_bytes, uint32_t df, uint32_t n_fields)
{
    const uint32_t n = n_fields - 1;
    uint32_t dfs[GX_MAX_FIELDS], want[GX_MAX_FIELDS] = {0};
    memset(found, 0, sizeof found);
    assert_true(gx_field_tfs_decode(bytes, n_bytes, df, n_fields, found));
    assert_true(gx_field_tfs_count(bytes, n_bytes, df, n_fields, dfs));
    for (uint32_t i = 0; i < df; ++i) {
        uint32_t left = tfs[i];
        for (uint32_t f = 0; f < n; ++f) {
            assert_int_equal(found[(size_t)f * df + i], rows[i * n + f]);
            want[f] += rows[i * n + f] != 0;
            left -= rows[i * n + f];
        }
        want[n] += left != 0;
    }
    for (uint32_t f = 0; f < n_fields; ++f)
        assert_int_equal(dfs[f], want[f]);
}

static void lists_decode_to_what_they_were(void **state)
{
    (void)state;
    uint64_t seed = 20261128;
    gx_field_bytes out = {0};
    for (uint32_t i = 0; i < 300; ++i) {
        const uint32_t n_fields = 1 + below(&seed, i % 10 ? 4 : GX_MAX_FIELDS),
                       df = 1 + below(&seed, i % 5 ? 200 : MOST);
        draw(&seed, df, n_fields, 1 + below(&seed, 50));
        const size_t before = out.n;
        assert_true(gx_field_tfs_encode(&out, tfs, rows, df, n_fields));
        expect_list(out.bytes + before, out.n - before, df, n_fields);
    }
    free(out.bytes);
}

static void a_list_of_the_last_field_has_no_bytes(void **state)
{
    (void)state;
    gx_field_bytes out = {0};
    uint64_t seed = 1;
    draw(&seed, 200, 3, 1);
    memset(rows, 0, sizeof rows);
    assert_true(gx_field_tfs_encode(&out, tfs, rows, 200, 3));
    assert_int_equal(out.n, 0);
    expect_list((const uint8_t *)"", 0, 200, 3);
    free(out.bytes);
}

/* Byte for byte: 2 postings, of which the second has tf 2 in field 0 of 2 and tf 1 in field 1. */
static void bytes_are_those_of_the_format(void **state)
{
    (void)state;
    const uint32_t two[2] = {1, 3}, of_first[2] = {0, 2};
    gx_field_bytes out = {0};
    assert_true(gx_field_tfs_encode(&out, two, of_first, 2, 2));
    /* gamma 2: 0 1 0; gamma 1: 1; r 0: 00000; gap 1: 0 1; gamma 2: 0 1 0 */
    assert_int_equal(out.n, 2);
    assert_int_equal(out.bytes[0], 0x0a);
    assert_int_equal(out.bytes[1], 0x14);
    free(out.bytes);
}

static void damaged_bytes_are_safe(void **state)
{
    (void)state;
    uint64_t seed = 20261128;
    for (uint32_t i = 0; i < 3000; ++i) {
        const uint32_t n_fields = 2 + below(&seed, 3), df = 1 + below(&seed, 300);
        gx_field_bytes out = {0};
        draw(&seed, df, n_fields, 1 + below(&seed, 20));
        assert_true(gx_field_tfs_encode(&out, tfs, rows, df, n_fields));
        const size_t n = out.n ? below(&seed, 4) ? out.n : below(&seed, (uint32_t)out.n + 1) : 0;
        uint8_t *copy = calloc(n + GX_FIELD_TFS_SLACK, 1); /* a sanitizer sees what is read behind it */
        if (n)
            memcpy(copy, out.bytes, n);
        for (uint32_t k = below(&seed, 5); n && k; --k)
            copy[below(&seed, (uint32_t)n)] ^= (uint8_t)(1u << below(&seed, 8));
        uint32_t dfs[GX_MAX_FIELDS], *own = calloc((size_t)df * (n_fields - 1), sizeof *own);
        gx_field_tfs_count(copy, n, df, n_fields, dfs);
        gx_field_tfs_decode(copy, n, df, n_fields, own);
        free(own);
        free(copy);
        free(out.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_decode_to_what_they_were),
        cmocka_unit_test(a_list_of_the_last_field_has_no_bytes),
        cmocka_unit_test(bytes_are_those_of_the_format),
        cmocka_unit_test(damaged_bytes_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
