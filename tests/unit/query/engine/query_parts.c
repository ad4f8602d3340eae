/* query_parts.c: a collection split into parts, an index each, and searched with the statistics of
 * the whole: the answer equals that of one index of the whole, to the bit. Terms have weights. */
#include <math.h>
#include <unistd.h>

#include "query/score/topk.h"
#include "tests/support/query_fixture.h"
#include "tests/support/test.h"

enum { MOST_PARTS = 8, MOST_WORDS = 8 };

typedef struct split {
    uint32_t n, base[MOST_PARTS];
    fixture part[MOST_PARTS];
} split;

/* Documents [begin, end) of c. */
static gen_collection *cut(const gen_collection *c, uint32_t begin, uint32_t end)
{
    gen_collection *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->seed = c->seed;
    p->n_docs = end - begin;
    p->n_terms = c->n_terms;
    p->lists = calloc(c->n_terms, sizeof *p->lists);
    p->doc_lens = malloc(p->n_docs * sizeof *p->doc_lens);
    assert_true(p->lists && p->doc_lens);
    memcpy(p->doc_lens, c->doc_lens + begin, p->n_docs * sizeof *p->doc_lens);
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        const gen_list *from = &c->lists[t];
        gen_list *to = &p->lists[t];
        to->docids = malloc((from->df + 1) * sizeof *to->docids);
        to->tfs = malloc((from->df + 1) * sizeof *to->tfs);
        assert_true(to->docids && to->tfs);
        for (uint32_t i = 0; i < from->df; ++i) {
            if (from->docids[i] < begin || from->docids[i] >= end)
                continue;
            to->docids[to->df] = from->docids[i] - begin;
            to->tfs[to->df++] = from->tfs[i];
            p->n_tokens += from->tfs[i];
        }
    }
    return p;
}

/* False: there is no such engine here. */
static bool open_parts(split *s, const fixture *whole, const engine_row *row, gen_rng *r)
{
    const uint32_t n_docs = whole->c->n_docs;
    uint32_t begin = 0;
    memset(s, 0, sizeof *s);
    for (uint32_t n = 2 + gen_below(r, MOST_PARTS - 1); s->n < n; ++s->n) {
        const uint32_t left = n - s->n - 1, rest = n_docs - begin - left;
        const uint32_t size = left ? 1 + gen_below(r, rest) : rest;
        fixture *f = &s->part[s->n];
        s->base[s->n] = begin;
        open_fixture(f, cut(whole->c, begin, begin + size), whole->docids, whole->tfs);
        begin += size;
        if (!open_engine(f, row, UINT64_MAX)) {
            ++s->n;
            return false;
        }
    }
    return true;
}

static void close_parts(split *s)
{
    for (uint32_t i = 0; i < s->n; ++i)
        close_collection(&s->part[i]);
}

/* One pass over the parts, in any order, each beginning at what the parts before have found. */
static void search_parts(split *s, const gx_query_plan *q, gx_topk *top, uint64_t *keys, gen_rng *r)
{
    const uint32_t shift = gen_below(r, s->n);
    for (uint32_t i = 0; i < s->n; ++i) {
        const uint32_t p = (i + shift) % s->n;
        gx_plan plan;
        gx_error err = {0};
        gx_hits hits = {keys, 0};
        assert_int_equal(gx_plan_bind(&plan, q, s->part[p].ix, &err), GX_OK);
        plan.base = s->base[p];
        plan.initial_threshold = gx_key_score(gx_topk_threshold(top));
        if (gx_session_run(s->part[p].s, &plan, 1, &hits, &err) != GX_OK)
            fail_msg("part %u: %s", p, err.text);
        for (uint32_t j = 0; j < hits.n; ++j)
            gx_topk_push(top, hits.keys[j]);
        gx_plan_free(&plan);
    }
}

static uint32_t answer_by_parts(split *s, gx_query_plan *q, uint64_t *merged, uint64_t *keys, gen_rng *r)
{
    gx_topk top = {merged, q->opt.k, 0};
    const gx_op asked = q->op;
    q->op = asked == GX_OP_AND_OR ? GX_OP_AND : asked;
    search_parts(s, q, &top, keys, r);
    if (asked == GX_OP_AND_OR && top.n < q->opt.k) {
        top.n = 0;
        q->op = GX_OP_OR;
        search_parts(s, q, &top, keys, r);
    }
    q->op = asked;
    gx_topk_sort(&top);
    return top.n;
}

static uint32_t make_terms(gx_weighted_term *terms, char (*names)[16], const gen_collection *c, gen_rng *r)
{
    const uint32_t n = 1 + gen_below(r, MOST_WORDS);
    for (uint32_t i = 0; i < n; ++i) {
        if (gen_below(r, 30) == 0)
            strcpy(names[i], "nowhere");
        else
            gen_term_name(gen_below(r, gen_below(r, 4) ? c->n_terms : 3), names[i]);
        const float weight = gen_below(r, 2) ? 1 : ldexpf((float)(1 + gen_below(r, 1000)), (int)gen_below(r, 20) - 15);
        terms[i] = (gx_weighted_term){names[i], strlen(names[i]), weight};
    }
    return n;
}

