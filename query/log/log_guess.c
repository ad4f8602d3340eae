/* log_guess.c: the form of a query log, by its first lines. */
#include <inttypes.h>
#include <string.h>

#include "engine/status.h"
#include "engine/text/ascii.h"
#include "query/log/log_reader.h"

#define GUESS_BYTES (64u << 10)
#define GUESS_LINES 100
#define BINARY_NULS 16u    /* a file is binary if its first window holds at least this many NUL bytes, */
#define BINARY_SHARE 1000u /* and at least one NUL in this many bytes */

/* How many numbers with a colon behind, one after another, does the line begin with? */
static unsigned count_numbers(const char *p, size_t n)
{
    unsigned numbers = 0;
    for (size_t i = 0;; ++i) {
        const size_t from = i;
        while (i < n && gx_is_digit(p[i]))
            ++i;
        if (i == from || i == n || p[i] != ':')
            return numbers;
        ++numbers;
    }
}

bool gx_log_is_comment(gx_log_form form, const char *p)
{
    const bool keyed = form == GX_LOG_EFFICIENCY || form == GX_LOG_MILLION || form == GX_LOG_TSV;
    return *p == '#' && (keyed || !p[1] || gx_is_space(p[1]));
}

/* How a line begins that may be one of CSV. */
typedef enum csv_look {
    NOT_CSV,
    CSV_QUOTED, /* "101","land rover": a field in quotes */
    CSV_ID      /* 101,land rover: what may be an id, with a digit in it and no blank */
} csv_look;

static csv_look csv_look_of(const char *p, size_t n)
{
    static const char separators[] = ",;|";
    bool digit = false;
    size_t i = 0;
    if (n && *p == '"') {
        const char *close = memchr(p + 1, '"', n - 1);
        const size_t behind = close ? (size_t)(close + 1 - p) : n;
        return behind < n && memchr(separators, p[behind], sizeof separators - 1) ? CSV_QUOTED : NOT_CSV;
    }
    for (; i < n && i <= 32 && !gx_is_space(p[i]) && !memchr(separators, p[i], sizeof separators - 1); ++i)
        digit |= gx_is_digit(p[i]) != 0;
    /* 2,4-dichlorophenol and 10,000 are words */
    return digit && i + 1 < n && memchr(separators, p[i], sizeof separators - 1) && !gx_is_digit(p[i + 1]) ? CSV_ID
                                                                                                           : NOT_CSV;
}

/* The first lines, counted by what they look like. */
typedef struct first_lines {
    unsigned lines, numbered, prioritized, tabbed, quoted, with_id;
    uint64_t not_numbered, not_tabbed; /* the first such line's number */
} first_lines;

static void count_line(first_lines *c, uint64_t number, const char *p, size_t len)
{
    const unsigned numbers = count_numbers(p, len);
    const bool tab = memchr(p, '\t', len) != NULL;
    ++c->lines;
    c->numbered += numbers > 0;
    c->prioritized += numbers > 1;
    c->tabbed += tab;
    const csv_look look = csv_look_of(p, len);
    c->quoted += look == CSV_QUOTED;
    c->with_id += look == CSV_ID;
    if (!numbers && !c->not_numbered)
        c->not_numbered = number;
    if (!tab && !c->not_tabbed)
        c->not_tabbed = number;
}

/* Whether the JSON object has a member "vector" that is an object; a string with these characters
 * has backslashes before its quotes. */
static bool names_vector(const char *p, size_t n)
{
    static const char name[] = "\"vector\"";
    const char *const end = p + n, *at = memmem(p, n, name, sizeof name - 1);
    if (!at)
        return false;
    at += sizeof name - 1;
    while (at < end && gx_is_space(*at))
        ++at;
    if (at == end || *at++ != ':')
        return false;
    while (at < end && gx_is_space(*at))
        ++at;
    return at < end && *at == '{';
}

/* The form that the first line tells alone, or GX_LOG_GUESS. */
static gx_log_form guess_by_first(const char *p, size_t n)
{
    return *p == '{' && names_vector(p, n)                                         ? GX_LOG_VECTORS
           : *p == '{'                                                             ? GX_LOG_JSONL
           : n >= 5 && gx_same_start(p, "<top", 4) && (p[4] == '>' || p[4] == ' ') ? GX_LOG_TOPICS
           : n >= 5 && gx_same_start(p, "<DOC>", 5)                                ? GX_LOG_DOCS
           : n >= 3 && !memcmp(p, ".I", 2) && gx_is_space(p[2])                    ? GX_LOG_SMART
                                                                                   : GX_LOG_GUESS;
}

