/* External ids to docids, while an index is built, and of an index that is open. */
#include "index/write/external_ids.h"

#include "engine/random.h"
#include "index/read/collection.h"
#include "tests/support/test.h"

static uint32_t *insert(gx_external_ids *ids, const char *id)
{
    return gx_external_ids_insert(ids, gx_external_ids_key(ids, id, strlen(id)));
}

static void an_id_has_one_place(void **state)
{
    (void)state;
    gx_external_ids ids;
    assert_true(gx_external_ids_open(&ids));
    uint32_t *place = insert(&ids, "WSJ870324-0001");
    assert_non_null(place);
    assert_int_equal(*place, UINT32_MAX);
    *place = 7;
    assert_int_equal(*insert(&ids, "WSJ870324-0001"), 7);
    assert_int_equal(*insert(&ids, "WSJ870324-0002"), UINT32_MAX);
    assert_int_equal(*insert(&ids, ""), UINT32_MAX);
    assert_int_equal(ids.n, 3);
    gx_external_ids_close(&ids);
}

/* The table grows many times. */
static void a_hundred_thousand_ids_keep_their_docids(void **state)
{
    (void)state;
    enum { N = 100000 };
    gx_external_ids ids;
    char id[32];
    assert_true(gx_external_ids_open(&ids));
    for (uint32_t d = 0; d < N; ++d) {
        snprintf(id, sizeof id, "doc-%u", d);
        uint32_t *place = insert(&ids, id);
        assert_non_null(place);
        assert_int_equal(*place, UINT32_MAX);
        *place = d;
    }
    assert_int_equal(ids.n, N);
    uint64_t seed = 1;
    for (uint32_t i = 0; i < N; ++i) {
        const uint32_t d = (uint32_t)(gx_random_next(&seed) % N);
        snprintf(id, sizeof id, "doc-%u", d);
        assert_int_equal(*insert(&ids, id), d);
    }
    assert_int_equal(ids.n, N);
    gx_external_ids_close(&ids);
}

/* So many that a table with all of them would be searched for hours. Look-ups scan at first, then they use a table. */
static void documents_without_ids_are_no_burden(void **state)
{
    (void)state;
    enum { N = 3000000, NAMED = 1500000 };
    uint32_t *offsets = calloc(N + 1, sizeof *offsets);
    gx_index ix = {.n_docs = N,
                   .doc_ids = {"first"
                               "second",
                               offsets, N, 4}};
    uint64_t *gone = calloc(N / 64 + 1, sizeof *gone);
    const gx_live live = {NULL, gone, N / 64 + 1};
    assert_true(offsets && gone && gx_id_table_open(&ix.id_table));
    for (uint32_t d = NAMED + 1; d <= N; ++d)
        offsets[d] = d < N ? 5 : 11;
    gone[0] = 3;
    for (int i = 0; i < 20; ++i) {
        assert_int_equal(gx_index_find_live_doc(&ix, NULL, "first", 5), NAMED);
        assert_int_equal(gx_index_find_live_doc(&ix, &live, "second", 6), N - 1);
        assert_int_equal(gx_index_find_live_doc(&ix, NULL, "third", 5), UINT32_MAX);
        assert_int_equal(gx_index_find_live_doc(&ix, NULL, "", 0), 0);
        assert_int_equal(gx_index_find_live_doc(&ix, &live, "", 0), 2);
    }
    gx_id_table_close(ix.id_table);
    free(offsets);
    free(gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_has_one_place),
        cmocka_unit_test(a_hundred_thousand_ids_keep_their_docids),
        cmocka_unit_test(documents_without_ids_are_no_burden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
