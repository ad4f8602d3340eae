/* log_text.c: text that grows, and its encodings. */
#include <string.h>
#include <utf8proc.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/log/log_reader.h"

gx_status gx_log_append(gx_log_text *b, const char *p, size_t n, gx_error *err)
{
    if (!gx_reserve(&b->p, &b->cap, b->n + n + 1, 1))
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %zu bytes", b->n + n);
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = 0;
    return GX_OK;
}

gx_status gx_log_assign(gx_log_text *b, const char *p, size_t n, gx_error *err)
{
    b->n = 0;
    return gx_log_append(b, p, n, err);
}

/* ---- encodings ---- */

static size_t valid_prefix(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if ((unsigned char)p[i] < 0x80) {
            ++i;
            continue;
        }
        utf8proc_int32_t code;
        const utf8proc_ssize_t len =
            utf8proc_iterate((const utf8proc_uint8_t *)p + i, (utf8proc_ssize_t)(n - i), &code);
        if (len <= 0)
            break;
        i += (size_t)len;
    }
    return i;
}

/* Copy the line into b, with U+FFFD in the place of every byte that is not UTF-8. */
static gx_status replace_invalid(gx_log_text *b, const char *p, size_t n, gx_error *err)
{
    gx_status st = gx_log_assign(b, "", 0, err);
    while (n && st == GX_OK) {
        const size_t good = valid_prefix(p, n);
        st = gx_log_append(b, p, good, err);
        p += good;
        n -= good;
        if (n && st == GX_OK) {
            st = gx_log_append(b, "\xef\xbf\xbd", 3, err);
            ++p;
            --n;
        }
    }
    return st;
}

static gx_status from_latin1(gx_log_text *b, const char *p, size_t n, gx_error *err)
{
    gx_status st = gx_log_assign(b, "", 0, err);
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        utf8proc_uint8_t utf8[4];
        const utf8proc_ssize_t len = utf8proc_encode_char((utf8proc_int32_t)gx_latin1_code((unsigned char)p[i]), utf8);
        st = gx_log_append(b, (const char *)utf8, (size_t)len, err);
    }
    return st;
}

gx_status gx_log_convert(gx_log_text *b, const char *line, size_t n, gx_log_encoding encoding, gx_log_counts *counts,
                         gx_error *err)
{
    const bool valid = valid_prefix(line, n) == n;
    if (valid && encoding != GX_LOG_LATIN1)
        return gx_log_assign(b, line, n, err);
    if (encoding == GX_LOG_UTF8) {
        ++counts->invalid;
        return replace_invalid(b, line, n, err);
    }
    const gx_status st = from_latin1(b, line, n, err);
    counts->latin1 += b->n != n;
    return st;
}
