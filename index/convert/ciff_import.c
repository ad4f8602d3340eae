#include "index/convert/ciff.h"

#include <inttypes.h>
#include <math.h>
#include <pb_decode.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utf8proc.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "index/convert/import.h"
#include "index/corpus/input.h"

typedef struct text {
    char *bytes;
    size_t n, max;
} text;

typedef struct field {
    uint32_t tag;
    pb_wire_type_t type;
    uint64_t at; /* byte at which it begins */
} field;

enum { HEADER_MESSAGE, LIST_MESSAGE, DOCUMENT_MESSAGE };

typedef struct import {
    gx_import_setup *setup;
    const gx_import_options *opt;
    const gx_analyzer *analyzer; /* the one that opt names, or NULL */
    gx_input in;
    uint64_t passed; /* decompressed bytes consumed so far */
    uint64_t size;   /* bytes of the file; UINT64_MAX: not known */
    bool ended;      /* the file ended where more bytes were needed */
    gx_error failed; /* the input's error; status GX_OK: none */

    int kind; /* of the message being read */
    uint32_t number;
    uint64_t begin; /* byte at which it begins, after its length */

    uint32_t version, n_lists, n_docs;
    text description, term, last_term, name;
    uint32_t *docids, *tfs, df;
    size_t max_df;
    gx_writer *writer;
    uint32_t *doc_tfs; /* [n_docs] the sum of each document's tfs */
    uint64_t sum_tfs, n_tokens;
    uint32_t n_unequal, unequal, unequal_length; /* documents whose length is another; the first of them */
    uint32_t n_wrong_cfs;                        /* lists whose cf is not the sum of their tfs */
    char wrong_cf[160];                          /* what the first has */
    bool impacts;
} import;

bool gx_ciff_is_utf8(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t len =
            utf8proc_iterate((const utf8proc_uint8_t *)bytes + i, (utf8proc_ssize_t)(n - i), &c);
        if (len <= 0)
            return false;
        i += (size_t)len;
    }
    return true;
}

/* ---- failures ---- */

static const char *message_name(const import *im, char name[128])
{
    char term[68] = "";
    size_t n = im->term.n < 60 ? im->term.n : 60;
    if (im->kind == HEADER_MESSAGE)
        return "the header";
    if (im->kind == LIST_MESSAGE && n) {
        snprintf(term, sizeof term, " ('%.*s')", (int)n, im->term.bytes);
        for (char *c = term; *c; ++c)
            *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
    }
    snprintf(name, 128, "%s %u of %u%s", im->kind == LIST_MESSAGE ? "list" : "document", im->number,
             im->kind == LIST_MESSAGE ? im->n_lists : im->n_docs, term);
    return name;
}

/* "FILE: byte AT: MESSAGE: reason" */
__attribute__((format(printf, 4, 5))) static gx_status bad(const import *im, uint64_t at, gx_error *err,
                                                           const char *format, ...)
{
    char reason[256], name[128];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return gx_fail(err, GX_EINPUT, "%s: byte %" PRIu64 ": %s: %s", im->in.path, at, message_name(im, name), reason);
}

/* Reports why a field could not be read: the input's own error, the end of the file, or bytes that
 * are not protobuf. */
static gx_status malformed(const import *im, const pb_istream_t *s, gx_error *err)
{
    if (im->failed.status != GX_OK)
        return gx_fail(err, im->failed.status, "%s", im->failed.text);
    if (im->ended)
        return bad(im, im->passed, err, "the file ends here");
    return bad(im, im->passed, err, "not protobuf: %s", PB_GET_ERROR(s));
}

/* ---- bytes and fields ---- */

/* Fills the window if it is empty. Returns false if the input has ended or failed. */
static bool has_bytes(import *im)
{
    if (im->in.begin < im->in.end)
        return true;
    if (gx_input_fill(&im->in, &im->failed) == GX_OK && im->in.begin < im->in.end)
        return true;
    im->ended = im->failed.status == GX_OK;
    return false;
}

