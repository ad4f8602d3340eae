#include "index/fields/view.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/parts.h"

#define N_LOCKS 64u
#define KNOWN_LENS 256u /* lengths whose norms are kept */

/* A list that is made; its arrays lie behind it. */
typedef struct made_list {
    gx_list list;
    uint32_t words[];
} made_list;

struct gx_view {
    gx_index *base;
    gx_view_profile profile;
    gx_deletes *deletes; /* a copy with counts of the view's lists; NULL: none is deleted */
    float norms[GX_MAX_FIELDS][KNOWN_LENS];
    uint32_t n_lists;
    gx_list_entry *entries;      /* [n_lists] */
    _Atomic(made_list *) *lists; /* [n_lists] */
    pthread_mutex_t locks[N_LOCKS];
    atomic_int failed; /* gx_status */
};

/* A list that has no document of the index, for one that cannot be made. */
static const uint32_t nowhere[1] = {UINT32_MAX}, no_words[2 + GX_READ_SLACK / sizeof(uint32_t)];

static const gx_codec *codec_of(uint32_t block_len)
{
    return block_len == 128   ? gx_codec_by_id(GX_CODEC_GPUBP128)
           : block_len == 256 ? gx_codec_by_id(GX_CODEC_GPUBP256)
                              : gx_codec_by_id(GX_CODEC_GPUVBYTE1024);
}

const gx_index *gx_view_of(const gx_index *ix)
{
    const gx_index *file = ix->parts ? ix->parts->parts[0].ix : ix;
    return file->view ? file : NULL;
}

const gx_view_profile *gx_view_get_profile(const gx_index *ix)
{
    return &ix->view->profile;
}

gx_deletes *gx_view_deletes(const gx_index *ix)
{
    return ix->view->deletes;
}

/* ---- impacts ---- */

static float norm_of(const gx_field_norm *n, uint32_t len)
{
    const float product = n->c1 * (float)len;
    return n->c0 + product;
}

static float part_of(const gx_view *v, uint32_t f, uint32_t tf, uint32_t len)
{
    const gx_field_norm *n = &v->profile.fields[f];
    const float norm = len < KNOWN_LENS ? v->norms[f][len] : norm_of(n, len), product = n->weight * (float)tf;
    return product / norm;
}

static uint32_t impact_of(const gx_view *v, float tf)
{
    const float sum = tf + v->profile.k1;
    float part = tf / sum;
    if (!(part <= 1)) /* 0 / 0, or a length of 0 in a damaged file */
        part = tf > 0 ? 1 : 0;
    const uint32_t i = (uint32_t)lrintf(part * 0x1p23f);
    return i ? i : 1;
}

/* The postings of a list of the base, and of the view. */
typedef struct postings {
    uint32_t df, n;            /* of the base; of the view */
    uint32_t *docids, *tfs;    /* [df]; tfs become impacts, both the view's [n] */
    uint32_t *field_tfs;       /* [(n_fields - 1) * df] field by field */
    uint32_t *memory;
} postings;

static gx_status read_postings(const gx_view *v, uint32_t term, postings *p)
{
    const gx_index *ix = v->base;
    const gx_list l = gx_index_list(ix, term);
    const uint32_t n_stored = ix->fields->n - 1;
    size_t n_bytes;
    const uint8_t *bytes = gx_fields_list(ix->fields, term, &n_bytes);
    const size_t room = (size_t)l.n_blocks * l.block_len + GX_MAX_BLOCK;
    *p = (postings){.df = l.df};
    p->memory = malloc((2 * room + (size_t)n_stored * l.df + 1) * sizeof *p->memory);
    if (!p->memory)
        return GX_ENOMEM;
    p->docids = p->memory;
    p->tfs = p->docids + room;
    p->field_tfs = p->tfs + room;
    memset(p->field_tfs, 0, (size_t)n_stored * l.df * sizeof *p->field_tfs);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        gx_list_decode_docids(&l, j, p->docids + (size_t)j * l.block_len);
        gx_list_decode_tfs(&l, j, p->tfs + (size_t)j * l.block_len);
    }
    return gx_field_tfs_decode(bytes, n_bytes, l.df, ix->fields->n, p->field_tfs) ? GX_OK : GX_ECORRUPT;
}

