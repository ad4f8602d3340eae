#include "index/attributes/attribute_sets.h"

#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"

#define FEW_OTHERS 32u           /* at most one document in so many has GX_SET_OTHER */
#define MOST_SETS (1u << 18)     /* different sets that are looked at */
#define N_SLOTS (4u * MOST_SETS) /* of the hash table */
#define MOST_PROBES 64u          /* of a set: more come from sets that were chosen to have equal hashes */
#define TABLE_PROBES 8u          /* places where a table may be */
#define TABLE_WORDS(N) ((N) / 32 + 1)

/* ---- the different sets ---- */

typedef struct found_set {
    uint32_t document; /* the first that has it */
    uint32_t count, number;
} found_set;

typedef struct finder {
    const gx_column *c;
    uint32_t *slots; /* [N_SLOTS] 1 + the number of a set in `found`; 0: free */
    uint64_t seed;
    found_set *found; /* [MOST_SETS] */
    uint32_t n;
    uint32_t *set_of; /* [n_docs] the document's set in `found` */
} finder;

static const void *values_of(const gx_column *c, uint32_t docid, size_t *bytes)
{
    const gx_value_span v = gx_column_values(c, docid);
    *bytes = (size_t)(v.end - v.begin) * c->width;
    return (const uint8_t *)c->values + (size_t)v.begin * c->width;
}

/* Find or add the document's set. false: there are too many. */
static bool add_document(finder *f, uint32_t docid)
{
    size_t bytes, others;
    const void *const values = values_of(f->c, docid, &bytes);
    uint64_t at = gx_hash(values, bytes) ^ f->seed;
    for (uint32_t probe = 0; probe < MOST_PROBES; ++probe, ++at) {
        uint32_t *slot = &f->slots[at % N_SLOTS];
        if (!*slot) {
            if (f->n == MOST_SETS)
                return false;
            f->found[f->n] = (found_set){docid, 1, 0};
            f->set_of[docid] = f->n;
            *slot = ++f->n;
            return true;
        }
        found_set *const known = &f->found[*slot - 1];
        const void *const same = values_of(f->c, known->document, &others);
        if (bytes == others && memcmp(values, same, bytes) == 0) {
            ++known->count;
            f->set_of[docid] = *slot - 1;
            return true;
        }
    }
    return false;
}

static int by_count(const void *a, const void *b)
{
    const found_set *const x = *(found_set *const *)a, *const y = *(found_set *const *)b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : (x->document > y->document) - (x->document < y->document);
}

/* ---- what is kept of them ---- */

/* Give the most frequent sets their numbers. Returns how many documents have none. */
static uint64_t give_numbers(const finder *f, found_set **sorted, gx_column_sets *s)
{
    uint64_t others = 0;
    for (uint32_t i = 0; i < f->n; ++i)
        sorted[i] = &f->found[i];
    qsort(sorted, f->n, sizeof(found_set *), by_count);
    s->n = f->n < GX_SET_OTHER ? f->n : GX_SET_OTHER;
    for (uint32_t i = 0; i < f->n; ++i) {
        sorted[i]->number = i < s->n ? i : GX_SET_OTHER;
        others += i < s->n ? 0 : sorted[i]->count;
    }
    s->others = others > 0;
    return others;
}

/* The sets of each value. */
static bool list_sets(const gx_column *c, const gx_column_order *o, found_set *const *sorted, gx_column_sets *s)
{
    s->starts = calloc((size_t)o->n_starts + 2, sizeof *s->starts);
    for (int pass = 0; pass < 2 && s->starts; ++pass) {
        uint32_t *const at = s->starts + 1, sum = 0;
        for (uint32_t i = 0; i < s->n; ++i) {
            const gx_value_span values = gx_column_values(c, sorted[i]->document);
            for (uint64_t v = values.begin; v < values.end; ++v) {
                const uint64_t raw = gx_column_raw(c, v);
                if (raw < o->n_starts && pass == 0)
                    ++at[raw];
                else if (raw < o->n_starts)
                    s->sets[at[raw]++] = (uint16_t)i;
            }
        }
        for (uint64_t v = 0; pass == 0 && v < o->n_starts; ++v) { /* from counts to starts, which become ends */
            const uint32_t n = at[v];
            at[v] = sum;
            sum += n;
        }
        if (pass == 0)
            s->sets = malloc(((size_t)sum + 1) * sizeof *s->sets);
        if (!s->sets)
            return false;
    }
    return s->starts != NULL;
}

