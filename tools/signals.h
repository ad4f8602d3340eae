/* signals.h: Ctrl-C and its like end a long piece of work in order: it is asked to stop, leaves
 * nothing half-written, and then the program dies of the signal, so that whoever started it sees
 * why.
 *
 *   stop_on_signals();
 *   if (the work, which asks is_stopped now and then, fails)
 *       return stop_fail(&err);
 */
#ifndef GX_TOOLS_SIGNALS_H
#define GX_TOOLS_SIGNALS_H

#include "engine/gpuidx.h"

/* From now on SIGINT, SIGTERM and SIGHUP set what is_stopped tells, unless they are ignored. */
void stop_on_signals(void);

/* From now on they kill again. */
void stop_no_more(void);

/* Has such a signal come? Its form is that of the library's cancel functions; user is not looked
 * at. */
bool is_stopped(void *user);

/* Where one has come: say "interrupted; " and the outcome, and die of it. Else nothing. */
void stop_die(const char *outcome);

/* Of work that failed and left nothing: stop_die where it was stopped, else cli_fail_error. */
int stop_fail(const gx_error *err);

#endif
