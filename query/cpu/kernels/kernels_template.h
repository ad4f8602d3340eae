/* kernels_template.h: the kernels of one instruction set, made from its vectors. A file includes
 * the vectors' header, vector_NAME.h, defines KERNELS, NAME and TITLE, and includes this header.
 *
 * A vector has LANES lanes. The vectors' header defines these types:
 *
 *   vec, fvec   LANES unsigned integers of 32 bits; LANES floats
 *   bits        a set of lanes, a bit each, the first lane's bit lowest
 *   lanes       a set of lanes in the form that gathers and masked operations take
 *   order       what brings a set of lanes together
 *
 * It defines these operations as functions, or as macros that may evaluate an argument twice:
 *
 *   first_bits(at, n), first_lanes     the lanes i with at + i < n, where at < n
 *   count(bits)                        the number of lanes
 *   v_load, v_store, v_splat, v_add, v_sub, v_min, v_max, v_and, v_or
 *   v_without(a, b)                    a & ~b
 *   v_load_bytes(a)                    LANES bytes as integers
 *   v_shift(a, by)                     all lanes by as many bits to the right
 *   v_shift_each(a, b)                 each lane of a by its lane of b to the right
 *   v_left_each(a, b)                  the same to the left
 *   v_word(slot), v_bit(slot)          slot / 32; 1 << slot % 32
 *   v_at_least(m, a, b), v_below       of the bits m those with a >= b; with a < b
 *   v_lanes_below(m, a, b)             of the lanes m those with a < b
 *   v_bytes_in(m, x, low, span)        of the bits m those with a byte of x in [low, low + span]
 *   v_halves_in(m, x, low, span)       the same of 16 bits
 *   v_any(x, b), v_none                bits with x & b != 0, == 0; bits from LANES on: undefined
 *   v_add_where(a, x, b, y)            a + y where x & b != 0, a elsewhere
 *   v_sub_where(a, x, b, y)            a - y where x & b != 0, a elsewhere
 *   v_sub_unless(a, x, b, y)           a - y where x & b == 0, a elsewhere
 *   v_clear_unless(a, x, b, y)         a & ~y where x & b == 0, a elsewhere
 *   v_gather(base, at, lanes)          base[at]; 0 in other lanes, which read nothing
 *   v_gather_bytes(base, at, lanes)    the same of 4 bytes, the first of them byte `at`
 *   v_pick8(base, at), v_pick16        base[at[0]], base[at[1]], .. of LANES numbers of 8, of 16 bits
 *   v_of8(base, at, lanes)             the same as v_gather of a base of 8 words
 *   v_gather_near(base, at, low, high, lanes)
 *                                      the same. low and high are `at` of the first and of the last
 *                                      lane, and base is readable 32 words past base[high]
 *   f_load, f_store, f_splat, f_add, f_mul, f_div, f_max
 *   f_from(vec), f_round(fvec)         to float; to the nearest integer. Both round once
 *   f_div_where(lanes, a, b)           a / b, 0 elsewhere
 *   f_min_where(lanes, a, b)           the lesser, a elsewhere
 *   f_least(a), f_greatest(a)          of all lanes
 *   order_of(bits)
 *   compress_store(a, to, order, x)    write the lanes of the order to a[to], a[to + 1], ..; the
 *   compress_store_f                   vector's remaining entries behind them are undefined then
 *
 * A vectors' header may bring a kernel of its own: it defines OWN_COUNT_BELOW or
 * OWN_DENSE_POSITIONS beside it; COUNT_BELOW_BY_HALVES chooses the search by halves. A
 * header whose vectors read packed blocks defines MAX_DOCID_BITS, MAX_TF_BITS, unpack_docids as
 * kernels.h has it, and:
 *
 *   block_tfs                          the tfs of a block of up to 128 postings
 *   unpack_tfs(t, words, b, n, min_tf) fill *t; false if no tf reaches min_tf
 *   reaching_tfs(t, at)                bits of the postings from at on, below n, with tf >= min_tf
 *   tfs_at(t, at)                      the tfs of the postings from at on
 *   SCAN_END(n)                        where a loop over the postings ends: at n, or at 128
 */
#ifndef GX_QUERY_CPU_KERNELS_KERNELS_TEMPLATE_H
#define GX_QUERY_CPU_KERNELS_KERNELS_TEMPLATE_H

