/* condition.h: the conditions that filters (filter.h) and boolean queries (parse.h) are made of, as text.
 *
 *   condition  = NAME ":" value                       equal; of several values any
 *              | NAME ":" word "*"                    of a keyword: begins with the word
 *              | NAME ":" ( "<" | "<=" | ">" | ">=" ) value
 *              | NAME ":" ( "[" | "{" ) bound "TO" bound ( "]" | "}" )   { }: the bound excluded
 *              | "has" ":" NAME                       has a value
 *              | "id" ":" ( value | "@" FILE )        the document of that id; those whose ids the
 *                                                     file has
 *   bound      = value | "*"
 *   value      = word | '"' characters '"'            a backslash takes the next character as it is
 *
 * A word ends at a blank, a bracket of any kind or a quote; in a boolean query also at ^. But for a * at the end,
 * values are compared whole: a * elsewhere in a word, which would stand for letters in other engines, is refused.
 * What a condition's values mean in an index is read later (filter_condition.c).
 */
#ifndef GX_QUERY_SYNTAX_CONDITION_H
#define GX_QUERY_SYNTAX_CONDITION_H

#include "index/index.h"
#include "query/syntax/scanner.h"

#define GX_CONDITION_DELIMITERS "()[]{}\""

/* Bytes on the heap that grow; all zero at first, and freed by free(p). */
typedef struct gx_bytes {
    char *p;
    size_t n, max;
} gx_bytes;

/* false: no memory. */
bool gx_bytes_append(gx_bytes *b, const char *p, size_t n);
bool gx_bytes_append_text(gx_bytes *b, const char *text);

typedef enum gx_condition_kind {
    GX_CONDITION_VALUES, /* a value between two bounds */
    GX_CONDITION_HAS,    /* any value */
    GX_CONDITION_ID,     /* the document of that id */
    GX_CONDITION_FILE    /* the documents whose ids a file has */
} gx_condition_kind;

typedef struct gx_condition_value {
    size_t at, len;  /* bytes [at, at + len) of the values, with a 0 behind them */
    uint32_t column; /* where it stands, in characters from 1 */
    uint32_t star;   /* the column of a * outside of quotes and without a backslash; 0: there is none */
    bool any;        /* as a bound: there is none */
    bool open;       /* as a bound: without the value itself */
} gx_condition_value;

typedef struct gx_condition {
    gx_condition_kind kind;
    /* of GX_CONDITION_VALUES: '=' one value, '*' what begins with it, '<' or '>' with a sign, '[' two bounds */
    char form;
    uint32_t column, behind; /* where it stands, and what is behind its colon, in characters from 1 */
    uint32_t attribute;      /* of VALUES and HAS: its number in the index; GX_NOT_SCANNED where no index was given */
    gx_condition_value name; /* of the attribute, "id" or "has" */
    gx_condition_value low;  /* VALUES: the lower bound; ID, FILE, HAS: what stands behind the colon */
    gx_condition_value high; /* VALUES: the upper bound; of one value the same as low */
} gx_condition;

/* Read a condition from its first character on. Its values are appended to `values`, and attributes are
 * looked up in ix (NULL: they are not). `hint` stands behind the message that there is no such attribute.
 * false: refused (s->st, with the column), or no memory. */
bool gx_scan_condition(gx_scanner *s, const gx_index *ix, const char *hint, gx_condition *out, gx_bytes *values);

/* Append the condition as text, which is read as the same condition again, and does not depend on
 * blanks and quotes. false: no memory. */
bool gx_condition_append(gx_bytes *out, const gx_condition *c, const char *values);

#endif
