/* gpuidx_service.h: both engines answer queries that arrive one by one, by what each query costs. Part of
 * gpuidx_advanced.h. */
#ifndef GPUIDX_SERVICE_H
#define GPUIDX_SERVICE_H

#include "gpuidx.h"
#include "gpuidx_logs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what queries cost: a model that is measured once and predicts ---- */

typedef enum gx_cost_kind {
    GX_COST_CPU,       /* a query on the CPU engine, by one thread */
    GX_COST_GPU_ALONE, /* a query alone on a GPU */
    GX_COST_GPU_BATCH, /* a batch on a GPU */
    GX_N_COST_KINDS
} gx_cost_kind;
GX_API const char *gx_cost_kind_name(gx_cost_kind kind); /* "cpu", "gpu_alone", "gpu_batch" */

/* What a cost is predicted from. */
typedef enum gx_cost_feature {
    GX_COST_FEATURE_SHORTEST,  /* postings of the query's shortest list, */
    GX_COST_FEATURE_SECOND,    /* of its second shortest, */
    GX_COST_FEATURE_LONGEST,   /* of its longest, */
    GX_COST_FEATURE_SUM,       /* and of all its lists */
    GX_COST_FEATURE_CAPPED,    /* the same, with at most so many of each list */
    GX_COST_FEATURE_ESSENTIAL, /* postings of the lists that a search has to read whole */
    GX_COST_FEATURE_TERMS,     /* the number of lists */
    GX_COST_FEATURE_K,
    GX_COST_FEATURE_OPERATOR,
    GX_COST_FEATURE_MISSING, /* bytes of lists that are not in the GPU's memory */
    GX_COST_FEATURE_BATCH,   /* queries of the batch */
    GX_N_COST_FEATURES
} gx_cost_feature;
GX_API const char *gx_cost_feature_name(gx_cost_feature f);

#define GX_N_COST_CAPS 3
typedef struct gx_query_features {
    double shortest, second, longest, sum; /* postings; 0 where there is no such list */
    double capped[GX_N_COST_CAPS];         /* sums of the lists' lengths, of each at most 128, 1,000 and 10,000 */
    /* Postings of the first lists, by rising length, until those that are left cannot reach 0.8 times the greatest
     * weight of a list of k postings or more: about what MaxScore reads of its essential lists. */
    double essential;
    double missing; /* bytes of the lists that are not in the GPU's memory */
    uint32_t n_terms, k;
    gx_op op;
} gx_query_features;

/* Linear models of a kind: by operator, k, number of terms and lengths; of batches by operator, k, and whether a
 * query has more than 6 lists, else size. */
#define GX_COST_LEAVES 288u
#define GX_COST_TERMS 23u /* weights of a linear model */

/* A cost model. gx_cost_profile_init sets the library's own, of one NVIDIA H200 and a core of its
 * host. */
typedef struct gx_cost_profile {
    double weights[GX_N_COST_KINDS][GX_COST_LEAVES][GX_COST_TERMS]; /* ns; of batches >= 0 */
    bool measured[GX_N_COST_KINDS];                                 /* by gx_calibrate; false: the library's own */
} gx_cost_profile;
GX_API void gx_cost_profile_init(gx_cost_profile *p);

/* The function of the features that weight i of a kind's models multiplies: "sqrt(sum)"; NULL: there is no such
 * weight. The models of batches are linear in the predicted times of their queries alone. */
GX_API const char *gx_cost_term_name(gx_cost_kind kind, uint32_t i);

/* The predicted ns of a query (n = 1), or of a batch of n >= 1 queries for GX_COST_GPU_BATCH. The
 * queries of a batch have one operator and k. */
GX_API double gx_cost_predict(const gx_cost_profile *p, gx_cost_kind kind, const gx_query_features *f, uint32_t n);

/* A profile as a JSON file. Kinds that were not measured are left out, and those that the file
 * lacks are the library's own. Reading: GX_ENOTFOUND, GX_EIO, GX_EINPUT (with the file and what is
 * wrong), GX_ENOMEM. Writing: as gx_write_file. */
