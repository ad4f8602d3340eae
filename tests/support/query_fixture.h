/* query_fixture.h: what the tests of whole queries (test_query.c, query_concurrent.c,
 * query_memory.c and query_masks.c, one program) share: a random collection with its index and an
 * engine on it, random queries, and settings from the environment.
 */
#ifndef GX_TESTS_SUPPORT_QUERY_FIXTURE_H
#define GX_TESTS_SUPPORT_QUERY_FIXTURE_H

#include "query/engine/session.h"
#include "tests/support/gen.h"
#include "tests/support/oracle.h"

/* An engine under test. */
typedef struct engine_row {
    const char *name;
    gx_engine_kind kind;
    const char *cpu;    /* GX_CPU's value */
    uint32_t n_devices; /* GPUs, from number 0; 0: one */
} engine_row;

typedef struct fixture {
    gen_collection *c;
    gx_index *ix;
    gx_engine *en;
    gx_session *s;
    const gx_codec *docids, *tfs;
} fixture;

typedef struct test_query {
    oracle_query q;
    uint32_t terms[GX_MAX_TERMS], qtfs[GX_MAX_TERMS];
    char text[GX_MAX_TERMS * 12];
} test_query;

uint64_t test_seed(void);
uint32_t env_uint(const char *name, uint32_t otherwise);
uint32_t min_cases(void); /* of each engine */

/* The folder that collections are written to; for cmocka. */
int make_dir(void **state);
int remove_dir(void **state);

/* A codec of the registry, or a choice by list. */
const gx_codec *pick_codec(uint32_t i);

/* An index of the collection, which the fixture takes. */
void open_fixture(fixture *f, gen_collection *c, const gx_codec *docids, const gx_codec *tfs);
void open_collection(fixture *f, uint64_t seed, gen_shape shape, uint32_t n_docs, uint32_t n_terms,
                     const gx_codec *docids, const gx_codec *tfs);
void close_collection(fixture *f);

/* False: there is no such engine here. */
bool open_engine(fixture *f, const engine_row *row, uint64_t map_memory);
void close_engine(fixture *f);

/* Up to max_words words, some of them twice, some unknown. */
void make_query(test_query *t, gen_rng *r, const gen_collection *c, uint32_t max_words);

/* The ways in which a batch is answered; all of them agree. */
typedef struct search_variant {
    bool prune, alone; /* alone: a call a query */
    gx_algorithm algorithm;
} search_variant;
#define N_SEARCH_VARIANTS 7
extern const search_variant ways[N_SEARCH_VARIANTS];

/* Fail unless the answer is the oracle's: docids, scores' bits, and within roundings the exact
 * scores. */
typedef struct engine_answer {
    const uint32_t *docids; /* [n_hits] */
    const float *scores;    /* [n_hits] */
    uint32_t n_hits;
} engine_answer;
void check_answer(const fixture *f, const engine_row *row, const test_query *t, const gx_query_options *opt,
                  const oracle_answer *want, engine_answer got);

/* Named algorithms are run for k up to this. */
uint32_t ding2009_max_k(void);

/* ---- query_concurrent.c ---- */

void a_single_query_is_right_among_concurrent_sessions(void **state);
void a_busy_session_does_not_starve_others(void **state);

/* ---- query_memory.c ---- */

void a_sessions_memory_follows_its_batches_up_to_100_megabytes(void **state);
void a_limit_on_device_memory_holds_for_all_sessions_together(void **state);

/* ---- query_residency.c ---- */

void answers_with_lists_in_host_memory_are_the_cpus(void **state);
void an_index_larger_than_device_memory_is_searched_within_it(void **state);
void a_pool_of_lists_is_shared_by_concurrent_sessions(void **state);
void an_engine_opens_beside_one_that_has_pinned_the_lists(void **state);
void lists_of_a_warming_log_are_there_before_the_first_query(void **state);
void options_of_residency_out_of_range_are_refused(void **state);

/* ---- query_masks.c ---- */

void answers_under_masks_equal_the_oracles(void **state);
void a_mask_that_is_wrong_is_refused(void **state);

/* ---- query_boolean.c ---- */

void answers_to_boolean_queries_equal_the_oracles(void **state);

/* ---- query_parts.c ---- */

void answers_over_parts_equal_those_over_one_index(void **state);
void answers_to_weighted_terms_are_those_to_repeated_words(void **state);

#endif
