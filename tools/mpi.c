/* mpi.c: the program gpuidx-mpi, and its replay. Each process plans all queries and searches its
 * parts; thresholds and results are exchanged batch by batch (gx_shard), so that all processes
 * have the answers. The first one writes the run and the report. */
#include "tools/mpi_processes.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/cli/search_flags.h"

mpi_processes mpi;

int mpi_agree(int code)
{
    int worst = code;
    if (!mpi.told)
        MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    mpi.others = mpi.others || (worst && !code);
    return worst;
}

/* ---- replay ---- */

/* A key and the upper half of its docid, which is 0 where docids take 32 bits (gx_shard). */
typedef struct wide_key {
    uint64_t key;
    uint32_t high;
} wide_key;

/* The buffers of an exchange. */
typedef struct exchange_buffers {
    uint64_t *sent, *received;
    uint32_t *sent_highs, *received_highs; /* beside them; of a collection that is not wide NULL */
    wide_key *all;                         /* of one query */
    uint32_t *counts;                      /* [n processes][n queries] */
    int *n_received, *at;
    size_t max_sent, max_received, max_sent_highs, max_received_highs, max_all, max_counts;
} exchange_buffers;

static bool reserve(void *array, size_t *max, size_t n, size_t size)
{
    void *p = *(void **)array;
    if (n <= *max)
        return true;
    if (!(p = realloc(p, (n + n / 2) * size)))
        return false;
    *(void **)array = p;
    *max = n + n / 2;
    return true;
}

/* The greater score first; of equal scores the smaller docid, whose lower half is negated in the key. */
static int by_rank(const void *a, const void *b)
{
    const wide_key *x = a, *y = b;
    if (x->key >> 32 == y->key >> 32 && x->high != y->high)
        return x->high < y->high ? -1 : 1;
    return (x->key < y->key) - (x->key > y->key);
}

/* The k greatest different keys of all processes; at[p]: where those of process p begin. */
static uint32_t merge_keys(exchange_buffers *b, const int *at, uint32_t query, uint32_t n, uint32_t k, uint64_t *keys,
                           uint32_t *highs)
{
    uint32_t m = 0, kept = 0;
    for (int p = 0; p < mpi.n; ++p) {
        const uint32_t here = b->counts[(size_t)p * n + query];
        for (uint32_t i = 0; i < here; ++i)
            b->all[m++] = (wide_key){b->received[at[p] + i], highs ? b->received_highs[at[p] + i] : 0};
    }
    qsort(b->all, m, sizeof *b->all, by_rank);
    for (uint32_t i = 0; i < m && kept < k; ++i) {
        if (i && by_rank(&b->all[i - 1], &b->all[i]) == 0)
            continue;
        keys[kept] = b->all[i].key;
        if (highs)
            highs[kept] = b->all[i].high;
        ++kept;
    }
    return kept;
}

/* How many keys come from each process, and where they will lie. Returns their number. */
static size_t count_received(exchange_buffers *b, uint32_t n)
{
    size_t n_received = 0;
    for (int p = 0; p < mpi.n; ++p) {
        b->at[p] = (int)n_received;
        b->n_received[p] = 0;
        for (uint32_t i = 0; i < n; ++i)
            b->n_received[p] += (int)b->counts[(size_t)p * n + i];
        n_received += (size_t)b->n_received[p];
    }
    return n_received;
}

/* Whether all processes have what they need; else *err says so. */
static bool agree(bool good, const char *why, gx_error *err)
{
    const gx_status st = good ? GX_OK : GX_ENOMEM;
    if (!mpi_agree(st))
        return true;
    mpi.told = true; /* or another process has left the replay */
    *err = (gx_error){.status = st ? st : GX_ECANCELLED};
    snprintf(err->text, sizeof err->text, "%s", why);
    return false;
}

