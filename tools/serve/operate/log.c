#include "tools/serve/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct access_log {
    char *path;
    int fd;
    pthread_mutex_t lock;
    gx_text lines; /* that are not written yet */
};

enum { WRITE_AT = 64 << 10 };

static int open_file(const char *path)
{
    if (strcmp(path, "-") == 0)
        return dup(STDERR_FILENO);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

gx_status log_open(access_log **out, const char *path, gx_error *err)
{
    access_log *l = calloc(1, sizeof *l);
    const int fd = open_file(path);
    if (!l || fd < 0 || !(l->path = strdup(path))) {
        err->status = fd < 0 ? GX_EIO : GX_ENOMEM;
        snprintf(err->text, sizeof err->text, "%s: cannot write the access log: %s", path, strerror(errno));
        free(l);
        if (fd >= 0)
            close(fd);
        return err->status;
    }
    l->fd = fd;
    pthread_mutex_init(&l->lock, NULL);
    *out = l;
    return GX_OK;
}

static void write_lines(access_log *l)
{
    for (size_t at = 0; at < l->lines.len;) {
        const ssize_t n = write(l->fd, l->lines.bytes + at, l->lines.len - at);
        if (n < 0 && errno != EINTR)
            break; /* a full disk must not stop the answers */
        at += n > 0 ? (size_t)n : 0;
    }
    l->lines.len = 0;
    l->lines.failed = false;
}

/* "2026-11-28T12:00:00.123Z" */
static void put_time(gx_text *t)
{
    struct timespec now;
    struct tm tm;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    gx_text_add_format(t, "{\"time\":\"%s.%03ldZ\"", text, now.tv_nsec / 1000000);
}

void log_request(access_log *l, exchange *x, double seconds)
{
    gx_text *t = &l->lines;
    pthread_mutex_lock(&l->lock);
    put_time(t);
    gx_text_add_string(t, ",\"method\":");
    gx_text_add_json(t, x->method, strlen(x->method));
    gx_text_add_string(t, ",\"route\":");
    const char *path = x->route ? x->route->path : x->path ? x->path : "";
    gx_text_add_json(t, path, strnlen(path, 200));
    gx_text_add_string(t, ",\"index\":");
    const char *index = x->index ? x->index : "";
    gx_text_add_json(t, index, strlen(index));
    if (x->who && x->who->name[0]) {
        gx_text_add_string(t, ",\"token\":");
        gx_text_add_json(t, x->who->name, strlen(x->who->name));
    }
    gx_text_add_format(t, ",\"status\":%u,\"queries\":%zu,\"bytes_in\":%zu,\"bytes_out\":%zu,\"seconds\":%.6f",
                       x->status, x->n_searches, x->body.len, x->reply.len, seconds);
    if (x->fault.status) {
        gx_text_add_string(t, ",\"error\":");
        gx_text_add_json(t, x->fault.text, strnlen(x->fault.text, 200));
    }
    gx_text_add_string(t, "}\n");
    if (t->len >= WRITE_AT)
        write_lines(l);
    pthread_mutex_unlock(&l->lock);
}

void log_flush(access_log *l)
{
    pthread_mutex_lock(&l->lock);
    write_lines(l);
    pthread_mutex_unlock(&l->lock);
}

void log_reopen(access_log *l)
{
    const int fd = open_file(l->path);
    pthread_mutex_lock(&l->lock);
    write_lines(l);
    if (fd >= 0) {
        close(l->fd);
        l->fd = fd;
    }
    pthread_mutex_unlock(&l->lock);
}

void log_close(access_log *l)
{
    if (!l)
        return;
    log_flush(l);
    close(l->fd);
    free(l->lines.bytes);
    free(l->path);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
