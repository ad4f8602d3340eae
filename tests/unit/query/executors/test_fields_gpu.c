/* Views of fields on a GPU: batches of random queries by random fields, weights, b, k1 and scorings, under operators,
 * filters and any k, against the CPU's answers, on indexes of two block lengths.
 *
 * GX_TEST_SEED is the seed of all that is random, 31 without it. GX_TEST_CASES=N makes N views of each index,
 * GX_TEST_DOCS=N documents. */
#include <unistd.h>

#include "engine/random.h"
#include "query/engine/session.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

enum { N_WORDS = 400, MOST_QUERIES = 40, MOST_TEXT = 1 << 16, MOST_K = 300, LINE = 256 };

static uint64_t seed = 31;
static uint32_t n_docs = 5000, n_cases = 6;
static char text[MOST_TEXT];
static char queries[MOST_QUERIES][LINE];

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

static uint32_t env_uint(const char *name, uint32_t otherwise)
{
    const char *s = getenv(name);
    return s ? (uint32_t)strtoul(s, NULL, 0) : otherwise;
}

static uint32_t random_word(void)
{
    const uint32_t r = below(100);
    return r < 30 ? below(2) : r < 80 ? below(20) : below(N_WORDS);
}

/* ---- documents ---- */

static size_t random_field(size_t len, uint32_t n)
{
    for (uint32_t i = 0; i < n && len + 16 < MOST_TEXT; ++i)
        len += (size_t)sprintf(text + len, "w%u ", random_word());
    return len;
}

/* Documents of three fields. */
static void build(const char *path, const char *codec)
{
    static const gx_attribute year = {"year", GX_ATTRIBUTE_INT};
    static const gx_field fields[] = {{"title", 0}, {"text", 0}, {"note", 0}};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    gx_error err = {0};
    o.path = path;
    o.force = true;
    o.docid_codec = o.tf_codec = codec;
    o.analyzer = "whitespace";
    o.attributes = &year;
    o.n_attributes = 1;
    o.fields = fields;
    o.n_fields = 3;
    if (gx_builder_open(&b, &o, &err))
        fail_msg("%s", err.text);
    for (uint32_t d = 0; d < n_docs; ++d) {
        char id[16], value[16];
        size_t len = random_field(0, below(4));
        text[len++] = GX_FIELD_SEPARATOR;
        len = random_field(len, below(400) == 0 ? 3000 : below(50));
        text[len++] = GX_FIELD_SEPARATOR;
        len = random_field(len, below(5) ? 0 : below(9));
        const gx_attribute_value v = {0, value, (size_t)sprintf(value, "%u", 2000 + below(20))};
        const gx_document doc = {.size = sizeof doc,
                                 .id = id,
                                 .id_len = (size_t)sprintf(id, "%u", d),
                                 .text = text,
                                 .text_len = len,
                                 .values = &v,
                                 .n_values = 1};
        if (gx_builder_add(b, &doc, &err))
            fail_msg("%s", err.text);
    }
    if (gx_builder_finish(b, &err))
        fail_msg("%s", err.text);
    gx_builder_abort(b);
}

/* ---- queries ---- */

static void random_query(char *to, bool boolean)
{
    static const char *const signs[] = {"", "", "+", "-"}, *const fields[] = {"", "", "title:", "text:", "note:"};
    size_t len = 0;
    const uint32_t n = 1 + below(below(4) ? 4 : 12);
    for (uint32_t i = 0; i < n; ++i)
        len += (size_t)sprintf(to + len, "%s%s%sw%u", i ? " " : "", boolean && i ? signs[below(4)] : "",
                               boolean ? fields[below(5)] : "", random_word());
    if (boolean && below(4) == 0)
        len += (size_t)sprintf(to + len, " +year:[%u TO %u]", 2000 + below(10), 2005 + below(15));
    to[len] = 0;
}

typedef struct answers {
    uint32_t docids[MOST_QUERIES * MOST_K], n[MOST_QUERIES];
    double exact[MOST_QUERIES * MOST_K];
} answers;
static answers by_cpu, by_gpu;

static void ask(gx_session *s, const gx_query *q, uint32_t n, const gx_query_options *o, answers *a)
{
    gx_error err = {0};
    gx_results r = GX_RESULTS(a->docids, NULL, a->n);
    r.exact_scores = a->exact;
    if (gx_search(s, q, n, o, &r, &err))
        fail_msg("%s", err.text);
}

