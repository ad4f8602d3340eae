/* mpi_build.c: gpuidx-mpi build: a corpus dealt to parts, the parts to processes.
 *
 *   CORPUS... -> shares of about equal bytes, in order -> COLLECTION.parts/part-NNNNNN.gx, each by
 *   cmd_build -> collect -> COLLECTION
 *
 * COLLECTION.parts/PLAN says what the parts are made of, so that a command that is given again
 * takes those that are there, and one that is another does not.
 */
#define _XOPEN_SOURCE 700
#include "tools/mpi_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/api/gpuidx_advanced.h"

#define FILES_A_PART 4u /* with as many files, parts are of about equal size without cutting one */

/* Bytes [begin, end) of a corpus file. */
typedef struct stretch {
    const char *path;
    uint64_t begin, end;
} stretch;

/* What a part is made of. */
typedef struct share {
    stretch *stretches;
    uint32_t n;
} share;

typedef struct job {
    const cli_args *a;
    int argc; /* the command line, as it was given */
    char **argv;
    const char *output;
    char *folder;    /* OUTPUT.parts */
    uint64_t *sizes; /* [a->argc] */
    bool quiet;      /* the builds of the parts always are */
    bool cut;        /* files may be cut between lines */
    uint32_t n;      /* parts */
    share *shares;
} job;

static job *current; /* the command table's run has no other argument than cli_args */

/* ---- shares ---- */

static uint64_t tree_bytes, tree_state;

/* A hash of what a file is known by: name, size and time. */
static uint64_t file_state(const char *path, const struct stat *s)
{
    const uint64_t state[] = {XXH3_64bits(path, strlen(path)), (uint64_t)s->st_size, (uint64_t)s->st_mtim.tv_sec,
                              (uint64_t)s->st_mtim.tv_nsec};
    return XXH3_64bits(state, sizeof state);
}

static int add_file(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)at;
    tree_bytes += kind == FTW_F ? (uint64_t)s->st_size : 0;
    tree_state += kind == FTW_F ? file_state(path, s) : 0; /* in any order */
    return 0;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Whether each line of the file is a document, whichever lines come before. */
static bool is_of_lines(const cli_args *a, const char *path)
{
    const char *format = cli_given(a, "format") ? cli_text(a, "format") : NULL;
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode) || ends_with(path, ".gz") || ends_with(path, ".xz") ||
        ends_with(path, ".bz2") || ends_with(path, ".zst"))
        return false;
    if (!format)
        return ends_with(path, ".jsonl");
    return strcmp(format, "jsonl") == 0 || strcmp(format, "vectors") == 0 ||
           (strcmp(format, "tsv") == 0 && cli_given(a, "columns"));
}

static int measure_inputs(job *j)
{
    const cli_args *a = j->a;
    j->cut = true;
    for (int i = 0; i < a->argc; ++i) {
        struct stat s;
        if (strcmp(a->argv[i], "-") == 0)
            return cli_fail(GX_EUSAGE, "-: standard input cannot be dealt to processes; name files");
        if (stat(a->argv[i], &s) != 0)
            return cli_fail(GX_ENOTFOUND, "cannot open %s: %s", a->argv[i], strerror(errno));
        tree_bytes = (uint64_t)s.st_size;
        if (S_ISDIR(s.st_mode)) {
            tree_bytes = 0;
            nftw(a->argv[i], add_file, 16, FTW_PHYS);
        }
        j->sizes[i] = tree_bytes;
        j->cut = j->cut && is_of_lines(a, a->argv[i]);
    }
    j->cut = j->cut && (uint32_t)a->argc < FILES_A_PART * j->n;
    return 0;
}

/* The beginning of the first line at or behind `at`. */
static uint64_t find_line(const char *path, uint64_t at, uint64_t size)
{
    FILE *f = fopen(path, "rb");
    int c = 0;
    if (!f || at == 0 || at >= size || fseeko(f, (off_t)at - 1, SEEK_SET) != 0) {
        if (f)
            fclose(f);
        return at < size ? at : size;
    }
    for (--at; c != '\n' && (c = getc(f)) != EOF;)
        ++at;
    fclose(f);
    return at;
}

static bool add_stretch(share *s, const char *path, uint64_t begin, uint64_t end)
{
    stretch *more = realloc(s->stretches, (s->n + 1ull) * sizeof *more);
    if (!more)
        return false;
    s->stretches = more;
    s->stretches[s->n++] = (stretch){path, begin, end};
    return true;
}

/* Part p has the bytes from total * p / n on: those of whole lines, or of the files whose middles
 * are there. */