/* Most lines speak for a form, and one does not: that is refused. */
static gx_status unsure(const gx_log *log, uint64_t line, const char *what, gx_error *err)
{
    return gx_fail(err, GX_EUSAGE,
                   "%s:%" PRIu64 ": this line has no %s, as most of the first lines have: the form of "
                   "the log cannot be told",
                   log->path, line, what);
}

static gx_status choose_form(gx_log *log, const first_lines *c, gx_error *err)
{
    log->form = GX_LOG_LINES;
    if (c->lines && c->tabbed == c->lines)
        log->form = GX_LOG_TSV;
    else if (c->tabbed > c->lines / 2)
        return unsure(log, c->not_tabbed, "tab", err);
    else if (c->lines && c->numbered == c->lines)
        log->form = c->prioritized == c->lines ? GX_LOG_MILLION : GX_LOG_EFFICIENCY;
    else if (c->numbered > c->lines / 2)
        return unsure(log, c->not_numbered, "number and colon before it", err);
    else if (c->lines && c->quoted == c->lines)
        log->form = GX_LOG_CSV;
    else if (c->quoted + c->with_id > c->lines / 2)
        return gx_fail(err, GX_EUSAGE,
                       "%s: most of its first lines begin as those of CSV do, with an id and a separator; they may be "
                       "plain text, too: the form of the log cannot be told",
                       log->path);
    return GX_OK;
}

/* Guess the form from the first lines of the window, by what all of them have in common. */
static gx_status guess(gx_log *log, const char *p, size_t n, bool whole, gx_error *err)
{
    first_lines c = {0};
    uint64_t number = 0;
    bool opened = false;
    const char *const end = p + n;
    while (p < end && c.lines < GUESS_LINES) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol && !whole && c.lines)
            break;
        const size_t len = (size_t)((eol ? eol : end) - p);
        size_t blank = 0;
        ++number;
        while (blank < len && gx_is_space(p[blank]))
            ++blank;
        if (blank < len && p[0] != '#') {
            const gx_log_form told = guess_by_first(p + blank, len - blank);
            if (told == GX_LOG_TOPICS || (!opened && told != GX_LOG_GUESS)) {
                log->form = told;
                return GX_OK;
            }
            if (!opened && (p[blank] == '<' || p[blank] == '['))
                return gx_fail(err, GX_EUSAGE, "%s:%" PRIu64 ": it begins with %s: the form of the log cannot be told",
                               log->path, number, p[blank] == '<' ? "a tag that no form begins with" : "a bracket");
            bool is_csv = false;
            if (!opened && gx_log_is_csv_header(log, p, len, &is_csv, err) != GX_OK)
                return GX_ENOMEM;
            if (is_csv && log->separator != '\t') {
                log->form = GX_LOG_CSV;
                return GX_OK;
            }
            log->separator = 0;
            opened = true;
            count_line(&c, number, p, len);
        }
        p = eol ? eol + 1 : end;
    }
    return choose_form(log, &c, err);
}

gx_status gx_log_refuse_binary(const gx_log *log, gx_error *err)
{
    const gx_input *in = &log->in;
    if (in->nul_bytes < BINARY_NULS || in->nul_bytes < in->bytes / BINARY_SHARE)
        return GX_OK;
    return gx_fail(err, GX_EINPUT,
                   "%s: byte %" PRIu64 " is NUL, the first of %" PRIu64 " in the first %" PRIu64
                   ": this is no query log but a binary file",
                   log->path, in->first_nul, in->nul_bytes, in->bytes);
}

gx_status gx_log_guess_form(gx_log *log, gx_error *err)
{
    gx_input *in = &log->in;
    while (in->end - in->begin < GUESS_BYTES && !in->eof) {
        const gx_status st = gx_input_fill(in, err);
        if (st != GX_OK)
            return st;
    }
    const gx_status st = gx_log_refuse_binary(log, err);
    return st ? st : guess(log, in->buf + in->begin, in->end - in->begin, in->eof, err);
}
