/* choose.c: of documents of one file, the first k. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/attributes/attribute_order.h"
#include "query/order/ordered.h"

static gx_status no_memory(gx_ordering *o, size_t n)
{
    return gx_fail(o->err, GX_ENOMEM, "no memory to sort %zu documents", n);
}

static bool is_before(gx_keyed a, gx_keyed b)
{
    return a.key != b.key ? a.key < b.key : a.docid < b.docid;
}

static gx_keyed *median(gx_keyed *a, gx_keyed *b, gx_keyed *c)
{
    if (is_before(*a, *b))
        return is_before(*b, *c) ? b : is_before(*a, *c) ? c : a;
    return is_before(*a, *c) ? a : is_before(*b, *c) ? c : b;
}

static void swap(gx_keyed *a, gx_keyed *b)
{
    const gx_keyed other = *a;
    *a = *b;
    *b = other;
}

/* Hoare's selection. No two are equal. Two of the three that give the pivot are drawn by a fixed sequence, so that
 * no common order of documents makes it slow. */
void gx_keyed_select(gx_keyed *p, size_t n, size_t k)
{
    size_t low = 0, high = n;
    uint64_t seed = n;
    while (k > low && k < high) {
        const size_t m = high - low;
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        swap(&p[low], median(&p[low + (seed >> 40) % m], &p[low + m / 2], &p[low + (seed >> 16) % m]));
        const gx_keyed pivot = p[low];
        size_t i = low, j = high;
        for (;;) { /* p[low, i) are not behind the pivot, p[j, high) not before it */
            do
                --j;
            while (is_before(pivot, p[j]));
            while (is_before(p[i], pivot))
                ++i;
            if (i >= j)
                break;
            swap(&p[i++], &p[j]);
        }
        if (k == j + 1)
            return;
        if (k <= j)
            high = j + 1;
        else
            low = j + 1;
    }
}

