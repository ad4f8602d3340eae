#include "index/corpus/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/text/ascii.h"
#include "index/corpus/line_cuts.h"
#include "index/corpus/line_ranges.h"
#include "index/corpus/source_reader.h"
#include "index/corpus/unpack_ahead.h"

enum {
    MAX_RECORD = 64 << 20,
    MAX_ID = 4096,
    MAX_TITLE = 1 << 20 /* what an index file takes */
};

static const struct format {
    const char *name;
    gx_reader_fn *read;
} formats[] = {
    [GX_SOURCE_GUESS] = {"guess", NULL},
    [GX_SOURCE_JSONL] = {"jsonl", gx_read_json},
    [GX_SOURCE_TSV] = {"tsv", gx_read_tsv},
    [GX_SOURCE_CSV] = {"csv", gx_read_csv},
    [GX_SOURCE_TRECTEXT] = {"trectext", gx_read_trectext},
    [GX_SOURCE_TRECWEB] = {"trecweb", gx_read_trecweb},
    [GX_SOURCE_SMART] = {"smart", gx_read_smart},
    [GX_SOURCE_WARC] = {"warc", gx_read_warc},
    [GX_SOURCE_PLAIN] = {"plain", gx_read_plain},
    [GX_SOURCE_FILES] = {"files", gx_read_file},
    [GX_SOURCE_VECTORS] = {"vectors", gx_read_vectors},
    [GX_SOURCE_CSR] = {"csr", gx_read_csr},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

bool gx_source_format_find(const char *name, gx_source_format *out)
{
    for (int i = GX_SOURCE_GUESS + 1; i < N_FORMATS; ++i)
        if (strcmp(name, formats[i].name) == 0) {
            *out = (gx_source_format)i;
            return true;
        }
    return false;
}

const char *gx_source_format_name(gx_source_format f)
{
    return (unsigned)f < N_FORMATS ? formats[f].name : "unknown";
}

/* ---- scratch ---- */

bool gx_scratch_reserve(gx_scratch *b, size_t n)
{
    return b->cap - b->n >= n || gx_reserve(&b->p, &b->cap, b->n + n, 1);
}

bool gx_scratch_add(gx_scratch *b, const char *p, size_t n)
{
    if (!gx_scratch_reserve(b, n))
        return false;
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return true;
}

/* ---- attributes ---- */

uint32_t gx_source_find_attribute(const gx_source *s, const char *name, size_t n)
{
    uint32_t i = 0;
    while (i < s->opt.n_attributes &&
           (strlen(s->opt.attributes[i].name) != n || memcmp(s->opt.attributes[i].name, name, n) != 0))
        ++i;
    return i;
}

gx_status gx_source_add_value(gx_source *s, uint32_t i, gx_span text, gx_error *err)
{
    if (!gx_reserve(&s->values, &s->max_values, s->n_values + (size_t)1, sizeof *s->values))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    s->values[s->n_values++] = (gx_attribute_value){i, text.p, text.n};
    return GX_OK;
}

gx_status gx_source_add_weight(gx_source *s, const char *term, size_t len, float weight, gx_error *err)
{
    if (!gx_reserve(&s->vector, &s->max_vector, s->n_vector + (size_t)1, sizeof *s->vector))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    s->vector[s->n_vector++] = (gx_weighted_term){term, len, weight};
    return GX_OK;
}

char *gx_put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* ---- which format ---- */

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && gx_same_text(name + n - m, end);
}

