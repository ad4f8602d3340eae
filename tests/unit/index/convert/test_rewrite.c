#include "codecs/auto_codec.h"
#include "engine/api/gpuidx_advanced.h"
#include "index/check/check.h"
#include "index/corpus/source.h"
#include "tests/support/collection.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static void assert_same_file(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    assert_non_null(f);
    assert_non_null(g);
    int x, y;
    long at = 0;
    do {
        x = getc(f);
        y = getc(g);
        if (x != y)
            fail_msg("%s and %s differ at byte %ld", a, b, at);
        ++at;
    } while (x != EOF);
    fclose(f);
    fclose(g);
}

static gx_index *open_index(const char *path)
{
    gx_index *ix;
    gx_error err = {0};
    if (gx_index_open(&ix, path, NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    return ix;
}

static void rewrite(const char *from, const char *to, gx_rewrite_options opt)
{
    gx_index *ix = open_index(from);
    gx_error err = {0};
    opt.size = sizeof opt;
    opt.force = true;
    opt.uuid = collection_uuid;
    if (gx_index_rewrite(ix, to, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    gx_index_close(ix);
}

static void equals_an_index_built_with_the_new_codec(void **state)
{
    (void)state;
    uint32_t n_codecs = 0;
    while (gx_codecs[n_codecs])
        ++n_codecs;
    for (uint32_t seed = 1; seed <= 4; ++seed) { /* each codec to the one so many places on */
        collection *c = collection_make(seed, 1500, 60);
        c->impacts = seed % 2; /* the new index holds what the old one does */
        for (uint32_t i = 0; i < n_codecs; ++i) {
            const gx_codec *const a = gx_codecs[i], *const b = gx_codecs[(i + seed) % n_codecs];
            gx_error err = {0};
            assert_int_equal(collection_write(c, in_dir("a.gx"), a, NULL, &err), GX_OK);
            assert_int_equal(collection_write(c, in_dir("b.gx"), b, NULL, &err), GX_OK);
            rewrite(in_dir("a.gx"), in_dir("c.gx"), (gx_rewrite_options){.docid_codec = b->name});
            assert_same_file(in_dir("b.gx"), in_dir("c.gx"));
        }
        collection_free(c);
    }
}

/* What auto_codec.h says that a half of list t costs: half 0 is docids, 1 tfs. */
static double half_cost(const gx_index *ix, uint32_t t, int half)
{
    const gx_list l = gx_index_list(ix, t);
    const uint32_t docid_words = l.docid_ends[l.n_blocks - 1], all_words = l.tf_ends[l.n_blocks - 1];
    const gx_codec *const codec = half ? l.tfs : l.docids;
    const uint8_t time = half ? codec->decode_cost.tfs : codec->decode_cost.docids;
    assert_true(time && docid_words <= all_words);
    return 32.0 * (half ? all_words - docid_words : docid_words) +
           GX_CHOICE_BITS * l.df * ((double)l.df / ix->n_docs) * (time - 10.0) / 10;
}

static double cost(const gx_index *ix)
{
    double sum = 0;
    for (uint32_t t = 0; t < ix->n_terms; ++t)
        sum += half_cost(ix, t, 0) + half_cost(ix, t, 1);
    return sum;
}

/* Which candidates there are for a half. */
static void mark_candidates(bool is_docids, bool marks[256])
{
    const uint32_t one = 1;
    gx_choice choices[GX_MAX_CHOICES];
    gx_choices(is_docids, &one, 1, 1, choices);
    for (uint32_t i = 0; i < GX_MAX_CHOICES; ++i)
        marks[choices[i].codec->id] = true;
}

static void auto_packs_each_list_with_the_candidates_that_cost_least(void **state)
{
    (void)state;
    bool seen[256] = {false}, candidate[2][256] = {{false}};
    uint32_t n_seen = 0;
    mark_candidates(true, candidate[0]);
    mark_candidates(false, candidate[1]);
    collection *c = collection_make(2, 4000, 300);
    gx_error err = {0};
    assert_int_equal(collection_write(c, in_dir("a.gx"), gx_codec_by_name("raw"), NULL, &err), GX_OK);
    rewrite(in_dir("a.gx"), in_dir("b.gx"), (gx_rewrite_options){.docid_codec = "auto"});
    gx_index *chosen = open_index(in_dir("b.gx"));
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        if (!candidate[0][(*p)->id] && !candidate[1][(*p)->id])
            continue;
        rewrite(in_dir("a.gx"), in_dir("c.gx"), (gx_rewrite_options){.docid_codec = (*p)->name});
        gx_index *ix = open_index(in_dir("c.gx"));
        for (uint32_t t = 0; t < ix->n_terms; ++t)
            for (int half = 0; half < 2; ++half)
                assert_true(!candidate[half][(*p)->id] || half_cost(chosen, t, half) <= half_cost(ix, t, half));
        gx_index_close(ix);
    }
    for (uint32_t t = 0; t < chosen->n_terms; ++t) {
        n_seen += !seen[chosen->lists[t].coding];
        seen[chosen->lists[t].coding] = true;
    }
    assert_true(n_seen > 1);
    gx_index_close(chosen);
    rewrite(in_dir("b.gx"), in_dir("c.gx"), (gx_rewrite_options){.docid_codec = "raw"});
    assert_same_file(in_dir("a.gx"), in_dir("c.gx"));
    assert_int_equal(gx_codec_find(&(const gx_codec *){NULL}, "auto", &err), GX_OK);
    collection_free(c);
}

/* An index of the SciFact abstracts. */
static void build_scifact(const char *to, const char *codec)
{
    char path[512];
    const char *const paths[] = {path};
    gx_builder_options opt = GX_BUILDER_OPTIONS;
    const gx_source_document *doc;
    gx_error err = {0};
    gx_source *source;
    gx_builder *builder;
    snprintf(path, sizeof path, "%s/scifact/corpus.jsonl.xz", getenv("GX_TEST_DATA"));
    opt.path = to;
    opt.docid_codec = opt.tf_codec = codec;
    assert_int_equal(gx_source_open(&source, paths, 1, NULL, &err), GX_OK);
    assert_int_equal(gx_builder_open(&builder, &opt, &err), GX_OK);
    for (;;) {
        assert_int_equal(gx_source_next(source, &doc, &err), GX_OK);
        if (!doc)
            break;
        assert_int_equal(gx_builder_add(builder, &doc->doc, &err), GX_OK);
    }
    assert_int_equal(gx_builder_finish(builder, &err), GX_OK);
    gx_builder_abort(builder);
    gx_source_close(source);
}

static void auto_costs_a_real_collection_no_more_than_any_one_codec(void **state)
{
    (void)state;
    build_scifact(in_dir("raw.gx"), "raw");
    rewrite(in_dir("raw.gx"), in_dir("auto.gx"), (gx_rewrite_options){.docid_codec = "auto"});
    gx_index *chosen = open_index(in_dir("auto.gx"));
    assert_true(chosen->n_docs == 5183);
    const double least = cost(chosen);
    uint32_t n_compared = 0;
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        if ((*p)->block_len != gx_codec_auto.block_len)
            continue;
        rewrite(in_dir("raw.gx"), in_dir("one.gx"), (gx_rewrite_options){.docid_codec = (*p)->name});
        gx_index *ix = open_index(in_dir("one.gx"));
        if (least > cost(ix))
            fail_msg("auto costs %.0f bits, %s %.0f", least, (*p)->name, cost(ix));
        gx_index_close(ix);
        ++n_compared;
    }
    assert_true(n_compared > 8);
    gx_index_close(chosen);
}

static void an_order_and_its_inverse_give_the_same_index(void **state)
{
    (void)state;
    enum { N = 3000 };
    static uint32_t order[N], inverse[N];
    uint64_t seed = 7;
    for (uint32_t d = 0; d < N; ++d)
        order[d] = d;
    for (uint32_t d = N - 1; d; --d) {
        const uint32_t e = (uint32_t)(gx_random_next(&seed) % (d + 1)), swap = order[d];
        order[d] = order[e];
        order[e] = swap;
    }
    for (uint32_t d = 0; d < N; ++d)
        inverse[order[d]] = d;
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    collection *c = collection_make(11, N, 40);
    gx_error err = {0};
    assert_int_equal(collection_write(c, in_dir("a.gx"), codec, NULL, &err), GX_OK);
    rewrite(in_dir("a.gx"), in_dir("b.gx"), (gx_rewrite_options){.docid_codec = codec->name, .new_docids = order});
    rewrite(in_dir("b.gx"), in_dir("c.gx"), (gx_rewrite_options){.docid_codec = codec->name, .new_docids = inverse});
    assert_same_file(in_dir("a.gx"), in_dir("c.gx"));

    gx_index *a = open_index(in_dir("a.gx")), *b = open_index(in_dir("b.gx"));
    for (uint32_t d = 0; d < N; ++d) {
        size_t la, lb;
        const char *x = gx_index_doc_id(a, d, &la), *y = gx_index_doc_id(b, order[d], &lb);
        assert_int_equal(la, lb);
        assert_memory_equal(x, y, la);
        assert_int_equal(a->doc_lens[d], b->doc_lens[order[d]]);
    }
    gx_index_close(a);
    gx_index_close(b);
    collection_free(c);
}

/* The codecs of the index at path, as "docids tfs", when all its lists have the same. */
static const char *codecs_of(const char *path)
{
    static char both[64];
    static gx_index_sizes sizes;
    gx_index *ix = open_index(path);
    gx_index_measure(ix, &sizes);
    gx_index_close(ix);
    assert_int_equal(sizes.n_codings, 1);
    snprintf(both, sizeof both, "%s %s", sizes.codings[0].docid_codec, sizes.codings[0].tf_codec);
    return both;
}

static void codecs_that_are_not_named_stay(void **state)
{
    (void)state;
    collection *c = collection_make(4, 2000, 100);
    gx_error err = {0};
    assert_int_equal(collection_write(c, in_dir("a.gx"), gx_codec_by_name("gpupfd128"), gx_codec_by_name("raw"), &err),
                     GX_OK);
    rewrite(in_dir("a.gx"), in_dir("b.gx"), (gx_rewrite_options){0});
    assert_same_file(in_dir("a.gx"), in_dir("b.gx"));
    rewrite(in_dir("a.gx"), in_dir("b.gx"), (gx_rewrite_options){.tf_codec = "gpubp128"});
    assert_string_equal(codecs_of(in_dir("b.gx")), "gpupfd128 gpubp128");
    rewrite(in_dir("a.gx"), in_dir("b.gx"), (gx_rewrite_options){.docid_codec = "gpubp128"});
    assert_string_equal(codecs_of(in_dir("b.gx")), "gpubp128 gpubp128");
    rewrite(in_dir("a.gx"), in_dir("b.gx"), (gx_rewrite_options){.docid_codec = "auto"});
    rewrite(in_dir("b.gx"), in_dir("c.gx"), (gx_rewrite_options){0});
    assert_same_file(in_dir("b.gx"), in_dir("c.gx"));
    gx_index *ix = open_index(in_dir("a.gx"));
    gx_rewrite_options opt = GX_REWRITE_OPTIONS;
    opt.tf_codec = "nonesuch";
    assert_int_equal(gx_index_rewrite(ix, in_dir("none.gx"), &opt, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "nonesuch"));
    gx_index_close(ix);
    collection_free(c);
}

static void an_order_that_is_none_is_refused(void **state)
{
    (void)state;
    collection *c = collection_make(3, 100, 5);
    gx_error err = {0};
    uint32_t order[100] = {0};
    const gx_codec *codec = gx_codec_by_name("raw");
    assert_int_equal(collection_write(c, in_dir("a.gx"), codec, NULL, &err), GX_OK);
    gx_index *ix = open_index(in_dir("a.gx"));
    gx_rewrite_options opt = GX_REWRITE_OPTIONS;
    opt.docid_codec = codec->name;
    opt.new_docids = order;
    assert_int_equal(gx_index_rewrite(ix, in_dir("none.gx"), &opt, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "no permutation"));
    assert_int_equal(access(in_dir("none.gx"), F_OK), -1);
    gx_index_close(ix);
    collection_free(c);
}

static bool always(void *user)
{
    (void)user;
    return true;
}

static void a_cancelled_rewrite_leaves_nothing(void **state)
{
    (void)state;
    collection *c = collection_make(5, 100, 5);
    gx_error err = {0};
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    assert_int_equal(collection_write(c, in_dir("a.gx"), codec, NULL, &err), GX_OK);
    gx_index *ix = open_index(in_dir("a.gx"));
    gx_rewrite_options opt = GX_REWRITE_OPTIONS;
    opt.docid_codec = codec->name;
    opt.cancel = always;
    assert_int_equal(gx_index_rewrite(ix, in_dir("none.gx"), &opt, &err), GX_ECANCELLED);
    assert_int_equal(access(in_dir("none.gx"), F_OK), -1);
    gx_index_close(ix);
    collection_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_an_index_built_with_the_new_codec),
        cmocka_unit_test(auto_packs_each_list_with_the_candidates_that_cost_least),
        cmocka_unit_test(auto_costs_a_real_collection_no_more_than_any_one_codec),
        cmocka_unit_test(an_order_and_its_inverse_give_the_same_index),
        cmocka_unit_test(codecs_that_are_not_named_stay),
        cmocka_unit_test(an_order_that_is_none_is_refused),
        cmocka_unit_test(a_cancelled_rewrite_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
