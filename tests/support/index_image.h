/* index_image.h: the bytes of a small index file: a golden file that they must not differ from, and damaged
 * files that must be refused. */
#ifndef TESTS_SUPPORT_INDEX_IMAGE_H
#define TESTS_SUPPORT_INDEX_IMAGE_H

#include <stdio.h>
#include <stdlib.h>

#include "engine/hash.h"
#include "index/index.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

#define IMAGE_ROOM (1u << 20) /* most bytes of such a file */

typedef struct image {
    uint8_t *bytes; /* the caller frees them */
    size_t n;
} image;

static inline image load(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("no file %s", path);
    image im = {malloc(IMAGE_ROOM), 0};
    im.n = fread(im.bytes, 1, IMAGE_ROOM, f);
    fclose(f);
    return im;
}

/* write makes the file that golden must equal, byte for byte. With GX_TEST_REWRITE set, golden is made
 * anew first. */
static inline void check_golden_file(const char *golden, void (*write)(const char *path))
{
    if (getenv("GX_TEST_REWRITE"))
        write(golden);
    write(in_dir("made.gx"));
    image a = load(golden), b = load(in_dir("made.gx"));
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.bytes, b.bytes, a.n);
    gx_error err = {0};
    if (gx_index_verify(golden, GX_CHECK_FULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    free(a.bytes);
    free(b.bytes);
}

/* ---- damage ---- */

static inline void store(const char *path, const image *im)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(im->bytes, 1, im->n, f), im->n);
    fclose(f);
}

/* The first section of that kind, which the file has. */
static inline gx_section *section(const image *im, uint32_t kind)
{
    gx_header *h = (gx_header *)(void *)im->bytes;
    gx_section *s = (gx_section *)(void *)(h + 1);
    while (s->kind != kind)
        ++s;
    return s;
}

/* Make the checksums right again. */
static inline void reseal(const image *im)
{
    gx_header *h = (gx_header *)(void *)im->bytes;
    gx_section *s = (gx_section *)(void *)(h + 1);
    for (uint32_t i = 0; i < h->n_sections; ++i)
        s[i].checksum = gx_hash(im->bytes + s[i].offset, s[i].bytes);
    h->checksum = 0;
    h->checksum = gx_hash(im->bytes, sizeof *h + h->n_sections * sizeof *s);
}

/* Damages [0, of_header) are found when the header is checked, those up to of_structure with the structure,
 * and those up to n only with the contents; none by a check of the level below. */
typedef struct damages {
    int of_header, of_structure, n;
    const char *section; /* what errors say */
} damages;

static inline void check_damages(const char *golden, void (*damage)(const image *im, int which), const damages *d)
{
    image whole = load(golden);
    for (int which = 0; which < d->n; ++which) {
        gx_error err = {0};
        image im = {malloc(whole.n), whole.n};
        memcpy(im.bytes, whole.bytes, whole.n);
        damage(&im, which);
        reseal(&im);
        store(in_dir("hostile.gx"), &im);
        const gx_check level = which < d->of_header      ? GX_CHECK_HEADER
                               : which < d->of_structure ? GX_CHECK_STRUCTURE
                                                         : GX_CHECK_FULL;
        if (gx_index_verify(in_dir("hostile.gx"), level, &err) != GX_ECORRUPT || !strstr(err.text, d->section))
            fail_msg("damage %d: '%s'", which, err.text);
        if (level != GX_CHECK_HEADER &&
            gx_index_verify(in_dir("hostile.gx"), level == GX_CHECK_FULL ? GX_CHECK_CHECKSUM : GX_CHECK_HEADER, &err))
            fail_msg("damage %d is found before its level: '%s'", which, err.text);
        free(im.bytes);
    }
    free(whole.bytes);
}

#endif
