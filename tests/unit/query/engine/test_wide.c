/* Collections of more than 2^32 - 2 documents, against a judge that shares no code with the library
 * (support/wide_world.h): small parts at docids on both sides of multiples of 2^32, with many equal scores.
 *
 *   GX_TEST_CASES=1000 GX_TEST_SEED=5 build/tests/test_wide     the long form
 */
#include <inttypes.h>
#include <math.h>

#include "tests/support/scratch.h"
#include "tests/support/wide_world.h"

static uint64_t base_seed;
static uint32_t n_cases;

/* ---- searching ---- */

static void search(const world *w, gx_session *s, const world_query *q, gx_query query, gx_query_options o,
                   const char *how)
{
    static uint64_t docids[1000];
    static uint32_t narrow[1000];
    static double scores[1000];
    static world_answer want;
    gx_error err = {0};
    uint32_t n = 0;
    uint64_t n_matches = 0;
    gx_results out = {.size = sizeof out,
                      .docids64 = docids,
                      .docids = gx_index_is_wide(w->ix) ? NULL : narrow,
                      .n_hits = &n,
                      .n_matches = &n_matches,
                      .exact_scores = scores};
    world_judge(w, q, &want);
    world_check(w, gx_search(s, &query, 1, &o, &out, &err), &err);
    world_compare(w, q, how, &want, n, docids, scores);
    if (o.count && n_matches != want.n_matches)
        fail_msg("seed %" PRIu64 ", %s: %" PRIu64 " matches, not %" PRIu64, w->seed, how, n_matches, want.n_matches);
    for (uint32_t i = 0; out.docids && i < n; ++i)
        assert_true(narrow[i] == docids[i]);
}

static void one_query(world *w, world_engines *e)
{
    char text[64];
    world_query q;
    world_draw_query(w, &q);
    gx_query_options o = world_options(&q);
    const gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text)};
    o.prune = world_below(w, 4) != 0;
    o.count = world_below(w, 2);
    for (uint32_t i = 0; i < e->n; ++i)
        for (int times = 0; times < (i == 1 ? 2 : 1); ++times)
            search(w, e->sessions[i], &q, query, o, e->names[i]);
}

static void answers_are_in_the_order_of_one_index(void **state)
{
    (void)state;
    static world w;
    for (uint32_t c = 0; c < n_cases; ++c) {
        world_engines e;
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        world_open_engines(&e, &w);
        for (uint32_t i = 0; i < 60; ++i)
            one_query(&w, &e);
        world_close_engines(&e);
        world_close(&w);
    }
}

/* Without a tie on the border the tests above would show little. */
static void equal_scores_lie_on_both_sides_of_a_border(void **state)
{
    (void)state;
    static world w;
    static world_answer a;
    const world_query q = {.n = 1, .words = {3}, .k = 1000};
    uint32_t n_ties = 0;
    for (uint32_t c = 0; c < n_cases; c += WORLD_PLACES) {
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, WORLD_BORDER_IN_A_PART);
        world_judge(&w, &q, &a);
        for (uint32_t i = 1; i < a.n; ++i)
            n_ties += a.hits[i].score == a.hits[i - 1].score && a.hits[i].docid >> 32 != a.hits[i - 1].docid >> 32;
        world_close(&w);
    }
    assert_true(n_ties > 0);
}

/* ---- documents and lists ---- */

static void check_document(const world *w, const world_doc *d)
{
    char id[16];
    size_t len;
    const size_t id_len = (size_t)sprintf(id, "d%u", d->number);
    const uint64_t want = d->live ? d->docid : UINT64_MAX;
    assert_true(gx_index_find_doc64(w->ix, id, id_len) == want);
    assert_int_equal(gx_index_find_doc(w->ix, id, id_len), want < UINT32_MAX ? (uint32_t)want : UINT32_MAX);
    if (!d->live)
        return;
    const char *found = gx_index_doc_id(w->ix, d->docid, &len);
    assert_int_equal(len, id_len);
    assert_memory_equal(found, id, len);
    assert_int_equal(gx_index_doc_len(w->ix, d->docid), d->length);
    char joined[20] = "";
    assert_int_equal(gx_index_join_doc_ids64(w->ix, &d->docid, 1, joined, sizeof joined), id_len + 1);
    assert_true(memcmp(joined, id, id_len) == 0 && joined[id_len] == '\n');
}

