/* bench_compressed: how fast indexes are built of compressed and structured corpora, by the number of threads.
 *
 *   bench_compressed DIR [MEGABYTES [THREADS [ROWS [ROUNDS]]]]    (256; 1,4,16; all rows; 2)
 *
 * In DIR it makes corpora of generated documents (words by Zipf's law, about 1,000 bytes each), which stay there, so
 * that another version of the program can read the same. ROWS: names of rows with semicolons between them. A table
 * shows megabytes of text a second, unpacked, of the fastest round. Every index must have the same numbers of
 * documents, terms, postings and tokens as the first of its format.
 */
#include <bzlib.h>
#include <inttypes.h>
#include <lzma.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/clock.h"
#include "engine/parallel.h"
#include "engine/random.h"

enum { N_SHARDS = 16, N_WORDS = 200000, MOST_DOC = 8192 };

typedef enum shape { JSONL, CSV, TREC, WARC, HTML } shape;

/* How a row's corpus is stored: in one file, in N_SHARDS, or (HTML) in a file a document. */
typedef struct row {
    const char *name, *end;
    shape shape;
    char compression; /* 0, g, z, b, x */
    size_t member;    /* bytes of text; 0: one member a file */
    bool shards;
} row;

static const row rows[] = {
    {"jsonl", "jsonl", JSONL, 0, 0, false},
    {"jsonl.gz", "jsonl.gz", JSONL, 'g', 0, false},
    {"jsonl.gz,members", "jsonl.gz", JSONL, 'g', 64 << 10, false},
    {"jsonl.gz,files", "jsonl.gz", JSONL, 'g', 0, true},
    {"jsonl.zst", "jsonl.zst", JSONL, 'z', 0, false},
    {"jsonl.zst,frames", "jsonl.zst", JSONL, 'z', 1 << 20, false},
    {"jsonl.bz2,streams", "jsonl.bz2", JSONL, 'b', 900000, false},
    {"jsonl.xz,blocks", "jsonl.xz", JSONL, 'x', 1 << 20, false},
    {"csv", "csv", CSV, 0, 0, false},
    {"csv.gz,members", "csv.gz", CSV, 'g', 64 << 10, false},
    {"trec.gz,members", "trectext.gz", TREC, 'g', 64 << 10, false},
    {"trec.gz,files", "trectext.gz", TREC, 'g', 0, true},
    {"warc.gz,members", "warc.gz", WARC, 'g', 1, false},
    {"html", "html", HTML, 0, 0, true},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static char (*words)[16];
static size_t shard_bytes;
static const char *dir;

static void need(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_compressed: %s\n", what);
        exit(1);
    }
}

static void make_words(void)
{
    uint64_t state = 1;
    words = calloc(N_WORDS, sizeof *words);
    need(words, "out of memory");
    for (uint32_t i = 0; i < N_WORDS; ++i)
        for (uint32_t j = 0, n = 2 + (uint32_t)(log2(i + 2.0) / 2) + (uint32_t)(gx_random_next(&state) % 4); j < n; ++j)
            words[i][j] = (char)('a' + gx_random_next(&state) % 26);
}

/* About 1,000 bytes. */
static size_t draw_text(char *to, uint64_t *state)
{
    const size_t most = 500 + gx_random_next(state) % 1000;
    size_t n = 0;
    while (n < most) {
        const double u = (double)(gx_random_next(state) >> 11) * 0x1p-53;
        const char *w = words[(uint32_t)(exp(u * log(N_WORDS)) - 1)];
        const size_t len = strlen(w);
        memcpy(to + n, w, len);
        n += len;
        to[n++] = gx_random_next(state) % 12 ? ' ' : ',';
    }
    return n - 1;
}

static size_t write_document(char *to, shape s, const char *id, const char *text, int n)
{
    static const char *const forms[] = {
        [JSONL] = "{\"id\": \"%s\", \"text\": \"%.*s\"}\n",
        [CSV] = "%s,\"%.*s\"\n",
        [TREC] = "<DOC>\n<DOCNO>%s</DOCNO>\n<TEXT>\n%.*s\n</TEXT>\n</DOC>\n",
        [HTML] = "<html><head><title>%s</title></head><body><p>%.*s</p></body></html>\n",
    };
    if (s != WARC)
        return (size_t)sprintf(to, forms[s], id, n, text);
    return (size_t)sprintf(to,
                           "WARC/1.0\r\nWARC-Type: response\r\nWARC-TREC-ID: %s\r\nContent-Type: application/http\r\n"
                           "Content-Length: %d\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
                           "<html><body><p>%.*s</p></body></html>\r\n\r\n",
                           id, n + 77, n, text);
}

/* ---- compressors: bytes [n] to the file ---- */

static void put(FILE *f, const void *p, size_t n)
{
    need(fwrite(p, 1, n, f) == n, "cannot write a corpus");
}

