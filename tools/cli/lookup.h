/* lookup.h: what the commands that look into an index have in common: doc, term, analyze. */
#ifndef GX_TOOLS_CLI_LOOKUP_H
#define GX_TOOLS_CLI_LOOKUP_H

#include "tools/cli/cli.h"

/* clang-format off */
#define LOOKUP_FORMAT_FLAG \
    {"format", 'f', CLI_CHOICE, "human|json", "human", \
     "how the answer is printed. `human`: for people; `json`: as JSON, for programs"}
/* clang-format on */

static inline bool lookup_json(const cli_args *a)
{
    return cli_choice(a, "format") == 1;
}

/* Open the index at path, with its checksums verified. 0, or the exit code with the message
 * printed. */
static inline int lookup_open(gx_index **out, const char *path)
{
    gx_error err = {0};
    return gx_index_open(out, path, NULL, &err) ? cli_fail_error(&err) : 0;
}

#endif
