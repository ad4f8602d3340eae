/* decisions.h: a log of what a scheduler was told and what it decided, as lines of text.
 *
 *   o BOUND CPU_THREADS GPU_THREADS BATCH BATCH_NS THRESHOLD ADAPT URGENT PATIENCE_NS   the options, first
 *   p NOW NUMBER ARRIVED DEADLINE CPU GPU_ALONE GPU ONLY : SLOT GROUP                   a query was put
 *   t NOW PROCESSOR MAX : NS SLOT ...                                                   a processor took queries
 *   d PROCESSOR NS                                                                      and has done them
 *   c SLOT NUMBER                                                                       a query was cancelled
 *   g USABLE                                                                            the GPU failed, or is back
 *
 * What stands behind a colon was decided. Since a scheduler depends on nothing but its calls,
 * gx_decisions_repeat makes the same decisions from the rest. Calls that took nothing changed
 * nothing, and are left out.
 */
#ifndef GX_QUERY_SCHEDULE_DECISIONS_H
#define GX_QUERY_SCHEDULE_DECISIONS_H

#include <stdio.h>

#include "query/schedule/scheduler.h"

/* Each writes a line; errors are found by ferror(f). */
void gx_decisions_begin(FILE *f, const gx_scheduler_options *opt);
void gx_decisions_put(FILE *f, uint64_t now, const gx_schedule_job *job, uint32_t slot, gx_schedule_group group);
void gx_decisions_take(FILE *f, uint64_t now, gx_processor p, uint32_t max, const uint32_t *slots, uint32_t n,
                       double ns);
void gx_decisions_done(FILE *f, gx_processor p, double ns);
void gx_decisions_cancel(FILE *f, uint32_t slot, uint64_t number);
void gx_decisions_gpu(FILE *f, bool usable);

#endif