static void check_list(const world *w, uint32_t word)
{
    char text[8];
    gx_postings *p;
    gx_error err = {0};
    const uint32_t *docids, *tfs;
    uint32_t n, at = 0, df = 0;
    const uint32_t term = gx_index_find_term(w->ix, text, (size_t)sprintf(text, "w%u", word));
    if (term == UINT32_MAX)
        return;
    world_check(w, gx_postings_open(&p, w->ix, term, &err), &err);
    do {
        world_check(w, gx_postings_next(p, &docids, &tfs, &n, &err), &err);
        for (uint32_t i = 0; i < n; ++i, ++at, ++df) {
            while (!w->docs[at].live || !w->docs[at].tfs[word])
                ++at;
            assert_true(gx_postings_base(p) + docids[i] == w->docs[at].docid);
            assert_int_equal(tfs[i], w->docs[at].tfs[word]);
        }
    } while (n);
    assert_true(gx_index_df(w->ix, term) == df);
    gx_postings_close(p);
}

static void check_explanation(world *w)
{
    static world_answer a;
    char text[64];
    gx_error err = {0};
    gx_explanation e;
    world_query q;
    world_draw_query(w, &q);
    q.op = GX_OP_OR;
    world_judge(w, &q, &a);
    const gx_query_options o = world_options(&q);
    const gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text)};
    for (uint32_t i = 0; i < a.n; i += 7) {
        world_check(w, gx_explain(&e, w->ix, &query, &o, a.hits[i].docid, &err), &err);
        assert_int_equal(e.sum, a.hits[i].score);
        assert_true(e.docid == a.hits[i].docid && e.n_docs == w->n_docs);
        gx_explanation_free(&e);
    }
}

static void documents_and_lists_are_found(void **state)
{
    (void)state;
    static world w;
    for (uint32_t c = 0; c < n_cases; ++c) {
        gx_index_stats st = {.size = sizeof st};
        size_t len;
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        for (uint32_t i = 0; i < w.n; ++i)
            check_document(&w, &w.docs[i]);
        for (uint32_t t = 0; t < WORLD_WORDS; ++t)
            check_list(&w, t);
        check_explanation(&w);
        assert_int_equal(gx_index_get_stats(w.ix, &st), GX_OK);
        assert_true(st.n_documents == w.n_docs && gx_index_n_docs(w.ix) == w.n_docs && st.n_tokens == w.n_tokens);
        assert_int_equal(st.n_docs, w.n_docs < UINT32_MAX ? (uint32_t)w.n_docs : UINT32_MAX);
        assert_null(gx_index_doc_id(w.ix, w.n_docs, &len));
        assert_null(gx_index_doc_title(w.ix, UINT64_MAX, &len));
        assert_int_equal(gx_index_doc_len(w.ix, w.n_docs), 0);
        world_close(&w);
    }
}

/* ---- what selects documents ---- */

static void filters_and_boolean_queries_select(void **state)
{
    (void)state;
    static world w;
    for (uint32_t c = 0; c < n_cases; ++c) {
        world_engines e;
        gx_error err = {0};
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        world_open_engines(&e, &w);
        for (uint32_t i = 0; i < 20; ++i) {
            char text[64], condition[64], both[160];
            gx_filter *f;
            world_query q;
            world_draw_query(&w, &q);
            q.least_year = 1990 + world_below(&w, 20);
            q.most_year = q.least_year + world_below(&w, 6);
            const size_t len = (size_t)sprintf(condition, "year:[%u TO %u]", q.least_year, q.most_year);
            world_check(&w, gx_filter_open(&f, w.ix, condition, len, NULL, &err), &err);
            gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text), .filter = f};
            gx_query_options o = world_options(&q);
            o.count = true;
            for (uint32_t x = 0; x < e.n; ++x)
                search(&w, e.sessions[x], &q, query, o, "with a filter");
            q.op = o.op = GX_OP_OR; /* the condition and at least one word */
            query = (gx_query){.size = sizeof query, .kind = GX_QUERY_BOOLEAN, .text = both};
            query.len = (size_t)sprintf(both, "+(%s) +%s", text, condition);
            for (uint32_t x = 0; x < e.n; ++x)
                search(&w, e.sessions[x], &q, query, o, both);
            gx_filter_close(f);
        }
        world_close_engines(&e);
        world_close(&w);
    }
}

