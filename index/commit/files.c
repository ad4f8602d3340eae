#include "index/commit/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/temporary_file.h"

/* Calls f for each entry of dir, without . and .., and sums up nothing. */
typedef void entry_fn(int dir_fd, const char *name, const void *user);

static void for_each_entry(const char *dir, entry_fn *f, const void *user)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            f(dirfd(d), e->d_name, user);
    closedir(d);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static void remove_unless_named(int dir_fd, const char *name, const void *user)
{
    const gx_manifest *m = user;
    bool named = strncmp(name, "part-", 5) != 0 || !(ends_with(name, ".gx") || ends_with(name, ".del"));
    for (uint32_t i = 0; !named && i < m->n_parts; ++i)
        named = strcmp(name, m->parts[i].file) == 0 || strcmp(name, m->parts[i].deletes.file) == 0;
    if (!named)
        unlinkat(dir_fd, name, 0);
}

void gx_sweep_folder(const char *dir, const gx_manifest *m)
{
    for_each_entry(dir, remove_unless_named, m);
    gx_temporary_files_sweep(dir);
}

static void remove_entry(int dir_fd, const char *name, const void *user)
{
    (void)user;
    unlinkat(dir_fd, name, 0);
}

void gx_remove_folder(const char *dir)
{
    const int e = errno;
    for_each_entry(dir, remove_entry, NULL);
    rmdir(dir);
    errno = e;
}

int gx_sync_folder(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    const int e = gx_fsync(fd);
    close(fd);
    return e;
}