typedef uint32_t u32;

static inline vec impact(vec tf, fvec w, fvec K)
{
    const fvec f = f_from(tf);
    return v_max(f_round(f_div(f_mul(w, f), f_add(f, K))), v_splat(1));
}

#include "query/cpu/kernels/kernels_program.h"

/* ---- blocks ---- */

/* What makes candidates of a block's postings. A store to the columns might change what *b says, for all
 * that the compiler knows, so that loops read copies. */
typedef struct scan {
    u32 n_docs, min_tf, most, remaining_ub;
    float w, min_K;
} scan;

static inline scan begin_scan(const gx_cpu_columns *c, const gx_cpu_bound *b)
{
    return (scan){c->n_docs, b->min_tf, b->most, b->remaining_ub, b->w, b->min_K};
}

/* Write the candidates of m among LANES postings to the columns from `to` on. Returns where they
 * end. */
static inline u32 append(gx_cpu_columns *c, u32 to, bits m, vec doc, vec tf, const scan *s)
{
    const fvec f = f_from(tf), x = f_div(f_mul(f_splat(s->w), f), f_add(f, f_splat(s->min_K)));
    const vec bound = v_min(v_add(f_round(x), v_splat(2)), v_splat(s->most));
    const order o = order_of(m);
    compress_store(c->doc, to, o, doc);
    compress_store(c->tf, to, o, tf);
    compress_store(c->score, to, o, bound);
    v_store(c->remaining_ub + to, v_splat(s->remaining_ub));
    v_store(c->list_mask + to, v_splat(UINT32_MAX));
    return to + count(m);
}

/* Write n postings that the program has left to the columns. */
static inline void append_postings(gx_cpu_columns *c, const u32 *docs, const u32 *tfs, u32 n, const scan *s)
{
    u32 to = c->n;
    for (u32 v = 0; v < n; v += LANES)
        to = append(c, to, first_bits(v, n), v_load(docs + v), v_load(tfs + v), s);
    c->n = to;
}

/* Write those of n postings that the sieve and the program leave to the columns. */
static void append_tested(gx_cpu_columns *c, u32 *docs, u32 *tfs, u32 n, const gx_cpu_bound *b, const scan *s)
{
    const bool sieved = b->sieve && prepare_sieve(b->sieve, docs[0], docs[n - 1], n);
    if (sieved)
        n = keep_passing(docs, tfs, n, b->sieve);
    append_postings(c, docs, tfs, keep_postings(docs, tfs, n, b, b->clause, sieved ? b->end_sieved : b->end_clause), s);
}

static void append_decoded_block(gx_cpu_columns *c, const u32 *docids, const u32 *tfs, u32 n, const gx_cpu_bound *b)
{
    _Alignas(64) u32 docs[GX_MAX_BLOCK + LANES], kept_tfs[GX_MAX_BLOCK + LANES];
    const scan s = begin_scan(c, b);
    const bool tests = b->sieve || b->clause < b->end_clause;
    u32 to = tests ? 0 : c->n;
    for (u32 v = 0; v < n; v += LANES) {
        const vec tf = v_load(tfs + v), doc = v_load(docids + v);
        bits m = v_at_least(first_bits(v, n), tf, v_splat(s.min_tf));
        m = m ? v_below(m, doc, v_splat(s.n_docs)) : 0;
        if (m && tests) {
            const order o = order_of(m);
            compress_store(docs, to, o, doc);
            compress_store(kept_tfs, to, o, tf);
            to += count(m);
        } else if (m) {
            to = append(c, to, m, doc, tf, &s);
        }
    }
    if (!tests)
        c->n = to;
    else if (to)
        append_tested(c, docs, kept_tfs, to, b, &s);
}

#ifdef MAX_DOCID_BITS
/* Bring the postings together that reach min_tf, of n; tfs [n]. Returns their number. */
static inline u32 keep_reaching(const block_tfs *t, u32 *docs, u32 *tfs, u32 n, u32 n_docs)
{
    u32 to = 0;
    (void)n; /* SCAN_END need not read it */
    for (u32 v = 0; v < SCAN_END(n); v += LANES) {
        const vec doc = v_load(docs + v);
        const bits m = v_below(reaching_tfs(t, v), doc, v_splat(n_docs));
        const order o = order_of(m);
        compress_store(docs, to, o, doc);
        compress_store(tfs, to, o, tfs_at(t, v));
        to += count(m);
    }
    return to;
}

