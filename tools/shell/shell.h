/* shell.h: the prompt of `gpuidx query`: queries, and dot commands that change how they are
 * answered. */
#ifndef GX_TOOLS_SHELL_SHELL_H
#define GX_TOOLS_SHELL_SHELL_H

#include "tools/shell/query_context.h"

/* Until .quit or the end of input. Returns the exit code. */
int shell_run(ask *k);

#endif
