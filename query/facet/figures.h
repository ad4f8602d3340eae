/* figures.h: sums, averages, extremes, distinct values and percentiles of an attribute, of documents in slots.
 *
 *   pairs (document, slot), file by file --gx_tally_add--> a tally for each slot --gx_tally_end--> gx_figures
 *
 * Whole numbers are summed as offsets from the column's base. Doubles whose exponents lie close together, as those of
 * prices do, are summed as whole numbers of 128 bits with one exponent for all; others by gx_exact_sum. Percentiles and
 * distinct values need the values themselves: 12 bytes each.
 */
#ifndef GX_QUERY_FACET_FIGURES_H
#define GX_QUERY_FACET_FIGURES_H

#include "engine/api/gpuidx_advanced.h"
#include "query/facet/exact_sum.h"
#include "query/facet/facet_slots.h"

/* Of the values of a slot. */
typedef struct gx_slot_tally {
    gx_wide sum; /* of int and date; of float in units of 2^exponent */
    uint64_t n;
    uint64_t least, greatest; /* keys */
} gx_slot_tally;

typedef struct gx_tally {
    gx_sum asked; /* full-sized and checked: figures or percentiles are given */
    uint32_t column;
    gx_attribute_type type;
    uint32_t n_slots;
    gx_slot_tally *slots; /* [n_slots] */
    int exponent;         /* of float: of the sums */
    bool one_shift;       /* all doubles are numbers, and their exponents less than 64 apart */
    uint64_t *offsets;    /* [2 n_slots] of values of up to 4 bytes: the sum of the file's raw values, their number */
    gx_exact_sum *exact;  /* [n_slots] the sums in its place, where exponents differ too much; else NULL */
    gx_keys values;       /* of all slots, in the order of their coming, and */
    uint32_t *value_slots;
    size_t max_value_slots;
    const gx_column *c; /* at hand */
} gx_tally;

/* files[n_files]: those of the index. Close in either case. GX_ENOMEM. */
gx_status gx_tally_open(gx_tally *t, const gx_sum *asked, uint32_t column, gx_attribute_type type, uint32_t n_slots,
                        const gx_index *const *files, uint32_t n_files, gx_error *err);
void gx_tally_file(gx_tally *t, const gx_index *ix); /* the next pairs are of this file */
gx_status gx_tally_add(gx_tally *t, const uint32_t *docs, const uint32_t *slots, uint32_t n, gx_error *err);
/* out[i * stride] becomes what there is to tell of slot i, i < n_slots, but for names and `asked`. percentiles: room
 * for n_slots * asked.n_percentiles values, which *out points into. GX_ENOMEM. */
gx_status gx_tally_end(gx_tally *t, gx_figures *out, uint32_t stride, gx_value *percentiles, gx_error *err);
void gx_tally_close(gx_tally *t);

#endif
