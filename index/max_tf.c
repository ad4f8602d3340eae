/* max_tf.c: the greatest tf of a list, computed at the first request and kept. */
#include <stdatomic.h>
#include <stdlib.h>

#include "index/index.h"

struct gx_max_tfs {
    atomic_uint_least32_t *greatest; /* [n_terms]; 0: not computed yet */
};

bool gx_max_tfs_open(struct gx_max_tfs **out, uint32_t n_terms)
{
    struct gx_max_tfs *m = calloc(1, sizeof *m);
    if (m && !(m->greatest = calloc((size_t)n_terms + 1, sizeof *m->greatest))) {
        free(m);
        m = NULL;
    }
    *out = m;
    return m != NULL;
}

void gx_max_tfs_close(struct gx_max_tfs *m)
{
    if (m)
        free(m->greatest);
    free(m);
}

static uint32_t find_max_tf(const gx_index *ix, uint32_t term)
{
    const gx_list l = gx_index_list(ix, term);
    uint32_t tfs[GX_MAX_BLOCK], most = 1;
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_tfs(&l, j, tfs);
        for (uint32_t i = 0; i < n; ++i)
            most = tfs[i] > most ? tfs[i] : most;
    }
    return most;
}

/* Two threads may decode the same list at once; both then store the same number. */
uint32_t gx_index_max_tf(const gx_index *ix, uint32_t term)
{
    if (!ix->max_tfs)
        return find_max_tf(ix, term);
    atomic_uint_least32_t *known = &ix->max_tfs->greatest[term];
    uint32_t most = atomic_load_explicit(known, memory_order_relaxed);
    if (!most) {
        most = find_max_tf(ix, term);
        atomic_store_explicit(known, most, memory_order_relaxed);
    }
    return most;
}
