/* index_image.h: the bytes of a small index file, and a golden file that they must not differ from. */
#ifndef TESTS_SUPPORT_INDEX_IMAGE_H
#define TESTS_SUPPORT_INDEX_IMAGE_H

#include <stdio.h>
#include <stdlib.h>

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

#endif
