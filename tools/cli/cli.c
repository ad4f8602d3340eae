#include "tools/cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"

typedef struct cli_value {
    bool given;
    const char *text; /* as typed, or the default; NULL: none */
    char *joined;     /* of a flag that was given several times and adds up: text */
    double number;
    uint64_t count;
} cli_value;

enum { MAX_FLAGS = 96, MAX_ARGS_SHOWN = 40 };

/* How this process speaks; set once, by cli_run. */
static bool quiet, verbose;
static int color_mode; /* 0 auto, 1 always, 2 never */

/* ---- tables ---- */

/* The i-th flag of a command: its own first, then the common ones; NULL past the end. */
static const cli_flag *flag_at(const cli_command *command, size_t i)
{
    if (command->flags)
        for (const cli_flag *f = command->flags; f->name; ++f)
            if (i-- == 0)
                return f;
    for (const cli_flag *f = cli_common_flags; f->name; ++f)
        if (i-- == 0)
            return f;
    return NULL;
}

static int find_long(const cli_command *command, const char *name, size_t len)
{
    const cli_flag *f;
    for (size_t i = 0; (f = flag_at(command, i)); ++i)
        if (strlen(f->name) == len && memcmp(f->name, name, len) == 0)
            return (int)i;
    return -1;
}

static int find_letter(const cli_command *command, char letter)
{
    const cli_flag *f;
    for (size_t i = 0; (f = flag_at(command, i)); ++i)
        if (f->letter == letter)
            return (int)i;
    return -1;
}

int cli_choice_index(const char *choices, const char *word)
{
    const size_t len = strlen(word);
    int i = 0;
    for (const char *p = choices;; ++i) {
        const char *end = strchrnul(p, '|');
        if ((size_t)(end - p) == len && memcmp(p, word, len) == 0)
            return i;
        if (!*end)
            return -1;
        p = end + 1;
    }
}

/* ---- the nearest name ---- */

/* Optimal string alignment distance of a and b; names longer than 31 bytes count as far. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    const size_t n = strlen(a), m = strlen(b);
    if (n >= MAX || m >= MAX)
        return MAX;
    size_t d[MAX][MAX];
    for (size_t i = 0; i <= n; ++i)
        d[i][0] = i;
    for (size_t j = 0; j <= m; ++j)
        d[0][j] = j;
    for (size_t i = 1; i <= n; ++i)
        for (size_t j = 1; j <= m; ++j) {
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *cli_nearest(const char *word, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    const size_t len = strlen(word);
    size_t best = len < 3 ? 1 : (len + 1) / 3;
    for (size_t i = 0; i < n; ++i) {
        const size_t d = edit_distance(word, names[i]);
        if (d < best || (d == best && !nearest && d < strlen(names[i]))) {
            best = d;
            nearest = names[i];
        }
    }
    if (nearest)
        return nearest;
    for (size_t i = 0; i < n; i++) /* "--alg" for "--algorithm" */
        if (len >= 2 && strncmp(names[i], word, len) == 0)
            return names[i];
    return NULL;
}

const char *cli_nearest_choice(const char *choices, const char *word, char buf[64])
{
    char words[512];
    const char *names[64];
    size_t n = 0;
    snprintf(words, sizeof words, "%s", choices);
    for (char *rest = words, *name; n < 64 && (name = strsep(&rest, "|"));)
        names[n++] = name;
    const char *nearest = cli_nearest(word, names, n);
    if (nearest)
        snprintf(buf, 64, "%s", nearest);
    return nearest ? buf : NULL;
}

/* ---- values ---- */

