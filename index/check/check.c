/* check.c: the checks of checksums and of contents, for which everything is decoded once; and the
 * measuring of sizes. */
#include "index/check/check.h"
#include "index/parts.h"

#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/attributes/attributes.h"
#include "index/check/check_fields.h"
#include "index/check/check_parts.h"
#include "index/positions.h"

#define ULL(x) ((unsigned long long)(x))

gx_status gx_check_checksums(const gx_index *ix, gx_error *err)
{
    for (uint32_t i = 0; i < ix->header->n_sections; ++i) {
        const gx_section *s = &ix->sections[i];
        const uint64_t sum = gx_hash(ix->file + s->offset, (size_t)s->bytes);
        if (sum != s->checksum)
            return gx_corrupt(err, ix, s->kind,
                              "its checksum is %016llx, not %016llx: the file is damaged; build the index again, or "
                              "take it from a copy",
                              ULL(sum), ULL(s->checksum));
    }
    return GX_OK;
}

/* ---- contents ---- */

typedef struct decoded {
    uint32_t docids[GX_MAX_BLOCK + 32], tfs[GX_MAX_BLOCK + 32]; /* of one block */
    uint64_t sum_tfs;                                           /* of all lists */
    uint32_t *doc_tfs;                                          /* [n_docs] sum of each document's tfs, modulo 2^32 */
    uint32_t *values;                                           /* [max_values] of a block's positions */
    size_t max_values;
} decoded;

static gx_status check_docids(const gx_index *ix, const gx_list *l, uint32_t term, uint32_t j, uint32_t *docids,
                              gx_error *err)
{
    const uint32_t n = gx_list_block_n(l, j), begin = j ? l->docid_ends[j - 1] : 0;
    if (!gx_codec_block_valid(l->docids, l->payload + begin, l->docid_ends[j] - begin, n, l->docid_param))
        return gx_corrupt(err, ix, GX_SEC_PAYLOAD, "docid block %u of list %u is no block of %u integers of %s", j,
                          term, n, l->docids->name);
    gx_list_decode_docids(l, j, docids);
    const uint64_t end = j + 1 < l->n_blocks ? l->heads[j + 1] : ix->n_docs;
    if (docids[0] != l->heads[j])
        return gx_corrupt(err, ix, GX_SEC_PAYLOAD, "docid block %u of list %u begins at %u, its head is %u", j, term,
                          docids[0], l->heads[j]);
    for (uint32_t i = 1; i < n; ++i)
        if (docids[i] <= docids[i - 1])
            return gx_corrupt(err, ix, GX_SEC_PAYLOAD, "docid block %u of list %u: docid %u follows %u", j, term,
                              docids[i], docids[i - 1]);
    if (docids[n - 1] >= end)
        return gx_corrupt(err, ix, GX_SEC_PAYLOAD, "docid block %u of list %u ends with docid %u, not below %llu", j,
                          term, docids[n - 1], ULL(end));
    return GX_OK;
}

/* Block j of the list, whose docids are decoded. */
static gx_status check_tfs(const gx_index *ix, const gx_list *l, uint32_t term, uint32_t j, decoded *d, gx_error *err)
{
    const uint32_t *const docids = d->docids;
    uint32_t *const tfs = d->tfs;
    const uint32_t n = gx_list_block_n(l, j), begin = j ? l->tf_ends[j - 1] : l->docid_ends[l->n_blocks - 1];
    if (!gx_codec_block_valid(l->tfs, l->payload + begin, l->tf_ends[j] - begin, n, l->tf_param))
        return gx_corrupt(err, ix, GX_SEC_PAYLOAD, "tf block %u of list %u is no block of %u integers of %s", j, term,
                          n, l->tfs->name);
    gx_list_decode_tfs(l, j, tfs);
    for (uint32_t i = 0; i < n; ++i) {
        if (tfs[i] == 0)
            return gx_corrupt(err, ix, GX_SEC_PAYLOAD, "tf block %u of list %u: the tf of document %u is 2^32", j, term,
                              docids[i]);
        d->sum_tfs += tfs[i];
        d->doc_tfs[docids[i]] += tfs[i];
    }
    return GX_OK;
}

