/* scratch.h: a folder of a test program's own, made before its tests and removed, files and all,
 * after them. */
#ifndef GX_TESTS_SUPPORT_SCRATCH_H
#define GX_TESTS_SUPPORT_SCRATCH_H

#include <dirent.h>
#include <unistd.h>

#include "tests/support/test.h"

static char scratch_dir[] = "/tmp/gpuidx-test-XXXXXX";

/* The path of a file in the folder. Holds until the fourth call after. */
static inline const char *in_dir(const char *name)
{
    static char path[4][300];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", scratch_dir, name);
    return p;
}

static inline int make_dir(void **state)
{
    (void)state;
    return mkdtemp(scratch_dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
    (void)state;
    DIR *d = opendir(scratch_dir);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlink(in_dir(e->d_name));
    if (d)
        closedir(d);
    return rmdir(scratch_dir); /* fails, and so tells, if a hidden temporary was left */
}

#endif
