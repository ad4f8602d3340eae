/* device.h: choose a GPU for the calling thread, and copy host data to it. gx_devices, in
 * gpuidx_advanced.h, lists the GPUs of the machine.
 *
 * In a library built without CUDA (device_none.c) every function returns GX_ENOGPU.
 */
#ifndef GX_ENGINE_DEVICE_H
#define GX_ENGINE_DEVICE_H

#include "engine/api/gpuidx_advanced.h" /* gx_device, gx_devices */

#define GX_BUILT_WITHOUT_CUDA                                                                                          \
    "this gpuidx was built without CUDA and cannot use a GPU; use the CPU engine, or build it where nvcc is installed"

#ifdef __cplusplus
extern "C" {
#endif

/* Make GPU `number` the calling thread's current device. GX_ENOGPU, with the reason, if gpuidx
 * cannot use it. */
gx_status gx_device_use(int number, gx_error *err);

/* Copy [bytes] of pageable host memory, typically a mapped file, to device memory of GPU `number`,
 * through pinned buffers that several threads fill. The copy does not wait for work that is under
 * way on the GPU. Returns when all bytes have arrived. GX_ECUDA. */
gx_status gx_device_upload(int number, void *device, const void *host, size_t bytes, gx_error *err);

/* Measure the seconds that gx_device_upload takes, to device memory that this function allocates
 * before and frees after. GX_ENOGPU, GX_ECUDA. */
gx_status gx_device_upload_time(int number, const void *host, size_t bytes, double *seconds, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
