#include "index/fields/fields.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"

void gx_fields_close(gx_fields *f)
{
    for (uint32_t i = 0; f && i < f->n; ++i)
        free(f->names[i]);
    free(f);
}

uint32_t gx_fields_find(const gx_fields *f, const char *name, size_t len)
{
    for (uint32_t i = 0; f && i < f->n; ++i)
        if (strlen(f->names[i]) == len && memcmp(f->names[i], name, len) == 0)
            return i;
    return UINT32_MAX;
}

/* Where the list's bytes end. */
static uint64_t end_of(const gx_fields *f, uint32_t term)
{
    uint32_t wraps = 0;
    while (wraps < f->n_wraps && f->wraps[wraps] <= term)
        ++wraps;
    return (uint64_t)wraps << 32 | f->ends[term];
}

const uint8_t *gx_fields_list(const gx_fields *f, uint32_t term, size_t *n)
{
    const uint64_t begin = term ? end_of(f, term - 1) : 0;
    *n = (size_t)(end_of(f, term) - begin);
    return f->bytes + begin;
}

void gx_fields_lens(const gx_fields *f, uint32_t docid, uint32_t *lens)
{
    const uint32_t n = f->n - 1;
    const uint8_t *p = f->lens + (size_t)docid * n * f->len_width;
    for (uint32_t i = 0; i < n; ++i, p += f->len_width) {
        lens[i] = 0;
        memcpy(&lens[i], p, f->len_width);
    }
}

bool gx_fields_dfs(const gx_index *ix, uint32_t term, uint32_t *dfs)
{
    size_t n;
    const uint8_t *bytes = gx_fields_list(ix->fields, term, &n);
    return gx_field_tfs_count(bytes, n, ix->lists[term].df, ix->fields->n, dfs);
}

static gx_status read_list(gx_field_reader *r, const gx_index *ix, uint32_t term, gx_error *err)
{
    const uint32_t df = ix->lists[term].df, n_stored = ix->fields->n - 1;
    size_t n;
    const uint8_t *bytes = gx_fields_list(ix->fields, term, &n);
    const gx_status st = gx_grow(&r->tfs, &r->max, (size_t)df * n_stored + 1, sizeof *r->tfs, err);
    if (st != GX_OK)
        return st;
    memset(r->tfs, 0, (size_t)df * n_stored * sizeof *r->tfs);
    return gx_field_tfs_decode(bytes, n, df, ix->fields->n, r->tfs)
               ? GX_OK
               : gx_fail(err, GX_ECORRUPT, "%s: the tfs by field of list %u do not decode", ix->path, term);
}

gx_status gx_fields_read_block(gx_field_reader *r, const gx_index *ix, uint32_t term, uint32_t j, const uint32_t *tfs,
                               uint32_t n, uint32_t **fields, size_t *max, size_t from, size_t *end, gx_error *err)
{
    const uint32_t df = ix->lists[term].df, n_stored = ix->fields->n - 1;
    gx_status st = j ? GX_OK : read_list(r, ix, term, err);
    *end = from;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        uint32_t left = tfs[i];
        st = gx_grow(fields, max, *end + left, sizeof **fields, err);
        for (uint32_t f = 0; f <= n_stored && st == GX_OK; ++f) {
            const uint32_t tf = f < n_stored ? r->tfs[(size_t)f * df + (size_t)j * ix->block_len + i] : left;
            if (tf > left)
                return gx_fail(err, GX_ECORRUPT, "%s: list %u: tfs by field add up to more than the tf", ix->path,
                               term);
            for (uint32_t k = 0; k < tf; ++k)
                (*fields)[(*end)++] = f;
            left -= tf;
        }
    }
    return st;
}

gx_status gx_fields_count(uint32_t **rows, size_t *max, const uint32_t *tfs, uint32_t df, const uint32_t *fields,
                          uint32_t n_fields, gx_error *err)
{
    const uint32_t n = n_fields - 1;
    const gx_status st = gx_grow(rows, max, (size_t)df * n + 1, sizeof **rows, err);
    if (st != GX_OK)
        return st;
    memset(*rows, 0, (size_t)df * n * sizeof **rows);
    for (uint32_t i = 0; i < df; fields += tfs[i++])
        for (uint32_t k = 0; k < tfs[i]; ++k)
            if (fields[k] < n)
                ++(*rows)[(size_t)i * n + fields[k]];
    return GX_OK;
}

void gx_index_stretches(const gx_index *ix, uint32_t docid, uint32_t *n, uint64_t *begins)
{
    const uint32_t width = ix->title_position_width, n_stored = ix->fields ? ix->fields->n - 1 : 1;
    const uint8_t *at = ix->title_positions ? ix->title_positions + (size_t)docid * n_stored * width : NULL;
    uint64_t begin = 0;
    *n = at ? n_stored : 0;
    for (uint32_t f = 0; f < *n; ++f, at += width) {
        uint32_t len = 0;
        memcpy(&len, at, width); /* little-endian: the low bytes come first */
        begins[f] = begin += len;
    }
}

void gx_index_field_positions(const gx_index *ix, uint32_t docid, uint32_t *lens)
{
    uint64_t begins[GX_MAX_FIELDS];
    uint32_t n;
    gx_index_stretches(ix, docid, &n, begins);
    for (uint32_t f = 0; f < n; ++f)
        lens[f] = (uint32_t)(begins[f] - (f ? begins[f - 1] : 0));
}
