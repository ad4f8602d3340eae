/* kernels_program.h: how kernels run the program of a filter; a part of kernels_template.h, which includes it
 * behind the vectors.
 *
 * Reading a number of a document that is not in the cache takes longer than all else. So a test first reads
 * those of all documents of a chunk, in a loop in which nothing waits for them, and then compares.
 */
#ifndef GX_QUERY_CPU_KERNELS_KERNELS_PROGRAM_H
#define GX_QUERY_CPU_KERNELS_KERNELS_PROGRAM_H

#include <string.h>

#include "index/attributes/attribute_codes.h"

#define CHUNK 128u /* documents that a clause is asked about at once */
#define MAX_WORDS 4u

/* The documents of a chunk, and what the test before has read of them. */
typedef struct chunk {
    _Alignas(64) u32 docs[CHUNK + LANES];
    _Alignas(64) u32 numbers[MAX_WORDS][CHUNK + LANES];
    const void *values; /* of which these are; NULL: of none */
    u32 n;
} chunk;

/* Those lanes of m whose documents have a value in the column's range. */
static bits look_up_values(const gx_cpu_test *t, const u32 *docs, bits m)
{
    bits met = 0;
    for (u32 left = m; left; left &= left - 1) {
        const u32 i = (u32)__builtin_ctz(left);
        if (gx_column_has_within(t->column, docs[i], t->column_low, t->column_high))
            met |= (bits)(1u << i);
    }
    return met;
}

/* The last of the 4 bytes from byte doc * width on. */
static inline vec number_of(const gx_cpu_test *t, vec doc, lanes of)
{
    const uint8_t *const from = (const uint8_t *)t->values + t->width - 4;
    return v_shift_each(v_gather_bytes(from, v_left_each(doc, v_splat(t->width / 2)), of), v_splat(32 - 8 * t->width));
}

/* The same of all LANES documents of docs. */
static inline vec numbers_of(const gx_cpu_test *t, const u32 *docs)
{
    return t->width == 2   ? v_pick16(t->values, docs)
           : t->width == 1 ? v_pick8(t->values, docs)
                           : v_gather((const u32 *)t->values, v_load(docs), first_lanes(0, LANES));
}

/* Read what the test needs of all documents: nothing waits for what was read before. */
static inline void read_numbers(chunk *k, const gx_cpu_test *t)
{
    const u32 n = k->n, n_words = t->form == GX_CPU_TEST_CODES ? 1u << t->words_shift : 1;
    if (k->values == t->values)
        return;
    k->values = t->values;
    if (t->form == GX_CPU_TEST_VALUE) {
        u32 v = 0;
        for (; v + LANES <= n; v += LANES)
            v_store(k->numbers[0] + v, numbers_of(t, k->docs + v));
        if (v < n)
            v_store(k->numbers[0] + v, number_of(t, v_load(k->docs + v), first_lanes(v, n)));
        return;
    }
    for (u32 v = 0; v < n; v += LANES) {
        const vec first = v_left_each(v_load(k->docs + v), v_splat(t->words_shift));
        for (u32 w = 0; w < n_words; ++w)
            v_store(k->numbers[w] + v, v_gather((const u32 *)t->values, v_add(first, v_splat(w)), first_lanes(v, n)));
    }
}

static inline bits codes_in(const gx_cpu_test *t, vec word, u32 low, u32 span, bits m)
{
    return t->width == 1 ? v_bytes_in(m, word, v_splat(low), v_splat(span))
                         : v_halves_in(m, word, v_splat(low), v_splat(span));
}

/* Those lanes of m, from document v on, that meet the test by what was read. */
static inline bits meet_codes(const chunk *k, const gx_cpu_test *t, u32 v, bits m)
{
    const u32 n = 1u << t->words_shift;
    bits met = 0, unsure = 0;
    for (u32 w = 0; w < n; ++w) {
        const vec word = v_load(k->numbers[w] + v);
        met |= codes_in(t, word, t->inner_low, t->inner_span, m);
        if (t->inexact)
            unsure |= codes_in(t, word, t->low, t->span, m);
    }
    const vec last = v_shift(v_load(k->numbers[n - 1] + v), 32 - 8 * t->width);
    unsure = (unsure | v_at_least(m, last, v_splat(t->more))) & ~met;
    return unsure ? met | look_up_values(t, k->docs + v, unsure) : met;
}

/* The words of a table that have the numbers' bits. */
static inline vec words_of(const gx_cpu_test *t, vec number, lanes of)
{
    return t->form == GX_CPU_TEST_VALUE && t->width == 1 ? v_of8(t->table, v_word(number), of)
                                                         : v_gather(t->table, v_word(number), of);
}

static inline bits meet_number(const gx_cpu_test *t, vec number, const u32 *docs, lanes of, bits m)
{
    if (t->table) {
        const bits met = m & ~v_none(words_of(t, number, of), v_bit(number));
        const bits unsure = t->inexact ? v_at_least(m, number, v_splat(t->more)) : 0;
        return unsure ? met | look_up_values(t, docs, unsure) : met;
    }
    const bits met = v_at_least(m, v_splat(t->span), v_sub(number, v_splat(t->low)));
    if (!t->inexact)
        return met;
    const bits sure = v_at_least(met, v_splat(t->inner_span), v_sub(number, v_splat(t->inner_low)));
    return met == sure ? met : sure | look_up_values(t, docs, met & ~sure);
}

