/* Bytes of any kind into every reader of corpora. The first byte chooses the format, the second the
 * options.
 *
 * As a program it replays files: tests/data/fuzz-source is replayed by the ordinary tests, each
 * file as it is and with every byte in turn changed, left out or doubled at seeded random. With
 * -DGX_FUZZER it is libFuzzer's target:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -DGX_FUZZER -D_GNU_SOURCE -I.
 *   tests/fuzz/fuzz_source.c \
 *         index/{source*,input,walk,html,entities}.c engine/status.c -DGX_VERSION='"fuzz"'
 *         -larchive -lutf8proc
 *
 * What must hold: it ends; every document's strings and the terms of its vector are UTF-8 without
 * NULs, its values UTF-8, the id without white space; lines do not run backwards within a file; counts add up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utf8proc.h>

#include "index/corpus/source.h"
#include "tests/fuzz/fuzz.h"

static void check_utf8(const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)p + i, (utf8proc_ssize_t)(n - i), &c);
        must(len > 0);
        i += (size_t)len;
    }
}

static void check_string(const char *p, size_t n)
{
    must(n == 0 || !memchr(p, 0, n));
    check_utf8(p, n);
}

static const gx_attribute attributes[] = {
    {"n", GX_ATTRIBUTE_INT}, {"tags", GX_ATTRIBUTE_KEYWORDS}, {"k", GX_ATTRIBUTE_KEYWORD}};
enum { N_ATTRIBUTES = sizeof attributes / sizeof *attributes };

static void read_all(const char *path, gx_source_format format, unsigned flags)
{
    gx_source *s;
    gx_error err = {0};
    const bool values = (flags & 9) == 8;
    const gx_source_options opt = {
        .size = sizeof opt,
        .format = format,
        .columns = flags & 1 ? "id,-,title,text,text" : NULL,
        .max_record = flags & 2 ? 100 : 0,
        .latin1 = flags & 4,
        .attributes = values ? attributes : NULL,
        .n_attributes = values ? N_ATTRIBUTES : 0,
    };
    if (gx_source_open(&s, &path, 1, &opt, &err))
        abort();
    uint64_t line = 0, good = 0, bad = 0;
    const gx_source_document *d;
    for (;;) {
        const gx_status st = gx_source_next(s, &d, &err);
        if (st && st != GX_EINPUT)
            break; /* GX_EUSAGE: no format could be guessed */
        bad += st == GX_EINPUT;
        if (st)
            continue;
        if (!d)
            break;
        ++good;
        must(d->line >= line && d->doc.id_len > 0);
        line = d->line;
        check_string(d->doc.id, d->doc.id_len);
        check_string(d->doc.text, d->doc.text_len);
        if (d->doc.title)
            check_string(d->doc.title, d->doc.title_len);
        for (uint32_t i = 0; i < d->doc.n_vector; ++i)
            check_string(d->doc.vector[i].term, d->doc.vector[i].len);
        for (uint32_t i = 0; i < d->doc.n_values; ++i) {
            must(d->doc.values[i].attribute < opt.n_attributes);
            check_utf8(d->doc.values[i].text, d->doc.values[i].len);
        }
        for (size_t i = 0; i < d->doc.id_len; ++i)
            must((unsigned char)d->doc.id[i] > ' ');
    }
    const gx_source_counts counts = gx_source_get_counts(s);
    must(counts.documents == good && counts.bad == bad && counts.empty <= good);
    gx_source_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n < 2)
        return 0;
    char path[64];
    const int fd = memfd_create("fuzz", 0);
    must(fd >= 0 && write(fd, bytes + 2, n - 2) == (ssize_t)(n - 2));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_all(path, (gx_source_format)(bytes[0] % (GX_SOURCE_CSR + 1)), bytes[1]);
    close(fd);
    return 0;
}

#ifndef GX_FUZZER

/* One of the file's bytes changed, left out or doubled, under every format and set of options in
 * turn. */
static void mutate(const uint8_t *bytes, size_t n)
{
    static const char telling[] = "\"\\,\t\n\r{}[]<>/&;#:ud0\x80\xe9\xf0";
    if (n <= 2)
        return;
    uint8_t *copy = malloc(n + 1);
    must(copy);
    for (unsigned i = 0; i < 2000; ++i) {
        const size_t at = 2 + draw((uint32_t)n - 2);
        size_t m = n;
        memcpy(copy, bytes, n);
        switch (draw(4)) {
        case 0:
            copy[at] = (uint8_t)draw(256);
            break;
        case 1:
            copy[at] = (uint8_t)telling[draw(sizeof telling)];
            break;
        case 2:
            memmove(copy + at, copy + at + 1, --m - at);
            break;
        default:
            memmove(copy + at + 1, copy + at, m++ - at);
        }
        if (i % 8 == 0)
            copy[0] = (uint8_t)draw(8);
        if (i % 4 == 0)
            copy[1] = (uint8_t)draw(16);
        LLVMFuzzerTestOneInput(copy, m);
        if (i % 16 == 0)
            LLVMFuzzerTestOneInput(bytes, 2 + at); /* cut off */
    }
    free(copy);
}

int main(int argc, char **argv)
{
    return fuzz_folders(argc, argv, mutate);
}

#endif
