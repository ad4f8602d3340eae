/* spare_workspaces.h: the GPU memory, streams and events of sessions that followed a collection to a new commit.
 *
 *   engine of commit 1 --gx_engine_reopen--> engine of commit 2
 *   a session closes --detach--> spare ------attach--> a session opens
 *
 * To allocate a session's memory and to free it takes about 10 ms, in which all other work on the GPU waits. So the
 * engines of a collection's commits share a pool. When the collection is reopened, the sessions that are open are
 * expected to be closed and opened on the new commit: the pool keeps as many workspaces as there are such sessions.
 * It closes those that nobody has taken when the collection has been reopened twice. A spare workspace holds the
 * device memory and pinned memory that its session had.
 */
#ifndef GX_QUERY_EXEC_SPARE_WORKSPACES_H
#define GX_QUERY_EXEC_SPARE_WORKSPACES_H

#include "query/exec/exec.h"

typedef struct gx_spare_workspaces gx_spare_workspaces;

/* NULL: no memory, which all functions accept: then there are no spare workspaces. */
gx_spare_workspaces *gx_spares_open(void);
gx_spare_workspaces *gx_spares_share(gx_spare_workspaces *p); /* one holder more */
void gx_spares_close(gx_spare_workspaces *p);                 /* the last holder closes the spare workspaces */

/* The collection is reopened. Thread-safe, as what follows. */
void gx_spares_begin_commit(gx_spare_workspaces *p);

/* A workspace for a session on the state, which is on the device: a spare one, or one that is opened.
 * Statuses of ops->workspace_open. */
gx_status gx_spares_take(gx_spare_workspaces *p, const gx_executor *ops, int device, void *state, void **workspace,
                         gx_error *err);
/* The session is closed: keep its workspace, or close it. */
void gx_spares_give(gx_spare_workspaces *p, const gx_executor *ops, int device, void *workspace);

#endif