/* One test: where those of `asked` go that meet it, and the others. */
static inline void ask(const chunk *k, const gx_cpu_test *t, const bits *asked, bits *met, bits *unmet)
{
    const u32 *const numbers = t->form == GX_CPU_TEST_DOCID ? k->docs : k->numbers[0];
    for (u32 v = 0; v < k->n; v += LANES) {
        const bits m = asked[v / LANES];
        if (!m)
            continue;
        vec number = v_load(numbers + v);
        if (t->in_row)
            number = v_and(v_shift(number, t->row_shift), v_splat(0xff));
        const bits now = t->form == GX_CPU_TEST_CODES ? meet_codes(k, t, v, m)
                                                      : meet_number(t, number, k->docs + v, first_lanes(v, k->n), m);
        met[v / LANES] |= now;
        unmet[v / LANES] |= m & ~now;
    }
}

static inline bool any_bits(const bits *m, u32 n)
{
    bits any = 0;
    for (u32 v = 0; v < n; v += LANES)
        any |= m[v / LANES];
    return any != 0;
}

/* Leave those documents of `selected` that the clause selects. */
static inline void run_clause(chunk *k, const gx_cpu_program *p, const gx_cpu_clause *clause, bits *selected)
{
    bits at[GX_CPU_NO + 1][CHUNK / LANES];
    const u32 n_vectors = (k->n + LANES - 1) / LANES;
    for (u32 i = clause->first; i < clause->end; ++i)
        memset(at[i], 0, n_vectors * sizeof(bits));
    memset(at[GX_CPU_YES], 0, n_vectors * sizeof(bits));
    memset(at[GX_CPU_NO], 0, n_vectors * sizeof(bits));
    memcpy(at[clause->first], selected, n_vectors * sizeof(bits));
    for (u32 i = clause->first; i < clause->end; ++i) {
        const gx_cpu_test *const t = &p->tests[i];
        if (!any_bits(at[i], k->n))
            continue;
        if (t->form != GX_CPU_TEST_DOCID)
            read_numbers(k, t);
        ask(k, t, at[i], at[t->met], at[t->unmet]);
    }
    memcpy(selected, at[GX_CPU_YES], n_vectors * sizeof(bits));
}

/* The postings of docs [n] that the clause selects, to the beginning. Returns their number. */
static u32 keep_by(u32 *docs, u32 *tfs, u32 n, const gx_cpu_program *p, const gx_cpu_clause *clause)
{
    u32 to = 0;
    chunk k;
    for (u32 at = 0; at < n; at += CHUNK) {
        bits selected[CHUNK / LANES];
        k.n = n - at < CHUNK ? n - at : CHUNK;
        k.values = NULL;
        for (u32 v = 0; v < k.n; v += LANES) {
            v_store(k.docs + v, v_load(docs + at + v));
            selected[v / LANES] = first_bits(v, k.n);
        }
        run_clause(&k, p, clause, selected);
        for (u32 v = 0; v < k.n; v += LANES) {
            const order o = order_of(selected[v / LANES]);
            compress_store(docs, to, o, v_load(k.docs + v));
            compress_store(tfs, to, o, v_load(tfs + at + v));
            to += count(selected[v / LANES]);
        }
    }
    return to;
}

/* Whether a clause is one test of a number that must be met, the most frequent form. */
static inline bool is_of_number(const gx_cpu_program *p, const gx_cpu_clause *clause)
{
    const gx_cpu_test *const t = &p->tests[clause->first % GX_CPU_TESTS];
    return clause->first + 1 == clause->end && t->form != GX_CPU_TEST_CODES && !t->in_row && t->met == GX_CPU_YES &&
           t->unmet == GX_CPU_NO;
}

static inline bits select_by_number(const gx_cpu_test *t, const u32 *docs, lanes of, bits m)
{
    const vec doc = v_load(docs);
    return meet_number(t, t->form == GX_CPU_TEST_VALUE ? number_of(t, doc, of) : doc, docs, of, m);
}

/* The same of all LANES documents of docs. */
static inline bits select_all_by_number(const gx_cpu_test *t, const u32 *docs)
{
    const vec number = t->form == GX_CPU_TEST_VALUE ? numbers_of(t, docs) : v_load(docs);
    return meet_number(t, number, docs, first_lanes(0, LANES), first_bits(0, LANES));
}

