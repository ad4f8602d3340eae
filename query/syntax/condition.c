#include "query/syntax/condition.h"

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "index/attributes/attributes.h"

/* ---- bytes ---- */

bool gx_bytes_append(gx_bytes *b, const char *p, size_t n)
{
    if (!gx_reserve(&b->p, &b->max, b->n + n + 1, 1))
        return false;
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return true;
}

bool gx_bytes_append_text(gx_bytes *b, const char *text)
{
    return gx_bytes_append(b, text, strlen(text));
}

/* ---- values ---- */

/* What is read, and into what. */
typedef struct reading {
    gx_scanner *in;
    gx_bytes *values;
} reading;

static bool put(const reading *r, const char *p, size_t n)
{
    if (r->in->st == GX_OK && !gx_bytes_append(r->values, p, n))
        r->in->st = gx_fail(r->in->err, GX_ENOMEM, "no memory for a condition");
    return r->in->st == GX_OK;
}

static void begin_value(const reading *r, gx_condition_value *v)
{
    *v = (gx_condition_value){.at = r->values->n, .column = r->in->column};
}

/* false: refused while it was read. */
static bool end_value(const reading *r, gx_condition_value *v)
{
    v->len = r->values->n - v->at;
    return put(r, "", 1);
}

/* Characters up to the value's end; a backslash takes the next one as it is. *star: the column of the first * that
 * stands without a backslash. */
static bool put_characters(const reading *r, bool quoted, uint32_t *star)
{
    gx_scanner *const in = r->in;
    for (;;) {
        const size_t begin = in->at;
        while (quoted ? !gx_scan_is_end(in) && gx_scan_peek(in) != '"' && gx_scan_peek(in) != '\\'
                      : !gx_scan_is_word_end(in) && gx_scan_peek(in) != '\\') {
            *star = *star || gx_scan_peek(in) != '*' ? *star : in->column;
            gx_scan_step(in);
        }
        if (!put(r, in->text + begin, in->at - begin))
            return false;
        if (!gx_scan_is_next(in, '\\'))
            return true;
        if (in->at + 1 < in->len)
            gx_scan_step(in);
        if (!put(r, &in->text[in->at], 1))
            return false;
        gx_scan_step(in);
    }
}

/* A word or a quoted string; `what` is expected. */
static bool read_value(const reading *r, const char *what, gx_condition_value *v)
{
    begin_value(r, v);
    if (gx_scan_take(r->in, '"')) {
        uint32_t any = 0;
        put_characters(r, true, &any);
        if (!gx_scan_take(r->in, '"'))
            gx_scan_refuse(r->in, v->column, "a quote is opened and never closed");
        return end_value(r, v);
    }
    const size_t begin = r->in->at;
    put_characters(r, false, &v->star);
    if (r->in->at == begin)
        gx_scan_refuse(r->in, v->column, "%s is expected", what);
    return end_value(r, v);
}

#define EACH_HAS_AN_ID "each document has an id, so that this selects all of them: leave the condition out"

static bool is_named(const reading *r, const gx_condition_value *name, const char *text)
{
    return name->len == strlen(text) && memcmp(r->values->p + name->at, text, name->len) == 0;
}

/* Whether the word that has been read ends with its only *, before which something stands. */
static bool ends_with_star(const reading *r, const gx_condition_value *v)
{
    return v->star && v->len > 1 && v->star + 1 == r->in->column;
}

/* Values are compared whole. */
static bool refuse_star(const reading *r, const gx_condition_value *name, const gx_condition_value *v)
{
    if (v->star && v->len > 1)
        gx_scan_refuse(
            r->in, v->star,
            "* stands for letters at the end of a keyword alone, as in brand:son*; put the value in quotes to "
            "take it as it stands");
    else if (v->star && is_named(r, name, "id"))
        gx_scan_refuse(r->in, v->star, "* is no id; " EACH_HAS_AN_ID);
    else if (v->star)
        gx_scan_refuse(r->in, v->star, "* is no value; has:%.*s selects the documents that have one",
                       name->len < 60 ? (int)name->len : 60, r->values->p + name->at);
    return r->in->st == GX_OK;
}

