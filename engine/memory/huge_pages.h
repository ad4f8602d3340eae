/* huge_pages.h: memory for big tables that are read at random places. Huge pages, where the system
 * gives them, save a look-up the page walk, so that it costs one cache miss.
 */
#ifndef GX_ENGINE_MEMORY_HUGE_PAGES_H
#define GX_ENGINE_MEMORY_HUGE_PAGES_H

#include <stddef.h>

/* Zeroed memory at a boundary of 64 bytes; NULL: no memory. A table of less than 2 MiB, the size of a huge page, is
 * in ordinary pages. */
void *gx_huge_alloc(size_t bytes);
void gx_huge_free(void *p, size_t bytes); /* bytes as given to gx_huge_alloc or _grow; p may be NULL */

/* Memory of more bytes than p has, with p's contents and zeros behind them, in p's place. Large tables keep their
 * pages, so that nothing is copied. NULL: no memory; p stays. p may be NULL, of 0 bytes. */
void *gx_huge_grow(void *p, size_t old_bytes, size_t bytes);

#endif
