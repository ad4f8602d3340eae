/* check_structure.c: check every offset, count and bound that later reads rely on. One fast pass
 * reads each section, with few branches an item. If the pass finds an error, a second, slow pass
 * says which item is wrong. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "engine/status.h"
#include "engine/text/json_text.h"
#include "index/attributes/attributes.h"
#include "index/check/check_fields.h"
#include "index/check/check_parts.h"

#define ULL(x) ((unsigned long long)(x))

static uint64_t payload_of(const gx_list_entry *e)
{
    return (uint64_t)e->payload_hi << 32 | e->payload_lo;
}

/* ---- lists ---- */

/* Whether heads rise and ends never fall over the n blocks of a list, and its last head is <
 * n_docs. */
static bool blocks_rise(const gx_index *ix, uint64_t first, uint64_t n)
{
    const uint32_t *heads = ix->heads + first, *docid_ends = ix->docid_ends + first, *tf_ends = ix->tf_ends + first;
    uint32_t wrong = (heads[n - 1] >= ix->n_docs) | (tf_ends[0] < docid_ends[n - 1]);
    for (uint64_t j = 1; j < n; ++j)
        wrong |= (heads[j] <= heads[j - 1]) | (docid_ends[j] < docid_ends[j - 1]) | (tf_ends[j] < tf_ends[j - 1]);
    return !wrong;
}

static gx_status report_bad_blocks(const gx_index *ix, uint32_t term, uint64_t first, uint64_t n, gx_error *err)
{
    const uint32_t *heads = ix->heads + first, *docid_ends = ix->docid_ends + first, *tf_ends = ix->tf_ends + first;
    for (uint64_t j = 0; j < n; ++j) {
        if (j && heads[j] <= heads[j - 1])
            return gx_corrupt(err, ix, GX_SEC_HEADS, "block %llu of list %u begins at docid %u, not above %u", ULL(j),
                              term, heads[j], heads[j - 1]);
        if (heads[j] >= ix->n_docs)
            return gx_corrupt(err, ix, GX_SEC_HEADS, "block %llu of list %u begins at docid %u, not below %u", ULL(j),
                              term, heads[j], ix->n_docs);
        if (j && docid_ends[j] < docid_ends[j - 1])
            return gx_corrupt(err, ix, GX_SEC_DOCID_ENDS, "block %llu of list %u ends at word %u, before %u", ULL(j),
                              term, docid_ends[j], docid_ends[j - 1]);
        const uint32_t before = j ? tf_ends[j - 1] : docid_ends[n - 1];
        if (tf_ends[j] < before)
            return gx_corrupt(err, ix, GX_SEC_TF_ENDS, "block %llu of list %u ends at word %u, before %u", ULL(j), term,
                              tf_ends[j], before);
    }
    return gx_fail(err, GX_EINTERNAL, "%s: list %u is wrong and right", ix->path, term);
}

/* The greatest codec parameters that a list of one coding may have. */
typedef struct codec_limits {
    uint8_t docids, tfs;
} codec_limits;

static codec_limits limits_of(const gx_index *ix, uint32_t coding)
{
    const gx_coding c = ix->header->codings[coding];
    return c.docids ? (codec_limits){gx_codec_by_id(c.docids)->max_param, gx_codec_by_id(c.tfs)->max_param}
                    : (codec_limits){0, 0};
}

/* Say which field of a list's entry is wrong. block and payload are the numbers of blocks and words
 * of the lists before it. */
