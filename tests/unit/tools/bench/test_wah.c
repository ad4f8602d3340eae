#include <time.h>

#include "engine/random.h"
#include "tests/support/test.h"
#include "tools/bench/bitmaps/wah.h"

/* A column as plain chunks, made by random numbers: runs of ones and of zeros, whose lengths are
 * drawn below `ones` and `zeros` rows. */
static uint64_t *random_chunks(uint64_t n_rows, uint64_t ones, uint64_t zeros, uint64_t *seed)
{
    uint64_t *const chunks = calloc(gx_wah_n_chunks(n_rows) + 1, sizeof *chunks);
    bool on = gx_random_next(seed) & 1;
    assert_non_null(chunks);
    for (uint64_t row = 0; row < n_rows; on = !on)
        for (uint64_t n = gx_random_next(seed) % (on ? ones : zeros) + 1; n && row < n_rows; --n, ++row)
            chunks[row / 63] |= (uint64_t)on << row % 63;
    return chunks;
}

static gx_wah encode(gx_wah_writer *w, const uint64_t *chunks, uint64_t n_rows)
{
    gx_error err = {0};
    for (uint64_t i = 0; i < gx_wah_n_chunks(n_rows); ++i)
        assert_int_equal(gx_wah_put(w, chunks[i], 1), GX_OK);
    const gx_wah c = gx_wah_written(w, n_rows);
    if (gx_wah_check(&c, &err))
        fail_msg("%s", err.text);
    return c;
}

/* The atoms are those of the chunks, and as the chunks they are read. */
static void assert_column(gx_wah_writer *w, const uint64_t *chunks, uint64_t n_rows)
{
    const uint64_t n = gx_wah_n_chunks(n_rows);
    gx_wah_writer again = {0};
    const gx_wah c = gx_wah_written(w, n_rows), want = encode(&again, chunks, n_rows);
    uint64_t count = 0;
    assert_int_equal(w->n_chunks, n);
    assert_int_equal(c.n_atoms, want.n_atoms);
    if (c.n_atoms)
        assert_memory_equal(c.atoms, want.atoms, c.n_atoms * 8);
    uint64_t *const out = malloc(n * 8 + 8);
    assert_non_null(out);
    memset(out, 0xa5, n * 8 + 8);
    gx_wah_decode(&c, out);
    assert_memory_equal(out, chunks, n * 8);
    assert_true(out[n] == 0xa5a5a5a5a5a5a5a5u);
    for (uint64_t i = 0; i < n; ++i)
        count += (uint64_t)__builtin_popcountll(chunks[i]);
    assert_int_equal(gx_wah_count(&c), count);
    free(out);
    gx_wah_free(&again);
}

static void a_column_has_the_atoms_of_the_drawing(void **state)
{
    (void)state;
    /* 252 rows as in Figure 1 of the paper on GPU bitmaps: a literal and a fill of three chunks */
    const uint64_t want[] = {5, GX_WAH_FILL | 3};
    gx_wah_writer w = {0};
    assert_int_equal(gx_wah_put(&w, 5, 1), GX_OK);
    assert_int_equal(gx_wah_put(&w, 0, 2), GX_OK);
    assert_int_equal(gx_wah_put(&w, 0, 1), GX_OK);
    assert_int_equal(w.n_atoms, 2);
    assert_memory_equal(w.atoms, want, sizeof want);
    assert_int_equal(gx_wah_put(&w, GX_WAH_ONES, 0), GX_OK);
    assert_int_equal(w.n_atoms, 2);
    assert_int_equal(gx_wah_put(&w, GX_WAH_ONES, 1), GX_OK);
    assert_true(w.n_atoms == 3 && w.atoms[2] == (GX_WAH_FILL | GX_WAH_VALUE | 1));
    gx_wah_free(&w);
}

