#include "query/mask.h"

#include <stdlib.h>

#include "engine/status.h"
#include "query/engine.h"

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
    for (size_t w = 0; w < n_words / 2; ++w) {
        const size_t left = n_docs - 64 * w;
        const uint64_t bits = left < 64 ? words[w] & ((UINT64_C(1) << left) - 1) : words[w];
        m->words[2 * w] = (uint32_t)bits;
        m->words[2 * w + 1] = (uint32_t)(bits >> 32);
        m->groups[w * 64 / GX_MASK_GROUP] = m->groups[w * 64 / GX_MASK_GROUP] || bits;
        m->n += (uint32_t)__builtin_popcountll(bits);
    }
    if (en->ops->mask_open) {
        gx_error gpu;
        const gx_status st = en->ops->mask_open(&m->device, en->state, m->words, &gpu);
        if (st != GX_OK)
            m->device = NULL;
        if (st != GX_OK &&
            !gx_engine_can_fall_back(en, st)) { /* else the search fails on the GPU, and the CPU stands in */
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