/* Positions of block j of the list, whose tfs are decoded. */
static gx_status check_positions(const gx_index *ix, const gx_list *l, uint32_t term, uint32_t j, decoded *d,
                                 gx_error *err)
{
    const uint32_t n = gx_list_block_n(l, j);
    const gx_block_positions b = gx_index_block_positions(ix, ix->lists[term].first_block + (uint64_t)j);
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; ++i)
        all += d->tfs[i];
    if (all / 32 > b.n_words) /* a value takes a bit at least */
        return gx_corrupt(err, ix, GX_SEC_POSITIONS, "block %u of list %u has %zu words for %llu positions", j, term,
                          b.n_words, ULL(all));
    const gx_status st = gx_grow(&d->values, &d->max_values, all, sizeof *d->values, err);
    if (st != GX_OK)
        return st;
    if (!gx_positions_decode(b, all, 0, all, d->values) || !gx_positions_valid(b, all, d->values))
        return gx_corrupt(err, ix, GX_SEC_POSITIONS, "block %u of list %u is no block of %llu positions", j, term,
                          ULL(all));
    const uint32_t *v = d->values;
    for (uint32_t i = 0; i < n; ++i) {
        uint64_t next = 0;
        for (const uint32_t *const end = v + d->tfs[i]; v < end; ++v)
            next += (uint64_t)*v + 1;
        if (next > (uint64_t)GX_MAX_POSITION + 1)
            return gx_corrupt(err, ix, GX_SEC_POSITIONS, "block %u of list %u: document %u has position %llu, above %u",
                              j, term, d->docids[i], ULL(next - 1), GX_MAX_POSITION);
    }
    return GX_OK;
}

static gx_status check_postings(const gx_index *ix, gx_error *err)
{
    gx_status st = GX_OK;
    decoded d;
    d.sum_tfs = d.max_values = 0;
    d.values = NULL;
    d.doc_tfs = calloc(ix->n_docs + (size_t)1, sizeof(uint32_t));
    if (!d.doc_tfs)
        return gx_fail(err, GX_ENOMEM, "out of memory: the lengths of %u documents", ix->n_docs);
    for (uint32_t term = 0; term < ix->n_terms && st == GX_OK; ++term) {
        const gx_list l = gx_index_list(ix, term);
        for (uint32_t j = 0; j < l.n_blocks && st == GX_OK; ++j) {
            st = check_docids(ix, &l, term, j, d.docids, err);
            if (st == GX_OK)
                st = check_tfs(ix, &l, term, j, &d, err);
            if (st == GX_OK && ix->positions)
                st = check_positions(ix, &l, term, j, &d, err);
        }
    }
    if (st == GX_OK && d.sum_tfs != ix->sum_tfs)
        st = gx_corrupt(err, ix, GX_SEC_PAYLOAD, "tfs add up to %llu, the header says %llu", ULL(d.sum_tfs),
                        ULL(ix->sum_tfs));
    /* A document's tfs add up to its length, unless they are impacts or the lengths were
     * imported. */
    if (!ix->impacts && ix->sum_tfs == ix->n_tokens)
        for (uint32_t docid = 0; docid < ix->n_docs && st == GX_OK; ++docid)
            if (d.doc_tfs[docid] != ix->doc_lens[docid])
                st = gx_corrupt(err, ix, GX_SEC_DOC_LENS, "document %u has length %u, its tfs add up to %u", docid,
                                ix->doc_lens[docid], d.doc_tfs[docid]);
    free(d.doc_tfs);
    free(d.values);
    return st;
}

/* Each term is in one slot, and all slots between that of its hash and its own are full. The
 * structure is sound, so as many slots are full as there are terms, and one is empty. */
