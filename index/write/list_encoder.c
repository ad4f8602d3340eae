#include "index/write/list_encoder.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/auto_codec.h"
#include "codecs/positions.h"
#include "engine/hash.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/format.h"

#define MAX_KEPT_WORDS (1u << 16) /* words; memory for more is not kept */

const char *gx_show_term(const char *term, size_t len, char buffer[64])
{
    const size_t n = len < 60 ? len : 60;
    for (size_t i = 0; i < n; ++i)
        buffer[i] = (unsigned char)term[i] < 0x20 || term[i] == 0x7f ? '?' : term[i];
    strcpy(buffer + n, n < len ? "..." : "");
    return buffer;
}

void gx_list_encoder_open(gx_list_encoder *c, const gx_codec *docids, const gx_codec *tfs, uint32_t n_docs)
{
    *c = (gx_list_encoder){.docids = docids, .tfs = tfs, .n_docs = n_docs};
}

void gx_list_encoder_close(gx_list_encoder *c)
{
    void *const memory[] = {c->lists,      c->hashes,  c->terms, c->words,          c->heads,
                            c->docid_ends, c->tf_ends, c->gaps,  c->position_words, c->position_lens,
                            c->field_bytes.bytes, c->field_tfs};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i)
        free(memory[i]);
    *c = (gx_list_encoder){0};
}

void gx_list_encoder_clear(gx_list_encoder *c)
{
    if (c->max_words > MAX_KEPT_WORDS) { /* many of these may be open */
        free(c->words);
        c->words = NULL;
        c->max_words = 0;
    }
    if (c->max_position_words > MAX_KEPT_WORDS) {
        free(c->position_words);
        c->position_words = NULL;
        c->max_position_words = 0;
    }
    c->n_position_words = 0;
    c->n_lists = c->n_terms = c->n_words = c->n_blocks = c->fall = 0;
    c->field_bytes.n = 0;
}

/* ---- a list ---- */

/* d-gaps less one of d[n], the first of each block 0. False if d does not rise. */
static bool to_gaps(const uint32_t *restrict d, uint32_t n, uint32_t *restrict gaps)
{
    uint32_t falls = 0;
    gaps[0] = 0;
    for (uint32_t i = 1; i < n; ++i) {
        gaps[i] = d[i] - d[i - 1] - 1;
        falls |= d[i] <= d[i - 1];
    }
    return !falls;
}

/* tf - 1. False if a tf is 0. */
static bool to_tfs_less_one(const uint32_t *restrict tfs, uint32_t n, uint32_t *restrict counts, uint64_t *sum)
{
    uint32_t zero = 0;
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; ++i) {
        counts[i] = tfs[i] - 1;
        zero |= tfs[i] == 0;
        total += tfs[i];
    }
    *sum += total;
    return !zero;
}

/* Collect one half of a list, docids or tfs, in c->gaps. */
static gx_status load_stream(gx_list_encoder *c, bool is_docids, const uint32_t *values, uint32_t df, gx_error *err)
{
    const gx_status st = gx_grow(&c->gaps, &c->max_gaps, df, sizeof *c->gaps, err);
    if (st != GX_OK)
        return st;
    uint64_t ignored = 0;
    for (uint32_t at = 0, n; at < df; at += n) {
        n = df - at < c->docids->block_len ? df - at : c->docids->block_len;
        if (is_docids)
            to_gaps(values + at, n, c->gaps + at);
        else
            to_tfs_less_one(values + at, n, c->gaps + at, &ignored);
    }
    return GX_OK;
}

/* The codec that a half is packed with, and its parameter: of candidates the one that costs least.
 * */
static gx_status choose_codec(gx_list_encoder *c, bool is_docids, const uint32_t *values, uint32_t df, gx_choice *best,
                              gx_error *err)
{
    const gx_codec *const codec = is_docids ? c->docids : c->tfs;
    const bool open = codec == &gx_codec_auto;
    if (open || codec->param) {
        const gx_status st = load_stream(c, is_docids, values, df, err);
        if (st != GX_OK)
            return st;
    }
    if (!open) {
        *best = (gx_choice){codec, codec->param ? codec->param(c->gaps, df) : 0, 0};
        return GX_OK;
    }
    gx_choice choices[GX_MAX_CHOICES];
    gx_choices(is_docids, c->gaps, df, (double)df / c->n_docs, choices);
    *best = choices[0];
    for (uint32_t i = 1; i < GX_MAX_CHOICES; ++i)
        if (choices[i].cost < best->cost)
            *best = choices[i];
    return GX_OK;
}

