#include "tools/line_editor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef GX_LIBEDIT

#include <histedit.h>
#include <locale.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_LINES = 1000 };

struct line_editor {
    const char *prompt;
    volatile sig_atomic_t *interrupted;
    EditLine *el;
    History *history;
    HistEvent event;
    int held;                /* a byte that was read when the interrupt came, or -1 */
    char history_path[4096]; /* empty: none is kept */
    char *line;
    size_t cap;
};

static char *prompt(EditLine *el)
{
    line_editor *e;
    el_get(el, EL_CLIENTDATA, &e);
    return (char *)(uintptr_t)e->prompt; /* libedit does not write to it */
}

/* One character: libedit's own reader would swallow the first interrupt. 1, 0 at the end, -1 when
 * interrupted. */
static int read_character(EditLine *el, wchar_t *c)
{
    line_editor *e;
    mbstate_t state = {0};
    el_get(el, EL_CLIENTDATA, &e);
    for (;;) {
        char byte = (char)e->held;
        const ssize_t n = *e->interrupted ? -1 : e->held >= 0 ? 1 : read(STDIN_FILENO, &byte, 1);
        if (*e->interrupted) {
            if (n > 0) /* typed behind Ctrl-C: it belongs to the next line */
                e->held = (unsigned char)byte;
            return -1;
        }
        e->held = -1;
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR) { /* another signal, such as the window's change of size */
            el_resize(el);
            continue;
        }
        if (n < 0)
            return -1;
        const size_t used = mbrtowc(c, &byte, 1, &state);
        if (used == (size_t)-1) { /* not of this locale: leave it out */
            state = (mbstate_t){0};
            continue;
        }
        if (used != (size_t)-2)
            return 1;
    }
}

/* $XDG_STATE_HOME/gpuidx/history, the folders made where they are missing. */
static void find_history(line_editor *e)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = e->history_path;
    const size_t size = sizeof e->history_path;
    int len;
    if (state && state[0] == '/')
        len = snprintf(path, size, "%s/gpuidx/history", state);
    else if (home && home[0] == '/')
        len = snprintf(path, size, "%s/.local/state/gpuidx/history", home);
    else
        return;
    if (len < 0 || (size_t)len >= size) {
        path[0] = 0;
        return;
    }
    for (char *p = path + 1; (p = strchr(p, '/')); ++p) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
}

line_editor *line_open(const char *prompt_text, volatile sig_atomic_t *interrupted)
{
    line_editor *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    setlocale(LC_CTYPE, "");
    e->prompt = prompt_text;
    e->interrupted = interrupted;
    e->held = -1;
    e->el = el_init("gpuidx", stdin, stdout, stderr);
    e->history = history_init();
    if (!e->el || !e->history) {
        line_close(e);
        return NULL;
    }
    el_set(e->el, EL_CLIENTDATA, e);
    el_set(e->el, EL_PROMPT, prompt);
    el_set(e->el, EL_EDITOR, "emacs");
    el_set(e->el, EL_SIGNAL, 0);
    el_set(e->el, EL_HIST, history, e->history);
    el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(e->el, NULL); /* ~/.editrc */
    el_set(e->el, EL_GETCFN, read_character);
    history(e->history, &e->event, H_SETSIZE, HISTORY_LINES);
    history(e->history, &e->event, H_SETUNIQUE, 1);
    find_history(e);
    if (e->history_path[0])
        history(e->history, &e->event, H_LOAD, e->history_path);
    return e;
}

void line_close(line_editor *e)
{
    if (!e)
        return;
    if (e->history && e->history_path[0])
        history(e->history, &e->event, H_SAVE, e->history_path);
    if (e->history)
        history_end(e->history);
    if (e->el)
        el_end(e->el);
    free(e->line);
    free(e);
}

char *line_read(line_editor *e)
{
    int n;
    el_set(e->el, EL_PREP_TERM, 1); /* before the prompt: keys that answer it are not the terminal's to interpret */
    const char *line = el_gets(e->el, &n);
    if (!line || n <= 0 || *e->interrupted)
        return NULL;
    if ((size_t)n + 1 > e->cap) { /* the caller may change it; libedit's own buffer may not be changed */
        char *grown = realloc(e->line, (size_t)n + 1);
        if (!grown)
            return NULL;
        e->line = grown;
        e->cap = (size_t)n + 1;
    }
    memcpy(e->line, line, (size_t)n);
    e->line[n] = 0;
    if (strspn(e->line, " \t\r\n") < (size_t)n)
        history(e->history, &e->event, H_ENTER, e->line);
    return e->line;
}

#else

struct line_editor {
    const char *prompt;
    volatile sig_atomic_t *interrupted;
    char *line;
    size_t cap;
};

line_editor *line_open(const char *prompt, volatile sig_atomic_t *interrupted)
{
    line_editor *e = calloc(1, sizeof *e);
    if (e) {
        e->prompt = prompt;
        e->interrupted = interrupted;
    }
    return e;
}

void line_close(line_editor *e)
{
    if (e)
        free(e->line);
    free(e);
}

char *line_read(line_editor *e)
{
    fputs(e->prompt, stdout);
    fflush(stdout);
    errno = 0;
    if (getline(&e->line, &e->cap, stdin) >= 0)
        return e->line;
    if (errno == EINTR)
        clearerr(stdin);
    return NULL;
}

#endif
