/* source_delimited.c: TSV, and CSV as RFC 4180 has it, with quotes and line ends inside quotes. */
#include <string.h>

#include "index/corpus/source_reader.h"

#include "engine/text/ascii.h"

/* ---- which column is what ---- */

static bool is_one_of(const char *p, size_t n, const char *const *names)
{
    for (; *names; ++names)
        if (strlen(*names) == n && gx_same_start(p, *names, n))
            return true;
    return false;
}

static enum gx_column_use column_named(const char *p, size_t n)
{
    static const char *const ids[] = {"id", "_id", "docid", "docno", "doc_id", NULL};
    static const char *const titles[] = {"title", "headline", NULL};
    static const char *const texts[] = {"text", "contents", "content", "body", "abstract", NULL};
    return is_one_of(p, n, ids)      ? GX_COLUMN_ID
           : is_one_of(p, n, titles) ? GX_COLUMN_TITLE
           : is_one_of(p, n, texts)  ? GX_COLUMN_TEXT
                                     : GX_COLUMN_NONE;
}

gx_status gx_columns_parse(gx_source *s, gx_error *err)
{
    unsigned ids = 0, texts = 0;
    for (const char *p = s->opt.columns; p; ++s->n_given) {
        const size_t n = strcspn(p, ",");
        if (s->n_given == GX_MAX_COLUMNS)
            return gx_fail(err, GX_EUSAGE, "columns: more than %d", GX_MAX_COLUMNS);
        const uint32_t attribute = gx_source_find_attribute(s, p, n);
        unsigned c = GX_COLUMN_NONE;
        if (attribute < s->opt.n_attributes)
            c = GX_COLUMN_ATTRIBUTE + attribute;
        else if (n == 2 && memcmp(p, "id", 2) == 0)
            c = GX_COLUMN_ID;
        else if (n == 5 && memcmp(p, "title", 5) == 0)
            c = GX_COLUMN_TITLE;
        else if (n == 4 && memcmp(p, "text", 4) == 0)
            c = GX_COLUMN_TEXT;
        else if (n != 1 || *p != '-')
            return gx_fail(err, GX_EUSAGE, "columns: '%.*s' is none of id, title, text and -%s", (int)(n < 80 ? n : 80),
                           p, s->opt.n_attributes ? ", and no attribute" : "");
        s->given[s->n_given] = (uint8_t)c;
        ids += c == GX_COLUMN_ID;
        texts += c == GX_COLUMN_TEXT || c == GX_COLUMN_TITLE;
        for (unsigned i = 0; c >= GX_COLUMN_ATTRIBUTE && i < s->n_given; ++i)
            if (s->given[i] == c)
                return gx_fail(err, GX_EUSAGE, "columns: '%s' has %.*s twice", s->opt.columns, (int)n, p);
        p = p[n] ? p + n + 1 : NULL;
    }
    if (s->opt.columns && (ids != 1 || (texts == 0 && s->opt.n_fields == 0)))
        return gx_fail(err, GX_EUSAGE, "columns: '%s' needs id once, and title or text", s->opt.columns);
    for (uint32_t i = 0; s->opt.columns && i < s->opt.n_attributes; ++i)
        if (!memchr(s->given, GX_COLUMN_ATTRIBUTE + (int)i, s->n_given))
            return gx_fail(err, GX_EUSAGE, "columns: '%s' does not have the attribute %s", s->opt.columns,
                           s->opt.attributes[i].name);
    return GX_OK;
}

/* Is the record the names of its columns? Then named tells them. */
static bool is_header(const gx_source *s, unsigned n, uint8_t *named)
{
    unsigned ids = 0, others = 0;
    for (unsigned i = 0; i < n; ++i) {
        const uint32_t attribute = gx_source_find_attribute(s, s->fields[i].p, s->fields[i].n);
        const unsigned c = attribute < s->opt.n_attributes ? GX_COLUMN_ATTRIBUTE + attribute
                           : s->fields[i].n < 32           ? column_named(s->fields[i].p, s->fields[i].n)
                                                           : GX_COLUMN_NONE;
        named[i] = (uint8_t)c;
        ids += c == GX_COLUMN_ID;
        others += c == GX_COLUMN_TITLE || c == GX_COLUMN_TEXT;
    }
    return ids == 1 && (others > 0 || (n > 1 && s->opt.n_fields));
}

/* A file's first record says what the columns are, unless options do. *header: it is no document.
 * */