GX_API gx_status gx_cost_profile_read(gx_cost_profile *out, const char *path, gx_error *err);
GX_API gx_status gx_cost_profile_write(const gx_cost_profile *p, const char *path, bool force, gx_error *err);

typedef struct gx_calibrate_options {
    size_t size;
    const char *log;            /* the log whose queries the model is fitted to */
    const char *test;           /* the log on which its errors are measured; NULL: every second query of `log` */
    gx_log_options read;        /* of both logs */
    uint32_t n_queries;         /* most queries taken of each log, >= 1 */
    uint32_t runs;              /* each is timed so often, and the median counts; >= 1 */
    uint32_t small_k, large_k;  /* the two values of k that are measured */
    uint64_t seed;              /* of the batches */
    bool ablate;                /* also measure the errors without each feature */
    bool (*cancel)(void *user); /* true: stop, GX_ECANCELLED. May be NULL */
    void (*progress)(void *user, const char *doing, uint64_t n_done);
    void *user;
    const char *costs; /* a file for all measured costs, tab-separated with a first line of names; NULL: none */
    bool force;        /* replace what stands at `costs` */
    /* How queries are answered. Batches are measured with GX_ALGORITHM_AUTO alone, which hybrid searches take: other
     * algorithms are measured to be compared, and their profile lacks batches. */
    gx_algorithm algorithm;
    int only_op; /* measure this gx_op alone; below 0: all three */
} gx_calibrate_options;
#define GX_CALIBRATE_OPTIONS                                                                                           \
    {                                                                                                                  \
        sizeof(gx_calibrate_options), NULL, NULL, GX_LOG_OPTIONS, 3000, 5, 10, 1000, 1, false, NULL, NULL, NULL, NULL, \
            false, GX_ALGORITHM_AUTO, -1                                                                               \
    }
GX_API void gx_calibrate_options_init(gx_calibrate_options *o, size_t size);

/* Relative errors: |predicted / measured - 1|. */
typedef struct gx_cost_error {
    uint64_t n; /* costs compared; 0: none, and the rest is 0 */
    double mean, median, p90;
} gx_cost_error;

#define GX_N_BATCH_SIZES 10
typedef struct gx_calibration {
    gx_cost_error fitted[GX_N_COST_KINDS];                      /* on the costs that the model was fitted to */
    gx_cost_error held_out[GX_N_COST_KINDS];                    /* on those of `test` */
    gx_cost_error by_op[GX_N_COST_KINDS][3];                    /* the same for each operator */
    gx_cost_error by_size[GX_N_BATCH_SIZES];                    /* the same for batches of 2, 4, .. 1,024 queries */
    gx_cost_error without[GX_N_COST_KINDS][GX_N_COST_FEATURES]; /* held out, with a feature taken out */
    uint64_t n_fitted, n_held_out;                              /* queries */
    double seconds;
} gx_calibration;

/* Measure what queries cost, by one thread on each engine, and fit a model of it. Each engine may
 * be NULL: what it costs is not measured then. Both are of one index. Every query is asked by each
 * operator and k. Queries that cannot be planned are left out. GX_EUSAGE (opt, or no engine),
 * GX_EINPUT (a log: with file and line, or it has no query with a known term), GX_ENOMEM, GX_ECUDA,
 * GX_ECANCELLED. */
GX_API gx_status gx_calibrate(gx_cost_profile *out, gx_calibration *report, gx_engine *cpu, gx_engine *gpu,
                              const gx_calibrate_options *opt, gx_error *err);

/* ---- a service: both engines answer queries that arrive one by one ---- */

typedef enum gx_processor { GX_PROCESSOR_CPU, GX_PROCESSOR_GPU, GX_N_PROCESSORS } gx_processor;

/* A service holds threads that answer queries on the CPU and in batches on the GPU, and a scheduler
 * that chooses for each query. Both give the same answers, to the bit (but for queries with
 * gx_query_options.block_budget, which the GPU answers exactly).
 *
 *   gx_service_submit --> three queues --> threads of the CPU     --> callback or ticket
 *                                      '-> batches for the GPU   '
 *
 * Eight and more queries of one submission pass the scheduler by, where there are both engines, the GPU
 * has their lists, and no decisions are logged: the GPU gets them in the order in which they come, whatever
 * their deadlines, and CPU threads help where a whole batch waits or the GPU has failed.
 *
 * Any number of threads may submit, wait and cancel. */
