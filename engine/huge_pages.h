/* huge_pages.h: memory for big tables that are read at random places. Huge pages, where the system
 * gives them, save a look-up the page walk, so that it costs one cache miss.
 */
#ifndef GX_ENGINE_HUGE_PAGES_H
#define GX_ENGINE_HUGE_PAGES_H

#include <stddef.h>

/* Zeroed memory; NULL: no memory. A table of less than 2 MiB, the size of a huge page, is allocated
 * by calloc. */
void *gx_huge_alloc(size_t bytes);
void gx_huge_free(void *p, size_t bytes); /* bytes as given to gx_huge_alloc; p may be NULL */

#endif
