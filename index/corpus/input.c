#include "index/corpus/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/status.h"
#include "index/corpus/archive.h"
#include "index/corpus/unpack.h"
#include "index/corpus/unpack_ahead.h"

#define READ_BYTES GX_INPUT_READ

/* ---- raw bytes ---- */

gx_status gx_input_no_memory(const gx_input *in, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to read %s", in->path);
}

gx_status gx_input_ask_cancel(const gx_input *in, gx_error *err)
{
    return in->cancel && in->cancel(in->user) ? gx_fail(err, GX_ECANCELLED, "interrupted while reading %s", in->path)
                                              : GX_OK;
}

static gx_status read_raw(gx_input *in, char *to, size_t max, size_t *n, gx_error *err)
{
    for (;;) {
        const gx_status st = gx_input_ask_cancel(in, err);
        if (st)
            return st;
        const ssize_t got = read(in->fd, to, max);
        if (got >= 0) {
            *n = (size_t)got;
            in->raw_bytes += in->is_again ? 0 : *n;
            return GX_OK;
        }
        if (errno != EINTR)
            return gx_fail(err, GX_EIO, "cannot read %s: %s", in->path, strerror(errno));
    }
}

/* ---- decompression ---- */

gx_status gx_input_damaged(const gx_input *in, const char *what, const char *why, gx_error *err)
{
    if (in->binary)
        return gx_fail(err, GX_EINPUT, "%s: byte %" PRIu64 ": the %s is damaged or truncated: %s", in->path, in->bytes,
                       what, why);
    return gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": the %s is damaged or truncated: %s; the rest of this file is lost",
                   in->path, in->line, what, why);
}

/* The next compressed bytes; the first block has been read already. */
static gx_status next_block(gx_input *in, struct gx_input_layer *l, const char **block, size_t *n, gx_error *err)
{
    *n = l->n_raw;
    l->n_raw = 0;
    *block = l->raw;
    if (*n)
        return GX_OK;
    return l == in->layers ? read_raw(in, l->raw, READ_BYTES, n, err) : gx_archive_read(in, l->raw, READ_BYTES, n, err);
}

static gx_status feed_file(void *user, const char **block, size_t *n, gx_error *err)
{
    gx_input *in = user;
    return next_block(in, &in->layers[0], block, n, err);
}

static gx_status feed_member(void *user, const char **block, size_t *n, gx_error *err)
{
    gx_input *in = user;
    return next_block(in, &in->layers[1], block, n, err);
}

static void close_layer(struct gx_input_layer *l)
{
    gx_unpack_close(l->unpack);
    l->unpack = NULL;
    l->n_raw = 0;
}

/* The bytes of the window are the first of a compressed stream; they make way for what it holds. */
static gx_status start_decompressor(gx_input *in, const char *compression, gx_error *err)
{
    struct gx_input_layer *l = &in->layers[in->archive != NULL];
    if (!in->archive)
        in->compression = compression;
    if (!in->archive && in->ahead && gx_unpack_ahead_begin(in->ahead, in->number, in->fd)) {
        in->raw_bytes -= in->end;
        in->end = 0;
        in->eof = false;
        in->is_ahead = true;
        return GX_OK;
    }
    if (!l->raw && !(l->raw = malloc(READ_BYTES)))
        return gx_input_no_memory(in, err);
    memcpy(l->raw, in->buf, in->end);
    l->n_raw = in->end;
    in->end = 0;
    in->eof = false;
    l->unpack = gx_unpack_open(compression, in->archive ? feed_member : feed_file, in);
    return l->unpack ? GX_OK : gx_input_no_memory(in, err);
}

/* Decompression has the status st. */
static gx_status tell_unpacked(gx_input *in, const char *compression, gx_status st, const gx_error *why, gx_error *err)
{
    char what[32];
    snprintf(what, sizeof what, "%s stream", compression);
    if (st == GX_EINPUT && !strstr(why->text, "damaged or truncated")) /* unless by what it is fed with */
        return gx_input_damaged(in, what, why->text, err);
    return st == GX_ENOMEM ? gx_input_no_memory(in, err) : st ? gx_fail(err, st, "%s", why->text) : GX_OK;
}

static gx_status read_unpacked(gx_input *in, struct gx_unpack *z, char *to, size_t max, size_t *n, gx_error *err)
{
    gx_error why = {0};
    return tell_unpacked(in, gx_unpack_name(z), gx_unpack_read(z, to, max, n, &why), &why, err);
}

