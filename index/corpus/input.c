#include "index/corpus/input.h"

#include <archive.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/status.h"
#include "index/corpus/inflate.h"

enum { READ_BYTES = 256 << 10 }; /* bytes asked of the system at once: they stay in the second-level cache */

/* ---- raw bytes ---- */

static gx_status read_raw(gx_input *in, char *to, size_t max, size_t *n, gx_error *err)
{
    for (;;) {
        const ssize_t got = read(in->fd, to, max);
        if (got >= 0) {
            *n = (size_t)got;
            in->raw_bytes += *n;
            return GX_OK;
        }
        if (errno != EINTR)
            return gx_fail(err, GX_EIO, "cannot read %s: %s", in->path, strerror(errno));
        if (in->cancel && in->cancel(in->user))
            return gx_fail(err, GX_ECANCELLED, "interrupted while reading %s", in->path);
    }
}

/* ---- decompression ---- */

static const struct compression {
    const char *name;
    unsigned char magic[6];
    unsigned n;
    int (*enable)(struct archive *);
} compressions[] = {
    {"gzip", {0x1f, 0x8b, 8}, 3, archive_read_support_filter_gzip},
    {"bzip2", {'B', 'Z', 'h'}, 3, archive_read_support_filter_bzip2},
    {"xz", {0xfd, '7', 'z', 'X', 'Z', 0}, 6, archive_read_support_filter_xz},
    {"zstd", {0x28, 0xb5, 0x2f, 0xfd}, 4, archive_read_support_filter_zstd},
};

static const struct compression *find_compression(const char *p, size_t n)
{
    for (size_t i = 0; i < sizeof compressions / sizeof *compressions; ++i) {
        const struct compression *c = &compressions[i];
        if (n >= c->n && memcmp(p, c->magic, c->n) == 0) /* "BZh" alone could begin a text: a level and pi follow */
            if (c->magic[0] != 'B' || (n >= 10 && (!memcmp(p + 4, "1AY&SY", 6) || !memcmp(p + 4, "\x17rE8P\x90", 6))))
                return c;
    }
    return NULL;
}

/* The next compressed bytes; the first block has been read already. */
static gx_status next_block(void *user, const char **block, size_t *n, gx_error *err)
{
    gx_input *in = user;
    *n = in->n_raw;
    in->n_raw = 0;
    *block = in->raw;
    return *n ? GX_OK : read_raw(in, in->raw, READ_BYTES, n, err);
}

static la_ssize_t feed_archive(struct archive *a, void *user, const void **block)
{
    const char *bytes;
    size_t n;
    gx_error err = {0};
    if (next_block(user, &bytes, &n, &err)) {
        archive_set_error(a, err.status == GX_ECANCELLED ? EINTR : EIO, "%s", err.text);
        return -1;
    }
    *block = bytes;
    return (la_ssize_t)n;
}

static gx_status damaged(gx_input *in, const char *why, gx_error *err)
{
    if (in->binary)
        return gx_fail(err, GX_EINPUT, "%s: byte %" PRIu64 ": the %s stream is damaged or truncated: %s", in->path,
                       in->bytes, in->compression, why);
    return gx_fail(err, GX_EINPUT,
                   "%s:%" PRIu64 ": the %s stream is damaged or truncated: %s; the rest of this file is lost", in->path,
                   in->line, in->compression, why);
}

static gx_status fail_archive(gx_input *in, gx_error *err)
{
    const int code = archive_errno(in->archive);
    const char *why = archive_error_string(in->archive);
    if (code == EIO || code == EINTR)
        return gx_fail(err, code == EIO ? GX_EIO : GX_ECANCELLED, "%s", why ? why : "read error");
    if (code == ENOMEM)
        return gx_fail(err, GX_ENOMEM, "no memory to decompress %s", in->path);
    return damaged(in, why ? why : "unknown error", err);
}

static gx_status start_archive(gx_input *in, const struct compression *c, gx_error *err)
{
    in->archive = archive_read_new();
    if (!in->archive || archive_read_support_format_raw(in->archive) != ARCHIVE_OK)
        return gx_fail(err, GX_ENOMEM, "no memory to decompress %s", in->path);
    if (c->enable(in->archive) != ARCHIVE_OK)
        return gx_fail(err, GX_EIO, "cannot decompress %s: libarchive was built without %s", in->path, c->name);
    struct archive_entry *entry;
    if (archive_read_open(in->archive, in, NULL, feed_archive, NULL) != ARCHIVE_OK)
        return fail_archive(in, err);
    const int rc = archive_read_next_header(in->archive, &entry);
    if (rc == ARCHIVE_EOF)
        in->eof = true; /* the compression of nothing */
    else if (rc < ARCHIVE_WARN)
        return fail_archive(in, err);
    return GX_OK;
}

