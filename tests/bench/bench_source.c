/* How fast corpora are read, without analysis: megabytes a second of each format and compression,
 * the best of three.
 *
 *     bench_source [MEGABYTES]          (of each corpus; 64)
 *
 * Every reading must bring the documents and bytes of text that were written. */
#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "index/corpus/source.h"

static uint32_t draw_state = 20261121;
static uint32_t draw(uint32_t n)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(draw_state >> 8) * n >> 24);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* the machine may be shared */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sentences of made-up words, about 1,000 bytes. */
static size_t draw_text(char *to)
{
    size_t n = 0;
    while (n < 500 + draw(1000)) {
        for (uint32_t len = 2 + draw(9); len > 0; --len)
            to[n++] = (char)('a' + draw(26));
        if (draw(12) == 0)
            to[n++] = ',';
        to[n++] = ' ';
    }
    return n - 1;
}

typedef struct corpus {
    gx_source_format format;
    const char *before, *between, *after; /* round the id and the text */
} corpus;

static const corpus corpora[] = {
    {GX_SOURCE_TSV, "", "\t", "\n"},
    {GX_SOURCE_CSV, "", ",\"", "\"\n"},
    {GX_SOURCE_JSONL, "{\"id\": \"", "\", \"text\": \"", "\"}\n"},
    {GX_SOURCE_PLAIN, "", " ", "\n"},
    {GX_SOURCE_TRECTEXT, "<DOC>\n<DOCNO>", "</DOCNO>\n<TEXT>\n", "\n</TEXT>\n</DOC>\n"},
    {GX_SOURCE_TRECWEB, "<DOC>\n<DOCNO>", "</DOCNO>\n<DOCHDR>\nhttp://a\n</DOCHDR>\n<html><body><p>",
     "</p></body></html>\n</DOC>\n"},
};

/* Returns documents written; *bytes of the whole and of the texts. */
static uint64_t write_corpus(const corpus *c, struct archive *a, size_t most, uint64_t *bytes, uint64_t *text_bytes)
{
    static char text[4096], record[8192];
    uint64_t n = 0;
    for (*bytes = *text_bytes = 0; *bytes < most; ++n) {
        const size_t len = draw_text(text);
        const int m = snprintf(record, sizeof record, "%s%u%s%.*s%s", c->before, (unsigned)n, c->between, (int)len,
                               text, c->after);
        if (archive_write_data(a, record, (size_t)m) != m)
            abort();
        *bytes += (uint64_t)m;
        *text_bytes += len;
    }
    return n;
}

static double read_corpus(const corpus *c, const char *path, uint64_t documents, uint64_t text_bytes)
{
    gx_source *s;
    gx_error err = {0};
    const gx_source_document *d;
    const gx_source_options opt = {.size = sizeof opt, .format = c->format};
    const double began = now();
    uint64_t n = 0, bytes = 0;
    if (gx_source_open(&s, &path, 1, &opt, &err))
        abort();
    while (gx_source_next(s, &d, &err) == GX_OK && d) {
        ++n;
        bytes += d->doc.text_len;
    }
    const double spent = now() - began;
    gx_source_close(s);
    /* plain lines hold their number, trectext and trecweb what parts the tags: so at least */
    const bool exact = c->format < GX_SOURCE_TRECTEXT;
    if (n != documents || (exact ? bytes != text_bytes : bytes < text_bytes)) {
        fprintf(stderr, "%s: wrong documents\n", gx_source_format_name(c->format));
        exit(1);
    }
    return spent;
}

static void bench(const corpus *c, int filter, const char *name, const char *path, size_t most)
{
    uint64_t bytes, text_bytes;
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    archive_write_add_filter(a, filter);
    archive_write_set_format_raw(a);
    if (archive_write_open_filename(a, path) != ARCHIVE_OK)
        abort();
    archive_entry_set_filetype(e, AE_IFREG);
    archive_write_header(a, e);
    const uint64_t n = write_corpus(c, a, most, &bytes, &text_bytes);
    archive_write_close(a);
    archive_write_free(a);
    archive_entry_free(e);
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
        const double spent = read_corpus(c, path, n, text_bytes);
        best = spent < best ? spent : best;
    }
    printf("%-9s %-6s %8.0f MB/s\n", gx_source_format_name(c->format), name, (double)bytes / best / 1e6);
}

int main(int argc, char **argv)
{
    static const struct {
        int filter;
        const char *name;
    } filters[] = {{ARCHIVE_FILTER_GZIP, "gzip"},
                   {ARCHIVE_FILTER_BZIP2, "bzip2"},
                   {ARCHIVE_FILTER_XZ, "xz"},
                   {ARCHIVE_FILTER_ZSTD, "zstd"}};
    const size_t most = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) * 1000000;
    char path[] = "/tmp/gpuidx-bench-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || !most)
        return 1;
    close(fd);
    for (size_t i = 0; i < sizeof corpora / sizeof *corpora; ++i)
        bench(&corpora[i], ARCHIVE_FILTER_NONE, "", path, most);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; ++i)
        bench(&corpora[0], filters[i].filter, filters[i].name, path, most / 8);
    unlink(path);
    return 0;
}
