#include "index/fields/view_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/status.h"

/* A list that has no document of the index, for one that cannot be made. */
static const uint32_t nowhere[1] = {UINT32_MAX}, no_words[2 + GX_READ_SLACK / sizeof(uint32_t)];

const gx_index *gx_view_of(const gx_index *ix)
{
    const gx_index *file = ix->parts ? ix->parts->parts[0].ix : ix;
    return file->view ? file : NULL;
}

const gx_view_profile *gx_view_get_profile(const gx_index *ix)
{
    return &ix->view->profile;
}

bool gx_view_is_of(const gx_index *view, const gx_index *ix)
{
    const uint32_t n = view->parts ? view->parts->n : 1;
    bool same = gx_view_of(view) && !view->parts == !ix->parts && (!ix->parts || ix->parts->n == n);
    for (uint32_t i = 0; i < n && same; ++i) {
        const gx_index *part = view->parts ? view->parts->parts[i].ix : view;
        same = part->view && part->view->base == (ix->parts ? ix->parts->parts[i].ix : ix);
    }
    return same;
}

bool gx_view_is_best(const gx_index *ix)
{
    const gx_index *view = gx_view_of(ix);
    return view && view->view->profile.scoring == GX_FIELDS_BEST;
}

gx_deletes *gx_view_deletes(const gx_index *ix)
{
    return ix->view->deletes;
}

/* ---- lists ---- */

/* The postings of a word or phrase of the view. */
static gx_status read_postings(const gx_view *v, gx_field_postings *p, const gx_index *ix, uint32_t term)
{
    size_t len;
    const char *name = gx_view_phrase_of(ix, term, &len);
    return name ? v->profile.find(p, v->base, name, len)
                : gx_field_postings_read(p, v->base, term % v->base->n_terms);
}

static gx_made_list *make_list(gx_view *v, const gx_index *ix, uint32_t term)
{
    gx_field_postings p;
    gx_made_list *m = NULL;
    uint32_t df;
    gx_status st = read_postings(v, &p, ix, term);
    if (st == GX_OK)
        st = gx_view_score(v, ix, term, &p, &df);
    if (st == GX_OK && !(m = gx_made_list_make(p.docids, p.tfs, df, v->base->block_len)))
        st = GX_ENOMEM;
    free(p.memory);
    if (st == GX_OK)
        v->entries[term].df = m->list.df;
    else
        atomic_store(&v->failed, (int)st);
    return m;
}

static gx_made_list *find_list(const gx_index *ix, uint32_t term)
{
    gx_view *v = ix->view;
    gx_made_list *m = atomic_load_explicit(&v->lists[term], memory_order_acquire);
    if (m)
        return m;
    pthread_mutex_lock(&v->locks[term % GX_VIEW_LOCKS]);
    m = atomic_load_explicit(&v->lists[term], memory_order_acquire);
    if (!m && (m = make_list(v, ix, term)))
        atomic_store_explicit(&v->lists[term], m, memory_order_release);
    pthread_mutex_unlock(&v->locks[term % GX_VIEW_LOCKS]);
    return m;
}

uint32_t gx_view_prepare(const gx_index *ix, uint32_t term)
{
    find_list(ix, term);
    return ix->view->entries[term].df;
}

gx_list gx_view_list(const gx_index *ix, uint32_t term)
{
    const gx_made_list *m = find_list(ix, term);
    const gx_codec *codec = gx_made_list_codec(ix->block_len);
    return m && m->list.df ? m->list
                           : (gx_list){.df = 1,
                                       .n_blocks = 1,
                                       .block_len = ix->block_len,
                                       .docids = codec,
                                       .tfs = codec,
                                       .heads = nowhere,
                                       .docid_ends = no_words,
                                       .tf_ends = no_words,
                                       .payload = no_words};
}

