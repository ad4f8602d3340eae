/* manual.c: the table of commands and flags, told to people (--help, mdoc manual pages) and to
 * shells (completions). */
#include <libstemmer.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

static const char program_summary[] = "index text and search it by BM25, on the GPU or the CPU";

static const char program_description[] =
    "`gpuidx` builds inverted indexes of text collections and answers ranked queries from them. An index is one "
    "file, which holds all that a query needs: terms, compressed postings, document lengths, ids and titles, and how "
    "text was made into terms. Searching runs on a GPU where there is one and else on the CPU, with the same answers "
    "to the bit. Replace an index that is in use with `build --force` or by `mv`; a program that reads an index which "
    "is overwritten in place ends with exit code 4.";

static const cli_section program_examples[] = {
    {"gpuidx build corpus.jsonl.gz -o corpus.gx", "Index a collection."},
    {"gpuidx query corpus.gx 'inverted index compression'", "Ask it something."},
    {"gpuidx replay corpus.gx queries.txt --run run.txt", "Run a query log, and write its results for `gpuidx eval`."},
    {NULL},
};

static const struct {
    int code;
    const char *meaning;
} exits[] = {
    {0, "done, whatever the number of results"},
    {1, "a negative answer: damage or a difference that was looked for was found, or, if asked for, no result"},
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

/* Call `each` for all flags, the command's own first. */
typedef void flag_fn(FILE *out, const cli_flag *flag, char letter);
static void for_flags(FILE *out, const cli_command *command, flag_fn *each)
{
    if (command && command->flags)
        for (const cli_flag *f = command->flags; f->name; ++f)
            each(out, f, f->letter);
    for (const cli_flag *f = cli_common_flags; f->name; ++f)
        each(out, f, letter_of(command, f, true));
}

/* The same, with the flags of all subcommands: each name once. */
static void for_all_flags(FILE *out, const cli_command *command, flag_fn *each)
{
    for (size_t i = 0; command->subcommands && command->subcommands[i]; ++i)
        for (const cli_flag *f = command->subcommands[i]->flags; f->name; ++f) {
            bool seen = false;
            for (size_t j = 0; j < i; ++j)
                for (const cli_flag *g = command->subcommands[j]->flags; g->name; ++g)
                    seen |= strcmp(f->name, g->name) == 0;
            if (!seen)
                each(out, f, f->letter);
        }
    for_flags(out, command, each);
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
    fprintf(out, "%sgpuidx%s - %s\n\nUsage: gpuidx COMMAND [OPTIONS] ...\n\n", cli_paint(out, CLI_BOLD),
            cli_paint(out, CLI_PLAIN), program_summary);
    put_text(out, program_description, 0);
    put_title(out, "Commands");
    for (size_t i = 0; cli_commands[i]; ++i)
        fprintf(out, "  %-12s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    help_examples(out, program_examples);
    help_exits(out);
    fputs("\n'gpuidx help COMMAND' says more about each; 'gpuidx --version' is the version.\n", out);
}

void cli_print_help(FILE *out, const cli_command *command)
{
    if (!command) {
        help_program(out);
        return;
    }
    fprintf(out, "%sgpuidx %s%s - %s\n\n", cli_paint(out, CLI_BOLD), command->name, cli_paint(out, CLI_PLAIN),
            command->summary);
    const char *lead = "Usage:";
    for (const char *p = command->synopsis; *p; lead = "      ") {
        const size_t len = strcspn(p, "\n");
        fprintf(out, "%s gpuidx %s %.*s\n", lead, command->name, (int)len, p);
        p += len + (p[len] == '\n');
    }
    putc('\n', out);
    put_text(out, command->description, 0);
    if (command->subcommands) {
        put_title(out, "Commands");
        for (size_t i = 0; command->subcommands[i]; ++i)
            fprintf(out, "  %-14s %s\n", command->subcommands[i]->name, command->subcommands[i]->summary);
    }
    put_title(out, "Flags");
    for_flags(out, command, help_flag);
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
    man_head(out, "gpuidx", program_summary);
    fputs(".Sh SYNOPSIS\n"
          ".Nm gpuidx\n"
          ".Ar command\n"
          ".Op Ar options\n"
          ".Ar ...\n"
          ".Nm gpuidx\n"
          ".Fl \\-version\n"
          ".Sh DESCRIPTION\n",
          out);
    man_text(out, program_description);
    fputs(".Pp\nThe commands are:\n.Bl -tag -width completion\n", out);
    for (size_t i = 0; cli_commands[i]; ++i)
        fprintf(out, ".It Cm %s\n%s; see\n.Xr gpuidx-%s 1\n", cli_commands[i]->name, cli_commands[i]->summary,
                cli_commands[i]->name);
    fputs(".El\n.Pp\nEvery command takes these flags:\n.Bl -tag -width Ds\n", out);
    for_flags(out, NULL, man_flag);
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
    man_examples(out, program_examples);
}

void cli_print_man(FILE *out, const cli_command *command)
{
    char name[64];
    if (!command) {
        man_program(out);
        return;
    }
    snprintf(name, sizeof name, "gpuidx-%s", command->name);
    for (char *blank; (blank = strchr(name, ' '));)
        *blank = '-';
    man_head(out, name, command->summary);
    fputs(".Sh SYNOPSIS\n", out);
    for (const char *p = command->synopsis; *p;) {
        const size_t len = strcspn(p, "\n");
        fprintf(out, ".Nm gpuidx\n.Cm %s\n", command->name);
        man_running(out, p, len);
        p += len + (p[len] == '\n');
    }
    fputs(".Sh DESCRIPTION\n", out);
    man_text(out, command->description);
    if (command->subcommands) {
        fputs(".Pp\nThere are:\n.Bl -tag -width completion\n", out);
        for (size_t i = 0; command->subcommands[i]; ++i)
            fprintf(out, ".It Cm %s\n%s; see\n.Xr gpuidx-%s-%s 1\n", command->subcommands[i]->name,
                    command->subcommands[i]->summary, command->name, cli_subcommand_word(command->subcommands[i]));
        fputs(".El\n", out);
    }
    fputs(".Pp\nThe flags are:\n.Bl -tag -width Ds\n", out);
    for_flags(out, command, man_flag);
    fputs(".El\n", out);
    for (const cli_section *s = command->sections; s && s->title; ++s) {
        man_title(out, s->title);
        man_text(out, s->text);
    }
    man_exits(out);
    man_examples(out, command->examples);
    fputs(".Sh SEE ALSO\n.Xr gpuidx 1\n", out);
}

/* ---- completions ---- */

/* A choice's words with blanks between them; for zsh, colons escaped. */
static void put_words(FILE *out, const char *choices, bool zsh)
{
    for (; *choices; ++choices) {
        if (zsh && *choices == ':')
            putc('\\', out);
        putc(*choices == '|' ? ' ' : *choices, out);
    }
}

/* text inside single quotes of a shell, without back quotes; colons and brackets escaped for zsh if
 * asked. */
static void put_quoted(FILE *out, const char *text, bool zsh)
{
    for (; *text; ++text) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (zsh && strchr("[]:\\", *text))
            fprintf(out, "\\%c", *text);
        else if (*text != '`')
            putc(*text, out);
    }
}

/* The words that may follow the command's name. */
static void put_subcommands(FILE *out, const cli_command *command)
{
    for (size_t i = 0; command->subcommands[i]; ++i)
        fprintf(out, "%s%s", i ? " " : "", cli_subcommand_word(command->subcommands[i]));
}

static void bash_word(FILE *out, const cli_flag *flag, char letter)
{
    fprintf(out, " --%s%s", flag->name, flag->kind == CLI_SWITCH || flag->bare ? "" : "=");
    if (letter)
        fprintf(out, " -%c", letter);
}

/* Does the flag take a name, of those that put_names prints? */
static bool has_names(const cli_flag *flag)
{
    return cli_choice_index("codec|tf-codec|stemmer|stopwords|measures|scorer|topic-fields", flag->name) >= 0;
}

/* The values of a flag that takes a name without being a choice; for zsh, colons escaped. */
static void put_names(FILE *out, const cli_flag *flag, bool zsh)
{
    if (strcmp(flag->name, "codec") == 0 || strcmp(flag->name, "tf-codec") == 0) {
        fputs("auto", out);
        for (uint32_t i = 0; gx_codec_name(i); ++i)
            fprintf(out, " %s", gx_codec_name(i));
    } else if (strcmp(flag->name, "stemmer") == 0) {
        fputs("none", out);
        for (const char **l = sb_stemmer_list(); *l; ++l)
            fprintf(out, " %s", *l);
    } else if (strcmp(flag->name, "stopwords") == 0) {
        fputs("none lucene", out);
    } else if (strcmp(flag->name, "scorer") == 0) {
        for (int i = 0; i < GX_N_PRESETS; ++i) {
            fputs(i ? " " : "", out);
            put_words(out, gx_preset_name((gx_preset)i), zsh);
        }
    } else if (strcmp(flag->name, "topic-fields") == 0) {
        fputs("title desc narr", out);
    } else if (strcmp(flag->name, "measures") == 0) {
        fputs("official map map@1000 P@10 recall@100 recall@1000 success@10 ndcg ndcg@10 Rprec recip_rank bpref gm_map "
              "iprec@0.1 ERR@20 judged@10 num_q num_ret num_rel num_rel_ret",
              out);
    }
}

/* Does the flag take a file as well? */
static bool or_file(const cli_flag *flag)
{
    return strcmp(flag->name, "stopwords") == 0;
}

static void bash_choices(FILE *out, const cli_flag *flag, char letter)
{
    const bool names = flag->kind == CLI_TEXT && has_names(flag);
    if (flag->kind != CLI_CHOICE && !names)
        return;
    fprintf(out, "        --%s", flag->name);
    if (letter)
        fprintf(out, "|-%c", letter);
    fputs(") choices='", out);
    if (names)
        put_names(out, flag, false);
    else
        put_words(out, flag->arg, false);
    fputs("' ;;\n", out);
}

static void put_bash(FILE *out)
{
    /* The words are taken from the line itself, because readline would also split them at "=" and
     * ":". */
    fputs("# bash completion for gpuidx\n"
          "_gpuidx() {\n"
          "    local line=${COMP_LINE:0:COMP_POINT} word prev flags= choices=\n"
          "    local -a words\n"
          "    word=${line##*[[:space:]]}\n"
          "    read -ra words <<<\"${line%\"$word\"}\"\n"
          "    COMPREPLY=()\n"
          "    if [ ${#words[@]} -le 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '--help --version",
          out);
    for (size_t i = 0; cli_commands[i]; ++i)
        fprintf(out, " %s", cli_commands[i]->name);
    fputs("' -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    prev=${words[${#words[@]}-1]}\n"
          "    if [[ $word = --*=* ]]; then prev=${word%%=*} word=${word#*=}; fi\n"
          "    case ${words[1]} in\n",
          out);
    for (size_t i = 0; cli_commands[i]; ++i) {
        fprintf(out, "    %s)\n        flags='", cli_commands[i]->name);
        for_all_flags(out, cli_commands[i], bash_word);
        fputs("'\n        case $prev in\n", out);
        for_all_flags(out, cli_commands[i], bash_choices);
        if (cli_commands[i]->subcommands) {
            fprintf(out, "        %s) [[ $word = -* ]] || choices='", cli_commands[i]->name);
            put_subcommands(out, cli_commands[i]);
            fputs("' ;;\n", out);
        }
        fputs("        esac ;;\n", out);
    }
    fputs("    esac\n"
          "    if [ \"${words[1]}\" = help ] && [[ $word != -* ]]; then\n"
          "        choices='",
          out);
    for (size_t i = 0; cli_commands[i]; ++i)
        fprintf(out, "%s%s", i ? " " : "", cli_commands[i]->name);
    fputs("'\n"
          "    elif [ \"${words[1]}\" = completion ] && [[ $word != -* ]]; then\n"
          "        choices='bash zsh fish'\n"
          "    fi\n"
          "    if [ -n \"$choices\" ]; then\n"
          "        local before= # the values of a list that stand already\n"
          "        [[ $word = *,* ]] && before=${word%,*},\n"
          "        COMPREPLY=($(compgen -P \"$before\" -W \"$choices\" -- \"${word##*,}\"))\n"
          "        local colon=${word%\"${word##*:}\"}\n"
          "        COMPREPLY=(\"${COMPREPLY[@]#\"$colon\"}\")\n"
          "    elif [[ $word = -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
          "        [[ ${COMPREPLY-} = *= ]] && compopt -o nospace\n"
          "    else\n"
          "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
          "        compopt -o filenames\n"
          "    fi\n"
          "}\n"
          "complete -F _gpuidx gpuidx\n",
          out);
}

static void zsh_flag(FILE *out, const cli_flag *flag, char letter)
{
    for (int form = letter ? 0 : 1; form < 2; ++form) {
        const bool is_long = form == 1;
        fputs("        '", out);
        if (is_long)
            fprintf(out, "--%s%s[", flag->name, flag->kind == CLI_SWITCH || flag->bare ? "" : "=");
        else
            fprintf(out, "-%c%s[", letter, flag->kind == CLI_SWITCH ? "" : "+");
        put_quoted(out, flag->help, true);
        putc(']', out);
        if (flag->kind == CLI_CHOICE) {
            fprintf(out, ":%s:(", flag->name);
            put_words(out, flag->arg, true);
            putc(')', out);
        } else if (flag->kind == CLI_TEXT && has_names(flag)) {
            fprintf(out, ":%s:%s", flag->name, or_file(flag) ? "{compadd " : "(");
            put_names(out, flag, true);
            fputs(or_file(flag) ? "; _files}" : ")", out);
        } else if (flag->kind != CLI_SWITCH && !flag->bare) {
            fprintf(out, ":%s:%s", flag->arg, flag->kind == CLI_TEXT ? "_files" : "");
        }
        fputs("' \\\n", out);
    }
}

static void put_zsh(FILE *out)
{
    fputs("#compdef gpuidx\n"
          "_gpuidx() {\n"
          "    local -a commands\n"
          "    commands=(\n",
          out);
    for (size_t i = 0; cli_commands[i]; ++i) {
        fprintf(out, "        '%s:", cli_commands[i]->name);
        put_quoted(out, cli_commands[i]->summary, true);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    case $words[2] in\n",
          out);
    for (size_t i = 0; cli_commands[i]; ++i) {
        const char *name = cli_commands[i]->name;
        fprintf(out, "    %s)\n        shift words; (( CURRENT-- ))\n        _arguments -s -S \\\n", name);
        for_all_flags(out, cli_commands[i], zsh_flag);
        if (cli_commands[i]->subcommands) {
            fprintf(out, "        '1:%s:(", name);
            put_subcommands(out, cli_commands[i]);
            fputs(")' \\\n", out);
        }
        if (strcmp(name, "completion") == 0)
            fputs("        '*:shell:(bash zsh fish)' ;;\n", out);
        else if (strcmp(name, "help") == 0)
            fputs("        '*:command:{_describe command commands}' ;;\n", out);
        else
            fputs("        '*:file:_files' ;;\n", out);
    }
    fputs("    esac\n"
          "}\n"
          "if [ \"$funcstack[1]\" = _gpuidx ]; then _gpuidx \"$@\"; else compdef _gpuidx gpuidx; fi\n",
          out);
}

static const char *fish_command; /* whose flags are being printed */

static void fish_flag(FILE *out, const cli_flag *flag, char letter)
{
    fprintf(out, "complete -c gpuidx -n '__fish_seen_subcommand_from %s' -l %s", fish_command, flag->name);
    if (letter)
        fprintf(out, " -s %c", letter);
    if (flag->kind == CLI_CHOICE) {
        fputs(" -x -a '", out);
        put_words(out, flag->arg, false);
        putc('\'', out);
    } else if (flag->kind == CLI_TEXT && has_names(flag)) {
        fputs(or_file(flag) ? " -r -a '" : " -x -a '", out);
        put_names(out, flag, false);
        putc('\'', out);
    } else if (flag->kind != CLI_SWITCH && !flag->bare) {
        fputs(flag->kind == CLI_TEXT ? " -r" : " -x", out);
    }
    fputs(" -d '", out);
    put_quoted(out, flag->help, false);
    fputs("'\n", out);
}

static void put_fish(FILE *out)
{
    fputs("# fish completion for gpuidx\n", out);
    for (size_t i = 0; cli_commands[i]; ++i) {
        fprintf(out, "complete -c gpuidx -n __fish_use_subcommand -f -a %s -d '", cli_commands[i]->name);
        put_quoted(out, cli_commands[i]->summary, false);
        fputs("'\n", out);
    }
    for (size_t i = 0; cli_commands[i]; ++i) {
        fish_command = cli_commands[i]->name;
        for_all_flags(out, cli_commands[i], fish_flag);
        if (cli_commands[i]->subcommands) {
            fprintf(out, "complete -c gpuidx -n '__fish_seen_subcommand_from %s' -f -a '", fish_command);
            put_subcommands(out, cli_commands[i]);
            fputs("'\n", out);
        }
        fprintf(out, "complete -c gpuidx -n '__fish_seen_subcommand_from help' -f -a %s\n", fish_command);
    }
    fputs("complete -c gpuidx -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n", out);
}

bool cli_print_completion(FILE *out, const char *shell)
{
    static const struct {
        const char *name;
        void (*put)(FILE *out);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; ++i)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].put(out);
            return true;
        }
    return false;
}
