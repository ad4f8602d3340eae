#include "index/inversion/term_cache.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/hash.h"
#include "engine/memory/huge_pages.h"
#include "engine/memory/prefetch.h"
#include "engine/status.h"
#include "index/analysis/tokenizer.h"

#define MAX_INLINE_TOKEN 11u /* longest token whose bytes are in the slot */
#define FIRST_BITS 12u
#define LONG UINT32_MAX
#define STOPPED UINT32_MAX        /* no term: a stop word */
#define TOO_LONG (UINT32_MAX - 1) /* no term: a token that is dropped */

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
    uint64_t head; /* as in the slot; of a long token, the hash */
    uint32_t tail; /* or LONG, which no slot has */
    uint32_t slot; /* the first for a short token; of a long one, any */
} key;

struct gx_term_cache {
    gx_analysis *analysis;
    gx_postings_buffer *postings;
    uint64_t seed, factors[2]; /* of the hash functions of long tokens and of short ones; factors are odd */
    short_slot *short_slots;   /* [n_short_slots], a power of 2 */
    uint64_t n_short_slots, n_shorts;
    long_slot *long_slots; /* [1 << long_bits], by the hash's low bits */
    uint32_t long_bits;
    uint64_t n_longs;
    char *strings;
    uint64_t strings_bytes, max_strings;
    key *keys;           /* [max_batch] */
    uint32_t *terms;     /* [max_batch] */
    uint32_t *positions; /* [max_batch] or NULL: not asked for */
    bool with_positions;
    uint32_t max_batch;
};

bool gx_term_cache_clear(gx_term_cache *m)
{
    gx_huge_free(m->short_slots, m->n_short_slots * sizeof *m->short_slots);
    gx_huge_free(m->long_slots, sizeof *m->long_slots << m->long_bits);
    m->n_shorts = m->n_longs = m->strings_bytes = 0;
    m->n_short_slots = 1u << FIRST_BITS;
    m->long_bits = FIRST_BITS;
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
    gx_huge_free(m->short_slots, m->n_short_slots * sizeof *m->short_slots);
    gx_huge_free(m->long_slots, sizeof *m->long_slots << m->long_bits);
    free(m->strings);
    free(m->keys);
    free(m->terms);
    free(m->positions);
    free(m);
}

uint64_t gx_term_cache_bytes(const gx_term_cache *m)
{
    return m->n_short_slots * sizeof *m->short_slots + ((uint64_t)sizeof *m->long_slots << m->long_bits) +
           m->strings_bytes;
}

/* The first of n slots, a power of 2, for a short token. The factors are random, so the slots of two different tokens
 * are, too, whatever the tokens. */
static inline uint32_t slot_of(const uint64_t factors[2], uint64_t n_slots, uint64_t head, uint32_t tail)
{
    uint64_t x = head * factors[0] + tail * factors[1];
    x ^= x >> 32;
    x *= 0xA0761D6478BD642Fu;
    return (uint32_t)((x >> 32) * n_slots >> 32);
}

/* What belongs to a token of a given length: a mask of its first 8 bytes, one of the next 4, and the length. It is a
 * table, because a branch on the length would be mispredicted. */
static const struct shape {
    uint64_t head;
    uint32_t tail, length;
} shapes[MAX_INLINE_TOKEN + 1] = {
    {0, 0, 0},
    {0xFF, 0, 1u << 24},
    {0xFFFF, 0, 2u << 24},
    {0xFFFFFF, 0, 3u << 24},
    {0xFFFFFFFF, 0, 4u << 24},
    {0xFFFFFFFFFF, 0, 5u << 24},
    {0xFFFFFFFFFFFF, 0, 6u << 24},
    {0xFFFFFFFFFFFFFF, 0, 7u << 24},
    {~0ull, 0, 8u << 24},
    {~0ull, 0xFF, 9u << 24},
    {~0ull, 0xFFFF, 10u << 24},
    {~0ull, 0xFFFFFF, 11u << 24},
};

/* Bytes behind the token are readable (GX_TOKENIZER_SLACK). */
static inline key make_short_key(const uint64_t factors[2], uint64_t n_slots, const char *p, uint32_t len)
{
    const struct shape *const shape = &shapes[len];
    uint64_t head;
    uint32_t tail;
    memcpy(&head, p, sizeof head);
    memcpy(&tail, p + sizeof head, sizeof tail);
    head &= shape->head;
    tail = (tail & shape->tail) | shape->length;
    return (key){head, tail, slot_of(factors, n_slots, head, tail)};
}

