/* completion.c: the table of commands and flags, told to shells; and the command `completion`. */
#include <libstemmer.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

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

/* A program's function in bash and zsh: _gpuidx_bench. */
static void put_function(FILE *out, const char *program)
{
    putc('_', out);
    for (; *program; ++program)
        putc(*program == '-' ? '_' : *program, out);
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
    return cli_choice_index("codec|tf-codec|analyzer|stemmer|stopwords|measures|scorer|topic-fields", flag->name) >= 0;
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
    } else if (strcmp(flag->name, "analyzer") == 0) {
        fputs("english simple whitespace multilingual code", out);
        for (const char **l = sb_stemmer_list(); *l; ++l)
            if (strcmp(*l, "english") != 0 && strcmp(*l, "porter") != 0)
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

/* A word that starts another program: the line as one of that program's. */
static void bash_other(FILE *out, const cli_command *command)
{
    fprintf(out, "    %s)\n        COMP_LINE=\"%s %s ${words[*]:2} ${line##*[[:space:]]}\"\n", command->name,
            command->program, command->command ? command->command : "");
    fputs("        COMP_POINT=${#COMP_LINE}\n        ", out);
    put_function(out, command->program);
    fputs("\n        return ;;\n", out);
}

static void put_bash(FILE *out)
{
    /* The words are taken from the line itself, because readline would also split them at "=" and
     * ":". */
    fprintf(out, "# bash completion for %s\n", cli_this.name);
    put_function(out, cli_this.name);
    fputs("() {\n"
          "    local line=${COMP_LINE:0:COMP_POINT} word prev flags= choices=\n"
          "    local -a words\n"
          "    word=${line##*[[:space:]]}\n"
          "    read -ra words <<<\"${line%\"$word\"}\"\n"
          "    COMPREPLY=()\n"
          "    if [ ${#words[@]} -le 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '--help --version",
          out);
    for (size_t i = 0; cli_this.commands[i]; ++i)
        fprintf(out, " %s", cli_this.commands[i]->name);
    fputs("' -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    prev=${words[${#words[@]}-1]}\n"
          "    if [[ $word = --*=* ]]; then prev=${word%%=*} word=${word#*=}; fi\n"
          "    case ${words[1]} in\n",
          out);
    for (size_t i = 0; cli_this.commands[i]; ++i) {
        if (cli_this.commands[i]->program) {
            bash_other(out, cli_this.commands[i]);
            continue;
        }
        fprintf(out, "    %s)\n        flags='", cli_this.commands[i]->name);
        cli_for_flags(out, cli_this.commands[i], bash_word);
        fputs("'\n        case $prev in\n", out);
        cli_for_flags(out, cli_this.commands[i], bash_choices);
        fputs("        esac ;;\n", out);
    }
    fputs("    esac\n"
          "    if [ \"${words[1]}\" = help ] && [[ $word != -* ]]; then\n"
          "        choices='",
          out);
    for (size_t i = 0; cli_this.commands[i]; ++i)
        fprintf(out, "%s%s", i ? " " : "", cli_this.commands[i]->name);
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
          "complete -F ",
          out);
    put_function(out, cli_this.name);
    fprintf(out, " %s\n", cli_this.name);
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
    put_function(out, cli_this.name);
    fputs("() {\n"
          "    local -a commands\n"
          "    commands=(\n",
          out);
    for (size_t i = 0; cli_this.commands[i]; ++i) {
        fprintf(out, "        '%s:", cli_this.commands[i]->name);
        put_quoted(out, cli_this.commands[i]->summary, true);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    case $words[2] in\n",
          out);
    for (size_t i = 0; cli_this.commands[i]; ++i) {
        const char *name = cli_this.commands[i]->name;
        if (cli_this.commands[i]->program) {
            fprintf(out, "    %s)\n        %s", name,
                    cli_this.commands[i]->command ? "" : "shift words; (( CURRENT-- )); ");
            put_function(out, cli_this.commands[i]->program);
            fputs(" ;;\n", out);
            continue;
        }
        fprintf(out, "    %s)\n        shift words; (( CURRENT-- ))\n        _arguments -s -S \\\n", name);
        cli_for_flags(out, cli_this.commands[i], zsh_flag);
        if (strcmp(name, "completion") == 0)
            fputs("        '*:shell:(bash zsh fish)' ;;\n", out);
        else if (strcmp(name, "help") == 0)
            fputs("        '*:command:{_describe command commands}' ;;\n", out);
        else
            fputs("        '*:file:_files' ;;\n", out);
    }
    fputs("    esac\n"
          "}\n",
          out);
}

