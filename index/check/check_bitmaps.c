/* check_bitmaps.c: bind the section of bitmap columns and check it. */
#include <stdlib.h>
#include <string.h>

#include "codecs/codec.h"
#include "engine/status.h"
#include "index/attributes/attributes.h"
#include "index/check/check_parts.h"

#define ULL(x) ((unsigned long long)(x))
#define KIND GX_SEC_ATTRIBUTE_BITMAPS
#define BLOCK 128u

/* ---- the entries ---- */

static gx_status check_entry(const gx_index *ix, uint32_t i, const gx_bitmaps_entry *e, uint64_t at, gx_error *err)
{
    const gx_column *c = &ix->columns[i];
    const bool some = e->encoding != GX_BITMAPS_NONE;
    if (e->encoding < GX_BITMAPS_NONE || e->encoding > GX_BITMAPS_RANGE)
        return gx_corrupt(err, ix, KIND, "attribute %u has encoding %u, which is not known", i, e->encoding);
    if (e->asked_encoding > GX_BITMAPS_RANGE || e->asked_binning > GX_BINS_LLOYD || e->asked_bins > GX_MAX_BINS)
        return gx_corrupt(err, ix, KIND, "attribute %u: encoding %u, binning %u and %u bins were asked for", i,
                          e->asked_encoding, e->asked_binning, e->asked_bins);
    if (e->reserved0 || e->reserved1)
        return gx_corrupt(err, ix, KIND, "attribute %u: reserved bytes are not zero", i);
    if (e->begin != (some ? at : 0) || (!some && (e->n_bins || e->bytes)))
        return gx_corrupt(err, ix, KIND, "the columns of attribute %u begin at byte %llu, not %llu", i, ULL(e->begin),
                          ULL(some ? at : 0));
    if (some && c->starts && e->encoding == GX_BITMAPS_RANGE)
        return gx_corrupt(err, ix, KIND, "attribute %u has a range encoding, and documents with several values", i);
    if (some && (gx_is_keyword(c->type) ? e->encoding != GX_BITMAPS_EQUALITY || e->n_bins != c->n_strings
                                        : e->n_bins == 0 || e->n_bins > GX_MAX_BINS))
        return gx_corrupt(err, ix, KIND, "attribute %u has %u bins", i, e->n_bins);
    return GX_OK;
}

/* The columns of attribute i, which begin at byte *at; go on behind them. */
static gx_status bind_bitmaps(gx_index *ix, uint32_t i, const gx_bitmaps_entry *e, const gx_section *s, uint64_t *at,
                              gx_error *err)
{
    gx_column *c = &ix->columns[i];
    const gx_status st = check_entry(ix, i, e, *at, err);
    if (st != GX_OK)
        return st;
    gx_bitmaps *b = &c->bitmaps;
    *b = (gx_bitmaps){.encoding = (gx_bitmap_encoding)e->encoding,
                      .asked = {(gx_bitmap_encoding)e->asked_encoding, (gx_binning)e->asked_binning, e->asked_bins},
                      .n_bins = e->n_bins,
                      .n_columns = gx_bitmaps_n_columns((gx_bitmap_encoding)e->encoding, e->n_bins),
                      .bytes = e->bytes};
    if (b->encoding == GX_BITMAPS_NONE)
        return GX_OK;
    const uint64_t bounds = gx_is_keyword(c->type) ? 0 : gx_column_padded(2ull * b->n_bins * c->width);
    const uint64_t least = bounds + b->n_columns * sizeof(gx_bitmap_entry);
    if (e->bytes > s->bytes - *at || e->bytes < least || e->bytes % 8)
        return gx_corrupt(err, ix, KIND, "the columns of attribute %u take %llu bytes, of %llu", i, ULL(e->bytes),
                          ULL(s->bytes - *at));
    const uint8_t *p = ix->file + s->offset + *at;
    b->least = bounds ? p : NULL;
    b->greatest = bounds ? p + (size_t)b->n_bins * c->width : NULL;
    b->directory = (const gx_bitmap_entry *)(const void *)(p + bounds);
    b->words = (const uint32_t *)(const void *)(p + least);
    const uint64_t n_words = b->n_columns ? b->directory[b->n_columns - 1].end : 0;
    if (e->bytes != gx_column_padded(least + 4 * n_words))
        return gx_corrupt(err, ix, KIND, "the columns of attribute %u take %llu bytes, not the %llu of %llu words", i,
                          ULL(e->bytes), ULL(gx_column_padded(least + 4 * n_words)), ULL(n_words));
    *at += e->bytes;
    return GX_OK;
}

