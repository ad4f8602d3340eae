/* program.c: a program of commands: finds the one that is asked for and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/cli.h"
#include "tools/cli/signals.h"

const cli_flag cli_common_flags[] = {
    {"help", 'h', CLI_SWITCH, NULL, NULL, "print this help and exit"},
    {"help-all", 0, CLI_SWITCH, NULL, NULL, "print the help with all flags and exit"},
    {"quiet", 'q', CLI_SWITCH, NULL, NULL, "print no progress and no notes; errors and warnings remain"},
    {"verbose", 'v', CLI_SWITCH, NULL, NULL, "say more: why a search runs on the CPU and not on a GPU"},
    {"color", 0, CLI_CHOICE, "auto|always|never", "auto",
     "colour the output; `auto` does on a terminal unless `NO_COLOR` is set"},
    {NULL},
};

const cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; cli_this.commands[i]; ++i)
        if (strcmp(cli_this.commands[i]->name, name) == 0)
            return cli_this.commands[i];
    return NULL;
}

int cli_unknown_command(const char *name)
{
    const char *names[64];
    size_t n = 0;
    for (const cli_section *s = cli_this.others; s && s->title; ++s)
        if (strcmp(s->title, name) == 0)
            return cli_fail(GX_EUSAGE, "%s: there is no such command; here it is '%s %s'", name, cli_this.name,
                            s->text);
    for (; cli_this.commands[n] && n < 64; ++n)
        names[n] = cli_this.commands[n]->name;
    const char *nearest = cli_nearest(name, names, n);
    if (nearest)
        return cli_fail(GX_EUSAGE, "%s: there is no such command; did you mean '%s %s'?", name, cli_this.name, nearest);
    return cli_fail(GX_EUSAGE, "%s: there is no such command; '%s help' lists them", name, cli_this.name);
}

/* ---- programs beside this one ---- */

/* The path of a program in this one's folder. */
static bool find_beside(char path[PATH_MAX], const char *program)
{
    const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0)
        return false;
    path[n] = 0;
    char *const name = strrchr(path, '/') + 1;
    const size_t left = (size_t)(PATH_MAX - (name - path));
    return (size_t)snprintf(name, left, "%s", program) < left;
}

int cli_become(const cli_command *command, const char *const *first, int argc, char **argv)
{
    char path[PATH_MAX];
    const char **args = calloc((size_t)argc + 8, sizeof *args);
    size_t n = 0;
    if (!args)
        return cli_fail(GX_ENOMEM, "no memory for the command line");
    args[n++] = command->program;
    for (; first && *first && n < 4; ++first)
        args[n++] = *first;
    if (command->command)
        args[n++] = command->command;
    for (int i = 0; i < argc; ++i)
        args[n++] = argv[i];
    cli_flush();
    if (find_beside(path, command->program))
        execv(path, (char **)args);
    free(args);
    return cli_fail(GX_ENOTFOUND, "cannot run %s: %s; it belongs into the folder of %s", command->program,
                    strerror(errno), cli_this.name);
}

int cli_run_beside(const char *program, const char *const *args)
{
    char path[PATH_MAX];
    int status = 0;
    cli_flush();
    if (!find_beside(path, program) || access(path, F_OK) != 0)
        return 0;
    const pid_t pid = fork();
    if (pid == 0) {
        execv(path, (char **)args);
        _exit(gx_status_exit(GX_EIO));
    }
    if (pid < 0)
        return cli_fail(GX_ENOMEM, "cannot run %s: %s", program, strerror(errno));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return cli_fail(GX_EIO, "cannot wait for %s: %s", program, strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : gx_status_exit(GX_EINTERNAL);
}

/* ---- the program ---- */

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_help(stderr, NULL, false);
        return 2;
    }
    if (argc == 3 && strcmp(argv[1], "--version") == 0 && strcmp(argv[2], "--json") == 0) {
        puts(gx_build_description());
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("%s %s\n", cli_this.name, gx_version());
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_print_help(stdout, NULL, false);
        return 0;
    }
    if (argv[1][0] == '-')
        return cli_fail(GX_EUSAGE, "%s: a command comes first; '%s help' lists them", argv[1], cli_this.name);
    const cli_command *command = cli_find_command(argv[1]);
    if (command && !command->program && argc == 3 && strcmp(argv[2], "--version") == 0) {
        printf("%s %s\n", cli_this.name, gx_version());
        return 0;
    }
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
