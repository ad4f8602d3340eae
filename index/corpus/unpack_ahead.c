#include "index/corpus/unpack_ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/status.h"
#include "engine/text/ascii.h"
#include "index/corpus/input.h"
#include "index/corpus/unpack.h"
#include "index/corpus/walk.h"

#define RAW_BYTES ((size_t)64 << 10)    /* compressed bytes that a part reads at once */
#define SCAN_BYTES ((size_t)256 << 10)  /* in which members are looked for at once */
#define SCAN_AHEAD ((uint64_t)64 << 20) /* members are looked for so far ahead of the last part's decompression */
#define HEAD_BLOCKS 4u                  /* that the head may hold whatever the others do */
#define NAMES_AT_ONCE 256               /* of the walk, that a call looks at */

/* Decompressed bytes. */
typedef struct block {
    struct block *next;
    size_t n, taken;
    uint64_t raw; /* where in the file decompression was behind them */
    char bytes[];
} block;

typedef struct part part;

typedef struct ahead_file {
    struct ahead_file *next;
    uint64_t number; /* in the walk */
    char *path;
    int fd;
    dev_t dev;
    ino_t ino;
    uint64_t size;
    const char *compression;
    bool of_blocks; /* of xz: the library's threads can decompress it */
    part *first, *last;
    uint64_t scan_at; /* members are looked for from here on */
    bool scanned;     /* to the end */
    bool gone;        /* it is in no list */
    uint32_t n_users; /* threads that work on it */
} ahead_file;

struct part {
    part *next;
    ahead_file *file;
    uint64_t at;      /* where its first member begins */
    uint64_t reached; /* by decompression */
    uint64_t fed;     /* where the next compressed bytes are */
    _Atomic uint64_t next_at;
    gx_unpack *z;   /* NULL: not begun, or done */
    char *raw;      /* [RAW_BYTES] */
    uint64_t held;  /* bytes of memory of the decompressor */
    uint64_t given; /* bytes, to the reader */
    uint64_t skip;  /* bytes, of those that are decompressed once more */
    block *first_block, *last_block;
    uint32_t n_blocks;
    bool modest;         /* its decompressor has limited memory */
    bool several;        /* its decompressor has several threads */
    bool again;          /* both have been tried: a failure is the file's */
    bool busy, dead;     /* a thread works on it; it is in no list */
    bool waits;          /* until it is the head */
    bool done, ends_all; /* its last block is there; the file ends there too */
    gx_error err;        /* behind its blocks */
};

struct gx_unpack_ahead {
    gx_unpack_ahead_options opt;
    size_t block_bytes;
    uint64_t part_bytes;  /* compressed, at least, from part to part */
    uint64_t most_modest; /* bytes of a decompressor's memory, ahead of its turn */
    gx_walk *walk;
    char *scan; /* [SCAN_BYTES] of the thread that finds a part */

    pthread_mutex_t lock; /* of all that follows, files and parts, but for what a busy thread uses */
    pthread_cond_t made;  /* the reader: a thread has done a piece of work */
    ahead_file *files, *last_file;
    ahead_file *current; /* the first, while it is read */
    uint32_t n_parts, most_parts;
    uint64_t held; /* bytes of blocks and decompressors */
    bool finding;  /* a thread looks for a part, or a file */
    bool walked;   /* to the end */
    uint64_t n_walked;
    gx_unpack_ahead_counts counts;
    block *reading; /* the reader's */
    uint64_t raw_at;
};

/* ---- memory; the lock is held ---- */

static uint64_t block_cost(const gx_unpack_ahead *a)
{
    return a->block_bytes + sizeof(block);
}

/* Blocks or a decompressor take so many bytes more. */
static void hold(gx_unpack_ahead *a, uint64_t bytes)
{
    a->held += bytes;
    if (a->held > a->counts.most_held)
        a->counts.most_held = a->held;
}

static void free_block(gx_unpack_ahead *a, block *b)
{
    if (b)
        a->held -= block_cost(a);
    free(b);
}

static void close_decompressor(gx_unpack_ahead *a, part *g)
{
    gx_unpack_close(g->z);
    free(g->raw);
    g->z = NULL;
    g->raw = NULL;
    a->held -= g->held;
    g->held = 0;
}

static void free_blocks(gx_unpack_ahead *a, part *g)
{
    for (block *b; (b = g->first_block);) {
        g->first_block = b->next;
        free_block(a, b);
    }
    g->last_block = NULL;
    g->n_blocks = 0;
}

static void free_file(ahead_file *f)
{
    close(f->fd);
    free(f->path);
    free(f);
}