/* The same where all postings reach it, which stay where they are. false: a docid is not below n_docs. */
static inline bool take_all(const block_tfs *t, const u32 *docs, u32 *tfs, u32 n, u32 n_docs)
{
    bits others = 0;
    (void)n;
    for (u32 v = 0; v < SCAN_END(n); v += LANES) {
        const bits m = reaching_tfs(t, v);
        others |= m & ~v_below(m, v_load(docs + v), v_splat(n_docs));
        v_store(tfs + v, tfs_at(t, v));
    }
    return !others;
}

/* As keep_reaching where all postings reach it, of those that a test of a number selects, which are few. */
static inline u32 keep_few(const block_tfs *t, u32 *docs, u32 *tfs, u32 n, u32 n_docs, const gx_cpu_test *test)
{
    const gx_cpu_test own = *test;
    u32 to = 0;
    (void)n;
    for (u32 v = 0; v < SCAN_END(n); v += LANES) {
        const vec doc = v_load(docs + v);
        const lanes of = v_lanes_below(first_lanes(0, LANES), doc, v_splat(n_docs));
        const bits in = v_below(reaching_tfs(t, v), doc, v_splat(n_docs));
        const bits m = in == first_bits(0, LANES) ? select_all_by_number(&own, docs + v)
                                                  : select_by_number(&own, docs + v, of, in);
        if (!m)
            continue;
        const order o = order_of(m);
        compress_store(docs, to, o, doc);
        compress_store(tfs, to, o, tfs_at(t, v));
        to += count(m);
    }
    return to;
}

/* As keep_reaching, of those that pass the sieve. All docs are below n_docs. */
static inline u32 keep_reaching_passing(const block_tfs *t, u32 *docs, u32 *tfs, u32 n, const gx_cpu_sieve *s)
{
    u32 to = 0;
    for (u32 v = 0; v < n; v += LANES) {
        const u32 last = n - v < LANES ? n - v - 1 : LANES - 1;
        bits m = reaching_tfs(t, v);
        m = m ? passing(s, docs + v, last, first_lanes(v, n), m) : 0;
        if (!m)
            continue;
        const vec doc = v_load(docs + v);
        const order o = order_of(m);
        compress_store(docs, to, o, doc);
        compress_store(tfs, to, o, tfs_at(t, v));
        to += count(m);
    }
    return to;
}

/* Whether the postings of a block that reach min_tf are looked up in the sieve. */
static inline bool is_sieved(const block_tfs *t, const u32 *docs, u32 n, const gx_cpu_bound *b, u32 n_docs)
{
    u32 n_reaching = 0;
    if (!b->sieve || docs[n - 1] >= n_docs)
        return false;
    for (u32 v = 0; v < n; v += LANES)
        n_reaching += count(reaching_tfs(t, v));
    return prepare_sieve(b->sieve, docs[0], docs[n - 1], n_reaching);
}

#define FEW 0.05f /* so that most vectors have none */

/* The postings of a block that reach min_tf and that the sieve and b's clauses from number `clause` on select. */
static void append_selected(gx_cpu_columns *c, const block_tfs *t, u32 *docs, u32 n, const gx_cpu_bound *b, u32 clause)
{
    _Alignas(64) u32 tfs[128 + LANES];
    const scan s = begin_scan(c, b);
    const gx_cpu_clause *const first = &b->program->clauses[clause];
    const bool sieved = is_sieved(t, docs, n, b, s.n_docs);
    const u32 end = sieved ? b->end_sieved : b->end_clause;
    const bool few = !sieved && clause < end && s.min_tf <= 1 && first->share < FEW && is_of_number(b->program, first);
    if (sieved)
        n = keep_reaching_passing(t, docs, tfs, n, b->sieve);
    else if (few)
        n = keep_few(t, docs, tfs, n, s.n_docs, &b->program->tests[first->first]);
    else if (s.min_tf > 1 || !take_all(t, docs, tfs, n, s.n_docs))
        n = keep_reaching(t, docs, tfs, n, s.n_docs);
    append_postings(c, docs, tfs, keep_postings(docs, tfs, n, b, clause + few, end), &s);
}

