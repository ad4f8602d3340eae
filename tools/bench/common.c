#include "tools/bench/common.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codecs/words/simd.h"
#include "tools/cli/cli.h"

enum { MAX_DIR = 2048 };

/* The model's name as Linux has it. */
static const char *cpu_name(char name[128])
{
    char line[512];
    FILE *const f = fopen("/proc/cpuinfo", "r");
    snprintf(name, 128, "unknown CPU");
    while (f && fgets(line, sizeof line, f)) {
        const char *const colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, 128, "%.127s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (f)
        fclose(f);
    return name;
}

void bench_print_machine(uint64_t seed)
{
    char name[128];
    printf("gpuidx %s; %s, %s; seed %llu\n", gx_version(), cpu_name(name), gx_simd_best()->title,
           (unsigned long long)seed);
}

void bench_put_machine(json_t *report, uint64_t seed)
{
    char name[128];
    json_object_set_new(report, "gpuidx", json_string(gx_version()));
    json_object_set_new(report, "cpu", json_string(cpu_name(name)));
    json_object_set_new(report, "simd", json_string(gx_simd_best()->title));
    json_object_set_new(report, "seed", json_integer((json_int_t)seed));
}

json_t *bench_json(double x)
{
    return x > 0 ? json_real(x) : json_null();
}

int bench_print_json(json_t *report)
{
    char *text = report ? json_dumps(report, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) : NULL;
    json_decref(report);
    if (!text)
        return cli_fail(GX_ENOMEM, "no memory for the report");
    puts(text);
    free(text);
    return 0;
}

int bench_plot_dir(const char *dir)
{
    char path[MAX_DIR + 16];
    struct stat s;
    if (strchr(dir, '\'') || strchr(dir, '\n') || strlen(dir) > MAX_DIR)
        return cli_fail(GX_EUSAGE, "%s: gnuplot cannot be told this name", dir);
    if (mkdir(dir, 0777) != 0 && (stat(dir, &s) != 0 || !S_ISDIR(s.st_mode)))
        return cli_fail(GX_EIO, "cannot make the folder %s", dir);
    snprintf(path, sizeof path, "%s/.XXXXXX", dir); /* access() says yes to root even where nothing can be written */
    const int fd = mkstemp(path);
    if (fd < 0)
        return cli_fail(GX_EIO, "cannot write to %s", dir);
    close(fd);
    unlink(path);
    return 0;
}

/* gnuplot makes the file before it knows that there is nothing to draw. */
static void remove_empty(const char *dir, const char *name, const char *ending)
{
    char path[2 * MAX_DIR];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s.%s", dir, name, ending);
    if (stat(path, &s) == 0 && s.st_size == 0)
        unlink(path);
}

void bench_draw(const char *dir, const char *name)
{
    static bool told;
    char command[2 * MAX_DIR];
    if (system("command -v gnuplot >/dev/null 2>&1") != 0) {
        if (!told)
            cli_warn("there is no gnuplot, and so no image; %s has the scripts to draw them, NAME.gp", dir);
        told = true;
        return;
    }
    snprintf(command, sizeof command, "cd '%s' && gnuplot '%s.gp'", dir, name);
    if (system(command) != 0)
        cli_warn("gnuplot did not draw %s/%s.gp; it is there to be drawn", dir, name);
    remove_empty(dir, name, "png");
    remove_empty(dir, name, "svg");
}
