/* check_front.c: check the header and the section table, and bind the arrays that they announce. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/c_locale.h"
#include "index/attributes/attributes.h"
#include "index/check/check.h"
#include "index/check/check_fields.h"
#include "index/check/check_parts.h"

const char *gx_section_name(uint32_t kind, char name[5])
{
    for (int i = 0; i < 4; ++i) {
        const char c = (char)(kind >> 8 * i);
        name[i] = gx_is_letter_or_digit(c) ? c : '?';
    }
    name[4] = 0;
    return name;
}

gx_status gx_corrupt(gx_error *err, const gx_index *ix, uint32_t kind, const char *format, ...)
{
    char name[5], text[700];
    va_list ap;
    const gx_c_locale l = gx_c_locale_begin();
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    gx_c_locale_end(l);
    return gx_fail(err, GX_ECORRUPT, "%.250s: section %s: %s", ix->path, gx_section_name(kind, name), text);
}

const gx_section *gx_index_section(const gx_index *ix, uint32_t kind)
{
    for (uint32_t i = 0; i < ix->header->n_sections; ++i)
        if (ix->sections[i].kind == kind)
            return &ix->sections[i];
    return NULL;
}

static bool all_zero(const uint8_t *p, uint64_t n)
{
    uint8_t any = 0;
    for (uint64_t i = 0; i < n; ++i)
        any |= p[i];
    return !any;
}

#define ULL(x) ((unsigned long long)(x))

/* Check that the file is an index, that this program knows its version, that it is complete, and
 * that header and section table are intact. */
static gx_status check_header(const gx_index *ix, gx_error *err)
{
    const gx_header *h = ix->header;
    const char *path = ix->path;
    const uint64_t have = ix->file_bytes;
    const size_t known = have < sizeof h->magic ? (size_t)have : sizeof h->magic;
    if (have == 0 || memcmp(ix->file, GX_MAGIC, known) != 0)
        return gx_fail(err, GX_ECORRUPT, "%s: header: this is no gpuidx index (%s)", path,
                       have ? "its first bytes are others" : "it is empty");
    if (have < sizeof *h)
        return gx_fail(err, GX_ECORRUPT, "%s: header: truncated: the file has %llu bytes, a header %zu", path,
                       ULL(have), sizeof *h);
    if (h->version != GX_FORMAT_VERSION)
        return gx_fail(
            err, GX_ECORRUPT, "%s: header: the index is of format version %u; this program reads version %u: %s", path,
            h->version, GX_FORMAT_VERSION,
            h->version > GX_FORMAT_VERSION ? "use a newer gpuidx, or build the index again" : "the header is damaged");
    if (h->header_bytes != sizeof *h)
        return gx_fail(err, GX_ECORRUPT, "%s: header: its size is given as %u, not %zu", path, h->header_bytes,
                       sizeof *h);
    if (h->n_sections == 0 || h->n_sections > GX_MAX_SECTIONS)
        return gx_fail(err, GX_ECORRUPT, "%s: header: %u sections, not 1 to %u", path, h->n_sections, GX_MAX_SECTIONS);
    const size_t table_bytes = h->n_sections * sizeof(gx_section);
    if (have < sizeof *h + table_bytes)
        return gx_fail(err, GX_ECORRUPT, "%s: header: truncated in the section table: the file has %llu bytes of %llu",
                       path, ULL(have), ULL(h->file_bytes));
    struct {
        gx_header header;
        gx_section table[GX_MAX_SECTIONS];
    } front;
    memcpy(&front, h, sizeof *h + table_bytes);
    front.header.checksum = 0;
    const uint64_t sum = gx_hash(&front, sizeof *h + table_bytes);
    if (sum != h->checksum)
        return gx_fail(err, GX_ECORRUPT,
                       "%s: header: checksum of header and section table is %016llx, not %016llx: the file is damaged",
                       path, ULL(sum), ULL(h->checksum));
    if (have != h->file_bytes)
        return gx_fail(err, GX_ECORRUPT, "%s: header: %s: the file has %llu bytes, it should have %llu", path,
                       have < h->file_bytes ? "truncated" : "bytes follow the index", ULL(have), ULL(h->file_bytes));
    if (h->flags & ~GX_HEADER_FLAGS)
        return gx_fail(err, GX_ECORRUPT,
                       "%s: header: flags %x are not known to this program: the index was made by a newer version of "
                       "gpuidx; use that one, or build the index again",
                       path, h->flags & ~GX_HEADER_FLAGS);
    if (!all_zero(h->reserved0, sizeof h->reserved0) || !all_zero(h->reserved, sizeof h->reserved) ||
        (!(h->flags & GX_HEADER_UNIT) && !all_zero((const uint8_t *)&h->impact_unit, sizeof h->impact_unit)))
        return gx_fail(err, GX_ECORRUPT, "%s: header: reserved bytes are not zero", path);
    if (h->flags & GX_HEADER_UNIT &&
        (!(h->flags & GX_HEADER_IMPACTS) || !(isfinite(h->impact_unit) && h->impact_unit > 0)))
        return gx_fail(err, GX_ECORRUPT, "%s: header: impacts have the unit %g%s", path, h->impact_unit,
                       h->flags & GX_HEADER_IMPACTS ? "" : ", and there are none");
    if ((h->flags & GX_HEADER_POSITIONS) && (h->flags & GX_HEADER_IMPACTS))
        return gx_fail(err, GX_ECORRUPT, "%s: header: impacts have no positions, and flags are %x", path, h->flags);
    return GX_OK;
}

