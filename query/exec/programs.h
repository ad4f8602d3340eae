/* programs.h: batches of plans with phrases, on an engine that takes programs (query/plan/phrase_program.h).
 *
 *   AND, one phrase alone   the plan with a program
 *   OR of words, a phrase   the words alone; and the documents that match the phrase, with the scores of the words.
 *                           The k best of both are the answer: a document that matches and is not among the k best of
 *                           those has k better ones
 */
#ifndef GX_QUERY_EXEC_PROGRAMS_H
#define GX_QUERY_EXEC_PROGRAMS_H

#include "query/exec/exec.h"

/* Runs n plans, none of which has phrases: all of them have programs, or none has. */
typedef gx_status gx_programs_run_fn(void *user, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err);

/* Answer those of n plans of an index file that can be answered so, and set answered[n]. *n_fell: those among them that
 * were answered as ORs because their ANDs had too few results. After a failure, of `run` or GX_ENOMEM, what is in hits
 * and answered means nothing. */
gx_status gx_programs_run(const gx_index *ix, const gx_plan *plans, uint32_t n, gx_hits *hits, bool *answered,
                          uint32_t *n_fell, gx_programs_run_fn *run, void *user, gx_error *err);

#endif
