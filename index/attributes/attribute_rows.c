#include "index/attributes/attribute_rows.h"

#include <stdlib.h>
#include <string.h>

static uint32_t code_of(const gx_column_order *o, uint64_t place)
{
    return (uint32_t)(place * GX_ROW_CODES / o->n);
}

gx_row_range gx_row_range_of(const gx_column_order *o, const gx_place_bounds *b)
{
    gx_row_range r = {code_of(o, b->begin_least), code_of(o, b->end_most - 1), GX_ROW_UNUSED, GX_ROW_UNUSED};
    const uint64_t begin = b->begin_most, end = b->end_least;
    if (begin >= end)
        return r;
    const uint32_t first = code_of(o, begin) + (begin && code_of(o, begin - 1) == code_of(o, begin));
    const uint32_t behind = code_of(o, end - 1) + 1 - (end < o->n && code_of(o, end) == code_of(o, end - 1));
    if (first < behind) {
        r.inner_first = first;
        r.inner_last = behind - 1;
    }
    return r;
}

static bool has(const gx_attribute_rows *rows, uint32_t column)
{
    bool any = false;
    for (uint32_t i = 0; i < rows->n_columns; ++i)
        any = any || rows->columns[i] == column;
    return any;
}

static bool has_all(const gx_attribute_rows *rows, const uint32_t *columns, uint32_t n)
{
    bool all = true;
    for (uint32_t i = 0; i < n; ++i)
        all = all && has(rows, columns[i]);
    return all;
}

static gx_attribute_rows *make_rows(const gx_index *ix, const uint32_t *columns, uint32_t n)
{
    gx_attribute_rows *rows = malloc(sizeof *rows + (size_t)ix->n_docs * sizeof *rows->words);
    if (!rows)
        return NULL;
    rows->n_columns = n;
    memset(rows->words, GX_ROW_NONE, (size_t)ix->n_docs * sizeof *rows->words);
    for (uint32_t i = 0; i < n; ++i) {
        const gx_column_order *o = gx_column_get_order(ix, &ix->columns[columns[i]]);
        rows->columns[i] = columns[i];
        for (uint64_t at = 0; o && at < o->n; ++at) {
            uint32_t *const word = &rows->words[o->docids[at]];
            *word = (*word & ~(UINT32_C(0xff) << 8 * i)) | code_of(o, at) << 8 * i;
        }
        if (!o) {
            free(rows);
            return NULL;
        }
    }
    return rows;
}

const gx_attribute_rows *gx_attribute_get_rows(const gx_index *ix, const uint32_t *columns, uint32_t n)
{
    gx_attribute_rows **const all = &ix->columns[0].rows, *first = __atomic_load_n(all, __ATOMIC_ACQUIRE), *made = NULL;
    for (;;) {
        uint32_t n_rows = 0;
        for (const gx_attribute_rows *r = first; r; r = r->next, ++n_rows) {
            if (has_all(r, columns, n)) {
                free(made);
                return r;
            }
        }
        if (n > GX_ROW_COLUMNS || n_rows >= GX_MAX_ROWS || (!made && !(made = make_rows(ix, columns, n)))) {
            free(made);
            return NULL;
        }
        made->next = first;
        if (__atomic_compare_exchange_n(all, &first, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return made;
    }
}

void gx_attribute_rows_free(gx_attribute_rows *rows)
{
    while (rows) {
        gx_attribute_rows *const next = rows->next;
        free(rows);
        rows = next;
    }
}
