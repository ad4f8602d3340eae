/* EWAH: bitmaps as the paper's definition codes them, by hand; and random ones, of every density and in runs,
 * against plain bitmaps. GX_TEST_SEED is the seed of these, 19 without it. */
#include "engine/random.h"
#include "tests/support/test.h"
#include "tools/bench/bitmaps/ewah.h"

enum { MOST_WORDS = 900, MOST_BITMAPS = 70 };

static uint64_t seed = 19;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

/* A marker: the running bit, clean words, dirty words. */
static uint64_t marker(uint64_t bit, uint64_t run, uint64_t dirty)
{
    return dirty * ((uint64_t)1 << 33) + run * 2 + bit;
}

static void expect_words(const ewah *e, const uint64_t *want, size_t n)
{
    assert_int_equal(e->n, n);
    assert_memory_equal(e->words, want, n * sizeof *want);
}

static void bitmaps_are_coded_as_the_paper_says(void **state)
{
    (void)state;
    ewah e = {0};
    assert_true(ewah_add(&e, 0, 3));
    expect_words(&e, (uint64_t[]){6}, 1); /* three words of zeros */
    assert_true(ewah_add(&e, 5, 2));
    expect_words(&e, (uint64_t[]){marker(0, 3, 2), 5, 5}, 3); /* two dirty words behind them */
    assert_true(ewah_add(&e, UINT64_MAX, 4) && ewah_add(&e, UINT64_MAX, 1));
    expect_words(&e, (uint64_t[]){marker(0, 3, 2), 5, 5, 11}, 4); /* five of ones: a marker of their own */
    assert_true(ewah_add(&e, 0, 1) && ewah_add(&e, 9, 1));
    expect_words(&e, (uint64_t[]){marker(0, 3, 2), 5, 5, 11, marker(0, 1, 1), 9}, 6);
    assert_int_equal(e.n_words, 12);
    ewah_free(&e);
    assert_true(ewah_add(&e, 7, 1)); /* a bitmap that begins dirty begins with a marker, too */
    expect_words(&e, (uint64_t[]){(uint64_t)1 << 33, 7}, 2);
    ewah_free(&e);
    assert_true(ewah_add(&e, UINT64_MAX, ((uint64_t)1 << 32) + 5)); /* more than a marker can count */
    expect_words(&e, (uint64_t[]){marker(1, UINT32_MAX, 0), marker(1, 6, 0)}, 2);
    ewah zeros = {0}, out = {0};
    assert_true(ewah_add(&zeros, 0, ((uint64_t)1 << 32) + 5) && ewah_or(&zeros, &e, &out));
    expect_words(&out, e.words, 2);
    ewah_free(&e);
    ewah_free(&zeros);
    ewah_free(&out);
}

static void an_or_is_coded_as_its_words_are(void **state)
{
    (void)state;
    ewah a = {0}, b = {0}, out = {0};
    assert_true(ewah_add(&a, 0, 2) && ewah_add(&a, 0xf0, 2) && ewah_add(&a, UINT64_MAX, 3) && ewah_add(&a, 0, 1));
    assert_true(ewah_add(&b, 0, 1) && ewah_add(&b, 1, 1) && ewah_add(&b, ~(uint64_t)0xf0, 1) && ewah_add(&b, 2, 2));
    assert_true(ewah_add(&b, 0, 3));
    assert_true(ewah_or(&a, &b, &out)); /* 0 1 ~0 f2 ~0 ~0 ~0 0 */
    expect_words(&out, (uint64_t[]){marker(0, 1, 1), 1, marker(1, 1, 1), 0xf2, marker(1, 3, 0), marker(0, 1, 0)}, 6);
    ewah_free(&a);
    ewah_free(&b);
    ewah_free(&out);
}

/* Words of one density, in runs of a mean length. */
static void draw_words(uint64_t *words, uint32_t n)
{
    const uint32_t density = below(6), run = 1 + below(3) * below(60);
    for (uint32_t i = 0; i < n;) {
        const uint32_t kind = below(density + 1);
        const uint64_t word = density == 5 && below(2) ? UINT64_MAX
                              : kind == 0              ? gx_random_next(&seed)
                              : kind == 1              ? (uint64_t)1 << below(64)
                                                       : 0;
        for (uint32_t left = 1 + below(2 * run); left && i < n; --left)
            words[i++] = kind == 0 ? word ^ (uint64_t)below(3) : word;
    }
}

static void check_words(const ewah *e, const uint64_t *want, uint32_t n, const char *what)
{
    static uint64_t got[MOST_WORDS];
    ewah_reader r = ewah_begin(e);
    assert_int_equal(e->n_words, n);
    memset(got, 0, sizeof got);
    for (uint32_t at = 0, m; at < n; at += m) {
        m = 1 + below(n - at);
        ewah_or_next(&r, m, got + at);
    }
    for (uint32_t i = 0; i < n; ++i)
        if (got[i] != want[i])
            fail_msg("%s: word %u of %u is %llx, not %llx", what, i, n, (unsigned long long)got[i],
                     (unsigned long long)want[i]);
}

/* The least coded form: no two markers could be one. */
static void check_form(const ewah *e)
{
    bool dirty = true;
    uint64_t bit = 2;
    for (size_t i = 0; i < e->n; i += 1 + (e->words[i] >> 33)) {
        const uint64_t m = e->words[i], run = m >> 1 & UINT32_MAX;
        assert_true(run || (i == 0 && m >> 33));
        assert_true(dirty || (m & 1) != bit);
        for (uint64_t k = 1; k <= m >> 33; ++k)
            assert_true(e->words[i + k] != 0 && e->words[i + k] != UINT64_MAX);
        dirty = m >> 33 > 0;
        bit = m & 1;
    }
}

static void random_bitmaps_are_ored_as_plain_ones(void **state)
{
    static uint64_t plain[MOST_WORDS], all[MOST_WORDS];
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t turn = 0; turn < 800; ++turn) {
        const uint32_t n = 1 + below(turn % 7 ? 40 : MOST_WORDS), n_bitmaps = 1 + below(turn % 3 ? 4 : MOST_BITMAPS);
        ewah bitmaps[MOST_BITMAPS] = {{0}}, out = {0};
        memset(all, 0, sizeof all);
        for (uint32_t b = 0; b < n_bitmaps; ++b) {
            draw_words(plain, n);
            for (uint32_t i = 0; i < n; ++i) {
                assert_true(ewah_add(&bitmaps[b], plain[i], 1));
                all[i] |= plain[i];
            }
            check_form(&bitmaps[b]);
            check_words(&bitmaps[b], plain, n, "coded and read");
        }
        assert_true(ewah_or_many(bitmaps, n_bitmaps, &out));
        check_form(&out);
        check_words(&out, all, n, "the OR of many");
        ewah_free(&out);
        for (uint32_t b = 0; b < n_bitmaps; ++b)
            ewah_free(&bitmaps[b]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitmaps_are_coded_as_the_paper_says),
        cmocka_unit_test(an_or_is_coded_as_its_words_are),
        cmocka_unit_test(random_bitmaps_are_ored_as_plain_ones),
    };
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
