/* replay_url.h: `gpuidx replay --url=http://HOST/NAME LOG`: a log is replayed through a server. */
#ifndef GX_TOOLS_COMMANDS_REPLAY_URL_H
#define GX_TOOLS_COMMANDS_REPLAY_URL_H

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

typedef struct url_clients url_clients; /* a connection for each thread */

/* Let the replay's threads ask the server. 0, or the exit code with the message printed; close it in either case. */
int url_clients_open(url_clients **out, const cli_args *a, gx_replay_options *opt);
int url_report(const url_clients *c, const gx_replay_options *opt, const gx_replay_report *r);
void url_clients_close(url_clients *c);

#endif