static gx_status check_term_hash(const gx_index *ix, gx_error *err)
{
    const uint64_t mask = ((uint64_t)1 << ix->term_hash_bits) - 1;
    uint64_t first = 0, full = 0; /* full: slots in a row before the one at hand */
    gx_status st = GX_OK;
    uint8_t *seen = calloc(ix->n_terms / 8 + 1, 1);
    if (!seen)
        return gx_fail(err, GX_ENOMEM, "out of memory while checking %s", ix->path);
    while (ix->term_hash[first])
        ++first;
    for (uint64_t i = first; i <= first + mask && st == GX_OK; ++i) {
        const uint64_t slot = i & mask;
        if (!ix->term_hash[slot]) {
            full = 0;
            continue;
        }
        const uint32_t term = ix->term_hash[slot] - 1;
        size_t len;
        const char *bytes = gx_strings_get(&ix->terms, term, &len);
        if (((slot - gx_hash(bytes, len)) & mask) > full++ || seen[term / 8] >> term % 8 & 1)
            st = gx_corrupt(err, ix, GX_SEC_TERM_HASH, "slot %llu does not lead to term %u", ULL(slot), term);
        seen[term / 8] |= (uint8_t)(1u << term % 8);
    }
    free(seen);
    return st;
}

static gx_status check_terms(const gx_index *ix, gx_error *err)
{
    const char *last = "";
    size_t last_len = 0;
    for (uint32_t term = 0; term < ix->n_terms; ++term) {
        size_t len;
        const char *bytes = gx_strings_get(&ix->terms, term, &len);
        const int order = memcmp(last, bytes, len < last_len ? len : last_len);
        if (term && (order > 0 || (order == 0 && last_len >= len)))
            return gx_corrupt(err, ix, GX_SEC_TERMS, "term %u is not above the one before it", term);
        last = bytes;
        last_len = len;
    }
    return check_term_hash(ix, err);
}

static gx_status check_texts(const gx_index *ix, gx_error *err)
{
    char *buf = NULL;
    size_t cap = 0, len;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < ix->n_text_frames && st == GX_OK; ++i) /* one document's text reads its whole frame */
        st = gx_index_doc_text(ix, ix->text_frames[i].first_doc, &buf, &cap, &len, err);
    free(buf);
    return st;
}

gx_status gx_check_contents(const gx_index *ix, gx_error *err)
{
    gx_status st;
    if ((st = check_terms(ix, err)) != GX_OK || (st = check_postings(ix, err)) != GX_OK ||
        (st = check_texts(ix, err)) != GX_OK || (st = gx_columns_check_contents(ix, err)) != GX_OK ||
        (st = gx_bitmaps_check_contents(ix, err)) != GX_OK || (st = gx_fields_check_contents(ix, err)) != GX_OK)
        return st;
    return GX_OK;
}

/* ---- measures ---- */

static void measure_lists(const gx_index *ix, gx_index_sizes *out)
{
    uint8_t at[GX_MAX_CODINGS]; /* the place of each coding in out->codings */
    for (uint32_t i = 0; i < GX_MAX_CODINGS; ++i) {
        const gx_coding c = ix->header->codings[i];
        if (c.docids == 0)
            continue;
        at[i] = (uint8_t)out->n_codings++;
        out->codings[at[i]] =
            (gx_coding_size){.docid_codec = gx_codec_by_id(c.docids)->name, .tf_codec = gx_codec_by_id(c.tfs)->name};
    }
    for (uint32_t term = 0; term < ix->n_terms; ++term) {
        const gx_list l = gx_index_list(ix, term);
        gx_coding_size *c = &out->codings[at[ix->lists[term].coding]];
        const uint64_t docid_words = l.docid_ends[l.n_blocks - 1], words = l.tf_ends[l.n_blocks - 1];
        c->n_lists += 1;
        c->n_postings += l.df;
        c->n_blocks += l.n_blocks;
        c->docid_bytes += docid_words * sizeof(uint32_t);
        c->tf_bytes += (words - docid_words) * sizeof(uint32_t);
    }
}