static gx_status read_column_names(gx_source *s, unsigned n, bool *header, gx_error *err)
{
    static const uint8_t usual[2][3] = {{GX_COLUMN_ID, GX_COLUMN_TEXT},
                                        {GX_COLUMN_ID, GX_COLUMN_TITLE, GX_COLUMN_TEXT}};
    uint8_t named[GX_MAX_COLUMNS];
    *header = is_header(s, n, named);
    s->n_columns = s->n_given ? s->n_given : n;
    if (s->n_given)
        memcpy(s->columns, s->given, s->n_given);
    else if (*header)
        memcpy(s->columns, named, n);
    else if (n == 2 || n == 3)
        memcpy(s->columns, usual[n - 2], n);
    else
        return gx_fail_record(s, s->rec.line, err,
                              "%u column%s; what each holds must be said, but for 2 (id,text) and 3 (id,title,text)", n,
                              n == 1 ? "" : "s");
    s->first = false;
    return GX_OK;
}

/* ---- from fields to a record ---- */

static bool append(gx_span *to, gx_span field, gx_scratch *joined)
{
    if (!to->p) {
        *to = field;
        return true;
    }
    if (to->p != joined->p || joined->n == 0) {
        joined->n = 0;
        if (!gx_scratch_add(joined, to->p, to->n))
            return false;
    }
    if (!gx_scratch_add(joined, " ", 1) || !gx_scratch_add(joined, field.p, field.n))
        return false;
    *to = (gx_span){joined->p, joined->n};
    return true;
}

/* Read a field's values of an attribute: each part between commas, or of a keyword the whole field. */
static gx_status take_values(gx_source *s, uint32_t attribute, gx_span field, gx_error *err)
{
    const bool several = s->opt.attributes[attribute].type != GX_ATTRIBUTE_KEYWORD;
    gx_status st = GX_OK;
    for (char *p = field.p, *const end = field.p + field.n; p && !st;) {
        char *const comma = several ? memchr(p, ',', (size_t)(end - p)) : NULL, *to = comma ? comma : end;
        while (p < to && *p == ' ')
            ++p;
        while (to > p && to[-1] == ' ')
            --to;
        st = gx_source_add_value(s, attribute, (gx_span){p, (size_t)(to - p)}, err);
        p = comma ? comma + 1 : NULL;
    }
    return st;
}

static gx_status use_fields(gx_source *s, unsigned n, gx_error *err)
{
    if (n != s->n_columns)
        return gx_fail_record(s, s->rec.line, err, "%u column%s, where %u are expected", n, n == 1 ? "" : "s",
                              s->n_columns);
    bool ok = true;
    s->title.n = s->text.n = 0;
    for (unsigned i = 0; i < n; ++i) {
        if (s->columns[i] == GX_COLUMN_ID)
            s->rec.id = s->fields[i];
        else if (s->columns[i] == GX_COLUMN_TITLE)
            ok = ok && append(&s->rec.title, s->fields[i], &s->title);
        else if (s->columns[i] == GX_COLUMN_TEXT)
            ok = ok && append(&s->rec.text, s->fields[i], &s->text);
        else if (s->columns[i] >= GX_COLUMN_ATTRIBUTE)
            ok = ok && take_values(s, s->columns[i] - GX_COLUMN_ATTRIBUTE, s->fields[i], err) == GX_OK;
    }
    return ok ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
}

/* Use the fields of a record. joined: a byte order mark stood before it. *again: it is a header, and the next record
 * must be read. */
static gx_status finish_record(gx_source *s, unsigned n, bool joined, bool *again, gx_error *err)
{
    uint8_t named[GX_MAX_COLUMNS];
    *again = joined && !s->first && n == s->n_columns && is_header(s, n, named);
    if (*again)
        return GX_OK;
    if (s->first) {
        const gx_status st = read_column_names(s, n, again, err);
        if (st || *again)
            return st;
    }
    return use_fields(s, n, err);
}

static gx_status too_many(gx_source *s, gx_error *err)
{
    return gx_fail_record(s, s->rec.line, err, "more than %d columns", GX_MAX_COLUMNS);
}

/* ---- TSV ---- */

static unsigned split_tsv(gx_source *s, char *p, size_t n, char delimiter)
{
    char *const end = p + n;
    for (unsigned i = 0; i < GX_MAX_COLUMNS; ++i) {
        char *const stop = memchr(p, delimiter, (size_t)(end - p));
        s->fields[i] = (gx_span){p, (size_t)((stop ? stop : end) - p)};
        if (!stop)
            return i + 1;
        p = stop + 1;
    }
    return GX_MAX_COLUMNS + 1;
}

