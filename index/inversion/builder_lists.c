/* builder_lists.c: the inverter's lists are encoded, a range of terms by each of its threads: without the postings of
 * deleted documents, and with impacts in the place of weights. */
#include "index/inversion/builder_state.h"

#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "engine/memory/grow.h"
#include "engine/status.h"

#define TIMED_POSTINGS 1024u /* of which one list is timed */

/* Lists of a range of terms, encoded by one of the inverter's threads. */
typedef struct encoded_range {
    const gx_builder *builder;
    gx_list_encoder encoded;
    uint64_t postings, untimed; /* untimed: postings coded since a list was timed */
    double seconds;             /* that coding took, estimated by the lists that are timed */
    uint32_t *docids, *tfs;     /* [max_kept] */
    uint32_t max_kept;
    uint32_t *gaps; /* [max_gaps] of postings that are kept */
    size_t max_gaps;
    uint32_t *field_tfs; /* [max_field_tfs] by field */
    size_t max_field_tfs;
    uint32_t *impacts; /* [max_impacts] */
    uint32_t max_impacts;
} encoded_range;

static void *make_range(void *user)
{
    encoded_range *r = calloc(1, sizeof *r);
    if (r) {
        r->builder = user;
        gx_writer_open_encoded(r->builder->writer, &r->encoded);
    }
    return r;
}

static void free_range(void *output)
{
    encoded_range *r = output;
    gx_list_encoder_close(&r->encoded);
    free(r->docids);
    free(r->tfs);
    free(r->impacts);
    free(r->gaps);
    free(r->field_tfs);
    free(r);
}

/* Remove the gaps of deleted documents' positions from a list. */
static gx_status remap_gaps(encoded_range *r, gx_term_postings *l, gx_error *err)
{
    size_t n = 0;
    const uint32_t *p = l->gaps;
    for (uint32_t i = 0; i < l->df; p += l->tfs[i++]) {
        const uint32_t tf = r->builder->remap[l->docids[i]] == UINT32_MAX ? 0 : l->tfs[i];
        const gx_status st = gx_grow(&r->gaps, &r->max_gaps, n + tf, sizeof *p, err);
        if (st != GX_OK)
            return st;
        for (uint32_t k = 0; k < tf; ++k)
            r->gaps[n++] = p[k];
    }
    l->gaps = r->gaps;
    return GX_OK;
}

/* Remove the postings of deleted documents from a list. */
static gx_status remap_list(encoded_range *r, gx_term_postings *l, gx_error *err)
{
    if (l->df > r->max_kept) {
        free(r->docids);
        free(r->tfs);
        r->max_kept = 0;
        r->docids = malloc(l->df * sizeof *r->docids);
        r->tfs = malloc(l->df * sizeof *r->tfs);
        if (!r->docids || !r->tfs)
            return gx_doc_indexer_no_memory(err);
        r->max_kept = l->df;
    }
    const gx_status st = l->gaps ? remap_gaps(r, l, err) : GX_OK;
    if (st != GX_OK)
        return st;
    uint32_t n = 0;
    const uint32_t n_stored = l->field_tfs ? r->builder->opt.n_fields - 1 : 0;
    for (uint32_t i = 0; i < l->df; ++i) {
        const uint32_t d = r->builder->remap[l->docids[i]];
        if (d == UINT32_MAX)
            continue;
        for (uint32_t f = 0; l->field_tfs && f < n_stored; ++f)
            r->field_tfs[(size_t)n * n_stored + f] = r->field_tfs[(size_t)i * n_stored + f];
        r->docids[n] = d;
        r->tfs[n++] = l->tfs[i];
    }
    l->df = n;
    l->docids = r->docids;
    l->tfs = r->tfs;
    return GX_OK;
}

/* Turn a list's weights into impacts. */
static gx_status quantize_list(encoded_range *r, gx_term_postings *l, gx_error *err)
{
    if (l->df > r->max_impacts) {
        free(r->impacts);
        r->max_impacts = 0;
        if (!(r->impacts = malloc(l->df * sizeof *r->impacts)))
            return gx_doc_indexer_no_memory(err);
        r->max_impacts = l->df;
    }
    gx_weight_range own = {0};
    for (uint32_t i = 0; r->builder->opt.list_units && i < l->df; ++i)
        gx_weight_range_add(&own, gx_weight_of_bits(l->tfs[i]));
    const double unit =
        r->builder->opt.list_units ? gx_impact_unit(own, r->builder->opt.vector_bits) : r->builder->unit;
    for (uint32_t i = 0; i < l->df; ++i)
        r->impacts[i] = gx_quantize(gx_weight_of_bits(l->tfs[i]), unit);
    l->tfs = r->impacts;
    l->unit = (float)unit;
    return GX_OK;
}

/* Turn a list's details, which come as gaps, into tfs by field. */
static gx_status count_fields(encoded_range *r, gx_term_postings *l, gx_error *err)
{
    const uint32_t n_fields = r->builder->opt.n_fields, n = n_fields - 1, *gap = l->gaps;
    const gx_status st = gx_grow(&r->field_tfs, &r->max_field_tfs, (size_t)l->df * n + 1, sizeof *r->field_tfs, err);
    l->gaps = NULL;
    if (st != GX_OK || n == 0)
        return st;
    memset(r->field_tfs, 0, (size_t)l->df * n * sizeof *r->field_tfs);
    for (uint32_t i = 0; i < l->df; gap += l->tfs[i++])
        for (uint32_t k = 0, detail = 0; k < l->tfs[i]; ++k) {
            detail += gap[k] + (k > 0);
            const uint32_t field = gx_doc_indexer_field(n_fields, detail);
            if (field < n)
                ++r->field_tfs[(size_t)i * n + field];
        }
    l->field_tfs = r->field_tfs;
    return GX_OK;
}

static gx_status encode_list(void *output, const gx_term_postings *list, gx_error *err)
{
    encoded_range *r = output;
    gx_term_postings l = *list;
    gx_status st = GX_OK;
    if (gx_builder_keeps_fields(r->builder) && !r->builder->opt.positions && (st = count_fields(r, &l, err)) != GX_OK)
        return st;
    if (r->builder->remap && r->builder->counts.duplicates && ((st = remap_list(r, &l, err)) != GX_OK || l.df == 0))
        return st;
    if (r->builder->check && (st = quantize_list(r, &l, err)) != GX_OK)
        return st;
    r->postings += l.df;
    r->untimed += l.df;
    if (r->untimed < TIMED_POSTINGS)
        return gx_list_encoder_add(&r->encoded, &l, err);
    const double t = gx_clock_seconds();
    st = gx_list_encoder_add(&r->encoded, &l, err);
    r->seconds += (gx_clock_seconds() - t) * (double)r->untimed / l.df;
    r->untimed = 0;
    return st;
}

static gx_status write_range(void *user, void *output, double seconds, gx_error *err)
{
    gx_builder *b = user;
    encoded_range *r = output;
    const double t = gx_clock_seconds(), coding = r->seconds < seconds ? r->seconds : seconds;
    b->counts.terms += (uint32_t)r->encoded.n_lists;
    b->counts.postings += r->postings;
    b->counts.seconds[GX_STAGE_MERGE] += seconds - coding;
    const gx_status st = gx_writer_add_encoded(b->writer, &r->encoded, err);
    b->counts.seconds[GX_STAGE_LISTS] += coding + gx_clock_seconds() - t;
    r->seconds = 0;
    r->postings = 0;
    return st;
}

gx_list_sink gx_builder_list_sink(gx_builder *b)
{
    return (gx_list_sink){make_range, free_range, encode_list, write_range, b};
}
