#include "index/write/external_ids.h"

#include <xxhash.h>

#include "engine/hash.h"
#include "engine/memory/huge_pages.h"

/* Free while more is 0; an id's is odd. */
struct gx_external_id_slot {
    uint64_t hash;
    uint32_t more, docid;
};

bool gx_external_ids_open(gx_external_ids *d)
{
    d->n = 0;
    d->bits = 10;
    d->seed = gx_hash_seed();
    d->slots = gx_huge_alloc(sizeof *d->slots << d->bits);
    return d->slots;
}

void gx_external_ids_close(gx_external_ids *d)
{
    gx_huge_free(d->slots, sizeof *d->slots << d->bits);
    d->slots = NULL;
}

static struct gx_external_id_slot *find_slot(struct gx_external_id_slot *slots, uint32_t bits, uint64_t hash,
                                             uint32_t more)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t i = hash >> (64 - bits);
    while (slots[i].more && (slots[i].hash != hash || slots[i].more != more))
        i = (i + 1) & mask;
    return &slots[i];
}

static bool grow_slots(gx_external_ids *d)
{
    const uint32_t bits = d->bits + 1;
    struct gx_external_id_slot *s = gx_huge_alloc(sizeof *s << bits);
    if (!s)
        return false;
    for (uint64_t i = 0; i >> d->bits == 0; ++i)
        if (d->slots[i].more)
            *find_slot(s, bits, d->slots[i].hash, d->slots[i].more) = d->slots[i];
    gx_huge_free(d->slots, sizeof *d->slots << d->bits);
    d->slots = s;
    d->bits = bits;
    return true;
}

gx_id_key gx_external_ids_key(const gx_external_ids *d, const char *id, size_t len)
{
    const XXH128_hash_t h = XXH3_128bits_withSeed(id, len, d->seed);
    return (gx_id_key){h.low64, (uint32_t)h.high64 | 1};
}

void gx_external_ids_prefetch(const gx_external_ids *d, gx_id_key key)
{
    __builtin_prefetch(&d->slots[key.hash >> (64 - d->bits)], 1);
}

uint32_t *gx_external_ids_insert(gx_external_ids *d, gx_id_key key)
{
    if ((uint64_t)d->n * 4 >= (uint64_t)3 << d->bits && !grow_slots(d))
        return NULL;
    struct gx_external_id_slot *s = find_slot(d->slots, d->bits, key.hash, key.more);
    if (!s->more) {
        *s = (struct gx_external_id_slot){key.hash, key.more, UINT32_MAX};
        ++d->n;
    }
    return &s->docid;
}

uint32_t *gx_external_ids_find(const gx_external_ids *d, gx_id_key key)
{
    struct gx_external_id_slot *s = find_slot(d->slots, d->bits, key.hash, key.more);
    return s->more ? &s->docid : NULL;
}
