#include "index/attributes/attribute_codes.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORDS_SHIFT 2u
#define MAX_CODES(WIDTH) ((1u << 8 * (WIDTH)) - 3)
#define FEW_MORE 32u /* words are added until less than one document in so many has MORE */

/* How many codes values have, at most `most`: the values themselves, or places in the order. */
static uint32_t count_codes(const gx_column_order *o, uint32_t most, bool *of_values, uint8_t *shift)
{
    uint64_t n = o->n_starts;
    *shift = 0;
    while (n && o->starts[n - 1] == o->n)
        --n;
    *of_values = o->n_starts && n <= most;
    if (*of_values)
        return (uint32_t)n;
    while (o->n && (o->n - 1) >> *shift >= most)
        ++*shift;
    return o->n ? (uint32_t)((o->n - 1) >> *shift) + 1 : 0;
}

/* The shift of as many words as have room for the values of all documents but few. */
static uint8_t count_words(const gx_column *c, uint32_t n_docs, uint8_t width)
{
    const uint32_t a_word = 4u / width;
    uint32_t longer[MAX_WORDS_SHIFT + 1] = {0};
    uint8_t shift = 0;
    for (uint32_t d = 0; d < n_docs; ++d) {
        for (uint32_t s = 0; s <= MAX_WORDS_SHIFT; ++s)
            longer[s] += c->starts[d + 1] - c->starts[d] > a_word << s;
    }
    while (shift < MAX_WORDS_SHIFT && longer[shift] > n_docs / FEW_MORE)
        ++shift;
    return shift;
}

static void put(uint8_t *codes, uint8_t width, size_t i, uint32_t code)
{
    memcpy(codes + i * width, &code, width); /* x86 and GPUs: the lowest byte first */
}

static uint32_t get(const uint8_t *codes, uint8_t width, size_t i)
{
    uint32_t code = 0;
    memcpy(&code, codes + i * width, width);
    return code;
}

/* Give the document one more code. It has n_codes, of which those that are free are NONE; the last may be MORE. */
static void add(const gx_column_codes *k, uint8_t *codes, uint32_t docid, uint32_t n_codes, uint32_t code)
{
    const size_t begin = (size_t)docid * n_codes;
    for (uint32_t i = 0; i < n_codes; ++i) {
        if (get(codes, k->width, begin + i) == gx_code_none(k)) {
            put(codes, k->width, begin + i, code);
            return;
        }
    }
}

static void fill(const gx_column *c, const gx_column_order *o, uint32_t n_docs, const gx_column_codes *k,
                 uint8_t *codes)
{
    const uint32_t n_codes = c->starts ? (4u << k->words_shift) / k->width : 1;
    for (size_t i = 0; i < (size_t)n_docs * n_codes; ++i)
        put(codes, k->width, i, gx_code_none(k));
    for (uint32_t d = 0; c->starts && d < n_docs; ++d) {
        if (c->starts[d + 1] - c->starts[d] > n_codes)
            put(codes, k->width, (size_t)d * n_codes + n_codes - 1, gx_code_more(k));
    }
    uint64_t value = 0;
    for (uint64_t at = 0; at < o->n; ++at) {
        while (k->of_values && o->starts[value + 1] <= at)
            ++value;
        add(k, codes, o->docids[at], n_codes, (uint32_t)(k->of_values ? value : at >> k->shift));
    }
}

static gx_column_codes *make_codes(const gx_column *c, const gx_column_order *o, uint32_t n_docs)
{
    bool of_values;
    uint8_t shift;
    const uint32_t most = c->starts ? MAX_CODES(1) : MAX_CODES(2); /* the smaller, the more codes a word has */
    const uint8_t width = count_codes(o, most, &of_values, &shift) <= MAX_CODES(1) ? 1 : 2;
    const uint8_t words_shift = c->starts ? count_words(c, n_docs, width) : 0;
    const uint64_t bytes = (uint64_t)n_docs * (c->starts ? 4u << words_shift : width);
    gx_column_codes *k = bytes <= INT32_MAX ? calloc(1, sizeof *k + 4 + (size_t)bytes) : NULL;
    if (!k)
        return NULL;
    uint8_t *codes = (uint8_t *)(k->memory + 1);
    *k = (gx_column_codes){width, words_shift, of_values, shift, codes};
    fill(c, o, n_docs, k, codes);
    return k;
}

