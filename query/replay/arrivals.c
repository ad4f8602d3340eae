#include "query/replay/arrivals.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/random.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"

#define MAX_SECONDS 1e9 /* of a trace, so that its nanoseconds fit 64 bits */

/* ---- traces ---- */

/* Whether the line holds a number alone. */
static bool read_time(const char *line, double *out)
{
    char *end;
    *out = gx_strtod(line, &end);
    return end != line && isfinite(*out) && end[strspn(end, " \t\r\n")] == 0;
}

static gx_status append_time(gx_arrival_times *a, uint64_t *room, double t, gx_error *err)
{
    if (a->n_trace == *room) {
        *room = *room ? 2 * *room : 1024;
        double *grown = realloc(a->trace_times, *room * sizeof *grown);
        if (!grown)
            return gx_fail(err, GX_ENOMEM, "no memory for a trace of %" PRIu64 " arrival times", *room);
        a->trace_times = grown;
    }
    a->trace_times[a->n_trace++] = t;
    return GX_OK;
}

/* Read a time a line; blank lines and lines that begin with # are passed over. */
static gx_status read_trace(gx_arrival_times *a, FILE *f, gx_error *err)
{
    char *line = NULL;
    size_t line_room = 0;
    uint64_t number = 0, room = 0;
    double first = 0, last = 0;
    gx_status st = GX_OK;
    while (st == GX_OK && getline(&line, &line_room, f) >= 0) {
        double t;
        ++number;
        if (*line == '#' || line[strspn(line, " \t\r\n")] == 0)
            continue;
        if (!read_time(line, &t))
            st = gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": an arrival time is a number of seconds, alone on its line",
                         a->trace, number);
        else if (a->n_trace && t < last)
            st = gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": the time %.9g lies before that of the query before, %.9g",
                         a->trace, number, t, last);
        else if (a->n_trace && t - first > MAX_SECONDS)
            st = gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": the time %.9g lies more than %.0f seconds after the first",
                         a->trace, number, t, MAX_SECONDS);
        if (st != GX_OK)
            break;
        first = a->n_trace ? first : t;
        last = t;
        st = append_time(a, &room, t - first, err);
    }
    if (st == GX_OK && ferror(f))
        st = gx_fail(err, GX_EIO, "cannot read %s: %s", a->trace, strerror(errno));
    else if (st == GX_OK && feof(f) == 0)
        st = gx_fail(err, GX_ENOMEM, "no memory for line %" PRIu64 " of %s", number + 1, a->trace);
    free(line);
    return st;
}

static gx_status open_trace(gx_arrival_times *a, gx_error *err)
{
    FILE *f = fopen(a->trace, "r");
    if (!f)
        return gx_fail(err, errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot read %s: %s", a->trace, strerror(errno));
    gx_status st = read_trace(a, f, err);
    fclose(f);
    if (st == GX_OK && !a->n_trace)
        st = gx_fail(err, GX_EINPUT, "%s has no arrival time", a->trace);
    if (st != GX_OK)
        return st;
    const double length = a->trace_times[a->n_trace - 1];
    a->trace_stretch = 1;
    if (a->rate > 0 && length > 0)
        a->trace_stretch = (double)(a->n_trace - 1) / a->rate / length;
    else if (a->rate > 0 && a->n_trace > 1)
        return gx_fail(err, GX_EINPUT, "%s: all queries arrive at the same time, which no rate can change", a->trace);
    return GX_OK;
}

/* ---- the times ---- */

gx_status gx_arrivals_open(gx_arrival_times *out, const gx_replay_options *opt, gx_error *err)
{
    gx_arrival_times a = {.kind = opt->arrivals, .rate = opt->rate, .trace = opt->trace};
    gx_status st = GX_OK;
    *out = (gx_arrival_times){0};
    if (!(opt->rate >= 0) || !isfinite(opt->rate))
        return gx_fail(err, GX_EUSAGE, "the rate is a number of queries a second, at least 0");
    if (!(opt->deadline >= 0))
        return gx_fail(err, GX_EUSAGE, "the deadline is a number of seconds, at least 0");
    if ((unsigned)opt->arrivals > GX_ARRIVALS_TRACE)
        return gx_fail(err, GX_EUSAGE, "there are no arrivals of number %d", (int)opt->arrivals);
    if (opt->arrivals == GX_ARRIVALS_POISSON && !(opt->rate > 0))
        return gx_fail(err, GX_EUSAGE, "a Poisson process needs a rate");
    if ((opt->arrivals == GX_ARRIVALS_TRACE) != (opt->trace != NULL))
        return gx_fail(err, GX_EUSAGE,
                       opt->trace ? "a trace has been given, and the arrivals do not follow one"
                                  : "arrivals that follow a trace need its file");
    if (opt->trace)
        st = open_trace(&a, err);
    if (st != GX_OK)
        free(a.trace_times);
    else
        *out = a;
    return st;
}

void gx_arrivals_close(gx_arrival_times *a)
{
    free(a->trace_times);
    *a = (gx_arrival_times){0};
}

void gx_arrivals_begin(gx_arrival_times *a, uint64_t seed)
{
    a->random = seed;
    a->n = 0;
    a->seconds = 0;
}

gx_status gx_arrivals_next(const gx_arrival_times *a, uint64_t *ns, gx_error *err)
{
    if (a->kind == GX_ARRIVALS_TRACE && a->n >= a->n_trace)
        return gx_fail(err, GX_EINPUT, "%s has arrival times for %" PRIu64 " quer%s, and the log has more", a->trace,
                       a->n_trace, a->n_trace == 1 ? "y" : "ies");
    const double t = a->kind == GX_ARRIVALS_FIXED   ? (double)a->n / a->rate
                     : a->kind == GX_ARRIVALS_TRACE ? a->trace_times[a->n] * a->trace_stretch
                                                    : a->seconds;
    *ns = (uint64_t)(t * 1e9);
    return GX_OK;
}

void gx_arrivals_advance(gx_arrival_times *a)
{
    ++a->n;
    if (a->kind != GX_ARRIVALS_POISSON)
        return;
    /* Times between arrivals of a Poisson process are exponential: -ln(1 - u) / rate, u uniform
     * in [0, 1). */
    const double u = (double)(gx_random_next(&a->random) >> 11) * 0x1p-53;
    a->seconds -= log1p(-u) / a->rate;
}