/* nanopb's callback: copies n bytes from the window and consumes them. */
static bool read_window(pb_istream_t *s, pb_byte_t *to, size_t n)
{
    import *im = s->state;
    while (n) {
        if (!has_bytes(im))
            return false;
        const size_t have = im->in.end - im->in.begin, some = n < have ? n : have;
        memcpy(to, im->in.buf + im->in.begin, some);
        im->in.begin += some;
        im->passed += some;
        to += some;
        n -= some;
    }
    return true;
}

/* Begins the next message, which is of this kind. s then reads its bytes. */
static gx_status begin_message(import *im, int kind, uint32_t number, pb_istream_t *s, gx_error *err)
{
    uint64_t n = 0;
    im->kind = kind;
    im->number = number;
    im->term.n = im->name.n = 0;
    *s = (pb_istream_t){.callback = read_window, .state = im, .bytes_left = SIZE_MAX};
    const uint64_t at = im->passed;
    if (!pb_decode_varint(s, &n))
        return malformed(im, s, err);
    if (n > SIZE_MAX / 2 || (im->size >= im->passed && im->size != UINT64_MAX && n > im->size - im->passed))
        return bad(im, at, err, "a message of %" PRIu64 " bytes does not fit: %" PRIu64 " are left", n,
                   im->size == UINT64_MAX ? SIZE_MAX / 2 : im->size - im->passed);
    s->bytes_left = (size_t)n;
    im->begin = im->passed;
    return GX_OK;
}

static gx_status next_field(import *im, pb_istream_t *s, field *f, gx_error *err)
{
    bool eof;
    f->at = im->passed;
    if (!pb_decode_tag(s, &f->type, &f->tag, &eof))
        return malformed(im, s, err);
    return f->tag ? GX_OK : bad(im, f->at, err, "a field of number 0");
}

static gx_status skip_field(import *im, pb_istream_t *s, const field *f, gx_error *err)
{
    return pb_skip_field(s, f->type) ? GX_OK : malformed(im, s, err);
}

/* Reads an int32 that must not be negative. */
static gx_status read_number(import *im, pb_istream_t *s, const field *f, const char *name, uint32_t *value,
                             gx_error *err)
{
    uint64_t v = 0;
    if (f->type != PB_WT_VARINT)
        return bad(im, f->at, err, "%s is not a number: wire type %d", name, (int)f->type);
    if (!pb_decode_varint(s, &v))
        return malformed(im, s, err);
    if (v > INT32_MAX)
        return bad(im, f->at, err, "%s is %" PRId64 ", where one in [0, 2^31) must stand", name, (int64_t)v);
    *value = (uint32_t)v;
    return GX_OK;
}

static gx_status read_text(import *im, pb_istream_t *s, const field *f, const char *name, text *to, gx_error *err)
{
    uint64_t n = 0;
    if (f->type != PB_WT_STRING)
        return bad(im, f->at, err, "%s is not a string: wire type %d", name, (int)f->type);
    if (!pb_decode_varint(s, &n))
        return malformed(im, s, err);
    if (n > s->bytes_left || n > GX_MAX_STRING)
        return bad(im, f->at, err, "%s of %" PRIu64 " bytes; the message has %zu more, and the most is %u", name, n,
                   s->bytes_left, GX_MAX_STRING);
    if (!gx_reserve(&to->bytes, &to->max, n, 1))
        return gx_fail(err, GX_ENOMEM, "%s: no memory for a string of %" PRIu64 " bytes", im->in.path, n);
    if (!pb_read(s, (pb_byte_t *)to->bytes, n))
        return malformed(im, s, err);
    if (!gx_ciff_is_utf8(to->bytes, n))
        return bad(im, f->at, err, "%s is not UTF-8", name);
    to->n = n;
    return GX_OK;
}

/* ---- messages ---- */