static void compare(const char *fields, const gx_query_options *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const size_t at = (size_t)i * o->k;
        if (by_cpu.n[i] != by_gpu.n[i])
            fail_msg("%s, %s, op %d, k %u: %u results, %u are right", fields, queries[i], (int)o->op, o->k, by_gpu.n[i],
                     by_cpu.n[i]);
        for (uint32_t j = 0; j < by_cpu.n[i]; ++j)
            if (by_cpu.docids[at + j] != by_gpu.docids[at + j] || by_cpu.exact[at + j] != by_gpu.exact[at + j])
                fail_msg("%s, %s, op %d, k %u, result %u: %u of %.17g, right is %u of %.17g", fields, queries[i],
                         (int)o->op, o->k, j, by_gpu.docids[at + j], by_gpu.exact[at + j], by_cpu.docids[at + j],
                         by_cpu.exact[at + j]);
    }
}

static void run_batch(gx_session *cpu, gx_session *gpu, const char *fields, gx_preset preset)
{
    gx_query q[MOST_QUERIES];
    gx_query_options o = GX_QUERY_OPTIONS;
    const uint32_t n = 1 + below(below(2) ? 4 : MOST_QUERIES);
    const bool boolean = below(3) == 0;
    o.preset = preset;
    o.op = boolean ? GX_OP_OR : (gx_op)below(3);
    o.k = 1 + below(below(3) ? 20 : MOST_K);
    o.prune = below(4) != 0;
    for (uint32_t i = 0; i < n; ++i) {
        random_query(queries[i], boolean);
        q[i] = (gx_query){.size = sizeof(gx_query),
                          .kind = boolean ? GX_QUERY_BOOLEAN : GX_QUERY_TEXT,
                          .text = queries[i],
                          .len = strlen(queries[i])};
    }
    ask(cpu, q, n, &o, &by_cpu);
    ask(gpu, q, n, &o, &by_gpu);
    compare(fields, &o, n);
}

static void check_view(gx_index *ix)
{
    static const gx_preset presets[] = {GX_BM25, GX_BM25_LUCENE, GX_BM25_ATIRE};
    char fields[128];
    gx_view_options v = GX_VIEW_OPTIONS;
    gx_engine_options e = GX_ENGINE_OPTIONS;
    gx_index *view[2];
    gx_engine *en[2];
    gx_session *s[2];
    gx_error err = {0};
    sprintf(fields, "title^%u.%u,text:b=0.%u%s", below(5), 1 + below(9), below(10), below(2) ? ",note" : "");
    v.fields = below(5) ? fields : NULL;
    v.scoring = (gx_field_scoring)below(GX_N_FIELD_SCORINGS);
    v.preset = presets[below(3)];
    v.k1 = below(2) ? (float)below(30) / 10 : v.k1;
    for (int i = 0; i < 2; ++i) {
        e.kind = i ? GX_ENGINE_GPU : GX_ENGINE_CPU;
        if (gx_index_open_view(&view[i], ix, &v, &err) || gx_engine_open(&en[i], view[i], &e, &err) ||
            gx_session_open(&s[i], en[i], &err))
            fail_msg("%s", err.text);
        assert_int_equal(gx_engine_get_kind(en[i]), e.kind);
    }
    for (uint32_t i = 0; i < 8; ++i)
        run_batch(s[0], s[1], v.fields ? fields : "all", v.preset);
    for (int i = 0; i < 2; ++i) {
        gx_session_close(s[i]);
        gx_engine_close(en[i]);
        gx_index_close(view[i]);
    }
}

static void compare_engines(const char *codec)
{
    gx_index *ix;
    gx_engine *en;
    gx_engine_options e = GX_ENGINE_OPTIONS;
    gx_error err = {0};
    const char *path = in_dir("fields.gx");
    build(path, codec);
    if (gx_index_open(&ix, path, NULL, &err))
        fail_msg("%s", err.text);
    e.kind = GX_ENGINE_GPU;
    const gx_status st = gx_engine_open(&en, ix, &e, &err);
    if (st == GX_ENOGPU) {
        print_message("%s\n", err.text);
        gx_index_close(ix);
        skip();
    }
    gx_engine_close(en);
    for (uint32_t i = 0; i < n_cases; ++i)
        check_view(ix);
    gx_index_close(ix);
    unlink(path);
}

static void views_of_short_blocks(void **state)
{
    (void)state;
    compare_engines("gpubp128");
}

static void views_of_long_blocks(void **state)
{
    (void)state;
    compare_engines("gpuvbyte1024");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(views_of_short_blocks), cmocka_unit_test(views_of_long_blocks)};
    seed = env_uint("GX_TEST_SEED", 31);
    n_cases = env_uint("GX_TEST_CASES", n_cases);
    n_docs = env_uint("GX_TEST_DOCS", n_docs);
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
