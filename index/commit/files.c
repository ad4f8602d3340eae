#include "index/commit/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/temporary_file.h"
#include "engine/status.h"

/* Calls f for each entry of dir, without . and .., and sums up nothing. */
typedef void entry_fn(int dir_fd, const char *name, const void *user);

static void for_each_entry(int dir_fd, entry_fn *f, const void *user)
{
    const int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !d)
        close(fd);
    if (!d)
        return;
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            f(dir_fd, e->d_name, user);
    closedir(d);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

/* Behind six digits or more; NULL: there are not so many. */
static const char *skip_number(const char *s)
{
    const size_t n = strspn(s, "0123456789");
    return n >= 6 ? s + n : NULL;
}

/* "part-NNNNNN.gx" or "part-NNNNNN.CCCCCC.del", as a writer calls its files. */
static bool is_name_of_writer(const char *name)
{
    const char *end = strncmp(name, "part-", 5) == 0 ? skip_number(name + 5) : NULL;
    if (!end || strcmp(end, ".gx") == 0)
        return end != NULL;
    end = *end == '.' ? skip_number(end + 1) : NULL;
    return end && strcmp(end, ".del") == 0;
}

/* The names of a manifest's files, sorted. */
typedef struct name_list {
    const char **names; /* [n] */
    uint32_t n;
} name_list;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool list_names(name_list *l, const gx_manifest *m)
{
    *l = (name_list){malloc((2ull * m->n_parts + 1) * sizeof *l->names), 0};
    for (uint32_t i = 0; l->names && i < m->n_parts; ++i) {
        l->names[l->n++] = m->parts[i].file;
        if (m->parts[i].deletes.file[0])
            l->names[l->n++] = m->parts[i].deletes.file;
    }
    if (l->names)
        qsort(l->names, l->n, sizeof *l->names, by_name);
    return l->names != NULL;
}

static bool has_entry(const name_list *l, const char *name)
{
    return bsearch(&name, l->names, l->n, sizeof *l->names, by_name) != NULL;
}

static void remove_unless_named(int dir_fd, const char *name, const void *user)
{
    if (is_name_of_writer(name) && !has_entry(user, name))
        unlinkat(dir_fd, name, 0);
}

void gx_sweep_folder(int dir_fd, const gx_manifest *m)
{
    name_list named;
    if (list_names(&named, m))
        for_each_entry(dir_fd, remove_unless_named, &named);
    free(named.names);
    gx_temporary_files_sweep(dir_fd, ".");
}

bool gx_remove_old_files(int dir_fd, const gx_manifest *old, const gx_manifest *now)
{
    name_list named, olds = {NULL, 0};
    const bool listed = list_names(&named, now) && list_names(&olds, old);
    for (uint32_t i = 0; listed && i < olds.n; ++i)
        remove_unless_named(dir_fd, olds.names[i], &named);
    free(named.names);
    free(olds.names);
    return listed;
}

static void remove_entry(int dir_fd, const char *name, const void *user)
{
    (void)user;
    unlinkat(dir_fd, name, 0);
}

void gx_remove_folder(const char *dir)
{
    const int e = errno, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        for_each_entry(fd, remove_entry, NULL);
        close(fd);
    }
    rmdir(dir);
    errno = e;
}

/* ---- folders aside ---- */

#define ASIDE_DIGITS 16u
#define MAX_TRIES 100u /* names, of folders that are taken away before they are locked */

/* "NAME.", 16 digits of base 16, ".tmp". */
static bool is_aside(const char *name)
{
    const size_t n = strlen(name), tail = 1 + ASIDE_DIGITS + strlen(".tmp");
    return n > tail && name[n - tail] == '.' && ends_with(name, ".tmp") &&
           strspn(name + n - tail + 1, "0123456789abcdef") == ASIDE_DIGITS;
}

/* Sets *foreign at a file that no command puts into a folder aside. */
typedef struct contents {
    bool foreign;
} contents;

static void look_at_entry(int dir_fd, const char *name, const void *user)
{
    contents *c = (contents *)(uintptr_t)user;
    (void)dir_fd;
    const bool ours = strcmp(name, GX_MANIFEST_NAME) == 0 || is_name_of_writer(name) ||
                      (strncmp(name, ".gpuidx-", 8) == 0 && ends_with(name, ".tmp"));
    c->foreign = c->foreign || !ours;
}

/* Remove a folder aside whose process has died, and which has nothing else in it. */
static void sweep_aside(int dir_fd, const char *name, const void *user)
{
    const char *parent = user;
    contents c = {false};
    if (!is_aside(name))
        return;
    const int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    char *path = gx_path_in(parent, name);
    if (path && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        for_each_entry(fd, look_at_entry, &c);
        if (!c.foreign)
            gx_remove_folder(path);
    }
    free(path);
    close(fd);
}

bool gx_has_name(int fd, int dir_fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && fstatat(dir_fd, path, &b, 0) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

gx_status gx_folder_aside(char **out, int *fd, const char *path, const char *parent, gx_error *err)
{
    *fd = -1;
    *out = NULL;
    const int parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent_fd >= 0) {
        for_each_entry(parent_fd, sweep_aside, parent);
        close(parent_fd);
    }
    for (uint32_t tries = 0; tries < MAX_TRIES; ++tries) {
        uint64_t number;
        char *aside;
        if (getrandom(&number, sizeof number, 0) != sizeof number ||
            asprintf(&aside, "%s.%0*llx.tmp", path, (int)ASIDE_DIGITS, (unsigned long long)number) < 0)
            return gx_fail(err, GX_ENOMEM, "out of memory");
        if (mkdir(aside, 0777) != 0) {
            const int e = errno;
            free(aside);
            return gx_fail(err, gx_status_of_errno(e), "cannot make the folder %s: %s", path, strerror(e));
        }
        if ((*fd = open(aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
            flock(*fd, LOCK_EX); /* where folders cannot be locked, nobody removes them */
            if (gx_has_name(*fd, AT_FDCWD, aside)) {
                *out = aside;
                return GX_OK;
            }
            close(*fd); /* another process has taken it for one whose process had died */
            *fd = -1;
        } else if (errno != ENOENT) {
            const int e = errno;
            rmdir(aside);
            free(aside);
            return gx_fail(err, GX_EIO, "cannot open the folder of %s: %s", path, strerror(e));
        }
        free(aside);
    }
    return gx_fail(err, GX_EIO, "cannot make the folder %s: another process removes it again and again", path);
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
