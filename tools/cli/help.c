#include "tools/cli/cli.h"

static int run(const cli_args *a)
{
    const cli_command *command = NULL;
    if (cli_switch(a, "list")) {
        for (size_t i = 0; cli_this.commands[i]; ++i)
            printf("%s\n", cli_this.commands[i]->name);
        return 0;
    }
    if (a->argc > 0 && !(command = cli_find_command(a->argv[0])))
        return cli_unknown_command(a->argv[0]);
    if (command && command->program) {
        const char *const first[] = {"help",
                                     cli_switch(a, "man")   ? "--man"
                                     : cli_switch(a, "all") ? "--all"
                                                            : NULL,
                                     NULL};
        return cli_become(command, first, a->argc - 1, a->argv + 1);
    }
    if (a->argc == 2)
        return cli_usage(a, "%s: one argument too many", a->argv[1]);
    if (cli_switch(a, "man"))
        cli_print_man(stdout, command);
    else
        cli_print_help(stdout, command, cli_switch(a, "all"));
    return 0;
}

static const cli_flag flags[] = {
    {"all", 'a', CLI_SWITCH, NULL, NULL,
     "show all flags of a command, as its `--help-all` does, not the usual ones alone"},
    {"man", 0, CLI_SWITCH, NULL, NULL, "print the manual page's source, for man(1), instead"},
    {"list", 0, CLI_SWITCH, NULL, NULL, "print the names of all commands, one a line"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx help query", "What `gpuidx query` can do."},
    {"gpuidx help bench codecs", "What `gpuidx bench codecs`, a command of gpuidx-bench, can do."},
    {"gpuidx help --man query | man -l -", "The same as a manual page, where it is not installed."},
    {NULL},
};

const cli_command cmd_help = {
    .name = "help",
    .summary = "say what the commands do",
    .synopsis = "[--all | --man] [COMMAND]\n--list",
    .description = "Prints what the program, or the named command, does, and the flags that are used most.",
    .examples = examples,
    .flags = flags,
    .max_args = 2,
    .run = run,
};
