#include "index/write/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/memory/grow.h"
#include "engine/status.h"

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for the attributes of documents");
}

gx_dictionary gx_dictionary_make(void)
{
    return (gx_dictionary){.seed = gx_hash_seed()};
}

void gx_dictionary_free(gx_dictionary *d)
{
    free(d->bytes);
    free(d->ends);
    free(d->slots);
    free(d->ordinals);
    free(d->order);
}

const char *gx_dictionary_get(const gx_dictionary *d, uint32_t i, size_t *len)
{
    const uint64_t begin = i ? d->ends[i - 1] : 0;
    *len = (size_t)(d->ends[i] - begin);
    return d->bytes + begin;
}

static uint64_t hash_of(const gx_dictionary *d, const char *p, size_t n)
{
    return gx_hash(p, n) ^ d->seed;
}

static void put_slot(gx_dictionary *d, uint32_t number)
{
    size_t len;
    const char *p = gx_dictionary_get(d, number, &len);
    const uint64_t mask = (UINT64_C(1) << d->bits) - 1;
    uint64_t slot = hash_of(d, p, len) & mask;
    while (d->slots[slot])
        slot = (slot + 1) & mask;
    d->slots[slot] = number + 1;
}

static bool grow_slots(gx_dictionary *d)
{
    const uint32_t bits = d->bits ? d->bits + 1 : 8;
    uint32_t *slots = calloc((size_t)1 << bits, sizeof *slots);
    if (!slots)
        return false;
    free(d->slots);
    d->slots = slots;
    d->bits = bits;
    for (uint32_t i = 0; i < d->n; ++i)
        put_slot(d, i);
    return true;
}

gx_status gx_dictionary_number(gx_dictionary *d, const char *p, size_t n, uint32_t *number, gx_error *err)
{
    if (d->bits == 0 || d->n >= (UINT64_C(1) << d->bits) / 2)
        if (!grow_slots(d))
            return no_memory(err);
    const uint64_t mask = (UINT64_C(1) << d->bits) - 1;
    for (uint64_t slot = hash_of(d, p, n) & mask; d->slots[slot]; slot = (slot + 1) & mask) {
        size_t len;
        const char *other = gx_dictionary_get(d, d->slots[slot] - 1, &len);
        if (len == n && (n == 0 || memcmp(other, p, n) == 0)) {
            *number = d->slots[slot] - 1;
            return GX_OK;
        }
    }
    if (d->n == INT32_MAX)
        return gx_fail(err, GX_EINPUT, "an attribute has more than %d different strings", INT32_MAX);
    if (gx_grow(&d->bytes, &d->max_bytes, d->n_bytes + n, 1, err) != GX_OK ||
        gx_grow(&d->ends, &d->max_ends, (size_t)d->n + 1, sizeof *d->ends, err) != GX_OK)
        return no_memory(err);
    if (n)
        memcpy(d->bytes + d->n_bytes, p, n);
    d->n_bytes += n;
    d->ends[d->n] = d->n_bytes;
    *number = d->n++;
    put_slot(d, *number);
    return GX_OK;
}

/* A string to be sorted: its number, and its first 8 bytes behind those that all strings begin with. */
typedef struct sorted_string {
    uint64_t prefix; /* the first byte is the highest; zeros behind the end */
    uint32_t number;
} sorted_string;

static int compare_strings(const void *a, const void *b, void *user)
{
    const sorted_string *x = a, *y = b;
    const gx_dictionary *d = user;
    size_t n, m;
    if (x->prefix != y->prefix)
        return x->prefix < y->prefix ? -1 : 1;
    const char *p = gx_dictionary_get(d, x->number, &n), *q = gx_dictionary_get(d, y->number, &m);
    const int order = memcmp(p, q, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

/* How many bytes all n strings begin with. */
static size_t common_prefix(const gx_dictionary *d, const sorted_string *s, uint32_t n)
{
    size_t len = 0, common;
    const char *first = n ? gx_dictionary_get(d, s[0].number, &len) : NULL;
    common = len;
    for (uint32_t i = 1; i < n && common; ++i) {
        const char *p = gx_dictionary_get(d, s[i].number, &len);
        size_t same = 0;
        while (same < common && same < len && p[same] == first[same])
            ++same;
        common = same;
    }
    return common;
}

/* The 8 bytes from `begin` on, as a number. */
static uint64_t prefix_of(const char *p, size_t n, size_t begin)
{
    uint8_t bytes[8] = {0};
    uint64_t prefix = 0;
    memcpy(bytes, p + begin, n - begin < 8 ? n - begin : 8);
    for (int i = 0; i < 8; ++i)
        prefix = prefix << 8 | bytes[i];
    return prefix;
}

gx_status gx_dictionary_sort(gx_dictionary *d, gx_error *err)
{
    free(d->slots); /* no string comes any more */
    d->slots = NULL;
    sorted_string *s = malloc(((size_t)d->n + 1) * sizeof *s);
    d->order = malloc(((size_t)d->n + 1) * sizeof *d->order);
    d->n_used = 0;
    if (!s || !d->order) {
        free(s);
        return no_memory(err);
    }
    for (uint32_t i = 0; i < d->n; ++i)
        if (d->ordinals[i])
            s[d->n_used++].number = i;
    const size_t common = common_prefix(d, s, d->n_used);
    for (uint32_t i = 0; i < d->n_used; ++i) {
        size_t len;
        const char *p = gx_dictionary_get(d, s[i].number, &len);
        s[i].prefix = prefix_of(p, len, common);
    }
    qsort_r(s, d->n_used, sizeof *s, compare_strings, d);
    for (uint32_t i = 0; i < d->n_used; ++i) {
        d->order[i] = s[i].number;
        d->ordinals[s[i].number] = i;
    }
    free(s);
    return GX_OK;
}
