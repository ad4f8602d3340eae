#include "index/fields/fields.h"

#include <stdlib.h>
#include <string.h>

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
