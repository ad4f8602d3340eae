#include "index/build/parallel_merge.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "engine/parallel.h"
#include "engine/status.h"
#include "index/build/stages.h"

typedef struct product {
    void *of_sink;
    double seconds;
    bool done;
} product;

typedef struct merge_job {
    gx_postings_buffer *const *inverters;
    uint32_t n_inverters;
    const gx_list_sink *sink;
    gx_term_range *ranges; /* [n_ranges] */
    uint32_t n_ranges;
    product *products; /* [n_products] */
    uint32_t n_products;

    pthread_mutex_t lock; /* of what follows, and of products' done */
    pthread_cond_t room;  /* a range is taken, or the end */
    uint32_t n_begun, n_taken;
    bool taking;
    gx_status st; /* the first failure's */
    gx_error err;
} merge_job;

/* ---- with the lock held ---- */

/* How something ended: the first failure is kept, and who waits looks again. */
static void tell(merge_job *c, gx_status st, const gx_error *err)
{
    if (st != GX_OK && c->st == GX_OK) {
        c->st = st;
        c->err = *err;
    }
    pthread_cond_broadcast(&c->room);
}

/* Take all products whose turn it is, unless another thread is at it; the lock is not held
 * meanwhile. */
static void take(merge_job *c)
{
    if (c->taking)
        return;
    c->taking = true;
    for (product *p;
         p = &c->products[c->n_taken % c->n_products], c->n_taken < c->n_begun && p->done && c->st == GX_OK;) {
        gx_error err = {0};
        pthread_mutex_unlock(&c->lock);
        const gx_status st = c->sink->take(c->sink->user, p->of_sink, p->seconds, &err);
        pthread_mutex_lock(&c->lock);
        p->done = false;
        ++c->n_taken;
        tell(c, st, &err);
    }
    c->taking = false;
}

/* Merge the next range; the lock is not held meanwhile. */
static void merge_next(merge_job *c, gx_merger *m)
{
    const gx_term_range range = c->ranges[c->n_begun];
    product *p = &c->products[c->n_begun++ % c->n_products];
    gx_error err = {0};
    pthread_mutex_unlock(&c->lock);
    const double t = gx_clock_seconds();
    const gx_status st = gx_merger_run(m, range, c->sink->add, p->of_sink, &err);
    p->seconds = gx_clock_seconds() - t;
    pthread_mutex_lock(&c->lock);
    p->done = true;
    tell(c, st, &err);
    take(c);
}

/* ---- threads ---- */

static void work(void *user, uint32_t thread)
{
    merge_job *c = user;
    (void)thread;
    gx_error err = {0};
    gx_merger *m;
    const gx_status st = gx_merger_open(&m, c->inverters, c->n_inverters, &err);
    pthread_mutex_lock(&c->lock);
    tell(c, st, &err);
    while (c->st == GX_OK && c->n_begun < c->n_ranges) {
        if (c->n_begun < c->n_taken + c->n_products)
            merge_next(c, m);
        else
            pthread_cond_wait(&c->room, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    gx_merger_close(m);
}

static gx_status open_products(merge_job *c, uint32_t n, gx_error *err)
{
    if (!(c->products = calloc(n, sizeof *c->products)))
        return gx_fail(err, GX_ENOMEM, "out of memory");
    for (; c->n_products < n; ++c->n_products)
        if (!(c->products[c->n_products].of_sink = c->sink->open(c->sink->user)))
            return gx_fail(err, GX_ENOMEM, "out of memory");
    return GX_OK;
}

gx_status gx_parallel_merge(gx_postings_buffer *const *inverters, uint32_t n, uint32_t threads,
                            const gx_list_sink *sink, gx_error *err)
{
    merge_job c = {.inverters = inverters, .n_inverters = n, .sink = sink};
    gx_status st = gx_postings_buffer_ranges(inverters, n, &c.ranges, &c.n_ranges, err);
    if (st != GX_OK)
        return st;
    const uint32_t n_threads = threads < c.n_ranges ? threads : c.n_ranges;
    if ((st = open_products(&c, n_threads == 1 ? 1 : 2 * n_threads, err)) == GX_OK) {
        pthread_mutex_init(&c.lock, NULL);
        pthread_cond_init(&c.room, NULL);
        gx_parallel_run(n_threads, work, &c); /* the last to be done has taken what was left */
        pthread_cond_destroy(&c.room);
        pthread_mutex_destroy(&c.lock);
        st = c.st == GX_OK ? GX_OK : gx_fail(err, c.st, "%s", c.err.text);
    }
    for (uint32_t i = 0; i < c.n_products; ++i)
        sink->close(c.products[i].of_sink);
    free(c.products);
    free(c.ranges);
    return st;
}