static void random_columns_are_read_as_written_and_combine(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {1, 2, 20, 63, 400, 5000, 100000};
    enum { N = sizeof lengths / sizeof *lengths };
    uint64_t seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t turn = 0; turn < 400; ++turn) {
        const uint64_t n_rows = gx_random_next(&seed) % (turn % 2 ? 300 : 20000), n = gx_wah_n_chunks(n_rows);
        uint64_t *chunks[2], *const both = calloc(n + 1, 8);
        gx_wah_writer w[2] = {{0}}, out = {0};
        gx_wah c[2];
        for (int k = 0; k < 2; ++k) {
            chunks[k] =
                random_chunks(n_rows, lengths[gx_random_next(&seed) % N], lengths[gx_random_next(&seed) % N], &seed);
            c[k] = encode(&w[k], chunks[k], n_rows);
            assert_column(&w[k], chunks[k], n_rows);
        }
        for (uint64_t i = 0; i < n; ++i)
            both[i] = chunks[0][i] & chunks[1][i];
        assert_int_equal(gx_wah_and(&c[0], &c[1], &out), GX_OK);
        assert_column(&out, both, n_rows);
        gx_wah_free(&out);
        for (uint64_t i = 0; i < n; ++i)
            both[i] = chunks[0][i] | chunks[1][i];
        assert_int_equal(gx_wah_or(&c[0], &c[1], &out), GX_OK);
        assert_column(&out, both, n_rows);
        gx_wah_free(&out);
        gx_wah_or_chunks(&c[1], chunks[0]);
        assert_memory_equal(chunks[0], both, n * 8);
        for (uint64_t i = 0; i < n; ++i)
            both[i] = chunks[1][i] ^ GX_WAH_ONES;
        if (n)
            both[n - 1] &= gx_wah_last_chunk(n_rows);
        assert_int_equal(gx_wah_not(&c[1], &out), GX_OK);
        assert_column(&out, both, n_rows);
        gx_wah_free(&out);
        for (int k = 0; k < 2; ++k) {
            gx_wah_free(&w[k]);
            free(chunks[k]);
        }
        free(both);
    }
}

/* From every chunk of a column, by the atom that holds it. */
static void a_part_begins_within_any_atom(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)time(NULL), part[40];
    print_message("seed %llu\n", (unsigned long long)seed);
    const uint64_t n_rows = 63 * 400 + 5, n = gx_wah_n_chunks(n_rows);
    uint64_t *const chunks = random_chunks(n_rows, 500, 900, &seed);
    gx_wah_writer w = {0};
    const gx_wah c = encode(&w, chunks, n_rows);
    uint64_t first = 0;
    for (uint64_t atom = 0; atom < c.n_atoms; ++atom)
        for (uint64_t skip = 0; skip < gx_wah_length(c.atoms[atom]); ++skip, ++first) {
            const uint64_t len = first + 40 < n ? 40 : n - first;
            memset(part, 0, sizeof part);
            part[0] = 1;
            gx_wah_or_part(&c, atom, skip, len, part);
            assert_true(part[0] == (chunks[first] | 1));
            assert_memory_equal(part + 1, chunks + first + 1, (len - 1) * 8);
            for (uint64_t i = len; i < 40; ++i)
                assert_true(part[i] == 0);
        }
    assert_int_equal(first, n);
    gx_wah_free(&w);
    free(chunks);
}

static void columns_of_equal_bits_are_one_atom_or_two(void **state)
{
    (void)state;
    for (uint64_t n_rows = 1; n_rows < 200; ++n_rows) {
        gx_wah_writer zeros = {0}, ones = {0}, back = {0};
        gx_error err = {0};
        assert_int_equal(gx_wah_put(&zeros, 0, gx_wah_n_chunks(n_rows)), GX_OK);
        const gx_wah none = gx_wah_written(&zeros, n_rows);
        assert_int_equal(gx_wah_not(&none, &ones), GX_OK);
        const gx_wah all = gx_wah_written(&ones, n_rows);
        assert_int_equal(gx_wah_check(&all, &err), GX_OK);
        assert_int_equal(all.n_atoms, n_rows < 63 || n_rows % 63 == 0 ? 1 : 2);
        assert_int_equal(gx_wah_count(&all), n_rows);
        assert_int_equal(gx_wah_not(&all, &back), GX_OK);
        assert_true(back.n_atoms == 1 && back.atoms[0] == zeros.atoms[0]);
        gx_wah_free(&zeros);
        gx_wah_free(&ones);
        gx_wah_free(&back);
    }
}

