#include "tools/shell/line_editor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef GX_LIBEDIT
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <sys/stat.h>
#include <wchar.h>
#endif
#include <unistd.h>

struct line_editor {
    const char *prompt;
    line_word_fn *words;
    volatile sig_atomic_t *interrupted;
    char *line;
    size_t cap;
#ifdef GX_LIBEDIT
    EditLine *el; /* NULL: plain lines */
    History *history;
    HistEvent event;
    int held;                /* a byte that was read when the interrupt came, or -1 */
    char history_path[4096]; /* empty: none is kept */
#endif
};

/* A line as the terminal itself edits it. */
static char *read_plain(line_editor *e)
{
    FILE *out = isatty(STDOUT_FILENO) ? stdout : stderr;
    fputs(e->prompt, out);
    fflush(out);
    errno = 0;
    if (getline(&e->line, &e->cap, stdin) >= 0)
        return e->line;
    if (errno == EINTR)
        clearerr(stdin);
    return NULL;
}

#ifdef GX_LIBEDIT

enum { HISTORY_LINES = 1000 };

static char *prompt(EditLine *el)
{
    line_editor *e;
    el_get(el, EL_CLIENTDATA, &e);
    return (char *)(uintptr_t)e->prompt; /* libedit does not write to it */
}

static volatile sig_atomic_t resized; /* the window has another size since it was last looked at */

static void on_resize(int signal_number)
{
    (void)signal_number;
    resized = 1;
}

/* Read one character. libedit's own reader would swallow the first interrupt. Returns 1, 0 at the
 * end, -1 when interrupted. */
static int read_character(EditLine *el, wchar_t *c)
{
    line_editor *e;
    mbstate_t state = {0};
    el_get(el, EL_CLIENTDATA, &e);
    for (;;) {
        char byte = (char)e->held;
        if (resized) {
            resized = 0;
            el_resize(el);
            el_set(el, EL_REFRESH);
        }
        const ssize_t n = *e->interrupted ? -1 : e->held >= 0 ? 1 : read(STDIN_FILENO, &byte, 1);
        if (*e->interrupted) {
            if (n > 0) /* typed behind Ctrl-C: it belongs to the next line */
                e->held = (unsigned char)byte;
            return -1;
        }
        e->held = -1;
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR) /* another signal, such as the window's change of size */
            continue;
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

/* On Tab, complete what all words that begin as the line does have in common, or list these
 * words. */
static unsigned char complete(EditLine *el, int key)
{
    line_editor *e;
    char common[64] = "";
    size_t n = 0;
    (void)key;
    el_get(el, EL_CLIENTDATA, &e);
    const LineInfo *l = el_line(el);
    const size_t len = (size_t)(l->cursor - l->buffer);
    const char *word;
    for (size_t i = 0; len && (word = e->words(i)); ++i) {
        if (strncmp(word, l->buffer, len) != 0)
            continue;
        if (n++ == 0)
            snprintf(common, sizeof common - 1, "%s", word);
        size_t same = 0;
        while (common[same] && common[same] == word[same])
            ++same;
        common[same] = 0;
    }
    if (n == 1)
        strcat(common, " ");
    if (n && strlen(common) > len)
        return el_insertstr(el, common + len) == 0 ? CC_REFRESH : CC_ERROR;
    if (n == 0)
        return CC_ERROR;
    putchar('\n');
    for (size_t i = 0; (word = e->words(i)); ++i)
        if (strncmp(word, l->buffer, len) == 0)
            printf("%s  ", word);
    putchar('\n');
    fflush(stdout);
    return CC_REDISPLAY;
}

/* Text is UTF-8. The C locale, which many containers have, would drop all but ASCII. */
static void set_locale(void)
{
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "ANSI_X3.4-1968") == 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

line_editor *line_open(const char *prompt_text, line_word_fn *words, volatile sig_atomic_t *interrupted)
{
    line_editor *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->prompt = prompt_text;
    e->words = words;
    e->interrupted = interrupted;
    e->held = -1;
    if (!isatty(STDOUT_FILENO))
        return e;
    set_locale();
    sigaction(SIGWINCH, &(struct sigaction){.sa_handler = on_resize}, NULL);
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
    el_set(e->el, EL_ADDFN, "gx-complete", "complete a command", complete);
    el_set(e->el, EL_BIND, "^I", "gx-complete", NULL);
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
    if (!e->el)
        return read_plain(e);
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

line_editor *line_open(const char *prompt, line_word_fn *words, volatile sig_atomic_t *interrupted)
{
    line_editor *e = calloc(1, sizeof *e);
    if (e) {
        e->prompt = prompt;
        e->words = words;
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
    return read_plain(e);
}

#endif