/* gx_shard.exchange. */
static gx_status exchange(void *user, uint64_t *keys, uint32_t *highs, uint32_t *n_keys, const uint32_t *ks, uint32_t n,
                          gx_error *err)
{
    exchange_buffers *b = user;
    size_t n_sent = 0, at = 0, most = 0;
    for (uint32_t i = 0; i < n; ++i) {
        n_sent += n_keys[i];
        most = ks[i] > most ? ks[i] : most;
    }
    const bool memory = reserve(&b->sent, &b->max_sent, n_sent + 1, sizeof *b->sent) &&
                        (!highs || reserve(&b->sent_highs, &b->max_sent_highs, n_sent + 1, sizeof *b->sent_highs)) &&
                        reserve(&b->all, &b->max_all, most * (size_t)mpi.n + 1, sizeof *b->all) &&
                        reserve(&b->counts, &b->max_counts, (size_t)mpi.n * n + 1, sizeof *b->counts);
    if (!agree(memory, "another process has failed", err))
        return err->status;
    for (size_t i = 0, first = 0; i < n; first += ks[i++]) {
        memcpy(b->sent + at, keys + first, n_keys[i] * sizeof *keys);
        if (highs)
            memcpy(b->sent_highs + at, highs + first, n_keys[i] * sizeof *highs);
        at += n_keys[i];
    }
    MPI_Allgather(n_keys, (int)n, MPI_UINT32_T, b->counts, (int)n, MPI_UINT32_T, MPI_COMM_WORLD);
    const size_t n_received = count_received(b, n) + 1;
    const bool room =
        reserve(&b->received, &b->max_received, n_received, sizeof *b->received) &&
        (!highs || reserve(&b->received_highs, &b->max_received_highs, n_received, sizeof *b->received_highs));
    if (!agree(room, "no memory for the results of all processes", err))
        return err->status;
    MPI_Allgatherv(b->sent, (int)n_sent, MPI_UINT64_T, b->received, b->n_received, b->at, MPI_UINT64_T, MPI_COMM_WORLD);
    if (highs)
        MPI_Allgatherv(b->sent_highs, (int)n_sent, MPI_UINT32_T, b->received_highs, b->n_received, b->at, MPI_UINT32_T,
                       MPI_COMM_WORLD);
    for (size_t i = 0, first = 0; i < n; first += ks[i++]) {
        n_keys[i] = merge_keys(b, b->at, (uint32_t)i, n, ks[i], keys + first, highs ? highs + first : NULL);
        for (int p = 0; p < mpi.n; ++p)
            b->at[p] += (int)b->counts[(size_t)p * n + i];
    }
    return GX_OK;
}

/* Whether the argument is this flag, with its value behind it or in it; *n: how many arguments. */
static bool is_flag(char *const *argv, const char *name, char letter, int *n)
{
    const size_t len = strlen(name);
    *n = 1;
    if (strncmp(argv[0], "--", 2) == 0 && strncmp(argv[0] + 2, name, len) == 0) {
        *n = argv[0][2 + len] ? 1 : 2;
        return argv[0][2 + len] == 0 || argv[0][2 + len] == '=';
    }
    if (letter && argv[0][0] == '-' && argv[0][1] == letter) {
        *n = argv[0][2] ? 1 : 2;
        return true;
    }
    return false;
}

