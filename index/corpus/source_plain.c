/* source_plain.c: a document a line, and a document a file. */
#include <stdio.h>
#include <string.h>

#include "index/corpus/html.h"
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
    char number[24];
    const int n = snprintf(number, sizeof number, "%" PRIu64, s->plain_lines);
    s->id.n = 0;
    if (!gx_scratch_add(&s->id, number, (size_t)n))
        return no_memory(s, err);
    s->rec.id = (gx_span){s->id.p, s->id.n};
    return GX_OK;
}

/* The path as an id: what may not be in an id becomes %XX, and so does %. */
static bool path_to_id(gx_source *s, const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    s->id.n = 0;
    for (; *path; ++path) {
        const unsigned char c = (unsigned char)*path;
        const char escaped[3] = {'%', hex[c >> 4], hex[c & 15]};
        if (!(c <= ' ' || c == '%' || c == 0x7f ? gx_scratch_add(&s->id, escaped, 3) : gx_scratch_add(&s->id, path, 1)))
            return false;
    }
    return true;
}

static bool names_html(const char *name)
{
    static const char *const ends[] = {".html", ".htm", ".xhtml", ".html.gz", ".htm.gz"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        const size_t m = strlen(ends[i]);
        if (n >= m && strcasecmp(name + n - m, ends[i]) == 0)
            return true;
    }
    return false;
}

static gx_status skip_file(gx_source *s, gx_error *err)
{
    s->in.begin = s->in.end;
    s->in.eof = true;
    return gx_fail_record(s, 1, err, "a file of more than %zu bytes; --max-record takes longer ones", s->in.max_record);
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
    if (!path_to_id(s, s->file.name))
        return no_memory(s, err);
    s->rec.id = (gx_span){s->id.p, s->id.n};
    if (names_html(s->file.name)) {
        s->title.n = 0;
        if (!gx_html_to_text(&s->rec.text, &s->title, true))
            return no_memory(s, err);
        if (s->title.n)
            s->rec.title = (gx_span){s->title.p, s->title.n};
    }
    return GX_OK;
}