/* Make room for what is kept of each block of a list, except its words. */
static gx_status reserve_blocks(gx_list_encoder *c, size_t n, gx_error *err)
{
    gx_status st = gx_grow(&c->gaps, &c->max_gaps, c->docids->block_len, sizeof *c->gaps, err);
    if (st == GX_OK)
        st = gx_grow(&c->heads, &c->max_heads, c->n_blocks + n, sizeof *c->heads, err);
    if (st == GX_OK)
        st = gx_grow(&c->docid_ends, &c->max_docid_ends, c->n_blocks + n, sizeof *c->docid_ends, err);
    return st == GX_OK ? gx_grow(&c->tf_ends, &c->max_tf_ends, c->n_blocks + n, sizeof *c->tf_ends, err) : st;
}

/* Encode the docids or the tfs of a list. */
typedef struct stream {
    bool is_docids;
    gx_choice choice;
    const uint32_t *values; /* [df] */
    uint32_t *ends;         /* out: where each block ends among the list's words */
    uint64_t sum_tfs;       /* out, of tfs */
} stream;

/* Blocks go to c->words; *words counts those of both streams. */
static gx_status encode_stream(gx_list_encoder *c, stream *s, uint32_t df, uint64_t *words, gx_error *err)
{
    const gx_codec *const codec = s->choice.codec;
    const uint32_t *const values = s->values;
    const uint32_t block_len = c->docids->block_len;
    for (uint32_t at = 0, n; at < df; at += n) {
        n = df - at < block_len ? df - at : block_len;
        const bool good = s->is_docids ? to_gaps(values + at, n, c->gaps) && (at == 0 || values[at] > values[at - 1])
                                       : to_tfs_less_one(values + at, n, c->gaps, &s->sum_tfs);
        if (!good)
            return gx_fail(err, GX_EUSAGE, s->is_docids ? "docids do not rise" : "a tf is 0");
        const gx_status st =
            gx_grow(&c->words, &c->max_words, c->n_words + *words + codec->max_words(n), sizeof *c->words, err);
        if (st != GX_OK)
            return st;
        *words += codec->encode(c->gaps, n, s->choice.param, c->words + c->n_words + *words);
        if (*words > UINT32_MAX)
            return gx_fail(err, GX_EUSAGE, "the list takes more than 2^32 words");
        s->ends[at / block_len] = (uint32_t)*words;
    }
    return GX_OK;
}

/* The values of n postings (codecs/positions.h). *positions moves on. false: positions do not rise, or are too high. */
static bool to_position_gaps(const uint32_t **positions, const uint32_t *tfs, uint32_t n, uint32_t *restrict gaps)
{
    const uint32_t *restrict p = *positions;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t least = 0;
        for (const uint32_t *const end = p + tfs[i]; p < end; ++p) {
            *gaps++ = *p - least;
            wrong |= (*p < least) | (*p > GX_MAX_POSITION);
            least = *p + 1;
        }
    }
    *positions = p;
    return !wrong;
}

/* Encode the positions of a list, whose other streams are encoded. */
static gx_status encode_positions(gx_list_encoder *c, const gx_term_postings *list, gx_error *err)
{
    const uint32_t block_len = c->docids->block_len, n_blocks = (list->df - 1) / block_len + 1;
    const uint32_t *positions = list->positions, *values = list->gaps;
    if (!positions && !values)
        return gx_fail(err, GX_EUSAGE, "it has no positions");
    gx_status st = gx_grow(&c->position_lens, &c->max_position_lens, c->n_blocks + n_blocks, sizeof(uint32_t), err);
    for (uint32_t j = 0; j < n_blocks && st == GX_OK; ++j) {
        const uint32_t at = j * block_len, n = list->df - at < block_len ? list->df - at : block_len;
        uint64_t sum = 0;
        for (uint32_t i = 0; i < n; ++i)
            sum += list->tfs[at + i];
        st = values ? GX_OK : gx_grow(&c->gaps, &c->max_gaps, sum, sizeof *c->gaps, err);
        if (st == GX_OK)
            st = gx_grow(&c->position_words, &c->max_position_words, c->n_position_words + gx_positions_max_words(sum),
                         sizeof(uint32_t), err);
        if (st != GX_OK)
            return st;
        if (!values && !to_position_gaps(&positions, list->tfs + at, n, c->gaps))
            return gx_fail(err, GX_EUSAGE, "positions in a document do not rise, or are above %u", GX_MAX_POSITION);
        const uint64_t words =
            gx_positions_encode(values ? values : c->gaps, sum, c->position_words + c->n_position_words);
        values += values ? sum : 0;
        if (words > UINT32_MAX)
            return gx_fail(err, GX_EUSAGE, "the positions of a block take more than 2^32 words");
        c->position_lens[c->n_blocks + j] = (uint32_t)words;
        c->n_position_words += words;
    }
    return st;
}