gx_status gx_bitmaps_bind(gx_index *ix, gx_error *err)
{
    const gx_section *s = gx_index_section(ix, KIND);
    for (uint32_t i = 0; i < ix->n_columns; ++i)
        ix->columns[i].bitmaps.encoding = GX_BITMAPS_NONE;
    if (!s)
        return GX_OK;
    uint64_t at = s->param * sizeof(gx_bitmaps_entry);
    if (s->param != ix->n_columns || s->bytes < at + GX_READ_SLACK)
        return gx_corrupt(err, ix, KIND, "it has %llu bytes for %llu attributes; there are %u", ULL(s->bytes),
                          ULL(s->param), ix->n_columns);
    const gx_bitmaps_entry *entries = (const gx_bitmaps_entry *)(const void *)(ix->file + s->offset);
    const gx_section part = {.offset = s->offset, .bytes = s->bytes - GX_READ_SLACK};
    for (uint32_t i = 0; i < ix->n_columns; ++i) {
        const gx_status st = bind_bitmaps(ix, i, &entries[i], &part, &at, err);
        if (st != GX_OK)
            return st;
    }
    if (at != part.bytes)
        return gx_corrupt(err, ix, KIND, "it has %llu bytes, the columns take %llu", ULL(s->bytes),
                          ULL(at + GX_READ_SLACK));
    for (uint32_t i = 0; i < GX_READ_SLACK; ++i)
        if (ix->file[s->offset + at + i])
            return gx_corrupt(err, ix, KIND, "the %u bytes at its end are not zero", GX_READ_SLACK);
    return GX_OK;
}

/* ---- structure ---- */

/* What is wrong with the places of a column's parts, or NULL. */
static const char *place_fault(const gx_index *ix, const gx_bitmaps *b, uint32_t column)
{
    const gx_bitmap_entry e = b->directory[column];
    const uint32_t begin = column ? b->directory[column - 1].end : 0, n = gx_bitmap_n(e);
    if (e.end < begin || e.end > b->directory[b->n_columns - 1].end)
        return "ends before it begins, or past the last column";
    const uint32_t n_words = e.end - begin, n_blocks = (n + BLOCK - 1) / BLOCK;
    const uint32_t n_ends = n_blocks ? n_blocks - 1 : 0, *const ends = b->words + begin + n_blocks;
    if (gx_bitmap_form_of(e) == GX_BITMAP_WORDS)
        return n_words != ((uint64_t)ix->n_docs + 31) / 32 ? "has not a bit a document" : NULL;
    if (gx_bitmap_form_of(e) > GX_BITMAP_WORDS)
        return "has a form that is not known";
    if (gx_bitmap_form_of(e) == GX_BITMAP_RUNS && n % 2)
        return "has a run without an end";
    if (n_words < n_blocks + n_ends)
        return "has no room for its blocks";
    for (uint32_t j = 0; j < n_ends; ++j)
        if (ends[j] < (j ? ends[j - 1] : 0) || ends[j] > n_words - n_blocks - n_ends)
            return "has a block outside its words";
    return n_blocks == 0 && n_words ? "is empty and has words" : NULL;
}

