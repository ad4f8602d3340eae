/* gpuidx_values.h: the values of documents' attributes. Part of gpuidx_advanced.h. */
#ifndef GPUIDX_VALUES_H
#define GPUIDX_VALUES_H

#include "gpuidx_answers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One value of an attribute. The attribute's type says which members are set. */
typedef struct gx_value {
    int64_t number;     /* int; date: seconds since 1970-01-01 in UTC; bool: 0 or 1 */
    double real;        /* float */
    const char *string; /* keyword and keywords: [len] bytes, not NUL-terminated; they belong to the index */
    size_t len;
} gx_value;

/* The values of one attribute of n documents. Begin with all zero, and use it for any number of calls: the arrays grow
 * as they must. gx_values_free frees them.
 *
 *   starts  0   2   2   3       document 0 has 2 values, document 1 none, document 2 one
 *   values  a b | | c
 */
typedef struct gx_values {
    gx_attribute_type type;
    bool several;     /* a document of the index has several values, or the type is keywords */
    uint64_t n;       /* documents */
    uint64_t *starts; /* [n + 1]; the values of document i are values[starts[i]] to values[starts[i + 1] - 1] */
    gx_value *values; /* [starts[n]]; a document's in the order of the file, which is by rising value */
    uint64_t max_n, max_values;
} gx_values;

/* Find an attribute by its name of len bytes: *number is its number, as gx_index_get_attribute numbers it. GX_EUSAGE:
 * there is none; the message names the nearest one. Thread-safe. */
GX_API gx_status gx_index_find_attribute(const gx_index *ix, const char *name, size_t len, uint32_t *number,
                                         gx_error *err);

/* Read the values of attribute number `attribute` of the documents docids[n], which may repeat and stand in any order.
 * The strings of *out are valid until the index is closed. GX_ENOTFOUND (no such attribute, or a docid that the index
 * lacks), GX_ECORRUPT (a string that the attribute lacks), GX_ENOMEM. Thread-safe for different *out. */
GX_API gx_status gx_index_values(const gx_index *ix, uint32_t attribute, const uint64_t *docids, uint64_t n,
                                 gx_values *out, gx_error *err);
GX_API void gx_values_free(gx_values *values);

/* Add a value as text, in the form in which a filter reads it, or as JSON: ints, floats (2.0) and bools as they are,
 * dates and keywords as strings. */
GX_API void gx_text_add_value(gx_text *t, gx_attribute_type type, const gx_value *value);
GX_API void gx_text_add_json_value(gx_text *t, gx_attribute_type type, const gx_value *value);

/* Add a JSON object of a document's values of the attributes numbers[n]: {"price":12,"tags":["a","b"]}. An attribute of
 * which a document may have several values is always an array. One of which the document has no value is left out. With
 * numbers NULL, the index's first n attributes. `values` is scratch memory. As gx_index_values. */
GX_API gx_status gx_text_add_attributes(gx_text *t, const gx_index *ix, uint64_t docid, const uint32_t *numbers,
                                        uint32_t n, gx_values *values, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
