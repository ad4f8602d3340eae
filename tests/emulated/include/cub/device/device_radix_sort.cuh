/* device_radix_sort.cuh: what is used of CUB's, on the emulated GPU. */
#ifndef GX_EMULATED_DEVICE_RADIX_SORT_CUH
#define GX_EMULATED_DEVICE_RADIX_SORT_CUH

#include <algorithm>
#include <functional>

namespace cub {

struct DeviceRadixSort {
    /* Keys by all their bits; without scratch, the bytes of it that are wanted. */
    template <class K>
    static cudaError_t SortKeysDescending(void *scratch, size_t &scratch_bytes, const K *keys, K *sorted, unsigned n,
                                          int first_bit = 0, int end_bit = 8 * sizeof(K), cudaStream_t stream = NULL)
    {
        if (!scratch) {
            scratch_bytes = n * sizeof(K);
            return cudaSuccess;
        }
        if (scratch_bytes < n * sizeof(K) || first_bit != 0 || end_bit != 8 * sizeof(K))
            return cudaErrorInvalidValue;
        emulated::enqueue(stream, [=] {
            std::copy(keys, keys + n, (K *)scratch);
            std::copy(keys, keys + n, sorted);
            std::sort(sorted, sorted + n, std::greater<K>());
        });
        return cudaSuccess;
    }
};

} // namespace cub

#endif
