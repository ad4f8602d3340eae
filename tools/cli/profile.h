/* profile.h: where cost profiles lie: beside the index, or in the user's cache folder. */
#ifndef GX_TOOLS_CLI_PROFILE_H
#define GX_TOOLS_CLI_PROFILE_H

#include "engine/api/gpuidx_advanced.h"

/* "INDEX.profile". The caller frees it; NULL: no memory. */
char *profile_beside(const char *index_path);

/* "$XDG_CACHE_HOME/gpuidx/UUID.profile", or that of ~/.cache. The caller frees it; NULL: no memory,
 * or no such folder is known. */
char *profile_in_cache(const gx_index *ix);

/* Read the profile of an index: the file `path` if it is not NULL, else the one beside the index,
 * else the one in the cache folder, else the library's own. 0, or the exit code with the message
 * printed. *where, which the caller frees, is the file that was read; NULL: the library's own. */
int profile_read(gx_cost_profile *out, char **where, const char *path, const char *index_path, const gx_index *ix);

#endif
