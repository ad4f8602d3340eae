/* Lists encoded in memory decode to what they were. */
#include "index/write/list_encoder.h"

#include "codecs/auto_codec.h"
#include "codecs/decode.h"
#include "codecs/words/bits.h"
#include "engine/random.h"
#include "index/format.h"
#include "tests/support/test.h"

enum { N_DOCS = 20000, MOST = 6000 };

static uint32_t docids[MOST], tfs[MOST];

/* df postings of docids below N_DOCS. */
static gx_term_postings draw(uint64_t *seed, const char *term, uint32_t df)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < N_DOCS && n < df; ++d) {
        if (gx_random_next(seed) % (N_DOCS - d) >= df - n)
            continue;
        docids[n] = d;
        tfs[n++] = 1 + (uint32_t)(gx_random_next(seed) >> (32 + gx_random_next(seed) % 32));
    }
    return (gx_term_postings){.term = term, .len = strlen(term), .df = df, .docids = docids, .tfs = tfs};
}

/* A block's words with the slack that decoders may read. */
static const uint32_t *with_slack(const uint32_t *words, uint32_t n)
{
    static uint32_t copy[4 * GX_MAX_BLOCK + GX_READ_SLACK];
    assert_true(n <= 4 * GX_MAX_BLOCK);
    memset(copy, 0, sizeof copy);
    memcpy(copy, words, n * sizeof *copy);
    return copy;
}

/* The encoder's last list holds docids[df] and tfs[df] from `block` and `word` on. */
static void expect_list(const gx_list_encoder *e, const gx_codec *docid_codec, size_t block, size_t word)
{
    const gx_encoded_list *l = &e->lists[e->n_lists - 1];
    const uint32_t block_len = docid_codec->block_len, *const words = e->words + word;
    uint32_t out[2 * GX_MAX_BLOCK], begin = 0, at;
    uint64_t sum = 0;
    for (at = 0; at < l->df; at += block_len, ++block) {
        const uint32_t n = l->df - at < block_len ? l->df - at : block_len, end = e->docid_ends[block];
        assert_int_equal(e->heads[block], docids[at]);
        gx_decode_docids(l->docids, with_slack(words + begin, end - begin), end - begin, n, l->docid_param,
                         e->heads[block], out);
        assert_memory_equal(out, docids + at, n * sizeof *out);
        begin = end;
    }
    block -= (l->df - 1) / block_len + 1;
    for (at = 0; at < l->df; at += block_len, ++block) {
        const uint32_t n = l->df - at < block_len ? l->df - at : block_len, end = e->tf_ends[block];
        l->tfs->decode(with_slack(words + begin, end - begin), end - begin, n, l->tf_param, out);
        for (uint32_t i = 0; i < n; ++i) {
            assert_int_equal(out[i] + 1, tfs[at + i]);
            sum += tfs[at + i];
        }
        begin = end;
    }
    assert_int_equal(l->n_words, begin);
    assert_int_equal(l->sum_tfs, sum);
    assert_int_equal(e->n_blocks, block);
    assert_int_equal(e->n_words, word + begin);
}

static void round_trip(const gx_codec *docid_codec, const gx_codec *tf_codec)
{
    static const uint32_t dfs[] = {1, 2, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2500, MOST};
    gx_list_encoder e;
    gx_error err = {0};
    uint64_t seed = 42;
    gx_list_encoder_open(&e, docid_codec, tf_codec, N_DOCS);
    for (uint32_t turn = 0; turn < 2; ++turn, gx_list_encoder_clear(&e)) { /* it is used again */
        size_t n_terms = 0;
        for (uint32_t i = 0; i < sizeof dfs / sizeof *dfs; ++i) {
            char term[16];
            const size_t block = e.n_blocks, word = e.n_words;
            const gx_term_postings list = draw(&seed, (sprintf(term, "t%u", i), term), dfs[i]);
            if (gx_list_encoder_add(&e, &list, &err) != GX_OK)
                fail_msg("%s, %s: %s", docid_codec->name, tf_codec->name, err.text);
            assert_int_equal(e.n_lists, i + 1);
            assert_int_equal(e.lists[i].df, dfs[i]);
            assert_int_equal(e.lists[i].term_len, strlen(term));
            assert_memory_equal(e.terms + n_terms, term, strlen(term));
            n_terms += strlen(term);
            expect_list(&e, docid_codec, block, word);
        }
        assert_int_equal(e.n_terms, n_terms);
    }
    gx_list_encoder_close(&e);
}

static void lists_of_every_codec_decode_to_what_they_were(void **state)
{
    (void)state;
    printf("seed 42\n");
    for (uint32_t i = 0; gx_codecs[i]; ++i) {
        for (uint32_t j = 0; gx_codecs[j]; ++j)
            if (gx_codecs[i]->block_len == gx_codecs[j]->block_len)
                round_trip(gx_codecs[i], gx_codecs[j]);
    }
    round_trip(&gx_codec_auto, &gx_codec_auto);
}

