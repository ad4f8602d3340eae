/* types.h: what differs from one type of attributes to the next, a row a type. Filters, facets, exports, checks and
 * the writer of columns read it: a new type is a member of gx_attribute_type, a row, and its parse and print.
 *
 * A value has 64 bits: a whole number's (int; date: its second; bool: 0 or 1), or a double's where the type is real.
 * Values of strings are ordinals, which the column's strings stand for: the row has no functions for them. */
#ifndef GX_INDEX_ATTRIBUTES_TYPES_H
#define GX_INDEX_ATTRIBUTES_TYPES_H

#include "engine/api/gpuidx_values.h"
#include "index/attributes/attributes.h"

typedef struct gx_type {
    const char *name;  /* as --attr and info have it */
    uint8_t width;     /* bytes of a value in a column; 0: the fewest that hold all, less the column's base */
    bool is_string;    /* values are ordinals */
    bool is_set;       /* strings, any number of them a document */
    bool is_real;      /* values are the bits of doubles */
    bool is_quoted;    /* a string in JSON, too */
    bool has_no_range; /* its conditions name values alone */
    /* Read all of a text. NULL, or what is wrong, to stand behind the text in a message. What the text means: the
     * values from *first to *last (a date without a time: all of its seconds); as a bound of a range, a text between
     * two values has *first one more than *last. */
    const char *(*parse)(const char *p, size_t n, bool is_bound, int64_t *first, int64_t *last);
    void (*print)(int64_t value, char text[GX_VALUE_TEXT]);
    const char *(*fault)(int64_t value); /* what is wrong with a value in a file, or NULL */
} gx_type;

/* NULL: there is no such type. */
const gx_type *gx_type_of(unsigned type);

/* The bits of a value that is no string, and the value of such bits. */
int64_t gx_value_bits(gx_attribute_type type, const gx_value *value);
gx_value gx_value_of_bits(gx_attribute_type type, int64_t bits);

#endif
