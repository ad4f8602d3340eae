#include "query/engine/masks.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/engine/engine.h"
#include "query/filter/filter_kernels.h"

static uint64_t n_masks; /* atomic */

gx_status gx_mask_of_parts(gx_mask **out, const gx_engine *en, gx_mask **parts, gx_error *err)
{
    gx_mask *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m) {
        gx_part_masks_close(parts, en->parts->n);
        return gx_fail(err, GX_ENOMEM, "no memory for a mask of %u documents", en->ix->n_docs);
    }
    m->en = en;
    m->serial = __atomic_add_fetch(&n_masks, 1, __ATOMIC_RELAXED);
    m->parts = parts;
    m->n_parts = en->parts->n;
    *out = m;
    return GX_OK;
}

/* Little-endian: two words of 32 bits are the bytes of one of 64. Bits from n_docs on are left out. */
static void copy_words(gx_mask *m, const uint64_t *words, uint32_t n_docs)
{
    const size_t n = gx_mask_n_words(n_docs) / 2, a_group = GX_MASK_GROUP / 64;
    uint64_t *const own = (uint64_t *)(void *)m->words;
    if (n == 0)
        return;
    memcpy(own, words, n * sizeof *own);
    if (n_docs % 64)
        own[n - 1] &= (UINT64_C(1) << n_docs % 64) - 1;
    for (size_t g = 0; g * a_group < n; ++g) {
        uint64_t any = 0;
        for (size_t w = g * a_group; w < n && w < (g + 1) * a_group; ++w)
            any |= own[w];
        m->groups[g] = any != 0;
        m->gaps = m->gaps || !any;
    }
    m->n = (uint32_t)gx_filter_kernels_best()->count(own, n);
}

gx_status gx_mask_open(gx_mask **out, gx_engine *en, const uint64_t *words, gx_error *err)
{
    const uint32_t n_docs = en->ix->n_docs;
    const size_t n_words = gx_mask_n_words(n_docs);
    *out = NULL;
    gx_clear_error(err);
    if (!words && n_docs)
        return gx_fail(err, GX_EUSAGE, "a mask of %u documents has no words", n_docs);
    if (en->parts) {
        gx_mask **parts;
        const gx_status st = gx_part_masks_open(&parts, en->parts, words, err);
        return st == GX_OK ? gx_mask_of_parts(out, en, parts, err) : st;
    }
    gx_mask *m = calloc(1, sizeof *m);
    if (m)
        m->words = calloc(n_words + GX_MASK_SLACK, sizeof *m->words);
    if (m)
        m->groups = calloc(n_docs / GX_MASK_GROUP + 1, sizeof *m->groups);
    if (!m || !m->words || !m->groups) {
        gx_mask_close(m);
        return gx_fail(err, GX_ENOMEM, "no memory for a mask of %u documents", n_docs);
    }
    m->en = en;
    m->serial = __atomic_add_fetch(&n_masks, 1, __ATOMIC_RELAXED);
    copy_words(m, words, n_docs);
    if (en->ops->mask_open) {
        gx_error gpu;
        const gx_status st = en->ops->mask_open(&m->device, en->state, m->words, &gpu);
        if (st != GX_OK)
            m->device = NULL; /* a search then fails on the GPU and falls back to the CPU */
        if (st != GX_OK && !gx_engine_can_fall_back(en, st)) {
            gx_mask_close(m);
            return gx_fail(err, st, "%s", gpu.text);
        }
    }
    *out = m;
    return GX_OK;
}

bool gx_mask_is_ready(const gx_mask *m)
{
    return m->parts || m->device || !m->en->ops->mask_open;
}

void gx_mask_close(gx_mask *m)
{
    if (!m)
        return;
    gx_part_masks_close(m->parts, m->n_parts);
    if (m->device)
        m->en->ops->mask_close(m->en->state, m->device);
    free(m->words);
    free(m->groups);
    free(m);
}

gx_status gx_mask_copy(gx_mask **out, gx_engine *en, const gx_mask *mask, gx_error *err)
{
    const size_t n_words = ((size_t)en->ix->n_docs + 63) / 64;
    *out = NULL;
    if (en->parts) {
        gx_mask **parts;
        const gx_status st = gx_part_masks_copy(&parts, en->parts, mask->parts, err);
        return st == GX_OK ? gx_mask_of_parts(out, en, parts, err) : st;
    }
    uint64_t *words = malloc((n_words + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for a mask");
    for (size_t w = 0; w < n_words; ++w)
        words[w] = gx_mask_word(mask, w);
    const gx_status st = gx_mask_open(out, en, words, err);
    free(words);
    return st;
}

gx_status gx_mask_open_both(gx_mask **out, gx_engine *en, const gx_mask *a, const gx_mask *b, gx_error *err)
{
    const size_t n_words = ((size_t)en->ix->n_docs + 63) / 64;
    if (en->parts) {
        gx_mask **parts;
        const gx_status st = gx_part_masks_both(&parts, en->parts, a->parts, b->parts, err);
        return st == GX_OK ? gx_mask_of_parts(out, en, parts, err) : st;
    }
    uint64_t *words = malloc((n_words + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for a mask");
    for (size_t w = 0; w < n_words; ++w)
        words[w] = gx_mask_word(a, w) & gx_mask_word(b, w);
    const gx_status st = gx_mask_open(out, en, words, err);
    free(words);
    return st;
}
