/* Filters whose documents are found more than once: a document of several values is in a column's order once for each.
 * Of 2,000 documents every 20th has 20 of 40 values, so that as many values are found as there are documents. Such a
 * search once left the filter out, or guessed thresholds from documents that the filter drops. Queries under ranges,
 * ORs of them and of ids, against the search that scores all documents.
 *
 * GX_TEST_SEED is the seed of the words and values, 7 without it. */
#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "query/engine/session.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

enum { N_DOCS = 2000, EVERY = 20, N_VALUES = 40, N_WORDS = 12, MOST_HITS = 50 };

static gx_index *ix;
static gx_engine *en;
static gx_session *session;
static uint64_t seed = 7;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

/* The documents that have values have few of the words, and are long: others have better scores. */
static size_t draw_text(char *text, bool has_values)
{
    size_t len = 0;
    for (uint32_t w = 0; w < N_WORDS; ++w) {
        const uint32_t n = has_values ? below(10) < 3 : below(10) < 9 ? 1 + below(5) : 0;
        for (uint32_t i = 0; i < n; ++i)
            len += (size_t)sprintf(text + len, "w%u ", w);
    }
    for (uint32_t i = 0; has_values && i < 200; ++i)
        len += (size_t)sprintf(text + len, "x ");
    return len;
}

static gx_status add_document(gx_builder *b, uint32_t d)
{
    char id[16], text[2000], values[EVERY][8];
    gx_attribute_value v[EVERY];
    const bool has_values = d % EVERY == 0;
    const size_t len = draw_text(text, has_values);
    const uint32_t first = below(N_VALUES), n = has_values ? EVERY : 0;
    for (uint32_t i = 0; i < n; ++i)
        v[i] = (gx_attribute_value){0, values[i], (size_t)sprintf(values[i], "%u", (first + 3 * i) % N_VALUES)};
    const gx_document document = {sizeof document, id, NULL, text, (size_t)sprintf(id, "d%u", d), 0, len, v, n};
    return gx_builder_add(b, &document, NULL);
}

static int open_all(void **state)
{
    static const gx_attribute attributes[] = {{"c", GX_ATTRIBUTE_INT}};
    gx_engine_options cpu = GX_ENGINE_OPTIONS;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b = NULL;
    cpu.kind = GX_ENGINE_CPU;
    cpu.filter_memory = 1; /* no mask of a filter is kept: searches test it themselves */
    o.n_attributes = 1;
    o.attributes = attributes;
    o.analyzer = "whitespace";
    if (make_dir(state) != 0)
        return -1;
    o.path = in_dir("index.gx");
    gx_status st = gx_builder_open(&b, &o, NULL);
    for (uint32_t d = 0; d < N_DOCS && st == GX_OK; ++d)
        st = add_document(b, d);
    st = st == GX_OK ? gx_builder_finish(b, NULL) : st;
    gx_builder_abort(b);
    return st != GX_OK || gx_index_open(&ix, in_dir("index.gx"), NULL, NULL) != GX_OK ||
           gx_engine_open(&en, ix, &cpu, NULL) != GX_OK || gx_session_open(&session, en, NULL) != GX_OK;
}

static int close_all(void **state)
{
    gx_session_close(session);
    gx_engine_close(en);
    gx_index_close(ix);
    return remove_dir(state);
}

/* Ranges of `width` values, one behind the other, and perhaps an id. */
static void write_filter(char *text, uint32_t width, bool with_id)
{
    size_t len = 0;
    for (uint32_t v = 0; v < N_VALUES; v += width)
        len += (size_t)sprintf(text + len, "%sc:[%u TO %u]", v ? " OR " : "", v, v + width - 1);
    if (with_id)
        sprintf(text + len, " OR id:d0");
}

static void compare(const char *filter, uint32_t n_words, uint32_t k)
{
    uint64_t got[MOST_HITS], want[MOST_HITS];
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_hits hits = {got, 0}, expected = {want, 0};
    gx_filter *f;
    gx_plan plan;
    gx_error err = {0};
    char query[100];
    size_t len = 0;
    for (uint32_t w = 0; w < n_words; ++w)
        len += (size_t)sprintf(query + len, "w%u ", w);
    opt.k = k;
    assert_int_equal(gx_filter_open(&f, ix, filter, strlen(filter), NULL, &err), GX_OK);
    assert_int_equal(gx_plan_make(&plan, ix, query, len, &opt, &err), GX_OK);
    plan.filter = f;
    assert_int_equal(gx_session_run(session, &plan, 1, &hits, &err), GX_OK);
    plan.prune = false;
    assert_int_equal(gx_session_run(session, &plan, 1, &expected, &err), GX_OK);
    for (uint32_t i = 0; i < expected.n; ++i)
        assert_int_equal(gx_key_docid(want[i]) % EVERY, 0);
    if (hits.n != expected.n || memcmp(got, want, hits.n * sizeof *got) != 0)
        fail_msg("'%s' under '%s', top %u: %u results, not %u, or others", query, filter, k, hits.n, expected.n);
    gx_plan_free(&plan);
    gx_filter_close(f);
}

static void documents_that_are_found_twice_count_once(void **state)
{
    static const uint32_t ks[] = {1, 5, 10, 20, MOST_HITS}, widths[] = {1, 2, 20, 40};
    (void)state;
    for (uint32_t w = 0; w < 4; ++w) {
        for (uint32_t with_id = 0; with_id < 2; ++with_id) {
            char filter[2000];
            write_filter(filter, widths[w], with_id);
            for (uint32_t n = 1; n <= N_WORDS; ++n) {
                for (uint32_t k = 0; k < 5; ++k)
                    compare(filter, n, ks[k]);
            }
        }
    }
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(documents_that_are_found_twice_count_once)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