static const char *fish_command; /* whose flags are being printed */

static void fish_flag(FILE *out, const cli_flag *flag, char letter)
{
    fprintf(out, "complete -c %s -n '__fish_seen_subcommand_from %s' -l %s", cli_this.name, fish_command, flag->name);
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

static void fish_other(FILE *out, const cli_command *command)
{
    fprintf(out,
            "function __%s_of_%s\n"
            "    set -l words (commandline -opc)\n"
            "    complete -C \"%s %s $words[3..-1] \"(commandline -ct)\n"
            "end\n"
            "complete -c %s -n '__fish_seen_subcommand_from %s' -f -a '(__%s_of_%s)'\n",
            cli_this.name, command->name, command->program, command->command ? command->command : "", cli_this.name,
            command->name, cli_this.name, command->name);
}

static void put_fish(FILE *out)
{
    fprintf(out, "# fish completion for %s\n", cli_this.name);
    for (size_t i = 0; cli_this.commands[i]; ++i) {
        fprintf(out, "complete -c %s -n __fish_use_subcommand -f -a %s -d '", cli_this.name,
                cli_this.commands[i]->name);
        put_quoted(out, cli_this.commands[i]->summary, false);
        fputs("'\n", out);
    }
    for (size_t i = 0; cli_this.commands[i]; ++i) {
        fish_command = cli_this.commands[i]->name;
        if (cli_this.commands[i]->program)
            fish_other(out, cli_this.commands[i]);
        else
            cli_for_flags(out, cli_this.commands[i], fish_flag);
        fprintf(out, "complete -c %s -n '__fish_seen_subcommand_from help' -f -a %s\n", cli_this.name, fish_command);
    }
    fprintf(out, "complete -c %s -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n", cli_this.name);
}

/* zsh loads the file of a program as the body of its function when that is called first. */
static void end_zsh(FILE *out, const char *program)
{
    fputs("if [ \"$funcstack[1]\" = ", out);
    put_function(out, program);
    fputs(" ]; then ", out);
    put_function(out, program);
    fputs(" \"$@\"; else compdef ", out);
    put_function(out, program);
    fprintf(out, " %s; fi\n", program);
}

/* A program that words of this one start, or NULL. */
static const char *other_program(void)
{
    for (size_t i = 0; cli_this.commands[i]; ++i)
        if (cli_this.commands[i]->program)
            return cli_this.commands[i]->program;
    return NULL;
}

static int run(const cli_args *a)
{
    static const struct {
        const char *name;
        void (*put)(FILE *out);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    const char *const shell = a->argv[0], *const other = other_program();
    const char *const more[] = {other, "completion", "--functions", shell, NULL};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; ++i) {
        if (strcmp(shells[i].name, shell) != 0)
            continue;
        if (strcmp(shell, "zsh") == 0 && !cli_switch(a, "functions"))
            printf("#compdef %s\n", cli_this.name);
        shells[i].put(stdout);
        const int code = other ? cli_run_beside(other, more) : 0;
        if (strcmp(shell, "zsh") == 0 && !cli_switch(a, "functions"))
            end_zsh(stdout, cli_this.name);
        return code;
    }
    return cli_usage(a, "%s: there is no completion for this shell; there is for bash, zsh and fish", shell);
}

static const cli_flag flags[] = {
    {"functions", 0, CLI_SWITCH, NULL, NULL,
     "print what another program's completion takes in: for zsh, functions alone"},
    {NULL},
};

static const cli_section examples[] = {
    {"source <(gpuidx completion bash)", "Completion in this shell, from now on."},
    {"gpuidx completion zsh >~/.zfunc/_gpuidx", "For zsh, in a folder of its `fpath`."},
    {"gpuidx completion fish >~/.config/fish/completions/gpuidx.fish", "For fish."},
    {NULL},
};

const cli_command cmd_completion = {
    .name = "completion",
    .summary = "print completions for a shell",
    .synopsis = "bash|zsh|fish",
    .description =
        "Prints a script for the shell. Once the shell has read it, the Tab key completes the commands of "
        "gpuidx, their flags, and the values of flags that have a fixed set of values. `meson install` has "
        "put these scripts where bash, zsh and fish look for them already; this command is for programs that "
        "were not installed.",
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
