/* view_counts.c: in how many live documents of a collection a word stands, field by field. A file's counts of a word
 * are found when they are first asked for, and kept. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/fields/view_state.h"

typedef struct counted_file {
    gx_index *ix;
    gx_deletes *deletes;
    _Atomic(uint32_t) *dfs; /* [n_terms * n_fields] 1 more than the count; 0: not known yet */
} counted_file;

struct gx_view_counts {
    atomic_uint n_more; /* holders but one */
    uint32_t n_fields, n;
    counted_file files[]; /* [n] */
};

void gx_view_counts_close(gx_view_counts *c)
{
    if (!c || atomic_fetch_sub(&c->n_more, 1) != 0)
        return;
    for (uint32_t i = 0; i < c->n; ++i) {
        gx_index_close(c->files[i].ix);
        gx_deletes_close(c->files[i].deletes);
        free(c->files[i].dfs);
    }
    free(c);
}

gx_view_counts *gx_view_counts_share(gx_view_counts *c)
{
    atomic_fetch_add(&c->n_more, 1);
    return c;
}

gx_status gx_view_counts_open(gx_view_counts **out, const gx_index *ix, gx_error *err)
{
    const uint32_t n = ix->parts ? ix->parts->n : 1;
    gx_view_counts *c = calloc(1, sizeof *c + n * sizeof *c->files);
    *out = NULL;
    if (!c)
        return gx_fail(err, GX_ENOMEM, "no memory for a view of fields");
    c->n_fields = ix->fields->n;
    for (; c->n < n; ++c->n) {
        counted_file *f = &c->files[c->n];
        const gx_index *file = ix->parts ? ix->parts->parts[c->n].ix : ix;
        f->dfs = calloc((size_t)file->n_terms * c->n_fields + 1, sizeof *f->dfs);
        if (!f->dfs) {
            gx_view_counts_close(c);
            return gx_fail(err, GX_ENOMEM, "no memory for a view of fields");
        }
        f->ix = gx_index_share((gx_index *)file);
        if (ix->parts && ix->parts->parts[c->n].deletes)
            f->deletes = gx_deletes_share(ix->parts->parts[c->n].deletes);
    }
    *out = c;
    return GX_OK;
}

static gx_status count_live(const counted_file *f, uint32_t term, uint32_t n_fields, uint32_t *dfs)
{
    uint32_t tfs[GX_MAX_FIELDS];
    gx_field_postings p;
    const gx_status st = gx_field_postings_read(&p, f->ix, term);
    memset(dfs, 0, n_fields * sizeof *dfs);
    for (uint32_t i = 0; i < p.df && st == GX_OK; ++i) {
        if (p.docids[i] >= f->ix->n_docs || !gx_deletes_is_live(f->deletes, p.docids[i]))
            continue;
        gx_field_postings_tfs(&p, i, n_fields, tfs);
        for (uint32_t j = 0; j < n_fields; ++j)
            dfs[j] += tfs[j] > 0;
    }
    free(p.memory);
    return st;
}

static gx_status count_in_file(const counted_file *f, uint32_t term, uint32_t n_fields, uint64_t *dfs)
{
    _Atomic(uint32_t) *kept = f->dfs + (size_t)term * n_fields;
    uint32_t found[GX_MAX_FIELDS];
    if (atomic_load_explicit(&kept[n_fields - 1], memory_order_acquire) == 0) {
        const gx_status st = f->deletes                          ? count_live(f, term, n_fields, found)
                             : gx_fields_dfs(f->ix, term, found) ? GX_OK
                                                                 : GX_ECORRUPT;
        if (st != GX_OK)
            return st;
        for (uint32_t i = 0; i < n_fields; ++i)
            atomic_store_explicit(&kept[i], found[i] + 1, memory_order_release);
    }
    for (uint32_t i = 0; i < n_fields; ++i)
        dfs[i] += atomic_load_explicit(&kept[i], memory_order_relaxed) - 1;
    return GX_OK;
}

gx_status gx_view_counts_get(const gx_view_counts *c, const char *term, size_t len, uint64_t *dfs)
{
    gx_status st = GX_OK;
    memset(dfs, 0, c->n_fields * sizeof *dfs);
    for (uint32_t i = 0; i < c->n && st == GX_OK; ++i) {
        const uint32_t id = gx_index_find_term(c->files[i].ix, term, len);
        if (id != UINT32_MAX)
            st = count_in_file(&c->files[i], id, c->n_fields, dfs);
    }
    return st;
}
