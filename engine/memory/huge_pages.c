#include "engine/memory/huge_pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define CACHE_LINE ((size_t)64)

static size_t rounded(size_t bytes)
{
    return (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

void *gx_huge_alloc(size_t bytes)
{
    if (bytes < HUGE_PAGE) {
        const size_t lines = (bytes + CACHE_LINE - 1) & ~(CACHE_LINE - 1);
        void *p = aligned_alloc(CACHE_LINE, lines ? lines : CACHE_LINE);
        return p ? memset(p, 0, bytes) : NULL;
    }
    const size_t n = rounded(bytes);
    if (n < bytes || n + HUGE_PAGE < n)
        return NULL;
    char *p = mmap(NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    const size_t before = (size_t)(-(uintptr_t)p & (HUGE_PAGE - 1)); /* up to the first boundary */
    if (before)
        munmap(p, before);
    munmap(p + before + n, HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
    madvise(p + before, n, MADV_HUGEPAGE); /* if the system refuses, look-ups are slower */
#endif
    return p + before;
}

void gx_huge_free(void *p, size_t bytes)
{
    if (!p)
        return;
    if (bytes < HUGE_PAGE)
        free(p);
    else
        munmap(p, rounded(bytes));
}

void *gx_huge_grow(void *p, size_t old_bytes, size_t bytes)
{
    char *to = gx_huge_alloc(bytes);
    if (!to || !p)
        return to;
    const size_t n = rounded(old_bytes);
    if (old_bytes >= HUGE_PAGE && mremap(p, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to)
        return to;
    memcpy(to, p, old_bytes);
    gx_huge_free(p, old_bytes);
    return to;
}
