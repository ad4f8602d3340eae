#include "query/schedule/decisions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/c_locale.h"
#include "engine/status.h"

void gx_decisions_begin(FILE *f, const gx_scheduler_options *o)
{
    const gx_c_locale l = gx_c_locale_begin();
    fprintf(f, "o %u %u %u %u %" PRIu64 " %.17g %d %.17g %" PRIu64 "\n", o->bound, o->cpu_threads, o->gpu_threads,
            o->batch, o->batch_ns, o->threshold, o->adapt, o->urgent, o->patience_ns);
    gx_c_locale_end(l);
}

void gx_decisions_put(FILE *f, uint64_t now, const gx_schedule_job *j, uint32_t slot, gx_schedule_group group)
{
    const gx_c_locale l = gx_c_locale_begin();
    fprintf(f, "p %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %.9g %.9g %.9g %d : %u %d\n", now, j->number,
            j->arrived, j->deadline, j->cpu, j->gpu_alone, j->gpu, j->only, slot, (int)group);
    gx_c_locale_end(l);
}

void gx_decisions_take(FILE *f, uint64_t now, gx_processor p, uint32_t max, const uint32_t *slots, uint32_t n,
                       double ns)
{
    const gx_c_locale l = gx_c_locale_begin();
    fprintf(f, "t %" PRIu64 " %d %u : %.17g", now, (int)p, max, ns);
    gx_c_locale_end(l);
    for (uint32_t i = 0; i < n; ++i)
        fprintf(f, " %u", slots[i]);
    putc('\n', f);
}

void gx_decisions_done(FILE *f, gx_processor p, double ns)
{
    const gx_c_locale l = gx_c_locale_begin();
    fprintf(f, "d %d %.17g\n", (int)p, ns);
    gx_c_locale_end(l);
}

void gx_decisions_cancel(FILE *f, uint32_t slot, uint64_t number)
{
    fprintf(f, "c %u %" PRIu64 "\n", slot, number);
}

void gx_decisions_gpu(FILE *f, bool usable)
{
    fprintf(f, "g %d\n", usable);
}

/* ---- once more ---- */

typedef struct repetition {
    const char *path;
    uint64_t line, n; /* n: decisions that were the same */
    gx_scheduler *s;
    gx_scheduler_options opt;
    uint32_t *slots; /* [opt.bound] */
    gx_error *err;
} repetition;

static gx_status malformed(const repetition *r)
{
    return gx_fail(r->err, GX_EINPUT, "%s:%" PRIu64 ": this is no line of a log of decisions", r->path, r->line);
}

static gx_status differs(const repetition *r, const char *what)
{
    return gx_fail(r->err, GX_EINTERNAL, "%s:%" PRIu64 ": %s is another than in the log", r->path, r->line, what);
}

static gx_status begin(repetition *r, const char *text)
{
    gx_scheduler_options o = {0};
    int adapt;
    if (r->s || sscanf(text, " %u %u %u %u %" SCNu64 " %lf %d %lf %" SCNu64, &o.bound, &o.cpu_threads, &o.gpu_threads,
                       &o.batch, &o.batch_ns, &o.threshold, &adapt, &o.urgent, &o.patience_ns) != 9)
        return malformed(r);
    o.adapt = adapt;
    r->opt = o;
    r->slots = malloc((o.bound + 1ull) * sizeof *r->slots);
    if (!r->slots)
        return gx_fail(r->err, GX_ENOMEM, "no memory for a queue of %u queries", o.bound);
    return gx_scheduler_open(&r->s, &o, r->err) == GX_EUSAGE ? malformed(r) : r->s ? GX_OK : GX_ENOMEM;
}

static gx_status put(repetition *r, const char *text)
{
    gx_schedule_job j;
    gx_schedule_group group;
    uint64_t now;
    uint32_t slot, wanted_slot;
    int only, wanted_group;
    if (sscanf(text, " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %f %f %f %d : %u %d", &now, &j.number,
               &j.arrived, &j.deadline, &j.cpu, &j.gpu_alone, &j.gpu, &only, &wanted_slot, &wanted_group) != 10)
        return malformed(r);
    j.only = (int8_t)only;
    if (!gx_scheduler_put(r->s, now, &j, &slot, &group))
        return differs(r, "the room in the queues");
    return slot == wanted_slot && (int)group == wanted_group ? (++r->n, GX_OK) : differs(r, "the queue");
}

static gx_status take(repetition *r, const char *text)
{
    uint64_t now;
    uint32_t max, n, i = 0;
    int p, at;
    double ns, wanted;
    if (sscanf(text, " %" SCNu64 " %d %u : %lf%n", &now, &p, &max, &wanted, &at) != 4 || (p != 0 && p != 1) || !max)
        return malformed(r);
    n = gx_scheduler_take(r->s, now, (gx_processor)p, r->slots, max < r->opt.bound ? max : r->opt.bound, &ns);
    for (const char *c = text + at; *c == ' '; ++i) {
        char *end;
        const unsigned long slot = strtoul(c, &end, 10);
        if (end == c + 1 || i >= n || slot != r->slots[i])
            return differs(r, "what was taken");
        c = end;
    }
    return i == n && ns == wanted ? (++r->n, GX_OK) : differs(r, "what was taken");
}

static gx_status repeat_line(repetition *r, const char *line)
{
    const char *text = *line ? line + 1 : line;
    int p;
    double ns;
    uint32_t slot;
    uint64_t number;
    if (*line == 'o')
        return begin(r, text);
    if (!r->s)
        return malformed(r);
    switch (*line) {
    case 'p':
        return put(r, text);
    case 't':
        return take(r, text);
    case 'd':
        if (sscanf(text, " %d %lf", &p, &ns) != 2 || (p != 0 && p != 1))
            return malformed(r);
        gx_scheduler_done(r->s, (gx_processor)p, ns);
        return GX_OK;
    case 'c':
        if (sscanf(text, " %u %" SCNu64, &slot, &number) != 2)
            return malformed(r);
        return gx_scheduler_cancel(r->s, slot, number) ? GX_OK : differs(r, "what waits");
    case 'g':
        if (sscanf(text, " %d", &p) != 1)
            return malformed(r);
        gx_scheduler_set_gpu(r->s, p != 0);
        return GX_OK;
    default:
        return malformed(r);
    }
}

gx_status gx_decisions_repeat(const char *path, uint64_t *n, gx_error *err)
{
    repetition r = {.path = path, .err = err};
    char *line = NULL;
    size_t room = 0;
    gx_status st = GX_OK;
    FILE *f = fopen(path, "r");
    if (!f)
        return gx_fail(err, gx_status_of_errno(errno), "cannot open %s: %s", path, strerror(errno));
    const gx_c_locale l = gx_c_locale_begin();
    while (st == GX_OK && getline(&line, &room, f) >= 0) {
        ++r.line;
        st = repeat_line(&r, line);
    }
    gx_c_locale_end(l);
    if (st == GX_OK && ferror(f))
        st = gx_fail(err, GX_EIO, "cannot read %s: %s", path, strerror(errno));
    if (st == GX_OK && !r.s)
        st = gx_fail(err, GX_EINPUT, "%s is no log of decisions", path);
    free(line);
    free(r.slots);
    gx_scheduler_close(r.s);
    fclose(f);
    if (st == GX_OK)
        *n = r.n;
    return st;
}
