/* view_image.c: a view's lists in one piece, laid out as an index file has them, which a GPU copies:
 *
 *   header | entries | heads | ends of docids | ends of tfs | lengths of documents | payload
 *
 * each at a multiple of GX_ALIGN. A list without a posting has one of document 0, since every list has one; no term
 * leads there.
 */
#include <string.h>
#include <sys/mman.h>

#include "engine/parallel.h"
#include "engine/status.h"
#include "index/fields/view_state.h"

typedef struct image_plan {
    uint64_t n_blocks, n_words, n_postings;
    size_t lists, heads, docid_ends, tf_ends, lens, payload, bytes; /* where each begins; all */
} image_plan;

static void make_one(void *user, uint32_t list)
{
    gx_view_prepare(user, list);
}

static uint32_t words_of(const gx_list *l)
{
    return l->tf_ends[l->n_blocks - 1];
}

static size_t place(size_t *at, uint64_t bytes)
{
    const size_t begin = *at;
    *at = (size_t)((*at + bytes + GX_ALIGN - 1) / GX_ALIGN * GX_ALIGN);
    return begin;
}

static image_plan plan_image(const gx_index *ix)
{
    image_plan p = {0};
    size_t at = GX_ALIGN; /* behind the header */
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        const gx_list l = gx_view_list(ix, t);
        p.n_blocks += l.n_blocks;
        p.n_words += words_of(&l);
        p.n_postings += l.df;
    }
    p.lists = place(&at, (uint64_t)ix->n_terms * sizeof(gx_list_entry));
    p.heads = place(&at, p.n_blocks * 4);
    p.docid_ends = place(&at, p.n_blocks * 4);
    p.tf_ends = place(&at, p.n_blocks * 4);
    p.lens = place(&at, (uint64_t)ix->n_docs * 4);
    p.payload = place(&at, p.n_words * 4 + GX_READ_SLACK);
    p.bytes = at;
    return p;
}

static void fill_image(uint8_t *image, const image_plan *p, const gx_index *ix)
{
    gx_list_entry *entries = (gx_list_entry *)(void *)(image + p->lists);
    uint32_t *heads = (uint32_t *)(void *)(image + p->heads), *payload = (uint32_t *)(void *)(image + p->payload);
    uint32_t *docid_ends = (uint32_t *)(void *)(image + p->docid_ends);
    uint32_t *tf_ends = (uint32_t *)(void *)(image + p->tf_ends);
    uint64_t block = 0, word = 0;
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        const gx_list l = gx_view_list(ix, t);
        const bool empty = ix->view->entries[t].df == 0;
        entries[t] = (gx_list_entry){.df = l.df,
                                     .first_block = (uint32_t)block,
                                     .payload_lo = (uint32_t)word,
                                     .payload_hi = (uint8_t)(word >> 32)};
        memcpy(heads + block, l.heads, l.n_blocks * sizeof *heads);
        if (empty)
            heads[block] = 0;
        memcpy(docid_ends + block, l.docid_ends, l.n_blocks * sizeof *heads);
        memcpy(tf_ends + block, l.tf_ends, l.n_blocks * sizeof *heads);
        memcpy(payload + word, l.payload, (size_t)words_of(&l) * sizeof *payload);
        block += l.n_blocks;
        word += words_of(&l);
    }
    memcpy(image + p->lens, ix->doc_lens, (size_t)ix->n_docs * sizeof *ix->doc_lens);
}

/* The header of a file of that layout. */
static void put_header(uint8_t *image, const image_plan *p, const gx_index *ix)
{
    const gx_codec *codec = gx_made_list_codec(ix->block_len);
    gx_header *h = (gx_header *)(void *)image;
    *h = *ix->view->base->header;
    memset(h->codings, 0, sizeof h->codings);
    h->codings[0].docids = codec->id;
    h->codings[0].tfs = codec->id;
    h->n_terms = ix->n_terms;
    h->n_blocks = p->n_blocks;
    h->n_postings = p->n_postings;
    h->device_offset = GX_ALIGN;
    h->device_bytes = p->bytes - GX_ALIGN;
}

static gx_status make_image(gx_index *ix, uint32_t n_threads, gx_error *err)
{
    gx_view *v = ix->view;
    ix->n_terms = v->n_word_lists; /* phrases are not for a GPU */
    gx_parallel_for(n_threads, ix->n_terms, make_one, ix);
    gx_status st = gx_view_status(ix, err);
    if (st != GX_OK)
        return st;
    const image_plan p = plan_image(ix);
    if (p.n_blocks > UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "%s has too many postings for a view of fields on a GPU", ix->path);
    void *image = mmap(NULL, p.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED)
        return gx_fail(err, GX_ENOMEM, "no memory for the %zu bytes of a view of fields", p.bytes);
    put_header(image, &p, ix);
    fill_image(image, &p, ix);
    v->image = image;
    v->image_bytes = p.bytes;
    ix->file = v->image;
    ix->header = image;
    ix->lists = (const gx_list_entry *)(const void *)(v->image + p.lists);
    ix->heads = (const uint32_t *)(const void *)(v->image + p.heads);
    ix->docid_ends = (const uint32_t *)(const void *)(v->image + p.docid_ends);
    ix->tf_ends = (const uint32_t *)(const void *)(v->image + p.tf_ends);
    ix->doc_lens = (const uint32_t *)(const void *)(v->image + p.lens);
    ix->payload = (const uint32_t *)(const void *)(v->image + p.payload);
    ix->payload_words = p.n_words;
    ix->n_blocks = p.n_blocks;
    ix->n_postings = p.n_postings;
    return GX_OK;
}

gx_status gx_view_make_image(const gx_index *ix, uint32_t n_threads, gx_error *err)
{
    gx_view *v = ix->view;
    pthread_mutex_lock(&v->image_lock);
    const gx_status st = v->image ? GX_OK : make_image((gx_index *)ix, n_threads, err);
    pthread_mutex_unlock(&v->image_lock);
    return st;
}
