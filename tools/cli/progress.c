#include "tools/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/cli.h"

double progress_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *buffer(void)
{
    static char buffers[16][32];
    static unsigned turn;
    return buffers[turn++ % 16];
}

const char *show_count(uint64_t n)
{
    char digits[24], *out = buffer();
    const size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *to = out;
    for (size_t i = 0; i < len; ++i) {
        if (i > 0 && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return out;
}

const char *show_bytes(uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB"};
    char *out = buffer();
    double x = (double)bytes / 1e3;
    size_t u = 0;
    for (; x >= 999.5 && u < 3; ++u)
        x /= 1e3;
    if (bytes < 1000)
        snprintf(out, 32, "%u bytes", (unsigned)bytes);
    else
        snprintf(out, 32, "%.*f %s", x < 99.95 ? 1 : 0, x, units[u]);
    return out;
}

progress progress_begin(const char *things, uint64_t total)
{
    progress p = {.things = things, .total = total, .terminal = isatty(STDERR_FILENO), .off = cli_quiet()};
    p.began = progress_clock();
    p.next = p.began + (p.terminal ? 1 : 30);
    return p;
}

static void draw(progress *p, const char *text)
{
    if (!p->terminal) {
        fprintf(stderr, "%s: %s\n", cli_this.name, text);
        return;
    }
    fprintf(stderr, "\r%.*s\x1b[K", (int)cli_columns(stderr) - 1, text);
    fflush(stderr);
    p->drawn = true;
}

/* Whether it is time for a line; asked often, so it costs little. */
static bool is_due(progress *p)
{
    struct timespec coarse;
    if (p->off)
        return false;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &coarse);
    if ((double)coarse.tv_sec + 1e-9 * (double)coarse.tv_nsec < p->next)
        return false;
    p->next = progress_clock() + (p->terminal ? 0.2 : 30);
    return true;
}

static void tell_eta(char eta[64], double spent, uint64_t done, uint64_t total)
{
    *eta = 0;
    if (total && done <= total && done > 0) {
        const unsigned left = (unsigned)(spent * (double)(total - done) / (double)done + 0.5);
        snprintf(eta, 64, ", %.0f%%, %u:%02u:%02u left", 100 * (double)done / (double)total, left / 3600,
                 left / 60 % 60, left % 60);
    }
}

void progress_show(progress *p, uint64_t n, uint64_t bytes, uint64_t done, uint64_t memory)
{
    if (!is_due(p))
        return;
    const double spent = progress_clock() - p->began;
    char text[200], eta[64];
    tell_eta(eta, spent, done, p->total);
    snprintf(text, sizeof text, "%s %s, %.1f MB/s, %s of memory%s", show_count(n), p->things,
             (double)bytes / spent / 1e6, show_bytes(memory), eta);
    draw(p, text);
}

void progress_rate(progress *p, const char *doing, uint64_t n)
{
    char text[200];
    if (!is_due(p))
        return;
    const double rate = (double)n / (progress_clock() - p->began);
    snprintf(text, sizeof text, "%s: %s %s, %s a second", doing, show_count(n), p->things, show_count((uint64_t)rate));
    draw(p, text);
}

void progress_share(progress *p, uint64_t done, uint64_t total)
{
    char text[200], eta[64];
    if (!is_due(p))
        return;
    tell_eta(eta, progress_clock() - p->began, done, total);
    snprintf(text, sizeof text, "%s%s", p->things, eta);
    draw(p, text);
}

void progress_phase(progress *p, const char *name)
{
    if (!p->off && p->terminal && progress_clock() - p->began > 1)
        draw(p, name);
}

void progress_end(progress *p)
{
    if (p->drawn)
        fputs("\r\x1b[K", stderr);
    p->drawn = false;
    p->off = true;
}

double show_bits(const gx_index_sizes *s)
{
    return s->docid_bits + s->tf_bits + s->head_bits + s->end_bits + s->list_bits;
}
