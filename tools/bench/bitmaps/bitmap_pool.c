#include "tools/bench/bitmaps/bitmap_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/random.h"
#include "engine/status.h"

struct bitmap_pool {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* slots were given back, or the next in line was served */
    uint64_t next, served;  /* numbers of the next call, and of the call whose turn it is */
    uint64_t waits;
    uint32_t n_slots;
    bool taken[];
};

gx_status bitmap_pool_open(bitmap_pool **out, uint32_t n_slots, gx_error *err)
{
    bitmap_pool *const p = calloc(1, sizeof *p + n_slots * sizeof *p->taken);
    *out = p;
    if (!p)
        return gx_fail(err, GX_ENOMEM, "no memory for a pool of %u slots", n_slots);
    p->n_slots = n_slots;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    return GX_OK;
}

void bitmap_pool_close(bitmap_pool *p)
{
    if (!p)
        return;
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* The first of n neighbouring free slots; n_slots: there are none. */
static uint32_t find_free(const bitmap_pool *p, uint32_t n)
{
    uint32_t free_before = 0;
    for (uint32_t i = 0; i < p->n_slots; ++i) {
        free_before = p->taken[i] ? 0 : free_before + 1;
        if (free_before == n)
            return i + 1 - n;
    }
    return p->n_slots;
}

uint32_t bitmap_pool_take(bitmap_pool *p, uint32_t n)
{
    uint32_t first;
    pthread_mutex_lock(&p->lock);
    const uint64_t mine = p->next++;
    bool waited = false;
    while (p->served != mine || (first = find_free(p, n)) == p->n_slots) {
        waited = true;
        pthread_cond_wait(&p->changed, &p->lock);
    }
    memset(p->taken + first, true, n);
    p->waits += waited;
    ++p->served;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return first;
}

bool bitmap_pool_try(bitmap_pool *p, uint64_t key, uint32_t n, uint32_t *first)
{
    bool found = false;
    if (n > p->n_slots)
        return false;
    pthread_mutex_lock(&p->lock);
    const uint32_t places = p->n_slots - n + 1, begin = (uint32_t)(gx_random_next(&key) % places);
    for (uint32_t tried = 0; tried < places && !found; ++tried) {
        const uint32_t place = (begin + tried) % places;
        found = !memchr(p->taken + place, true, n);
        *first = place;
    }
    if (found)
        memset(p->taken + *first, true, n);
    pthread_mutex_unlock(&p->lock);
    return found;
}

void bitmap_pool_give(bitmap_pool *p, uint32_t first, uint32_t n)
{
    pthread_mutex_lock(&p->lock);
    memset(p->taken + first, false, n);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

uint64_t bitmap_pool_waits(bitmap_pool *p)
{
    pthread_mutex_lock(&p->lock);
    const uint64_t waits = p->waits;
    pthread_mutex_unlock(&p->lock);
    return waits;
}