static void free_part(gx_unpack_ahead *a, part *g)
{
    close_decompressor(a, g);
    free_blocks(a, g);
    free(g);
}

/* Take the part, which is its file's first if before is NULL, out of the list. */
static void unlink_part(gx_unpack_ahead *a, part *before, part *g)
{
    ahead_file *const f = g->file;
    *(before ? &before->next : &f->first) = g->next;
    if (f->last == g)
        f->last = before;
    if (before)
        atomic_store(&before->next_at, g->next ? g->next->at : UINT64_MAX);
    --a->n_parts;
    if (g->busy)
        g->dead = true; /* its thread frees it */
    else
        free_part(a, g);
}

static void unlink_file(gx_unpack_ahead *a, ahead_file *f)
{
    a->files = f->next;
    if (a->last_file == f)
        a->last_file = NULL;
    while (f->first)
        unlink_part(a, NULL, f->first);
    f->gone = true;
    if (f->n_users == 0)
        free_file(f);
}

static void stop_using(ahead_file *f)
{
    if (--f->n_users == 0 && f->gone)
        free_file(f);
}

/* ---- decompression ---- */

/* The compressed bytes of a part. */
static gx_status feed_part(void *user, const char **bytes, size_t *n, gx_error *err)
{
    part *g = user;
    ssize_t got;
    do
        got = pread(g->file->fd, g->raw, RAW_BYTES, (off_t)g->fed);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return gx_fail(err, GX_EIO, "cannot read %s: %s", g->file->path, strerror(errno));
    *bytes = g->raw;
    *n = (size_t)got;
    g->fed += (uint64_t)got;
    return GX_OK;
}

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to decompress");
}

static gx_status open_decompressor(const gx_unpack_ahead *a, part *g, gx_error *err)
{
    gx_unpack_options opt = {.at = g->at, .stop = &g->next_at};
    if (g->modest)
        opt.memory = a->most_modest;
    g->several = !g->modest && !g->again && g->file->of_blocks;
    if (g->several) {
        opt.threads = a->opt.threads;
        opt.threads_memory = a->opt.memory;
    }
    g->fed = g->at;
    if (!g->raw && !(g->raw = malloc(RAW_BYTES)))
        return no_memory(err);
    g->z = gx_unpack_open_part(g->file->compression, &opt, feed_part, g);
    return g->z ? GX_OK : no_memory(err);
}

/* Decompress to the block until it is full, the part stops (*ends) or fails. */
static gx_status fill_block(const gx_unpack_ahead *a, part *g, block *b, bool *ends, gx_error *err)
{
    gx_status st = g->z ? GX_OK : open_decompressor(a, g, err);
    *ends = false;
    while (!st && !*ends && b->n < a->block_bytes) {
        size_t n = 0;
        char *const to = b->bytes + b->n;
        st = gx_unpack_read(g->z, to, a->block_bytes - b->n, &n, err);
        *ends = !st && n == 0;
        if (st || g->skip == 0) {
            b->n += st ? 0 : n;
            continue;
        }
        const size_t again = g->skip < n ? (size_t)g->skip : n;
        memmove(to, to + again, n - again);
        g->skip -= again;
        b->n += n - again;
    }
    b->raw = g->z ? gx_unpack_at(g->z) : g->at;
    return st;
}

static bool is_head(const gx_unpack_ahead *a, const part *g)
{
    return a->current && a->current->first == g;
}

/* The part has come to the end of a member at or behind the next part, or to the end of the file. Parts that
 * begin before that place begin at no member. */
static void end_part(gx_unpack_ahead *a, part *g)
{
    const bool stopped = gx_unpack_stopped(g->z);
    while (g->next && (!stopped || g->next->at < g->reached)) {
        ++a->counts.dropped;
        unlink_part(a, g, g->next);
    }
    g->ends_all = !stopped;
    g->done = !stopped || (g->next && g->next->at == g->reached);
    g->file->scanned |= g->ends_all;
}

/* Begin the part again when it is the head, without a limit and on one thread: how much a damaged part gives, and in
 * which words it fails, is the same then as without threads. */
static void restart_part(gx_unpack_ahead *a, part *g)
{
    while (g->given && g->next) /* it may have gone beyond their beginnings, which would stop it now */
        unlink_part(a, g, g->next);
    g->file->scanned |= g->given > 0;
    free_blocks(a, g);
    close_decompressor(a, g);
    g->skip = g->given;
    g->reached = g->at;
    g->again = true;
    g->waits = true;
}

