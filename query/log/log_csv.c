/* log_csv.c: query logs as CSV, RFC 4180, with quotes and line ends inside quotes. Fields are separated by commas,
 * semicolons, tabs or vertical bars: as a line "sep=;" says, or the names of the columns, or the first record. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/status.h"
#include "engine/text/ascii.h"
#include "query/log/log_reader.h"

static const char separators[] = ",;\t|";

bool gx_log_is_csv_name(const char *path)
{
    static const char *const packed[] = {"", ".gz", ".bz2", ".xz", ".zst", NULL};
    const size_t n = strlen(path);
    for (const char *const *p = packed; *p; ++p) {
        const size_t end = strlen(*p);
        if (n > end + 4 && gx_same_text(path + n - end, *p) && gx_same_start(path + n - end - 4, ".csv", 4))
            return true;
    }
    return false;
}

/* ---- a record and its cells ---- */

typedef enum verdict { WHOLE, MORE, BEHIND_QUOTE, UNCLOSED } verdict;

/* The record at p: *n bytes with its line end. MORE: it may end behind `end`. */
static verdict find_record(const char *const begin, const char *end, bool eof, char separator, size_t *n)
{
    for (const char *p = begin;; ++p) { /* at the begin of a field */
        if (p < end && *p == '"') {
            do {
                p = memchr(p + 1, '"', (size_t)(end - p - 1));
                if (!p || (p + 1 == end && !eof))
                    return p || !eof ? MORE : UNCLOSED;
                ++p;
            } while (p < end && *p == '"');
            if (p < end && *p == '\r') {
                if (p + 1 == end && !eof)
                    return MORE;
                p += p + 1 == end || p[1] == '\n';
            }
            if (p < end && *p != separator && *p != '\n')
                return BEHIND_QUOTE;
        } else {
            while (p < end && *p != separator && *p != '\n')
                ++p;
        }
        if (p == end && !eof)
            return MORE;
        if (p == end || *p == '\n') {
            *n = (size_t)(p + (p < end) - begin);
            return WHOLE;
        }
    }
}

/* Take the quotes off the field at p, in place. Returns the byte behind its closing quote, or end. */
static char *unquote(char *p, char *end, gx_log_cell *cell)
{
    char *to = p, *from = p + 1;
    for (;;) {
        char *q = from < end ? memchr(from, '"', (size_t)(end - from)) : NULL;
        const size_t n = (size_t)((q ? q : end) - from);
        memmove(to, from, n);
        to += n;
        if (!q || q + 1 == end || q[1] != '"') {
            *cell = (gx_log_cell){p, (size_t)(to - p)};
            return q ? q + 1 : end;
        }
        *to++ = '"';
        from = q + 2;
    }
}

/* Divide the record, which has no line end, into the log's cells. false: it has too many. */
static bool split(gx_log *log, char *p, size_t n, char separator)
{
    char *const end = p + n;
    for (log->n_cells = 0; log->n_cells < GX_LOG_MAX_COLUMNS; ++p) {
        gx_log_cell *const cell = &log->cells[log->n_cells++];
        const bool quoted = p < end && *p == '"';
        char *const from = quoted ? unquote(p, end, cell) : p;
        char *const stop = from < end ? memchr(from, separator, (size_t)(end - from)) : NULL;
        if (!quoted)
            *cell = (gx_log_cell){p, (size_t)((stop ? stop : end) - p)};
        if (!stop)
            return true;
        p = stop;
    }
    return false;
}

/* ---- the separator ---- */

gx_status gx_log_is_csv_header(gx_log *log, const char *line, size_t n, bool *is, gx_error *err)
{
    const gx_log_form form = log->form;
    n -= n && line[n - 1] == '\r';
    *is = false;
    for (const char *s = separators; *s && !*is; ++s) {
        enum gx_log_column named[GX_LOG_MAX_COLUMNS];
        bool half = false;
        const gx_status st = gx_log_assign(&log->utf8, line, n, err);
        if (st != GX_OK)
            return st;
        if (!split(log, log->utf8.p, n, *s) || log->n_cells < 2)
            continue;
        log->form = GX_LOG_CSV;
        *is = gx_log_names_columns(log, named, &half);
        log->form = form;
        if (*is)
            log->separator = *s;
    }
    return GX_OK;
}

/* The first of the separators in the line, but behind a field in quotes. */
static char first_separator(const char *line, size_t n)
{
    const char *p = line, *const end = line + n;
    while (p < end && *p == '"') {
        p = memchr(p + 1, '"', (size_t)(end - p - 1));
        if (!p++)
            return ',';
    }
    while (p < end && !memchr(separators, *p, sizeof separators - 1))
        ++p;
    return p < end ? *p : ',';
}

/* Whether the line that ends at eol says nothing of the columns: it is blank, or a comment. */
static bool is_passed_over(const char *p, const char *eol)
{
    if (gx_log_is_comment(GX_LOG_CSV, p))
        return true;
    while (p < eol && gx_is_space(*p))
        ++p;
    return p == eol;
}

/* The separator that the line "sep=;" names, which Excel writes and reads; else 0. */
static char named_separator(const char *p, size_t n)
{
    const size_t quote = n && *p == '"';
    n -= n && p[n - 1] == '\r';
    return n >= 5 + 2 * quote && n <= 6 + 2 * quote && gx_same_start(p + quote, "sep=", 4) &&
                   memchr(separators, p[quote + 4], sizeof separators - 1)
               ? p[quote + 4]
               : 0;
}

