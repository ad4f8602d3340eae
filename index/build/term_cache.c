#include "index/build/term_cache.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/hash.h"
#include "engine/huge_pages.h"
#include "engine/status.h"
#include "index/analysis/tokenizer.h"

#define MAX_INLINE_TOKEN 11u /* longest token whose bytes are in the slot */
#define FIRST_BITS 12u
#define STOPPED UINT32_MAX

/* Free while tail == 0. */
typedef struct short_slot {
    uint64_t head;   /* the token's first 8 bytes, zeros behind it */
    uint32_t tail;   /* three more, and the length */
    uint32_t number; /* of the term, or STOPPED */
} short_slot;

/* Free while tag == 0. */
typedef struct long_slot {
    uint32_t tag; /* the hash's high half, never 0 */
    uint32_t number;
    uint64_t string; /* in strings: two bytes of length, then the token */
} long_slot;

typedef struct key {
    uint64_t head, hash;
    uint32_t tail; /* 0: a long token */
} key;

struct gx_term_cache {
    gx_analysis *analysis;
    gx_postings_buffer *postings;
    uint64_t seed, factors[2]; /* of the hash functions of long tokens and of short ones; factors are odd */
    short_slot *short_slots;   /* [1 << short_bits], by the hash's high bits */
    uint32_t short_bits;
    uint64_t n_shorts;
    long_slot *long_slots; /* [1 << long_bits], by the hash's low bits */
    uint32_t long_bits;
    uint64_t n_longs;
    char *strings;
    uint64_t strings_bytes, max_strings;
    key *keys;       /* [max_batch] */
    uint32_t *terms; /* [max_batch] */
    uint32_t max_batch;
};

bool gx_term_cache_clear(gx_term_cache *m)
{
    gx_huge_free(m->short_slots, sizeof *m->short_slots << m->short_bits);
    gx_huge_free(m->long_slots, sizeof *m->long_slots << m->long_bits);
    m->n_shorts = m->n_longs = m->strings_bytes = 0;
    m->short_bits = m->long_bits = FIRST_BITS;
    m->short_slots = gx_huge_alloc(sizeof *m->short_slots << FIRST_BITS);
    m->long_slots = gx_huge_alloc(sizeof *m->long_slots << FIRST_BITS);
    return m->short_slots && m->long_slots;
}

gx_status gx_term_cache_open(gx_term_cache **out, gx_analysis *analysis, gx_postings_buffer *postings, gx_error *err)
{
    gx_term_cache *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m || !gx_term_cache_clear(m)) {
        gx_term_cache_close(m);
        return gx_fail(err, GX_ENOMEM, "out of memory for the table of tokens");
    }
    m->analysis = analysis;
    m->postings = postings;
    m->seed = gx_hash_seed();
    m->factors[0] = gx_hash_seed() | 1;
    m->factors[1] = gx_hash_seed() | 1;
    *out = m;
    return GX_OK;
}

void gx_term_cache_close(gx_term_cache *m)
{
    if (!m)
        return;
    gx_huge_free(m->short_slots, sizeof *m->short_slots << m->short_bits);
    gx_huge_free(m->long_slots, sizeof *m->long_slots << m->long_bits);
    free(m->strings);
    free(m->keys);
    free(m->terms);
    free(m);
}

uint64_t gx_term_cache_bytes(const gx_term_cache *m)
{
    return ((uint64_t)sizeof *m->short_slots << m->short_bits) + ((uint64_t)sizeof *m->long_slots << m->long_bits) +
           m->strings_bytes;
}

/* The factors are random, so the slots of two different tokens are, too, whatever the tokens. */
static inline uint64_t mix_token(const gx_term_cache *m, uint64_t head, uint32_t tail)
{
    uint64_t x = head * m->factors[0] + tail * m->factors[1];
    x ^= x >> 32;
    return x * 0xA0761D6478BD642Fu;
}