static int by_docid(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

gx_status gx_ordered_score(gx_ordering *o, const gx_ordered_file *f, const uint32_t *docids, size_t n)
{
    if (!gx_reserve(&o->scores, &o->max_scores, n + 1, sizeof *o->scores) ||
        !gx_reserve(&o->candidates, &o->max_candidates, n + 1, sizeof *o->candidates))
        return no_memory(o, n);
    for (size_t i = 0; i < n; ++i)
        o->candidates[i] = (gx_candidate){gx_ordered_docid(f, docids[i]), 0};
    const gx_status st = gx_session_add_scores_of(o->s, o->plan, o->candidates, n, o->err);
    for (size_t i = 0; i < n; ++i)
        o->scores[i] = o->candidates[i].score +
                       gx_document_prior_units(o->prior, o->s->en->ix, o->candidates[i].docid, o->plan->exponent);
    return st;
}

static gx_status take(gx_ordering *o, const gx_ordered_file *f, uint32_t docid)
{
    if (!gx_reserve(&o->hits, &o->max, o->n + 1, sizeof *o->hits))
        return no_memory(o, o->n);
    o->hits[o->n].docid = gx_ordered_docid(f, docid);
    o->hits[o->n].file = f->number;
    o->hits[o->n++].local = docid;
    return GX_OK;
}

/* Take docids[n], of which at most `wanted` are wanted, by score and docid. */
static gx_status choose_by_score(gx_ordering *o, const gx_ordered_file *f, uint32_t *docids, size_t n, uint32_t wanted)
{
    gx_status st = GX_OK;
    gx_keyed *keyed = n > wanted ? malloc((n + 1) * sizeof *keyed) : NULL;
    if (n > wanted && !keyed)
        return no_memory(o, n);
    if (keyed && o->scored) {
        qsort(docids, n, sizeof *docids, by_docid);
        st = gx_ordered_score(o, f, docids, n);
    }
    for (size_t i = 0; keyed && st == GX_OK && i < n; ++i)
        keyed[i] = (gx_keyed){o->scored ? UINT64_MAX - o->scores[i] : 0, docids[i]};
    if (keyed && st == GX_OK && wanted)
        gx_keyed_select(keyed, n, wanted);
    for (size_t i = 0; st == GX_OK && i < n && i < wanted; ++i)
        st = take(o, f, keyed ? keyed[i].docid : docids[i]);
    free(keyed);
    return st;
}

/* Of docids[*n], which are equal to o->after at all levels, keep those that are behind it. */
static gx_status keep_lower_scores(gx_ordering *o, const gx_ordered_file *f, uint32_t *docids, size_t *n)
{
    const gx_position *after = o->after;
    size_t m = 0;
    gx_status st = GX_OK;
    if (o->scored && *n) {
        qsort(docids, *n, sizeof *docids, by_docid);
        st = gx_ordered_score(o, f, docids, *n);
    }
    for (size_t i = 0; i < *n && st == GX_OK; ++i) {
        const double score = o->scored ? ldexp((double)o->scores[i], -o->plan->exponent) : 0;
        if (score < after->score || (score == after->score && gx_ordered_docid(f, docids[i]) >= after->docid))
            docids[m++] = docids[i];
    }
    *n = m;
    return st;
}

/* Of docids[*n], which are equal to o->after at the levels before `level`, keep those that are behind it. */
static gx_status keep_behind(gx_ordering *o, const gx_ordered_file *f, uint32_t *docids, size_t *n, uint32_t level)
{
    size_t n_behind = 0, n_equal = 0;
    uint32_t *equal = malloc((*n + 1) * sizeof *equal);
    if (!equal)
        return no_memory(o, *n);
    for (size_t i = 0; i < *n; ++i) {
        int order = 0;
        for (uint32_t l = level; l < o->sort->n && order == 0; ++l) {
            const gx_sort_value v = gx_sort_value_of(f->ix, &o->sort->levels[l], docids[i]);
            order = gx_sort_compare(&o->sort->levels[l], &v, &o->after->values[l]);
        }
        if (order == 0)
            equal[n_equal++] = docids[i];
        else if (order > 0)
            docids[n_behind++] = docids[i];
    }
    const gx_status st = keep_lower_scores(o, f, equal, &n_equal);
    if (n_equal)
        memcpy(docids + n_behind, equal, n_equal * sizeof *equal);
    *n = n_behind + n_equal;
    free(equal);
    return st;
}

/* Take the first `wanted` of keyed[n], which are equal at the levels before `level` and have their keys of that. */
static gx_status choose_keyed(gx_ordering *o, const gx_ordered_file *f, gx_keyed *keyed, size_t n, uint32_t level,
                              uint32_t wanted, uint32_t *n_taken)
{
    gx_status st = GX_OK;
    size_t n_equal = 0;
    *n_taken = (uint32_t)(n < wanted ? n : wanted);
    if (n <= wanted) {
        for (size_t i = 0; i < n && st == GX_OK; ++i)
            st = take(o, f, keyed[i].docid);
        return st;
    }
    if (wanted == 0)
        return GX_OK;
    gx_keyed_select(keyed, n, wanted);
    uint64_t last = 0;
    for (size_t i = 0; i < wanted; ++i)
        last = keyed[i].key > last ? keyed[i].key : last;
    uint32_t *equal = malloc(n * sizeof *equal), left = wanted, ignored;
    if (!equal)
        return no_memory(o, n);
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        if (keyed[i].key == last)
            equal[n_equal++] = keyed[i].docid;
        else if (i < wanted && left--)
            st = take(o, f, keyed[i].docid);
    }
    if (st == GX_OK)
        st = gx_ordered_choose(o, f, equal, n_equal, level + 1, false, left, &ignored);
    free(equal);
    return st;
}

