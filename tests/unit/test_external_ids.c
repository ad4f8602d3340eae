/* External ids to docids, while an index is built. */
#include "index/build/external_ids.h"

#include "engine/random.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_has_one_place),
        cmocka_unit_test(a_hundred_thousand_ids_keep_their_docids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