static inline uint64_t load64(const char *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

/* Masks of the bytes that belong to a token of a given length: of the first 8 bytes, and of the
 * next 3. They are tables, because a branch on the length would be mispredicted. */
static const uint64_t head_masks[MAX_INLINE_TOKEN + 1] = {
    0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF, ~0ull, ~0ull, ~0ull, ~0ull,
};
static const uint32_t tail_masks[MAX_INLINE_TOKEN + 1] = {[9] = 0xFF, [10] = 0xFFFF, [11] = 0xFFFFFF};

/* Bytes behind the token are readable (GX_TOKENIZER_SLACK). */
static inline key make_token_key(const gx_term_cache *m, const char *p, uint32_t len)
{
    key k;
    if (__builtin_expect(len > MAX_INLINE_TOKEN, 0)) {
        k.tail = 0;
        k.hash = XXH3_64bits_withSeed(p, len, m->seed);
        k.head = 0;
        return k;
    }
    const uint64_t a = load64(p), b = load64(p + 3); /* bytes 3 to 10; the upper three of them are 8, 9, 10 */
    k.head = a & head_masks[len];
    k.tail = len << 24 | ((uint32_t)(b >> 40) & tail_masks[len]);
    k.hash = mix_token(m, k.head, k.tail);
    return k;
}

static bool grow_shorts(gx_term_cache *m)
{
    const uint32_t bits = m->short_bits + 1;
    short_slot *s = gx_huge_alloc(sizeof *s << bits);
    if (!s)
        return false;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (uint64_t j = 0; j >> m->short_bits == 0; ++j) {
        const short_slot *old = &m->short_slots[j];
        if (!old->tail)
            continue;
        uint64_t i = mix_token(m, old->head, old->tail) >> (64 - bits);
        while (s[i].tail)
            i = (i + 1) & mask;
        s[i] = *old;
    }
    gx_huge_free(m->short_slots, sizeof *s << m->short_bits);
    m->short_slots = s;
    m->short_bits = bits;
    return true;
}

static bool grow_longs(gx_term_cache *m)
{
    const uint32_t bits = m->long_bits + 1;
    long_slot *s = gx_huge_alloc(sizeof *s << bits);
    if (!s)
        return false;
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (uint64_t j = 0; j >> m->long_bits == 0; ++j) {
        const long_slot *old = &m->long_slots[j];
        if (!old->tag)
            continue;
        const char *p = m->strings + old->string;
        uint64_t i =
            XXH3_64bits_withSeed(p + 2, (size_t)(unsigned char)p[0] | (size_t)(unsigned char)p[1] << 8, m->seed) & mask;
        while (s[i].tag)
            i = (i + 1) & mask;
        s[i] = *old;
    }
    gx_huge_free(m->long_slots, sizeof *s << m->long_bits);
    m->long_slots = s;
    m->long_bits = bits;
    return true;
}

/* Analyse the token for once; false: no memory. *number is the term's, or STOPPED. */
static bool analyze_token(gx_term_cache *m, const char *token, uint32_t len, uint32_t *number)
{
    const char *term;
    size_t n;
    *number = STOPPED;
    if (gx_analysis_term(m->analysis, token, len, &term, &n) != GX_TOKEN_TERM)
        return true;
    *number = gx_postings_buffer_term(m->postings, term, n);
    return *number != GX_NO_TERM;
}

static bool find_long_token(gx_term_cache *m, const char *token, uint32_t len, uint64_t hash, uint32_t *number)
{
    const uint64_t mask = ((uint64_t)1 << m->long_bits) - 1;
    const uint32_t tag = (uint32_t)(hash >> 32) | 1;
    uint64_t i = hash & mask;
    for (; m->long_slots[i].tag; i = (i + 1) & mask) {
        const char *p = m->strings + m->long_slots[i].string;
        if (m->long_slots[i].tag == tag &&
            ((uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8) == len &&
            memcmp(p + 2, token, len) == 0) {
            *number = m->long_slots[i].number;
            return true;
        }
    }
    if (!analyze_token(m, token, len, number))
        return false;
    if (m->strings_bytes + len + 2 > m->max_strings) {
        const uint64_t max = 2 * m->max_strings + len + 4096;
        char *p = realloc(m->strings, max);
        if (!p)
            return false;
        m->strings = p;
        m->max_strings = max;
    }
    char *p = m->strings + m->strings_bytes;
    p[0] = (char)len;
    p[1] = (char)(len >> 8);
    memcpy(p + 2, token, len);
    m->long_slots[i] = (long_slot){tag, *number, m->strings_bytes};
    m->strings_bytes += len + 2;
    return ++m->n_longs << 2 < (uint64_t)3 << m->long_bits || grow_longs(m);
}

static bool add_short_token(gx_term_cache *m, const char *token, uint32_t len, const key *k, uint64_t i,
                            uint32_t *number)
{
    if (!analyze_token(m, token, len, number))
        return false;
    m->short_slots[i] = (short_slot){k->head, k->tail, *number};
    return ++m->n_shorts << 2 < (uint64_t)3 << m->short_bits || grow_shorts(m);
}

static bool reserve_batch(gx_term_cache *m, uint32_t n)
{
    if (n <= m->max_batch)
        return true;
    free(m->keys);
    free(m->terms);
    m->max_batch = 0;
    m->keys = malloc((n + n / 2 + 64ull) * sizeof *m->keys);
    m->terms = malloc((n + n / 2 + 64ull) * sizeof *m->terms);
    if (!m->keys || !m->terms)
        return false;
    m->max_batch = n + n / 2;
    return true;
}

gx_status gx_term_cache_document(gx_term_cache *m, const gx_tokens *tokens, const uint32_t **terms, uint32_t *n,
                                 uint64_t *dropped)
{
    const char *const bytes = tokens->bytes;
    const uint32_t n_tokens = tokens->n;
    if (!reserve_batch(m, n_tokens))
        return GX_ENOMEM;
    key *const keys = m->keys;
    for (uint32_t i = 0; i < n_tokens; ++i) {
        keys[i] = make_token_key(m, bytes + tokens->begin[i], tokens->end[i] - tokens->begin[i]);
        if (keys[i].tail)
            __builtin_prefetch(&m->short_slots[keys[i].hash >> (64 - m->short_bits)]);
        else
            __builtin_prefetch(&m->long_slots[keys[i].hash & (((uint64_t)1 << m->long_bits) - 1)]);
    }
    uint32_t *out = m->terms;
    for (uint32_t i = 0; i < n_tokens; ++i) {
        const key *const k = &keys[i];
        uint32_t number;
        if (__builtin_expect(!k->tail, 0)) {
            const uint32_t len = tokens->end[i] - tokens->begin[i];
            if (len > gx_analysis_max_token(m->analysis)) {
                ++*dropped;
                continue;
            }
            if (!find_long_token(m, bytes + tokens->begin[i], len, k->hash, &number))
                return GX_ENOMEM;
        } else {
            const uint64_t mask = ((uint64_t)1 << m->short_bits) - 1;
            uint64_t at = k->hash >> (64 - m->short_bits);
            const short_slot *s = &m->short_slots[at];
            while (s->tail && (s->tail != k->tail || s->head != k->head)) {
                at = (at + 1) & mask;
                s = &m->short_slots[at];
            }
            number = s->number;
            if (__builtin_expect(!s->tail, 0) &&
                !add_short_token(m, bytes + tokens->begin[i], tokens->end[i] - tokens->begin[i], k, at, &number))
                return GX_ENOMEM;
        }
        *out = number;
        out += number != STOPPED;
    }
    *terms = m->terms;
    *n = (uint32_t)(out - m->terms);
    return GX_OK;
}