/* Check that the header's counts agree with each other and that its codings are known. */
static gx_status check_counts(const gx_index *ix, gx_error *err)
{
    const gx_header *h = ix->header;
    if (h->block_len == 0 || h->block_len > GX_MAX_BLOCK)
        return gx_fail(err, GX_ECORRUPT, "%s: header: blocks of %u postings, not 1 to %u", ix->path, h->block_len,
                       GX_MAX_BLOCK);
    if (h->n_docs == UINT32_MAX || h->n_terms > UINT32_MAX / 2 || h->n_blocks > UINT32_MAX)
        return gx_fail(err, GX_ECORRUPT, "%s: header: %u documents, %u terms, %llu blocks: too many", ix->path,
                       h->n_docs, h->n_terms, ULL(h->n_blocks));
    if (h->n_blocks < h->n_terms || h->n_postings < h->n_blocks || h->sum_tfs < h->n_postings)
        return gx_fail(err, GX_ECORRUPT,
                       "%s: header: %u terms, %llu blocks, %llu postings, tfs adding up to %llu: this cannot be",
                       ix->path, h->n_terms, ULL(h->n_blocks), ULL(h->n_postings), ULL(h->sum_tfs));
    for (uint32_t i = 0; i < GX_MAX_CODINGS; ++i) {
        const gx_coding c = h->codings[i];
        if (c.docids == 0 && c.tfs == 0)
            continue;
        const gx_codec *docids = gx_codec_by_id(c.docids), *tfs = gx_codec_by_id(c.tfs);
        if (!docids || !tfs)
            return gx_fail(err, GX_ECORRUPT, "%s: header: coding %u uses codec %u, which this program does not know",
                           ix->path, i, docids ? c.tfs : c.docids);
        if (docids->block_len != h->block_len || tfs->block_len != h->block_len)
            return gx_fail(err, GX_ECORRUPT,
                           "%s: header: coding %u: blocks of %s and %s have %u and %u postings, "
                           "not %u",
                           ix->path, i, docids->name, tfs->name, docids->block_len, tfs->block_len, h->block_len);
    }
    return GX_OK;
}

/* Check the entries of the section table. Each section must begin at the first multiple of GX_ALIGN
 * behind the one before, zeros must fill the space between, and the last section must end the
 * file. */
static gx_status check_table(const gx_index *ix, gx_error *err)
{
    const gx_header *h = ix->header;
    uint64_t end = sizeof *h + h->n_sections * sizeof(gx_section);
    for (uint32_t i = 0; i < h->n_sections; ++i) {
        const gx_section *s = &ix->sections[i];
        const uint32_t flags = gx_section_flags(s->kind), reserved = gx_reserved_section_flag(s->kind);
        const uint64_t begin = end + -end % GX_ALIGN;
        if (flags == UINT32_MAX ? (s->flags & ~(GX_SECTION_REQUIRED | GX_SECTION_DEVICE)) != 0 : s->flags != flags)
            return gx_corrupt(err, ix, s->kind, "its flags are %x", s->flags);
        if (reserved != UINT32_MAX && (s->flags & GX_SECTION_REQUIRED) != reserved)
            return gx_corrupt(err, ix, s->kind, "its flags are %x", s->flags);
        if (flags == UINT32_MAX && (s->flags & GX_SECTION_REQUIRED))
            return gx_corrupt(err, ix, s->kind, "required, and not known to this program: use a newer gpuidx");
        for (uint32_t j = 0; j < i; ++j)
            if (ix->sections[j].kind == s->kind)
                return gx_corrupt(err, ix, s->kind, "it is there twice");
        if (!all_zero(s->reserved, sizeof s->reserved))
            return gx_corrupt(err, ix, s->kind, "reserved bytes of its entry are not zero");
        if (s->offset != begin)
            return gx_corrupt(err, ix, s->kind, "it begins at byte %llu, not %llu", ULL(s->offset), ULL(begin));
        if (s->bytes > h->file_bytes || begin > h->file_bytes - s->bytes)
            return gx_corrupt(err, ix, s->kind, "its %llu bytes from %llu on reach past the file's end, %llu",
                              ULL(s->bytes), ULL(begin), ULL(h->file_bytes));
        if (!all_zero(ix->file + end, begin - end))
            return gx_corrupt(err, ix, s->kind, "the padding before it is not zero");
        end = begin + s->bytes;
    }
    if (end != h->file_bytes)
        return gx_corrupt(err, ix, ix->sections[h->n_sections - 1].kind,
                          "the last, it ends at byte %llu, the file "
                          "at %llu",
                          ULL(end), ULL(h->file_bytes));
    return GX_OK;
}

