#include "tools/serve/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool fault_set(fault *f, int status, const char *format, ...)
{
    va_list args;
    if (f->status)
        return false;
    *f = (fault){.status = status};
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    return false;
}

/* ---- places ---- */

/* The body from a byte on, of valid JSON. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n", *c->at))
        ++c->at;
}

/* Past a string, whose first quote is at the cursor. */
static void skip_string(cursor *c)
{
    for (++c->at; c->at < c->end && *c->at != '"'; ++c->at)
        c->at += *c->at == '\\' && c->at + 1 < c->end;
    c->at += c->at < c->end;
}

/* Past a value of any kind. */
static void skip_value(cursor *c)
{
    size_t depth = 0;
    skip_blanks(c);
    do {
        if (c->at >= c->end)
            return;
        if (*c->at == '"') {
            skip_string(c);
            continue;
        }
        if (depth == 0 && strchr(",]}", *c->at))
            return;
        depth += *c->at == '[' || *c->at == '{';
        depth -= *c->at == ']' || *c->at == '}';
        ++c->at;
    } while (depth || (c->at < c->end && !strchr(",]}: \t\r\n", *c->at)));
}

/* To the value of a member of the object at the cursor; false: its name is written with escapes. */
static bool find_member(cursor *c, const char *name)
{
    const size_t len = strlen(name);
    for (++c->at; c->at < c->end; ++c->at) {
        skip_blanks(c);
        const char *begin = c->at + 1;
        if (c->at >= c->end || *c->at != '"')
            return false;
        skip_string(c);
        const bool found = (size_t)(c->at - 1 - begin) == len && memcmp(begin, name, len) == 0;
        skip_blanks(c);
        c->at += c->at < c->end; /* the colon */
        skip_blanks(c);
        if (found)
            return true;
        skip_value(c);
        skip_blanks(c);
    }
    return false;
}

static bool find_element(cursor *c, size_t i)
{
    for (++c->at; c->at < c->end; ++c->at) {
        skip_blanks(c);
        if (i-- == 0)
            return true;
        skip_value(c);
        skip_blanks(c);
    }
    return false;
}

/* Where the value lies on which the reader stands. */
static void find_place(const reader *r, unsigned *line, unsigned *column)
{
    cursor c = {r->body, r->body + r->len};
    const char *place, *begin = r->body;
    skip_blanks(&c);
    place = c.at;
    for (uint32_t i = 0; i < r->n_steps; ++i) {
        if (!(r->steps[i].name ? find_member(&c, r->steps[i].name) : find_element(&c, r->steps[i].i)))
            break;
        place = c.at;
    }
    *line = 1;
    for (const char *p = r->body; p < place; ++p)
        if (*p == '\n') {
            ++*line;
            begin = p + 1;
        }
    *column = (unsigned)(place - begin) + 1;
}

/* "query.bool.must[2]" */
static void put_path(const reader *r, char *to, size_t size)
{
    size_t n = 0;
    *to = 0;
    for (uint32_t i = 0; i < r->n_steps && n + 1 < size; ++i) {
        const int more = r->steps[i].name ? snprintf(to + n, size - n, "%s%s", i ? "." : "", r->steps[i].name)
                                          : snprintf(to + n, size - n, "[%zu]", r->steps[i].i);
        n += more > 0 ? (size_t)more : 0;
    }
}

bool reader_fail(reader *r, const char *format, ...)
{
    fault *f = r->fault;
    va_list args;
    if (f->status)
        return false;
    *f = (fault){.status = 400};
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    find_place(r, &f->line, &f->column);
    f->line += r->first_line;
    put_path(r, f->member, sizeof f->member);
    return false;
}

bool reader_fail_filter(reader *r, const char *text)
{
    static const char prefix[] = "filter, column ";
    const char *colon = strncmp(text, prefix, sizeof prefix - 1) == 0 ? strstr(text, ": ") : NULL;
    return reader_fail(r, "%s", colon ? colon + 2 : text);
}

void reader_enter(reader *r, const char *name, size_t i)
{
    if (r->n_steps < MAX_STEPS) {
        r->steps[r->n_steps].name = name;
        r->steps[r->n_steps].i = i;
    }
    ++r->n_steps; /* max_depth keeps it below MAX_STEPS */
}

void reader_leave(reader *r)
{
    --r->n_steps;
}

/* ---- parsing ---- */

static void set_place(reader *r, const char *at)
{
    fault *f = r->fault;
    const char *begin = r->body;
    f->line = 1 + r->first_line;
    for (const char *p = r->body; p < at; ++p)
        if (*p == '\n') {
            ++f->line;
            begin = p + 1;
        }
    f->column = (unsigned)(at - begin) + 1;
}

/* Arrays and objects nest at most that deep. Brackets in strings are passed over. */
static bool check_depth(reader *r, uint32_t max)
{
    uint32_t depth = 0;
    cursor c = {r->body, r->body + r->len};
    while (c.at < c.end) {
        if (*c.at == '"') {
            skip_string(&c);
            continue;
        }
        if ((*c.at == '[' || *c.at == '{') && ++depth > max) {
            fault_set(r->fault, 400, "the JSON is nested more than %u levels deep", max);
            set_place(r, c.at);
            return false;
        }
        depth -= (*c.at == ']' || *c.at == '}') && depth > 0;
        ++c.at;
    }
    return true;
}