gx_status gx_bitmaps_check_structure(const gx_index *ix, gx_error *err)
{
    for (uint32_t i = 0; i < ix->n_columns; ++i) {
        const gx_column *c = &ix->columns[i];
        const gx_bitmaps *b = &c->bitmaps;
        for (uint32_t bin = 0; b->least && bin < b->n_bins; ++bin) {
            const uint64_t least = gx_sort_key(c->type, gx_bitmaps_least(c, bin));
            const uint64_t before = bin ? gx_sort_key(c->type, gx_bitmaps_greatest(c, bin - 1)) : 0;
            if (least > gx_sort_key(c->type, gx_bitmaps_greatest(c, bin)) || (bin && least <= before))
                return gx_corrupt(err, ix, KIND, "attribute %.*s: the bounds of bin %u do not rise", (int)c->name_len,
                                  c->name, bin);
        }
        for (uint32_t column = 0; column < b->n_columns; ++column) {
            const char *fault = place_fault(ix, b, column);
            if (fault)
                return gx_corrupt(err, ix, KIND, "attribute %.*s: column %u %s", (int)c->name_len, c->name, column,
                                  fault);
        }
    }
    return GX_OK;
}

/* ---- contents ---- */

/* What is wrong with the numbers of a list, or of runs, or NULL. */
static const char *numbers_fault(const gx_index *ix, const gx_bitmaps *b, uint32_t column)
{
    const gx_bitmap_entry e = b->directory[column];
    const uint32_t begin = column ? b->directory[column - 1].end : 0, n = gx_bitmap_n(e);
    const uint32_t n_blocks = (n + BLOCK - 1) / BLOCK, *const heads = b->words + begin, *const ends = heads + n_blocks;
    const uint32_t *const blocks = ends + n_blocks - (n_blocks != 0);
    const uint64_t limit = (uint64_t)ix->n_docs + (gx_bitmap_form_of(e) == GX_BITMAP_RUNS);
    uint64_t last = 0;
    for (uint32_t j = 0; j < n_blocks; ++j) {
        const uint32_t at = j ? ends[j - 1] : 0, m = j + 1 < n_blocks ? BLOCK : n - BLOCK * j;
        const uint32_t to = j + 1 < n_blocks ? ends[j] : e.end - begin - (uint32_t)(blocks - heads);
        uint32_t gaps[BLOCK + 32];
        if (!gx_codec_block_valid(&gx_codec_gpubp128, blocks + at, to - at, m, 0))
            return "has a block that is coded otherwise than by the writer";
        gx_codec_gpubp128.decode(blocks + at, to - at, m, 0, gaps);
        if (gaps[0] != 0 || (j && heads[j] <= last))
            return "has numbers that do not rise";
        last = heads[j];
        for (uint32_t k = 1; k < m; ++k)
            last += gaps[k] + 1ull;
        if (last >= limit)
            return "has a document past the last";
    }
    return NULL;
}

static const char *form_fault(const gx_index *ix, const gx_bitmaps *b, uint32_t column)
{
    const gx_bitmap_entry e = b->directory[column];
    const uint32_t *const words = b->words + (column ? b->directory[column - 1].end : 0);
    const uint32_t n_words = ix->n_docs / 32 + (ix->n_docs % 32 != 0);
    uint64_t n = 0;
    if (gx_bitmap_form_of(e) != GX_BITMAP_WORDS)
        return numbers_fault(ix, b, column);
    for (uint32_t w = 0; w < n_words; ++w)
        n += (uint64_t)__builtin_popcount(words[w]);
    if (ix->n_docs % 32 && words[n_words - 1] >> ix->n_docs % 32)
        return "has a document past the last";
    return n != gx_bitmap_n(e) ? "has another number of documents than it says" : NULL;
}

