/* bitmap_columns.c: bitmap columns to bits of documents. */
#include "index/attributes/bitmap_columns.h"

#include <string.h>

#include "codecs/decode.h"
#include "codecs/words/bits.h"
#include "engine/lower_bound.h"
#include "engine/status.h"
#include "index/attributes/attributes.h"

static const char *const encodings[] = {"auto", "none", "equality", "range"};
static const char *const binnings[] = {"quantiles", "width", "lloyd"};
enum { N_ENCODINGS = sizeof encodings / sizeof *encodings, N_BINNINGS = sizeof binnings / sizeof *binnings };

/* ---- options ---- */

const char *gx_bitmap_encoding_name(gx_bitmap_encoding e)
{
    return (unsigned)e < N_ENCODINGS ? encodings[e] : "unknown";
}

/* Whether text[len] begins with the key, which ends with '='; *value is then what follows it. */
static bool take_key(const char *text, size_t len, const char *key, const char **value, size_t *value_len)
{
    const size_t n = strlen(key);
    *value = text + n;
    *value_len = len - n;
    return len >= n && memcmp(text, key, n) == 0;
}

static int find_name(const char *const *names, int n, const char *text, size_t len)
{
    int i = 0;
    while (i < n && (strlen(names[i]) != len || memcmp(names[i], text, len) != 0))
        ++i;
    return i;
}

static gx_status read_option(gx_bitmap_options *o, const char *text, size_t len, gx_error *err)
{
    const char *value;
    size_t n;
    if (take_key(text, len, "bitmaps=", &value, &n)) {
        o->encoding = (gx_bitmap_encoding)find_name(encodings, N_ENCODINGS, value, n);
        return (unsigned)o->encoding < N_ENCODINGS
                   ? GX_OK
                   : gx_fail(err, GX_EUSAGE, "bitmaps=%.*s is none of auto, none, equality, range", (int)n, value);
    }
    if (take_key(text, len, "by=", &value, &n)) {
        o->binning = (gx_binning)find_name(binnings, N_BINNINGS, value, n);
        return (unsigned)o->binning < N_BINNINGS
                   ? GX_OK
                   : gx_fail(err, GX_EUSAGE, "by=%.*s is none of quantiles, width, lloyd", (int)n, value);
    }
    if (!take_key(text, len, "bins=", &value, &n))
        return gx_fail(err, GX_EUSAGE, "'%.*s' is none of bitmaps=, bins=, by=", (int)(len < 60 ? len : 60), text);
    o->bins = 0;
    for (size_t i = 0; i < n && o->bins <= GX_MAX_BINS; ++i)
        o->bins = value[i] >= '0' && value[i] <= '9' ? 10 * o->bins + (uint32_t)(value[i] - '0') : UINT32_MAX;
    return o->bins && o->bins <= GX_MAX_BINS ? GX_OK
                                             : gx_fail(err, GX_EUSAGE, "bins=%.*s is no number from 1 to %u",
                                                       (int)(n < 60 ? n : 60), value, GX_MAX_BINS);
}

gx_status gx_bitmap_options_read(gx_bitmap_options *out, const char *text, gx_error *err)
{
    gx_bitmap_options o = {GX_BITMAPS_AUTO, GX_BINS_QUANTILES, 0};
    for (const char *p = text; *p;) {
        const size_t n = strcspn(p, ":");
        const gx_status st = read_option(&o, p, n, err);
        if (st != GX_OK)
            return st;
        p += n;
        p += *p == ':';
    }
    if ((o.bins || o.binning) && o.encoding == GX_BITMAPS_AUTO)
        o.encoding = GX_BITMAPS_RANGE; /* who gives bins wants columns */
    *out = o;
    return GX_OK;
}

/* ---- bins ---- */

uint64_t gx_bitmaps_least(const gx_column *c, uint32_t bin)
{
    return c->bitmaps.least ? gx_raw_value(c->bitmaps.least, c->width, bin) : bin;
}

uint64_t gx_bitmaps_greatest(const gx_column *c, uint32_t bin)
{
    return c->bitmaps.greatest ? gx_raw_value(c->bitmaps.greatest, c->width, bin) : bin;
}

/* Bins whose least value, or greatest value, is below the key, or equal to it. */
static uint32_t count_bins(const gx_column *c, uint64_t (*value)(const gx_column *c, uint32_t bin), uint64_t key,
                           bool or_equal)
{
    uint64_t x;
    GX_FIRST(uint32_t, bin, 0, c->bitmaps.n_bins,
             (x = gx_sort_key(c->type, value(c, bin)), x > key || (!or_equal && x == key)));
    return bin;
}

bool gx_bitmaps_find(const gx_column *c, uint64_t low, uint64_t high, uint32_t *first, uint32_t *last)
{
    const uint32_t begin = count_bins(c, gx_bitmaps_greatest, gx_sort_key(c->type, low), false);
    const uint32_t end = count_bins(c, gx_bitmaps_least, gx_sort_key(c->type, high), true);
    *first = begin;
    *last = end - 1;
    return begin < end;
}

/* ---- bits ---- */

