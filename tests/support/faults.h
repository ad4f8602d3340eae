/* faults.h: a GPU that fails on purpose, so that what happens then can be tested on any machine.
 *
 * A list has faults, and numbers, with commas:
 *
 *   hung        a batch takes `seconds`, as if a kernel hung
 *   lost        a batch fails, as if the device were lost
 *   memory      a batch fails for lack of memory
 *   wrong       the best answer of a batch's first query with one gets a greater score
 *   every=N     every N-th batch has a fault, of the kinds listed in turn; 100
 *   most=N      so many faults are injected; 1000
 *   seconds=S   of a hung batch; 1
 *
 * "hung,lost,memory,every=20,seconds=0.1"
 */
#ifndef GX_TESTS_FAULTS_H
#define GX_TESTS_FAULTS_H

#include "query/exec/exec.h"

/* An executor that runs as `gpu` does, but for the faults of a list in the form above. It replaces
 * that of an earlier call, whose engines are closed. *out is `gpu` where the list is NULL or empty,
 * or `gpu` is NULL. GX_EUSAGE: a malformed list. Not thread-safe. */
gx_status gx_faults_wrap(const gx_executor **out, const gx_executor *gpu, const char *list, gx_error *err);

/* Faults injected since the last call of gx_faults_wrap that wrapped one. */
uint64_t gx_faults_injected(void);

#endif
