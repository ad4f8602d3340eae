/* grow.h: arrays on the heap that grow.
 *
 * `array` is the address of the pointer to an array's first element (NULL: no element yet). Where
 * memory lacks, the array and its capacity stay as they were. */
#ifndef GX_ENGINE_MEMORY_GROW_H
#define GX_ENGINE_MEMORY_GROW_H

#include "engine/api/gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Give the array room for n elements of `size` bytes each; n * size must not be 0. false: no
 * memory. */
bool gx_resize(void *array, size_t n, size_t size);

/* Make sure that the array, which has room for *max elements, has room for n. If it grows, then by
 * at least half of n, so that elements added one by one are copied a few times each at most.
 * false: no memory. */
bool gx_reserve(void *array, size_t *max, size_t n, size_t size);

/* As gx_reserve, with an error for want of memory: GX_ENOMEM. */
gx_status gx_grow(void *array, size_t *max, size_t n, size_t size, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