gx_status gx_ordered_choose(gx_ordering *o, const gx_ordered_file *f, uint32_t *docids, size_t n, uint32_t level,
                            bool behind, uint32_t wanted, uint32_t *n_taken)
{
    gx_status st = behind ? keep_behind(o, f, docids, &n, level) : GX_OK;
    *n_taken = (uint32_t)(n < wanted ? n : wanted);
    if (st != GX_OK)
        return st;
    if (n <= wanted || level == o->sort->n)
        return choose_by_score(o, f, docids, n, wanted);
    const gx_sort_level *l = &o->sort->levels[level];
    const gx_column *c = &f->ix->columns[l->column];
    gx_keyed *keyed = malloc((n + 1) * sizeof *keyed);
    size_t n_keyed = 0, n_missing = 0;
    uint32_t some = 0, rest = 0;
    if (!keyed)
        return no_memory(o, n);
    for (size_t i = 0; i < n; ++i) {
        if (gx_column_has(c, docids[i]))
            keyed[n_keyed++] = (gx_keyed){gx_sort_local_key(l, c, docids[i]), docids[i]};
        else
            docids[n_missing++] = docids[i];
    }
    if (l->missing_first)
        st = gx_ordered_choose(o, f, docids, n_missing, level + 1, false, wanted, &some);
    if (st == GX_OK)
        st = choose_keyed(o, f, keyed, n_keyed, level, wanted - some, &rest);
    if (st == GX_OK && !l->missing_first)
        st = gx_ordered_choose(o, f, docids, n_missing, level + 1, false, wanted - rest, &some);
    free(keyed);
    return st;
}

/* ---- all matches of a file ---- */

/* Documents of which the first `wanted` by key are kept; of equal keys all, or the first. */
typedef struct queue {
    gx_keyed *keyed; /* [n] */
    size_t n, max, wanted;
    uint64_t limit;  /* greater keys are not among the first */
    bool first_only; /* of equal keys, later documents come behind */
    bool full;
} queue;

/* Leave out what is not among the first; false: no memory. */
static bool trim(queue *q)
{
    if (q->n > q->wanted) {
        size_t n = q->wanted;
        gx_keyed_select(q->keyed, q->n, n);
        q->limit = 0;
        for (size_t i = 0; i < n; ++i)
            q->limit = q->keyed[i].key > q->limit ? q->keyed[i].key : q->limit;
        for (size_t i = n; i < q->n && !q->first_only; ++i)
            if (q->keyed[i].key == q->limit)
                q->keyed[n++] = q->keyed[i];
        q->n = n;
        q->full = true;
    }
    return q->n <= q->max / 2 || gx_reserve(&q->keyed, &q->max, 2 * q->max, sizeof *q->keyed);
}

/* Documents arrive by rising docid. */
static inline bool offer(queue *q, uint64_t key, uint32_t docid)
{
    if (key > q->limit || (key == q->limit && q->full && q->first_only))
        return true;
    q->keyed[q->n++] = (gx_keyed){key, docid};
    return q->n < q->max || trim(q);
}

/* Whether none of 1,024 documents can be among the first. */
static bool skips_zone(const queue *q, const gx_sort_level *l, const gx_column *c, const gx_zone *zone)
{
    const uint64_t raw = l->falling ? zone->most : zone->least;
    return zone->least > zone->most || gx_sort_raw_key(l, c, raw) > q->limit;
}

/* The matches that have a value: those behind the place of o->after go to the queue, those that are equal there to
 * equal[*n_equal]. */
static bool read_matches(gx_ordering *o, const gx_ordered_file *f, const uint64_t *words, uint64_t after, bool bounded,
                         queue *q, gx_keyed **equal, size_t *n_equal, size_t *max_equal)
{
    const gx_sort_level *l = &o->sort->levels[0];
    const gx_column *c = &f->ix->columns[l->column];
    const gx_column_order *order = __atomic_load_n(&c->order, __ATOMIC_ACQUIRE);
    const gx_zone *zones = order && !c->starts ? order->zones : NULL;
    const size_t n_words = ((size_t)f->ix->n_docs + 63) / 64;
    for (size_t w = 0; w < n_words; ++w) {
        if (zones && w % (GX_ZONE_DOCS / 64) == 0 && q->full && skips_zone(q, l, c, &zones[w * 64 / GX_ZONE_DOCS])) {
            w += GX_ZONE_DOCS / 64 - 1;
            continue;
        }
        for (uint64_t left = words[w]; left; left &= left - 1) {
            const uint32_t docid = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(left);
            if (!gx_column_has(c, docid))
                continue;
            const uint64_t key = gx_sort_local_key(l, c, docid);
            if (!bounded || key > after) {
                if (!offer(q, key, docid))
                    return false;
            } else if (key == after) {
                if (!gx_reserve(equal, max_equal, *n_equal + 1, sizeof **equal))
                    return false;
                (*equal)[(*n_equal)++] = (gx_keyed){key, docid};
            }
        }
    }
    return true;
}

