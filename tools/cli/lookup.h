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

/* Tell if this program analyses text in another way than the one that built the index. */
static inline void lookup_tell_analysis(const gx_index *ix, const char *path)
{
    gx_error what;
    const gx_analysis_change change = gx_index_analysis_change(ix, &what);
    if (change == GX_ANALYSIS_STEMMER || change == GX_ANALYSIS_DICTIONARY)
        cli_warn("%s: %s", path, what.text);
    else if (change == GX_ANALYSIS_UNICODE)
        cli_note("%s: %s", path, what.text);
}

/* Open the index at path, with its checksums verified. 0, or the exit code with the message
 * printed. */
static inline int lookup_open(gx_index **out, const char *path)
{
    gx_error err = {0};
    if (gx_index_open(out, path, NULL, &err))
        return cli_fail_error(&err);
    lookup_tell_analysis(*out, path);
    return 0;
}

#endif
