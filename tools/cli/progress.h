/* progress.h: how far a long command has come, on stderr: a line that is redrawn when stderr is a
 * terminal, a line every 30 seconds when it is not, nothing with -q and nothing in the first
 * second.
 *
 *   progress p = progress_begin("documents", total_bytes);
 *   ... progress_show(&p, documents, bytes, bytes, memory) ...    as often as wanted: it looks at
 *   the clock itself
 *   progress_end(&p);                                             before anything else is printed
 */
#ifndef GX_TOOLS_CLI_PROGRESS_H
#define GX_TOOLS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/api/gpuidx_advanced.h" /* gx_index_sizes */

typedef struct progress {
    const char *things; /* "documents" */
    uint64_t total;     /* of what done counts; 0: unknown, and there is no ETA */
    double began, next; /* seconds of the monotonic clock */
    bool terminal, drawn, off;
} progress;

double progress_clock(void); /* seconds, monotonic */

progress progress_begin(const char *things, uint64_t total);
/* n things and bytes of text so far; done of total; memory in bytes. */
void progress_show(progress *p, uint64_t n, uint64_t bytes, uint64_t done, uint64_t memory);
/* The same for things that have no size: n of them, "replaying: 12,345 queries, 6,789 a second". */
void progress_rate(progress *p, const char *doing, uint64_t n);
/* The same where nothing but the share matters: done of total. */
void progress_share(progress *p, uint64_t done, uint64_t total);
/* A phase that cannot tell how far it is: draw its name, on a terminal. */
void progress_phase(progress *p, const char *name);
void progress_end(progress *p);

/* n with commas, "721,181", in one of a few static buffers; bytes as "87.3 MB". */
const char *show_count(uint64_t n);
const char *show_bytes(uint64_t bytes);

/* The end of a noun behind the number n: "" or "s", and "y" or "ies". */
static inline const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
static inline const char *plural_y(uint64_t n)
{
    return n == 1 ? "y" : "ies";
}

/* Bits a posting of all that lists need: docids, tfs, and what says where blocks and lists are. */
double show_bits(const gx_index_sizes *sizes);

#endif
