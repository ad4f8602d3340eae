/* scheduler.h: which processor answers which query, and when.
 *
 *                  .-> the GPU's queue  \
 *   put --group-->  -> either's queue    > take --> one query for a CPU thread, a batch for the GPU
 *                  '-> the CPU's queue  /
 *
 * The method is that of Ding, He, Yan and Suel (WWW 2009, section 9) for two processors:
 *
 *   group     Three queues: queries that suit the GPU much better, queries that suit the CPU much
 *             better, and queries that either can answer. "Much better" is a threshold on the ratio
 *             of the predicted costs. It adapts: it moves with the ratio of the two processors'
 *             backlogs, so that the one with less to do is chosen more often.
 *   take      An idle processor takes a query that is near its deadline and prefers it; else the
 *             best of its own queue; else the oldest of the third; else it steals from the other
 *             processor's queue, if it answers sooner than that processor would.
 *   order     In a processor's queue the shorter query comes first, then the earlier deadline, then
 *             the greater affinity, which is the ratio of the costs. Costs are compared by powers
 *             of two and deadlines by 65.5 us, so that deadline and affinity have a say.
 *   batches   A GPU that has nothing under way takes what there is at once. Else a batch closes when
 *             it is full, when its oldest query has waited for batch_ns, or when a query is urgent.
 *
 * A scheduler has no clock and no threads. Its decisions depend on the calls and the times that are
 * passed to them, and on nothing else: the same calls give the same decisions. The service, the
 * simulator, and the replay of logged decisions all use it. One thread at a time.
 */
#ifndef GX_QUERY_SCHEDULE_SCHEDULER_H
#define GX_QUERY_SCHEDULE_SCHEDULER_H

#include "engine/api/gpuidx_advanced.h" /* gx_processor */

typedef struct gx_scheduler_options {
    uint32_t bound;       /* most queries that wait, >= 1 */
    uint32_t cpu_threads; /* threads that take for the CPU; 0: it has none */
    uint32_t gpu_threads; /* batches under way on the GPU at once; 0: there is no GPU */
    uint32_t batch;       /* most queries of a batch, >= 1 */
    uint64_t batch_ns;    /* after which a batch that is not full is closed */
    double threshold;     /* > 1: the ratio of costs from which a processor is much better */
    bool adapt;           /* the threshold moves with the backlogs */
    double urgent;        /* the share of a query's time to its deadline after which it is urgent */
    uint64_t patience_ns; /* the deadline of a query that has none, counted from its arrival */
} gx_scheduler_options;

/* A query to schedule. Times are ns of any clock that all calls share. */
typedef struct gx_schedule_job {
    uint64_t number;            /* the caller's */
    uint64_t arrived, deadline; /* deadline 0: none */
    float cpu;                  /* predicted ns on a CPU thread, > 0 */
    float gpu_alone;            /* alone on the GPU, > 0, */
    float gpu;                  /* and what it adds to a batch, > 0 */
    int8_t only;                /* a gx_processor that alone can answer it; -1: both can */
} gx_schedule_job;

typedef struct gx_scheduler gx_scheduler;

/* Where a query went when it was put. */
typedef enum gx_schedule_group { GX_GROUP_CPU, GX_GROUP_GPU, GX_GROUP_EITHER, GX_N_GROUPS } gx_schedule_group;

/* GX_EUSAGE (no processor, or a value out of its range), GX_ENOMEM. */
gx_status gx_scheduler_open(gx_scheduler **out, const gx_scheduler_options *opt, gx_error *err);
void gx_scheduler_close(gx_scheduler *s);

/* Put a query into a queue. *slot, below opt->bound, names it until it is taken. false: as many
 * queries wait as may, and nothing is changed. Times never go back. */
bool gx_scheduler_put(gx_scheduler *s, uint64_t now, const gx_schedule_job *job, uint32_t *slot,
                      gx_schedule_group *group);

/* What a free processor does next: the slots of up to `max` queries (a CPU thread passes 1, or a few
 * where many wait), and in *ns what they are predicted to cost. They are under way then. 0: nothing
 * for now. */
uint32_t gx_scheduler_take(gx_scheduler *s, uint64_t now, gx_processor p, uint32_t *slots, uint32_t max, double *ns);

/* Record n queries that a processor runs without having queued them. ns: their predicted time. */
void gx_scheduler_begin(gx_scheduler *s, gx_processor p, uint32_t n, double ns);

/* A processor has done what one call of gx_scheduler_take or gx_scheduler_begin gave it, with the ns of that call. */
void gx_scheduler_done(gx_scheduler *s, gx_processor p, double ns);

/* Take a query that waits out of its queue. false: no query of that number waits in that slot. */
bool gx_scheduler_cancel(gx_scheduler *s, uint32_t slot, uint64_t number);

/* The time at which gx_scheduler_take may find something for the GPU that it does not find now, if
 * nothing is put until then; UINT64_MAX: none. */
uint64_t gx_scheduler_next(const gx_scheduler *s);

/* The GPU cannot be used (false), or can be used again. Its queries are answered by the CPU
 * meanwhile, where there is one. */
void gx_scheduler_set_gpu(gx_scheduler *s, bool usable);

uint32_t gx_scheduler_waiting(const gx_scheduler *s);

/* Counts since the scheduler was opened. */
typedef struct gx_schedule_counts {
    uint64_t put[GX_N_GROUPS]; /* by group */
    uint64_t taken[2];         /* by gx_processor */
    uint64_t urgent, stolen;   /* of taken */
    uint64_t batches;          /* that the GPU took */
} gx_schedule_counts;
gx_schedule_counts gx_scheduler_counts(const gx_scheduler *s);

#endif
