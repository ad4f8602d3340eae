#include "engine/files/spool.h"

#include "engine/random.h"
#include "tests/support/test.h"

/* Pieces of many lengths, some larger than the buffer, read back by pieces of other lengths. */
static void what_was_added_is_read_back(void **state)
{
    (void)state;
    enum { TOTAL = 12 << 20 };
    uint64_t seed = 20261128;
    printf("seed %llu\n", (unsigned long long)seed);
    gx_error err = {0};
    gx_spool s = gx_spool_make("/tmp");
    uint8_t *all = malloc(TOTAL), *read = malloc(TOTAL);
    assert_true(all && read);
    for (uint32_t i = 0; i < TOTAL; ++i)
        all[i] = (uint8_t)(gx_random_next(&seed) >> 56);
    for (size_t at = 0, n; at < TOTAL; at += n) {
        n = gx_random_next(&seed) >> 32 >> (9 + gx_random_next(&seed) % 23);
        n = n < TOTAL - at ? n : TOTAL - at;
        if (gx_random_next(&seed) % 3) {
            assert_int_equal(gx_spool_add(&s, all + at, n, &err), GX_OK);
        } else {
            uint8_t *room = NULL;
            assert_int_equal(gx_spool_reserve(&s, n, &room, &err), GX_OK);
            memcpy(room, all + at, n);
            gx_spool_commit(&s, n);
        }
        assert_int_equal(gx_spool_bytes(&s), at + n);
    }
    assert_true(s.file_bytes > 0); /* else the buffer alone would be tested */
    for (size_t at = 0, n; at < TOTAL; at += n) {
        n = 1 + (gx_random_next(&seed) >> 32 >> (9 + gx_random_next(&seed) % 23));
        n = n < TOTAL - at ? n : TOTAL - at;
        assert_int_equal(gx_spool_read(&s, at, read + at, n, &err), GX_OK);
    }
    assert_memory_equal(read, all, TOTAL);
    const uint64_t across = s.file_bytes - 1; /* a byte of the file and those of the buffer */
    assert_true(s.n > 0);
    assert_int_equal(gx_spool_read(&s, across, read, s.n + 1, &err), GX_OK);
    assert_memory_equal(read, all + across, s.n + 1);
    gx_spool_free(&s);
    free(all);
    free(read);
}

static void numbers_are_in_the_machines_order(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_spool s = gx_spool_make("/tmp");
    uint32_t back[2];
    assert_int_equal(gx_spool_u32(&s, 0x01020304, &err), GX_OK);
    assert_int_equal(gx_spool_u32(&s, UINT32_MAX, &err), GX_OK);
    assert_int_equal(gx_spool_bytes(&s), 8);
    assert_int_equal(gx_spool_read(&s, 0, back, 8, &err), GX_OK);
    assert_int_equal(back[0], 0x01020304);
    assert_int_equal(back[1], UINT32_MAX);
    gx_spool_free(&s);
}

static void without_its_directory_it_fails_when_the_buffer_is_full(void **state)
{
    (void)state;
    enum { PIECE = 1 << 16 };
    static uint8_t piece[PIECE];
    gx_error err = {0};
    gx_spool s = gx_spool_make("/tmp/no-such-directory-of-gpuidx");
    gx_status st = GX_OK;
    for (int i = 0; i < 1000 && st == GX_OK; ++i)
        st = gx_spool_add(&s, piece, PIECE, &err);
    assert_int_equal(st, GX_ENOTFOUND);
    assert_non_null(strstr(err.text, "/tmp/no-such-directory-of-gpuidx"));
    gx_spool_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_read_back),
        cmocka_unit_test(numbers_are_in_the_machines_order),
        cmocka_unit_test(without_its_directory_it_fails_when_the_buffer_is_full),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
