/* schedule_simulate.h: queues of queries in front of a CPU and a GPU, simulated by discrete events on
 * measured costs: Figure 7 of Ding, He, Yan and Suel (WWW 2009), and the same with batches.
 *
 * Queries arrive by a Poisson process; each is drawn from a table of costs. A processor is busy for
 * as long as the table says. Which processor answers is decided by the scheduler of the library
 * (query/schedule/scheduler.h), from costs that are predicted with a given error.
 */
#ifndef GX_TOOLS_BENCH_SCHEDULE_SCHEDULE_SIMULATE_H
#define GX_TOOLS_BENCH_SCHEDULE_SCHEDULE_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/api/gpuidx.h"

/* What a query costs, in ns, each above 0. */
typedef struct sim_cost {
    double cpu;   /* on one thread of the CPU */
    double alone; /* alone on the GPU */
    double gpu;   /* what it adds to a batch on the GPU */
} sim_cost;

typedef enum sim_system {
    SIM_CPU,      /* the CPU alone, first come, first served */
    SIM_GPU,      /* the GPU alone, one query at a time */
    SIM_SERIAL,   /* the better of both for each query, one query at a time in the whole system */
    SIM_PARALLEL, /* both, scheduled, one query at a time on each thread and on the GPU */
    SIM_BATCHES,  /* the GPU alone, in batches */
    SIM_HYBRID,   /* both, scheduled, the GPU in batches */
    N_SIM_SYSTEMS
} sim_system;
const char *sim_system_name(sim_system s);

typedef struct sim_options {
    const sim_cost *costs; /* [n_costs] */
    size_t n_costs;
    double rate;        /* queries a second */
    uint64_t n_queries; /* of a run, which has more if fewer come within 40 deadlines */
    uint64_t seed;
    uint32_t cpu_threads; /* >= 1 */
    uint32_t batch;       /* most queries of a batch, >= 1 */
    double fixed;         /* ns that a batch takes besides its queries */
    double batch_wait;    /* ns after which a batch that is not full starts */
    double deadline;      /* ns; a query that takes longer is late */
    double error;         /* predicted costs differ from true ones by a factor of e^(error z), z normal */
} sim_options;

typedef struct sim_result {
    uint64_t n_answered;
    bool late;         /* a query was, and the run ended there */
    double mean, most; /* ns from arrival to answer */
    double p99;
    double cpu_share; /* of the queries */
} sim_result;

/* Simulate a run up to its first late query. The same options give the same result. GX_ENOMEM. */
gx_status sim_run(sim_result *out, sim_system system, const sim_options *opt, gx_error *err);

/* The greatest rate of runs without a late query: up from `from` by quarters of octaves, then by
 * bisection to 3 %. 0: even `from` is too much. About 1e10 if there is no deadline, 1e18 ns or more.
 * GX_ENOMEM. */
gx_status sim_find_rate(double *out, sim_system system, const sim_options *opt, double from, gx_error *err);

#endif
