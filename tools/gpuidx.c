/* gpuidx.c: the list of all commands. Finds the one that is asked for and runs it. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/cli.h"
#include "tools/cli/signals.h"

const cli_command *const cli_commands[] = {
    &cmd_build, &cmd_query,   &cmd_replay,     &cmd_eval,  &cmd_sweep,  &cmd_calibrate, &cmd_info,
    &cmd_doc,   &cmd_term,    &cmd_analyze,    &cmd_check, &cmd_recode, &cmd_reorder,   &cmd_collect,
    &cmd_add,   &cmd_update,  &cmd_delete,     &cmd_merge, &cmd_import, &cmd_export,    &cmd_generate,
    &cmd_bench, &cmd_devices, &cmd_completion, &cmd_help,
#ifdef GX_SERVE
    &cmd_serve,
#endif
    NULL,
};

const cli_flag cli_common_flags[] = {
    {"help", 'h', CLI_SWITCH, NULL, NULL, "print this help and leave"},
    {"quiet", 'q', CLI_SWITCH, NULL, NULL, "print no progress and no notes; errors and warnings remain"},
    {"verbose", 'v', CLI_SWITCH, NULL, NULL, "say more: why a search runs on the CPU and not on a GPU"},
    {"color", 0, CLI_CHOICE, "auto|always|never", "auto",
     "colour the output; `auto` does on a terminal unless `NO_COLOR` is set"},
    {NULL},
};

int cli_unknown_command(const char *name)
{
    static const struct {
        const char *theirs, *ours;
    } verbs[] = {
        /* of other engines' programs */
        {"search", "query"},  {"retrieve", "query"}, {"ask", "query"},      {"index", "build"},
        {"create", "build"},  {"stats", "info"},     {"stat", "info"},      {"inspect", "info"},
        {"evaluate", "eval"}, {"trec_eval", "eval"}, {"convert", "recode"}, {"compress", "recode"},
        {"verify", "check"},  {"run", "replay"},     {"batch", "replay"},   {"benchmark", "replay"},
        {"dump", "export"},
    };
    const char *names[64];
    size_t n = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; ++i)
        if (strcmp(verbs[i].theirs, name) == 0)
            return cli_fail(GX_EUSAGE, "%s: there is no such command; here it is 'gpuidx %s'", name, verbs[i].ours);
    for (; cli_commands[n] && n < 64; ++n)
        names[n] = cli_commands[n]->name;
    const char *nearest = cli_nearest(name, names, n);
    if (nearest)
        return cli_fail(GX_EUSAGE, "%s: there is no such command; did you mean 'gpuidx %s'?", name, nearest);
    return cli_fail(GX_EUSAGE, "%s: there is no such command; 'gpuidx help' lists them", name);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_help(stderr, NULL);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("gpuidx %s\n", gx_version());
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_print_help(stdout, NULL);
        return 0;
    }
    if (argv[1][0] == '-')
        return cli_fail(GX_EUSAGE, "%s: a command comes first; 'gpuidx help' lists them", argv[1]);
    const cli_command *command = cli_find_command(argv[1]);
    return command ? cli_run(command, argc - 1, argv + 1) : cli_unknown_command(argv[1]);
}

/* If descriptor 0, 1 or 2 is closed, the next file that is opened would get it, and messages would
 * go into that file. So /dev/null is opened in its place, in a mode in which reading or writing
 * fails as on a closed descriptor. */
static void take_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(gx_status_exit(GX_EIO));
}

void cli_begin(void)
{
    take_standard_descriptors();
    signals_init();
}

int cli_main(int argc, char **argv)
{
    cli_begin();
    const int code = dispatch(argc, argv);
    const int late = cli_close_output(stdout, "-");
    return code ? code : late;
}