bool cli_read_number(const cli_flag *flag, const char *text, double *number, uint64_t *count, char *why, size_t why_len)
{
    char *end;
    errno = 0;
    if (flag->kind == CLI_NUMBER) {
        *number = strtod(text, &end);
        if (end == text || *end || !isfinite(*number) || text[strspn(text, "0123456789.eE+-")]) {
            snprintf(why, why_len, "is not a number");
            return false;
        }
        *count = 0;
    } else {
        uint64_t unit = 1;
        *count = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9') {
            snprintf(why, why_len, "is not a whole number");
            return false;
        }
        if (flag->kind == CLI_BYTES && *end) {
            const char *letters = "kKmMgGtT", *p = strchr(letters, *end);
            if (p) {
                unit = UINT64_C(1) << 10 * ((p - letters) / 2 + 1);
                ++end;
                if (end[0] == 'i' && end[1] == 'B')
                    end += 2;
                else if (*end == 'B')
                    ++end;
            }
        }
        if (*end) {
            snprintf(why, why_len, "is not a whole number%s", flag->kind == CLI_BYTES ? " with K, M, G or T" : "");
            return false;
        }
        if (errno == ERANGE || *count > UINT64_MAX / unit) {
            snprintf(why, why_len, "is too large");
            return false;
        }
        *count *= unit;
        *number = (double)*count;
    }
    if (*number < flag->min) {
        snprintf(why, why_len, "is less than %.12g", flag->min);
        return false;
    }
    if (flag->max != 0 && *number > flag->max) {
        snprintf(why, why_len, "is more than %.12g", flag->max);
        return false;
    }
    return true;
}

/* Set a flag's value from text. Returns 0, or the exit code with the message printed. */
static int set_value(const cli_args *a, const cli_flag *flag, cli_value *v, const char *text)
{
    char why[96];
    switch (flag->kind) {
    case CLI_SWITCH:
    case CLI_TEXT:
        break;
    case CLI_LIST:
    case CLI_FILTER:
        if (v->text) {
            char *joined = NULL;
            if (asprintf(&joined, flag->kind == CLI_LIST ? "%s,%s" : "(%s) AND (%s)", v->text, text) < 0)
                return cli_fail(GX_ENOMEM, "no memory for the command line");
            free(v->joined);
            text = v->joined = joined;
        }
        break;
    case CLI_CHOICE:
        if (cli_choice_index(flag->arg, text) < 0) {
            const char *nearest = cli_nearest_choice(flag->arg, text, why);
            return cli_usage(a, "--%s=%s: there is no such choice; %s%s%sit is one of %s", flag->name, text,
                             nearest ? "did you mean " : "", nearest ? nearest : "", nearest ? "? " : "", flag->arg);
        }
        break;
    case CLI_COUNT:
    case CLI_BYTES:
    case CLI_NUMBER:
        if (!cli_read_number(flag, text, &v->number, &v->count, why, sizeof why))
            return cli_usage(a, "--%s=%s: the value %s", flag->name, text, why);
    }
    v->text = text;
    return 0;
}

static const cli_value *value_of(const cli_args *a, const char *flag)
{
    const int i = find_long(a->command, flag, strlen(flag));
    assert(i >= 0);
    return &a->values[i];
}

bool cli_has(const cli_args *a, const char *flag)
{
    return find_long(a->command, flag, strlen(flag)) >= 0;
}
bool cli_given(const cli_args *a, const char *flag)
{
    return value_of(a, flag)->given;
}
bool cli_switch(const cli_args *a, const char *flag)
{
    return value_of(a, flag)->given;
}

const char *cli_text(const cli_args *a, const char *flag)
{
    return value_of(a, flag)->text;
}
uint64_t cli_count(const cli_args *a, const char *flag)
{
    return value_of(a, flag)->count;
}
double cli_number(const cli_args *a, const char *flag)
{
    return value_of(a, flag)->number;
}

int cli_choice(const cli_args *a, const char *flag)
{
    const int i = find_long(a->command, flag, strlen(flag));
    assert(i >= 0 && flag_at(a->command, (size_t)i)->kind == CLI_CHOICE);
    return a->values[i].text ? cli_choice_index(flag_at(a->command, (size_t)i)->arg, a->values[i].text) : -1;
}

/* ---- parsing ---- */

/* The first command that has the flag, or NULL. */
static const cli_command *command_with(const char *flag)
{
    for (size_t i = 0; cli_this.commands[i]; ++i)
        if (strlen(flag) > 1 && find_long(cli_this.commands[i], flag, strlen(flag)) >= 0)
            return cli_this.commands[i];
    return NULL;
}

