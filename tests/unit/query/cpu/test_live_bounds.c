/* Searches of a collection whose engine was opened before documents with great tfs were deleted: upper bounds of
 * scores are of lists that still have them. One session asks many queries, by scorers and algorithms in turn, which
 * must give what a new engine finds that leaves no document out. */
#include <stdio.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tests/support/gen.h"
#include "tests/support/indexes.h"

enum { N_DOCS = 6000, N_WORDS = 40, N_QUERIES = 150, N_ROUNDS = 3, MOST_HITS = N_DOCS };

static gx_error err;

static void good(gx_status st)
{
    if (st != GX_OK)
        fail_msg("%s", err.text);
}

/* A text in which word w has about 1 / (1 + w^2 / 12) of all documents; of a heavy document many times. */
static const char *draw_text(gen_rng *r, bool heavy, char *text)
{
    char *p = text;
    *p = 0;
    for (uint32_t w = 0; w < N_WORDS; ++w) {
        uint32_t tf = 1 + (gen_below(r, 6) ? 0 : gen_below(r, 8));
        if (gen_below(r, 1 + w * w / 12))
            continue;
        tf += heavy && gen_below(r, 3) == 0 ? 20 + gen_below(r, 60) : 0;
        while (tf--)
            p += sprintf(p, "w%u ", w);
    }
    return text;
}

/* Part p of n; every 40th document or so is heavy. */
static void build_part(gen_rng *r, const char *path, uint32_t p, uint32_t n, bool *heavy)
{
    static char text[1 << 16];
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    o.path = path;
    o.analyzer = "whitespace";
    good(gx_builder_open(&b, &o, &err));
    for (uint32_t i = p; i < N_DOCS; i += n) {
        char id[16];
        heavy[i] = gen_below(r, 40) == 0;
        const gx_document d = {.size = sizeof d,
                               .id = id,
                               .id_len = (size_t)sprintf(id, "d%u", i),
                               .text = draw_text(r, heavy[i], text),
                               .text_len = strlen(text)};
        good(gx_builder_add(b, &d, &err));
    }
    good(gx_builder_finish(b, &err));
    gx_builder_abort(b);
}

/* Delete most heavy documents, and some others. */
static void delete_some(gen_rng *r, const char *path, const bool *heavy)
{
    gx_collection *c;
    good(gx_collection_open(&c, path, NULL, &err));
    for (uint32_t i = 0; i < N_DOCS; ++i) {
        char id[16];
        bool found;
        if (heavy[i] ? gen_below(r, 4) : gen_below(r, 50) == 0)
            good(gx_collection_delete(c, id, (size_t)sprintf(id, "d%u", i), &found, &err));
    }
    good(gx_collection_commit(c, &err));
    gx_collection_close(c);
}

static uint32_t search(gx_session *s, const char *text, const gx_query_options *o, uint32_t *docids, double *scores)
{
    uint32_t n = 0;
    const gx_query q = {.size = sizeof q, .text = text, .len = strlen(text)};
    const gx_results out = {.size = sizeof out, .docids = docids, .n_hits = &n, .exact_scores = scores};
    good(gx_search(s, &q, 1, o, &out, &err));
    return n;
}

/* The same queries of a session of each engine, of which that of `all` scores every posting. */
static void compare(gen_rng *r, gx_engine *en, gx_engine *all)
{
    static const uint32_t ks[] = {1, 3, 10, 100, 1000};
    static uint32_t docids[2][MOST_HITS];
    static double scores[2][MOST_HITS];
    gx_session *s, *t;
    good(gx_session_open(&s, en, &err));
    good(gx_session_open(&t, all, &err));
    for (uint32_t i = 0; i < N_QUERIES; ++i) {
        char text[256], *p = text;
        gx_query_options o = GX_QUERY_OPTIONS, every;
        for (uint32_t n = i % 2 ? 1 : gen_below(r, 4) ? 1 + gen_below(r, 6) : 1 + gen_below(r, 30); n; --n)
            p += sprintf(p, "w%u ", gen_below(r, N_WORDS + 1));
        o.op = (gx_op)gen_below(r, 3);
        o.k = ks[gen_below(r, 5)];
        o.preset = gen_below(r, 2) ? GX_IMPACT : GX_BM25;
        o.algorithm = gen_below(r, 2) ? GX_ALGORITHM_AUTO : GX_ALGORITHM_BLOCK_MAX;
        every = o;
        every.prune = false;
        every.algorithm = GX_ALGORITHM_AUTO;
        const uint32_t n = search(s, text, &o, docids[0], scores[0]), m = search(t, text, &every, docids[1], scores[1]);
        if (n != m || memcmp(docids[0], docids[1], n * sizeof **docids) != 0 ||
            memcmp(scores[0], scores[1], n * sizeof **scores) != 0)
            fail_msg("'%s', operator %d, k %u, scorer %s, algorithm %d: %u results of %u, or others", text, (int)o.op,
                     o.k, gx_preset_name(o.preset), (int)o.algorithm, n, m);
    }
    gx_session_close(s);
    gx_session_close(t);
}

static void run_case(uint64_t seed)
{
    gen_rng r = {seed};
    static bool heavy[N_DOCS];
    const uint32_t n_parts = 1 + gen_below(&r, 3);
    char paths[3][300], name[32], collection[300];
    const char *names[3];
    gx_index *ix[N_ROUNDS + 1];
    gx_engine *en[N_ROUNDS + 1], *all;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t p = 0; p < n_parts; ++p) {
        sprintf(name, "%llu.%u.gx", (unsigned long long)seed, p);
        names[p] = strcpy(paths[p], in_dir(name));
        build_part(&r, paths[p], p, n_parts, heavy);
    }
    sprintf(name, "%llu", (unsigned long long)seed);
    strcpy(collection, in_dir(name));
    good(gx_collect(collection, names, n_parts, &err));
    o.kind = GX_ENGINE_CPU;
    o.join = gen_below(&r, 3) ? GX_JOIN_NEVER : GX_JOIN_ALWAYS;
    good(gx_index_open(&ix[0], collection, NULL, &err));
    good(gx_engine_open(&en[0], ix[0], &o, &err));
    for (uint32_t i = 1; i <= N_ROUNDS; ++i) {
        delete_some(&r, collection, heavy);
        good(gx_index_reopen(&ix[i], ix[i - 1], NULL, &err));
        assert_non_null(ix[i]);
        good(gx_engine_reopen(&en[i], en[i - 1], ix[i], &err));
    }
    o.join = GX_JOIN_NEVER;
    for (uint32_t i = 0; i <= N_ROUNDS; ++i) {
        good(gx_engine_open(&all, ix[i], &o, &err));
        compare(&r, en[i], all);
        gx_engine_close(all);
    }
    for (uint32_t i = 0; i <= N_ROUNDS; ++i) {
        gx_engine_close(en[i]);
        gx_index_close(ix[i]);
    }
    remove_collection(collection);
}

static void bounds_of_deleted_documents_lose_no_result(void **state)
{
    (void)state;
    const char *seed = getenv("GX_TEST_SEED"), *cases = getenv("GX_TEST_CASES");
    for (uint64_t i = 0; i < (cases ? strtoull(cases, NULL, 0) : 30); ++i)
        run_case((seed ? strtoull(seed, NULL, 0) : 1) + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_of_deleted_documents_lose_no_result)};
    return cmocka_run_group_tests_name("live bounds", tests, make_dir, remove_dir);
}
