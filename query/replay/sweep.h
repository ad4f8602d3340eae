/* sweep.h: answer the judged queries of a log with several scorers and parameters, and measure
 * each.
 *
 *   log, qrels -> queries that both have;  settings, queries --gx_search--> answers -> measures
 *
 * No run is written. The values are those of a replay with the same options and an evaluation of
 * its run. Threads take one setting after another, each with its own session on the one engine.
 */
#ifndef GX_QUERY_REPLAY_SWEEP_H
#define GX_QUERY_REPLAY_SWEEP_H

#include "engine/api/gpuidx_advanced.h" /* gx_sweep */
#include "query/log/query_log.h"
#include "query/measures/measures.h"

#endif