/* The same as keep_by, of such a clause. */
static inline u32 keep_by_number(u32 *docs, u32 *tfs, u32 n, const gx_cpu_test *test)
{
    const gx_cpu_test t = *test; /* a store might change *test, for all that the compiler knows */
    const u32 whole = n / LANES * LANES;
    u32 to = 0;
    for (u32 v = 0; v < n; v += LANES) {
        const bits m = v < whole ? select_all_by_number(&t, docs + v)
                                 : select_by_number(&t, docs + v, first_lanes(v, n), first_bits(v, n));
        const vec doc = v_load(docs + v), tf = v_load(tfs + v);
        const order o = order_of(m);
        compress_store(docs, to, o, doc);
        compress_store(tfs, to, o, tf);
        to += count(m);
    }
    return to;
}

/* ---- the sieve ---- */

#define WORDS (GX_CPU_GROUP / 32)

/* Answer the sieve for a group. */
static inline void answer_group(const gx_cpu_sieve *s, u32 group)
{
    _Alignas(64) u32 stack[GX_CPU_SIEVE_DEPTH][WORDS];
    const size_t at = (size_t)group * WORDS;
    const vec all = v_splat(UINT32_MAX), none = v_splat(0);
    u32 n = 0;
    for (u32 i = 0; i < s->n_steps; ++i) {
        const gx_cpu_sieve_step *const t = &s->steps[i];
        n += t->how == GX_CPU_SIEVE_PUSH;
        n -= t->pops;
        for (u32 w = 0; w < WORDS; w += LANES) {
            const vec in = t->pops ? v_load(stack[n] + w) : t->in ? v_load(t->in + at + w) : all;
            vec x = v_without(in, t->out ? v_load(t->out + at + w) : none);
            x = t->inverted ? v_without(all, x) : x;
            if (t->how == GX_CPU_SIEVE_AND)
                x = v_and(x, v_load(stack[n - 1] + w));
            if (t->how == GX_CPU_SIEVE_OR)
                x = v_or(x, v_load(stack[n - 1] + w));
            v_store(stack[n - 1] + w, x);
        }
    }
    memcpy(s->bits + at, stack[0], sizeof stack[0]);
}

/* Whether n postings, whose docs are from first to last, are looked up in the sieve: if it takes less time to answer
 * it for the groups that lack its answer than it saves. They have it then. */
static bool prepare_sieve(gx_cpu_sieve *s, u32 first, u32 last, u32 n)
{
    const u32 begin = first / GX_CPU_GROUP, end = last / GX_CPU_GROUP + 1;
    const float saved = (float)n * s->saved;
    u32 n_missing = 0;
    if (end <= begin || end - begin > n)
        return false;
    for (u32 g = begin; g < end; ++g)
        n_missing += s->made[g] != s->serial;
    if ((float)n_missing * s->cost > saved)
        return false;
    for (u32 g = begin; n_missing && g < end; ++g) {
        if (s->made[g] != s->serial) {
            answer_group(s, g);
            s->made[g] = s->serial;
        }
    }
    s->n_made += n_missing;
    s->used = true;
    return true;
}

/* Of the lanes m, whose documents are docs [last - v + 1], those that pass. All documents are below n_docs. */
static inline bits passing(const gx_cpu_sieve *s, const u32 *docs, u32 last, lanes of, bits m)
{
    const vec doc = v_load(docs);
    return m & ~v_none(v_gather_near(s->bits, v_word(doc), docs[0] / 32, docs[last] / 32, of), v_bit(doc));
}

/* The same as keep_by, of the sieve. */
static inline u32 keep_passing(u32 *docs, u32 *tfs, u32 n, const gx_cpu_sieve *s)
{
    u32 to = 0;
    for (u32 v = 0; v < n; v += LANES) {
        const u32 last = n - v < LANES ? n - v - 1 : LANES - 1;
        const bits m = passing(s, docs + v, last, first_lanes(v, n), first_bits(v, n));
        const vec doc = v_load(docs + v), tf = v_load(tfs + v);
        const order o = order_of(m);
        compress_store(docs, to, o, doc);
        compress_store(tfs, to, o, tf);
        to += count(m);
    }
    return to;
}

/* Whether the clause selects all documents from first to last. */
static inline bool is_sure(const gx_cpu_clause *c, u32 first, u32 last)
{
    return first >= c->sure_first && last < c->sure_end;
}

/* The first of b's clauses that may not select all of docs [n], which rise. */
static inline u32 first_unsure(const gx_cpu_bound *b, const u32 *docs, u32 n)
{
    u32 clause = b->clause;
    while (clause < b->end_clause && is_sure(&b->program->clauses[clause], docs[0], docs[n - 1]))
        ++clause;
    return clause;
}

/* The postings of docs [n] that b's clauses from number `clause` to `end` select, to the beginning. Returns
 * their number. */
static inline u32 keep_postings(u32 *docs, u32 *tfs, u32 n, const gx_cpu_bound *b, u32 clause, u32 end)
{
    const gx_cpu_program *const p = b->program;
    for (; clause < end && n; ++clause) {
        const gx_cpu_clause *const c = &p->clauses[clause];
        if (is_sure(c, docs[0], docs[n - 1]))
            continue;
        n = is_of_number(p, c) ? keep_by_number(docs, tfs, n, &p->tests[c->first]) : keep_by(docs, tfs, n, p, c);
    }
    return n;
}

#endif
