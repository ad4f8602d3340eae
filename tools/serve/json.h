/* json.h: the JSON of a request, read so that every fault has its place: line, column and member.
 *
 *   reader r;
 *   if (reader_open(&r, &fault, body, len, depth) && reader_object(&r, r.root, members, n, &to))
 *       ...
 *   reader_close(&r);
 *
 * jansson parses the whole. While the members are looked at, the reader keeps the path to the value that it stands
 * on; a fault looks that place up in the body. Strings that were read belong to the reader's root. */
#ifndef GX_SERVE_JSON_H
#define GX_SERVE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is wrong with a request. status 0: nothing. */
typedef struct fault {
    int status;            /* of HTTP */
    unsigned line, column; /* in the body, from 1, column in bytes; 0: not a place of the body */
    char member[192];      /* "query.bool.must[2]"; "" of the body as a whole */
    char text[640];
} fault;

/* Set *f, unless it is set already; false. */
bool fault_set(fault *f, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

enum { MAX_STEPS = 96 };

typedef struct reader {
    fault *fault;
    const char *body;
    size_t len;
    unsigned first_line; /* of the body, in a body of several lines */
    json_t *root;
    uint32_t n_steps;
    struct {
        const char *name; /* a member, or NULL: */
        size_t i;         /* an element */
    } steps[MAX_STEPS];
} reader;

/* Parse a text of at most that depth. false: the fault is set. Close in either case. */
bool reader_open(reader *r, fault *f, const char *body, size_t len, uint32_t max_depth);
void reader_close(reader *r);

/* A fault at the place where the reader stands; false. */
bool reader_fail(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for what the library says of a filter: its column is left out, as the filter is not the client's text. */
bool reader_fail_filter(reader *r, const char *text);

/* Go to a member or element of the value where the reader stands, and back. */
void reader_enter(reader *r, const char *name, size_t i);
void reader_leave(reader *r);

/* How a member is read: *value is where the reader stands. false: the fault is set. */
typedef bool member_fn(reader *r, const json_t *value, void *to);
typedef struct member {
    const char *name;
    member_fn *read;    /* NULL: known, and not there yet: refused by name */
    const char *schema; /* members of its JSON schema, for /openapi.json; or NULL */
} member;

/* Read an object: each of its members by the row of its name. One that no row has is refused, with the names that
 * there are. */
bool reader_object(reader *r, const json_t *value, const member *members, size_t n, void *to);
/* Read each element of an array by one function. */
bool reader_array(reader *r, const json_t *value, member_fn *read, void *to);

/* Values of one kind; a value of another kind is a fault. */
bool reader_string(reader *r, const json_t *value, const char **text, size_t *len);
bool reader_bool(reader *r, const json_t *value, bool *out);
bool reader_count(reader *r, const json_t *value, uint64_t min, uint64_t max, uint64_t *out);
bool reader_number(reader *r, const json_t *value, double *out);

/* A scalar as the text of an option: strings as they are, numbers and true, false in their JSON form. NULL: the value
 * is an object or array, and the fault is set. buf[64] holds a number. */
const char *reader_scalar(reader *r, const json_t *value, char buf[64], size_t *len);

#endif
