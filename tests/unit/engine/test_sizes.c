/* What a caller meets who forgot to set the size of a struct, or set it wrong: GX_EUSAGE, in every
 * public function that takes one, and no byte of the caller's is written. Built a second time with
 * AddressSanitizer.
 */
#include "engine/api/gpuidx_advanced.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

#include <unistd.h>

static gx_index *ix;
static gx_engine *en;
static gx_session *s;

/* Sizes that are no struct's: zero, one byte below the first version's, and what memory holds that
 * nobody set. */
#define N_WRONG 5
static size_t wrong_size(int i, size_t least)
{
    const size_t sizes[N_WRONG] = {0, 1, least - 1, (size_t)0xbebebebebebebebe, SIZE_MAX};
    return sizes[i];
}
#define LEAST(type, last) (offsetof(type, last) + sizeof(((type *)NULL)->last))

static int open_all(void **state)
{
    static const char *const texts[] = {"one two", "two three", "three two one"};
    gx_error err = {0};
    gx_builder *b;
    gx_builder_options o;
    if (make_dir(state) != 0)
        return -1;
    gx_builder_options_init(&o, sizeof o);
    o.path = in_dir("index.gx");
    gx_status st = gx_builder_open(&b, &o, &err);
    for (int i = 0; i < 3 && st == GX_OK; ++i) {
        const char id[2] = {(char)('a' + i), 0};
        const gx_document doc = {sizeof doc, id, NULL, texts[i], 1, 0, strlen(texts[i])};
        st = gx_builder_add(b, &doc, &err);
    }
    if (st == GX_OK)
        st = gx_builder_finish(b, &err);
    gx_builder_abort(b);
    const gx_engine_options cpu = {sizeof cpu, GX_ENGINE_CPU, 0, 0, UINT64_MAX, 0};
    if (st != GX_OK || gx_index_open(&ix, in_dir("index.gx"), NULL, &err) || gx_engine_open(&en, ix, &cpu, &err) ||
        gx_session_open(&s, en, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    return 0;
}

static int close_all(void **state)
{
    gx_session_close(s);
    gx_engine_close(en);
    gx_index_close(ix);
    return remove_dir(state);
}

/* Places for results of which every byte is 0xee, each array of as many bytes as it needs. */
typedef struct answer {
    uint32_t *docids, *n_hits;
    float *scores;
} answer;

static answer new_answer(uint32_t n, uint32_t k)
{
    answer a = {malloc(n * k * sizeof *a.docids), malloc(n * sizeof *a.n_hits), malloc(n * k * sizeof *a.scores)};
    memset(a.docids, 0xee, n * k * sizeof *a.docids);
    memset(a.n_hits, 0xee, n * sizeof *a.n_hits);
    memset(a.scores, 0xee, n * k * sizeof *a.scores);
    return a;
}

static void free_untouched(answer a, uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < n * k; ++i) {
        uint32_t bits;
        memcpy(&bits, &a.scores[i], sizeof bits);
        assert_int_equal(a.docids[i], 0xeeeeeeee);
        assert_int_equal(bits, 0xeeeeeeee);
    }
    for (uint32_t i = 0; i < n; ++i)
        assert_int_equal(a.n_hits[i], 0xeeeeeeee);
    free(a.docids);
    free(a.n_hits);
    free(a.scores);
}

static void assert_names(const gx_error *err, const char *name)
{
    assert_int_equal(err->status, GX_EUSAGE);
    assert_non_null(strstr(err->text, name));
    assert_non_null(strstr(err->text, "sizeof"));
}

static void a_search_refuses_wrong_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < N_WRONG; ++i) {
        gx_error err = {0};
        answer a = new_answer(2, 2);
        gx_query q[2] = {GX_TEXT_QUERY("two", 3), GX_TEXT_QUERY("one", 3)};
        gx_query_options o = GX_QUERY_OPTIONS;
        gx_results r = {sizeof r, a.docids, a.scores, a.n_hits, NULL};
        o.k = 2;

        o.size = wrong_size(i, LEAST(gx_query_options, mask));
        assert_int_equal(gx_search(s, q, 2, &o, &r, &err), GX_EUSAGE);
        assert_names(&err, "gx_query_options.size");
        assert_int_equal(gx_engine_precompute_pair_thresholds(en, &o, 2, 1, &err), GX_EUSAGE);
        assert_names(&err, "gx_query_options.size");
        gx_explanation e;
        assert_int_equal(gx_explain(&e, ix, q, &o, 0, &err), GX_EUSAGE);
        assert_names(&err, "gx_query_options.size");
        o.size = sizeof o;

        r.size = wrong_size(i, LEAST(gx_results, n_matches));
        assert_int_equal(gx_search(s, q, 2, &o, &r, &err), GX_EUSAGE);
        assert_names(&err, "gx_results.size");
        r.size = sizeof r;

        q[0].size = wrong_size(i, LEAST(gx_query, n_terms));
        assert_int_equal(gx_search(s, q, 1, &o, &r, &err), GX_EUSAGE);
        assert_names(&err, "gx_query.size");
        assert_int_equal(gx_explain(&e, ix, q, &o, 0, &err), GX_EUSAGE);
        assert_names(&err, "gx_query.size");
        q[0].size = sizeof *q;

        q[1].size = wrong_size(i, LEAST(gx_query, n_terms));
        assert_int_equal(gx_search(s, q, 2, &o, &r, &err), GX_EUSAGE);
        assert_names(&err, "query 1 of the batch");
        free_untouched(a, 2, 2);
    }
}

