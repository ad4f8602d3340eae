/* catalog.h: the indexes of a server by name, opened, watched for later commits, and closed. */
#ifndef GX_SERVE_CATALOG_H
#define GX_SERVE_CATALOG_H

#include "tools/cli/cli.h"
#include "tools/serve/serve.h"

/* Open the indexes of the command line, NAME=PATH each, or PATH alone, whose name is that of the file without its
 * ending. `callers` threads submit to their services. 0, or the exit code with the message printed. */
int catalog_open(catalog **out, server *sv, const cli_args *a, uint32_t callers);
void catalog_close(catalog *c); /* no snapshot is held any more */

const char *entry_name(const entry *e);
const char *entry_path(const entry *e);

#endif