static gx_source_format guess_by_name(const char *name)
{
    static const struct {
        const char *end;
        gx_source_format format;
    } ends[] = {
        {".jsonl", GX_SOURCE_JSONL},       {".ndjson", GX_SOURCE_JSONL},    {".json", GX_SOURCE_JSONL},
        {".tsv", GX_SOURCE_TSV},           {".tab", GX_SOURCE_TSV},         {".csv", GX_SOURCE_CSV},
        {".trectext", GX_SOURCE_TRECTEXT}, {".trecweb", GX_SOURCE_TRECWEB}, {".html", GX_SOURCE_FILES},
        {".warc", GX_SOURCE_WARC},         {".htm", GX_SOURCE_FILES},       {".xhtml", GX_SOURCE_FILES},
    };
    static const char *const packed[] = {".gz", ".bz2", ".xz", ".zst", ".zstd"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; ++i) {
        const size_t m = strlen(packed[i]);
        if (n > m && gx_same_text(name + n - m, packed[i])) {
            n -= m;
            break;
        }
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        const size_t m = strlen(ends[i].end);
        if (n >= m && gx_same_start(name + n - m, ends[i].end, m))
            return ends[i].format;
    }
    return GX_SOURCE_GUESS;
}

/* Do the window's first lines all have the same one or two tabs? */
static bool looks_tabbed(const char *p, const char *end)
{
    unsigned tabs = 0, lines = 0;
    while (p < end && lines < 16) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl && lines > 0)
            break; /* perhaps cut off */
        unsigned n = 0;
        for (const char *q = p; q < (nl ? nl : end); ++q)
            n += *q == '\t';
        if (n < 1 || n > 2 || (lines > 0 && n != tabs))
            return false;
        tabs = n;
        ++lines;
        p = nl ? nl + 1 : end;
    }
    return lines > 0;
}

