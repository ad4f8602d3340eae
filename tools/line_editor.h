/* line_editor.h: a line of input at a prompt, with editing and a history that outlives the program;
 * by libedit where the program was built with it (GX_LIBEDIT), else a plain line.
 */
#ifndef GX_TOOLS_LINE_EDITOR_H
#define GX_TOOLS_LINE_EDITOR_H

#include <signal.h>

typedef struct line_editor line_editor;

/* prompt lives as long as the editor. Reading ends, without a line, once *interrupted is set by a
 * signal's handler that was installed without SA_RESTART. NULL: no memory. */
line_editor *line_open(const char *prompt, volatile sig_atomic_t *interrupted);
/* Writes the history. */
void line_close(line_editor *e);
/* The next line with its newline, the editor's own until the next call; NULL at the end of input,
 * or interrupted. */
char *line_read(line_editor *e);

#endif
