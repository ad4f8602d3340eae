#include "index/inversion/parallel_merge.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "engine/parallel.h"
#include "engine/status.h"
#include "index/inversion/stages.h"

/* Outputs wait for the one that comes first, which may be of a list as long as many ranges. */
#define OUTPUTS_A_THREAD 8u

typedef struct output {
    void *sink_output;
    double seconds;
    bool done;
} output;

typedef struct merge_job {
    gx_postings_buffer *const *buffers;
    uint32_t n_buffers;
    const gx_list_sink *sink;
    gx_term_range *ranges; /* [n_ranges] */
    uint32_t n_ranges;
    output *outputs; /* [n_outputs] */
    uint32_t n_outputs;

    pthread_mutex_t lock; /* of what follows, and of outputs' done */
    pthread_cond_t room;  /* a range is taken, or the end */
    uint32_t n_begun, n_drained;
    bool draining;
    gx_status st; /* the first failure's */
    gx_error err;
} merge_job;

/* ---- with the lock held ---- */

/* Record a status: the first failure is kept, and waiting threads look again. */
static void report_status(merge_job *c, gx_status st, const gx_error *err)
{
    if (st != GX_OK && c->st == GX_OK) {
        c->st = st;
        c->err = *err;
    }
    pthread_cond_broadcast(&c->room);
}

/* Drain, in order, all outputs that come next, unless another thread does so. The lock is not held
 * meanwhile. */
static void drain_output(merge_job *c)
{
    if (c->draining)
        return;
    c->draining = true;
    for (output *p;
         p = &c->outputs[c->n_drained % c->n_outputs], c->n_drained < c->n_begun && p->done && c->st == GX_OK;) {
        gx_error err = {0};
        pthread_mutex_unlock(&c->lock);
        const gx_status st = c->sink->drain_output(c->sink->user, p->sink_output, p->seconds, &err);
        pthread_mutex_lock(&c->lock);
        p->done = false;
        ++c->n_drained;
        report_status(c, st, &err);
    }
    c->draining = false;
}

/* Merge the next range. The lock is not held meanwhile. */
static void merge_next_range(merge_job *c, gx_postings_merger *m)
{
    const gx_term_range range = c->ranges[c->n_begun];
    output *p = &c->outputs[c->n_begun++ % c->n_outputs];
    gx_error err = {0};
    pthread_mutex_unlock(&c->lock);
    const double t = gx_clock_seconds();
    const gx_status st = gx_postings_merger_run(m, range, c->sink->add, p->sink_output, &err);
    p->seconds = gx_clock_seconds() - t;
    pthread_mutex_lock(&c->lock);
    p->done = true;
    report_status(c, st, &err);
    drain_output(c);
}

/* ---- threads ---- */

static void merge_thread(void *user, uint32_t thread)
{
    merge_job *c = user;
    (void)thread;
    gx_error err = {0};
    gx_postings_merger *m;
    const gx_status st = gx_postings_merger_open(&m, c->buffers, c->n_buffers, &err);
    pthread_mutex_lock(&c->lock);
    report_status(c, st, &err);
    while (c->st == GX_OK && c->n_begun < c->n_ranges) {
        if (c->n_begun < c->n_drained + c->n_outputs)
            merge_next_range(c, m);
        else
            pthread_cond_wait(&c->room, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    gx_postings_merger_close(m);
}

static gx_status open_outputs(merge_job *c, uint32_t n, gx_error *err)
{
    if (!(c->outputs = calloc(n, sizeof *c->outputs)))
        return gx_fail(err, GX_ENOMEM, "out of memory");
    for (; c->n_outputs < n; ++c->n_outputs)
        if (!(c->outputs[c->n_outputs].sink_output = c->sink->open(c->sink->user)))
            return gx_fail(err, GX_ENOMEM, "out of memory");
    return GX_OK;
}

gx_status gx_parallel_merge(gx_postings_buffer *const *buffers, uint32_t n, uint32_t threads, const gx_list_sink *sink,
                            gx_error *err)
{
    merge_job c = {.buffers = buffers, .n_buffers = n, .sink = sink};
    gx_status st = gx_postings_buffer_ranges(buffers, n, &c.ranges, &c.n_ranges, err);
    if (st != GX_OK)
        return st;
    const uint32_t n_threads = threads < c.n_ranges ? threads : c.n_ranges;
    if ((st = open_outputs(&c, n_threads == 1 ? 1 : OUTPUTS_A_THREAD * n_threads, err)) == GX_OK) {
        pthread_mutex_init(&c.lock, NULL);
        pthread_cond_init(&c.room, NULL);
        gx_parallel_run(n_threads, merge_thread, &c); /* the last to be done has taken what was left */
        pthread_cond_destroy(&c.room);
        pthread_mutex_destroy(&c.lock);
        st = c.st == GX_OK ? GX_OK : gx_fail(err, c.st, "%s", c.err.text);
    }
    for (uint32_t i = 0; i < c.n_outputs; ++i)
        sink->close(c.outputs[i].sink_output);
    free(c.outputs);
    free(c.ranges);
    return st;
}
