/* hd.h: what lets one header serve the C and the CUDA compiler. */
#ifndef GX_ENGINE_HD_H
#define GX_ENGINE_HD_H

#ifdef __CUDACC__
#define GX_HD __host__ __device__ __forceinline__
#else
#define GX_HD static inline
#endif

#endif