/* Make of the postings those of the view, in place. only: UINT32_MAX, or the one field that counts. */
static void score_postings(gx_view *v, uint32_t term, uint32_t only, postings *p)
{
    const gx_index *ix = v->base;
    const uint32_t n_fields = ix->fields->n;
    uint32_t lens[GX_MAX_FIELDS], n_deleted = 0, last = 0;
    for (uint32_t i = 0; i < p->df; ++i) {
        const uint32_t docid = p->docids[i];
        uint32_t rest = p->tfs[i];
        float tf = 0;
        bool any = false;
        if (docid < last || docid >= ix->n_docs)
            continue;
        last = docid + 1;
        gx_view_lens(ix, docid, lens);
        for (uint32_t f = 0; f < n_fields; ++f) {
            const bool is_last = f + 1 == n_fields;
            const uint32_t stored = is_last ? rest : p->field_tfs[(size_t)f * p->df + i];
            if (!is_last)
                rest -= stored < rest ? stored : rest;
            if (!stored || (only == UINT32_MAX ? !v->profile.fields[f].used : f != only))
                continue;
            tf += part_of(v, f, stored, lens[f]);
            any = true;
        }
        if (!any)
            continue;
        n_deleted += !gx_deletes_is_live(v->deletes, docid);
        p->docids[p->n] = docid;
        p->tfs[p->n++] = impact_of(v, tf);
    }
    if (v->deletes)
        v->deletes->dfs[term] = n_deleted;
}

/* ---- lists ---- */

/* Encode blocks of the postings to words; ends[n_blocks] of each. Returns the words. */
static uint32_t encode_blocks(const gx_codec *codec, const postings *p, bool is_docids, uint32_t *words, uint32_t at,
                              uint32_t *ends)
{
    const uint32_t block_len = codec->block_len;
    uint32_t values[GX_MAX_BLOCK];
    for (uint32_t from = 0, j = 0, n; from < p->n; from += n, ++j) {
        const uint32_t *const d = p->docids + from, *const tfs = p->tfs + from;
        n = p->n - from < block_len ? p->n - from : block_len;
        for (uint32_t i = 0; i < n; ++i)
            values[i] = !is_docids ? tfs[i] - 1 : i ? d[i] - d[i - 1] - 1 : 0;
        ends[j] = at += codec->encode(values, n, 0, words + at);
    }
    return at;
}

/* The view's postings as blocks. NULL: no memory. */
static made_list *encode(const gx_view *v, const postings *p)
{
    const uint32_t block_len = v->base->block_len, n_blocks = p->n ? (p->n - 1) / block_len + 1 : 0;
    const gx_codec *codec = codec_of(block_len);
    const size_t most = (2 * (size_t)codec->max_words(block_len) + 2) * n_blocks;
    uint32_t *const ends = malloc((most + 1) * sizeof *ends), *const words = ends + 2 * (size_t)n_blocks;
    if (!ends)
        return NULL;
    uint32_t n = encode_blocks(codec, p, true, words, 0, ends);
    n = encode_blocks(codec, p, false, words, n, ends + n_blocks);
    const size_t before = 3 * (size_t)n_blocks;
    made_list *m = malloc(sizeof *m + (before + n) * sizeof(uint32_t) + GX_READ_SLACK);
    for (uint32_t j = 0; m && j < n_blocks; ++j)
        m->words[j] = p->docids[(size_t)j * block_len];
    if (m) {
        memcpy(m->words + n_blocks, ends, (2 * (size_t)n_blocks + n) * sizeof *ends);
        memset(m->words + before + n, 0, GX_READ_SLACK);
        m->list = (gx_list){.df = p->n,
                            .n_blocks = n_blocks,
                            .block_len = block_len,
                            .docids = codec,
                            .tfs = codec,
                            .heads = m->words,
                            .docid_ends = m->words + n_blocks,
                            .tf_ends = m->words + 2 * (size_t)n_blocks,
                            .payload = m->words + before};
    }
    free(ends);
    return m;
}