static int deal(job *j)
{
    const cli_args *a = j->a;
    uint64_t total = 0, before = 0;
    bool ok = true;
    for (int i = 0; i < a->argc; ++i)
        total += j->sizes[i];
    for (int i = 0; i < a->argc && ok; ++i) {
        const uint64_t size = j->sizes[i];
        for (uint32_t p = 0; p < j->n && ok; ++p) {
            const uint64_t from = (uint64_t)((double)total * p / j->n), to = (uint64_t)((double)total * (p + 1) / j->n);
            if (j->cut) {
                const uint64_t begin = from <= before ? 0 : find_line(a->argv[i], from - before, size);
                const uint64_t end = p + 1 == j->n ? size : to <= before ? 0 : find_line(a->argv[i], to - before, size);
                ok = begin >= end || add_stretch(&j->shares[p], a->argv[i], begin, end);
            } else if (before + size / 2 >= from && (before + size / 2 < to || p + 1 == j->n)) {
                ok = add_stretch(&j->shares[p], a->argv[i], 0, size);
                break;
            }
        }
        before += size;
    }
    for (uint32_t p = 0; p < j->n && ok; ++p)
        if (j->shares[p].n == 0)
            return cli_fail(GX_EUSAGE,
                            "the corpus cannot be dealt to %u parts of about equal size: part %u has no "
                            "file; give --parts=P, or a corpus of more files",
                            j->n, p + 1);
    return ok ? 0 : cli_fail(GX_ENOMEM, "out of memory");
}

/* ---- one part ---- */

/* What a thread writes to the pipe that is the build's standard input. */
typedef struct feed {
    const share *s;
    int fd;
    bool failed;
} feed;

static void *feed_stretches(void *user)
{
    feed *f = user;
    static const size_t most = 1 << 16;
    char *buffer = malloc(most);
    f->failed = !buffer;
    for (uint32_t i = 0; i < f->s->n && !f->failed; ++i) {
        const stretch *s = &f->s->stretches[i];
        const int in = open(s->path, O_RDONLY | O_CLOEXEC);
        f->failed = in < 0;
        for (uint64_t at = s->begin; at < s->end && !f->failed;) {
            const size_t want = s->end - at < most ? (size_t)(s->end - at) : most;
            const ssize_t n = pread(in, buffer, want, (off_t)at);
            f->failed = n <= 0;
            for (ssize_t done = 0; done < n && !f->failed;) {
                const ssize_t written = write(f->fd, buffer + done, (size_t)(n - done));
                f->failed = written <= 0;
                done += written > 0 ? written : 0;
            }
            at += n > 0 ? (uint64_t)n : 0;
        }
        if (in >= 0)
            close(in);
    }
    close(f->fd);
    free(buffer);
    return NULL;
}

/* Whether the argument belongs to the whole build alone; *n: how many arguments it takes. */
static bool is_of_whole(const job *j, char *const *argv, int *n)
{
    static const char *const names[] = {"--output", "--parts", "--force", "--json"};
    *n = 1;
    for (int i = 0; i < j->a->argc; ++i)
        if (argv[0] == j->a->argv[i])
            return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const size_t len = strlen(names[i]);
        if (strncmp(argv[0], names[i], len) == 0 && (argv[0][len] == 0 || argv[0][len] == '=')) {
            *n = argv[0][len] == 0 && i < 2 ? 2 : 1;
            return true;
        }
    }
    if (argv[0][0] == '-' && argv[0][1] == 'o') {
        *n = argv[0][2] ? 1 : 2;
        return true;
    }
    return strcmp(argv[0], "--") == 0;
}

/* cmd_build with the files of the share, or with standard input, which they are fed to. */
static int run_build(const job *j, const share *s, char *path, bool fed)
{
    char force[] = "--force", quiet[] = "--quiet", output[] = "--output", format[] = "--format=jsonl", in[] = "-";
    char **own = calloc((size_t)j->argc + s->n + 8, sizeof *own);
    int n = 0, skip;
    if (!own)
        return cli_fail(GX_ENOMEM, "out of memory");
    for (int i = 0; i < j->argc; ++i)
        if (is_of_whole(j, j->argv + i, &skip))
            i += skip - 1;
        else
            own[n++] = j->argv[i];
    own[n++] = force;
    own[n++] = quiet;
    own[n++] = output;
    own[n++] = path;
    if (fed && !cli_given(j->a, "format"))
        own[n++] = format;
    if (fed)
        own[n++] = in;
    for (uint32_t i = 0; i < s->n && !fed; ++i)
        own[n++] = (char *)(uintptr_t)s->stretches[i].path;
    const int code = cli_run(&cmd_build, n, own);
    free(own);
    return code;
}