gx_status gx_view_status(const gx_index *ix, gx_error *err)
{
    const gx_status st = ix->view ? (gx_status)atomic_load(&ix->view->failed) : GX_OK;
    return st == GX_OK ? st
                       : gx_fail(err, st,
                                 st == GX_ENOMEM  ? "%s: no memory for a list of fields"
                                 : st == GX_EUSAGE ? "%s: the view has kept as many different phrases as it can; open "
                                                     "it anew"
                                                 : "%s: the tfs by field of a list do not decode",
                                 ix->path);
}

bool gx_view_parse_name(const gx_index *ix, const char *name, size_t len, uint32_t *field)
{
    if (len < 2 || name[0] != GX_FIELD_MARK)
        return false;
    *field = (uint32_t)(uint8_t)name[1] - 1;
    return *field < ix->fields->n;
}

void gx_view_lens(const gx_index *ix, uint32_t docid, uint32_t *lens)
{
    const uint32_t last = ix->fields->n - 1;
    gx_fields_lens(ix->fields, docid, lens);
    lens[last] = ix->doc_lens[docid];
    for (uint32_t f = 0; f < last; ++f)
        lens[last] -= lens[f];
}

void gx_view_explain(const gx_index *ix, uint32_t term, uint32_t docid, uint32_t *tfs)
{
    const gx_view *v = ix->view;
    const uint32_t last = ix->fields->n - 1;
    size_t len;
    const char *name = gx_view_phrase_of(ix, term, &len);
    const uint32_t only = name                        ? (name[1] ? (uint8_t)name[1] - 1u : UINT32_MAX)
                          : term < v->base->n_terms ? UINT32_MAX
                                                    : term / v->base->n_terms - 1;
    gx_field_postings p;
    if (read_postings(v, &p, ix, term) == GX_OK) {
        uint32_t i = 0;
        while (i < p.df && p.docids[i] < docid)
            ++i;
        if (i < p.df && p.docids[i] == docid)
            gx_field_postings_tfs(&p, i, last + 1, tfs);
        for (uint32_t f = 0; f <= last && only != UINT32_MAX; ++f)
            tfs[f] = f == only ? tfs[f] : 0;
    }
    free(p.memory);
}

void gx_view_dfs(const gx_index *ix, const char *term, size_t len, uint64_t *dfs)
{
    double idfs[GX_MAX_FIELDS];
    if (len && term[0] == GX_PHRASE_MARK)
        gx_view_phrase_dfs(ix->view, term, len, dfs, idfs);
    else
        gx_view_counts_get(ix->view->counts, term, len, dfs);
}

bool gx_view_in_field(const gx_index *ix, uint32_t list, uint32_t field, uint32_t *in_field)
{
    if (list >= ix->view->n_word_lists)
        return (*in_field = gx_view_phrase_in_field(ix, list, field)) != UINT32_MAX;
    const uint32_t n = ix->terms.n;
    if (list < n ? !ix->view->profile.fields[field].used : list / n - 1 != field)
        return false;
    *in_field = (field + 1) * n + list % n;
    return gx_view_prepare(ix, *in_field) > 0;
}

double gx_view_unit(const gx_index *ix, const char *term, size_t len)
{
    const uint32_t n = ix->parts ? ix->parts->n : 1;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_index *part = ix->parts ? ix->parts->parts[i].ix : ix;
        const uint32_t id = part->units ? gx_index_find_term(part, term, len) : UINT32_MAX;
        if (id != UINT32_MAX)
            return part->units[id];
    }
    return ix->impact_unit;
}

/* ---- open and close ---- */

/* The deletes with counts of their own, which are found as lists are made. NULL: no memory. */
static gx_deletes *copy_deletes(const gx_deletes *d, uint32_t n_lists)
{
    gx_deletes *own = malloc(sizeof *own);
    const size_t n = ((size_t)d->n_docs + 63) / 64;
    if (!own)
        return NULL;
    *own = *d;
    atomic_init(&own->n_more, 0);
    own->live = malloc((n + 1) * sizeof *own->live);
    own->before = malloc((n + 1) * sizeof *own->before);
    own->dfs = calloc((size_t)n_lists + 1, sizeof *own->dfs);
    if (!own->live || !own->before || !own->dfs) {
        gx_deletes_close(own);
        return NULL;
    }
    memcpy(own->live, d->live, n * sizeof *own->live);
    memcpy(own->before, d->before, (n + 1) * sizeof *own->before);
    return own;
}