/* Check the device sections. Their entries must follow each other in the table, those of known
 * kinds must stand in the order of the enumeration, and together they must span the bytes that the
 * header announces. */
static gx_status check_device(const gx_index *ix, gx_error *err)
{
    static const uint32_t order[] = {GX_SEC_PAYLOAD,    GX_SEC_LISTS,   GX_SEC_HEADS,
                                     GX_SEC_DOCID_ENDS, GX_SEC_TF_ENDS, GX_SEC_DOC_LENS};
    const gx_header *h = ix->header;
    const gx_section *first = NULL, *last = NULL;
    uint32_t next = 0;
    for (uint32_t i = 0; i < h->n_sections; ++i) {
        const gx_section *s = &ix->sections[i];
        if (!(s->flags & GX_SECTION_DEVICE))
            continue;
        if (last && last != s - 1)
            return gx_corrupt(err, ix, s->kind, "it is apart from the other device sections");
        first = first ? first : s;
        last = s;
        if (gx_section_flags(s->kind) == UINT32_MAX)
            continue;
        if (next == sizeof order / sizeof *order || s->kind != order[next])
            return gx_corrupt(err, ix, s->kind, "it is out of the order of device sections");
        ++next;
    }
    for (uint32_t i = next; i < sizeof order / sizeof *order; ++i)
        return gx_corrupt(err, ix, order[i], "it is missing");
    if (h->device_offset != first->offset || h->device_bytes != last->offset + last->bytes - first->offset)
        return gx_fail(err, GX_ECORRUPT,
                       "%s: header: device sections are %llu bytes from %llu on, the header says %llu from %llu on",
                       ix->path, ULL(last->offset + last->bytes - first->offset), ULL(first->offset),
                       ULL(h->device_bytes), ULL(h->device_offset));
    return GX_OK;
}

/* Sections of kinds that have no use for their parameter have 0 there. */
static gx_status check_params(const gx_index *ix, gx_error *err)
{
    static const uint32_t kinds[] = {GX_SEC_PAYLOAD,  GX_SEC_LISTS, GX_SEC_HEADS, GX_SEC_DOCID_ENDS, GX_SEC_TF_ENDS,
                                     GX_SEC_DOC_LENS, GX_SEC_META,  GX_SEC_UNITS, GX_SEC_POSITIONS};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        const gx_section *s = gx_index_section(ix, kinds[i]);
        if (s && s->param)
            return gx_corrupt(err, ix, kinds[i], "its parameter is %llu, not 0", ULL(s->param));
    }
    return GX_OK;
}

/* Point the pointer variable at `array` to the section, which must have n items of `item` bytes. */
static gx_status bind_array(const gx_index *ix, uint32_t kind, uint64_t n, size_t item, const void *array,
                            gx_error *err)
{
    const gx_section *s = gx_index_section(ix, kind);
    if (!s)
        return gx_corrupt(err, ix, kind, "it is missing");
    if (n > UINT64_MAX / item || s->bytes != n * item) /* n * item does not overflow */
        return gx_corrupt(err, ix, kind, "it has %llu bytes, not %llu items of %zu", ULL(s->bytes), ULL(n), item);
    const void **p = (const void **)array;
    *p = ix->file + s->offset;
    return GX_OK;
}

