/* hd.h: GX_HD marks a function in a header that both C and CUDA code include. */
#ifndef GX_ENGINE_HD_H
#define GX_ENGINE_HD_H

#ifdef __CUDACC__
#define GX_HD __host__ __device__ __forceinline__
#else
#define GX_HD static inline
#endif

#endif
