#include "engine/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/thread_number.h"

typedef struct thread_call {
    pthread_t thread;
    gx_parallel_fn *work;
    void *user;
    uint32_t number;
} thread_call;

struct gx_threads {
    uint32_t n;
    thread_call calls[];
};

static void *run_call(void *user)
{
    const thread_call *c = user;
    c->work(c->user, c->number);
    return NULL;
}

gx_threads *gx_threads_start(uint32_t n, uint32_t first, gx_parallel_fn *work, void *user)
{
    gx_threads *t = n ? malloc(sizeof *t + n * sizeof *t->calls) : NULL;
    sigset_t all, old;
    if (!t)
        return NULL;
    t->n = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; t->n < n; ++t->n) {
        thread_call *c = &t->calls[t->n];
        *c = (thread_call){.work = work, .user = user, .number = first + t->n};
        if (pthread_create(&c->thread, NULL, run_call, c) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (t->n == 0) {
        free(t);
        return NULL;
    }
    return t;
}

uint32_t gx_thread_number(void)
{
    static atomic_uint n_threads;
    static _Thread_local uint32_t mine; /* and 1; 0: it has not asked */
    if (!mine)
        mine = atomic_fetch_add(&n_threads, 1) + 1;
    return mine - 1;
}

uint32_t gx_threads_count(const gx_threads *threads)
{
    return threads ? threads->n : 0;
}

void gx_threads_join(gx_threads *threads)
{
    if (!threads)
        return;
    for (uint32_t i = 0; i < threads->n; ++i)
        pthread_join(threads->calls[i].thread, NULL);
    free(threads);
}

uint32_t gx_parallel_run(uint32_t n, gx_parallel_fn *work, void *user)
{
    gx_threads *others = n > 1 ? gx_threads_start(n - 1, 1, work, user) : NULL;
    const uint32_t ran = 1 + gx_threads_count(others);
    work(user, 0);
    gx_threads_join(others);
    return ran;
}

typedef struct shared_items {
    gx_parallel_fn *work;
    void *user;
    uint32_t n;
    atomic_uint_least64_t next;
} shared_items;

static void run_shared_items(void *user, uint32_t thread)
{
    shared_items *it = user;
    (void)thread;
    for (uint64_t i; (i = atomic_fetch_add(&it->next, 1)) < it->n;)
        it->work(it->user, (uint32_t)i);
}

void gx_parallel_for(uint32_t n_threads, uint32_t n, gx_parallel_fn *work, void *user)
{
    shared_items it = {.work = work, .user = user, .n = n};
    atomic_init(&it.next, 0);
    gx_parallel_run(n_threads < n ? n_threads : n, run_shared_items, &it);
}