static void compress_member(FILE *f, char compression, const char *bytes, size_t n)
{
    const size_t max = n + n / 8 + 4096;
    char *to = malloc(max);
    size_t used = 0;
    unsigned used32 = (unsigned)max;
    need(to, "out of memory");
    if (compression == 'g') {
        z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)n, .next_out = (Bytef *)to, .avail_out = (uInt)max};
        need(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK &&
                 deflate(&z, Z_FINISH) == Z_STREAM_END,
             "zlib failed");
        used = z.total_out;
        deflateEnd(&z);
    } else if (compression == 'z') {
        used = ZSTD_compress(to, max, bytes, n, 3);
        need(!ZSTD_isError(used), "zstd failed");
    } else {
        need(BZ2_bzBuffToBuffCompress(to, &used32, (char *)bytes, (unsigned)n, 9, 0, 0) == BZ_OK, "bzip2 failed");
        used = used32;
    }
    put(f, to, used);
    free(to);
}

static void compress_xz(FILE *f, const char *bytes, size_t n, size_t block)
{
    const lzma_mt mt = {.threads = 16, .block_size = block, .preset = 1, .check = LZMA_CHECK_CRC32};
    const size_t max = n + n / 8 + 4096;
    lzma_stream z = LZMA_STREAM_INIT;
    char *to = malloc(max);
    need(to && lzma_stream_encoder_mt(&z, &mt) == LZMA_OK, "liblzma failed");
    z.next_in = (const uint8_t *)bytes;
    z.avail_in = n;
    z.next_out = (uint8_t *)to;
    z.avail_out = max;
    lzma_ret rc;
    while ((rc = lzma_code(&z, LZMA_FINISH)) == LZMA_OK)
        ;
    need(rc == LZMA_STREAM_END, "liblzma failed");
    put(f, to, max - z.avail_out);
    lzma_end(&z);
    free(to);
}

/* ---- corpora ---- */

typedef struct shard {
    char *bytes;
    size_t n;
    char *packed; /* of members, in memory */
    size_t n_packed;
} shard;

typedef struct making {
    const row *row;
    shard shards[N_SHARDS];
    char path[400];
} making;

static void make_shard(void *user, uint32_t i)
{
    making *m = user;
    shard *s = &m->shards[i];
    const row *r = m->row;
    uint64_t state = 1000 + i;
    char text[MOST_DOC], id[32], path[800];
    s->bytes = malloc(shard_bytes + 2 * MOST_DOC);
    need(s->bytes, "out of memory");
    FILE *f = r->compression && r->compression != 'x' ? open_memstream(&s->packed, &s->n_packed) : NULL;
    size_t from = 0;
    for (unsigned k = 0; s->n < shard_bytes; ++k) {
        sprintf(id, "d%u-%u", i, k);
        const size_t n = draw_text(text, &state), before = s->n;
        s->n += write_document(s->bytes + s->n, r->shape, id, text, (int)n);
        if (f && r->member && s->n - from >= r->member) {
            compress_member(f, r->compression, s->bytes + from, s->n - from);
            from = s->n;
        }
        if (r->shape == HTML) {
            snprintf(path, sizeof path, "%s/%s.html", m->path, id);
            FILE *page = fopen(path, "wb");
            need(page, "cannot write a page");
            put(page, s->bytes + before, s->n - before);
            fclose(page);
        }
    }
    if (f && r->shards)
        compress_member(f, r->compression, s->bytes, s->n);
    else if (f && r->member && s->n > from)
        compress_member(f, r->compression, s->bytes + from, s->n - from);
    if (f)
        fclose(f);
}

/* The whole text, of all shards. */
static char *join_shards(const making *m, size_t *n)
{
    *n = 0;
    char *all = malloc(N_SHARDS * (shard_bytes + 2 * MOST_DOC));
    need(all, "out of memory");
    for (int i = 0; i < N_SHARDS; ++i) {
        memcpy(all + *n, m->shards[i].bytes, m->shards[i].n);
        *n += m->shards[i].n;
    }
    return all;
}

static void store_corpus(making *m)
{
    const row *r = m->row;
    char path[800];
    FILE *f = r->shards ? NULL : fopen(m->path, "wb");
    need(r->shards || f, "cannot write a corpus");
    if (!r->shards && (r->compression == 'x' || (r->compression && !r->member))) {
        size_t n;
        char *all = join_shards(m, &n);
        if (r->compression == 'x')
            compress_xz(f, all, n, r->member);
        else
            compress_member(f, r->compression, all, n);
        free(all);
    }
    for (int i = 0; i < N_SHARDS; ++i) {
        const shard *s = &m->shards[i];
        if (r->shards && r->shape != HTML) {
            snprintf(path, sizeof path, "%s/%02d.%s", m->path, i, r->end);
            f = fopen(path, "wb");
            need(f, "cannot write a corpus");
        }
        if (r->shape != HTML && (r->member || r->shards || !r->compression) && r->compression != 'x')
            put(f, r->compression ? s->packed : s->bytes, r->compression ? s->n_packed : s->n);
        if (f && r->shards)
            fclose(f);
        free(m->shards[i].bytes);
        free(m->shards[i].packed);
    }
    if (!r->shards)
        fclose(f);
}