static int build_fed(const job *j, const share *s, char *path)
{
    int ends[2];
    pthread_t thread;
    const int before = dup(STDIN_FILENO);
    if (pipe(ends) != 0)
        return cli_fail(GX_EIO, "cannot make a pipe: %s", strerror(errno));
    feed f = {s, ends[1], false};
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    if (pthread_create(&thread, NULL, feed_stretches, &f) != 0) {
        close(ends[1]);
        return cli_fail(GX_ENOMEM, "cannot start a thread");
    }
    int code = run_build(j, s, path, true);
    if (before >= 0) { /* the pipe has no reader any more, so that the thread ends */
        dup2(before, STDIN_FILENO);
        close(before);
    } else {
        close(STDIN_FILENO);
    }
    pthread_join(thread, NULL);
    if (!code && f.failed)
        code = cli_fail(GX_EIO, "cannot read %s", s->stretches[0].path);
    for (uint32_t i = 0; i < s->n && code; ++i)
        cli_warn("stdin %s bytes %" PRIu64 " to %" PRIu64 " of %s", i ? "and then" : "is", s->stretches[i].begin,
                 s->stretches[i].end, s->stretches[i].path);
    return code;
}

static char *path_of(const job *j, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", j->folder, name) < 0 ? NULL : path;
}

static char *part_path(const job *j, uint32_t p)
{
    char name[32];
    snprintf(name, sizeof name, "part-%06u.gx", p + 1);
    return path_of(j, name);
}

static int build_part(const job *j, uint32_t p, bool *taken)
{
    const share *s = &j->shares[p];
    char *path = part_path(j, p);
    bool whole = true;
    if (!path)
        return cli_fail(GX_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < s->n; ++i)
        for (int f = 0; f < j->a->argc; ++f)
            if (j->a->argv[f] == s->stretches[i].path)
                whole = whole && s->stretches[i].begin == 0 && s->stretches[i].end == j->sizes[f];
    *taken = access(path, F_OK) == 0 && gx_index_verify(path, GX_CHECK_STRUCTURE, &(gx_error){0}) == GX_OK;
    const int code = *taken ? 0 : whole ? run_build(j, s, path, false) : build_fed(j, s, path);
    free(path);
    return code;
}

/* ---- the whole ---- */

/* Describe the contents of the stop word file, whose name alone does not tell what parts are made of. A file that
 * cannot
 * be read is left to the build. */
static void describe_stop_words(const cli_args *a, FILE *to)
{
    const char *name = cli_text(a, "stopwords");
    char bytes[4096];
    uint64_t hash = 0, n = 0;
    FILE *f = name && strcmp(name, "none") && strcmp(name, "lucene") ? fopen(name, "rb") : NULL;
    if (!f)
        return;
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, f)) > 0; n += got)
        hash = XXH3_64bits_withSeed(bytes, got, hash);
    fclose(f);
    fprintf(to, "stop words: %" PRIu64 " bytes %016" PRIx64 "\n", n, hash);
}

/* What the parts are made of, as text. */
static char *describe(const job *j, size_t *n)
{
    char *text = NULL;
    int skip;
    FILE *f = open_memstream(&text, n);
    if (!f)
        return NULL;
    fprintf(f, "gpuidx-mpi build %s, %u parts\n", gx_version(), j->n);
    for (int i = 1; i < j->argc; ++i)
        if (is_of_whole(j, j->argv + i, &skip))
            i += skip - 1;
        else
            fprintf(f, "%s\n", j->argv[i]);
    for (int i = 0; i < j->a->argc; ++i) {
        struct stat s = {0};
        tree_state = 0;
        if (stat(j->a->argv[i], &s) == 0 && S_ISDIR(s.st_mode))
            nftw(j->a->argv[i], add_file, 16, FTW_PHYS);
        else
            tree_state = file_state(j->a->argv[i], &s);
        fprintf(f, "%s %" PRIu64 " %016" PRIx64 "\n", j->a->argv[i], j->sizes[i], tree_state);
    }
    describe_stop_words(j->a, f);
    return fclose(f) == 0 ? text : NULL;
}