static gx_status encode_blocks(gx_list_encoder *c, gx_encoded_list *l, const gx_term_postings *list, gx_error *err)
{
    const uint32_t *const docids = list->docids, *const tfs = list->tfs;
    const uint32_t block_len = c->docids->block_len, n_blocks = (l->df - 1) / block_len + 1;
    stream of_docids = {.is_docids = true, .values = docids}, of_tfs = {.values = tfs};
    gx_status st = choose_codec(c, true, docids, l->df, &of_docids.choice, err);
    if (st == GX_OK)
        st = choose_codec(c, false, tfs, l->df, &of_tfs.choice, err);
    if (st == GX_OK)
        st = reserve_blocks(c, n_blocks, err);
    if (st != GX_OK)
        return st;
    of_docids.ends = c->docid_ends + c->n_blocks;
    of_tfs.ends = c->tf_ends + c->n_blocks;
    uint64_t words = 0;
    st = encode_stream(c, &of_docids, l->df, &words, err);
    if (st == GX_OK && docids[l->df - 1] >= c->n_docs)
        st = gx_fail(err, GX_EUSAGE, "docid %u, of %u documents", docids[l->df - 1], c->n_docs);
    if (st == GX_OK)
        st = encode_stream(c, &of_tfs, l->df, &words, err);
    if (st == GX_OK && c->with_positions)
        st = encode_positions(c, list, err);
    if (st != GX_OK)
        return st;
    for (uint32_t j = 0; j < n_blocks; ++j)
        c->heads[c->n_blocks + j] = docids[(size_t)j * block_len];
    l->n_words = (uint32_t)words;
    l->docids = of_docids.choice.codec;
    l->tfs = of_tfs.choice.codec;
    l->docid_param = of_docids.choice.param;
    l->tf_param = of_tfs.choice.param;
    l->sum_tfs = of_tfs.sum_tfs;
    c->n_words += words;
    c->n_blocks += n_blocks;
    return GX_OK;
}

bool gx_terms_rise(const char *last, size_t last_len, const char *term, size_t len)
{
    const size_t common = len < last_len ? len : last_len;
    const int order = common ? memcmp(last, term, common) : 0;
    return order < 0 || (order == 0 && last_len < len);
}

/* Count a list's tfs by field, by its positions and where each document's fields end. */
static gx_status count_fields(gx_list_encoder *c, const gx_term_postings *list, gx_error *err)
{
    const uint32_t n = c->n_fields - 1, *value = list->positions ? list->positions : list->gaps;
    const gx_status st =
        gx_grow(&c->field_tfs, &c->max_field_tfs, (size_t)list->df * n + 1, sizeof *c->field_tfs, err);
    if (st != GX_OK)
        return st;
    memset(c->field_tfs, 0, (size_t)list->df * n * sizeof *c->field_tfs);
    for (uint32_t i = 0; i < list->df; ++i) {
        const uint32_t *const lens = c->field_positions + (size_t)list->docids[i] * n;
        uint32_t *const tfs = c->field_tfs + (size_t)i * n, f = 0;
        uint64_t end = lens[0], at = 0;
        for (const uint32_t *const behind = value + list->tfs[i]; value < behind; ++value) {
            at = list->positions ? *value : at + *value;
            while (f < n && at >= end)
                end += ++f < n ? lens[f] : 0;
            if (f == n) {
                value = behind;
                break;
            }
            ++tfs[f];
            ++at;
        }
    }
    return GX_OK;
}

