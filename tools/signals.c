#include "tools/signals.h"

#include <signal.h>
#include <stddef.h>

#include "tools/cli.h"

static volatile sig_atomic_t stopped_by;

static void on_signal(int signal)
{
    stopped_by = signal;
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

void stop_on_signals(void)
{
    set_handlers(on_signal);
}

void stop_no_more(void)
{
    set_handlers(SIG_DFL);
}

bool is_stopped(void *user)
{
    (void)user;
    return stopped_by != 0;
}

void stop_die(const char *outcome)
{
    if (!stopped_by)
        return;
    cli_warn("interrupted; %s", outcome);
    stop_no_more();
    raise(stopped_by);
}

int stop_fail(const gx_error *err)
{
    if (err->status == GX_ECANCELLED)
        stop_die("nothing was written");
    return cli_fail_error(err);
}
