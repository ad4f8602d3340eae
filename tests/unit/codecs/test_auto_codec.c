/* What --codec=auto chooses for a list. That lists are written by the choice is tested in
 * test_list_encoder.c. */
#include "codecs/auto_codec.h"
#include "engine/random.h"
#include "tests/support/test.h"

enum { N = 5000 };

/* The best of the candidates, the first where costs are equal. */
static const gx_codec *choose(bool is_docids, const uint32_t *in, uint64_t n, double load)
{
    gx_choice c[GX_MAX_CHOICES];
    uint32_t best = 0;
    gx_choices(is_docids, in, n, load, c);
    for (uint32_t i = 1; i < GX_MAX_CHOICES; ++i)
        best = c[i].cost < c[best].cost ? i : best;
    return c[best].codec;
}

/* The bits of a list, block by block. */
static double bits_of(const gx_codec *c, uint8_t param, const uint32_t *in, uint32_t n)
{
    uint32_t words[GX_MAX_WORDS + GX_READ_SLACK / 4];
    double bits = 0;
    for (uint32_t at = 0; at < n; at += 128)
        bits += 32.0 * c->encode(in + at, n - at < 128 ? n - at : 128, param, words);
    return bits;
}

static void each_candidate_costs_its_bits_and_its_time(void **state)
{
    (void)state;
    static uint32_t in[N];
    uint64_t seed = 20261124;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < 60; ++i) {
        const uint32_t n = 1 + (uint32_t)(gx_random_next(&seed) % N), width = 1 + i % 20;
        const double load = (double)(gx_random_next(&seed) % 1000) / 1000;
        const bool is_docids = i % 2;
        for (uint32_t j = 0; j < n; ++j)
            in[j] = (uint32_t)gx_random_next(&seed) >> (32 - width);
        gx_choice c[GX_MAX_CHOICES];
        gx_choices(is_docids, in, n, load, c);
        for (uint32_t j = 0; j < GX_MAX_CHOICES; ++j) {
            const double time = (is_docids ? c[j].codec->decode_cost.docids : c[j].codec->decode_cost.tfs) / 10.0;
            const double cost = bits_of(c[j].codec, c[j].param, in, n) + GX_CHOICE_BITS * n * load * (time - 1);
            assert_true(c[j].cost > cost - 1e-6 * n && c[j].cost < cost + 1e-6 * n);
            assert_int_equal(c[j].codec->block_len, 128);
            assert_true(time > 0);
            assert_int_equal(c[j].param, c[j].codec->param ? c[j].codec->param(in, n) : 0);
            for (uint32_t k = 0; k < j; ++k)
                assert_ptr_not_equal(c[j].codec, c[k].codec);
        }
    }
}

static void the_candidates_are_those_of_the_header(void **state)
{
    (void)state;
    static const char *const names[2][GX_MAX_CHOICES] = {{"gpubp128", "gpupfd128", "ef128", "rice"},
                                                         {"gpubp128", "ef128", "varint-su", "rice"}};
    const uint32_t one = 1;
    for (int is_docids = 0; is_docids < 2; ++is_docids) {
        gx_choice c[GX_MAX_CHOICES];
        gx_choices(is_docids, &one, 1, 1, c);
        for (uint32_t j = 0; j < GX_MAX_CHOICES; ++j)
            assert_string_equal(c[j].codec->name, names[is_docids][j]);
    }
}

/* d-gaps of a list in every hundredth document, by chance: Rice's code is shorter than binary
 * packing, but slower. */
static void a_list_that_all_queries_read_is_packed_for_speed_and_a_rare_one_for_size(void **state)
{
    (void)state;
    static uint32_t gaps[N];
    uint64_t seed = 20261125;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t j = 0; j < N; ++j)
        for (gaps[j] = 0; gx_random_next(&seed) % 100; ++gaps[j])
            ;
    for (int is_docids = 0; is_docids < 2; ++is_docids) {
        assert_string_equal(choose(is_docids, gaps, N, 1)->name, "gpubp128");
        const gx_codec *rare = choose(is_docids, gaps, N, 0);
        assert_string_equal(rare->name, "rice");
        gx_choice c[GX_MAX_CHOICES];
        gx_choices(is_docids, gaps, N, 0, c);
        for (uint32_t j = 0; j < GX_MAX_CHOICES; ++j) /* without load the cost is the size */
            assert_true(c[j].cost >= bits_of(rare, rare->param(gaps, N), gaps, N));
    }
}

static void a_choice_is_found_by_name_and_is_in_no_file(void **state)
{
    (void)state;
    const gx_codec *c;
    gx_error err = {0};
    assert_int_equal(gx_codec_find(&c, "auto", &err), GX_OK);
    assert_ptr_equal(c, &gx_codec_auto);
    assert_int_equal(c->id, 0);
    assert_null(gx_codec_by_id(0));
    for (const gx_codec *const *p = gx_codecs; *p; ++p)
        assert_ptr_not_equal(*p, c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_candidate_costs_its_bits_and_its_time),
        cmocka_unit_test(the_candidates_are_those_of_the_header),
        cmocka_unit_test(a_list_that_all_queries_read_is_packed_for_speed_and_a_rare_one_for_size),
        cmocka_unit_test(a_choice_is_found_by_name_and_is_in_no_file),
    };
    return cmocka_run_group_tests_name("auto_codec", tests, NULL, NULL);
}