/* The n bytes at buf are the first of a compressed stream. */
static gx_status start_decompressor(gx_input *in, const struct compression *c, gx_error *err)
{
    if (!in->raw && !(in->raw = malloc(READ_BYTES)))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", in->path);
    memcpy(in->raw, in->buf, in->end);
    in->n_raw = in->end;
    in->end = 0;
    in->compression = c->name;
#ifdef GX_ZLIB
    if (c->enable == archive_read_support_filter_gzip) {
        in->inflate = gx_inflate_open(next_block, in);
        return in->inflate ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory to decompress %s", in->path);
    }
#endif
    return start_archive(in, c, err);
}

static gx_status read_inflated(gx_input *in, char *to, size_t max, size_t *n, gx_error *err)
{
#ifdef GX_ZLIB
    gx_error why = {0};
    const gx_status st = gx_inflate_read(in->inflate, to, max, n, &why);
    return st == GX_EINPUT ? damaged(in, why.text, err) : st ? gx_fail(err, st, "%s", why.text) : GX_OK;
#else
    (void)to, (void)max, (void)n;
    return gx_fail(err, GX_EINTERNAL, "%s: gzip without zlib", in->path);
#endif
}

static gx_status read_some(gx_input *in, char *to, size_t max, size_t *n, gx_error *err)
{
    if (in->inflate)
        return read_inflated(in, to, max, n, err);
    if (!in->archive)
        return read_raw(in, to, max, n, err);
    la_ssize_t got;
    do
        got = archive_read_data(in->archive, to, max);
    while (got == ARCHIVE_RETRY);
    if (got < 0)
        return fail_archive(in, err);
    *n = (size_t)got;
    return GX_OK;
}

/* ---- what is done to every byte ---- */

static void replace_nuls(gx_input *in, char *p, size_t n)
{
    char *const end = p + n;
    const char *const begin = p;
    while ((p = memchr(p, 0, (size_t)(end - p)))) {
        if (!in->nul_bytes)
            in->first_nul = in->bytes + (uint64_t)(p - begin);
        *p++ = ' ';
        ++in->nul_bytes;
    }
}

/* Windows-1252's 0x80 to 0x9f, as browsers read Latin-1; 0: not assigned. */
static const uint16_t windows_1252[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178,
};

unsigned gx_latin1_code(unsigned char c)
{
    const unsigned code = c >= 0x80 && c < 0xa0 ? windows_1252[c - 0x80] : c;
    return code ? code : 0xfffd;
}

/* Rewrite the n bytes at p as UTF-8, from the back, in place; there is room for 3 n. Returns the
 * new length. */
static size_t expand_latin1(char *p, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; ++i) {
        const unsigned c = gx_latin1_code((unsigned char)p[i]);
        to += c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
    }
    const size_t length = to;
    for (size_t i = n; i-- > 0 && to > i + 1;) {
        const unsigned c = gx_latin1_code((unsigned char)p[i]);
        if (c < 0x80) {
            p[--to] = (char)c;
        } else {
            p[--to] = (char)(0x80 | (c & 0x3f));
            if (c >= 0x800)
                p[--to] = (char)(0x80 | (c >> 6 & 0x3f));
            p[--to] = (char)(c < 0x800 ? 0xc0 | c >> 6 : 0xe0 | c >> 12);
        }
    }
    return length;
}

/* ---- the window ---- */

static gx_status reserve_window(gx_input *in, size_t room, gx_error *err)
{
    const size_t need = in->end + room + GX_INPUT_SLACK;
    if (need <= in->cap)
        return GX_OK;
    size_t cap = in->cap ? in->cap : 2 * (size_t)READ_BYTES;
    while (cap < need)
        cap += cap / 2;
    char *buf = realloc(in->buf, cap);
    if (!buf)
        return gx_fail(err, GX_ENOMEM, "no memory for a record of more than %zu bytes of %s", in->end, in->path);
    memset(buf + in->end, 0, cap - in->end > GX_INPUT_SLACK ? GX_INPUT_SLACK : cap - in->end);
    in->buf = buf;
    in->cap = cap;
    return GX_OK;
}

/* One read to the end of the window. */
static gx_status append_block(gx_input *in, gx_error *err)
{
    gx_status st = reserve_window(in, in->latin1 ? 3 * (size_t)READ_BYTES : (size_t)READ_BYTES, err);
    size_t n = 0;
    if (st || (st = read_some(in, in->buf + in->end, READ_BYTES, &n, err)))
        return st;
    in->eof = n == 0;
    if (!in->binary)
        replace_nuls(in, in->buf + in->end, n);
    if (in->latin1)
        n = expand_latin1(in->buf + in->end, n);
    in->end += n;
    in->bytes += n;
    memset(in->buf + in->end, 0, GX_INPUT_SLACK);
    return GX_OK;
}

gx_status gx_input_fill(gx_input *in, gx_error *err)
{
    const size_t have = in->end - in->begin;
    if (in->begin > 0 && have > 0)
        memmove(in->buf, in->buf + in->begin, have);
    in->begin = 0;
    in->end = have;
    do {
        if (in->eof)
            return GX_OK;
        const gx_status st = append_block(in, err);
        if (st) {
            in->eof = true; /* whoever goes on after an error goes on behind this file */
            in->begin = in->end = 0;
            return st;
        }
    } while (in->end < 2 * have || in->end == 0);
    return GX_OK;
}

