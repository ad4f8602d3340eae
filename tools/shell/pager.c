#include "tools/shell/pager.h"

#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/cli.h"

/* The pager's command, or NULL where none is wanted. */
static const char *command(void)
{
    const char *name = getenv("PAGER");
    if (!name)
        return system("command -v less >/dev/null 2>&1") == 0 ? "less -FRX" : NULL;
    return *name && strcmp(name, "cat") != 0 ? name : NULL;
}

pager pager_begin(uint64_t lines)
{
    pager p = {0};
    struct winsize ws;
    const char *name;
    int ends[2];
    if (!isatty(STDIN_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) != 0 || ws.ws_row == 0 || lines < ws.ws_row ||
        !(name = command()) || pipe(ends) != 0)
        return p;
    fflush(stdout);
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGINT, NULL, &p.interrupt);
    if (p.interrupt.sa_handler == SIG_DFL) /* Ctrl-C is the pager's */
        sigaction(SIGINT, &ignore, NULL);
    p.pid = fork();
    if (p.pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("LESS", "FRX", 0);
        execl("/bin/sh", "sh", "-c", name, (char *)NULL);
        _exit(127);
    }
    p.terminal = p.pid > 0 ? dup(STDOUT_FILENO) : -1;
    if (p.terminal >= 0) {
        cli_set_paged(stdout, true);
        dup2(ends[1], STDOUT_FILENO);
    } else {
        p.pid = 0;
        sigaction(SIGINT, &p.interrupt, NULL);
    }
    close(ends[0]);
    close(ends[1]);
    return p;
}

void pager_end(pager *p)
{
    if (!p->pid)
        return;
    if (fflush(stdout) != 0 || ferror(stdout)) { /* the reader has seen enough */
        __fpurge(stdout);
        clearerr(stdout);
    }
    dup2(p->terminal, STDOUT_FILENO);
    close(p->terminal);
    cli_set_paged(stdout, false);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    sigaction(SIGINT, &p->interrupt, NULL);
    p->pid = 0;
}
