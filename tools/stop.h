/* stop.h: Ctrl-C and its like end a long piece of work in order: it is asked to stop, and leaves nothing half-written. */
#ifndef GX_TOOLS_STOP_H
#define GX_TOOLS_STOP_H

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP set what is_stopped tells, unless they are ignored. */
void stop_on_signals(void);

/* Has such a signal come? Its form is that of the library's cancel functions; user is not looked at. */
bool is_stopped(void *user);

#endif
