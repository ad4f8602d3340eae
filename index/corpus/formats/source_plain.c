/* source_plain.c: a document a line, and a document a file. */
#include <stdio.h>
#include <string.h>

#include "engine/text/ascii.h"
#include "index/corpus/formats/charset.h"
#include "index/corpus/formats/html.h"
#include "index/corpus/source_reader.h"

static gx_status no_memory(gx_source *s, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
}

gx_status gx_read_plain(gx_source *s, bool *found, gx_error *err)
{
    s->rec.line = s->in.line;
    s->plain_lines++; /* a line that is refused has its number, too */
    const gx_status st = gx_input_line(&s->in, &s->rec.text.p, &s->rec.text.n, found, err);
    if (!st && !*found)
        s->plain_lines--; /* there was none */
    if (st || !*found)
        return st;
    gx_skip_mark(&s->rec.text.p, &s->rec.text.n);
    char number[24];
    const int n = snprintf(number, sizeof number, "%" PRIu64, s->plain_lines);
    s->id.n = 0;
    if (!gx_scratch_add(&s->id, number, (size_t)n))
        return no_memory(s, err);
    s->rec.id = (gx_span){s->id.p, s->id.n};
    return GX_OK;
}

/* The name as an id: what may not be in an id becomes %XX, and so does %. */
static bool escape_id(gx_source *s, const char *p, size_t n)
{
    static const char hex[] = "0123456789ABCDEF";
    s->id.n = 0;
    for (const char *const end = p + n; p < end; ++p) {
        const unsigned char c = (unsigned char)*p;
        const char escaped[3] = {'%', hex[c >> 4], hex[c & 15]};
        if (!(c <= ' ' || c == '%' || c == 0x7f ? gx_scratch_add(&s->id, escaped, 3) : gx_scratch_add(&s->id, p, 1)))
            return false;
    }
    return true;
}

/* The name's length without the ending of a compressed file. */
static size_t unpacked_length(const char *name)
{
    static const char *const packed[] = {".gz", ".bz2", ".xz", ".zst", ".zstd"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; ++i) {
        const size_t m = strlen(packed[i]);
        if (n > m && gx_same_text(name + n - m, packed[i]))
            return n - m;
    }
    return n;
}

/* Where the name's ending begins, or its end; that of a compressed file is passed over first. */
static size_t stem_length(const char *name)
{
    const size_t n = unpacked_length(name);
    const char *dot = memrchr(name, '.', n);
    return dot && dot > name ? (size_t)(dot - name) : n;
}

static bool file_to_id(gx_source *s, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path;
    if (s->opt.file_id == GX_FILE_ID_PATH)
        return escape_id(s, path, strlen(path));
    return escape_id(s, name, s->opt.file_id == GX_FILE_ID_STEM ? stem_length(name) : strlen(name));
}

static bool names_html(const char *name)
{
    static const char *const ends[] = {".html", ".htm", ".xhtml"};
    const size_t n = unpacked_length(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        const size_t m = strlen(ends[i]);
        if (n >= m && gx_same_start(name + n - m, ends[i], m))
            return true;
    }
    return false;
}

static gx_status skip_file(gx_source *s, gx_error *err)
{
    s->in.begin = s->in.end;
    s->in.eof = true;
    ++s->in.too_long;
    return gx_fail_record(s, 1, err, "a file of more than %zu bytes", s->in.max_record);
}

gx_status gx_read_file(gx_source *s, bool *found, gx_error *err)
{
    gx_input *in = &s->in;
    *found = s->first;
    if (!s->first)
        return GX_OK;
    s->first = false;
    while (!in->eof) {
        if (in->end - in->begin > in->max_record)
            return skip_file(s, err);
        const gx_status st = gx_input_fill(in, err);
        if (st)
            return st;
    }
    if (in->end - in->begin > in->max_record)
        return skip_file(s, err);
    s->rec.line = 1;
    s->rec.text = (gx_span){in->buf + in->begin, in->end - in->begin};
    in->begin = in->end;
    if (!file_to_id(s, s->file.name))
        return no_memory(s, err);
    s->rec.id = (gx_span){s->id.p, s->id.n};
    if (names_html(s->file.name)) {
        const gx_status st = gx_page_to_utf8(s, &s->rec.text, (gx_span){0}, true, err);
        if (st)
            return st;
        s->title.n = 0;
        if (!gx_html_to_text(&s->rec.text, &s->title, true))
            return no_memory(s, err);
        if (s->title.n)
            s->rec.title = (gx_span){s->title.p, s->title.n};
    }
    return GX_OK;
}
