#include "tools/bench/data/made_bitmaps.h"

#include <stdlib.h>

#include "engine/status.h"

/* Set the columns' places, as gx_bitmaps_bind does for a file. */
static void bind(made_bitmaps *m, const gx_bitmap_source *s, const gx_bitmaps_entry *e)
{
    gx_bitmaps *const b = &m->bitmaps;
    const uint64_t bounds = gx_is_keyword(s->type) ? 0 : (uint64_t)e->n_bins * s->width;
    const uint8_t *const directory = m->bytes + gx_column_padded(2 * bounds);
    b->encoding = (gx_bitmap_encoding)e->encoding;
    b->n_bins = e->n_bins;
    b->n_columns = gx_bitmaps_n_columns(b->encoding, e->n_bins);
    b->least = bounds ? m->bytes : NULL;
    b->greatest = bounds ? m->bytes + bounds : NULL;
    b->directory = (const gx_bitmap_entry *)(const void *)directory;
    b->words = (const uint32_t *)(const void *)(directory + b->n_columns * sizeof *b->directory);
    b->bytes = e->bytes;
    m->n_words = b->n_columns ? b->directory[b->n_columns - 1].end : 0;
}

gx_status made_bitmaps_open(made_bitmaps *out, const gx_bitmap_source *s, const gx_bitmap_options *o, gx_error *err)
{
    gx_spool spool = gx_spool_make("/tmp");
    gx_bitmaps_entry entry;
    *out = (made_bitmaps){.bitmaps.encoding = GX_BITMAPS_NONE};
    gx_status st = gx_bitmaps_make(s, o, &spool, &entry, err);
    const size_t n = (size_t)gx_spool_bytes(&spool);
    if (st == GX_OK && !(out->bytes = calloc(n + GX_READ_SLACK, 1)))
        st = gx_fail(err, GX_ENOMEM, "no memory for bitmap columns of %u documents", s->n_docs);
    if (st == GX_OK)
        st = gx_spool_read(&spool, 0, out->bytes, n, err);
    if (st == GX_OK && entry.encoding != GX_BITMAPS_NONE)
        bind(out, s, &entry);
    gx_spool_free(&spool);
    if (st != GX_OK)
        made_bitmaps_close(out);
    return st;
}

void made_bitmaps_close(made_bitmaps *m)
{
    free(m->bytes);
    *m = (made_bitmaps){.bitmaps.encoding = GX_BITMAPS_NONE};
}

/* ---- a value each ---- */

typedef struct value_reader {
    const uint8_t *values;
    uint32_t next;
} value_reader;

static gx_status rewind_values(void *user, gx_error *err)
{
    (void)err;
    ((value_reader *)user)->next = 0;
    return GX_OK;
}

static gx_status next_value(void *user, gx_bitmap_row *row, gx_error *err)
{
    value_reader *const r = user;
    (void)err;
    *row = (gx_bitmap_row){.n = 1, .value = r->values[r->next++]};
    return GX_OK;
}

gx_status made_bitmaps_of_values(made_bitmaps *out, const uint8_t *values, uint32_t n_docs, uint32_t n_values,
                                 gx_bitmap_encoding encoding, gx_error *err)
{
    value_reader r = {values, 0};
    const bool range = encoding == GX_BITMAPS_RANGE; /* keywords have none */
    const gx_bitmap_source s = {range ? GX_ATTRIBUTE_INT : GX_ATTRIBUTE_KEYWORD,
                                1,
                                n_docs,
                                range ? 0 : n_values,
                                n_docs,
                                &r,
                                rewind_values,
                                next_value,
                                false};
    return made_bitmaps_open(out, &s, &(gx_bitmap_options){.encoding = encoding}, err);
}
