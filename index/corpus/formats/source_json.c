/* source_json.c: JSON objects, one a line, and those of them that are vectors.
 *
 * One pass over the line: strings are decoded where they stand (a decoded string is never longer
 * than its source), all other values are only checked. The grammar is RFC 8259's, with limits on
 * nesting, and with two mercies: a NUL byte in a string has become a space before it gets here, and
 * half a surrogate pair becomes U+FFFD.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "index/attributes/attributes.h"
#include "index/corpus/source_reader.h"

enum { MAX_DEPTH = 512 };

typedef struct scan {
    char *p, *end;
    const char *why; /* what the error is at p, once something is */
    uint64_t *replaced;
    gx_source *source;
    gx_status failed; /* a failure that is not the line's; the error is written */
    gx_error *err;
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

/* Pass over the rest of the object or array whose opening bracket has been taken. There is no
 * recursion: `closers` is the stack. */
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

/* The members that are read where the options name none. Where an object has several members of a
 * role, the first in this order is taken. */
static const gx_json_member usual[] = {
    {"id", 2, GX_COLUMN_ID},         {"_id", 3, GX_COLUMN_ID},    {"docid", 5, GX_COLUMN_ID},
    {"title", 5, GX_COLUMN_TITLE},   {"text", 4, GX_COLUMN_TEXT}, {"contents", 8, GX_COLUMN_TEXT},
    {"content", 7, GX_COLUMN_TEXT},  {"qid", 3, GX_COLUMN_ID},    {"query_id", 8, GX_COLUMN_ID},
    {"vector", 6, GX_COLUMN_VECTOR},
};
enum { N_USUAL = sizeof usual / sizeof *usual, N_OF_VECTORS = 3 /* the last ones */ };

static gx_status add_field(gx_source *s, const char *p, size_t n, gx_error *err)
{
    const char *equals = memchr(p, '=', n);
    const size_t role = equals ? (size_t)(equals - p) : n;
    gx_json_member *f = &s->json_members[s->n_json_members];
    if (s->n_json_members == GX_MAX_JSON_MEMBERS)
        return gx_fail(err, GX_EUSAGE, "members: more than %d", GX_MAX_JSON_MEMBERS);
    f->role = role == 2 && !memcmp(p, "id", 2)       ? GX_COLUMN_ID
              : role == 5 && !memcmp(p, "title", 5)  ? GX_COLUMN_TITLE
              : role == 4 && !memcmp(p, "text", 4)   ? GX_COLUMN_TEXT
              : role == 6 && !memcmp(p, "vector", 6) ? GX_COLUMN_VECTOR
                                                     : GX_COLUMN_NONE;
    f->name = equals ? equals + 1 : p;
    f->n = equals ? n - role - 1 : n;
    if (f->role == GX_COLUMN_NONE || f->n == 0)
        return gx_fail(err, GX_EUSAGE, "members: '%.*s' is none of id=NAME, title=NAME, text=NAME and vector=NAME",
                       (int)(n < 80 ? n : 80), p);
    if (f->role == GX_COLUMN_VECTOR && s->opt.format != GX_SOURCE_VECTORS)
        return gx_fail(err, GX_EUSAGE, "members: '%.*s' is of vectors, which gpuidx build --format=vectors reads",
                       (int)(n < 80 ? n : 80), p);
    for (const gx_json_member *before = s->json_members; before < f; ++before)
        if (before->n == f->n && !memcmp(before->name, f->name, f->n))
            return gx_fail(err, GX_EUSAGE, "members: '%.*s' is named twice", (int)(f->n < 80 ? f->n : 80), f->name);
    ++s->n_json_members;
    return GX_OK;
}

