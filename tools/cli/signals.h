/* signals.h: what signals do to the program.
 *
 * From the beginning of main, SIGINT, SIGTERM and SIGHUP end the program at once, but remove its
 * temporary files first. A command whose work can be asked to stop catches them instead:
 *
 *   stop_on_signals();
 *   if (the work, which asks is_stopped now and then, fails)
 *       return stop_fail(&err);
 *   return stop_done("x.gx");
 *
 * The work leaves nothing half-written, and then the program dies of the signal, so that the shell
 * that started it sees why.
 *
 * SIGXFSZ is ignored: a write over the limit of file size fails with EFBIG. SIGBUS means that a
 * mapped file has become shorter than it was: the program says so and exits with 4.
 */
#ifndef GX_TOOLS_CLI_SIGNALS_H
#define GX_TOOLS_CLI_SIGNALS_H

#include "engine/api/gpuidx.h"

/* Install the handlers. To be called once, first of all. */
void signals_init(void);

/* From now on SIGINT, SIGTERM and SIGHUP set what is_stopped tells, unless they are ignored. */
void stop_on_signals(void);

/* From now on they end the program again. */
void stop_no_more(void);

/* Has such a signal come? Its form is that of the library's cancel functions; user is not looked
 * at. */
bool is_stopped(void *user);

/* If such a signal has come: say "interrupted; " and the outcome, and die of it. Else nothing.
 * outcome NULL: say nothing. */
void stop_die(const char *outcome);

/* Of work that failed and left nothing: stop_die if it was stopped, else cli_fail_error. */
int stop_fail(const gx_error *err);

/* Of work that is done, its output in place: 0, or stop_die if a signal came too late. */
int stop_done(const char *output);

#endif