/* All processes but the first replay without a run, a report and words. */
static int replay(int argc, char **argv)
{
    exchange_buffers b = {0};
    gx_shard shard = {(uint32_t)mpi.number, (uint32_t)mpi.n, exchange, &b};
    char **own = calloc((size_t)argc + 3, sizeof *own);
    char quiet[] = "--quiet", device[32];
    int n = 0, skip, code = own ? 0 : cli_fail(GX_ENOMEM, "out of memory");
    bool devices = false;
    b.at = calloc((size_t)mpi.n, sizeof *b.at);
    b.n_received = calloc((size_t)mpi.n, sizeof *b.n_received);
    if (!b.at || !b.n_received)
        code = cli_fail(GX_ENOMEM, "out of memory");
    for (int i = 0; i < argc && !code; ++i) {
        if (is_flag(argv + i, "threads", 'j', &skip) || is_flag(argv + i, "rate", 0, &skip))
            code = cli_fail(GX_EUSAGE, "%s: each process answers every query, with one thread, when it is its turn",
                            argv[i]);
        devices = devices || is_flag(argv + i, "device", 0, &skip) || is_flag(argv + i, "devices", 0, &skip);
        if (mpi.number && (is_flag(argv + i, "run", 'o', &skip) || is_flag(argv + i, "report", 0, &skip)))
            i += skip - 1;
        else
            own[n++] = argv[i];
    }
    gx_device *gpus = NULL;
    uint32_t n_gpus = 0;
    if (!code && !devices && gx_devices(&gpus, &n_gpus, &(gx_error){0}) == GX_OK && n_gpus) {
        const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK"); /* processes of a host take its GPUs in turn */
        snprintf(device, sizeof device, "--device=%u", (uint32_t)(local ? atoi(local) : mpi.number) % n_gpus);
        own[n++] = device;
    }
    free(gpus);
    if (mpi.number && !code) {
        own[n++] = quiet;
        fflush(stdout);
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
            code = cli_fail(GX_EIO, "cannot open /dev/null");
    }
    cli_shard = &shard;
    if (!code)
        code = cli_run(&cmd_replay, n, own);
    free(b.sent);
    free(b.received);
    free(b.sent_highs);
    free(b.received_highs);
    free(b.all);
    free(b.counts);
    free(b.n_received);
    free(b.at);
    free(own);
    return code;
}

/* ---- the program ---- */

static int help(void)
{
    puts("gpuidx-mpi - build and search a collection by several processes\n"
         "\n"
         "Usage: mpirun -n N gpuidx-mpi build [OPTIONS] [--parts=P] CORPUS... -o COLLECTION\n"
         "       mpirun -n N gpuidx-mpi replay [OPTIONS] COLLECTION LOG\n"
         "\n"
         "build   deals the corpus to P parts (one a process, unless given), which the processes build, and\n"
         "        collects them. Files are dealt whole; lines of JSON, and of TSV with --columns, also by ranges of\n"
         "        a file. Finished parts stay in COLLECTION.parts if a process fails, and the same command takes\n"
         "        them. Other options are those of 'gpuidx build'.\n"
         "replay  each process searches some of the parts, with one thread or GPU. The run is that of one process.\n"
         "        Options are those of 'gpuidx replay', but --threads and --rate.");
    return 0;
}

static int dispatch(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return mpi.number ? 0 : help();
    if (argc > 1 && strcmp(argv[1], "build") == 0)
        return mpi_build(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "replay") == 0)
        return replay(argc - 1, argv + 1);
    return cli_fail(GX_EUSAGE, "gpuidx-mpi has the commands build and replay; see gpuidx-mpi --help");
}

/* What a process says on stderr is kept until the first one is known not to have said the same. */
static int keep_words(int *real)
{
    const int words = memfd_create("words", MFD_CLOEXEC);
    if (words >= 0 && (*real = dup(STDERR_FILENO)) >= 0)
        dup2(words, STDERR_FILENO);
    return words;
}

static void show_words(int words, int real)
{
    char buffer[4096];
    ssize_t n;
    fflush(stderr);
    for (off_t at = 0; (n = pread(words, buffer, sizeof buffer, at)) > 0; at += n)
        if (write(real, buffer, (size_t)n) < 0)
            return;
}

int main(int argc, char **argv)
{
    int words = -1, real = -1, first;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi.number);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi.n);
    cli_begin();
    if (mpi.number)
        words = keep_words(&real);
    int code = dispatch(argc, argv);
    const int late = cli_close_output(stdout, "-");
    code = code ? code : late;
    first = mpi.others ? 0 : code;
    const int worst = mpi_agree(code);
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (words >= 0 && !first && (!mpi.others || !worst))
        show_words(words, real);
    MPI_Finalize();
    return worst;
}
