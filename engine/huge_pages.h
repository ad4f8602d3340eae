/* huge_pages.h: big tables that are read at random, in huge pages where the system gives them, so
 * that a look-up costs a cache miss but no page walk on top.
 */
#ifndef GX_ENGINE_HUGE_PAGES_H
#define GX_ENGINE_HUGE_PAGES_H

#include <stddef.h>

/* Zeroed memory, or NULL. Small tables come from malloc. */
void *gx_huge_alloc(size_t bytes);
void gx_huge_free(void *p, size_t bytes); /* of the same size; NULL is fine */

#endif