static bool open_lists(gx_view *v, const gx_deletes *deletes)
{
    const gx_index *base = v->base;
    v->n_word_lists = base->n_terms * (base->fields->n + 1);
    if (base->positions && !(v->phrases = gx_view_phrases_open()))
        return false;
    v->n_lists = v->n_word_lists + (v->phrases ? GX_MAX_VIEW_PHRASES : 0);
    v->entries = calloc((size_t)v->n_lists + 1, sizeof *v->entries);
    v->lists = calloc((size_t)v->n_lists + 1, sizeof *v->lists);
    if (!v->entries || !v->lists || (deletes && !(v->deletes = copy_deletes(deletes, v->n_lists))))
        return false;
    if (v->counts && !(v->units = calloc((size_t)v->n_lists + 1, sizeof *v->units)))
        return false;
    memcpy(v->entries, base->lists, base->n_terms * sizeof *v->entries); /* dfs that are not known yet are no greater */
    return true;
}

gx_status gx_view_open(gx_index **out, gx_index *base, const gx_view_profile *profile, const gx_deletes *deletes,
                       gx_view_counts *counts, gx_error *err)
{
    *out = NULL;
    if ((uint64_t)base->n_terms * (base->fields->n + 1) + GX_MAX_VIEW_PHRASES > INT32_MAX)
        return gx_fail(err, GX_EUSAGE, "%s has too many terms for %u fields", base->path, base->fields->n);
    gx_index *ix = malloc(sizeof *ix);
    gx_view *v = calloc(1, sizeof *v);
    if (!ix || !v) {
        free(ix);
        free(v);
        return gx_fail(err, GX_ENOMEM, "no memory for a view of fields");
    }
    v->base = gx_index_share(base);
    v->profile = *profile;
    v->counts = counts ? gx_view_counts_share(counts) : NULL;
    for (uint32_t i = 0; i < GX_VIEW_LOCKS; ++i)
        pthread_mutex_init(&v->locks[i], NULL);
    pthread_mutex_init(&v->image_lock, NULL);
    for (uint32_t f = 0; f < base->fields->n; ++f)
        for (uint32_t len = 0; len < GX_KNOWN_LENS; ++len)
            v->norms[f][len] = gx_field_norm_of(&profile->fields[f], len);
    *ix = *base;
    ix->n_more = 0;
    ix->view = v;
    ix->max_tfs = NULL;
    ix->impacts = true;
    ix->impact_unit = GX_VIEW_UNIT;
    if (!open_lists(v, deletes) || !gx_max_tfs_open(&ix->max_tfs, v->n_lists)) {
        gx_view_close(ix);
        return gx_fail(err, GX_ENOMEM, "no memory for a view of fields");
    }
    ix->n_terms = v->n_lists;
    ix->lists = v->entries;
    ix->units = v->units;
    *out = ix;
    return GX_OK;
}

void gx_view_close(gx_index *ix)
{
    gx_view *v = ix->view;
    for (uint32_t t = 0; v->lists && t < v->n_lists; ++t)
        free(v->lists[t]);
    for (uint32_t i = 0; i < GX_VIEW_LOCKS; ++i)
        pthread_mutex_destroy(&v->locks[i]);
    pthread_mutex_destroy(&v->image_lock);
    if (v->image)
        munmap(v->image, v->image_bytes);
    gx_max_tfs_close(ix->max_tfs);
    gx_deletes_close(v->deletes);
    gx_view_counts_close(v->counts);
    gx_view_phrases_close(v->phrases);
    gx_index_close(v->base);
    free(v->units);
    free(v->lists);
    free(v->entries);
    free(v);
    free(ix);
}
