/* Bytes of any kind into the import of CIFF, compressed ones among them.
 *
 * As a program it replays files: tests/data/fuzz-ciff is replayed by the ordinary tests, each file
 * as it is and with a byte changed, left out or doubled, or cut off, at seeded random. With
 * -DGX_FUZZER it is libFuzzer's target:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -DGX_FUZZER -D_GNU_SOURCE \
 *         -DGX_VERSION='"fuzz"' -I. tests/fuzz/fuzz_ciff.c index/convert/ciff_*.c \
 *         index/corpus/{input,unpack}.c BUILD/libgpuidx.a (and the libraries of libgpuidx)
 *
 * What must hold: it ends; what is refused is so with a reason, and leaves nothing; what is taken
 * is a whole index, whose export is taken too and exported to the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "index/check/check.h"
#include "index/convert/ciff.h"
#include "tests/fuzz/fuzz.h"

static char dir[] = "/tmp/gpuidx-fuzz-XXXXXX", index_path[64], export_path[64], again_path[64];

static void make_dir(void)
{
    if (index_path[0])
        return;
    must(mkdtemp(dir));
    snprintf(index_path, sizeof index_path, "%s/x.gx", dir);
    snprintf(export_path, sizeof export_path, "%s/x.ciff", dir);
    snprintf(again_path, sizeof again_path, "%s/y.ciff", dir);
}

static bool same_files(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    must(f && g);
    int c, d;
    do {
        c = getc(f);
        d = getc(g);
    } while (c == d && c != EOF);
    fclose(f);
    fclose(g);
    return c == d;
}

static void export_to(const char *path)
{
    gx_index *ix;
    gx_error err = {0};
    /* lengths are the file's word: only where they add up to what the tfs do is each compared with
     * its document's */
    must(gx_index_verify(index_path, GX_CHECK_FULL, &err) == GX_OK || strstr(err.text, "its tfs add up to"));
    must(gx_index_open(&ix, index_path, NULL, NULL) == GX_OK);
    gx_export_options opt = GX_EXPORT_OPTIONS;
    opt.force = true;
    must(gx_ciff_export(ix, path, &opt, NULL) == GX_OK);
    gx_index_close(ix);
}

static bool leaves_nothing(void)
{
    DIR *d = opendir(dir);
    unsigned n = 0;
    must(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char path[64];
    gx_error err = {0};
    gx_import_options opt = GX_IMPORT_OPTIONS;
    opt.force = true;
    make_dir();
    const int fd = memfd_create("fuzz", 0);
    must(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const gx_status st = gx_ciff_import(path, index_path, &opt, &err);
    close(fd);
    if (st != GX_OK) {
        must((st == GX_EINPUT && strncmp(err.text, path, strlen(path)) == 0) || st == GX_ENOMEM);
        must(leaves_nothing());
        return 0;
    }
    export_to(export_path);
    must(gx_ciff_import(export_path, index_path, &opt, NULL) == GX_OK);
    export_to(again_path);
    must(same_files(export_path, again_path));
    must(unlink(index_path) == 0 && unlink(export_path) == 0 && unlink(again_path) == 0 && leaves_nothing());
    return 0;
}

#ifndef GX_FUZZER

static void mutate(const uint8_t *bytes, size_t n)
{
    static const uint8_t telling[] = {0, 1, 2, 3, 4, 5, 8, 0x0a, 0x10, 0x12, 0x22, 0x7f, 0x80, 0xff};
    if (n == 0)
        return;
    uint8_t *copy = malloc(n + 1);
    must(copy);
    for (unsigned i = 0; i < 1000; ++i) {
        const size_t at = draw((uint32_t)n);
        size_t m = n;
        memcpy(copy, bytes, n);
        switch (draw(5)) {
        case 0:
            copy[at] = (uint8_t)draw(256);
            break;
        case 1:
            copy[at] = telling[draw(sizeof telling)];
            break;
        case 2:
            memmove(copy + at, copy + at + 1, --m - at);
            break;
        case 3:
            memmove(copy + at + 1, copy + at, m++ - at);
            break;
        default:
            m = at; /* cut off */
        }
        LLVMFuzzerTestOneInput(copy, m);
    }
    free(copy);
}

int main(int argc, char **argv)
{
    const int code = fuzz_folders(argc, argv, mutate);
    rmdir(dir);
    return code;
}

#endif
