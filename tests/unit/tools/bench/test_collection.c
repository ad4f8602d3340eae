/* Generated collections: the same whatever the number of threads, well formed, and of the shape
 * that was asked for. */
#include "tests/support/test.h"
#include "tools/bench/data/collection.h"

static gx_synth *open_synth(uint64_t seed, const char *codec, uint32_t threads)
{
    gx_synth_options opt = GX_SYNTH_OPTIONS;
    gx_error err = {0};
    gx_synth *s;
    opt.n_docs = 300000;
    opt.n_terms = 100;
    opt.n_queries = 200;
    opt.seed = seed;
    opt.codec = gx_codec_by_name(codec);
    opt.threads = threads;
    if (gx_synth_open(&s, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return s;
}

static void threads_make_no_difference(void **state)
{
    (void)state;
    gx_synth *a = open_synth(7, "gpubp128", 1), *b = open_synth(7, "gpubp128", 5), *c = open_synth(8, "gpubp128", 2);
    assert_int_equal(a->ix.header->device_bytes, b->ix.header->device_bytes);
    assert_memory_equal(a->ix.file, b->ix.file, sizeof(gx_header));
    assert_memory_equal(a->ix.heads, b->ix.heads, a->ix.n_blocks * sizeof(uint32_t));
    assert_memory_equal(a->ix.payload, b->ix.payload, a->ix.payload_words * sizeof(uint32_t));
    assert_memory_equal(a->ix.doc_lens, b->ix.doc_lens, a->ix.n_docs * sizeof(uint32_t));
    assert_memory_equal(a->queries, b->queries, a->n_queries * sizeof *a->queries);
    assert_true(a->ix.n_postings != c->ix.n_postings);
    gx_synth_close(a);
    gx_synth_close(b);
    gx_synth_close(c);
}

static void lists_are_well_formed(void **state)
{
    static const char *const codecs[] = {"gpubp128", "gpubp256", "gpuvbyte1024", "raw"};
    (void)state;
    for (size_t c = 0; c < sizeof codecs / sizeof *codecs; ++c) {
        gx_synth *s = open_synth(3, codecs[c], 2);
        uint64_t postings = 0, blocks = 0;
        for (uint32_t t = 0; t < s->ix.n_terms; ++t) {
            uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
            const gx_list l = gx_index_list(&s->ix, t);
            int64_t last = -1;
            assert_int_equal(s->ix.lists[t].first_block, blocks);
            for (uint32_t j = 0; j < l.n_blocks; ++j) {
                const uint32_t n = gx_list_decode_docids(&l, j, docids);
                assert_int_equal(gx_list_decode_tfs(&l, j, tfs), n);
                assert_int_equal(docids[0], l.heads[j]);
                for (uint32_t i = 0; i < n; ++i) {
                    assert_true(docids[i] > last && docids[i] < s->ix.n_docs);
                    assert_true(tfs[i] >= 1 && tfs[i] <= 255);
                    last = docids[i];
                }
                postings += n;
            }
            blocks += l.n_blocks;
        }
        assert_int_equal(postings, s->ix.n_postings);
        assert_int_equal(blocks, s->ix.n_blocks);
        gx_synth_close(s);
    }
}

static void queries_have_two_to_five_different_terms(void **state)
{
    (void)state;
    gx_synth *s = open_synth(5, "gpubp128", 2);
    assert_int_equal(s->n_queries, 200);
    for (uint32_t q = 0; q < s->n_queries; ++q) {
        const gx_synth_query *Q = &s->queries[q];
        assert_in_range(Q->n, 2, 5);
        for (uint32_t i = 0; i < Q->n; ++i) {
            assert_true(Q->terms[i] < s->ix.n_terms);
            if (i)
                assert_true(s->ix.lists[Q->terms[i - 1]].df <= s->ix.lists[Q->terms[i]].df);
            for (uint32_t j = 0; j < i; ++j)
                assert_int_not_equal(Q->terms[i], Q->terms[j]);
        }
    }
    gx_synth_close(s);
}

static void sizes_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    gx_synth_options opt = GX_SYNTH_OPTIONS;
    gx_error err = {0};
    gx_synth *s = (gx_synth *)1;
    opt.codec = NULL;
    assert_int_equal(gx_synth_open(&s, &opt, &err), GX_EUSAGE);
    assert_null(s);
    opt.codec = gx_codec_by_name("raw");
    opt.n_docs = 999;
    assert_int_equal(gx_synth_open(&s, &opt, &err), GX_EUSAGE);
    opt.n_docs = 1000;
    opt.density = 0;
    assert_int_equal(gx_synth_open(&s, &opt, &err), GX_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_make_no_difference),
        cmocka_unit_test(lists_are_well_formed),
        cmocka_unit_test(queries_have_two_to_five_different_terms),
        cmocka_unit_test(sizes_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
