#include "engine/memory/grow.h"
#include "engine/memory/huge_pages.h"
#include "engine/status.h"
#include "tests/support/test.h"

/* AddressSanitizer would end the program where malloc returns NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void an_array_keeps_its_elements_as_it_grows(void **state)
{
    (void)state;
    uint32_t *items = NULL;
    size_t max = 0, times = 0;
    for (uint32_t n = 0; n < 10000; ++n) {
        const size_t before = max;
        assert_true(gx_reserve(&items, &max, n + 1, sizeof *items));
        assert_true(max > n);
        times += max != before;
        items[n] = 3 * n;
    }
    assert_in_range(times, 10, 40); /* by half each time */
    for (uint32_t n = 0; n < 10000; ++n)
        assert_int_equal(items[n], 3 * n);
    free(items);
}

static void an_array_with_room_stays_where_it_is(void **state)
{
    (void)state;
    double *items = NULL;
    size_t max = 0;
    assert_true(gx_reserve(&items, &max, 0, sizeof *items));
    assert_null(items); /* of none there is none */
    assert_true(gx_reserve(&items, &max, 100, sizeof *items));
    double *const was = items;
    const size_t room = max;
    for (size_t n = 0; n <= room; ++n)
        assert_true(gx_reserve(&items, &max, n, sizeof *items));
    assert_ptr_equal(items, was);
    assert_int_equal(max, room);
    free(items);
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    gx_error err = {0};
    uint64_t *items = NULL;
    size_t max = 0;
    assert_true(gx_resize(&items, 4, sizeof *items));
    max = 4;
    items[3] = 77;
    uint64_t *const was = items;
    const size_t most = SIZE_MAX / 16; /* its bytes are more than an address space has */
    assert_false(gx_resize(&items, most, sizeof *items));
    assert_false(gx_reserve(&items, &max, most, sizeof *items));
    assert_false(gx_resize(&items, SIZE_MAX / 8 + 2, sizeof *items)); /* modulo 2^64 these are 8 bytes */
    assert_int_equal(gx_grow(&items, &max, most, sizeof *items, &err), GX_ENOMEM);
    assert_int_equal(err.status, GX_ENOMEM);
    assert_non_null(strstr(err.text, "of 8 bytes"));
    assert_ptr_equal(items, was);
    assert_int_equal(max, 4);
    assert_int_equal(items[3], 77);
    assert_int_equal(gx_grow(&items, &max, 5, sizeof *items, &err), GX_OK);
    assert_true(max >= 5);
    free(items);
}

static void memory_of_huge_pages_keeps_its_bytes_and_gets_zeros(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 4096, (2u << 20) - 1, 2u << 20, (4u << 20) + 5, 9u << 20, 64u << 20};
    unsigned char *p = NULL;
    size_t old = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; old = sizes[k++]) {
        p = gx_huge_grow(p, old, sizes[k]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < old; ++i)
            if (p[i] != (unsigned char)(i % 251 + 1))
                fail_msg("of %zu bytes byte %zu is %u", old, i, p[i]);
        for (size_t i = old; i < sizes[k]; ++i) {
            if (p[i])
                fail_msg("of %zu new bytes byte %zu is %u", sizes[k], i, p[i]);
            p[i] = (unsigned char)(i % 251 + 1);
        }
    }
    gx_huge_free(p, old);
    assert_null(gx_huge_grow(NULL, 0, SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_keeps_its_elements_as_it_grows),
        cmocka_unit_test(an_array_with_room_stays_where_it_is),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(memory_of_huge_pages_keeps_its_bytes_and_gets_zeros),
    };
    return cmocka_run_group_tests_name("grow", tests, NULL, NULL);
}