gx_status gx_json_members_parse(gx_source *s, gx_error *err)
{
    unsigned n_of[GX_COLUMN_VECTOR + 1] = {0};
    const char *p = s->opt.members;
    if (!p) {
        const bool vectors = s->opt.format == GX_SOURCE_VECTORS;
        memcpy(s->json_members, usual, sizeof usual);
        s->n_json_members = vectors ? N_USUAL : N_USUAL - N_OF_VECTORS;
        return GX_OK;
    }
    while (p) {
        const size_t n = strcspn(p, ",");
        const gx_status st = add_field(s, p, n, err);
        if (st)
            return st;
        ++n_of[s->json_members[s->n_json_members - 1].role];
        p = p[n] ? p + n + 1 : NULL;
    }
    if (s->opt.format == GX_SOURCE_VECTORS) {
        if (n_of[GX_COLUMN_ID] != 1 || n_of[GX_COLUMN_VECTOR] > 1)
            return gx_fail(err, GX_EUSAGE, "members: '%s' needs id once, and vector at most once", s->opt.members);
        return n_of[GX_COLUMN_VECTOR] ? GX_OK : add_field(s, "vector", 6, err);
    }
    if (n_of[GX_COLUMN_ID] != 1 || (n_of[GX_COLUMN_TITLE] + n_of[GX_COLUMN_TEXT] == 0 && s->opt.n_fields == 0))
        return gx_fail(err, GX_EUSAGE, "members: '%s' needs id once, and title or text", s->opt.members);
    return GX_OK;
}

/* The values of an object's members: values[i] is that of s->json_members[i]. */
typedef struct object_values {
    const gx_source *s;
    gx_span values[GX_MAX_JSON_MEMBERS];
    bool seen[GX_MAX_JSON_MEMBERS];
} object_values;

static unsigned find_member(const gx_source *s, gx_span name)
{
    unsigned i = 0;
    while (i < s->n_json_members &&
           (s->json_members[i].n != name.n || memcmp(s->json_members[i].name, name.p, name.n) != 0))
        ++i;
    return i;
}

/* Read a value of attribute i: a string, a number, true or false. null is no value. */
static bool attribute_value(scan *j, uint32_t i)
{
    gx_span value = {0};
    char kind, *const at = j->p;
    if (!begin_value(j, &kind, &value))
        return false;
    if (kind == '{' || kind == '[') {
        j->p = at;
        return fail_json(j, "an attribute's value is a string, a number, true, false or null, or an array of those");
    }
    if (kind == 't' || kind == 'f')
        value = (gx_span){at, (size_t)(j->p - at)};
    j->failed = kind == 'n' ? GX_OK : gx_source_add_value(j->source, i, value, j->err);
    return j->failed == GX_OK || fail_json(j, "");
}

/* The values of attribute i: one, or an array. */
static bool attribute_values(scan *j, uint32_t i)
{
    if (j->p == j->end || *j->p != '[')
        return attribute_value(j, i);
    for (bool first = true;; first = false) {
        ++j->p;
        skip_space(j);
        if (first && j->p < j->end && *j->p == ']')
            break;
        if (!attribute_value(j, i))
            return false;
        skip_space(j);
        if (j->p == j->end || (*j->p != ',' && *j->p != ']'))
            return fail_json(j, "a comma or a closing bracket is expected");
        if (*j->p == ']')
            break;
    }
    ++j->p;
    return true;
}

/* ---- vectors ---- */

/* The number as a float: the double that is nearest to it, rounded. */
static bool weight_of_number(gx_span number, float *out)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits_read = 0;
    size_t i = *number.p == '-', behind_point = 0;
    bool point = false;
    for (; i < number.n && digits_read < (uint64_t)1 << 49; ++i) { /* * 10 + 9 stays below 2^53 */
        if (number.p[i] == '.') {
            point = true;
            continue;
        }
        if (number.p[i] < '0' || number.p[i] > '9')
            break;
        digits_read = digits_read * 10 + (uint64_t)(number.p[i] - '0');
        behind_point += point;
    }
    double x;
    if (i == number.n && behind_point <= 22) { /* both are doubles, so that the quotient is rounded once */
        x = (double)digits_read / tens[behind_point];
        *out = (float)(*number.p == '-' ? -x : x);
        return true;
    }
    if (gx_parse_float(number.p, number.n, &x)) { /* too great, or of too many digits */
        *out = INFINITY;
        return number.n < 400;
    }
    *out = (float)x;
    return true;
}

