#include "query/engine/filter_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/status.h"
#include "query/engine/masks.h"
#include "query/engine/session.h"

#define N_BUCKETS 16384u
#define DOCS_A_USE 32768u /* documents whose evaluation takes as long as testing the candidates of one query */

typedef struct gx_filter_entry {
    struct gx_filter_entry *next;          /* in its bucket */
    struct gx_filter_entry *older, *newer; /* by last use */
    uint64_t hash;
    size_t len;
    uint64_t uses;
    uint32_t n_holds;
    gx_mask *mask; /* NULL: none yet */
    char text[];   /* [len] */
} entry;

struct gx_filter_cache {
    gx_engine *en;
    uint32_t n_docs;
    uint64_t seed, budget, bytes, mask_bytes;
    pthread_mutex_t lock; /* of what follows, and of the entries */
    entry *buckets[N_BUCKETS];
    entry *oldest, *newest;
};

gx_status gx_filter_cache_open(gx_filter_cache **out, gx_engine *en, uint64_t budget, gx_error *err)
{
    gx_filter_cache *c = *out = calloc(1, sizeof *c);
    if (!c)
        return gx_fail(err, GX_ENOMEM, "no memory for filters");
    c->en = en;
    c->n_docs = gx_engine_index(en)->n_docs;
    c->seed = gx_hash_seed();
    c->budget = budget;
    c->mask_bytes = gx_mask_bytes(c->n_docs);
    pthread_mutex_init(&c->lock, NULL);
    return GX_OK;
}

/* ---- entries; the lock is held ---- */

static uint64_t bytes_of(const gx_filter_cache *c, const entry *e)
{
    return sizeof *e + e->len + (e->mask ? c->mask_bytes : 0);
}

static void unlink_entry(gx_filter_cache *c, entry *e)
{
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
}

static void link_newest(gx_filter_cache *c, entry *e)
{
    e->older = c->newest;
    e->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void drop(gx_filter_cache *c, entry *e)
{
    entry **p = &c->buckets[e->hash % N_BUCKETS];
    while (*p != e)
        p = &(*p)->next;
    *p = e->next;
    unlink_entry(c, e);
    c->bytes -= bytes_of(c, e);
    gx_mask_close(e->mask);
    free(e);
}

/* Make room for `bytes` more. false: what is held leaves none. */
static bool make_room(gx_filter_cache *c, uint64_t bytes)
{
    for (entry *e = c->oldest, *newer; e && c->bytes + bytes > c->budget; e = newer) {
        newer = e->newer;
        if (e->n_holds == 0)
            drop(c, e);
    }
    return c->bytes + bytes <= c->budget;
}

/* The filter's entry, held once more; NULL: no room. */
static entry *find_entry(gx_filter_cache *c, const gx_filter *f)
{
    const uint64_t hash = gx_hash(f->text, f->text_len) ^ c->seed;
    entry *e = c->buckets[hash % N_BUCKETS];
    while (e && (e->hash != hash || e->len != f->text_len || memcmp(e->text, f->text, e->len) != 0))
        e = e->next;
    if (e) {
        unlink_entry(c, e);
    } else {
        if (!make_room(c, sizeof *e + f->text_len) || !(e = calloc(1, sizeof *e + f->text_len)))
            return NULL;
        e->hash = hash;
        e->len = f->text_len;
        memcpy(e->text, f->text, f->text_len);
        e->next = c->buckets[hash % N_BUCKETS];
        c->buckets[hash % N_BUCKETS] = e;
        c->bytes += bytes_of(c, e);
    }
    link_newest(c, e);
    ++e->n_holds;
    ++e->uses;
    return e;
}

/* Give the entry the mask, unless another thread did so before or there is no room. */
static void keep_mask(gx_filter_cache *c, gx_filter_hold *h)
{
    if (h->entry && !h->entry->mask && make_room(c, c->mask_bytes)) {
        h->entry->mask = h->own;
        h->own = NULL;
        c->bytes += c->mask_bytes;
    }
    if (h->entry && h->entry->mask)
        h->mask = h->entry->mask;
}

/* ---- from outside ---- */

void gx_filter_cache_empty(gx_filter_cache *c)
{
    pthread_mutex_lock(&c->lock);
    for (entry *e = c->oldest, *newer; e; e = newer) {
        newer = e->newer;
        if (e->n_holds == 0)
            drop(c, e);
    }
    pthread_mutex_unlock(&c->lock);
}

void gx_filter_cache_close(gx_filter_cache *c)
{
    if (!c)
        return;
    gx_filter_cache_empty(c);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static gx_status make_mask(gx_filter_cache *c, const gx_filter *f, gx_mask **out, gx_error *err)
{
    uint64_t *words = malloc(((size_t)c->n_docs / 64 + 1) * sizeof *words);
    if (!words)
        return gx_fail(err, GX_ENOMEM, "no memory for a filter of %u documents", c->n_docs);
    gx_status st = gx_filter_evaluate(f, words, NULL, err);
    if (st == GX_OK)
        st = gx_mask_open(out, c->en, words, err);
    free(words);
    if (st == GX_OK && !gx_mask_is_ready(*out)) {
        gx_mask_close(*out);
        *out = NULL;
        return gx_fail(err, GX_ECUDA, "GPU: a filter's mask could not be copied to it");
    }
    return st;
}

gx_status gx_filter_cache_get(gx_filter_cache *c, const gx_filter *f, bool need, gx_filter_hold *out, gx_error *err)
{
    *out = (gx_filter_hold){NULL, NULL, NULL};
    if (!f->reads_files) {
        pthread_mutex_lock(&c->lock);
        if ((out->entry = find_entry(c, f))) {
            out->mask = out->entry->mask;
            need = need || (out->entry->uses * DOCS_A_USE >= c->n_docs && out->entry->uses > 1);
        }
        pthread_mutex_unlock(&c->lock);
    }
    if (out->mask || !need)
        return GX_OK;
    const gx_status st = make_mask(c, f, &out->own, err);
    if (st != GX_OK) {
        gx_filter_cache_release(c, out);
        return st;
    }
    out->mask = out->own;
    pthread_mutex_lock(&c->lock);
    keep_mask(c, out);
    pthread_mutex_unlock(&c->lock);
    return GX_OK;
}

void gx_filter_cache_release(gx_filter_cache *c, gx_filter_hold *hold)
{
    gx_mask_close(hold->own);
    if (hold->entry) {
        pthread_mutex_lock(&c->lock);
        --hold->entry->n_holds;
        pthread_mutex_unlock(&c->lock);
    }
    *hold = (gx_filter_hold){NULL, NULL, NULL};
}