/* What is kept of the sets that were found; sets->n is 0 if these are too many. NULL: no memory. */
static gx_column_sets *keep(const finder *f, const gx_column_order *o, uint32_t n_docs)
{
    gx_column_sets *s = calloc(1, sizeof *s);
    found_set **sorted = malloc(((size_t)f->n + 1) * sizeof *sorted);
    uint16_t *numbers = malloc(((size_t)n_docs + 2) * sizeof *numbers);
    bool ok = s && sorted && numbers;
    if (ok && give_numbers(f, sorted, s) > n_docs / FEW_OTHERS) {
        s->n = 0;
    } else if (ok) {
        s->counts = malloc(((size_t)s->n + 1) * sizeof *s->counts);
        ok = s->counts && list_sets(f->c, o, sorted, s);
        for (uint32_t i = 0; ok && i < s->n; ++i)
            s->counts[i] = sorted[i]->count;
        memset(numbers, 0, 2 * sizeof *numbers);
        for (uint32_t d = 0; d < n_docs; ++d)
            numbers[d + 2] = (uint16_t)f->found[f->set_of[d]].number;
        s->numbers = numbers + 2;
        numbers = NULL;
    }
    free(numbers);
    free(sorted);
    if (ok)
        return s;
    gx_column_sets_free(s);
    return NULL;
}

static gx_column_sets *make_sets(const gx_column *c, const gx_column_order *o, uint32_t n_docs)
{
    finder f = {.c = c, .seed = gx_hash_seed()};
    gx_column_sets *made = NULL;
    f.slots = calloc(N_SLOTS, sizeof *f.slots);
    f.found = malloc(MOST_SETS * sizeof *f.found);
    f.set_of = malloc(((size_t)n_docs + 1) * sizeof *f.set_of);
    if (f.slots && f.found && f.set_of) {
        uint32_t d = 0;
        while (d < n_docs && add_document(&f, d))
            ++d;
        made = d == n_docs ? keep(&f, o, n_docs) : calloc(1, sizeof *made);
    }
    free(f.slots);
    free(f.found);
    free(f.set_of);
    return made;
}

const gx_column_sets *gx_column_get_sets(const gx_index *ix, gx_column *c)
{
    const gx_column_order *o = c->starts && (uint64_t)ix->n_docs * 2 <= INT32_MAX ? gx_column_get_order(ix, c) : NULL;
    if (!o || !o->starts)
        return NULL;
    gx_column_sets *sets = __atomic_load_n(&c->order->sets, __ATOMIC_ACQUIRE), *first = NULL;
    if (!sets) {
        sets = make_sets(c, o, ix->n_docs);
        if (sets &&
            !__atomic_compare_exchange_n(&c->order->sets, &first, sets, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            gx_column_sets_free(sets); /* another thread was sooner */
            sets = first;
        }
    }
    return sets && sets->n ? sets : NULL;
}

void gx_column_sets_free(gx_column_sets *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < GX_SET_TABLES; ++i)
        free(s->tables[i]);
    if (s->numbers)
        free((uint16_t *)(uintptr_t)s->numbers - 2);
    free(s->counts);
    free(s->starts);
    free(s->sets);
    free(s);
}

/* ---- tables ---- */

static gx_set_table *make_table(const gx_column_order *o, const gx_column_sets *s, uint64_t low, uint64_t high)
{
    gx_set_table *t = calloc(1, sizeof *t + TABLE_WORDS(UINT16_MAX + 1u) * sizeof t->bits[0]);
    if (!t)
        return NULL;
    t->low = low;
    t->high = high;
    const uint64_t end = high < o->n_starts ? high + 1 : o->n_starts;
    for (uint32_t i = low < end ? s->starts[low] : 0; low < end && i < s->starts[end]; ++i) {
        const uint32_t set = s->sets[i], bit = UINT32_C(1) << set % 32;
        t->n_docs += t->bits[set / 32] & bit ? 0 : s->counts[set];
        t->bits[set / 32] |= bit;
    }
    return t;
}

const gx_set_table *gx_column_get_set_table(const gx_column *c, const gx_column_sets *sets, uint64_t low, uint64_t high)
{
    const uint64_t ends[2] = {low, high};
    uint64_t at = gx_hash(ends, sizeof ends);
    for (uint32_t probe = 0; probe < TABLE_PROBES; ++probe, ++at) {
        gx_set_table **const place = (gx_set_table **)(uintptr_t)&sets->tables[at % GX_SET_TABLES];
        gx_set_table *t = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (!t)
            t = gx_column_keep_made((void **)place, make_table(c->order, sets, low, high));
        if (!t || (t->low == low && t->high == high))
            return t;
    }
    return NULL;
}
