#include "tools/cli/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/cli.h"

static char *joined(const char *a, const char *b, const char *c)
{
    char *path = malloc(strlen(a) + strlen(b) + strlen(c) + 1);
    if (path)
        strcat(strcat(strcpy(path, a), b), c);
    return path;
}

char *profile_beside(const char *index_path)
{
    char *path = joined(index_path, "", "");
    for (size_t n = path ? strlen(path) : 0; n > 1 && path[n - 1] == '/'; --n) /* the folder of a collection */
        path[n - 1] = 0;
    char *out = path ? joined(path, ".profile", "") : NULL;
    free(path);
    return out;
}

char *profile_in_cache(const gx_index *ix)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    gx_index_stats st = {.size = sizeof st};
    char name[64], *p = name;
    if (gx_index_get_quick_stats(ix, &st) != GX_OK)
        return NULL;
    p += sprintf(p, "/gpuidx/");
    for (int i = 0; i < 16; ++i)
        p += sprintf(p, "%02x", st.uuid[i]);
    sprintf(p, ".profile");
    if (cache && *cache == '/')
        return joined(cache, name, "");
    return home && *home == '/' ? joined(home, "/.cache", name) : NULL;
}

int profile_read(gx_cost_profile *out, char **where, const char *path, const char *index_path, const gx_index *ix)
{
    gx_error err = {0};
    char *places[2] = {path ? joined(path, "", "") : profile_beside(index_path), path ? NULL : profile_in_cache(ix)};
    *where = NULL;
    for (int i = 0; i < 2 && !*where; ++i) {
        if (places[i] && (path || access(places[i], F_OK) == 0)) {
            *where = places[i];
            places[i] = NULL;
        }
    }
    free(places[0]);
    free(places[1]);
    gx_cost_profile_init(out);
    if (!*where || gx_cost_profile_read(out, *where, &err) == GX_OK)
        return 0;
    free(*where);
    *where = NULL;
    return cli_fail_error(&err);
}
