#include "engine/temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int open_named(const char *dir, char **name)
{
    for (int attempt = 0; attempt < 100; ++attempt) {
        uint64_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return -1;
        if (asprintf(name, "%s/.gpuidx-%016llx.tmp", dir, (unsigned long long)random) < 0) {
            *name = NULL;
            errno = ENOMEM;
            return -1;
        }
        const int fd = open(*name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        const int e = errno;
        free(*name);
        *name = NULL;
        errno = e;
        if (e != EEXIST)
            return -1;
    }
    return -1;
}

/* Create a file without a name. On a file system without O_TMPFILE, return -1 with errno
 * EOPNOTSUPP. */
static int open_unnamed(const char *dir)
{
#ifdef O_TMPFILE
    const int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd < 0 && (errno == EISDIR || errno == EINVAL))
        errno = EOPNOTSUPP;
    return fd;
#else
    (void)dir;
    errno = EOPNOTSUPP;
    return -1;
#endif
}

int gx_temporary_file_open_nameable(const char *dir, char **name)
{
    *name = NULL;
    const int fd = access("/proc/self/fd", F_OK) == 0 ? open_unnamed(dir) : (errno = EOPNOTSUPP, -1);
    return fd >= 0 || errno != EOPNOTSUPP ? fd : open_named(dir, name);
}

int gx_temporary_file_open(const char *dir)
{
    char *name = NULL;
    int fd = open_unnamed(dir);
    if (fd < 0 && errno == EOPNOTSUPP && (fd = open_named(dir, &name)) >= 0)
        unlink(name);
    free(name);
    return fd;
}

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
