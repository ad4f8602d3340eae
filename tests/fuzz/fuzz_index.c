/* Index files of any bytes: opening, walking and looking things up neither crash nor read outside.
 *
 * As a test: the stored files of tests/data and random damage of them, its checksums made right
 * again, since otherwise hardly any would come past the door. The seed is printed, and taken from
 * GX_TEST_SEED; GX_TEST_CASES says how many.
 *
 * As a fuzzer, from the source directory, with a build whose C flags have
 * -fsanitize=fuzzer-no-link,address:
 *     clang -g -std=c17 -D_GNU_SOURCE -DGX_FUZZER -fsanitize=fuzzer,address -I.
 *     tests/fuzz/fuzz_index.c \
 *         BUILD/libgpuidx.a -o fuzz_index (and the libraries of libgpuidx)
 *     ./fuzz_index -max_len=65536 CORPUS tests/data */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/hash.h"
#include "engine/random.h"
#include "index/attributes/attributes.h"
#include "index/check/check.h"
#include "index/index.h"
#include "index/positions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long opened, refused; /* so that a run can say that it tried both */

/* The bitmap columns, and where ranges of values lie in them. */
static uint64_t walk_bitmaps(const gx_index *ix)
{
    uint64_t *words = calloc((size_t)ix->n_docs / 64 + 1, sizeof *words), sum = 0;
    uint32_t first, last;
    for (uint32_t i = 0; words && i < ix->n_columns; ++i) {
        const gx_column *c = &ix->columns[i];
        if (gx_bitmaps_find(c, 1, UINT64_MAX / 3, &first, &last))
            sum += last - first;
        for (uint32_t column = 0; column < c->bitmaps.n_columns; ++column) {
            gx_bitmap_set(&c->bitmaps, column, ix->n_docs, words);
            if (column % 3 == 2)
                gx_bitmap_clear(&c->bitmaps, column - 1, ix->n_docs, words);
        }
        sum += words[0];
    }
    free(words);
    return sum;
}

/* The positions of a block, whose tfs are given: all, and some. */
static uint64_t walk_positions(const gx_index *ix, uint32_t term, uint32_t j, const uint32_t *tfs, uint32_t n)
{
    static uint32_t *positions, some[100];
    static size_t max;
    size_t end = 0;
    uint64_t all = 0, sum = 0;
    if (gx_index_decode_positions(ix, term, j, tfs, n, &positions, &max, 0, &end, NULL) == GX_OK && end)
        sum += positions[0] + positions[end - 1];
    for (uint32_t i = 0; i < n; ++i)
        all += tfs[i];
    const gx_block_positions b = gx_index_block_positions(ix, ix->lists[term].first_block + (uint64_t)j);
    for (uint64_t first = 0, k = 0; first < all && k < 10; first += 1 + all / 10, ++k) {
        const uint64_t n_some = all - first < 100 ? all - first : 100;
        if (gx_positions_decode(b, all, first, n_some, some))
            sum += some[n_some - 1];
    }
    return sum;
}

/* Everything that a query or a person may read. */
static uint64_t walk(const gx_index *ix)
{
    uint32_t values[GX_MAX_BLOCK + 32];
    uint64_t sum = ix->min_doc_len + ix->max_doc_len;
    size_t len, cap = 0;
    char *text = NULL;
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        const gx_list l = gx_index_list(ix, t);
        for (uint32_t j = 0; j < l.n_blocks; ++j) {
            const uint32_t n = gx_list_decode_docids(&l, j, values);
            sum += values[n - 1];
            sum += values[gx_list_decode_tfs(&l, j, values) - 1];
            if (ix->positions)
                sum += walk_positions(ix, t, j, values, n);
        }
        const char *term = gx_strings_get(&ix->terms, t, &len);
        sum += gx_index_find_term(ix, term, len);
        sum += len ? (uint8_t)term[len - 1] : 0;
    }
    sum += gx_index_find_term(ix, "absent", 6);
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        sum += gx_index_title_positions(ix, d);
        const char *id = gx_index_doc_id(ix, d, &len);
        sum += len ? (uint8_t)id[len - 1] : 0;
        const char *title = gx_index_doc_title(ix, d, &len);
        sum += len ? (uint8_t)title[len - 1] : 0;
        if (d % 97 == 0 && gx_index_doc_text(ix, d, &text, &cap, &len, NULL) == GX_OK)
            sum += len ? (uint8_t)text[len - 1] : 0;
    }
    sum += gx_index_find_doc(ix, "absent", 6);
    gx_attribute_info info = {.size = sizeof info};
    for (uint32_t i = 0; gx_index_get_attribute(ix, i, &info) == GX_OK; ++i)
        sum += info.n_values + (uint8_t)info.name[info.name_len - 1] + (uint64_t)info.max_int;
    sum += walk_bitmaps(ix);
    gx_index_sizes sizes;
    gx_index_measure(ix, &sizes);
    free(text);
    return sum + sizes.padding_bytes;
}