gx_status gx_read_tsv(gx_source *s, bool *found, gx_error *err)
{
    for (;;) {
        char *line;
        size_t len;
        bool again;
        s->rec.line = s->in.line;
        gx_status st = gx_input_line(&s->in, &line, &len, found, err);
        if (st || !*found)
            return st;
        if (len == 0)
            continue;
        const bool joined = gx_skip_mark(&line, &len);
        const unsigned n = split_tsv(s, line, len, '\t');
        if (n > GX_MAX_COLUMNS)
            return too_many(s, err);
        if ((st = finish_record(s, n, joined, &again, err)) || !again)
            return st;
    }
}

/* ---- CSV ---- */

typedef enum csv_state { CSV_DONE, CSV_MORE, CSV_BAD } csv_state;

/* The quoted field that begins behind its quote at p, unquoted in place. *stop: the first byte
 * behind the closing quote. With write false nothing is changed: it is not yet known whether the
 * record is complete. */
static csv_state quoted(char *p, const char *end, bool write, gx_span *field, char **stop)
{
    char *to = p, *from = p;
    for (;;) {
        char *q = memchr(from, '"', (size_t)(end - from));
        if (!q)
            return CSV_MORE;
        const size_t n = (size_t)(q - from);
        if (write && to != from)
            memmove(to, from, n);
        to += n;
        if (q + 1 < end && q[1] == '"') {
            if (write)
                *to = '"';
            ++to;
            from = q + 2;
            continue;
        }
        *field = (gx_span){p, (size_t)(to - p)};
        *stop = q + 1;
        return CSV_DONE;
    }
}

/* One pass over the record at p. [*n] fields; *next: behind the record's line end. */
static csv_state parse_csv_record(gx_source *s, char *p, char *end, bool eof, bool write, unsigned *n, char **next)
{
    const char delimiter = s->delimiter ? s->delimiter : ',';
    for (*n = 0;;) {
        gx_span *field = &s->fields[*n < GX_MAX_COLUMNS ? *n : GX_MAX_COLUMNS - 1];
        char *stop;
        ++*n;
        if (p < end && *p == '"') {
            const csv_state state = quoted(p + 1, end, write, field, &stop);
            if (state != CSV_DONE)
                return state;
            if (stop < end && *stop == '\r' && (stop + 1 == end ? eof : stop[1] == '\n'))
                ++stop;
        } else {
            char *nl = memchr(p, '\n', (size_t)(end - p));
            stop = memchr(p, delimiter, (size_t)((nl ? nl : end) - p));
            if (!stop)
                stop = nl ? nl : end;
            *field = (gx_span){p, (size_t)(stop - p)};
            if ((stop == end || *stop == '\n') && stop > p && stop[-1] == '\r')
                --field->n;
        }
        if (stop == end) {
            *next = end;
            return eof ? CSV_DONE : CSV_MORE;
        }
        if (*stop != delimiter && *stop != '\n')
            return stop + 1 == end && *stop == '\r' ? CSV_MORE : CSV_BAD;
        if (*stop == '\n') {
            *next = stop + 1;
            return CSV_DONE;
        }
        p = stop + 1;
    }
}

/* After a bad record only its first line is skipped, so that nothing is lost behind a quote that is
 * never closed. */
static gx_status bad_csv(gx_source *s, gx_error *err, const char *why)
{
    gx_input *in = &s->in;
    const char *p = in->buf + in->begin;
    const char *nl = memchr(p, '\n', in->end - in->begin);
    gx_input_consume(in, nl ? (size_t)(nl + 1 - p) : in->end - in->begin);
    return gx_fail_record(s, s->rec.line, err, "%s", why);
}

typedef enum csv_verdict {
    CSV_WHOLE,
    CSV_UNKNOWN, /* more of the file must be read */
    CSV_BEHIND_QUOTE,
    CSV_UNCLOSED,
    CSV_TOO_LONG,
    CSV_LONG_LINE
} csv_verdict;

/* What the record at p is. No more of it is looked at than a record may have, so that the verdict does not depend on
 * how much of the file is in the window. */