/* Whether a digit of the number's mantissa is not 0. */
static bool is_nonzero(gx_span number)
{
    size_t i = 0;
    while (i < number.n && (number.p[i] < '1' || number.p[i] > '9') && (number.p[i] | 32) != 'e')
        ++i;
    return i < number.n && (number.p[i] | 32) != 'e';
}

static bool weight(scan *j, gx_span term)
{
    gx_span value = {0};
    char kind = 0, *const at = j->p;
    float w;
    if (j->p < j->end && (*j->p == 'N' || *j->p == 'I' || (*j->p == '-' && j->p + 1 < j->end && j->p[1] == 'I')))
        return fail_json(j, "a weight that is NaN or infinite; it must be a finite number above 0");
    if (!begin_value(j, &kind, &value))
        return false;
    if (kind != '0' || !weight_of_number(value, &w)) {
        j->p = at;
        return fail_json(j, kind == '0' ? "a weight of too many digits" : "a weight that is no number");
    }
    if (*value.p != '-' && (isinf(w) || (w == 0 && is_nonzero(value))))
        j->failed = gx_fail_record(j->source, j->source->rec.line, j->err, "the weight of '%.*s' is %.*s; the %s is %g",
                                   (int)(term.n < 60 ? term.n : 60), term.p, (int)(value.n < 40 ? value.n : 40),
                                   value.p, w == 0 ? "least" : "most", w == 0 ? FLT_TRUE_MIN : GX_MAX_WEIGHT);
    else
        j->failed = gx_source_add_weight(j->source, term.p, term.n, w, j->err);
    return j->failed == GX_OK || fail_json(j, "");
}

/* The object of terms and weights at p. */
static bool vector(scan *j)
{
    gx_span term;
    if (j->source->rec.has_vector)
        return fail_json(j, "a vector, and there was one before");
    if (j->p == j->end || *j->p != '{')
        return fail_json(j, "a vector that is no object of terms and weights, as in {\"term\": 1.5}");
    j->source->rec.has_vector = true;
    for (bool first = true;; first = false) {
        ++j->p;
        skip_space(j);
        if (first && j->p < j->end && *j->p == '}')
            break;
        if (!key(j, &term) || !weight(j, term))
            return false;
        skip_space(j);
        if (j->p == j->end)
            return fail_json(j, "the line ends inside the object; each object has to stand on one line");
        if (*j->p != ',' && *j->p != '}')
            return fail_json(j, "a comma or } is expected");
        if (*j->p == '}')
            break;
    }
    ++j->p;
    return true;
}

