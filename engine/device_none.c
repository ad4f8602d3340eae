/* device_none.c: device.h in a library built without CUDA. */
#include "engine/device.h"

#include "engine/status.h"

static const char *const text = GX_BUILT_WITHOUT_CUDA;

gx_status gx_devices(gx_device **out, uint32_t *n, gx_error *err)
{
    *out = NULL;
    *n = 0;
    return gx_fail(err, GX_ENOGPU, "%s", text);
}

gx_status gx_device_use(int number, gx_error *err)
{
    (void)number;
    return gx_fail(err, GX_ENOGPU, "%s", text);
}

gx_status gx_device_upload(int number, void *device, const void *host, size_t bytes, gx_error *err)
{
    (void)number, (void)device, (void)host, (void)bytes;
    return gx_fail(err, GX_ENOGPU, "%s", text);
}

gx_status gx_device_upload_time(int number, const void *host, size_t bytes, double *seconds, gx_error *err)
{
    (void)number, (void)host, (void)bytes, (void)seconds;
    return gx_fail(err, GX_ENOGPU, "%s", text);
}