/* All documents of a year, without a word: they have score 0, and come by docid. */
static void documents_without_a_score_come_by_docid(void **state)
{
    (void)state;
    static world w;
    for (uint32_t c = 0; c < n_cases; ++c) {
        world_engines e;
        gx_error err = {0};
        uint64_t docids[10];
        uint32_t n = 0, at = 0;
        gx_query_options o = GX_QUERY_OPTIONS;
        const gx_query query = {.size = sizeof query, .kind = GX_QUERY_BOOLEAN, .text = "year:<2000", .len = 10};
        const gx_results out = {.size = sizeof out, .docids64 = docids, .n_hits = &n};
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        world_open_engines(&e, &w);
        for (uint32_t x = 0; x < e.n; ++x) {
            world_check(&w, gx_search(e.sessions[x], &query, 1, &o, &out, &err), &err);
            at = 0;
            for (uint32_t i = 0; i < n; ++i, ++at) {
                while (!w.docs[at].live || !w.docs[at].year || w.docs[at].year >= 2000)
                    ++at;
                assert_true(docids[i] == w.docs[at].docid);
            }
            assert_true(n > 0);
        }
        world_close_engines(&e);
        world_close(&w);
    }
}

/* The documents of the answer that have a bit. */
static void keep_allowed(world_answer *a, const uint64_t *words, uint32_t k)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < a->n_matches; ++i)
        if (words[a->hits[i].docid / 64] >> a->hits[i].docid % 64 & 1)
            a->hits[kept++] = a->hits[i];
    a->n_matches = kept;
    a->n = kept < k ? kept : k;
}

static void search_masked(world *w, gx_session *s, const uint64_t *words, const gx_mask *mask)
{
    static world_answer want;
    static uint64_t docids[1000];
    static double scores[1000];
    char text[64];
    gx_error err = {0};
    uint32_t n;
    world_query q;
    world_draw_query(w, &q);
    q.op = q.op == GX_OP_AND_OR ? GX_OP_OR : q.op;
    world_judge(w, &q, &want);
    keep_allowed(&want, words, q.k);
    gx_query_options o = world_options(&q);
    o.mask = mask;
    const gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text)};
    const gx_results out = {.size = sizeof out, .docids64 = docids, .n_hits = &n, .exact_scores = scores};
    world_check(w, gx_search(s, &query, 1, &o, &out, &err), &err);
    world_compare(w, &q, "under a mask", &want, n, docids, scores);
}

/* A bit a document: half a gigabyte, of which few pages are written. */
static void masks_select(void **state)
{
    (void)state;
    static world w;
    world_open(&w, scratch_dir, base_seed);
    for (int place = 0; place < WORLD_PLACES; ++place) {
        world_engines e;
        gx_error err = {0};
        if (place == WORLD_FAR)
            continue;
        world_place_at(&w, place);
        uint64_t *words = calloc(w.n_docs / 64 + 1, sizeof *words);
        assert_non_null(words);
        for (uint32_t i = 0; i < w.n; ++i)
            if (w.docs[i].live && world_below(&w, 2))
                words[w.docs[i].docid / 64] |= UINT64_C(1) << w.docs[i].docid % 64;
        world_open_engines(&e, &w);
        for (uint32_t x = 0; x < e.n; ++x) {
            gx_mask *mask;
            world_check(&w, gx_mask_open(&mask, e.engines[x], words, &err), &err);
            for (uint32_t i = 0; i < 20; ++i)
                search_masked(&w, e.sessions[x], words, mask);
            gx_mask_close(mask);
        }
        world_close_engines(&e);
        free(words);
    }
    world_close(&w);
}

int main(void)
{
    base_seed = world_number("GX_TEST_SEED", 1);
    n_cases = (uint32_t)world_number("GX_TEST_CASES", 4 * WORLD_PLACES);
    print_message("%u cases from seed %" PRIu64 "\n", n_cases, base_seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_in_the_order_of_one_index),
        cmocka_unit_test(equal_scores_lie_on_both_sides_of_a_border),
        cmocka_unit_test(documents_and_lists_are_found),
        cmocka_unit_test(filters_and_boolean_queries_select),
        cmocka_unit_test(documents_without_a_score_come_by_docid),
        cmocka_unit_test(masks_select),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
