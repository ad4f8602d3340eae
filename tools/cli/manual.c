/* manual.c: the table of commands and flags, told to people: --help, mdoc manual pages. */
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

static const struct {
    int code;
    const char *meaning;
} exits[] = {
    {0, "done, whatever the number of results"},
    {1, "`check` found damage, a comparison found a difference, or, if asked for, there is no result"},
    {2, "a mistake on the command line"},
    {3, "bad input: a corpus, query log, qrels or run, or an index that the format of an export cannot hold"},
    {4, "the index is corrupt, truncated, or of an unknown version"},
    {5, "input or output: not found, exists already, no space, no permission. Where the message does not say that an "
        "output is in place, nothing was written"},
    {6, "out of memory"},
    {7, "a GPU was required and is absent, lost or too small"},
    {8, "cancelled"},
    {9, "a time limit passed"},
    {70, "an internal error"},
};

enum { N_EXITS = sizeof exits / sizeof *exits };

/* The letter of a common flag; 0 where the command uses the letter for a flag of its own. */
static char letter_of(const cli_command *command, const cli_flag *flag, bool common)
{
    if (common && command && command->flags)
        for (const cli_flag *f = command->flags; f->name; ++f)
            if (f->letter == flag->letter)
                return 0;
    return flag->letter;
}

void cli_for_flags(FILE *out, const cli_command *command, cli_flag_fn *each)
{
    if (command && command->flags)
        for (const cli_flag *f = command->flags; f->name; ++f)
            each(out, f, f->letter);
    for (const cli_flag *f = cli_common_flags; f->name; ++f)
        each(out, f, letter_of(command, f, true));
}

/* ---- help ---- */

enum { MAX_WIDTH = 100, FLAG_INDENT = 28 };

static size_t width_of(FILE *out)
{
    const unsigned columns = cli_columns(out);
    return columns < MAX_WIDTH ? columns : MAX_WIDTH;
}

/* Text whose words are wrapped as they come. */
typedef struct wrapping {
    FILE *out;
    size_t at, indent, width; /* the column; where further lines begin; columns of a line */
    bool bold;
} wrapping;

/* Words of text from column `at` on, continued at `indent`, and what follows the last one; back quotes become bold. */
static void wrap(wrapping *w, const char *text, size_t len, const char *last)
{
    while (len && strchr(" \n", text[len - 1]))
        --len;
    for (size_t i = 0; i < len;) {
        while (i < len && (text[i] == ' ' || text[i] == '\n'))
            ++i;
        size_t end = i, shown = 0;
        for (; end < len && text[end] != ' ' && text[end] != '\n'; ++end)
            shown += text[end] != '`' && (text[end] & 0xc0) != 0x80;
        shown += end == len ? strlen(last) : 0;
        if (w->at > w->indent && w->at + 1 + shown > w->width) {
            fprintf(w->out, "\n%*s", (int)w->indent, "");
            w->at = w->indent;
        } else if (w->at > w->indent) {
            putc(' ', w->out);
            ++w->at;
        }
        for (; i < end; ++i) {
            if (text[i] == '`')
                fputs(cli_paint(w->out, (w->bold = !w->bold) ? CLI_BOLD : CLI_PLAIN), w->out);
            else
                putc(text[i], w->out);
        }
        w->at += shown;
    }
    fputs(last, w->out);
}

/* The same of one text, from column `at` on. Ends the line. */
static void put_wrapped(FILE *out, const char *text, size_t len, size_t at, size_t indent)
{
    wrapping w = {out, at, indent, width_of(out), false};
    wrap(&w, text, len, "");
    putc('\n', out);
}

void cli_put_wrapped(FILE *out, const char *text, unsigned at, unsigned indent)
{
    put_wrapped(out, text, strlen(text), at, indent);
}