static bool scan_packed_block(gx_cpu_columns *c, const gx_cpu_packed_block *p, const gx_cpu_bound *b)
{
    _Alignas(64) u32 unpacked[128 + LANES];
    const u32 n = p->n;
    block_tfs t;
    if (!unpack_tfs(&t, p->tfs, p->tf_bits, n, b->min_tf))
        return false;
    unpack_docids(p->docids, p->docid_bits, n, p->first, unpacked);
    const u32 clause = first_unsure(b, unpacked, n);
    if (b->sieve || clause < b->end_clause) {
        append_selected(c, &t, unpacked, n, b, clause);
        return true;
    }
    const scan s = begin_scan(c, b);
    u32 to = c->n;
    for (u32 v = 0; v < SCAN_END(n); v += LANES) {
        bits m = reaching_tfs(&t, v);
        if (!m)
            continue;
        const vec doc = v_load(unpacked + v);
        m = v_below(m, doc, v_splat(s.n_docs));
        if (m)
            to = append(c, to, m, doc, tfs_at(&t, v), &s);
    }
    c->n = to;
    return true;
}
#else
#define MAX_DOCID_BITS 0
#define MAX_TF_BITS 0
#define scan_packed_block NULL
#define unpack_docids NULL
#endif

static bool any_tf_reaches(const u32 *tfs, u32 n, u32 min_tf)
{
    for (u32 v = 0; v < n; v += LANES) {
        if (v_at_least(first_bits(v, n), v_load(tfs + v), v_splat(min_tf)))
            return true;
    }
    return false;
}

#ifdef COUNT_BELOW_BY_HALVES
static u32 count_below(const u32 *docids, u32 n, u32 doc)
{
    u32 lo = 0;
    while (n) {
        const u32 half = n / 2;
        if (docids[lo + half] < doc) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}
#elif !defined OWN_COUNT_BELOW
static u32 count_below(const u32 *docids, u32 n, u32 doc)
{
    for (u32 v = 0; v < n; v += LANES) {
        const bits m = v_at_least(first_bits(v, n), v_load(docids + v), v_splat(doc));
        if (m)
            return v + (u32)__builtin_ctz(m);
    }
    return n;
}
#endif

static float saturate_tfs(const u32 *docids, const u32 *tfs, u32 n, const gx_cpu_lengths *l, float *parts, float *min_K)
{
    const gx_scorer norm = l->norm;
    const u32 *const lens = l->lens, n_docs = l->n_docs;
    fvec most = f_splat(0), least = f_splat(INFINITY);
    for (u32 v = 0; v < n; v += LANES) {
        const vec doc = v_load(docids + v);
        const lanes m = v_lanes_below(first_lanes(v, n), doc, v_splat(n_docs));
        const fvec len = f_from(v_gather(lens, doc, m)), K = f_add(f_splat(norm.c0), f_mul(f_splat(norm.c1), len));
        const fvec f = f_from(v_load(tfs + v)), x = f_div_where(m, f, f_add(f, K));
        most = f_max(most, x);
        least = f_min_where(m, least, K);
        f_store(parts + v, x);
    }
    *min_K = f_least(least);
    return f_greatest(most);
}

static void impacts_of(const u32 *docids, const u32 *tfs, u32 n, const gx_cpu_lengths *l, float w, u32 *impacts)
{
    const fvec c0 = f_splat(l->norm.c0), c1 = f_splat(l->norm.c1), weight = f_splat(w);
    const u32 *const lens = l->lens;
    const vec n_docs = v_splat(l->n_docs);
    for (u32 v = 0; v < n; v += LANES) {
        const vec doc = v_load(docids + v);
        const lanes m = v_lanes_below(first_lanes(v, n), doc, n_docs);
        const fvec K = f_add(c0, f_mul(c1, f_from(v_gather(lens, doc, m))));
        v_store(impacts + v, impact(v_load(tfs + v), weight, K));
    }
}

/* ---- steps of a batch ---- */

/* Write these columns of the candidates o, without gaps, from `to` on. */
static inline void keep(gx_cpu_columns *c, u32 to, order o, vec doc, vec score, vec remaining_ub, vec list_mask)
{
    compress_store(c->doc, to, o, doc);
    compress_store(c->score, to, o, score);
    compress_store(c->remaining_ub, to, o, remaining_ub);
    compress_store(c->list_mask, to, o, list_mask);
}

static void apply_presence_map(gx_cpu_columns *c, const gx_cpu_presence *p, u32 T, bool all)
{
    const u32 *const map = p->map, shift = p->shift, mask = p->mask, ub = p->ub, bit = p->bit;
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += LANES) {
        const vec doc = v_load(c->doc + v), score = v_load(c->score + v), tf = v_load(c->tf + v);
        const vec slot = v_shift(doc, shift), place = v_bit(slot);
        const u32 last = v + LANES - 1 < n ? v + LANES - 1 : n - 1;
        const u32 high = c->unordered ? UINT32_MAX : c->doc[last] >> shift >> 5 & mask;
        const vec words = v_gather_near(map, v_and(v_word(slot), v_splat(mask)), c->doc[v] >> shift >> 5 & mask, high,
                                        first_lanes(v, n));
        const vec remaining_ub = v_sub_unless(v_load(c->remaining_ub + v), words, place, v_splat(ub));
        const vec list_mask = v_clear_unless(v_load(c->list_mask + v), words, place, v_splat(bit));
        bits m = v_at_least(first_bits(v, n), v_add(score, remaining_ub), v_splat(T));
        if (all)
            m &= ~v_none(words, place);
        const order o = order_of(m);
        keep(c, to, o, doc, score, remaining_ub, list_mask);
        compress_store(c->tf, to, o, tf);
        to += count(m);
    }
    c->n = to;
}