static gx_status report_bad_entry(const gx_index *ix, uint32_t term, uint64_t block, uint64_t payload, gx_error *err)
{
    const gx_list_entry *e = &ix->lists[term];
    if (e->df == 0 || e->df > ix->n_docs)
        return gx_corrupt(err, ix, GX_SEC_LISTS, "list %u has %u postings, not 1 to %u", term, e->df, ix->n_docs);
    if (e->first_block != block)
        return gx_corrupt(err, ix, GX_SEC_LISTS, "list %u begins at block %u, not %llu", term, e->first_block,
                          ULL(block));
    if (payload_of(e) != payload)
        return gx_corrupt(err, ix, GX_SEC_LISTS, "list %u begins at word %llu of the payload, not %llu", term,
                          ULL(payload_of(e)), ULL(payload));
    if (e->coding >= GX_MAX_CODINGS || ix->header->codings[e->coding].docids == 0)
        return gx_corrupt(err, ix, GX_SEC_LISTS, "list %u has coding %u, which the header does not give", term,
                          e->coding);
    const codec_limits most = limits_of(ix, e->coding);
    if (e->docid_param > most.docids)
        return gx_corrupt(err, ix, GX_SEC_LISTS, "list %u has parameter %u for docids, not 0 to %u", term,
                          e->docid_param, most.docids);
    if (e->tf_param > most.tfs)
        return gx_corrupt(err, ix, GX_SEC_LISTS, "list %u has parameter %u for tfs, not 0 to %u", term, e->tf_param,
                          most.tfs);
    return gx_corrupt(err, ix, GX_SEC_LISTS, "the blocks of list %u reach past block %llu, the last", term,
                      ULL(ix->n_blocks));
}

static gx_status check_lists(const gx_index *ix, gx_error *err)
{
    const uint32_t block_len = ix->block_len;
    uint64_t block = 0, payload = 0, n_postings = 0;
    bool used[256] = {false}; /* indexed by gx_list_entry.coding, a u8, which is not checked yet */
    codec_limits most[256] = {{0, 0}};
    for (uint32_t i = 0; i < GX_MAX_CODINGS; ++i) {
        used[i] = ix->header->codings[i].docids != 0;
        most[i] = limits_of(ix, i);
    }
    for (uint32_t term = 0; term < ix->n_terms; ++term) {
        const gx_list_entry *e = &ix->lists[term];
        const uint64_t n = e->df <= block_len ? 1 : (e->df - 1) / block_len + 1;
        if ((e->df - 1 >= ix->n_docs) | (e->first_block != block) | (payload_of(e) != payload) | !used[e->coding] |
            (n > ix->n_blocks - block) | (e->docid_param > most[e->coding].docids) |
            (e->tf_param > most[e->coding].tfs))
            return report_bad_entry(ix, term, block, payload, err);
        if (!blocks_rise(ix, block, n))
            return report_bad_blocks(ix, term, block, n, err);
        block += n;
        payload += ix->tf_ends[block - 1];
        n_postings += e->df;
    }
    if (block != ix->n_blocks)
        return gx_corrupt(err, ix, GX_SEC_LISTS, "lists have %llu blocks, the header says %llu", ULL(block),
                          ULL(ix->n_blocks));
    if (payload != ix->payload_words)
        return gx_corrupt(err, ix, GX_SEC_PAYLOAD, "it has %llu words, lists take %llu", ULL(ix->payload_words),
                          ULL(payload));
    if (n_postings != ix->n_postings)
        return gx_corrupt(err, ix, GX_SEC_LISTS, "lists have %llu postings, the header says %llu", ULL(n_postings),
                          ULL(ix->n_postings));
    const uint8_t *slack = (const uint8_t *)(ix->payload + ix->payload_words);
    for (uint32_t i = 0; i < GX_READ_SLACK; ++i)
        if (slack[i])
            return gx_corrupt(err, ix, GX_SEC_PAYLOAD, "the bytes behind its last word are not zero");
    return GX_OK;
}

static gx_status check_doc_lens(gx_index *ix, gx_error *err)
{
    uint64_t sum = 0;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < ix->n_docs; ++i) {
        const uint32_t len = ix->doc_lens[i];
        sum += len;
        least = len < least ? len : least;
        most = len > most ? len : most;
    }
    ix->min_doc_len = ix->n_docs ? least : 0;
    ix->max_doc_len = most;
    if (sum != ix->n_tokens)
        return gx_corrupt(err, ix, GX_SEC_DOC_LENS, "lengths add up to %llu, the header says %llu", ULL(sum),
                          ULL(ix->n_tokens));
    return GX_OK;
}

/* ---- strings, lexicon, texts ---- */

static uint64_t offset_of(const gx_strings *s, uint64_t i)
{
    return s->width == 4 ? ((const uint32_t *)s->offsets)[i] : ((const uint64_t *)s->offsets)[i];
}