const gx_column_codes *gx_column_get_codes(const gx_index *ix, gx_column *c)
{
    const gx_column_order *o = gx_column_get_order(ix, c);
    if (!o)
        return NULL;
    gx_column_codes *made = __atomic_load_n(&c->order->codes, __ATOMIC_ACQUIRE);
    return made ? made : gx_column_keep_made((void **)&c->order->codes, make_codes(c, o, ix->n_docs));
}

bool gx_column_code_range(const gx_column *c, const gx_column_codes *codes, uint64_t low, uint64_t high,
                          gx_code_range *out)
{
    const uint32_t unused = gx_code_unused(codes);
    const gx_place_bounds b = gx_column_order_bracket(c, c->order, low, high);
    if (b.begin_least >= b.end_most)
        return false;
    if (codes->of_values) {
        high = high < unused ? high : unused - 1;
        *out =
            (gx_code_range){(uint32_t)low, (uint32_t)high, (uint32_t)low, (uint32_t)high, b.end_most - b.begin_least};
        return true;
    }
    const uint64_t places = UINT64_C(1) << codes->shift, inner = (b.begin_most + places - 1) >> codes->shift,
                   end = b.end_least == c->order->n ? b.end_least + places - 1 : b.end_least,
                   inner_end = end >> codes->shift;
    *out = (gx_code_range){(uint32_t)(b.begin_least >> codes->shift), (uint32_t)((b.end_most - 1) >> codes->shift),
                           unused, unused, b.end_most - b.begin_least};
    if (inner < inner_end) {
        out->inner_first = (uint32_t)inner;
        out->inner_last = (uint32_t)(inner_end - 1);
    }
    return true;
}

const uint32_t *gx_column_get_documents(const gx_index *ix, const gx_column *c, uint64_t value)
{
    gx_column_order *o = __atomic_load_n(&c->order, __ATOMIC_ACQUIRE);
    if (!o || value >= o->n_starts ||
        (uint64_t)(o->starts[value + 1] - o->starts[value]) * GX_COMMON_VALUE < ix->n_docs)
        return NULL;
    uint32_t **all = __atomic_load_n(&o->documents, __ATOMIC_ACQUIRE);
    if (!all)
        all = gx_column_keep_made((void **)&o->documents, calloc((size_t)o->n_starts, sizeof *all));
    uint32_t *words = all ? __atomic_load_n(&all[value], __ATOMIC_ACQUIRE) : NULL;
    if (!all || words || __atomic_load_n(&o->n_documents, __ATOMIC_RELAXED) >= GX_MAX_COMMON)
        return words;
    __atomic_fetch_add(&o->n_documents, 1, __ATOMIC_RELAXED);
    words = calloc((size_t)ix->n_docs / 32 + 1 + GX_BITS_SLACK, sizeof *words);
    for (uint32_t i = o->starts[value]; words && i < o->starts[value + 1]; ++i)
        words[o->docids[i] / 32] |= UINT32_C(1) << o->docids[i] % 32;
    return gx_column_keep_made((void **)&all[value], words);
}

bool gx_column_has_within(const gx_column *c, uint32_t docid, uint64_t low, uint64_t high)
{
    const uint64_t least = gx_sort_key(c->type, low), span = gx_sort_key(c->type, high) - least;
    const uint64_t begin = c->starts ? c->starts[docid] : docid, end = c->starts ? c->starts[docid + 1] : begin + 1;
    bool within = false;
    for (uint64_t i = begin; i < end && !within && gx_column_has(c, docid); ++i)
        within = gx_sort_key(c->type, gx_column_raw(c, i)) - least <= span;
    return within;
}
