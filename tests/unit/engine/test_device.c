/* The GPUs of this machine: a list of them, or why there is none; a number that no GPU has; data on
 * its way to one. */
#include "engine/device.h"
#include "tests/support/test.h"

static void gpus_are_listed_or_their_absence_is_explained(void **state)
{
    gx_device *devices = (gx_device *)1;
    uint32_t n = 7;
    gx_error err = {0};
    (void)state;
    const gx_status st = gx_devices(&devices, &n, &err);
    if (st != GX_OK) {
        assert_int_equal(st, GX_ENOGPU);
        assert_null(devices);
        assert_int_equal(n, 0);
        assert_true(strlen(err.text) > 20);
        assert_non_null(strstr(err.text, "CPU engine")); /* what to do */
        return;
    }
    assert_true(n >= 1);
    for (uint32_t i = 0; i < n; ++i) {
        assert_int_equal(devices[i].number, i);
        assert_true(devices[i].name[0] != 0);
        assert_int_equal(devices[i].usable, devices[i].why[0] == 0);
        if (devices[i].usable)
            assert_true(devices[i].memory >= devices[i].free_memory && devices[i].multiprocessors > 0);
    }
    free(devices);
}

static void a_gpu_that_is_not_there_is_refused_by_number(void **state)
{
    gx_error err = {0};
    (void)state;
    assert_int_equal(gx_device_use(1000000, &err), GX_ENOGPU);
    assert_true(strlen(err.text) > 20);
    assert_int_equal(gx_device_use(-1, &err), GX_ENOGPU);
    assert_int_equal(gx_device_use(-1, NULL), GX_ENOGPU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_listed_or_their_absence_is_explained),
        cmocka_unit_test(a_gpu_that_is_not_there_is_refused_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
