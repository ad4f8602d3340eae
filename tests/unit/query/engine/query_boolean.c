/* query_boolean.c: random boolean queries, in text, against a judge of its own: while a query is
 * written, the set of its documents and the weights of its terms are kept; the oracle scores those.
 * Its conditions are on ids; unit/query/filter/test_conditions.c has those on attributes.
 * */
#include <math.h>

#include "engine/api/gpuidx_advanced.h"
#include "tests/support/query_fixture.h"
#include "tests/support/test.h"

enum { MOST_TEXT = 4000, N_SETS = 5 };

/* What files of ids have: bits of documents. */
typedef struct id_sets {
    uint64_t *words[N_SETS];
    size_t n_words;
} id_sets;

typedef struct judge {
    const id_sets *sets;
    bool selects; /* a condition that is not negated */
    const gen_collection *c;
    gen_rng *r;
    gx_op op;
    test_query *t; /* terms that score, and the text */
    size_t len;
} judge;

__attribute__((format(printf, 2, 3))) static void say(judge *j, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    j->len += (size_t)vsnprintf(j->t->text + j->len, sizeof j->t->text - j->len, format, list);
    va_end(list);
}

static void add_score(judge *j, uint32_t term, uint32_t weight)
{
    test_query *t = j->t;
    uint32_t i = 0;
    while (i < t->q.n_terms && t->terms[i] != term)
        ++i;
    t->terms[i] = term;
    t->qtfs[i] += weight;
    t->q.n_terms += i == t->q.n_terms;
}

static bool *new_set(const judge *j)
{
    bool *set = calloc(j->c->n_docs, 1);
    assert_non_null(set);
    return set;
}

static void write_node(judge *j, uint32_t depth, uint32_t weight, bool negated, bool *set);

/* One document, one that is not there, or those of a file. */
static void write_condition(judge *j, bool negated, bool *set)
{
    const uint32_t number = gen_below(j->r, N_SETS), docid = gen_below(j->r, j->c->n_docs + 1);
    const bool file = gen_below(j->r, 4) > 0;
    j->selects = j->selects || !negated;
    if (file)
        say(j, gen_below(j->r, 2) ? "id:@s%u" : "id:@\"s%u\"", number);
    else
        say(j, "id:d%u", docid);
    for (uint32_t d = 0; d < j->c->n_docs; ++d)
        set[d] = file ? j->sets->words[number][d / 64] >> d % 64 & 1 : d == docid;
}

static void write_word(judge *j, uint32_t weight, bool negated, bool *set)
{
    char name[16];
    if (gen_below(j->r, 5) == 0) {
        write_condition(j, negated, set);
        return;
    }
    if (gen_below(j->r, 20) == 0) {
        say(j, "nowhere");
        return;
    }
    const uint32_t term = gen_below(j->r, j->c->n_terms);
    const uint32_t times = gen_below(j->r, 4) ? 1 : 2 + gen_below(j->r, 3);
    gen_term_name(term, name);
    say(j, gen_below(j->r, 9) ? "%s" : "\"%s\"", name);
    if (times > 1)
        say(j, "^%u", times);
    for (uint32_t i = 0; i < j->c->lists[term].df; ++i)
        set[j->c->lists[term].docids[i]] = true;
    if (!negated)
        add_score(j, term, weight * times);
}

/* Negations, one after another; returns whether they negate. */
static bool write_negations(judge *j)
{
    static const char *const signs[] = {"-", "NOT ", "-NOT ", "NOT -"};
    const uint32_t n = gen_below(j->r, 3) ? 1 : 1 + gen_below(j->r, 3);
    bool negates = false;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t sign = gen_below(j->r, 4);
        say(j, "%s", signs[sign]);
        negates ^= sign < 2;
    }
    return negates;
}

static void negate(const judge *j, bool *set)
{
    for (uint32_t d = 0; d < j->c->n_docs; ++d)
        set[d] = !set[d];
}

/* All sets of n children into set, by AND or by OR. */
static void write_operands(judge *j, uint32_t depth, uint32_t weight, bool negated, bool *set)
{
    const bool all = gen_below(j->r, 2);
    const uint32_t n = 2 + gen_below(j->r, 3);
    bool *one = new_set(j);
    for (uint32_t i = 0; i < n; ++i) {
        say(j, i ? (all ? " AND " : " OR ") : "");
        memset(one, 0, j->c->n_docs);
        const bool signs = gen_below(j->r, 5) == 0, negates = signs && write_negations(j);
        write_node(j, depth - 1, weight, negated || signs, one);
        if (negates)
            negate(j, one);
        for (uint32_t d = 0; d < j->c->n_docs; ++d)
            set[d] = i == 0 ? one[d] : all ? set[d] && one[d] : set[d] || one[d];
    }
    free(one);
}

