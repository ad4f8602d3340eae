#include "query/engine/result_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/status.h"
#include "query/engine/collection.h"
#include "query/filter/filter.h"
#include "query/filter/mask.h"

#define MAX_SHARDS 16u
#define LEAST_SHARD ((uint64_t)1 << 20) /* bytes: a shard is split no further */
#define BYTES_A_SLOT 512u               /* bytes of the budget for each slot of a shard's table */
#define ALLOCATION 16u                  /* what malloc adds to a block, at most */
#define MAX_FILTER_BYTES 1024u          /* of a filter's text in a key */
#define MAX_KEY_WORDS (17 + 3 * GX_MAX_TERMS + MAX_FILTER_BYTES / 4)

/* An answer. Its bytes are followed by its keys, and these by the words of its plan's key. */
typedef struct entry {
    struct entry *next;            /* of the slot */
    struct entry *earlier, *later; /* by the last use */
    uint64_t hash;
    uint32_t k, n_hits, n_words;
    uint64_t keys[]; /* [n_hits], then as 32-bit words the key, [n_words], and in a wide collection highs[n_hits] */
} entry;

typedef struct shard {
    const gx_result_cache *cache;
    pthread_mutex_t lock;
    entry **slots; /* [n_slots] chains */
    uint64_t n_slots, bytes, most;
    entry *newest, *oldest;
} shard;

struct gx_result_cache {
    bool wide; /* answers have gx_hits.highs */
    uint32_t n_shards;
    uint64_t seed;
    shard shards[MAX_SHARDS];
};

/* ---- keys ---- */

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* A term of a collection is told by the first part that has it, and its number there. */
static uint32_t write_terms_of_parts(const gx_part_plans *p, uint32_t *words, uint32_t n)
{
    words[n++] = p->query.n_unknown;
    for (uint32_t i = 0; i < p->query.n_terms; ++i) {
        const gx_query_term *t = &p->query.terms[i];
        uint32_t part = 0, list = UINT32_MAX;
        while (part < p->n && (list = gx_index_find_term(p->ix->parts->parts[part].ix, t->term, t->len)) == UINT32_MAX)
            ++part;
        words[n++] = part;
        words[n++] = list;
        words[n++] = bits_of(t->w);
    }
    return n;
}

/* The length of a filter's text, and the text, filled up with zeros. */
static uint32_t write_filter(const gx_filter *f, uint32_t *words)
{
    size_t len = 0;
    const char *text = f ? gx_filter_text(f, &len) : NULL;
    const uint32_t m = (uint32_t)(len + 3) / 4;
    words[0] = (uint32_t)len;
    if (m) {
        words[m] = 0;
        memcpy(words + 1, text, len);
    }
    return m + 1;
}

/* Write the key's words; returns their number. What is left out does not change an answer: base,
 * which is added later, the algorithm, and k, which find and add look at. */
static uint32_t write_key(const gx_plan *p, uint32_t *words)
{
    const uint64_t mask = p->mask ? p->mask->serial : 0;
    uint32_t n = 0;
    words[n++] = (uint32_t)p->op;
    words[n++] = p->op == GX_OP_AND_OR || p->approximate > 0 || gx_plan_skips_blocks(p) ? p->k : 0;
    words[n++] = bits_of(p->approximate);
    words[n++] = p->block_budget;
    words[n++] = bits_of(p->norm.c0);
    words[n++] = bits_of(p->norm.c1);
    words[n++] = (uint32_t)p->norm.lossy | (uint32_t)p->fill << 1;
    words[n++] = (uint32_t)p->exponent;
    words[n++] = p->initial_threshold;
    words[n++] = (uint32_t)mask;
    words[n++] = (uint32_t)(mask >> 32);
    n += write_filter(p->filter, words + n);
    words[n++] = p->parts != NULL;
    if (p->parts)
        return write_terms_of_parts(p->parts, words, n);
    for (uint32_t i = 0; i < p->n_terms; ++i) {
        words[n++] = p->terms[i].list;
        words[n++] = bits_of(p->terms[i].w);
    }
    return n;
}

/* Whether answers to such plans are kept: not those of exhaustive scoring, nor those of filters
 * that are long or read files. */
static bool is_kept(const gx_plan *p)
{
    size_t len = 0;
    if (p->filter)
        gx_filter_text(p->filter, &len);
    return p->prune && !p->n_phrases && (!p->filter || (!p->filter->reads_files && len <= MAX_FILTER_BYTES));
}

static uint64_t hash_key(const gx_result_cache *c, const uint32_t *words, uint32_t n)
{
    return (gx_hash(words, n * sizeof *words) ^ c->seed) * 0x9e3779b97f4a7c15u;
}

static const uint32_t *entry_words(const entry *e)
{
    return (const uint32_t *)(e->keys + e->n_hits);
}

static uint64_t entry_bytes(const gx_result_cache *c, uint32_t n_hits, uint32_t n_words)
{
    const uint64_t hit = sizeof(uint64_t) + (c->wide ? sizeof(uint32_t) : 0);
    return sizeof(entry) + n_hits * hit + n_words * sizeof(uint32_t) + ALLOCATION;
}

/* ---- shards: the caller holds the lock ---- */

static entry **find_entry(shard *s, uint64_t hash, const uint32_t *words, uint32_t n)
{
    entry **at = &s->slots[hash % s->n_slots];
    while (*at && ((*at)->hash != hash || (*at)->n_words != n || memcmp(entry_words(*at), words, n * sizeof *words)))
        at = &(*at)->next;
    return at;
}