static int unknown_flag(const cli_args *a, const char *word)
{
    const char *names[MAX_FLAGS];
    char name[64];
    size_t n = 0;
    const cli_flag *f;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    if (strlen(name) == 1 && find_letter(a->command, name[0]) >= 0)
        return cli_usage(a, "--%s: there is no such flag; did you mean -%s?", name, name);
    if (strcmp(name, "version") == 0)
        return cli_usage(a, "--version: there is no such flag; 'gpuidx --version' prints the version");
    if (strcmp(name, "fields") == 0 && find_long(a->command, "members", 7) >= 0)
        return cli_usage(a, "--fields: there is no such flag; --members names the members of JSON objects");
    for (size_t i = 0; (f = flag_at(a->command, i)); ++i)
        names[n++] = f->name;
    const char *nearest = cli_nearest(name, names, n);
    if (nearest)
        return cli_usage(a, "--%s: there is no such flag; did you mean --%s?", name, nearest);
    const cli_command *other = command_with(name);
    return other ? cli_usage(a, "--%s: there is no such flag; %s %s has it", name, cli_this.name, other->name)
                 : cli_usage(a, "--%s: there is no such flag", name);
}

/* One "--name", "--name=value" or "--name value" at argv[*i]. */
static int parse_long(const cli_args *a, cli_value *values, int argc, char **argv, int *i)
{
    const char *word = argv[*i] + 2, *equals = strchr(word, '=');
    const int f = find_long(a->command, word, equals ? (size_t)(equals - word) : strlen(word));
    if (f < 0)
        return unknown_flag(a, argv[*i]);
    const cli_flag *flag = flag_at(a->command, (size_t)f);
    values[f].given = true;
    if (flag->kind == CLI_SWITCH)
        return equals ? cli_usage(a, "--%s: it takes no value", flag->name) : 0;
    if (equals)
        return set_value(a, flag, &values[f], equals + 1);
    if (flag->bare)
        return set_value(a, flag, &values[f], flag->bare);
    if (*i + 1 >= argc)
        return cli_usage(a, "--%s: it needs a value, %s", flag->name, flag->arg);
    return set_value(a, flag, &values[f], argv[++*i]);
}

/* A cluster of letters at argv[*i]: "-q", "-k10", "-k 10", "-qk10". */
static int parse_letters(const cli_args *a, cli_value *values, int argc, char **argv, int *i)
{
    for (const char *p = argv[*i] + 1; *p; ++p) {
        const int f = find_letter(a->command, *p);
        if (f < 0)
            return cli_usage(a, "-%c: there is no such flag", *p);
        const cli_flag *flag = flag_at(a->command, (size_t)f);
        values[f].given = true;
        if (flag->kind == CLI_SWITCH)
            continue;
        if (p[1])
            return set_value(a, flag, &values[f], p + 1 + (p[1] == '='));
        if (flag->bare)
            return set_value(a, flag, &values[f], flag->bare);
        if (*i + 1 >= argc)
            return cli_usage(a, "-%c: it needs a value, %s", *p, flag->arg);
        return set_value(a, flag, &values[f], argv[++*i]);
    }
    return 0;
}

/* Read all of argv: flags go into values, other arguments move to the front of argv. */
static int parse(cli_args *a, cli_value *values, int argc, char **argv)
{
    int code, n = 0;
    bool flags_over = false;
    for (int i = 1; i < argc; ++i) {
        char *word = argv[i];
        if (flags_over || word[0] != '-' || !word[1]) {
            argv[n++] = word;
        } else if (strcmp(word, "--") == 0) {
            flags_over = true;
        } else if ((code = word[1] == '-' ? parse_long(a, values, argc, argv, &i)
                                          : parse_letters(a, values, argc, argv, &i))) {
            return code;
        }
    }
    a->argc = n;
    a->argv = argv;
    return 0;
}

static int set_defaults(const cli_args *a, cli_value *values)
{
    const cli_flag *f;
    for (size_t i = 0; (f = flag_at(a->command, i)); ++i) {
        assert(i < MAX_FLAGS);
        values[i] = (cli_value){.number = NAN};
        if (f->def && set_value(a, f, &values[i], f->def))
            return cli_fail(GX_EINTERNAL, "--%s: its default is not a value of it", f->name);
    }
    return 0;
}

