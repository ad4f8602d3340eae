/* Bugs planted on purpose, for gpu.sh: where compute-sanitizer does not catch them, its silence
 * about the engine's kernels means nothing. planted read|race|barrier; without a sanitizer each of
 * them ends well, and prints "done". */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime.h>

static __global__ void read_past_the_end(const unsigned *in, unsigned *out, unsigned n)
{
    out[threadIdx.x] = in[threadIdx.x + n];
}

static __global__ void race(unsigned *out)
{
    __shared__ unsigned s[64];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[63 - threadIdx.x]; /* the other warp may not have written it yet */
}

static __global__ void diverging_barrier(unsigned *out)
{
    if (threadIdx.x < 40)
        __syncthreads();
    out[threadIdx.x] = threadIdx.x;
}

int main(int argc, char **argv)
{
    unsigned *in = NULL, *out = NULL;
    const char *what = argc == 2 ? argv[1] : "";
    if (cudaMalloc(&in, 64 * sizeof *in) != cudaSuccess || cudaMalloc(&out, 64 * sizeof *out) != cudaSuccess) {
        puts("no GPU");
        return 77;
    }
    if (strcmp(what, "read") == 0)
        read_past_the_end<<<1, 64>>>(in, out, 32);
    else if (strcmp(what, "race") == 0)
        race<<<1, 64>>>(out);
    else if (strcmp(what, "barrier") == 0)
        diverging_barrier<<<1, 64>>>(out);
    else
        return 2;
    printf("%s\n", cudaDeviceSynchronize() == cudaSuccess ? "done" : "failed");
    return 0;
}
