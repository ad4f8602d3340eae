/* residency.h: which lists of an index lie in a pool of memory that is too small for all of them.
 *
 *   query -> gx_residency_find: where the list lies in the pool, or that it is not there
 *         -> gx_residency_use: the use is counted; a list that is not there is noted as missed
 *   between batches -> gx_residency_admit: missed lists get a place; others are evicted for them
 *                   -> the caller copies them -> gx_residency_arrive: from now on they are found
 *
 * The pool is divided into extents of whole units of GX_RESIDENCY_UNIT bytes. The caller owns the
 * pool's memory and copies the lists; this module only decides.
 *
 * A rule gives each list a key whenever it is used. The list with the least key is evicted first; of
 * equal keys the one that was used longest ago. A missed list is refused where its key would be the
 * least. f is how often a list was used since the cache was opened. A miss costs about the same for
 * lists of any length, since a search reads parts of lists (query/MEASURED.md).
 *
 *   GDSF        L + f / bytes (Cherkasova 1998). L moves by 1 / 4096 of the way to the key of a list
 *               that is evicted or refused: so lists age slowly and few are copied
 *   no rule     static: f / bytes when gx_residency_plan was called; no list is evicted or admitted
 *               later
 *
 * tests/support/residency_rules.h has others, which find fewer lists (LRU, LFU, Landlord).
 *
 * A place that a batch in flight may read is not given to another list. Each session has a reader,
 * which enters before a batch looks for its lists, and leaves when the batch is finished. A list that is
 * evicted is no longer found, and its place becomes free when all readers that had entered before
 * have left (epochs).
 */
#ifndef GX_QUERY_EXEC_RESIDENCY_H
#define GX_QUERY_EXEC_RESIDENCY_H

#include "engine/api/gpuidx.h"

#define GX_RESIDENCY_UNIT 256u
#define GX_NOT_RESIDENT UINT64_MAX

typedef struct gx_residency gx_residency;
typedef struct gx_residency_reader gx_residency_reader; /* of one session */

typedef struct gx_residency_rule {
    /* The key of a list that is used now: by L, its f, its bytes, and the tick (gx_residency_tick). */
    double (*key)(double inflation, double uses, double bytes, uint64_t tick);
    double aging; /* how far L moves, 0 to 1 */
} gx_residency_rule;

extern const gx_residency_rule gx_residency_gdsf;

typedef struct gx_residency_options {
    const gx_residency_rule *rule; /* NULL: static */
    uint64_t bytes; /* of the pool; a rest of less than a unit is not used */
    uint32_t n_lists;
    uint32_t slack;                                        /* bytes behind each list that are its own too */
    uint64_t halve_after;                                  /* uses after which all f are halved; 0: 2^28 */
    uint64_t (*bytes_of)(const void *user, uint32_t list); /* of a list, at least 1 */
    const void *user;
} gx_residency_options;

/* A list to be copied to the pool. */
typedef struct gx_residency_copy {
    uint32_t list, extent; /* extent: the cache's number of the place */
    uint64_t at, bytes;    /* at: from the pool's begin, a multiple of GX_RESIDENCY_UNIT; bytes without the slack */
} gx_residency_copy;

typedef struct gx_residency_counts {
    uint64_t lists, bytes;          /* that are in the pool now, without slack */
    uint64_t admitted, evicted;     /* lists, since it was opened; those planned are not counted */
    uint64_t refused, bytes_copied; /* refused: uses of lists that the policy did not admit */
} gx_residency_counts;

#ifdef __cplusplus
extern "C" {
#endif

/* An empty cache. GX_ENOMEM. */
gx_status gx_residency_open(gx_residency **out, const gx_residency_options *opt, gx_error *err);
void gx_residency_close(gx_residency *r); /* its readers are closed; NULL is fine */

/* A reader that has not entered. NULL: no memory. Thread-safe. */
gx_residency_reader *gx_residency_reader_open(gx_residency *r);
void gx_residency_reader_close(gx_residency *r, gx_residency_reader *reader); /* NULL is fine */
void gx_residency_enter(gx_residency *r, gx_residency_reader *reader);
void gx_residency_leave(gx_residency *r, gx_residency_reader *reader);

/* Where the list begins in the pool, or GX_NOT_RESIDENT. What is found stays there until the
 * caller's reader leaves. Thread-safe, without a lock. */
uint64_t gx_residency_find(const gx_residency *r, uint32_t list);

/* The time of a query; and that the query uses a list. Returns whether the list is there. Missed
 * lists are noted in the reader. Thread-safe, without a lock; f is approximate under contention. */
uint64_t gx_residency_tick(gx_residency *r);
bool gx_residency_use(gx_residency *r, gx_residency_reader *reader, uint32_t list, uint64_t tick);

/* Find places for the lists that the reader missed, by the policy, up to most_bytes together and a list
 * in any case. Fills copies[max] and returns their number. The caller copies them, then calls
 * gx_residency_arrive for each. Call it while the reader has not entered. Thread-safe. */
uint32_t gx_residency_admit(gx_residency *r, gx_residency_reader *reader, uint64_t most_bytes,
                            gx_residency_copy *copies, uint32_t max);

/* The copy is complete, or with complete false it failed. Thread-safe. */
void gx_residency_arrive(gx_residency *r, const gx_residency_copy *copy, bool complete);

/* Add counts[n_lists] to the lists' f (NULL: 1 to each), and plan which lists fill the pool: the
 * greatest f / bytes first. Static: the lists that are there are evicted first, and the call waits
 * until readers have left. GX_ENOMEM. Thread-safe. */
gx_status gx_residency_plan(gx_residency *r, const uint32_t *counts, gx_error *err);
/* The next planned lists, as gx_residency_admit gives them. 0: there are no more. */
uint32_t gx_residency_next_planned(gx_residency *r, gx_residency_copy *copies, uint32_t max);

gx_residency_counts gx_residency_get_counts(gx_residency *r);

#ifdef __cplusplus
}
#endif

#endif