/* ---- opening ---- */

/* Look at the first bytes: decompress? which encoding? */
static gx_status sniff_encoding(gx_input *in, gx_error *err)
{
    gx_status st = reserve_window(in, READ_BYTES, err);
    size_t n = 0;
    while (!st && in->end < 16 && !in->eof) { /* a pipe may give a byte at a time */
        st = read_raw(in, in->buf + in->end, READ_BYTES - in->end, &n, err);
        in->end += n;
        in->eof = n == 0;
    }
    if (st)
        return st;
    const struct compression *c = find_compression(in->buf, in->end);
    if (c) {
        in->eof = false;
        if ((st = start_decompressor(in, c, err)))
            return st;
        while (in->end < 4 && !in->eof) {
            if ((st = reserve_window(in, READ_BYTES, err)) ||
                (st = read_some(in, in->buf + in->end, READ_BYTES, &n, err)))
                return st;
            in->end += n;
            in->eof = n == 0;
        }
    }
    if (in->binary)
        return GX_OK;
    if (in->end >= 2 && (!memcmp(in->buf, "\xff\xfe", 2) || !memcmp(in->buf, "\xfe\xff", 2)))
        return gx_fail(err, GX_EINPUT, "%s:1: this is UTF-16; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)",
                       in->path);
    if (in->end >= 3 && !memcmp(in->buf, "\xef\xbb\xbf", 3))
        in->begin = 3;
    return GX_OK;
}

gx_status gx_input_open(gx_input *in, const char *path, gx_error *err)
{
    gx_input_close(in);
    in->path = strcmp(path, "-") == 0 ? "stdin" : path;
    in->begin = in->end = 0;
    in->line = 1;
    in->eof = false;
    in->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0 && errno == EINTR && in->cancel && in->cancel(in->user)) /* a named pipe without a writer */
        return gx_fail(err, GX_ECANCELLED, "interrupted while opening %s", path);
    if (in->fd < 0)
        return gx_fail(err, errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot open %s: %s", path, strerror(errno));
    gx_status st = sniff_encoding(in, err);
    const size_t fresh = in->end - in->begin;
    if (!st && !in->binary)
        replace_nuls(in, in->buf + in->begin, fresh);
    if (!st && in->latin1 && !(st = reserve_window(in, 2 * fresh, err)))
        in->end = in->begin + expand_latin1(in->buf + in->begin, fresh);
    if (st) {
        gx_input_close(in);
        return st;
    }
    in->bytes += in->end - in->begin;
    memset(in->buf + in->end, 0, GX_INPUT_SLACK);
    return GX_OK;
}

void gx_input_close(gx_input *in)
{
    if (in->archive)
        archive_read_free(in->archive);
#ifdef GX_ZLIB
    gx_inflate_close(in->inflate);
#endif
    in->inflate = NULL;
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    in->archive = NULL;
    in->compression = NULL;
    in->n_raw = 0;
    in->fd = -1;
    in->begin = in->end = 0;
    in->eof = true;
}

void gx_input_free(gx_input *in)
{
    gx_input_close(in);
    free(in->buf);
    free(in->raw);
    in->buf = in->raw = NULL;
    in->cap = 0;
}

/* ---- lines ---- */

void gx_input_consume(gx_input *in, size_t n)
{
    const char *p = in->buf + in->begin;
    uint64_t lines = 0;
    for (size_t i = 0; i < n; ++i)
        lines += p[i] == '\n';
    in->line += lines;
    in->begin += n;
}

static gx_status skip_line(gx_input *in, gx_error *err)
{
    const uint64_t line = in->line;
    const char *nl;
    while (!(nl = memchr(in->buf + in->begin, '\n', in->end - in->begin)) && !in->eof) {
        in->begin = in->end;
        const gx_status st = gx_input_fill(in, err);
        if (st)
            return st;
    }
    in->begin = nl ? (size_t)(nl + 1 - in->buf) : in->end;
    ++in->line;
    return gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": a line of more than %zu bytes; --max-record takes longer ones",
                   in->path, line, in->max_record);
}

gx_status gx_input_line(gx_input *in, char **line, size_t *len, bool *found, gx_error *err)
{
    for (size_t seen = 0;;) {
        char *const p = in->buf + in->begin;
        const size_t have = in->end - in->begin;
        const char *nl = have > seen ? memchr(p + seen, '\n', have - seen) : NULL;
        size_t n = nl ? (size_t)(nl - p) : have;
        if (n > in->max_record)
            return skip_line(in, err);
        if (nl || in->eof) {
            *found = nl || have > 0;
            in->begin += n + (nl != NULL);
            in->line += *found;
            *line = p;
            *len = n > 0 && p[n - 1] == '\r' ? n - 1 : n;
            return GX_OK;
        }
        seen = have;
        const gx_status st = gx_input_fill(in, err);
        if (st)
            return st;
    }
}