/* Where memory lacks, jansson's functions fail in ways that look like bad input or an absent
 * member. So the program ends where jansson cannot allocate. */
static void *allocate_json(size_t n)
{
    static const char words[] = "gpuidx: out of memory\n";
    void *p = malloc(n);
    if (p || n == 0)
        return p;
    gx_temporary_names_unlink();
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0) {
        /* nobody listens */
    }
    _exit(gx_status_exit(GX_ENOMEM));
}

static const cli_command *running; /* the command whose flags advice may name */

static int run_command(const cli_command *command, cli_value *values, int argc, char **argv)
{
    cli_args a = {.command = command, .values = values};
    int code;
    if ((code = set_defaults(&a, values)) || (code = parse(&a, values, argc, argv)))
        return code;
    quiet = cli_switch(&a, "quiet");
    verbose = cli_switch(&a, "verbose");
    color_mode = cli_choice(&a, "color");
    if (cli_switch(&a, "help") || cli_switch(&a, "help-all")) {
        cli_print_help(stdout, command, cli_switch(&a, "help-all"));
        return 0;
    }
    if (a.argc < command->min_args)
        return cli_usage(&a, "an argument is missing: %s %s %.*s", cli_this.name, command->name,
                         (int)strcspn(command->synopsis, "\n"), command->synopsis);
    if (command->max_args >= 0 && a.argc > command->max_args)
        return cli_usage(&a, "%s: one argument too many", a.argv[command->max_args]);
    json_set_alloc_funcs(allocate_json, free);
    running = command;
    return command->run(&a);
}

int cli_run(const cli_command *command, int argc, char **argv)
{
    if (command->program)
        return cli_become(command, NULL, argc - 1, argv + 1);
    cli_value values[MAX_FLAGS] = {{0}};
    const int code = run_command(command, values, argc, argv);
    for (size_t i = 0; i < MAX_FLAGS; ++i)
        free(values[i].joined);
    return code;
}

/* ---- speaking ---- */

/* Names, ids and arguments may hold what a terminal would obey, or what turns the direction of text. */
static void put_harmless(const char *text)
{
    const size_t len = strlen(text);
    for (size_t i = 0, n; i < len; i += n) {
        n = gx_utf8_length(text + i, len - i);
        n = n ? n : 1;
        if (text[i] != '\n' && (gx_utf8_is_control(text + i, n) || gx_utf8_turns(text + i, n)))
            fputc('?', stderr);
        else
            fwrite(text + i, 1, n, stderr);
    }
}

static void say(const char *prefix, const char *format, va_list ap)
{
    char *text = NULL;
    if (stdout)
        fflush(stdout);
    fprintf(stderr, "%s%s:%s %s", cli_paint(stderr, CLI_BOLD), cli_this.name, cli_paint(stderr, CLI_PLAIN), prefix);
    if (vasprintf(&text, format, ap) >= 0)
        put_harmless(text);
    else
        fputs(format, stderr); /* there is no memory left */
    free(text);
    fputc('\n', stderr);
}

int cli_fail(gx_status st, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
    return gx_status_exit(st);
}

/* A message of the library states facts. Where a flag of the running command helps, the program
 * adds it: for a message with this status that contains this text. */
static const struct {
    gx_status status;
    const char *part;
    const char *flag; /* NULL: of another command */
    const char *advice;
} advices[] = {
    {GX_EEXISTS, "", "force", ": use --force to replace it, or give another name"},
    {GX_EINPUT, "have the same id, ", "duplicates", "; --duplicates=keep takes them all the same"},
    {GX_EINPUT, "is that of document", "duplicates", "; --duplicates=first or =last keeps one of them"},
    {GX_EINPUT, "what each holds must be said", "columns", "; --columns says it"},
    {GX_EUSAGE, "cannot tell the format of", "format", "; say it with -f"},
    {GX_EUSAGE, "holds impacts instead of", "scorer", "; use --scorer=impact"},
    {GX_ENOMEM, "out of memory while", "memory",
     "; --memory sets how much is held before postings go to a temporary file"},
    {GX_EIO, "cannot write a temporary file", "memory", "; free some space there, or give more --memory"},
    {GX_ENOTFOUND, "no text is stored", NULL, "; 'gpuidx build --store=text' stores texts"},
};