/* `{.k = 2}` leaves the size 0: not ten results into an array of two. */
static void a_struct_without_its_size_is_not_taken_as_the_defaults(void **state)
{
    gx_error err = {0};
    answer a = new_answer(1, 2);
    const gx_query q = GX_TEXT_QUERY("two", 3);
    const gx_query_options o = {.k = 2};
    const gx_results r = {sizeof r, a.docids, a.scores, a.n_hits, NULL}, unset = {.docids = a.docids};
    (void)state;
    assert_int_equal(gx_search(s, &q, 1, &o, &r, &err), GX_EUSAGE);
    assert_names(&err, "gx_query_options.size is 0");
    assert_int_equal(gx_search(s, &q, 1, NULL, &unset, &err), GX_EUSAGE);
    assert_names(&err, "gx_results.size is 0");
    assert_int_equal(gx_search(s, NULL, 1, NULL, &r, &err), GX_EUSAGE);
    assert_int_equal(gx_search(s, &q, 1, NULL, NULL, &err), GX_EUSAGE);
    free_untouched(a, 1, 2);
}

static void opening_refuses_wrong_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < N_WRONG; ++i) {
        gx_error err = {0};
        gx_index *index = ix;
        gx_engine *engine = en;
        gx_index_options io = {wrong_size(i, LEAST(gx_index_options, check)), GX_CHECK_HEADER, GX_LOAD_MAP};
        assert_int_equal(gx_index_open(&index, in_dir("index.gx"), &io, &err), GX_EUSAGE);
        assert_names(&err, "gx_index_options.size");
        assert_null(index);
        gx_engine_options eo = GX_ENGINE_OPTIONS;
        eo.size = wrong_size(i, LEAST(gx_engine_options, linger_us));
        assert_int_equal(gx_engine_open(&engine, ix, &eo, &err), GX_EUSAGE);
        assert_names(&err, "gx_engine_options.size");
        assert_null(engine);
    }
}

static void building_refuses_wrong_sizes(void **state)
{
    gx_error err = {0};
    gx_builder *b;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    (void)state;
    o.path = in_dir("other.gx");
    for (int i = 0; i < N_WRONG; ++i) {
        o.size = wrong_size(i, LEAST(gx_builder_options, threads));
        assert_int_equal(gx_builder_open(&b, &o, &err), GX_EUSAGE);
        assert_names(&err, "gx_builder_options.size");
        assert_null(b);
    }
    o.size = sizeof o;
    assert_int_equal(gx_builder_open(&b, &o, &err), GX_OK);
    for (int i = 0; i < N_WRONG; ++i) {
        const gx_document doc = {wrong_size(i, LEAST(gx_document, text_len)), "a", NULL, "text", 1, 0, 4};
        gx_builder_counts counts;
        memset(&counts, 0xee, sizeof counts);
        assert_int_equal(gx_builder_add(b, &doc, &err), GX_EUSAGE);
        assert_names(&err, "gx_document.size");
        counts.size = wrong_size(i, LEAST(gx_builder_counts, seconds));
        assert_int_equal(gx_builder_get_counts(b, &counts), GX_EUSAGE);
        assert_int_equal(counts.documents, 0xeeeeeeeeeeeeeeee);
    }
    assert_int_equal(gx_builder_add(b, NULL, &err), GX_EINPUT);
    assert_int_equal(gx_builder_get_counts(b, NULL), GX_EUSAGE);
    gx_builder_abort(b);
}

static void statistics_are_not_written_into_wrong_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < N_WRONG; ++i) {
        gx_index_stats st;
        gx_session_memory m;
        memset(&st, 0xee, sizeof st);
        memset(&m, 0xee, sizeof m);
        st.size = wrong_size(i, LEAST(gx_index_stats, device_bytes));
        m.size = wrong_size(i, LEAST(gx_session_memory, pinned));
        assert_int_equal(gx_index_get_stats(ix, &st), GX_EUSAGE);
        assert_int_equal(gx_session_get_memory(s, &m), GX_EUSAGE);
        assert_int_equal(st.n_docs, 0xeeeeeeee);
        assert_int_equal(m.device, 0xeeeeeeeeeeeeeeee);
    }
    assert_int_equal(gx_index_get_stats(ix, NULL), GX_EUSAGE);
    assert_int_equal(gx_session_get_memory(s, NULL), GX_EUSAGE);
}