/* Take the first `wanted` of the matches that have a value. */
static gx_status choose_present(gx_ordering *o, const gx_ordered_file *f, const uint64_t *words, uint32_t wanted,
                                uint32_t *n_taken)
{
    const gx_sort_level *l = &o->sort->levels[0];
    const bool bounded = o->after && !o->after->values[0].missing;
    const uint64_t after = bounded ? gx_sort_key_of_value(f->ix, l, &o->after->values[0]) : 0;
    queue q = {.max = (wanted < f->ix->n_docs / 2 ? 2 * (size_t)wanted : f->ix->n_docs) + 512,
               .wanted = wanted,
               .limit = UINT64_MAX,
               .first_only = !o->scored && o->sort->n == 1};
    gx_keyed *equal = NULL;
    size_t n_equal = 0, max_equal = 0;
    uint32_t n_equal_taken = 0;
    *n_taken = 0;
    if (o->after && o->after->values[0].missing && !l->missing_first) /* all of them come before */
        return GX_OK;
    q.keyed = malloc(q.max * sizeof *q.keyed);
    gx_status st = q.keyed && read_matches(o, f, words, after, bounded, &q, &equal, &n_equal, &max_equal)
                       ? GX_OK
                       : no_memory(o, wanted);
    uint32_t *docids = st == GX_OK ? malloc((n_equal + 1) * sizeof *docids) : NULL;
    if (st == GX_OK && !docids)
        st = no_memory(o, n_equal);
    for (size_t i = 0; st == GX_OK && i < n_equal; ++i)
        docids[i] = equal[i].docid;
    if (st == GX_OK)
        st = gx_ordered_choose(o, f, docids, n_equal, 1, true, wanted, &n_equal_taken);
    if (st == GX_OK)
        st = choose_keyed(o, f, q.keyed, q.n, 0, wanted - n_equal_taken, n_taken);
    *n_taken += n_equal_taken;
    free(q.keyed);
    free(equal);
    free(docids);
    return st;
}

/* Take the first `wanted` of the matches that have no value. */
static gx_status choose_missing(gx_ordering *o, const gx_ordered_file *f, const uint64_t *words, uint32_t wanted,
                                uint32_t *n_taken)
{
    const gx_sort_level *l = &o->sort->levels[0];
    const gx_column *c = &f->ix->columns[l->column];
    const bool equal = o->after && o->after->values[0].missing, first_only = !equal && !o->scored && o->sort->n == 1;
    const size_t n_words = ((size_t)f->ix->n_docs + 63) / 64;
    size_t n = 0;
    *n_taken = 0;
    if ((o->after && !equal && l->missing_first) || wanted == 0 || (!c->starts && !c->present))
        return GX_OK;
    for (size_t w = 0; w < n_words && !(first_only && n >= wanted); ++w)
        for (uint64_t left = words[w]; left; left &= left - 1) {
            const uint32_t docid = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(left);
            if (gx_column_has(c, docid))
                continue;
            if (!gx_reserve(&o->docids, &o->max_docids, n + 1, sizeof *o->docids))
                return no_memory(o, n);
            o->docids[n++] = docid;
        }
    return gx_ordered_choose(o, f, o->docids, n, 1, equal, wanted, n_taken);
}

gx_status gx_ordered_scan(gx_ordering *o, const gx_ordered_file *f, const uint64_t *words)
{
    uint32_t some = 0, rest = 0;
    gx_status st = GX_OK;
    if (o->sort->levels[0].missing_first)
        st = choose_missing(o, f, words, o->k, &some);
    if (st == GX_OK && some < o->k)
        st = choose_present(o, f, words, o->k - some, &rest);
    if (st == GX_OK && !o->sort->levels[0].missing_first && rest < o->k)
        st = choose_missing(o, f, words, o->k - rest, &some);
    return st;
}