static void unlink_use(shard *s, entry *e)
{
    *(e->earlier ? &e->earlier->later : &s->oldest) = e->later;
    *(e->later ? &e->later->earlier : &s->newest) = e->earlier;
}

static void link_newest(shard *s, entry *e)
{
    e->earlier = s->newest;
    e->later = NULL;
    *(s->newest ? &s->newest->later : &s->oldest) = e;
    s->newest = e;
}

/* Forget the entry at which *at points. */
static void forget(shard *s, entry **at)
{
    entry *e = *at;
    *at = e->next;
    unlink_use(s, e);
    s->bytes -= entry_bytes(s->cache, e->n_hits, e->n_words);
    free(e);
}

static void forget_oldest(shard *s)
{
    entry **at = &s->slots[s->oldest->hash % s->n_slots];
    while (*at != s->oldest)
        at = &(*at)->next;
    forget(s, at);
}

/* ---- the cache ---- */

void gx_result_cache_close(gx_result_cache *c)
{
    for (uint32_t i = 0; c && i < c->n_shards; ++i) {
        shard *s = &c->shards[i];
        while (s->oldest)
            forget_oldest(s);
        free(s->slots);
        pthread_mutex_destroy(&s->lock);
    }
    free(c);
}

gx_status gx_result_cache_open(gx_result_cache **out, uint64_t bytes, bool wide, gx_error *err)
{
    gx_result_cache *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return gx_fail(err, GX_ENOMEM, "no memory for a cache of results");
    uint32_t n = 1;
    while (n < MAX_SHARDS && bytes / (2 * n) >= LEAST_SHARD)
        n *= 2;
    c->seed = gx_hash_seed();
    c->wide = wide;
    for (uint32_t i = 0; i < n; ++i) {
        shard *s = &c->shards[i];
        s->cache = c;
        s->most = bytes / n;
        s->n_slots = s->most / BYTES_A_SLOT + 1;
        s->slots = calloc(s->n_slots, sizeof *s->slots);
        if (!s->slots) {
            gx_result_cache_close(c);
            return gx_fail(err, GX_ENOMEM, "no memory for a cache of results");
        }
        s->bytes = s->n_slots * sizeof *s->slots;
        pthread_mutex_init(&s->lock, NULL);
        c->n_shards = i + 1;
    }
    *out = c;
    return GX_OK;
}

uint64_t gx_result_cache_bytes(gx_result_cache *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->n_shards; ++i) {
        pthread_mutex_lock(&c->shards[i].lock);
        sum += c->shards[i].bytes;
        pthread_mutex_unlock(&c->shards[i].lock);
    }
    return sum;
}

/* Whether an answer of up to k results, of which there are n_hits, begins with that of `wanted`. */
static bool is_enough(uint32_t k, uint32_t n_hits, uint32_t wanted)
{
    return k >= wanted || n_hits < k;
}

bool gx_result_cache_find(gx_result_cache *c, const gx_plan *plan, gx_hits *hits)
{
    uint32_t words[MAX_KEY_WORDS];
    if (!is_kept(plan))
        return false;
    const uint32_t n = write_key(plan, words);
    const uint64_t hash = hash_key(c, words, n);
    shard *s = &c->shards[hash >> 32 & (c->n_shards - 1)];
    bool found = false;
    pthread_mutex_lock(&s->lock);
    entry *e = *find_entry(s, hash, words, n);
    if (e && is_enough(e->k, e->n_hits, plan->k)) {
        found = true;
        hits->n = e->n_hits < plan->k ? e->n_hits : plan->k;
        memcpy(hits->keys, e->keys, hits->n * sizeof *hits->keys);
        if (c->wide)
            memcpy(hits->highs, entry_words(e) + e->n_words, hits->n * sizeof *hits->highs);
        unlink_use(s, e);
        link_newest(s, e);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

void gx_result_cache_add(gx_result_cache *c, const gx_plan *plan, const gx_hits *hits)
{
    uint32_t words[MAX_KEY_WORDS];
    if (!is_kept(plan))
        return;
    const uint32_t n = write_key(plan, words);
    const uint64_t hash = hash_key(c, words, n), bytes = entry_bytes(c, hits->n, n);
    shard *s = &c->shards[hash >> 32 & (c->n_shards - 1)];
    if (bytes + s->n_slots * sizeof *s->slots > s->most)
        return;
    entry *made = malloc(bytes - ALLOCATION);
    if (!made)
        return;
    *made = (entry){.hash = hash, .k = plan->k, .n_hits = hits->n, .n_words = n};
    memcpy(made->keys, hits->keys, hits->n * sizeof *hits->keys);
    memcpy(made->keys + hits->n, words, n * sizeof *words);
    if (c->wide)
        memcpy((uint32_t *)(made->keys + hits->n) + n, hits->highs, hits->n * sizeof *hits->highs);
    pthread_mutex_lock(&s->lock);
    entry **at = find_entry(s, hash, words, n);
    if (*at && is_enough((*at)->k, (*at)->n_hits, plan->k)) { /* another thread was faster */
        pthread_mutex_unlock(&s->lock);
        free(made);
        return;
    }
    if (*at)
        forget(s, at);
    while (s->bytes + bytes > s->most)
        forget_oldest(s);
    made->next = s->slots[hash % s->n_slots];
    s->slots[hash % s->n_slots] = made;
    link_newest(s, made);
    s->bytes += bytes;
    pthread_mutex_unlock(&s->lock);
}