static gx_status read_header(import *im, gx_error *err)
{
    pb_istream_t s;
    field f;
    gx_status st = begin_message(im, HEADER_MESSAGE, 0, &s, err);
    while (st == GX_OK && s.bytes_left) {
        if ((st = next_field(im, &s, &f, err)) != GX_OK)
            break;
        switch (f.tag) {
        case GX_CIFF_VERSION:
            st = read_number(im, &s, &f, "version", &im->version, err);
            break;
        case GX_CIFF_N_LISTS:
            st = read_number(im, &s, &f, "num_postings_lists", &im->n_lists, err);
            break;
        case GX_CIFF_N_DOCS:
            st = read_number(im, &s, &f, "num_docs", &im->n_docs, err);
            break;
        case GX_CIFF_DESCRIPTION:
            st = read_text(im, &s, &f, "the description", &im->description, err);
            break;
        default:
            st = skip_field(im, &s, &f, err);
        }
    }
    if (st == GX_OK && im->version != 1)
        st = bad(im, im->begin, err, "version %u; only 1 is known (is this CIFF?)", im->version);
    return st;
}

static gx_status grow_postings(import *im, gx_error *err)
{
    if (im->df < im->max_df)
        return GX_OK;
    const size_t max = im->max_df ? 2 * im->max_df : 1024;
    uint32_t *docids = reallocarray(im->docids, max, sizeof *docids);
    if (docids)
        im->docids = docids;
    uint32_t *tfs = docids ? reallocarray(im->tfs, max, sizeof *tfs) : NULL;
    if (!tfs)
        return gx_fail(err, GX_ENOMEM, "%s: no memory for a list of %zu postings", im->in.path, max);
    im->tfs = tfs;
    im->max_df = max;
    return GX_OK;
}

static gx_status read_posting(import *im, pb_istream_t *list, const field *posting, gx_error *err)
{
    pb_istream_t s;
    field f;
    uint32_t gap = 0, tf = 0;
    if (posting->type != PB_WT_STRING)
        return bad(im, posting->at, err, "a posting is not a message: wire type %d", (int)posting->type);
    if (!pb_make_string_substream(list, &s))
        return malformed(im, list, err);
    gx_status st = GX_OK;
    while (st == GX_OK && s.bytes_left) {
        if ((st = next_field(im, &s, &f, err)) != GX_OK)
            break;
        switch (f.tag) {
        case GX_CIFF_GAP:
            st = read_number(im, &s, &f, "a docid", &gap, err);
            break;
        case GX_CIFF_TF:
            st = read_number(im, &s, &f, "a tf", &tf, err);
            break;
        default:
            st = skip_field(im, &s, &f, err);
        }
    }
    if (st != GX_OK || (st = grow_postings(im, err)) != GX_OK)
        return st;
    const uint32_t last = im->df ? im->docids[im->df - 1] : 0, docid = last + gap; /* both below 2^31 */
    if (docid >= im->n_docs || (im->df && gap == 0))
        return bad(im, posting->at, err, "docid %u (difference %u) where one in [%u, %u) must stand", docid, gap,
                   im->df ? last + 1 : 0, im->n_docs);
    if (tf == 0)
        return bad(im, posting->at, err, "a tf of 0");
    im->docids[im->df] = docid;
    im->tfs[im->df++] = tf;
    return GX_OK;
}

/* Reads a varint in [0, 2^31) at *p, below end, and moves *p behind it. Returns false for anything
 * else. */
static bool take_varint(const uint8_t **p, const uint8_t *end, uint32_t *value)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 35 && *p < end; shift += 7) {
        const uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = (uint32_t)v;
            return v <= INT32_MAX;
        }
    }
    return false;
}

/* Reads postings from the window in the form that all exporters write: the docid gap, unless it is
 * 0, and the tf, nothing else. Stops at the first posting that is incomplete, of another form or
 * invalid. read_posting then handles that one and reports errors. */
