/* bitmap_maker.h: the values of an attribute to bitmap columns (bitmap_columns.h), on their way into
 * an index file. The values are read several times, front to back; the maker holds 64 MB of columns,
 * or one column, and 40 bytes a bin. */
#ifndef GX_INDEX_WRITE_BITMAP_MAKER_H
#define GX_INDEX_WRITE_BITMAP_MAKER_H

#include "engine/files/spool.h"
#include "index/format.h"

/* The values of one document, as the file has them. */
typedef struct gx_bitmap_row {
    uint32_t n;
    uint64_t value;          /* where n = 1 and several is NULL */
    const uint32_t *several; /* [n] ordinals of GX_ATTRIBUTE_KEYWORDS, all different */
    const uint64_t *numbers; /* [n] rising values where n > 1, of other types */
} gx_bitmap_row;

typedef struct gx_bitmap_source {
    gx_attribute_type type;
    uint8_t width; /* bytes of a value in the file */
    uint32_t n_docs, n_strings;
    uint64_t n_values; /* of all documents */
    void *user;
    gx_status (*rewind)(void *user, gx_error *err);
    gx_status (*next)(void *user, gx_bitmap_row *row, gx_error *err); /* n_docs times after each rewind */
    bool several; /* a document can have several values, which are no keywords */
} gx_bitmap_source;

/* What is wrong with options for an attribute, to stand behind its name in a message, or NULL. */
const char *gx_bitmap_options_fault(gx_attribute_type type, const gx_bitmap_options *o);

/* What a file was asked for, for whoever writes it again: nothing, where that has a fault. */
gx_bitmap_options gx_bitmap_options_asked(gx_attribute_type type, const gx_bitmap_options *asked);

/* Add the attribute's columns to *out, in a multiple of 8 bytes, and describe them in *entry, whose
 * begin counts from the spool's first byte. Where there are none, nothing is added. In place of a range
 * encoding, an equality encoding is made where a document can have several values. GX_ENOMEM, GX_EINPUT
 * (the columns take 16 GB or more), GX_EIO. */
gx_status gx_bitmaps_make(const gx_bitmap_source *s, const gx_bitmap_options *o, gx_spool *out, gx_bitmaps_entry *entry,
                          gx_error *err);

#endif