/* 2^64 - 1 rows: what no plain bitmap can hold. */
static void the_longest_columns_take_a_few_steps(void **state)
{
    (void)state;
    const uint64_t n_rows = UINT64_MAX, n = gx_wah_n_chunks(n_rows);
    gx_wah_writer w = {0}, inverse = {0}, out = {0};
    gx_error err = {0};
    assert_int_equal(gx_wah_put(&w, 0, n - 7), GX_OK);
    assert_int_equal(gx_wah_put(&w, 9, 2), GX_OK);
    assert_int_equal(gx_wah_put(&w, 0, 5), GX_OK);
    const gx_wah c = gx_wah_written(&w, n_rows);
    assert_int_equal(gx_wah_check(&c, &err), GX_OK);
    assert_int_equal(gx_wah_not(&c, &inverse), GX_OK);
    const gx_wah d = gx_wah_written(&inverse, n_rows);
    assert_int_equal(gx_wah_check(&d, &err), GX_OK);
    assert_true(gx_wah_count(&c) == 4 && gx_wah_count(&d) == n_rows - 4);
    assert_int_equal(gx_wah_and(&c, &d, &out), GX_OK);
    assert_true(out.n_atoms == 1 && out.atoms[0] == (GX_WAH_FILL | n));
    gx_wah_free(&out);
    assert_int_equal(gx_wah_or(&c, &d, &out), GX_OK);
    const gx_wah all = gx_wah_written(&out, n_rows);
    assert_true(gx_wah_count(&all) == n_rows);
    gx_wah_free(&out);
    gx_wah_free(&inverse);
    gx_wah_free(&w);
}

static void refuse(const uint64_t *atoms, uint64_t n_atoms, uint64_t n_rows, const char *why)
{
    gx_error err = {0};
    const gx_wah c = {atoms, n_atoms, n_rows};
    assert_int_equal(gx_wah_check(&c, &err), GX_ECORRUPT);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void columns_that_are_not_canonical_are_refused(void **state)
{
    (void)state;
    const uint64_t zeros = GX_WAH_FILL, ones = GX_WAH_FILL | GX_WAH_VALUE;
    refuse((uint64_t[]){0}, 1, 63, "atom 0 is a literal of equal bits");
    refuse((uint64_t[]){1, GX_WAH_ONES}, 2, 126, "atom 1 is a literal of equal bits");
    refuse((uint64_t[]){zeros}, 1, 63, "atom 0 is a fill of no chunks");
    refuse((uint64_t[]){zeros | 3}, 1, 126, "atom 0 is a fill that ends behind the last row");
    refuse((uint64_t[]){zeros | GX_WAH_MAX_LENGTH}, 1, UINT64_MAX, "ends behind the last row");
    refuse((uint64_t[]){7, ones | GX_WAH_MAX_LENGTH}, 2, 126, "atom 1 is a fill that ends behind");
    refuse((uint64_t[]){zeros | 1, zeros | 1}, 2, 126, "atom 1 is a fill of the value of the fill before it");
    refuse((uint64_t[]){ones | 1, ones | 1}, 2, 126, "atom 1 is a fill of the value of the fill before it");
    refuse((uint64_t[]){7, 7, 7}, 3, 126, "atom 2 lies behind the last row");
    refuse((uint64_t[]){7}, 1, 0, "atom 0 lies behind the last row");
    refuse((uint64_t[]){7}, 1, 64, "ends 1 chunks before the last row");
    refuse(NULL, 0, 1, "ends 1 chunks before the last row");
    refuse((uint64_t[]){4}, 1, 2, "bits are set behind the last row");
    refuse((uint64_t[]){ones | 2}, 1, 125, "bits are set behind the last row");
    const gx_wah empty = {NULL, 0, 0};
    assert_int_equal(gx_wah_check(&empty, NULL), GX_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_has_the_atoms_of_the_drawing),
        cmocka_unit_test(random_columns_are_read_as_written_and_combine),
        cmocka_unit_test(a_part_begins_within_any_atom),
        cmocka_unit_test(columns_of_equal_bits_are_one_atom_or_two),
        cmocka_unit_test(the_longest_columns_take_a_few_steps),
        cmocka_unit_test(columns_that_are_not_canonical_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
