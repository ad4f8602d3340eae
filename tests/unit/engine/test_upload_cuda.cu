/* Host memory copied to a GPU arrives, to the byte, whatever its length, and nothing behind it is
 * written. Skipped where there is no GPU. */
#include "engine/cuda.cuh"

extern "C" {
#include "tests/support/test.h"
}

static constexpr size_t PIECE = 2u << 20, AROUND = 64;

static void upload_and_compare(size_t n)
{
    gx_error err = {};
    unsigned char *host = (unsigned char *)malloc(n + 3), *back = (unsigned char *)malloc(n + AROUND), *device = NULL;
    assert_non_null(host);
    assert_non_null(back);
    for (size_t i = 0; i < n; ++i) /* no two pieces are alike */
        host[3 + i] = (unsigned char)(i * 2654435761u >> 24 ^ i / PIECE * 29);
    assert_int_equal(cudaMalloc((void **)&device, n + AROUND), cudaSuccess);
    assert_int_equal(cudaMemset(device, 0xa5, n + AROUND), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess); /* an upload waits for nothing that is under way */
    assert_int_equal(gx_device_upload(0, device, host + 3, n, &err), GX_OK);
    assert_int_equal(cudaMemcpy(back, device, n + AROUND, cudaMemcpyDeviceToHost), cudaSuccess);
    if (memcmp(back, host + 3, n) != 0)
        fail_msg("%zu bytes arrive as others", n);
    for (size_t i = 0; i < AROUND; ++i)
        assert_int_equal(back[n + i], 0xa5);
    assert_int_equal(cudaFree(device), cudaSuccess);
    free(host);
    free(back);
}

static void what_is_copied_arrives_whatever_its_length(void **state)
{
    static const size_t lengths[] = {
        0, 1, PIECE, 4 * PIECE, 4 * PIECE + 1, 5 * PIECE - 1, 16 * PIECE, 17 * PIECE + 5, 100 * PIECE, 400000007};
    gx_error err = {};
    (void)state;
    if (gx_device_use(0, &err) != GX_OK)
        skip();
    for (size_t n : lengths)
        upload_and_compare(n);
    double seconds = 0;
    unsigned char byte = 1;
    assert_int_equal(gx_device_upload_time(0, &byte, 1, &seconds, &err), GX_OK);
    assert_true(seconds >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_copied_arrives_whatever_its_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