static gx_status bind_strings(const gx_index *ix, uint32_t kind, uint32_t n, gx_strings *out, gx_error *err)
{
    const gx_section *s = gx_index_section(ix, kind);
    if (!s)
        return gx_section_flags(kind) & GX_SECTION_REQUIRED ? gx_corrupt(err, ix, kind, "it is missing") : GX_OK;
    if (s->param != 4 && s->param != 8)
        return gx_corrupt(err, ix, kind, "offsets of %llu bytes, not 4 or 8", ULL(s->param));
    const uint64_t table = ((uint64_t)n + 1) * s->param;
    if (s->bytes < table)
        return gx_corrupt(err, ix, kind, "it has %llu bytes, the offsets of %u strings need %llu", ULL(s->bytes), n,
                          ULL(table));
    *out = (gx_strings){.offsets = ix->file + s->offset,
                        .bytes = (const char *)ix->file + s->offset + table,
                        .n = n,
                        .width = (uint32_t)s->param};
    return GX_OK;
}

static gx_status bind_payload(gx_index *ix, gx_error *err)
{
    const gx_section *s = gx_index_section(ix, GX_SEC_PAYLOAD);
    if (s->bytes < GX_READ_SLACK || s->bytes % sizeof(uint32_t))
        return gx_corrupt(err, ix, s->kind, "%llu bytes are not words and %u bytes behind them", ULL(s->bytes),
                          GX_READ_SLACK);
    ix->payload = (const uint32_t *)(const void *)(ix->file + s->offset);
    ix->payload_words = (s->bytes - GX_READ_SLACK) / sizeof(uint32_t);
    return GX_OK;
}

static gx_status bind_text(gx_index *ix, gx_error *err)
{
    const gx_section *s = gx_index_section(ix, GX_SEC_TEXT);
    if (!s)
        return GX_OK;
    if (s->param > ix->n_docs || s->bytes < (s->param + 1) * sizeof(gx_text_frame))
        return gx_corrupt(err, ix, s->kind, "%llu frames of %u documents in %llu bytes", ULL(s->param), ix->n_docs,
                          ULL(s->bytes));
    ix->n_text_frames = (uint32_t)s->param;
    ix->text_frames = (const gx_text_frame *)(const void *)(ix->file + s->offset);
    ix->text = (const uint8_t *)(ix->text_frames + ix->n_text_frames + 1);
    return GX_OK;
}

/* The units of the lists' impacts, if each list has its own. */
static gx_status bind_units(gx_index *ix, gx_error *err)
{
    const gx_section *s = gx_index_section(ix, GX_SEC_UNITS);
    if (!s)
        return GX_OK;
    if (!ix->impacts || ix->header->flags & GX_HEADER_UNIT)
        return gx_corrupt(err, ix, s->kind, "%s",
                          ix->impacts ? "the header has a unit of all lists" : "tfs are no impacts");
    return bind_array(ix, GX_SEC_UNITS, ix->n_terms, sizeof *ix->units, &ix->units, err);
}

/* The positions: both sections, as the header says. */
static gx_status bind_positions(gx_index *ix, gx_error *err)
{
    const gx_section *words = gx_index_section(ix, GX_SEC_POSITIONS),
                     *ends = gx_index_section(ix, GX_SEC_POSITION_ENDS),
                     *titles = gx_index_section(ix, GX_SEC_TITLE_LENS);
    const bool with = ix->header->flags & GX_HEADER_POSITIONS;
    if (!with && (words || ends || titles))
        return gx_corrupt(err, ix,
                          (words  ? words
                           : ends ? ends
                                  : titles)
                              ->kind,
                          "the header says that there are no positions");
    if (!with)
        return GX_OK;
    if (!words || !ends)
        return gx_corrupt(err, ix, words ? GX_SEC_POSITION_ENDS : GX_SEC_POSITIONS, "it is missing");
    if (words->bytes < GX_READ_SLACK || words->bytes % sizeof(uint32_t))
        return gx_corrupt(err, ix, words->kind, "%llu bytes are not words and %u bytes behind them", ULL(words->bytes),
                          GX_READ_SLACK);
    if (ends->param > ix->n_blocks)
        return gx_corrupt(err, ix, ends->kind, "its parameter is %llu, of %llu blocks", ULL(ends->param),
                          ULL(ix->n_blocks));
    if (titles && titles->param != 1 && titles->param != 2 && titles->param != 4)
        return gx_corrupt(err, ix, titles->kind, "numbers of %llu bytes, not 1, 2 or 4", ULL(titles->param));
    ix->positions = (const uint32_t *)(const void *)(ix->file + words->offset);
    ix->position_words = (words->bytes - GX_READ_SLACK) / sizeof(uint32_t);
    ix->n_position_wraps = (uint32_t)ends->param;
    gx_status st = bind_array(ix, GX_SEC_POSITION_ENDS, ix->n_blocks + ends->param, 4, &ix->position_ends, err);
    if (st == GX_OK && titles) {
        const gx_section *fields = gx_index_section(ix, GX_SEC_FIELDS);
        const uint32_t n_fields = fields ? fields->param & 0xff : 2; /* a title, and the text */
        if (n_fields < 2)
            return gx_corrupt(err, ix, titles->kind, "a document has %u fields", n_fields);
        ix->title_position_width = (uint32_t)titles->param;
        st = bind_array(ix, titles->kind, (uint64_t)ix->n_docs * (n_fields - 1), ix->title_position_width,
                        &ix->title_positions, err);
    }
    ix->position_wraps = st == GX_OK ? ix->position_ends + ix->n_blocks : NULL;
    return st;
}

