#include "index/inversion/vector_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/status.h"
#include "index/write/list_encoder.h"

/* A hash table of the vector's terms, with linear probing. A slot is in use where its number of the
 * vector is the present one, so that no vector has to clear the table. */
typedef struct slot {
    uint64_t vector;
    uint32_t hash, term; /* the hash's high half; the index in the vector */
} slot;

struct gx_vector_check {
    slot *slots; /* [mask + 1], more than twice the terms of any vector so far */
    size_t mask;
    uint64_t vector;
};

#define FIRST_SLOTS 1024u

bool gx_vector_check_open(gx_vector_check **out)
{
    gx_vector_check *c = *out = calloc(1, sizeof *c);
    if (c && !(c->slots = calloc(FIRST_SLOTS, sizeof *c->slots))) {
        free(c);
        *out = NULL;
        return false;
    }
    if (c)
        c->mask = FIRST_SLOTS - 1;
    return c != NULL;
}

void gx_vector_check_close(gx_vector_check *c)
{
    if (c)
        free(c->slots);
    free(c);
}

static bool reserve_slots(gx_vector_check *c, uint32_t n)
{
    size_t slots = c->mask + 1;
    if (2 * (size_t)n < slots)
        return true;
    while (slots <= 2 * (size_t)n)
        slots *= 2;
    slot *p = calloc(slots, sizeof *p);
    if (!p)
        return false;
    free(c->slots);
    c->slots = p;
    c->mask = slots - 1;
    return true;
}

/* Whether the vector has had its term i before. */
static bool seen_before(gx_vector_check *c, const gx_weighted_term *vector, uint32_t i)
{
    const gx_weighted_term *t = &vector[i];
    const uint64_t hash = gx_hash(t->term, t->len);
    slot *s = &c->slots[hash & c->mask];
    for (; s->vector == c->vector; s = &c->slots[(size_t)(s + 1 - c->slots) & c->mask]) {
        const gx_weighted_term *other = &vector[s->term];
        if (s->hash == hash >> 32 && other->len == t->len && memcmp(other->term, t->term, t->len) == 0)
            return true;
    }
    *s = (slot){c->vector, (uint32_t)(hash >> 32), i};
    return false;
}

gx_status gx_vector_check_run(gx_vector_check *c, const gx_weighted_term *vector, uint32_t n, gx_error *err)
{
    char shown[64];
    if (!reserve_slots(c, n))
        return gx_fail(err, GX_ENOMEM, "no memory for a vector of %u terms", n);
    ++c->vector;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_weighted_term *t = &vector[i];
        if (t->len == 0)
            return gx_fail(err, GX_EINPUT, "the vector has an empty term");
        if (t->len > GX_MAX_VECTOR_TERM)
            return gx_fail(err, GX_EINPUT, "the vector has a term of %zu bytes; the most is %u", t->len,
                           GX_MAX_VECTOR_TERM);
        if (!(isfinite(t->weight) && t->weight > 0))
            return gx_fail(err, GX_EINPUT, "the weight of '%s' is %g; it must be a finite number above 0",
                           gx_show_term(t->term, t->len, shown), t->weight);
        if (t->weight > GX_MAX_WEIGHT)
            return gx_fail(err, GX_EINPUT, "the weight of '%s' is %g; the most is %g",
                           gx_show_term(t->term, t->len, shown), t->weight, (double)GX_MAX_WEIGHT);
        if (seen_before(c, vector, i))
            return gx_fail(err, GX_EINPUT, "the vector has the term '%s' twice", gx_show_term(t->term, t->len, shown));
    }
    return GX_OK;
}