static bool read_bound(const reading *r, const gx_condition_value *name, gx_condition_value *v)
{
    gx_scan_skip_blanks(r->in);
    const bool good = read_value(r, "a bound, or *,", v);
    v->any = good && v->star && v->len == 1;
    return good && (v->any || refuse_star(r, name, v));
}

/* "[a TO b]" behind the colon. */
static bool read_brackets(const reading *r, gx_condition *c)
{
    const bool open_low = !gx_scan_take(r->in, '[');
    c->form = '[';
    if (open_low)
        gx_scan_take(r->in, '{');
    if (!read_bound(r, &c->name, &c->low))
        return false;
    c->low.open = open_low;
    if (!gx_scan_take_word(r->in, "TO")) {
        gx_scan_refuse(r->in, r->in->column, "TO is expected, as in [2015 TO 2019]");
        return false;
    }
    if (!read_bound(r, &c->name, &c->high))
        return false;
    gx_scan_skip_blanks(r->in);
    c->high.open = !gx_scan_take(r->in, ']');
    if (c->high.open && !gx_scan_take(r->in, '}')) {
        gx_scan_refuse(r->in, r->in->column, "] or } is expected, which ends the range");
        return false;
    }
    return true;
}

static bool read_comparison(const reading *r, gx_condition *c)
{
    const bool below = gx_scan_take(r->in, '<'), above = !below && gx_scan_take(r->in, '>'),
               equal = (below || above) && gx_scan_take(r->in, '=');
    c->form = below ? '<' : above ? '>' : '=';
    if (!read_value(r, "a value", &c->low))
        return false;
    if (c->form == '=' && ends_with_star(r, &c->low)) {
        c->form = '*';
        r->values->p[c->low.at + --c->low.len] = 0;
    } else if (!refuse_star(r, &c->name, &c->low)) {
        return false;
    }
    c->high = c->low;
    c->low.any = below;
    c->high.any = above;
    c->low.open = above && !equal;
    c->high.open = below && !equal;
    return true;
}

/* ---- the condition ---- */

static bool find_attribute(const reading *r, const gx_index *ix, const char *hint, const gx_condition_value *name,
                           uint32_t *out)
{
    char why[GX_NO_ATTRIBUTE_TEXT];
    *out = ix ? gx_column_find(ix, r->values->p + name->at, name->len, why) : GX_NOT_SCANNED;
    if (ix && *out == UINT32_MAX)
        gx_scan_refuse(r->in, name->column, "%s%s", why, hint);
    return r->in->st == GX_OK;
}

/* As it stands, and the colon. */
static bool read_name(const reading *r, gx_condition_value *name)
{
    const char *begin = r->in->text + r->in->at;
    begin_value(r, name);
    while (!gx_scan_is_word_end(r->in) && gx_scan_peek(r->in) != ':')
        gx_scan_step(r->in);
    const size_t n = (size_t)(r->in->text + r->in->at - begin);
    if (n == 0)
        gx_scan_refuse(r->in, name->column, "a condition is expected, as in year:2019, or NOT or (");
    else if (!gx_scan_take(r->in, ':'))
        gx_scan_refuse(r->in, r->in->column, "a colon is expected behind '%.*s', as in year:2019",
                       (int)(n < 60 ? n : 60), begin);
    return put(r, begin, n) && end_value(r, name);
}