/* The tfs by field. */
static gx_status encode_fields(gx_list_encoder *c, gx_encoded_list *l, const gx_term_postings *given, gx_error *err)
{
    char shown[64];
    gx_term_postings own = *given;
    const gx_term_postings *const list = &own;
    const uint32_t n = c->n_fields - 1;
    const size_t before = c->field_bytes.n;
    if (n == 0)
        return GX_OK;
    if (!c->field_lens)
        return gx_fail(err, GX_ENOMEM, "out of memory: lengths by field");
    if (c->with_positions && c->field_positions) {
        const gx_status st = count_fields(c, given, err);
        if (st != GX_OK)
            return st;
        own.field_tfs = c->field_tfs;
    }
    if (!list->field_tfs)
        return gx_fail(err, GX_EUSAGE, "list of term '%s': tfs by field are missing",
                       gx_show_term(list->term, list->len, shown));
    for (uint32_t i = 0; i < list->df; ++i) {
        uint64_t sum = 0;
        for (uint32_t f = 0; f < n; ++f) {
            const uint32_t tf = list->field_tfs[(size_t)i * n + f];
            sum += tf;
            if (tf)
                __atomic_fetch_add(&c->field_lens[(size_t)list->docids[i] * n + f], tf, __ATOMIC_RELAXED);
        }
        if (sum > list->tfs[i])
            return gx_fail(err, GX_EUSAGE, "list of term '%s': tfs by field add up to more than the tf",
                           gx_show_term(list->term, list->len, shown));
    }
    if (!gx_field_tfs_encode(&c->field_bytes, list->tfs, list->field_tfs, list->df, c->n_fields))
        return gx_fail(err, GX_ENOMEM, "out of memory");
    l->field_bytes = c->field_bytes.n - before;
    return GX_OK;
}

/* Note where the order of terms is first broken. */
static void note_order(gx_list_encoder *c, const gx_term_postings *list)
{
    if (c->n_lists == 0 || c->fall)
        return;
    const size_t last_len = c->lists[c->n_lists - 1].term_len;
    if (!gx_terms_rise(c->terms + c->n_terms - last_len, last_len, list->term, list->len))
        c->fall = c->n_lists;
}

gx_status gx_list_encoder_add(gx_list_encoder *c, const gx_term_postings *list, gx_error *err)
{
    const char *const term = list->term;
    const size_t len = list->len;
    const uint32_t df = list->df;
    char shown[64];
    gx_error words;
    if (len > GX_MAX_STRING)
        return gx_fail(err, GX_EUSAGE, "term '%s' has %zu bytes; the most is %u", gx_show_term(term, len, shown), len,
                       GX_MAX_STRING);
    if (df == 0 || df > c->n_docs)
        return gx_fail(err, GX_EUSAGE, "term '%s' has %u postings; there are %u documents",
                       gx_show_term(term, len, shown), df, c->n_docs);
    gx_encoded_list l = {.term_len = (uint32_t)len, .df = df, .unit = list->unit};
    gx_status st = gx_grow(&c->lists, &c->max_lists, c->n_lists + 1, sizeof *c->lists, err);
    if (st == GX_OK)
        st = gx_grow(&c->hashes, &c->max_hashes, c->n_lists + 1, sizeof *c->hashes, err);
    if (st == GX_OK)
        st = gx_grow(&c->terms, &c->max_terms, c->n_terms + len, 1, err);
    if (st != GX_OK)
        return st;
    if ((st = encode_blocks(c, &l, list, &words)) == GX_EUSAGE)
        return gx_fail(err, st, "list of term '%s': %s", gx_show_term(term, len, shown), words.text);
    if (st != GX_OK)
        return gx_fail(err, st, "%s", words.text);
    if (c->n_fields && (st = encode_fields(c, &l, list, err)) != GX_OK)
        return st;
    note_order(c, list);
    if (len) /* the first term may be empty, and term NULL */
        memcpy(c->terms + c->n_terms, term, len);
    c->n_terms += len;
    c->hashes[c->n_lists] = (uint32_t)gx_hash(term, len);
    c->lists[c->n_lists++] = l;
    return GX_OK;
}
