/* writer_lists.c: encoded lists on their way into the file, which must come by rising term. */
#include "index/write/writer_state.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/auto_codec.h"
#include "engine/memory/grow.h"
#include "engine/status.h"

#define ENTRIES_AT_ONCE 1024u /* of lists */

/* What docids are below while lists are added. */
static uint32_t n_docs(const gx_writer *w)
{
    return w->n_docs_announced ? w->n_docs_announced : w->counts.n_docs;
}

/* The place of a pair of codecs in the header's table, which takes it up if it is new. */
static uint8_t coding_of(gx_writer *w, const gx_codec *docids, const gx_codec *tfs)
{
    _Static_assert(GX_MAX_CHOICES * GX_MAX_CHOICES <= GX_MAX_CODINGS, "every pair of candidates has a place");
    uint32_t i = 0;
    while (i < w->n_codings && (w->codings[i].docids != docids->id || w->codings[i].tfs != tfs->id))
        ++i;
    if (i == w->n_codings)
        w->codings[w->n_codings++] = (gx_coding){docids->id, tfs->id};
    return (uint8_t)i;
}

static gx_status fail_order(const char *last, size_t last_len, const char *term, size_t len, gx_error *err)
{
    char a[64], b[64];
    return gx_fail(err, GX_EUSAGE, "terms out of order: '%s' after '%s'", gx_show_term(term, len, a),
                   gx_show_term(last, last_len, b));
}

/* Check that the encoder's terms rise, and come behind those that the file has. */
static gx_status check_order(const gx_writer *w, const gx_list_encoder *c, gx_error *err)
{
    const size_t len = c->lists[0].term_len;
    if (w->counts.n_terms && !gx_terms_rise(w->last_term, w->last_term_len, c->terms, len))
        return fail_order(w->last_term, w->last_term_len, c->terms, len, err);
    if (c->fall == 0)
        return GX_OK;
    const char *last = c->terms;
    for (size_t i = 0; i + 1 < c->fall; ++i)
        last += c->lists[i].term_len;
    const size_t last_len = c->lists[c->fall - 1].term_len;
    return fail_order(last, last_len, last + last_len, c->lists[c->fall].term_len, err);
}

/* Whether the file can take the encoder's lists. */
static gx_status check_lists(const gx_writer *w, const gx_list_encoder *c, uint64_t payload, gx_error *err)
{
    if (c->n_lists > UINT32_MAX / 2 - w->counts.n_terms)
        return gx_fail(err, GX_EUSAGE, "%s would have more than %u terms", w->path, UINT32_MAX / 2);
    if (w->counts.n_blocks + c->n_blocks > UINT32_MAX || (payload + c->n_words) >> 40)
        return gx_fail(err, GX_EUSAGE, "%s would have more than 2^32 blocks or 2^40 words", w->path);
    return check_order(w, c, err);
}

/* Keep the last of the encoder's terms, and the hashes of all. */
static gx_status keep_terms(gx_writer *w, const gx_list_encoder *c, gx_error *err)
{
    const size_t len = c->lists[c->n_lists - 1].term_len, n_terms = w->counts.n_terms;
    gx_status st = gx_grow(&w->last_term, &w->max_last_term, len + 1, 1, err);
    if (st == GX_OK)
        st = gx_grow(&w->term_hashes, &w->max_term_hashes, n_terms + c->n_lists, sizeof *w->term_hashes, err);
    if (st != GX_OK)
        return st;
    if (len) /* the first term may be empty, and the terms NULL */
        memcpy(w->last_term, c->terms + c->n_terms - len, len);
    w->last_term_len = len;
    memcpy(w->term_hashes + n_terms, c->hashes, c->n_lists * sizeof *c->hashes);
    return gx_spool_add(&w->terms.bytes, c->terms, c->n_terms, err);
}

/* Note where a list's tfs by field end. */
static gx_status add_field_end(gx_writer *w, uint32_t term, size_t n, gx_error *err)
{
    const uint64_t before = w->field_bytes;
    w->field_bytes += n;
    gx_status st = gx_spool_u32(&w->field_ends, (uint32_t)w->field_bytes, err);
    for (uint64_t wraps = w->field_bytes >> 32; wraps > before >> 32 && st == GX_OK; --wraps)
        st = gx_spool_u32(&w->field_wraps, term, err);
    return st;
}

/* Write the entries of lists[n] to the spools; *payload and the counts go on. */
static gx_status add_entries(gx_writer *w, const gx_encoded_list *lists, size_t n, uint64_t *payload, gx_error *err)
{
    uint8_t *entries, *lens;
    gx_status st = gx_spool_reserve(&w->lists, n * sizeof(gx_list_entry), &entries, err);
    if (st == GX_OK)
        st = gx_spool_reserve(&w->terms.lens, n * sizeof(uint32_t), &lens, err);
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        const gx_encoded_list *l = &lists[i];
        const gx_list_entry entry = {.df = l->df,
                                     .first_block = (uint32_t)w->counts.n_blocks,
                                     .payload_lo = (uint32_t)*payload,
                                     .payload_hi = (uint8_t)(*payload >> 32),
                                     .coding = coding_of(w, l->docids, l->tfs),
                                     .docid_param = l->docid_param,
                                     .tf_param = l->tf_param};
        memcpy(entries + i * sizeof entry, &entry, sizeof entry);
        memcpy(lens + i * sizeof l->term_len, &l->term_len, sizeof l->term_len);
        const float unit = l->unit > 0 ? l->unit : 1;
        if (w->list_units)
            st = gx_spool_add(&w->units, &unit, sizeof unit, err);
        *payload += l->n_words;
        w->counts.n_blocks += ((uint64_t)l->df + w->block_len - 1) / w->block_len;
        w->counts.n_postings += l->df;
        w->sum_tfs += l->sum_tfs;
        if (w->n_fields && st == GX_OK)
            st = add_field_end(w, w->counts.n_terms + (uint32_t)i, l->field_bytes, err);
    }
    if (st != GX_OK)
        return st;
    gx_spool_commit(&w->lists, n * sizeof(gx_list_entry));
    gx_spool_commit(&w->terms.lens, n * sizeof(uint32_t));
    w->counts.n_terms += (uint32_t)n;
    return GX_OK;
}