static void take_postings(import *im, pb_istream_t *list)
{
    enum { POSTING_TAG = GX_CIFF_POSTINGS << 3 | PB_WT_STRING, GAP_TAG = GX_CIFF_GAP << 3, TF_TAG = GX_CIFF_TF << 3 };
    const uint8_t *const begin = (const uint8_t *)im->in.buf + im->in.begin;
    const size_t have = im->in.end - im->in.begin, n = have < list->bytes_left ? have : list->bytes_left;
    const uint8_t *const end = begin + n, *at = begin;
    uint32_t df = im->df, last = df ? im->docids[df - 1] : 0;
    while (df < im->max_df && end - at > 2 && at[0] == POSTING_TAG && at[1] < 128 && end - at - 2 >= at[1]) {
        const uint8_t *p = at + 2, *const posting_end = p + at[1];
        uint32_t gap = 0, tf = 0;
        if (p < posting_end && *p == GAP_TAG && (++p, !take_varint(&p, posting_end, &gap)))
            break;
        if (p == posting_end || *p++ != TF_TAG || !take_varint(&p, posting_end, &tf) || p != posting_end || tf == 0 ||
            (df && gap == 0) || last + gap >= im->n_docs)
            break;
        last += gap;
        im->docids[df] = last;
        im->tfs[df++] = tf;
        at = posting_end;
    }
    const size_t taken = (size_t)(at - begin);
    im->df = df;
    im->in.begin += taken;
    im->passed += taken;
    list->bytes_left -= taken;
}

static int compare(const text *a, const text *b)
{
    const size_t n = a->n < b->n ? a->n : b->n;
    const int c = n ? memcmp(a->bytes, b->bytes, n) : 0;
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

/* Adds the list that has been read to the index. df is what its message says. */
static gx_status add_list(import *im, uint32_t df, gx_error *err)
{
    const text *last = &im->last_term;
    if (im->term.n == 0)
        return bad(im, im->begin, err, "a list without a term");
    if (df != im->df)
        return bad(im, im->begin, err, "df is %u, but there are %u postings", df, im->df);
    if (im->number > 0 && compare(last, &im->term) >= 0)
        return bad(im, im->begin, err, "it must come behind the list before, '%.*s', in byte order",
                   (int)(last->n < 60 ? last->n : 60), last->bytes);
    for (uint32_t i = 0; i < df; ++i) {
        im->doc_tfs[im->docids[i]] += im->tfs[i];
        im->sum_tfs += im->tfs[i];
    }
    const gx_status st =
        df == 0 ? GX_OK : gx_writer_add_list(im->writer, im->term.bytes, im->term.n, df, im->docids, im->tfs, err);
    const text t = im->last_term;
    im->last_term = im->term;
    im->term = t;
    im->term.n = 0;
    return st;
}

/* Count the list if its cf is not the sum of its tfs, which the index computes anew. */
static void check_cf(import *im, uint64_t cf)
{
    char name[128];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < im->df; ++i)
        sum += im->tfs[i];
    if (sum != cf && im->n_wrong_cfs++ == 0)
        snprintf(im->wrong_cf, sizeof im->wrong_cf, "%s: cf %" PRIu64 ", sum %" PRIu64, message_name(im, name), cf,
                 sum);
}

static gx_status read_cf(import *im, pb_istream_t *s, const field *f, uint64_t *cf, gx_error *err)
{
    if (f->type != PB_WT_VARINT)
        return bad(im, f->at, err, "cf is not a number: wire type %d", (int)f->type);
    return pb_decode_varint(s, cf) ? GX_OK : malformed(im, s, err);
}

static gx_status read_list(import *im, uint32_t number, gx_error *err)
{
    pb_istream_t s;
    field f;
    uint32_t df = 0;
    uint64_t cf = 0;
    bool has_cf = false;
    im->df = 0;
    gx_status st = begin_message(im, LIST_MESSAGE, number, &s, err);
    while (st == GX_OK && s.bytes_left) {
        if ((st = next_field(im, &s, &f, err)) != GX_OK)
            break;
        switch (f.tag) {
        case GX_CIFF_POSTINGS:
            if ((st = read_posting(im, &s, &f, err)) == GX_OK)
                take_postings(im, &s);
            break;
        case GX_CIFF_TERM:
            st = read_text(im, &s, &f, "a term", &im->term, err);
            break;
        case GX_CIFF_DF:
            st = read_number(im, &s, &f, "df", &df, err);
            break;
        case GX_CIFF_CF:
            st = read_cf(im, &s, &f, &cf, err);
            has_cf = true;
            break;
        default:
            st = skip_field(im, &s, &f, err);
        }
    }
    if (st == GX_OK && has_cf && !im->impacts)
        check_cf(im, cf);
    return st == GX_OK ? add_list(im, df, err) : st;
}

