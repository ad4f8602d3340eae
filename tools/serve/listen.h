/* listen.h: the sockets of a server, its own or systemd's, and what it tells systemd. */
#ifndef GX_SERVE_LISTEN_H
#define GX_SERVE_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/api/gpuidx.h"

enum { MAX_SOCKETS = 16 };

typedef struct listeners {
    int sockets[MAX_SOCKETS];
    char *files[MAX_SOCKETS]; /* of sockets of files, which are removed at the end; else NULL */
    uint32_t n;
    bool loopback; /* all are on loopback or files */
} listeners;

/* Listen at the addresses of a list with commas between: ADDR:PORT, [ADDR]:PORT, unix:PATH. Where systemd has passed
 * sockets, those are taken in place of the list. GX_EUSAGE, GX_EIO. */
gx_status listeners_open(listeners *l, const char *addresses, gx_error *err);
void listeners_close(listeners *l, bool sockets_too);
/* What a client connects to: "http://127.0.0.1:8080" or "unix:PATH". */
void listeners_name(const listeners *l, uint32_t i, char *text, size_t size);

/* Tell systemd, where it wants to know: "READY=1", "STOPPING=1", "RELOADING=1". */
void notify_systemd(const char *state);

#endif