static void converting_refuses_wrong_sizes(void **state)
{
    (void)state;
    char file[300]; /* which stays away */
    snprintf(file, sizeof file, "%s", in_dir("converted"));
    for (int i = 0; i < N_WRONG; ++i) {
        gx_error err = {0};
        uint32_t order[3] = {7, 7, 7};
        gx_rewrite_options rewrite = GX_REWRITE_OPTIONS;
        gx_order_options how = GX_ORDER_OPTIONS;
        gx_import_options in = GX_IMPORT_OPTIONS;
        gx_export_options out = GX_EXPORT_OPTIONS;
        gx_query q = GX_TEXT_QUERY("two", 3);
        gx_highlighter *h = (gx_highlighter *)ix;
        rewrite.size = wrong_size(i, LEAST(gx_rewrite_options, user));
        assert_int_equal(gx_index_rewrite(ix, file, &rewrite, &err), GX_EUSAGE);
        assert_names(&err, "gx_rewrite_options.size");
        how.size = wrong_size(i, LEAST(gx_order_options, user));
        assert_int_equal(gx_order_make(ix, &how, order, &err), GX_EUSAGE);
        assert_names(&err, "gx_order_options.size");
        assert_int_equal(order[0], 7);
        in.size = wrong_size(i, LEAST(gx_import_options, user));
        assert_int_equal(gx_ciff_import(in_dir("index.gx"), file, &in, &err), GX_EUSAGE);
        assert_names(&err, "gx_import_options.size");
        assert_int_equal(gx_ds2i_import(in_dir("index.gx"), file, &in, &err), GX_EUSAGE);
        assert_names(&err, "gx_import_options.size");
        out.size = wrong_size(i, LEAST(gx_export_options, user));
        assert_int_equal(gx_ciff_export(ix, file, &out, &err), GX_EUSAGE);
        assert_names(&err, "gx_export_options.size");
        assert_int_equal(gx_ds2i_export(ix, file, &out, &err), GX_EUSAGE);
        assert_names(&err, "gx_export_options.size");
        q.size = wrong_size(i, LEAST(gx_query, n_terms));
        assert_int_equal(gx_highlighter_open(&h, ix, &q, &err), GX_EUSAGE);
        assert_names(&err, "gx_query.size");
        assert_null(h);
    }
    assert_int_equal(access(file, F_OK), -1);
}

static void reading_refuses_wrong_sizes(void **state)
{
    (void)state;
    const char *const paths[] = {in_dir("index.gx")};
    static gx_replay_report report;
    for (int i = 0; i < N_WRONG; ++i) {
        gx_error err = {0};
        gx_source *source = (gx_source *)ix;
        gx_source_options from = GX_SOURCE_OPTIONS;
        gx_replay_options replay = GX_REPLAY_OPTIONS;
        from.size = wrong_size(i, LEAST(gx_source_options, user));
        assert_int_equal(gx_source_open(&source, paths, 1, &from, &err), GX_EUSAGE);
        assert_names(&err, "gx_source_options.size");
        assert_null(source);
        replay.size = wrong_size(i, LEAST(gx_replay_options, user));
        replay.log = paths[0];
        assert_int_equal(gx_replay(en, &replay, &report, &err), GX_EUSAGE);
        assert_names(&err, "gx_replay_options.size");
    }
}

static void a_sweep_refuses_wrong_sizes_and_options_that_are_not_set(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_sweep_report report, before;
    memset(&report, 0xee, sizeof report);
    memcpy(&before, &report, sizeof report);
    gx_sweep_options o = GX_SWEEP_OPTIONS;
    for (int i = 0; i < N_WRONG; ++i) {
        o.size = wrong_size(i, LEAST(gx_sweep_options, user));
        assert_int_equal(gx_sweep(&report, en, &o, &err), GX_EUSAGE);
        assert_names(&err, "gx_sweep_options.size");
    }
    gx_sweep_options_init(&o, sizeof o);
    assert_int_equal(o.size, sizeof o);
    assert_int_equal(o.threads, 1);
    assert_int_equal(gx_sweep(&report, en, &o, &err), GX_EUSAGE);
    assert_int_equal(gx_sweep(&report, en, NULL, &err), GX_EUSAGE);
    assert_memory_equal(&report, &before, sizeof report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_refuses_wrong_sizes),
        cmocka_unit_test(a_struct_without_its_size_is_not_taken_as_the_defaults),
        cmocka_unit_test(opening_refuses_wrong_sizes),
        cmocka_unit_test(building_refuses_wrong_sizes),
        cmocka_unit_test(statistics_are_not_written_into_wrong_sizes),
        cmocka_unit_test(converting_refuses_wrong_sizes),
        cmocka_unit_test(reading_refuses_wrong_sizes),
        cmocka_unit_test(a_sweep_refuses_wrong_sizes_and_options_that_are_not_set),
    };
    return cmocka_run_group_tests_name("sizes", tests, open_all, close_all);
}