static void make_corpus(const row *r, char path[400])
{
    struct stat st;
    making m = {.row = r};
    snprintf(m.path, sizeof m.path, "%s/%d%s%s", dir, (int)(r - rows), r->shards ? "" : ".", r->shards ? "" : r->end);
    strcpy(path, m.path);
    if (stat(path, &st) == 0)
        return;
    need(!r->shards || mkdir(path, 0777) == 0, "cannot make a directory");
    gx_parallel_for((uint32_t)sysconf(_SC_NPROCESSORS_ONLN), N_SHARDS, make_shard, &m);
    store_corpus(&m);
}

/* ---- builds ---- */

typedef struct built {
    double seconds;
    uint64_t bytes, tokens;
    gx_index_stats stats;
} built;

static built build(const char *path, uint32_t threads)
{
    built b = {.stats = {.size = sizeof b.stats}};
    gx_error err = {0};
    gx_source *s = NULL;
    gx_builder *to = NULL;
    gx_index *ix = NULL;
    char out[500];
    snprintf(out, sizeof out, "%s/out.gx", dir);
    gx_source_options in = GX_SOURCE_OPTIONS;
    gx_builder_options opt = GX_BUILDER_OPTIONS;
    opt.path = out;
    opt.threads = threads;
    opt.force = true;
    const double began = gx_clock_seconds();
    gx_status st = gx_source_open(&s, &path, 1, &in, &err);
    st = st ? st : gx_builder_open(&to, &opt, &err);
    st = st ? st : gx_builder_add_source(to, s, NULL, &err);
    st = st ? st : gx_builder_finish(to, &err);
    b.seconds = gx_clock_seconds() - began;
    need(!st, err.text);
    b.bytes = gx_source_get_counts(s).bytes;
    gx_builder_abort(to);
    gx_source_close(s);
    need(!gx_index_open(&ix, out, NULL, &err), err.text);
    gx_index_get_stats(ix, &b.stats);
    gx_index_close(ix);
    unlink(out);
    return b;
}

static void measure_row(const row *r, const uint32_t *threads, int n_threads, int rounds)
{
    static gx_index_stats of_shape[HTML + 1];
    char path[400];
    make_corpus(r, path);
    printf("| %-18s |", r->name);
    for (int t = 0; t < n_threads; ++t) {
        double best = 1e30;
        built b;
        for (int i = 0; i < rounds; ++i) {
            b = build(path, threads[t]);
            best = b.seconds < best ? b.seconds : best;
            gx_index_stats *first = &of_shape[r->shape];
            if (first->n_docs == 0)
                *first = b.stats;
            need(b.stats.n_docs == first->n_docs && b.stats.n_terms == first->n_terms &&
                     b.stats.n_postings == first->n_postings && b.stats.n_tokens == first->n_tokens,
                 "an index differs from the first of its format");
        }
        printf(" %7.0f |", (double)b.bytes / best / 1e6);
        fflush(stdout);
    }
    puts("");
}

static bool is_chosen(const row *r, const char *chosen)
{
    char with[200], name[100];
    snprintf(with, sizeof with, ";%s;", chosen);
    snprintf(name, sizeof name, ";%s;", r->name);
    return !*chosen || strstr(with, name);
}

int main(int argc, char **argv)
{
    need(argc > 1, "usage: bench_compressed DIR [MEGABYTES [THREADS [ROWS [ROUNDS]]]]; ROWS has semicolons between");
    dir = argv[1];
    mkdir(dir, 0777);
    shard_bytes = (size_t)(argc > 2 ? atoi(argv[2]) : 256) * 1000000 / N_SHARDS;
    uint32_t threads[16];
    int n = 0;
    for (const char *p = argc > 3 ? argv[3] : "1,4,16"; p && n < 16; p = strchr(p, ','), p = p ? p + 1 : NULL)
        threads[n++] = (uint32_t)atoi(p);
    const char *chosen = argc > 4 ? argv[4] : "";
    const int rounds = argc > 5 ? atoi(argv[5]) : 2;
    make_words();
    printf("| %-18s |", "MB/s, threads");
    for (int t = 0; t < n; ++t)
        printf(" %7u |", threads[t]);
    puts("");
    for (const row *r = rows; r < rows + N_ROWS; ++r)
        if (is_chosen(r, chosen))
            measure_row(r, threads, n, rounds);
    free(words);
    return 0;
}
