#include "query/cpu/live_list.h"

#include <stdlib.h>
#include <string.h>

#include "index/write/list_encoder.h"

/* The kept postings of a list. */
typedef struct postings {
    uint32_t *docids, *tfs; /* [df of the list] */
    uint32_t n;
} postings;

static bool are_below(const uint32_t *docids, uint32_t n, uint32_t n_docs)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; ++i)
        most = docids[i] > most ? docids[i] : most;
    return most < n_docs;
}

/* Copy those of n postings whose documents have bits in `kept`. Returns how many; one more is written. */
static uint32_t copy_kept(uint32_t *restrict to_docids, uint32_t *restrict to_tfs, const uint32_t *restrict docids,
                          const uint32_t *restrict tfs, uint32_t n, const uint64_t *restrict kept)
{
    size_t at = 0;
    for (uint32_t i = 0; i < n; ++i) {
        to_docids[at] = docids[i];
        to_tfs[at] = tfs[i];
        at += kept[docids[i] / 64] >> docids[i] % 64 & 1;
    }
    return (uint32_t)at;
}

static bool decode_kept(postings *to, const gx_list *l, const gx_live_documents *kept, const gx_cpu_kernels *kernels,
                        gx_cpu_scratch *scratch)
{
    to->docids = malloc((l->df + 1ull) * sizeof *to->docids);
    to->tfs = malloc((l->df + 1ull) * sizeof *to->tfs);
    if (!to->docids || !to->tfs)
        return false;
    for (uint32_t j = 0; j < l->n_blocks; ++j) {
        const uint32_t n = gx_cpu_decode_docids(kernels, l, j, scratch->docids);
        gx_list_decode_tfs(l, j, scratch->tfs);
        if (!are_below(scratch->docids, n, kept->n_docs))
            return false;
        to->n += copy_kept(to->docids + to->n, to->tfs + to->n, scratch->docids, scratch->tfs, n, kept->words);
    }
    return to->n > 0;
}

/* Copy n words to *to, which moves behind them. Returns where they are. */
static const uint32_t *copy(uint32_t **to, const uint32_t *from, size_t n)
{
    uint32_t *const at = *to;
    memcpy(at, from, n * sizeof *at);
    *to += n;
    return at;
}

/* The encoder's only list, in memory of its own. */
static bool take_list(gx_list *out, const gx_list_encoder *e, uint32_t block_len,
                      void *(*alloc)(void *user, size_t bytes), void *user)
{
    const gx_encoded_list *l = e->lists;
    uint32_t *memory = alloc(user, (3 * e->n_blocks + l->n_words) * sizeof *memory + GX_READ_SLACK);
    if (!memory)
        return false;
    *out = (gx_list){.df = l->df,
                     .n_blocks = (uint32_t)e->n_blocks,
                     .block_len = block_len,
                     .docids = l->docids,
                     .tfs = l->tfs,
                     .docid_param = l->docid_param,
                     .tf_param = l->tf_param};
    out->heads = copy(&memory, e->heads, e->n_blocks);
    out->docid_ends = copy(&memory, e->docid_ends, e->n_blocks);
    out->tf_ends = copy(&memory, e->tf_ends, e->n_blocks);
    out->payload = copy(&memory, e->words, l->n_words);
    return true;
}

bool gx_live_list_make(gx_list *out, const gx_list *l, const gx_live_documents *kept, const gx_cpu_kernels *kernels,
                       gx_cpu_scratch *scratch, void *(*alloc)(void *user, size_t bytes), void *user)
{
    postings p = {0};
    gx_list_encoder e;
    gx_error ignored;
    gx_list_encoder_open(&e, l->docids, l->tfs, kept->n_docs);
    bool ok = l->docids->block_len == l->block_len && l->tfs->block_len == l->block_len &&
              decode_kept(&p, l, kept, kernels, scratch);
    if (ok && p.n == l->df) {
        *out = *l;
    } else if (ok) {
        const gx_term_postings list = {.term = "", .df = p.n, .docids = p.docids, .tfs = p.tfs};
        ok = gx_list_encoder_add(&e, &list, &ignored) == GX_OK && take_list(out, &e, l->block_len, alloc, user);
    }
    gx_list_encoder_close(&e);
    free(p.docids);
    free(p.tfs);
    return ok;
}
