#include "tools/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
    (void)signal;
    stopped = 1;
}

bool is_stopped(void *user)
{
    (void)user;
    return stopped;
}

void stop_on_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
        struct sigaction old, act = {.sa_handler = on_signal}; /* no SA_RESTART: a waiting read is woken */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL);
    }
}
