/* device.h: the GPUs of this machine: which there are, why one cannot be used, and host data on its
 * way to one.
 *
 * Built without CUDA (device_none.c), every function says so with GX_ENOGPU.
 */
#ifndef GX_ENGINE_DEVICE_H
#define GX_ENGINE_DEVICE_H

#include "engine/gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_device {
    int number;                   /* CUDA's */
    char name[256];               /* "NVIDIA H100 80GB HBM3" */
    uint64_t memory, free_memory; /* bytes; free_memory 0 where the device cannot be asked */
    int major, minor;             /* compute capability */
    uint32_t multiprocessors;
    uint64_t l2_bytes;
    bool usable;
    char why[512]; /* why it is not usable, "" if it is */
} gx_device;

/* The GPUs seen, [*n] at *out, to be freed by the caller with free(). GX_OK with *n >= 1; GX_ENOGPU
 * with the reason in err when there is none to list (no driver, too old a driver, no device, built
 * without CUDA); GX_ENOMEM. */
gx_status gx_devices(gx_device **out, uint32_t *n, gx_error *err);

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
