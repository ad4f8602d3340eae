#include "engine/status.h"
#include "tests/support/test.h"

static void every_status_has_a_name_and_an_exit_code(void **state)
{
    (void)state;
    for (int st = GX_OK; st <= GX_EINTERNAL; ++st) {
        assert_string_not_equal(gx_status_name((gx_status)st), "unknown status");
        assert_in_range(gx_status_exit((gx_status)st), 0, 70);
    }
    assert_int_equal(gx_status_exit(GX_EINPUT), 3);
    assert_int_equal(gx_status_exit(GX_ECORRUPT), 4);
}

static void a_failure_carries_its_text(void **state)
{
    (void)state;
    gx_error err = {0};
    assert_int_equal(gx_fail(&err, GX_EIO, "cannot read %s at byte %d", "x.gx", 12), GX_EIO);
    assert_string_equal(err.text, "cannot read x.gx at byte 12");
    assert_int_equal(gx_fail(NULL, GX_EIO, "nobody listens"), GX_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_an_exit_code),
        cmocka_unit_test(a_failure_carries_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