/* Whether a document has a value of a bin of an equality encoding. */
static bool has_value(const gx_column *c, uint32_t docid, uint32_t bin)
{
    const uint64_t least = gx_sort_key(c->type, gx_bitmaps_least(c, bin));
    const uint64_t greatest = gx_sort_key(c->type, gx_bitmaps_greatest(c, bin));
    const gx_value_span v = gx_column_values(c, docid);
    bool has = false;
    for (uint64_t i = v.begin; i < v.end && gx_column_has(c, docid) && !has; ++i) {
        const uint64_t key = gx_sort_key(c->type, gx_column_raw(c, i));
        has = key >= least && key <= greatest;
    }
    return has;
}

/* The bin of each document in a range encoding, where a document without a value is in the bin of the
 * one before it; UINT16_MAX: none. Counts those that are in a column. */
static uint64_t find_bins(const gx_index *ix, const gx_column *c, uint16_t *bins)
{
    uint16_t bin = UINT16_MAX;
    uint64_t n = 0;
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        uint32_t first, last;
        if (gx_column_has(c, d)) {
            const uint64_t raw = gx_column_raw(c, d);
            bin = gx_bitmaps_find(c, raw, raw, &first, &last) ? (uint16_t)first : UINT16_MAX;
        }
        bins[d] = bin;
        n += bin < c->bitmaps.n_columns;
    }
    return n;
}

/* How many documents each bin has, summed up, in an equality encoding. A document's values rise, and their
 * bins do. */
static uint64_t count_in_bins(const gx_index *ix, const gx_column *c)
{
    uint64_t n = 0;
    if (!c->starts)
        return c->n_present;
    if (gx_is_keyword(c->type))
        return c->n_values;
    for (uint32_t d = 0; d < ix->n_docs; ++d)
        for (uint32_t v = c->starts[d], bin, last, before = UINT32_MAX; v < c->starts[d + 1]; ++v, before = bin) {
            const uint64_t raw = gx_column_raw(c, v);
            bin = gx_bitmaps_find(c, raw, raw, &bin, &last) ? last : UINT32_MAX;
            n += bin != before;
        }
    return n;
}

typedef struct bin_check {
    const gx_index *ix;
    const gx_column *c;
    uint64_t *words, *before; /* a bit a document; before: of the range encoding's column before */
    uint16_t *bins;           /* of a range encoding; else NULL */
    uint64_t n;               /* documents that were found in columns */
} bin_check;

/* The documents of a bin, which are those of its column but not of the one before it. */
static gx_status check_bin(bin_check *b, uint32_t bin, gx_error *err)
{
    const size_t n_words = ((size_t)b->ix->n_docs + 63) / 64;
    memset(b->words, 0, n_words * sizeof *b->words);
    gx_bitmap_set(&b->c->bitmaps, bin, b->ix->n_docs, b->words);
    for (size_t w = 0; w < n_words; ++w)
        for (uint64_t bits = b->words[w] ^ b->before[w]; bits; bits &= bits - 1) {
            const uint32_t docid = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(bits);
            if (b->bins ? b->bins[docid] != bin : !has_value(b->c, docid, bin))
                return gx_corrupt(err, b->ix, KIND, "attribute %.*s: document %u is in column %u, and its value is not",
                                  (int)b->c->name_len, b->c->name, docid, bin);
            ++b->n;
        }
    if (b->bins)
        memcpy(b->before, b->words, n_words * sizeof *b->words);
    return GX_OK;
}

/* The documents of a list of an equality encoding, without a look at all documents. */
static gx_status check_list(bin_check *b, uint32_t bin, gx_error *err)
{
    const gx_bitmaps *maps = &b->c->bitmaps;
    uint32_t docids[BLOCK + 32];
    for (uint32_t j = 0, n; (n = gx_bitmap_block(maps, bin, j, docids)); ++j)
        for (uint32_t i = 0; i < n; ++i, ++b->n)
            if (!has_value(b->c, docids[i], bin))
                return gx_corrupt(err, b->ix, KIND, "attribute %.*s: document %u is in column %u, and its value is not",
                                  (int)b->c->name_len, b->c->name, docids[i], bin);
    return GX_OK;
}

