/* attribute_codes.h: a column as codes of 1 or 2 bytes that rise with the values, derived from its order in
 * memory. A range of values is a range of codes. So one comparison of a short number tests a document
 * whatever its value takes, whether it has one or not, and several values at once.
 *
 *   values      d0: 7.5   d1: -   d2: 3.25          d0: c, a   d1: -      d2: b, d, e, f, g
 *   codes       1         NONE    0                 0 2 - -    - - - -    1 3 4 MORE
 *
 * Codes are the values as the column has them, if these are few, or else places in the order, 2^shift of them
 * to a code: then a range of values can cut its first and its last code, of which other values have the same.
 * Of a column in which a document may have several values, each document has 1, 2 or 4 words of codes of a
 * byte. The last code of a document that has more values than codes is MORE.
 */
#ifndef GX_INDEX_ATTRIBUTES_ATTRIBUTE_CODES_H
#define GX_INDEX_ATTRIBUTES_ATTRIBUTE_CODES_H

#include "index/attributes/attribute_order.h"

typedef struct gx_column_codes {
    uint8_t width; /* bytes of a code: 1 or 2; with starts 1 */
    /* A document of a column with starts has 2^words_shift words of 4 bytes, codes from the lowest byte on;
     * other documents have one code. */
    uint8_t words_shift;
    bool of_values;
    uint8_t shift;        /* of codes that are places */
    const uint8_t *codes; /* 4 bytes may be read before it */
    uint32_t memory[];
} gx_column_codes;

/* The codes of a column, made at their first use, which makes the order too: 1 or 2 bytes a document, 4 to 16
 * where there are starts. They belong to the order. NULL: no memory, or more than 2^31 bytes. Thread-safe. */
const gx_column_codes *gx_column_get_codes(const gx_index *ix, gx_column *c);

/* Codes of no value, the greatest: MORE; NONE; and one that no document has. */
static inline uint32_t gx_code_more(const gx_column_codes *codes)
{
    return codes->width == 1 ? UINT8_MAX : UINT16_MAX;
}

static inline uint32_t gx_code_none(const gx_column_codes *codes)
{
    return gx_code_more(codes) - 1;
}

static inline uint32_t gx_code_unused(const gx_column_codes *codes)
{
    return gx_code_more(codes) - 2;
}

/* Values have codes [first, last]; other values have some of these codes too, but none of
 * [inner_first, inner_last], which may be the unused one alone. */
typedef struct gx_code_range {
    uint32_t first, last, inner_first, inner_last;
    uint64_t n; /* values of documents */
} gx_code_range;

/* The codes of the values from low to high, as the column has its values (doubles' bits of a float). false:
 * there is no such value. */
bool gx_column_code_range(const gx_column *c, const gx_column_codes *codes, uint64_t low, uint64_t high,
                          gx_code_range *out);

/* A bit a document that has the value: of one that at least a document in GX_COMMON_VALUE has, in a column whose
 * order has starts. Made at first use, of GX_MAX_COMMON values of a column: an eighth of a byte a document for
 * each. It belongs to the order. NULL: no such value, or no memory. Thread-safe. */
#define GX_COMMON_VALUE 256u
#define GX_MAX_COMMON 128u
const uint32_t *gx_column_get_documents(const gx_index *ix, const gx_column *c, uint64_t value);

/* Whether the document has a value from low to high, where its codes do not tell. */
bool gx_column_has_within(const gx_column *c, uint32_t docid, uint64_t low, uint64_t high);

#endif