static gx_source_format guess_by_content(const gx_input *in)
{
    const char *p = in->buf + in->begin, *end = in->buf + in->end;
    while (p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r')))
        ++p;
    const size_t n = (size_t)(end - p) < 4096 ? (size_t)(end - p) : 4096;
    if (n > 0 && *p == '{')
        return GX_SOURCE_JSONL;
    if (n >= 5 && gx_same_start(p, "<DOC", 4) && (p[4] == '>' || p[4] == ' ' || (p[4] >= '\t' && p[4] <= '\r')))
        return memmem(p, n, "<DOCHDR>", 8) || memmem(p, n, "<dochdr>", 8) ? GX_SOURCE_TRECWEB : GX_SOURCE_TRECTEXT;
    if (n >= 3 && !memcmp(p, ".I", 2) && (p[2] == ' ' || p[2] == '\t'))
        return GX_SOURCE_SMART;
    if (n >= 7 && !memcmp(p, "WARC/1.", 7))
        return GX_SOURCE_WARC;
    if (looks_tabbed(in->buf + in->begin, end))
        return GX_SOURCE_TSV;
    return GX_SOURCE_GUESS;
}

static gx_status find_format(gx_source *s, gx_error *err)
{
    s->format = s->opt.format;
    if (s->format == GX_SOURCE_GUESS && s->file.in_directory && s->guessed_input == s->file.input + 1)
        s->format = s->guessed;
    if (s->format != GX_SOURCE_GUESS)
        return GX_OK;
    s->format = guess_by_name(s->file.name);
    if (s->format == GX_SOURCE_GUESS)
        s->format = guess_by_content(&s->in);
    if (s->format == GX_SOURCE_GUESS && ends_in(s->file.name, ".csr"))
        return gx_fail(err, GX_EUSAGE,
                       "cannot tell the format of %s, which may be a matrix of vectors (csr): those are not guessed",
                       s->in.path);
    if (s->file.in_directory) {
        if (s->format == GX_SOURCE_GUESS)
            s->format = GX_SOURCE_FILES;
        s->guessed_input = s->file.input + 1;
        s->guessed = s->format;
    }
    if (s->format != GX_SOURCE_GUESS || (s->in.eof && s->in.begin == s->in.end))
        return GX_OK;
    return gx_fail(err, GX_EUSAGE,
                   "cannot tell the format of %s "
                   "(jsonl, tsv, csv, trectext, trecweb, smart, warc, plain or files; vectors and csr are not guessed)",
                   s->in.path);
}

static gx_status choose_format(gx_source *s, gx_error *err)
{
    const gx_status st = find_format(s, err);
    if (!st && s->format != GX_SOURCE_WARC) /* whose pages may be compressed */
        gx_input_replace_nuls(&s->in);
    if (!st && s->format == GX_SOURCE_WARC && s->in.latin1)
        return gx_fail(err, GX_EUSAGE, "%s: WARC says lengths in bytes, and cannot be read as Latin-1", s->in.path);
    return st;
}

/* ---- making it fit to be indexed, stored and printed ---- */

/* Bytes of the UTF-8 character at p, negative if it is none: then that number of bytes is one
 * replacement (the Unicode Standard, 3.9, "maximal subpart"). */
static int utf8_sequence_length(const unsigned char *p, const unsigned char *end)
{
    const unsigned char c = p[0];
    const int n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (n == 0)
        return -1;
    for (int i = 1; i < n; ++i) {
        unsigned low = 0x80, high = 0xbf;
        if (i == 1) {
            low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : low;
            high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : high;
        }
        if (p + i >= end || p[i] < low || p[i] > high)
            return -i;
    }
    return n;
}

/* The bytes of 8 that are not ASCII, as their highest bits. */
static uint64_t high_bits(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x & 0x8080808080808080u;
}

size_t gx_ascii_prefix(const char *p, size_t n)
{
    size_t i = 0;
    while (i + 32 <= n && !(high_bits(p + i) | high_bits(p + i + 8) | high_bits(p + i + 16) | high_bits(p + i + 24)))
        i += 32;
    for (; i + 8 <= n; i += 8) {
        const uint64_t high = high_bits(p + i);
        if (high) /* little-endian: the first byte has the lowest bits */
            return i + (size_t)__builtin_ctzll(high) / 8;
    }
    while (i < n && (signed char)p[i] >= 0)
        ++i;
    return i;
}

/* Length of the longest prefix that is UTF-8. */
static size_t valid_prefix(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t i = 0;
    while (i < n) {
        i += gx_ascii_prefix(p + i, n - i);
        while (i < n && u[i] >= 0x80) {
            const int len = utf8_sequence_length(u + i, u + n);
            if (len < 0)
                return i;
            i += (size_t)len;
        }
    }
    return n;
}

static bool convert_latin1(gx_span *a, gx_scratch *b)
{
    b->n = 0;
    for (size_t i = 0; i < a->n; ++i) {
        char utf8[4];
        const char *end = gx_put_utf8(utf8, gx_latin1_code((unsigned char)a->p[i]));
        if (!gx_scratch_add(b, utf8, (size_t)(end - utf8)))
            return false;
    }
    *a = (gx_span){b->p, b->n};
    return true;
}

/* Make the span a UTF-8. Where it is not, a converted or repaired copy in b takes its place. */
static bool repair_utf8(gx_source *s, gx_span *a, gx_scratch *b)
{
    uint64_t *replaced = &s->counts.replaced;
    size_t good = valid_prefix(a->p, a->n);
    if (good == a->n)
        return true;
    if (s->opt.else_latin1) {
        ++s->counts.latin1;
        return convert_latin1(a, b);
    }
    const char *p = a->p, *const end = a->p + a->n;
    b->n = 0;
    while (p < end) {
        if (!gx_scratch_add(b, p, good))
            return false;
        p += good;
        if (p < end) {
            p += -utf8_sequence_length((const unsigned char *)p, (const unsigned char *)end);
            ++*replaced;
            if (!gx_scratch_add(b, "\xef\xbf\xbd", 3))
                return false;
        }
        good = valid_prefix(p, (size_t)(end - p));
    }
    *a = (gx_span){b->p, b->n};
    return true;
}

/* White space of any script, control characters, and byte order marks, which are no part of an id in other files. */
static bool is_forbidden_in_id(utf8proc_int32_t c)
{
    const utf8proc_category_t k = utf8proc_category(c);
    return c == 0xfeff || k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL || k == UTF8PROC_CATEGORY_ZP ||
           k == UTF8PROC_CATEGORY_CC;
}

static gx_status check_id(gx_source *s, gx_error *err)
{
    const gx_span id = s->rec.id;
    const int shown = (int)(id.n < 60 ? id.n : 60);
    if (id.n == 0)
        return gx_fail_record(s, s->rec.line, err, "the id is empty");
    if (id.n > MAX_ID)
        return gx_fail_record(s, s->rec.line, err, "an id of %zu bytes; %d are the most", id.n, MAX_ID);
    if (valid_prefix(id.p, id.n) != id.n)
        return gx_fail_record(s, s->rec.line, err, "the id is not UTF-8");
    for (size_t i = 0; i < id.n;) {
        utf8proc_int32_t c = (unsigned char)id.p[i];
        size_t n = 1;
        if (c >= 0x80)
            n = (size_t)utf8proc_iterate((const utf8proc_uint8_t *)id.p + i, (utf8proc_ssize_t)(id.n - i), &c);
        if (c <= ' ' || (c >= 0x7f && is_forbidden_in_id(c))) {
            if (c == ' ')
                return gx_fail_record(s, s->rec.line, err,
                                      "the id '%.*s' holds white space, which would break TREC runs", shown, id.p);
            return gx_fail_record(s, s->rec.line, err, "the id holds the character U+%04X (%s) at byte %zu",
                                  (unsigned)c, c == 0xfeff ? "a byte order mark" : "white space or control", i + 1);
        }
        i += n;
    }
    return GX_OK;
}

static gx_status check_values(const gx_source *s, gx_error *err)
{
    for (uint32_t i = 0; i < s->n_values; ++i)
        if (valid_prefix(s->values[i].text, s->values[i].len) != s->values[i].len)
            return gx_fail_record(s, s->rec.line, err, "the attribute %s is not UTF-8",
                                  s->opt.attributes[s->values[i].attribute].name);
    return GX_OK;
}

static gx_status check_vector(const gx_source *s, gx_error *err)
{
    for (uint32_t i = 0; i < s->n_vector; ++i)
        if (valid_prefix(s->vector[i].term, s->vector[i].len) != s->vector[i].len)
            return gx_fail_record(s, s->rec.line, err, "term %u of the vector is not UTF-8", i + 1);
    return GX_OK;
}

static bool is_blank(gx_span a)
{
    for (size_t i = 0; i < a.n; ++i)
        if (a.p[i] != ' ' && a.p[i] != GX_FIELD_SEPARATOR && !(a.p[i] >= '\t' && a.p[i] <= '\r'))
            return false;
    return true;
}

/* The record as a document. */
static gx_status finish_document(gx_source *s, gx_error *err)
{
    gx_record *r = &s->rec;
    if (!gx_source_compose_fields(s))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    if (!r->text.p)
        r->text = (gx_span){(char *)"", 0};
    gx_status st = check_id(s, err);
    if (!st)
        st = check_values(s, err);
    if (!st)
        st = check_vector(s, err);
    if (st)
        return st;
    if (!repair_utf8(s, &r->text, &s->fixed_text) || (r->title.p && !repair_utf8(s, &r->title, &s->fixed_title)))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    if (r->title.n > MAX_TITLE)
        return gx_fail_record(s, r->line, err, "a title of %zu bytes; %d are the most", r->title.n, MAX_TITLE);
    s->doc = (gx_source_document){
        .doc = {.size = sizeof(gx_document),
                .id = r->id.p,
                .title = r->title.p,
                .text = r->text.p,
                .id_len = r->id.n,
                .title_len = r->title.n,
                .text_len = r->text.n,
                .values = s->values,
                .n_values = s->n_values,
                .vector = r->has_vector ? s->vector : NULL,
                .n_vector = s->n_vector},
        .file = s->in.path,
        .line = r->line,
    };
    ++s->counts.documents;
    s->counts.empty += r->has_vector ? s->n_vector == 0 : is_blank(r->text) && is_blank(r->title);
    return GX_OK;
}

/* ---- the files, one after another ---- */

/* The next file of the walk, or the next member of the open archive. s->reading stays false where
 * there is none in this one. */
static gx_status open_next_file(gx_source *s, gx_error *err)
{
    gx_status st;
    if (s->in.archive) {
        st = gx_input_next_member(&s->in, &s->file.name, err);
        s->file.in_directory = true;
        if (st || !s->file.name)
            return st;
    } else {
        st = gx_walk_next(s->walk, &s->file, err);
        if (st || !s->file.path)
            return st;
        s->in.number = s->n_walked++;
        if (s->opt.format == GX_SOURCE_CSR) { /* its first bytes may look like those of a compressed file */
            ++s->counts.files;
            s->format = GX_SOURCE_CSR;
            if ((st = gx_csr_open(s, s->file.path, err)) == GX_OK)
                s->reading = true;
            return st;
        }
        if ((st = gx_input_open(&s->in, s->file.path, err)) || s->in.archive)
            return st;
    }
    s->first = s->may_cut = true;
    ++s->counts.files;
    if ((st = choose_format(s, err)) == GX_OK)
        s->reading = true;
    return st;
}

gx_status gx_source_read_record(gx_source *s, bool *found, gx_error *err)
{
    *found = false;
    s->rec = (gx_record){0};
    s->n_values = 0;
    s->n_vector = 0;
    gx_status st = formats[s->format].read ? formats[s->format].read(s, found, err) : GX_OK;
    if (!st && *found)
        st = finish_document(s, err);
    s->counts.bad += st == GX_EINPUT;
    return st;
}

/* Whether the open file's rest may be cut now. */
static bool may_cut(gx_source *s)
{
    const bool may = s->may_cut && !gx_line_cuts_wait(s);
    s->may_cut = s->may_cut && !may; /* it is tried once */
    return may;
}

/* The next document of the open file, from threads if they read it. */
static gx_status read_document(gx_source *s, bool *found, gx_error *err)
{
    const gx_status st = may_cut(s) ? gx_line_ranges_open(&s->ranges, s, err) : GX_OK;
    if (st)
        return st;
    return s->ranges ? gx_line_ranges_next(s->ranges, s, found, err) : gx_source_read_record(s, found, err);
}

void gx_source_close_file(gx_source *s)
{
    gx_line_ranges_close(s->ranges);
    s->ranges = NULL;
    s->reading = false;
    if (!s->in.archive)
        gx_input_close(&s->in);
}

gx_status gx_source_continue(gx_source *s, bool *end, gx_error *err)
{
    *end = false;
    if (s->reading)
        return GX_OK;
    const gx_status st = open_next_file(s, err);
    s->counts.bad += st == GX_EINPUT;
    *end = !st && !s->file.path;
    return st;
}

gx_status gx_source_next(gx_source *s, const gx_source_document **out, gx_error *err)
{
    gx_status st = GX_OK;
    bool found = false, end = false;
    *out = NULL;
    while (!st && !found) {
        if ((st = gx_source_continue(s, &end, err)) || end)
            return st;
        if (!s->reading) /* an archive has been opened, or has no further member */
            continue;
        st = read_document(s, &found, err);
        if (!st && !found)
            gx_source_close_file(s);
    }
    if (!st)
        *out = &s->doc;
    return st;
}

void gx_source_add_counts(gx_source *s, uint64_t documents, uint64_t bad)
{
    s->counts.documents += documents;
    s->counts.bad += bad;
}

gx_status gx_source_open(gx_source **out, const char *const *paths, size_t n, const gx_source_options *opt,
                         gx_error *err)
{
    *out = NULL;
    gx_source_options o = GX_SOURCE_OPTIONS;
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_source_options, user), "gx_source_options", err);
    if (st != GX_OK)
        return st;
    size_t stdins = 0;
    for (size_t i = 0; i < n; ++i)
        stdins += strcmp(paths[i], "-") == 0;
    if (n == 0 || stdins > 1)
        return gx_fail(err, GX_EUSAGE, n == 0 ? "no corpus is given" : "stdin (-) can be read once only");
    if (stdins > 0 && fcntl(STDIN_FILENO, F_GETFD) < 0)
        return gx_fail(err, GX_EIO, "cannot read stdin: it is closed");
    gx_source *s = calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory to read the corpus");
    s->in = GX_INPUT_INIT;
    s->opt = o;
    s->paths = paths;
    s->n_paths = n;
    s->in.max_record = s->opt.max_record ? s->opt.max_record : MAX_RECORD;
    s->in.latin1 = s->opt.latin1;
    s->in.members = s->in.nuls_wait = true;
    s->in.notes = &s->notes;
    s->in.cancel = s->opt.cancel;
    s->in.user = s->opt.user;
    st = gx_source_open_fields(s, err);
    if (!st)
        st = gx_columns_parse(s, err);
    if (!st)
        st = gx_json_members_parse(s, err);
    if (!st)
        st = gx_walk_open(&s->walk, paths, n, err);
    if (!st)
        st = gx_walk_total(paths, n, &s->raw_total, err);
    if (!st)
        gx_walk_set_notes(s->walk, &s->notes);
    if (st) {
        gx_source_close(s);
        return st;
    }
    *out = s;
    return GX_OK;
}