bool gx_scan_condition(gx_scanner *s, const gx_index *ix, const char *hint, gx_condition *out, gx_bytes *values)
{
    const reading r = {s, values};
    gx_condition c = {.kind = GX_CONDITION_VALUES, .form = '=', .column = s->column, .attribute = GX_NOT_SCANNED};
    if (!read_name(&r, &c.name))
        return false;
    bool good;
    c.behind = s->column;
    if (is_named(&r, &c.name, "id")) {
        c.kind = gx_scan_is_next(s, '@') ? GX_CONDITION_FILE : GX_CONDITION_ID;
        const bool file = gx_scan_take(s, '@');
        good = read_value(&r, file ? "the name of a file" : "an id, or @ and the name of a file,", &c.low) &&
               (file || refuse_star(&r, &c.name, &c.low));
    } else if (is_named(&r, &c.name, "has")) {
        c.kind = GX_CONDITION_HAS;
        good = read_value(&r, "the name of an attribute", &c.low);
        if (good && ix && is_named(&r, &c.low, "id"))
            gx_scan_refuse(s, c.low.column, EACH_HAS_AN_ID);
        good = good && find_attribute(&r, ix, "", &c.low, &c.attribute);
    } else {
        const char next = gx_scan_peek(s);
        good = find_attribute(&r, ix, hint, &c.name, &c.attribute) &&
               (next == '[' || next == '{' ? read_brackets(&r, &c) : read_comparison(&r, &c));
    }
    *out = c;
    return good;
}

/* ---- back to text ---- */

/* In double quotes, so that it is read as the same value again. */
static bool append_quoted(gx_bytes *out, const char *p, size_t n)
{
    if (!gx_reserve(&out->p, &out->max, out->n + 2 * n + 2, 1))
        return false;
    out->p[out->n++] = '"';
    for (size_t i = 0; i < n; ++i) {
        if (p[i] == '"' || p[i] == '\\')
            out->p[out->n++] = '\\';
        out->p[out->n++] = p[i];
    }
    out->p[out->n++] = '"';
    return true;
}

static bool append_bound(gx_bytes *out, const gx_condition_value *v, const char *values)
{
    return v->any ? gx_bytes_append(out, "*", 1) : append_quoted(out, values + v->at, v->len);
}

/* Names of attributes are mostly words. */
static bool append_name(gx_bytes *out, const gx_condition_value *v, const char *values)
{
    bool word = v->len > 0;
    for (size_t i = 0; i < v->len && word; ++i)
        word = !gx_ends_word(GX_CONDITION_DELIMITERS "\\^", values[v->at + i]);
    return word ? gx_bytes_append(out, values + v->at, v->len) : append_quoted(out, values + v->at, v->len);
}

/* The beginning of a word and a *, with backslashes before what is no letter or digit. */
static bool append_beginning(gx_bytes *out, const char *p, size_t n)
{
    if (!gx_reserve(&out->p, &out->max, out->n + 2 * n + 2, 1))
        return false;
    for (size_t i = 0; i < n; ++i) {
        if ((unsigned char)p[i] < 0x80 && !gx_is_letter_or_digit(p[i]))
            out->p[out->n++] = '\\';
        out->p[out->n++] = p[i];
    }
    out->p[out->n++] = '*';
    return true;
}

bool gx_condition_append(gx_bytes *out, const gx_condition *c, const char *values)
{
    const gx_condition_value *const v = c->form == '<' ? &c->high : &c->low;
    if (!gx_bytes_append(out, values + c->name.at, c->name.len) || !gx_bytes_append(out, ":", 1))
        return false;
    if (c->kind == GX_CONDITION_HAS)
        return append_name(out, &c->low, values);
    if (c->kind != GX_CONDITION_VALUES)
        return gx_bytes_append_text(out, c->kind == GX_CONDITION_FILE ? "@" : "") && append_bound(out, v, values);
    if (c->form == '*')
        return append_beginning(out, values + c->low.at, c->low.len);
    if (c->form != '[')
        return (c->form == '=' || gx_bytes_append(out, &c->form, 1)) &&
               gx_bytes_append_text(out, c->form != '=' && !v->open ? "=" : "") && append_bound(out, v, values);
    return gx_bytes_append_text(out, c->low.open ? "{" : "[") && append_bound(out, &c->low, values) &&
           gx_bytes_append_text(out, " TO ") && append_bound(out, &c->high, values) &&
           gx_bytes_append_text(out, c->high.open ? "}" : "]");
}
