#include "tools/bench/common.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codecs/words/simd.h"
#include "engine/api/gpuidx_advanced.h"
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

int bench_refuse(const cli_args *a, const char *with, const char *const *others, const char *why)
{
    for (; *others; ++others) {
        if (cli_given(a, *others))
            return cli_usage(a, "%s and --%s: %s", with, *others, why);
    }
    return 0;
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

/* Bytes inside double quotes of gnuplot. */
static void put_quoted(FILE *f, const char *text)
{
    for (; *text; ++text) {
        if (*text == '"' || *text == '\\')
            putc('\\', f);
        putc((unsigned char)*text < ' ' ? ' ' : *text, f);
    }
}

void bench_put_title(FILE *f, const char *what, const bench_subject *of)
{
    char cpu[128], date[32];
    const time_t now = time(NULL);
    struct tm day;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    fputs("set title \"", f);
    put_quoted(f, what);
    fputs("\\n", f);
    const char *const words[] = {of->index, of->log, cpu_name(cpu), of->gpu};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
        if (!words[i] || !*words[i])
            continue;
        put_quoted(f,
                   i < 2 && strrchr(words[i], '/') ? strrchr(words[i], '/') + 1 : words[i]); /* of a path, its name */
        fputs(i == 0 && of->log ? ", " : "; ", f);
    }
    fprintf(f, "gpuidx %s, %s\" noenhanced\n", gx_version(), date);
    fputs("set linetype 5 linecolor rgb '#8c6d1f'\n", f); /* gnuplot's own is yellow */
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

static struct {
    bool force;
    FILE *f;
    char *text;
    size_t n;
} script;

void bench_plot_force(bool force)
{
    script.force = force;
}

static const char *const endings[] = {"gp", "png", "svg"}; /* the script, and what it makes */

FILE *bench_script_begin(const char *dir, const char *name, int *exit_code)
{
    char path[2 * MAX_DIR];
    if ((*exit_code = bench_plot_dir(dir)) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && !script.force; ++i) {
        snprintf(path, sizeof path, "%s/%s.%s", dir, name, endings[i]);
        if (access(path, F_OK) == 0) {
            *exit_code = cli_fail(GX_EEXISTS, "%s exists: use --force to replace it, or give another folder", path);
            return NULL;
        }
    }
    if (!(script.f = open_memstream(&script.text, &script.n)))
        *exit_code = cli_fail(GX_ENOMEM, "no memory for a plot");
    return script.f;
}

/* Give what gnuplot has made its name, unless it is empty: gnuplot makes the file before it knows that there is
 * nothing to
 * draw. */
static void keep_image(const char *made, const char *dir, const char *name, const char *ending)
{
    char from[2 * MAX_DIR], to[2 * MAX_DIR];
    struct stat s;
    snprintf(from, sizeof from, "%s/%s.%s", made, name, ending);
    snprintf(to, sizeof to, "%s/%s.%s", dir, name, ending);
    if (stat(from, &s) == 0 && (s.st_size == 0 || rename(from, to) != 0))
        unlink(from);
}

/* In a folder beside the plots, so that these appear whole. */
static void draw(const char *dir, const char *name)
{
    static bool told;
    char made[MAX_DIR + 32], path[2 * MAX_DIR], command[3 * MAX_DIR];
    gx_error err = {0};
    if (system("command -v gnuplot >/dev/null 2>&1") != 0) {
        if (!told)
            cli_warn("there is no gnuplot, and so no image; %s has the scripts to draw them, NAME.gp", dir);
        told = true;
        return;
    }
    snprintf(made, sizeof made, "%s/.gpuidx-plot-XXXXXX", dir);
    if (!mkdtemp(made)) {
        cli_warn("cannot make a folder in %s, and so no image; NAME.gp are the scripts to draw them", dir);
        return;
    }
    snprintf(path, sizeof path, "%s/%s.gp", made, name);
    snprintf(command, sizeof command, "cd '%s' && gnuplot '%s.gp'", made, name);
    if (gx_write_file(path, script.text, script.n, false, &err) || system(command) != 0)
        cli_warn("gnuplot did not draw %s/%s.gp; it is there to be drawn", dir, name);
    keep_image(made, dir, name, "png");
    keep_image(made, dir, name, "svg");
    unlink(path);
    rmdir(made);
}

int bench_script_end(const char *dir, const char *name)
{
    char path[2 * MAX_DIR];
    gx_error err = {0};
    const bool bad = fclose(script.f) != 0;
    snprintf(path, sizeof path, "%s/%s.gp", dir, name);
    int code = bad ? cli_fail(GX_ENOMEM, "no memory for a plot") : 0;
    if (!code && gx_write_file(path, script.text, script.n, script.force, &err))
        code = cli_fail_error(&err);
    if (!code)
        draw(dir, name);
    free(script.text);
    script.text = NULL;
    return code;
}