static gx_status read_document(import *im, uint32_t number, gx_error *err)
{
    pb_istream_t s;
    field f;
    uint32_t docid = 0, length = 0;
    gx_status st = begin_message(im, DOCUMENT_MESSAGE, number, &s, err);
    while (st == GX_OK && s.bytes_left) {
        if ((st = next_field(im, &s, &f, err)) != GX_OK)
            break;
        switch (f.tag) {
        case GX_CIFF_DOCID:
            st = read_number(im, &s, &f, "docid", &docid, err);
            break;
        case GX_CIFF_NAME:
            st = read_text(im, &s, &f, "a collection_docid", &im->name, err);
            break;
        case GX_CIFF_LENGTH:
            st = read_number(im, &s, &f, "doclength", &length, err);
            break;
        default:
            st = skip_field(im, &s, &f, err);
        }
    }
    if (st != GX_OK)
        return st;
    if (docid != number)
        return bad(im, im->begin, err, "docid %u where %u must stand", docid, number);
    if (im->name.n == 0)
        return bad(im, im->begin, err, "a document without a collection_docid");
    im->n_tokens += length;
    if (im->doc_tfs[number] != length && im->n_unequal++ == 0) {
        im->unequal = number;
        im->unequal_length = length;
    }
    st = gx_writer_add_document(im->writer, &(gx_document){.id = im->name.bytes, .id_len = im->name.n}, length, err);
    im->setup->source = im->in.path;
    return st == GX_OK ? gx_import_add_document(im->setup, im->name.bytes, im->name.n, err) : st;
}

static gx_status read_all(import *im, gx_error *err)
{
    const gx_import_options *o = im->opt;
    gx_status st = GX_OK;
    for (uint32_t i = 0; st == GX_OK && i < im->n_lists; ++i)
        st = o->cancel && o->cancel(o->user) ? gx_fail(err, GX_ECANCELLED, "cancelled") : read_list(im, i, err);
    for (uint32_t i = 0; st == GX_OK && i < im->n_docs; ++i)
        st = i % 4096 == 0 && o->cancel && o->cancel(o->user) ? gx_fail(err, GX_ECANCELLED, "cancelled")
                                                              : read_document(im, i, err);
    if (st != GX_OK)
        return st;
    if (has_bytes(im))
        return gx_fail(err, GX_EINPUT, "%s: byte %" PRIu64 ": bytes follow the last of %u documents", im->in.path,
                       im->passed, im->n_docs);
    /* Exporters with lossy lengths have other sums altogether. */
    if (!im->impacts && im->n_unequal && im->sum_tfs == im->n_tokens)
        return gx_fail(err, GX_EINPUT, "%s: document %u has length %u, but its tfs add up to %u", im->in.path,
                       im->unequal, im->unequal_length, im->doc_tfs[im->unequal]);
    return im->failed.status == GX_OK ? GX_OK : gx_fail(err, im->failed.status, "%s", im->failed.text);
}

/* If the description is that of one of our own exports, the text that follows the first occurrence
 * of `words` in it. Otherwise, or if there is none, NULL. */
static const char *find_described(const text *d, const char *words)
{
    static const char maker[] = GX_CIFF_MAKER;
    if (d->n < sizeof maker || memcmp(d->bytes, maker, sizeof maker - 1) != 0)
        return NULL;
    const char *found = memmem(d->bytes, d->n, words, strlen(words));
    return found ? found + strlen(words) : NULL;
}

static bool describes_impacts(const text *d)
{
    const char *impacts = find_described(d, GX_CIFF_IMPACTS), *json = find_described(d, GX_CIFF_ANALYZER);
    return impacts && (!json || impacts < json); /* not part of the analyzer's JSON */
}

