/* part_masks.c: masks of a collection, as one mask for each part. */
#include "query/engine/part_state.h"

#include <stdlib.h>

#include "engine/status.h"
#include "query/engine/masks.h"

void gx_part_masks_close(gx_mask **masks, uint32_t n)
{
    for (uint32_t i = 0; masks && i < n; ++i)
        gx_mask_close(masks[i]);
    free(masks);
}

uint64_t *gx_part_words_alloc(const gx_part_engines *e)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < e->n; ++i) {
        const uint32_t n = e->ix->parts->parts[i].ix->n_docs;
        most = n > most ? n : most;
    }
    return malloc(((size_t)most / 64 + 1) * sizeof(uint64_t));
}

gx_status gx_part_masks_open(gx_mask ***out, const gx_part_engines *e, const uint64_t *words, gx_error *err)
{
    gx_mask **masks = calloc(e->n, sizeof *masks);
    uint64_t *local = gx_part_words_alloc(e);
    *out = NULL;
    gx_status st = masks && local ? GX_OK
                                  : gx_fail(err, GX_ENOMEM, "no memory for a mask of %llu documents",
                                            (unsigned long long)gx_index_n_docs(e->ix));
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i) {
        gx_part_scatter(&e->ix->parts->parts[i], words, local);
        st = gx_mask_open(&masks[i], e->engines[i], local, err);
    }
    free(local);
    if (st == GX_OK)
        *out = masks;
    else
        gx_part_masks_close(masks, e->n);
    return st;
}

gx_status gx_part_masks_copy(gx_mask ***out, const gx_part_engines *e, gx_mask *const *masks, gx_error *err)
{
    gx_mask **copies = calloc(e->n, sizeof *copies);
    gx_status st = copies ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for a mask");
    *out = NULL;
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i)
        st = gx_mask_copy(&copies[i], e->engines[i], masks[i], err);
    if (st == GX_OK)
        *out = copies;
    else
        gx_part_masks_close(copies, e->n);
    return st;
}

gx_status gx_part_masks_both(gx_mask ***out, const gx_part_engines *e, gx_mask *const *a, gx_mask *const *b,
                             gx_error *err)
{
    gx_mask **both = calloc(e->n, sizeof *both);
    uint64_t *words = gx_part_words_alloc(e);
    gx_status st = both && words ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for a mask");
    *out = NULL;
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i) {
        for (size_t w = 0; w * 64 < e->ix->parts->parts[i].ix->n_docs; ++w)
            words[w] = gx_mask_word(a[i], w) & gx_mask_word(b[i], w);
        st = gx_mask_open(&both[i], e->engines[i], words, err);
    }
    free(words);
    if (st == GX_OK)
        *out = both;
    else
        gx_part_masks_close(both, e->n);
    return st;
}
