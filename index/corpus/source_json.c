/* source_json.c: JSON objects, one a line.
 *
 * One pass over the line: strings are decoded where they stand (a decoded string is never longer
 * than its source), all other values are only checked. The grammar is RFC 8259's, with limits on
 * nesting, and with two mercies: a NUL byte in a string has become a space before it gets here, and
 * half a surrogate pair becomes U+FFFD.
 */
#include <string.h>

#include "index/corpus/source_reader.h"

enum { MAX_DEPTH = 512 };

typedef struct scan {
    char *p, *end;
    const char *why; /* what the error is at p, once something is */
    uint64_t *replaced;
} scan;

static bool fail_json(scan *j, const char *why)
{
    j->why = why;
    return false;
}

static void skip_space(scan *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\r' || *j->p == '\n'))
        ++j->p;
}

/* ---- strings ---- */

/* The first byte from p on that is a quote, a backslash or a control character; eight at a time. Up
 * to 7 bytes behind end are looked at. */
static char *find_special(char *p, const char *end)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    while (p < end) {
        uint64_t x;
        memcpy(&x, p, 8);
        const uint64_t quote = x ^ ones * '"', back = x ^ ones * '\\';
        const uint64_t hit = ((quote - ones) & ~quote) | ((back - ones) & ~back) | ((x - ones * 0x20) & ~x);
        if (hit & highs) /* the lowest flag is exact, whatever borrows do above it */
            p += __builtin_ctzll(hit & highs) / 8;
        else
            p += 8;
        if (hit & highs)
            break;
    }
    return p < end ? p : (char *)end;
}

static int hex4(const char *p, const char *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; ++i) {
        const char c = p[i];
        const int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* \uXXXX, with p at the u: a code point to *to. */
static bool unicode_escape(scan *j, char **to)
{
    int c = hex4(j->p + 1, j->end);
    if (c < 0)
        return fail_json(j, "\\u needs four hexadecimal digits");
    j->p += 5;
    if (c >= 0xd800 && c < 0xdc00 && j->end - j->p >= 6 && j->p[0] == '\\' && j->p[1] == 'u') {
        const int low = hex4(j->p + 2, j->end);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            j->p += 6;
        }
    }
    if (c >= 0xd800 && c < 0xe000) {
        c = 0xfffd;
        ++*j->replaced;
    }
    *to = gx_put_utf8(*to, c ? (unsigned)c : ' ');
    return true;
}

static bool escape(scan *j, char **to)
{
    static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (++j->p == j->end)
        return fail_json(j, "the string is not closed");
    if (*j->p == 'u')
        return unicode_escape(j, to);
    const char *which = memchr(from, *j->p, sizeof from - 1);
    if (!which)
        return fail_json(j, "no such escape");
    *(*to)++ = means[which - from];
    ++j->p;
    return true;
}

/* The string whose opening quote is at p. */
static bool string(scan *j, gx_span *out)
{
    char *const start = ++j->p, *to = start;
    for (;;) {
        char *q = find_special(j->p, j->end);
        const size_t n = (size_t)(q - j->p);
        if (to != j->p)
            memmove(to, j->p, n);
        to += n;
        j->p = q;
        if (q == j->end)
            return fail_json(j, "the string is not closed");
        if (*q == '"')
            break;
        if (*q != '\\')
            return fail_json(j, "a control character in a string; write it as \\uXXXX");
        if (!escape(j, &to))
            return false;
    }
    ++j->p;
    *out = (gx_span){start, (size_t)(to - start)};
    return true;
}

/* ---- other values ---- */

static bool digits(scan *j)
{
    const char *start = j->p;
    while (j->p < j->end && *j->p >= '0' && *j->p <= '9')
        ++j->p;
    return j->p > start || fail_json(j, "a digit is expected");
}

static bool number(scan *j, gx_span *out)
{
    char *start = j->p;
    j->p += *j->p == '-';
    const bool zero = j->p < j->end && *j->p == '0';
    if (zero)
        ++j->p;
    else if (!digits(j))
        return false;
    if (j->p < j->end && *j->p == '.') {
        ++j->p;
        if (!digits(j))
            return false;
    }
    if (j->p < j->end && (*j->p | 32) == 'e') {
        ++j->p;
        j->p += j->p < j->end && (*j->p == '+' || *j->p == '-');
        if (!digits(j))
            return false;
    }
    *out = (gx_span){start, (size_t)(j->p - start)};
    return true;
}

static bool literal(scan *j, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0)
        return fail_json(j, "a value is expected");
    j->p += n;
    return true;
}

/* What a value is, by its first byte: '"', '0' (a number), '{', '[', 't', 'f' or 'n'. A string's or
 * number's bytes go to *out; of an object or array only the bracket is taken. */
static bool begin_value(scan *j, char *kind, gx_span *out)
{
    if (j->p == j->end)
        return fail_json(j, "the line ends inside the object; each object has to stand on one line");
    *kind = *j->p;
    switch (*j->p) {
    case '"':
        return string(j, out);
    case '{':
    case '[':
        ++j->p;
        return true;
    case 't':
        return literal(j, "true");
    case 'f':
        return literal(j, "false");
    case 'n':
        return literal(j, "null");
    default:
        *kind = '0';
        if (*j->p != '-' && (*j->p < '0' || *j->p > '9'))
            return fail_json(j, "a value is expected");
        return number(j, out);
    }
}

