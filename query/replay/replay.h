/* replay.h: run a query log through an engine and time it, in memory that does not depend on the
 * length of the log.
 *
 *   log --take--> batch --plan--> plans --search--> keys --format--> lines --deliver--> run file
 *                      \____________ latency ___________/
 *
 * One thread at a time takes a batch. Each thread then answers its batch on its own, with its own
 * session. The lines of the batches are written in the order of the log.
 *
 * A replay passes over the log up to three times or more:
 *   warm up   answers the first queries and measures nothing
 *   measure   answers all queries, once or several times (`runs`)
 *   verify    answers queries in other ways and compares the answers
 *
 * The latency of a query ends when the answers of its batch are in host memory. It begins when the
 * batch has been taken, or, at a fixed rate (open loop), at the moment at which the query was due,
 * so that it includes waiting.
 */
#ifndef GX_QUERY_REPLAY_REPLAY_H
#define GX_QUERY_REPLAY_REPLAY_H

#include "engine/api/gpuidx_advanced.h" /* gx_replay */
#include "query/exec/exec.h"
#include "query/log/query_log.h"
#include "query/replay/histogram.h"

#endif
