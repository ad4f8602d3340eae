#include "engine/files/temporary_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"

#define PREFIX ".gpuidx-"
#define SUFFIX ".tmp"
enum { RANDOM_DIGITS = 16, MAX_ATTEMPTS = 100, MAX_NAMES = 64 };

/* ---- the names of this process ---- */

/* More than MAX_NAMES at once (each is one output of a library's caller) are not in the list: only
 * a later sweep removes what remains of them. */
static _Atomic(char *) names[MAX_NAMES];

static void enlist(char *name)
{
    for (size_t i = 0; i < MAX_NAMES; ++i) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&names[i], &none, name))
            return;
    }
}

/* A name that gx_temporary_names_unlink has taken is not freed: it may still be reading it. */
static void strike(char *name)
{
    for (size_t i = 0; i < MAX_NAMES; ++i) {
        char *same = name;
        if (atomic_compare_exchange_strong(&names[i], &same, NULL)) {
            free(name);
            return;
        }
    }
}

void gx_temporary_names_unlink(void)
{
    for (size_t i = 0; i < MAX_NAMES; ++i) {
        char *name = atomic_exchange(&names[i], NULL);
        if (name)
            unlink(name);
    }
}

const char *gx_name_in(int dir_fd, const char *path)
{
    const char *slash = dir_fd == AT_FDCWD ? NULL : strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void gx_temporary_name_drop(int dir_fd, char *name)
{
    const int e = errno;
    if (name) {
        unlinkat(dir_fd, gx_name_in(dir_fd, name), 0);
        strike(name);
    }
    errno = e;
}

/* A random name in directory dir, enlisted. NULL and errno. */
static char *make_name(const char *dir)
{
    uint64_t random;
    char *name;
    ssize_t got;
    do
        got = getrandom(&random, sizeof random, 0);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof random)
        return NULL;
    if (asprintf(&name, "%s/" PREFIX "%016llx" SUFFIX, dir, (unsigned long long)random) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    enlist(name);
    return name;
}

/* ---- creating ---- */

static int open_again(int dir_fd, const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = openat(dir_fd, path, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Whether the lock is ours and the file still has a name: a sweep between creation and lock may
 * have removed it. A file system without locks has no sweeps either. */
static bool keep_from_sweeps(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB))
        return errno != EWOULDBLOCK;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

static int open_named(int dir_fd, const char *dir, char **name)
{
    for (int attempt = 0; attempt < MAX_ATTEMPTS; ++attempt) {
        if (!(*name = make_name(dir)))
            return -1;
        const int fd = open_again(dir_fd, gx_name_in(dir_fd, *name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 && keep_from_sweeps(fd))
            return fd;
        const int e = fd < 0 ? errno : EEXIST;
        if (fd >= 0)
            close(fd);
        if (e == EEXIST)
            strike(*name);
        else
            gx_temporary_name_drop(dir_fd, *name);
        *name = NULL;
        errno = e;
        if (e != EEXIST)
            return -1;
    }
    return -1;
}

/* Create a file without a name. On a file system without O_TMPFILE, return -1 with errno
 * EOPNOTSUPP. */
static int open_unnamed(int dir_fd, const char *dir)
{
#ifdef O_TMPFILE
    const int fd = open_again(dir_fd, dir_fd == AT_FDCWD ? dir : ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd < 0 && (errno == EISDIR || errno == EINVAL))
        errno = EOPNOTSUPP;
    return fd;
#else
    (void)dir_fd;
    (void)dir;
    errno = EOPNOTSUPP;
    return -1;
#endif
}

int gx_temporary_file_open_nameable(int dir_fd, const char *dir, char **name)
{
    *name = NULL;
    const int fd = access("/proc/self/fd", F_OK) == 0 ? open_unnamed(dir_fd, dir) : (errno = EOPNOTSUPP, -1);
    return fd >= 0 || errno != EOPNOTSUPP ? fd : open_named(dir_fd, dir, name);
}

int gx_temporary_file_open(const char *dir)
{
    char *name = NULL;
    int fd = open_unnamed(AT_FDCWD, dir);
    if (fd < 0 && errno == EOPNOTSUPP)
        fd = open_named(AT_FDCWD, dir, &name);
    gx_temporary_name_drop(AT_FDCWD, name);
    return fd;
}

/* ---- names for files that have none ---- */

int gx_temporary_file_link_as(int fd, int dir_fd, const char *path)
{
    char fd_path[64];
    snprintf(fd_path, sizeof fd_path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, fd_path, dir_fd, gx_name_in(dir_fd, path), AT_SYMLINK_FOLLOW) ? errno : 0;
}

int gx_temporary_file_link(int fd, int dir_fd, const char *dir, char **name)
{
    int e = EEXIST;
    flock(fd, LOCK_EX | LOCK_NB); /* no other process knows the file yet */
    for (int attempt = 0; e == EEXIST && attempt < MAX_ATTEMPTS; ++attempt) {
        if (!(*name = make_name(dir)))
            return errno;
        if ((e = gx_temporary_file_link_as(fd, dir_fd, *name)) != 0) {
            strike(*name);
            *name = NULL;
        }
    }
    return e;
}

/* ---- what dead processes have left ---- */

static bool is_temporary_name(const char *name)
{
    enum { N_PREFIX = sizeof PREFIX - 1 };
    return strncmp(name, PREFIX, N_PREFIX) == 0 && strspn(name + N_PREFIX, "0123456789abcdef") == RANDOM_DIGITS &&
           strcmp(name + N_PREFIX + RANDOM_DIGITS, SUFFIX) == 0;
}

/* Remove one if its owner is dead. The lock is held while it is removed, so that no other process
 * takes the file for its own meanwhile. */
static void sweep_one(int dir, const char *name)
{
    struct stat named, opened;
    if (fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) || !S_ISREG(named.st_mode) || named.st_uid != geteuid())
        return;
    const int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &opened) == 0 && opened.st_ino == named.st_ino &&
        opened.st_dev == named.st_dev && opened.st_nlink == 1)
        unlinkat(dir, name, 0);
    close(fd);
}

void gx_temporary_files_sweep(int dir_fd, const char *dir)
{
    const int e = errno, fd = openat(dir_fd, dir_fd == AT_FDCWD ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !d)
        close(fd);
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (is_temporary_name(entry->d_name))
            sweep_one(dirfd(d), entry->d_name);
    if (d)
        closedir(d);
    errno = e;
}

/* ---- the rest ---- */

char *gx_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

int gx_write_all(int fd, const void *data, size_t n)
{
    const uint8_t *p = data;
    while (n) {
        const ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done ? errno : ENOSPC;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int gx_pwrite_all(int fd, const void *data, size_t n, uint64_t offset)
{
    const uint8_t *p = data;
    while (n) {
        const ssize_t done = pwrite(fd, p, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done ? errno : ENOSPC;
        p += done;
        n -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

int gx_pread_all(int fd, void *data, size_t n, uint64_t offset)
{
    uint8_t *p = data;
    while (n) {
        const ssize_t done = pread(fd, p, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done ? errno : EIO;
        p += done;
        n -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

int gx_fsync(int fd)
{
    while (fsync(fd) != 0) {
        if (errno == EINTR)
            continue;
        return errno == EINVAL || errno == EROFS || errno == ENOTSUP ? 0 : errno;
    }
    return 0;
}