/* The first process makes the folder, or sees that it is one of the same command. */
static int open_folder(const job *j)
{
    struct stat s;
    size_t n = 0, m = 0;
    char *plan = path_of(j, "PLAN"), *text = describe(j, &n), *old = calloc(n + 2, 1);
    gx_error err = {0};
    int code = 0;
    if (!plan || !text || !old)
        code = cli_fail(GX_ENOMEM, "out of memory");
    else if (stat(j->output, &s) == 0)
        code = cli_fail(GX_EEXISTS, "%s exists: give another name, or remove it", j->output);
    else if (mkdir(j->folder, 0777) != 0 && errno != EEXIST)
        code = cli_fail(GX_EIO, "cannot make %s: %s", j->folder, strerror(errno));
    FILE *f = code ? NULL : fopen(plan, "rb");
    if (f) {
        m = fread(old, 1, n + 1, f);
        fclose(f);
        if (m != n || memcmp(old, text, n) != 0)
            code = cli_fail(GX_EEXISTS, "%s has parts of another build: of other files or flags; remove it first",
                            j->folder);
    } else if (!code && gx_write_file(plan, text, n, false, &err)) {
        code = cli_fail_error(&err);
    }
    free(plan);
    free(text);
    free(old);
    return code;
}

/* The first process collects the parts, and removes the folder. */
static int collect(const job *j)
{
    char **paths = calloc(j->n, sizeof *paths), *plan = path_of(j, "PLAN");
    gx_error err = {0};
    bool ok = paths && plan;
    for (uint32_t p = 0; p < j->n && ok; ++p)
        ok = (paths[p] = part_path(j, p)) != NULL;
    int code = ok ? 0 : cli_fail(GX_ENOMEM, "out of memory");
    if (!code && gx_collect(j->output, (const char *const *)paths, j->n, &err))
        code = cli_fail_error(&err);
    for (uint32_t p = 0; p < j->n && !code; ++p)
        unlink(paths[p]);
    if (!code) {
        unlink(plan);
        rmdir(j->folder);
    }
    for (uint32_t p = 0; paths && p < j->n; ++p)
        free(paths[p]);
    free(paths);
    free(plan);
    return code;
}

static int build_all(job *j)
{
    uint32_t n_taken = 0;
    int code = measure_inputs(j);
    if (!code)
        code = deal(j);
    if ((code = mpi_agree(code)))
        return code;
    if ((code = mpi_agree(mpi.number == 0 ? open_folder(j) : 0)))
        return code;
    for (uint32_t p = (uint32_t)mpi.number; p < j->n && !code; p += (uint32_t)mpi.n) {
        bool taken;
        code = build_part(j, p, &taken);
        n_taken += taken;
    }
    const int own = code;
    if (n_taken && !j->quiet)
        fprintf(stderr, "gpuidx: %u parts of an earlier build are taken\n", n_taken);
    if ((code = mpi_agree(code))) {
        if (mpi.number == 0)
            cli_warn("nothing was collected; %s has the parts that are done, which the same command takes", j->folder);
        return own ? own : code;
    }
    code = mpi_agree(mpi.number == 0 ? collect(j) : 0);
    if (!code && mpi.number == 0 && !j->quiet)
        fprintf(stderr, "gpuidx: %s: %u parts, built by %d processes\n", j->output, j->n, mpi.n);
    return code;
}

static int run(const cli_args *a)
{
    job *j = current;
    j->a = a;
    j->quiet = cli_quiet();
    j->output = cli_text(a, "output");
    j->n = cli_count(a, "parts") ? (uint32_t)cli_count(a, "parts") : (uint32_t)mpi.n;
    if (!j->output)
        return cli_usage(a, "no output: say where the collection goes with -o FOLDER");
    j->sizes = calloc((size_t)a->argc + 1, sizeof *j->sizes);
    j->shares = calloc(j->n, sizeof *j->shares);
    if (asprintf(&j->folder, "%s.parts", j->output) < 0)
        j->folder = NULL;
    const int code = j->sizes && j->shares && j->folder ? build_all(j) : cli_fail(GX_ENOMEM, "out of memory");
    for (uint32_t p = 0; j->shares && p < j->n; ++p)
        free(j->shares[p].stretches);
    free(j->shares);
    free(j->sizes);
    free(j->folder);
    return code;
}

int mpi_build(int argc, char **argv)
{
    static const cli_flag parts = {"parts",    0, CLI_COUNT, "P", "0", "make `P` parts; 0: one for each process",
                                   .max = 4096};
    cli_flag flags[64] = {{0}};
    size_t n = 0;
    for (; cmd_build.flags[n].name && n < sizeof flags / sizeof *flags - 2; ++n)
        flags[n] = cmd_build.flags[n];
    flags[n] = parts;
    cli_command command = cmd_build;
    job j = {.argc = argc, .argv = malloc(((size_t)argc + 1) * sizeof *argv)}; /* cli_run sorts argv */
    if (!j.argv)
        return cli_fail(GX_ENOMEM, "out of memory");
    memcpy(j.argv, argv, ((size_t)argc + 1) * sizeof *argv);
    command.flags = flags;
    command.run = run;
    current = &j;
    const int code = cli_run(&command, argc, argv);
    free(j.argv);
    return code;
}
