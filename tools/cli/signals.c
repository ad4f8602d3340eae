#include "tools/cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

/* Any thread may receive the signal, and any thread may ask for it, so this is a lock-free
 * atomic. */
static atomic_int stopped_by;

static void on_stop(int signal)
{
    atomic_store(&stopped_by, signal);
}

/* End the process as if the signal had not been caught. The signal is blocked in its handler, so
 * that it arrives when the handler returns. */
static void on_end(int signal)
{
    const int e = errno;
    gx_temporary_names_unlink();
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    kill(getpid(), signal);
    errno = e;
}

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    static const char words[] =
        "gpuidx: a file that is mapped, as an index is, was truncated or overwritten while it was read; replace an "
        "index by renaming (mv) a new one to its name\n";
    (void)context;
    if (info->si_code != BUS_ADRERR) { /* hardware */
        on_end(signal);
        return;
    }
    gx_temporary_names_unlink();
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0) {
        /* nobody listens */
    }
    _exit(gx_status_exit(GX_ECORRUPT));
}

static void set_handlers(void (*handler)(int))
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
        struct sigaction old, act = {.sa_handler = handler}; /* no SA_RESTART: a waiting read is woken */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL);
    }
}

void signals_init(void)
{
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves becomes a write error, and exit code 5 */
    signal(SIGXFSZ, SIG_IGN);
    sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, NULL);
    set_handlers(on_end);
}

void stop_on_signals(void)
{
    set_handlers(on_stop);
}

void stop_no_more(void)
{
    set_handlers(on_end);
}

bool is_stopped(void *user)
{
    (void)user;
    return atomic_load(&stopped_by) != 0;
}

void stop_die(const char *outcome)
{
    const int signal = atomic_load(&stopped_by);
    if (!signal)
        return;
    if (outcome)
        cli_warn("interrupted; %s", outcome);
    fflush(stdout);
    set_handlers(SIG_DFL);
    raise(signal);
}

int stop_fail(const gx_error *err)
{
    if (err->status == GX_ECANCELLED)
        stop_die("nothing was written");
    return cli_fail_error(err);
}

int stop_done(const char *output)
{
    if (is_stopped(NULL)) {
        cli_warn("interrupted, but %s is complete and in place", output);
        stop_die(NULL);
    }
    return 0;
}
