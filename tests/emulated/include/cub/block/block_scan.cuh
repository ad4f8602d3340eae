/* block_scan.cuh: what is used of CUB's, on the emulated GPU. Its space is free again after a
 * barrier, as CUB's is. */
#ifndef GX_EMULATED_BLOCK_SCAN_CUH
#define GX_EMULATED_BLOCK_SCAN_CUH

namespace cub {

template <class T, int THREADS> struct BlockScan {
    struct TempStorage {
        T of[THREADS];
    };
    TempStorage &space;

    BlockScan(TempStorage &s) : space(s) {}

    void ExclusiveSum(T x, T &before, T &total)
    {
        space.of[threadIdx.x] = x;
        __syncthreads();
        before = total = 0;
        for (int i = 0; i < THREADS; ++i) {
            before += i < (int)threadIdx.x ? space.of[i] : 0;
            total += space.of[i];
        }
    }
};

} // namespace cub

#endif