gx_status gx_source_begin_ahead(gx_source *s, uint32_t threads, uint64_t memory, void (*wake)(void *user), void *user,
                                struct gx_unpack_ahead **ahead, gx_error *err)
{
    const gx_unpack_ahead_options opt = {s->paths, s->n_paths, threads, memory, wake, user};
    *ahead = NULL;
    if (s->opt.format == GX_SOURCE_CSR || s->n_paths == 0)
        return GX_OK;
    const gx_status st = gx_unpack_ahead_open(&s->ahead, &opt, err);
    *ahead = s->in.ahead = s->ahead;
    return st;
}

void gx_source_end_ahead(gx_source *s)
{
    if (!s->ahead)
        return;
    if (s->in.is_ahead) {
        gx_input_close(&s->in);
        s->reading = false;
    }
    gx_unpack_ahead_close(s->ahead);
    s->ahead = s->in.ahead = NULL;
}

void gx_source_free_buffers(gx_source *s)
{
    gx_input_free(&s->in);
    free(s->vector);
    free(s->id.p);
    free(s->title.p);
    free(s->text.p);
    free(s->smart_id.p);
    free(s->composed.p);
    free(s->elements.p);
    free(s->fixed_title.p);
    free(s->fixed_text.p);
    free(s->bodies[0].p);
    free(s->bodies[1].p);
    free(s->head_line.p);
    gx_charsets_close(s);
    free(s->values);
}