/* A thread has worked on the part: what comes of it. */
static void settle_part(gx_unpack_ahead *a, part *g, block *b, bool ends, gx_status st, const gx_error *err)
{
    const uint64_t held = g->z ? gx_unpack_memory(g->z) + RAW_BYTES : g->held;
    a->held -= g->held;
    hold(a, held);
    g->held = held;
    g->busy = false;
    if (b && b->n && !g->dead) {
        *(g->last_block ? &g->last_block->next : &g->first_block) = b;
        g->last_block = b;
        ++g->n_blocks;
    } else {
        free_block(a, b);
    }
    if (g->dead) {
        free_part(a, g);
        return;
    }
    g->reached = g->z ? gx_unpack_at(g->z) : g->reached;
    if (st && (g->modest || g->several)) {
        restart_part(a, g);
    } else if (st) {
        g->err = *err;
        g->err.status = st;
        g->done = true;
    } else if (ends) {
        end_part(a, g);
    }
    if (g->done)
        close_decompressor(a, g);
}

/* Decompress a block of the part. The lock is held, but not meanwhile. */
static void step_part(gx_unpack_ahead *a, part *g)
{
    ahead_file *const f = g->file;
    gx_error err = {0};
    bool ends = false;
    if (!g->z)
        g->modest = !is_head(a, g); /* a part that is begun again is the head */
    g->busy = true;
    ++f->n_users;
    hold(a, block_cost(a));
    pthread_mutex_unlock(&a->lock);
    block *b = malloc(block_cost(a));
    if (b)
        *b = (block){0};
    const gx_status st = b ? fill_block(a, g, b, &ends, &err) : no_memory(&err);
    pthread_mutex_lock(&a->lock);
    if (!b)
        a->held -= block_cost(a);
    settle_part(a, g, b, ends, st, &err);
    stop_using(f);
    pthread_cond_signal(&a->made);
}

/* ---- finding parts ---- */

/* A part that begins at this place of the file, the last so far. false: no memory, and the file has no more. */
static bool add_part(gx_unpack_ahead *a, ahead_file *f, uint64_t at)
{
    part *g = calloc(1, sizeof *g);
    if (!g)
        return false;
    g->file = f;
    g->at = g->reached = at;
    atomic_init(&g->next_at, UINT64_MAX);
    if (f->last) {
        f->last->next = g;
        atomic_store(&f->last->next_at, at);
    } else {
        f->first = g;
    }
    f->last = g;
    f->scan_at = at + a->part_bytes;
    f->scanned = f->scan_at >= f->size;
    ++a->n_parts;
    return true;
}

/* Look for a place where the file's next part may begin. The lock is held, but not meanwhile. */
static void scan_file(gx_unpack_ahead *a, ahead_file *f)
{
    uint64_t from = f->scan_at;
    size_t seen = 0;
    if (f->last->reached > from)
        from = f->last->reached;
    ++f->n_users;
    pthread_mutex_unlock(&a->lock);
    ssize_t n = pread(f->fd, a->scan, SCAN_BYTES, (off_t)from);
    n = n < 0 ? 0 : n;
    const size_t at = gx_unpack_find_member(f->compression, a->scan, (size_t)n, from + (uint64_t)n < f->size, &seen);
    pthread_mutex_lock(&a->lock);
    if (!f->gone && !f->scanned) {
        f->scan_at = from + seen;
        f->scanned = n == 0 || seen == 0 || f->scan_at >= f->size;
        if (at < (size_t)n && from + at > f->last->at && from + at >= f->last->reached)
            f->scanned = !add_part(a, f, from + at) || f->scanned;
    }
    stop_using(f);
}

/* Whether a name says that a file may be compressed. */
static bool names_compressed(const char *name)
{
    static const char *const ends[] = {".gz", ".bz2", ".xz", ".zst", ".zstd", ".tgz", ".tbz2", ".txz", ".bgz"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        const size_t m = strlen(ends[i]);
        if (n > m && gx_same_text(name + n - m, ends[i]))
            return true;
    }
    return false;
}