static bool grow_shorts(gx_term_cache *m)
{
    const uint64_t n_old = m->n_short_slots, n = 2 * n_old;
    short_slot *s = n <= UINT32_MAX ? gx_huge_alloc(n * sizeof *s) : NULL;
    if (!s)
        return false;
    for (const short_slot *old = m->short_slots; old < m->short_slots + n_old; ++old) {
        if (!old->tail)
            continue;
        uint64_t i = slot_of(m->factors, n, old->head, old->tail);
        while (s[i].tail)
            i = (i + 1) & (n - 1);
        s[i] = *old;
    }
    gx_huge_free(m->short_slots, n_old * sizeof *s);
    m->short_slots = s;
    m->n_short_slots = n;
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
static inline __attribute__((always_inline)) bool analyze_token(gx_term_cache *m, const char *token, uint32_t len,
                                                                uint32_t *number)
{
    const char *term;
    size_t n;
    *number = STOPPED;
    if (gx_analysis_term(m->analysis, token, len, &term, &n) != GX_TOKEN_TERM)
        return true;
    *number = gx_postings_buffer_term(m->postings, term, n);
    return *number != GX_NO_TERM;
}

static inline __attribute__((always_inline)) bool find_long_token(gx_term_cache *m, const char *token, uint32_t len,
                                                                  uint64_t hash, uint32_t *number)
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

static inline __attribute__((always_inline)) bool add_short_token(gx_term_cache *m, const char *token, const key *k,
                                                                  short_slot *free_slot, uint32_t *number)
{
    if (!analyze_token(m, token, k->tail >> 24, number))
        return false;
    *free_slot = (short_slot){k->head, k->tail, *number};
    return ++m->n_shorts * 4 < m->n_short_slots * 3 || grow_shorts(m);
}

static bool reserve_batch(gx_term_cache *m, uint32_t n)
{
    if (n <= m->max_batch)
        return true;
    free(m->keys);
    free(m->terms);
    free(m->positions);
    m->positions = NULL;
    m->max_batch = 0;
    m->keys = malloc((n + n / 2 + 64ull) * sizeof *m->keys);
    m->terms = malloc((n + n / 2 + 64ull) * sizeof *m->terms);
    if (m->with_positions)
        m->positions = malloc((n + n / 2 + 64ull) * sizeof *m->positions);
    if (!m->keys || !m->terms || (m->with_positions && !m->positions))
        return false;
    m->max_batch = n + n / 2;
    return true;
}

/* The keys of tokens [from, n). Their slots are on their way into the cache. */
static void make_keys(gx_term_cache *m, const gx_tokens *tokens, uint32_t from)
{
    const char *const bytes = tokens->bytes;
    const gx_token *t = tokens->ranges + from, *const end = tokens->ranges + tokens->n;
    const uint64_t factors[2] = {m->factors[0], m->factors[1]}, n_slots = m->n_short_slots;
    const short_slot *const slots = m->short_slots;
    for (key *k = m->keys + from; t < end; ++t, ++k) {
        const uint32_t len = t->end - t->begin;
        if (__builtin_expect(len <= MAX_INLINE_TOKEN, 1)) {
            *k = make_short_key(factors, n_slots, bytes + t->begin, len);
            gx_prefetch(&slots[k->slot]);
        } else {
            *k = (key){XXH3_64bits_withSeed(bytes + t->begin, len, m->seed), LONG, 0};
            gx_prefetch(&m->long_slots[k->head & (((uint64_t)1 << m->long_bits) - 1)]);
        }
    }
}

/* The number of a token that is not in the first slot of its key; TOO_LONG: it is dropped. false: no memory. */
static inline __attribute__((always_inline)) bool find_token(gx_term_cache *m, const char *token, uint32_t len,
                                                             const key *k, uint32_t *number)
{
    if (k->tail == LONG && len > gx_analysis_max_token(m->analysis)) {
        *number = TOO_LONG;
        return true;
    }
    if (k->tail == LONG)
        return find_long_token(m, token, len, k->head, number);
    short_slot *s = &m->short_slots[k->slot], *const end = m->short_slots + m->n_short_slots;
    while (s->tail && (s->tail != k->tail || s->head != k->head))
        s = s + 1 < end ? s + 1 : m->short_slots;
    *number = s->number;
    return s->tail || add_short_token(m, token, k, s, number);
}

/* The tokens' terms; with `positions` the place of each term among the tokens, too. */
static inline __attribute__((always_inline)) gx_status look_up(gx_term_cache *m, const gx_tokens *tokens,
                                                               bool positions, uint32_t *n, uint64_t *dropped)
{
    if (!reserve_batch(m, tokens->n))
        return GX_ENOMEM;
    make_keys(m, tokens, 0);
    const short_slot *slots = m->short_slots;
    uint32_t *out = m->terms;
    for (const key *k = m->keys, *const end = k + tokens->n; k < end; ++k) {
        uint32_t number = slots[k->slot].number;
        if (__builtin_expect(slots[k->slot].tail != k->tail || slots[k->slot].head != k->head, 0)) {
            const uint32_t i = (uint32_t)(k - m->keys);
            const gx_token t = tokens->ranges[i];
            if (!find_token(m, tokens->bytes + t.begin, t.end - t.begin, k, &number))
                return GX_ENOMEM;
            *dropped += number == TOO_LONG;
            if (slots != m->short_slots) { /* they have grown */
                slots = m->short_slots;
                make_keys(m, tokens, i + 1);
            }
        }
        *out = number;
        if (positions)
            m->positions[out - m->terms] = (uint32_t)(k - m->keys);
        out += number < TOO_LONG;
    }
    *n = (uint32_t)(out - m->terms);
    return GX_OK;
}

gx_status gx_term_cache_document(gx_term_cache *m, const gx_tokens *tokens, const uint32_t **terms, uint32_t *n,
                                 uint64_t *dropped)
{
    const gx_status st = look_up(m, tokens, false, n, dropped);
    *terms = m->terms;
    return st;
}

gx_status gx_term_cache_positions(gx_term_cache *m, const gx_tokens *tokens, const uint32_t **terms,
                                  uint32_t **positions, uint32_t *n, uint64_t *dropped)
{
    m->with_positions = true;
    if (m->max_batch && !m->positions)
        m->max_batch = 0;
    const gx_status st = look_up(m, tokens, true, n, dropped);
    *terms = m->terms;
    *positions = m->positions;
    return st;
}