/* The unit of impacts that one of our own exports names in its description; 1 where it names none. */
static double described_unit(const text *d)
{
    const char *unit = find_described(d, GX_CIFF_UNIT), *json = find_described(d, GX_CIFF_ANALYZER);
    char number[40] = "";
    if (unit && (!json || unit < json)) {
        const size_t left = (size_t)(d->bytes + d->n - unit), n = left < sizeof number ? left : sizeof number - 1;
        memcpy(number, unit, n);
        number[n] = 0;
    }
    const double x = gx_strtod(number, NULL);
    return isfinite(x) && x > 0 ? x : 1;
}

/* Open the analyzer that one of our own exports names in its description; *an stays NULL if it names
 * none. GX_EINPUT, GX_ENOMEM. */
static gx_status open_described_analyzer(const import *im, gx_analyzer **an, gx_error *err)
{
    const text *d = &im->description;
    gx_error why;
    const char *json = find_described(d, GX_CIFF_ANALYZER);
    if (!json)
        return GX_OK;
    const gx_status st = gx_analyzer_open_json(an, json, d->n - (size_t)(json - d->bytes), &why);
    return st == GX_OK ? GX_OK
           : st == GX_ENOMEM
               ? gx_fail(err, st, "%s", why.text)
               : gx_fail(err, GX_EINPUT, "%s: the description: %s; name an analyzer", im->in.path, why.text);
}

static gx_status finish(import *im, gx_error *err)
{
    gx_analyzer *described = NULL;
    if (im->n_wrong_cfs)
        gx_import_warn(im->setup,
                       "%s: %u of %u lists have a cf that is not the sum of their tfs (%s); the sums are taken",
                       im->in.path, im->n_wrong_cfs, im->n_lists, im->wrong_cf);
    gx_status st = im->analyzer ? GX_OK : open_described_analyzer(im, &described, err);
    if (st == GX_OK)
        st = gx_import_end_documents(im->setup, err);
    if (st == GX_OK)
        st = gx_writer_finish_with(im->writer, described ? described : im->analyzer, err);
    gx_analyzer_close(described);
    return st;
}

/* The size of the file, or UINT64_MAX if it is compressed or not a regular file. */
static uint64_t known_size(const gx_input *in)
{
    struct stat st;
    return in->layers[0].unpack || fstat(in->fd, &st) || !S_ISREG(st.st_mode) ? UINT64_MAX : (uint64_t)st.st_size;
}

static gx_status import_file(const char *file, const char *path, gx_import_setup *setup, gx_error *err)
{
import im = {.setup = setup, .opt = & setup->options, .analyzer = setup->analyzer, .in = GX_INPUT_INIT };
    im.in.binary = true;
    im.in.cancel = im.opt->cancel;
    im.in.user = im.opt->user;
    gx_status st = gx_input_open(&im.in, file, err);
    if (st == GX_OK) {
        im.size = known_size(&im.in);
        st = read_header(&im, err);
    }
    if (st == GX_OK) {
        setup->writer.n_docs = im.n_docs;
        im.impacts = setup->writer.impacts = im.opt->impacts || describes_impacts(&im.description);
        if (!(im.doc_tfs = calloc((size_t)im.n_docs + 1, sizeof *im.doc_tfs)))
            st = gx_fail(err, GX_ENOMEM, "%s: no memory for the lengths of %u documents", file, im.n_docs);
    }
    if (st == GX_OK) {
        st = gx_writer_open(&im.writer, path, &setup->writer, err);
    }
    if (st == GX_OK)
        gx_writer_set_unit(im.writer, described_unit(&im.description));
    if (st == GX_OK)
        st = read_all(&im, err);
    if (st == GX_OK)
        st = finish(&im, err);
    gx_writer_close(im.writer);
    gx_input_free(&im.in);
    free(im.description.bytes);
    free(im.term.bytes);
    free(im.last_term.bytes);
    free(im.name.bytes);
    free(im.docids);
    free(im.doc_tfs);
    free(im.tfs);
    return st;
}

gx_status gx_ciff_import(const char *file, const char *path, const gx_import_options *opt, gx_error *err)
{
    gx_import_setup setup;
    gx_status st = gx_import_setup_open(&setup, opt, path, err);
    if (st == GX_OK)
        st = import_file(file, path, &setup, err);
    gx_import_setup_close(&setup);
    return st;
}
