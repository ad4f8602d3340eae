/* Phrases that a GPU finds: batches of random queries of words and phrases, under operators, signs, filters, boosts and
 * any k, against the CPU's answers, on indexes of several codecs, with documents whose positions do not fit into 16
 * bits, and with blocks whose docids are far apart; and damaged positions.
 *
 * GX_TEST_SEED is the seed of all that is random, 29 without it. GX_TEST_CASES=N makes N batches of each index,
 * GX_TEST_DOCS=N documents. */
#include <unistd.h>

#include "engine/random.h"
#include "query/engine/session.h"
#include "tests/support/index_image.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

enum {
    MOST_PLAIN = 65536,
    N_COMMON = 24,
    N_WORDS = 900,
    MOST_QUERIES = 48,
    MOST_TEXT = 1 << 20,
    MOST_K = 1000,
    LINE = 512
};

static uint64_t seed = 29;
static uint32_t n_docs = 6000, n_cases = 12;
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
    return r < 40 ? below(3) : r < 85 ? below(N_COMMON) : below(N_WORDS);
}

/* ---- documents ---- */

/* n words that no query has, and behind them others, some of which repeat what was said before. Returns the text's
 * length. */
static size_t random_text(uint32_t n_other, uint32_t n)
{
    uint32_t words[64];
    size_t len = 0;
    for (uint32_t i = 0; i < n_other; ++i)
        len += (size_t)sprintf(text + len, "other%u ", i % 1000);
    for (uint32_t i = 0; i < n && len + 16 < MOST_TEXT; ++i) {
        words[i % 64] = i > 8 && below(3) == 0 ? words[(i - 1 - below(6)) % 64] : random_word();
        len += (size_t)sprintf(text + len, "w%u ", words[i % 64]);
    }
    return len;
}

typedef enum texts {
    USUAL,
    ONE_LONG, /* one of them has too many words for plain positions */
    SPARSE    /* most have one word that no other has: the docids of a block do not fit into 16 bits */
} texts;

static uint32_t text_length(texts kind, uint32_t d, uint32_t n)
{
    if (kind == SPARSE)
        return d % 700 && d + 90 < n ? 0 : 1 + below(60);
    return below(700) == 0 ? 2000 + below(9000) : below(60);
}

static void build(const char *path, const char *codec, texts kind)
{
    const uint32_t n = kind == SPARSE ? n_docs + 66000 : n_docs;
    static const gx_attribute year = {"year", GX_ATTRIBUTE_INT};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    gx_error err = {0};
    o.path = path;
    o.force = o.positions = true;
    o.docid_codec = o.tf_codec = codec;
    o.analyzer = "whitespace";
    o.attributes = &year;
    o.n_attributes = 1;
    if (gx_builder_open(&b, &o, &err))
        fail_msg("%s", err.text);
    for (uint32_t d = 0; d < n; ++d) {
        char id[16], title[64], value[16];
        const gx_attribute_value v = {0, value, (size_t)sprintf(value, "%u", 2000 + below(20))};
        size_t len = random_text(kind == ONE_LONG && d == 7 ? MOST_PLAIN : 0, text_length(kind, d, n));
        if (len == 0)
            len = (size_t)sprintf(text, "alone%u", d);
        gx_document doc = {.size = sizeof doc,
                           .id = id,
                           .id_len = (size_t)sprintf(id, "%u", d),
                           .text = text,
                           .text_len = len,
                           .values = &v,
                           .n_values = 1};
        if (kind != SPARSE && below(3)) {
            doc.title = title;
            doc.title_len = (size_t)sprintf(title, "w%u w%u w%u", random_word(), random_word(), random_word());
        }
        if (gx_builder_add(b, &doc, &err))
            fail_msg("%s", err.text);
    }
    if (gx_builder_finish(b, &err))
        fail_msg("%s", err.text);
    gx_builder_abort(b);
}

/* ---- queries ---- */