static csv_verdict judge_record(gx_source *s, char *p, char *end, unsigned *n, char **next)
{
    const size_t most = s->in.max_record + 3; /* with a line end, and a byte too many */
    const bool cut = (size_t)(end - p) >= most, eof = s->in.eof && !cut;
    char *const stop = cut ? p + most : end;
    const csv_state state = parse_csv_record(s, p, stop, eof, false, n, next);
    if (state == CSV_DONE && (size_t)(*next - p) < most)
        return CSV_WHOLE;
    if (!eof && !memchr(p, '\n', (size_t)(stop - p)))
        return cut ? CSV_LONG_LINE : CSV_UNKNOWN;
    if (state == CSV_BAD)
        return CSV_BEHIND_QUOTE;
    return cut ? CSV_TOO_LONG : eof ? CSV_UNCLOSED : CSV_UNKNOWN;
}

/* The next record's fields. *joined: a byte order mark stands before it. */
static gx_status csv_fields(gx_source *s, unsigned *n, bool *found, bool *joined, gx_error *err)
{
    gx_input *in = &s->in;
    for (*joined = false;;) {
        char *p = in->buf + in->begin, *end = in->buf + in->end, *next, *line;
        size_t len = (size_t)(end - p);
        *joined |= gx_skip_mark(&p, &len);
        in->begin = (size_t)(p - in->buf);
        *found = p < end;
        if (!*found && in->eof)
            return GX_OK;
        switch (*found ? judge_record(s, p, end, n, &next) : CSV_UNKNOWN) {
        case CSV_WHOLE:
            gx_input_consume(in, (size_t)(next - p)); /* counts line ends, so before the fields are moved */
            parse_csv_record(s, p, end, in->eof, true, n, &next);
            return *n > GX_MAX_COLUMNS ? too_many(s, err) : GX_OK;
        case CSV_BEHIND_QUOTE:
            return bad_csv(s, err, "text behind a closing quote; a quote inside a quoted field is written twice");
        case CSV_UNCLOSED:
            return bad_csv(s, err, "a quote is opened and never closed");
        case CSV_TOO_LONG:
            ++in->too_long;
            return bad_csv(s, err, "a record that is too long: is a quote opened and never closed?");
        case CSV_LONG_LINE:
            return gx_input_line(in, &line, &len, found, err);
        case CSV_UNKNOWN:
            break;
        }
        const gx_status st = gx_input_fill(in, err);
        if (st)
            return st;
    }
}

/* Excel's first line "sep=;", of a file with that separator. */
static gx_status read_separator(gx_source *s, gx_error *err)
{
    enum { MOST = sizeof "\"sep=;\"\r\n" - 1 };
    gx_input *in = &s->in;
    s->delimiter = 0;
    while (in->end - in->begin < MOST && !in->eof && !memchr(in->buf + in->begin, '\n', in->end - in->begin)) {
        const gx_status st = gx_input_fill(in, err);
        if (st)
            return st;
    }
    const char *const line = in->buf + in->begin, *end = in->buf + in->end, *p = line;
    const char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;
    stop -= stop > p && stop[-1] == '\r';
    const bool quoted_line = stop - p >= 2 && *p == '"' && stop[-1] == '"';
    p += quoted_line;
    stop -= quoted_line;
    if (stop - p != 5 || !gx_same_start(p, "sep=", 4) || p[4] == '"' || p[4] == '\r' || (unsigned char)p[4] >= 0x80)
        return GX_OK;
    s->delimiter = p[4];
    gx_input_consume(in, (size_t)((nl ? nl + 1 : end) - line));
    return GX_OK;
}

gx_status gx_read_csv(gx_source *s, bool *found, gx_error *err)
{
    for (;;) {
        unsigned n;
        bool again, joined;
        gx_status st = s->first && s->in.line == 1 ? read_separator(s, err) : GX_OK;
        if (st)
            return st;
        s->rec.line = s->in.line;
        st = csv_fields(s, &n, found, &joined, err);
        if (st || !*found)
            return st;
        if (n == 1 && s->fields[0].n == 0)
            continue; /* an empty line */
        if ((st = finish_record(s, n, joined, &again, err)) || !again)
            return st;
    }
}

size_t gx_whole_csv(gx_source *s, size_t enough, bool *odd)
{
    const gx_input *in = &s->in;
    char *const begin = in->buf + in->begin, *const end = in->buf + in->end, *p = begin, *next;
    csv_verdict verdict = CSV_WHOLE;
    unsigned n;
    while (p < end && (size_t)(p - begin) < enough) {
        char *record = p;
        size_t len = (size_t)(end - p);
        gx_skip_mark(&record, &len);
        if (!len || (verdict = judge_record(s, record, end, &n, &next)) != CSV_WHOLE)
            break;
        p = next;
    }
    *odd = verdict != CSV_WHOLE && verdict != CSV_UNKNOWN;
    return (size_t)(p - begin);
}