static void write_clauses(judge *j, uint32_t depth, uint32_t weight, bool negated, bool *set)
{
    const uint32_t n = 1 + gen_below(j->r, 4);
    bool *one = new_set(j), *any = new_set(j), *needed = new_set(j);
    bool required = false, optional = false;
    memset(needed, 1, j->c->n_docs);
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t sign = gen_below(j->r, 5); /* 0: +, 1: negations */
        say(j, "%s%s", i ? " " : "", sign == 0 ? "+" : "");
        const bool negates = sign == 1 && write_negations(j);
        memset(one, 0, j->c->n_docs);
        if (sign < 2 && gen_below(j->r, 2))
            write_word(j, weight, negated || sign == 1, one);
        else
            write_node(j, depth ? depth - 1 : 0, weight, negated || sign == 1, one);
        for (uint32_t d = 0; d < j->c->n_docs; ++d) {
            if (sign < 2)
                needed[d] = needed[d] && one[d] != negates;
            else
                any[d] = !optional ? one[d] : j->op == GX_OP_AND ? any[d] && one[d] : any[d] || one[d];
        }
        required = required || sign == 0;
        optional = optional || sign > 1;
    }
    for (uint32_t d = 0; d < j->c->n_docs; ++d)
        set[d] = needed[d] && (required || !optional || any[d]);
    free(one);
    free(any);
    free(needed);
}

/* A word, or what stands in parentheses. */
static void write_node(judge *j, uint32_t depth, uint32_t weight, bool negated, bool *set)
{
    const uint32_t kind = depth ? gen_below(j->r, 5) : 0;
    if (kind < 2) {
        write_word(j, weight, negated, set);
        return;
    }
    const size_t begin = j->len;
    const uint32_t times = gen_below(j->r, 6) ? 1 : 2; /* is written behind, and known before */
    say(j, "(");
    if (kind == 2) {
        const bool negates = write_negations(j);
        write_node(j, depth - 1, weight * times, true, set);
        if (negates)
            negate(j, set);
    } else if (kind == 3) {
        write_operands(j, depth, weight * times, negated, set);
    } else {
        write_clauses(j, depth, weight * times, negated, set);
    }
    say(j, times > 1 ? ")^%u" : ")", times);
    assert_true(j->len > begin && j->len < MOST_TEXT);
}

static gx_status read_set(void *user, const char *file, uint64_t *words, gx_error *err)
{
    const id_sets *sets = user;
    (void)err;
    assert_true(file[0] == 's' && file[1] >= '0' && file[1] < '0' + N_SETS && file[2] == 0);
    memcpy(words, sets->words[file[1] - '0'], sets->n_words * sizeof *words);
    return GX_OK;
}

/* Half of the documents, a sixteenth, a few, none and all. */
static void open_sets(id_sets *sets, gen_rng *r, uint32_t n_docs)
{
    static const uint32_t one_of[N_SETS] = {2, 16, 400, UINT32_MAX, 1};
    sets->n_words = ((size_t)n_docs + 63) / 64;
    for (uint32_t i = 0; i < N_SETS; ++i) {
        assert_non_null(sets->words[i] = calloc(sets->n_words + 1, sizeof(uint64_t)));
        for (uint32_t d = 0; d < n_docs; ++d)
            sets->words[i][d / 64] |= (uint64_t)(gen_below(r, one_of[i]) == 0) << d % 64;
    }
}