static bool key(scan *j, gx_span *name)
{
    if (j->p == j->end || *j->p != '"')
        return fail_json(j, j->p == j->end ? "the line ends inside the object; each object has to stand on one line"
                                           : "a name in double quotes is expected");
    if (!string(j, name))
        return false;
    skip_space(j);
    if (j->p == j->end || *j->p != ':')
        return fail_json(j, "a colon is expected");
    ++j->p;
    skip_space(j);
    return true;
}

/* The rest of the object or array whose bracket open has just been taken. No recursion: closers is
 * the stack. */
static bool skip_nested(scan *j, char open)
{
    char closers[MAX_DEPTH];
    gx_span ignored;
    int depth = 0;
    bool fresh = true; /* behind an opening bracket */
    closers[depth++] = open == '{' ? '}' : ']';
    while (depth > 0) {
        skip_space(j);
        if (j->p < j->end && *j->p == closers[depth - 1]) {
            ++j->p;
            --depth;
            fresh = false;
            continue;
        }
        if (!fresh) {
            if (j->p == j->end || *j->p != ',')
                return fail_json(j, "a comma or a closing bracket is expected");
            ++j->p;
            skip_space(j);
        }
        if (closers[depth - 1] == '}' && !key(j, &ignored))
            return false;
        char kind;
        if (!begin_value(j, &kind, &ignored))
            return false;
        fresh = kind == '{' || kind == '[';
        if (fresh) {
            if (depth == MAX_DEPTH)
                return fail_json(j, "nested too deep");
            closers[depth++] = kind == '{' ? '}' : ']';
        }
    }
    return true;
}

/* ---- the object ---- */

enum field { ID, UNDERSCORE_ID, DOCID, TITLE, TEXT, CONTENTS, N_FIELDS };
static const char *const field_names[N_FIELDS] = {"id", "_id", "docid", "title", "text", "contents"};

static enum field find_field(gx_span name)
{
    for (int i = 0; i < N_FIELDS; ++i)
        if (strlen(field_names[i]) == name.n && memcmp(field_names[i], name.p, name.n) == 0)
            return (enum field)i;
    return N_FIELDS;
}

static bool member(scan *j, gx_span *fields)
{
    gx_span name, value = {0};
    char kind;
    if (!key(j, &name))
        return false;
    const enum field f = find_field(name);
    char *const at = j->p;
    if (!begin_value(j, &kind, &value))
        return false;
    if (f == N_FIELDS)
        return (kind != '{' && kind != '[') || skip_nested(j, kind);
    if (kind == 'n') { /* a null text is an empty one; a null id or title is none */
        fields[f] = f > TITLE ? (gx_span){at, 0} : (gx_span){0};
        return true;
    }
    if (kind == '"' || (kind == '0' && f <= DOCID)) {
        fields[f] = value;
        return true;
    }
    j->p = at;
    return fail_json(j, f <= DOCID   ? "the id is neither a string nor a number"
                        : f == TITLE ? "the title is no string"
                                     : "the text is no string");
}

static bool object(scan *j, gx_span *fields)
{
    skip_space(j);
    if (*j->p != '{') /* the line is not empty, and there is slack behind it */
        return fail_json(j, *j->p == '[' ? "an array; one object a line is expected (jq -c '.[]' makes it so)"
                                         : "an object, { ... }, is expected");
    ++j->p;
    skip_space(j);
    if (j->p < j->end && *j->p == '}') {
        ++j->p;
    } else {
        for (;;) {
            if (!member(j, fields))
                return false;
            skip_space(j);
            if (j->p == j->end)
                return fail_json(j, "the line ends inside the object; each object has to stand on one line");
            const char c = *j->p;
            if (c != ',' && c != '}')
                return fail_json(j, "a comma or } is expected");
            ++j->p;
            if (c == '}')
                break;
            skip_space(j);
        }
    }
    skip_space(j);
    return j->p == j->end || fail_json(j, "more follows behind the object; one object a line is expected");
}

static bool is_blank(const char *p, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
            return false;
    return true;
}

gx_status gx_read_json(gx_source *s, bool *found, gx_error *err)
{
    char *line;
    size_t len;
    do {
        s->rec.line = s->in.line;
        const gx_status st = gx_input_line(&s->in, &line, &len, found, err);
        if (st || !*found)
            return st;
    } while (is_blank(line, len));
    gx_span f[N_FIELDS] = {0};
    scan j = {line, line + len, NULL, &s->counts.replaced};
    if (!object(&j, f))
        return gx_fail_record(s, s->rec.line, err, "column %zu: not JSON as expected: %s", (size_t)(j.p - line) + 1,
                              j.why);
    s->rec.id = f[ID].p ? f[ID] : f[UNDERSCORE_ID].p ? f[UNDERSCORE_ID] : f[DOCID];
    s->rec.title = f[TITLE];
    s->rec.text = f[TEXT].p ? f[TEXT] : f[CONTENTS];
    if (!s->rec.id.p)
        return gx_fail_record(s, s->rec.line, err, "no id: the object has none of the fields id, _id and docid");
    if (!s->rec.text.p && !s->rec.title.p)
        return gx_fail_record(s, s->rec.line, err,
                              "no text: the object has none of the fields text, contents and title");
    return GX_OK;
}