static bool member(scan *j, object_values *o)
{
    gx_span name, value = {0};
    char kind;
    char *const name_at = j->p;
    if (!key(j, &name))
        return false;
    const unsigned f = find_member(o->s, name);
    const uint8_t role = f < o->s->n_json_members ? o->s->json_members[f].role : GX_COLUMN_NONE;
    if (role == GX_COLUMN_VECTOR)
        return vector(j);
    const uint32_t attribute = gx_source_find_attribute(j->source, name.p, name.n);
    if (attribute < j->source->opt.n_attributes)
        return attribute_values(j, attribute);
    char *const at = j->p;
    if (role != GX_COLUMN_NONE && o->seen[f]) {
        j->p = name_at;
        return fail_json(j, "a member that was there before");
    }
    if (!begin_value(j, &kind, &value))
        return false;
    if (role == GX_COLUMN_NONE && kind == '{' && name.n == 6 && memcmp(name.p, "vector", 6) == 0 &&
        !j->source->opt.members)
        return fail_json(j, "a vector, whose weights text has no place for: gpuidx build --format=vectors reads it; or "
                            "name the members of text alone, as in --members=text=contents");
    if (role == GX_COLUMN_NONE)
        return (kind != '{' && kind != '[') || skip_nested(j, kind);
    o->seen[f] = true;
    if (kind == 'n') { /* a null text is an empty one; a null id or title is none */
        o->values[f] = role == GX_COLUMN_TEXT ? (gx_span){at, 0} : (gx_span){0};
        return true;
    }
    if (kind == '"' || (kind == '0' && role == GX_COLUMN_ID)) {
        o->values[f] = value;
        return true;
    }
    j->p = at;
    return fail_json(j, role == GX_COLUMN_ID      ? "the id is neither a string nor a number"
                        : role == GX_COLUMN_TITLE ? "the title is no string"
                                                  : "the text is no string");
}

static bool object(scan *j, object_values *o)
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
            if (!member(j, o))
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

/* The name of the vectors' field. */
static const gx_json_member *vector_field(const gx_source *s)
{
    const gx_json_member *f = s->json_members;
    while (f->role != GX_COLUMN_VECTOR)
        ++f;
    return f;
}

/* The value of a role: the first field that the object has, or, where the options name several
 * members, all of them. */
static bool take_role(gx_source *s, const object_values *o, uint8_t role, gx_span *to, gx_scratch *joined)
{
    joined->n = 0;
    for (unsigned i = 0; i < s->n_json_members; ++i) {
        const gx_span value = o->values[i];
        if (s->json_members[i].role != role || !value.p)
            continue;
        if (!to->p) {
            *to = value;
            if (!s->opt.members)
                return true;
        } else {
            if (joined->n == 0 && !gx_scratch_add(joined, to->p, to->n))
                return false;
            if (!gx_scratch_add(joined, " ", 1) || !gx_scratch_add(joined, value.p, value.n))
                return false;
            *to = (gx_span){joined->p, joined->n};
        }
    }
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
        gx_skip_mark(&line, &len);
    } while (is_blank(line, len));
    object_values o = {.s = s};
    scan j = {line, line + len, NULL, &s->counts.replaced, s, GX_OK, err};
    if (!object(&j, &o))
        return j.failed ? j.failed
                        : gx_fail_record(s, s->rec.line, err, "column %zu: not JSON as expected: %s",
                                         (size_t)(j.p - line) + 1, j.why);
    if (!take_role(s, &o, GX_COLUMN_ID, &s->rec.id, &s->id) ||
        !take_role(s, &o, GX_COLUMN_TITLE, &s->rec.title, &s->title) ||
        !take_role(s, &o, GX_COLUMN_TEXT, &s->rec.text, &s->text))
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    if (!s->rec.id.p)
        return s->opt.members
                   ? gx_fail_record(s, s->rec.line, err, "no id: the object lacks the field that is the id")
                   : gx_fail_record(s, s->rec.line, err, "no id: the object has none of the members id, _id and docid");
    if (s->format == GX_SOURCE_VECTORS)
        return s->rec.has_vector ? GX_OK
                                 : gx_fail_record(s, s->rec.line, err, "no vector: the object lacks the field %.*s",
                                                  (int)vector_field(s)->n, vector_field(s)->name);
    if (!s->rec.text.p && !s->rec.title.p && s->opt.n_fields == 0)
        return s->opt.members
                   ? gx_fail_record(s, s->rec.line, err,
                                    "no text: the object has none of the members that are text or title")
                   : gx_fail_record(s, s->rec.line, err,
                                    "no text: the object has none of the members text, contents, content and "
                                    "title");
    return GX_OK;
}

gx_status gx_read_vectors(gx_source *s, bool *found, gx_error *err)
{
    return gx_read_json(s, found, err);
}
