/* Files that threads decompress ahead, against gx_unpack on one thread: the same bytes, the same words. */
#include "index/corpus/unpack_ahead.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "engine/parallel.h"
#include "engine/random.h"
#include "index/corpus/unpack.h"
#include "tests/support/compressors.h"

enum { MOST = 1 << 20, MOST_FILES = 6, ROOM = 4 << 20 };

static char dir[64];
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(gx_random_next(&state) % below);
}

/* ---- files ---- */

typedef struct made {
    char path[96];
    char *bytes; /* [n] of the file */
    size_t n;
    int format; /* of formats; -1: it is not compressed */
} made;

/* Words, or bytes that look like the beginnings of members. */
static size_t draw_text(char *to, size_t n)
{
    static const char *const heads[] = {"\x1f\x8b\x08\0\0\0\0\0\0\x03", "BZh91AY&SY", "\x28\xb5\x2f\xfd\x04"};
    static const size_t lengths[] = {10, 10, 5};
    for (size_t i = 0; i < n;) {
        const uint32_t k = draw(200);
        char word[32];
        int len = snprintf(word, sizeof word, "%x ", draw(1u << (4 + draw(16))));
        if (k < 3) {
            memcpy(word, heads[k], lengths[k]);
            len = (int)lengths[k];
        }
        for (int j = 0; j < len && i < n; ++j)
            to[i++] = word[j];
    }
    return n;
}

/* Change, cut or prolong the file. */
static void damage(made *f)
{
    static const char more[] = "what is this?";
    switch (draw(6)) {
    case 0:
    case 1:
        f->bytes[f->n / 4 + draw((uint32_t)(f->n - f->n / 4))] ^= (char)(1u << draw(8));
        break;
    case 2:
        f->n -= draw((uint32_t)(f->n / 2));
        break;
    case 3:
        memcpy(f->bytes + f->n, more, sizeof more - 1);
        f->n += sizeof more - 1;
        break;
    case 4:
        memset(f->bytes + f->n, 0, 4000);
        f->n += 4 * draw(1000);
        break;
    default:
        memset(f->bytes + f->n / 2, 0, draw((uint32_t)(f->n / 2)) + 1);
    }
}

static void make_file(made *f, int number, bool whole)
{
    static char text[MOST];
    const size_t most = draw(3) ? 30000 : 200000;
    const uint32_t members = 1 + draw(draw(3) ? 40 : 4);
    f->format = draw(8) ? (int)draw(N_FORMATS) : -1;
    f->bytes = malloc(ROOM);
    assert_non_null(f->bytes);
    f->n = 0;
    for (uint32_t i = 0; i < members && f->n < MOST; ++i) {
        const size_t n = draw(5) ? draw_text(text, draw((uint32_t)most)) : 0;
        if (f->format >= 0)
            f->n += formats[f->format].compress(f->bytes + f->n, ROOM - 8192 - f->n, text, n, draw(10));
        else
            memcpy(f->bytes + f->n, text, n), f->n += n;
    }
    if (!whole && f->format >= 0)
        damage(f);
    snprintf(f->path, sizeof f->path, "%s/%d%s", dir, number, draw(2) ? ".gz" : ".zst"); /* names mean nothing */
    FILE *out = fopen(f->path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(f->bytes, 1, f->n, out), f->n);
    assert_int_equal(fclose(out), 0);
}

/* ---- the oracle ---- */

typedef struct feeding {
    const made *file;
    size_t at;
} feeding;

static gx_status feed(void *user, const char **block, size_t *n, gx_error *err)
{
    feeding *f = user;
    (void)err;
    *block = f->file->bytes + f->at;
    *n = f->file->n - f->at < 5000 ? f->file->n - f->at : 5000;
    f->at += *n;
    return GX_OK;
}

typedef struct text {
    char *p;
    size_t n, max;
    gx_status st;
    gx_error err;
} text;

