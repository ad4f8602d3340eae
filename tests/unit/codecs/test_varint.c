/* What the byte-oriented codecs share; test_codecs.c tests the codecs themselves. */
#include "codecs/compared/varint.h"
#include "engine/random.h"
#include "tests/support/test.h"

static const uint8_t coders[] = {GX_CODEC_VARINTSU, GX_CODEC_VARINTPU, GX_CODEC_VARINTPB, GX_CODEC_VARINTGB};

static void integers_have_the_bytes_that_their_bits_need(void **state)
{
    (void)state;
    const struct {
        uint32_t x, bytes;
    } cases[] = {{0, 1},       {1, 1},        {0xff, 1},      {0x100, 2},      {0xffff, 2},
                 {0x10000, 3}, {0xffffff, 3}, {0x1000000, 4}, {UINT32_MAX, 4}, {0x80000000u, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_int_equal(gx_bytes_of(cases[i].x), cases[i].bytes);
}

static void bytes_are_loaded_lowest_first(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x11, 0x22, 0x33, 0xf4, 0x55};
    const uint32_t expected[] = {0, 0x11, 0x2211, 0x332211, 0xf4332211, 0xf4332211};
    for (uint32_t n = 0; n < 6; ++n)
        assert_int_equal(gx_load_bytes(bytes, n), expected[n]);
    assert_int_equal(gx_load_bytes(bytes + 1, 2), 0x3322);
}

static void a_block_ends_with_a_whole_word_of_zero_bytes(void **state)
{
    (void)state;
    for (uint32_t bytes = 0; bytes <= 12; ++bytes) {
        uint32_t out[4];
        memset(out, 0xee, sizeof out);
        const uint32_t n_words = gx_varint_pad(out, (uint8_t *)out + bytes), end = 4 * n_words;
        assert_int_equal(n_words, (bytes + 3) / 4);
        for (uint32_t i = 0; i < sizeof out; ++i)
            assert_int_equal(((const uint8_t *)out)[i], i < bytes || i >= end ? 0xee : 0);
    }
}

/* A block is valid only if encoding writes it: no other bit, and no word more or less. */
static void only_what_encoding_writes_is_valid(void **state)
{
    (void)state;
    uint64_t seed = 20261123;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < 400; ++i) {
        const gx_codec *c = gx_codec_by_id(coders[i % (sizeof coders / sizeof *coders)]);
        const uint32_t n = 1 + (uint32_t)(gx_random_next(&seed) % GX_VARINT_BLOCK);
        uint32_t in[GX_VARINT_BLOCK], words[GX_VARINT_MAX_WORDS + GX_READ_SLACK / 4 + 1] = {0};
        for (uint32_t j = 0; j < n; ++j)
            in[j] = 1 + (uint32_t)(gx_random_next(&seed) >> 32 >> (1 + gx_random_next(&seed) % 31));
        const uint32_t n_words = c->encode(in, n, 0, words);
        assert_in_range(n_words, 1, GX_VARINT_MAX_WORDS);
        assert_true(gx_varint_valid(c, words, n_words, n));
        assert_false(gx_varint_valid(c, words, n_words + 1, n));
        if (n_words * 4 - 3 > n) /* else the last word may hold nothing but its zero bytes */
            assert_false(gx_varint_valid(c, words, n_words - 1, n));
        const uint32_t at = (uint32_t)(gx_random_next(&seed) % (32 * n_words));
        uint32_t before[GX_VARINT_BLOCK], after[GX_VARINT_BLOCK];
        c->decode(words, n_words, n, 0, before);
        words[at / 32] ^= UINT32_C(1) << at % 32;
        c->decode(words, n_words, n, 0, after);
        if (memcmp(before, after, n * sizeof *before) == 0) /* a bit that decoding does not read */
            assert_false(gx_varint_valid(c, words, n_words, n));
    }
}

static void a_block_of_zeros_has_no_words(void **state)
{
    (void)state;
    const uint32_t zeros[GX_VARINT_BLOCK] = {0};
    for (size_t i = 0; i < sizeof coders / sizeof *coders; ++i) {
        const gx_codec *c = gx_codec_by_id(coders[i]);
        uint32_t words[GX_VARINT_MAX_WORDS + GX_READ_SLACK / 4] = {0};
        assert_int_equal(c->encode(zeros, GX_VARINT_BLOCK, 0, words), 0);
        assert_true(gx_varint_valid(c, words, 0, GX_VARINT_BLOCK));
        assert_false(gx_varint_valid(c, words, 1, GX_VARINT_BLOCK));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_have_the_bytes_that_their_bits_need),
        cmocka_unit_test(bytes_are_loaded_lowest_first),
        cmocka_unit_test(a_block_ends_with_a_whole_word_of_zero_bytes),
        cmocka_unit_test(only_what_encoding_writes_is_valid),
        cmocka_unit_test(a_block_of_zeros_has_no_words),
    };
    return cmocka_run_group_tests_name("varint", tests, NULL, NULL);
}