static made_list *make_list(gx_view *v, uint32_t term)
{
    const uint32_t n = v->base->n_terms, only = term < n ? UINT32_MAX : term / n - 1;
    postings p;
    made_list *m = NULL;
    gx_status st = read_postings(v, term % n, &p);
    if (st == GX_OK) {
        score_postings(v, term, only, &p);
        if (!(m = encode(v, &p)))
            st = GX_ENOMEM;
    }
    free(p.memory);
    if (st == GX_OK)
        v->entries[term].df = m->list.df;
    else
        atomic_store(&v->failed, (int)st);
    return m;
}

static made_list *find_list(const gx_index *ix, uint32_t term)
{
    gx_view *v = ix->view;
    made_list *m = atomic_load_explicit(&v->lists[term], memory_order_acquire);
    if (m)
        return m;
    pthread_mutex_lock(&v->locks[term % N_LOCKS]);
    m = atomic_load_explicit(&v->lists[term], memory_order_acquire);
    if (!m && (m = make_list(v, term)))
        atomic_store_explicit(&v->lists[term], m, memory_order_release);
    pthread_mutex_unlock(&v->locks[term % N_LOCKS]);
    return m;
}

void gx_view_prepare(const gx_index *ix, uint32_t term)
{
    find_list(ix, term);
}

gx_list gx_view_list(const gx_index *ix, uint32_t term)
{
    const made_list *m = find_list(ix, term);
    const gx_codec *codec = codec_of(ix->block_len);
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
                       : gx_fail(err, st, st == GX_ENOMEM ? "%s: no memory for a list of fields"
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
    const uint32_t last = ix->fields->n - 1, only = term < v->base->n_terms ? UINT32_MAX : term / v->base->n_terms - 1;
    postings p;
    if (read_postings(v, term % v->base->n_terms, &p) == GX_OK) {
        uint32_t i = 0;
        while (i < p.df && p.docids[i] < docid)
            ++i;
        if (i < p.df && p.docids[i] == docid)
            tfs[last] = p.tfs[i];
        for (uint32_t f = 0; f < last && tfs[last]; ++f) {
            tfs[f] = p.field_tfs[(size_t)f * p.df + i];
            tfs[last] -= tfs[f] < tfs[last] ? tfs[f] : tfs[last];
        }
        for (uint32_t f = 0; f <= last && only != UINT32_MAX; ++f)
            tfs[f] = f == only ? tfs[f] : 0;
    }
    free(p.memory);
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
    v->n_lists = base->n_terms * (base->fields->n + 1);
    v->entries = calloc((size_t)v->n_lists + 1, sizeof *v->entries);
    v->lists = calloc((size_t)v->n_lists + 1, sizeof *v->lists);
    if (!v->entries || !v->lists || (deletes && !(v->deletes = copy_deletes(deletes, v->n_lists))))
        return false;
    memcpy(v->entries, base->lists, base->n_terms * sizeof *v->entries); /* dfs that are not known yet are no greater */
    return true;
}

gx_status gx_view_open(gx_index **out, gx_index *base, const gx_view_profile *profile, const gx_deletes *deletes,
                       gx_error *err)
{
    *out = NULL;
    if ((uint64_t)base->n_terms * (base->fields->n + 1) > INT32_MAX)
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
    for (uint32_t i = 0; i < N_LOCKS; ++i)
        pthread_mutex_init(&v->locks[i], NULL);
    for (uint32_t f = 0; f < base->fields->n; ++f)
        for (uint32_t len = 0; len < KNOWN_LENS; ++len)
            v->norms[f][len] = norm_of(&profile->fields[f], len);
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
    *out = ix;
    return GX_OK;
}

void gx_view_close(gx_index *ix)
{
    gx_view *v = ix->view;
    for (uint32_t t = 0; v->lists && t < v->n_lists; ++t)
        free(v->lists[t]);
    for (uint32_t i = 0; i < N_LOCKS; ++i)
        pthread_mutex_destroy(&v->locks[i]);
    gx_max_tfs_close(ix->max_tfs);
    gx_deletes_close(v->deletes);
    gx_index_close(v->base);
    free(v->lists);
    free(v->entries);
    free(v);
    free(ix);
}
