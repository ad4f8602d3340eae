/* Tokens to term numbers: the cache answers as if it analysed each token anew. */
#include "index/inversion/term_cache.h"

#include "engine/random.h"
#include "tests/support/test.h"

typedef struct fixture {
    gx_analyzer *an;
    gx_analysis *analysis, *oracle; /* oracle: a second workspace, for the same without a cache */
    gx_postings_buffer *postings;
    gx_term_cache *cache;
} fixture;

static void open_fixture(fixture *f, const char *analyzer)
{
    const gx_analyzer_options opt = {.name = analyzer};
    gx_error err = {0};
    assert_int_equal(gx_analyzer_open(&f->an, &opt, &err), GX_OK);
    assert_int_equal(gx_analysis_open(&f->analysis, f->an, &err), GX_OK);
    assert_int_equal(gx_analysis_open(&f->oracle, f->an, &err), GX_OK);
    assert_int_equal(gx_postings_buffer_open(&f->postings, "/tmp", 1 << 20, 1, &err), GX_OK);
    assert_int_equal(gx_term_cache_open(&f->cache, f->analysis, f->postings, &err), GX_OK);
}

static void close_fixture(fixture *f)
{
    gx_term_cache_close(f->cache);
    gx_postings_buffer_close(f->postings);
    gx_analysis_close(f->oracle);
    gx_analysis_close(f->analysis);
    gx_analyzer_close(f->an);
}

/* The term numbers of a text, compared with those of its tokens analysed one by one. Returns their
 * number; *dropped grows. */
static uint32_t check_text(fixture *f, const char *text, size_t len, uint64_t *dropped)
{
    gx_tokens tokens;
    const uint32_t *terms;
    uint32_t n, seen = 0;
    uint64_t too_long = *dropped;
    char *const buffer = gx_analysis_buffer(f->analysis, len);
    assert_non_null(buffer);
    memcpy(buffer, text, len);
    assert_int_equal(gx_analysis_tokenize(f->analysis, len, &tokens), GX_OK);
    assert_int_equal(gx_term_cache_document(f->cache, &tokens, &terms, &n, dropped), GX_OK);
    for (uint32_t i = 0; i < tokens.n; ++i) {
        const char *term;
        size_t term_len;
        const gx_token t = tokens.ranges[i];
        const gx_token_kind kind =
            gx_analysis_term(f->oracle, tokens.bytes + t.begin, t.end - t.begin, &term, &term_len);
        too_long += kind == GX_TOKEN_TOO_LONG;
        if (kind != GX_TOKEN_TERM)
            continue;
        assert_true(seen < n);
        assert_int_equal(terms[seen++], gx_postings_buffer_term(f->postings, term, term_len));
    }
    assert_int_equal(seen, n);
    assert_int_equal(*dropped, too_long);
    return n;
}

static uint32_t check(fixture *f, const char *text)
{
    uint64_t dropped = 0;
    const uint32_t n = check_text(f, text, strlen(text), &dropped);
    assert_int_equal(dropped, 0);
    return n;
}

static void tokens_of_one_term_have_its_number(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f, "english");
    assert_int_equal(check(&f, "Compression compressed, the compressing of an index"), 4); /* less the, of, an */
    assert_int_equal(check(&f, "compression compressed compressing"), 3);
    assert_int_equal(gx_postings_buffer_term(f.postings, "compress", 8), 0);
    assert_int_equal(gx_postings_buffer_term(f.postings, "index", 5), 1);
    assert_int_equal(check(&f, ""), 0);
    assert_int_equal(check(&f, "the of an ... ___"), 0);
    close_fixture(&f);
}

/* Tokens of 8, 11 and 12 bytes are where the ways to keep them change. */
static void tokens_of_any_length_are_told_apart(void **state)
{
    (void)state;
    fixture f;
    uint64_t dropped = 0;
    open_fixture(&f, "whitespace");
    for (size_t len = 1; len <= 255; ++len) {
        char text[3 * 256 + 3];
        memset(text, 'a', 3 * len + 2); /* three tokens: a..a, a..b, b..a */
        text[len] = text[2 * len + 1] = ' ';
        text[2 * len] = 'b';
        text[2 * len + 2] = 'b';
        assert_int_equal(check_text(&f, text, 3 * len + 2, &dropped), 3);
        assert_int_equal(check_text(&f, text, 3 * len + 2, &dropped), 3); /* now remembered */
    }
    assert_int_equal(dropped, 0);
    /* zeros are part of a token, not its end */
    assert_int_equal(check_text(&f, "a\0 a a\0\0 aaaaaaaaaaaa\0 aaaaaaaaaaaa", 36, &dropped), 5);
    close_fixture(&f);
}

static void tokens_that_are_too_long_are_counted_each_time(void **state)
{
    (void)state;
    fixture f;
    char text[600];
    uint64_t dropped = 5;
    open_fixture(&f, "whitespace");
    memset(text, 'x', sizeof text);
    text[256] = text[512] = ' '; /* 256, 255 and 87 bytes */
    assert_int_equal(check_text(&f, text, sizeof text, &dropped), 2);
    assert_int_equal(check_text(&f, text, sizeof text, &dropped), 2);
    assert_int_equal(dropped, 7);
    close_fixture(&f);
}

static void a_cleared_cache_learns_the_numbers_anew(void **state)
{
    (void)state;
    fixture f;
    gx_error err = {0};
    open_fixture(&f, "english");
    assert_int_equal(check(&f, "first second extraordinarily"), 3);
    assert_int_equal(gx_postings_buffer_term(f.postings, "second", 6), 1);
    assert_int_equal(gx_postings_buffer_spill(f.postings, &err), GX_OK);
    assert_true(gx_term_cache_clear(f.cache));
    assert_int_equal(check(&f, "second extraordinarily first"), 3); /* numbers count from 0 again */
    assert_int_equal(gx_postings_buffer_term(f.postings, "second", 6), 0);
    close_fixture(&f);
}

static void random_documents_get_the_numbers_of_their_terms(void **state)
{
    (void)state;
    static const char *const analyzers[] = {"english", "simple", "whitespace"};
    uint64_t seed = 1234567;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t a = 0; a < 3; ++a) {
        fixture f;
        uint64_t dropped = 0;
        open_fixture(&f, analyzers[a]);
        const uint64_t bytes = gx_term_cache_bytes(f.cache);
        for (uint32_t d = 0; d < 60; ++d) {
            static char text[1 << 17];
            size_t n = 0;
            for (uint64_t words = gx_random_next(&seed) % 2000; words > 0; --words) {
                const uint64_t r = gx_random_next(&seed);
                const uint64_t len = r % 100 == 0 ? 200 + r % 120 : 1 + r % 20;
                /* few letters, so that words come again; others are new, so that the tables grow */
                for (uint64_t i = 0, letters = r % 3 ? 2 : 26; i < len; ++i)
                    text[n++] = (char)('a' + gx_random_next(&seed) % letters);
                text[n++] = r % 7 ? ' ' : '.';
            }
            check_text(&f, text, n, &dropped);
        }
        assert_true(gx_term_cache_bytes(f.cache) > 2 * bytes); /* both tables have grown */
        assert_true(dropped > 0);
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_one_term_have_its_number),
        cmocka_unit_test(tokens_of_any_length_are_told_apart),
        cmocka_unit_test(tokens_that_are_too_long_are_counted_each_time),
        cmocka_unit_test(a_cleared_cache_learns_the_numbers_anew),
        cmocka_unit_test(random_documents_get_the_numbers_of_their_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