void gx_source_close(gx_source *s)
{
    if (!s)
        return;
    gx_line_ranges_close(s->ranges); /* first: its threads use the file */
    gx_csr_close(s);
    gx_walk_close(s->walk);
    gx_source_free_buffers(s);
    free(s->with_fields);
    free(s);
}

gx_status gx_source_open_input(gx_source **out, gx_input *in, const gx_source_options *opt, gx_error *err)
{
    gx_source *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", in->path);
    s->opt = *opt;
    gx_status st = gx_walk_open(&s->walk, NULL, 0, err);
    if (!st)
        st = gx_json_members_parse(s, err);
    if (st) {
        gx_walk_close(s->walk);
        free(s);
        return st;
    }
    gx_input_move(&s->in, in);
    s->in.notes = &s->notes;
    s->format = opt->format;
    s->counts.files = 1;
    s->reading = s->first = true;
    *out = s;
    return GX_OK;
}

gx_source_counts gx_source_get_counts(const gx_source *s)
{
    gx_source_counts c = s->counts;
    c.bytes = s->in.bytes;
    c.nul_bytes = s->in.nul_bytes;
    c.raw_bytes = s->in.raw_bytes;
    c.too_long = s->in.too_long;
    c.raw_total = s->raw_total;
    c.format = s->format;
    if (s->walk)
        c.broken_links = gx_walk_broken_links(s->walk, &c.broken_link);
    return c;
}

bool gx_source_get_note(const gx_source *s, size_t i, gx_source_note *out)
{
    if (i >= s->notes.n)
        return false;
    *out = gx_notes_describe(&s->notes.list[i]);
    return true;
}