/* Choose the separator by the first line of the window that is neither blank nor a comment. */
static gx_status choose_separator(gx_log *log, gx_error *err)
{
    gx_input *const in = &log->in;
    for (;;) {
        const char *p = in->buf + in->begin, *const end = in->buf + in->end, *eol = NULL;
        while (p < end && (eol = memchr(p, '\n', (size_t)(end - p))) && is_passed_over(p, eol)) {
            p = eol + 1;
            eol = NULL;
        }
        if (eol || in->eof || end - p > (ptrdiff_t)GX_LOG_MAX_LINE) {
            const size_t n = (size_t)((eol ? eol : end) - p);
            bool is = false;
            log->separator = named_separator(p, n);
            const gx_status st = log->separator ? GX_OK : gx_log_is_csv_header(log, p, n, &is, err);
            if (!log->separator)
                log->separator = first_separator(p, n);
            return st;
        }
        const gx_status st = gx_input_fill(in, err);
        if (st != GX_OK)
            return st;
    }
}

/* ---- records ---- */

/* Refuse the record. Only its first line is passed over, so that no query behind a quote that is never closed is
 * lost. */
static gx_status refuse_record(gx_log *log, const char *why, gx_error *err)
{
    char *line;
    size_t n;
    bool found;
    const gx_status st = gx_input_line(&log->in, &line, &n, &found, err);
    log->counts.bad += st == GX_EINPUT;
    return st == GX_OK ? gx_log_refuse(log, log->line, why, err) : st;
}

/* The next record, as UTF-8, in the log's cells. */
static gx_status read_record(gx_log *log, bool *found, gx_error *err)
{
    gx_input *const in = &log->in;
    for (;;) {
        const char *const p = in->buf + in->begin, *const end = in->buf + in->end;
        size_t n = 0;
        log->line = in->line;
        *found = p < end;
        if (!*found && in->eof)
            return GX_OK;
        const verdict v = *found ? find_record(p, end, in->eof, log->separator, &n) : MORE;
        if (v == BEHIND_QUOTE)
            return refuse_record(log, "text behind a closing quote; a quote inside a quoted field is written twice",
                                 err);
        if (v == UNCLOSED)
            return refuse_record(log, "a quote is opened and never closed", err);
        if (n > GX_LOG_MAX_LINE + 2u || (v == MORE && (size_t)(end - p) > GX_LOG_MAX_LINE + 2u))
            return refuse_record(log, "a record of more than 1048576 bytes: is a quote opened and never closed?", err);
        if (v == WHOLE) {
            size_t text = n - (p[n - 1] == '\n');
            text -= text && p[text - 1] == '\r';
            log->counts.nuls = in->nul_bytes;
            const gx_status st = gx_log_convert(&log->utf8, p, text, log->encoding, &log->counts, err);
            gx_input_consume(in, n);
            if (st == GX_OK && !split(log, log->utf8.p, log->utf8.n, log->separator))
                return gx_log_refuse(log, log->line, "more than 64 columns", err);
            return st;
        }
        const gx_status st = gx_input_fill(in, err);
        if (st != GX_OK)
            return st;
    }
}

static bool is_separator_line(const gx_log *log)
{
    const gx_log_cell *c = log->cells;
    return log->n_cells <= 2 && (c->n == 4 || (c->n == 5 && log->n_cells == 1 && c->p[4] == log->separator)) &&
           gx_same_start(c->p, "sep=", 4) && (log->n_cells == 1 || log->cells[1].n == 0);
}

static bool is_blank(const gx_log *log)
{
    return log->n_cells == 1 && strspn(log->cells[0].p, " \t\r\n\f\v") >= log->cells[0].n;
}

static gx_status refuse_columns(gx_log *log, unsigned expected, gx_error *err)
{
    char why[80];
    snprintf(why, sizeof why, "%u column%s, where %u are expected; text with \"%c\" in it stands in quotes",
             log->n_cells, log->n_cells == 1 ? "" : "s", expected, log->separator);
    return gx_log_refuse(log, log->line, why, err);
}

gx_status gx_log_next_record(gx_log *log, gx_log_query *q, bool *more, gx_error *err)
{
    gx_status st = log->separator ? GX_OK : choose_separator(log, err);
    bool half = false;
    for (;;) {
        if (st == GX_OK)
            st = read_record(log, more, err);
        if (st != GX_OK || !*more)
            return st;
        if (is_blank(log)) {
            ++log->counts.blank;
        } else if (!log->began && !log->counts.header && is_separator_line(log)) {
            log->counts.header = 1;
        } else if (!log->began && gx_log_read_header(log, &half)) {
            log->began = true;
            log->counts.header = 1;
        } else if (half && !log->n_columns) {
            return gx_log_refuse_half(log, err);
        } else if (gx_log_is_comment(GX_LOG_CSV, log->cells[0].p)) {
            ++log->counts.comments;
        } else {
            break;
        }
    }
    if (!log->began && !log->n_columns && log->n_cells != 2)
        return gx_fail(err, GX_EUSAGE,
                       "%s:%" PRIu64 ": %u column%s, of which nothing says what each is: the columns must be given",
                       log->path, log->line, log->n_cells, log->n_cells == 1 ? "" : "s");
    log->began = true;
    const unsigned expected = log->n_columns ? log->n_columns : 2;
    return log->n_cells == expected ? gx_log_emit_columns(log, q, err) : refuse_columns(log, expected, err);
}
