/* compressors.h: the compressors of zlib, bzip2, xz and zstd, a member at a time. */
#ifndef GX_TESTS_SUPPORT_COMPRESSORS_H
#define GX_TESTS_SUPPORT_COMPRESSORS_H

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/support/test.h"

/* Compress bytes[n] to `to`, a member, and return its length. */
typedef size_t compressor(char *to, size_t max, const char *bytes, size_t n, uint32_t level);

static size_t to_gzip(char *to, size_t max, const char *bytes, size_t n, uint32_t level)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, (int)(level % 10), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)bytes;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)to;
    z.avail_out = (uInt)max;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static size_t to_bzip2(char *to, size_t max, const char *bytes, size_t n, uint32_t level)
{
    unsigned used = (unsigned)max;
    assert_int_equal(BZ2_bzBuffToBuffCompress(to, &used, (char *)bytes, (unsigned)n, (int)(1 + level % 9), 0, 0),
                     BZ_OK);
    return used;
}

/* Odd levels: blocks whose heads tell their lengths, as `xz -T` makes them. */
static size_t to_xz(char *to, size_t max, const char *bytes, size_t n, uint32_t level)
{
    size_t used = 0;
    if (level & 1) {
        const lzma_mt blocks = {.threads = 1, .block_size = 10000, .preset = level % 3, .check = LZMA_CHECK_CRC32};
        lzma_stream z = LZMA_STREAM_INIT;
        assert_int_equal(lzma_stream_encoder_mt(&z, &blocks), LZMA_OK);
        z.next_in = (const uint8_t *)bytes;
        z.avail_in = n;
        z.next_out = (uint8_t *)to;
        z.avail_out = max;
        lzma_ret rc;
        do
            rc = lzma_code(&z, LZMA_FINISH);
        while (rc == LZMA_OK);
        assert_int_equal(rc, LZMA_STREAM_END);
        used = max - z.avail_out;
        lzma_end(&z);
        return used;
    }
    assert_int_equal(lzma_easy_buffer_encode(level % 3, LZMA_CHECK_CRC64, NULL, (const uint8_t *)bytes, n,
                                             (uint8_t *)to, &used, max),
                     LZMA_OK);
    return used;
}

static size_t to_zstd(char *to, size_t max, const char *bytes, size_t n, uint32_t level)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, (int)(1 + level % 10));
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    const size_t used = ZSTD_compress2(c, to, max, bytes, n);
    assert_false(ZSTD_isError(used));
    ZSTD_freeCCtx(c);
    return used;
}

static const struct {
    const char *name;
    compressor *compress;
} formats[] = {{"gzip", to_gzip}, {"bzip2", to_bzip2}, {"xz", to_xz}, {"zstd", to_zstd}};

enum { N_FORMATS = sizeof formats / sizeof *formats };

#endif