static gx_status read_ahead(gx_input *in, char *to, size_t max, size_t *n, gx_error *err)
{
    gx_error why = {0};
    const gx_status st = gx_input_ask_cancel(in, err);
    return st ? st
              : tell_unpacked(in, gx_unpack_ahead_name(in->ahead),
                              gx_unpack_ahead_read(in->ahead, to, max, n, &in->raw_bytes, &why), &why, err);
}

gx_status gx_input_read_file(gx_input *in, char *to, size_t max, size_t *n, gx_error *err)
{
    struct gx_unpack *z = in->layers[0].unpack;
    if (in->is_ahead)
        return read_ahead(in, to, max, n, err);
    return z ? read_unpacked(in, z, to, max, n, err) : read_raw(in, to, max, n, err);
}

static gx_status read_some(gx_input *in, char *to, size_t max, size_t *n, gx_error *err)
{
    struct gx_unpack *z = in->layers[1].unpack;
    if (!in->archive)
        return gx_input_read_file(in, to, max, n, err);
    return z ? read_unpacked(in, z, to, max, n, err) : gx_archive_read(in, to, max, n, err);
}

static void close_archive(gx_input *in)
{
    gx_archive_close(in);
    close_layer(&in->layers[1]);
}

gx_status gx_input_restart_file(gx_input *in, gx_error *err)
{
    struct gx_input_layer *l = &in->layers[0];
    const bool packed = gx_input_is_packed(in);
    close_layer(l);
    if (in->is_ahead)
        gx_unpack_ahead_end(in->ahead);
    in->is_ahead = false;
    in->is_again = true;
    if (lseek(in->fd, 0, SEEK_SET) != 0)
        return gx_fail(err, GX_EIO, "cannot read %s: %s", in->path, strerror(errno));
    if (packed &&
        ((!l->raw && !(l->raw = malloc(READ_BYTES))) || !(l->unpack = gx_unpack_open(in->compression, feed_file, in))))
        return gx_input_no_memory(in, err);
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
    gx_status st = gx_input_ask_cancel(in, err);
    size_t n = 0;
    if (st || (st = reserve_window(in, in->latin1 ? 3 * (size_t)READ_BYTES : (size_t)READ_BYTES, err)) ||
        (st = read_some(in, in->buf + in->end, READ_BYTES, &n, err)))
        return st;
    in->eof = n == 0;
    if (!in->binary && !in->nuls_stay)
        replace_nuls(in, in->buf + in->end, n);
    if (in->latin1)
        n = expand_latin1(in->buf + in->end, n);
    in->end += n;
    in->bytes += n;
    memset(in->buf + in->end, 0, GX_INPUT_SLACK);
    return GX_OK;
}

/* Return an error that was met before the record at begin was reached: it is lost in this record's line. */
static void tell_failed(const gx_input *in, gx_error *err)
{
    const size_t n = strlen(in->path);
    const char *words = in->failed.text;
    char *rest;
    if (strncmp(words, in->path, n) == 0 && words[n] == ':' && strtoull(words + n + 1, &rest, 10) == in->failed_line &&
        *rest == ':')
        gx_fail(err, in->failed.status, "%s:%" PRIu64 "%s", in->path, in->line, rest);
    else
        gx_fail(err, in->failed.status, "%s", words);
}

gx_status gx_input_fill(gx_input *in, gx_error *err)
{
    const size_t have = in->end - in->begin;
    if (in->eof)
        return GX_OK;
    if (in->begin > 0 && have > 0)
        memmove(in->buf, in->buf + in->begin, have);
    in->begin = 0;
    in->end = have;
    do {
        if (in->eof)
            return GX_OK;
        gx_status st = in->failed.status;
        if (st)
            tell_failed(in, err);
        else if ((st = append_block(in, &in->failed)) && in->end > have) { /* first what was read before */
            in->failed.status = st;
            in->failed_line = in->line;
            return GX_OK;
        } else if (st) {
            gx_fail(err, st, "%s", in->failed.text);
        }
        in->failed.status = GX_OK;
        if (st) {
            in->eof = true; /* after an error the caller can only go on with the next file */
            in->begin = in->end = 0;
            return st;
        }
    } while (in->end < 2 * have || in->end == 0);
    return GX_OK;
}

/* ---- opening ---- */

/* Read until the window has n bytes; or, with by_line, a line. A pipe may give a byte at a time. A
 * stream that breaks behind the first bytes is left for gx_input_fill to find. */
