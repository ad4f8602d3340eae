/* arrivals.h: when the queries of a log arrive in an open loop, where a query does not wait for the
 * answer to the one before it.
 *
 * The arrival times do not depend on how fast queries are answered. A latency that counts from the
 * arrival therefore includes the time that a query waited for a free thread.
 */
#ifndef GX_QUERY_REPLAY_ARRIVALS_H
#define GX_QUERY_REPLAY_ARRIVALS_H

#include "engine/api/gpuidx_advanced.h"

typedef struct gx_arrival_times {
    gx_arrivals kind;
    double rate;         /* queries a second, > 0; of a trace 0: as its file says */
    uint64_t random;     /* state of engine/random.h */
    uint64_t n;          /* queries that have arrived */
    double seconds;      /* from the begin to the next arrival */
    const char *trace;   /* the file's name, for messages */
    double *trace_times; /* [n_trace] seconds; the first is 0 */
    uint64_t n_trace;
    double trace_stretch; /* what a time of the trace is multiplied by */
} gx_arrival_times;

/* Prepare the times of a replay: check its options and read its trace. GX_EUSAGE, GX_EINPUT (with
 * file and line), GX_ENOTFOUND, GX_EIO, GX_ENOMEM. After a failure the caller frees nothing. */
gx_status gx_arrivals_open(gx_arrival_times *out, const gx_replay_options *opt, gx_error *err);

/* Begin anew. The same seed gives the same times. */
void gx_arrivals_begin(gx_arrival_times *a, uint64_t seed);

/* The nanoseconds from the begin to the next arrival; asking again gives the same value.
 * GX_EINPUT: the trace has ended. */
gx_status gx_arrivals_next(const gx_arrival_times *a, uint64_t *ns, gx_error *err);

/* The query has arrived: go on to the one after it. */
void gx_arrivals_advance(gx_arrival_times *a);

void gx_arrivals_close(gx_arrival_times *a);

#endif
