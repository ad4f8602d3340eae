#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "tests/support/test.h"

static void every_status_has_its_name_and_exit_code(void **state)
{
    static const struct {
        gx_status status;
        const char *name;
        int exit;
    } rows[] = {
        {GX_OK, "ok", 0},
        {GX_EUSAGE, "usage", 2},
        {GX_EINPUT, "bad input", 3},
        {GX_ECORRUPT, "corrupt index", 4},
        {GX_EIO, "input/output error", 5},
        {GX_EEXISTS, "exists already", 5},
        {GX_ENOTFOUND, "not found", 5},
        {GX_ENOMEM, "out of memory", 6},
        {GX_ENOGPU, "no usable GPU", 7},
        {GX_ECUDA, "GPU failure", 7},
        {GX_ECANCELLED, "cancelled", 8},
        {GX_EDEADLINE, "deadline passed", 9},
        {GX_EINTERNAL, "internal error", 70},
        {GX_EBUSY, "busy", 75},
    };
    (void)state;
    assert_int_equal(sizeof rows / sizeof *rows, GX_EBUSY + 1);
    for (int i = 0; i <= GX_EBUSY; ++i) {
        assert_int_equal(rows[i].status, i);
        assert_string_equal(gx_status_name(rows[i].status), rows[i].name);
        assert_int_equal(gx_status_exit(rows[i].status), rows[i].exit);
    }
    assert_string_equal(gx_status_name((gx_status)(GX_EBUSY + 1)), "unknown status");
    assert_int_equal(gx_status_exit((gx_status)(GX_EBUSY + 1)), 70);
}

static void control_characters_of_a_message_are_made_harmless(void **state)
{
    gx_error err = {0};
    (void)state;
    assert_int_equal(gx_fail(&err, GX_EINPUT, "id \"%s\"",
                             "a\033[31m\n\x7f"
                             "\xc2\x9b"
                             "caf\xc3\xa9"),
                     GX_EINPUT);
    assert_string_equal(err.text, "id \"a?[31m????caf\xc3\xa9\"");
}

static void the_header_has_the_version_of_the_build(void **state)
{
    char version[40];
    (void)state;
    snprintf(version, sizeof version, "%d.%d.%d", GPUIDX_VERSION_MAJOR, GPUIDX_VERSION_MINOR, GPUIDX_VERSION_PATCH);
    assert_string_equal(gx_version(), version);
}

typedef struct pair {
    size_t size;
    uint32_t first, second;
} pair;
#define LEAST GX_SIZE_THROUGH(pair, first)

static void a_sized_struct_is_read_as_far_as_both_sides_know_it(void **state)
{
    gx_error err = {0};
    pair own = {sizeof own, 1, 2};
    const pair shorter = {LEAST, 7, 8}, empty = {LEAST - 1, 9, 9};
    const struct {
        pair known;
        uint32_t more;
    } longer = {{sizeof longer, 5, 6}, 9};
    (void)state;
    assert_int_equal(gx_sized_read(&own, sizeof own, NULL, LEAST, "pair", &err), GX_OK);
    assert_int_equal(own.first, 1);
    assert_int_equal(gx_sized_read(&own, sizeof own, &shorter, LEAST, "pair", &err), GX_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.first, 7);
    assert_int_equal(own.second, 2);
    assert_int_equal(gx_sized_read(&own, sizeof own, &longer, LEAST, "pair", &err), GX_OK);
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.first, 5);
    assert_int_equal(own.second, 6);
    assert_int_equal(gx_sized_read(&own, sizeof own, &empty, LEAST, "pair", &err), GX_EUSAGE);
    assert_int_equal(own.first, 5);
    assert_non_null(strstr(err.text, "pair.size is 11, and the least is 12"));
}

