/* random.h: the random number generator splitmix64 (Steele, Lea and Flood, OOPSLA 2014). A seed
 * gives the same sequence of 64-bit numbers on every machine.
 */
#ifndef GX_ENGINE_RANDOM_H
#define GX_ENGINE_RANDOM_H

#include <stdint.h>

/* The next number of the sequence. Before the first call, *state is the seed. */
static inline uint64_t gx_random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