/* Open a file of the walk if it is compressed; else NULL. */
static ahead_file *open_file(const gx_walk_file *w, uint64_t number)
{
    struct stat st;
    char head[18];
    if (strcmp(w->path, "-") == 0 || (w->in_directory && !names_compressed(w->name)) || stat(w->path, &st) ||
        !S_ISREG(st.st_mode))
        return NULL;
    const int fd = open(w->path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 || fstat(fd, &st) ? 0 : pread(fd, head, sizeof head, 0);
    const char *compression = n > 0 ? gx_unpack_recognize(head, (size_t)n) : NULL;
    ahead_file *f = compression ? calloc(1, sizeof *f) : NULL;
    if (f && (f->path = strdup(w->path))) {
        f->number = number;
        f->fd = fd;
        f->dev = st.st_dev;
        f->ino = st.st_ino;
        f->size = (uint64_t)st.st_size;
        f->compression = compression;
        /* the head of the first block, which is no index, tells both lengths */
        f->of_blocks = *compression == 'x' && n >= 14 && head[12] && (head[13] & 0xc0) == 0xc0;
        return f;
    }
    free(f);
    if (fd >= 0)
        close(fd);
    return NULL;
}

/* Open the next compressed file of the walk, looking at most at `most` names. The lock is held, but not
 * meanwhile. */
static void find_file(gx_unpack_ahead *a, uint64_t most)
{
    ahead_file *f = NULL;
    uint64_t n = 0;
    bool end = false;
    const uint64_t first = a->n_walked;
    pthread_mutex_unlock(&a->lock);
    while (!f && !end && n < most) {
        gx_walk_file w;
        gx_error err;
        end = gx_walk_next(a->walk, &w, &err) || !w.path; /* the reader meets the error itself */
        if (!end)
            f = open_file(&w, first + n++);
    }
    pthread_mutex_lock(&a->lock);
    a->n_walked = first + n;
    a->walked = end;
    if (f && add_part(a, f, 0)) {
        f->first->waits = f->of_blocks && f->size > SCAN_BYTES;
        f->scanned |= *f->compression == 'x';
        *(a->last_file ? &a->last_file->next : &a->files) = f;
        a->last_file = f;
    } else if (f) {
        free_file(f);
    }
}

/* Find a part. false: there is none, or all that may be are there. */
static bool find_part(gx_unpack_ahead *a)
{
    ahead_file *const f = a->last_file;
    const bool scan = f && !f->scanned && f->first && f->scan_at < f->last->reached + SCAN_AHEAD;
    const bool may = !a->finding && a->n_parts < a->most_parts && (scan || (!a->walked && (!f || f->scanned)));
    if (!may)
        return false;
    a->finding = true;
    if (scan)
        scan_file(a, f);
    else
        find_file(a, NAMES_AT_ONCE);
    a->finding = false;
    pthread_cond_signal(&a->made);
    return true;
}

/* ---- work ---- */

/* Whether the part, which is not the head, may get a block more. */
static bool may_go_ahead(const gx_unpack_ahead *a, const part *g)
{
    const uint64_t begun = g->z ? 0 : *g->file->compression == 'b' ? (uint64_t)4 << 20 : (uint64_t)256 << 10;
    return !g->waits && a->held + begun + (1 + HEAD_BLOCKS) * block_cost(a) <= a->opt.memory;
}

/* The first part that can be worked on, or NULL. */
static part *choose_part(const gx_unpack_ahead *a)
{
    for (const ahead_file *f = a->files; f; f = f->next)
        for (part *g = f->first; g; g = g->next)
            if (!g->busy && !g->done && ((is_head(a, g) && g->n_blocks < HEAD_BLOCKS) || may_go_ahead(a, g)))
                return g;
    return NULL;
}

bool gx_unpack_ahead_work(gx_unpack_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    part *g = choose_part(a);
    if (g)
        step_part(a, g);
    const bool did = g || find_part(a);
    pthread_mutex_unlock(&a->lock);
    return did;
}

/* ---- the reader's side ---- */

static void wake_workers(const gx_unpack_ahead *a)
{
    if (a->opt.wake)
        a->opt.wake(a->opt.user);
}

/* Make file number `number` the first of the list, if it is in the list. */
static bool find_current(gx_unpack_ahead *a, uint64_t number)
{
    while (a->finding || (a->n_walked <= number && !a->walked)) {
        if (a->finding) {
            pthread_cond_wait(&a->made, &a->lock);
            continue;
        }
        a->finding = true;
        find_file(a, number + 1 - a->n_walked);
        a->finding = false;
    }
    while (a->files && a->files->number < number)
        unlink_file(a, a->files);
    return a->files && a->files->number == number;
}

bool gx_unpack_ahead_begin(gx_unpack_ahead *a, uint64_t number, int fd)
{
    struct stat st;
    if (fstat(fd, &st))
        return false;
    pthread_mutex_lock(&a->lock);
    ahead_file *f = find_current(a, number) ? a->files : NULL;
    if (f && (f->dev != st.st_dev || f->ino != st.st_ino)) {
        unlink_file(a, f);
        f = NULL;
    }
    a->current = f;
    a->raw_at = 0;
    pthread_mutex_unlock(&a->lock);
    wake_workers(a);
    return f;
}

/* Take the next block of the file's head, which is done or decompressed here if no thread does it. NULL: the
 * file ends, or fails (st). */
static block *take_block(gx_unpack_ahead *a, gx_status *st, gx_error *err)
{
    for (;;) {
        part *g = a->current->first;
        block *b = g->first_block;
        if (b) {
            g->first_block = b->next;
            g->last_block = b->next ? g->last_block : NULL;
            --g->n_blocks;
            g->given += b->n;
            return b;
        }
        if (g->done && g->err.status) {
            *st = gx_fail(err, g->err.status, "%s", g->err.text);
            return NULL;
        }
        if (g->done && g->ends_all)
            return NULL;
        if (g->done) {
            ++a->counts.given;
            unlink_part(a, NULL, g);
        } else if (!g->busy) {
            step_part(a, g);
        } else {
            pthread_cond_wait(&a->made, &a->lock);
        }
    }
}

/* Compressed bytes that a reader has got, block by block, when its file fails in the head. */
static uint64_t read_for(const ahead_file *f)
{
    const uint64_t n = (f->first->reached + GX_INPUT_READ - 1) / GX_INPUT_READ * GX_INPUT_READ;
    return n < f->size ? n : f->size;
}

gx_status gx_unpack_ahead_read(gx_unpack_ahead *a, char *to, size_t max, size_t *n, uint64_t *raw, gx_error *err)
{
    gx_status st = GX_OK;
    *n = 0;
    if (!a->reading) {
        pthread_mutex_lock(&a->lock);
        a->reading = take_block(a, &st, err);
        const uint64_t at = a->reading ? a->reading->raw : st ? read_for(a->current) : a->current->size;
        *raw += at > a->raw_at ? at - a->raw_at : 0;
        a->raw_at = at > a->raw_at ? at : a->raw_at;
        pthread_mutex_unlock(&a->lock);
    }
    block *const b = a->reading;
    if (st || !b)
        return st;
    *n = b->n - b->taken < max ? b->n - b->taken : max;
    memcpy(to, b->bytes + b->taken, *n);
    b->taken += *n;
    if (b->taken == b->n) {
        pthread_mutex_lock(&a->lock);
        free_block(a, b);
        a->reading = NULL;
        pthread_mutex_unlock(&a->lock);
        wake_workers(a);
    }
    return GX_OK;
}

const char *gx_unpack_ahead_name(const gx_unpack_ahead *a)
{
    return a->current->compression;
}

void gx_unpack_ahead_end(gx_unpack_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    free_block(a, a->reading);
    a->reading = NULL;
    if (a->current)
        unlink_file(a, a->current);
    a->current = NULL;
    pthread_mutex_unlock(&a->lock);
    wake_workers(a);
}

gx_unpack_ahead_counts gx_unpack_ahead_get_counts(gx_unpack_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    const gx_unpack_ahead_counts counts = a->counts;
    pthread_mutex_unlock(&a->lock);
    return counts;
}

/* ---- opening and closing ---- */

static uint64_t between(uint64_t least, uint64_t x, uint64_t most)
{
    return x < least ? least : x > most ? most : x;
}

gx_status gx_unpack_ahead_open(gx_unpack_ahead **out, const gx_unpack_ahead_options *opt, gx_error *err)
{
    gx_unpack_ahead *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a || !(a->scan = malloc(SCAN_BYTES))) {
        free(a);
        return no_memory(err);
    }
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->made, NULL);
    a->opt = *opt;
    a->block_bytes = (size_t)between(16 << 10, opt->memory / 64, 256 << 10);
    a->part_bytes = between(4 << 10, opt->memory / 256, 256 << 10);
    a->most_modest = between(1 << 20, opt->memory / 8, 64 << 20);
    a->most_parts = 2 * opt->threads + 2;
    const gx_status st = gx_walk_open(&a->walk, opt->paths, opt->n_paths, err);
    if (st)
        gx_unpack_ahead_close(a);
    else
        *out = a;
    return st;
}

void gx_unpack_ahead_close(gx_unpack_ahead *a)
{
    if (!a)
        return;
    free_block(a, a->reading);
    while (a->files)
        unlink_file(a, a->files);
    gx_walk_close(a->walk);
    pthread_cond_destroy(&a->made);
    pthread_mutex_destroy(&a->lock);
    free(a->scan);
    free(a);
}