static void open_bytes(const uint8_t *data, size_t size, gx_check level)
{
    static volatile uint64_t sink;
    char path[64];
    gx_index *ix;
    gx_error err = {0};
    gx_index_options opt = GX_INDEX_OPTIONS;
    opt.check = level;
    const int fd = memfd_create("index", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const gx_status st = gx_index_open(&ix, path, &opt, &err);
    if (st == GX_OK)
        sink += walk(ix);
    else if (!err.text[0] || ix)
        abort(); /* a refusal has words, and gives no index */
    opened += st == GX_OK;
    refused += st != GX_OK;
    gx_index_close(ix);
    close(fd);
}

static void reseal(uint8_t *bytes, size_t size)
{
    gx_header *h = (gx_header *)(void *)bytes;
    gx_section *s = (gx_section *)(void *)(h + 1);
    if (size < sizeof *h || h->n_sections > GX_MAX_SECTIONS || size < sizeof *h + h->n_sections * sizeof *s)
        return;
    for (uint32_t i = 0; i < h->n_sections; ++i)
        if (s[i].offset <= size && s[i].bytes <= size - s[i].offset)
            s[i].checksum = gx_hash(bytes + s[i].offset, s[i].bytes);
    h->file_bytes = size;
    h->checksum = 0;
    h->checksum = gx_hash(bytes, sizeof *h + h->n_sections * sizeof *s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    open_bytes(copy, size, GX_CHECK_CHECKSUM);
    reseal(copy, size);
    open_bytes(copy, size, GX_CHECK_STRUCTURE);
    open_bytes(copy, size, GX_CHECK_FULL);
    free(copy);
    return 0;
}

#ifndef GX_FUZZER

/* One change: a byte, a word or half a word of a telling value, or a piece copied elsewhere; most
 * often in a place that has bytes other than 0. */
static void damage(uint8_t *bytes, size_t size, uint64_t *seed)
{
    static const uint64_t telling[] = {0,
                                       1,
                                       2,
                                       3,
                                       127,
                                       128,
                                       255,
                                       256,
                                       1023,
                                       1024,
                                       0x7fffffff,
                                       0x80000000,
                                       0xfffffffe,
                                       0xffffffff,
                                       0x100000000,
                                       0x7fffffffffffffff,
                                       0xffffffffffffffff};
    size_t at = gx_random_next(seed) % size;
    for (int i = 0; i < 8 && bytes[at] == 0; ++i)
        at = gx_random_next(seed) % size;
    const uint64_t value = gx_random_next(seed) % 2 ? telling[gx_random_next(seed) % (sizeof telling / sizeof *telling)]
                                                    : (uint64_t)bytes[at] + gx_random_next(seed) % 5 - 2;
    size_t n = 1;
    switch (gx_random_next(seed) % 4) {
    case 0:
        bytes[at] ^= (uint8_t)(1 << gx_random_next(seed) % 8);
        return;
    case 1:
        n = 4;
        break;
    case 2:
        n = 8;
        break;
    default: {
        const size_t from = gx_random_next(seed) % size, most = size - (from > at ? from : at);
        memmove(bytes + at, bytes + from, most < 16 ? most : 16);
        return;
    }
    }
    at -= at % n;
    if (at + n <= size)
        memcpy(bytes + at, &value, n);
}

static uint8_t *load(const char *path, size_t *size)
{
    struct stat s;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &s) != 0) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(1);
    }
    uint8_t *bytes = malloc((size_t)s.st_size + 1);
    *size = (size_t)s.st_size;
    if (!bytes || read(fd, bytes, *size) != (ssize_t)*size)
        abort();
    close(fd);
    return bytes;
}

/* fuzz_index FILE...: each as it is, and damaged. */
int main(int argc, char **argv)
{
    const char *given = getenv("GX_TEST_SEED"), *count = getenv("GX_TEST_CASES");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    const long cases = count ? atol(count) : 6000;
    printf("GX_TEST_SEED=%llu GX_TEST_CASES=%ld\n", (unsigned long long)seed, cases);
    fflush(stdout);
    for (int i = 1; i < argc; ++i) {
        size_t size;
        uint8_t *whole = load(argv[i], &size), *bytes = malloc(size + 1);
        const unsigned long before = opened;
        LLVMFuzzerTestOneInput(whole, size);
        if (opened != before + 3) {
            fprintf(stderr, "%s cannot be opened\n", argv[i]);
            return 1;
        }
        for (long c = 0; c < cases / (argc - 1); ++c) {
            memcpy(bytes, whole, size);
            for (uint64_t n = 1 + gx_random_next(&seed) % 3; n; --n)
                damage(bytes, size, &seed);
            LLVMFuzzerTestOneInput(bytes, gx_random_next(&seed) % 50 ? size : gx_random_next(&seed) % size);
        }
        free(whole);
        free(bytes);
    }
    printf("%lu opened, %lu refused\n", opened, refused);
    return opened < 100 || refused < 100; /* then this tried nothing */
}
#endif
