/* decimal_point.h: a locale whose numbers have another decimal point, made on the spot, so that no such locale needs to
 * be installed. The file is glibc's LC_NUMERIC: a magic number, 6 offsets, and decimal point, separator, grouping,
 * both as wide characters, and charset. */
#ifndef GX_TESTS_SUPPORT_DECIMAL_POINT_H
#define GX_TESTS_SUPPORT_DECIMAL_POINT_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline bool write_lc_numeric(const char *path, const char *point, uint32_t wide)
{
    unsigned char file[64] = {0};
    const uint32_t n = (uint32_t)strlen(point) + 1, pairs = (32 + n + 2 + 3) / 4 * 4;
    const uint32_t head[8] = {0x20031115 ^ 1, 6, 32, 32 + n, 32 + n + 1, pairs, pairs + 4, pairs + 8};
    memcpy(file, head, sizeof head);
    memcpy(file + 32, point, n);
    memcpy(file + pairs, &wide, sizeof wide);
    memcpy(file + pairs + 8, "UTF-8", 6);
    FILE *f = fopen(path, "wb");
    return f && fwrite(file, 1, pairs + 14, f) == pairs + 14 && fclose(f) == 0;
}

/* Set this program's decimal point; wide: its code point. false: this C library does not read the file. */
static inline bool set_decimal_point(const char *point, uint32_t wide)
{
    char dir[] = "/tmp/gpuidx-locale-XXXXXX", folder[64], file[80];
    if (!mkdtemp(dir))
        return false;
    snprintf(folder, sizeof folder, "%s/point", dir);
    snprintf(file, sizeof file, "%s/LC_NUMERIC", folder);
    mkdir(folder, 0700);
    const bool written = write_lc_numeric(file, point, wide);
    setenv("LOCPATH", dir, 1);
    const bool set = written && setlocale(LC_NUMERIC, "point") && strcmp(localeconv()->decimal_point, point) == 0;
    unsetenv("LOCPATH");
    unlink(file);
    rmdir(folder);
    rmdir(dir);
    return set;
}

#endif