/* The bounds of bins are values of documents. */
static gx_status check_bounds(const gx_index *ix, const gx_column *c, gx_error *err)
{
    const gx_bitmaps *b = &c->bitmaps;
    uint8_t *seen = calloc(b->n_bins + 1ull, 1);
    uint32_t first, last, missing = b->n_bins;
    bool outside = false;
    if (!seen)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    for (uint32_t d = 0; d < ix->n_docs && !outside; ++d) {
        const gx_value_span v = gx_column_values(c, d);
        for (uint64_t i = v.begin; i < v.end && gx_column_has(c, d) && !outside; ++i) {
            const uint64_t raw = gx_column_raw(c, i);
            outside = !gx_bitmaps_find(c, raw, raw, &first, &last);
            if (!outside)
                seen[first] |=
                    (uint8_t)((raw == gx_bitmaps_least(c, first)) | (raw == gx_bitmaps_greatest(c, first)) << 1);
            missing = outside ? d : missing;
        }
    }
    for (uint32_t bin = 0; bin < b->n_bins && !outside; ++bin)
        missing = missing == b->n_bins && seen[bin] != 3 ? bin : missing;
    free(seen);
    if (outside)
        return gx_corrupt(err, ix, KIND, "attribute %.*s: the value of document %u is in no bin", (int)c->name_len,
                          c->name, missing);
    if (missing < b->n_bins)
        return gx_corrupt(err, ix, KIND, "attribute %.*s: a bound of bin %u is no document's value", (int)c->name_len,
                          c->name, missing);
    return GX_OK;
}

static gx_status check_columns(bin_check *b, gx_error *err)
{
    const gx_column *c = b->c;
    const gx_bitmaps *maps = &c->bitmaps;
    gx_status st = maps->least ? check_bounds(b->ix, c, err) : GX_OK;
    if (st != GX_OK)
        return st;
    const uint64_t n = b->bins ? find_bins(b->ix, c, b->bins) : count_in_bins(b->ix, c);
    for (uint32_t i = 0; i < maps->n_columns && st == GX_OK; ++i) {
        const bool list = gx_bitmap_form_of(maps->directory[i]) == GX_BITMAP_LIST;
        const char *fault = form_fault(b->ix, maps, i);
        if (fault)
            return gx_corrupt(err, b->ix, KIND, "attribute %.*s: column %u %s", (int)c->name_len, c->name, i, fault);
        st = list && !b->bins ? check_list(b, i, err) : check_bin(b, i, err);
    }
    if (st == GX_OK && b->n != n)
        st = gx_corrupt(err, b->ix, KIND, "attribute %.*s: the columns have %llu values, not %llu", (int)c->name_len,
                        c->name, ULL(b->n), ULL(n));
    return st;
}

gx_status gx_bitmaps_check_contents(const gx_index *ix, gx_error *err)
{
    const size_t n_words = (size_t)ix->n_docs / 64 + 1;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < ix->n_columns && st == GX_OK; ++i) {
        const gx_column *c = &ix->columns[i];
        bin_check b = {.ix = ix, .c = c};
        if (c->bitmaps.encoding == GX_BITMAPS_NONE)
            continue;
        b.words = malloc(n_words * sizeof *b.words);
        b.before = calloc(n_words, sizeof *b.before);
        if (c->bitmaps.encoding == GX_BITMAPS_RANGE)
            b.bins = malloc(64 * n_words * sizeof *b.bins);
        const bool ok = b.words && b.before && (b.bins || c->bitmaps.encoding != GX_BITMAPS_RANGE);
        st = ok ? check_columns(&b, err) : gx_fail(err, GX_ENOMEM, "out of memory");
        free(b.words);
        free(b.before);
        free(b.bins);
    }
    return st;
}
