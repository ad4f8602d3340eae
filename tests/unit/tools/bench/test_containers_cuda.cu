/* Sets of rows from containers on the GPU, against the CPU's. Skipped where there is no GPU. */
#include "tests/support/row_sets.cuh"
#include "tools/bench/bitmaps/containers.cuh"

extern "C" {
#include "tools/bench/bitmaps/bitmap_index.h"
}

static gx_containers *open_containers(const bitmap_index *ix)
{
    gx_wah *const columns = (gx_wah *)malloc(ix->n_columns * sizeof *columns);
    gx_containers *c;
    assert_non_null(columns);
    for (uint32_t i = 0; i < ix->n_columns; ++i)
        columns[i] = bitmap_column(ix, i);
    assert_int_equal(gx_containers_open(&c, columns, ix->n_columns, 1, NULL), GX_OK);
    free(columns);
    return c;
}

static container_source open_source(const gx_containers *c)
{
    return container_source{copy_in(c->table, (size_t)c->n_places * c->n_columns),
                            (const uint4 *)copy_in(c->data, c->data_bytes / 4), c->data_bytes / 16, c->n_columns};
}

static void close_source(const container_source *s)
{
    cudaFree((void *)s->table);
    cudaFree((void *)s->data);
}

static void check_containers(const gx_containers *c, const container_source *s, const row_query *q, uint64_t *seed)
{
    uint32_t *const want = expect_rows(q, c->n_rows, [&](uint32_t column, uint32_t *words) {
        for (uint32_t place = 0; place < c->n_places; ++place)
            gx_containers_or(c, place, column, 1, words + (size_t)place * GX_CONTAINER_WORDS);
    });
    check_query(*s, q, c->n_rows, want, seed);
    free(want);
}

static bitmap_index *draw_index(uint64_t *seed)
{
    static const double runs[] = {1, 3, 40, 700, 100000, 1e9}, skews[] = {0, 1, 3};
    bitmap_shape shape = {"test", "test", gx_random_next(seed) % (below(seed, 2) ? 300000 : 3000) + 1};
    shape.n_attributes = below(seed, 3) + 1;
    shape.n_columns = shape.n_attributes + below(seed, below(seed, 8) ? 70 : 600);
    shape.skew = skews[below(seed, 3)];
    shape.run = runs[below(seed, 6)];
    bitmap_index *ix;
    gx_error err = {};
    if (bitmap_index_open(&ix, &shape, *seed, 1, &err))
        fail_msg("%s", err.text);
    return ix;
}

static void sets_of_columns_of_any_density(void **)
{
    if (!has_gpu())
        skip();
    uint64_t seed = new_seed();
    uint32_t forms[3] = {0};
    const bool all_forms = !getenv("GX_TEST_CASES"); /* as many more turns as it takes to see each form */
    for (uint32_t turn = 0, turns = n_cases(30);
         turn < turns || (all_forms && turn < 1000 && !(forms[0] && forms[1] && forms[2])); ++turn) {
        bitmap_index *const ix = draw_index(&seed);
        gx_containers *const c = open_containers(ix);
        const container_source s = open_source(c);
        for (uint64_t i = 0; i < (uint64_t)c->n_places * c->n_columns; ++i)
            ++forms[gx_container_form_of(c->table[i])];
        for (uint32_t k = 0; k < 6; ++k) {
            row_query q;
            draw_query(&q, c->n_columns, &seed);
            check_containers(c, &s, &q, &seed);
        }
        close_source(&s);
        gx_containers_close(c);
        bitmap_index_close(ix);
    }
    assert_true(!all_forms || (forms[0] && forms[1] && forms[2]));
}

static void rows_that_end_with_a_tile_or_a_word(void **)
{
    if (!has_gpu())
        skip();
    static const uint64_t n_rows[] = {1, 31, 32, 33, 127, 128, 129, 65535, 65536, 65537, 131072};
    uint64_t seed = 1;
    for (uint32_t i = 0; i < sizeof n_rows / sizeof *n_rows; ++i) {
        const bitmap_shape shape = {"test", "test", n_rows[i], 1, 3, 0, i % 2 ? 1e9 : 5};
        bitmap_index *ix;
        assert_int_equal(bitmap_index_open(&ix, &shape, i, 1, NULL), GX_OK);
        gx_containers *const c = open_containers(ix);
        const container_source s = open_source(c);
        for (uint32_t all = 0; all < 2; ++all) {
            row_query q = {};
            q.steps.all = all;
            q.steps.n = 1;
            q.steps.steps[0] = row_step{all ? ROWS_ANDNOT : ROWS_OR, all, 3 - all, NULL};
            check_containers(c, &s, &q, &seed);
        }
        close_source(&s);
        gx_containers_close(c);
        bitmap_index_close(ix);
    }
}

/* Whatever table and data hold, nothing is read or written beyond them, and no row is one that there is not. */
static void damaged_containers_do_no_harm(void **)
{
    if (!has_gpu())
        skip();
    uint64_t seed = new_seed();
    for (uint32_t turn = 0, turns = n_cases(40); turn < turns; ++turn) {
        bitmap_index *const ix = draw_index(&seed);
        gx_containers *const c = open_containers(ix);
        const uint64_t n_entries = (uint64_t)c->n_places * c->n_columns;
        for (uint32_t i = 0, n = 1 + below(&seed, 50); i < n; ++i) {
            uint32_t *const entry = (uint32_t *)&c->table[gx_random_next(&seed) % n_entries] + below(&seed, 2);
            *entry = below(&seed, 2) ? (uint32_t)gx_random_next(&seed) : *entry ^ 1u << below(&seed, 32);
            if (c->data_bytes)
                c->data[gx_random_next(&seed) % (c->data_bytes / 4)] = (uint32_t)gx_random_next(&seed);
        }
        const container_source s = open_source(c);
        row_query q;
        draw_query(&q, c->n_columns, &seed);
        for (uint32_t k = 0; k < q.steps.n; ++k)
            q.listed[k][0] = (uint32_t)gx_random_next(&seed);
        check_damaged(s, &q, c->n_rows);
        close_source(&s);
        gx_containers_close(c);
        bitmap_index_close(ix);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_of_columns_of_any_density),
        cmocka_unit_test(rows_that_end_with_a_tile_or_a_word),
        cmocka_unit_test(damaged_containers_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
