#include "tests/support/faults.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/text/c_locale.h"
#include "engine/status.h"
#include "query/score/topk.h"

typedef enum fault { HUNG, LOST, MEMORY, WRONG, N_FAULTS } fault;

static const char *const names[N_FAULTS] = {"hung", "lost", "memory", "wrong"};

static const gx_executor *real;
static gx_executor faulty;
static fault kinds[16];
static uint32_t n_kinds;
static uint64_t every, most;
static double seconds;
static atomic_uint_fast64_t n_runs, n_injected;

static void hang(void)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left))
        ;
}

/* A fault for this run, or N_FAULTS. */
static fault next_fault(void)
{
    if ((atomic_fetch_add(&n_runs, 1) + 1) % every)
        return N_FAULTS;
    uint64_t n = atomic_load(&n_injected);
    do {
        if (n >= most)
            return N_FAULTS;
    } while (!atomic_compare_exchange_weak(&n_injected, &n, n + 1));
    return kinds[n % n_kinds];
}

static gx_status run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work, gx_error *err)
{
    const fault f = work ? next_fault() : N_FAULTS; /* what an engine runs for itself, while it opens, is spared */
    if (f == LOST)
        return gx_fail(err, GX_ECUDA, "GPU: lost, an injected fault");
    if (f == MEMORY)
        return gx_fail(err, GX_ENOMEM, "GPU: out of memory, an injected fault");
    if (f == HUNG)
        hang();
    const gx_status st = real->run(exec, plans, n, hits, work, err);
    for (uint32_t i = 0; st == GX_OK && f == WRONG && i < n; ++i) {
        if (hits[i].n) {
            hits[i].keys[0] = gx_key(gx_key_score(hits[i].keys[0]) + 1, gx_key_docid(hits[i].keys[0]));
            break;
        }
    }
    return st;
}

static bool read_number(const char *item, const char *name, double *out)
{
    char *end;
    const size_t len = strlen(name);
    if (strncmp(item, name, len) || item[len] != '=')
        return false;
    *out = gx_strtod(item + len + 1, &end);
    return end != item + len + 1 && !*end && *out > 0 && *out <= 1e9;
}

static bool read_item(const char *item)
{
    double number;
    for (int f = 0; f < N_FAULTS; ++f) {
        if (strcmp(item, names[f]) == 0 && n_kinds < sizeof kinds / sizeof *kinds) {
            kinds[n_kinds++] = (fault)f;
            return true;
        }
    }
    if (read_number(item, "every", &number) && number >= 1)
        every = (uint64_t)number;
    else if (read_number(item, "most", &number) && number >= 1)
        most = (uint64_t)number;
    else if (read_number(item, "seconds", &number))
        seconds = number;
    else
        return false;
    return true;
}

gx_status gx_faults_wrap(const gx_executor **out, const gx_executor *gpu, const char *list, gx_error *err)
{
    *out = gpu;
    if (!gpu || !list || !*list)
        return GX_OK;
    char *copy = strdup(list), *rest = copy;
    if (!copy)
        return gx_fail(err, GX_ENOMEM, "no memory for a list of faults");
    n_kinds = 0;
    every = 100;
    most = 1000;
    seconds = 1;
    bool good = true;
    for (char *item; good && (item = strsep(&rest, ","));)
        good = read_item(item);
    free(copy);
    if (!good || !n_kinds)
        return gx_fail(err, GX_EUSAGE,
                       "`%s` is no list of hung, lost, memory, wrong, every=N, most=N and seconds=S, with commas",
                       list);
    atomic_store(&n_runs, 0);
    atomic_store(&n_injected, 0);
    real = gpu;
    faulty = *gpu;
    faulty.run = run;
    *out = &faulty;
    return GX_OK;
}

uint64_t gx_faults_injected(void)
{
    return atomic_load(&n_injected);
}
