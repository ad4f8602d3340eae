/* source_smart.c: collections in the form of SMART, as Cranfield and CACM come: ".I 17" begins a
 * document, and a line of a dot and a capital begins a field of it. .T is the title, .A (authors)
 * and .W (words) are the text; all others are left out. */
#include <string.h>

#include "index/corpus/source_reader.h"

static gx_status no_memory(gx_source *s, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
}

static size_t trimmed(const char *line, size_t len)
{
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        --len;
    return len;
}

/* Whether a document begins with this line. If so, its id is kept, without blanks around it. */
static gx_status begin_document(gx_source *s, const char *line, size_t len, bool *begins, gx_error *err)
{
    *begins = len >= 2 && !memcmp(line, ".I", 2) && (len == 2 || line[2] == ' ' || line[2] == '\t');
    if (!*begins)
        return GX_OK;
    for (line += 2, len -= 2; len > 0 && (*line == ' ' || *line == '\t'); --len)
        ++line;
    s->smart_open = true; /* until the next call */
    s->smart_line = s->in.line - 1;
    s->smart_id.n = 0;
    return gx_scratch_add(&s->smart_id, line, len) ? GX_OK : no_memory(s, err);
}

static bool add_line(gx_source *s, char field, const char *line, size_t len)
{
    gx_scratch *to = field == 'T' ? &s->title : &s->text;
    if (field != 'T' && field != 'A' && field != 'W')
        return true;
    return gx_scratch_add(to, field == 'T' ? " " : "\n", to->n > 0) && gx_scratch_add(to, line, len);
}

gx_status gx_read_smart(gx_source *s, bool *found, gx_error *err)
{
    char field = 0, *line;
    size_t len;
    bool open = s->smart_open && !s->first, more, other = false;
    const bool whole_file = s->first;
    s->first = s->smart_open = false;
    s->id.n = s->title.n = s->text.n = 0;
    s->rec.line = s->smart_line;
    if (open && !gx_scratch_add(&s->id, s->smart_id.p, s->smart_id.n))
        return no_memory(s, err);
    for (;;) {
        bool begins = false;
        const uint64_t at = s->in.line;
        gx_status st = gx_input_line(&s->in, &line, &len, &more, err);
        if (st)
            return st;
        gx_skip_mark(&line, &len);
        len = trimmed(line, len);
        if (more && (st = begin_document(s, line, len, &begins, err)))
            return st;
        if ((begins || !more) && open)
            break;
        if (!more) {
            *found = false;
            return other && whole_file ? gx_fail_record(s, 1, err, "no .I in the whole file; is it of SMART?") : GX_OK;
        }
        other |= len > 0;
        if (begins) {
            open = true;
            s->smart_open = false;
            s->rec.line = at;
            if (!gx_scratch_add(&s->id, s->smart_id.p, s->smart_id.n))
                return no_memory(s, err);
        } else if (len == 2 && line[0] == '.' && line[1] >= 'A' && line[1] <= 'Z') {
            field = line[1];
        } else if (open && !add_line(s, field, line, len)) {
            return no_memory(s, err);
        }
        if (s->title.n + s->text.n > s->in.max_record) {
            ++s->in.too_long;
            return gx_fail_record(s, s->rec.line, err, "a document of more than %zu bytes", s->in.max_record);
        }
    }
    *found = true;
    s->rec.id = (gx_span){s->id.p, s->id.n};
    if (s->title.n)
        s->rec.title = (gx_span){s->title.p, s->title.n};
    s->rec.text = s->text.n ? (gx_span){s->text.p, s->text.n} : (gx_span){(char *)"", 0};
    return GX_OK;
}
