#include "index/corpus/formats/coding.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "engine/text/ascii.h"
#include "index/corpus/formats/brotli.h"

bool gx_looks_like_text(gx_span body)
{
    enum { SAMPLE = 1445 };
    for (size_t i = 0; i < body.n && i < SAMPLE; ++i) {
        const unsigned char c = (unsigned char)body.p[i];
        if (c < ' ' && !(c >= '\t' && c <= '\r' && c != 0x0b) && c != 0x1b)
            return false;
    }
    return true;
}

/* ---- chunks ---- */

/* Read the line of a chunk's size at *p. false: there is none. */
static bool read_chunk_size(const char **p, const char *end, size_t *size)
{
    const char *q = *p, *nl = memchr(q, '\n', (size_t)(end - q));
    size_t n = 0, digits = 0;
    for (; nl && q < nl; ++q, ++digits) {
        const char c = (char)(*q | 32);
        const unsigned digit = *q >= '0' && *q <= '9' ? (unsigned)(*q - '0')
                               : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                      : 16;
        if (digit == 16 || n > SIZE_MAX >> 8)
            break;
        n = n * 16 + digit;
    }
    if (!nl || digits == 0 || (q < nl && *q != ';' && *q != ' ' && *q != '\t' && *q != '\r'))
        return false;
    *p = nl + 1;
    *size = n;
    return true;
}

/* Pass over a line end. false: there is none. */
static bool pass_line_end(const char **p, const char *end)
{
    const char *q = *p;
    q += q < end && *q == '\r';
    if (q == end || *q != '\n')
        return false;
    *p = q + 1;
    return true;
}

static gx_coding_state undo_chunks(gx_span *body)
{
    const char *p = body->p, *const end = body->p + body->n, *first = p;
    char *to = body->p;
    size_t size;
    /* the first chunk tells whether there are any: nothing has been moved so far */
    if (!read_chunk_size(&first, end, &size))
        return GX_CODING_UNDONE;
    if (size < (size_t)(end - first)) {
        first += size;
        if (size > 0 && !pass_line_end(&first, end))
            return GX_CODING_UNDONE;
    }
    gx_coding_state state = GX_CODING_UNDONE;
    while (read_chunk_size(&p, end, &size)) {
        const size_t left = (size_t)(end - p), n = size < left ? size : left;
        memmove(to, p, n);
        to += n;
        p += n;
        if (size == 0)
            break;
        if (size > left || (!pass_line_end(&p, end) && p < end)) {
            size = 1;
            break;
        }
    }
    if (size != 0)
        state = GX_CODING_DAMAGED;
    body->n = (size_t)(to - body->p);
    return state;
}

/* ---- compression ---- */

typedef struct unpacking {
    gx_scratch *to;
    size_t most; /* bytes */
    gx_coding_state state;
} unpacking;

/* Room for more. false: no memory, or it is too long. */
static bool make_room(unpacking *u)
{
    if (u->to->n > u->most)
        u->state = GX_CODING_TOO_LONG;
    else if (!gx_scratch_reserve(u->to, 4096 + u->to->n / 2))
        u->state = GX_CODING_NO_MEMORY;
    return u->state == GX_CODING_UNDONE;
}

static void undo_zlib(unpacking *u, gx_span body, int window_bits)
{
    z_stream z = {0};
    if (inflateInit2(&z, window_bits) != Z_OK) {
        u->state = GX_CODING_NO_MEMORY;
        return;
    }
    z.next_in = (unsigned char *)body.p;
    size_t left = body.n;
    while (make_room(u)) {
        const size_t room = u->to->cap - u->to->n;
        const uInt in = (uInt)(left < UINT_MAX / 2 ? left : UINT_MAX / 2),
                   out = (uInt)(room < UINT_MAX / 2 ? room : UINT_MAX / 2);
        z.avail_in = in;
        z.avail_out = out;
        z.next_out = (unsigned char *)u->to->p + u->to->n;
        const int rc = inflate(&z, Z_NO_FLUSH);
        left -= in - z.avail_in;
        u->to->n += out - z.avail_out;
        if (rc == Z_STREAM_END && left >= 2 && window_bits > 15 && z.next_in[0] == 0x1f && z.next_in[1] == 0x8b) {
            inflateReset(&z); /* another member */
            continue;
        }
        if (rc == Z_STREAM_END)
            break;
        if (rc == Z_MEM_ERROR)
            u->state = GX_CODING_NO_MEMORY;
        else if ((rc != Z_OK && rc != Z_BUF_ERROR) || (left == 0 && z.avail_out > 0))
            u->state = GX_CODING_DAMAGED;
    }
    inflateEnd(&z);
}

static void undo_zstd(unpacking *u, gx_span body)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    ZSTD_inBuffer in = {body.p, body.n, 0};
    if (!z)
        u->state = GX_CODING_NO_MEMORY;
    while (z && make_room(u)) {
        ZSTD_outBuffer out = {u->to->p + u->to->n, u->to->cap - u->to->n, 0};
        const size_t rc = ZSTD_decompressStream(z, &out, &in);
        u->to->n += out.pos;
        if (ZSTD_isError(rc) || (rc > 0 && in.pos == in.size && out.pos < out.size))
            u->state = GX_CODING_DAMAGED;
        else if (rc == 0 && in.pos == in.size)
            break;
    }
    ZSTD_freeDStream(z);
}

