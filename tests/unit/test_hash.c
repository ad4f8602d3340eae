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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_xxh3_of_any_length),
        cmocka_unit_test(is_the_same_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