static gx_status bind_sections(gx_index *ix, gx_error *err)
{
    gx_status st;
    const gx_section *meta = gx_index_section(ix, GX_SEC_META), *hash = gx_index_section(ix, GX_SEC_TERM_HASH);
    if (!meta || !hash)
        return gx_corrupt(err, ix, meta ? GX_SEC_TERM_HASH : GX_SEC_META, "it is missing");
    ix->meta = (const char *)ix->file + meta->offset;
    ix->meta_len = (size_t)meta->bytes;
    if (hash->param > 32 || (uint64_t)1 << hash->param <= ix->n_terms)
        return gx_corrupt(err, ix, hash->kind, "a table of 2^%llu slots for %u terms", ULL(hash->param), ix->n_terms);
    ix->term_hash_bits = (uint32_t)hash->param;
    if ((st = check_params(ix, err)) != GX_OK ||
        (st = bind_array(ix, GX_SEC_LISTS, ix->n_terms, sizeof(gx_list_entry), &ix->lists, err)) != GX_OK ||
        (st = bind_array(ix, GX_SEC_HEADS, ix->n_blocks, 4, &ix->heads, err)) != GX_OK ||
        (st = bind_array(ix, GX_SEC_DOCID_ENDS, ix->n_blocks, 4, &ix->docid_ends, err)) != GX_OK ||
        (st = bind_array(ix, GX_SEC_TF_ENDS, ix->n_blocks, 4, &ix->tf_ends, err)) != GX_OK ||
        (st = bind_array(ix, GX_SEC_DOC_LENS, ix->n_docs, 4, &ix->doc_lens, err)) != GX_OK ||
        (st = bind_array(ix, GX_SEC_TERM_HASH, (uint64_t)1 << hash->param, 4, &ix->term_hash, err)) != GX_OK ||
        (st = bind_payload(ix, err)) != GX_OK ||
        (st = bind_strings(ix, GX_SEC_TERMS, ix->n_terms, &ix->terms, err)) != GX_OK ||
        (st = bind_strings(ix, GX_SEC_DOC_IDS, ix->n_docs, &ix->doc_ids, err)) != GX_OK ||
        (st = bind_strings(ix, GX_SEC_TITLES, ix->n_docs, &ix->titles, err)) != GX_OK ||
        (st = bind_text(ix, err)) != GX_OK || (st = bind_units(ix, err)) != GX_OK ||
        (st = bind_positions(ix, err)) != GX_OK || (st = gx_columns_bind(ix, err)) != GX_OK ||
        (st = gx_bitmaps_bind(ix, err)) != GX_OK || (st = gx_fields_bind(ix, err)) != GX_OK)
        return st;
    return GX_OK;
}

gx_status gx_check_header(gx_index *ix, gx_error *err)
{
    gx_status st;
    const gx_header *h = ix->header = (const gx_header *)(const void *)ix->file;
    if ((st = check_header(ix, err)) != GX_OK)
        return st;
    ix->sections = (const gx_section *)(h + 1);
    if ((st = check_counts(ix, err)) != GX_OK || (st = check_table(ix, err)) != GX_OK ||
        (st = check_device(ix, err)) != GX_OK)
        return st;
    ix->n_docs = h->n_docs;
    ix->n_terms = h->n_terms;
    ix->block_len = h->block_len;
    ix->n_blocks = h->n_blocks;
    ix->n_postings = h->n_postings;
    ix->n_tokens = h->n_tokens;
    ix->sum_tfs = h->sum_tfs;
    ix->impacts = h->flags & GX_HEADER_IMPACTS;
    ix->impact_unit = h->flags & GX_HEADER_UNIT ? h->impact_unit : 1;
    ix->avgdl = h->n_docs && h->n_tokens ? (double)h->n_tokens / h->n_docs : 1;
    return bind_sections(ix, err);
}
