/* fuzz.h: what fuzz targets share where no fuzzer drives them: a stored corpus, each file as it is
 * and varied. */
#ifndef GX_TESTS_FUZZ_FUZZ_H
#define GX_TESTS_FUZZ_FUZZ_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* stays on in release builds */
#define must(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A number below n, n <= 2^24; the same ones in every run. */
static inline uint32_t draw(uint32_t n)
{
    static uint32_t state = 20261121;
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * n >> 24);
}

/* Every file of the folder to the target, up to 1 MiB of it, and to vary, which changes it in many
 * ways. Returns the number of files. */
static inline unsigned fuzz_folder(const char *folder, void (*vary)(const uint8_t *bytes, size_t n))
{
    static uint8_t bytes[1 << 20];
    DIR *dir = opendir(folder);
    unsigned files = 0;
    must(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = fopen(path, "rb");
        must(f);
        const size_t n = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
        LLVMFuzzerTestOneInput(bytes, n);
        vary(bytes, n);
        ++files;
    }
    closedir(dir);
    return files;
}

/* fuzz_folder of each of the program's arguments, all of which have files. Returns the exit code. */
static inline int fuzz_folders(int argc, char **argv, void (*vary)(const uint8_t *bytes, size_t n))
{
    for (int i = 1; i < argc; ++i) {
        const unsigned files = fuzz_folder(argv[i], vary);
        printf("%s: %u files\n", argv[i], files);
        must(files > 0);
    }
    return argc < 2;
}

/* The first 400 bytes of an expression to the target 20,000 times, each with up to most_changes
 * changes: a byte becomes one of `signs`, a byte goes, a piece comes twice. */
static inline void fuzz_expression(const uint8_t *bytes, size_t n, const char *signs, size_t n_signs,
                                   uint32_t most_changes)
{
    uint8_t changed[1024];
    n = n < 400 ? n : 400;
    for (uint32_t i = 0; i < 20000; ++i) {
        size_t len = n;
        memcpy(changed, bytes, n);
        for (uint32_t changes = 1 + draw(most_changes); changes && len; --changes) {
            const size_t at = draw((uint32_t)len), rest = len - at;
            const uint32_t how = draw(3);
            if (how == 0) {
                changed[at] = (uint8_t)signs[draw((uint32_t)n_signs)];
            } else if (how == 1) {
                memmove(changed + at, changed + at + 1, rest - 1);
                --len;
            } else {
                const size_t piece = 1 + draw((uint32_t)(rest < 40 ? rest : 40));
                memmove(changed + at + piece, changed + at, rest);
                len += piece;
            }
        }
        LLVMFuzzerTestOneInput(changed, len);
    }
}

#endif
