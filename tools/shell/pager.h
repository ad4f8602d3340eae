/* pager.h: long output at a terminal goes through $PAGER, or `less -FRX`, a screen at a time.
 *
 *   pager p = pager_begin(lines);    a pager only where standard output is a terminal of fewer
 *                                    lines
 *   printf(...);
 *   pager_end(&p);                   waits until the reader has left the pager
 */
#ifndef GX_TOOLS_SHELL_PAGER_H
#define GX_TOOLS_SHELL_PAGER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct pager {
    pid_t pid; /* 0: none; standard output is as it was */
    int terminal;
    struct sigaction interrupt;
} pager;

/* lines: about how many there will be. Between begin and end standard output counts as the terminal
 * for cli_color and cli_columns. */
pager pager_begin(uint64_t lines);
void pager_end(pager *p);

#endif
