/* workers.c: threads that answer what takes longer than a connection's thread should be kept. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/serve/serve.h"

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t some;
    exchange *first, **last;
    uint32_t waiting, max_waiting, n;
    bool closing;
    pthread_t threads[];
};

static void *work(void *arg)
{
    workers *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->closing)
            pthread_cond_wait(&w->some, &w->lock);
        exchange *x = w->first;
        if (!x)
            break;
        w->first = x->next;
        if (!w->first)
            w->last = &w->first;
        --w->waiting;
        pthread_mutex_unlock(&w->lock);
        x->in_worker = true;
        searches_work(x);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

gx_status workers_open(workers **out, uint32_t n, uint32_t max_waiting, gx_error *err)
{
    workers *w = calloc(1, sizeof *w + n * sizeof *w->threads);
    *out = w;
    if (!w) {
        *err = (gx_error){GX_ENOMEM, "no memory for workers"};
        return GX_ENOMEM;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->some, NULL);
    w->last = &w->first;
    w->max_waiting = max_waiting;
    for (; w->n < n; ++w->n) {
        const int e = pthread_create(&w->threads[w->n], NULL, work, w);
        if (e && w->n == 0) {
            err->status = GX_ENOMEM;
            snprintf(err->text, sizeof err->text, "cannot start threads: %s", strerror(e));
            workers_close(w);
            *out = NULL;
            return GX_ENOMEM;
        }
        if (e)
            break;
    }
    return GX_OK;
}

void workers_close(workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->some);
    pthread_mutex_unlock(&w->lock);
    for (uint32_t i = 0; i < w->n; ++i)
        pthread_join(w->threads[i], NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->some);
    free(w);
}

bool workers_add(workers *w, exchange *x)
{
    pthread_mutex_lock(&w->lock);
    const bool room = w->waiting < w->max_waiting && !w->closing;
    if (room) {
        x->next = NULL;
        *w->last = x;
        w->last = &x->next;
        ++w->waiting;
        pthread_cond_signal(&w->some);
    }
    pthread_mutex_unlock(&w->lock);
    return room;
}

uint32_t workers_waiting(workers *w)
{
    pthread_mutex_lock(&w->lock);
    const uint32_t n = w->waiting;
    pthread_mutex_unlock(&w->lock);
    return n;
}