typedef struct gx_service gx_service;
typedef struct gx_ticket gx_ticket; /* the answer to one query, once it is there */

typedef struct gx_service_answer {
    uint64_t number; /* of the query: they are counted from 0 in the order of submission */
    void *user;      /* gx_submission.users */
    gx_status status;
    const char *error;        /* what went wrong; "" for GX_OK */
    uint32_t n_hits;          /* 0 without GX_OK */
    const uint32_t *docids;   /* [n_hits] as gx_results has them; NULL: the collection is wide */
    const double *scores;     /* [n_hits] the exact ones */
    gx_processor by;          /* what answered it */
    bool fell_back;           /* the CPU answered it because the GPU failed on it */
    double seconds;           /* from its arrival to its answer */
    const uint64_t *docids64; /* [n_hits] of a wide collection; else NULL */
} gx_service_answer;

typedef struct gx_service_options {
    size_t size;
    gx_engine *cpu, *gpu; /* on one index; at least one is not NULL. They outlive the service */
    uint32_t cpu_threads; /* that answer on the CPU, >= 1 */
    uint32_t gpu_threads; /* batches under way on the GPU at once, a thread each, >= 1 */
    uint32_t bound;       /* most queries that wait; then gx_service_submit returns GX_EBUSY */
    uint32_t batch;       /* most queries of a batch for the GPU, >= 1 */
    double batch_seconds; /* after which a batch that is not full starts, if another one is under way; */
                          /* where none is, it starts at once */
    /* A processor's own queue gets the queries that it answers this many times as fast as the
     * other; above 1. The third queue gets the rest, and the first processor that is free takes
     * from it. */
    double threshold;
    bool adapt;      /* the threshold moves towards the processor with less to do */
    double urgent;   /* the share of the time to its deadline after which a query goes first; 0 to 1 */
    double patience; /* seconds to the deadline of a query that has none; > 0 */
    double spin;     /* seconds that idle threads, two of each processor, poll before they sleep */
    double retry;    /* seconds after a failure of the GPU until it is tried again; doubled each time, to 10 s */
    const gx_cost_profile *profile; /* copied; NULL: the library's own */
    const char *decisions;          /* a file for a log of all decisions; NULL: none */
    /* Called for each answer to a query without a ticket, from a thread of the service, or from that
     * which cancels or closes or is one of `callers`; what the answer points to lives until the
     * callback returns. It may submit. May be NULL. */
    void (*answer)(void *user, const gx_service_answer *answer);
    void *user;
    /* Seconds that a batch may take on the GPU; > 0. Then the GPU counts as lost: the CPU answers the
     * batch, and the GPU is used again once that call has returned. Batches with masks or filters, and
     * those of collections, may take any time. */
    double hang;
    /* Most threads that at once answer queries that they submit, on the CPU and before
     * gx_service_submit returns; 0: none does. They do so where they submit up to four queries, none
     * waits, the CPU is to answer them, and they are predicted to take no longer than caller_seconds
     * together. Then no other thread has to wake up and fetch them, which takes some microseconds. Of
     * eight and more queries, where there are both engines, a thread leaves the dearest to the GPU and
     * answers for up to caller_seconds the cheapest; of 64 and more only those that take less than to
     * hand them over. Where two whole batches wait for the GPU, it goes on until fewer do, for up to
     * ten times as long. Without a GPU, a thread that submits goes on to answer about as many queries as it
     * has submitted, of those that wait, the oldest first; a single query that takes longer than
     * caller_seconds it leaves to a thread that has nothing to do. `answer` is called by the thread that
     * answers. */
    uint32_t callers;
    double caller_seconds; /* >= 0 */
    bool force;            /* replace what stands at `decisions`, which appears when the service is closed */
} gx_service_options;
#define GX_SERVICE_OPTIONS                                                                                             \
    {                                                                                                                  \
        sizeof(gx_service_options), NULL, NULL, 1, 4, 65536, 1024, 25e-6, 2, true, 0.5, 0.05, 1e-3, 0.1, NULL, NULL,   \
            NULL, NULL, 10, 0, 50e-6, false                                                                            \
    }