/* The candidates m of LANES from v on, to `to`. Returns where they end. */
static inline u32 keep_some(gx_cpu_columns *c, u32 v, u32 to, bits m)
{
    if (!m)
        return to;
    const vec doc = v_load(c->doc + v), score = v_load(c->score + v), tf = v_load(c->tf + v),
              remaining_ub = v_load(c->remaining_ub + v), list_mask = v_load(c->list_mask + v);
    const fvec K = f_load(c->K + v);
    const order o = order_of(m);
    keep(c, to, o, doc, score, remaining_ub, list_mask);
    compress_store(c->tf, to, o, tf);
    compress_store_f(c->K, to, o, K);
    return to + count(m);
}

static void test_program(gx_cpu_columns *c, u32 from, const gx_cpu_program *p, u32 clause)
{
    const u32 n = c->n;
    u32 to = from;
    chunk k;
    for (u32 at = from; at < n; at += CHUNK) {
        bits selected[CHUNK / LANES];
        k.n = n - at < CHUNK ? n - at : CHUNK;
        k.values = NULL;
        for (u32 v = 0; v < k.n; v += LANES) {
            v_store(k.docs + v, v_load(c->doc + at + v));
            selected[v / LANES] = first_bits(v, k.n);
        }
        for (u32 i = clause; i < p->n_clauses; ++i) {
            if (c->unordered || !is_sure(&p->clauses[i], k.docs[0], k.docs[k.n - 1]))
                run_clause(&k, p, &p->clauses[i], selected);
        }
        for (u32 v = 0; v < k.n; v += LANES)
            to = keep_some(c, at + v, to, selected[v / LANES]);
    }
    c->n = to;
}

static void test_map(gx_cpu_columns *c, u32 from, const u32 *map)
{
    const u32 n = c->n;
    u32 to = from;
    for (u32 v = from; v < n; v += LANES) {
        const vec doc = v_load(c->doc + v);
        const u32 last = v + LANES - 1 < n ? v + LANES - 1 : n - 1,
                  high = c->unordered ? UINT32_MAX : c->doc[last] >> 5;
        const vec words = v_gather_near(map, v_word(doc), c->doc[v] >> 5, high, first_lanes(v, n));
        to = keep_some(c, v, to, first_bits(v, n) & ~v_none(words, v_bit(doc)));
    }
    c->n = to;
}

static void drop_unkept(gx_cpu_columns *c, u32 from, const uint8_t *marks)
{
    const u32 n = c->n;
    u32 to = from;
    for (u32 v = from; v < n; v += LANES)
        to = keep_some(c, v, to, v_at_least(first_bits(v, n), v_load_bytes(marks + v - from), v_splat(1)));
    c->n = to;
}