static void a_sized_struct_is_written_as_far_as_the_caller_knows_it(void **state)
{
    const pair own = {sizeof own, 1, 2};
    pair to = {LEAST, 7, 8};
    (void)state;
    assert_int_equal(gx_sized_write(&to, &own, sizeof own, LEAST), GX_OK);
    assert_int_equal(to.size, LEAST);
    assert_int_equal(to.first, 1);
    assert_int_equal(to.second, 8);
    to = (pair){LEAST - 1, 7, 8};
    assert_int_equal(gx_sized_write(&to, &own, sizeof own, LEAST), GX_EUSAGE);
    assert_int_equal(to.first, 7);
}

static void init_functions_write_the_defaults_and_no_byte_more(void **state)
{
    struct {
        gx_query_options options;
        char after[16];
    } q;
    (void)state;
    memset(&q, 0xAA, sizeof q);
    gx_query_options_init(&q.options, sizeof q.options);
    assert_int_equal(q.options.size, sizeof q.options);
    assert_int_equal(q.options.k, 10);
    assert_true(q.options.prune && isnan(q.options.k1) && isnan(q.options.b));
    assert_int_equal((unsigned char)q.after[0], 0xAA);
    memset(&q, 0xAA, sizeof q);
    gx_query_options_init(&q.options, offsetof(gx_query_options, preset));
    assert_int_equal(q.options.size, offsetof(gx_query_options, preset));
    assert_int_equal(q.options.k, 10);
    assert_int_equal(*(unsigned char *)&q.options.preset, 0xAA);
    gx_query_options_init(&q.options, sizeof q); /* a program built for a later version */
    assert_int_equal(q.options.size, sizeof q);
    assert_int_equal(q.after[0], 0);

    gx_index_options ix;
    gx_index_options_init(&ix, sizeof ix);
    assert_int_equal(ix.check, GX_CHECK_CHECKSUM);
    gx_builder_options b;
    gx_builder_options_init(&b, sizeof b);
    assert_true(b.store_titles && !b.store_text && !b.path);
    gx_engine_options en;
    gx_engine_options_init(&en, sizeof en);
    assert_true(en.map_memory == UINT64_MAX && en.linger_us == GX_DEFAULT_LINGER);
}

static void a_size_below_the_first_version_is_refused(void **state)
{
    gx_error err = {0};
    gx_index *ix;
    gx_engine *en;
    gx_builder *builder;
    const gx_index_options io = {.size = sizeof(size_t)};
    const gx_engine_options eo = {.size = sizeof(size_t)};
    const gx_builder_options bo = {.size = sizeof(size_t), .path = "never-built.gx"};
    (void)state;
    assert_int_equal(gx_index_open(&ix, "none.gx", &io, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "gx_index_options.size is 8"));
    assert_int_equal(gx_engine_open(&en, NULL, &eo, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "gx_engine_options.size is 8"));
    assert_int_equal(gx_builder_open(&builder, &bo, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "gx_builder_options.size is 8"));
    assert_null(ix);
    assert_null(en);
    assert_null(builder);
}

static void a_failure_carries_its_text(void **state)
{
    (void)state;
    gx_error err = {0};
    assert_int_equal(gx_fail(&err, GX_EIO, "cannot read %s at byte %d", "x.gx", 12), GX_EIO);
    assert_string_equal(err.text, "cannot read x.gx at byte 12");
    assert_int_equal(gx_fail(NULL, GX_EIO, "nobody listens"), GX_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name_and_exit_code),
        cmocka_unit_test(control_characters_of_a_message_are_made_harmless),
        cmocka_unit_test(the_header_has_the_version_of_the_build),
        cmocka_unit_test(a_sized_struct_is_read_as_far_as_both_sides_know_it),
        cmocka_unit_test(a_sized_struct_is_written_as_far_as_the_caller_knows_it),
        cmocka_unit_test(init_functions_write_the_defaults_and_no_byte_more),
        cmocka_unit_test(a_size_below_the_first_version_is_refused),
        cmocka_unit_test(a_failure_carries_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
