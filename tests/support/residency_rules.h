/* residency_rules.h: rules of the list cache (query/exec/residency.h) beside the engine's own, which find fewer lists:
 * for tests of the cache and for the simulation of bench_query --only=residency-simulated.
 *
 *   Landlord    L + 1 / bytes (Zhang, Long and Suel, WWW 2008; Young 2002). L is the key of the last list that was
 *               evicted or refused
 *   LFU         f
 *   LRU         the time of the last use
 */
#ifndef GX_TESTS_RESIDENCY_RULES_H
#define GX_TESTS_RESIDENCY_RULES_H

#include "query/exec/residency.h"

static double residency_landlord(double inflation, double uses, double bytes, uint64_t tick)
{
    (void)uses, (void)tick;
    return inflation + 1 / bytes;
}

static double residency_lfu(double inflation, double uses, double bytes, uint64_t tick)
{
    (void)inflation, (void)bytes, (void)tick;
    return uses;
}

static double residency_lru(double inflation, double uses, double bytes, uint64_t tick)
{
    (void)inflation, (void)uses, (void)bytes;
    return (double)tick;
}

static const gx_residency_rule residency_others[] = {{residency_landlord, 1}, {residency_lfu, 0}, {residency_lru, 0}};

enum { RESIDENCY_GDSF, RESIDENCY_LANDLORD, RESIDENCY_LFU, RESIDENCY_LRU, RESIDENCY_STATIC, N_RESIDENCY_RULES };

static inline const gx_residency_rule *residency_rule(int number)
{
    return number == RESIDENCY_GDSF     ? &gx_residency_gdsf
           : number == RESIDENCY_STATIC ? NULL
                                        : &residency_others[number - RESIDENCY_LANDLORD];
}

#endif