GX_API void gx_service_options_init(gx_service_options *o, size_t size);

/* Start the threads. GX_EUSAGE (no engine, engines of different indexes, a value out of its range),
 * GX_ENOMEM, GX_ECUDA, and for the file of decisions GX_EIO and its like. */
GX_API gx_status gx_service_open(gx_service **out, const gx_service_options *opt, gx_error *err);

/* Answer what waits with GX_ECANCELLED, wait for what is under way, end the threads. Tickets stay
 * until they are closed. No other call on the service is under way. NULL is fine. A thread that the
 * GPU keeps for longer than gx_service_options.hang once more is left behind with its memory; to
 * close the GPU engine may take forever then. */
GX_API void gx_service_close(gx_service *s);

typedef struct gx_submission {
    size_t size;
    const gx_query *queries; /* [n], all of one size; filters stay open until the answers are there */
    uint32_t n;
    const gx_query_options *options; /* of all; NULL: the defaults. `count` and `seconds` mean nothing here */
    /* options->mask is of the CPU engine, or, where there is none, of the GPU engine. Where there
     * are both, this is the same mask on the GPU engine; NULL: queries with a mask are answered by
     * the CPU. Masks stay open until the answers are there. */
    const gx_mask *gpu_mask;
    double deadline;    /* seconds from now until which each should be answered; later ones are answered too. 0: none */
    void *const *users; /* [n], or NULL */
    gx_ticket **tickets; /* [n] out: a ticket each, which the caller closes; NULL: the callback gets the answers */
} gx_submission;
#define GX_SUBMISSION(queries, n, options)                                                                             \
    {                                                                                                                  \
        sizeof(gx_submission), (queries), (n), (options), NULL, 0, NULL, NULL                                          \
    }

/* Plan the queries in the calling thread and submit them: all of them, or none. *first, which may be
 * NULL, receives the number of the first. GX_EBUSY: as many queries wait as may; try again later.
 * GX_EUSAGE (as gx_search), GX_ENOMEM. */
GX_API gx_status gx_service_submit(gx_service *s, const gx_submission *submission, uint64_t *first, gx_error *err);

/* Wait for an answer, at most that many seconds (below 0: without a limit). GX_OK: *answer is
 * written, and what it points to lives until the ticket is closed. GX_EDEADLINE: it is not there. */
GX_API gx_status gx_ticket_wait(gx_ticket *t, double seconds, gx_service_answer *answer);
/* Close a ticket, before or after its answer. NULL is fine. */
GX_API void gx_ticket_close(gx_ticket *t);

/* Take a query that waits out of its queue, and answer it with GX_ECANCELLED. false: it is under
 * way or answered, or never was. Takes a pass over the queue. */
GX_API bool gx_service_cancel(gx_service *s, uint64_t number);

/* Wait until all queries that have been submitted are answered. Others may be submitted
 * meanwhile, and are waited for too. */
GX_API void gx_service_drain(gx_service *s);

typedef struct gx_service_counts {
    uint64_t submitted, answered, cancelled, refused; /* queries; refused: GX_EBUSY */
    uint64_t by[GX_N_PROCESSORS];                     /* answered by each */
    uint64_t batches;                                 /* of the GPU */
    uint64_t urgent, stolen;                          /* queries taken because of their deadline, or from the other */
    uint64_t fell_back;                               /* queries that the GPU failed on and the CPU answered */
    uint64_t gpu_failures, gpu_returns;               /* times that the GPU failed, and was used again */
    uint64_t gpu_hung;                                /* of gpu_failures, those in which it did not answer in time */
} gx_service_counts;
GX_API void gx_service_get_counts(gx_service *s, gx_service_counts *out);

/* Make the decisions of a log (gx_service_options.decisions) again, from what the log says came in,
 * and compare them with those in the log. *n receives their number. GX_OK: they are the same;
 * GX_EINTERNAL: one is not, with file and line. GX_EINPUT (a malformed log, with file and line),
 * GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_decisions_repeat(const char *path, uint64_t *n, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
