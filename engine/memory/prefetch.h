/* prefetch.h: ask for a cache line before it is needed. A function that does nothing but __builtin_prefetch counts as
 * one without effects, and GCC 12 drops its calls; gx_prefetch is an effect.
 */
#ifndef GX_ENGINE_MEMORY_PREFETCH_H
#define GX_ENGINE_MEMORY_PREFETCH_H

/* p may be any address. */
static inline void gx_prefetch(const void *p)
{
    __builtin_prefetch(p);
    __asm__ volatile("");
}

#endif
