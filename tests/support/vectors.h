/* vectors.h: the middle one of the instruction sets that are tested, which every processor of today has. */
#ifndef GX_TESTS_SUPPORT_VECTORS_H
#define GX_TESTS_SUPPORT_VECTORS_H

#ifdef __aarch64__
#define VECTORS "neon"
#define VECTORS_TITLE "NEON"
#else
#define VECTORS "avx2"
#define VECTORS_TITLE "AVX2"
#endif

#endif
