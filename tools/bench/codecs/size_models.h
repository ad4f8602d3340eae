/* size_models.h: how many bits a list takes in forms that gpuidx has no codec of, counted without writing them:
 * PForDelta with one width for a whole list and with exceptions coded again and again (Ding, He, Yan and Suel, WWW
 * 2009, Figure 3), PForDelta with a width for each block (their [23]: Zhang, Long and Suel, WWW 2008), Rice, and
 * Elias-Fano of a whole list.
 *
 *     a list, whole   | header | n slots of b bits | gaps between exceptions | their high parts |
 *                                                    `levels` 0: e + e words of 32 bits
 *                                                    `levels` L: two lists of e integers, coded with L - 1
 */
#ifndef GX_TOOLS_BENCH_CODECS_SIZE_MODELS_H
#define GX_TOOLS_BENCH_CODECS_SIZE_MODELS_H

#include <stdbool.h>
#include <stdint.h>

enum { SIZE_LEVELS = 5 }; /* 0 to 4, as the paper's figure has */

/* Bits of v[n] by PForDelta, one width for all, the exceptions' arrays coded by it again `levels` times; each width is
 * the one that takes the fewest bits of those that at least half of the integers fit into. A header of 32 bits has the
 * width and the number of exceptions. UINT64_MAX: no memory. */
uint64_t size_pfordelta_whole(const uint32_t *v, uint64_t n, uint32_t levels);

/* Bits of v[n] by PForDelta in blocks of 128, each with the width that takes the fewest bits. Exceptions are linked
 * through their slots, so that some integers become exceptions because the next one lies too far; their values take 8,
 * 16 or 32 bits behind the slots. A header of 32 bits a block. */
uint64_t size_pfordelta_blocks(const uint32_t *v, uint64_t n);

/* Bits of v[n] by Rice codes of the width that takes the fewest; 8 bits have the width. */
uint64_t size_rice(const uint32_t *v, uint64_t n);

/* Bits of n rising integers below `universe` by Elias-Fano, whole: n low parts of floor(log2(universe / n)) bits, and
 * the high parts in unary. */
uint64_t size_eliasfano(uint64_t n, uint64_t universe);
/* The pointers that skip in the high parts (Vigna, WSDM 2013): one for every 256 integers and one for every 256 zeros,
 * each as wide as a place in the high parts. */
uint64_t size_eliasfano_pointers(uint64_t n, uint64_t universe);

#endif