const char *cli_advice(const gx_error *err)
{
    for (size_t i = 0; i < sizeof advices / sizeof *advices; ++i) {
        const char *const flag = advices[i].flag;
        if (advices[i].status == err->status && strstr(err->text, advices[i].part) &&
            (!flag || (running && find_long(running, flag, strlen(flag)) >= 0)))
            return advices[i].advice;
    }
    return "";
}

int cli_fail_error(const gx_error *err)
{
    return cli_fail(err->status, "%s%s", err->text[0] ? err->text : gx_status_name(err->status), cli_advice(err));
}

int cli_usage(const cli_args *a, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
    fprintf(stderr, "Try '%s %s --help'.\n", cli_this.name, a->command->name);
    return 2;
}

void cli_warn(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("warning: ", format, ap);
    va_end(ap);
}

void cli_note(const char *format, ...)
{
    if (quiet)
        return;
    va_list ap;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
}

bool cli_quiet(void)
{
    return quiet;
}

static struct {
    FILE *stream; /* NULL: none */
    bool color;
    unsigned columns;
} paged;

void cli_set_paged(FILE *stream, bool on)
{
    paged.stream = NULL;
    if (on) {
        paged.color = cli_color(stream);
        paged.columns = cli_columns(stream);
        paged.stream = stream;
    }
}

bool cli_verbose(void)
{
    return verbose;
}

bool cli_is_terminal(FILE *stream)
{
    return stream == paged.stream || isatty(fileno(stream));
}

bool cli_color(FILE *stream)
{
    if (stream == paged.stream)
        return paged.color;
    if (color_mode)
        return color_mode == 1;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no_color && *no_color) && term && strcmp(term, "dumb") != 0 && isatty(fileno(stream));
}

const char *cli_paint(FILE *stream, cli_style style)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[4m", "\033[31m", "\033[32m", "\033[33m"};
    return cli_color(stream) ? codes[style] : "";
}

unsigned cli_columns(FILE *stream)
{
    struct winsize ws;
    if (stream == paged.stream)
        return paged.columns;
    if (ioctl(fileno(stream), TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20)
        return ws.ws_col;
    return 80;
}

/* ---- output ---- */

static int flush_errno; /* why cli_flush failed */

void cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 && errno != EINTR)
        flush_errno = errno;
}

/* The reason for which an earlier write failed, as far as it can still be found out: poll tells
 * whether the reader of a pipe has left. */
static int earlier_errno(FILE *f)
{
    struct pollfd p = {.fd = fileno(f)};
    if (f == stdout && flush_errno)
        return flush_errno;
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR) ? EPIPE : 0;
}

int cli_close_output(FILE *f, const char *path)
{
    const bool early = ferror(f);
    errno = early ? earlier_errno(f) : 0;
    const int early_errno = errno;
    const bool late = f == stdout ? fflush(f) != 0 : fclose(f) != 0;
    if (!early && !late)
        return 0;
    if (early_errno)
        errno = early_errno;
    if (errno == EPIPE) /* the reader has left and wants no more, not even words */
        return gx_status_exit(GX_EIO);
    return cli_fail(GX_EIO, "cannot write %s: %s", strcmp(path, "-") == 0 ? "standard output" : path,
                    errno ? strerror(errno) : "a write failed");
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool cli_is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool cli_is_index(const char *path)
{
    char magic[8] = "";
    FILE *f = cli_is_regular(path) ? fopen(path, "rb") : NULL;
    const bool is = f && fread(magic, 1, sizeof magic, f) == sizeof magic && memcmp(magic, "\x89GPUIDX\n", 8) == 0;
    if (f)
        fclose(f);
    return is;
}

bool cli_output_failed(void)
{
    return ferror(stdout);
}

void cli_json_memory_may_fail(void)
{
    json_set_alloc_funcs(malloc, free);
}