/* The bits of documents [begin, end), begin < end, become `value`. */
static void put_run(uint64_t *words, uint32_t begin, uint32_t end, bool value)
{
    const uint32_t first = begin / 64, last = (end - 1) / 64;
    const uint64_t head = UINT64_MAX << begin % 64, tail = UINT64_MAX >> (63 - (end - 1) % 64);
    if (first == last) {
        words[first] = value ? words[first] | (head & tail) : words[first] & ~(head & tail);
        return;
    }
    words[first] = value ? words[first] | head : words[first] & ~head;
    memset(words + first + 1, value ? 0xff : 0, (size_t)(last - first - 1) * sizeof *words);
    words[last] = value ? words[last] | tail : words[last] & ~tail;
}

/* sorted: the docids rise, so that the last one is the greatest. */
static void put_list(uint64_t *words, const uint32_t *docids, uint32_t n, uint32_t n_docs, bool sorted, bool value)
{
    const bool sure = sorted && docids[n - 1] < n_docs;
    if (sure && value) {
        for (uint32_t i = 0; i < n; ++i)
            words[docids[i] / 64] |= UINT64_C(1) << docids[i] % 64;
        return;
    }
    for (uint32_t i = 0; i < n; ++i) {
        const uint64_t bit = UINT64_C(1) << docids[i] % 64;
        if (docids[i] < n_docs)
            words[docids[i] / 64] = value ? words[docids[i] / 64] | bit : words[docids[i] / 64] & ~bit;
    }
}

/* Borders of runs. A block has 128 of them, so that a run begins and ends in one block. */
static void put_runs(uint64_t *words, const uint32_t *borders, uint32_t n, uint32_t n_docs, bool value)
{
    for (uint32_t i = 0; i + 1 < n; i += 2) {
        const uint32_t end = borders[i + 1] < n_docs ? borders[i + 1] : n_docs;
        if (borders[i] < end)
            put_run(words, borders[i], end, value);
    }
}

static void put_words(uint64_t *words, const uint32_t *from, uint32_t n_docs, bool value)
{
    const size_t n = n_docs / 64;
    uint64_t x;
    for (size_t w = 0; w < n; ++w) {
        memcpy(&x, from + 2 * w, sizeof x);
        words[w] = value ? words[w] | x : words[w] & ~x;
    }
    if (n_docs % 64) {
        x = from[2 * n] | (n_docs % 64 > 32 ? (uint64_t)from[2 * n + 1] << 32 : 0);
        x &= (UINT64_C(1) << n_docs % 64) - 1;
        words[n] = value ? words[n] | x : words[n] & ~x;
    }
}

/* As gx_bitmap_block. *sorted: its numbers rise, whatever the block's words are. */
static uint32_t decode_block(const gx_bitmaps *b, uint32_t column, uint32_t j, uint32_t *numbers, bool *sorted)
{
    const gx_bitmap_entry e = b->directory[column];
    const uint32_t begin = column ? b->directory[column - 1].end : 0, n = gx_bitmap_n(e), n_blocks = (n + 127) / 128;
    const uint32_t *const heads = b->words + begin, *const ends = heads + n_blocks;
    if (j >= n_blocks)
        return 0;
    const bool last = j == n_blocks - 1;
    const uint32_t *const blocks = ends + n_blocks - 1;
    const uint32_t at = j ? ends[j - 1] : 0, to = last ? e.end - begin - (2 * n_blocks - 1) : ends[j];
    const uint32_t m = last ? n - 128 * j : 128;
    gx_decode_docids(&gx_codec_gpubp128, blocks + at, to - at, m, 0, heads[j], numbers);
    *sorted = heads[j] + ((uint64_t)m << gx_packed_width(to - at, m)) <= UINT32_MAX; /* no sum goes round */
    return m;
}

uint32_t gx_bitmap_block(const gx_bitmaps *b, uint32_t column, uint32_t j, uint32_t *numbers)
{
    bool sorted;
    return decode_block(b, column, j, numbers, &sorted);
}

static void put(const gx_bitmaps *b, uint32_t column, uint32_t n_docs, uint64_t *words, bool value)
{
    const gx_bitmap_form form = gx_bitmap_form_of(b->directory[column]);
    uint32_t numbers[128 + 32];
    bool sorted;
    if (form == GX_BITMAP_WORDS) {
        put_words(words, b->words + (column ? b->directory[column - 1].end : 0), n_docs, value);
        return;
    }
    for (uint32_t j = 0, n; (n = decode_block(b, column, j, numbers, &sorted)); ++j) {
        if (form == GX_BITMAP_LIST)
            put_list(words, numbers, n, n_docs, sorted, value);
        else
            put_runs(words, numbers, n, n_docs, value);
    }
}

void gx_bitmap_set(const gx_bitmaps *b, uint32_t column, uint32_t n_docs, uint64_t *words)
{
    put(b, column, n_docs, words, true);
}

void gx_bitmap_clear(const gx_bitmaps *b, uint32_t column, uint32_t n_docs, uint64_t *words)
{
    put(b, column, n_docs, words, false);
}
