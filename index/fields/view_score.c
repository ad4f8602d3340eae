/* view_score.c: the postings of a list of a file with fields, and the impacts that a view makes of them. */
#include "index/fields/view_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

gx_status gx_field_postings_read(gx_field_postings *p, const gx_index *ix, uint32_t term)
{
    const gx_list l = gx_index_list(ix, term);
    const uint32_t n_stored = ix->fields->n - 1;
    size_t n_bytes;
    const uint8_t *bytes = gx_fields_list(ix->fields, term, &n_bytes);
    const size_t room = (size_t)l.n_blocks * l.block_len + GX_MAX_BLOCK;
    *p = (gx_field_postings){.df = l.df};
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

void gx_field_postings_tfs(const gx_field_postings *p, uint32_t i, uint32_t n_fields, uint32_t *tfs)
{
    uint32_t rest = p->tfs[i];
    for (uint32_t f = 0; f + 1 < n_fields; ++f) {
        tfs[f] = p->field_tfs[(size_t)f * p->df + i];
        rest -= tfs[f] < rest ? tfs[f] : rest;
    }
    tfs[n_fields - 1] = rest;
}

/* How a list's postings get impacts. */
typedef struct scoring {
    const gx_view *v;
    bool used[GX_MAX_FIELDS];   /* the fields that count */
    bool joined;                /* their tfs are added up before they count as one */
    float share[GX_MAX_FIELDS]; /* unless joined: of each field in the list's unit */
} scoring;

static float weighted_tf(const gx_view *v, uint32_t f, float weight, uint32_t tf, uint32_t len)
{
    const float norm = len < GX_KNOWN_LENS ? v->norms[f][len] : gx_field_norm_of(&v->profile.fields[f], len),
                product = weight * (float)tf;
    return product / norm;
}

static float saturated(const gx_view *v, float tf)
{
    const float sum = tf + v->profile.k1;
    const float part = tf / sum;
    if (!(part <= 1)) /* 0 / 0, or a length of 0 in a damaged file */
        return tf > 0 ? 1 : 0;
    return part;
}

static uint32_t impact_of(float part)
{
    const uint32_t i = (uint32_t)lrintf(part * 0x1p23f);
    return i ? i : 1;
}

/* 0: the document has the word in none of the fields that count. */
static uint32_t score_document(const scoring *s, const uint32_t *tfs, const uint32_t *lens)
{
    const gx_view *v = s->v;
    float sum = 0;
    bool any = false;
    for (uint32_t f = 0; f < v->base->fields->n; ++f) {
        if (!tfs[f] || !s->used[f])
            continue;
        any = true;
        if (s->joined) {
            sum += weighted_tf(v, f, v->profile.fields[f].weight, tfs[f], lens[f]);
            continue;
        }
        const float part = saturated(v, weighted_tf(v, f, 1, tfs[f], lens[f])), product = s->share[f] * part;
        sum += product;
    }
    return any ? impact_of(s->joined ? saturated(v, sum) : sum) : 0;
}

/* The unit of a list whose fields count one by one, and each field's share in it. */
static gx_status find_shares(scoring *s, gx_view *v, uint32_t list, const char *phrase, size_t len)
{
    const uint32_t n_fields = v->base->fields->n;
    const gx_view_profile *p = &v->profile;
    uint64_t dfs[GX_MAX_FIELDS];
    double weights[GX_MAX_FIELDS] = {0}, idfs[GX_MAX_FIELDS], sum = 0;
    const char *term = phrase ? NULL : gx_strings_get(&v->base->terms, list % v->base->n_terms, &len);
    const gx_status st = phrase ? gx_view_phrase_dfs(v, phrase, len, dfs, idfs)
                                : gx_view_counts_get(v->counts, term, len, dfs);
    for (uint32_t f = 0; f < n_fields && st == GX_OK; ++f) {
        if (s->used[f] && dfs[f])
            weights[f] = p->fields[f].weight * (phrase ? idfs[f] : p->idf(p->n_docs, (double)dfs[f])) * p->times;
        sum += weights[f];
    }
    const float unit = (float)sum;
    for (uint32_t f = 0; f < n_fields; ++f)
        s->share[f] = unit > 0 ? (float)(weights[f] / unit) : 0;
    v->units[list] = unit * (float)GX_VIEW_UNIT;
    return st;
}

gx_status gx_view_score(gx_view *v, const gx_index *view, uint32_t list, gx_field_postings *p, uint32_t *df)
{
    const gx_index *ix = v->base;
    size_t len;
    const char *phrase = gx_view_phrase_of(view, list, &len);
    const uint32_t only = phrase               ? (phrase[1] ? (uint8_t)phrase[1] - 1u : UINT32_MAX)
                          : list < ix->n_terms ? UINT32_MAX
                                               : list / ix->n_terms - 1;
    uint32_t lens[GX_MAX_FIELDS], tfs[GX_MAX_FIELDS], n_deleted = 0, next = 0;
    scoring s = {.v = v, .joined = v->profile.scoring == GX_FIELDS_BM25F};
    *df = 0;
    for (uint32_t f = 0; f < ix->fields->n; ++f)
        s.used[f] = only == UINT32_MAX ? v->profile.fields[f].used : f == only;
    if (!s.joined) {
        const gx_status st = find_shares(&s, v, list, phrase, len);
        if (st != GX_OK)
            return st;
    }
    for (uint32_t i = 0; i < p->df; ++i) {
        const uint32_t docid = p->docids[i];
        if (docid < next || docid >= ix->n_docs)
            continue;
        next = docid + 1;
        gx_view_lens(ix, docid, lens);
        gx_field_postings_tfs(p, i, ix->fields->n, tfs);
        const uint32_t impact = score_document(&s, tfs, lens);
        if (!impact)
            continue;
        n_deleted += !gx_deletes_is_live(v->deletes, docid);
        p->docids[*df] = docid;
        p->tfs[(*df)++] = impact;
    }
    if (v->deletes)
        v->deletes->dfs[list] = n_deleted;
    return GX_OK;
}
