/* residency_table.h: bench_query --only=residency: queries/s of an index whose payload is in GPU memory in
 * part, by policy and share.
 *
 * The log: 8,192 queries of 2 to 5 terms (35, 25, 22 and 18 in a hundred). A query's terms are drawn by
 * Zipf's law: the lists are put in a random order, and the i-th is drawn with a probability in
 * proportion to 1 / i^exponent. So how often a list is used does not depend on its length. Another log of
 * as many queries, drawn in the same way, is what engines are warmed by. */
#ifndef GX_TESTS_BENCH_RESIDENCY_TABLE_H
#define GX_TESTS_BENCH_RESIDENCY_TABLE_H

#include "query/exec/exec.h"
#include "tools/bench/data/collection.h"

typedef struct residency_bench {
    const gx_synth *s;
    const gx_executor *ops;
    gx_engine_options options;
    uint32_t n_sessions;
    bool brief; /* the default policy and a quarter of the index alone */
    uint64_t seed;
    double exponent; /* of Zipf's law */
} residency_bench;

/* Print the tables. Returns the number of answers that differ from those of the engine whose payload is whole in
 * GPU memory. Exits where an engine cannot be opened or a search fails. */
uint64_t measure_residency(const residency_bench *b);

/* bench_query --only=residency-simulated: the list cache alone, without a GPU, on the same log, by the engine's rules
 * and by those of tests/support/residency_rules.h: which lists are in the pool when they are used. ops and options are
 * not looked at. */
void simulate_residency(const residency_bench *b);

#endif
