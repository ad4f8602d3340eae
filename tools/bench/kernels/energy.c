#include "tools/bench/kernels/energy.h"

#include <dlfcn.h>
#include <stddef.h>

#include "tools/bench/kernels/gpu_list.h"

/* Functions of libnvidia-ml.so.1; each returns 0 if all is well. */
typedef int init_fn(void);
typedef int find_fn(const char *pci, void **device);
typedef int energy_fn(void *device, unsigned long long *millijoules);

double bench_gpu_joules(void)
{
    static energy_fn *energy;
    static void *device;
    static bool asked;
    unsigned long long millijoules = 0;
    if (!asked) {
        char pci[32] = "";
        gx_error err;
        asked = true;
        void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        init_fn *init = lib ? (init_fn *)dlsym(lib, "nvmlInit_v2") : NULL;
        find_fn *find = lib ? (find_fn *)dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2") : NULL;
        energy_fn *all = lib ? (energy_fn *)dlsym(lib, "nvmlDeviceGetTotalEnergyConsumption") : NULL;
#ifdef GX_CUDA
        const bool known = gx_gpu_pci(pci, sizeof pci, &err) == GX_OK;
#else
        const bool known = false;
        (void)err;
#endif
        if (known && init && find && all && init() == 0 && find(pci, &device) == 0)
            energy = all;
    }
    return energy && energy(device, &millijoules) == 0 ? 1e-3 * (double)millijoules : -1;
}