/* jansson's words without the text near by, at whose beginning the place is. */
static void put_parse_error(reader *r, const json_error_t *e)
{
    static const char mark[] = " near '";
    fault *f = r->fault;
    const char *near = strstr(e->text, mark), *token = near ? near + sizeof mark - 1 : "";
    const size_t len = *token ? strlen(token) - 1 : 0;
    size_t at = e->position > 0 ? (size_t)e->position : 0;
    fault_set(f, 400, "the body is not valid JSON: %.*s", near ? (int)(near - e->text) : (int)strlen(e->text), e->text);
    if (at > r->len)
        return;
    if (len && at >= len && memcmp(r->body + at - len, token, len) == 0)
        at -= len;
    else
        at -= at > 0;
    set_place(r, r->body + at);
}

bool reader_open(reader *r, fault *f, const char *body, size_t len, uint32_t max_depth)
{
    json_error_t e = {.position = -1};
    *r = (reader){.fault = f, .body = body, .len = len};
    cursor c = {body, body + len};
    skip_blanks(&c);
    if (c.at == c.end)
        return fault_set(f, 400, "the body is empty; a JSON object is expected");
    if (!check_depth(r, max_depth))
        return false;
    r->root = json_loadb(body, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (!r->root)
        put_parse_error(r, &e);
    return r->root != NULL;
}

void reader_close(reader *r)
{
    json_decref(r->root);
    r->root = NULL;
}

/* ---- values ---- */

static const char *kind_of(const json_t *value)
{
    static const char *const names[] = {"an object", "an array", "a string", "a number",
                                        "a number",  "true",     "false",    "null"};
    return names[json_typeof(value)];
}

/* The names of the rows, as far as they fit. */
static void list_names(char *to, size_t size, const member *members, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n && len + 1 < size; ++i) {
        const int more = members[i].read ? snprintf(to + len, size - len, "%s%s", len ? ", " : "", members[i].name) : 0;
        len += more > 0 ? (size_t)more : 0;
    }
}

bool reader_object(reader *r, const json_t *value, const member *members, size_t n, void *to)
{
    if (!json_is_object(value))
        return reader_fail(r, "this is %s, not an object", kind_of(value));
    void *iter = json_object_iter((json_t *)value);
    for (; iter; iter = json_object_iter_next((json_t *)value, iter)) {
        const char *name = json_object_iter_key(iter);
        char names[512] = "";
        size_t i = 0;
        while (i < n && strcmp(members[i].name, name))
            ++i;
        reader_enter(r, name, 0);
        if (i == n)
            list_names(names, sizeof names, members, n);
        if (i == n)
            return reader_fail(r, "there is no member '%.80s' here; there are %s", name, names);
        if (!members[i].read)
            return reader_fail(r, "'%.80s' is not available in this version of gpuidx", name);
        if (!members[i].read(r, json_object_iter_value(iter), to))
            return false;
        reader_leave(r);
    }
    return true;
}

bool reader_array(reader *r, const json_t *value, member_fn *read, void *to)
{
    if (!json_is_array(value))
        return reader_fail(r, "this is %s, not an array", kind_of(value));
    for (size_t i = 0; i < json_array_size(value); ++i) {
        reader_enter(r, NULL, i);
        if (!read(r, json_array_get(value, i), to))
            return false;
        reader_leave(r);
    }
    return true;
}

bool reader_string(reader *r, const json_t *value, const char **text, size_t *len)
{
    if (!json_is_string(value))
        return reader_fail(r, "this is %s, not a string", kind_of(value));
    *text = json_string_value(value);
    *len = json_string_length(value);
    return true;
}

bool reader_bool(reader *r, const json_t *value, bool *out)
{
    if (!json_is_boolean(value))
        return reader_fail(r, "this is %s, not true or false", kind_of(value));
    *out = json_is_true(value);
    return true;
}

bool reader_count(reader *r, const json_t *value, uint64_t min, uint64_t max, uint64_t *out)
{
    if (!json_is_integer(value))
        return reader_fail(r, "this is %s, not a whole number", json_is_number(value) ? "a fraction" : kind_of(value));
    const json_int_t n = json_integer_value(value);
    if (n < 0 || (uint64_t)n < min)
        return reader_fail(r, "%lld is less than %llu", (long long)n, (unsigned long long)min);
    if ((uint64_t)n > max)
        return reader_fail(r, "%lld is more than %llu", (long long)n, (unsigned long long)max);
    *out = (uint64_t)n;
    return true;
}

bool reader_number(reader *r, const json_t *value, double *out)
{
    if (!json_is_number(value))
        return reader_fail(r, "this is %s, not a number", kind_of(value));
    *out = json_number_value(value);
    return true;
}

const char *reader_scalar(reader *r, const json_t *value, char buf[64], size_t *len)
{
    if (json_is_string(value)) {
        *len = json_string_length(value);
        return json_string_value(value);
    }
    if (json_is_boolean(value))
        snprintf(buf, 64, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_integer(value))
        snprintf(buf, 64, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(buf, 64, "%.17g", json_real_value(value));
    else {
        reader_fail(r, "this is %s, not a string, a number, true or false", kind_of(value));
        return NULL;
    }
    *len = strlen(buf);
    return buf;
}