static gx_status peek(gx_input *in, size_t n, bool by_line, gx_error *err)
{
    gx_status st = GX_OK;
    size_t got;
    while (!st && in->end < n && !in->eof && !(by_line && memchr(in->buf, '\n', in->end))) {
        if ((st = reserve_window(in, READ_BYTES, err)) ||
            (st = read_some(in, in->buf + in->end, READ_BYTES - in->end, &got, err)))
            return st == GX_EINPUT && in->end ? GX_OK : st;
        in->end += got;
        in->eof = got == 0;
    }
    return st;
}

/* What bytes look like that are text, but in units of 2 or 4 bytes without a byte order mark; NULL: they do not. All
 * NUL bytes are at the same place of a unit, and are many, or the rest is no UTF-8 either. */
static const char *recognize_units(const unsigned char *p, size_t n)
{
    enum { SAMPLE = 4096, LEAST = 4 };
    size_t nuls[4] = {0}, controls[2] = {0}, odd = 0;
    n = (n < SAMPLE ? n : SAMPLE) & ~(size_t)3;
    if (!memchr(p, 0, n))
        return NULL;
    for (size_t i = 0; i < n; ++i) {
        nuls[i & 3] += p[i] == 0;
        controls[i & 1] += p[i] && p[i] < ' ' && !(p[i] >= '\t' && p[i] <= '\r') && p[i] != 0x1b;
        odd += p[i] >= 0x80 && (i == 0 || p[i - 1] < 0x80) && (i + 1 == n || p[i + 1] < 0x80);
    }
    const size_t units = n / 4;
    if (units >= 2 && !nuls[0] && nuls[3] == units && nuls[2] * 10 >= units * 9)
        return "UTF-32LE";
    if (units >= 2 && !nuls[3] && nuls[0] == units && nuls[1] * 10 >= units * 9)
        return "UTF-32BE";
    for (unsigned high = 0; high < 2; ++high) { /* the byte of a unit that is 0 in ASCII */
        const size_t with = nuls[high] + nuls[high + 2], without = nuls[1 - high] + nuls[3 - high];
        const bool all = units && with == 2 * units, many = with >= LEAST && with * 5 >= units * 4;
        const bool some = with >= LEAST && with * 25 >= units && (odd >= LEAST || controls[high] * 4 >= units);
        if (!without && (all || many || some))
            return high ? "UTF-16LE" : "UTF-16BE";
    }
    return NULL;
}

/* Look at the first bytes of a file or a member: decompress? an archive? which encoding? */
static gx_status sniff(gx_input *in, gx_error *err)
{
    gx_status st = peek(in, GX_UNPACK_LOOK, false, err);
    const char *packed = st ? NULL : gx_unpack_recognize(in->buf, in->end), *again = NULL, *archive;
    if (packed && !(st = start_decompressor(in, packed, err)) && !(st = peek(in, GX_UNPACK_LOOK, false, err)))
        again = gx_unpack_recognize(in->buf, in->end);
    if (st || in->binary || (st = peek(in, 512, true, err)))
        return st;
    if (again)
        return gx_fail(err, GX_EINPUT, "%s:1: it is compressed twice (%s in %s); unpack it once", in->path, again,
                       packed);
    if ((archive = gx_archive_recognize(in->buf, in->end)))
        return in->members && !in->archive
                   ? gx_archive_open(in, err)
                   : gx_fail(err, GX_EINPUT, "%s:1: it is an archive (%s); unpack it first", in->path, archive);
    if (in->end >= 2 && (!memcmp(in->buf, "\xff\xfe", 2) || !memcmp(in->buf, "\xfe\xff", 2)))
        return gx_fail(err, GX_EINPUT, "%s:1: this is UTF-16; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)",
                       in->path);
    const char *units = recognize_units((const unsigned char *)in->buf, in->end);
    if (units)
        return gx_fail(err, GX_EINPUT,
                       "%s:1: many NUL bytes: this looks like %s; convert it to UTF-8 first (iconv -f %s -t UTF-8)",
                       in->path, units, units);
    if (in->end >= 3 && !memcmp(in->buf, "\xef\xbb\xbf", 3))
        in->begin = 3;
    return GX_OK;
}