static size_t random_leaf(char *to)
{
    size_t len = 0;
    const uint32_t n = below(3) ? 2 + below(below(8) ? 3 : 6) : 1;
    if (n == 1)
        return (size_t)sprintf(to, "w%u", random_word());
    to[len++] = '"';
    for (uint32_t i = 0; i < n; ++i)
        len += (size_t)sprintf(to + len, i ? " w%u" : "w%u", below(6) ? random_word() : below(2));
    to[len++] = '"';
    if (below(30) == 0)
        len += (size_t)sprintf(to + len, "~2");
    if (below(8) == 0)
        len += (size_t)sprintf(to + len, "^%u", 1 + below(4));
    return len;
}

static void random_query(char *to)
{
    static const char *const signs[] = {"", "", "", "+", "+", "-"};
    size_t len = 0;
    const uint32_t n = 1 + below(4), all = below(4);
    for (uint32_t i = 0; i < n; ++i) {
        if (i)
            to[len++] = ' ';
        len += (size_t)sprintf(to + len, "%s", all == 0 ? "+" : all == 1 || i == 0 ? "" : signs[below(6)]);
        len += random_leaf(to + len);
    }
    if (below(4) == 0)
        len += (size_t)sprintf(to + len, " +year:[%u TO %u]", 2000 + below(10), 2005 + below(15));
    to[len] = 0;
}

typedef struct answers {
    uint32_t docids[MOST_QUERIES * MOST_K], n[MOST_QUERIES];
    float scores[MOST_QUERIES * MOST_K];
    double exact[MOST_QUERIES * MOST_K];
} answers;
static answers by_cpu, by_gpu;

static gx_status ask(gx_session *s, const gx_query *q, uint32_t n, const gx_query_options *o, answers *a, gx_error *err)
{
    gx_results r = GX_RESULTS(a->docids, a->scores, a->n);
    r.exact_scores = a->exact;
    return gx_search(s, q, n, o, &r, err);
}

static void compare(const gx_query_options *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const size_t at = (size_t)i * o->k;
        if (by_cpu.n[i] != by_gpu.n[i])
            fail_msg("%s, op %d, k %u: %u results, %u are right", queries[i], (int)o->op, o->k, by_gpu.n[i],
                     by_cpu.n[i]);
        for (uint32_t j = 0; j < by_cpu.n[i]; ++j) {
            if (by_cpu.docids[at + j] != by_gpu.docids[at + j] || by_cpu.exact[at + j] != by_gpu.exact[at + j])
                fail_msg("%s, op %d, k %u, result %u: %u of %.17g, right is %u of %.17g", queries[i], (int)o->op, o->k,
                         j, by_gpu.docids[at + j], by_gpu.exact[at + j], by_cpu.docids[at + j], by_cpu.exact[at + j]);
        }
    }
}

static void open_session(const gx_index *ix, gx_engine_kind kind, gx_engine **e, gx_session **s)
{
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_error err = {0};
    o.kind = kind;
    const gx_status st = gx_engine_open(e, ix, &o, &err);
    if (st == GX_ENOGPU) {
        print_message("%s\n", err.text);
        skip();
    }
    if (st || gx_session_open(s, *e, &err))
        fail_msg("%s", err.text);
}

static void run_cases(gx_session *cpu, gx_session *gpu, bool damaged)
{
    static const uint32_t ks[] = {1, 3, 10, 10, 100, MOST_K};
    static const gx_op ops[] = {GX_OP_OR, GX_OP_OR, GX_OP_AND, GX_OP_AND_OR};
    gx_query q[MOST_QUERIES];
    gx_error err = {0};
    for (uint32_t c = 0; c < n_cases; ++c) {
        gx_query_options o = GX_QUERY_OPTIONS;
        const uint32_t n = c % 3 == 0 ? 1 + below(3) : 1 + below(MOST_QUERIES);
        o.k = ks[below(6)];
        o.op = ops[below(4)];
        for (uint32_t i = 0; i < n; ++i) {
            do {
                random_query(queries[i]);
            } while (o.op == GX_OP_AND_OR && strpbrk(queries[i], "+-"));
            q[i] = (gx_query)GX_TEXT_QUERY(queries[i], strlen(queries[i]));
            q[i].kind = GX_QUERY_BOOLEAN;
        }
        const gx_status st = ask(cpu, q, n, &o, &by_cpu, &err), of_gpu = ask(gpu, q, n, &o, &by_gpu, &err);
        if (damaged) {
            assert_true((st == GX_OK || st == GX_ECORRUPT) && (of_gpu == GX_OK || of_gpu == GX_ECORRUPT));
            continue;
        }
        if (st || of_gpu)
            fail_msg("%s", err.text);
        compare(&o, n);
    }
}

