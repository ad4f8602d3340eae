/* device.h: a GPU made the calling thread's, and host data on its way to one. Which GPUs there are
 * is told by gx_devices, of gpuidx_advanced.h.
 *
 * Built without CUDA (device_none.c), every function says so with GX_ENOGPU.
 */
#ifndef GX_ENGINE_DEVICE_H
#define GX_ENGINE_DEVICE_H

#include "engine/gpuidx_advanced.h" /* gx_device, gx_devices */

#ifdef __cplusplus
extern "C" {
#endif

/* Make device `number` the calling thread's. GX_ENOGPU, with the reason, where it cannot be used.
 * */
gx_status gx_device_use(int number, gx_error *err);

/* Copy [bytes] of pageable (typically mapped) host memory to device memory, through pinned buffers
 * that several threads fill. It is not ordered behind what is under way on the device; returns when
 * all is there. GX_ECUDA, GX_ENOMEM. */
gx_status gx_device_upload(int number, void *device, const void *host, size_t bytes, gx_error *err);

/* Seconds that such a copy takes, the buffers' making included, to memory that is got before and
 * given back. */
gx_status gx_device_upload_time(int number, const void *host, size_t bytes, double *seconds, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