static void add(text *t, const char *p, size_t n)
{
    if (t->n + n > t->max)
        t->p = realloc(t->p, t->max = 2 * (t->n + n));
    assert_non_null(t->p);
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

static text unpack_alone(const made *f, const char *compression)
{
    static char piece[7000];
    feeding from = {f, 0};
    text t = {0};
    size_t n = 1;
    gx_unpack *z = gx_unpack_open(compression, feed, &from);
    assert_non_null(z);
    while (!(t.st = gx_unpack_read(z, piece, sizeof piece, &n, &t.err)) && n)
        add(&t, piece, n);
    gx_unpack_close(z);
    return t;
}

/* ---- ahead ---- */

typedef struct crew {
    gx_unpack_ahead *ahead;
    atomic_bool stop;
} crew;

static void work(void *user, uint32_t number)
{
    crew *c = user;
    (void)number;
    while (!atomic_load(&c->stop))
        if (!gx_unpack_ahead_work(c->ahead))
            usleep(50);
}

/* Read file i; only its beginning if `some`. */
static void read_ahead(crew *c, const made *f, uint64_t i, bool some)
{
    static char piece[100000];
    uint64_t raw = 0;
    size_t n = 1;
    const int fd = open(f->path, O_RDONLY);
    assert_true(fd >= 0);
    const char *packed = gx_unpack_recognize(f->bytes, f->n); /* a text may begin as a member does */
    if (!packed) {
        close(fd);
        return;
    }
    assert_true(gx_unpack_ahead_begin(c->ahead, i, fd));
    close(fd);
    text got = {0}, want = unpack_alone(f, packed);
    const size_t most = 1 + draw(sizeof piece);
    while (!(got.st = gx_unpack_ahead_read(c->ahead, piece, most, &n, &raw, &got.err)) && n && !some) {
        assert_true(n <= most);
        add(&got, piece, n);
    }
    if (!some) {
        assert_int_equal(got.st, want.st);
        if (want.st)
            assert_string_equal(got.err.text, want.err.text);
        else
            assert_int_equal(raw, f->n);
        if (got.n != want.n)
            print_message("file %d, %s of %zu bytes: status %d, %s\n", (int)i, packed, f->n, want.st, want.err.text);
        assert_int_equal(got.n, want.n);
        assert_true(got.n == 0 || memcmp(got.p, want.p, got.n) == 0);
    }
    gx_unpack_ahead_end(c->ahead);
    free(got.p);
    free(want.p);
}

static gx_unpack_ahead_counts read_files(const made *files, size_t n, uint32_t threads, uint64_t memory, bool some)
{
    const char *paths[MOST_FILES];
    gx_error err;
    crew c = {0};
    for (size_t i = 0; i < n; ++i)
        paths[i] = files[i].path;
    const gx_unpack_ahead_options opt = {paths, n, threads, memory, NULL, NULL};
    assert_int_equal(gx_unpack_ahead_open(&c.ahead, &opt, &err), GX_OK);
    gx_threads *t = threads ? gx_threads_start(threads, 0, work, &c) : NULL;
    if (threads)
        usleep(draw(3000));
    for (size_t i = 0; i < n; ++i)
        read_ahead(&c, &files[i], i, some && draw(2));
    atomic_store(&c.stop, true);
    gx_threads_join(t);
    const gx_unpack_ahead_counts counts = gx_unpack_ahead_get_counts(c.ahead);
    gx_unpack_ahead_close(c.ahead);
    return counts;
}

static void free_files(made *files, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        unlink(files[i].path);
        free(files[i].bytes);
    }
}

/* ---- tests ---- */

static void random_files_come_back_as_on_one_thread(void **ignored)
{
    (void)ignored;
    const char *seed = getenv("GX_TEST_SEED"), *rounds = getenv("GX_TEST_ROUNDS");
    uint64_t given = 0, dropped = 0;
    state = seed ? strtoull(seed, NULL, 10) : 20261126;
    printf("seed %llu\n", (unsigned long long)state);
    const int n_rounds = rounds ? atoi(rounds) : 30, most = rounds ? n_rounds : 3000;
    for (int round = 0; round < n_rounds || ((given <= 40 || !dropped) && round < most); ++round) {
        made files[MOST_FILES];
        const size_t n = 1 + draw(MOST_FILES);
        for (size_t i = 0; i < n; ++i)
            make_file(&files[i], (int)i, draw(2));
        const gx_unpack_ahead_counts counts =
            read_files(files, n, draw(5) ? 1 + draw(8) : 0, (uint64_t)(64 << 10) << draw(8), draw(4) == 0);
        given += counts.given;
        dropped += counts.dropped;
        free_files(files, n);
    }
    /* more than 30 rounds: the machine was busy, and threads that get no core give no parts */
    printf("%llu parts given, %llu dropped\n", (unsigned long long)given, (unsigned long long)dropped);
    if (!rounds) {
        assert_true(given > 40);
        assert_true(dropped > 0);
    }
}

/* A file of many bytes beside small ones, of which little memory is used. */
static void a_bomb_takes_bounded_memory(void **ignored)
{
    (void)ignored;
    enum { LONG = 24 << 20 };
    made files[3];
    state = 5;
    for (int i = 0; i < 3; ++i) {
        make_file(&files[i], i, true);
        free(files[i].bytes);
    }
    char *zeros = calloc(1, LONG);
    assert_non_null(zeros);
    for (int i = 0; i < 3; ++i) {
        made *f = &files[i];
        const size_t n = i == 1 ? 1000 : LONG;
        f->format = 0;
        f->bytes = malloc(ROOM);
        assert_non_null(f->bytes);
        f->n = to_gzip(f->bytes, ROOM, zeros, n, 6);
        FILE *out = fopen(f->path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(f->bytes, 1, f->n, out), f->n);
        assert_int_equal(fclose(out), 0);
    }
    free(zeros);
    const uint64_t memory = 4u << 20;
    uint64_t most_held = 0;
    for (int turn = 0; turn < 100 && most_held <= memory / 2; ++turn) { /* a machine may hold all threads but one up */
        const gx_unpack_ahead_counts counts = read_files(files, 3, 4, memory, false);
        assert_true(counts.most_held <= memory);
        most_held = counts.most_held;
    }
    assert_true(most_held > memory / 2); /* the second long file waits, decompressed, for the first */
    free_files(files, 3);
}

static int make_dir(void **ignored)
{
    (void)ignored;
    strcpy(dir, "/tmp/gx-ahead-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **ignored)
{
    (void)ignored;
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_files_come_back_as_on_one_thread),
        cmocka_unit_test(a_bomb_takes_bounded_memory),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