static void a_codec_chosen_for_a_list_is_the_cheapest_candidate(void **state)
{
    (void)state;
    gx_list_encoder e;
    gx_error err = {0};
    uint64_t seed = 8;
    gx_list_encoder_open(&e, &gx_codec_auto, &gx_codec_auto, N_DOCS);
    for (uint32_t df = 1; df <= MOST; df = df * 3 + 1) {
        gx_choice choices[GX_MAX_CHOICES];
        uint32_t gaps[MOST];
        const gx_term_postings list = draw(&seed, "t", df);
        assert_int_equal(gx_list_encoder_add(&e, &list, &err), GX_OK);
        for (uint32_t i = 0; i < df; ++i)
            gaps[i] = i % 128 ? docids[i] - docids[i - 1] - 1 : 0;
        gx_choices(true, gaps, df, (double)df / N_DOCS, choices);
        double chosen = 0, least = choices[0].cost;
        for (uint32_t i = 0; i < GX_MAX_CHOICES; ++i) {
            least = choices[i].cost < least ? choices[i].cost : least;
            if (choices[i].codec == e.lists[e.n_lists - 1].docids)
                chosen = choices[i].cost;
        }
        assert_true(chosen == least);
    }
    gx_list_encoder_close(&e);
}

/* The list is refused for the reason, and the lists before it stay as they were. */
static void expect_refused(const gx_term_postings *list, const char *reason)
{
    gx_list_encoder e;
    gx_error err = {0};
    static uint32_t one_docid[] = {5}, one_tf[] = {2};
    const gx_term_postings good = {.term = "good", .len = 4, .df = 1, .docids = one_docid, .tfs = one_tf};
    gx_list_encoder_open(&e, &gx_codec_gpubp128, &gx_codec_gpubp128, 1000);
    assert_int_equal(gx_list_encoder_add(&e, &good, &err), GX_OK);
    const size_t n_words = e.n_words, n_blocks = e.n_blocks, n_terms = e.n_terms;
    assert_int_equal(gx_list_encoder_add(&e, list, &err), GX_EUSAGE);
    assert_string_equal(err.text, reason);
    assert_int_equal(e.n_lists, 1);
    assert_int_equal(e.n_words, n_words);
    assert_int_equal(e.n_blocks, n_blocks);
    assert_int_equal(e.n_terms, n_terms);
    assert_int_equal(gx_list_encoder_add(&e, &good, &err), GX_OK); /* and it goes on */
    gx_list_encoder_close(&e);
}

static void a_list_that_is_none_is_refused_by_name(void **state)
{
    (void)state;
    uint32_t d[200], f[200];
    gx_term_postings list = {.term = "bad\n", .len = 4, .df = 3, .docids = d, .tfs = f};
    for (uint32_t i = 0; i < 200; ++i) {
        d[i] = i;
        f[i] = 1;
    }
    d[2] = 1;
    expect_refused(&list, "list of term 'bad?': docids do not rise");
    d[2] = 1000;
    expect_refused(&list, "list of term 'bad?': docid 1000, of 1000 documents");
    d[2] = 2;
    f[1] = 0;
    expect_refused(&list, "list of term 'bad?': a tf is 0");
    f[1] = 1;
    list.df = 200;
    d[128] = 127; /* across the border of two blocks */
    expect_refused(&list, "list of term 'bad?': docids do not rise");
    list.df = 0;
    expect_refused(&list, "term 'bad?' has 0 postings; there are 1000 documents");
    list.df = 1001;
    expect_refused(&list, "term 'bad?' has 1001 postings; there are 1000 documents");
}

static void a_term_that_is_too_long_is_shown_in_part(void **state)
{
    (void)state;
    static char term[GX_MAX_STRING + 1];
    char want[200], shown[64];
    uint32_t d = 0, f = 1;
    memset(term, 'a', sizeof term);
    sprintf(want, "term '%.60s...' has %zu bytes; the most is %u", term, sizeof term, GX_MAX_STRING);
    const gx_term_postings list = {.term = term, .len = sizeof term, .df = 1, .docids = &d, .tfs = &f};
    expect_refused(&list, want);
    assert_string_equal(gx_show_term("a\tb\x7f"
                                     "c",
                                     5, shown),
                        "a?b?c");
    assert_string_equal(gx_show_term("", 0, shown), "");
    assert_int_equal(strlen(gx_show_term(term, 60, shown)), 60);
    assert_int_equal(strlen(gx_show_term(term, 61, shown)), 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_every_codec_decode_to_what_they_were),
        cmocka_unit_test(a_codec_chosen_for_a_list_is_the_cheapest_candidate),
        cmocka_unit_test(a_list_that_is_none_is_refused_by_name),
        cmocka_unit_test(a_term_that_is_too_long_is_shown_in_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
