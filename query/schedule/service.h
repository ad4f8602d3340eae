/* service.h: what replay needs of a service beyond gpuidx_advanced.h: plans that are ready go in,
 * and the keys of their results come out, without copies.
 */
#ifndef GX_QUERY_SCHEDULE_SERVICE_H
#define GX_QUERY_SCHEDULE_SERVICE_H

#include "engine/api/gpuidx_advanced.h" /* gx_service */
#include "query/exec/exec.h"
#include "query/schedule/scheduler.h"

/* A query on its way through the service. It stays the caller's, and so does all that it points to;
 * from gx_service_put until `done` the service reads it. */
typedef struct gx_service_job {
    const gx_plan *plan; /* with the mask of gx_service_planner's engine */
    /* The plan's mask on the GPU engine; NULL: the GPU cannot answer a plan with one. */
    const gx_mask *gpu_mask;
    uint64_t *keys;             /* [plan->k] out */
    uint32_t *highs;            /* [plan->k] out, as in gx_hits; NULL where docids take 32 bits */
    uint64_t arrived, deadline; /* ns of the monotonic clock; deadline 0: none */
    /* Called once, when the query is answered, without locks, from a thread of the service or from
     * that which cancels or closes. The service does not touch the job afterwards. */
    void (*done)(struct gx_service_job *job);
    void *user;

    /* Set by the service. */
    uint64_t number;
    gx_status status;
    const gx_error *err; /* why status is not GX_OK; lives until `done` returns */
    uint32_t n;          /* results */
    gx_processor by;
    bool fell_back;
    gx_schedule_job described;
    bool lacks_lists;             /* not all of its lists are in the GPU's memory */
    struct gx_service_job *next;  /* in a list of those that the scheduler does not know yet, or in a chunk */
    struct gx_service_job *ahead; /* in a chunk: the one that comes some places later, or NULL */
    /* Of the first one of a chunk (service_chunks.c): */
    struct gx_service_job *next_chunk;
    uint32_t n_chunk;      /* queries of the chunk */
    double chunk_ns;       /* what they are predicted to add to a batch of the GPU */
    uint64_t chunk_put_at; /* ns */
} gx_service_job;

/* The engine that makes plans for the service: the CPU's, or the GPU's where it is alone. */
gx_engine *gx_service_planner(const gx_service *s);

/* Submit n jobs, all or none, and give them the numbers from *number on. With wait true the call
 * waits until there is room for them, where n is at most the bound; else GX_EBUSY. GX_ECANCELLED:
 * the service is being closed. */
gx_status gx_service_put(gx_service *s, gx_service_job *const *jobs, uint32_t n, bool wait, uint64_t *number,
                         gx_error *err);

#endif