static void add_sections(gx_index_sizes *out, const gx_index_sizes *part)
{
    for (uint32_t i = 0; i < part->n_sections; ++i) {
        uint32_t at = 0;
        while (at < out->n_sections && strcmp(out->sections[at].name, part->sections[i].name) != 0)
            ++at;
        if (at == GX_MAX_SECTIONS)
            continue;
        if (at == out->n_sections)
            out->sections[out->n_sections++] = part->sections[i];
        else
            out->sections[at].bytes += part->sections[i].bytes;
        out->sections[at].offset = 0; /* they lie in several files */
    }
}

static void add_codings(gx_index_sizes *out, const gx_index_sizes *part)
{
    for (uint32_t i = 0; i < part->n_codings; ++i) {
        const gx_coding_size *from = &part->codings[i];
        uint32_t at = 0;
        while (at < out->n_codings && (strcmp(out->codings[at].docid_codec, from->docid_codec) != 0 ||
                                       strcmp(out->codings[at].tf_codec, from->tf_codec) != 0))
            ++at;
        if (at == GX_MAX_CODINGS)
            continue;
        gx_coding_size *to = &out->codings[at];
        if (at == out->n_codings) {
            out->codings[out->n_codings++] = *from;
            continue;
        }
        to->n_lists += from->n_lists;
        to->n_postings += from->n_postings;
        to->n_blocks += from->n_blocks;
        to->docid_bytes += from->docid_bytes;
        to->tf_bytes += from->tf_bytes;
    }
}

/* The bytes of all files, deleted documents' postings among them. */
static void measure_parts(const gx_index *ix, gx_index_sizes *out)
{
    uint64_t n_postings = 0;
    *out = (gx_index_sizes){0};
    for (uint32_t i = 0; i < ix->parts->n; ++i) {
        const gx_index *part = ix->parts->parts[i].ix;
        gx_index_sizes one;
        gx_index_measure(part, &one);
        add_sections(out, &one);
        add_codings(out, &one);
        out->header_bytes += one.header_bytes;
        out->padding_bytes += one.padding_bytes;
        const double n = (double)part->n_postings;
        out->docid_bits += one.docid_bits * n;
        out->tf_bits += one.tf_bits * n;
        out->head_bits += one.head_bits * n;
        out->end_bits += one.end_bits * n;
        out->list_bits += one.list_bits * n;
        n_postings += part->n_postings;
    }
    const double share = n_postings ? 1 / (double)n_postings : 0;
    out->docid_bits *= share;
    out->tf_bits *= share;
    out->head_bits *= share;
    out->end_bits *= share;
    out->list_bits *= share;
}

void gx_index_measure(const gx_index *ix, gx_index_sizes *out)
{
    if (ix->parts) {
        measure_parts(ix, out);
        return;
    }
    *out = (gx_index_sizes){.n_sections = ix->header->n_sections};
    out->header_bytes = sizeof(gx_header) + out->n_sections * sizeof(gx_section);
    uint64_t used = out->header_bytes, docid_bytes = 0, tf_bytes = 0;
    for (uint32_t i = 0; i < out->n_sections; ++i) {
        const gx_section *s = &ix->sections[i];
        out->sections[i] = (gx_section_size){.device = s->flags & GX_SECTION_DEVICE,
                                             .known = gx_section_flags(s->kind) != UINT32_MAX,
                                             .offset = s->offset,
                                             .bytes = s->bytes};
        gx_section_name(s->kind, out->sections[i].name);
        used += s->bytes;
    }
    out->padding_bytes = ix->file_bytes - used;
    measure_lists(ix, out);
    for (uint32_t i = 0; i < out->n_codings; ++i) {
        docid_bytes += out->codings[i].docid_bytes;
        tf_bytes += out->codings[i].tf_bytes;
    }
    if (ix->n_postings == 0)
        return;
    const double bit = 8.0 / (double)ix->n_postings;
    out->docid_bits = (double)docid_bytes * bit;
    out->tf_bits = (double)tf_bytes * bit;
    out->head_bits = 4.0 * (double)ix->n_blocks * bit;
    out->end_bits = 8.0 * (double)ix->n_blocks * bit;
    out->list_bits = (double)sizeof(gx_list_entry) * (double)ix->n_terms * bit;
}
