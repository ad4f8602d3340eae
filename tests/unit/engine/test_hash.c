#include "engine/hash.h"

#include <xxhash.h>

#include "tests/support/test.h"

static void is_xxh3_of_any_length(void **state)
{
    (void)state;
    static uint8_t data[70000];
    for (size_t i = 0; i < sizeof data; ++i)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t n = 0; n < 3000; ++n)
        assert_true(gx_hash(data + n % 7, n) == XXH3_64bits(data + n % 7, n));
    for (size_t n = 3000; n < sizeof data - 7; n += 997)
        assert_true(gx_hash(data + n % 7, n) == XXH3_64bits(data + n % 7, n));
}

static void is_the_same_in_pieces(void **state)
{
    (void)state;
    static uint8_t data[5000];
    for (size_t i = 0; i < sizeof data; ++i)
        data[i] = (uint8_t)(i * 2654435761u >> 11);
    gx_hasher *h = gx_hasher_open();
    assert_non_null(h);
    for (size_t piece = 1; piece < sizeof data; piece += 1 + piece / 3) {
        gx_hasher_start(h);
        for (size_t at = 0; at < sizeof data; at += piece)
            gx_hasher_add(h, data + at, sizeof data - at < piece ? sizeof data - at : piece);
        assert_true(gx_hasher_get(h) == gx_hash(data, sizeof data));
    }
    gx_hasher_start(h);
    assert_true(gx_hasher_get(h) == 0x2d06800538d394c2); /* of nothing: the value that xxHash documents */
    gx_hasher_close(h);
    gx_hasher_close(NULL);
}

/* xxHash's own known answers (XSUM_XXH3_testdata in its sanity test, seed 0), of its generated
 * bytes. */
static void gives_the_answers_that_xxhash_publishes(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint64_t hash;
    } known[] = {
        {0, 0x2D06800538D394C2},    {1, 0xC44BDFF4074EECDB},   {6, 0x27B56A84CD2D7325},    {12, 0xA713DAF0DFBB77E7},
        {24, 0xA3FE70BF9D3510EB},   {48, 0x397DA259ECBA1F11},  {80, 0xBCDEFBBB2C47C90A},   {195, 0xCD94217EE362EC3A},
        {403, 0xCDEB804D65C6DEA4},  {512, 0x617E49599013CB6B}, {2048, 0xDD59E2C3A5F038E0}, {2240, 0x6E73A90539CF2948},
        {2367, 0xCB37AEB9E5D361ED},
    };
    uint8_t data[2367];
    uint64_t x = 2654435761u;
    for (size_t i = 0; i < sizeof data; ++i, x *= 11400714785074694797u)
        data[i] = (uint8_t)(x >> 56);
    gx_hasher *h = gx_hasher_open();
    assert_non_null(h);
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        assert_true(gx_hash(data, known[i].n) == known[i].hash);
        gx_hasher_start(h);
        gx_hasher_add(h, data, known[i].n);
        assert_true(gx_hasher_get(h) == known[i].hash);
    }
    gx_hasher_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_xxh3_of_any_length),
        cmocka_unit_test(is_the_same_in_pieces),
        cmocka_unit_test(gives_the_answers_that_xxhash_publishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