static void compare_parts(split *s, const fixture *whole, const engine_row *row, uint64_t *keys[3], gen_rng *r)
{
    static const uint32_t ks[] = {1, 10, 1000};
    const gx_collection_stats stats = gx_collection_stats_of(whole->ix);
    gx_weighted_term terms[MOST_WORDS];
    char names[MOST_WORDS][16];
    const uint32_t n = make_terms(terms, names, whole->c, r);
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_error err = {0};
    gx_query_plan q;
    gx_plan plan;
    gx_hits want = {keys[0], 0};
    opt.op = (gx_op)gen_below(r, 3);
    opt.k = ks[gen_below(r, 3)];
    opt.preset = (gx_preset)gen_below(r, GX_N_PRESETS);
    opt.prune = gen_below(r, 4) != 0;
    assert_int_equal(gx_query_plan_make(&q, terms, n, &stats, &opt, &err), GX_OK);
    assert_int_equal(gx_plan_bind(&plan, &q, whole->ix, &err), GX_OK);
    if (gx_session_run(whole->s, &plan, 1, &want, &err) != GX_OK)
        fail_msg("%s: %s", row->name, err.text);
    const uint32_t got = answer_by_parts(s, &q, keys[1], keys[2], r);
    if (got != want.n || memcmp(keys[1], want.keys, got * sizeof(uint64_t)) != 0)
        fail_msg("%s: %u parts give %u results and one index %u, or other ones: collection seed %llu, op %d, k %u, "
                 "scorer %s, prune %d, %u terms from '%s'",
                 row->name, s->n, got, want.n, (unsigned long long)whole->c->seed, opt.op, opt.k,
                 gx_preset_name(opt.preset), opt.prune, n, names[0]);
    gx_plan_free(&plan);
    gx_query_plan_free(&q);
}

void answers_over_parts_equal_those_over_one_index(void **state)
{
    const engine_row *row = *state;
    const uint64_t seed = test_seed() + 9000;
    uint32_t n_cases = 0;
    for (uint32_t i = 0; n_cases < min_cases() / 8; ++i) {
        gen_rng r = {seed + i};
        const gx_codec *codec = pick_codec(1);
        fixture whole;
        split s;
        open_collection(&whole, seed + i, (gen_shape)(i % GEN_N_SHAPES), MOST_PARTS + gen_below(&r, i % 4 ? 3000 : 60),
                        4 + gen_below(&r, 40), codec, codec);
        bool there = open_engine(&whole, row, UINT64_MAX);
        s.n = 0;
        there = there && open_parts(&s, &whole, row, &r);
        if (i == 0 && there)
            print_message("seed %llu, %s\n", (unsigned long long)seed, gx_engine_describe(whole.en));
        uint64_t *keys[3];
        for (uint32_t j = 0; j < 3; ++j)
            assert_non_null(keys[j] = malloc(1000 * sizeof *keys[j]));
        for (uint32_t j = 0; there && j < 60; ++j, ++n_cases)
            compare_parts(&s, &whole, row, keys, &r);
        for (uint32_t j = 0; j < 3; ++j)
            free(keys[j]);
        close_parts(&s);
        close_collection(&whole);
        if (!there)
            skip();
    }
    print_message("%u cases\n", n_cases);
}

/* Words and terms of weight 1 are one query; a weight that is no weight is refused by name. */
void answers_to_weighted_terms_are_those_to_repeated_words(void **state)
{
    const engine_row *row = *state;
    const gx_weighted_term terms[] = {
        {"t0000003", 8, 1}, {"t0000004", 8, 2.5f}, {"t0000003", 8, 1}, {"t0000004", 8, .5f}};
    const char *text = "t0000004 t0000003 t0000004 t0000003 t0000004";
    const gx_query queries[] = {(gx_query)GX_TEXT_QUERY(text, strlen(text)),
                                {.size = sizeof(gx_query), .kind = GX_QUERY_TERMS, .terms = terms, .n_terms = 4}};
    uint32_t docids[20], n_hits[2];
    float scores[20];
    const gx_results out = {sizeof out, docids, scores, n_hits, NULL};
    gx_error err = {0};
    fixture f;
    open_collection(&f, test_seed(), GEN_UNIFORM, 1000, 10, pick_codec(1), pick_codec(1));
    if (!open_engine(&f, row, UINT64_MAX)) {
        close_collection(&f);
        skip();
    }
    assert_int_equal(gx_search(f.s, queries, 2, NULL, &out, &err), GX_OK);
    assert_true(n_hits[0] == 10 && n_hits[1] == 10);
    assert_memory_equal(docids, docids + 10, 10 * sizeof *docids);
    assert_memory_equal(scores, scores + 10, 10 * sizeof *scores);
    const float wrong[] = {0, -1, NAN, INFINITY};
    for (uint32_t i = 0; i < 4; ++i) {
        const gx_weighted_term bad = {"t0000003", 8, wrong[i]};
        const gx_query q = {.size = sizeof q, .kind = GX_QUERY_TERMS, .terms = &bad, .n_terms = 1};
        assert_int_equal(gx_search(f.s, &q, 1, NULL, &out, &err), GX_EUSAGE);
        assert_non_null(strstr(err.text, "'t0000003'"));
    }
    const gx_weighted_term huge[] = {{"t0000003", 8, 3e38f}, {"t0000004", 8, 3e38f}};
    const gx_query q = {.size = sizeof q, .kind = GX_QUERY_TERMS, .terms = huge, .n_terms = 2};
    assert_int_equal(gx_search(f.s, &q, 1, NULL, &out, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "must be at most"));
    close_collection(&f);
}
