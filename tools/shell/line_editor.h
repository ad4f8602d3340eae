/* line_editor.h: a line of input at a prompt, with editing and a history that outlives the program;
 * by libedit where the program was built with it (GX_LIBEDIT), else a plain line.
 */
#ifndef GX_TOOLS_SHELL_LINE_EDITOR_H
#define GX_TOOLS_SHELL_LINE_EDITOR_H

#include <signal.h>
#include <stddef.h>

typedef struct line_editor line_editor;

/* The words that Tab completes: the index'th of those that may stand at a line's beginning, NULL
 * past the last. */
typedef const char *line_word_fn(size_t index);

/* prompt lives as long as the editor. Where standard output is no terminal, lines are not edited,
 * and the prompt goes to standard error. Reading ends, without a line, once *interrupted is set by
 * a signal's handler that was installed without SA_RESTART. NULL: no memory. */
line_editor *line_open(const char *prompt, line_word_fn *words, volatile sig_atomic_t *interrupted);
/* Writes the history. */
void line_close(line_editor *e);
/* The next line with its newline, the editor's own until the next call; NULL at the end of input,
 * or interrupted. */
char *line_read(line_editor *e);

#endif