static void undo_brotli(unpacking *u, gx_span body)
{
    gx_brotli *z = gx_brotli_open();
    bool more = true;
    if (!z)
        u->state = GX_CODING_NO_MEMORY;
    while (z && more && make_room(u)) {
        size_t n = u->to->cap - u->to->n;
        if (!gx_brotli_read(z, &body, u->to->p + u->to->n, &n, &more))
            u->state = GX_CODING_DAMAGED;
        u->to->n += n;
    }
    gx_brotli_close(z);
}

/* Whether the two bytes are those of a zlib stream (RFC 1950, 2.2). */
static bool is_zlib(gx_span body)
{
    const unsigned char *p = (const unsigned char *)body.p;
    return body.n >= 2 && (p[0] & 15) == 8 && (p[0] >> 4) <= 7 && (p[0] * 256u + p[1]) % 31 == 0;
}

/* zlib's form is meant, and both are met; the bytes of the other may look as if they were of it. */
static void undo_deflate(unpacking *u, gx_span body)
{
    static const int forms[] = {15, -15, 15};
    for (int i = is_zlib(body) ? 0 : 1, last = is_zlib(body) ? 2 : 1; i <= last; ++i) {
        u->to->n = 0;
        u->state = GX_CODING_UNDONE;
        undo_zlib(u, body, forms[i]);
        if (u->state != GX_CODING_DAMAGED)
            break;
    }
}

static bool same(gx_span a, const char *what)
{
    return a.n == strlen(what) && gx_same_start(a.p, what, a.n);
}

/* Undo one encoding of the body, to u->to. false: it is none that is known. *encoded false: the body is not. */
static bool undo(unpacking *u, gx_span name, gx_span body, bool *encoded)
{
    *encoded = true;
    if (same(name, "gzip") || same(name, "x-gzip")) {
        *encoded = body.n >= 2 && memcmp(body.p, "\x1f\x8b", 2) == 0;
        if (*encoded)
            undo_zlib(u, body, 16 + 15);
    } else if (same(name, "deflate")) {
        undo_deflate(u, body);
    } else if (same(name, "zstd")) {
        *encoded = body.n >= 4 && memcmp(body.p, "\x28\xb5\x2f\xfd", 4) == 0;
        if (*encoded)
            undo_zstd(u, body);
    } else if (same(name, "br") && gx_has_brotli) {
        undo_brotli(u, body);
    } else {
        return false;
    }
    return true;
}

static gx_coding_state undo_compression(gx_source *s, gx_span name, gx_span *body)
{
    gx_scratch *const to = &s->bodies[s->bodies[0].p && body->p == s->bodies[0].p];
    unpacking u = {to, s->in.max_record, GX_CODING_UNDONE};
    bool encoded;
    to->n = 0;
    if (body->n == 0)
        return GX_CODING_UNDONE;
    const bool known = undo(&u, name, *body, &encoded);
    const bool damaged = u.state == GX_CODING_DAMAGED;
    if (!known || !encoded || (damaged && gx_looks_like_text(*body))) /* text is not encoded */
        return gx_looks_like_text(*body) ? GX_CODING_UNDONE : GX_CODING_UNKNOWN;
    if (damaged && (to->n == 0 || !gx_looks_like_text((gx_span){to->p, to->n})))
        return GX_CODING_UNKNOWN;
    if (u.state == GX_CODING_UNDONE && to->n > u.most)
        u.state = GX_CODING_TOO_LONG;
    if (u.state == GX_CODING_UNDONE || u.state == GX_CODING_DAMAGED)
        *body = (gx_span){to->n ? to->p : body->p, to->n};
    return u.state;
}

gx_coding_state gx_undo_codings(gx_source *s, gx_span codings, gx_span *body, gx_span *which)
{
    gx_coding_state worst = GX_CODING_UNDONE;
    while (codings.n > 0) { /* from the last, which was done last */
        const char *comma = memrchr(codings.p, ',', codings.n);
        char *p = comma ? (char *)comma + 1 : codings.p;
        gx_span name = {p, (size_t)(codings.p + codings.n - p)};
        codings.n = comma ? (size_t)(comma - codings.p) : 0;
        while (name.n > 0 && (*name.p == ' ' || *name.p == '\t'))
            ++name.p, --name.n;
        while (name.n > 0 && (name.p[name.n - 1] == ' ' || name.p[name.n - 1] == '\t' || name.p[name.n - 1] == '\r'))
            --name.n;
        if (name.n == 0 || same(name, "identity"))
            continue;
        const gx_coding_state state = same(name, "chunked") ? undo_chunks(body) : undo_compression(s, name, body);
        if (state > worst) {
            worst = state;
            *which = name;
        }
        if (state > GX_CODING_DAMAGED)
            break;
    }
    return worst;
}