/* The filter's documents, or NULL: all. A query may have a filter of its own, a set. */
static void compare_boolean(const fixture *f, const engine_row *row, gen_rng *r, const id_sets *sets, gx_mask *filter,
                            const uint64_t *allowed)
{
    static test_query t;
    const uint32_t n_docs = f->c->n_docs;
    memset(&t, 0, sizeof t);
    t.q.terms = t.terms;
    t.q.qtfs = t.qtfs;
    t.q.k1 = t.q.b = NAN;
    t.q.k = gen_below(r, 3) ? 10 : gen_below(r, 2) ? 1 : 1000;
    t.q.preset = gen_below(r, 3) ? GX_BM25 : GX_BM25_PISA;
    judge j = {sets, false, f->c, r, gen_below(r, 2) ? GX_OP_OR : GX_OP_AND, &t, 0};
    bool *set = new_set(&j);
    write_clauses(&j, 3, 1, false, set);
    uint64_t *mask = calloc(n_docs / 64 + 1, sizeof *mask);
    uint32_t *docids = malloc(1000 * sizeof *docids), n_hits;
    float *scores = malloc(1000 * sizeof *scores);
    assert_true(mask && docids && scores);
    for (uint32_t d = 0; d < n_docs; ++d)
        mask[d / 64] |= (uint64_t)(set[d] && (!allowed || (allowed[d / 64] >> d % 64 & 1))) << d % 64;
    t.q.mask = mask;
    t.q.unscored = j.selects;

    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.op = j.op;
    opt.k = t.q.k;
    opt.preset = t.q.preset;
    opt.prune = gen_below(r, 4) != 0;
    opt.count = true;
    opt.mask = filter;
    gx_error err = {0};
    uint64_t n_matches;
    const gx_filter_options files = {sizeof files, read_set, (void *)sets};
    gx_query q = {.size = sizeof q, .kind = GX_QUERY_BOOLEAN, .text = t.text, .len = j.len, .filter_options = &files};
    gx_filter *own = NULL;
    if (gen_below(r, 6) == 0) {
        static const char *const texts[] = {"id:@s0", "id:@s1 OR id:d3", "NOT id:@s0 AND NOT id:d1"};
        const uint32_t which = gen_below(r, 3);
        assert_int_equal(gx_filter_open(&own, f->ix, texts[which], strlen(texts[which]), &files, &err), GX_OK);
        q.filter = own;
        for (uint32_t d = 0; d < n_docs; ++d) {
            const bool in = sets->words[which == 1][d / 64] >> d % 64 & 1, selected = which == 0   ? in
                                                                                      : which == 1 ? in || d == 3
                                                                                                   : !in && d != 1;
            mask[d / 64] &= ~((uint64_t)!selected << d % 64);
        }
    }
    const gx_results out = {sizeof out, docids, scores, &n_hits, &n_matches};
    const gx_status st = gx_search(f->s, &q, 1, &opt, &out, &err);
    if (st == GX_EUSAGE && t.q.n_terms == 0 && !j.selects) {
        assert_non_null(strstr(err.text, "only excludes"));
    } else if (st != GX_OK) {
        fail_msg("%s: '%s': %s", row->name, t.text, err.text);
    } else {
        oracle_answer want = oracle_search(f->c, &t.q);
        check_answer(f, row, &t, &opt, &want, (engine_answer){docids, scores, n_hits});
        if (n_matches != want.n_matches)
            fail_msg("%s: '%s': %llu matches, not %llu", row->name, t.text, (unsigned long long)n_matches,
                     (unsigned long long)want.n_matches);
        oracle_free(&want);
    }
    gx_filter_close(own);
    free(mask);
    free(docids);
    free(scores);
    free(set);
}

void answers_to_boolean_queries_equal_the_oracles(void **state)
{
    const engine_row *row = *state;
    const uint64_t seed = test_seed() + 12000;
    uint32_t n_cases = 0;
    for (uint32_t i = 0; n_cases < min_cases() / 8; ++i) {
        gen_rng r = {seed + i};
        fixture f;
        gx_mask *filter = NULL;
        gx_error err = {0};
        const uint32_t n_docs = 1 + gen_below(&r, i % 3 ? 2500 : 70);
        open_collection(&f, seed + i, (gen_shape)(i % GEN_N_SHAPES), n_docs, 4 + gen_below(&r, 20), pick_codec(1),
                        pick_codec(1));
        if (!open_engine(&f, row, UINT64_MAX)) {
            close_collection(&f);
            skip();
        }
        if (i == 0)
            print_message("seed %llu, %s\n", (unsigned long long)seed, gx_engine_describe(f.en));
        id_sets sets;
        open_sets(&sets, &r, n_docs);
        uint64_t *allowed = calloc(n_docs / 64 + 1, sizeof *allowed);
        assert_non_null(allowed);
        for (uint32_t d = 0; d < n_docs; ++d)
            allowed[d / 64] |= (uint64_t)(gen_below(&r, 3) > 0) << d % 64;
        assert_int_equal(gx_mask_open(&filter, f.en, allowed, &err), GX_OK);
        for (uint32_t n = 60; n; --n, ++n_cases) {
            const bool filtered = gen_below(&r, 4) == 0;
            compare_boolean(&f, row, &r, &sets, filtered ? filter : NULL, filtered ? allowed : NULL);
        }
        gx_mask_close(filter);
        free(allowed);
        for (uint32_t k = 0; k < N_SETS; ++k)
            free(sets.words[k]);
        close_collection(&f);
    }
    print_message("%u cases\n", n_cases);
}
