/* gpu.cuh: an exec of the GPU executor, a thread's workspace, as what runs batches (executor.cu)
 * and what runs a few queries (small_batch.cu) share it.
 */
#ifndef GX_QUERY_EXECUTORS_GPU_CUH
#define GX_QUERY_EXECUTORS_GPU_CUH

#include "engine/clock.h"
#include "query/ding2009/taat.cuh"
#include "query/gpu/sub_batch.cuh"

namespace gx {

constexpr int N_PARTS = 3, MAX_BOUNDS = 16; /* sets of bounds in use at a time */

/* Of a few queries, which are answered by way of the first part. */
struct few_room {
    gpu_query_state *d_states; /* [FEW_QUERIES] */
    uint32_t *d_histograms;    /* [2 * FEW_QUERIES * BINS] */
    mailbox *mail;             /* to a kernel that stays, in pinned memory */
    uint4 *d_mail;             /* [MAIL_PIECES] */
    uint32_t message;          /* the number of the last one */
    bool waits;                /* a kernel was started that may wait for the next */
};

struct gpu_exec {
    gpu_state *s;
    gpu_calls calls; /* of all runs */
    part parts[N_PARTS];
    few_room few;
    uint64_t candidate_room, answer_room, item_room;
    bool was_last;                   /* before the run under way no other session's came since this one's */
    bool fine;                       /* items of the run under way */
    bounds *bounds_used[MAX_BOUNDS]; /* by the run under way */
    uint32_t n_bounds_used;
    named_space *named; /* NULL until needed */
    job *again;         /* jobs that overflowed */
    uint32_t n_again, max_again;
};

template <typename T> static inline cudaError_t pinned_alloc(T **out, uint64_t n)
{
    return cudaHostAlloc((void **)out, n * sizeof(T), cudaHostAllocMapped);
}

/* ---- executor.cu ---- */

/* Make the part ready for so many queries and terms. */
void empty_part(part *p, uint64_t n_queries, uint64_t n_terms);

/* Describe the job's query in the part, as AND (all) or OR; its number. */
gx_status add_query(gpu_exec *x, part *p, const gx_plan *plan, const job *j, bool all, uint32_t after,
                    uint32_t *drivers, uint32_t *number, gx_error *err);

/* Add what the plan's lists hold to work, if there is one. */
void count_lists(const gpu_exec *x, const gx_plan *plan, gx_work *work);

/* A job to those that are to be run again. */
gx_status push_again(gpu_exec *x, job j, gx_error *err);

/* The answer of query q of the part to hits, or the query to those to be run again. */
gx_status collect_query(gpu_exec *x, part *p, const placed *pl, uint32_t q, gx_op op, gx_hits *hits, gx_error *err);

/* ---- small_batch.cu ---- */

gx_status open_few(gpu_exec *x, gx_error *err);
void close_few(gpu_exec *x); /* before its streams are waited for the last time */

/* Whether the jobs can go as a kernel's parameters. */
bool are_few(const gx_plan *plans, const job *jobs, uint32_t n);
gx_status run_few(gpu_exec *x, const gx_plan *plans, const job *jobs, uint32_t n, gx_hits *hits, gx_work *work,
                  gx_error *err);

} // namespace gx

#endif