static gx_status check_strings(const gx_index *ix, uint32_t kind, const gx_strings *s, gx_error *err)
{
    const gx_section *section = gx_index_section(ix, kind);
    if (!section)
        return GX_OK;
    const uint64_t room = section->bytes - ((uint64_t)s->n + 1) * s->width;
    uint32_t falls = 0;
    if (s->width == 4) {
        const uint32_t *offsets = s->offsets;
        for (uint64_t i = 0; i < s->n; ++i)
            falls |= offsets[i + 1] < offsets[i];
    } else {
        const uint64_t *offsets = s->offsets;
        for (uint64_t i = 0; i < s->n; ++i)
            falls |= offsets[i + 1] < offsets[i];
    }
    for (uint64_t i = 0; falls && i < s->n; ++i)
        if (offset_of(s, i + 1) < offset_of(s, i))
            return gx_corrupt(err, ix, kind, "string %llu ends at byte %llu, before it begins, at %llu", ULL(i),
                              ULL(offset_of(s, i + 1)), ULL(offset_of(s, i)));
    if (offset_of(s, 0) != 0)
        return gx_corrupt(err, ix, kind, "the first string begins at byte %llu, not 0", ULL(offset_of(s, 0)));
    if (offset_of(s, s->n) != room)
        return gx_corrupt(err, ix, kind, "the last string ends at byte %llu, the section at %llu",
                          ULL(offset_of(s, s->n)), ULL(room));
    return GX_OK;
}

static gx_status check_term_hash(const gx_index *ix, gx_error *err)
{
    const uint64_t n = (uint64_t)1 << ix->term_hash_bits;
    uint32_t most = 0;
    uint64_t full = 0;
    for (uint64_t i = 0; i < n; ++i) {
        most = ix->term_hash[i] > most ? ix->term_hash[i] : most;
        full += ix->term_hash[i] != 0;
    }
    if (most > ix->n_terms)
        return gx_corrupt(err, ix, GX_SEC_TERM_HASH, "a slot holds term %u, of %u", most - 1, ix->n_terms);
    if (full != ix->n_terms) /* else some slot is empty, since slots outnumber terms, and every search ends there */
        return gx_corrupt(err, ix, GX_SEC_TERM_HASH, "%llu slots are in use, for %u terms", ULL(full), ix->n_terms);
    return GX_OK;
}

static gx_status check_text(const gx_index *ix, gx_error *err)
{
    const gx_section *section = gx_index_section(ix, GX_SEC_TEXT);
    if (!section)
        return GX_OK;
    const gx_text_frame *f = ix->text_frames;
    const uint32_t n = ix->n_text_frames;
    const uint64_t room = section->bytes - ((uint64_t)n + 1) * sizeof *f;
    for (uint32_t i = 0; i < n; ++i) {
        if (f[i + 1].offset < f[i].offset)
            return gx_corrupt(err, ix, section->kind, "frame %u ends at byte %llu, before it begins, at %llu", i,
                              ULL(f[i + 1].offset), ULL(f[i].offset));
        if (f[i + 1].first_doc <= f[i].first_doc)
            return gx_corrupt(err, ix, section->kind, "frame %u begins at document %u, not above %u", i + 1,
                              f[i + 1].first_doc, f[i].first_doc);
        if (f[i].raw_bytes > GX_MAX_FRAME_BYTES)
            return gx_corrupt(err, ix, section->kind, "frame %u has %u bytes, more than %u", i, f[i].raw_bytes,
                              GX_MAX_FRAME_BYTES);
        if (f[i].raw_bytes / sizeof(uint32_t) < f[i + 1].first_doc - f[i].first_doc)
            return gx_corrupt(err, ix, section->kind, "frame %u of %u documents has %u bytes", i,
                              f[i + 1].first_doc - f[i].first_doc, f[i].raw_bytes);
    }
    if (f[0].offset != 0 || f[0].first_doc != 0 || f[n].first_doc != ix->n_docs || f[n].raw_bytes != 0)
        return gx_corrupt(err, ix, section->kind, "frames are of documents %u to %u, not 0 to %u", f[0].first_doc,
                          f[n].first_doc, ix->n_docs);
    if (f[n].offset != room)
        return gx_corrupt(err, ix, section->kind, "the last frame ends at byte %llu, the section at %llu",
                          ULL(f[n].offset), ULL(room));
    return GX_OK;
}

