#include "tools/cli/cli.h"

static int run(const cli_args *a)
{
    if (cli_print_completion(stdout, a->argv[0]))
        return 0;
    return cli_usage(a, "%s: there is no completion for this shell; there is for bash, zsh and fish", a->argv[0]);
}

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
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
