#include <time.h>

#include "engine/random.h"
#include "tests/support/test.h"
#include "tools/bench/bitmaps/bitmap_index.h"
#include "tools/bench/bitmaps/containers.h"

static gx_containers *open_containers(const bitmap_index *ix)
{
    gx_wah *const columns = malloc(ix->n_columns * sizeof *columns);
    gx_containers *c;
    gx_error err = {0};
    assert_non_null(columns);
    for (uint32_t i = 0; i < ix->n_columns; ++i)
        columns[i] = bitmap_column(ix, i);
    if (gx_containers_open(&c, columns, ix->n_columns, 2, &err))
        fail_msg("%s", err.text);
    free(columns);
    return c;
}

/* The OR of columns [first, first + n), a bit a row. */
static void check_or(const bitmap_index *ix, const gx_containers *c, uint32_t first, uint32_t n)
{
    uint64_t *const chunks = calloc(ix->n_chunks, 8);
    uint32_t words[GX_CONTAINER_WORDS + 1];
    assert_non_null(chunks);
    for (uint32_t i = first; i < first + n; ++i) {
        const gx_wah column = bitmap_column(ix, i);
        gx_wah_or_chunks(&column, chunks);
    }
    for (uint32_t place = 0; place < c->n_places; ++place) {
        memset(words, 0, sizeof words);
        words[GX_CONTAINER_WORDS] = 0xa5a5a5a5;
        gx_containers_or(c, place, first, n, words);
        for (uint64_t k = 0; k < GX_CONTAINER_ROWS; ++k) {
            const uint64_t row = (uint64_t)place * GX_CONTAINER_ROWS + k;
            const uint64_t want = row < c->n_rows ? chunks[row / 63] >> row % 63 & 1 : 0;
            assert_int_equal(words[k / 32] >> k % 32 & 1, want);
        }
        assert_true(words[GX_CONTAINER_WORDS] == 0xa5a5a5a5);
    }
    free(chunks);
}

static void columns_of_any_density_have_the_same_rows(void **state)
{
    (void)state;
    static const double runs[] = {1, 3, 40, 700, 100000, 1e9}, skews[] = {0, 1, 3};
    uint64_t seed = (uint64_t)time(NULL);
    uint32_t forms[3] = {0};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t turn = 0; turn < 40; ++turn) {
        bitmap_shape shape = {"test", "test", gx_random_next(&seed) % (turn % 2 ? 140000 : 300) + 1, 2};
        shape.n_columns = 2 + (uint32_t)(gx_random_next(&seed) % 40);
        shape.skew = skews[gx_random_next(&seed) % 3];
        shape.run = runs[turn % 6];
        bitmap_index *ix;
        gx_error err = {0};
        if (bitmap_index_open(&ix, &shape, seed, 1, &err))
            fail_msg("%s", err.text);
        gx_containers *const c = open_containers(ix);
        for (uint64_t i = 0; i < (uint64_t)c->n_places * c->n_columns; ++i)
            ++forms[gx_container_form_of(c->table[i])];
        for (uint32_t i = 0; i < ix->n_columns; i += 1 + i)
            check_or(ix, c, i, 1);
        check_or(ix, c, 1, ix->n_columns - 1);
        gx_containers_close(c);
        bitmap_index_close(ix);
    }
    assert_true(forms[0] && forms[1] && forms[2]);
}

/* Rows of a pattern; how its container is kept, and in how many bytes. */
static void expect_form(uint64_t n_rows, uint64_t every, uint64_t length, gx_container_form form, uint64_t bytes)
{
    gx_wah_writer w = {0};
    gx_containers *c;
    for (uint64_t chunk = 0, bits; chunk < gx_wah_n_chunks(n_rows); ++chunk) {
        bits = 0;
        for (uint64_t row = chunk * 63; row < chunk * 63 + 63 && row < n_rows; ++row)
            bits |= (uint64_t)(row % every < length) << row % 63;
        assert_int_equal(gx_wah_put(&w, bits, 1), GX_OK);
    }
    const gx_wah column = gx_wah_written(&w, n_rows);
    assert_int_equal(gx_containers_open(&c, &column, 1, 1, NULL), GX_OK);
    assert_int_equal(gx_container_form_of(c->table[0]), form);
    assert_int_equal(c->data_bytes, bytes);
    gx_containers_close(c);
    gx_wah_free(&w);
}

static void a_container_has_the_smallest_form(void **state)
{
    (void)state;
    expect_form(65536, 65536, 1, GX_CONTAINER_LIST, 16);
    expect_form(65536, 17, 1, GX_CONTAINER_LIST, 3856 * 2);
    expect_form(65536, 16, 1, GX_CONTAINER_BITMAP, 8192);
    expect_form(65536, 2, 1, GX_CONTAINER_BITMAP, 8192);
    expect_form(65536, 65536, 65536, GX_CONTAINER_RUNS, 16);
    expect_form(65536, 64, 3, GX_CONTAINER_RUNS, 4096);
    expect_form(65536, 64, 2, GX_CONTAINER_LIST, 4096);
    expect_form(65536, 1u << 20, 0, GX_CONTAINER_LIST, 0);
    expect_form(3, 1, 1, GX_CONTAINER_RUNS, 16);
    gx_containers *none;
    assert_int_equal(gx_containers_open(&none, NULL, 0, 1, NULL), GX_OK);
    assert_int_equal(none->data_bytes, 0);
    gx_containers_close(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_any_density_have_the_same_rows),
        cmocka_unit_test(a_container_has_the_smallest_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
