/* The code of positions: random blocks, each part of them, damaged words. */
#include <stdlib.h>

#include "codecs/codec.h"
#include "codecs/positions.h"
#include "engine/random.h"
#include "tests/support/test.h"

enum { MOST = 3000 };

static uint32_t values[MOST], decoded[MOST], sums[MOST + GX_SUMS_ROOM];

/* A block in memory of its own, where a read outside is found. */
typedef struct block {
    gx_block_positions b;
    uint32_t *words;
} block;

static block encode(const uint32_t *v, uint32_t n)
{
    uint32_t *const words = calloc(gx_positions_max_words(n) + GX_READ_SLACK / 4, sizeof *words);
    assert_non_null(words);
    memset(words, 0xee, gx_positions_max_words(n) * sizeof *words);
    const uint64_t n_words = gx_positions_encode(v, n, words);
    assert_true(n_words <= gx_positions_max_words(n));
    uint32_t *const own = calloc(n_words + GX_READ_SLACK / 4, sizeof *own);
    assert_non_null(own);
    memcpy(own, words, n_words * sizeof *own);
    free(words);
    return (block){{own, n_words}, own};
}

static uint32_t draw(uint64_t *r, uint32_t bits)
{
    return bits ? (uint32_t)gx_random_next(r) >> (32 - bits) : 0;
}

/* Bits of the stream with this b. */
static uint64_t bits_with(const uint32_t *v, uint32_t n, uint32_t b)
{
    uint64_t bits = 5;
    for (uint32_t i = 0; i < n; ++i)
        bits += b + (uint64_t)(v[i] >> b) + 1;
    return bits;
}

/* As gx_positions_sums, by one value after the other. */
static void check_sums(const block *x, uint32_t n)
{
    uint64_t sum = 0;
    const bool good = gx_positions_sums(x->b, n, sums), right = gx_positions_decode(x->b, n, 0, n, decoded);
    for (uint32_t i = 0; i < n && right; ++i)
        sum += decoded[i] + (uint64_t)1;
    assert_int_equal(good, right && sum <= GX_MAX_POSITION);
    sum = 0;
    for (uint32_t i = 0; i < n && good; ++i)
        assert_int_equal(sums[i], sum += decoded[i] + (uint64_t)1);
}

static void check_block(const uint32_t *v, uint32_t n, uint64_t *r)
{
    const block x = encode(v, n);
    uint32_t best = 0;
    for (uint32_t b = 1; b <= 31; ++b)
        if (bits_with(v, n, b) < bits_with(v, n, best))
            best = b;
    assert_int_equal(x.words[0] & 31, best);
    assert_int_equal(x.b.n_words, (bits_with(v, n, best) + 31) / 32);
    assert_true(gx_positions_decode(x.b, n, 0, n, decoded));
    assert_memory_equal(decoded, v, n * sizeof *v);
    assert_true(gx_positions_valid(x.b, n, decoded));
    for (int k = 0; k < 8; ++k) {
        const uint32_t first = (uint32_t)gx_random_next(r) % (n + 1),
                       some = (uint32_t)gx_random_next(r) % (n - first + 1);
        assert_true(gx_positions_decode(x.b, n, first, some, decoded));
        assert_memory_equal(decoded, v + first, some * sizeof *v);
    }
    check_sums(&x, n);
    assert_false(gx_positions_decode((gx_block_positions){x.words, x.b.n_words - 1}, n, 0, n, decoded));
    assert_false(gx_positions_sums((gx_block_positions){x.words, x.b.n_words - 1}, n, sums));
    free(x.words);
}

static void blocks_come_back_whole_and_in_parts(void **state)
{
    (void)state;
    uint64_t r = 38;
    for (int round = 0; round < 3000; ++round) {
        const uint32_t n = 1 + (uint32_t)gx_random_next(&r) % (round % 10 ? 300 : MOST),
                       bits = (uint32_t)gx_random_next(&r) % 32;
        for (uint32_t i = 0; i < n; ++i)
            values[i] = draw(&r, gx_random_next(&r) % 16 ? bits / 2 : bits);
        check_block(values, n, &r);
    }
    const uint32_t hand[] = {0, 1, 31, 32, 33, 63, 64, 65, 127, 128, INT32_MAX};
    for (size_t i = 0; i < sizeof hand / sizeof *hand; ++i)
        for (uint32_t n = 1; n < 70; ++n) {
            for (uint32_t k = 0; k < n; ++k)
                values[k] = k % 3 ? 0 : hand[i];
            check_block(values, n, &r);
        }
}

/* Whatever the words are, no byte outside the block and its slack is read or written: an address sanitizer says so. */
static void damaged_blocks_are_refused_or_decoded(void **state)
{
    (void)state;
    uint64_t r = 39;
    uint32_t refused = 0, unlike = 0;
    for (int round = 0; round < 20000; ++round) {
        const uint32_t n = 1 + (uint32_t)gx_random_next(&r) % 200;
        for (uint32_t i = 0; i < n; ++i)
            values[i] = draw(&r, (uint32_t)gx_random_next(&r) % 12);
        block x = encode(values, n);
        const uint32_t flips = 1 + (uint32_t)gx_random_next(&r) % 4;
        for (uint32_t k = 0; k < flips; ++k)
            x.words[gx_random_next(&r) % x.b.n_words] ^= 1u << gx_random_next(&r) % 32;
        const uint32_t claimed = gx_random_next(&r) % 4 ? n : 1 + (uint32_t)gx_random_next(&r) % MOST,
                       first = (uint32_t)gx_random_next(&r) % claimed;
        const bool good = gx_positions_decode(x.b, claimed, 0, claimed, decoded);
        refused += !good;
        if (good && claimed == n && memcmp(decoded, values, n * sizeof *values) != 0)
            unlike += gx_positions_valid(x.b, claimed, decoded);
        gx_positions_decode(x.b, claimed, first, claimed - first, decoded);
        check_sums(&x, claimed);
        free(x.words);
    }
    assert_true(refused > 100);
    assert_true(unlike > 0); /* another block, which could have been written */
    assert_false(gx_positions_decode((gx_block_positions){NULL, 0}, 5, 0, 5, decoded));
    assert_false(gx_positions_decode((gx_block_positions){values, 1}, UINT64_MAX, 0, 5, decoded));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_back_whole_and_in_parts),
        cmocka_unit_test(damaged_blocks_are_refused_or_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
