/* postings.c: a list as its postings, block by block, for those who use the library. The engines go
 * through lists in ways of their own. */
#include <stdlib.h>

#include "engine/gpuidx_advanced.h"
#include "engine/status.h"
#include "index/index.h"

struct gx_postings {
    const gx_index *ix;
    gx_list list;
    uint32_t term, block; /* block: the next one */
    uint64_t least;       /* the next docid is at least this */
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
};

gx_status gx_postings_open(gx_postings **out, const gx_index *ix, uint32_t term, gx_error *err)
{
    *out = NULL;
    if (term >= ix->n_terms)
        return gx_fail(err, GX_EUSAGE, "%s: there is no term %u: the index has %u terms, from 0", ix->path, term,
                       ix->n_terms);
    gx_postings *p = malloc(sizeof *p);
    if (!p)
        return gx_fail(err, GX_ENOMEM, "%s: no memory to read list %u", ix->path, term);
    p->ix = ix;
    p->list = gx_index_list(ix, term);
    p->term = term;
    p->block = 0;
    p->least = 0;
    *out = p;
    return GX_OK;
}

gx_status gx_postings_next(gx_postings *p, const uint32_t **docids, const uint32_t **tfs, uint32_t *n, gx_error *err)
{
    uint32_t n_here = 0;
    uint64_t least = p->least;
    if (p->block < p->list.n_blocks) {
        n_here = gx_list_decode_docids(&p->list, p->block, p->docids);
        for (uint32_t i = 0; i < n_here; ++i) {
            if (p->docids[i] < least || p->docids[i] >= p->ix->n_docs)
                return gx_fail(err, GX_ECORRUPT, "%s: list %u, block %u: does not decode to rising docids below %u",
                               p->ix->path, p->term, p->block, p->ix->n_docs);
            least = (uint64_t)p->docids[i] + 1;
        }
        if (tfs)
            gx_list_decode_tfs(&p->list, p->block, p->tfs);
        ++p->block;
    }
    p->least = least;
    *docids = p->docids;
    if (tfs)
        *tfs = p->tfs;
    *n = n_here;
    return GX_OK;
}

void gx_postings_close(gx_postings *p)
{
    free(p);
}

uint64_t gx_index_cf(const gx_index *ix, uint32_t term)
{
    uint64_t sum = 0;
    uint32_t tfs[GX_MAX_BLOCK];
    if (term >= ix->n_terms)
        return 0;
    const gx_list l = gx_index_list(ix, term);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_tfs(&l, j, tfs);
        for (uint32_t i = 0; i < n; ++i)
            sum += tfs[i];
    }
    return sum;
}

void gx_index_list_size(const gx_index *ix, uint32_t term, gx_list_size *out)
{
    *out = (gx_list_size){0};
    if (term >= ix->n_terms)
        return;
    const gx_list l = gx_index_list(ix, term);
    const uint64_t docid_words = l.docid_ends[l.n_blocks - 1], words = l.tf_ends[l.n_blocks - 1];
    *out = (gx_list_size){
        .docid_codec = l.docids->name,
        .tf_codec = l.tfs->name,
        .n_blocks = l.n_blocks,
        .docid_bytes = 4 * docid_words,
        .tf_bytes = 4 * (words - docid_words),
        .overhead_bytes = sizeof(gx_list_entry) + 12ull * l.n_blocks, /* a head and two ends a block */
    };
}
