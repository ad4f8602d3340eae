#include "tools/serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, FIRST_PASSED = 3 };

static gx_status fail(gx_error *err, gx_status st, const char *address, const char *why)
{
    err->status = st;
    snprintf(err->text, sizeof err->text, "--listen=%.200s: %s", address, why);
    return st;
}

/* ---- systemd ---- */

/* The number of sockets that systemd has passed. They begin at FIRST_PASSED. */
static uint32_t passed_sockets(void)
{
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    if (!pid || !n || strtol(pid, NULL, 10) != getpid())
        return 0;
    const long count = strtol(n, NULL, 10);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return count > 0 && count <= MAX_SOCKETS ? (uint32_t)count : 0;
}

void notify_systemd(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path)
        return;
    const size_t len = strlen(path);
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = 0;
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

/* ---- addresses ---- */

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_UNIX)
        return true;
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static bool bind_to(int fd, const struct sockaddr *a, socklen_t len)
{
    const int on = 1;
    if (a->sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    return bind(fd, a, len) == 0 && listen(fd, BACKLOG) == 0;
}

static gx_status add_socket(listeners *l, const char *address, const struct sockaddr *a, socklen_t len, gx_error *err)
{
    const int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || !bind_to(fd, a, len)) {
        const int e = errno;
        if (fd >= 0)
            close(fd);
        return fail(err, GX_EIO, address, strerror(e));
    }
    l->loopback = l->loopback && is_loopback(a);
    l->sockets[l->n++] = fd;
    return GX_OK;
}

/* A file that a server which died has left is removed; one that somebody listens at, or that is no socket, is not. */
static bool is_stale(const struct sockaddr_un *a)
{
    struct stat st;
    if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode))
        return false;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

static gx_status listen_at_file(listeners *l, const char *address, gx_error *err)
{
    const char *path = address + strlen("unix:");
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) == 0 || strlen(path) >= sizeof a.sun_path)
        return fail(err, GX_EUSAGE, address, "the path of a socket has 1 to 107 bytes");
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    if (is_stale(&a))
        unlink(path);
    const gx_status st = add_socket(l, address, (struct sockaddr *)&a, sizeof a, err);
    if (st == GX_OK)
        l->files[l->n - 1] = strdup(path);
    return st;
}

static gx_status listen_at_port(listeners *l, const char *address, gx_error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char host[256];
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;
    const char *begin = address;
    if (!colon || len == 0 || len >= sizeof host)
        return fail(err, GX_EUSAGE, address, "it has the form ADDR:PORT, [ADDR]:PORT or unix:PATH");
    if (*begin == '[' && begin[len - 1] == ']') {
        ++begin;
        len -= 2;
    }
    memcpy(host, begin, len);
    host[len] = 0;
    char *end;
    const unsigned long port = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end || port > 65535)
        return fail(err, GX_EUSAGE, address, "the port is a number from 0 to 65535");
    const int e = getaddrinfo(strcmp(host, "*") == 0 ? "0.0.0.0" : host, colon + 1, &hints, &found);
    if (e)
        return fail(err, GX_EUSAGE, address, gai_strerror(e));
    const gx_status st = add_socket(l, address, found->ai_addr, found->ai_addrlen, err);
    freeaddrinfo(found);
    return st;
}

static gx_status take_passed(listeners *l, uint32_t n, gx_error *err)
{
    for (uint32_t i = 0; i < n; ++i) {
        struct sockaddr_storage a;
        socklen_t len = sizeof a;
        const int fd = FIRST_PASSED + (int)i;
        if (getsockname(fd, (struct sockaddr *)&a, &len))
            return fail(err, GX_EIO, "systemd", strerror(errno));
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        l->loopback = l->loopback && is_loopback((struct sockaddr *)&a);
        l->sockets[l->n++] = fd;
    }
    return GX_OK;
}

gx_status listeners_open(listeners *l, const char *addresses, gx_error *err)
{
    const uint32_t passed = passed_sockets();
    gx_status st = GX_OK;
    *l = (listeners){.loopback = true};
    if (passed)
        return take_passed(l, passed, err);
    for (const char *at = addresses; at && st == GX_OK;) {
        char address[300];
        const size_t len = strcspn(at, ",");
        if (len >= sizeof address || l->n == MAX_SOCKETS)
            return fail(err, GX_EUSAGE, at, "too long a list");
        memcpy(address, at, len);
        address[len] = 0;
        st = strncmp(address, "unix:", 5) == 0 ? listen_at_file(l, address, err) : listen_at_port(l, address, err);
        at = at[len] ? at + len + 1 : NULL;
    }
    return st;
}

void listeners_close(listeners *l, bool sockets_too)
{
    for (uint32_t i = 0; i < l->n; ++i) {
        if (l->files[i])
            unlink(l->files[i]);
        free(l->files[i]);
        if (sockets_too)
            close(l->sockets[i]);
    }
    l->n = 0;
}

void listeners_name(const listeners *l, uint32_t i, char *text, size_t size)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;
    char host[64], port[8];
    if (getsockname(l->sockets[i], (struct sockaddr *)&a, &len) || a.ss_family == AF_UNIX)
        snprintf(text, size, "unix:%s", ((struct sockaddr_un *)&a)->sun_path);
    else if (getnameinfo((struct sockaddr *)&a, len, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(text, size, "?");
    else
        snprintf(text, size, a.ss_family == AF_INET6 ? "http://[%s]:%s" : "http://%s:%s", host, port);
}
