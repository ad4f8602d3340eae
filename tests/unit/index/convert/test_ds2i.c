#include "engine/api/gpuidx_advanced.h"
#include "tests/support/exchange.h"

#include <unistd.h>

static void put(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_dir(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}
#define PUT(name, ...) put(name, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}))

static void what_is_exported_comes_back(void **state)
{
    (void)state;
    assert_comes_back(gx_ds2i_export, gx_ds2i_import);
}

static void remove_names(void)
{
    unlink(in_dir("x.terms"));
    unlink(in_dir("x.documents"));
}

static void a_good_collection(void)
{
    remove_names();
    PUT("x.docs", 1, 4, 2, 0, 3, 1, 2, 3, 0, 1, 2);
    PUT("x.freqs", 2, 5, 1, 1, 7, 3, 1, 1, 1);
    PUT("x.sizes", 4, 6, 1, 8, 1);
}

static void lists_without_names_are_called_by_number(void **state)
{
    (void)state;
    gx_error err = {0};
    const gx_import_options opt = with_codec();
    a_good_collection();
    if (gx_ds2i_import(in_dir("x"), in_dir("b.gx"), &opt, &err))
        fail_msg("%s", err.text);
    gx_index *ix = open_index("b.gx");
    assert_int_equal(ix->n_terms, 3);
    const uint32_t t = gx_index_find_term(ix, "1", 1);
    assert_int_equal(t, 1);
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
    const gx_list l = gx_index_list(ix, t);
    assert_int_equal(gx_list_decode_docids(&l, 0, docids), 1);
    gx_list_decode_tfs(&l, 0, tfs);
    assert_int_equal(docids[0], 2);
    assert_int_equal(tfs[0], 7);
    size_t len;
    assert_memory_equal(gx_index_doc_id(ix, 3, &len), "3", 1);
    gx_index_close(ix);
}

static void refused(const char *reason)
{
    gx_error err = {0};
    const gx_import_options opt = with_codec();
    unlink(in_dir("b.gx"));
    const gx_status st = gx_ds2i_import(in_dir("x"), in_dir("b.gx"), &opt, &err);
    if (st != GX_EINPUT || !strstr(err.text, reason))
        fail_msg("status %d: \"%s\" does not say \"%s\"", st, err.text, reason);
    assert_int_equal(access(in_dir("b.gx"), F_OK), -1);
}

static void bad_files_are_refused_with_their_place(void **state)
{
    (void)state;
    a_good_collection();
    PUT("x.docs", 2, 4, 4, 2, 0, 3);
    refused("x.docs: byte 0");
    PUT("x.docs", 1, 4, 2, 3, 0, 1, 2, 3, 0, 1, 2);
    refused("x.docs: byte 16: docid 0 where one in [4, 4)");
    PUT("x.docs", 1, 4, 2, 0, 4, 1, 2, 3, 0, 1, 2);
    refused("x.docs: byte 16: docid 4");
    PUT("x.docs", 1, 4, 2, 0, 3, 1, 2, 30, 0, 1, 2);
    refused("x.docs: byte 28: a sequence of 30 numbers does not fit");
    PUT("x.docs", 1, 4, 2, 0, 3, 1, 2);
    refused("x.freqs: byte 20: there are more lists");
    put("x.docs", "\1\0\0\0\4\0\0\0\1\0", 10);
    refused("x.docs: byte 8: the file ends");
    put("x.docs", "", 0);
    refused("x.docs: byte 0: the file ends");
    a_good_collection();
    PUT("x.freqs", 1, 5, 1, 7, 3, 1, 1, 1);
    refused("x.freqs: byte 0: list 0 has 1 tfs but 2 docids");
    PUT("x.freqs", 2, 5, 0, 1, 7, 3, 1, 1, 1);
    refused("x.freqs: byte 8: a tf of 0");
    a_good_collection();
    PUT("x.sizes", 3, 6, 1, 8);
    refused("lengths of 3 documents");
    PUT("x.sizes", 4, 6, 1, 7, 2); /* the sum is right */
    refused("x.sizes: byte 12: document 2 has length 7, but its tfs add up to 8");
    a_good_collection();
    put("x.terms", "one\ntwo\n", 8);
    refused("x.terms: line 3: the file ends, but there are 3 lists");
    put("x.terms", "one\ntwo\none\n", 12);
    refused("two lists are called \"one\"");
    put("x.terms", "one\n\nthree\n", 11);
    refused("x.terms: line 2: a name of 0 bytes");
    remove_names();
}

static void an_export_does_not_replace_unasked(void **state)
{
    (void)state;
    gx_error err = {0};
    const gx_import_options opt = with_codec();
    a_good_collection();
    assert_int_equal(gx_ds2i_import(in_dir("x"), in_dir("b.gx"), &opt, &err), GX_OK);
    gx_index *ix = open_index("b.gx");
    assert_int_equal(gx_ds2i_export(ix, in_dir("x"), NULL, &err), GX_EEXISTS);
    assert_int_equal(gx_ds2i_export(ix, in_dir("none/x"), NULL, &err), GX_ENOTFOUND);
    gx_index_close(ix);
}

/* Exporters with lossy lengths have other sums altogether. */
static void lengths_of_another_kind_are_taken(void **state)
{
    (void)state;
    gx_error err = {0};
    const gx_import_options opt = with_codec();
    a_good_collection();
    PUT("x.sizes", 4, 6, 1, 7, 1);
    if (gx_ds2i_import(in_dir("x"), in_dir("b.gx"), &opt, &err))
        fail_msg("%s", err.text);
    gx_index *ix = open_index("b.gx");
    assert_int_equal(ix->doc_lens[2], 7);
    gx_index_close(ix);
}

static void what_ds2i_cannot_hold_is_not_exported(void **state)
{
    (void)state;
    gx_error err = {0};
    collection *c = collection_make(1, 10, 2);
    strcpy(c->ids[4], "a\n\033[2Jb");
    assert_int_equal(collection_write(c, in_dir("a.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    gx_index *ix = open_index("a.gx");
    assert_int_equal(gx_ds2i_export(ix, in_dir("y"), NULL, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "a.gx: the name of document 4, \"a??[2Jb\", holds a line end"));
    assert_int_equal(access(in_dir("y.docs"), F_OK), -1);
    gx_index_close(ix);
    collection_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_exported_comes_back),
        cmocka_unit_test(lists_without_names_are_called_by_number),
        cmocka_unit_test(bad_files_are_refused_with_their_place),
        cmocka_unit_test(lengths_of_another_kind_are_taken),
        cmocka_unit_test(what_ds2i_cannot_hold_is_not_exported),
        cmocka_unit_test(an_export_does_not_replace_unasked),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