/* Add the encoder's positions. The count of words goes on from block to block. */
static gx_status add_positions(gx_writer *w, const gx_list_encoder *c, uint64_t first_block, gx_error *err)
{
    gx_status st = gx_spool_add(&w->positions, c->position_words, c->n_position_words * sizeof(uint32_t), err);
    for (size_t i = 0; i < c->n_blocks && st == GX_OK; ++i) {
        const uint64_t end = w->position_words + c->position_lens[i];
        if (end >> 32 != w->position_words >> 32) {
            st = gx_grow(&w->position_wraps, &w->max_position_wraps, w->n_position_wraps + (size_t)1, sizeof(uint32_t),
                         err);
            if (st == GX_OK)
                w->position_wraps[w->n_position_wraps++] = (uint32_t)(first_block + i);
        }
        w->position_words = end;
        if (st == GX_OK)
            st = gx_spool_u32(&w->position_ends, (uint32_t)end, err);
    }
    return st;
}

static gx_status add_encoded_lists(gx_writer *w, const gx_list_encoder *c, gx_error *err)
{
    uint64_t payload = gx_section_writer_section_bytes(w->sections) / sizeof(uint32_t);
    const uint64_t first_block = w->counts.n_blocks;
    if (c->n_lists == 0)
        return GX_OK;
    gx_status st = check_lists(w, c, payload, err);
    if (st == GX_OK)
        st = keep_terms(w, c, err);
    for (size_t i = 0, some; i < c->n_lists && st == GX_OK; i += some) {
        some = c->n_lists - i < ENTRIES_AT_ONCE ? c->n_lists - i : ENTRIES_AT_ONCE;
        st = add_entries(w, c->lists + i, some, &payload, err);
    }
    if (st == GX_OK)
        st = gx_section_writer_add(w->sections, c->words, c->n_words * sizeof *c->words, err);
    if (st == GX_OK)
        st = gx_spool_add(&w->heads, c->heads, c->n_blocks * sizeof *c->heads, err);
    if (st == GX_OK)
        st = gx_spool_add(&w->docid_ends, c->docid_ends, c->n_blocks * sizeof *c->docid_ends, err);
    if (st == GX_OK)
        st = gx_spool_add(&w->tf_ends, c->tf_ends, c->n_blocks * sizeof *c->tf_ends, err);
    if (st == GX_OK && c->field_bytes.n)
        st = gx_spool_add(&w->field_tfs, c->field_bytes.bytes, c->field_bytes.n, err);
    return st == GX_OK && w->with_positions ? add_positions(w, c, first_block, err) : st;
}

/* The lengths by field, 0 at first, which all encoders add to. NULL: no memory, or no fields but one. */
static uint32_t *find_field_lens(gx_writer *w)
{
    const size_t n = w->n_fields > 1 ? ((size_t)n_docs(w) + 1) * (w->n_fields - 1) : 0;
    uint32_t *lens = atomic_load(&w->field_lens), *made = lens || n == 0 ? NULL : calloc(n, sizeof *made);
    if (!made)
        return lens;
    if (atomic_compare_exchange_strong(&w->field_lens, &lens, made))
        return made;
    free(made);
    return lens;
}

static void open_fields(gx_writer *w, gx_list_encoder *c)
{
    c->n_fields = w->n_fields;
    c->field_lens = find_field_lens(w);
    c->field_positions = w->field_positions;
}

uint32_t *gx_writer_field_positions(gx_writer *w)
{
    if (!w->field_positions)
        w->field_positions = calloc(((size_t)n_docs(w) + 1) * w->n_fields, sizeof *w->field_positions);
    return w->field_positions;
}

void gx_writer_open_encoded(gx_writer *w, gx_list_encoder *c)
{
    gx_list_encoder_open(c, w->docids, w->tfs, n_docs(w));
    c->with_positions = w->with_positions;
    open_fields(w, c);
}

gx_status gx_writer_add_encoded(gx_writer *w, gx_list_encoder *c, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return gx_writer_repeat_failure(w, err);
    const gx_status st = add_encoded_lists(w, c, &words);
    gx_list_encoder_clear(c);
    return gx_writer_record_failure(w, st, &words, err);
}

gx_status gx_writer_add_postings(gx_writer *w, const gx_term_postings *list, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return gx_writer_repeat_failure(w, err);
    w->encoder.n_docs = n_docs(w);
    open_fields(w, &w->encoder);
    gx_status st = gx_list_encoder_add(&w->encoder, list, &words);
    if (st == GX_OK)
        st = add_encoded_lists(w, &w->encoder, &words);
    gx_list_encoder_clear(&w->encoder);
    return gx_writer_record_failure(w, st, &words, err);
}

gx_status gx_writer_add_list(gx_writer *w, const char *term, size_t len, uint32_t df, const uint32_t *docids,
                             const uint32_t *tfs, gx_error *err)
{
    const gx_term_postings list = {.term = term, .len = len, .df = df, .docids = docids, .tfs = tfs};
    return gx_writer_add_postings(w, &list, err);
}

void gx_writer_set_unit(gx_writer *w, double unit)
{
    w->unit = unit;
}