static gx_status check_meta(const gx_index *ix, gx_error *err)
{
    json_error_t why;
    errno = 0; /* jansson does not tell, but malloc does, if memory is short */
    json_t *root = gx_json_load(ix->meta, ix->meta_len, JSON_REJECT_DUPLICATES, &why);
    gx_status st = GX_OK;
    if (!root && errno == ENOMEM)
        st = gx_fail(err, GX_ENOMEM, "%s: no memory for its description", ix->path);
    else if (!root)
        st = gx_corrupt(err, ix, GX_SEC_META, "it is no JSON: %s (byte %d)", why.text, why.position);
    else if (!json_is_object(json_object_get(root, "analyzer")))
        st = gx_corrupt(err, ix, GX_SEC_META, "it has no object \"analyzer\"");
    json_decref(root);
    return st;
}

static gx_status check_units(const gx_index *ix, gx_error *err)
{
    for (uint32_t t = 0; ix->units && t < ix->n_terms; ++t)
        if (!(isfinite(ix->units[t]) && ix->units[t] > 0))
            return gx_corrupt(err, ix, GX_SEC_UNITS, "the unit of list %u is %g", t, ix->units[t]);
    return GX_OK;
}

/* Ends never fall but where a multiple of 2^32 is passed, and the last is the section's. */
static gx_status check_position_ends(const gx_index *ix, gx_error *err)
{
    uint32_t wraps = 0, before = 0;
    if (!ix->positions)
        return GX_OK;
    for (uint64_t j = 0; j < ix->n_blocks; ++j) {
        const uint32_t end = ix->position_ends[j];
        const bool passes = wraps < ix->n_position_wraps && ix->position_wraps[wraps] == j;
        wraps += passes;
        if (passes ? end >= before : end < before)
            return gx_corrupt(err, ix, GX_SEC_POSITION_ENDS, "block %llu ends at word %u, %s %u", ULL(j), end,
                              passes ? "and passes 2^32 from" : "before", before);
        before = end;
    }
    if (wraps < ix->n_position_wraps)
        return gx_corrupt(err, ix, GX_SEC_POSITION_ENDS,
                          "block %u, where a multiple of 2^32 is passed, is out of order", ix->position_wraps[wraps]);
    const uint64_t words = (uint64_t)wraps << 32 | before;
    if (words != ix->position_words)
        return gx_corrupt(err, ix, GX_SEC_POSITIONS, "it has %llu words, blocks take %llu", ULL(ix->position_words),
                          ULL(words));
    const uint8_t *slack = (const uint8_t *)(ix->positions + ix->position_words);
    for (uint32_t i = 0; i < GX_READ_SLACK; ++i)
        if (slack[i])
            return gx_corrupt(err, ix, GX_SEC_POSITIONS, "the bytes behind its last word are not zero");
    return GX_OK;
}

gx_status gx_check_structure(gx_index *ix, gx_error *err)
{
    gx_status st;
    if ((st = check_lists(ix, err)) != GX_OK || (st = check_doc_lens(ix, err)) != GX_OK ||
        (st = check_meta(ix, err)) != GX_OK || (st = check_strings(ix, GX_SEC_TERMS, &ix->terms, err)) != GX_OK ||
        (st = check_term_hash(ix, err)) != GX_OK ||
        (st = check_strings(ix, GX_SEC_DOC_IDS, &ix->doc_ids, err)) != GX_OK ||
        (st = check_strings(ix, GX_SEC_TITLES, &ix->titles, err)) != GX_OK || (st = check_text(ix, err)) != GX_OK ||
        (st = check_units(ix, err)) != GX_OK || (st = check_position_ends(ix, err)) != GX_OK ||
        (st = check_strings(ix, GX_SEC_ATTRIBUTE_STRINGS, &ix->column_strings, err)) != GX_OK ||
        (st = gx_columns_check_structure(ix, err)) != GX_OK || (st = gx_bitmaps_check_structure(ix, err)) != GX_OK ||
        (st = gx_fields_check_structure(ix, err)) != GX_OK)
        return st;
    return GX_OK;
}