/* Words of the positions become others, with the checksums that they ought to have. */
static void damage_positions(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_true(f && fseek(f, 0, SEEK_END) == 0);
    image im = {NULL, (size_t)ftell(f)};
    im.bytes = malloc(im.n);
    rewind(f);
    assert_true(im.bytes && fread(im.bytes, 1, im.n, f) == im.n);
    fclose(f);
    const gx_section *s = section(&im, GX_SEC_POSITIONS);
    uint32_t *words = (uint32_t *)(void *)(im.bytes + s->offset);
    for (uint64_t i = 0; i + GX_READ_SLACK / 4 < s->bytes / 4; i += 1 + below(200))
        words[i] = (uint32_t)gx_random_next(&seed) >> below(32);
    reseal(&im);
    store(path, &im);
    free(im.bytes);
}

static void compare_engines(const char *codec, texts kind, bool damage)
{
    gx_error err = {0};
    gx_index *ix;
    gx_engine *cpu_engine, *gpu_engine;
    gx_session *cpu, *gpu;
    const char *path = in_dir("phrases.gx");
    build(path, codec, kind);
    if (damage)
        damage_positions(path);
    if (gx_index_open(&ix, path, NULL, &err))
        fail_msg("%s", err.text);
    open_session(ix, GX_ENGINE_GPU, &gpu_engine, &gpu);
    open_session(ix, GX_ENGINE_CPU, &cpu_engine, &cpu);
    const uint64_t before = gx_session_stats(gpu)->parts;
    run_cases(cpu, gpu, damage);
    assert_true(gx_session_stats(gpu)->parts > before);
    gx_session_close(cpu);
    gx_session_close(gpu);
    gx_engine_close(cpu_engine);
    gx_engine_close(gpu_engine);
    gx_index_close(ix);
    unlink(path);
}

static void phrases_of_the_usual_codec(void **state)
{
    (void)state;
    compare_engines("gpubp128", USUAL, false);
}

static void phrases_of_other_codecs(void **state)
{
    (void)state;
    compare_engines("gpuvbyte1024", USUAL, false);
    compare_engines("auto", USUAL, false);
}

static void phrases_of_a_long_document(void **state)
{
    (void)state;
    compare_engines("gpubp128", ONE_LONG, false);
    compare_engines("auto", ONE_LONG, false);
    compare_engines("gpubp128", ONE_LONG, true);
}

static void phrases_of_documents_far_apart(void **state)
{
    (void)state;
    compare_engines("gpubp128", SPARSE, false);
    compare_engines("auto", SPARSE, false);
}

static void damaged_positions_harm_nobody(void **state)
{
    (void)state;
    compare_engines("gpubp128", USUAL, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phrases_of_the_usual_codec),    cmocka_unit_test(phrases_of_other_codecs),
        cmocka_unit_test(phrases_of_a_long_document),    cmocka_unit_test(phrases_of_documents_far_apart),
        cmocka_unit_test(damaged_positions_harm_nobody),
    };
    seed = env_uint("GX_TEST_SEED", 29);
    n_cases = env_uint("GX_TEST_CASES", n_cases);
    n_docs = env_uint("GX_TEST_DOCS", n_docs);
    print_message("seed %u\n", (unsigned)seed);
    cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