static void append_documents(gx_cpu_columns *c, const u32 *docids, u32 n, const gx_cpu_presence *p, u32 remaining_ub,
                             u32 T)
{
    const u32 *const map = p->map, shift = p->shift;
    const vec most = v_splat(remaining_ub), ub = v_splat(p->ub), bit = v_splat(p->bit), none = v_splat(0);
    u32 to = c->n;
    for (u32 v = 0; v < n; v += LANES) {
        const vec doc = v_load(docids + v), slot = v_shift(doc, shift), place = v_bit(slot);
        const vec words = v_gather(map, v_word(slot), first_lanes(v, n));
        const vec bound = v_sub_unless(most, words, place, ub);
        const bits m = v_at_least(first_bits(v, n), bound, v_splat(T));
        const order o = order_of(m);
        keep(c, to, o, doc, none, bound, v_clear_unless(v_splat(UINT32_MAX), words, place, bit));
        v_store(c->tf + to, none);
        to += count(m);
    }
    c->n = to;
}

static void score_own(gx_cpu_columns *c, const u32 *lens, gx_scorer norm, float w, u32 T, const u32 *allowed)
{
    const fvec c0 = f_splat(norm.c0), c1 = f_splat(norm.c1), weight = f_splat(w);
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += LANES) {
        const vec doc = v_load(c->doc + v), remaining_ub = v_load(c->remaining_ub + v),
                  list_mask = v_load(c->list_mask + v);
        const fvec K = f_add(c0, f_mul(c1, f_from(v_gather(lens, doc, first_lanes(v, n)))));
        const vec score = impact(v_load(c->tf + v), weight, K);
        bits m = v_at_least(first_bits(v, n), v_add(score, remaining_ub), v_splat(T));
        if (allowed)
            m &= ~v_none(v_gather(allowed, v_word(doc), first_lanes(v, n)), v_bit(doc));
        const order o = order_of(m);
        keep(c, to, o, doc, score, remaining_ub, list_mask);
        compress_store_f(c->K, to, o, K);
        to += count(m);
    }
    c->n = to;
}

#ifndef OWN_DENSE_POSITIONS
static u32 dense_positions(const gx_cpu_columns *c, gx_cpu_dense d, u32 bit, u32 *pos)
{
    u32 asked = 0;
    for (u32 i = 0; i < c->n; ++i) {
        pos[i] = UINT32_MAX;
        if (!(c->list_mask[i] & bit))
            continue;
        const uint64_t word = d.bits[c->doc[i] / 64], mask = UINT64_C(1) << c->doc[i] % 64;
        if (word & mask)
            pos[i] = d.rank[c->doc[i] / 64] + (u32)__builtin_popcountll(word & (mask - 1));
        ++asked;
    }
    return asked;
}
#endif

static void add_list_score(gx_cpu_columns *c, const u32 *tfs, float w, u32 ub, u32 bit, u32 T, bool all)
{
    const fvec weight = f_splat(w);
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += LANES) {
        const vec doc = v_load(c->doc + v), list_mask = v_load(c->list_mask + v), tf = v_load(tfs + v);
        const fvec K = f_load(c->K + v);
        const vec score = v_add_where(v_load(c->score + v), tf, tf, impact(tf, weight, K));
        const vec remaining_ub = v_sub_where(v_load(c->remaining_ub + v), list_mask, v_splat(bit), v_splat(ub));
        bits m = v_at_least(first_bits(v, n), v_add(score, remaining_ub), v_splat(T));
        if (all)
            m &= v_any(tf, tf);
        const order o = order_of(m);
        keep(c, to, o, doc, score, remaining_ub, list_mask);
        compress_store_f(c->K, to, o, K);
        to += count(m);
    }
    c->n = to;
}

const gx_cpu_kernels KERNELS = {
    NAME,           TITLE,          scan_packed_block,    MAX_DOCID_BITS,     MAX_TF_BITS,
    unpack_docids,  any_tf_reaches, append_decoded_block, apply_presence_map, test_program,
    test_map,       drop_unkept,    append_documents,     score_own,          dense_positions,
    add_list_score, count_below,    saturate_tfs,         impacts_of,
};

#endif