/* Begin a file or a member. */
static gx_status begin_window(gx_input *in, gx_error *err)
{
    in->begin = in->end = 0;
    in->line = 1;
    in->eof = false;
    in->nuls_stay = in->nuls_wait;
    gx_status st = sniff(in, err);
    const size_t fresh = in->end - in->begin;
    if (!st && !in->binary && !in->nuls_stay)
        replace_nuls(in, in->buf + in->begin, fresh);
    if (!st && in->latin1 && !(st = reserve_window(in, 2 * fresh, err)))
        in->end = in->begin + expand_latin1(in->buf + in->begin, fresh);
    if (st)
        return st;
    in->bytes += in->end - in->begin;
    memset(in->buf + in->end, 0, GX_INPUT_SLACK);
    return GX_OK;
}

gx_status gx_input_open(gx_input *in, const char *path, gx_error *err)
{
    gx_input_close(in);
    in->path = strcmp(path, "-") == 0 ? "stdin" : path;
    in->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0 && errno == EINTR && in->cancel && in->cancel(in->user)) /* a named pipe without a writer */
        return gx_fail(err, GX_ECANCELLED, "interrupted while opening %s", path);
    if (in->fd < 0)
        return gx_fail(err, errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot open %s: %s", path, strerror(errno));
    const gx_status st = begin_window(in, err);
    if (st)
        gx_input_close(in);
    return st;
}

void gx_input_replace_nuls(gx_input *in)
{
    if (in->nuls_stay)
        replace_nuls(in, in->buf + in->begin, in->end - in->begin);
    in->nuls_stay = false;
}

void gx_input_open_bytes(gx_input *in, const char *path, char *bytes, size_t n, bool fresh)
{
    gx_input_close(in);
    in->path = path;
    in->own = in->buf;
    in->own_cap = in->cap;
    in->in_memory = true;
    in->buf = bytes;
    in->end = n;
    in->cap = n + GX_INPUT_SLACK;
    in->line = 1;
    in->nuls_stay = false;
    if (!fresh)
        return;
    in->bytes += n;
    in->raw_bytes += n;
    replace_nuls(in, bytes, n);
}

void gx_input_move(gx_input *to, gx_input *from)
{
    *to = *from;
    *from = GX_INPUT_INIT;
    if (to->layers[0].unpack)
        gx_unpack_feed_by(to->layers[0].unpack, to);
}

void gx_input_close(gx_input *in)
{
    close_archive(in);
    close_layer(&in->layers[0]);
    if (in->is_ahead)
        gx_unpack_ahead_end(in->ahead);
    in->is_ahead = in->is_again = false;
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    if (in->in_memory) {
        in->buf = in->own;
        in->cap = in->own_cap;
        in->own = NULL;
    }
    in->failed.status = GX_OK;
    in->in_memory = false;
    in->fd = -1;
    in->begin = in->end = 0;
    in->eof = true;
}

/* ---- members ---- */

gx_status gx_input_next_member(gx_input *in, const char **name, gx_error *err)
{
    close_layer(&in->layers[1]);
    in->begin = in->end = 0;
    in->eof = true;
    in->path = in->archive_path;
    in->line = 1; /* of the archive, which has no lines */
    bool again;
    gx_status st = gx_archive_next(in, name, &again, err);
    if (st || !*name) {
        if (!again)
            close_archive(in);
        return st;
    }
    const size_t n = strlen(in->archive_path);
    char *path = realloc(in->member, n + strlen(*name) + 2);
    if (!path)
        return gx_input_no_memory(in, err);
    in->member = path;
    stpcpy(stpcpy(stpcpy(path, in->archive_path), "/"), *name);
    in->path = path;
    *name = path + n + 1;
    if ((st = begin_window(in, err))) {
        in->begin = in->end = 0;
        in->eof = true;
    }
    return st;
}

void gx_input_free(gx_input *in)
{
    gx_input_close(in);
    free(in->buf);
    free(in->layers[0].raw);
    free(in->layers[1].raw);
    free(in->member);
    in->buf = in->layers[0].raw = in->layers[1].raw = in->member = NULL;
    in->cap = 0;
}

bool gx_input_is_packed(const gx_input *in)
{
    return in->layers[0].unpack || in->is_ahead;
}

/* ---- lines ---- */

void gx_input_consume(gx_input *in, size_t n)
{
    const char *p = in->buf + in->begin;
    for (size_t i = 0; i < n;) { /* sums of a byte: many at once */
        const size_t most = n - i < 255 ? n : i + 255;
        uint8_t lines = 0;
        for (; i < most; ++i)
            lines += p[i] == '\n';
        in->line += lines;
    }
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
    ++in->too_long;
    return gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": a line of more than %zu bytes", in->path, line, in->max_record);
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