/* Paragraphs and lines that stay as they are. */
static void put_text(FILE *out, const char *text, size_t indent)
{
    for (const char *p = text; *p;) {
        if (*p == '\n') {
            putc('\n', out);
            ++p;
            continue;
        }
        const char *end = strchrnul(p, '\n');
        if (strncmp(p, "  ", 2) == 0) {
            fprintf(out, "%*s%.*s\n", (int)indent, "", (int)(end - p), p);
        } else {
            while (*end && end[1] && end[1] != '\n' && strncmp(end + 1, "  ", 2) != 0)
                end = strchrnul(end + 1, '\n');
            fprintf(out, "%*s", (int)indent, "");
            put_wrapped(out, p, (size_t)(end - p), indent, indent);
        }
        p = *end ? end + 1 : end;
    }
}

static void put_title(FILE *out, const char *title)
{
    fprintf(out, "\n%s%s%s\n", cli_paint(out, CLI_BOLD), title, cli_paint(out, CLI_PLAIN));
}

/* What ends the text of a flag. */
static const char *end_of(const cli_flag *flag)
{
    const size_t n = strlen(flag->help);
    return flag->def || (n && strchr(".?!", flag->help[n - 1])) ? "" : ".";
}

static void help_flag(FILE *out, const cli_flag *flag, char letter)
{
    int at = letter ? fprintf(out, "  -%c, ", letter) : fprintf(out, "      ");
    at += fprintf(out, "--%s%s%s%s", flag->name,
                  flag->bare  ? "[="
                  : flag->arg ? "="
                              : "",
                  flag->arg ? flag->arg : "", flag->bare ? "]" : "");
    if (at + 2 > FLAG_INDENT) {
        putc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", FLAG_INDENT - at, "");
    wrapping w = {out, FLAG_INDENT, FLAG_INDENT, width_of(out), false};
    wrap(&w, flag->help, strlen(flag->help), end_of(flag));
    if (flag->def) {
        wrap(&w, "(default:", strlen("(default:"), "");
        wrap(&w, flag->def, strlen(flag->def), ")");
    }
    putc('\n', out);
}

/* Whether the words of `names`, with spaces between, have the name. */
static bool has_word(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = names; (p = strstr(p, name)); p += n)
        if ((p == names || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    return false;
}

/* The command's usual flags, and how to see the others. */
static void help_common_flags(FILE *out, const cli_command *command)
{
    unsigned n_left = 0;
    for (const cli_flag *f = command->flags; f->name; ++f)
        if (has_word(command->common, f->name))
            help_flag(out, f, f->letter);
        else
            ++n_left;
    for (const cli_flag *f = cli_common_flags; f->name; ++f)
        if (strncmp(f->name, "help", 4) == 0)
            help_flag(out, f, letter_of(command, f, true));
    fprintf(out, "\n%u more flags: '%s help --all %s' shows them.\n", n_left, cli_this.name, command->name);
}

static void help_examples(FILE *out, const cli_section *examples)
{
    if (!examples)
        return;
    put_title(out, "Examples");
    for (const cli_section *e = examples; e->title; ++e) {
        fprintf(out, "  $ %s\n", e->title);
        put_text(out, e->text, 6);
    }
}

static void help_exits(FILE *out)
{
    put_title(out, "Exit codes");
    for (size_t i = 0; i < N_EXITS; ++i) {
        fprintf(out, "  %2d  ", exits[i].code);
        put_wrapped(out, exits[i].meaning, strlen(exits[i].meaning), 6, 6);
    }
}

static void help_program(FILE *out)
{
    fprintf(out, "%s%s%s - %s\n\nUsage: %s COMMAND [OPTIONS] ...\n\n", cli_paint(out, CLI_BOLD), cli_this.name,
            cli_paint(out, CLI_PLAIN), cli_this.summary, cli_this.name);
    put_text(out, cli_this.description, 0);
    put_title(out, "Commands");
    for (size_t i = 0; cli_this.commands[i]; ++i)
        fprintf(out, "  %-12s %s\n", cli_this.commands[i]->name, cli_this.commands[i]->summary);
    help_examples(out, cli_this.examples);
    help_exits(out);
    fprintf(out,
            "\n'%s help COMMAND' says more about each; '%s --version' is the version,\n"
            "and behind it '--json' adds how it was built.\n",
            cli_this.name, cli_this.name);
}

void cli_print_help(FILE *out, const cli_command *command, bool all)
{
    if (!command) {
        help_program(out);
        return;
    }
    fprintf(out, "%s%s %s%s - %s\n\n", cli_paint(out, CLI_BOLD), cli_this.name, command->name,
            cli_paint(out, CLI_PLAIN), command->summary);
    const char *lead = "Usage:";
    for (const char *p = command->synopsis; *p; lead = "      ") {
        const size_t len = strcspn(p, "\n");
        fprintf(out, "%s %s %s %.*s\n", lead, cli_this.name, command->name, (int)len, p);
        p += len + (p[len] == '\n');
    }
    putc('\n', out);
    put_text(out, command->description, 0);
    put_title(out, "Flags");
    if (command->common && !all)
        help_common_flags(out, command);
    else
        cli_for_flags(out, command, help_flag);
    for (const cli_section *s = command->sections; s && s->title; ++s) {
        put_title(out, s->title);
        put_text(out, s->text, 0);
    }
    help_examples(out, command->examples);
}

/* ---- mdoc ---- */

/* Text with back quotes bold and what roff would take for its own escaped. Running text gets a line
 * a sentence, and none of more than MAN_WIDTH; other text stays one line. */
enum { MAN_WIDTH = 76 };
static void man_escaped(FILE *out, const char *text, size_t len, bool running, const char *last)
{
    bool bold = false;
    size_t column = 0;
    for (size_t i = 0; i < len; ++i) {
        const char c = text[i];
        size_t word = c == ' ' ? strcspn(text + i + 1, " \n") : 0; /* of the word that follows */
        word += i + 1 + word >= len ? strlen(last) : 0;
        const bool sentence_end = i > 0 && c == ' ' && strchr(".?!", text[i - 1]);
        if (c == '\n' || (running && c == ' ' && (sentence_end || column + 1 + word > MAN_WIDTH))) {
            putc('\n', out);
            column = 0;
            continue;
        }
        if (column++ == 0 && (c == '.' || c == '\''))
            fputs("\\&", out);
        if (c == '`')
            fputs((bold = !bold) ? "\\fB" : "\\fP", out);
        else if (c == '\\')
            fputs("\\e", out);
        else if (c == '-' && (bold || !running || text[i + 1] == '-'))
            fputs("\\-", out);
        else
            putc(c, out);
        column += c == '`' ? 2 : 0;
    }
    fprintf(out, "%s\n", last);
}

static void man_running(FILE *out, const char *text, size_t len)
{
    man_escaped(out, text, len, true, "");
}

/* Paragraphs (.Pp) and literal displays. */
static void man_text(FILE *out, const char *text)
{
    bool gap = false;
    for (const char *p = text; *p;) {
        if (*p == '\n') {
            gap = true;
            ++p;
            continue;
        }
        const char *end = strchrnul(p, '\n');
        if (strncmp(p, "  ", 2) == 0) {
            fputs(".Bd -literal -offset indent -compact\n", out);
            while (strncmp(p, "  ", 2) == 0) {
                end = strchrnul(p, '\n');
                man_escaped(out, p + 2, (size_t)(end - p) - 2, false, "");
                p = *end ? end + 1 : end;
            }
            fputs(".Ed\n", out);
            gap = false;
            continue;
        }
        while (*end && end[1] && end[1] != '\n' && strncmp(end + 1, "  ", 2) != 0)
            end = strchrnul(end + 1, '\n');
        if (gap)
            fputs(".Pp\n", out);
        gap = false;
        man_running(out, p, (size_t)(end - p));
        p = *end ? end + 1 : end;
    }
}

static void man_flag(FILE *out, const cli_flag *flag, char letter)
{
    fputs(".It ", out);
    if (letter)
        fprintf(out, "Fl %c%s%s , ", letter, flag->arg ? " Ar " : "", flag->arg ? flag->arg : "");
    fprintf(out, "Fl \\-%s", flag->name);
    if (flag->bare)
        fprintf(out, " Ns Op = Ns Ar %s", flag->arg);
    else if (flag->arg)
        fprintf(out, " Ns = Ns Ar %s", flag->arg);
    putc('\n', out);
    man_escaped(out, flag->help, strlen(flag->help), true, end_of(flag));
    if (flag->def) {
        fputs("(default: ", out);
        fprintf(out, "\\fB%s\\fP)\n", flag->def);
    }
}

static void man_head(FILE *out, const char *name, const char *summary)
{
    fputs(".Dd November 21, 2026\n.Dt ", out);
    for (const char *p = name; *p; ++p)
        putc(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p, out);
    fprintf(out, " 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s\n", name, summary);
}

static void man_title(FILE *out, const char *title)
{
    fputs(".Sh ", out);
    for (const char *p = title; *p; ++p)
        putc(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p, out);
    putc('\n', out);
}

static void man_exits(FILE *out)
{
    fputs(".Sh EXIT STATUS\n.Bl -tag -width 4n\n", out);
    for (size_t i = 0; i < N_EXITS; ++i) {
        fprintf(out, ".It %d\n", exits[i].code);
        man_running(out, exits[i].meaning, strlen(exits[i].meaning));
    }
    fputs(".El\n", out);
}

static void man_examples(FILE *out, const cli_section *examples)
{
    if (!examples)
        return;
    fputs(".Sh EXAMPLES\n", out);
    for (const cli_section *e = examples; e->title; ++e) {
        if (e > examples)
            fputs(".Pp\n", out);
        man_text(out, e->text);
        fputs(".Pp\n.Dl ", out);
        man_escaped(out, e->title, strlen(e->title), false, "");
    }
}

static void man_program(FILE *out)
{
    man_head(out, cli_this.name, cli_this.summary);
    fprintf(out,
            ".Sh SYNOPSIS\n"
            ".Nm %s\n"
            ".Ar command\n"
            ".Op Ar options\n"
            ".Ar ...\n"
            ".Nm %s\n"
            ".Fl \\-version\n"
            ".Op Fl \\-json\n"
            ".Sh DESCRIPTION\n",
            cli_this.name, cli_this.name);
    man_text(out, cli_this.description);
    fputs(".Pp\nThe commands are:\n.Bl -tag -width completion\n", out);
    for (size_t i = 0; cli_this.commands[i]; ++i)
        fprintf(out, ".It Cm %s\n%s; see\n.Xr %s-%s 1\n", cli_this.commands[i]->name, cli_this.commands[i]->summary,
                cli_this.name, cli_this.commands[i]->name);
    fputs(".El\n.Pp\nEvery command takes these flags:\n.Bl -tag -width Ds\n", out);
    cli_for_flags(out, NULL, man_flag);
    fputs(".El\n"
          ".Sh ENVIRONMENT\n"
          ".Bl -tag -width NO_COLOR\n"
          ".It Ev NO_COLOR\n"
          "If set and not empty, nothing is coloured unless\n"
          ".Fl \\-color Ns = Ns Cm always\n"
          "is given.\n"
          ".It Ev GX_CPU\n"
          "The instruction set that decoders and the CPU engine\n"
          "use instead of the best that there is:\n"
          ".Li portable , avx2\n"
          "or\n"
          ".Li avx512 ;\n"
          "for measurements.\n"
          ".El\n",
          out);
    man_exits(out);
    man_examples(out, cli_this.examples);
}

void cli_print_man(FILE *out, const cli_command *command)
{
    char name[64];
    if (!command) {
        man_program(out);
        return;
    }
    snprintf(name, sizeof name, "%s-%s", cli_this.name, command->name);
    man_head(out, name, command->summary);
    fputs(".Sh SYNOPSIS\n", out);
    for (const char *p = command->synopsis; *p;) {
        const size_t len = strcspn(p, "\n");
        fprintf(out, ".Nm %s\n.Cm %s\n", cli_this.name, command->name);
        man_running(out, p, len);
        p += len + (p[len] == '\n');
    }
    fputs(".Sh DESCRIPTION\n", out);
    man_text(out, command->description);
    fputs(".Pp\nThe flags are:\n.Bl -tag -width Ds\n", out);
    cli_for_flags(out, command, man_flag);
    fputs(".El\n", out);
    for (const cli_section *s = command->sections; s && s->title; ++s) {
        man_title(out, s->title);
        man_text(out, s->text);
    }
    man_exits(out);
    man_examples(out, command->examples);
    fprintf(out, ".Sh SEE ALSO\n.Xr %s 1\n", cli_this.name);
}
